"""From a table to a numeric matrix and back, exactly."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from oversafe._core.errors import InputError
from oversafe._core.text import counted
from oversafe.data.cells import (
    FileFormat,
    date_unit,
    dates_in,
    numbers_in,
    places_of,
    text_values,
    was_read_by,
)
from oversafe.data.column import Column
from oversafe.data.dates import stamp_in_unit, stored_dates
from oversafe.data.io.parse_warnings import Place, Reading, as_dates, as_numbers, remedy_of, row_of
from oversafe.data.schema import Schema, check_columns, check_table

# Beyond this a float64 no longer holds every whole number.
_WHOLE = 2**53
# Of the columns of zeros and ones: four gigabytes.
_MOST_CELLS = 500_000_000
# pandas and numpy have different names for a minute.
_NUMPY_UNITS = {"min": "m"}


def conform(schema: Schema, table: pd.DataFrame, place: Place = row_of) -> pd.DataFrame:
    """Return the table with the schema's columns, order and dtypes, or say where it does not fit.

    ``place`` says where a row stands, of its number from 0.
    """
    check_table(table)
    position = {str(name): i for i, name in enumerate(table.columns)}
    check_columns(schema, position)
    columns = {
        c.name: _conform_column(c, table.iloc[:, position[c.name]], schema.file, place) for c in schema
    }
    return pd.DataFrame(columns, index=table.index, copy=False)


def encode(schema: Schema, table: pd.DataFrame, *, one_hot: bool = False) -> NDArray[np.float64]:
    """Return the table as a numeric matrix; see :meth:`Schema.encode`."""
    table = conform(schema, table)
    if one_hot:
        check_one_hot(schema, len(table))
    blocks = []
    for column in schema:
        codes = column_codes(column, table[column.name])
        blocks.append(_spread(column, codes) if one_hot else codes[:, None])
    return np.hstack(blocks)


def check_one_hot(schema: Schema, n_rows: int) -> None:
    """Refuse a table whose categories, as a column of zeros and ones each, would fill the memory."""
    widths = {column.name: _width(column) for column in schema if column.is_category}
    if n_rows * sum(widths.values()) > _MOST_CELLS:
        widest = max(widths, key=lambda name: widths[name])
        raise InputError(
            f"column {widest!r} has {widths[widest]} categories, too many for {n_rows} rows with a column of zeros and "
            "ones for each; leave it out, or group its categories"
        )


def decode(schema: Schema, matrix: NDArray[np.float64], *, one_hot: bool = False) -> pd.DataFrame:
    """Return the table of a numeric matrix; see :meth:`Schema.decode`."""
    widths = [_width(column) if one_hot else 1 for column in schema]
    if matrix.ndim != 2 or matrix.shape[1] != sum(widths):
        raise InputError(
            f"a matrix of shape {matrix.shape} was given to decode; {sum(widths)} columns are expected"
        )
    columns, start = {}, 0
    for column, width in zip(schema, widths, strict=True):
        block = matrix[:, start : start + width]
        codes = _gather(column, block) if one_hot else block[:, 0]
        columns[column.name] = column_values(column, codes)
        start += width
    return pd.DataFrame(columns)


def _conform_column(column: Column, own: pd.Series, file: FileFormat, place: Place) -> pd.Series:
    # As it is: to be coded and decoded again takes several times its memory.
    settled = column.is_category and _are_categories(column, own)
    values = own if settled or was_read_by(own, column) else text_values(own, column, file)
    if values.isna().any() and not column.missing:
        row = int(np.argmax(values.isna().to_numpy()))
        gaps = counted(int(values.isna().sum()), "missing value")
        raise InputError(
            f"column {column.name!r} has {gaps} (first in {place(row)}), and the schema allows none; "
            "fill them, or set missing = true"
        )
    if column.is_category:
        return values if settled else _conform_category(column, values, place)
    if column.kind == "datetime":
        return _conform_datetime(column, values, place)
    if column.is_number:
        return _conform_number(column, values, own, place)
    return values


def _are_categories(column: Column, values: pd.Series) -> bool:
    """Whether a column of text has the declared dtype and nothing but declared categories."""
    if str(values.dtype) != column.dtype or not types.is_string_dtype(values.dtype) or values.dtype == object:
        return False
    known = [category for category in column.categories or () if type(category) is str]
    return bool((values.isin(known) | values.isna()).all())


def _conform_number(column: Column, values: pd.Series, own: pd.Series, place: Place) -> pd.Series:
    if str(values.dtype) == column.dtype and column.kind == "continuous":
        return values
    if types.is_numeric_dtype(values.dtype) and not types.is_bool_dtype(values.dtype):
        numbers = values
    else:
        # What is text still, pandas would read by a grammar of its own.
        numbers = pd.to_numeric(
            values.where([not isinstance(value, str) for value in values]), errors="coerce"
        )
        if (numbers.isna() & values.notna()).any():
            raise InputError(f"column {column.name!r} {_no_numbers(as_numbers(own), own, place)}")
    if column.kind == "integer" and not types.is_integer_dtype(numbers.dtype):
        plain = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
        bad = ~np.isnan(plain) & (plain != np.rint(plain))
        if bad.any():
            first = int(np.argmax(bad))
            raise InputError(
                f"column {column.name!r} has {int(bad.sum())} values that are not whole numbers "
                f"(first: {plain[first]!r} in {place(first)}); declare it continuous in the schema"
            )
    return _cast(column, numbers)


def _no_numbers(reading: Reading, values: pd.Series, place: Place) -> str:
    if not reading.bad.any():
        return f"holds numbers with {reading.sign}, read as text; {remedy_of(reading.sign)}"
    remedy = reading.remedy
    if reading.bad.sum() > reading.n_present / 2:
        remedy = f"declare it categorical, or {remedy}"
    return f"is declared a number, and {reading.share(values, place)}; {remedy}"


def _conform_datetime(column: Column, values: pd.Series, place: Place) -> pd.Series:
    if str(values.dtype) == column.dtype:
        return values
    if types.is_datetime64_any_dtype(values.dtype):
        stamps = pd.to_datetime(values, utc=True)
        return _cast(column, stamps if "," in column.dtype else stamps.dt.tz_localize(None))
    left = np.array([isinstance(value, str) for value in values], dtype=np.bool_)
    stamps, reading = as_dates(values.mask(left), date_unit(column))
    if left.any() or reading.bad.any():
        reading = Reading("date", left | reading.bad, int(values.notna().sum()))
        raise InputError(
            f"column {column.name!r} is declared datetime, and {reading.share(values, place)}; write dates as "
            f"2024-12-31 or 31.12.2024: {reading.remedy}"
        )
    return _cast(column, stamps if "," in column.dtype else stamps.dt.tz_localize(None))


def _conform_category(column: Column, values: pd.Series, place: Place) -> pd.Series:
    positions = _category_positions(column, values)
    bad = (positions < 0) & values.notna().to_numpy()
    if bad.any():
        first = int(np.argmax(bad))
        # A public list that is filled up from the rows is public no longer.
        remedy = (
            "clean them, or add them to the schema if the source of its categories has them"
            if column.domain == "public"
            else "add them to the schema or clean them"
        )
        raise InputError(
            f"column {column.name!r} has {int(bad.sum())} values that are not among its categories "
            f"(first: {str(values.iloc[first])[:80]!r} in {place(first)}); {remedy}"
        )
    codes = np.where(positions < 0, np.nan, positions.astype(np.float64))
    return column_values(column, codes).set_axis(values.index)


def _category_positions(column: Column, values: pd.Series) -> NDArray[np.int64]:
    """Return each value's place among the categories, or -1; every value is treated by itself."""
    if values.dtype == object and types.infer_dtype(values, skipna=True) == "string":
        # Text alone is the same whether it is looked at once or in every row.
        # Unless one is half of a character, which an error would tell.
        with suppress(UnicodeEncodeError):
            values = values.astype("str")
    if values.dtype != object and all(type(category) is str for category in column.categories or ()):
        codes, distinct = pd.factorize(values)
        places = pd.Index(column.categories or (), dtype=object).get_indexer(pd.Index(distinct, dtype=object))
        if (places >= 0).all():
            # As below, but categories by the million are not gone through one by one.
            return np.append(places, -1)[codes].astype(np.int64)
    places_by = places_of(column.categories or ())
    if values.dtype == object:
        return np.array([places_by.place(value) for value in values], dtype=np.int64)
    codes, distinct = pd.factorize(values)
    return np.array([*(places_by.place(value) for value in distinct), -1], dtype=np.int64)[codes]


