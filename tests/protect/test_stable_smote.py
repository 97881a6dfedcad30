"""A SMOTE step whose neighbours are exact, and whose lists one record cannot upset."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from oversafe._core.errors import InputError
from oversafe.privacy import kissing_number_bound
from oversafe.protect.samplers.stable_smote import stable_neighbours, stable_smote

KINDS = {
    "plain": lambda rng, n, d: rng.normal(size=(n, d)),
    "lattice": lambda rng, n, d: rng.integers(0, 3, (n, d)).astype(float),
    "decimal lattice": lambda rng, n, d: rng.integers(0, 4, (n, d)) * 0.1,
    "many scales": lambda rng, n, d: 10.0 ** (-17.0 * rng.integers(0, 18, (n, d))),
    "beyond squares": lambda rng, n, d: (
        rng.choice([0.0, 1.0], (n, d)) * 10.0 ** rng.integers(-300, 300, (n, d))
    ),
    "large and close": lambda rng, n, d: 1e16 + rng.integers(0, 9, (n, d)) * 2.0,
    "last digits": lambda rng, n, d: 1 + rng.integers(0, 9, (n, d)) * 2.0**-52,
    "smallest numbers": lambda rng, n, d: rng.integers(0, 3, (n, d)) * 5e-324,
    "all the same": lambda rng, n, d: np.full((n, d), 0.3),
    "signed zeros": lambda rng, n, d: rng.choice([0.0, -0.0, 1.0], (n, d)),
}


def exact_lists(X, k):
    points = [[Fraction(float(v)) for v in row] for row in X]
    lists = []
    for i, here in enumerate(points):
        order = sorted(
            (sum((a - b) ** 2 for a, b in zip(here, there, strict=True)), j)
            for j, there in enumerate(points)
            if j != i
        )
        lists.append({j for _, j in order[:k]})
    return lists


@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_are_those_of_exact_arithmetic(kind):
    rng = np.random.default_rng(0)
    for _ in range(120):
        n, d = int(rng.integers(3, 14)), int(rng.integers(1, 4))
        k = int(rng.integers(1, min(n, 5)))
        X = KINDS[kind](rng, n, d)
        assert [set(found) for found in stable_neighbours(X, k).tolist()] == exact_lists(X, k)


@pytest.mark.parametrize("kind", KINDS)
def test_a_tree_finds_the_same_neighbours(kind, monkeypatch):
    rng = np.random.default_rng(2)
    for _ in range(30):
        n, d = int(rng.integers(20, 120)), int(rng.integers(1, 4))
        k = int(rng.integers(1, 5))
        X = KINDS[kind](rng, n, d)
        among_all = stable_neighbours(X, k)
        with monkeypatch.context() as patched:
            patched.setattr("oversafe.protect.samplers.stable_smote._TREE_ROWS", 0)
            in_tree = stable_neighbours(X, k)
        assert np.array_equal(np.sort(in_tree, axis=1), np.sort(among_all, axis=1))


@pytest.mark.parametrize("kind", ["plain", "decimal lattice"])
def test_a_large_table_has_the_same_neighbours_in_a_tree(kind, monkeypatch):
    X = KINDS[kind](np.random.default_rng(3), 2500, 4)
    in_tree = stable_neighbours(X, 2)
    monkeypatch.setattr("oversafe.protect.samplers.stable_smote._TREE_DIMENSIONS", 0)
    assert np.array_equal(np.sort(in_tree, axis=1), np.sort(stable_neighbours(X, 2), axis=1))


def test_a_tree_is_not_believed_where_its_last_is_as_far_as_a_neighbour(monkeypatch):
    # On a lattice as many rows are as far away as the last that the tree names, and it names any of them.
    X = np.array(list(itertools.product(range(7), repeat=4)), dtype=float)
    X = np.random.default_rng(0).permutation(X)
    found = np.sort(stable_neighbours(X, 9), axis=1)
    monkeypatch.setattr("oversafe.protect.samplers.stable_smote._TREE_DIMENSIONS", 0)
    np.testing.assert_array_equal(found, np.sort(stable_neighbours(X, 9), axis=1))


@pytest.mark.parametrize("kind", ["plain", "lattice", "decimal lattice", "many scales", "all the same"])
def test_one_record_changes_few_lists_and_each_in_one_entry(kind):
    rng = np.random.default_rng(1)
    for _ in range(150):
        d, k = int(rng.integers(1, 3)), int(rng.integers(1, 4))
        n = int(rng.integers(k + 2, 60))
        X = KINDS[kind](rng, n, d)
        at = int(rng.integers(n))
        fewer = np.delete(X, at, axis=0)
        before, after = X[stable_neighbours(X, k)], fewer[stable_neighbours(fewer, k)]
        lost = [
            (Counter(map(tuple, a.tolist())) - Counter(map(tuple, b.tolist()))).total()
            for a, b in zip(np.delete(before, at, axis=0), after, strict=True)
        ]
        assert max(lost) <= 1
        assert sum(lost) <= k * (kissing_number_bound(d) + 1)


def test_rounded_distances_would_break_the_bound():
    # Each point is as far from 0 as from all smaller points, in floating point: 0 comes first in every list of one.
    X = np.concatenate([[0.0], 10.0 ** (-17.0 * np.arange(9))])[:, None]
    rounded = (X - X.T) ** 2
    np.fill_diagonal(rounded, np.inf)
    assert (np.argmin(rounded, axis=1)[1:] == 0).sum() == 9 > kissing_number_bound(1) + 1
    assert (stable_neighbours(X, 1)[1:, 0] == 0).sum() == 1


def test_a_usual_search_is_not_stable():
    """Why there is a search of our own: on a lattice a tree breaks ties by its shape, which one record changes."""
    from sklearn.neighbors import NearestNeighbors

    X = np.stack(np.meshgrid(np.arange(12.0), np.arange(12.0)), axis=-1).reshape(-1, 2)

    def changed(search):
        most = 0
        for at in range(0, 144, 7):
            fewer = np.delete(X, at, axis=0)
            before, after = np.delete(X[search(X)], at, axis=0), fewer[search(fewer)]
            held = (before == X[at]).all(axis=2).any(axis=1)
            differs = [
                Counter(map(tuple, a)) != Counter(map(tuple, b)) for a, b in zip(before, after, strict=True)
            ]
            most = max(most, int((np.array(differs) & ~held).sum()))
        return most

    def tree(Z):
        near = NearestNeighbors(n_neighbors=6, algorithm="kd_tree", leaf_size=5).fit(Z)
        found = near.kneighbors(Z, return_distance=False)
        return np.array([row[row != i][:5] for i, row in enumerate(found)])

    assert changed(tree) > 0
    assert changed(lambda Z: stable_neighbours(Z, 5)) == 0


@pytest.mark.parametrize("bases", ["random", "cyclic"])
def test_rows_lie_on_lines_to_neighbours(bases):
    X = np.random.default_rng(0).normal(size=(40, 3))
    made = stable_smote(X, 1000, k_neighbors=4, bases=bases, random_state=0)
    lists = stable_neighbours(X, 4)
    assert all(end in lists[base] for base, end in zip(made.base, made.neighbour, strict=True))
    assert ((made.gap >= 0) & (made.gap < 1)).all()
    ends = X[made.base] + made.gap[:, None] * (X[made.neighbour] - X[made.base])
    assert np.array_equal(made.values, ends)
    uses = np.bincount(made.base, minlength=40)
    if bases == "cyclic":
        assert set(uses) == {25}
    # 1000 draws among 40: none misses its share by 45, but for a probability of 1e-9 each (Bernstein).
    assert (abs(uses - 25) < 45).all()
    again = stable_smote(X, 1000, k_neighbors=4, bases=bases, random_state=0)
    assert np.array_equal(again.values, made.values)
    assert not np.array_equal(stable_smote(X, 1000, k_neighbors=4).values, made.values)


def test_threads_give_the_same_lists():
    X = np.round(np.random.default_rng(0).normal(size=(1000, 4)), 1)
    assert np.array_equal(stable_neighbours(X, 5), stable_neighbours(X, 5, n_jobs=2))


def test_no_rows_are_no_rows():
    assert stable_smote([[1.0], [2.0]], 0, k_neighbors=1).values.shape == (0, 1)


@pytest.mark.parametrize(
    ("X", "change", "message"),
    [
        ([[1.0], [np.nan]], {}, "not finite"),
        ([1.0, 2.0], {}, "shape"),
        ([[1.0], [2.0]], {"k_neighbors": 2}, "2 records"),
        ([[1.0], [2.0]], {"k_neighbors": 0}, "k_neighbors = 0"),
        ([[1.0], [2.0]], {"n_added": -1}, "n_added = -1"),
        ([[1.0], [2.0]], {"bases": "odd"}, "bases = 'odd'"),
    ],
)
def test_bad_use_is_one_sentence(X, change, message):
    with pytest.raises(InputError, match=message):
        stable_smote(X, **({"n_added": 3, "k_neighbors": 1} | change))
