"""Noise has the distribution it is said to have."""

import numpy as np
import pytest
from scipy.stats import chisquare

from oversafe.errors import InputError
from oversafe.measure import audit_epsilon
from oversafe.privacy.mechanisms import noisy_counts


def discrete_laplace(values, scale):
    ratio = np.exp(-1 / scale)
    return (1 - ratio) / (1 + ratio) * ratio ** np.abs(values)


@pytest.mark.parametrize("random_state", [None, 7])
def test_noise_is_discrete_laplace(random_state):
    # Fails with probability 1e-6 by the test's own threshold, for each of the two samplers.
    noise = noisy_counts(np.zeros(40_000, dtype=int), sensitivity=2, epsilon=1.0, random_state=random_state)
    edges = np.arange(-8, 9)
    observed = np.array([(noise <= -8).sum(), *[(noise == v).sum() for v in edges[1:-1]], (noise >= 8).sum()])
    far = discrete_laplace(np.arange(8, 400), 2.0).sum()
    expected = np.array([far, *discrete_laplace(edges[1:-1], 2.0), far])
    assert chisquare(observed, expected / expected.sum() * len(noise)).pvalue > 1e-6


def test_shape_and_repeatability():
    counts = np.arange(12).reshape(3, 4)
    assert noisy_counts(counts, sensitivity=1, epsilon=2.0).shape == (3, 4)
    again = [noisy_counts(counts, sensitivity=1, epsilon=2.0, random_state=5) for _ in range(2)]
    assert np.array_equal(*again)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, np.nan, np.inf])
def test_bad_epsilon_is_refused(epsilon):
    with pytest.raises(InputError, match="epsilon"):
        noisy_counts(np.zeros(3, dtype=int), sensitivity=1, epsilon=epsilon)
    with pytest.raises(InputError, match="sensitivity"):
        noisy_counts(np.zeros(3, dtype=int), sensitivity=0, epsilon=1.0)


def run(sensitivity):
    def mechanism(counts, rng):
        return noisy_counts(np.array(counts), sensitivity=sensitivity, epsilon=1.0, random_state=rng)[0]

    return mechanism


def test_audit_finds_the_promise_kept_and_a_broken_copy_out():
    # At confidence 1 - 1e-6 the right mechanism is accused with probability at most 1e-6.
    kept = audit_epsilon(run(2), [10, 4], [8, 4], trials=40_000, confidence=1 - 1e-6, random_state=0)
    broken = audit_epsilon(run(1), [10, 4], [8, 4], trials=40_000, confidence=1 - 1e-6, random_state=0)
    assert 0.5 < kept.lower_bound <= 1.0 < broken.lower_bound
