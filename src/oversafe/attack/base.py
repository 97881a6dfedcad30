"""What every attack returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd
from scipy.stats import norm

Threat = Literal[
    "reconstruction", "distinguishing", "membership", "linkage", "singling-out", "attribute", "similarity"
]


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


class Attack(ABC):
    """The contract of an attack: settings in the constructor, material in ``run``."""

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
