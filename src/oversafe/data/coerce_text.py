"""Columns of text that are numbers or dates nearly throughout, read as what the same column of another table holds.

A file gives a column as text as soon as one of its cells is nothing else: "n.b.", 31.02.2025, or "63,4 %" in all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import numpy as np
import pandas as pd
from pandas.api import types

ReadAs = Literal["numbers", "dates", "text"]

# Text in which more values than this are something else is no column of numbers or dates.
_MOST_UNREADABLE = 0.1
# Digits with what may group them, and perhaps a unit.
_NUMBER = r"^([+-]?(?:[0-9][0-9.,'\u2019\s]*?|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?)\s*([^0-9.,+\s-]{0,6})$"
# Compiled, so that Python's own engine reads it: Arrow's knows neither \u nor all kinds of space.
_GROUPING = re.compile(r"['\u2019\s]")
_WITH_COMMA = r"^[+-]?(?:[0-9]+|[0-9]{1,3}(?:\.[0-9]{3})+)?(?:,[0-9]*)?(?:[eE][+-]?[0-9]+)?$"
_WITH_POINT = r"^[+-]?(?:[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+)?(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?$"
_DATE_FORMATS = ("ISO8601", "%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%m/%d/%Y", "%d/%m/%Y")


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
    parts = cells.str.extract(_NUMBER)
    units = parts[1].dropna()
    usual = units.mode().iloc[0] if len(units) else ""
    # "5 A" and "5 B" are names; one unit for all is none.
    digits = parts[0].where(parts[1].isin(["", usual])).str.replace(_GROUPING, "", regex=True)
    for pattern, thousands, decimal in ((_WITH_POINT, ",", "."), (_WITH_COMMA, ".", ",")):
        plain = digits.where(digits.str.fullmatch(pattern).fillna(False).astype(bool))
        plain = plain.str.replace(thousands, "", regex=False).str.replace(decimal, ".", regex=False)
        numbers = pd.to_numeric(plain, errors="coerce").astype(float).replace([np.inf, -np.inf], np.nan)
        yield numbers
        if usual == "%":
            yield numbers / 100


def _dates(cells: pd.Series) -> Iterator[pd.Series]:
    for form in _DATE_FORMATS:
        yield pd.to_datetime(cells, format=form, errors="coerce", utc=True).dt.tz_localize(None)


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
