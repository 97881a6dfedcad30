"""Texts made fit to be shown: a name may be ten thousand characters long, control a terminal, or hold a password."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from os import PathLike

# What XML forbids, what moves a terminal's cursor, and what turns the direction of the text around it.
_UNSHOWABLE = re.compile(
    "[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff\\ufffe\\uffff]"
)

# Of columns, where the reader needs all of them: more are a table of measurements, and nobody reads them.
MOST_NAMES = 1000


def showable(text: str) -> str:
    """Return a text with a mark in place of every character that cannot be shown."""
    return _UNSHOWABLE.sub("\ufffd", text)


def shorten(text: str, most: int) -> str:
    """Return a text that can be shown, cut to a length."""
    text = showable(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return names in quotes, the first few of them."""
    shown = ", ".join(repr(shorten(name, 60)) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def joined(names: Sequence[str]) -> str:
    """Return names as a sentence has them: A, B and C."""
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return " (did you mean 'Age'?)" for a name that is misspelt, or nothing where none is alike."""
    known: dict[str, str] = {}
    for each in names:
        known.setdefault(str(each).strip().casefold(), str(each))
    near = get_close_matches(str(name).strip().casefold(), known, n=1, cutoff=0.7)
    return f" (did you mean {shorten(known[near[0]], 60)!r}?)" if near else ""


def without_password(address: str | PathLike[str]) -> str:
    """Return a database's address, or a text that holds one, without its password; a file's name as it is."""
    text = re.sub(r"(://[^:/?@]*):.*@", r"\1@", str(address))
    return re.sub(r"(?i)([?&][^=&]*(?:pass|secret|token|key)[^=&]*=)[^&#]*", r"\1***", text)


def counted(n: int, one: str, more: str | None = None) -> str:
    """Return a number with its noun: 1 row, 2 rows."""
    return f"{n} {one if n == 1 else more or one + 's'}"


def percent(share: float) -> str:
    """Return a share in percent; what is not nothing is not shown as nothing, nor what is not all as all."""
    if 0 < share < 0.005:
        return "below 1 %"
    if 0.995 <= share < 1:
        return "above 99 %"
    return f"{round(100 * share)} %"


def percent_range(low: float, high: float) -> str:
    """Return an interval in percent, rounded outwards so that it holds what it held."""
    # But for the rounding of floats: 7 % must not become 8.
    return f"{math.floor(round(100 * low, 6))} to {math.ceil(round(100 * high, 6))} %"


def percent_at_least(low: float) -> str:
    """Return the lower end of an interval in percent, as something that was reached."""
    return "100 %" if low >= 1 else f"at least {math.floor(round(100 * low, 6))} %"
