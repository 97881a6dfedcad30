"""Lines in a table: what interpolation between two records leaves behind.

SMOTE places each new row on the segment between two real records, so a table that it made holds sets of
three and more rows on one line, which a table of measurements does not. Both attacks of Section 4 of
"SMOTE and Mirrors" start from these lines.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.sparse import csr_array

from oversafe.attack import _kernels
from oversafe.errors import InputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Directions to a row closer than this many times the noise are too uncertain to compare.
CLOSEST = 1e3
# Above this noise lines cannot be told from accidents: directions would be uncertain below a hundredth of a
# column's range.
COARSEST = 1e-5
# The number of interpolated rows per table that may be taken for grid points by accident.
GRID_ACCIDENTS = 1e-4
# Two values are a column's grid when at least this share of the rows has one of them.
GRID_SHARE = 0.1
_CHUNK_BYTES = 2**25


@dataclass(frozen=True)
class Points:
    """The distinct rows of a table as points in the unit cube.

    Parameters
    ----------
    values : array of shape (n, d)
        The distinct rows in the columns that vary, each column scaled to [0, 1].
    noise : float
        Bound on the distance between a point and where exact arithmetic would have put it.
    row : array of int
        For each row of the table, its point.
    frame : DataFrame
        The table as given.
    columns : array of int
        The positions of the columns in ``values``.
    low, span : array of float
        Smallest value and range of these columns, in the table's units.
    same : array of int
        For each of these columns, a number shared by columns that are one another's linear functions.
    grid : tuple
        For each of these columns, origin, step and error of the grid on which its repeated values lie, or
        None.
    numeric : frozenset of int
        The positions of all numeric columns without missing values, constant ones too.
    left_out : tuple
        The names of the columns that have no part in the geometry: not numeric, or with missing values.
    """

    values: FloatArray
    noise: float
    row: IntArray
    frame: pd.DataFrame
    columns: IntArray
    low: FloatArray
    span: FloatArray
    same: IntArray
    grid: tuple[tuple[float, float, float] | None, ...]
    numeric: frozenset[int]
    left_out: tuple[Hashable, ...]

    def off_grid(self, column: int, values: FloatArray) -> BoolArray:
        """Return which values are off the grid of a column; none where the column has no grid."""
        grid = self.grid[column]
        if grid is None:
            return np.zeros(len(values), dtype=bool)
        origin, step, error = grid
        return np.abs(values - origin - step * np.round((values - origin) / step)) > error

    @property
    def reason(self) -> str | None:
        """Why no line can be sought, or None."""
        if len(self.values) < 3:
            return f"a line needs at least 3 distinct rows, the table has {len(self.values)}"
        if self.noise > COARSEST:
            return f"the values are exact to {self.noise:.0e} of their range only, too coarse to tell a line"
        independent = len(np.unique(self.same))
        if independent < 2:
            return (
                f"a line means something in at least 2 varying numeric columns, the table has {independent}"
            )
        return None


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

    @property
    def t_min(self) -> FloatArray:
        """Position of each line's first member."""
        return self.position[self.indptr[:-1]]

    @property
    def t_max(self) -> FloatArray:
        """Position of each line's last member."""
        return self.position[self.indptr[1:] - 1]

    @property
    def length(self) -> FloatArray:
        """Distance from each line's first member to its last."""
        return self.t_max - self.t_min

    @property
    def sizes(self) -> IntArray:
        """Number of members of each line."""
        return np.diff(self.indptr)

    @property
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


