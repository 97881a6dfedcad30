"""Lines in a table: what interpolation between two records leaves behind.

SMOTE places each new row on the segment between two real records, so a table that it made holds sets of
three and more rows on one line, which a table of measurements does not. Both attacks of Section 4 of
"SMOTE and Mirrors" start from these lines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from oversafe._core.errors import InputError
from oversafe.attack.geometry.shapes import _kernels
from oversafe.attack.geometry.shapes.neighbors import Cells
from oversafe.attack.geometry.shapes.points import BoolArray, FloatArray, IntArray, Points

# Directions to a row closer than this many times the noise are too uncertain to compare.
CLOSEST = 1e3
# The number of interpolated rows per table that may be taken for grid points by accident.
GRID_ACCIDENTS = 1e-4
# How many neighbours are searched at first, and how many times as many for the rows still on no line.
_FIRST = 64
_WIDER = 4
# A point without a line is searched again when it is this many times as far.
_FARTHER = 1.2
# The rows are searched in turns, up to these shares of them.
_TURNS = (0.0, 0.1, 0.3, 1.0)


@dataclass(frozen=True)
class Lines:
    """Lines through at least three distinct points.

    Parameters
    ----------
    indptr : array of shape (n_lines + 1,)
        The members of line i are ``indices[indptr[i]:indptr[i + 1]]``.
    indices : array of int
        The members of each line, in their order along it.
    position : array of float
        Their signed distances from the line's centre.
    interpolated : array of bool
        Whether a member lies strictly inside its line and at no simple fraction of it.
    centre : array of shape (n_lines, d)
        Mean of the members, the paper's midpoint.
    direction : array of shape (n_lines, d)
        Unit vector from the first member to the last.
    noise : float
        Bound on the error of a member's place.
    """

    indptr: IntArray
    indices: IntArray
    position: FloatArray
    interpolated: BoolArray
    centre: FloatArray
    direction: FloatArray
    noise: float

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @cached_property
    def t_min(self) -> FloatArray:
        """Position of each line's first member."""
        return self.position[self.indptr[:-1]]

    @cached_property
    def t_max(self) -> FloatArray:
        """Position of each line's last member."""
        return self.position[self.indptr[1:] - 1]

    @cached_property
    def length(self) -> FloatArray:
        """Distance from each line's first member to its last."""
        return self.t_max - self.t_min

    @cached_property
    def moves(self) -> BoolArray:
        """In which columns each line moves."""
        return np.abs(self.direction) * self.length[:, None] > 8 * self.noise

    @cached_property
    def sizes(self) -> IntArray:
        """Number of members of each line."""
        return np.diff(self.indptr)

    @cached_property
    def line_of_member(self) -> IntArray:
        """The line that each entry of ``indices`` belongs to."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def error_at(self, line: IntArray, position: FloatArray) -> FloatArray:
        """Return the error of each line at a position, which grows beyond its outermost members."""
        return self.noise * (1 + 2 * np.abs(position) / self.length[line])

    def members(self, line: int) -> IntArray:
        """Return the members of a line in their order along it."""
        return self.indices[self.indptr[line] : self.indptr[line + 1]]

    def select(self, keep: BoolArray) -> Lines:
        """Return the lines marked true."""
        entries = np.repeat(keep, self.sizes)
        return Lines(
            indptr=np.concatenate(([0], np.cumsum(self.sizes[keep]))),
            indices=self.indices[entries],
            position=self.position[entries],
            interpolated=self.interpolated[entries],
            centre=self.centre[keep],
            direction=self.direction[keep],
            noise=self.noise,
        )


def find_lines(
    points: Points,
    n_neighbors: int | None = None,
    *,
    among: IntArray | None = None,
    searched: IntArray | None = None,
    n_jobs: int | None = None,
) -> Lines:
    """Find the lines through at least three points that interpolation explains and the table does not.

    A line counts when at least one of its members must have been interpolated: it lies strictly inside,
    at no simple fraction of the way from the first member to the last, as the points of a grid do. Rows
    that differ in one column only are always on one line; of these, members off the column's own grid
    count.

    Parameters
    ----------
    points : Points
        The table.
    n_neighbors : int, optional
        How many nearest neighbours of each point to search; by default :func:`default_neighbors`.
    among : array of int, optional
        Look at these points only.
    searched : array of int, optional
        For each point of the table, how many of its neighbours earlier searches looked at and found no line
        through it; brought up to date. The search does not start again from a point until it goes
        farther by a fifth at least.
    n_jobs : int, optional
        Number of threads, as in joblib.

    Returns
    -------
    Lines
        Their members are numbered as in ``points``.
    """
    values = points.values if among is None else np.ascontiguousarray(points.values[among])
    n, d = values.shape
    if points.reason is not None or n < 3:
        return no_lines(d, points.noise)
    widest = min(n - 1, n_neighbors or default_neighbors(n))
    chance = GRID_ACCIDENTS / n
    before = np.zeros(n, dtype=np.int64) if searched is None else searched[among]
    groups = _collinear_groups(values, points, widest, chance, before, n_jobs)
    if searched is not None:
        searched[among] = before
    if not len(groups.owners):
        return no_lines(d, points.noise)
    label = _kernels.same_line(
        values, groups.owners, groups.limits, groups.members, *groups.of_points(n), points.noise
    )
    lines = fit_groups(values, groups, label, points.noise)
    lines = _without_conflicts(with_evidence(lines, values, points, chance, widest), n)
    if among is not None:
        lines = replace(lines, indices=among[lines.indices])
    return lines


@dataclass(frozen=True)
class Groups:
    """For some points, the neighbours with which each is on one line; sorted by owner."""

    owners: IntArray
    limits: IntArray
    members: IntArray

    @classmethod
    def gather(cls, parts: list[tuple[IntArray, IntArray, IntArray]]) -> Groups:
        """Return the groups of several searches together."""
        none = np.empty(0, dtype=np.int64)
        owners = np.concatenate([none, *(part[0] for part in parts)])
        sizes = np.concatenate([none, *(np.diff(part[1]) for part in parts)])
        members = np.concatenate([none, *(part[2] for part in parts)])
        order = np.argsort(owners, kind="stable")
        start = np.cumsum(sizes) - sizes
        limits = np.concatenate(([0], np.cumsum(sizes[order])))
        places = np.arange(limits[-1]) + np.repeat(start[order] - limits[:-1], sizes[order])
        return cls(owners[order], limits, members[places])

    def of_points(self, n: int) -> tuple[IntArray, IntArray]:
        """Return the limits of each point's groups in a list of groups, and the list."""
        group = np.arange(len(self.owners))
        points = np.concatenate((self.owners, self.members))
        groups = np.concatenate((group, np.repeat(group, np.diff(self.limits))))
        order = np.argsort(points, kind="stable")
        return np.searchsorted(points[order], np.arange(n + 1)), groups[order]


