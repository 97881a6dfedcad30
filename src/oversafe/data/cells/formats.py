"""How a text file is written: what is declared of it beside its columns."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args

from oversafe._core.checks import check_choice
from oversafe._core.errors import InputError

DateOrder = Literal["day first", "month first"]

MISSING_MARKERS = ("", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null")


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
        check_separator(self.separator)
        check_encoding(self.encoding)
        # What was found in the rows promises nothing.
        if self.domain == "public":
            _check_ends(self.encoding, self.separator)
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


def _check_ends(encoding: str, separator: str) -> None:
    """Refuse an encoding in which the last byte of a cell can change how the next cell is read."""
    if not _ends_every_cell(encoding, separator):
        raise InputError(
            f"encoding is {encoding!r}, in which a byte can change how the cell behind the next {separator!r} is read; "
            "save the file as UTF-8"
        )


@cache
def _ends_every_cell(encoding: str, separator: str) -> bool:
    """Whether the marks between cells are read as such behind any bytes, whole characters or broken ones."""
    codec = codecs.lookup(encoding)
    single = [bytes([byte]) for byte in range(256)]
    one_each = len(codec.decode(bytes(range(256)), "replace")[0]) == 256
    broken = single if one_each else [*single, *(a + b for a in single for b in single)]
    return all(
        codec.decode(own + codec.encode(mark)[0], "replace")[0].endswith(mark)
        for own in broken
        for mark in (separator, '"', "\n", "\r")
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
