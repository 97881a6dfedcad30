"""The audit's lower bound stays below a true epsilon and comes near it."""

import numpy as np
import pytest

from oversafe._core.errors import InputError
from oversafe.measure import audit_epsilon


def laplace(table, rng):
    return np.sum(table) + rng.laplace(scale=1.0)


def test_bound_is_below_the_truth_and_near_it():
    # Above the truth with probability at most 1e-6.
    audit = audit_epsilon(laplace, [1.0], [0.0], trials=50_000, confidence=1 - 1e-6, random_state=0)
    assert 0.8 < audit.lower_bound <= 1.0


def test_gaussian_with_delta():
    # sigma = 1: (1, 0.1269)-DP, so at that delta the bound stays below 1 (probability of failure 1e-6).
    audit = audit_epsilon(
        lambda t, rng: t + rng.normal(),
        1.0,
        0.0,
        trials=50_000,
        delta=0.126937,
        confidence=1 - 1e-6,
        random_state=0,
    )
    assert 0.5 < audit.lower_bound <= 1.0


def test_arrays_are_reduced_to_one_statistic():
    shift = np.array([0.5, 0.0, -0.5])
    audit = audit_epsilon(
        lambda t, rng: t + rng.laplace(size=3),
        shift,
        np.zeros(3),
        trials=50_000,
        confidence=1 - 1e-6,
        random_state=0,
    )
    assert 0.4 < audit.lower_bound <= 1.0


def test_no_noise_at_all_is_caught():
    audit = audit_epsilon(lambda t, rng: t, 1.0, 0.0, trials=2000, random_state=0)
    assert audit.lower_bound > 5


def test_one_coordinate_without_noise_is_caught():
    audit = audit_epsilon(lambda t, rng: [t, rng.normal(), 0.0], 1.0, 0.0, trials=2000, random_state=0)
    assert audit.lower_bound > 5


def test_results_that_are_not_finite():
    with pytest.raises(InputError, match="finite"):
        audit_epsilon(lambda t, rng: [np.nan, 1.0], 1.0, 0.0, trials=20)


@pytest.mark.parametrize("parameters", [{"trials": 3}, {"confidence": 1.0}, {"delta": -2.0}])
def test_bad_use(parameters):
    with pytest.raises(InputError):
        audit_epsilon(laplace, [1.0], [0.0], **parameters)


@pytest.mark.parametrize("vectorized", [True, False])
def test_results_that_are_no_numbers_are_one_sentence(vectorized):
    def words(table, rng, trials=1):
        return ["yes"] * trials

    with pytest.raises(InputError, match=r"the mechanism's results are no numbers .*'yes'"):
        audit_epsilon(words, [0], [1], trials=2000, vectorized=vectorized)
