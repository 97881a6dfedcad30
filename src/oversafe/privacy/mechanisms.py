"""Noise on whole numbers and noisy choices, from OpenDP.

Each mechanism draws from OpenDP's exact samplers, which floating-point attacks do not reach. With a
``random_state`` the same distribution is drawn by numpy, for experiments that must be repeatable.
"""

from __future__ import annotations

import math
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from typing import Any, Literal

import numpy as np
from joblib import cpu_count
from numpy.typing import NDArray

from oversafe._core.errors import InputError
from oversafe.privacy.answers import Choice, Gaussian, Laplace, Thresholded, answered
from oversafe.privacy.guarantee import check_epsilon
from oversafe.privacy.zcdp import check_rho

# Scores with fractions are rounded to this many steps per unit of sensitivity.
_STEPS = 2**20
# A float64 holds every whole number up to here.
_WHOLE = 2**53


def noisy_counts(
    counts: NDArray[np.int64],
    *,
    sensitivity: int,
    epsilon: float,
    random_state: int | np.random.Generator | None = None,
) -> NDArray[np.int64]:
    """Return counts with discrete Laplace noise: epsilon-DP when one unit moves them by ``sensitivity`` in L1.

    Parameters
    ----------
    counts : array of int
        Of any shape.
    sensitivity : int
        The largest L1 distance between the counts of two neighbouring tables.
    epsilon : float
        The budget of the whole array.
    random_state : int or Generator, optional
        Makes the noise repeatable, for experiments. Without it the noise comes from OpenDP's sampler.
    """
    check_epsilon(epsilon)
    _check_sensitivity(sensitivity)
    if sensitivity != int(sensitivity):
        raise InputError(f"a sensitivity of {sensitivity} was given; that of counts is a whole number")

    def draw(counts: NDArray[np.int64], rng: np.random.Generator | None) -> NDArray[np.int64]:
        if rng is not None:
            return counts + _seeded_laplace(counts.shape, sensitivity / epsilon, rng)
        return _run(_laplace(int(sensitivity), float(epsilon)), counts)

    law = Laplace(sensitivity / epsilon, sensitivity)
    return answered(law, np.asarray(counts, dtype=np.int64), draw, random_state)


def gaussian_counts(
    counts: NDArray[np.int64],
    *,
    sensitivity: float,
    rho: float,
    random_state: int | np.random.Generator | None = None,
) -> NDArray[np.int64]:
    """Return counts with discrete Gaussian noise: rho-zCDP when one unit moves them by ``sensitivity`` in L2.

    Parameters
    ----------
    counts : array of int
        Of any shape.
    sensitivity : float
        The largest L2 distance between the counts of two neighbouring tables.
    rho : float
        The budget of the whole array, in zero-concentrated differential privacy.
    random_state : int or Generator, optional
        Makes the noise repeatable, for experiments. Without it the noise comes from OpenDP's sampler.
    """
    check_rho(rho)
    _check_sensitivity(sensitivity)

    def draw(counts: NDArray[np.int64], rng: np.random.Generator | None) -> NDArray[np.int64]:
        if rng is not None:
            return counts + _seeded_gaussian(counts.shape, sensitivity / math.sqrt(2 * rho), rng)
        return _run(_gaussian(float(sensitivity), float(rho)), counts)

    law = Gaussian(sensitivity / math.sqrt(2 * rho), sensitivity)
    return answered(law, np.asarray(counts, dtype=np.int64), draw, random_state)


def gaussian_noise(
    counts: NDArray[np.int64], deviation: float, random_state: int | np.random.Generator | None = None
) -> NDArray[np.int64]:
    """Return whole numbers with discrete Gaussian noise of a deviation, drawn on all cores.

    Parameters
    ----------
    counts : array of int of shape (n_numbers,)
        Any whole numbers.
    deviation : float
        The parameter of the noise, P(x) ~ exp(-x^2 / 2 deviation^2).
    random_state : int or Generator, optional
        Makes the noise repeatable, for experiments. Without it the noise comes from OpenDP's sampler.
    """
    counts = np.asarray(counts, dtype=np.int64)
    if random_state is not None:
        return counts + _seeded_gaussian(counts.shape, deviation, np.random.default_rng(random_state))
    measurement = _gaussian_of(deviation)
    # OpenDP draws some 100,000 numbers in a second and leaves the interpreter to other threads meanwhile.
    with ThreadPoolExecutor(n_threads := cpu_count()) as threads:
        parts = threads.map(partial(_run, measurement), np.array_split(counts, n_threads))
        return np.concatenate(list(parts))


