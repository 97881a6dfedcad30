"""Dates as people write them: 2024-12-31, or 31.12.2024 with the day first."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import numpy as np
import pandas as pd

_TIME = r"\d{2}(?::\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?)?"
_ZONE = r"\s?(?:Z|[+-]\d{2}(?::?\d{2})?)"
_ISO = re.compile(rf"(?:\d{{4}}|-\d{{3,6}})-\d{{2}}-\d{{2}}(?:[T ]{_TIME}(?:{_ZONE})?)?")
_GERMAN = re.compile(rf"(\d{{1,2}})\.(\d{{1,2}})\.(\d{{4}})(?: ({_TIME}))?")


def as_date(value: Any) -> pd.Timestamp:
    """Return a date, or the date that a text is written as; NaT for all else.

    pandas alone would take more: 03.11.2025 as the 11th of March, 2025 as its first day, "now" as today.

    Examples
    --------
    >>> as_date("03.11.2025")
    Timestamp('2025-11-03 00:00:00')
    >>> as_date("11/03/2025")
    NaT
    """
    if isinstance(value, str):
        text = iso_date(value.strip())
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


def iso_date(text: str) -> str:
    """Return a text of the form 31.12.2024 as 2024-12-31, whether or not there is such a day; any other as it is."""
    match = _GERMAN.fullmatch(text)
    if match is None:
        return text
    day, month, year, time = match.groups()
    return f"{year}-{month:0>2}-{day:0>2}" + (f"T{time}" if time else "")
