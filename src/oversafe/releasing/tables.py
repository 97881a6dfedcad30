"""Which columns and rows of a table are used, and what is said of the others."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from oversafe._core.errors import InputError
from oversafe._core.text import counted
from oversafe.data import Schema
from oversafe.data.io.declared import filled
from oversafe.data.io.files import read_declared

_TOTALS = re.compile(
    r"\W*((zwischen|gesamt|end)?summe|gesamt|insgesamt|(grand |sub)?-?total\w*|sum|somme|suma|totaal|totale?)\b.*",
    re.IGNORECASE,
)


def read_by_schema(
    source: str,
    schema: Schema,
    *,
    drop: Collection[str] = (),
    drop_unlabelled: bool = False,
    strict: bool = False,
    **written: str | None,
) -> tuple[pd.DataFrame, list[str], Callable[[int], str]]:
    """Return a table as its schema declares it, what its holder should hear of its cells, and where rows stand.

    Nothing that a row holds is refused, unless ``strict`` asks for it: an error would be part of what others see.

    Parameters
    ----------
    source : str
        The table.
    schema : Schema
        What its columns are, without those to leave out.
    drop : collection of str
        Columns to leave out.
    drop_unlabelled : bool
        Whether rows without a label are left out; else they count as the label's stand-in.
    strict : bool
        Whether to refuse cells that do not fit.
    **written
        How the file is written, in place of what the schema says.
    """
    name = schema.label
    frame, odd = read_declared(source, schema, **written, drop=drop, gaps=[] if name is None else [name])
    place, rows, said = places(frame, source), list(range(len(frame))), []
    lacking = None if name is None else frame[name].isna().to_numpy()
    if name is not None and lacking is not None and lacking.any():
        if drop_unlabelled or (strict and not schema[name].missing):
            frame, rows = (
                labelled(frame, name, source, drop=drop_unlabelled, all_may_go=True),
                (~lacking).nonzero()[0].tolist(),
            )
            odd = [left for cells in odd if (left := cells.within(~lacking)) is not None]
        else:
            it, counts = ("it", "counts") if lacking.sum() == 1 else ("they", "count")
            stand_in, sentence = schema[name].stand_in, unlabelled(frame, name, source)
            said.append(f"{sentence}; {it} {counts} as {str(stand_in)!r} unless --drop-unlabelled is given")
            if not schema[name].missing:
                frame[name] = filled(frame[name], schema[name])
    if strict and odd:
        raise odd[0].refusal(place)
    return frame, [cells.sentence(place) for cells in odd] + said, lambda row: place(rows[row])


def left_out(
    drop: Iterable[str] | None, label: str, schema: Schema | None, *, persons: bool
) -> tuple[set[str], Schema | None]:
    """Return the columns that are left out of the table, and the schema of the rest.

    The column that says whose row it is stays for methods that have a promise (``persons``), even if it is in
    ``--drop``: they use it and never release it.
    """
    gone = set(drop or ())
    if label in gone:
        raise InputError(f"the label column {label!r} cannot be left out; name another column")
    if schema is None:
        return gone, None
    schema = replace(schema, label=label)
    if schema.person is not None and persons:
        gone.discard(schema.person)
        # Each id is read as it stands, and a row without one is left out: nothing is mapped to the ends of a range.
        unbounded = dict.fromkeys(("bounds", "decimals", "resolution", "categories", "fallback"))
        schema = schema.declare(schema.person, kind="identifier", missing=True, **unbounded)
    elif schema.person is not None:
        gone.add(schema.person)
    return gone, schema.drop(gone.intersection(schema.names))


def released_columns(frame: pd.DataFrame, schema: Schema | None) -> list[str]:
    """Return the columns of a release: all but the one that says whose row it is."""
    return [name for name in frame.columns if schema is None or name != schema.person]


def labelled(
    frame: pd.DataFrame, label: str, source: str, *, drop: bool, all_may_go: bool = False
) -> pd.DataFrame:
    """Return the rows that have a label; those without are refused, unless they are to be dropped.

    If none has one that is refused too, but for methods under which nobody may hear of it (``all_may_go``).
    """
    if label not in frame.columns or not (gaps := frame[label].isna()).any():
        return frame
    if drop:
        kept = frame.loc[~gaps].reset_index(drop=True)
        if not len(kept) and not all_may_go:
            raise InputError(f"no row has a label in {label!r}; name another column")
        return kept
    raise InputError(f"{unlabelled(frame, label, source)}; correct the file, or add --drop-unlabelled")


def unlabelled(frame: pd.DataFrame, label: str, source: str) -> str | None:
    """Return a sentence about the rows without a label, None where every row has one."""
    gaps = frame[label].isna().to_numpy()
    n_gaps = int(gaps.sum())
    if not n_gaps:
        return None
    first = int(gaps.argmax())
    place = places(frame, source)(first)
    place += " of the file" if place.startswith("line") else ""
    where = place if n_gaps == 1 else f"the first is {place}"
    text = f"{counted(n_gaps, 'row has', 'rows have')} no label in {label!r} ({where})"
    if _looks_like_totals(frame.iloc[first], label):
        text += "; it looks like a totals line" if n_gaps == 1 else "; that one looks like a totals line"
    return text


def places(frame: pd.DataFrame, source: str, label: str | None = None) -> Callable[[int], str]:
    """Return what says where a row stands in its file, also once rows without a label are left out."""
    labels = None if label is None or label not in frame.columns else frame[label]

    @cache
    def known() -> tuple[bool, Any]:
        return (
            _a_line_each(source, len(frame)),
            range(len(frame)) if labels is None else labels.notna().to_numpy().nonzero()[0],
        )

    def place(row: int) -> str:
        in_lines, rows = known()
        return f"line {int(rows[row]) + 2}" if in_lines else f"row {int(rows[row]) + 1}"

    return place


def _a_line_each(source: str, n_rows: int) -> bool:
    """Whether a file of text has one line for each row, below a heading of one line."""
    if Path(source).suffix.lower() not in (".csv", ".tsv", ".txt"):
        return False
    ends, last = 0, b""
    # A file that has gone since it was read tells nothing.
    with suppress(OSError), Path(source).open("rb") as file:
        while part := file.read(1 << 20):
            ends += part.count(b"\n")
            last = part[-2:]
    return ends + (b"\n" not in last) == n_rows + 1


def _looks_like_totals(row: pd.Series, label: str) -> bool:
    """Whether a row says that it sums up the others, or is empty for the most part."""
    values: list[Any] = row.drop(label).dropna().tolist()
    if not values:
        return False
    named = any(isinstance(value, str) and _TOTALS.fullmatch(value.strip()) for value in values[:2])
    return (named and len(values) < len(row) - 1) or len(values) <= (len(row) - 1) / 5
