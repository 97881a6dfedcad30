"""Texts made fit to be shown: a name may be ten thousand characters long, control a terminal, or hold a password."""

from __future__ import annotations

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
