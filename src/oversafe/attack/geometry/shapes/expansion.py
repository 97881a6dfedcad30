"""From some recovered records to the others: real values lie on grids, interpolated ones do not.

Measurements are written with a few decimals, counts are whole, one-hot columns are 0 or 1. The records that
were recovered show each column's grid. A released row then lies on a ray from a known record along which all
columns come back to their grids at the same place: the other end of its segment. One released row and one
known record so give a new record, where lines need three rows each and three lines for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from oversafe.attack.geometry.shapes import _kernels
from oversafe.attack.geometry.shapes.neighbors import Cells
from oversafe.attack.geometry.shapes.points import BoolArray, FloatArray, IntArray
from oversafe.attack.geometry.shapes.segments import segments_of, with_new_records

# How many false rays are expected in a table.
ACCIDENTS = 1e-3
# The number of known records around a row that its segment may start from.
_STARTS = 40
# A grid has at most this many steps in a column's range.
_MOST_STEPS = 20_000
# Records lie within the released range, or a little outside.
_FARTHEST = 1.25
# A column whose grid has this step in its range has two values.
_TWO_VALUES = 0.9
# Values that agree to this many times their error are the same value.
_SAME = 8


@dataclass(frozen=True)
class Expansion:
    """The records after expansion; the first ones are those it began with.

    Parameters
    ----------
    places : array of shape (n_records, d)
        The records, in the unit cube.
    radius : array of float
        Their errors.
    rays : list of array of int
        For each added record, the known records from which rays lead to it.
    rows : list of array of int
        For each added record, the points on these rays.
    segments : array of shape (n, 2)
        The records between which each point lies, -1 for none.
    explained : array of bool
        Which points lie there, or led to a record.
    """

    places: FloatArray
    radius: FloatArray
    rays: list[IntArray]
    rows: list[IntArray]
    segments: IntArray
    explained: BoolArray


def expand(
    points: FloatArray,
    places: FloatArray,
    radius: FloatArray,
    noise: float,
    *,
    segments: IntArray | None = None,
    beyond: float = 0.0,
) -> Expansion:
    """Follow rays from known records to new ones until no released row tells of another.

    Parameters
    ----------
    points : array of shape (n, d)
        The released rows, in the unit cube.
    places, radius : array
        The known records and their errors.
    noise : float
        Bound on the error of a released row.
    segments : array of shape (n, 2), optional
        The known records between which each released row lies, as far as that has been searched.
    beyond : float
        How far beyond a record rows may lie, see :func:`~oversafe.attack.geometry.shapes.segments.segments_of`.
    """
    rays: list[IntArray] = []
    rows: list[IntArray] = []
    if segments is None:
        segments = segments_of(points, places, radius, noise, beyond=beyond)
    searched = len(places)
    explained = segments[:, 0] >= 0
    found, steps = _Rays.none(points.shape[1]), np.zeros(points.shape[1])
    dependencies: FloatArray | None = None
    followed = 0
    while followed < len(places) and not explained.all():
        before, steps = steps, grid_steps(places, np.maximum(radius, noise))
        if not np.allclose(before, steps, rtol=1e-6, atol=0):
            found, followed = _Rays.none(points.shape[1]), 0
        open_points = np.flatnonzero(~explained)
        explained[open_points] = (
            segments_of(points[open_points], places, radius, noise, beyond=beyond)[:, 0] >= 0
        )
        if not (steps > 0).any():
            break
        if dependencies is None:
            dependencies = _dependencies(points)
        open_points = np.flatnonzero(~explained)
        starts = _nearest(places, points[open_points])
        new = _follow(
            points, open_points, places, radius, starts, followed, steps, dependencies, noise, beyond
        )
        found = found.join(new).select(~explained)
        followed = len(places)
        for entries in _choose(found, places):
            best = entries[np.argmin(found.radius[entries])]
            apart = np.linalg.norm(places - found.place[best], axis=1)
            if (apart <= _SAME * (radius + found.radius[best])).any():
                # The ray leads to a record that is known; it lay too far from the row to be tried before.
                explained[found.point[entries]] = True
                continue
            places = np.vstack([places, found.place[best]])
            radius = np.append(radius, found.radius[best])
            rays.append(np.unique(found.start[entries]))
            rows.append(np.unique(found.point[entries]))
            explained[rows[-1]] = True
    segments = with_new_records(
        points, segments, places, radius, noise, n_new=len(places) - searched, beyond=beyond
    )
    explained |= segments[:, 0] >= 0
    return Expansion(places, radius, rays, rows, segments, explained)


def _nearest(places: FloatArray, queries: FloatArray) -> IntArray:
    count = min(len(places), _STARTS)
    if not len(queries):
        return np.empty((0, count), dtype=np.int64)
    result = np.empty((len(queries), count), dtype=np.int64)

    def store(rows: IntArray, neighbours: IntArray) -> None:
        result[rows] = neighbours

    Cells(places).search(queries, count, store)
    return result


@dataclass(frozen=True)
class _Rays:
    """Where rays from known records through released rows meet the grid."""

    place: FloatArray
    radius: FloatArray
    point: IntArray
    start: IntArray
    alone: BoolArray

    @classmethod
    def none(cls, d: int) -> _Rays:
        whole = np.empty(0, dtype=np.int64)
        return cls(np.empty((0, d)), np.empty(0), whole, whole, np.empty(0, dtype=bool))

    def join(self, other: _Rays) -> _Rays:
        return _Rays(*(np.concatenate([getattr(self, f.name), getattr(other, f.name)]) for f in fields(self)))

    def select(self, open_points: BoolArray) -> _Rays:
        """Return the rays through the points marked true."""
        keep = open_points[self.point]
        return _Rays(*(getattr(self, f.name)[keep] for f in fields(self)))


def _follow(
    points: FloatArray,
    open_points: IntArray,
    places: FloatArray,
    radius: FloatArray,
    starts: IntArray,
    followed: int,
    steps: FloatArray,
    dependencies: FloatArray,
    noise: float,
    beyond: float,
) -> _Rays:
    reach, accident, changing = _kernels.rays_to_grid(
        points, open_points, places, radius, starts, followed, steps, noise, _FARTHEST
    )
    limit = math.log(ACCIDENTS / (len(points) * _STARTS))
    row, column = np.nonzero((reach > 0) & (accident < limit))
    start, point, scale = starts[row, column], open_points[row], reach[row, column]
    error = noise + radius[start]
    way = points[point] - places[start]
    moves = np.abs(way) > _SAME * error[:, None]
    on_grid = steps > 0
    freedom = _freedom(dependencies, moves & on_grid)
    # Columns that depend on one another come back to the grid together; they are no evidence.
    share = (freedom - 1) / np.maximum(changing[row, column] - 1, 1)
    keep = accident[row, column] * share < limit
    # Between 0 and 1 there are only two ends, and the record is one of them.
    certain = ~(moves & (steps < _TWO_VALUES)).any(axis=1)
    keep |= certain
    # Off the grid a ray may lead anywhere, and from rows past a record to its mirror image: only another that leads to
    # the same place vouches for it.
    alone = np.asarray(~(moves & ~on_grid).any(axis=1)) & (beyond == 0)

    way = way[keep] * scale[keep, None]
    way[:, on_grid] = np.round(way[:, on_grid] / steps[on_grid]) * steps[on_grid]
    return _Rays(
        place=places[start[keep]] + way,
        radius=radius[start[keep]] + error[keep] * scale[keep],
        point=point[keep],
        start=start[keep],
        alone=alone[keep],
    )


def _dependencies(points: FloatArray) -> FloatArray:
    """Return the directions in which no row of the table differs from another, one per row."""
    if len(points) < points.shape[1]:
        return np.empty((0, points.shape[1]))
    triangle = np.linalg.qr(points - points.mean(axis=0), mode="r")
    _, spread, axes = np.linalg.svd(triangle, full_matrices=False)
    return axes[spread <= 1e-9 * spread.max(initial=1e-300)]


def _freedom(dependencies: FloatArray, moves: BoolArray) -> IntArray:
    """Return in how many independent ways a row can move in each set of columns.

    The columns of one category add up to 1: two of them that move, while the others stay, move together.
    """
    if not len(moves):
        return np.empty(0, dtype=np.int64)
    kinds, which = np.unique(moves, axis=0, return_inverse=True)
    ranks = [np.linalg.matrix_rank(dependencies[:, k], tol=1e-9) if k.any() else 0 for k in kinds]
    return (kinds.sum(axis=1) - np.array(ranks))[which.reshape(-1)]


def _choose(found: _Rays, places: FloatArray) -> list[IntArray]:
    """Return the rays of each new record, those with the most support first; a row belongs to one record.

    Where rays from different directions agree, no further test is needed. A segment's steps may have a
    common divisor, and then a ray meets the grid before its end; so a single ray counts only when no two
    agree, the one with the most rows first, and the search goes on with what it gives.
    """
    if not len(found.point):
        return []
    group = _same_places(found.place, found.radius)
    order = np.argsort(group, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
    way = found.place - places[found.start]
    length = np.linalg.norm(way, axis=1)
    way /= length[:, None]
    slack = _SAME * found.radius / length
    support = np.array([_directions(way[m], slack[m]) for m in members])
    taken = np.zeros(found.point.max() + 1, dtype=bool)
    chosen: list[IntArray] = []
    for number in np.argsort(-support, kind="stable"):
        if support[number] < 2:
            break
        free = members[number][~taken[found.point[members[number]]]]
        if _directions(way[free], slack[free]) >= 2:
            chosen.append(free)
            taken[found.point[free]] = True
    if chosen:
        return chosen
    alone = sorted((m for m in members if found.alone[m].any()), key=len, reverse=True)
    # A few at a time, so that the number of rounds stays small in a large table.
    for m in alone[: max(1, len(alone) // 20)]:
        if not taken[found.point[m]].any() and (way[m] @ way[m[0]] > 0).all():
            chosen.append(m)
            taken[found.point[m]] = True
    return chosen


def _directions(way: FloatArray, slack: FloatArray) -> int:
    """Return from how many directions rays come, opposite ones counted once: they are one line."""
    kept: list[int] = []
    for number in range(len(way)):
        before = way[kept]
        sine = np.linalg.norm(way[number] - (before @ way[number])[:, None] * before, axis=1)
        if (sine > slack[number] + slack[kept]).all():
            kept.append(number)
    return len(kept)


def grid_steps(places: FloatArray, error: FloatArray) -> FloatArray:
    """Return the step of the grid that each column's values lie on; 0 where they show none.

    Values on a grid repeat, or are whole steps apart, which values of full precision are not.
    """
    steps = np.zeros(places.shape[1])
    slack = _SAME * float(np.median(error))
    for column in range(places.shape[1]):
        values = np.sort(places[:, column])
        values = values[np.concatenate(([True], np.diff(values) > slack))]
        apart = np.diff(values)
        if len(values) == 2 and len(places) >= 5:
            steps[column] = apart[0]
        elif len(values) >= 4:
            steps[column] = _common_step(values - values[0], float(apart.min()), slack)
    return steps


def _common_step(values: FloatArray, smallest: float, slack: float) -> float:
    for parts in range(1, 50):
        step = smallest / parts
        if step < 100 * slack or step * _MOST_STEPS < values[-1]:
            return 0.0
        # The largest value fixes the step more precisely than the smallest difference does.
        step = values[-1] / round(values[-1] / step)
        off = np.abs(values - np.round(values / step) * step)
        if (off <= slack).all():
            accident = math.log(parts) + (len(values) - 2) * math.log(min(1.0, 2 * slack / step))
            return step if accident < math.log(1e-6) else 0.0
    return 0.0


def _same_places(places: FloatArray, radius: FloatArray) -> IntArray:
    """Number the places so that those which agree within their errors share a number."""
    reach = _SAME * float(radius.max(initial=0))
    pairs = KDTree(places).query_pairs(reach, output_type="ndarray")
    apart = np.linalg.norm(places[pairs[:, 0]] - places[pairs[:, 1]], axis=1)
    pairs = pairs[apart <= _SAME * (radius[pairs[:, 0]] + radius[pairs[:, 1]])]
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), (len(places), len(places)))
    return connected_components(graph, directed=False)[1].astype(np.int64)
