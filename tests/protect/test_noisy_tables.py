"""Noisy counts become tables that can be drawn from."""

import numpy as np
import pytest

from oversafe.privacy.estimates import project
from oversafe.protect.marginals.noisy_tables import joined_cells, rake, scale_factor, shrink, sum_groups


def test_shrinking_by_hand():
    towards = np.zeros(4)
    noisy = np.array([6.0, 8.0, 0.0, 0.0])
    # Squared distance 100, noise of variance 25: 1 - (4 - 2) 25 / 100 = 0.5 is kept.
    np.testing.assert_allclose(shrink(noisy, towards, 5.0), noisy / 2)
    np.testing.assert_array_equal(shrink(noisy, towards, 50.0), towards)
    np.testing.assert_array_equal(shrink(noisy, noisy, 5.0), noisy)


def test_shrinking_helps_on_average():
    rng = np.random.default_rng(0)
    truth = rng.random(50) * 10
    errors = np.zeros(2)
    for _ in range(300):
        noisy = truth + rng.laplace(scale=10, size=50)
        shrunk = shrink(noisy, np.full(50, 5.0), 10 * np.sqrt(2))
        errors += ((noisy - truth) ** 2).sum(), ((shrunk - truth) ** 2).sum()
    # The noise alone is some 10,000 a round, the distance of the guess from the truth some 400.
    assert errors[1] < 0.3 * errors[0]


def test_the_nearest_counts_are_counts():
    found = project(np.array([[5.0, -3.0], [1.0, 2.0]]), 6.0)
    assert (found >= 0).all() and found.sum() == pytest.approx(6.0)
    assert found[0, 1] == 0 and found[0, 0] > found[1, 1] > found[1, 0]


def test_raking_meets_the_margins_and_keeps_the_odds():
    begin = np.array([[1.0, 2.0], [3.0, 4.0]])
    found = rake(begin, [((0,), np.array([10.0, 20.0])), ((1,), np.array([12.0, 18.0]))], rounds=200)
    np.testing.assert_allclose(found.sum(axis=1), [10, 20], rtol=1e-5)
    np.testing.assert_allclose(found.sum(axis=0), [12, 18], rtol=1e-5)
    odds = found[0, 0] * found[1, 1] / (found[0, 1] * found[1, 0])
    assert odds == pytest.approx(1 * 4 / (2 * 3))


def test_neighbouring_cells_are_joined_to_equal_weight():
    weights = np.array([10.0, 1, 1, 1, 1, 1, 1, 1, 1, 2])
    groups = joined_cells(weights, 2, ordered=True, missing=False)
    np.testing.assert_array_equal(groups, [0, 1, 1, 1, 1, 1, 1, 1, 1, 1])
    with_missing = joined_cells(weights, 4, ordered=True, missing=True)
    assert with_missing[-1] == with_missing.max() and (with_missing == with_missing[-1]).sum() == 1
    assert (np.diff(with_missing) >= 0).all() and with_missing.max() < 4


def test_rare_categories_are_joined():
    groups = joined_cells(np.array([1.0, 50, 2, 40, 3]), 3, ordered=False, missing=False)
    np.testing.assert_array_equal(groups, [0, 1, 0, 2, 0])
    np.testing.assert_array_equal(joined_cells(np.ones(3), 5, ordered=False, missing=True), [0, 1, 2])
    assert joined_cells(np.zeros(8), 3, ordered=True, missing=True).max() <= 2


def test_sums_over_groups():
    table = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(sum_groups(table, 1, np.array([0, 1, 1, 0])), [[3, 3], [11, 11], [19, 19]])
    np.testing.assert_array_equal(sum_groups(table, 0, np.array([0, 0, 0])), [[12, 15, 18, 21]])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("tiny", [0.0, 5e-324, 1e-310, 1e-250])
def test_cells_next_to_nothing_are_not_scaled_to_infinity(tiny):
    table = np.array([[tiny, tiny], [1.0, 3.0]])
    raked = rake(table, [((0,), np.array([2.0, 2.0])), ((1,), np.array([2.0, 2.0]))])
    assert np.isfinite(raked).all() and raked[1].sum() > 0
    assert scale_factor(np.array([3.0, 3.0]), np.array([tiny, 1.5])).tolist() == [0.0, 2.0]
