"""The bounds on the recall are what the theorems say, and hold when SMOTE's draws are simulated."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, poisson
from sklearn.neighbors import NearestNeighbors

from oversafe._core.errors import InputError
from oversafe.attack import identifiable_share, neighbour_mutuality, reconstruction_recall_bound
from oversafe.attack.geometry.bounds import _chance_of_segments, _lowest_mean

# Neighbours (k = 1): 0 -> 1, 1 -> 1.5, 1.5 -> 1, 9 -> 1.5.
ON_AN_AXIS = np.array([[0.0], [1.0], [1.5], [9.0]])


def brute_force(n_draws: int, total: int, cells: list[int], least: int) -> float:
    """Return the chance of `_chance_of_segments` by going through all sequences of draws."""
    shares = [size / total for size in cells] + [1 - sum(cells) / total]
    chance = 0.0
    for sequence in itertools.product(range(len(shares)), repeat=n_draws):
        counts = Counter(sequence)
        if sum(counts[cell] >= 3 for cell in range(len(cells))) >= least:
            chance += math.prod(shares[cell] for cell in sequence)
    return chance


def simulated_shares(
    records: np.ndarray, n_synthetic: int, k: int, runs: int, seed: int, least: int = 3
) -> np.ndarray:
    """Return, for each of several simulated releases, the share of records on `least` found segments."""
    n = len(records)
    lists = NearestNeighbors(n_neighbors=k + 1).fit(records).kneighbors(records, return_distance=False)[:, 1:]
    start, stop = np.repeat(np.arange(n), k), lists.ravel()
    segments, segment = np.unique(np.minimum(start, stop) * n + np.maximum(start, stop), return_inverse=True)
    ends = np.zeros((len(segments), n))
    ends[np.arange(len(segments)), segments // n] = 1
    ends[np.arange(len(segments)), segments % n] = 1
    shares = np.bincount(segment) / (n * k)
    rng = np.random.default_rng(seed)
    return np.concatenate(
        [
            ((rng.multinomial(n_synthetic, shares, size=100) >= 3) @ ends >= least).mean(axis=1)
            for _ in range(runs // 100)
        ]
    )


# ------------------------------------------------------------------------------------------ the theorems


@pytest.mark.parametrize(("n_minority", "n_synthetic", "k"), [(100, 2500, 5), (35, 266, 3), (500, 9000, 9)])
def test_theorem_3_is_the_paper_s_formula(n_minority: int, n_synthetic: int, k: int) -> None:
    rate = n_synthetic / (n_minority * k)
    expected = (k * (1 - math.exp(-rate) * (1 + rate + rate**2 / 2)) - 2) / (k - 2)
    bound = reconstruction_recall_bound(n_minority, n_synthetic, k, exact=False)
    assert bound == pytest.approx(max(0, expected), abs=1e-12)


def test_theorem_4_by_hand() -> None:
    # Four records, three neighbours, nine rows: twelve directed segments.
    def tail(p: float) -> float:
        return 1 - sum(math.comb(90, j) * p**j * (1 - p) ** (90 - j) for j in range(3))

    seen = 0.3 * tail(1 / 12) + 0.7 * tail(2 / 12)
    assert reconstruction_recall_bound(4, 90, 3, mutuality=0.7) == pytest.approx(3 * seen - 2, abs=1e-12)
    assert reconstruction_recall_bound(4, 90, 3) == pytest.approx(3 * tail(1 / 12) - 2, abs=1e-12)


def test_the_bounds_are_between_0_and_1_and_grow_with_the_rows_and_the_mutuality() -> None:
    for tight in (False, True):
        by_rows = [reconstruction_recall_bound(50, n, 5, tight=tight) for n in range(0, 5000, 250)]
        assert by_rows[0] == 0
        assert by_rows == sorted(by_rows)
        assert 0.999 < by_rows[-1] <= 1
        by_mutuality = [
            reconstruction_recall_bound(50, 500, 5, mutuality=a, tight=tight) for a in np.linspace(0, 1, 21)
        ]
        assert by_mutuality == sorted(by_mutuality)
        assert by_mutuality[-1] > by_mutuality[0]
    assert reconstruction_recall_bound(50, 500, 5, mutuality=0.0) == reconstruction_recall_bound(50, 500, 5)


@given(st.integers(3, 8), st.integers(1, 40), st.integers(0, 40), st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_the_tight_bound_is_never_below_theorem_4(k: int, more: int, ratio: int, mutuality: float) -> None:
    n = k + more
    plain = reconstruction_recall_bound(n, n * ratio, k, mutuality)
    tight = reconstruction_recall_bound(n, n * ratio, k, mutuality, tight=True)
    assert plain - 1e-9 <= tight <= 1


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("options", [{}, {"exact": False}, {"tight": True}, {"mutuality": 1.0}])
def test_fewer_than_three_neighbours_promise_nothing(k: int, options: dict) -> None:
    assert reconstruction_recall_bound(50, 10**6, k, **options) == 0


def test_a_ring_of_mutual_neighbours_has_no_third_segment() -> None:
    """The case that makes 0 the right bound for k = 2: no number of rows gives a record away."""
    angle = 2 * np.pi * np.arange(12) / 12
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    assert neighbour_mutuality(ring, k=2) == 1
    assert identifiable_share(ring, 10**6, k=2) == 0
    assert identifiable_share(ring, 10**6, k=2, min_lines=2) == pytest.approx(1)


def test_where_the_poisson_tail_is_above_the_binomial_one() -> None:
    """What the docstring says of Theorem 3: wrong by less than 7e-4, and only from k = 7 and up to 2 rows."""
    largest, where = 0.0, set()
    for k in range(3, 31):
        for n in (k + 1, 2 * k, 100, 1000):
            rows = np.unique(np.round(np.linspace(0.05, 8, 400) * n * k).astype(int))
            rate = rows / (n * k)
            above = poisson.sf(2, rate) > binom.sf(2, rows, 1 / (n * k)) * (1 + 1e-12)
            assert not above[rate > 2].any()
            for number in rows[(rate > 1) & (rate <= 2)][::5].tolist():
                excess = reconstruction_recall_bound(n, number, k, exact=False) - reconstruction_recall_bound(
                    n, number, k
                )
                largest = max(largest, excess)
                if excess > 1e-12:
                    where.add(k)
    assert 1e-4 < largest < 7e-4
    assert min(where) == 7


# ---------------------------------------------------------------------------------------- the exact share


@pytest.mark.parametrize(
    ("n_draws", "total", "cells", "least"),
    [
        (9, 3, [1, 1, 1], 3),
        (9, 5, [1, 1, 2], 2),
        (8, 6, [2, 1, 1], 1),
        (8, 4, [1, 2], 2),
        (9, 6, [1, 1, 1], 3),
        (2, 6, [1, 1], 1),
    ],
)
def test_chances_equal_those_of_all_sequences(n_draws: int, total: int, cells: list[int], least: int) -> None:
    chance = _chance_of_segments(n_draws, total, Counter(cells), least)
    assert chance == pytest.approx(brute_force(n_draws, total, cells, least), abs=1e-12)


def test_nine_draws_on_three_cells_by_hand() -> None:
    assert _chance_of_segments(9, 3, Counter({1: 3}), 3) == pytest.approx(1680 / 3**9, abs=1e-14)


def test_chances_of_many_cells_and_draws_stay_exact() -> None:
    # With rare cells the counts are nearly independent, and the chance nearly binomial.
    seen = binom.sf(2, 10**6, 1 / 250_000)
    chance = _chance_of_segments(10**6, 250_000, Counter({1: 12}), 3)
    assert chance == pytest.approx(binom.sf(2, 12, seen), abs=1e-4)
    assert _chance_of_segments(10**6, 250_000, Counter({1: 900}), 3) == pytest.approx(1, abs=1e-12)


def test_lowest_mean_is_the_lower_convex_hull() -> None:
    values = np.array([0.0, 0.5, 0.2, 1.0])
    assert [_lowest_mean(values, at) for at in (0, 1, 1.5, 2, 2.5, 3)] == pytest.approx(
        [0, 0.1, 0.15, 0.2, 0.6, 1]
    )


def test_the_share_of_records_with_copies() -> None:
    """The copies of a record fill its list of neighbours, so that it has no segment of its own."""
    X = np.array([[0.0, 0.0]] * 4 + [[1.0, 0.0], [0.0, 2.0], [5.0, 5.0]])
    # k = 3: the origin's three places go to its own copies; those of (1, 0) and (0, 2) to three of the four at
    # the origin; those of (5, 5) to (0, 2) at 5.8, (1, 0) at 6.4 and one at the origin at 7.1.
    draws = {
        frozenset({"origin", "right"}): 3,
        frozenset({"origin", "up"}): 3,
        frozenset({"far", "up"}): 1,
        frozenset({"far", "right"}): 1,
        frozenset({"far", "origin"}): 1,
    }
    expected = np.mean(
        [
            _chance_of_segments(60, 21, Counter(size for pair, size in draws.items() if name in pair), 2)
            for name in ("origin", "right", "up", "far")
        ]
    )
    assert 0.5 < expected < 1
    assert identifiable_share(X, 60, k=3, min_lines=2) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("n", "d", "k", "ratio", "least"), [(14, 3, 4, 6, 3), (10, 2, 3, 12, 3), (12, 4, 3, 4, 2)]
)
def test_the_share_is_the_mean_of_simulated_releases(n: int, d: int, k: int, ratio: int, least: int) -> None:
    """Hoeffding: the mean of 40,000 shares is off by more than 0.0135 with probability below 1e-6."""
    records = np.random.default_rng(n).normal(size=(n, d))
    simulated = simulated_shares(records, ratio * n, k, 40_000, seed=1, least=least).mean()
    expected = identifiable_share(records, ratio * n, k, min_lines=least)
    assert 0.05 < expected < 0.95
    assert abs(simulated - expected) < 0.0135


@pytest.mark.parametrize("ratio", [8, 12, 25])
def test_all_bounds_hold_in_simulated_releases(ratio: int) -> None:
    """Hoeffding: the mean of 20,000 shares is above its expectation - 0.0186 but for a probability of 1e-6."""
    records = np.random.default_rng(ratio).normal(size=(60, 5))
    simulated = simulated_shares(records, 60 * ratio, 5, 20_000, seed=2).mean()
    mutuality = neighbour_mutuality(records, 5)
    assert 0.4 < mutuality < 0.9
    approximate = reconstruction_recall_bound(60, 60 * ratio, 5, exact=False)
    exact = reconstruction_recall_bound(60, 60 * ratio, 5, mutuality)
    tight = reconstruction_recall_bound(60, 60 * ratio, 5, mutuality, tight=True)
    assert approximate <= exact <= tight <= identifiable_share(records, 60 * ratio, 5) + 1e-12
    assert simulated > tight - 0.0186


# ----------------------------------------------------------------------------------------- the mutuality


def test_mutuality_by_hand() -> None:
    assert neighbour_mutuality(ON_AN_AXIS, k=1) == pytest.approx(2 / 4)
    # k = 2: 0 -> 1, 1.5; 1 -> 0, 1.5; 1.5 -> 0, 1; 9 -> 1, 1.5.
    assert neighbour_mutuality(ON_AN_AXIS, k=2) == pytest.approx(6 / 8)
    assert neighbour_mutuality(ON_AN_AXIS, k=3) == 1


def test_of_neighbours_at_the_same_distance_the_first_is_taken() -> None:
    # 1 is as far from 0 as from 2, and takes 0; 2 is as far from 1 as from 3, and takes 1; 3 takes 2.
    assert neighbour_mutuality(np.arange(4.0)[:, None], k=1) == pytest.approx(2 / 4)
    # Only distances with three terms, whose sums depend on their order in the last digit.
    step = np.array([0.1, 0.2, 0.3])
    table = np.array([np.zeros(3), step, step[[1, 2, 0]], step[[2, 0, 1]], 10 * step])
    expected = neighbour_mutuality(table, k=1)
    assert expected == neighbour_mutuality(table[::-1], k=1) == neighbour_mutuality(table[:, ::-1], k=1)


@given(st.integers(0, 10**6), st.integers(1, 6), st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_mutuality_does_not_depend_on_the_order_and_copies_of_the_rows(seed: int, k: int, random) -> None:
    table = np.random.default_rng(seed).integers(0, 4, (60, 3)).astype(float)
    expected = neighbour_mutuality(table, k)
    assert 0 < expected <= 1
    order = list(range(60)) + [random.randrange(60) for _ in range(30)]
    random.shuffle(order)
    assert neighbour_mutuality(table[order], k) == expected


def test_a_grid_with_more_ties_than_neighbours() -> None:
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=6)))
    # Each corner has six neighbours at distance 1, of which the first three in order are taken: those that
    # turn a one into a zero, the leading one first, then those that turn a zero into a one from the end.
    number = np.arange(64)

    def neighbours(corner: int) -> list[int]:
        return sorted(corner ^ (1 << bit) for bit in range(6))[:3]

    lists = [neighbours(corner) for corner in number.tolist()]
    mutual = np.mean([corner in lists[other] for corner in range(64) for other in lists[corner]])
    assert neighbour_mutuality(corners, k=3) == pytest.approx(mutual)


def test_mutuality_equals_scikit_learn_s_graph_where_nothing_ties() -> None:
    table = np.random.default_rng(0).normal(size=(500, 20))
    graph = NearestNeighbors(n_neighbors=7).fit(table).kneighbors_graph().toarray()
    assert neighbour_mutuality(pd.DataFrame(table), k=7) == pytest.approx((graph * graph.T).sum() / (500 * 7))


# -------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((5, 100, 5), {}, "n_minority is 5 and k is 5"),
        ((1, 100, 1), {}, "n_minority = 1"),
        ((50, -1, 5), {}, "n_synthetic = -1"),
        ((50, 100.5, 5), {}, "n_synthetic = 100.5"),
        ((50, 100, 0), {}, "k = 0"),
        ((50, 100, True), {}, "k = True"),
        ((50, 100, 5, 1.5), {}, "mutuality is 1.5"),
        ((50, 100, 5, math.nan), {}, "mutuality is nan"),
        ((50, 100, 5, 0.5), {"exact": False}, "mutuality has no part in Theorem 3"),
        ((50, 100, 5), {"exact": False, "tight": True}, "tight has no part in Theorem 3"),
    ],
)
def test_bad_numbers_are_named(arguments: tuple, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        reconstruction_recall_bound(*arguments, **options)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (pd.DataFrame({"a": range(9), "b": list("abcdefghi")}), "column 'b' is not numeric"),
        (np.array([["a", "b"]] * 9), "column 0 is not numeric"),
        (np.zeros(9), "1 dimension"),
        (np.array([[np.nan]] + [[float(i)] for i in range(9)]), "missing or infinite value in row 0"),
        (np.zeros((9, 2)), "1 distinct records for k = 5"),
    ],
)
def test_tables_without_neighbours_are_named(X: object, message: str) -> None:
    for function in (neighbour_mutuality, lambda table: identifiable_share(table, 100)):
        with pytest.raises(InputError, match=message) as error:
            function(X)
        assert "\n" not in str(error.value)


def test_bad_numbers_of_the_share_are_named() -> None:
    with pytest.raises(InputError, match="n_synthetic = -3"):
        identifiable_share(ON_AN_AXIS, -3, 2)
    with pytest.raises(InputError, match="min_lines = 0"):
        identifiable_share(ON_AN_AXIS, 3, 2, min_lines=0)