def _collinear_groups(
    values: FloatArray, points: Points, widest: int, chance: float, searched: IntArray, n_jobs: int | None
) -> Groups:
    """Search the nearest neighbours of every point, then more of those that are on no line yet.

    Points whose neighbours were ``searched`` almost as far are left out; the array is brought up to date.
    """
    axis = random_axis(values.shape[1])
    units = points.span / points.span.max()
    metrics = [values]
    if units.min() < 0.1:
        # SMOTE may have chosen its neighbours in the table's own units; a segment that is short there can
        # be long in the unit cube.
        metrics.append(values * units)
    cells = [Cells(metric) for metric in metrics]
    parts: list[tuple[IntArray, IntArray, IntArray]] = []
    m = min(_FIRST, widest)
    # In random order, so that what is on a line by then need not be searched.
    waiting = np.random.default_rng(0).permutation(np.flatnonzero(widest >= _FARTHER * searched))
    inside, on_line = np.zeros(len(values), dtype=bool), np.zeros(len(values), dtype=bool)
    while True:
        for start, stop in pairwise((len(waiting) * np.array(_TURNS)).astype(int)):
            queries = waiting[start:stop]
            queries = np.sort(queries[~inside[queries]])
            for metric, those in zip(metrics, cells, strict=True):

                def groups_of(
                    rows: IntArray, neighbours: IntArray, queries: IntArray = queries
                ) -> tuple[IntArray, IntArray, IntArray]:
                    rows = queries[rows]
                    projection = _kernels.projections(values, rows, neighbours, axis, CLOSEST * points.noise)
                    order = np.argsort(projection, axis=1)
                    return _kernels.collinear_groups(
                        values, rows, neighbours, projection, order, points.noise, chance
                    )

                found = those.search(metric[queries], m + 1, groups_of, n_jobs)
                parts += found
                for owners, limits, members in found:
                    on_line[owners] = on_line[members] = True
                    if points.exact:
                        _kernels.mark_inside(values, owners, limits, members, inside)
        if m >= widest:
            searched[waiting[~on_line[waiting]]] = widest
            return Groups.gather(parts)
        waiting = np.sort(waiting[~on_line[waiting]])
        m = min(_WIDER * m, widest)


def together(moves: BoolArray, same: IntArray) -> BoolArray:
    """Return which independent columns move, from which columns do and which are the same."""
    numbers = np.unique(same, return_inverse=True)[1]
    result = np.zeros((len(moves), int(numbers.max(initial=-1)) + 1), dtype=bool)
    for column, number in enumerate(numbers):
        result[:, number] |= moves[:, column]
    return result


