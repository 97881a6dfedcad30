"""The reading of a declared cell: what a text means, by the declaration of its column alone.

No cell is read by looking at another one. :func:`read_cell` is the definition; :func:`read_column` does the same to
a whole column, quickly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oversafe.data.cells.categories import places_of
from oversafe.data.cells.formats import FileFormat
from oversafe.data.cells.grammar import NUMBER, SPACE, as_date, read_number, text_number
from oversafe.data.dates import stamp_in_unit

if TYPE_CHECKING:
    from oversafe.data.column import Column

_FORMULA = re.compile(r"^'('*[=+\-@\t\r])")
# A whole column is tried at once, then parts of it down to so many rows, which are read one by one.
_PIECE, _SMALLEST, _PARTS = 1 << 16, 256, 8
_FIRST_DAY = np.datetime64("0001-01-01")
# Dates that Arrow reads as the grammar does, and those that it does once they are turned round.
_CLOCK = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
_ISO = rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?:[T ]{_CLOCK})?$"
_ZONED = rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]{_CLOCK}(?:Z|[+-][0-9]{{2}}:[0-9]{{2}})$"
_POINTS = rf"^([0-9]{{1,2}})\.([0-9]{{1,2}})\.([0-9]{{4}})( {_CLOCK})?$"
_ANY = rf"^([0-9]{{1,2}})[./-]([0-9]{{1,2}})[./-]([0-9]{{4}})( {_CLOCK})?$"


class Unreadable:
    """What a cell is that its declaration cannot read."""

    def __repr__(self) -> str:
        return "unreadable"


UNREADABLE = Unreadable()


def read_cell(column: Column, text: str | None, file: FileFormat) -> Any:
    """Return the value of a cell: None if it is missing, UNREADABLE if the declaration cannot read it.

    The rule looks at the column's declaration and at the file's format, and at no other cell.

    Parameters
    ----------
    column : Column
        What is declared.
    text : str, optional
        The cell; None for an empty one without quotes.
    file : FileFormat
        How cells are written.
    """
    if text is None:
        return None
    return _read(column, _FORMULA.sub(r"\1", text, count=1) if text.startswith("'") else text, file)


def _read(column: Column, text: str, file: FileFormat) -> Any:
    """Return :func:`read_cell` of a text without the apostrophe that keeps a spreadsheet from running it."""
    if column.is_category:
        place = places_of(column.categories or ()).place(text, file.decimal, file.dates)
        if place >= 0:
            return (column.categories or ())[place]
        return None if text.strip(SPACE) in file.missing else UNREADABLE
    if column.kind in ("continuous", "integer") or (column.names_people and holds_numbers(column)):
        if text.strip(SPACE) in file.missing:
            return None
        read = read_number if column.names_people else text_number
        number = read(text, file.decimal)
        if number != number or (column.names_people and not _is_whole(number)):
            return UNREADABLE
        return _whole_of(text, number) if column.kind != "continuous" else number
    if column.kind == "datetime":
        if text.strip(SPACE) in file.missing:
            return None
        stamp = as_date(text.strip(SPACE), file.dates)
        return UNREADABLE if stamp is pd.NaT else pd.Timestamp(stamp_in_unit(stamp, date_unit(column)))
    # Of a name or a person's number every character counts.
    if text in file.missing:
        return None
    return UNREADABLE if "\ufffd" in text else text


def holds_numbers(column: Column) -> bool:
    """Whether identifiers are whole numbers."""
    return pd.api.types.is_numeric_dtype(pd.api.types.pandas_dtype(column.dtype))


def _is_whole(number: float) -> bool:
    return abs(number) < 2**53 and number.is_integer()


def _whole_of(text: str, number: float) -> int | float:
    """Return a number as a whole one, exactly where its digits say more than a float can."""
    if math.isinf(number):
        return number
    if abs(number) >= 2**53 and re.fullmatch(r"[+-]?[0-9]{1,19}", digits := text.strip(SPACE)):
        return int(digits)
    return round(number)


def date_unit(column: Column) -> str:
    """Return the unit that a column's dates are held in."""
    return "ns" if column.resolution == "ns" else "us"


# A column


@dataclass(frozen=True)
class Cells:
    """The cells of a column: their values, which of them are missing, and which cannot be read.

    Parameters
    ----------
    values : array
        Numbers, whole numbers, dates in UTC, places among the categories, or texts; anything where there is none.
    missing, unreadable : array of bool
        Of each cell.
    """

    values: NDArray[Any]
    missing: NDArray[np.bool_]
    unreadable: NDArray[np.bool_]


