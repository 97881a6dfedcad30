"""A table as points: the distinct rows in the columns that interpolation moves, with their errors."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.checks import check_pandas
from oversafe._core.errors import InputError
from oversafe.data._kernels import row_hashes
from oversafe.data.infer_objects import settle_table

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Above this noise lines cannot be told from accidents.
COARSEST = 0.03
# Up to this noise values count as exact: their digits are those of the arithmetic, not of a file.
EXACT = 1e-9
# Up to this noise three rows are on a line or are not.
FINE = 2e-5
# Two values are a column's grid when at least this share of the rows has one of them.
GRID_SHARE = 0.1
# Columns with less weight than this beside the more exact ones say nothing.
_LEAST_WEIGHT = 0.003
# Columns that are more exact than others count more, up to this.
_MOST_WEIGHT = 16.0
# Columns with larger errors are taken to be independent.
_TELLING = 0.01
# Values with more decimals than this are taken for exact.
_MOST_DECIMALS = 8
# From so many rows for each value on a column is taken to have no values between them.
_ROWS_PER_LEVEL = 2


@dataclass(frozen=True)
class Points:
    """The distinct rows of a table as points in the unit cube.

    Parameters
    ----------
    values : array of shape (n, d)
        The distinct rows in the columns that vary, each column scaled to [0, 1], or less if its values are
        less exact than those of other columns.
    noise : float
        Distance between a point and where exact arithmetic would have put it: a bound for exact values, the
        root of the mean square for rounded or perturbed ones.
    row : array of int
        For each row of the table, its point.
    frame : DataFrame
        The table as given.
    columns : array of int
        The positions of the columns in ``values``.
    low, span : array of float
        Smallest value of these columns and what a step of 1 means in them, in the table's units.
    errors : dict
        The error of the values of each of these columns in the table's units, by position.
    coarse : dict
        The same for the columns that were left out because others are more exact.
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
    errors: dict[int, float]
    coarse: dict[int, float]
    same: IntArray
    grid: tuple[tuple[float, float, float] | None, ...]
    numeric: frozenset[int]
    left_out: tuple[Hashable, ...]

    def off_grid(self, column: int, values: FloatArray, radius: FloatArray | float = 0.0) -> BoolArray:
        """Return which values, with errors, are off the grid of a column; none where it has no grid."""
        grid = self.grid[column]
        if grid is None:
            return np.zeros(len(values), dtype=bool)
        origin, step, error = grid
        return np.abs(values - origin - step * np.round((values - origin) / step)) > error + radius

    @cached_property
    def dimensions(self) -> int:
        """In how many directions the points spread by more than their errors.

        Columns that follow a few common factors fill fewer dimensions than they are.
        """
        n, d = self.values.shape
        if self.exact or n < 2:
            return d
        centred = self.values - self.values.mean(axis=0)
        # The products of the rows have the same eigenvalues as those of the columns, apart from zeros.
        products = centred.T @ centred if d <= n else centred @ centred.T
        spread = np.linalg.eigvalsh(products) / (n - 1)
        return int((spread > (4 * self.noise) ** 2 / d).sum())

    @property
    def fine(self) -> bool:
        """Whether errors are so small that three rows on a line are evidence."""
        return self.noise <= FINE

    @property
    def exact(self) -> bool:
        """Whether the values are as exact as arithmetic leaves them."""
        return self.noise <= EXACT

    @property
    def reason(self) -> str | None:
        """Why no line can be sought, or None."""
        if len(self.values) < 3:
            return f"a line needs at least 3 distinct rows, the table has {len(self.values)}"
        if self.noise > COARSEST:
            return f"the values are exact to {self.noise:.1g} of their range only, too coarse to tell a line"
        independent = len(np.unique(self.same))
        if independent < 2:
            return (
                f"a line means something in at least 2 varying numeric columns, the table has {independent}"
            )
        return None


