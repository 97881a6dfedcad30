"""The reading of a declared cell: what a text means, by the declaration of its column alone.

No cell is read by looking at another one. :func:`read_cell` is the definition; :func:`read_column` does the same to
a whole column, quickly.
"""

from __future__ import annotations

import codecs
import hashlib
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oversafe._core.checks import check_choice
from oversafe._core.errors import InputError
from oversafe.data.dates import DateOrder, as_date, stamp_in_unit

if TYPE_CHECKING:
    from oversafe.data.column import Column

MISSING_MARKERS = ("", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null")
READ_MARK = "oversafe:read"

_SPACE = " \t\r\n\v\f\u00a0\u202f"
_FALSE, _TRUE = ("false", "False", "FALSE"), ("true", "True", "TRUE")
_INFINITE = re.compile(r"([+-]?)inf(?:inity)?", re.IGNORECASE)
# Where a number or a date may begin: nearly all names are told from both by it.
_STARTS = frozenset("0123456789+-.tTfFiI" + _SPACE)
_FORMULA = re.compile(r"'('*[=+\-@\t\r])")
# A whole column is tried at once, then parts of it down to so many rows, which are read one by one.
_PIECE, _SMALLEST, _PARTS = 1 << 16, 256, 8


def _number_pattern(decimal: str) -> re.Pattern[str]:
    point, group = re.escape(decimal), re.escape("." if decimal == "," else ",")
    groups = "|".join(rf"(?:{mark}[0-9]{{3}})+" for mark in (group, "['\u2019]", "[ \u00a0\u202f]"))
    whole = rf"(?:[1-9][0-9]{{0,2}}(?:{groups})|[0-9]+)"
    digits = rf"{whole}(?:{point}[0-9]*)?|{point}[0-9]+"
    return re.compile(rf"([+-]?(?:{digits})(?:[eE][+-]?[0-9]+)?)(?:[{_SPACE}]?%)?")


_NUMBERS = {decimal: _number_pattern(decimal) for decimal in ".,"}
# What Arrow reads as a number once the signs are exchanged.
_PLAIN_WITH_COMMA = r"^-?(?:[0-9]+|[1-9][0-9]{0,2}(?:\.[0-9]{3})+)(?:,[0-9]*)?$"


@dataclass(frozen=True)
class FileFormat:
    """How a text file is written; part of what is declared of a table.

    Parameters
    ----------
    encoding : str, default="utf-8"
        What cannot be decoded becomes a mark that no declared value has.
    separator : str, default=","
        The character between the fields.
    decimal : {".", ","}, default="."
        The decimal sign. The other one, an apostrophe or a space may group digits by three.
    dates : {"day first", "month first"}, optional
        The order in 03/11/2024, 3-11-2024 and 3.11.2024. When not given, dates are 2024-11-03, or 3.11.2024 with
        the day first.
    missing : sequence of str
        The texts that stand for a missing value, unless they are a declared category.
    domain : {"public", "data"}, default="public"
        Where all of this comes from. What was found in the rows is "data" until somebody vouches for it, and a
        guarantee that rests on it is nominal.
    source : str
        Who says so.
    """

    encoding: str = "utf-8"
    separator: str = ","
    decimal: str = "."
    dates: DateOrder | None = None
    missing: tuple[str, ...] = MISSING_MARKERS
    domain: Literal["public", "data"] = "public"
    source: str = ""

    def __post_init__(self) -> None:
        check_choice("domain", self.domain, ("public", "data"))
        if isinstance(self.missing, list):
            object.__setattr__(self, "missing", tuple(self.missing))
        if not isinstance(self.missing, tuple) or not all(isinstance(text, str) for text in self.missing):
            raise InputError(f"missing = {self.missing!r} was given for a file; give a list of texts")
        check_encoding(self.encoding)
        check_separator(self.separator)
        if self.decimal not in (".", ","):
            raise InputError(f"decimal = {self.decimal!r} was given; give '.' or ','")
        if self.dates is not None and self.dates not in get_args(DateOrder):
            raise InputError(f"dates = {self.dates!r} was given; use {' or '.join(get_args(DateOrder))}")


def check_encoding(encoding: Any) -> None:
    """Refuse an encoding that is not known, or in which one byte changes how all that follow are read."""
    try:
        name = codecs.lookup(encoding).name
        b"a".decode(encoding, "replace")
    except (LookupError, TypeError, UnicodeError):
        raise InputError(
            f"encoding is {encoding!r}, which is not known; give one such as 'utf-8' or 'cp1252'"
        ) from None
    if name.startswith(("iso2022", "utf-7", "hz", "punycode")) or "escape" in name:
        raise InputError(
            f"encoding is {encoding!r}, in which a byte changes how the others are read; save the file as UTF-8"
        )


def check_separator(separator: Any) -> None:
    """Refuse what cannot stand between fields."""
    if (
        not isinstance(separator, str)
        or len(separator) != 1
        or not separator.isascii()
        or separator in '"\r\n\0'
    ):
        raise InputError(f"separator is {separator!r}; give a single character such as ',' ';' or '\\t'")


# One cell


def read_number(text: str, decimal: str = ".") -> float:
    """Return the number that a text is, NaN if it is none.

    Examples
    --------
    >>> read_number("1.234,5 %", ","), read_number("1'234.5"), read_number("1,5")
    (1234.5, 1234.5, nan)
    """
    text = text.strip(_SPACE)
    if match := _NUMBERS[decimal].fullmatch(text):
        plain = re.sub(
            r"[^0-9eE+.-]", "", match[1].replace(".", "").replace(",", ".") if decimal == "," else match[1]
        )
        return float(plain)
    if match := _INFINITE.fullmatch(text):
        return -math.inf if match[1] == "-" else math.inf
    return math.nan


def text_number(text: str) -> float:
    """Return the number that a text is in a table without a format: with a point, or a truth value."""
    if text in _TRUE or text in _FALSE:
        return float(text in _TRUE)
    return read_number(text)


def cell_key(value: Any, decimal: str = ".", dates: DateOrder | None = None) -> str | None:
    """Return what a value is, as text that does not depend on how it is stored or spelt; None for what is no value.

    1, 1.0, True, "1", "+1", "1e0", "01" and "true" are the same: which of them a column holds depends on its other
    rows and on who read them. Likewise a date and the text that is one.
    """
    if isinstance(value, str):
        if value[:1] not in _STARTS:
            return value
        if value in _TRUE or value in _FALSE:
            return str(int(value in _TRUE))
        number = read_number(value, decimal)
        if number == number:
            return _number_key(number)
        stamp = as_date(value, dates)
        return value if stamp is pd.NaT else _date_key(stamp)
    try:
        if isinstance(value, datetime | date | np.datetime64):
            stamp = pd.Timestamp(value)
            return None if stamp is pd.NaT else _date_key(stamp)
        if isinstance(value, np.timedelta64):
            return None
        number = float(value.real if isinstance(value, complex) and not value.imag else value)
    except Exception:
        # Whatever the value's own methods raise: an error would tell of the record.
        return None
    return None if number != number else _number_key(number)


def is_marker(value: Any) -> bool:
    """Return whether a value is a text that stands for a missing one, as it does in a column of numbers."""
    return isinstance(value, str) and value.strip(_SPACE) in MISSING_MARKERS


def is_name(value: Any) -> bool:
    """Return whether a value is a text that is neither a number, a truth value nor a date."""
    return (
        isinstance(value, str)
        and cell_key(value) == value
        and np.isnan(text_number(value))
        and as_date(value) is pd.NaT
    )


def cell_keys(values: pd.Series) -> pd.Series:
    """Return :func:`cell_key` of each value; every value is treated by itself."""
    if values.dtype == object:
        return pd.Series([cell_key(value) for value in values], index=values.index, dtype=object)
    codes, distinct = pd.factorize(values)
    keys = np.array([*(cell_key(value) for value in distinct), None], dtype=object)
    return pd.Series(keys[codes], index=values.index, dtype=object)


def _number_key(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def _date_key(stamp: pd.Timestamp) -> str:
    stamp = stamp if stamp.tz is None else stamp.tz_convert("UTC").tz_localize(None)
    return stamp.isoformat().removesuffix("T00:00:00")


class Categories:
    """The places of declared categories: a cell is one of them by its exact text, else by what it is.

    Parameters
    ----------
    categories : sequence
        As declared.

    Attributes
    ----------
    ambiguous : tuple
        Two of the categories that are the same but for their spelling, if there are any.
    """

    def __init__(self, categories: Sequence[Any]):
        self.exact = {str(category): place for place, category in enumerate(categories)}
        # Told apart as whole numbers; as floats, which one missing value makes of them, they may be one.
        self.long = {
            int(category): place
            for place, category in enumerate(categories)
            if isinstance(category, int | np.integer) and abs(int(category)) >= 2**53
        }
        self.alike: dict[str | None, int] = {}
        self.ambiguous: tuple[Any, ...] = ()
        for place, category in enumerate(categories):
            key = cell_key(category)
            if (first := self.alike.setdefault(key, place)) != place:
                self.ambiguous = self.ambiguous or (categories[max(first, 0)], category)
                self.alike[key] = -1
        self.alike[None] = -1

    def place(self, value: Any, decimal: str = ".", dates: DateOrder | None = None) -> int:
        """Return a value's place, or -1."""
        if isinstance(value, str) and value in self.exact:
            return self.exact[value]
        if self.long and isinstance(value, int | np.integer) and int(value) in self.long:
            return self.long[int(value)]
        return self.alike.get(cell_key(value, decimal, dates), -1)


def places_of(categories: tuple[Any, ...]) -> Categories:
    """Return the places of declared categories, kept for the next one who asks."""
    return _places_of(categories, tuple(map(type, categories)))


@lru_cache(maxsize=512)
def _places_of(categories: tuple[Any, ...], kinds: tuple[type, ...]) -> Categories:
    # In Python 1 equals True, so the types are part of the question.
    return Categories(categories)


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
    text = _FORMULA.sub(r"\1", text, count=1) if text.startswith("'") and _FORMULA.match(text) else text
    if column.is_category:
        place = places_of(column.categories or ()).place(text, file.decimal, file.dates)
        if place >= 0:
            return (column.categories or ())[place]
        return None if text.strip(_SPACE) in file.missing else UNREADABLE
    if column.kind in ("continuous", "integer") or (column.names_people and _counts(column)):
        if text.strip(_SPACE) in file.missing:
            return None
        number = read_number(text, file.decimal)
        if number != number or (column.names_people and not _is_whole(number)):
            return UNREADABLE
        return _whole_of(text, number) if column.kind != "continuous" else number
    if column.kind == "datetime":
        if text.strip(_SPACE) in file.missing:
            return None
        stamp = as_date(text.strip(_SPACE), file.dates)
        return UNREADABLE if stamp is pd.NaT else pd.Timestamp(stamp_in_unit(stamp, date_unit(column)))
    # Of a name or a person's number every character counts.
    if text in file.missing:
        return None
    return UNREADABLE if "\ufffd" in text else text


def _counts(column: Column) -> bool:
    """Whether identifiers are whole numbers."""
    return pd.api.types.is_numeric_dtype(pd.api.types.pandas_dtype(column.dtype))


def _is_whole(number: float) -> bool:
    return abs(number) < 2**53 and number.is_integer()


def _whole_of(text: str, number: float) -> int | float:
    """Return a number as a whole one, exactly where its digits say more than a float can."""
    if math.isinf(number):
        return number
    if abs(number) >= 2**53 and re.fullmatch(r"[+-]?[0-9]{1,19}", digits := text.strip(_SPACE)):
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
    if isinstance(text, pa.Array):
        text = pa.chunked_array([text])
    if not pa.types.is_string(text.type):
        text = text.cast(pa.string())
    if pc.any(pc.starts_with(text, "'"), min_count=0).as_py():
        text = pc.replace_substring_regex(text, rf"^{_FORMULA.pattern}", r"\1", max_replacements=1)
    if column.is_category:
        return _read_categories(column, text, file)
    if column.kind == "continuous":
        return _read_pieces(column, text, file, np.float64, _fast_numbers(file))
    if column.kind == "integer" or (column.names_people and _counts(column)):
        return _read_pieces(column, text, file, np.int64, _fast_whole_numbers(column, file))
    if column.kind == "datetime":
        unit = date_unit(column)
        return _read_pieces(column, text, file, f"datetime64[{unit}]", _fast_dates(unit))
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
        place < 0 and value.strip(_SPACE) in file.missing for place, value in zip(own, distinct, strict=True)
    ]
    # The last one is for empty cells.
    where = pc.fill_null(coded.indices, len(distinct)).to_numpy(zero_copy_only=False)
    found = np.array([*own, -1], dtype=np.int64)[where]
    missing = np.array([*gaps, True], dtype=np.bool_)[where]
    return Cells(found, missing, (found < 0) & ~missing)


def _read_pieces(column: Column, text: pa.ChunkedArray, file: FileFormat, dtype: Any, fast: Fast) -> Cells:
    """Return the cells of a column, quickly where all cells of a piece are plain; the others one by one."""
    n = len(text)
    values = np.zeros(n, dtype=dtype)
    missing, unreadable = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)

    def fill(start: int, own: pa.Array) -> None:
        piece = pc.ascii_trim_whitespace(own)
        piece = pc.if_else(_is_marker(piece, file), pa.scalar(None, pa.string()), piece)
        rows = slice(start, start + len(own))
        if (found := fast(piece)) is not None:
            values[rows] = found
            missing[rows] = piece.is_null().to_numpy(zero_copy_only=False)
        elif len(own) > _SMALLEST:
            step = -(-len(own) // _PARTS)
            for first in range(0, len(own), step):
                fill(start + first, own.slice(first, step))
        else:
            for row, cell in enumerate(own.to_pylist(), start):
                value = read_cell(column, cell, file)
                missing[row], unreadable[row] = value is None, value is UNREADABLE
                if value is not None and value is not UNREADABLE:
                    values[row] = _storable(value, values.dtype)

    start = 0
    for own in text.chunks:
        for first in range(0, len(own), _PIECE):
            fill(start + first, own.slice(first, _PIECE))
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
    def numbers(piece: pa.Array) -> NDArray[Any] | None:
        if file.decimal == ",":
            if not pc.all(pc.match_substring_regex(piece, _PLAIN_WITH_COMMA), min_count=0).as_py():
                return None
            piece = pc.replace_substring(pc.replace_substring(piece, ".", ""), ",", ".")
        try:
            found = pc.cast(piece, pa.float64())
        except pa.ArrowInvalid:
            return None
        # Arrow's own words for what is no number are none of ours.
        if pc.any(pc.is_nan(found), min_count=0).as_py():
            return None
        return pc.fill_null(found, 0.0).to_numpy(zero_copy_only=False)

    return numbers


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


def _fast_dates(unit: str) -> Fast:
    iso = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?)?$"

    def dates(piece: pa.Array) -> NDArray[Any] | None:
        if not pc.all(pc.match_substring_regex(piece, iso), min_count=0).as_py():
            return None
        try:
            found = pc.cast(piece, pa.timestamp(unit))
        except pa.ArrowInvalid:
            return None
        return found.to_numpy(zero_copy_only=False)

    return dates


def _mask(values: Any) -> NDArray[np.bool_]:
    return (
        values.to_numpy(zero_copy_only=False).astype(np.bool_) if len(values) else np.zeros(0, dtype=np.bool_)
    )


# Frames that were read so


def digest(column: Column) -> str:
    """Return a short text that two declarations have in common only if they read cells alike."""
    facts = (
        ["number" if _counts(column) else "text"]
        if column.names_people
        else sorted(map(str, column.categories or ()))
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def mark_read(table: pd.DataFrame, columns: Iterable[Column]) -> None:
    """Mark a table: the texts of these columns were read by their declarations, cell by cell."""
    table.attrs[READ_MARK] = {column.name: digest(column) for column in columns}


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