def read_points(X: Any, tolerance: float | None = None) -> Points:
    """Return the distinct rows of a table as points, with a bound on their rounding error.

    Parameters
    ----------
    X : DataFrame or array of shape (n_rows, n_columns)
        The table. Columns that are not numeric or have missing values are left out.
    tolerance : float, optional
        Error of a value relative to its column's range, for tables that were rounded. By default it
        follows from the precision of the column's dtype.

    Raises
    ------
    InputError
        If the table is empty, not two-dimensional, or has infinite values.
    """
    frame = _as_frame(X)
    usable = [
        position
        for position, dtype in enumerate(frame.dtypes)
        if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype)
    ]
    values = np.empty((len(frame), len(usable)))
    for target, position in enumerate(usable):
        values[:, target] = frame.iloc[:, position].to_numpy(dtype=float, na_value=np.nan)
        infinite = np.flatnonzero(np.isinf(values[:, target]))
        if len(infinite):
            raise InputError(
                f"column {frame.columns[position]!r} has {len(infinite)} infinite values "
                f"(first in row {infinite[0]}); remove them or mark them as missing"
            )
    complete = ~np.isnan(values).any(axis=0)
    columns = np.array(usable, dtype=np.int64)[complete]
    numeric = frozenset(columns.tolist())
    left_out = tuple(name for i, name in enumerate(frame.columns) if i not in numeric)
    values = values[:, complete]

    low = values.min(axis=0)
    span = values.max(axis=0) - low
    if not np.isfinite(span).all():
        raise InputError("the range of a column exceeds what a float can hold; rescale the table")
    epsilon = np.array([_epsilon(frame.dtypes.iloc[i]) for i in columns])
    varies = span > 0
    values, columns, low, span, epsilon = (
        values[:, varies], columns[varies], low[varies], span[varies], epsilon[varies]
    )  # fmt: skip
    largest = np.abs(values).max(axis=0, initial=0)
    # A synthetic value x + u (y - x) is off by at most 2.5 units of the largest value's last place, a
    # scaler that is applied before and undone after by 1.5 more, our own scaling by one of the range's.
    error = epsilon * (4 * largest / span + 1)
    if tolerance is not None:
        if not 0 < tolerance < 1:
            raise InputError(f"tolerance is {tolerance!r}; expected a share of the columns' range, as 1e-6")
        error = np.maximum(error, tolerance)
    noise = float(np.linalg.norm(error))

    scaled = (values - low) / span
    if scaled.shape[1]:
        distinct, row = np.unique(scaled, axis=0, return_inverse=True)
        row = row.reshape(-1)
    else:
        distinct, row = scaled[:1], np.zeros(len(frame), dtype=np.int64)
    return Points(
        values=np.ascontiguousarray(distinct),
        noise=noise,
        row=row.astype(np.int64),
        frame=frame,
        columns=columns,
        low=low,
        span=span,
        same=_dependent_columns(distinct, 2 * error),
        grid=tuple(_grid(distinct[:, i], error[i]) for i in range(len(columns))),
        numeric=numeric,
        left_out=left_out,
    )