def read_points(X: Any, tolerance: float | dict[int, float] | None = None) -> Points:
    """Return the distinct rows of a table as points, with their error.

    Parameters
    ----------
    X : DataFrame or array of shape (n_rows, n_columns)
        The table. Columns that are not numeric or have missing values are left out.
    tolerance : float or dict, optional
        Error of a value relative to its column's range, or, by the column's position, in its own units. By
        default it follows from the precision of the column's dtype and the decimals its values have.

    Raises
    ------
    InputError
        If the table is empty, not two-dimensional, or has infinite values.
    """
    frame = as_frame(X)
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
    with np.errstate(over="ignore"):
        span = values.max(axis=0) - low
    if not np.isfinite(span).all():
        raise InputError("the range of a column exceeds what a float can hold; rescale the table")
    epsilon = np.array([_epsilon(frame.dtypes.iloc[i]) for i in columns])
    varies = span > 0
    values, columns, low, span, epsilon = (
        values[:, varies], columns[varies], low[varies], span[varies], epsilon[varies]
    )  # fmt: skip
    scaled = (values - low) / span
    if scaled.shape[1]:
        row, first = _distinct_rows(scaled)
    else:
        row, first = np.zeros(len(frame), dtype=np.int64), np.zeros(1, dtype=np.int64)
    distinct = scaled[first]
    largest = np.abs(values).max(axis=0, initial=0)
    # A synthetic value x + u (y - x) is off by at most 2.5 units of the largest value's last place, a
    # scaler that is applied before and undone after by 1.5 more, our own scaling by one of the range's.
    # Below the smallest normal number the last place is no longer relative.
    arithmetic = epsilon * (4 * (largest / span) + 1) + 4 * (np.finfo(float).smallest_subnormal / span)
    error = np.maximum(arithmetic, _stated_error(values, columns, span, tolerance))
    if tolerance is None:
        # Rounded values at a few levels are no more exact than the levels are far apart: interpolated ones lie between.
        levels = np.array([_half_level(values[:, i]) for i in range(len(columns))]) / span
        error = np.where(error > EXACT, np.maximum(error, levels), error)
    # Within a coarse error anything agrees with anything.
    same = _dependent_columns(distinct, np.where(error > _TELLING, 0.0, 2 * error))
    weight = _weights(error, same)
    used = weight > 0
    errors = {int(columns[i]): float(error[i] * span[i]) for i in range(len(columns))}
    coarse = {int(columns[i]): errors.pop(int(columns[i])) for i in np.flatnonzero(~used)}
    error = (error * weight)[used]
    noise = float(np.linalg.norm(error))
    if noise > EXACT:
        # Errors spread evenly over an interval have a third of its square as their variance.
        noise /= 3**0.5
    if coarse:
        row, first = _distinct_rows(scaled[:, used])
        distinct = scaled[first]
    return Points(
        values=np.ascontiguousarray(distinct[:, used] * weight[used]),
        noise=noise,
        row=row,
        frame=frame,
        columns=columns[used],
        low=low[used],
        span=span[used] / weight[used],
        errors=errors,
        coarse=coarse,
        same=same[used],
        grid=tuple(
            _grid(distinct[:, i] * weight[i], e) for i, e in zip(np.flatnonzero(used), error, strict=True)
        ),
        numeric=numeric,
        left_out=left_out,
    )


def _distinct_rows(values: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the number of each row among the distinct ones, and where each of them comes first."""
    keys = row_hashes(np.ascontiguousarray(values))
    _, first, row = np.unique(keys, return_index=True, return_inverse=True)
    return row.reshape(-1).astype(np.int64), first


def _stated_error(
    values: FloatArray, columns: IntArray, span: FloatArray, tolerance: float | dict[int, float] | None
) -> FloatArray:
    """Return the error of each column's values, relative to its range, as far as it is given or visible."""
    if isinstance(tolerance, dict):
        return np.array([tolerance.get(int(position), 0.0) for position in columns]) / span
    if tolerance is not None:
        if not 0 < tolerance < 1:
            raise InputError(f"tolerance is {tolerance!r}; expected a share of the columns' range, as 1e-6")
        return np.full(len(columns), float(tolerance))
    half_steps = [_half_step(values[:, i]) for i in range(len(columns))]
    return np.array(half_steps) / span


def _half_level(values: FloatArray) -> float:
    """Return half of the smallest step between the levels at which a column's values stand; 0 if they are many."""
    levels = np.unique(values)
    return float(np.diff(levels).min()) / 2 if 1 < len(levels) <= len(values) / _ROWS_PER_LEVEL else 0.0


def _half_step(values: FloatArray) -> float:
    """Return half a unit of the last decimal that a column's values have; 0 if they have too many to tell."""
    span = values.max() - values.min()
    for decimals in range(_MOST_DECIMALS + 1):
        scale = 10.0**decimals
        if 0 < span < 0.5 / scale:
            # Values that differ by less than a step are not rounded to it, however near to 0 they are.
            continue
        steps = values * scale
        if np.abs(steps).max() > 2**50:
            return 0.0
        if (np.abs(steps - np.round(steps)) <= 4 * np.finfo(float).eps * np.maximum(np.abs(steps), 1)).all():
            return 0.5 / scale
    return 0.0


def _weights(error: FloatArray, same: IntArray) -> FloatArray:
    """Return the weight of each column; 0 for those too coarse to be of use beside the others.

    Weighted columns have the same error. The fewer columns are used, the more exact they are; a line is the
    surer, the more columns it runs through and the smaller their error: both count by the logarithm of the
    chance that a row lies on a line by accident.
    """
    limit = error.max(initial=0.0)
    if len(error):
        candidates = np.unique(error)
        # Columns that say the same count once, as exact as the most exact of them.
        group = np.unique(same, return_inverse=True)[1]
        least = np.full(int(group.max()) + 1, np.inf)
        np.minimum.at(least, group, error)
        freedom = np.searchsorted(np.sort(least), candidates, side="right")
        surprise = (freedom - 1) * np.log(0.1 / np.maximum(candidates, 1e-300))
        if surprise.max() > 0:
            limit = candidates[surprise.argmax()]
    weight = np.minimum(1.0, max(limit / _MOST_WEIGHT, error.min(initial=limit)) / np.maximum(error, 1e-300))
    if limit <= EXACT:
        # Exact columns differ by their magnitude only, which says nothing about their worth.
        weight = np.where(error <= EXACT, 1.0, 0.0)
    return np.where(weight < _LEAST_WEIGHT, 0.0, weight)


def as_frame(X: Any) -> pd.DataFrame:
    """Return a table as a DataFrame, or say what it lacks."""
    check_pandas(X)
    if not isinstance(X, pd.DataFrame):
        array = np.asarray(X)
        if array.ndim != 2:
            raise InputError(
                f"the table has {array.ndim} dimension(s), expected 2; pass a DataFrame or a 2-D array"
            )
        X = pd.DataFrame(array)
        if array.dtype == object:
            X = X.infer_objects()
    X = settle_table(X)
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
