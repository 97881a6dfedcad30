"""Records are where lines end together; how many lines it takes depends on their position."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from oversafe.attack.geometry.shapes.line_intersections import Meetings, _solve, find_meetings
from oversafe.attack.geometry.shapes.lines import Lines, find_lines
from oversafe.attack.geometry.shapes.points import read_points

from .releases import interpolated, synthetic

# Places on a segment that no grid has.
SHARES = np.sort(np.sqrt([2, 3, 5, 7]) % 1)
CENTRE = np.array([1.0, 2.0, 3.0])
ENDS = np.array([[5.0, 3.0, 4.0], [0.0, 7.0, 2.0], [2.0, 1.0, 9.0]])


def segments(*pairs: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Return rows on the segments between pairs of places."""
    return np.vstack([start + SHARES[:, None] * (end - start) for start, end in pairs])


def meetings_of(X: np.ndarray, min_lines: int | None = None) -> tuple[Meetings, np.ndarray]:
    """Return the meetings of a table's lines, and their places in the table's units."""
    points = read_points(X)
    found = find_meetings(find_lines(points), points, min_lines)
    return found, points.low + found.places * points.span


def precision_and_recall(places: np.ndarray, real: np.ndarray) -> tuple[float, float]:
    apart = np.abs(places[:, None] - real).max(axis=2)
    return float((apart.min(axis=1) < 1e-9).mean()), float((apart.min(axis=0) < 1e-9).mean())


# -------------------------------------------------------------------------------------- two lines or three


def test_two_lines_in_general_position() -> None:
    X = np.vstack([segments((CENTRE, ENDS[0]), (CENTRE, ENDS[1])), ENDS])
    found, places = meetings_of(X)
    assert found.general
    assert places == pytest.approx(CENTRE[None])
    assert [sorted(lines.tolist()) for lines in found.lines] == [[0, 1]]
    assert 0 < found.radius[0] < 1e-13
    found, places = meetings_of(X, min_lines=3)
    assert len(places) == len(found.lines) == len(found.radius) == 0
    assert not found.general


@pytest.mark.parametrize(
    "columns",
    [
        lambda x, y: (x, y),
        lambda x, y: (x, y, 3 - 2 * x),
        lambda x, y: (y, np.full(len(x), 7.0), x),
    ],
    ids=["two columns", "a linear function of another", "a constant"],
)
def test_two_lines_of_a_plane_are_not_enough(columns) -> None:
    plane = np.vstack([segments((CENTRE, ENDS[0]), (CENTRE, ENDS[1])), ENDS])[:, :2]
    X = np.column_stack(columns(*plane.T))
    found, places = meetings_of(X)
    assert not found.general
    assert len(places) == 0
    assert len(meetings_of(X, min_lines=2)[1]) == 1


def test_two_lines_that_move_in_the_same_two_columns_are_not_enough() -> None:
    # In a table of more columns, where others are in general position.
    flat = np.array([[4.0, 9.0, 3.0], [9.0, 5.0, 3.0]])
    general = np.array([[20.0, 20.0, 20.0], [25.0, 21.0, 27.0], [19.0, 28.0, 24.0]])
    X = segments((CENTRE, flat[0]), (CENTRE, flat[1]), (general[0], general[1]), (general[0], general[2]))
    found, places = meetings_of(X)
    assert found.general
    assert places == pytest.approx(general[:1])


def test_lines_that_miss_each_other() -> None:
    X = segments((CENTRE, ENDS[0]), (CENTRE + np.array([0, 0, 0.01]), ENDS[1]), (ENDS[0], 2 * ENDS[2]))
    points = read_points(X)
    lines = find_lines(points)
    assert len(lines) == 3
    assert len(find_meetings(lines, points, 2).places) == 1


def test_crossings_inside_lines_are_noticed() -> None:
    """The diagonals of a cuboid cross in its middle, so two lines that meet elsewhere are no evidence."""
    corner, sides = np.array([20.0, 21.0, 22.0]), np.array([1.0, 2.0, 3.0])
    across = np.array([1, 0, 0]) * sides
    crossing = segments((corner, corner + sides), (corner + across, corner + sides - across))
    meeting = np.vstack([segments((CENTRE, ENDS[0]), (CENTRE, ENDS[1]))])
    assert meetings_of(meeting)[0].general
    found, places = meetings_of(np.vstack([crossing, meeting]))
    assert not found.general
    assert len(places) == 0


@pytest.mark.parametrize("levels", [3, 4, 6])
def test_lattices_are_noticed(levels: int) -> None:
    grid = np.array(list(product(range(levels), repeat=3)), dtype=float)
    real = grid[np.random.default_rng(0).permutation(len(grid))[:64]]
    X = synthetic(real, 25 * len(real))
    found, places = meetings_of(X)
    assert not found.general
    precision, recall = precision_and_recall(places, real)
    assert precision == 1.0
    assert recall >= 0.5
    assert all(len(lines) >= 3 for lines in found.lines)


