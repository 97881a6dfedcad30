"""The tables that the commands read: which columns and rows of them are used."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oversafe.errors import InputError
from oversafe.text import counted, did_you_mean, listed

if TYPE_CHECKING:
    import pandas as pd

    from oversafe.data import Schema

DropUnlabelledOption = Annotated[
    bool,
    typer.Option("--drop-unlabelled", help="Leave out rows without a label, such as a totals line."),
]

_TOTALS = re.compile(
    r"\W*((zwischen|gesamt|end)?summe|gesamt|insgesamt|(grand |sub)?-?total\w*|sum|somme|suma|totaal|totale?)\b.*",
    re.IGNORECASE,
)


def check_columns_given(names: Iterable[str], columns: Iterable[str]) -> None:
    """Refuse columns to be left out that the table does not have."""
    known = list(columns)
    if unknown := sorted(set(names).difference(known)):
        raise InputError(
            f"the table has no column {unknown[0]!r} to leave out{did_you_mean(unknown[0], known)}; "
            f"its columns are {listed(known)}"
        )


def given_label(label: str | None, command: str) -> str:
    """Return the label, or refuse a command without it, in the same words everywhere."""
    if label is None:
        raise InputError(f"--label is missing; name the column that holds the class: {command}")
    return label


def left_out(
    drop: Iterable[str] | None, label: str, schema: Schema | None, *, persons: bool
) -> tuple[set[str], Schema | None]:
    """Return the columns that are left out of the table, and the schema of the rest.

    The column that says whose row it is stays for methods that have a promise (``persons``), though it be dropped: they
    need it and release it never.
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
        unbounded = dict.fromkeys(("bounds", "decimals", "resolution", "categories"))
        schema = schema.declare(schema.person, kind="identifier", missing=True, **unbounded)
    elif schema.person is not None:
        gone.add(schema.person)
    return gone, schema.drop(gone.intersection(schema.names))


def released_columns(frame: pd.DataFrame, schema: Schema | None) -> list[str]:
    """Return the columns of a release: all but the one that says whose row it is."""
    return [name for name in frame.columns if schema is None or name != schema.person]


def labelled(frame: pd.DataFrame, label: str, source: str, *, drop: bool) -> pd.DataFrame:
    """Return the rows that have a label; those without are refused, unless they are to be dropped."""
    if label not in frame.columns or not (gaps := frame[label].isna()).any():
        return frame
    if drop:
        kept = frame.loc[~gaps].reset_index(drop=True)
        if not len(kept):
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
