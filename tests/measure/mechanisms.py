"""Mechanisms whose privacy is known, and copies of them with the mistakes that are made in practice.

Each is given as (run, table, neighbour, epsilon, delta) with neighbours on which the right one comes near its
epsilon; ``run(table, rng, size)`` returns ``size`` results. The broken copies are run with the same claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

from oversafe.privacy.mechanisms import noisy_counts

Run = Callable[[Any, np.random.Generator, int], np.ndarray]


@dataclass(frozen=True)
class Case:
    """A mechanism with its claim and the worst neighbours."""

    run: Run
    table: Any
    neighbour: Any
    epsilon: float
    delta: float = 0.0


def gaussian_delta(epsilon: float, sigma: float) -> float:
    """Return the delta of Gaussian noise on a count of sensitivity 1 (Balle and Wang 2018)."""
    half, rest = 0.5 / sigma, epsilon * sigma
    return float(norm.cdf(half - rest) - math.exp(epsilon) * norm.cdf(-half - rest))


def gaussian_sigma(epsilon: float, delta: float) -> float:
    return float(brentq(lambda sigma: gaussian_delta(epsilon, sigma) - delta, 1e-2, 1e3))


def laplace_counts(epsilon: float, noise: float = 1.0) -> Run:
    """Our own primitive: all results of one call are independent counts, each under the whole budget."""

    def run(counts: np.ndarray, rng: np.random.Generator, size: int) -> np.ndarray:
        many = np.tile(np.asarray(counts, dtype=np.int64), (size, 1))
        # A replaced record moves two counts by one each.
        return noisy_counts(many, sensitivity=2, epsilon=epsilon / noise, random_state=rng)

    return run


def gaussian_counts(epsilon: float, delta: float, noise: float = 1.0) -> Run:
    sigma = gaussian_sigma(epsilon, delta) * noise

    def run(count: float, rng: np.random.Generator, size: int) -> np.ndarray:
        return count + rng.normal(scale=sigma, size=size)

    return run


def exponential(epsilon: float, noise: float = 1.0) -> Run:
    """Choose the best of several scores of sensitivity 1, by Gumbel noise."""

    def run(scores: np.ndarray, rng: np.random.Generator, size: int) -> np.ndarray:
        noisy = np.asarray(scores) + rng.gumbel(scale=2 * noise / epsilon, size=(size, len(scores)))
        return np.eye(len(scores))[noisy.argmax(axis=1)]

    return run


def noisy_votes(epsilon: float, noise: float = 1.0) -> Run:
    """Teachers' votes under Laplace noise, as PATE releases them: a teacher moves two counts."""

    def run(votes: np.ndarray, rng: np.random.Generator, size: int) -> np.ndarray:
        return np.asarray(votes) + rng.laplace(scale=2 * noise / epsilon, size=(size, len(votes)))

    return run


def objective_perturbation(epsilon: float, ridge: float = 10.0, noise: float = 1.0) -> Run:
    """Logistic regression on one record z = y x in [-1, 1], with a noisy linear term in its objective.

    The gradients of two records differ by at most 1 (sigma(w) + sigma(-w) = 1), and the second derivative lies
    between the ridge and ridge + 1/4, which costs log(1 + 1/(4 ridge)).
    """
    scale = noise / (epsilon - math.log1p(0.25 / ridge))

    def run(z: float, rng: np.random.Generator, size: int) -> np.ndarray:
        b = rng.laplace(scale=scale, size=size)
        w = np.zeros(size)
        for _ in range(60):
            share = 1 / (1 + np.exp(z * w))
            w -= (-z * share + ridge * w + b) / (z * z * share * (1 - share) + ridge)
        return w

    return run


def clipped_mean(epsilon: float, *, bounds_from_data: bool = False) -> Run:
    """The mean of values in the public range [0, 1]; the broken copy takes the range from the data."""

    def run(values: np.ndarray, rng: np.random.Generator, size: int) -> np.ndarray:
        values = np.asarray(values)
        low, high = (values.min(), values.max()) if bounds_from_data else (0.0, 1.0)
        mean = np.clip(values, low, high).mean()
        return mean + rng.laplace(scale=(high - low) / (len(values) * epsilon), size=size)

    return run


def class_sums(epsilon: float, *, pay_for_counts: bool = True) -> Run:
    """Sums within two classes of values in [0, 1], and the class counts; the broken copy gives the counts away.

    A replaced record moves the sums by at most 2 and the counts by 2.
    """

    def run(table: tuple[np.ndarray, np.ndarray], rng: np.random.Generator, size: int) -> np.ndarray:
        values, labels = (np.asarray(part) for part in table)
        sums = np.array([values[labels == c].sum() for c in (0, 1)])
        counts = np.array([(labels == c).sum() for c in (0, 1)], dtype=float)
        share = epsilon / 2 if pay_for_counts else epsilon
        noisy_sums = sums + rng.laplace(scale=2 / share, size=(size, 2))
        noisy = counts + (
            rng.laplace(scale=2 / share, size=(size, 2)) if pay_for_counts else np.zeros((size, 2))
        )
        return np.hstack([noisy_sums, noisy])

    return run


_VALUES = np.array([1.0] + [0.0] * 19)
_MOVED = np.array([0.0] * 20)
_LABELLED = (_VALUES, np.array([1] + [0] * 19)), (_MOVED, np.array([0] * 20))
_SCORES = np.array([3.0, 5.0]), np.array([4.0, 4.0])

PROVEN: dict[str, Case] = {
    "laplace counts": Case(laplace_counts(1.0), [30, 20], [29, 21], 1.0),
    "gaussian counts": Case(gaussian_counts(1.0, 0.01), 1.0, 0.0, 1.0, 0.01),
    "exponential mechanism": Case(exponential(1.0), *_SCORES, 1.0),
    "objective perturbation": Case(objective_perturbation(1.0), 1.0, -1.0, 1.0),
    "noisy votes": Case(noisy_votes(1.0), [5, 4], [4, 5], 1.0),
    "clipped mean": Case(clipped_mean(1.0), _VALUES, _MOVED, 1.0),
    "class sums": Case(class_sums(1.0), *_LABELLED, 1.0),
}

BROKEN: dict[str, Case] = {
    "laplace counts, noise halved": Case(laplace_counts(1.0, noise=0.5), [30, 20], [29, 21], 1.0),
    "gaussian counts, noise halved": Case(gaussian_counts(1.0, 0.01, noise=0.5), 1.0, 0.0, 1.0, 0.01),
    "exponential mechanism, noise halved": Case(exponential(1.0, noise=0.5), *_SCORES, 1.0),
    "objective perturbation, noise halved": Case(objective_perturbation(1.0, noise=0.5), 1.0, -1.0, 1.0),
    "noisy votes, noise halved": Case(noisy_votes(1.0, noise=0.5), [5, 4], [4, 5], 1.0),
    "clipped mean, bounds from the data": Case(
        clipped_mean(1.0, bounds_from_data=True), _VALUES, _MOVED, 1.0
    ),
    "class sums, counts not paid for": Case(class_sums(1.0, pay_for_counts=False), *_LABELLED, 1.0),
}