@pytest.mark.parametrize("d", [3, 4, 8])
def test_two_lines_give_more_records_than_three_and_no_wrong_ones(d: int) -> None:
    rng = np.random.default_rng(d)
    real = rng.normal(size=(100, d))
    X, _ = interpolated(real, 1000, rng)
    found, places = meetings_of(X)
    assert found.general
    precision, recall = precision_and_recall(places, real)
    assert precision == 1.0
    # Four rows per segment: about one record in eight has two lines, but not three.
    assert recall >= precision_and_recall(meetings_of(X, min_lines=3)[1], real)[1] + 0.05


def test_records_lie_within_their_errors() -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        real = rng.normal(size=(80, 4))
        X, _ = interpolated(real, 1200, rng)
        for table in (X, X.round(6)):
            points = read_points(table)
            found = find_meetings(find_lines(points), points)
            apart = np.linalg.norm(found.places[:, None] - (real - points.low) / points.span, axis=2)
            assert (apart.min(axis=1) <= 3 * found.radius).mean() > 0.95


# ------------------------------------------------------------------------------- what else a record must be


def test_places_off_the_grid_of_a_column_are_no_record_for_two_lines() -> None:
    rng = np.random.default_rng(0)
    # The last column is 0, 1/2 or 1 in all rows but those between records that differ in it.
    others = np.column_stack([10 * rng.random((60, 3)), rng.integers(0, 3, 60) / 2])
    for value, n_records in ((0.5, 1), (2**0.5 / 4, 0)):
        centre = np.array([4.0, 5.0, 6.0, value])
        ends = np.array([[9.0, 1.0, 3.0, 1.0], [1.0, 8.0, 2.0, 0.0], [2.0, 3.0, 9.0, 1.0]])
        X = np.vstack([others, segments((centre, ends[0]), (centre, ends[1]))])
        assert len(meetings_of(X)[1]) == n_records
        # Three lines are evidence by themselves.
        X = np.vstack([X, segments((centre, ends[2]))])
        assert meetings_of(X)[1] == pytest.approx(centre[None])


def test_ends_that_lead_to_a_known_record_are_not_used_again() -> None:
    points = read_points(segments(*((CENTRE, end) for end in ENDS)))
    lines = find_lines(points)
    towards = (CENTRE - points.low) / points.span
    last = np.einsum("ij,ij->i", towards - lines.centre, lines.direction) > 0
    ends = 2 * np.arange(3) + last
    assert len(find_meetings(lines, points).places) == 1
    # Two are left, then one; the other ends lead elsewhere.
    assert [len(those) for those in find_meetings(lines, points, taken={int(ends[0])}).lines] == [2]
    assert len(find_meetings(lines, points, taken=set(ends[:2].tolist())).places) == 0
    assert len(find_meetings(lines, points, taken=set((ends ^ 1).tolist())).places) == 1


def test_no_lines_no_records() -> None:
    points = read_points(np.random.default_rng(0).normal(size=(50, 3)))
    found = find_meetings(find_lines(points), points)
    assert found.places.shape == (0, 3)
    assert len(found.radius) == len(found.lines) == 0


# ---------------------------------------------------------------------------------------- many lines at once


def test_lines_held_against_those_that_end_nearby_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    real = rng.normal(size=(150, 5))
    X, _ = interpolated(real, 2500, rng)
    points = read_points(X)
    lines = find_lines(points)
    every = find_meetings(lines, points)
    monkeypatch.setattr("oversafe.attack.geometry.shapes.line_intersections._ALL_PAIRS", 10)
    nearby = find_meetings(lines, points)
    assert nearby.general
    records = [(found.places * points.span + points.low) for found in (every, nearby)]
    assert precision_and_recall(records[1], real)[0] == 1.0
    assert precision_and_recall(records[1], records[0])[1] >= 0.95


def test_order_of_the_lines_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    X, _ = interpolated(rng.normal(size=(60, 4)), 800, rng)
    points = read_points(X)
    lines = find_lines(points)
    found = find_meetings(lines, points)
    turned = reordered(lines, rng.permutation(len(lines)))
    again = find_meetings(turned, points)
    assert precision_and_recall(found.places, again.places) == (1.0, 1.0)


def reordered(lines: Lines, order: np.ndarray) -> Lines:
    entries = np.concatenate([np.arange(lines.indptr[i], lines.indptr[i + 1]) for i in order])
    return Lines(
        indptr=np.concatenate(([0], np.cumsum(lines.sizes[order]))),
        indices=lines.indices[entries],
        position=lines.position[entries],
        interpolated=lines.interpolated[entries],
        centre=lines.centre[order],
        direction=lines.direction[order],
        noise=lines.noise,
    )


def test_the_smaller_of_two_systems_gives_the_same_place() -> None:
    rng = np.random.default_rng(0)
    for m, d in ((2, 3), (3, 40), (6, 7)):
        rows, target = rng.normal(size=(m, d)), rng.normal(size=d)
        total = float((rows**2).sum())
        system = total * np.eye(d) - rows.T @ rows
        place, trace = _solve(total, rows, target)
        assert np.allclose(system @ place, target, rtol=0, atol=1e-12)
        assert trace == pytest.approx(np.trace(np.linalg.inv(system)), rel=1e-12)
