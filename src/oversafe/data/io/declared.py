"""A table as its schema declares it: every cell read by itself, and by a public rule where it cannot be read."""

from __future__ import annotations

import sys
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pandas.api import types

from oversafe._core.errors import InputError
from oversafe._core.text import counted, shorten
from oversafe.data.cells import Cells, check_categories, date_unit, is_ambiguous, mark_read, read_column
from oversafe.data.column import Column
from oversafe.data.dates import arrow_dates, in_unit, stamp_in_unit
from oversafe.data.encode import column_codes, column_values, dates_of, whole_codes
from oversafe.data.io._arrow import to_frame
from oversafe.data.io.parse_warnings import Place, row_of
from oversafe.data.schema import Schema, check_columns

_MOST_SHOWN = 3


@dataclass(frozen=True)
class OddCells:
    """The cells of a column that its declaration cannot read; told to whoever holds the table and to nobody else.

    Parameters
    ----------
    column : Column
        Its declaration.
    rows : array of int
        Where they are, from 0.
    found : pyarrow.ChunkedArray
        What they hold.
    """

    column: Column
    rows: NDArray[np.int64]
    found: pa.ChunkedArray

    def within(self, kept: NDArray[np.bool_]) -> OddCells | None:
        """Return those in rows that are kept; None if there are none."""
        mask = kept[self.rows]
        return (
            OddCells(self.column, self.rows[mask], self.found.filter(pa.array(mask))) if mask.any() else None
        )

    def sentence(self, place: Place = row_of) -> str:
        """Return what is said of them; ``place`` says where a row stands, of its number from 0."""
        column = self.column
        becomes = (
            "missing"
            if column.missing or column.stand_in is None
            else repr(shorten(str(column.stand_in), 40))
        )
        return f"{self._what(place)}, and {'counts' if len(self.rows) == 1 else 'count'} as {becomes}"

    def refusal(self, place: Place = row_of) -> InputError:
        """Return the error for those who want such cells refused."""
        them = "it" if len(self.rows) == 1 else "them"
        return InputError(f"{self._what(place)}; correct {them}, or leave out --strict")

    def _what(self, place: Place) -> str:
        try:
            first = self.found[:_MOST_SHOWN].cast(pa.string()).to_pylist()
        except pa.ArrowException:
            first = ["?"] * _MOST_SHOWN
        shown = [
            f"{'nothing' if text is None else repr(shorten(text, 40))} in {place(int(row))}"
            for text, row in zip(first, self.rows, strict=False)
        ]
        if len(self.rows) > len(shown):
            shown.append("...")
        many = counted(len(self.rows), "cell does", "cells do")
        return (
            f"column {shorten(self.column.name, 60)!r}: {many} not fit what is declared ({', '.join(shown)})"
        )


def declared_table(
    table: pa.Table, schema: Schema, *, gaps: Collection[str] = ()
) -> tuple[pd.DataFrame, list[OddCells]]:
    """Return the table with the schema's columns, order and dtypes, and the cells that do not fit.

    A cell that cannot be read becomes missing where values may be, else the column's stand-in; a missing one too.
    Nothing here raises on a value: what becomes of a cell depends on its declaration alone.

    Parameters
    ----------
    table : pyarrow.Table
        Texts of a CSV file, or whatever types a Parquet file or a database has.
    schema : Schema
        Declares all of its columns.
    gaps : collection of str
        Columns in which what is missing stays missing, whatever is declared.
    """
    check_columns(schema, table.column_names)
    for column in schema:
        check_categories(column)

    def read(column: Column) -> tuple[pd.Series, OddCells | None, bool]:
        own = table.column(column.name)
        own = own.cast(own.type.value_type) if pa.types.is_dictionary(own.type) else own
        text = _is_text(own.type)
        cells = read_column(column, own, schema.file) if text else _typed_cells(column, own)
        return *_finished(column, cells, own, column.name in gaps), text

    with ThreadPoolExecutor(max_workers=pa.cpu_count()) as pool:
        found = list(pool.map(read, schema))
    frame = pd.DataFrame(
        {c.name: values for c, (values, _, _) in zip(schema, found, strict=True)}, copy=False
    )
    if schema.person is not None and frame[schema.person].dtype == object:
        # As categories, by which texts are known that were read here.
        frame[schema.person] = frame[schema.person].astype("category")
    mark_read(frame, [column for column, (_, _, text) in zip(schema, found, strict=True) if text])
    return frame, [odd for _, odd, _ in found if odd is not None]


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _typed_cells(column: Column, values: pa.ChunkedArray) -> Cells:
    """Return the cells of a column that holds numbers, truth values or dates."""
    if pa.types.is_timestamp(values.type) or pa.types.is_date(values.type):
        series = pd.Series(arrow_dates(values, date_unit(column)))
    else:
        series = to_frame(pa.table({"": values}))[""]
    missing = series.isna().to_numpy()
    if column.names_people:
        return Cells(series.to_numpy(), missing, np.zeros(len(series), dtype=np.bool_))
    if column.kind == "datetime":
        dates = dates_of(replace(column, bounds=None), series).to_numpy()
        return Cells(dates, missing, np.isnat(dates) & ~missing)
    if column.kind == "integer" and types.is_integer_dtype(series.dtype):
        series = series.clip(upper=2**63 - 1) if types.is_unsigned_integer_dtype(series.dtype) else series
        return Cells(
            series.to_numpy(dtype=np.int64, na_value=0), missing, np.zeros(len(series), dtype=np.bool_)
        )
    codes = column_codes(replace(column, bounds=None), series, strict=False)
    unreadable = np.isnan(codes) & ~missing
    if column.is_category:
        return Cells(np.where(np.isnan(codes), -1, codes).astype(np.int64), missing, unreadable)
    return Cells(codes, missing, unreadable)


