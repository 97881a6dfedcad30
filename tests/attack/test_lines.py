"""Lines are found where interpolation left them, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from imblearn.over_sampling import SMOTE

from oversafe._core.errors import InputError
from oversafe.attack.geometry.shapes import _kernels
from oversafe.attack.geometry.shapes.lines import (
    Lines,
    _without_conflicts,
    default_neighbors,
    find_lines,
    neighbors_to_search,
)
from oversafe.attack.geometry.shapes.points import read_points

# Places on a segment that no grid has.
SHARES = np.array([0.0, *np.sort(np.sqrt([2, 3, 5, 7]) % 1), 1.0])
# For tables of whole numbers, which are read as rounded ones otherwise.
EXACT = 1e-12


def on_segment(start: list[float], end: list[float], shares: np.ndarray = SHARES) -> np.ndarray:
    return np.asarray(start) + shares[:, None] * (np.asarray(end) - np.asarray(start))


def members_as_rows(points, lines: Lines) -> set[frozenset[int]]:
    """Return the lines as sets of rows of the table, of which no two may be equal."""
    row_of = np.empty(len(points.values), dtype=int)
    row_of[points.row] = np.arange(len(points.row))
    return {frozenset(row_of[lines.members(i)].tolist()) for i in range(len(lines))}


def smote(X: np.ndarray, n: int, seed: int = 0) -> np.ndarray:
    """Return n synthetic rows."""
    rest = np.random.default_rng(seed).normal(size=(len(X) + n, X.shape[1])) + 1000
    y = np.repeat([1, 0], [len(X), len(rest)])
    return SMOTE(random_state=seed).fit_resample(np.vstack([X, rest]), y)[0][len(y) :]


# ------------------------------------------------------------------------------------------ by hand


def test_one_segment_between_corners() -> None:
    # The cube's corner (1, 1, 1) is there so that the columns keep their range.
    X = np.vstack([on_segment([0, 0, 0], [1, 0.5, 0.25]), [[1, 1, 1], [0.2, 0.9, 0.4]]])
    points = read_points(X)
    lines = find_lines(points)
    assert members_as_rows(points, lines) == {frozenset(range(6))}
    length = np.sqrt(1 + 0.25 + 0.0625)
    assert np.allclose(np.abs(lines.direction[0]), np.array([1, 0.5, 0.25]) / length)
    assert np.allclose(lines.centre[0], SHARES.mean() * np.array([1, 0.5, 0.25]))
    places = lines.centre[0] + lines.position[:, None] * lines.direction[0]
    assert np.allclose(places, points.values[lines.indices])
    assert np.allclose(lines.length, length)
    assert (np.diff(lines.position) > 0).all()
    assert lines.interpolated.tolist() == [False, True, True, True, True, False]


def test_two_segments_with_a_common_end() -> None:
    first, second = on_segment([0, 0, 0], [1, 0.3, 0.6]), on_segment([0, 0, 0], [0.2, 1, 1])[1:]
    points = read_points(np.vstack([first, second]))
    assert members_as_rows(points, find_lines(points)) == {
        frozenset(range(6)),
        frozenset([0, 6, 7, 8, 9, 10]),
    }


def test_members_that_see_few_neighbours_end_up_on_one_line() -> None:
    rng = np.random.default_rng(0)
    X = np.vstack([on_segment([0, 0, 0], [1, 0.7, 0.4], np.sort(rng.random(60))), rng.random((300, 3))])
    points = read_points(X)
    assert members_as_rows(points, find_lines(points, n_neighbors=40)) == {frozenset(range(60))}


def test_a_subset_of_the_points() -> None:
    X = np.vstack([on_segment([0, 0, 0], [1, 0.5, 0.25]), [[1, 1, 1], [0.2, 0.9, 0.4]]])
    points = read_points(X)
    among = np.sort(points.row[[0, 2, 4, 6, 7]])
    lines = find_lines(points, among=among)
    assert members_as_rows(points, lines) == {frozenset([0, 2, 4])}


def test_equal_rows_are_one_point() -> None:
    X = np.vstack([on_segment([0, 0, 0], [1, 0.5, 0.25])[[0, 2, 5, 2, 0]], [[1, 1, 1]]])
    points = read_points(X)
    assert len(points.values) == 4
    assert points.row[1] == points.row[3]
    assert points.row[0] == points.row[4]
    assert find_lines(points).sizes.tolist() == [3]


def test_points_inside_groups_of_five_are_marked() -> None:
    # Point 2 is the owner of both groups: five on one line, and four on another.
    points = np.array([[0.0, 0], [1, 0], [2, 0], [3, 0], [4, 0], [2, 1], [2, 2], [2, 3]])
    inside = np.zeros(8, dtype=bool)
    owners, limits = np.array([2, 2]), np.array([0, 4, 7])
    _kernels.mark_inside(points, owners, limits, np.array([0, 1, 3, 4, 7, 5, 6]), inside)
    assert np.flatnonzero(inside).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("value", "error", "chance", "simple"),
    [
        (1 / 3, 1e-15, 1e-6, True),
        (22 / 37, 1e-15, 1e-6, True),
        (0.0, 1e-15, 1e-6, True),
        (1.0, 1e-15, 1e-6, True),
        (2**0.5 - 1, 1e-15, 1e-6, False),
        (np.pi - 3, 1e-15, 1e-6, False),
        (1 / 3 + 1e-12, 1e-15, 1e-6, False),
        # Denominators up to sqrt(chance pi^2 / 6 error) count: about 405 here.
        (1 / 401, 1e-11, 1e-6, True),
        (1 / 409, 1e-11, 1e-6, False),
        # With a coarse error no fraction is a surprise.
        (1 / 2, 1e-4, 1e-6, False),
    ],
)
def test_simple_fractions(value: float, error: float, chance: float, simple: bool) -> None:
    assert bool(_kernels.is_simple_fraction(value, error, chance)) is simple


def test_uniform_numbers_are_simple_fractions_as_rarely_as_promised() -> None:
    values = np.random.default_rng(0).random(1_000_000)
    found = _kernels.simple_fractions(values, np.full(len(values), 1e-10), 1e-3).sum()
    # 1000 are expected; the count is off by more than six standard deviations with probability 2e-9.
    assert abs(found - 1000) < 6 * 1000**0.5


# ------------------------------------------------------------------- lines that the table itself explains


@pytest.mark.parametrize(("levels", "tolerance"), [(12, EXACT), (200, EXACT), (200, None), (10**5, None)])
def test_integer_grids_have_no_lines(levels: int, tolerance: float | None) -> None:
    X = np.random.default_rng(0).integers(0, levels, (600, 3))
    points = read_points(X, tolerance)
    assert points.reason is None
    assert len(find_lines(points)) == 0


def test_interpolation_between_grid_points_is_seen_and_the_grid_points_stay() -> None:
    # (0,0), (1,2) and (2,4) are collinear by themselves; (0.6, 1.2...) cannot be.
    golden = (5**0.5 - 1) / 2
    X = np.array([[0, 0], [1, 2], [2, 4], [golden, 2 * golden], [2, 0], [1, 1], [0, 3]])
    points = read_points(X)
    lines = find_lines(points)
    assert members_as_rows(points, lines) == {frozenset([0, 1, 2, 3])}
    assert np.flatnonzero(np.isin(points.row, lines.indices[lines.interpolated])).tolist() == [3]


def test_rows_that_differ_in_one_continuous_column_are_no_line() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=400), rng.integers(0, 2, (400, 2))])
    points = read_points(X, EXACT)
    assert points.reason is None
    assert len(find_lines(points)) == 0


def test_measurements_cut_off_at_two_limits_are_no_line() -> None:
    X = np.clip(np.random.default_rng(0).normal(size=(1000, 3)), -1, 1)
    assert len(find_lines(read_points(X))) == 0


def test_interpolated_yes_or_no_columns_are_lines() -> None:
    corners = np.array(
        [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1]]
    )
    X = smote(corners.astype(float), 400)
    lines = find_lines(read_points(np.vstack([corners, X])))
    # Each corner's five nearest are its three neighbours and two of those across a face.
    assert ((np.abs(lines.direction) > 1e-9).sum(axis=1) == 1).any()
    assert len(np.unique(lines.indices[lines.interpolated])) == len(np.unique(X, axis=0))


def test_lines_sharing_two_points_are_one_the_larger() -> None:
    lines = Lines(
        indptr=np.array([0, 3, 7, 10]),
        indices=np.array([0, 1, 2, 1, 2, 3, 4, 4, 5, 6]),
        position=np.array([-1.0, 0, 1, -1, 0, 1, 2, -1, 0, 1]),
        interpolated=np.zeros(10, dtype=bool),
        centre=np.arange(6.0).reshape(3, 2),
        direction=np.ones((3, 2)),
        noise=1e-15,
    )
    kept = _without_conflicts(lines, 7)
    assert [kept.members(i).tolist() for i in range(len(kept))] == [[1, 2, 3, 4], [4, 5, 6]]
    assert kept.centre.tolist() == [[2, 3], [4, 5]]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [2, 3, 8])
def test_random_tables_have_no_lines(d: int, dtype: type) -> None:
    # Below one accidental line in the table is the rule; the seeds were not chosen.
    rng = np.random.default_rng(d)
    for X in (rng.normal(size=(1500, d)), rng.random((1500, d))):
        assert len(find_lines(read_points(X.astype(dtype)))) == 0


# --------------------------------------------------------------------------------------------- settings


def test_bad_settings_are_named() -> None:
    points = read_points(np.eye(3))
    with pytest.raises(InputError, match="n_neighbors is 0"):
        neighbors_to_search(points, 0, 5, None)
    with pytest.raises(InputError, match="ratio is -1"):
        neighbors_to_search(points, "auto", 5, -1)
    with pytest.raises(InputError, match="n_neighbors is 'all'"):
        neighbors_to_search(points, "all", 5, None)  # type: ignore[arg-type]


def test_neighbours_from_what_the_attacker_knows() -> None:
    points = read_points(np.random.default_rng(0).random((500, 2)))
    assert neighbors_to_search(points, "auto", 5, None) == 499
    assert neighbors_to_search(points, "auto", 5, 8.6) == 86
    assert neighbors_to_search(points, 30, 5, 8.6) == 30
    assert default_neighbors(10_000) == 1000
    assert default_neighbors(100_000) == 200
    assert default_neighbors(10**7) == 100


# ------------------------------------------------------------------------------------------- properties


@st.composite
def planted(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    """A table with points on a few random segments among other points, and the number of segments."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    d, n_lines = draw(st.integers(3, 7)), draw(st.integers(1, 4))
    parts = [
        on_segment(*rng.normal(size=(2, d)), np.sort(rng.random(rng.integers(3, 7)))) for _ in range(n_lines)
    ]
    return np.vstack([*parts, rng.normal(size=(20, d))]), n_lines


