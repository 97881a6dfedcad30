"""Rounded and perturbed tables: their errors are read off the rows, and lines found within them."""

from __future__ import annotations

import numpy as np
import pytest

from oversafe.attack.geometry import _noise_kernels
from oversafe.attack.geometry.noise import (
    error_of_lines,
    estimate_error,
    find_noisy_lines,
    lines_at_their_error,
)
from oversafe.attack.geometry.shapes.lines import Lines, find_lines, from_members
from oversafe.attack.geometry.shapes.points import Points, read_points

from .releases import interpolated, synthetic


def perturbed(
    d: int, noise: float, n_real: int = 40, n: int = 1200, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows between normal records with uniform noise added, and the number of the segment of each."""
    rng = np.random.default_rng(seed)
    rows, pair = interpolated(rng.normal(size=(n_real, d)), n, rng)
    return rows + rng.uniform(-noise, noise, rows.shape), np.unique(pair, axis=0, return_inverse=True)[1]


def purity(lines: Lines, points: Points, segment: np.ndarray) -> float:
    """Return the share of the lines' members that lie on the segment that most of their line do."""
    of_point = np.empty(len(points.values), dtype=np.int64)
    of_point[points.row] = segment.reshape(-1)
    most = [np.bincount(of_point[lines.members(line)]).max() for line in range(len(lines))]
    return sum(most) / len(lines.indices)


# -------------------------------------------------------------------------------------------------- kernels


def test_straightest_triple_by_hand() -> None:
    # The query is a quarter beside the chord from (-1, 0) to (2, 0); the others are on no side of it.
    values = np.array([[0, 0.25], [-1, 0], [2, 0], [0, 2], [0.3, 1.9]])
    queries, neighbours = np.array([0]), np.array([[0, 1, 2, 3, 4]])
    shortest = np.zeros(1)
    straight, pair = _noise_kernels.straightest_triples(
        values, queries, np.zeros((1, 2)), neighbours, shortest
    )
    assert set(pair[0].tolist()) == {1, 2}
    left, right = values[1] - values[0], values[2] - values[0]
    a, b = np.linalg.norm(left), np.linalg.norm(right)
    assert straight[0] == pytest.approx(np.linalg.norm(b * left + a * right) / (a + b) / a)
    # Moved onto the chord, it is straight; and with no neighbour far enough there is no triple.
    on_chord = _noise_kernels.straightest_triples(
        values, queries, np.array([[0, -0.25]]), neighbours, shortest
    )
    assert on_chord[0][0] == pytest.approx(0, abs=1e-12)
    none = _noise_kernels.straightest_triples(values, queries, np.zeros((1, 2)), neighbours, np.full(1, 2.0))
    assert none[0][0] == np.inf


def test_longest_tube_by_hand() -> None:
    # Three rows between the first and the last within the error, one beside, one behind the first.
    along = np.array([[0.0, 0], [1, 0.001], [2, -0.001], [3, 0.001], [4, 0], [2, 0.1], [-1, 0]])
    neighbours = np.array([[0, 1, 2, 3, 4, 5, 6]])
    limits, members = _noise_kernels.longest_tubes(along, np.array([0]), neighbours, 0.001, 2.5, 0.016)
    assert limits.tolist() == [0, 4]
    assert members[0] == 4
    assert sorted(members.tolist()) == [1, 2, 3, 4]
    # One row between two others is no group.
    limits, members = _noise_kernels.longest_tubes(
        along, np.array([0]), neighbours[:, :3].copy(), 0.001, 2.5, 0.016
    )
    assert limits.tolist() == [0, 0] and not len(members)


@pytest.mark.parametrize("d", [2, 5, 20])
def test_line_of_least_squares(d: int) -> None:
    rng = np.random.default_rng(d)
    values = rng.random((12, 1)) * rng.normal(size=d) + 0.001 * rng.normal(size=(12, d))
    centre, direction = np.empty(d), np.empty(d)
    chosen = np.array([1, 3, 4, 7, 8, 11])
    total = _noise_kernels.fit_line(values, chosen, len(chosen), centre, direction)
    assert centre == pytest.approx(values[chosen].mean(axis=0))
    _, spread, axes = np.linalg.svd(values[chosen] - centre, full_matrices=False)
    assert abs(direction @ axes[0]) == pytest.approx(1, abs=1e-9)
    assert total == pytest.approx(spread[0] ** 2, rel=1e-6)
    line = from_members(values, np.array([0, 6]), chosen, 0.001)
    assert abs(line.direction[0] @ direction) == pytest.approx(1, abs=1e-9)
    assert (np.diff(line.position) > 0).all()
    assert sorted(line.indices.tolist()) == chosen.tolist()
    assert line.interpolated.tolist() == [False, True, True, True, True, False]


# ---------------------------------------------------------------------------------------- how large errors are


@pytest.mark.parametrize("noise", [1e-5, 1e-3])
@pytest.mark.parametrize("d", [3, 6, 12])
def test_error_of_a_perturbed_release_is_found_with_its_lines(d: int, noise: float) -> None:
    X, segment = perturbed(d, noise)
    points = read_points(X)
    assert points.exact
    points, lines = lines_at_their_error(points, len(X) - 1, None, None)
    # Means over more than 500 rows: their standard error is below a twentieth.
    assert points.errors == {column: pytest.approx(1.25 * noise, abs=0.75 * noise) for column in range(d)}
    assert points.noise < 2 * noise
    sizes = np.bincount(segment.reshape(-1))
    assert len(lines) > 0.8 * (sizes >= 5).sum()
    assert purity(lines, points, segment) > 0.95


@pytest.mark.parametrize(("d", "noise"), [(4, 1e-7), (6, 1e-5), (12, 1e-5)])
def test_error_of_a_perturbed_release_with_few_rows_per_record(d: int, noise: float) -> None:
    X, _ = perturbed(d, noise, n_real=200, n=2000)
    points, _ = lines_at_their_error(read_points(X), len(X) - 1, None, None)
    assert max(points.errors.values()) < 10 * noise


def test_errors_may_differ_between_the_columns() -> None:
    noise = np.array([1e-5, 1e-5, 1e-4, 1e-4, 1e-3, 1e-3])
    rng = np.random.default_rng(0)
    rows, segment = interpolated(rng.normal(size=(40, 6)), 1200, rng)
    rows += rng.uniform(-noise, noise, rows.shape)
    points, lines = lines_at_their_error(read_points(rows), 1199, None, None)
    errors = np.array([points.errors[column] for column in range(6)])
    assert errors[4:] == pytest.approx(1.25e-3, abs=0.75e-3)
    assert errors[:4].max() < errors[4:].min() / 3
    assert purity(lines, points, np.unique(segment, axis=0, return_inverse=True)[1]) > 0.95


def test_errors_are_in_the_table_s_units() -> None:
    noise = 1e-3
    X, segment = perturbed(6, noise)
    units = np.array([1e-4, 1e-2, 1, 1e2, 1e4, 1e6])
    points, lines = lines_at_their_error(read_points(X * units), len(X) - 1, None, None)
    ratios = [points.errors[column] / units[column] / noise for column in range(6)]
    assert all(0.2 < ratio < 6 for ratio in ratios), ratios
    assert purity(lines, points, segment) > 0.95


def real_like(kind: str, d: int, rng: np.random.Generator) -> np.ndarray:
    normal = rng.normal(size=(800, d))
    return {
        "normal": normal,
        "uniform": rng.random((800, d)),
        "heavy tails": rng.standard_t(2, size=(800, d)),
        "correlated": normal @ rng.normal(size=(d, d)),
        "three clusters": 0.1 * normal + rng.integers(0, 3, (800, 1)),
        "shuffled columns": rng.permuted(synthetic(normal[:40], 800), axis=0),
    }[kind]


KINDS = ["normal", "uniform", "heavy tails", "correlated", "three clusters", "shuffled columns"]


@pytest.mark.parametrize("d", [2, 3, 6, 12])
@pytest.mark.parametrize("kind", KINDS)
def test_tables_without_lines_show_no_error(kind: str, d: int) -> None:
    # Two shares of 600 rows that differ by 0.3 by chance: a probability below 1e-20.
    points = read_points(real_like(kind, d, np.random.default_rng(d)))
    assert estimate_error(points) is None
    same, lines = lines_at_their_error(points, len(points.values) - 1, None, None)
    assert same is points
    assert len(lines) == 0


def test_error_of_lines() -> None:
    noise = 1e-4
    X, _ = perturbed(5, noise)
    points = read_points(X, dict.fromkeys(range(5), noise))
    errors = error_of_lines(points, find_noisy_lines(points, len(X) - 1))
    # A little less, because the rows farthest from their lines are not taken for theirs.
    assert errors == {column: pytest.approx(0.9 * noise, rel=0.2) for column in range(5)}


# ----------------------------------------------------------------------------------------------------- lines


def test_exact_releases_are_left_to_exact_lines() -> None:
    points = read_points(synthetic(np.random.default_rng(0).normal(size=(40, 5)), 800))
    same, lines = lines_at_their_error(points, len(points.values) - 1, None, None)
    assert same is points
    assert np.array_equal(lines.indices, find_lines(points).indices)


def test_given_tolerance_is_not_estimated_again() -> None:
    X, segment = perturbed(6, 1e-5)
    points = read_points(X, 2e-6)
    same, lines = lines_at_their_error(points, len(X) - 1, 2e-6, None)
    assert same is points
    assert purity(lines, points, segment) > 0.99


@pytest.mark.parametrize("noise", [1e-4, 1e-3])
def test_noisy_lines_are_disjoint_and_near_their_rows(noise: float) -> None:
    X, segment = perturbed(6, noise)
    points = read_points(X, dict.fromkeys(range(6), noise))
    lines = find_noisy_lines(points, 200)
    assert len(np.unique(lines.indices)) == len(lines.indices)
    assert lines.sizes.min() >= 4
    assert purity(lines, points, segment) > 0.97
    assert len(lines) > 0.9 * (np.bincount(segment.reshape(-1)) >= 6).sum()
    place = (
        lines.centre[lines.line_of_member] + lines.position[:, None] * lines.direction[lines.line_of_member]
    )
    off = np.linalg.norm(points.values[lines.indices] - place, axis=1)
    assert off.max() < 6 * points.noise


@pytest.mark.parametrize("noise", [1e-5, 1e-4, 1e-3])
@pytest.mark.parametrize("kind", KINDS)
def test_tables_without_lines_have_none_within_any_error(kind: str, noise: float) -> None:
    # Less than a tenth of a line is to be expected by accident: five or more with a probability below 1e-7.
    points = read_points(real_like(kind, 5, np.random.default_rng(1)), noise)
    assert len(find_noisy_lines(points, 200)) < 5


def test_table_in_which_no_line_can_be_sought() -> None:
    points = read_points(np.random.default_rng(0).integers(0, 4, (100, 5)))
    assert points.reason is not None
    same, lines = lines_at_their_error(points, 99, None, None)
    assert same is points
    assert len(lines) == 0


# ------------------------------------------------------------------------- rounded columns beside exact ones


def test_whole_numbers_that_change_evenly_along_the_lines_are_exact() -> None:
    # Rows are interpolated within two groups, so that the group's number stays as it was.
    rng = np.random.default_rng(0)
    rows = np.vstack(
        [
            np.column_stack([interpolated(rng.normal(size=(30, 4)), 500, rng)[0], np.full(500, group)])
            for group in (0, 1)
        ]
    )
    points = read_points(rows)
    assert points.coarse.keys() == {4}
    points, lines = lines_at_their_error(points, 999, None, None)
    assert points.coarse == {}
    assert points.columns.tolist() == [0, 1, 2, 3, 4]
    assert len(lines) > 50


def test_whole_numbers_that_were_cut_off_stay_coarse() -> None:
    rng = np.random.default_rng(0)
    rows, _ = interpolated(rng.normal(size=(40, 5)) * [1, 1, 1, 1, 20], 1000, rng)
    rows[:, 4] = np.trunc(rows[:, 4])
    points, lines = lines_at_their_error(read_points(rows), 999, None, None)
    assert points.coarse == {4: pytest.approx(0.5)}
    assert len(lines) > 50


def test_perturbed_columns_beside_whole_numbers() -> None:
    noise = 1e-4
    rng = np.random.default_rng(0)
    rows, segment = interpolated(rng.normal(size=(40, 6)) * [1, 1, 1, 1, 1, 30], 1200, rng)
    rows[:, :5] += rng.uniform(-noise, noise, (1200, 5))
    rows[:, 5] = np.trunc(rows[:, 5])
    points, lines = lines_at_their_error(read_points(rows), 1199, None, None)
    assert (points.errors | points.coarse)[5] == pytest.approx(0.5)
    for column in range(5):
        assert points.errors[column] == pytest.approx(1.25 * noise, abs=0.75 * noise)
    assert purity(lines, points, np.unique(segment, axis=0, return_inverse=True)[1]) > 0.95
