"""The values of recovered records in the table's units, how far each may be off, and which are estimates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from oversafe.attack.geometry.lattice.precision import errors_of_constants
from oversafe.attack.geometry.matching import EQUAL
from oversafe.attack.geometry.recovery import Recovered
from oversafe.attack.geometry.shapes.points import BoolArray, FloatArray, IntArray, Points
from oversafe.attack.geometry.shapes.segments import WIDTH_OF_SPREAD

# Half a unit.
_WHOLE = 0.5
# Records are taken to lie within this many times the range of the released values, either side of its middle.
_WIDEST = 5.0


def in_units(
    records: Recovered, released: IntArray, points: Points
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return the records in the table's columns and units, the errors of their values, and which are estimates."""
    table, places = points.frame, records.places
    columns: dict[int, Any] = {}
    errors: dict[int, Any] = {}
    estimated = pd.DataFrame(False, index=range(len(places)), columns=range(table.shape[1]))
    constants = _errors_of_constants(points)
    for position in range(table.shape[1]):
        column = table.iloc[:, position]
        value, dtype = np.nan, "float" if pd.api.types.is_numeric_dtype(column.dtype) else "object"
        errors[position] = np.full(len(places), np.nan)
        if position in points.coarse:
            columns[position], errors[position], estimated[position] = _filled_in(
                records, column.to_numpy(dtype=float), points.coarse[position], released, points
            )
            continue
        if is_constant(column):
            value, dtype = column.iloc[0], column.dtype
            errors[position] = np.full(len(places), constants.get(position, 0.0))
        columns[position] = pd.Series([value] * len(places), dtype=dtype)
    for at, position in enumerate(points.columns.tolist()):
        given = table.iloc[:, position].to_numpy(dtype=float)
        scaled_back = points.low[at] + places[:, at] * points.span[at]
        if points.errors[position] == _WHOLE and (given == np.round(given)).all():
            # All rows were cut off towards 0, and with them the records.
            moved = scaled_back + 0.5 * np.sign(scaled_back)
            scaled_back = (
                moved if len(moved) and _from_whole(moved) < _from_whole(scaled_back) else scaled_back
            )
        columns[position] = np.where(released >= 0, given[released], scaled_back)
        errors[position] = records.radius * points.span[at]
    frame, error_frame = pd.DataFrame(columns), pd.DataFrame(errors)
    frame.columns = error_frame.columns = estimated.columns = table.columns
    return frame, error_frame, estimated


def perhaps_filled(records: pd.DataFrame, released: IntArray, given: pd.DataFrame) -> pd.DataFrame:
    """Return which values may be what a sampler put in place of a missing one.

    Samplers fill the gaps of a column with one value and move rows towards it. So the value is doubted that most of
    the records share, if several do; of a record that is not in the release while others are, all values.
    """
    doubtful = pd.DataFrame(False, index=records.index, columns=records.columns)
    hidden = released < 0
    gaps = [p for p in np.flatnonzero(given.isna().any().to_numpy()) if records.iloc[:, p].notna().any()]
    for position in gaps:
        column = records.iloc[:, position]
        # Text that all rows without gaps share is known of the records too.
        is_number = pd.api.types.is_numeric_dtype(column.dtype)
        values = (column if is_number else pd.Series(pd.factorize(column)[0])).to_numpy(dtype=float)
        rounded = np.round(values / max(EQUAL * np.ptp(values), 1e-300))
        shared, counts = np.unique(rounded[hidden], return_counts=True)
        if len(counts) and counts.max() > 1:
            doubtful.isetitem(position, hidden & (rounded == shared[counts.argmax()]))
    if not hidden.all():
        unclear = hidden & ~doubtful.iloc[:, gaps].any(axis=1).to_numpy(dtype=bool)
        for position in gaps:
            doubtful.isetitem(position, doubtful.iloc[:, position].to_numpy() | unclear)
    return doubtful


def names_of(chosen: pd.DataFrame) -> list[str]:
    """Return for each row the names of the columns that are chosen in it, in one text."""
    names = [str(name) for name in chosen.columns]
    return [", ".join(name for name, own in zip(names, row, strict=True) if own) for row in chosen.to_numpy()]


def _errors_of_constants(points: Points) -> dict[int, float]:
    """Return by how much the value of each column of numbers that never varies may have been rounded."""
    positions = sorted(points.numeric)
    if not positions:
        return {}
    values = points.frame.iloc[:, positions].to_numpy(dtype=float)
    return dict(zip(positions, errors_of_constants(values).tolist(), strict=True))