def find_lines(
    points: Points,
    n_neighbors: int | None = None,
    *,
    among: IntArray | None = None,
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
        return _no_lines(d, points.noise)
    m = min(n - 1, n_neighbors or default_neighbors(n))
    chance = GRID_ACCIDENTS / n
    axis = random_axis(d)
    metrics = [np.ascontiguousarray(values.T)]
    units = points.span / points.span.max()
    if units.min() < 0.1:
        # SMOTE may have chosen its neighbours in the table's own units; a segment that is short there can
        # be long in the unit cube.
        metrics.append(np.ascontiguousarray((values * units).T))

    def search(queries: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        neighbours = _neighbours(metrics, queries, m)
        projection = _kernels.projections(values, queries, neighbours, axis, CLOSEST * points.noise)
        order = np.argsort(projection, axis=1)
        return _kernels.collinear_groups(values, queries, neighbours, projection, order, points.noise, chance)

    step = max(1, _CHUNK_BYTES // (8 * n))
    found = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(search)(np.arange(start, min(start + step, n))) for start in range(0, n, step)
    )
    owners = np.concatenate([part[0] for part in found])
    members = np.concatenate([part[2] for part in found])
    limits = np.concatenate(([0], np.cumsum(np.concatenate([np.diff(part[1]) for part in found]))))
    if not len(owners):
        return _no_lines(d, points.noise)
    first_group = np.searchsorted(owners, np.arange(n + 1))
    label = _kernels.same_line(values, owners, limits, members, first_group, points.noise)
    lines = _fit(values, owners, limits, members, label, points.noise)
    lines = _without_conflicts(_with_evidence(lines, values, points, chance, m), n)
    if among is not None:
        lines = replace(lines, indices=among[lines.indices])
    return lines


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


def _as_frame(X: Any) -> pd.DataFrame:
    if not isinstance(X, pd.DataFrame):
        array = np.asarray(X)
        if array.ndim != 2:
            raise InputError(
                f"the table has {array.ndim} dimension(s), expected 2; pass a DataFrame or a 2-D array"
            )
        X = pd.DataFrame(array)
        if array.dtype == object:
            X = X.infer_objects()
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise InputError(f"the table is empty (shape {X.shape}); pass the released rows")
    return X


def _epsilon(dtype: Any) -> float:
    dtype = getattr(dtype, "numpy_dtype", dtype)
    if isinstance(dtype, np.dtype) and dtype.kind == "f":
        return max(float(np.finfo(dtype).eps), float(np.finfo(float).eps))
    return float(np.finfo(float).eps)


def _dependent_columns(values: FloatArray, error: FloatArray) -> IntArray:
    """Number the columns so that those which are each other's linear function share a number."""
    n, d = values.shape
    same = np.arange(d)
    # In [0, 1] a dependent column equals the other or its mirror image about 1/2. A weighted sum of what is
    # left of 1/2 is then the same up to sign, so dependent columns are neighbours in its order.
    order = np.argsort(np.abs(np.random.default_rng(0).normal(size=n) @ (values - 0.5)))
    for a, b in pairwise(order.tolist()):
        limit = error[a] + error[b]
        if (np.abs(values[:, a] - values[:, b]) <= limit).all() or (
            np.abs(values[:, a] + values[:, b] - 1) <= limit
        ).all():
            same[b] = same[a]
    return same


def _neighbours(metrics: list[FloatArray], queries: IntArray, m: int) -> IntArray:
    """Return about m nearest neighbours of each query, in equal parts by each metric.

    A query may be listed among its own neighbours, also in place of one that two metrics share.
    """
    n = metrics[0].shape[1]
    if m + 1 >= n:
        return np.ascontiguousarray(np.broadcast_to(np.arange(n), (len(queries), n)))
    share = -(-m // len(metrics))
    parts = [
        np.argpartition(_kernels.squared_distances(columns, queries), share, axis=1)[:, : share + 1]
        for columns in metrics
    ]
    neighbours = np.ascontiguousarray(np.concatenate(parts, axis=1), dtype=np.int64)
    if len(parts) > 1:
        neighbours.sort(axis=1)
        repeated = neighbours[:, 1:] == neighbours[:, :-1]
        neighbours[:, 1:][repeated] = np.broadcast_to(queries[:, None], repeated.shape)[repeated]
    return neighbours


def _fit(
    values: FloatArray, owners: IntArray, limits: IntArray, members: IntArray, label: IntArray, noise: float
) -> Lines:
    """Return one line per label, through the first and the last of the members of its groups."""
    n = len(values)
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


def _with_evidence(lines: Lines, values: FloatArray, points: Points, chance: float, m: int) -> Lines:
    """Mark the members that only interpolation explains, and keep the lines with one that are no accident."""
    line = lines.line_of_member
    length = lines.length[line]
    share = (lines.position - lines.t_min[line]) / length
    edge = 8 * lines.noise / length
    interpolated = (share > edge) & (share < 1 - edge)
    interpolated &= ~_kernels.simple_fractions(share, 4 * lines.noise / length, chance)

    varies = np.abs(lines.direction) * lines.length[:, None] > 8 * lines.noise
    freedom = np.array([len(np.unique(points.same[columns])) for columns in varies], dtype=np.int64)
    single = np.where(freedom < 2, varies.argmax(axis=1), -1)
    off_grid = {column: points.off_grid(column, values[:, column]) for column in set(single.tolist()) - {-1}}
    for column, off in off_grid.items():
        interpolated &= off[lines.indices] | (single[line] != column)
    lines = replace(lines, interpolated=interpolated)
    keep = np.logical_or.reduceat(interpolated, lines.indptr[:-1])
    keep[keep] = _is_no_accident(lines.select(keep), values, varies[keep], freedom[keep], m)

    # If interpolation put values off a column's grid, lines explain most of them. Otherwise the column has
    # such values by itself, like a measurement that is cut off at two limits.
    explained = np.zeros(len(values), dtype=bool)
    explained[lines.indices[np.repeat(keep, lines.sizes)]] = True
    for column, off in off_grid.items():
        if 2 * (off & explained).sum() < off.sum():
            keep &= single != column
    return lines.select(keep)


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


def _is_no_accident(
    lines: Lines, values: FloatArray, varies: BoolArray, freedom: IntArray, m: int
) -> BoolArray:
    """Return which lines chance does not produce, with their errors, among so many rows.

    A row at a distance from the others lies on their line by accident with about the share of directions
    that the errors cover: (error / distance) ** (f - 1) when the line runs through f columns. Any row may
    be the first of a line, any of its m neighbours the second and each further one; fewer than one such
    line is to be expected in the table.
    """
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


def _grid(values: FloatArray, error: float) -> tuple[float, float, float] | None:
    """Return origin, step and error of the grid that a column's repeated values lie on, or None.

    Interpolation gives a value to one row only, so a repeated value was measured, or both ends of the
    segment had it.
    """
    distinct, counts = np.unique(values, return_counts=True)
    repeated = distinct[counts > 1]
    # Two values lie on a grid whatever they are, so that they must make up for it in number.
    if len(repeated) < 2 or (len(repeated) == 2 and counts[counts > 1].sum() < GRID_SHARE * len(values)):
        return None
    # Euclid's algorithm multiplies the error by the number of steps in the range; the root of the error
    # lies between that and the step for up to 1 / (10 sqrt(error)) steps.
    smallest = error**0.5
    step = 0.0
    for gap in np.diff(repeated):
        while gap > smallest:
            step, gap = gap, abs(step - gap * round(step / gap))
        if step < 10 * smallest:
            return None
    whole = repeated[-1] - repeated[0]
    # Origin, grid point and value are off by one error each, the step by two over the whole range.
    return float(repeated[0]), float(whole / round(whole / step)), 5 * error


def _no_lines(d: int, noise: float) -> Lines:
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