def _cast(column: Column, values: pd.Series) -> pd.Series:
    try:
        return values.astype(types.pandas_dtype(column.dtype))
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"column {column.name!r} does not fit the dtype {column.dtype} of the schema ({error}); declare another"
        ) from error


def _offset(column: Column) -> int:
    """What is subtracted from whole numbers that would not fit a float64 by themselves."""
    if column.bounds is None or types.is_float_dtype(types.pandas_dtype(column.dtype)):
        return 0
    low, high = (_ticks(column, b) for b in column.bounds) if column.kind == "datetime" else column.bounds
    low, high = int(np.floor(low)), int(np.ceil(high))
    if max(abs(low), abs(high)) <= _WHOLE:
        return 0
    if high - low > _WHOLE:
        raise InputError(
            f"column {column.name!r} spans more whole numbers than a numeric matrix can tell apart; "
            "declare it identifier or categorical, or round it"
        )
    return low


def _ticks(column: Column, stamp: pd.Timestamp) -> int:
    return int(ticks_of(column, pd.Series([stamp]))[0])


def ticks_of(column: Column, stamps: pd.Series) -> NDArray[np.int64]:
    """Return dates as whole units of the column's resolution since 1970, in UTC."""
    if stamps.dt.tz is not None:
        stamps = stamps.dt.tz_convert("UTC").dt.tz_localize(None)
    resolution = column.resolution or "ns"
    return (
        stamps.to_numpy().astype(f"datetime64[{_NUMPY_UNITS.get(resolution, resolution)}]").astype(np.int64)
    )


