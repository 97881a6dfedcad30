"""What every attack returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import pandas as pd
from scipy.stats import norm

from oversafe._core.errors import InputError

Threat = Literal[
    "reconstruction", "distinguishing", "membership", "linkage", "singling-out", "attribute", "similarity"
]


# Differences of shares may leave the unit interval by as much.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class AttackResult:
    """What an outsider got out of a release.

    Parameters
    ----------
    name : str
        The attack.
    threat : str
        What it threatens: "reconstruction", "distinguishing", "membership", "linkage",
        "singling-out", "attribute" or "similarity".
    risk : float
        The attacker's advantage over the baseline, from 0 (guessing) to 1 (certain).
    interval : tuple of float
        95 % interval of the risk.
    evidence : DataFrame
        What was found, one row per finding, for a person to read.
    details : dict
        The field's usual figures, such as precision and recall.
    """

    name: str
    threat: Threat
    risk: float
    interval: tuple[float, float]
    evidence: pd.DataFrame = field(repr=False)
    details: dict[str, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.threat not in get_args(Threat):
            raise InputError(f"threat = {self.threat!r} was given; use one of {', '.join(get_args(Threat))}")
        if not -_ROUNDING <= self.risk <= 1 + _ROUNDING:
            raise InputError(
                f"risk = {self.risk!r} was given; it is the advantage over guessing, from 0 to 1"
            )
        low, high = self.interval
        if not -_ROUNDING <= low <= high <= 1 + _ROUNDING:
            raise InputError(
                f"interval = {self.interval!r} was given; give its lower end, then its upper end, both from 0 to 1"
            )
        if not isinstance(self.evidence, pd.DataFrame):
            raise InputError(
                f"evidence is of type {type(self.evidence).__name__}; give a DataFrame, which may be empty"
            )
        object.__setattr__(self, "risk", _without_rounding(self.risk))
        object.__setattr__(self, "interval", (_without_rounding(low), _without_rounding(high)))


def _without_rounding(share: float) -> float:
    """Return a share as 0 or 1 where it is that but for the rounding of floats."""
    return next((whole for whole in (0.0, 1.0) if abs(share - whole) <= _ROUNDING), share)


class Attack(ABC):
    """The contract of an attack: settings in the constructor, material in ``run``.

    An attack of your own whose ``run`` takes ``release``, ``real`` and ``holdout`` (the rows of one class, without the
    label; the holdout may be None) can be handed to :func:`oversafe.audit` and :func:`oversafe.compare`.

    Examples
    --------
    >>> import pandas as pd
    >>> from oversafe.attack import Attack, AttackResult
    >>> class SharedValues(Attack):
    ...     def run(self, release, real, holdout=None):
    ...         share = float(real.iloc[:, 0].isin(release.iloc[:, 0]).mean())
    ...         chance = 0.0 if holdout is None else float(holdout.iloc[:, 0].isin(release.iloc[:, 0]).mean())
    ...         risk = max(0.0, share - chance)
    ...         return AttackResult("SharedValues", "attribute", risk, (0.0, 1.0), pd.DataFrame())
    >>> people = pd.DataFrame({"age": [31.2, 47.1]})
    >>> SharedValues().run(people, people).risk
    1.0
    """

    @abstractmethod
    def run(self, *args: Any, **kwargs: Any) -> AttackResult:
        """Attack what is given and return what was found."""


def wilson_interval(successes: float, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the Wilson score interval of a proportion; (0, 1) when nothing was tried."""
    if trials == 0:
        return 0.0, 1.0
    z = float(norm.ppf(0.5 + confidence / 2))
    share = successes / trials
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * (share * (1 - share) / trials + z * z / (4 * trials * trials)) ** 0.5
    # At the ends the formula gives 0 and 1 but for rounding.
    return (
        max(0.0, centre - half) if successes > 0 else 0.0,
        min(1.0, centre + half) if successes < trials else 1.0,
    )
