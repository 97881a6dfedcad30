"""Columns of objects that are numbers or times in all rows: what arrays of mixed kinds and nullable columns become."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
from pandas.api import types


def settle_column(values: pd.Series) -> pd.Series:
    """Return a column of objects as numbers or times, if all that are present are; any other column as it is."""
    if values.dtype != object:
        return values
    kind = types.infer_dtype(values, skipna=True)
    if kind == "integer":
        try:
            return values.astype("Int64" if values.isna().any() else "int64")
        except OverflowError:
            kind = "floating"
    if kind in ("floating", "mixed-integer-float", "decimal"):
        return values.mask(values.isna(), np.nan).astype("float64")
    if kind in ("date", "datetime", "datetime64"):
        try:
            return pd.to_datetime(values)
        except (ValueError, TypeError):
            # Several time zones, or beyond what a timestamp holds.
            return values
    return values


def settle_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose columns of objects are settled one by one."""
    if not any(types.is_object_dtype(dtype) for dtype in table.dtypes):
        return table
    columns = [settle_column(table.iloc[:, i]) for i in range(table.shape[1])]
    return pd.concat(columns, axis=1).set_axis(table.columns, axis=1)


def are_dates(values: pd.Series) -> bool:
    """Return whether a column of objects holds days, without a time."""
    return types.infer_dtype(values, skipna=True) == "date" and all(
        type(v) is date for v in values if not pd.isna(v)
    )


def as_objects(values: pd.Series, *, dates: bool = False) -> pd.Series:
    """Return a column as objects again, times as days where they were."""
    if dates and types.is_datetime64_any_dtype(values.dtype):
        return values.dt.date.astype(object)
    return values.astype(object)