def read_column(column: Column, text: pa.Array | pa.ChunkedArray, file: FileFormat) -> Cells:
    """Return :func:`read_cell` of every cell of a column."""
    cells = _read_column(column, text, file)
    assert cells is not None
    return cells


def read_whole_column(column: Column, clean: pa.ChunkedArray, file: FileFormat) -> Cells | None:
    """Return :func:`read_cell` of every cell of a column of numbers or dates; None if one of them cannot be read.

    The cells have no spaces around them, and those that are missing are null.
    """
    return _read_column(column, clean, file, whole=True)


def _read_column(
    column: Column, text: pa.Array | pa.ChunkedArray, file: FileFormat, *, whole: bool = False
) -> Cells | None:
    if isinstance(text, pa.Array):
        text = pa.chunked_array([text])
    if not pa.types.is_string(text.type):
        text = text.cast(pa.string())
    if not whole and pc.any(pc.starts_with(text, "'"), min_count=0).as_py():
        text = pc.replace_substring_regex(text, _FORMULA.pattern, r"\1", max_replacements=1)
    if column.is_category:
        return _read_categories(column, text, file)
    if column.kind == "continuous":
        return _read_pieces(column, text, file, np.float64, _fast_numbers(file), whole)
    if column.kind == "integer" or (column.names_people and holds_numbers(column)):
        return _read_pieces(column, text, file, np.int64, _fast_whole_numbers(column, file), whole)
    if column.kind == "datetime":
        unit = date_unit(column)
        return _read_pieces(column, text, file, f"datetime64[{unit}]", _fast_dates(unit, file), whole)
    missing = _mask(pc.or_(pc.is_null(text), pc.fill_null(_is_marker(text, file), False)))
    unreadable = _mask(pc.fill_null(pc.match_substring(text, "\ufffd"), False)) & ~missing
    values = text.to_numpy(zero_copy_only=False)
    return Cells(values, missing, unreadable)


Fast = Callable[[pa.Array], "NDArray[Any] | None"]


def _read_categories(column: Column, text: pa.ChunkedArray, file: FileFormat) -> Cells:
    coded = (
        pc.dictionary_encode(text).combine_chunks()
        if text.num_chunks != 1
        else text.chunk(0).dictionary_encode()
    )
    if isinstance(coded, pa.ChunkedArray):
        coded = (
            coded.unify_dictionaries().chunk(0)
            if coded.num_chunks
            else pa.array([], pa.string()).dictionary_encode()
        )
    places = places_of(column.categories or ())
    distinct = coded.dictionary.to_pylist()
    own = [places.place(value, file.decimal, file.dates) for value in distinct]
    gaps = [
        place < 0 and value.strip(SPACE) in file.missing for place, value in zip(own, distinct, strict=True)
    ]
    # The last one is for empty cells.
    where = pc.fill_null(coded.indices, len(distinct)).to_numpy(zero_copy_only=False)
    found = np.array([*own, -1], dtype=np.int64)[where]
    missing = np.array([*gaps, True], dtype=np.bool_)[where]
    return Cells(found, missing, (found < 0) & ~missing)