@given(planted(), st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_order_units_and_copies_do_not_matter(case: tuple[np.ndarray, int], random) -> None:
    X, n_lines = case
    points = read_points(X)
    expected = members_as_rows(points, find_lines(points))
    assert len(expected) == n_lines

    order = list(range(len(X)))
    random.shuffle(order)
    points = read_points(X[order])
    shuffled = {frozenset(order[i] for i in line) for line in members_as_rows(points, find_lines(points))}
    assert shuffled == expected

    units = np.array([random.choice([-1, 1]) * 10 ** random.uniform(-6, 6) for _ in range(X.shape[1])])
    points = read_points(X * units + units)
    assert members_as_rows(points, find_lines(points)) == expected

    points = read_points(np.vstack([X, X[:5]]))
    again = {
        frozenset(i if i < len(X) else i - len(X) for i in line)
        for line in members_as_rows(points, find_lines(points))
    }
    assert again == expected


def test_threads_find_the_same() -> None:
    X = smote(np.random.default_rng(1).normal(size=(60, 4)), 2500)
    points = read_points(X)
    one, two = (find_lines(points, 200, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert len(one) > 50
    assert np.array_equal(one.indices, two.indices)
    assert np.array_equal(one.indptr, two.indptr)


def test_points_without_a_line_are_not_searched_again_until_the_search_goes_farther() -> None:
    rng = np.random.default_rng(0)
    line, others = on_segment([0, 0, 0], [1, 0.7, 0.4], np.linspace(0, 1, 4) ** 1.1), rng.random((300, 3))
    points = read_points(np.vstack([line, others]))
    everything, searched = np.arange(304), np.zeros(304, dtype=np.int64)
    assert len(find_lines(points, 5, among=everything, searched=searched)) == 0
    assert (searched == 5).all()
    # All of them know of one another within 303, and nobody looks.
    assert len(find_lines(points, 303, among=everything, searched=np.full(304, 303))) == 0
    assert len(find_lines(points, 303, among=everything, searched=searched)) == 1
    assert (searched[points.row[:4]] == 5).all() and (searched[points.row[4:]] == 303).all()
