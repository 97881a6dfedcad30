"""Dates as people write them: 2024-12-31, or 31.12.2024 with the day first."""

from __future__ import annotations

import re
from datetime import date
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

DateOrder = Literal["day first", "month first"]

_TIME = r"\d{2}(?::\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?)?"
_ZONE = r"\s?(?:Z|[+-]\d{2}(?::?\d{2})?)"
_ISO = re.compile(rf"(?:\d{{4}}|-\d{{3,6}})-\d{{2}}-\d{{2}}(?:[T ]{_TIME}(?:{_ZONE})?)?", re.ASCII)
# With points alone the day is first wherever they are in use; other signs need a declaration.
_POINTS = re.compile(rf"(\d{{1,2}})\.(\d{{1,2}})\.(\d{{4}})(?: ({_TIME}))?", re.ASCII)
_ANY = re.compile(rf"(\d{{1,2}})[./-](\d{{1,2}})[./-](\d{{4}})(?: ({_TIME}))?", re.ASCII)


def as_date(value: Any, order: DateOrder | None = None) -> pd.Timestamp:
    """Return a date, or the date that a text is written as; NaT for all else.

    pandas alone would take more: 03.11.2025 as the 11th of March, 2025 as its first day, "now" as today.

    Parameters
    ----------
    value : object
        A date, a time or a text.
    order : {"day first", "month first"}, optional
        Of day and month where they stand before the year; None reads 03.11.2025 with the day first, and no 03/11/2025.

    Examples
    --------
    >>> as_date("03.11.2025")
    Timestamp('2025-11-03 00:00:00')
    >>> as_date("11/03/2025"), as_date("11/03/2025", "month first")
    (NaT, Timestamp('2025-11-03 00:00:00'))
    """
    if isinstance(value, str):
        text = iso_date(value.strip(), order)
        if not _ISO.fullmatch(text):
            return pd.NaT
        value = text
    elif not isinstance(value, date | np.datetime64):
        # A number would count the nanoseconds since 1970.
        return pd.NaT
    try:
        return pd.Timestamp(value)
    except (ValueError, TypeError, OverflowError):
        return pd.NaT


def iso_date(text: str, order: DateOrder | None = None) -> str:
    """Return a text of the form 31.12.2024 as 2024-12-31, whether or not there is such a day; any other as it is."""
    match = (_POINTS if order is None else _ANY).fullmatch(text)
    if match is None:
        return text
    first, second, year, time = match.groups()
    day, month = (second, first) if order == "month first" else (first, second)
    return f"{year}-{month:0>2}-{day:0>2}" + (f"T{time}" if time else "")


# Ticks of a unit in a second, and the seconds from 1970 on in which dates lie: the years 1 to 9999, fewer in ns.
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FIRST, _LAST = -62_135_596_800, 253_402_300_799
_FIRST_NS, _LAST_NS = -(2**63) // 10**9 + 1, (2**63 - 1) // 10**9 - 1


def in_unit(ticks: NDArray[np.int64], unit: str, wanted: str) -> NDArray[np.datetime64]:
    """Return ticks since 1970 as dates of another unit; those beyond its years are moved to their ends."""
    per, fine = _PER_SECOND[unit], _PER_SECOND[wanted]
    narrow = "ns" in (unit, wanted)
    first, last = (_FIRST_NS, _LAST_NS) if narrow else (_FIRST, _LAST)
    ticks = np.clip(np.asarray(ticks, dtype=np.int64), first * per, last * per + per - 1)
    ticks = ticks * (fine // per) if fine >= per else ticks // (per // fine)
    return ticks.astype(f"datetime64[{wanted}]")


def stamp_in_unit(stamp: pd.Timestamp, wanted: str) -> np.datetime64:
    """Return a date in UTC, in another unit, as :func:`in_unit` does."""
    moment = stamp.asm8
    unit = np.datetime_data(moment.dtype)[0]
    return in_unit(np.array([moment.view(np.int64)]), unit, wanted)[0]


def stored_dates(values: pd.Series, wanted: str) -> NDArray[np.datetime64] | None:
    """Return a column that is stored as dates in UTC and one unit, NaT where they are missing; None for any other."""
    dtype = values.dtype
    if isinstance(dtype, pd.ArrowDtype) and (
        pa.types.is_timestamp(dtype.pyarrow_dtype) or pa.types.is_date(dtype.pyarrow_dtype)
    ):
        return arrow_dates(pa.array(values), wanted)
    if not pd.api.types.is_datetime64_any_dtype(dtype):
        return None
    plain = values if values.dt.tz is None else values.dt.tz_convert("UTC").dt.tz_localize(None)
    moments = plain.to_numpy()
    found = in_unit(moments.view(np.int64), np.datetime_data(moments.dtype)[0], wanted)
    found[np.isnat(moments)] = np.datetime64("NaT")
    return found


def arrow_dates(values: pa.Array | pa.ChunkedArray, wanted: str) -> NDArray[np.datetime64]:
    """Return Arrow's dates and times in UTC and one unit, NaT where they are missing."""
    gaps = values.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_date32(values.type):
        ticks, unit = values.cast(pa.int32()).cast(pa.int64()), "D"
    else:
        ticks, unit = values.cast(pa.int64()), "ms" if pa.types.is_date64(values.type) else values.type.unit
    numbers = ticks.fill_null(0).to_numpy(zero_copy_only=False)
    found = in_unit(numbers * 86_400 if unit == "D" else numbers, "s" if unit == "D" else unit, wanted)
    found[gaps] = np.datetime64("NaT")
    return found