def frequent_counts(
    counts: NDArray[np.int64],
    *,
    changed: int,
    sensitivity: float,
    largest: int,
    rho: float,
    delta: float,
    random_state: int | np.random.Generator | None = None,
) -> NDArray[np.int64]:
    """Return noisy counts of the values that were found, 0 for those below a threshold: a set that was not known.

    Discrete Gaussian noise and a threshold so high that a value which only one of two neighbouring tables has is
    released with probability at most delta: delta-approximate rho-zCDP.

    Parameters
    ----------
    counts : array of int of shape (n_values,)
        Of the values that occur; the result says nothing of those that it returns as 0.
    changed : int
        How many values' counts one unit changes at most.
    sensitivity : float
        The largest L2 distance between the counts of two neighbouring tables.
    largest : int
        How much one count changes at most.
    rho, delta : float
        The budget.
    random_state : int or Generator, optional
        Makes the noise repeatable, for experiments.
    """
    check_rho(rho)
    _check_sensitivity(sensitivity)
    if not 0 < delta < 1:
        raise InputError(
            f"delta = {delta!r} was given; finding values needs one between 0 and 1, such as 1e-9"
        )
    measurement, threshold = _gaussian_threshold(changed, float(sensitivity), largest, float(rho), delta)

    def draw(counts: NDArray[np.int64], rng: np.random.Generator | None) -> NDArray[np.int64]:
        if rng is not None:
            noisy = counts + _seeded_gaussian(counts.shape, sensitivity / math.sqrt(2 * rho), rng)
            return np.where(noisy >= threshold, noisy, 0)
        released = np.zeros(len(counts), dtype=np.int64)
        if len(counts):
            found = measurement(dict(enumerate(counts.tolist())))
            released[list(found.keys())] = list(found.values())
        return released

    law = Thresholded(sensitivity / math.sqrt(2 * rho), sensitivity, threshold)
    return answered(law, np.asarray(counts, dtype=np.int64), draw, random_state)


def choose(
    scores: Any,
    *,
    sensitivity: float,
    epsilon: float | None = None,
    rho: float | None = None,
    monotonic: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> int:
    """Return the position of a score that is near the largest: private selection.

    With ``epsilon`` it is report-noisy-max with exponential noise (permute-and-flip), epsilon-DP and never worse
    than the exponential mechanism; with ``rho`` it is the exponential mechanism with parameter sqrt(8 rho), which
    is rho-zCDP.

    Parameters
    ----------
    scores : array of shape (n_candidates,)
        Whole numbers are used as they are. Others are rounded to a grid of a millionth of the sensitivity, and the
        noise is raised by what that rounding and an error of half a step in the scores can add.
    sensitivity : float
        The most that one unit moves any score.
    epsilon, rho : float
        The budget; give one of them.
    monotonic : bool, default=False
        Whether a unit moves all scores in the same direction, which halves the noise. Under "replace-one" this is
        hardly ever so.
    random_state : int or Generator, optional
        Makes the choice repeatable, for experiments.
    """
    if (epsilon is None) == (rho is None):
        raise InputError("a private choice is paid either in epsilon or in rho; give one of them")
    if epsilon is not None:
        check_epsilon(epsilon)
    if rho is not None:
        check_rho(rho)
    _check_sensitivity(sensitivity)
    whole, moved = _whole_scores(np.asarray(scores), sensitivity, monotonic)
    if whole.ndim != 1 or len(whole) == 0:
        raise InputError(f"scores of shape {whole.shape} were given; a list of at least one is expected")
    spent: Literal["epsilon", "rho"] = "epsilon" if rho is None else "rho"
    budget = float(epsilon if rho is None else rho)  # type: ignore[arg-type]
    scale = _choice_scale(moved, spent, budget, monotonic)

    def draw(whole: NDArray[np.int64], rng: np.random.Generator | None) -> int:
        if rng is None:
            return int(_noisy_max(moved, spent, budget, monotonic)(whole))
        noise = (
            rng.exponential(scale, len(whole)) if rho is None else rng.gumbel(scale=scale, size=len(whole))
        )
        # From the largest down, so that the noise keeps its digits.
        return int(np.argmax((whole - whole.max()) + noise))

    law = Choice(scale, moved, sensitivity, pure=rho is None, monotonic=monotonic)
    return int(answered(law, whole, draw, random_state))


def _check_sensitivity(sensitivity: float) -> None:
    if isinstance(sensitivity, bool) or not 0 < sensitivity <= sys.float_info.max:
        raise InputError(f"a sensitivity of {sensitivity!r} was given; it is a finite number above 0")


def _whole_scores(scores: NDArray[Any], sensitivity: float, monotonic: bool) -> tuple[NDArray[np.int64], int]:
    """Return scores as whole numbers and the most that a unit moves one of them."""
    if np.issubdtype(scores.dtype, np.integer) and sensitivity == int(sensitivity):
        return np.clip(scores, -(2**62), 2**62).astype(np.int64), int(sensitivity)
    # Rounding moves two scores apart by at most one step, an error of half a step in each of them by another; if
    # all scores move one way, both can also happen against it, and shifting all scores changes no choice.
    with np.errstate(over="ignore"):
        steps = scores.astype(np.float64) * (_STEPS / sensitivity)
    # No error may tell of a score, so what is no number counts as the lowest.
    whole = np.clip(np.nan_to_num(np.rint(steps), nan=-_WHOLE), -_WHOLE, _WHOLE)
    return whole.astype(np.int64), _STEPS + (4 if monotonic else 2)


def _run(measurement: Any, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(measurement(counts.ravel()), dtype=np.int64).reshape(counts.shape)


# Making a measurement costs a few crossings of the language border; loops ask for the same one again and again.
@lru_cache(maxsize=256)
def _laplace(sensitivity: int, epsilon: float) -> Any:
    # Not opendp.prelude, which imports scikit-learn and takes seconds.
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_laplace
    from opendp.metrics import l1_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    scale = sensitivity / epsilon
    while True:
        measurement = make_laplace(vector_domain(atom_domain(T="i64")), l1_distance(T="i64"), scale=scale)
        # OpenDP rounds its own privacy map upwards; the promise must hold after that rounding too.
        if measurement.map(sensitivity) <= epsilon:
            return measurement
        scale = math.nextafter(scale, math.inf)


@lru_cache(maxsize=256)
def _gaussian(sensitivity: float, rho: float) -> Any:
    scale = sensitivity / math.sqrt(2 * rho)
    while (measurement := _gaussian_of(scale)).map(sensitivity) > rho:
        scale = math.nextafter(scale, math.inf)
    return measurement


@lru_cache(maxsize=256)
def _gaussian_of(scale: float) -> Any:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    return make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), scale=scale)