def _filled_in(
    records: Recovered, column: FloatArray, error: float, released: IntArray, points: Points
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return what the records have in a column that took no part in the geometry, its errors, and what is estimated.

    A record that stands in the release has the value that stands there. Of the others the rows between them
    say between which values they lie, and where one whole number is left, it is the record's.
    """
    given = column[np.unique(points.row, return_index=True)[1]]
    value, stated = records.refined.values(given, error)
    if not len(value):
        return value, stated, np.zeros(0, dtype=bool)
    whole = error < 2 * _WHOLE and bool((given == np.round(given)).all())
    own_error = 0.0 if whole else error
    as_released = _values_of_released(column, released, points)
    stands = ~np.isnan(as_released)
    middle, spread = (given.min() + given.max()) / 2, float(np.ptp(given))
    lower = np.where(stands, as_released - own_error, middle - _WIDEST * spread)
    upper = np.where(stands, as_released + own_error, middle + _WIDEST * spread)
    slack = spread * _errors_of_shares(records, points)
    found = _between(records, given[records.refined.rows], error, slack, (lower, upper), whole)
    if found is None:
        return np.where(stands, as_released, value), np.where(stands, own_error, stated), ~stands
    lower, upper = found
    value = np.clip(value, lower, upper)
    stated = np.maximum(upper - value, value - lower)
    unknown = stated >= spread
    # As exact as the release is elsewhere, or the one whole number that is left.
    estimated = (stated > (0.0 if whole else error * (1 + 1e-9))) & ~stands
    return np.where(unknown, middle, value), np.where(unknown, spread, stated), estimated


def _between(
    records: Recovered,
    given: FloatArray,
    error: float,
    slack: FloatArray,
    known: tuple[FloatArray, FloatArray],
    whole: bool,
) -> tuple[FloatArray, FloatArray] | None:
    """Return between which values the records lie, however their rows' numbers were shortened; None if nohow."""
    intervals = records.refined.intervals
    if whole:
        # What contradicts itself was not done.
        nothing, sign = np.zeros(len(given)), np.sign(given)
        rounded = (nothing - _WHOLE, nothing + _WHOLE)
        cut_off = (np.where(sign > 0, 0.0, -1.0), np.where(sign < 0, 0.0, 1.0))
        # Of negative numbers alone this differs from the last by one everywhere, so it is not even thought of
        # unless that is refuted: casting a number to a whole one cuts off towards 0.
        cut_off_downwards = (nothing, nothing + 1.0)
        for ways in ((rounded, cut_off), (cut_off_downwards,)):
            found = [
                those
                for below, above in ways
                if (those := intervals(given + below - slack, given + above + slack, known, whole=True))
                is not None
            ]
            if found:
                return np.min([low for low, _ in found], axis=0), np.max([high for _, high in found], axis=0)
        error = 1.0
    return intervals(given - error - slack, given + error + slack, known, whole=False)


def _values_of_released(column: FloatArray, released: IntArray, points: Points) -> FloatArray:
    """Return the value of each record that stands in the release; nan where it does not, or rows disagree."""
    n = len(points.values)
    lowest, highest = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(lowest, points.row, column)
    np.maximum.at(highest, points.row, column)
    point = points.row[released]
    return np.where((released >= 0) & (lowest[point] == highest[point]), column[released], np.nan)


def _errors_of_shares(records: Recovered, points: Points) -> FloatArray:
    """Return how far each row on a segment may be from its place there, as a share of the segment."""
    refined = records.refined
    if points.exact or not len(refined.rows):
        return np.zeros(len(refined.rows))
    start, end = refined.weights.indices.reshape(-1, 2).T
    length = np.linalg.norm(refined.places[start] - refined.places[end], axis=1)
    error = WIDTH_OF_SPREAD * points.noise + refined.radius[start] + refined.radius[end]
    return error / np.maximum(length, 1e-300)


def _from_whole(values: FloatArray) -> float:
    return float(np.abs(values - np.round(values)).mean())


def is_constant(column: pd.Series) -> bool:
    """Return whether all values of a column are the same one."""
    first = column.iloc[0]
    return bool(pd.api.types.is_scalar(first) and column.notna().all() and (column == first).all())
