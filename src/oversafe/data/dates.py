"""Dates as they are stored: ticks of one unit, in UTC."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

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
