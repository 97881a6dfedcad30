"""Columns of text that are numbers or dates nearly throughout, read as what the same column of another table holds.

A file gives a column as text as soon as one of its cells is nothing else: "n.b.", 31.02.2025, or "63,4 %" in all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api import types

from oversafe.data.cells import FileFormat, read_column
from oversafe.data.cells.grammar import split_unit
from oversafe.data.column import Column

ReadAs = Literal["numbers", "dates", "text"]

# Text in which more values than this are something else is no column of numbers or dates.
_MOST_UNREADABLE = 0.1


def read_as(values: pd.Series) -> ReadAs | None:
    """Return what a column was read as; None where all its values are missing, which any column may be."""
    if not values.notna().any():
        return None
    dtype = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        values, dtype = values.cat.categories.to_series(), values.cat.categories.dtype
    if types.is_datetime64_any_dtype(dtype):
        return "dates"
    if types.is_any_real_numeric_dtype(dtype) or types.is_bool_dtype(dtype):
        return "numbers"
    # Truth values beside missing ones are objects.
    return "numbers" if types.infer_dtype(values, skipna=True) == "boolean" else "text"


def reread(text: pd.Series, like: pd.Series) -> pd.Series | None:
    """Return text as the numbers or dates that the same column of another table holds; None where it is neither.

    Values that are something else become missing; they may be one in ten. Of several ways to read the others (a comma
    for decimals or for thousands, per cent or shares, month or day first) it is the one that reads most of them, and
    of these the one that gives most values of the other table.
    """
    present = text.dropna()
    cells = present.astype(str).str.strip()
    ways = _numbers(cells) if read_as(like) == "numbers" else _dates(cells)
    known = pd.unique(_comparable(like).dropna())
    best, best_worth = None, (0.0, 0.0)
    for found in ways:
        readable = float(found.notna().mean())
        agreeing = float(_comparable(found).isin(known).mean())
        if readable >= 1 - _MOST_UNREADABLE and (best is None or (readable, agreeing) > best_worth):
            best, best_worth = found, (readable, agreeing)
    return None if best is None else best.reindex(text.index)


def _numbers(cells: pd.Series) -> Iterator[pd.Series]:
    parts = [split_unit(cell) for cell in cells]
    units = [unit for _, unit in parts if unit]
    usual = max(units, key=units.count, default="")
    # "5 A" and "5 B" are names; one unit for all is none.
    digits = [text if unit in ("", usual) else None for text, unit in parts]
    are_shares = cells.str.endswith("%").mean() > _MOST_UNREADABLE
    for decimal in ".,":
        numbers = _read(cells, digits, Column("", "continuous", "float64"), FileFormat(decimal=decimal))
        yield (numbers := numbers.replace([np.inf, -np.inf], np.nan))
        if are_shares:
            yield numbers / 100


def _dates(cells: pd.Series) -> Iterator[pd.Series]:
    for order in (None, "day first", "month first"):
        yield _read(cells, cells, Column("", "datetime", "datetime64[us]"), FileFormat(dates=order))


def _read(cells: pd.Series, texts: Iterable[str | None], column: Column, file: FileFormat) -> pd.Series:
    found = read_column(column, pa.array(texts, pa.string(), from_pandas=True), file)
    return pd.Series(found.values, index=cells.index).mask(found.missing | found.unreadable)


def _comparable(values: pd.Series) -> pd.Series:
    """Return values in which equal ones are equal, whatever was computed with them."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        values = values.cat.categories.to_series()
    if types.is_datetime64_any_dtype(values.dtype):
        return without_zone(values).astype("datetime64[us]")
    return values.astype(float).round(9)


def without_zone(values: pd.Series) -> pd.Series:
    """Return dates in UTC without saying so."""
    return values if values.dt.tz is None else values.dt.tz_convert("UTC").dt.tz_localize(None)
