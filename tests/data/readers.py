"""Everything in the package that turns the text of a cell into a value, asked the same question.

A question is a spelling and a declaration. A reader answers with a value, with MISSING or with REFUSED; None where the
declaration is none that it can be given.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from oversafe._core.errors import InputError
from oversafe.cli.options import number_of
from oversafe.data import Column, FileFormat, Schema, read_table
from oversafe.data.cells import UNREADABLE, read_cell, read_column, read_texts
from oversafe.data.coerce_text import reread
from oversafe.data.encode import column_codes
from oversafe.data.io.files import read_declared
from oversafe.data.io.parse_warnings import as_dates, as_numbers

MISSING, REFUSED = "missing", "refused"
# Of a reader that does not tell one from the other.
NOTHING = "missing or refused"

_SIGNS = ("", "+", "-", "\u2212")
_NUMBERS = (
    "0", "7", "1234", "1.5", "1,5", "1.234", "1,234", "1.234,5", "1,234.5", "1'234", "1'234.5", "1'234,5",
    "1\u2019234.5",
    "1 234", "1 234,5", "1 234.5", "1\u00a0234,5", "1\u202f234.5", ".5", ",5", "5.", "5,", "1e3", "1E-3", "1.5e2",
    "1,5e2",
    "0,123", "0.123", "007", "12,34", "1.234.567", "1,234,567", "12.34.56", "12,34,567", "1'23", "1 23", "0'123",
    "00.5",
    "9007199254740993", "9" * 19, "9" * 30, "1e400", "1,234'567", "1'234 567", "1234,567", "1'234'567.25", "12 345 678",
)  # fmt: skip
_UNITS = ("%", " %", "\u00a0%", "\u202f%", "  %", "%%", " kg", "kg", " €", "€", " EUR", " Mio.")
_OTHERS = (
    "$5", "€ 5", "EUR 5", "<0,6", ">5", "≤1.5", "ca. 5", "~5", "(5)", "5-", " 5", "5 ", "\t5", "5\u00a0", "\u202f5",
    " 1'234.5 ", "+ 5", "- 5", "inf", "-inf", "+Infinity", "INF", "iNf", "infinite", "nan", "NaN", "NAN", "-nan",
    "nan(1)", "1_000", "0x1F", "0b1", "\u0663", "\uff15", "1\u00b2", "\u00bd", "1/2", "1:2", "e5", "1e", "1e+", "1e3.5",
    "--1", "+-1", "1..5", "1,,5", "1.,5", "", " ", "-", "+", ".", ",", "%", "'", "?", "NA", "N/A", "#N/A", "na", "null",
    "NULL", "Null", "None", "none", " NA ", "n.b.", "#REF!", "5 5", "1e-400", "5e", "1d3", "12a", "a12", "C50.9",
    "true", "True", "TRUE", "tRUE", " true", "false", "False", "FALSE", "fALSE", "yes", "no", "ja", "t", "f", "T",
    "y", "1",
    "0.0", "1.0", "01", "+1", "2", "-0",
)  # fmt: skip
_DATES = (
    "2024-01-02", "2024-02-30", "2024-1-2", "2024-01", "2024", "20240102", "24-01-02", "2024/01/02", "2024.01.02",
    "01.02.2024",
    "1.2.2024", "31.02.2024", "13.01.2024", "01.13.2024", "01.02.24", "02/01/2024", "2/1/2024", "13/01/2024",
    "01/13/2024",
    "31/02/2024", "1-2-2024", "13-1-2024", "1-13-2024", "2 Jan 2024", "Jan 2, 2024", "2. Januar 2024", "2024-01-02 10",
    "2024-01-02 10:20", "2024-01-02T10:20:30", "2024-01-02T10:20:30.5", "2024-01-02 10:20:30,5",
    "2024-01-02 10:20:30.123456",
    "2024-01-02T24:00", "2024-01-02T10:20Z", "2024-01-02 10:20+02:00", "2024-01-02T10:20+0200", "2024-01-02T10:20 +02",
    "2024-01-02T10:20:60", "2024-01-02  10:20", "01.02.2024 10:20", "1.2.2024 10:20:30", "1.2.2024T10:20",
    "01/02/2024 10:20",
    "0001-01-01", "9999-12-31", "10000-01-01", "-0044-03-15", "0000-01-01", "now", "today", "NaT", "nat",
    " 2024-01-02 ",
    "\u00a02024-01-02", "1.2.2024 ", "2024-W01", "2024-002", "10:20", "02.01.0999", "1.1.1", "32.1.2024", "0.1.2024",
)  # fmt: skip
SPELLINGS = tuple(
    dict.fromkeys(
        [sign + number for sign, number in itertools.product(_SIGNS, _NUMBERS)]
        + [number + unit for number, unit in itertools.product(("5", "63,4", "63.4", "1'234.5"), _UNITS)]
        + [*_OTHERS, *_DATES]
    )
)


@dataclass(frozen=True)
class Declaration:
    """What is declared of a cell: a kind, and how it is written."""

    kind: str
    file: FileFormat = field(default_factory=lambda: FileFormat(separator=";"))

    @property
    def column(self) -> Column:
        if self.kind == "date":
            return Column("x", "datetime", "datetime64[us]", missing=True, resolution="us")
        if self.kind == "truth value":
            return Column("x", "boolean", "boolean", missing=True, categories=(False, True))
        if self.kind == "whole number":
            return Column("x", "integer", "Int64", missing=True)
        return Column("x", "continuous", "float64", missing=True)


DECLARATIONS = {
    "a number with a point": Declaration("number"),
    "a number with a comma": Declaration("number", FileFormat(separator=";", decimal=",")),
    "a whole number with a point": Declaration("whole number"),
    "a whole number with a comma": Declaration("whole number", FileFormat(separator=";", decimal=",")),
    "a number of an option": Declaration("option"),
    "a date": Declaration("date"),
    "a date with the day first": Declaration("date", FileFormat(separator=";", dates="day first")),
    "a date with the month first": Declaration("date", FileFormat(separator=";", dates="month first")),
    "a truth value": Declaration("truth value"),
}
Question = tuple[str, Declaration]
# Digits, a point and an exponent: of an option nobody groups thousands.
_OPTION = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# What says without a schema that digits are a code; see docs/reading.md.
_UNIT = re.compile(r"[0-9.,]\s*[^0-9.,+\s%-]{1,6}$")
_CODE = re.compile(r"[+-]?(?:0[0-9].*|[0-9]{19,})")


def by_definition(text: str, declared: Declaration) -> Any:
    """Return what the definition of the grammar says."""
    if declared.kind == "option" and not _OPTION.fullmatch(text.strip()):
        return REFUSED
    found = read_cell(declared.column, text, declared.file)
    return MISSING if found is None else REFUSED if found is UNREADABLE else found


def quickly(texts: list[str], declared: Declaration, folder: Path) -> list[Any]:
    """Return what the reader of whole columns says."""
    cells = read_column(declared.column, pa.array(texts, pa.string()), declared.file)
    known = declared.column.categories
    return [
        MISSING if gap else REFUSED if bad else known[value] if known else value
        for value, gap, bad in zip(cells.values, cells.missing, cells.unreadable, strict=True)
    ]


def with_a_schema(texts: list[str], declared: Declaration, folder: Path) -> list[Any]:
    """Return what is read from a CSV file whose schema declares the column."""
    write_csv(folder / "declared.csv", {"x": texts, "y": ["a"] * len(texts)})
    schema = Schema(
        (declared.column, Column("y", "categorical", "str", categories=("a",))), file=declared.file
    )
    frame, odd = read_declared(folder / "declared.csv", schema)
    bad = {int(row) for cells in odd for row in cells.rows}
    return [
        REFUSED if row in bad else MISSING if pd.isna(value) else value
        for row, value in enumerate(frame["x"])
    ]


def without_one(texts: list[str], declared: Declaration, folder: Path) -> list[Any]:
    """Return what is read from a CSV file of columns that each have one spelling throughout."""
    if declared.file.dates is not None or declared.kind == "whole number":
        return [None] * len(texts)
    # A column of marks alone is text: beside a value they are missing.
    plain = {"number": "1", "date": "2024-12-31", "truth value": "true"}[declared.kind]
    rows = [text if by_definition(text, declared) != MISSING else plain for text in texts]
    columns = {f"c{i}": [text, text, row] for i, (text, row) in enumerate(zip(texts, rows, strict=True))}
    write_csv(folder / "found.csv", columns)
    frame = read_table(folder / "found.csv", separator=";", decimal=declared.file.decimal)
    return [_found(frame[name], text, declared) for name, text in zip(columns, texts, strict=True)]


def _found(values: pd.Series, text: str, declared: Declaration) -> Any:
    value, truth = values.iloc[0], pd.api.types.is_bool_dtype(values.dtype)
    number = pd.api.types.is_any_real_numeric_dtype(values.dtype)
    date = pd.api.types.is_datetime64_any_dtype(values.dtype)
    if not (number or truth or date):
        return None if _CODE.fullmatch(text.strip()) and declared.kind != "date" else REFUSED
    if (declared.kind == "date" and not date) or (declared.kind != "date" and date):
        return REFUSED
    if declared.kind == "truth value" and number and value not in (0, 1):
        return REFUSED
    return MISSING if pd.isna(value) else value


def conformed(texts: list[str], declared: Declaration, folder: Path) -> list[Any]:
    """Return what a DataFrame of texts is by a schema that refuses what does not fit,
    such as 1.5 for a whole number."""
    if declared.kind == "whole number":
        return [None] * len(texts)
    schema = Schema((declared.column,), file=declared.file)
    found: list[Any] = []
    for text in texts:
        try:
            value = schema.conform(pd.DataFrame({"x": [text]}, dtype=object))["x"].iloc[0]
        except InputError:
            found.append(REFUSED)
            continue
        found.append(MISSING if pd.isna(value) else value)
    return found


def fitted(texts: list[str], declared: Declaration, folder: Path) -> list[Any]:
    """Return what a DataFrame of texts is to a fit, which refuses nothing."""
    column = declared.column
    values = read_texts(pd.Series(texts, dtype=object, name="x"), column, declared.file)
    codes = column_codes(column, values, strict=False)
    if declared.kind == "date":
        return [NOTHING if np.isnan(code) else pd.Timestamp(int(code), unit="us") for code in codes]
    return [
        NOTHING if np.isnan(code) else column.categories[int(code)] if column.categories else code
        for code in codes
    ]


def coerced(texts: list[str], declared: Declaration, folder: Path) -> list[Any]:
    """Return what text becomes where another table has numbers or dates."""
    if declared.kind not in ("number", "date"):
        return [None] * len(texts)
    found = []
    for text in texts:
        wanted = by_definition(text, declared)
        others = [
            by_definition(text, other) for other in DECLARATIONS.values() if other.kind == declared.kind
        ]
        if is_infinite(wanted) or (
            wanted == REFUSED and (others != [REFUSED] * len(others) or _UNIT.search(text))
        ):
            # It may be read in another way, since nobody says in which one. A unit counts where all have it.
            found.append(None)
            continue
        plain = pd.Timestamp(2000, 1, 1) if declared.kind == "date" else 0.25
        like = pd.Series([plain if isinstance(wanted, str) else wanted])
        if declared.kind == "date" and isinstance(wanted, pd.Timestamp):
            like = like.astype("datetime64[us]")
        read = reread(pd.Series([text] * 3, dtype=object), like)
        found.append(NOTHING if read is None or pd.isna(read.iloc[0]) else read.iloc[0])
    return found


def warned_of(texts: list[str], declared: Declaration, folder: Path) -> list[Any]:
    """Return what a warning about text takes it for: the value where there is nothing to warn of."""
    if declared.kind not in ("number", "date") or declared.file.dates is not None:
        return [None] * len(texts)
    found: list[Any] = []
    for text in texts:
        values = pd.Series([text] * 3, dtype=object)
        if declared.kind == "date":
            stamps, reading = as_dates(values)
            stamp = stamps.iloc[0]
            found.append(REFUSED if reading.bad.any() else MISSING if pd.isna(stamp) else stamp)
            continue
        reading = as_numbers(values)
        sign = "," if reading.sign == "a decimal comma" else "."
        wanted = by_definition(text, declared)
        if not reading.bad.any() and sign != declared.file.decimal:
            # It is told as written with the other sign: right where this one does not fit, or both do.
            both = [by_definition(text, other) for other in list(DECLARATIONS.values())[:2]]
            found.append(REFUSED if wanted == REFUSED else wanted if REFUSED not in both else NOTHING)
        else:
            found.append(REFUSED if reading.bad.any() else wanted if wanted != REFUSED else NOTHING)
    return found


def as_an_option(texts: list[str], declared: Declaration, folder: Path) -> list[Any]:
    """Return what an option of the command line is."""
    found: list[Any] = []
    for text in texts:
        try:
            found.append(number_of("--epsilon", text))
        except InputError:
            found.append(REFUSED)
    return found


def as_a_fact(texts: list[str], declared: Declaration, folder: Path) -> list[Any]:
    """Return what a schema says of a text as a bound, or as the category that a cell is held against."""
    if declared.file != Declaration("date").file or declared.kind == "whole number":
        return [None] * len(texts)
    found: list[Any] = []
    for text in texts:
        wanted = by_definition(text, declared)
        if declared.kind == "date":
            try:
                found.append(Column("x", "datetime", "datetime64[us]", bounds=(text, text)).bounds[0])
            except InputError:
                found.append(NOTHING)
        elif isinstance(wanted, str):
            found.append(None)
        else:
            category = Column("x", "categorical", "str", categories=(text, "other"))
            code = column_codes(category, pd.Series([wanted], dtype=object), strict=False)[0]
            found.append(wanted if code == 0 else REFUSED)
    return found


READERS: dict[str, Callable[[list[str], Declaration, Path], list[Any]]] = {
    "whole columns": quickly,
    "CSV with a schema": with_a_schema,
    "CSV without one": without_one,
    "DataFrame, conform": conformed,
    "DataFrame, fit": fitted,
    "text beside numbers or dates": coerced,
    "warnings about text": warned_of,
    "facts of a schema": as_a_fact,
}
OPTION_READERS = {"options": as_an_option}


def disagreements(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the spellings and declarations about which readers differ, and what each of them says."""
    found = {}
    for name, declared in DECLARATIONS.items():
        texts = list(SPELLINGS)
        readers = OPTION_READERS if declared.kind == "option" else READERS
        answers = {reader: ask(texts, declared, folder) for reader, ask in readers.items()}
        for row, text in enumerate(texts):
            wanted = by_definition(text, declared)
            said = {reader: each[row] for reader, each in answers.items() if each[row] is not None}
            if not all(same(wanted, value) for value in said.values()):
                found[text, name] = {"definition": wanted, **said}
    return found


def is_infinite(value: Any) -> bool:
    return isinstance(value, float | int) and abs(value) >= 1.79e308


def same(wanted: Any, said: Any) -> bool:
    if isinstance(said, str) or isinstance(wanted, str):
        return said == wanted or (said == NOTHING and wanted in (MISSING, REFUSED))
    if isinstance(wanted, pd.Timestamp):
        stamp = pd.Timestamp(said)
        return wanted == (stamp if stamp.tz is None else stamp.tz_convert("UTC").tz_localize(None))
    if is_infinite(wanted) or abs(wanted) > 2**53:
        # A table holds the largest number in the place of an infinite one, and 64 bits of a whole number, as floats.
        most = 2.0**63 if isinstance(wanted, int) or isinstance(said, int | np.integer) else 1.79e308
        return math.isclose(*(min(max(float(value), -most), most) for value in (wanted, said)), rel_tol=1e-15)
    return bool(wanted == said)


def write_csv(file: Path, columns: dict[str, list[str]]) -> None:
    rows = zip(*columns.values(), strict=True)
    lines = [
        ";".join(columns),
        *(";".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows),
    ]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
