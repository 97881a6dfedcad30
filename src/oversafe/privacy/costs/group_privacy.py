"""What a private mechanism still promises when one record changes many of its rows, or a random number of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oversafe._core.errors import InputError
from oversafe.privacy.guarantee import check_delta, check_epsilon

# Outward rounding. SciPy's binomial probabilities are within 2e-10 of the truth up to a billion trials; what
# underflows, or lies beyond the values that are kept, gets a mass of its own.
_SLACK = 1 + 1e-8
_UNSEEN = 1e-304
_MOST_VALUES = 20_000
_MOST_VALUES_OF_A_SUM = 2_000
MOST_ROWS = 10**9
# A guarantee's epsilon is above 0, also where the true one is 0.
SMALLEST_EPSILON = 1e-9


@dataclass(frozen=True)
class GroupSize:
    """A random number of changed rows, from above: ``P[size > v]`` is at most the mass on values above ``v``.

    Parameters
    ----------
    values : array of int
        In rising order; the last is the largest size that can happen.
    masses : array of float
        At least the probabilities. They may sum to a little more than 1.
    """

    values: NDArray[np.int64]
    masses: NDArray[np.float64]

    @classmethod
    def fixed(cls, size: int) -> GroupSize:
        """Return a size that is certain."""
        return cls(np.array([size], dtype=np.int64), np.ones(1))

    @classmethod
    def binomial(cls, trials: int, chance: float) -> GroupSize:
        """Return the number of successes in independent trials."""
        if trials == 0 or chance <= 0:
            return cls.fixed(0)
        if chance >= 1:
            return cls.fixed(trials)
        from scipy.stats import binom

        mean, variance = trials * chance, trials * chance * (1 - chance)
        # Bernstein: P[X >= mean + t] <= exp(-t^2 / (2 variance + 2 t / 3)), which is below 1e-304 and 1e-30 here.
        last = min(trials, math.ceil(mean + _bernstein(701, variance)))
        first = max(0, math.floor(mean - _bernstein(70, variance)))
        values = np.arange(first, last + 1, dtype=np.int64)
        # The difference from 0 to `first` is moved up to it, and what lies beyond `last` to the very end.
        masses = binom.pmf(values, trials, chance) * _SLACK + _UNSEEN / 10
        if first:
            masses[0] += 1e-30
        if last < trials:
            values, masses = np.append(values, trials), np.append(masses, _UNSEEN)
        return cls(values, masses)._coarse(_MOST_VALUES)

    @property
    def largest(self) -> int:
        """The largest size that can happen."""
        return int(self.values[-1])

    @property
    def mean(self) -> float:
        """The expected size, from above."""
        return float(self.values @ self.masses)

    def quantile(self, delta: float) -> int:
        """Return the least size that is exceeded with at most a probability."""
        above = np.cumsum(self.masses[::-1])[::-1]
        # The mass on the values after each.
        beyond = np.append(above[1:], 0.0)
        return int(self.values[int(np.argmax(beyond <= delta))])

    def below(self, other: GroupSize) -> bool:
        """Whether each size is exceeded with no more probability than in another bound."""
        values = np.union1d(self.values, other.values)
        mine, theirs = (
            np.append(np.cumsum(size.masses[::-1])[::-1], 0.0)[
                np.searchsorted(size.values, values, side="right")
            ]
            for size in (self, other)
        )
        return bool((mine <= theirs).all())

    def __add__(self, other: GroupSize) -> GroupSize:
        """Return the sum of independent sizes."""
        for one, many in ((self, other), (other, self)):
            if len(one.values) == 1:
                return GroupSize(many.values + one.values[0], many.masses * float(one.masses[0]))
        a, b = self._coarse(_MOST_VALUES_OF_A_SUM), other._coarse(_MOST_VALUES_OF_A_SUM)
        sums = np.add.outer(a.values, b.values).ravel()
        masses = np.multiply.outer(a.masses, b.masses).ravel() + _UNSEEN / 1e7
        values, where = np.unique(sums, return_inverse=True)
        return GroupSize(values, np.bincount(where, masses).astype(float) * _SLACK)._coarse(_MOST_VALUES)

    def times(self, factor: int, plus: int = 0) -> GroupSize:
        """Return ``factor * size + plus``."""
        return GroupSize(self.values * factor + plus, self.masses)

    def _coarse(self, most: int) -> GroupSize:
        """Return fewer values, each moved up to the end of its bin."""
        if len(self.values) <= most:
            return self
        width = math.ceil(len(self.values) / most)
        ends = np.arange(len(self.values) - 1, -1, -width)[::-1]
        starts = np.concatenate([[0], ends[:-1] + 1])
        return GroupSize(self.values[ends], np.add.reduceat(self.masses, starts) * (1 + 1e-12))


def _bernstein(exponent: float, variance: float) -> float:
    return exponent / 3 + math.sqrt((exponent / 3) ** 2 + 2 * exponent * variance)


@dataclass(frozen=True)
class Mechanism:
    """What is known of a private mechanism: (epsilon, delta), or the noise multiplier of a Gaussian one."""

    epsilon: float | None = None
    delta: float = 0.0
    noise_multiplier: float | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.noise_multiplier is None):
            raise InputError(
                "give either epsilon, for any mechanism that is differentially private, or noise_multiplier, for a "
                "Gaussian one"
            )
        if self.epsilon is not None:
            check_epsilon(self.epsilon)
            check_delta(self.delta)
            return
        sigma = self.noise_multiplier
        if isinstance(sigma, bool) or not isinstance(sigma, int | float) or not 0 < sigma < math.inf:
            raise InputError(
                f"noise_multiplier = {sigma!r} was given; it is a finite number above 0, the noise's standard "
                "deviation over the sensitivity"
            )
        if self.delta:
            raise InputError(
                "delta was given beside noise_multiplier; a Gaussian mechanism has a delta for every epsilon, so "
                "leave delta out and give target_delta"
            )

    def deltas(self, epsilon: float, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return an upper bound on the hockey-stick divergence at epsilon for each number of changed rows."""
        if self.epsilon is None:
            assert self.noise_multiplier is not None
            return _gaussian_deltas(epsilon, sizes / self.noise_multiplier)
        # An (e, f)-DP pair is dominated by: with probability f everything shows, else randomized response of e
        # (Kairouz, Oh and Viswanath 2015).
        losses = sizes * (self.epsilon * (1 + 4e-16))
        gaps = np.maximum(losses - epsilon, 0.0)
        pure = -np.expm1(-gaps) / (1 + np.exp(-losses)) * (1 + 1e-14)
        if self.delta == 0:
            return pure
        failures = group_delta(self.epsilon, self.delta, sizes)
        return failures + (1 - failures) * pure


