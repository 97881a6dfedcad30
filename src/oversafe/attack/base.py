"""What every attack returns, and what it says about itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from scipy.stats import norm

from oversafe._core.errors import InputError
from oversafe.attack.class_tables import ClassTables

Threat = Literal[
    "reconstruction", "distinguishing", "membership", "linkage", "singling-out", "attribute", "similarity"
]
# What an attack is run with. "reconstruction" is the result of one that computes records from the same rows.
Material = Literal["release", "real", "holdout", "reconstruction", "generator"]
# Which rows an audit runs it on: those of the classes at risk, of the largest class, or under another label.
Rows = Literal["attacked", "largest", "relabelled"]
# How it names real records: it computes them, or finds them in the release as they are.
Reads = Literal["computed", "copied"]
# What was found before in the same class, by how it names records.
Earlier = Mapping[Reads, "AttackResult"]

QUESTIONS: Mapping[Threat, str] = {
    "reconstruction": "Can real records be computed from the release?",
    "distinguishing": "Can the real rows in the release be told from the added ones?",
    "membership": "Can an outsider tell whether a person was in the data?",
    "linkage": "Can two sources about one person be linked through the release?",
    "singling-out": "Can a person be singled out?",
    "attribute": "Can an unknown fact about a person be inferred?",
    "similarity": "Are the rows closer to real ones than chance allows?",
}
ONLY_THE_FILE = "Somebody who has the released file and nothing else."

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


@dataclass(frozen=True)
class About:
    """What an attack says about itself, for a reader who has never heard of it and for the audit that runs it.

    Parameters
    ----------
    question : str
        What it asks, as a person would.
    attacker : str
        What the attacker must have.
    method : str
        How it works.
    risk : str
        What its risk is the share of, and what counts as 0.
    threat : str, optional
        What it threatens, as in :class:`AttackResult`.
    needs : tuple of str
        Without what it cannot be run: "release", "real", "holdout", "reconstruction" (the result of an attack that
        computes records), "generator" (the method that makes releases).
    helped_by : tuple of str
        With what it says more.
    rows : tuple of str
        Which rows it is run on: "attacked", "largest", "relabelled".
    work : float
        How long it takes in comparison, for the time that is left.
    reads : {"computed", "copied"}, optional
        How it names real records with certainty, if it does.
    """

    question: str = ""
    attacker: str = ""
    method: str = ""
    risk: str = "The attacker's advantage over guessing: 0 is guessing, 1 certainty."
    threat: Threat | None = None
    needs: tuple[Material, ...] = ("release", "real")
    helped_by: tuple[Material, ...] = ("holdout",)
    rows: tuple[Rows, ...] = ("attacked",)
    work: float = 1.0
    reads: Reads | None = None


@dataclass(frozen=True)
class SuccessRate:
    """How often an attack succeeds, or what its baseline reaches: one bar of a chart.

    Parameters
    ----------
    label : str
        Whose rate it is.
    share : float
        The rate.
    interval : tuple of float, optional
        Its 95 % interval, where it is an estimate.
    role : {"attack", "baseline"}
        Which of the two it is.
    """

    label: str
    share: float
    interval: tuple[float, float] | None
    role: Literal["attack", "baseline"] = "baseline"


class Attack(ABC):
    """The contract of an attack: settings in the constructor, material in ``run``, and what it is in ``about``.

    An attack of your own whose ``run`` takes ``release``, ``real`` and ``holdout`` (the rows of one class, without the
    label; the holdout may be None) can be handed to :func:`oversafe.audit` and :func:`oversafe.compare`.

    Attributes
    ----------
    about : About
        What the report says about it.

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

    about: About = About()

    @abstractmethod
    def run(self, *args: Any, **kwargs: Any) -> AttackResult:
        """Attack what is given and return what was found."""

    def title(self) -> str:
        """Return what results and reports call it."""
        return type(self).__name__

    @classmethod
    def variants(cls, seed: int) -> tuple[Attack, ...]:
        """Return the attack as audits run it: one object, or one for each of its modes."""
        seeded = {"random_state": seed} if "random_state" in signature(cls).parameters else {}
        return (cls(**seeded),)

    def why_not(self, tables: ClassTables, earlier: Earlier) -> str | None:
        """Return why audits do not run it on a class (an empty text if nobody has to know), or None if they do."""
        return None

    def run_on(self, tables: ClassTables, earlier: Earlier) -> AttackResult | None:
        """Run it on a class as audits do; None if it has nothing to say."""
        return self.run(tables.release, tables.real, tables.holdout)

    def headline(self, result: Any, label: str, certain: int = 0) -> str:
        """Return what a result means, for a reader who does not know the attack.

        Parameters
        ----------
        result : AttackResult
            What was found.
        label : str
            The class that was attacked.
        certain : int
            How many real records it names with certainty.
        """
        gain = f"{result.risk:.0%} over guessing (95 % interval {result.interval[0]:.0%} to {result.interval[1]:.0%})"
        return f"An attack of your own gains {gain} on class {label!r}."

    def rates(self, result: AttackResult) -> list[SuccessRate]:
        """Return the attack's own rate and those of its baselines, in the terms that the attack counts in."""
        details = result.details
        if "main_rate" not in details:
            return [
                SuccessRate("advantage of this attack", result.risk, result.interval, "attack"),
                SuccessRate("guessing", 0.0, None),
            ]
        labels = {
            "main": "this attack",
            "control": "the same attack on people who had no part",
            "naive": "guessing",
        }
        return [
            SuccessRate(
                label,
                details[f"{name}_rate"],
                _pair(details[f"{name}_interval"]),
                "attack" if name == "main" else "baseline",
            )
            for name, label in labels.items()
            if f"{name}_rate" in details
        ]


def _pair(interval: Any) -> tuple[float, float]:
    low, high = np.asarray(interval, dtype=float)
    return float(low), float(high)


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
