"""How much privacy a mechanism really gives: an empirical lower bound on epsilon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from oversafe.errors import InputError
from oversafe.privacy.guarantee import check_delta


@dataclass(frozen=True)
class EpsilonAudit:
    """An empirical lower bound on epsilon.

    Parameters
    ----------
    lower_bound : float
        With the stated confidence the mechanism is not (epsilon, delta)-DP for any smaller epsilon.
    confidence, delta : float
        What the bound holds at.
    counts : tuple of int
        How often the event happened on the table where it is likelier, and on the other.
    trials : int
        How often each was run to measure it.
    """

    lower_bound: float
    confidence: float
    delta: float
    counts: tuple[int, int]
    trials: int


def audit_epsilon(
    run: Callable[[Any, np.random.Generator], Any],
    table: Any,
    neighbour: Any,
    *,
    trials: int = 10_000,
    delta: float = 0.0,
    confidence: float = 0.95,
    random_state: int | None = None,
) -> EpsilonAudit:
    """Return a lower bound on the epsilon of a mechanism from its runs on two neighbouring tables.

    The runs are split in halves: on the first an event is chosen, on the second it is measured with
    Clopper-Pearson ends, so the bound holds at the stated confidence however the event was chosen.

    Parameters
    ----------
    run : callable (table, rng) -> float or array of float
        The mechanism. When it returns an array, a linear discriminant of it, learned on the first half, is
        the statistic.
    table, neighbour
        Two neighbouring tables, the worse the better.
    trials : int, default=10_000
        How often the mechanism is run on each of them.
    delta : float, default=0.0
        The claimed delta.
    confidence : float, default=0.95
        Of the bound.
    random_state : int, optional
        Makes the audit repeatable.

    Examples
    --------
    >>> from oversafe.measure import audit_epsilon
    >>> def noisy_count(table, rng):
    ...     return len(table) + rng.laplace(scale=1.0)
    >>> audit = audit_epsilon(noisy_count, [1, 2, 3], [1, 2], trials=20_000, random_state=0)
    >>> 0.5 < audit.lower_bound <= 1.0
    True
    """
    if trials < 20:
        raise InputError(
            f"trials = {trials} was given; at least 20 are needed to choose and measure an event"
        )
    if not 0 < confidence < 1:
        raise InputError(f"confidence = {confidence} was given; it lies between 0 and 1, such as 0.95")
    check_delta(delta)
    rng = np.random.default_rng(random_state)
    first = np.array([np.ravel(run(table, rng)) for _ in range(trials)], dtype=float)
    second = np.array([np.ravel(run(neighbour, rng)) for _ in range(trials)], dtype=float)
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise InputError("the mechanism returned values that are not finite; return finite numbers")
    half = trials // 2
    weights = _discriminant(first[:half], second[:half])
    a, b = first @ weights, second @ weights
    # The claim is symmetric, so the event may be the likelier one under either table, at either end.
    best: tuple[float, int, float, float] | None = None
    for sign in (1.0, -1.0):
        for order, (p, q) in enumerate(((a, b), (b, a))):
            threshold, bound = _best_threshold(sign * p[:half], sign * q[:half], delta, confidence)
            if best is None or bound > best[0]:
                best = bound, order, sign, threshold
    assert best is not None
    _, order, sign, threshold = best
    p, q = ((a, b), (b, a))[order]
    hits = int(np.sum(sign * p[half:] >= threshold)), int(np.sum(sign * q[half:] >= threshold))
    measured = trials - half
    lower = float(_bound(np.array(hits[0]), np.array(hits[1]), measured, delta, confidence))
    return EpsilonAudit(max(0.0, lower), confidence, delta, hits, measured)


def _discriminant(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    if first.shape[1] == 1:
        return np.ones(1)
    apart = first.mean(axis=0) - second.mean(axis=0)
    covariance = np.cov(np.vstack([first - first.mean(axis=0), second - second.mean(axis=0)]).T)
    # A small ridge, so that a coordinate without any noise, which gives everything away, weighs most.
    ridge = 1e-9 * (np.trace(covariance) + float(apart @ apart)) + np.finfo(float).tiny
    return np.linalg.solve(covariance + ridge * np.eye(len(apart)), apart)


def _best_threshold(
    p: NDArray[np.float64], q: NDArray[np.float64], delta: float, confidence: float
) -> tuple[float, float]:
    values = np.unique(np.concatenate([p, q]))
    if len(values) > 2000:
        values = np.quantile(values, np.linspace(0, 1, 2000))
    hits_p = len(p) - np.searchsorted(np.sort(p), values, side="left")
    hits_q = len(q) - np.searchsorted(np.sort(q), values, side="left")
    bounds = _bound(hits_p, hits_q, len(p), delta, confidence)
    at = int(np.argmax(bounds))
    return float(values[at]), float(bounds[at])


def _bound(
    hits_p: NDArray[np.int64], hits_q: NDArray[np.int64], trials: int, delta: float, confidence: float
) -> NDArray[np.float64]:
    # Half of the error probability for each end.
    tail = (1 - confidence) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(hits_p > 0, beta.ppf(tail, hits_p, trials - hits_p + 1), 0.0)
        high = np.where(hits_q < trials, beta.ppf(1 - tail, hits_q + 1, trials - hits_q), 1.0)
        return np.where(low > delta, np.log(np.maximum(low - delta, 1e-300) / high), -np.inf)
