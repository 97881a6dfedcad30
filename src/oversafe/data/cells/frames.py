"""DataFrames whose texts were read by a declaration, and the spellings that a DataFrame cannot keep apart."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.errors import InputError
from oversafe.data.cells.categories import places_of
from oversafe.data.cells.formats import MISSING_MARKERS, FileFormat
from oversafe.data.cells.grammar import as_date, as_number, is_name, read_number, text_number
from oversafe.data.cells.read import UNREADABLE, holds_numbers, read_cell
from oversafe.data.dates import stamp_in_unit, stored_dates

if TYPE_CHECKING:
    from oversafe.data.column import Column

READ_MARK = "oversafe:read"
ROWS_MARK = "oversafe:rows"


def digest(column: Column) -> str:
    """Return a short text that two declarations have in common only if they read cells alike."""
    facts = (
        ["number" if holds_numbers(column) else "text"]
        if column.names_people
        else sorted(map(str, column.categories or ()))
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def mark_read(table: pd.DataFrame, columns: Iterable[Column]) -> None:
    """Mark a table: the texts of these columns were read by their declarations, cell by cell."""
    table.attrs[READ_MARK] = {column.name: digest(column) for column in columns}


def mark_by_rows(table: pd.DataFrame) -> None:
    """Mark a table: nothing was declared of it, and its rows decided together how its cells were read."""
    table.attrs[ROWS_MARK] = True


def were_read_by_rows(*tables: Any) -> bool:
    """Return whether one of these was read from a file whose rows decided how its cells were read."""
    return any(
        isinstance(known := getattr(table, "attrs", None), dict) and ROWS_MARK in known for table in tables
    )


def was_read_by(values: pd.Series, column: Column) -> bool:
    """Return whether a column holds texts that :func:`oversafe.data.read_table` read by this declaration.

    They are categories then: of the declaration, or of a person's texts. A column that was put in their place is not.
    """
    mark = values.attrs.get(READ_MARK)
    if not isinstance(mark, dict) or mark.get(str(values.name)) != digest(column):
        return False
    if not isinstance(values.dtype, pd.CategoricalDtype):
        return False
    known = values.dtype.categories.tolist()
    return all(isinstance(text, str) for text in known) and (
        column.names_people or set(known) == set(column.categories or ())
    )


def numbers_in(values: pd.Series) -> NDArray[np.float64]:
    """Return values as floats, NaN where they are no numbers; each by itself."""
    if pd.api.types.is_any_real_numeric_dtype(values.dtype) or pd.api.types.is_bool_dtype(values.dtype):
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    return np.array([as_number(value) for value in values], dtype=np.float64)


def dates_in(values: pd.Series, unit: str) -> NDArray[np.datetime64]:
    """Return values as dates in UTC and one unit, NaT where they are no dates; each by itself."""
    dates = stored_dates(values, unit)
    if dates is not None:
        return dates
    # One by one: pandas chooses the unit of a whole column by its values, and may lose others with it.
    # A number is no date: which one it would be depends on how the column is stored.
    distinct: Any = values
    places = np.arange(len(values))
    if values.dtype != object:
        places, distinct = pd.factorize(values)
    stamps = [*map(as_date, distinct), pd.NaT]
    found = [np.datetime64("NaT") if stamp is pd.NaT else stamp_in_unit(stamp, unit) for stamp in stamps]
    return np.array(found, dtype=f"datetime64[{unit}]")[places]


def text_values(values: pd.Series, column: Column, file: FileFormat) -> pd.Series:
    """Return a column of a DataFrame with its texts as what they are by their declaration.

    A text that stands for a missing value becomes one; what cannot be read stays. Whole numbers are not rounded.
    """
    if column.names_people or not (holds_texts(values.dtype)):
        return values
    known: dict[str, Any] = {}

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value not in known:
            found = read_cell(column, value, file)
            if column.kind == "integer" and isinstance(found, int):
                number = text_number(value, file.decimal)
                found = found if number.is_integer() else number
            known[value] = value if found is UNREADABLE else found
        return known[value]

    codes, distinct = np.arange(len(values)), values
    if values.dtype != object:
        codes, distinct = pd.factorize(values)
    cells = np.fromiter([*(read(value) for value in distinct), None], dtype=object, count=len(distinct) + 1)
    return pd.Series(cells[codes], index=values.index, name=values.name)


def holds_texts(dtype: Any) -> bool:
    """Return whether a column of this dtype is of texts alone, or of categories that are."""
    if isinstance(dtype, pd.CategoricalDtype):
        dtype = dtype.categories.dtype
    return bool(pd.api.types.is_object_dtype(dtype) or pd.api.types.is_string_dtype(dtype))


def read_texts(values: pd.Series, column: Column, file: FileFormat) -> pd.Series:
    """Return a column of a DataFrame with its texts read as in a file of this format; what is no text stays.

    One odd cell leaves text of a whole column that would be numbers without it: 1,5 in place of 1.5.
    """
    if (file.decimal == "." and file.dates is None) or column.names_people or was_read_by(values, column):
        # A point, and dates in their usual forms, are what texts are read with anyway.
        return values
    if pd.api.types.is_numeric_dtype(values.dtype) or pd.api.types.is_datetime64_any_dtype(values.dtype):
        return values

    def read(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        found = read_cell(column, value, file)
        return _by_itself(value, file) if found is UNREADABLE else found

    if values.dtype == object:
        cells = [read(value) for value in values]
    else:
        codes, distinct = pd.factorize(values)
        cells = np.array([*(read(value) for value in distinct), None], dtype=object)[codes].tolist()
    found = pd.Series(
        np.fromiter(cells, dtype=object, count=len(cells)), index=values.index, name=values.name
    )
    found.attrs = values.attrs
    return found


def _by_itself(text: str, file: FileFormat) -> Any:
    """Return the number or the date that a text is, whatever its column: what it is where no other row is text."""
    number = read_number(text, file.decimal)
    if number == number:
        return number
    stamp = as_date(text, file.dates)
    return None if stamp is pd.NaT else stamp


def is_ambiguous(column: Column) -> bool:
    """Return whether a column's public categories are told apart by their exact texts alone."""
    return bool(_one_value(column))


