"""Continuous noise and random samples from the operating system's random source."""

from __future__ import annotations

import math
import os

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def random_source(random_state: int | np.random.Generator | None) -> np.random.Generator | None:
    """Return a seeded generator for experiments, or None for the operating system's source."""
    return None if random_state is None else np.random.default_rng(random_state)


def gaussian(size: int, sigma: float, rng: np.random.Generator | None) -> FloatArray:
    """Return independent normal noise."""
    if rng is not None:
        return rng.normal(scale=sigma, size=size)
    from scipy.special import ndtri

    # A sign of its own, so that both tails are as fine as numbers near 0.
    signs = np.where(np.frombuffer(os.urandom(size), dtype=np.uint8) & 1, 1.0, -1.0)
    return sigma * signs * ndtri(fine_uniform(size) / 2)


def spherical_laplace(size: int, scale: float, rng: np.random.Generator | None) -> FloatArray:
    """Return a vector whose density falls as exp(-norm / scale): a Gamma length in a uniform direction."""
    direction = gaussian(size, 1.0, rng)
    direction /= np.linalg.norm(direction)
    # A Gamma variable of whole shape is a sum of exponential ones.
    exponentials = rng.exponential(size=size) if rng is not None else -np.log(fine_uniform(size))
    return scale * float(np.sum(exponentials)) * direction


def uniform(size: int) -> FloatArray:
    """Return numbers strictly between 0 and 1 that the operating system drew."""
    words = np.frombuffer(os.urandom(8 * size), dtype=np.uint64)
    # 52 bits, moved to the middle of their cells: with one more the last of them would round to 1.
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def fine_uniform(size: int) -> FloatArray:
    """Return numbers in (0, 1] from 106 bits, as fine near 0 as floats are: tails of noise come from there.

    With 53 bits a normal variable beyond six deviations takes few values, and which of them are taken would tell of
    what it was added to.
    """
    high, low = np.frombuffer(os.urandom(16 * size), dtype=np.uint64).reshape(2, size) >> np.uint64(11)
    return (high.astype(np.float64) + (low.astype(np.float64) + 0.5) * 2.0**-53) * 2.0**-53


def poisson_sample(n: int, rate: float, rng: np.random.Generator | None) -> NDArray[np.int64]:
    """Return the positions of a sample that holds each of n rows with the same chance, independently of the others.

    The chance is the rate, cut off after 53 bits: no more than was accounted for.
    """
    if rng is not None:
        return np.flatnonzero(rng.random(n) < rate)
    words = np.frombuffer(os.urandom(8 * n), dtype=np.uint64) >> np.uint64(11)
    return np.flatnonzero(words < np.uint64(math.floor(rate * 2.0**53)))