def random_axis(d: int) -> FloatArray:
    """Return a fixed unit vector that is parallel to nothing in particular."""
    axis = np.random.default_rng(0).normal(size=d)
    return axis / np.linalg.norm(axis)


def default_neighbors(n: int) -> int:
    """Return how many neighbours to search in a table of n points: 1000, fewer above 20,000 points."""
    return max(100, min(1000, 20_000_000 // n))


def neighbors_to_search(
    points: Points, n_neighbors: int | Literal["auto"], k_neighbors: int, ratio: float | None
) -> int:
    """Return how many neighbours of each point to search, from what the attacker knows.

    Raises
    ------
    InputError
        If a setting is not a positive number.
    """
    for name, value in (("n_neighbors", n_neighbors), ("k_neighbors", k_neighbors), ("ratio", ratio)):
        if value is not None and value != "auto" and not (isinstance(value, (int, float)) and value > 0):
            raise InputError(f"{name} is {value!r}; expected a positive number")
    n = len(points.values)
    if n_neighbors != "auto":
        wanted = int(n_neighbors)
    elif ratio is not None:
        # The paper's 2 k r.
        wanted = math.ceil(2 * k_neighbors * ratio)
    else:
        wanted = default_neighbors(n)
    return max(0, min(n - 1, max(2, wanted)))


def fit_groups(values: FloatArray, groups: Groups, label: IntArray, noise: float) -> Lines:
    """Return one line per label, through the first and the last of the members of its groups."""
    n = len(values)
    owners, limits, members = groups.owners, groups.limits, groups.members
    _, label = np.unique(label, return_inverse=True)
    n_lines = int(label.max()) + 1
    entries = np.unique(np.concatenate((np.repeat(label, np.diff(limits)) * n + members, label * n + owners)))
    line, index = entries // n, entries % n

    reach = np.linalg.norm(values[members[limits[:-1]]] - values[owners], axis=1)
    longest = np.empty(n_lines, dtype=np.int64)
    by_reach = np.argsort(reach)
    longest[label[by_reach]] = by_reach
    start = values[owners[longest]]
    direction = values[members[limits[longest]]] - start
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    offset = values[index] - start[line]
    position = np.einsum("ij,ij->i", offset, direction[line])
    off = np.linalg.norm(offset - position[:, None] * direction[line], axis=1)
    # Extrapolated from the longest group, a member's distance has the errors of four points at most twice.
    keep = off <= 8 * noise
    line, index, position = line[keep], index[keep], position[keep]
    order = np.lexsort((position, line))
    line, index = line[order], index[order]

    sizes = np.bincount(line, minlength=n_lines)
    indptr = np.concatenate(([0], np.cumsum(sizes)))
    direction = values[index[indptr[1:] - 1]] - values[index[indptr[:-1]]]
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    centre = np.add.reduceat(values[index], indptr[:-1], axis=0) / sizes[:, None]
    return Lines(
        indptr=indptr,
        indices=index,
        position=np.einsum("ij,ij->i", values[index] - centre[line], direction[line]),
        interpolated=np.zeros(len(index), dtype=bool),
        centre=centre,
        direction=direction,
        noise=noise,
    )


def from_members(values: FloatArray, indptr: IntArray, indices: IntArray, noise: float) -> Lines:
    """Return the lines that fit given members best, by least squares of their distances."""
    n_lines = len(indptr) - 1
    centre, direction = np.empty((n_lines, values.shape[1])), np.empty((n_lines, values.shape[1]))
    position, indices = np.empty(len(indices)), indices.copy()
    for line in range(n_lines):
        those = slice(indptr[line], indptr[line + 1])
        centre[line] = values[indices[those]].mean(axis=0)
        direction[line] = np.linalg.svd(values[indices[those]] - centre[line], full_matrices=False)[2][0]
        along = (values[indices[those]] - centre[line]) @ direction[line]
        order = np.argsort(along)
        indices[those], position[those] = indices[those][order], along[order]
    inner = np.ones(len(indices), dtype=bool)
    inner[indptr[:-1]] = inner[indptr[1:] - 1] = False
    return Lines(indptr, indices, position, inner, centre, direction, noise)


def with_evidence(lines: Lines, values: FloatArray, points: Points, chance: float, m: int) -> Lines:
    """Mark the members that only interpolation explains, and keep the lines with one that are no accident."""
    line = lines.line_of_member
    length = lines.length[line]
    share = (lines.position - lines.t_min[line]) / length
    edge = 8 * lines.noise / length
    interpolated = (share > edge) & (share < 1 - edge)
    interpolated &= ~_kernels.simple_fractions(share, 4 * lines.noise / length, chance)

    varies = lines.moves
    freedom = together(varies, points.same).sum(axis=1)
    single = np.where(freedom < 2, varies.argmax(axis=1), -1)
    off_grid = {column: points.off_grid(column, values[:, column]) for column in set(single.tolist()) - {-1}}
    for column, off in off_grid.items():
        interpolated &= off[lines.indices] | (single[line] != column)
    if points.exact:
        # Interpolation gives a value to one row only: a member whose values all occur elsewhere was measured.
        interpolated &= (_alone(values)[lines.indices] & varies[line]).any(axis=1)
    lines = replace(lines, interpolated=interpolated)
    keep = np.logical_or.reduceat(interpolated, lines.indptr[:-1])
    keep[keep] = is_no_accident(lines.select(keep), values, points, m)

    # If interpolation put values off a column's grid, lines explain most of them. Otherwise the column has
    # such values by itself, like a measurement that is cut off at two limits.
    explained = np.zeros(len(values), dtype=bool)
    explained[lines.indices[np.repeat(keep, lines.sizes)]] = True
    for column, off in off_grid.items():
        if 2 * (off & explained).sum() < off.sum():
            keep &= single != column
    return lines.select(keep)


def _alone(values: FloatArray) -> BoolArray:
    """Return which values occur once in their column."""
    result = np.empty(values.shape, dtype=bool)
    for column in range(values.shape[1]):
        _, number, counts = np.unique(values[:, column], return_inverse=True, return_counts=True)
        result[:, column] = (counts == 1)[number.reshape(-1)]
    return result


def _without_conflicts(lines: Lines, n: int) -> Lines:
    """Of lines that share two points, which two lines cannot, keep the one with the most members.

    They arise where rounding is coarse: a point beside a crossing seems to be on a line with any two
    neighbours on the other lines through it.
    """
    on = csr_array(
        (np.ones(len(lines.indices), dtype=np.int64), lines.indices, lines.indptr), (len(lines), n)
    )
    shared = (on @ on.T).tocoo()
    clash = (shared.data > 1) & (shared.row != shared.col)
    if not clash.any():
        return lines
    rivals: dict[int, list[int]] = {}
    for a, b in zip(shared.row[clash].tolist(), shared.col[clash].tolist(), strict=True):
        rivals.setdefault(a, []).append(b)
    keep = np.ones(len(lines), dtype=bool)
    chosen: set[int] = set()
    for number in sorted(rivals, key=lambda a: (-lines.sizes[a], -lines.length[a])):
        if chosen.isdisjoint(rivals[number]):
            chosen.add(number)
        else:
            keep[number] = False
    return lines.select(keep)


def is_no_accident(lines: Lines, values: FloatArray, points: Points, m: int) -> BoolArray:
    """Return which lines chance does not produce, with their errors, among so many rows.

    A row at a distance from the others lies on their line by accident with about the share of directions
    that the errors cover: (error / distance) ** (f - 1) when the line runs through f columns. Any row may
    be the first of a line, any of its m neighbours the second and each further one; fewer than one such
    line is to be expected in the table.
    """
    varies = lines.moves
    freedom = np.minimum(together(varies, points.same).sum(axis=1), points.dimensions)
    line = lines.line_of_member[1:-1]
    gap = np.diff(lines.position)
    nearest = np.minimum(gap[:-1], gap[1:])
    distance = np.where(lines.interpolated[1:-1], nearest / (4 * lines.noise), 1)
    surprise = (freedom[line] - 1) * np.log(np.maximum(distance, 1))

    def certain(rows: FloatArray, neighbours: FloatArray) -> BoolArray:
        evidence = np.maximum(surprise - np.log(neighbours[line]), 0)
        return np.bincount(line, evidence, minlength=len(lines)) >= np.log(rows * neighbours)

    rows, neighbours = np.full(len(lines), float(len(values))), np.full(len(lines), float(m))
    open_cases = ~certain(rows, neighbours) & (freedom > 1)
    for number in np.flatnonzero(open_cases):
        # Only rows that agree with the line in its constant columns can lie on it.
        constant = ~varies[number]
        if constant.any():
            off = np.abs(values[:, constant] - lines.centre[number, constant])
            rows[number] = neighbours[number] = (off <= 8 * lines.noise).all(axis=1).sum()
    return certain(rows, neighbours) | (freedom < 2)


def no_lines(d: int, noise: float) -> Lines:
    """Return no line in d dimensions."""
    empty = np.empty(0, dtype=np.int64)
    return Lines(
        indptr=np.zeros(1, dtype=np.int64),
        indices=empty,
        position=np.empty(0),
        interpolated=np.empty(0, dtype=bool),
        centre=np.empty((0, d)),
        direction=np.empty((0, d)),
        noise=noise,
    )