def _read_pieces(
    column: Column, text: pa.ChunkedArray, file: FileFormat, dtype: Any, fast: Fast, whole: bool
) -> Cells | None:
    """Return the cells of a column, quickly where all cells of a piece are plain; the others one by one.

    With ``whole`` the first one that cannot be read ends it, with None.
    """
    n = len(text)
    values = np.zeros(n, dtype=dtype)
    missing, unreadable = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)

    def fill(start: int, own: pa.Array) -> bool:
        """Return whether to go on."""
        piece = own
        if not whole:
            piece = pc.ascii_trim_whitespace(own)
            piece = pc.if_else(_is_marker(piece, file), pa.scalar(None, pa.string()), piece)
        rows = slice(start, start + len(own))
        if (found := fast(piece)) is not None:
            values[rows] = found
            missing[rows] = piece.is_null().to_numpy(zero_copy_only=False)
        elif len(own) > _SMALLEST:
            step = -(-len(own) // _PARTS)
            return all(fill(start + first, own.slice(first, step)) for first in range(0, len(own), step))
        else:
            for row, cell in enumerate(own.to_pylist(), start):
                value = None if cell is None else (read_cell if whole else _read)(column, cell, file)
                missing[row], unreadable[row] = value is None, value is UNREADABLE
                if value is not None and value is not UNREADABLE:
                    values[row] = _storable(value, values.dtype)
                elif whole and value is UNREADABLE:
                    return False
        return True

    start = 0
    for own in text.chunks:
        for first in range(0, len(own), _PIECE):
            if not fill(start + first, own.slice(first, _PIECE)):
                return None
        start += len(own)
    return Cells(values, missing, unreadable)


def _storable(value: Any, dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "i":
        # Infinite ones too: whatever lies beyond 64 bits is clamped to their ends.
        return (
            int(min(max(value, -(2**63)), 2**63 - 1))
            if abs(value) < math.inf
            else (2**63 - 1 if value > 0 else -(2**63))
        )
    return value.to_datetime64() if dtype.kind == "M" else value


def _is_marker(text: Any, file: FileFormat) -> Any:
    return pc.is_in(text, value_set=pa.array(file.missing, pa.string()))


def _fast_numbers(file: FileFormat) -> Fast:
    pattern = f"^(?:{NUMBER[file.decimal]})$"
    group = "." if file.decimal == "," else ","

    def numbers(piece: pa.Array) -> NDArray[Any] | None:
        # A comma alone, and a point where it groups thousands, are nothing that Arrow reads.
        if file.decimal == "." or not any(_any(pc.match_substring(piece, mark)) for mark in ".,"):
            with suppress(pa.ArrowInvalid):
                return _without_nan(pc.cast(piece, pa.float64()))
        if not _all_match(piece, pattern):
            return None
        piece = pc.replace_substring(piece, group, "")
        if file.decimal == ",":
            piece = pc.replace_substring(piece, ",", ".")
        with suppress(pa.ArrowInvalid):
            return _without_nan(pc.cast(piece, pa.float64()))
        piece = pc.replace_substring_regex(piece, r"^\+|[^0-9eE+.\-]", "")
        # Numbers beyond a float end the cast in PyArrow 23.
        with suppress(pa.ArrowInvalid):
            return _without_nan(pc.cast(piece, pa.float64()))
        return None

    return numbers


def _without_nan(numbers: pa.Array) -> NDArray[Any] | None:
    # Arrow's own words for what is no number are none of ours.
    if pc.any(pc.is_nan(numbers), min_count=0).as_py():
        return None
    return pc.fill_null(numbers, 0.0).to_numpy(zero_copy_only=False)


def _fast_whole_numbers(column: Column, file: FileFormat) -> Fast:
    numbers = _fast_numbers(file)

    def whole(piece: pa.Array) -> NDArray[Any] | None:
        found = numbers(piece)
        if found is None or (np.abs(found) >= 2**53).any():
            return None
        rounded = np.rint(found)
        if column.names_people and (rounded != found).any():
            return None
        return rounded.astype(np.int64)

    return whole


def _fast_dates(unit: str, file: FileFormat) -> Fast:
    turned = _POINTS if file.dates is None else _ANY
    day, month = (r"\1", r"\2") if file.dates != "month first" else (r"\2", r"\1")

    def dates(piece: pa.Array) -> NDArray[Any] | None:
        zone = None
        if not _all_match(piece, _ISO):
            if _all_match(piece, turned):
                piece = pc.replace_substring_regex(piece, turned, rf"\3-0{month}-0{day}\4")
                piece = pc.replace_substring_regex(piece, r"-0([0-9]{2})", r"-\1")
            elif unit == "us" and _all_match(piece, _ZONED):
                zone = "UTC"
            else:
                return None
        try:
            found = pc.cast(piece, pa.timestamp(unit, zone))
        except pa.ArrowInvalid:
            return None
        moments = found.to_numpy(zero_copy_only=False)
        return None if (moments < _FIRST_DAY).any() else moments

    return dates


def _any(mask: pa.Array) -> bool:
    return pc.any(mask, min_count=0).as_py()


def _all_match(piece: pa.Array, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(piece, pattern), min_count=0).as_py()


def _mask(values: Any) -> NDArray[np.bool_]:
    return (
        values.to_numpy(zero_copy_only=False).astype(np.bool_) if len(values) else np.zeros(0, dtype=np.bool_)
    )