def _finished(
    column: Column, cells: Cells, own: pa.ChunkedArray, keep_gaps: bool
) -> tuple[pd.Series, OddCells | None]:
    """Return a column in its dtype, with every cell that is no value as the declaration has it."""
    found, odd = cells.values, cells.unreadable
    none = cells.missing | odd
    if not column.missing and not keep_gaps:
        odd = none
    filled = np.zeros(0, dtype=np.int64) if column.missing else np.flatnonzero(odd)
    left = none.copy()
    if column.names_people:
        filled = filled[:0]
    elif len(filled) and column.stand_in is not None:
        found = found if found.flags.writeable else found.copy()
        found[filled] = _stored(column, found.dtype)
        left[filled] = False
    values = _series(column, found, left, own)
    if not odd.any():
        return values, None
    rows = np.flatnonzero(odd)
    return values, OddCells(column, rows, own.take(pa.array(rows)))


def filled(values: pd.Series, column: Column) -> pd.Series:
    """Return a column read by its declaration with the stand-in where there are gaps."""
    found = values.fillna(column.stand_in)
    return (
        found
        if isinstance(values.dtype, pd.CategoricalDtype)
        else found.astype(types.pandas_dtype(column.dtype))
    )


def _stored(column: Column, dtype: np.dtype[Any]) -> Any:
    if column.is_category:
        return column.stand_in_place
    if column.kind == "datetime":
        return stamp_in_unit(column.stand_in, date_unit(column))
    return column.stand_in


def _series(column: Column, values: NDArray[Any], gaps: NDArray[np.bool_], own: pa.ChunkedArray) -> pd.Series:
    if column.is_category:
        return _category_series(column, values, gaps, own)
    if column.names_people:
        if values.dtype == np.int64:
            return pd.Series(values, dtype="Int64").mask(gaps)
        return pd.Series(values, dtype=None if types.is_numeric_dtype(values.dtype) else object).mask(gaps)
    # Of a column without gaps too, should there be any: whoever asked for them wants to see them.
    column = replace(column, missing=True) if gaps.any() else column
    if column.kind == "datetime":
        return _date_series(column, values, gaps)
    low, high = column.bounds or (-sys.float_info.max, sys.float_info.max)
    if column.kind == "integer" and values.dtype == np.int64:
        if column.bounds is not None and max(abs(low), abs(high)) > 2**53:
            # Codes count from the minimum then, and what lies far from it has none.
            values = np.clip(values, low, high)
        return column_values(column, whole_codes(column, values, gaps))
    infinite = np.isinf(values)
    if infinite.any():
        values = np.where(infinite, np.where(values > 0, high, low), values)
    if column.kind == "integer":
        # The largest float below 2^63 is 1024 less.
        whole = np.clip(np.rint(values), -(2.0**63), 2.0**63 - 1024)
        return column_values(column, np.where(gaps, np.nan, whole))
    numbers = np.where(gaps, np.nan, values) if gaps.any() else values
    return pd.Series(numbers).astype(types.pandas_dtype(column.dtype))


def _date_series(column: Column, values: NDArray[Any], gaps: NDArray[np.bool_]) -> pd.Series:
    dtype: Any = types.pandas_dtype(column.dtype)
    zoned = isinstance(dtype, pd.DatetimeTZDtype)
    unit = dtype.unit if zoned else np.datetime_data(dtype)[0]
    stamps = in_unit(values.view(np.int64), np.datetime_data(values.dtype)[0], unit)
    if zoned:
        # A local date a day within the ends exists wherever it is looked at.
        ends = in_unit(np.array([-(2**62), 2**62]), "us", unit)
        stamps = np.clip(stamps, ends[0] + np.timedelta64(1, "D"), ends[1] - np.timedelta64(1, "D"))
    found = pd.Series(stamps).mask(gaps)
    return found.dt.tz_localize("UTC").astype(dtype) if zoned else found.astype(dtype)


def _category_series(
    column: Column, places: NDArray[np.int64], gaps: NDArray[np.bool_], own: pa.ChunkedArray
) -> pd.Series:
    categories = list(column.categories or ())
    places = np.where(gaps, -1, places)
    if column.dtype == "category" or is_ambiguous(column):
        return pd.Series(
            pd.Categorical.from_codes(places, categories=categories, ordered=column.kind == "ordinal")
        )
    if types.is_string_dtype(types.pandas_dtype(column.dtype)) and all(type(c) is str for c in categories):
        # Through Arrow: one by one they would take several times their memory.
        texts = pa.DictionaryArray.from_arrays(pa.array(places, mask=gaps), pa.array(categories, pa.string()))
        return to_frame(pa.table({"": texts.cast(pa.string())}))[""].astype(types.pandas_dtype(column.dtype))
    return column_values(
        replace(column, missing=column.missing or bool(gaps.any())),
        np.where(gaps, np.nan, places.astype(np.float64)),
    )
