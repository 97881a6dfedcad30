"""Noise, from OpenDP."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversafe.errors import InputError
from oversafe.privacy.guarantee import check_epsilon


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
    if sensitivity < 1:
        raise InputError(f"a sensitivity of {sensitivity} was given; it is a whole number of at least 1")
    counts = np.asarray(counts, dtype=np.int64)
    if random_state is not None:
        return counts + _seeded_noise(
            counts.shape, sensitivity / epsilon, np.random.default_rng(random_state)
        )
    measurement = _laplace(sensitivity, epsilon)
    return np.asarray(measurement(counts.ravel()), dtype=np.int64).reshape(counts.shape)


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


def _seeded_noise(shape: tuple[int, ...], scale: float, rng: np.random.Generator) -> NDArray[np.int64]:
    # The difference of two geometric variables is discrete Laplace: P(x) ~ exp(-|x| / scale).
    stop = -math.expm1(-1 / scale)
    return rng.geometric(stop, shape) - rng.geometric(stop, shape)
