"""Success rates of an attack, of guessing and of a control, and the risk that is left between them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from oversafe.attack.base import wilson_interval

GUESSING = (
    "the attack did no better than guessing, so it says nothing about the risk; "
    "give it more to go by, or trust another attack"
)
NO_HOLDOUT = (
    "without a holdout the risk is measured against guessing, so that what the release tells about people in "
    "general counts as a risk too; give rows that had no part in the release"
)


@dataclass(frozen=True)
class Rate:
    """How often an attack succeeded.

    Parameters
    ----------
    successes : float
        How many attacks succeeded, or are expected to.
    attacks : int
        How many were made.
    people : int, optional
        How many different people were attacked, if some more than once.
    exact : bool
        Whether the share is known from theory, so that its interval has no width.
    """

    successes: float
    attacks: int
    people: int | None = None
    exact: bool = False

    @property
    def share(self) -> float:
        """The share of the attacks that succeeded; 0 when none was made."""
        return self.successes / self.attacks if self.attacks else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """95 % Wilson interval of the share, for these people."""
        if self.exact:
            return self.share, self.share
        return wilson_interval(self.successes, self.attacks)

    @property
    def interval_for_others(self) -> tuple[float, float]:
        """95 % Wilson interval of the share for other people: each person counts once, however often attacked."""
        if self.exact or self.people is None:
            return self.interval
        trials = min(self.people, self.attacks)
        return wilson_interval(self.share * trials, trials)


def risk_over(main: Rate, other: Rate) -> tuple[float, tuple[float, float]]:
    """Return the share of what the other attack leaves open that the main attack gets, with its interval.

    This is (main - other) / (1 - other), not below 0. The interval is that of the ratio of the two failure
    rates by MOVER-R, from their Wilson intervals. When the other attack was made on other people, what
    differs between people by chance counts, so each person counts once.

    References
    ----------
    Giomi, Boenisch, Wehmeyer and Tasnádi, "A Unified Framework for Quantifying Privacy Risk in Synthetic
    Data", PoPETs 2023(2), equation 3.

    Donner and Zou, "Closed-form confidence intervals for functions of the normal mean and standard
    deviation", Statistical Methods in Medical Research 21 (2012).
    """
    failed, failed_other = 1 - main.share, 1 - other.share
    ends = main.interval if other.exact else main.interval_for_others
    low, high = (1 - end for end in reversed(ends))
    low_other, high_other = (1 - end for end in reversed(other.interval_for_others))
    product = failed * failed_other
    risk = 1 - failed / failed_other if failed_other > 0 else 0.0

    def ratio(end: float, end_other: float, sign: int) -> float:
        below = end_other * (2 * failed_other - end_other)
        inside = product**2 - end * end_other * (2 * failed - end) * (2 * failed_other - end_other)
        if below <= 0:
            return 0.0 if sign < 0 else math.inf
        return (product + sign * math.sqrt(max(0.0, inside))) / below

    bottom, top = 1 - ratio(high, low_other, +1), 1 - ratio(low, high_other, -1)
    return _unit(risk), (_unit(bottom), max(_unit(risk), _unit(top)))


def paired_interval(
    main: NDArray[Any], other: NDArray[Any], risk: float, repeats: float
) -> tuple[float, float]:
    """Return the 95 % interval of the risk when the same trials were made by both attacks.

    The variance is that of the ratio of the two failure rates over the pairs. One pair of each outcome is
    added, as Bonett and Price do, so that an interval from few or equal outcomes keeps a width.

    Parameters
    ----------
    main, other : arrays
        For each trial whether it succeeded, or an estimate of that.
    risk : float
        What the interval must contain.
    repeats : float
        How many trials count as one, because they hit the same people.
    """
    failed = np.concatenate([1.0 - main, [0.0, 0.0, 1.0, 1.0]])
    failed_other = np.concatenate([1.0 - other, [0.0, 1.0, 0.0, 1.0]])
    ratio = failed.mean() / max(failed_other.mean(), 1e-12)
    rest = failed - ratio * failed_other
    error = math.sqrt(np.mean(rest**2) * repeats / len(rest))
    half = norm.ppf(0.975) * error / max(failed_other.mean(), 1e-12)
    return min(risk, _unit(1 - ratio - half)), max(risk, _unit(1 - ratio + half))


def compare(
    main: Rate, naive: Rate, control: Rate | None = None
) -> tuple[float, tuple[float, float], dict[str, Any]]:
    """Return the risk, its interval, and the figures of the three attacks for ``details``."""
    risk, interval = risk_over(main, naive if control is None else control)
    details: dict[str, Any] = {"attacks": main.attacks}
    for name, rate in (("main", main), ("naive", naive), ("control", control)):
        if rate is not None:
            details[f"{name}_rate"] = rate.share
            details[f"{name}_interval"] = rate.interval
    details["risk_basis"] = "naive" if control is None else "control"
    if main.attacks and main.interval[0] <= naive.share:
        details["warning"] = GUESSING
    elif control is None:
        details["warning"] = NO_HOLDOUT
    return risk, interval, details


def _unit(value: float) -> float:
    return float(min(1.0, max(0.0, value)))
