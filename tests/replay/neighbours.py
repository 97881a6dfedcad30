"""Odd declarations, and two neighbouring tables of odd rows under each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from oversafe.data import Column, FileFormat, Schema
from oversafe.data.cells import cell_key
from oversafe.data.column import RESOLUTIONS
from tests.fuzz.source import Source

# Categories whose spellings meet in one number, date or truth value; and some that meet in nothing.
SPELLINGS: tuple[tuple[Any, ...], ...] = (
    ("1.1", "1.10"), ("1", "1.0"), ("0.1", "0.10"), ("-0", "0"), ("true", "TRUE"), ("1e3", "1000"), ("+1", "1"),
    ("1234567890123456", "1234567890123457"), ("9007199254740992", "9007199254740993"), ("2024-01-01", "01.01.2024"),
    ("007", "7"), ("250", "250.0", "250.00"), ("1,5", "1.5"), ("NA", "nan"), ("M\u00fcller", "Mueller"), ("A", "a"),
    ("=1+1", "'=1+1"), ("10 %", "10"), (1, "1"), (True, "true"), (2**53, 2**53 + 1),
)  # fmt: skip
PLAIN: tuple[tuple[Any, ...], ...] = (
    ("yes", "no"), ("0", "1"), ("a", "b", "c"), ("", "a"), ("only",), (1, 2), (0, 1), (False, True), (0.5, 1.5),
    (1, 1.5), ("2024-01-01", "2024-06-30"), ("1.5", "2.5"), ("M\u00fcller", "Maier"), ("007", "008"), ("1.10", "2.20"),
)  # fmt: skip
RANGES: dict[str, tuple[Any, ...]] = {
    "continuous": ((0.0, 1.0), (0.0, 0.0), (-1e6, 1e6), (0.1, 0.2), (-5e-324, 5e-324)),
    "integer": ((0, 9), (5, 5), (0, 1), (2**53 - 8, 2**53), (2**53 - 2, 2**53 + 6), (-3, 3)),
    "datetime": (("2024-01-01", "2024-12-31"), ("2024-02-29", "2024-02-29"), ("1900-01-01", "2100-01-01")),
}
ODD: tuple[Any, ...] = (
    "x", None, "", float("nan"), float("inf"), 1e300, -1e300, "NaN", "#N/A", " 1 ", "1'234.5", "1,234", "1.234,5",
    "=1+1", "'=1", "0x10", "1e3", "1e999", "12 %", True, "true", "FALSE", 2**53 + 1, 2**70, -1, 0, 1, 1.0, "1.10",
    "007", "\ud800", "M\u00fcller", "2024-02-30", "31.12.2024", "2024-12-31T23:59:60", "9999-12-31", "0001-01-01",
    "1677-09-21T00:12:43.145224193", "9999-12-31T23:59-14:00",
    "12:30", "other", pd.Timestamp("2024-05-05"), Decimal("1.10"), "\u0661", "a\nb", 'a"b', "a;b", "x" * 300,
    0.1 + 0.2, -0.0,
)  # fmt: skip
PERSONS: tuple[Any, ...] = (
    "12.10", "12.1", 12, 12.0, "12", "007", "7", None, 2**53 + 1, 2**53, "2024-01-01", "p1", "p2", "P1", "a b", 3, 4, 5,
    6, "9007199254740993", "9007199254740992", 0.5, "true", "1e3", "1000", "", True,
    "03.11.2024", "3.11.2024", "5 %", "1.234.567",
)  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """A public declaration and two neighbouring tables.

    Parameters
    ----------
    schema : Schema
        All of it is public.
    rows : tuple of two lists of rows
        Their cells are Python objects, in the order of the schema's columns.
    relation : str
        How they are neighbours.
    bound : int, optional
        How many rows a person may have; the tables then differ in one person's rows, else in one row.
    """

    schema: Schema
    rows: tuple[list[list[Any]], list[list[Any]]]
    relation: str = "replace-one"
    bound: int | None = None

    @property
    def shared(self) -> frozenset[tuple[str, str]]:
        """The columns and values of rows that both tables hold, as they are and as the numbers that they may be."""
        others = {id(row) for row in self.rows[1]}
        both = [zip(self.schema.names, row, strict=True) for row in self.rows[0] if id(row) in others]
        forms = (
            (name, (cell_text(cell), cell_key(cell), cell_key(cell_text(cell))))
            for r in both
            for name, cell in r
        )
        return frozenset((name, str(form)) for name, own in forms for form in own if form is not None)

    def csv(self, side: int) -> bytes:
        """Return a table as a CSV file; the files of neighbours differ in the lines of the unit alone."""
        separator, decimal = self.schema.file.separator, self.schema.file.decimal
        head = separator.join(self.schema.names).encode()
        lines = [
            separator.encode().join(csv_cell(cell, decimal, separator) for cell in row)
            for row in self.rows[side]
        ]
        return b"\n".join([head, *lines, b""])


def csv_cell(value: Any, decimal: str = ".", separator: str = ",") -> bytes:
    """Return a cell of a CSV file; half a character becomes a byte that is no UTF-8."""
    text = cell_text(value)
    if text is None:
        return b""
    if isinstance(value, float | Decimal):
        text = text.replace(".", decimal)
    if text == "" or re.search(rf'["\n{separator}]', text):
        text = '"' + text.replace('"', '""') + '"'
    return text.encode(errors="surrogatepass") if "\ud800" not in text else b"M\xfcller"


def cell_text(value: Any) -> str | None:
    """Return a value as text, None where it is missing."""
    if value is None or (isinstance(value, float) and value != value):
        return None
    return value.isoformat() if isinstance(value, pd.Timestamp) else str(value)


def make_pair(source: Source, relation: str, *, persons: bool, domain: str = "public") -> Pair | None:
    """Return a declaration with two neighbours, or None where the declaration contradicts itself.

    Parameters
    ----------
    source : Source
        Whose bytes decide.
    relation : str
        How they are neighbours.
    persons : bool
        Whether there may be persons.
    domain : str
        What is said of the feature columns: "public", or "data" where they are to be estimated.
    """
    bound = source.choose((1, 2, 3)) if persons and source.choose((True, False)) else None
    # Half of the declarations have no two spellings of one value: where others are refused, these are not.
    known = source.choose((PLAIN, SPELLINGS + PLAIN))
    columns = [_column(source, f"x{i}", domain, known) for i in range(1 + source.whole(3))]
    labels = _spelled(source, known)
    columns.insert(source.whole(len(columns)), _categorical("y", labels, True))
    if bound is not None or (persons and not source.often()):
        columns.insert(source.whole(len(columns)), Column("pid", "identifier", "object", True))
    person = "pid" if columns and any(c.name == "pid" for c in columns) else None
    file = FileFormat() if source.often() else FileFormat(separator=";", decimal=",")
    schema = Schema(tuple(columns), label="y", person=person, file=file)
    n, rng = 5 + source.whole(25), source.rng()
    # Odd rows in none of the tables but the unit's own, or here and there; and labels of one class, or of all.
    odd, one_class = source.choose((0.0, 0.0, 0.02, 0.2)), source.choose((False, False, True))
    usual = labels[:1] if one_class else labels
    ids = [PERSONS[i] for i in rng.integers(0, len(PERSONS), 4)]
    rows = [_row(schema, rng, odd, usual, ids) for _ in range(n)]
    if bound is not None:
        return _person_pair(schema, rows, ids, rng, relation, bound)
    first, second = (_own_row(schema, rng, PERSONS) for _ in range(2))
    if relation == "add-remove":
        # At the end, so that the lots of the other rows are the same.
        tables = ([*rows, first], rows)
    else:
        place = int(rng.integers(0, n))
        tables = tuple([*rows[:place], row, *rows[place:]] for row in (first, second))
    return Pair(schema, tables if source.whole(1) else tables[::-1], relation)


def _person_pair(
    schema: Schema, rows: list[list[Any]], ids: list[Any], rng: np.random.Generator, relation: str, bound: int
) -> Pair:
    """Return tables in which one person's rows are others, or are not there; the others' rows keep their places."""
    taken = {_loosely(value) for value in ids}
    free = [value for value in PERSONS if _loosely(value) not in taken]
    sides = []
    for side in range(2):
        own = [free[int(rng.integers(0, len(free)))]]
        n = 0 if side and relation == "add-remove" else 1 + int(rng.integers(0, 2 * bound))
        sides.append([*rows, *(_own_row(schema, rng, own) for _ in range(n))])
    return Pair(schema, (sides[0], sides[1]), relation, bound)


def _loosely(value: Any) -> str:
    """Return a text by which several spellings of one value are the same."""
    text = str(value).strip().lower()
    try:
        return repr(float({"true": "1", "false": "0"}.get(text, text)) + 0.0)
    except ValueError:
        return text


def _column(source: Source, name: str, domain: str, known: Sequence[tuple[Any, ...]]) -> Column:
    kind = source.choose(
        ("categorical", "categorical", "ordinal", "continuous", "integer", "datetime", "boolean")
    )
    missing = source.choose((False, True))
    if kind in ("categorical", "ordinal"):
        return _categorical(name, _spelled(source, known), missing, kind, domain)
    if kind == "boolean":
        return _categorical(
            name, source.choose(((False, True), ("no", "yes"), (0, 1))), missing, kind, domain
        )
    facts: dict[str, Any] = {"bounds": source.choose(RANGES[kind])}
    if kind == "datetime":
        facts["resolution"] = source.choose((None, *RESOLUTIONS))
    if kind == "continuous":
        facts["decimals"] = source.choose((None, 0, 2))
    return Column(name, kind, "object", missing, domain=domain, source="a code book", **facts)


def _categorical(
    name: str, categories: Sequence[Any], missing: bool, kind: Any = "categorical", domain: str = "public"
) -> Column:
    dtype = {bool: "bool", int: "int64", float: "float64"}.get(type(categories[0]), "object")
    return Column(
        name, kind, dtype, missing, categories=tuple(categories), domain=domain, source="a code book"
    )  # type: ignore[arg-type]


def _spelled(source: Source, known: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    categories = source.choose(known)
    return (*categories, "other") if source.choose((True, False)) else categories


def _row(
    schema: Schema, rng: np.random.Generator, odd: float, labels: Sequence[Any], ids: Sequence[Any]
) -> list[Any]:
    """Return a row whose cells fit the declaration, but for some that do not."""
    row = []
    for column in schema:
        if column.name == "pid":
            value = ids[int(rng.integers(0, len(ids)))]
        elif rng.random() < odd:
            value = ODD[int(rng.integers(0, len(ODD)))]
        elif column.is_category:
            # "other" is left to the unit, whose row then changes how the rest is read.
            known = labels if column.name == "y" else column.categories or ()
            usual = [c for c in known if c != "other"] or known
            value = usual[int(rng.integers(0, len(usual)))]
        else:
            value = _number(column, rng)
        row.append(value)
    return row


def _own_row(schema: Schema, rng: np.random.Generator, ids: Sequence[Any]) -> list[Any]:
    """Return a row of the unit that neighbours differ in: none of its cells is odd, one, or many."""
    row = _row(schema, rng, 0.0, schema["y"].categories or (), ids)
    for i, column in enumerate(schema):
        if "other" in (column.categories or ()) and rng.random() < 0.5:
            row[i] = "other"
    places = [i for i, name in enumerate(schema.names) if name != "pid"]
    for i in rng.permutation(places)[: rng.choice((0, 1, 1, 2, len(places)))]:
        row[i] = None if rng.random() < 0.2 else ODD[int(rng.integers(0, len(ODD)))]
    return row


def _number(column: Column, rng: np.random.Generator) -> Any:
    low, high = column.bounds or (0, 1)
    if column.kind == "datetime":
        stamp = low + (high - low) * rng.random()
        return stamp.round("s").isoformat()[: 10 if column.resolution == "D" else 19]
    if column.kind == "integer":
        return int(low) + int(rng.integers(0, int(high) - int(low) + 1))
    return float(
        np.round(low + (high - low) * rng.random(), column.decimals if column.decimals is not None else 6)
    )
