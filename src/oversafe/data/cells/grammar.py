"""The grammar of a cell: the number, the truth value or the date that a text is, looking at no other cell."""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd

from oversafe.data.cells.formats import MISSING_MARKERS, DateOrder

SPACE = " \t\r\n\v\f\u00a0\u202f"
_FALSE, _TRUE = ("false", "False", "FALSE"), ("true", "True", "TRUE")
_INFINITE = re.compile(r"([+-]?)inf(?:inity)?", re.IGNORECASE)
# Where a number or a date may begin: nearly all names are told from both by it.
_STARTS = frozenset("0123456789+-.tTfFiI" + SPACE)

_TIME = r"\d{2}(?::\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?)?"
_ZONE = r"\s?(?:Z|[+-]\d{2}(?::?\d{2})?)"
_ISO = re.compile(rf"(?:\d{{4}}|-\d{{3,6}})-\d{{2}}-\d{{2}}(?:[T ]{_TIME}(?:{_ZONE})?)?", re.ASCII)
# With points alone the day is first wherever they are in use; other signs need a declaration.
_POINTS = re.compile(rf"(\d{{1,2}})\.(\d{{1,2}})\.(\d{{4}})(?: ({_TIME}))?", re.ASCII)
_ANY = re.compile(rf"(\d{{1,2}})[./-](\d{{1,2}})[./-](\d{{4}})(?: ({_TIME}))?", re.ASCII)


def _number_pattern(decimal: str) -> str:
    point, group = re.escape(decimal), re.escape("." if decimal == "," else ",")
    groups = "|".join(rf"(?:{mark}[0-9]{{3}})+" for mark in (group, "['\u2019]", "[ \u00a0\u202f]"))
    whole = rf"(?:[1-9][0-9]{{0,2}}(?:{groups})|[0-9]+)"
    digits = rf"{whole}(?:{point}[0-9]*)?|{point}[0-9]+"
    return rf"([+-]?(?:{digits})(?:[eE][+-]?[0-9]+)?)(?:[{SPACE}]?%)?"


# Of a number with each of the decimal signs; Arrow has the same expressions.
NUMBER = {decimal: _number_pattern(decimal) for decimal in ".,"}
_NUMBERS = {decimal: re.compile(pattern) for decimal, pattern in NUMBER.items()}
# As people type one where nobody groups thousands: an option of the command line.
_PLAIN_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# A leading zero marks a code, such as a postal one, and nobody counts in 19 digits.
CODE = r"[+-]?(?:0[0-9]|[0-9]{19,}$)"
_UNIT = re.compile(r"(.*[0-9.,])\s*([^0-9.,+\s%-]{1,6})", re.DOTALL)


def read_number(text: str, decimal: str = ".") -> float:
    """Return the number that a text is, NaN if it is none.

    Examples
    --------
    >>> read_number("1.234,5 %", ","), read_number("1'234.5"), read_number("1,5")
    (1234.5, 1234.5, nan)
    """
    text = text.strip(SPACE)
    if match := _NUMBERS[decimal].fullmatch(text):
        plain = match[1].replace(".", "").replace(",", ".") if decimal == "," else match[1]
        return float(re.sub(r"[^0-9eE+.-]", "", plain))
    if match := _INFINITE.fullmatch(text):
        return -math.inf if match[1] == "-" else math.inf
    return math.nan


def read_plain_number(text: str) -> float:
    """Return the number that a text is where thousands are not grouped and no sign follows, NaN if it is none."""
    text = text.strip(SPACE)
    return float(text) if _PLAIN_NUMBER.fullmatch(text) else math.nan


def split_unit(text: str) -> tuple[str, str]:
    """Return a text without the unit behind its digits, and the unit; nothing for the unit where there is none."""
    match = _UNIT.fullmatch(text.strip(SPACE))
    return (text, "") if match is None else (match[1], match[2])


def why_no_number(text: str, decimal: str = ".") -> str:
    """Return why a text is no number, as the end of a sentence: "has a decimal comma"."""
    other, name = (",", "comma") if decimal == "." else (".", "point")
    if not math.isnan(read_number(text, other)):
        return f"has a decimal {name}"
    digits, unit = split_unit(text)
    if unit and not math.isnan(read_number(digits, decimal)):
        return f"has the unit {unit!r}"
    return "is no number"


def read_truth(text: str) -> bool | None:
    """Return the truth value that a text is, None if it is none."""
    text = text.strip(SPACE)
    return True if text in _TRUE else False if text in _FALSE else None


def text_number(text: str, decimal: str = ".") -> float:
    """Return the number that a cell of a column of numbers is, where a truth value is 1 or 0; NaN if it is none.

    A column of truth values alone is stored as such, and they count as 1 and 0 there too.
    """
    truth = read_truth(text)
    return read_number(text, decimal) if truth is None else float(truth)


def as_number(value: Any) -> float:
    """Return a value as a float, NaN if it is no number."""
    if isinstance(value, str):
        return text_number(value)
    if isinstance(value, np.datetime64 | np.timedelta64):
        # Of one unit they would be numbers, and where all rows have them, times.
        return np.nan
    if isinstance(value, complex | np.complexfloating) and value.imag == 0:
        value = value.real
    try:
        return float(value)
    except Exception:
        # Whatever the value's own methods raise: an error would tell of the record.
        return np.nan


def cell_key(value: Any, decimal: str = ".", dates: DateOrder | None = None) -> str | None:
    """Return what a value is, as text that does not depend on how it is stored or spelt; None for what is no value.

    1, 1.0, True, "1", "+1", "1e0", "01" and "true" are the same: which of them a column holds depends on its other
    rows and on who read them. Likewise a date and the text that is one.
    """
    if isinstance(value, str):
        if value[:1] not in _STARTS:
            return value
        number = text_number(value, decimal)
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
    return isinstance(value, str) and value.strip(SPACE) in MISSING_MARKERS


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
        text = iso_date(value.strip(SPACE), order)
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
