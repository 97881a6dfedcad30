"""What a file without a schema seems to hold: its decimal sign and the kind of each column.

A proposal alone is made here. The cells are then read as if somebody had declared it, and a column that cannot be read
so is text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from oversafe.data.cells.formats import MISSING_MARKERS, FileFormat
from oversafe.data.cells.grammar import CODE, NUMBER, SPACE
from oversafe.data.cells.read import Cells, read_whole_column
from oversafe.data.column import Column

Kind = Callable[[pa.ChunkedArray, FileFormat], "pa.ChunkedArray | None"]

_PROBE_ROWS = 1000
_MISSING = pa.array(MISSING_MARKERS)
# Without a decimal sign or an exponent, and not -0.
_WHOLE = rf"^[{SPACE}]*(?:-?[1-9]|\+?[0-9])[^eE%s]*$"
_WORDS = pa.array(["true", "True", "TRUE", "false", "False", "FALSE"])
_INFINITE = r"[+-]?[iI][nN][fF](?:[iI][nN][iI][tT][yY])?"
_DATE = rf"^[{SPACE}]*(?:(?:[0-9]{{4}}|-[0-9]{{3,6}})-[0-9]{{2}}-[0-9]{{2}}|[0-9]{{1,2}}\.[0-9]{{1,2}}\.[0-9]{{4}})"
_ZONE = r":[0-9.]*\s?(?:Z|[+-][0-9:]{2,5})$"
_FINE = r"[.,][0-9]{7,9}(?:\D|$)"
# The first nanosecond that a date beyond the years of nanoseconds may be moved to.
_LAST_NANOSECOND = (2**63 // 10**9 - 1) * 10**9


def propose_decimal(columns: Iterable[pa.ChunkedArray]) -> str:
    """Return the decimal sign of a file by the columns that are numbers with one of both signs alone.

    Most of them decide. Where there is none, a comma before three digits is a decimal sign, as a point is.
    """
    signs = [_sign_of(column) for column in columns]
    with_comma, with_point = signs.count(","), signs.count(".")
    if with_comma or with_point:
        return "," if with_comma >= with_point else "."
    return "," if ",?" in signs else "."


def _sign_of(column: pa.ChunkedArray) -> str:
    """Return the sign that a column's numbers have, ",?" where a comma may be either, or nothing."""
    probe = clean(column.slice(0, _PROBE_ROWS))
    patterns = {sign: pattern for sign in ".," if _all_match(probe, pattern := _numbers_with(sign))}
    if not patterns:
        return ""
    text = clean(column)
    has_comma = _any(pc.match_substring(text, ","))
    if not has_comma and not _any(pc.match_substring(text, ".")):
        return ""
    fits = [sign for sign, pattern in patterns.items() if _all_match(text, pattern)]
    return fits[0] if len(fits) == 1 else ",?" if fits and has_comma else ""


def read_as_proposed(column: pa.ChunkedArray, decimal: str) -> pa.ChunkedArray | None:
    """Return texts as the numbers, truth values or dates that all of them are; None for a column of text."""
    if column.null_count == len(column):
        return pa.chunked_array([pa.nulls(len(column), pa.float64())])
    file = FileFormat(decimal=decimal)
    probe, text = clean(column.slice(0, _PROBE_ROWS)), None
    for kind in (_numbers, _truths, _dates):
        if kind(probe, file) is None:
            continue
        text = clean(column) if text is None else text
        if text.null_count == len(text):
            return None
        if (found := kind(text, file)) is not None:
            return found
    return None


def clean(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts without the spaces around them, and null where they are marks of a missing value."""
    text = pc.ascii_trim_whitespace(column)
    return pc.if_else(pc.is_in(text, value_set=_MISSING), pa.scalar(None, pa.string()), text)


def _numbers(text: pa.ChunkedArray, file: FileFormat) -> pa.ChunkedArray | None:
    try:
        whole = pc.cast(text, pa.int64())
        # Arrow also takes 007 and 0x1F, and -0, which is no integer.
        if _all(pc.equal(pc.cast(whole, pa.string()), text)):
            return whole
    except pa.ArrowInvalid:
        pass
    # What a spreadsheet is kept from running is a text.
    if _any(pc.starts_with(text, "'")) or _any(pc.match_substring_regex(text, f"^{CODE}")):
        return None
    cells = read_whole_column(Column("", "continuous", "float64"), text, file)
    if cells is None or not _all_or_none_are_shares(text) or _any(pc.is_in(text, value_set=_WORDS)):
        return None
    # The first few spare columns with decimals the look at the rest.
    are_whole = all(_all_match(part, _WHOLE % file.decimal) for part in (text.slice(0, 10), text))
    if are_whole and not (np.abs(cells.values) >= 2**53).any():
        cells = Cells(cells.values.astype(np.int64), cells.missing, cells.unreadable)
    return _array(cells)


def _all_or_none_are_shares(text: pa.ChunkedArray) -> bool:
    """Whether all numbers have a % sign, or none has one."""
    # The first few spare nearly all columns the look at the rest.
    signs = pc.ends_with(text.slice(0, 10), "%")
    if not _any(signs) and not _any(pc.ends_with(text, "%")):
        return True
    return _all(pc.ends_with(text, "%"))


def _truths(text: pa.ChunkedArray, file: FileFormat) -> pa.ChunkedArray | None:
    if not _all(pc.or_(pc.is_in(text, value_set=_WORDS), pc.is_null(text))):
        return None
    return pc.equal(pc.ascii_lower(text), "true")


def _dates(text: pa.ChunkedArray, file: FileFormat) -> pa.ChunkedArray | None:
    if not _all_match(text, _DATE):
        return None
    zoned = pc.match_substring_regex(text, _ZONE)
    if _any(zoned) and not _all(zoned):
        return None
    # Microseconds hold every year from 1 to 9999; nanoseconds only where the digits ask for them.
    unit = "ns" if _any(pc.match_substring_regex(text, _FINE)) else "us"
    cells = read_whole_column(Column("", "datetime", f"datetime64[{unit}]", resolution=unit), text, file)
    if cells is None or (unit == "ns" and (np.abs(cells.values.view(np.int64)) >= _LAST_NANOSECOND).any()):
        return None
    found = _array(cells)
    return found.cast(pa.timestamp(unit, "UTC")) if _any(zoned) else found


def _array(cells: Cells) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(cells.values, mask=cells.missing)])


def _numbers_with(sign: str) -> str:
    return f"^[{SPACE}]*(?:{NUMBER[sign]}|{_INFINITE})[{SPACE}]*$"


def _all_match(text: pa.ChunkedArray, pattern: str) -> bool:
    return _all(pc.match_substring_regex(text, pattern))


def _any(mask: pa.ChunkedArray | pa.Array) -> bool:
    return pc.any(mask, min_count=0).as_py()


def _all(mask: pa.ChunkedArray | pa.Array) -> bool:
    return pc.all(mask, min_count=0).as_py()
