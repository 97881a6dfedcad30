"""Two rows in the same direction from a known record give a line; where such lines meet is a new record."""

from __future__ import annotations

import numpy as np
import pytest

from oversafe.attack.geometry.shapes.line_intersections import Meetings
from oversafe.attack.geometry.shapes.lines import Lines, find_lines
from oversafe.attack.geometry.shapes.points import Points, read_points
from oversafe.attack.geometry.shapes.rays import _rays, meet_rays

# Places on a segment that no grid has.
SHARES = np.sort(np.sqrt([2, 3, 5, 7]) % 1)
KNOWN = np.array([[0.0, 0.0, 0.0], [9.0, 1.0, 2.0], [1.0, 8.0, 3.0], [2.0, 3.0, 10.0]])
UNKNOWN = np.array([6.0, 7.0, 8.0])


def between(start: np.ndarray, end: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return rows on a segment."""
    return start + shares[:, None] * (end - start)


def read(X: np.ndarray) -> tuple[Points, Lines, np.ndarray, np.ndarray]:
    """Return a table's points and lines, the known records in the unit cube, and their errors."""
    points = read_points(X)
    places = (KNOWN - points.low) / points.span
    return points, find_lines(points), places, np.full(len(KNOWN), 1e-15)


def met(X: np.ndarray, left_out: tuple[int, ...] = ()) -> tuple[Meetings, np.ndarray, list[set[int]]]:
    """Return the meetings of rays, their places in the table's units, and the rows of the table that lead there."""
    points, lines, places, radius = read(X)
    open_points = np.setdiff1d(np.arange(len(points.values)), points.row[list(left_out)])
    found, rows = meet_rays(points, open_points, lines, places, radius, None)
    of_table = [set(np.flatnonzero(np.isin(points.row, those)).tolist()) for those in rows]
    return found, points.low + found.places * points.span, of_table


def others(n: int = 30) -> np.ndarray:
    return 10 * np.random.default_rng(0).random((n, 3))


def test_two_rows_and_a_record_are_a_line() -> None:
    # Two rows on one side of the first record; one on each side of the second; one beside the third.
    X = np.vstack(
        [
            others(),
            between(KNOWN[0], UNKNOWN, SHARES[:2]),
            KNOWN[1] + np.array([[-0.1], [SHARES[2]]]) * (UNKNOWN - KNOWN[1]),
            between(KNOWN[2], UNKNOWN, SHARES[:1]),
        ]
    )
    points, lines, places, radius = read(X)
    assert len(lines) == 0
    rays = _rays(points, np.arange(len(points.values)), places, radius, None)
    n = len(points.values)
    assert len(rays) == 1
    members = rays.members(0)
    # The record comes first or last, with its number after those of the points.
    assert n in (members[0], members[-1])
    assert set(members.tolist()) == {n, *points.row[[30, 31]].tolist()}
    direction = (UNKNOWN - KNOWN[0]) / points.span
    assert abs(rays.direction[0] @ direction) == pytest.approx(np.linalg.norm(direction))


def test_rays_from_different_records_meet_in_a_new_one() -> None:
    X = np.vstack([others(), *(between(record, UNKNOWN, SHARES[:2]) for record in KNOWN[:3])])
    found, places, rows = met(X)
    assert places == pytest.approx(UNKNOWN[None])
    assert len(found.lines[0]) == 3
    assert rows == [set(range(30, 36))]
    assert 0 < found.radius[0] < 1e-12


def test_two_rays_are_enough_and_one_is_not() -> None:
    rows = [between(record, UNKNOWN, SHARES[:2]) for record in KNOWN[:2]]
    assert met(np.vstack([others(), *rows]))[1] == pytest.approx(UNKNOWN[None])
    assert len(met(np.vstack([others(), rows[0]]))[1]) == 0


def test_rows_that_are_explained_have_no_part() -> None:
    X = np.vstack([others(), *(between(record, UNKNOWN, SHARES[:2]) for record in KNOWN[:2])])
    assert len(met(X, left_out=(30,))[1]) == 0


def test_a_ray_and_a_line_of_unknown_origin_meet() -> None:
    origin = np.array([9.0, 9.0, 1.0])
    X = np.vstack([others(), between(KNOWN[0], UNKNOWN, SHARES[:2]), between(origin, UNKNOWN, SHARES)])
    _, places, rows = met(X)
    assert places == pytest.approx(UNKNOWN[None])
    assert rows == [{30, 31, 32, 33, 34, 35}]


def test_rays_from_one_record_do_not_meet_in_it() -> None:
    ends = [UNKNOWN, np.array([8.0, 2.0, 9.0]), np.array([3.0, 9.0, 9.0])]
    X = np.vstack([others(), *(between(KNOWN[0], end, SHARES[:2]) for end in ends)])
    assert len(met(X)[1]) == 0


def test_nothing_to_start_from() -> None:
    X = np.vstack([others(), *(between(record, UNKNOWN, SHARES[:2]) for record in KNOWN[:3])])
    points, lines, places, radius = read(X)
    everything = np.arange(len(points.values))
    for open_points, known in ((everything[:1], places), (everything, places[:0]), (everything[:0], places)):
        found, rows = meet_rays(points, open_points, lines, known, radius[: len(known)], None)
        assert found.places.shape == (0, 3)
        assert rows == []


def test_random_rows_give_no_records() -> None:
    rng = np.random.default_rng(0)
    points = read_points(rng.random((2000, 3)))
    found, _ = meet_rays(
        points, np.arange(2000), find_lines(points), rng.random((100, 3)), np.full(100, 1e-15), None
    )
    assert len(found.places) == 0
