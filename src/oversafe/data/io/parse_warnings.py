"""Text where numbers or dates were meant: the few values that stand in the way, and where they are."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from oversafe._core.text import shorten
from oversafe.data.cells import dates_in, is_marker, text_number
from oversafe.data.cells.grammar import CODE

if TYPE_CHECKING:
    from oversafe.data.schema import Schema

Place = Callable[[int], str]

# From these on a column of text was meant as something else.
_FEWEST, _SHARE = 10, 0.9
_MOST_SHOWN = 3
_CODE = re.compile(CODE)
_DATE_LIKE = re.compile(r"\d{4}-\d|\d{1,2}\.\d{1,2}\.\d")
_STARTS = frozenset("0123456789+-.,<>≤≥")
# Laboratories write what they cannot measure as <0,6.
_BEYOND = re.compile(r"[<>≤≥]=?\s?(?=[\d.,])")


@dataclass(frozen=True)
class Reading:
    """A column read as numbers or dates.

    Parameters
    ----------
    noun : str
        "number" or "date".
    bad : array of bool
        Which values are there and are none.
    n_present : int
        How many values are there.
    sign : str
        What keeps numbers from being read: "a decimal comma", "a % sign", or nothing.
    are_shares : bool
        Whether most values have a % sign, so that one without it is another thing.
    """

    noun: str
    bad: NDArray[np.bool_]
    n_present: int
    sign: str = ""
    are_shares: bool = False

    def share(self, values: pd.Series, place: Place) -> str:
        """Return "1 of 1200 values is no date: '31.02.2025' (line 13)", with the first of what is none."""
        n_bad = int(self.bad.sum())
        are = "is no " + self.noun if n_bad == 1 else f"are no {self.noun}s"
        are += " with a % sign" if self.are_shares else ""
        # Of what occurs often once is enough.
        odd = pd.Series(values.to_numpy(dtype=object)[self.bad].astype(str), index=np.flatnonzero(self.bad))
        odd = odd.drop_duplicates()
        shown = [f"{shorten(text, 80)!r} ({place(int(row))})" for row, text in odd[:_MOST_SHOWN].items()]
        others = " and others" if len(odd) > _MOST_SHOWN else ""
        return f"{n_bad} of {self.n_present} values {are}: {', '.join(shown)}{others}"

    @property
    def remedy(self) -> str:
        """What to do about the values that are none."""
        return (
            "correct it, or leave its cell empty"
            if self.bad.sum() == 1
            else "correct them, or leave their cells empty"
        )


def row_of(row: int) -> str:
    """Return where a row stands if nothing is known of its file."""
    return f"row {row + 1}"


def as_numbers(values: pd.Series) -> Reading:
    """Return which values are no numbers, with the decimal sign and the % sign that most of them have."""
    present = values.notna().to_numpy()
    places, texts = _texts(values)
    marks = np.array([is_marker(text) for text in texts], dtype=bool)
    shares = np.array([text.endswith("%") for text in texts], dtype=bool)
    point, comma = (
        np.array([not np.isnan(text_number(text, sign)) for text in texts], dtype=bool) for sign in ".,"
    )
    n_present = int(present.sum())
    are_shares = bool(2 * shares[places[present]].sum() > n_present)
    if are_shares:
        point, comma = point & shares, comma & shares
    sign, fits = ("a % sign" if are_shares else ""), point
    if comma[places[present]].sum() > point[places[present]].sum():
        sign, fits = "a decimal comma", comma
    return Reading("number", present & ~(fits | marks)[places], n_present, sign, are_shares)


def as_dates(values: pd.Series, unit: str = "us") -> tuple[pd.Series, Reading]:
    """Return values as dates in UTC, missing where they are none, and which are none."""
    moments = dates_in(values, unit)
    present = values.notna().to_numpy()
    bad = np.isnat(moments) & present
    bad[bad] = [not is_marker(value) for value in values[bad]]
    return pd.Series(moments, index=values.index).dt.tz_localize("UTC"), Reading(
        "date", bad, int(present.sum())
    )


def misread(schema: Schema, table: pd.DataFrame, place: Place = row_of) -> dict[str, str]:
    """Return a sentence for each column of text nearly all of which is numbers or dates.

    Parameters
    ----------
    schema : Schema
        Columns whose domain is declared are as somebody wants them.
    table : DataFrame
        Its rows.
    place : callable, optional
        What says where a row stands, of its number from 0.
    """
    found = {}
    for column in schema:
        if column.is_number or column.domain != "data" or column.name in (schema.label, schema.person):
            continue
        if column.name not in table.columns:
            continue
        values = table[column.name]
        if not types.is_string_dtype(values.dtype) or values.notna().sum() < _FEWEST:
            continue
        if (sentence := _misread(values, place)) is not None:
            found[column.name] = f"column {shorten(column.name, 60)!r} {sentence}"
    return found


def _misread(values: pd.Series, place: Place) -> str | None:
    places, texts = _texts(values)
    present = values.notna().to_numpy()
    likely = np.array([text[:1] in _STARTS for text in texts], dtype=bool)[places]
    if likely[present].sum() < present.sum() / 2:
        return None
    if _is_dates(values, places, texts):
        reading = as_dates(values)[1]
    else:
        reading = as_numbers(values)
        if any(_CODE.match(text) for text in texts):
            return None
        beyond = np.array([_BEYOND.match(text) is not None for text in texts], dtype=bool)[places]
        n_bad = int(reading.bad.sum())
        if n_bad > reading.n_present / 2 or (reading.bad & ~beyond).sum() > (1 - _SHARE) * reading.n_present:
            return None
        if not n_bad:
            return _with_a_sign(reading.sign)
    if not reading.bad.any():
        return None
    return (
        f"seems to hold {reading.noun}s, but was read as text: {reading.share(values, place)}; if "
        f"{reading.noun}s are meant, {reading.remedy}"
    )


def _is_dates(values: pd.Series, places: NDArray[np.int64], texts: list[str]) -> bool:
    """Whether nearly all texts are dates; a year alone is a number."""
    likely = np.array([_DATE_LIKE.match(text) is not None for text in texts], dtype=bool)
    present = values.notna().to_numpy()
    if likely[places[present]].sum() < _SHARE * present.sum():
        return False
    return bool(as_dates(values)[1].bad.sum() <= (1 - _SHARE) * present.sum())


def _with_a_sign(sign: str) -> str | None:
    if not sign:
        # Whoever stored numbers as text, other than in a CSV file, has a reason.
        return None
    return f"seems to hold numbers with {sign}, but was read as text; if numbers are meant, {remedy_of(sign)}"


def remedy_of(sign: str) -> str:
    """Return what to do about numbers with a sign that keeps them from being read."""
    if sign == "a % sign":
        return "remove the sign"
    return "write them with a point, or say so when a CSV file is read (--decimal , on the command line)"


def _texts(values: pd.Series) -> tuple[NDArray[np.int64], list[str]]:
    """Return the distinct values as texts without spaces around them, and each value's place among them."""
    as_text: Any = values.astype(object).where(values.notna(), "").map(str)
    places, distinct = pd.factorize(as_text.str.strip().to_numpy(dtype=object))
    return places.astype(np.int64), list(distinct)
