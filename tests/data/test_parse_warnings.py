"""Columns of text that were meant as numbers or dates, and those that are text."""

from __future__ import annotations

import pandas as pd
import pytest

from oversafe._core.errors import InputError
from oversafe.data import FileFormat, Schema
from oversafe.data.column import Column
from oversafe.data.io.parse_warnings import misread

DATES = [f"{day:02d}.03.2025" for day in range(1, 31)]
COMMA = [f"{whole},5" for whole in range(30)]
POINT = [f"{whole}.25" for whole in range(30)]


def told(values) -> str | None:
    table = pd.DataFrame({"x": values})
    return misread(Schema.infer(table), table).get("x")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([*DATES, "31.02.2025"], "1 of 31 values is no date: '31.02.2025' (row 31)"),
        (["12.13.1950", *DATES], "1 of 31 values is no date: '12.13.1950' (row 1)"),
        ([*DATES, None, "2025-04-01", "n.b."], "1 of 32 values is no date: 'n.b.' (row 33)"),
        ([*COMMA, "n.b."], "1 of 31 values is no number: 'n.b.' (row 31)"),
        ([*COMMA, "1.234,5", "17", "n.b."], "1 of 33 values is no number: 'n.b.'"),
        (["n.b.", *POINT, "n.b."], "2 of 32 values are no numbers: 'n.b.' (row 1);"),
        ([*POINT * 2, *"abcd"], "'a' (row 61), 'b' (row 62), 'c' (row 63) and others;"),
        ([*COMMA, *["<0,6"] * 12], "12 of 42 values are no numbers: '<0,6' (row 31)"),
        ([f"{x} %" for x in COMMA] + ["63,4"], "1 of 31 values is no number with a % sign: '63,4' (row 31)"),
        (
            [f"{x}\xa0%" for x in POINT],
            "numbers with a % sign, but was read as text; if numbers are meant, remove",
        ),
        (
            COMMA,
            "numbers with a decimal comma, but was read as text; if numbers are meant, write them with a point",
        ),
    ],
)
def test_text_that_was_meant_as_something_else_is_told_with_what_stands_in_the_way(values, message):
    assert message in (told(values) or "")


@pytest.mark.parametrize(
    "values",
    [
        [f"{code:05d}" for code in range(900, 100_000, 1_100)],
        ["C50.9", "E11", "I10", "5 %", "10 % Alkohol"] * 10,
        ["1.2.3", "2.0.1"] * 10,
        [*"123", *"abc"] * 10,
        ["12 Monate", "6 Monate", "3"] * 10,
        [str(number) for number in range(30)],
        [*COMMA[:8], "n.b."],
        [*COMMA, *["n.b."] * 5],
        [None] * 30,
        ["2 mg", "5 mg"] * 10,
    ],
)
def test_what_is_text_is_left_in_peace(values):
    assert told([text if text is None else str(text) for text in values]) is None


def test_what_somebody_declared_is_not_doubted():
    table = pd.DataFrame({"x": [*COMMA, "n.b."]})
    schema = Schema.infer(table).declare("x", kind="categorical", domain="public", source="a list")
    assert misread(schema, table) == {}


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("datetime", [*DATES, "31.02.2025"], "and 1 of 31 values is no date: '31.02.2025' (row 31);"),
        ("continuous", [*COMMA, "n.b."], "and 1 of 31 values is no number: 'n.b.' (row 31); correct it"),
        ("continuous", [*COMMA, "<0,6"], "and 1 of 31 values is no number: '<0,6' (row 31)"),
        (
            "continuous",
            COMMA,
            "'x' holds numbers with a decimal comma, read as text; write them with a point",
        ),
        (
            "continuous",
            [f"{x}%" for x in COMMA],
            "'x' holds numbers with a decimal comma, read as text; write them with a point",
        ),
        (
            "integer",
            ["red", "blue", "3"],
            "2 of 3 values are no numbers: 'red' (row 1), 'blue' (row 2); declare it cat",
        ),
    ],
)
def test_a_refusal_names_the_bad_values_and_not_the_good_ones(kind, values, message):
    schema = Schema((Column("x", kind, "float64"),))
    with pytest.raises(InputError) as error:
        schema.conform(pd.DataFrame({"x": values}))
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_declared_number_is_read_from_text_as_from_a_file():
    table = pd.DataFrame({"x": ["1'234.5", "5 %", "1,234", "NA"]})
    column = Column("x", "continuous", "float64", missing=True)
    assert Schema((column,)).conform(table)["x"].tolist()[:3] == [1234.5, 5.0, 1234.0]
    comma = Schema((column,), file=FileFormat(decimal=",")).conform(pd.DataFrame({"x": ["1.234,5", "NA"]}))
    assert comma["x"].tolist()[0] == 1234.5 and pd.isna(comma["x"][1])
    with pytest.raises(InputError, match="1 missing value"):
        Schema((Column("x", "continuous", "float64"),)).conform(table)


def test_german_dates_in_text_are_dates():
    column = Column("x", "datetime", "datetime64[us]", bounds=("2025-01-01", "2025-12-31"), resolution="D")
    table = pd.DataFrame({"x": ["03.11.2025", "2025-11-04"]})
    days = [pd.Timestamp("2025-11-03"), pd.Timestamp("2025-11-04")]
    assert Schema((column,)).conform(table)["x"].tolist() == days
