"""Approximate neighbours: most of them, for every query, whatever the number of points."""

from __future__ import annotations

import numpy as np
import pytest
from imblearn.over_sampling import SMOTE
from scipy.spatial import KDTree

from oversafe.attack.geometry.shapes import _kernels
from oversafe.attack.geometry.shapes.neighbors import Cells


def found_by_cells(
    values: np.ndarray, queries: np.ndarray, m: int, n_jobs: int | None = None
) -> list[np.ndarray]:
    """Return the neighbours of each query, and check that each is answered once."""
    parts = Cells(values).search(queries, m, lambda rows, neighbours: (rows, neighbours), n_jobs)
    rows = np.concatenate([np.empty(0, dtype=int), *(part[0] for part in parts)])
    assert np.sort(rows).tolist() == list(range(len(queries)))
    answers = [answer for part in parts for answer in part[1]]
    assert all(len(np.unique(answer)) == len(answer) for answer in answers)
    return [answers[place] for place in np.argsort(rows)]


def recall(values: np.ndarray, queries: np.ndarray, m: int) -> float:
    """Return the share of the m nearest points that are found."""
    nearest = KDTree(values).query(queries, m)[1]
    found = found_by_cells(values, queries, m)
    return float(np.mean([np.isin(near, those).mean() for near, those in zip(nearest, found, strict=True)]))


# Shares over thousands of neighbours: their standard errors are below 0.01, and the limits more than five away.
@pytest.mark.parametrize(("d", "expected"), [(1, 0.95), (2, 0.95), (3, 0.9), (6, 0.7), (10, 0.5)])
def test_most_neighbours_of_normal_points(d: int, expected: float) -> None:
    values = np.random.default_rng(d).normal(size=(20_000, d))
    assert recall(values, values[:1000], 20) > expected


def test_most_neighbours_of_synthetic_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(16_000, 10))
    y = np.arange(16_000) < 500
    rows = SMOTE(random_state=0).fit_resample(X, y)[0][16_000:]
    assert recall(rows, rows[:1000], 50) > 0.8


@pytest.mark.parametrize("d", [1, 2, 20])
@pytest.mark.parametrize("n", [2, 300, 3000])
def test_few_points_are_all_looked_at(n: int, d: int) -> None:
    rng = np.random.default_rng(0)
    values, queries = rng.normal(size=(n, d)), rng.normal(size=(50, d))
    assert recall(values, queries, min(n, 10)) >= 0.99


def test_queries_far_from_the_points_are_answered_too() -> None:
    rng = np.random.default_rng(0)
    values = rng.random((5000, 3))
    answers = found_by_cells(values, np.array([[1e6, 0, 0], [-5.0, -5, -5], [0.5, 0.5, 0.5]]), 40)
    assert [len(answer) for answer in answers] == [40, 40, 40]


@pytest.mark.parametrize("n", [1, 7])
def test_fewer_points_than_asked_for(n: int) -> None:
    values = np.random.default_rng(0).normal(size=(n, 3))
    answers = found_by_cells(values, np.zeros((4, 3)), 50)
    assert [np.sort(answer).tolist() for answer in answers] == [list(range(n))] * 4


def test_all_points_equal() -> None:
    answers = found_by_cells(np.ones((2000, 2)), np.ones((3, 2)), 30)
    assert [len(answer) for answer in answers] == [30, 30, 30]


def test_no_queries() -> None:
    assert found_by_cells(np.eye(3), np.empty((0, 3)), 2) == []


def test_neighbours_in_units_far_from_one_and_zero() -> None:
    # Distances are compared in single precision, about the centre of the points.
    values = 1e9 + 1e-3 * np.random.default_rng(0).normal(size=(2000, 3))
    assert recall(values, values[:200], 10) > 0.95


def test_threads_find_the_same() -> None:
    values = np.random.default_rng(0).normal(size=(6000, 4))
    one, two = (found_by_cells(values, values[:2000], 15, n_jobs) for n_jobs in (1, 2))
    assert all(set(a.tolist()) == set(b.tolist()) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("m", [1, 16, 64, 300])
def test_smallest_values_of_rows(m: int) -> None:
    # Up to a sixteenth more than wanted are below the threshold, of which the first are taken.
    values = np.random.default_rng(0).normal(size=(40, 300)).astype(np.float32)
    found = _kernels.smallest_columns(values, m)
    assert found.shape == (40, m)
    for row, columns in zip(values, found, strict=True):
        assert len(np.unique(columns)) == m
        assert row[columns].max() <= np.sort(row)[min(m + m // 16, 300) - 1]


@pytest.mark.parametrize("row", [[0, 0, 0, 0], [1, 0, 0, 0], [3, 3, 3, 0], [0, 0, 5, 5]])
def test_smallest_of_equal_values(row: list[float]) -> None:
    for m in range(1, 5):
        columns = _kernels.smallest_columns(np.array([row], dtype=np.float32), m)[0]
        assert len(set(columns.tolist())) == m
        assert sorted(row[column] for column in columns) == sorted(row)[:m]
