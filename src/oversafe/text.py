"""Texts from a table, made fit to be shown: a name may be ten thousand characters long, or control a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence

# What XML forbids, what moves a terminal's cursor, and what turns the direction of the text around it.
_UNSHOWABLE = re.compile(
    "[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff\\ufffe\\uffff]"
)


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