@lru_cache(maxsize=256)
def _gaussian_threshold(
    changed: int, sensitivity: float, largest: int, rho: float, delta: float
) -> tuple[Any, int]:
    from opendp.domains import atom_domain, map_domain
    from opendp.measurements import make_gaussian_threshold
    from opendp.metrics import absolute_distance, l02inf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    space = (
        map_domain(atom_domain(T="i64"), atom_domain(T="i64")),
        l02inf_distance(absolute_distance(T="f64")),
    )
    moved = (changed, sensitivity, float(largest))
    scale = sensitivity / math.sqrt(2 * rho)

    def cost(threshold: int) -> tuple[float, float]:
        return make_gaussian_threshold(*space, scale=scale, threshold=threshold).map(moved)

    while cost(largest + 1)[0] > rho:
        scale = math.nextafter(scale, math.inf)
    low, high = largest, largest + max(1, math.ceil(scale))
    while cost(high)[1] > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if cost(middle)[1] <= delta else (middle, high)
    # OpenDP releases a count that equals the threshold, and its map leaves that out of delta (opendp issue 2922).
    return make_gaussian_threshold(*space, scale=scale, threshold=high + 1), high + 1


@lru_cache(maxsize=256)
def _noisy_max(moved: int, spent: str, budget: float, monotonic: bool) -> Any:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_max
    from opendp.measures import max_divergence, zero_concentrated_divergence
    from opendp.metrics import linf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    measure = max_divergence() if spent == "epsilon" else zero_concentrated_divergence()
    scale = _choice_scale(moved, spent, budget, monotonic)
    while True:
        measurement = make_noisy_max(
            vector_domain(atom_domain(T="i64")),
            linf_distance(T="i64", monotonic=monotonic),
            measure,
            scale=scale,
        )
        if measurement.map(moved) <= budget:
            return measurement
        scale = math.nextafter(scale, math.inf)


def _choice_scale(moved: int, spent: str, budget: float, monotonic: bool) -> float:
    epsilon = budget if spent == "epsilon" else math.sqrt(8 * budget)
    return (1 if monotonic else 2) * moved / epsilon


def _seeded_laplace(shape: tuple[int, ...], scale: float, rng: np.random.Generator) -> NDArray[np.int64]:
    # The difference of two geometric variables is discrete Laplace: P(x) ~ exp(-|x| / scale).
    stop = -math.expm1(-1 / scale)
    return rng.geometric(stop, shape) - rng.geometric(stop, shape)


def _seeded_gaussian(shape: tuple[int, ...], scale: float, rng: np.random.Generator) -> NDArray[np.int64]:
    # Canonne, Kamath and Steinke 2020, Algorithm 3: discrete Laplace noise, thinned to P(x) ~ exp(-x^2 / 2 scale^2).
    width = math.floor(scale) + 1
    noise = np.empty(math.prod(shape), dtype=np.int64)
    missing = np.arange(len(noise))
    while len(missing):
        drawn = _seeded_laplace((len(missing),), width, rng)
        excess = (np.abs(drawn) - scale**2 / width) / scale
        kept = rng.random(len(missing)) < np.exp(-(excess**2) / 2)
        noise[missing[kept]] = drawn[kept]
        missing = missing[~kept]
    return noise.reshape(shape)
