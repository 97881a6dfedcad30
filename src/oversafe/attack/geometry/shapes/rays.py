"""From some recovered records to the others: rays from known records that meet.

Once a record is known, two released rows in the same direction from it give a line, where without it three
were needed. The lines that start in different known records and meet beyond their rows give the record in
which they end.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oversafe.attack.geometry.shapes import _kernels
from oversafe.attack.geometry.shapes.line_intersections import Meetings, find_meetings
from oversafe.attack.geometry.shapes.lines import (
    CLOSEST,
    GRID_ACCIDENTS,
    Groups,
    Lines,
    fit_groups,
    no_lines,
    random_axis,
    with_evidence,
)
from oversafe.attack.geometry.shapes.neighbors import Cells
from oversafe.attack.geometry.shapes.points import FloatArray, IntArray, Points

# How many rows around a record are searched for rays from it.
_NEIGHBOURS = 256


def meet_rays(
    points: Points,
    open_points: IntArray,
    lines: Lines,
    places: FloatArray,
    radius: FloatArray,
    n_jobs: int | None,
    *,
    min_lines: int | None = None,
) -> tuple[Meetings, list[IntArray]]:
    """Find the records in which lines from known records end, and those on which they lie.

    Parameters
    ----------
    points : Points
        The table.
    open_points : array of int
        The points that are on no segment between known records.
    lines : Lines
        The lines that are known from their rows alone.
    places, radius : array
        The known records and their errors.
    n_jobs : int, optional
        Number of threads, as in joblib.
    min_lines : int, optional
        How many lines must end in a record, see
        :func:`~oversafe.attack.geometry.shapes.line_intersections.find_meetings`.

    Returns
    -------
    meetings : Meetings
        The new records.
    rows : list of array of int
        The points on the lines that end in each.
    """
    rays = _rays(points, open_points, places, radius, n_jobs)
    is_open = np.zeros(len(points.values), dtype=bool)
    is_open[open_points] = True
    on_ray = np.zeros(len(points.values), dtype=bool)
    on_ray[rays.indices[rays.indices < len(points.values)]] = True
    rest = lines
    if len(lines):
        still_open = np.logical_and.reduceat(
            is_open[lines.indices] & ~on_ray[lines.indices], lines.indptr[:-1]
        )
        rest = lines.select(still_open)
    together = _join(rays, rest)
    # The record is one end of a ray; the other is free.
    known = rays.indices >= len(points.values)
    taken = set()
    for side, entry in enumerate((rays.indptr[:-1], rays.indptr[1:] - 1)):
        taken |= set((2 * np.flatnonzero(known[entry]) + side).tolist())
    found = find_meetings(together, points, min_lines, taken)
    rows = [
        np.unique(np.concatenate([_rows_of(together, line, len(points.values)) for line in those]))
        for those in found.lines
    ]
    return found, rows


def _rows_of(lines: Lines, line: int, n: int) -> IntArray:
    members = lines.members(line)
    return members[members < n]


def _rays(
    points: Points, open_points: IntArray, places: FloatArray, radius: FloatArray, n_jobs: int | None
) -> Lines:
    """Return the lines through a known record and at least two open points on one side of it.

    Their members are numbered as the points, the records after them.
    """
    n = len(points.values)
    stack = np.vstack([points.values, places])
    if len(open_points) < 2 or not len(places):
        return no_lines(stack.shape[1], points.noise)
    noise = max(points.noise, float(np.median(radius)))
    m = min(_NEIGHBOURS, len(open_points))
    axis = random_axis(stack.shape[1])
    chance = GRID_ACCIDENTS / n

    def groups_of(rows: IntArray, neighbours: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        queries, neighbours = n + rows, open_points[neighbours]
        projection = _kernels.projections(stack, queries, neighbours, axis, CLOSEST * noise)
        order = np.argsort(projection, axis=1)
        return _kernels.collinear_groups(stack, queries, neighbours, projection, order, noise, chance)

    groups = Groups.gather(Cells(points.values[open_points]).search(places, m, groups_of, n_jobs))
    if not len(groups.owners):
        return no_lines(stack.shape[1], noise)
    lines = fit_groups(stack, groups, np.arange(len(groups.owners)), noise)
    first, last = lines.indices[lines.indptr[:-1]], lines.indices[lines.indptr[1:] - 1]
    lines = lines.select((first >= n) != (last >= n))
    return with_evidence(lines, stack, points, chance, m)


def _join(a: Lines, b: Lines) -> Lines:
    return replace(
        a,
        indptr=np.concatenate((a.indptr, a.indptr[-1] + b.indptr[1:])),
        indices=np.concatenate((a.indices, b.indices)),
        position=np.concatenate((a.position, b.position)),
        interpolated=np.concatenate((a.interpolated, b.interpolated)),
        centre=np.concatenate((a.centre, b.centre)),
        direction=np.concatenate((a.direction, b.direction)),
        noise=max(a.noise, b.noise),
    )