def column_codes(column: Column, values: pd.Series, *, strict: bool = True) -> NDArray[np.float64]:
    """Return a column as numbers; without ``strict`` what does not fit the schema becomes NaN, not an error.

    Without ``strict`` every value is treated by itself, whatever its column's dtype, and numbers and dates
    beyond the bounds are moved to them.
    """
    if column.names_people:
        raise InputError(
            f"column {column.name!r} holds {column.naming}; drop it, or declare another kind in the schema"
        )
    if not strict and column.kind != "datetime" and (dates := stored_dates(values, "us")) is not None:
        # In years that every date has, or one far off would end the fit.
        values = pd.Series(dates)
    if column.is_category:
        positions = _category_positions(column, values)
        return np.where(positions < 0, np.nan, positions.astype(np.float64))
    if column.kind == "datetime":
        if not strict:
            values = dates_of(column, values)
        return whole_codes(column, ticks_of(column, values), values.isna().to_numpy())
    if not strict:
        numbers = numbers_in(values)
        # As in a file: a number with decimals is the whole one that is nearest.
        numbers = np.rint(numbers) if column.kind == "integer" else numbers
        return numbers if column.bounds is None else np.clip(numbers, *column.bounds)
    if column.kind == "integer" and types.is_integer_dtype(values.dtype):
        if str(values.dtype).lower() == "uint64" and (values > 2**63 - 1).any():
            raise InputError(
                f"column {column.name!r} has whole numbers beyond 64 bits; declare it identifier"
            )
        return whole_codes(column, values.to_numpy(dtype=np.int64, na_value=0), values.isna().to_numpy())
    numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    if (infinite := np.isinf(numbers)).any():
        raise InputError(
            f"column {column.name!r} has {counted(int(infinite.sum()), 'infinite value')} (first in row "
            f"{int(np.argmax(infinite)) + 1}); remove them or mark them as missing"
        )
    return numbers


def outside_domain(column: Column, values: pd.Series) -> NDArray[np.bool_]:
    """Return which values are there and are none that the column may have."""
    present = values.notna().to_numpy()
    if column.is_category:
        return present & (_category_positions(column, values) < 0)
    if column.bounds is None:
        return np.zeros(len(values), dtype=np.bool_)
    if column.kind == "datetime":
        # In whole units, as in codes: the last day ends at midnight. What is no date is below all of them.
        free = replace(column, bounds=None, resolution=column.resolution or "us")
        low, high = (_ticks(free, bound) for bound in column.bounds)
        ticks = ticks_of(free, dates_of(free, values))
        return present & ~((ticks >= low) & (ticks <= high))
    numbers = numbers_in(values)
    low, high = column.bounds
    return present & ~((numbers >= low) & (numbers <= high))