def _one_value(column: Column) -> str:
    """Return which public categories are one value, or missing, to others than this reader; nothing if none are."""
    known = column.categories or ()
    if column.domain != "public":
        return ""
    if same := places_of(known).ambiguous:
        return f"{same[0]!r} and {same[1]!r}, which are the same value"
    comma = next((text for text in known if is_name(text) and not np.isnan(read_number(text, ","))), None)
    if comma is not None:
        return f"{comma!r}, which is a number if the file has a decimal comma"
    marker = next((text for text in known if isinstance(text, str) and text.strip() in MISSING_MARKERS), None)
    return "" if marker is None else f"{marker!r}, which is a missing value"


def check_categories(column: Column, what: str = "") -> None:
    """Refuse public categories that no text tells apart, such as 1 and "1"."""
    same = places_of(column.categories or ()).ambiguous if column.domain == "public" else ()
    if same and not all(isinstance(category, str) for category in same):
        raise InputError(
            f"{what or f'column {column.name!r} has the categories'} {same[0]!r} and {same[1]!r}, which are one value; "
            "write both as text, or leave one out"
        )


def check_spellings(column: Column, values: pd.Series | None, what: str = "") -> None:
    """Refuse public categories that are one value in several spellings, where other rows may have decided on one.

    In a DataFrame "1.10" is 1.1 unless another row is text, and "NA" is missing. Texts that were read by the
    declaration are told apart.

    Parameters
    ----------
    column : Column
        Its categories.
    values : Series, optional
        The column; None for texts that come from a file or a database.
    what : str
        What has them, if not a column.
    """
    check_categories(column, what)
    if values is None or not (same := _one_value(column)) or was_read_by(values, column):
        return
    raise InputError(
        f"{what or f'column {column.name!r} has the categories'} {same} in a DataFrame; read the file with read_table "
        "and this schema"
    )
