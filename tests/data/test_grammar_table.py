"""The table of docs/reading.md, line by line."""

import math
import re
from pathlib import Path

import pandas as pd
import pytest

from oversafe._core.errors import InputError
from oversafe.cli.options import number_of
from oversafe.data import FileFormat, read_table
from oversafe.data.cells import UNREADABLE, read_cell
from tests.data.readers import Declaration, write_csv

DOCS = (Path(__file__).parents[2] / "docs" / "reading.md").read_text(encoding="utf-8")
TABLE = DOCS.partition("| cell | declared | value |\n|---|---|---|\n")[2].partition("\n\n")[0].splitlines()
LINES = [
    re.fullmatch(r"\| `([^`]+)`(?: \([^)]*\))? \| ([^|]+) \| ([^|]+) \|", line).groups() for line in TABLE
]
DECLARED = {
    "number": Declaration("number"),
    "number, decimal comma": Declaration("number", FileFormat(decimal=",")),
    "whole number": Declaration("whole number"),
    "date": Declaration("date"),
    "date, day first": Declaration("date", FileFormat(dates="day first")),
    "date, month first": Declaration("date", FileFormat(dates="month first")),
    "true or false": Declaration("truth value"),
}


def read(cell, declared, folder):
    if declared == "option":
        try:
            return number_of("--epsilon", cell)
        except InputError:
            return "refused"
    if declared == "nothing":
        write_csv(folder / "t.csv", {"x": [cell, cell], "y": ["a", "b"]})
        value = read_table(folder / "t.csv", decimal=".")["x"][0]
        return "text" if isinstance(value, str) else value
    found = read_cell(DECLARED[declared].column, cell, DECLARED[declared].file)
    return "missing" if found is None else "refused" if found is UNREADABLE else found


def meant(value):
    if re.fullmatch(r"\d{4}-.*", value):
        return pd.Timestamp(value)
    if value in ("true", "false"):
        return value == "true"
    try:
        return float(value)
    except ValueError:
        return value


def test_the_table_is_found_whole():
    assert len(LINES) >= 100
    assert {declared for _, declared, _ in LINES} == {*DECLARED, "option", "nothing"}


@pytest.mark.parametrize(("cell", "declared", "value"), LINES)
def test_a_cell_is_what_the_table_says(cell, declared, value, tmp_path):
    found, wanted = read(cell, declared, tmp_path), meant(value)
    assert found == wanted or (isinstance(found, float) and math.isclose(found, wanted))
