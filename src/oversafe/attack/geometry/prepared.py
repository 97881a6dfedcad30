"""A table for the geometric attacks: dates as numbers, and rows without gaps in the columns that are used."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from oversafe._core.errors import InputError
from oversafe.attack.geometry.shapes.points import FloatArray, IntArray, as_frame

# Dates are counted in the largest of these in which all of a column are whole.
_UNITS = ("1D", "1h", "1min", "1s", "1ms", "1us", "1ns")
# The largest float below 2^63: stamps are whole numbers of 64 bits.
_LAST_STAMP = np.nextafter(2.0**63, 0)


@dataclass(frozen=True)
class Prepared:
    """A table as the geometric attacks use it.

    Parameters
    ----------
    frame : DataFrame
        The rows that are complete in the columns that are used, with dates as numbers.
    rows : array of int
        Their places in the table as it was given.
    units : dict
        What 1 means in each column of dates, by position.
    gaps : dict
        The numeric columns that are left out for their missing values, by position, and how many are missing.
    n_given : int
        The rows of the table as it was given.
    """

    frame: pd.DataFrame
    rows: IntArray
    units: dict[int, pd.Timedelta]
    gaps: dict[int, int]
    n_given: int

    def restored(self, records: pd.DataFrame, given: pd.DataFrame) -> pd.DataFrame:
        """Return records with dates where the given table has them."""
        columns = {}
        for position in range(records.shape[1]):
            column = records.iloc[:, position]
            if position in self.units:
                # An estimate keeps its time of the day, or it would be farther off than is stated.
                count = column.where((column - column.round()).abs() > 1e-6, column.round())
                column = _dates(count, self.units[position], given.iloc[:, position])
            columns[position] = column
        return pd.DataFrame(columns, index=records.index).set_axis(records.columns, axis=1)

    def like(self, other: Any) -> pd.DataFrame:
        """Return another table in the columns of this one, with dates as numbers in the same units."""
        other = as_frame(other)
        if self.frame.columns.is_unique and set(self.frame.columns) <= set(other.columns):
            other = other[list(self.frame.columns)]
        if other.shape[1] != self.frame.shape[1]:
            raise InputError(
                f"the known rows have {other.shape[1]} columns, the attacked table {self.frame.shape[1]}; "
                "pass the same columns in the same order"
            )
        return in_numbers(other, self.units)

    def why_left_out(self, names: tuple[Hashable, ...]) -> dict[str, str]:
        """Return for the columns that have no part why they have none."""
        for_gaps = {
            str(self.frame.columns[position]): f"too many missing values: {missing} of {self.n_given}"
            for position, missing in self.gaps.items()
        }
        return {str(name): for_gaps.get(str(name), "not a number") for name in names}


def prepare(X: Any) -> Prepared:
    """Return a table with dates as numbers and without the rows that have gaps in the columns used.

    Of columns with missing values as many are used as keep the most of the table: each takes with it the rows in
    which it is missing.

    Parameters
    ----------
    X : DataFrame or array of shape (n_rows, n_columns)
        The table.
    """
    frame = as_frame(X)
    dates = [i for i, dtype in enumerate(frame.dtypes) if pd.api.types.is_datetime64_any_dtype(dtype)]
    units = {position: _unit(frame.iloc[:, position]) for position in dates}
    frame = in_numbers(frame, units)
    numeric = [
        position
        for position, dtype in enumerate(frame.dtypes)
        if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype)
    ]
    missing = np.column_stack(
        [np.zeros((len(frame), 0), dtype=bool), *(frame.iloc[:, p].isna().to_numpy() for p in numeric)]
    )
    order = np.argsort(missing.sum(axis=0), kind="stable")
    complete = ~np.logical_or.accumulate(missing[:, order], axis=1)
    kept = complete.sum(axis=0) * np.arange(1, len(order) + 1)
    used = len(kept) - int(np.argmax(kept[::-1])) if kept.any() else 0
    rows = np.flatnonzero(complete[:, used - 1]) if used else np.arange(len(frame))
    gaps = {numeric[i]: int(missing[:, i].sum()) for i in order[used:]}
    n_given = len(frame)
    if len(rows) < n_given:
        frame = frame.iloc[rows].reset_index(drop=True)
    return Prepared(frame, rows, units, gaps, n_given)


def in_numbers(table: pd.DataFrame, units: Mapping[int, pd.Timedelta]) -> pd.DataFrame:
    """Return a table with the dates of some columns as numbers."""
    if not units:
        return table
    columns = {position: table.iloc[:, position] for position in range(table.shape[1])}
    for position, unit in units.items():
        columns[position] = pd.Series(_count(columns[position], unit), index=table.index)
    return pd.DataFrame(columns, index=table.index).set_axis(table.columns, axis=1)


def _count(column: pd.Series, unit: pd.Timedelta) -> FloatArray:
    if not pd.api.types.is_datetime64_any_dtype(column.dtype):
        column = pd.to_datetime(column, errors="coerce")
    # In the column's own resolution: in nanoseconds, 9999-12-31 for "no end" would be beyond the range.
    stamps = column.to_numpy(dtype=f"datetime64[{column.dt.unit}]")
    counts: FloatArray = stamps.view(np.int64) / (unit / pd.Timedelta(1, column.dt.unit))
    return np.where(np.isnat(stamps), np.nan, counts)


def _dates(count: pd.Series, unit: pd.Timedelta, like: pd.Series) -> pd.Series:
    """Return counted dates in the dtype of a column; estimates beyond what it can hold are put at its ends."""
    steps = count.to_numpy(dtype=float) * (unit / pd.Timedelta(1, like.dt.unit))
    stamps = np.clip(np.round(steps), -_LAST_STAMP, _LAST_STAMP).astype(f"datetime64[{like.dt.unit}]")
    dates = pd.Series(stamps, index=count.index)
    if like.dt.tz is not None:
        dates = dates.dt.tz_localize("UTC").dt.tz_convert(like.dt.tz)
    return dates.astype(like.dtype)


def _unit(column: pd.Series) -> pd.Timedelta:
    for name in _UNITS[:-1]:
        count = _count(column, pd.Timedelta(name))
        count = count[~np.isnan(count)]
        if (count == np.round(count)).all():
            return pd.Timedelta(name)
    return pd.Timedelta(_UNITS[-1])
