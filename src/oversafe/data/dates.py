"""Dates as people write them: 2024-12-31, or 31.12.2024 with the day first."""

from __future__ import annotations

import re
from datetime import date
from typing import Any, Literal

import numpy as np
import pandas as pd

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