def group_delta(epsilon: float, delta: float, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the delta of (size * epsilon, delta)-DP for groups: delta (e^(g epsilon) - 1) / (e^epsilon - 1)."""
    if delta == 0:
        return np.zeros(len(sizes))
    with np.errstate(divide="ignore"):
        log_sum = _log_expm1(sizes * epsilon) - _log_expm1(np.array(epsilon))
    return np.where(sizes == 1, delta, np.exp(np.minimum(0.0, math.log(delta) + log_sum + 1e-9)))


def _log_expm1(x: NDArray[np.floating]) -> NDArray[np.float64]:
    return np.where(x > 1, x + np.log1p(-np.exp(-np.maximum(x, 1.0))), np.log(np.expm1(np.minimum(x, 1.0))))


def _gaussian_deltas(epsilon: float, shifts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the delta of Gaussian noise of deviation 1 for each shift (Balle and Wang 2018), from above."""
    from scipy.special import log_ndtr

    deltas = np.zeros(len(shifts))
    moved = shifts > 0
    half, rest = shifts[moved] / 2, epsilon / shifts[moved]
    likely = np.exp(log_ndtr(half - rest))
    # The two terms nearly cancel where the shift is small, so the error is counted on the larger one.
    deltas[moved] = likely * (1 + 1e-11) - np.exp(epsilon + log_ndtr(-half - rest))
    return np.clip(deltas, 0.0, 1.0)


def whole_delta(epsilon: float, cases: Sequence[GroupSize], mechanism: Mechanism) -> float:
    """Return the delta of the whole at an epsilon: the worst case's expectation over its group sizes.

    The hockey-stick divergence is jointly convex, so that of two mixtures is at most the mixture of the divergences
    of what is paired in a coupling; see the proof in the documentation.
    """
    worst = max(float(case.masses @ mechanism.deltas(epsilon, case.values)) for case in cases)
    # The delta of Gaussian noise is never 0, only too small to compute.
    unseen = 1e-300 if mechanism.epsilon is None else 0.0
    return min(1.0, worst * (1 + 1e-11) + unseen)


def whole_epsilon(
    target_delta: float, cases: Sequence[GroupSize], mechanism: Mechanism
) -> tuple[float, float]:
    """Return the least epsilon of the whole at a delta, and the delta to state with it."""
    check_delta(target_delta)
    largest = max(case.largest for case in cases)
    if mechanism.epsilon is not None:
        top = max(largest * mechanism.epsilon * (1 + 4e-16), SMALLEST_EPSILON)
        if not math.isfinite(top):
            raise InputError(
                f"epsilon = {mechanism.epsilon:g} for {largest} changed rows is beyond any number; start from less"
            )
        if mechanism.delta == 0 and target_delta == 0:
            return (largest * mechanism.epsilon if largest else SMALLEST_EPSILON), 0.0
        least = whole_delta(top, cases, mechanism)
    else:
        if target_delta == 0:
            raise InputError(
                "a Gaussian mechanism has no epsilon at delta 0; give target_delta, such as 1e-9"
            )
        top = 1.0
        while (least := whole_delta(top, cases, mechanism)) > target_delta and top < 1e300:
            top *= 2
    if least > target_delta:
        raise InputError(
            f"target_delta = {target_delta:g} cannot be met: the changed rows alone bring delta to {least:.3g}; "
            "allow a larger one, or start from a mechanism with a smaller delta"
        )
    epsilon = _least(lambda e: whole_delta(e, cases, mechanism) <= target_delta, 0.0, top)
    if epsilon >= top and mechanism.epsilon is not None and mechanism.delta == 0:
        return largest * mechanism.epsilon, 0.0
    return max(epsilon, SMALLEST_EPSILON), target_delta


def mechanism_epsilon(
    epsilon: float, target_delta: float, cases: Sequence[GroupSize], delta: float = 0.0
) -> float:
    """Return the largest epsilon that a mechanism may run at so that the whole has a given one."""
    check_epsilon(epsilon)
    check_delta(target_delta)
    largest = max(max(case.largest for case in cases), 1)
    low = epsilon / largest * (1 - 1e-15)

    def fits(inside: float) -> bool:
        return whole_delta(epsilon, cases, Mechanism(inside, delta)) <= target_delta

    if target_delta == 0 and delta == 0:
        return low
    while not fits(low):
        # Only a delta of the mechanism can stand in the way, and a group's delta falls with epsilon to size * delta.
        low /= 2
        if low < epsilon * 1e-15:
            raise InputError(
                f"target_delta = {target_delta:g} cannot be met with a mechanism of delta = {delta:g}; allow a larger "
                "one, or start from a mechanism with a smaller delta"
            )
    high = 2 * low
    while fits(high):
        low, high = high, 2 * high
        if high > 1e6:
            return low
    return -_least(lambda negative: fits(-negative), -high, -low)


def mechanism_noise(epsilon: float, target_delta: float, cases: Sequence[GroupSize]) -> float:
    """Return the least noise multiplier of a Gaussian mechanism so that the whole has a given epsilon and delta."""
    check_epsilon(epsilon)
    check_delta(target_delta)
    if target_delta == 0:
        raise InputError("a Gaussian mechanism has no epsilon at delta 0; give target_delta, such as 1e-9")

    def fits(sigma: float) -> bool:
        return whole_delta(epsilon, cases, Mechanism(noise_multiplier=sigma)) <= target_delta

    high = 1.0
    while not fits(high):
        high *= 2
        if high > 1e15:
            raise InputError(
                f"no noise brings the whole to epsilon = {epsilon:g} at delta = {target_delta:g}"
            )
    low = high / 2
    while fits(low) and low > 1e-6:
        low, high = low / 2, low
    return _least(fits, low, high)


def _least(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the least number at which a monotone condition holds, from the side where it does."""
    if holds(low):
        return low
    for _ in range(200):
        middle = low + (high - low) / 2
        if abs(high - low) <= 1e-10 * abs(high) or middle in (low, high):
            break
        if holds(middle):
            high = middle
        else:
            low = middle
    return high
