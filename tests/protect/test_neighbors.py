"""Neighbours are those that looking at every pair would find, or nearly so in large tables."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from oversafe.data import Column, Schema
from oversafe.protect.samplers import neighbors


def truth(features, rows, k):
    found = NearestNeighbors(n_neighbors=k + 1, algorithm="brute").fit(features)
    return found.kneighbors(features[rows])


def distances(features, rows, found):
    return np.sqrt(np.square(features[found] - features[rows][:, None]).sum(axis=2))


@pytest.mark.parametrize(("n", "d"), [(6, 3), (500, 1), (1500, 2), (1500, 8), (3000, 30)])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_small_tables_are_searched_exactly(n, d, n_jobs):
    rng = np.random.default_rng(n + d)
    features = rng.normal(size=(n, d))
    rows = rng.permutation(n)[: n // 2]
    found = neighbors.nearest_rows(features, rows, 3, n_jobs=n_jobs)
    np.testing.assert_array_equal(found, truth(features, rows, 3)[1][:, 1:])


@pytest.mark.parametrize("d", [8, 20, 40])
def test_large_tables_are_searched_nearly_exactly(monkeypatch, d):
    monkeypatch.setattr(neighbors, "_ALL_PAIRS", 0.0)
    monkeypatch.setattr(neighbors, "_ALL_PRODUCTS", 0.0)
    rng = np.random.default_rng(d)
    features = rng.normal(size=(4000, 4)) @ rng.normal(size=(4, d)) + 0.3 * rng.normal(size=(4000, d))
    rows = np.arange(0, 4000, 3)
    found = neighbors.nearest_rows(features, rows, 5)
    assert not (found == rows[:, None]).any()
    real = truth(features, rows, 5)[0][:, 1:]
    ratio = distances(features, rows, found) / real
    assert ratio.mean() < 1.05
    if d <= 12:
        assert ratio.max() <= 2.5 + 1e-9


def test_repeated_rows_are_each_others_neighbours_and_do_not_crowd_the_search():
    features = np.repeat([[0.0, 0.0], [1.0, 1.0], [5.0, 5.0]], [1000, 2, 1], axis=0)
    found = neighbors.nearest_rows(features, np.array([500, 1000, 1002]), 2)
    assert (found[0] < 1000).all() and 500 not in found[0]
    assert found[1][0] == 1001
    assert set(found[2]) == {1000, 1001}
    assert len(neighbors._at_most(features, 3)) == 6


def test_no_rows_asked_for():
    assert neighbors.nearest_rows(np.zeros((4, 1)), np.empty(0, dtype=int), 2).shape == (0, 2)


def test_features_are_one_hot_and_standardised():
    schema = Schema(
        (
            Column("x", "continuous", "float64", True),
            Column("c", "categorical", "object", categories=("a", "b", "z")),
            Column("k", "continuous", "float64"),
        )
    )
    codes = [np.array([1.0, 3.0, np.nan, 2.0]), np.array([0.0, 0.0, 1.0, 1.0]), np.full(4, 7.0)]
    features = neighbors.standardised(schema, codes)
    # The number, its gap, and the two categories that occur; nothing of the constant column.
    assert features.shape == (4, 4)
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(features.std(axis=0), 1)


def test_many_categories_take_few_dimensions_and_keep_rare_ones_apart():
    names = tuple(f"v{i}" for i in range(300))
    schema = Schema((Column("c", "categorical", "object", categories=names),))
    codes = np.concatenate([np.arange(300), np.zeros(3000)])
    features = neighbors.standardised(schema, [codes])
    assert features.shape == (3300, 32)
    found = neighbors.nearest_rows(features, np.array([0]), 3)
    assert (codes[found] == 0).all()