def domain_codes(column: Column) -> tuple[float, float]:
    """Return a number's bounds as codes."""
    if column.bounds is None:
        raise InputError(f"column {column.name!r} has no minimum and maximum; declare them in the schema")
    low, high = (_ticks(column, b) for b in column.bounds) if column.kind == "datetime" else column.bounds
    return float(low - _offset(column)), float(high - _offset(column))


def dates_of(column: Column, values: pd.Series) -> pd.Series:
    """Return values as dates without a zone between the column's bounds, missing where they are no dates."""
    unit = date_unit(column)
    dates = dates_in(values, unit)
    if column.bounds is not None:
        low, high = (stamp_in_unit(bound, unit) for bound in column.bounds)
        # NaT stays, as numpy has it.
        dates = np.where(np.isnat(dates), dates, np.clip(dates, low, high))
    return pd.Series(dates)


def whole_codes(column: Column, whole: NDArray[np.int64], gaps: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return whole numbers as codes, NaN where there is a gap."""
    codes = (whole - _offset(column)).astype(np.float64)
    codes[gaps] = np.nan
    return codes


def column_values(column: Column, codes: NDArray[np.float64]) -> pd.Series:
    """Return the column of its codes, with dtype, decimals and missing values restored."""
    gaps = np.isnan(codes)
    if column.is_category:
        return _categories_of(column, codes, gaps)
    target = types.pandas_dtype(column.dtype)
    if column.kind == "continuous":
        numbers = codes if column.decimals is None else np.round(codes, column.decimals)
        return pd.Series(np.where(gaps, np.nan, numbers)).astype(target)
    if types.is_float_dtype(target):
        return pd.Series(np.rint(codes) + 0.0).astype(target)
    # The largest float below 2^63 is 1024 less.
    whole = np.clip(np.where(gaps, 0, np.rint(codes)), -(2.0**63), 2.0**63 - 1024).astype(np.int64) + _offset(
        column
    )
    if column.kind == "datetime":
        resolution = column.resolution or "ns"
        ticks = whole.view(f"datetime64[{_NUMPY_UNITS.get(resolution, resolution)}]").copy()
        ticks[gaps] = np.datetime64("NaT")
        stamps = pd.Series(ticks)
        if isinstance(target, pd.DatetimeTZDtype):
            stamps = stamps.dt.tz_localize("UTC").dt.tz_convert(target.tz)
        return stamps.astype(target)
    limits = np.iinfo(target.numpy_dtype if hasattr(target, "numpy_dtype") else target)
    whole = np.clip(whole, limits.min, min(limits.max, 2**63 - 1))
    if gaps.any():
        return pd.Series(whole, dtype="Int64").mask(gaps).astype(target)
    return pd.Series(whole).astype(target)


def _categories_of(column: Column, codes: NDArray[np.float64], gaps: NDArray[np.bool_]) -> pd.Series:
    categories = list(column.categories or ())
    positions = np.where(gaps, -1, np.clip(np.rint(np.where(gaps, 0, codes)), 0, len(categories) - 1))
    coded = pd.Categorical.from_codes(
        positions.astype(np.int64), categories=categories, ordered=column.kind == "ordinal"
    )
    if column.dtype == "category":
        return pd.Series(coded)
    values: Any = pd.Series(coded).astype(object)
    return values.astype(types.pandas_dtype(column.dtype))


def _width(column: Column) -> int:
    if column.is_category:
        return len(column.categories or ()) + column.missing
    return 1 + column.missing


def _spread(column: Column, codes: NDArray[np.float64]) -> NDArray[np.float64]:
    gaps = np.isnan(codes)
    if column.is_category:
        width = _width(column)
        positions = np.where(gaps, width - 1, codes).astype(np.int64)
        spread = np.zeros((len(codes), width))
        spread[np.arange(len(codes)), positions] = 1.0
        return spread
    if not column.missing:
        return codes[:, None]
    # The fill only keeps a row near the others; the indicator beside it says that the value is missing.
    fill = 0.0 if gaps.all() else float(np.nanmedian(codes))
    return np.column_stack([np.where(gaps, fill, codes), gaps.astype(np.float64)])


def _gather(column: Column, block: NDArray[np.float64]) -> NDArray[np.float64]:
    if column.is_category:
        codes = np.argmax(block, axis=1).astype(np.float64)
        codes[codes == len(column.categories or ())] = np.nan
        return codes
    if not column.missing:
        return block[:, 0]
    return np.where(block[:, 1] > 0.5, np.nan, block[:, 0])
