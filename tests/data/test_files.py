import gzip
import io
import math
import os
import stat
import sys
import threading
import zipfile
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from oversafe._core.errors import InputError, MissingExtraError
from oversafe.data import Schema
from oversafe.data.datasets import load_dataset
from oversafe.data.io import files
from oversafe.data.io._csv import detect_separator
from oversafe.data.io.files import read_as_text, read_table, separator_of, write_table


@pytest.fixture
def csv(tmp_path):
    """Write content to a file and read it as a table."""

    def read(content, name="table.csv", **options):
        file = tmp_path / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_table(file, **options)

    return read


@pytest.fixture
def refused(tmp_path):
    """Return the one sentence that reading a file with this content ends with."""

    def read(content, name="table.csv", **options):
        file = tmp_path / name
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(InputError) as caught:
            read_table(file, **options)
        return one_sentence(caught)

    return read


def one_sentence(caught):
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400
    return message


def round_trip(frame, tmp_path, name="round.csv"):
    write_table(frame, tmp_path / name)
    return read_table(tmp_path / name)


def values(series):
    return [None if pd.isna(value) else value for value in series]


# ------------------------------------------------------------ files as people send them


def test_a_german_excel_export(csv):
    content = 'sep=;\r\nName;Größe;Umsatz;Eintritt;Aktiv\r\n"Müller; Jörg";1,80;1.234,56;01.02.2020;TRUE\r\n'
    content += "Weiß;1,65;-12,00;28.2.2021;FALSE\r\n"
    for encoding in ("cp1252", "utf-8", "utf-8-sig", "utf-16"):
        table = csv(content.encode(encoding))
        assert list(table.columns) == ["Name", "Größe", "Umsatz", "Eintritt", "Aktiv"]
        assert table["Name"].tolist() == ["Müller; Jörg", "Weiß"]
        assert table["Größe"].tolist() == [1.8, 1.65]
        assert table["Umsatz"].tolist() == [1234.56, -12.0]
        assert table["Eintritt"].tolist() == [pd.Timestamp("2020-02-01"), pd.Timestamp("2021-02-28")]
        assert table["Aktiv"].dtype == bool


def test_windows_umlauts_are_read(csv):
    table = csv(b"Gr\xf6\xdfe;Preis\n1,80;3 \x80\n")
    assert list(table.columns) == ["Größe", "Preis"]
    assert table["Preis"].tolist() == ["3 €"]


def test_one_late_umlaut_decides_the_encoding(csv):
    table = csv(b"name,x\n" + b"Meier,1\n" * 500_000 + b"M\xfcller,2\n")
    assert table["name"].iloc[-1] == "Müller"


def test_utf16_with_tabs_as_excel_calls_unicode_text(csv):
    table = csv("a\tb\r\n1\tä\r\n".encode("utf-16"), "table.txt")
    assert table["a"].tolist() == [1]
    assert table["b"].tolist() == ["ä"]


def test_a_given_encoding_is_used(csv, refused):
    assert csv("a,b\nж,1\n".encode("cp1251"), encoding="cp1251")["a"].tolist() == ["ж"]
    assert csv("\ufeffa,b\nж,1\n".encode(), encoding="utf-8")["a"].tolist() == ["ж"]
    assert "'klingon', which is not known" in refused("a,b\n1,2\n", encoding="klingon")
    assert "cannot be read as ascii" in refused("a,b\nä,2\n", encoding="ascii")


def test_gzip_is_unpacked(csv, refused):
    assert csv(gzip.compress(b"a,b\n1,2\n", mtime=0), "table.csv.gz")["b"].tolist() == [2]
    assert "not a complete gzip file" in refused(b"a,b\n1,2\n", "table.csv.gz")
    assert "not a complete gzip file" in refused(gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9], "table.csv.gz")


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_line_ends_of_all_systems(csv, line_end):
    table = csv(line_end.join(["a,b", "1,x", '2,"y', 'z"', ""]))
    assert table["a"].tolist() == [1, 2]
    assert table["b"].tolist() == ["x", f"y{line_end}z"]


def test_blank_lines_are_skipped(csv):
    assert csv("\n\na,b\n\n1,2\n\n3,4\n\n")["b"].tolist() == [2, 4]


def test_a_long_row(csv):
    long = "x" * 3_000_000
    assert csv(f"a,b\n1,{long}\n2,y\n")["b"].tolist() == [long, "y"]
    assert csv(f'a,{long}\n1,"{long}"\n')[long].tolist() == [long]


# ------------------------------------------------------------ separators


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("a,b\n1,2\n", ","),
        ("a;b\n1;2\n", ";"),
        ("a\tb\n1\t2\n", "\t"),
        ("a|b\n1|2\n", "|"),
        ("a;b\n1,5;2,5\n", ";"),
        ("Größe, m;Gewicht, kg\n1,80;75,5\n", ";"),
        ('"a;b",c\n"x;y",1\n', ","),
        ('"a;b","c;d"\n"x;y","z;z"\n', ","),
        ('a,b\n"1;2\n;;",3\n', ","),
        ('a,b\n"he said ""x;y""; z",3\n', ","),
        ('pipe,inch\nshort;er,5"\nlong,6"\n', ","),
        ("a,b,c\n1,2,3\n1,2\n4,5,6\n", ","),
        ("a,b\n1,2,3\n1,2,3\n", ","),
        ("value\n1,5\n2,5\n", ";"),
        ("value\n1\n2\n", ","),
    ],
)
def test_the_separator_is_found(text, separator):
    assert detect_separator(text.encode()) == separator


def test_a_given_separator_is_used(csv, refused):
    assert list(csv("a b\n1 2\n", separator=" ").columns) == ["a", "b"]
    assert list(csv("a;b,c\n1;2,3\n", separator=",").columns) == ["a;b", "c"]
    assert "give a single character" in refused("a,b\n1,2\n", separator="::")
    assert "give a single character" in refused("a,b\n1,2\n", separator='"')


def test_the_whole_of_a_cut_off_sample_is_not_needed(csv):
    table = csv("a;b\n" + '"x,y";"1,2\n3"\n' * 200_000)
    assert table.shape == (200_000, 2)


# ------------------------------------------------------------ decimal signs


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        # proven by itself
        ("x;y\n1,5;a\n2,25;b\n", [1.5, 2.25]),
        ("x;y\n1.234,5;a\n-2;b\n", [1234.5, -2.0]),
        ("x;y\n1.5;a\n2.25;b\n", [1.5, 2.25]),
        ("x;y\n0,123;a\n;b\n", [0.123, None]),
        # either, with a witness in the other column
        ("x;y\n1.234;0,5\n12.345;0,5\n", [1234, 12345]),
        ("x;y\n1.234;0.5\n12.345;0.5\n", [1.234, 12.345]),
        ("x;y\n1.234.567;0,5\n12.345;0,5\n", [1234567, 12345]),
        ("x;y\n1,234;0,5\n12,345;0,5\n", [1.234, 12.345]),
        ("x;y\n1,234;0.5\n12,345;0.5\n", [1234, 12345]),
        ("x;y;z\n1,5;0.5;2.5\n2,5;0.5;3.5\n", ["1,5", "2,5"]),
        # either, without
        ("x;y\n1.234;a\n12.345;b\n", [1.234, 12.345]),
        ("x;y\n1,234;a\n12,345;b\n", [1.234, 12.345]),
        ("x;y\n1,234,567;a\n2;b\n", [1234567, 2]),
        ("x;y\n1'234.5;a\n-2'000;b\n", [1234.5, -2000]),
        ("x;y\n1 234,5;a\n2\u00a0000;b\n", [1234.5, 2000]),
        # neither
        ("x;y\n1,5;a\n2.5;b\n", ["1,5", "2.5"]),
        ("x;y\n192.168.0.1;0,5\n10.0.0.1;0,5\n", ["192.168.0.1", "10.0.0.1"]),
        # one column
        ("x\n1,5\n2,5\n", [1.5, 2.5]),
        # where the comma separates, it is not a decimal sign, but it may group digits
        ('x,y\n"1,234",a\n"2",b\n', [1234, 2]),
        ('x,y\n"1,5",a\n"2,5",b\n', ["1,5", "2,5"]),
    ],
)
def test_the_decimal_sign_of_a_file_is_found(csv, content, expected):
    assert values(csv(content)["x"]) == expected


def test_a_given_decimal_sign_is_used(csv, refused):
    assert csv('x,y\n"1.234,5",a\n"2",b\n', decimal=",")["x"].tolist() == [1234.5, 2.0]
    assert csv("x;y\n1.234;a\n2;b\n", decimal=",")["x"].tolist() == [1234, 2]
    assert csv("x;y\n1,5;a\n2;b\n", decimal=".")["x"].tolist() == ["1,5", "2"]
    assert "give '.' or ','" in refused("a,b\n1,2\n", decimal="'")


# ------------------------------------------------------------ kinds of columns


@pytest.mark.parametrize(
    ("cells", "dtype", "expected"),
    [
        (["1", "-2"], "int64", [1, -2]),
        (["1", ""], "Int64", [1, None]),
        (["9007199254740993", "NA"], "Int64", [9007199254740993, None]),
        (["+5", "-3"], "int64", [5, -3]),
        ([" 5", "7 "], "int64", [5, 7]),
        (["1.5", "2"], "float64", [1.5, 2.0]),
        (["1e5", ".5"], "float64", [1e5, 0.5]),
        (["inf", "-inf"], "float64", [math.inf, -math.inf]),
        (["1.5", "nan"], "float64", [1.5, None]),
        (["true", "False"], "bool", [True, False]),
        (["TRUE", "NULL"], "boolean", [True, None]),
        (["2020-01-31", ""], "datetime64[us]", ["2020-01-31", None]),
        (["2020-01-31T10:20:30", "1066-10-14"], "datetime64[us]", ["2020-01-31 10:20:30", "1066-10-14"]),
        (["31.1.2020", "01.02.2020"], "datetime64[us]", ["2020-01-31", "2020-02-01"]),
        (["31.01.2020 08:15", "01.02.2020"], "datetime64[us]", ["2020-01-31 08:15", "2020-02-01"]),
        (["2020-01-31 10:20:30.123456789"], "datetime64[ns]", ["2020-01-31 10:20:30.123456789"]),
        (["2020-01-31 10:00:00+02:00"], "datetime64[us, UTC]", ["2020-01-31 08:00+00:00"]),
        ([""], "float64", [None]),
    ],
)
def test_a_column_gets_the_kind_that_all_its_values_share(csv, cells, dtype, expected):
    table = csv("x,y\n" + "".join(f"{cell},a\n" for cell in cells))
    assert str(table["x"].dtype) == dtype
    if dtype.startswith("datetime64"):
        expected = [text and pd.Timestamp(text) for text in expected]
    assert values(table["x"]) == expected


@pytest.mark.parametrize(
    "cells",
    [
        ["007", "123"],
        ["-007", "123"],
        ["00.5", "1.5"],
        ["99999999999999999999", "1"],
        ["9223372036854775808", "1.5"],
        ["0x1F", "1"],
        ["1_000", "1"],
        ["12a", "1"],
        ["2020-02-30", "2020-01-01"],
        ["31.02.2020", "01.01.2020"],
        ["2020-01-01", "today"],
        ["true", "1"],
        ["true", "maybe"],
        ["NA", "DE"],
        ["NA", "NA"],
        ["NULL", "nan"],
        ["1", "#REF!"],
    ],
)
def test_anything_else_stays_text_as_it_is(csv, cells):
    table = csv("x,y\n" + "".join(f"{cell},a\n" for cell in cells))
    assert pd.api.types.is_string_dtype(table["x"])
    assert table["x"].tolist() == cells


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["63,4 %", "7,25 %", ""], [63.4, 7.25, None]),
        (["63,4\u00a0%", "100\u00a0%"], [63.4, 100.0]),
        (["63,4\u202f%", "-0,5\u202f%", "NA"], [63.4, -0.5, None]),
        (["12%", "7%"], [12, 7]),
        (["1.234,5 %", "+3 %"], [1234.5, 3.0]),
    ],
)
def test_numbers_with_a_percent_sign_are_numbers(csv, cells, expected):
    assert values(csv("x;y\n" + "".join(f"{cell};a\n" for cell in cells))["x"]) == expected


def test_percent_signs_take_part_in_finding_the_decimal_sign(csv):
    table = csv("share;cost\n12,5 %;1.234\n7,5 %;2.345\n")
    assert table["share"].tolist() == [12.5, 7.5] and table["cost"].tolist() == [1234, 2345]


@pytest.mark.parametrize(
    "cells",
    [
        ["5 %", "10 % Alkohol"],
        ["5 %", "10"],
        ["63,4 %", "n.b."],
        ["%", "5 %"],
        ["5 %%", "6 %"],
        ["05 %", "07 %"],
        ["ca. 5 %", "ca. 6 %"],
        ["5  %", "6  %"],
        ["'-5 %", "'-6 %"],
    ],
)
def test_percent_signs_in_text_stay(csv, cells):
    read = csv("x;y\n" + "".join(f"{cell};a\n" for cell in cells))["x"].tolist()
    assert read == [cell.removeprefix("'") for cell in cells]
    late = csv("x;y\n" + "5 %;a\n" * 2000 + "".join(f"{cell};a\n" for cell in cells))["x"].tolist()
    assert late[2000:] == read and late[0] == "5 %"


def test_a_late_value_decides_the_kind(csv):
    n = 5000
    assert csv("x,y\n" + "1,a\n" * n + "007,a\n")["x"].tolist()[-1] == "007"
    assert csv("x,y\n" + ",a\n" * n + "2020-01-01,a\n")["x"].iloc[-1] == pd.Timestamp("2020-01-01")
    assert csv("x;y\n" + "1;a\n" * n + "2,5;a\n")["x"].iloc[-1] == 2.5


def test_text_tells_missing_from_empty(csv):
    table = csv('x,y\nNA,1\n,2\n"",3\nnull,4\n')
    assert values(table["x"]) == ["NA", None, "", "null"]


def test_quoted_nothing_is_missing_among_numbers(csv):
    assert values(csv('x,y\n"1",a\n"",b\n')["x"]) == [1, None]


def test_in_a_single_column_an_empty_line_is_a_missing_value(csv):
    assert values(csv("x\n1\n\n3\n")["x"]) == [1, None, 3]


# ------------------------------------------------------------ what cannot be read


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.csv' does not exist; give a \.csv"):
        read_table(tmp_path / "nothing.csv")
    with pytest.raises(InputError, match="give a path or a database URL"):
        read_table(17)


@pytest.mark.parametrize("name", ["table.csv", "table.parquet", "table.csv.gz"])
def test_an_empty_file(refused, name):
    assert "table" in refused(b"", name)
    assert "is empty; expected" in refused(b"", name)


@pytest.mark.parametrize("content", [b"\n\n", b"\xef\xbb\xbf", b"  \n ", b"sep=;\n"])
def test_a_file_of_blanks(refused, content):
    assert "is empty; expected a header line and rows" in refused(content)


def test_a_header_without_rows(refused, tmp_path):
    assert refused("a,b\n").startswith("the table has no rows")
    assert refused("sep=;\r\na;b\r\n").startswith("the table has no rows")
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "none.parquet")
    with pytest.raises(InputError, match="the table has no rows"):
        read_table(tmp_path / "none.parquet")


def workbook():
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        # With a date of their own: the present one would give the tests that are named after it another name each time.
        for name, text in (("[Content_Types].xml", "<Types/>"), ("xl/workbook.xml", "<workbook/>")):
            archive.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), text)
    return data.getvalue()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (workbook(), "is an Excel workbook; open it in Excel and save it as CSV UTF-8"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "seems to be an old Excel workbook"),
        (b"PK\x03\x04nothing else", "seems to be a ZIP archive"),
        (b"PAR1....PAR1", "seems to be a Parquet file; rename it to .parquet"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0), "seems to be a gzip file; rename it to .csv.gz"),
        (b"SQLite format 3\x00", "seems to be an SQLite database"),
        (b"a,b\n1,\x002\n", "seems to be a binary file (it has NUL bytes)"),
        (b"\xff\xfea", "neither UTF-8, UTF-16 nor Windows-1252"),
        (b"a,b\n\x81,1\n", "neither UTF-8, UTF-16 nor Windows-1252"),
    ],
)
def test_a_binary_file_named_csv(refused, content, said):
    assert said in refused(content)


def test_an_unknown_kind_of_file(refused):
    assert "is an Excel workbook" in refused(workbook(), "table.xlsx")
    assert "not a kind of file that can be read; give a .csv" in refused("a,b\n1,2\n", "table.json")
    assert "not a kind of file that can be read" in refused("a,b\n1,2\n", "table")


def test_a_damaged_parquet_file(refused, tmp_path):
    assert "is not a complete Parquet file" in refused("a,b\n1,2\n", "table.parquet")
    write_table(pd.DataFrame({"a": range(1000)}), tmp_path / "good.parquet")
    good = (tmp_path / "good.parquet").read_bytes()
    assert "is not a complete Parquet file" in refused(good[:-100], "table.parquet")


def test_damage_anywhere_in_a_parquet_file_is_told_or_harmless(tmp_path):
    frame = pd.DataFrame({"a": range(50), "c": pd.Categorical([1, 2] * 25), "s": ["x", None] * 25})
    write_table(frame, tmp_path / "good.parquet")
    good = (tmp_path / "good.parquet").read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(200):
        bad = bytearray(good)
        bad[rng.integers(len(bad))] ^= 1 << rng.integers(8)
        (tmp_path / "bad.parquet").write_bytes(bad)
        try:
            read_table(tmp_path / "bad.parquet")
        except InputError as error:
            assert "\n" not in str(error)


def test_column_names_that_repeat_or_are_empty(refused, tmp_path):
    assert "more than one column named 'a', 'b'; rename" in refused("a,b,a,b,c\n1,2,3,4,5\n")
    assert "column 1 of" in refused(",a\n0,1\n")
    assert "column 2 of" in refused('a,""\n0,1\n')
    assert "column 3 of" in refused("a;b;\n1;2;\n")
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(table, tmp_path / "twice.parquet")
    with pytest.raises(InputError, match="more than one column named 'a'"):
        read_table(tmp_path / "twice.parquet")


def test_a_ragged_row_is_named(refused):
    said = refused("a,b,c\n1,2,3\n4,5\n6,7,8\n")
    assert said.startswith("row 3 of ")
    assert "has 2 fields, the header has 3 (separator ',', the header is row 1)" in said
    assert "row 100002 of" in refused("a,b\n" + "1,2\n" * 100_000 + "1,2,3\n")
    assert "row 4 of" in refused("sep=;\na;b\n1;2\n1;2;3\n")
    assert "has 3 fields, the header has 2" in refused("a,b\n1,2,3\n4,5,6\n")


def test_a_quote_that_is_never_closed(refused):
    assert "close the quote that was opened in this row" in refused('a,b\n1,2\n"x,2\n3,4\n')
    assert "has a quoted value that is never closed" in refused('a,b\n1,"x\n2,y\n3,z\n')


def test_a_folder_without_parquet(tmp_path):
    (tmp_path / "note.txt").write_text("no data here")
    with pytest.raises(InputError, match=r"folder without \.parquet files"):
        read_table(tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="rights work differently on this system")
@pytest.mark.parametrize("name", ["table.csv", "table.parquet"])
def test_a_file_without_the_right_to_read(tmp_path, monkeypatch, name):
    file = tmp_path / name
    write_table(pd.DataFrame({"a": [1]}), file)
    if os.geteuid() == 0:  # who may read everything

        def refuse(*args, **kwargs):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "open", refuse)
        monkeypatch.setattr(Path, "read_bytes", refuse)
    else:
        file.chmod(0)
    with pytest.raises(
        InputError, match=r"cannot be read \(Permission denied\); check the path and its rights"
    ):
        read_table(file)


@given(st.binary(max_size=200), st.sampled_from(["table.csv", "table.csv.gz", "table.parquet"]))
@settings(deadline=None, max_examples=200)
@example(b'"', "table.csv")
@example(b'a"\r', "table.csv")
@example(b'""""', "table.csv")
@example(b'sep="\na"b\n', "table.csv")
@example(b"a,b\r\n\r", "table.csv")
@example(b"\xff\xfe\x00\xd8", "table.csv")
def test_no_content_ends_in_another_error(tmp_path_factory, content, name):
    file = tmp_path_factory.getbasetemp() / name
    file.write_bytes(content)
    try:
        read_table(file)
    except InputError as error:
        assert "\n" not in str(error)


@given(st.text(alphabet="ab1.,;|\t\r\n\"' =-é", max_size=60))
@settings(deadline=None, max_examples=300)
def test_no_text_ends_in_another_error(tmp_path_factory, text):
    file = tmp_path_factory.getbasetemp() / "text.csv"
    file.write_bytes(text.encode())
    try:
        read_table(file)
    except InputError as error:
        assert "\n" not in str(error)


# ------------------------------------------------------------ writing CSV


def test_csv_is_what_a_person_expects(tmp_path):
    frame = pd.DataFrame(
        {
            "text": ["x", "", None, 'say "hi"'],
            "n": pd.array([1, None, 3, 4], dtype="Int64"),
            "whole": [1.0, 2.0, math.nan, 4.0],
            "part": [0.1, 1e300, math.nan, -math.inf],
            "flag": [True, False, True, False],
            "day": pd.to_datetime(["2020-01-31", None, "2020-02-01", "1966-10-14"]),
            "level": pd.Categorical(["lo", "hi", None, "lo"], categories=["lo", "hi"]),
        },
        index=[7, 8, 9, 10],
    )
    write_table(frame, tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text(encoding="utf-8").split("\n") == [
        '"text","n","whole","part","flag","day","level"',
        '"x",1,1.0,0.1,true,2020-01-31,"lo"',
        '"",,2.0,1e+300,false,,"hi"',
        ",3,,,true,2020-02-01,",
        '"say ""hi""",4,4.0,-inf,false,1966-10-14,"lo"',
        "",
    ]
    # Other readers understand it too.
    again = pd.read_csv(tmp_path / "table.csv")
    assert again["part"].tolist()[:2] == [0.1, 1e300]
    assert again["text"].tolist()[3] == 'say "hi"'


def test_other_endings_of_text_files(tmp_path):
    frame = pd.DataFrame({"a": ["x\ty", "z"], "b": [1, 2]})
    for name in ("table.tsv", "table.txt", "table.csv.gz", "table.tsv.gz"):
        pd.testing.assert_frame_equal(round_trip(frame, tmp_path, name), frame)
    assert (tmp_path / "table.tsv").read_text().startswith('"a"\t"b"\n')


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "'=", "''-"])
def test_text_that_a_spreadsheet_would_run_is_neutralised_and_restored(tmp_path, start):
    text = f"{start}cmd|' /C calc'!A0"
    frame = pd.DataFrame({text: pd.Categorical([text, "plain"]), "b": [text, "'quoted'"]})
    write_table(frame, tmp_path / "table.csv")
    content = (tmp_path / "table.csv").read_bytes().decode()
    assert content.count(f"\"'{start}cmd") == 3
    again = read_table(tmp_path / "table.csv")
    assert list(again.columns) == [text, "b"]
    assert again[text].tolist() == [text, "plain"]
    assert again["b"].tolist() == [text, "'quoted'"]


def test_negative_numbers_are_not_formulas(tmp_path):
    frame = pd.DataFrame({"a": [-1, 2], "b": [-0.5, 1.0]})
    pd.testing.assert_frame_equal(round_trip(frame, tmp_path), frame)
    text = pd.DataFrame({"a": ["-1", "-2"]})
    pd.testing.assert_frame_equal(round_trip(text, tmp_path), text)


@given(st.lists(st.text(alphabet="'=+-@\t\rab\n\",;", max_size=6), min_size=1))
@settings(deadline=None, max_examples=200)
@example(["=", "'=", "''=", "'", "''", "", "a=", "\r", "'\t", "\n=1"])
def test_neutralising_is_one_to_one(tmp_path_factory, texts):
    written = files._csv._neutralise(pa.array(texts, pa.string()), "text")
    assert not any(text[:1] in tuple("=+-@\t\r") for text in written.to_pylist() if text)
    assert len(set(written.to_pylist())) == len(set(texts))
    assert files._csv._restore(written).to_pylist() == texts
    names = list(dict.fromkeys(f"{text}|" for text in texts))
    frame = pd.DataFrame([["x"] * len(names)], columns=names)
    assert list(round_trip(frame, tmp_path_factory.getbasetemp()).columns) == names


def test_kinds_without_a_csv_form_become_text(tmp_path):
    frame = pd.DataFrame(
        {
            "mixed": [1, "a", None],
            "span": pd.to_timedelta([1, 2, 3], unit="D"),
            "month": pd.period_range("2020-01", periods=3, freq="M"),
            "bin": pd.cut([1, 2, 3], 3),
        }
    )
    again = round_trip(frame, tmp_path)
    assert values(again["mixed"]) == ["1", "a", None]
    assert again["month"].tolist() == ["2020-01", "2020-02", "2020-03"]
    assert again["bin"].tolist() == [str(interval) for interval in frame["bin"]]


def test_text_that_csv_cannot_hold(tmp_path):
    for text, said in (("a\0b", "with a NUL character"), ("\ud800", "that is not valid Unicode")):
        frame = pd.DataFrame({"x": pd.Series([text, "y"], dtype=object)})
        with pytest.raises(InputError, match=f"column 'x' has text {said}"):
            write_table(frame, tmp_path / "table.csv")
    assert os.listdir(tmp_path) == []  # noqa: PTH208


@given(st.lists(st.floats(allow_nan=False), min_size=1))
@settings(deadline=None, max_examples=200)
@example([1.0, 2.0])
@example([-0.0, 1.0])
@example([0.0])
@example([1e15, 1.0])
@example([1e22, 123456789012345680.0])
@example([5e-324, 1.7976931348623157e308])
def test_floats_come_back_bit_for_bit(tmp_path_factory, numbers):
    folder = tmp_path_factory.getbasetemp()
    again = round_trip(pd.DataFrame({"x": numbers}), folder)
    assert again["x"].to_numpy().tobytes() == np.array(numbers).tobytes()
    (folder / "repr.csv").write_text("x\n" + "".join(f"{number!r}\n" for number in numbers))
    again = read_table(folder / "repr.csv")
    assert again["x"].to_numpy().tobytes() == np.array(numbers).tobytes()


# Text columns begin with a word, since CSV cannot say that a column of digits is text.
texts = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8
) | st.sampled_from(
    [
        "NA",
        "null",
        "007",
        "1",
        "1,5",
        "true",
        "2020-01-01",
        "",
        " ",
        "=1",
        "'",
        "''=x",
        '"',
        "\r\n",
        "\ufeff",
        "a;b|c\td",
    ]
)
moments = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31))
days = st.dates().map(lambda day: datetime(day.year, day.month, day.day))
KINDS = {
    "int": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "text": texts,
    "category": texts,
    "day": days,
    "time": moments,
}
DTYPES = {
    "int": "Int64",
    "float": "float64",
    "bool": "boolean",
    "text": "str",
    "category": "category",
    "day": "datetime64[us]",
    "time": "datetime64[us]",
}


@st.composite
def tables(draw):
    n = draw(st.integers(1, 6))
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=5))
    names = draw(st.lists(texts.filter(str.strip), min_size=len(kinds), max_size=len(kinds), unique=True))
    columns = []
    for kind in kinds:
        column = draw(st.lists(st.none() | KINDS[kind], min_size=n, max_size=n))
        if kind in ("text", "category"):
            column = ["word", *column[1:]]
        columns.append(pd.Series(column, dtype=object).astype(DTYPES[kind]))
    return pd.concat(columns, axis=1, keys=names)


@given(tables())
@settings(deadline=None, max_examples=200)
def test_any_table_keeps_its_values_in_csv(tmp_path_factory, frame):
    again = round_trip(frame, tmp_path_factory.getbasetemp())
    assert list(again.columns) == list(frame.columns)
    for name in frame.columns:
        assert values(again[name]) == values(frame[name])
        complete = frame[name].notna()
        if complete.any() and frame[name].dtype != "category":
            assert again[name].dtype.kind == frame[name].dtype.kind


@given(tables())
@settings(deadline=None, max_examples=100)
def test_any_table_keeps_its_dtypes_in_parquet(tmp_path_factory, frame):
    again = round_trip(frame, tmp_path_factory.getbasetemp(), "round.parquet")
    pd.testing.assert_frame_equal(again, frame)


# ------------------------------------------------------------ writing Parquet


def test_parquet_keeps_dtypes_and_the_order_of_categories(tmp_path):
    frame = pd.DataFrame(
        {
            "ordered": pd.Categorical(["hi", "lo"], categories=["lo", "unused", "hi"], ordered=True),
            "numbers": pd.Categorical([3, None], categories=[9, 3]),
            "flags": pd.Categorical([True, False], categories=[True, False]),
            "days": pd.Categorical(pd.to_datetime(["2020-02-01", "2020-01-01"])),
            "empty": pd.Categorical([None, None], categories=["b", "a"]),
            "small": np.array([1, 2], dtype="int8"),
            "single": np.array([0.1, 2], dtype="float32"),
            "nullable": pd.array([1, None], dtype="Int32"),
            "flag": pd.array([True, None], dtype="boolean"),
            "text": ["x", None],
            "zone": pd.to_datetime(["2020-01-01", None]).tz_localize("Europe/Berlin"),
        },
        index=[5, 6],
    )
    again = round_trip(frame, tmp_path, "table.parquet")
    pd.testing.assert_frame_equal(again, frame.reset_index(drop=True))
    assert pq.ParquetFile(tmp_path / "table.parquet").metadata.row_group(0).column(0).compression == "ZSTD"


def test_many_categories_keep_their_order(tmp_path):
    levels = [f"{i:0100d}" for i in range(30_000, 0, -1)]
    frame = pd.DataFrame({"x": pd.Categorical(sorted(levels), categories=levels)})
    pd.testing.assert_frame_equal(round_trip(frame, tmp_path, "table.parquet"), frame)


def test_parquet_of_other_programs(tmp_path):
    table = pa.table(
        {
            "n": pa.array([9007199254740993, None], pa.int64()),
            "flag": pa.array([True, None]),
            "day": pa.array([1, None], pa.date32()),
            "price": pa.array([1, None], pa.int64()).cast(pa.decimal128(30, 2)),
            "text": pa.array(["x", None]),
        }
    )
    pq.write_table(table, tmp_path / "other.parquet")
    frame = read_table(tmp_path / "other.parquet")
    assert [str(dtype) for dtype in frame.dtypes][:2] == ["Int64", "boolean"]
    assert values(frame["n"]) == [9007199254740993, None]
    assert values(frame["day"]) == [pd.Timestamp("1970-01-02"), None]
    assert values(frame["price"]) == [1.0, None]


def test_the_index_of_a_pandas_file_becomes_a_column_if_it_has_a_name(tmp_path):
    frame = pd.DataFrame({"x": [1, 2]}, index=pd.Index(["a", "b"], name="id"))
    frame.to_parquet(tmp_path / "named.parquet")
    assert list(read_table(tmp_path / "named.parquet").columns) == ["id", "x"]
    frame.rename_axis(None).to_parquet(tmp_path / "unnamed.parquet")
    assert list(read_table(tmp_path / "unnamed.parquet").columns) == ["x"]


def test_a_mixed_column_is_named(tmp_path):
    with pytest.raises(InputError, match=r"column 'x' cannot be stored .*; make it all text"):
        write_table(pd.DataFrame({"a": [1, 2], "x": [1, "a"]}), tmp_path / "table.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_parquet_files_is_one_table(tmp_path):
    folder = tmp_path / "parts"
    for year, level in ((2020, "b"), (2021, "a")):
        part = folder / f"year={year}"
        part.mkdir(parents=True)
        frame = pd.DataFrame(
            {"x": [year], "level": pd.Categorical([level]), "none": [None if year == 2020 else 1]}
        )
        write_table(frame, part / "part-0.parquet")
    (folder / "_SUCCESS").touch()
    (folder / "_hidden.parquet").write_text("not read")
    frame = read_table(folder)
    assert frame["x"].tolist() == [2020, 2021]
    assert frame["year"].tolist() == [2020, 2021]
    assert frame["level"].tolist() == ["b", "a"]
    assert values(frame["none"]) == [None, 1]
    write_table(pd.DataFrame({"other": [1]}), folder / "zzz.parquet")
    with pytest.raises(InputError, match=r"'zzz\.parquet' in .* has other columns than 'year=2020"):
        read_table(folder)
    (folder / "zzz.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"'zzz\.parquet' in .* is not a complete Parquet file"):
        read_table(folder)


def test_folders_that_are_no_parts_of_the_table_are_not_read(tmp_path):
    write_table(pd.DataFrame({"a": [1]}), tmp_path / "part.parquet")
    (tmp_path / "elsewhere").mkdir()
    write_table(pd.DataFrame({"b": [2]}), tmp_path / "elsewhere" / "other.parquet")
    assert read_table(tmp_path).equals(pd.DataFrame({"a": [1]}))
    (tmp_path / "part.parquet").unlink()
    with pytest.raises(InputError, match=r"folder without \.parquet files"):
        read_table(tmp_path)


# ------------------------------------------------------------ for spreadsheets


@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz", "table.txt"])
def test_a_table_for_a_german_spreadsheet_comes_back(tmp_path, name):
    frame = pd.DataFrame(
        {
            "Größe": [1.5, -1234.25, None, 1e-9],
            "ganz": [2.0, 3.0, -4.0, None],
            "Zahl": pd.array([1, None, -3, 4], dtype="Int64"),
            "Text": ["=1+1", "a;b", None, "Ä, ö"],
            "Tag": pd.to_datetime(["2024-01-31", "2024-02-01", None, "1999-12-31"]).astype("datetime64[us]"),
        }
    )
    write_table(frame, tmp_path / name, separator=";", decimal=",")
    pd.testing.assert_frame_equal(read_table(tmp_path / name), frame)
    pd.testing.assert_frame_equal(read_table(tmp_path / name, separator=";", decimal=","), frame)


def test_a_file_for_a_spreadsheet_has_a_mark_and_commas(tmp_path):
    frame = pd.DataFrame({"x": [1.5, -2.25], "é": ["a", "=b"]})
    write_table(frame, tmp_path / "t.csv", decimal=",")
    assert (tmp_path / "t.csv").read_bytes().decode("utf-8").splitlines() == [
        '\ufeff"x";"é"',
        '"1,5";"a"',
        '"-2,25";"\'=b"',
    ]
    write_table(frame, tmp_path / "plain.csv")
    assert not (tmp_path / "plain.csv").read_bytes().startswith(b"\xef\xbb\xbf")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("t.parquet", {"decimal": ","}, "has none"),
        ("t.csv", {"separator": ",", "decimal": ","}, "both ','"),
        ("t.csv", {"separator": ";;"}, "single character"),
        ("t.csv", {"decimal": ";"}, "give '.' or ','"),
    ],
)
def test_a_way_of_writing_that_makes_no_sense_is_refused(tmp_path, name, options, message):
    with pytest.raises(InputError, match=message):
        write_table(pd.DataFrame({"a": [1.5]}), tmp_path / name, **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("data", "separator"),
    [
        ("a;b\n1,5;2\n".encode("cp1252"), ";"),
        ("ä;b\n1,5;2\n".encode("utf-16"), ";"),
        ("a,b\n1,2\n".encode("utf-8-sig"), ","),
        (b"sep=|\na|b\n", "|"),
        (b"", None),
    ],
)
def test_the_separator_of_a_file(tmp_path, data, separator):
    (tmp_path / "t.csv").write_bytes(data)
    assert separator_of(tmp_path / "t.csv") == separator
    assert separator_of("duckdb://file.ddb#table") is None and separator_of(tmp_path / "t.parquet") is None


# ------------------------------------------------------------ putting files in place


@pytest.mark.parametrize("name", ["table.csv", "table.parquet", "table.csv.gz"])
def test_a_file_is_private_until_it_is_complete(tmp_path, monkeypatch, name):
    target = tmp_path / name
    target.write_text("the old content")
    seen = []
    fsync = os.fsync

    def look(handle):
        seen.append((target.read_text(), stat.S_IMODE(os.fstat(handle).st_mode)))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", look)
    mask = os.umask(0o027)
    try:
        write_table(pd.DataFrame({"a": [1]}), target)
    finally:
        os.umask(mask)
    assert seen == [("the old content", 0o600)]
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["table.csv", "table.parquet"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, name, error):
    target = tmp_path / name
    target.write_text("the old content")

    def fail(handle):
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises((InputError, KeyboardInterrupt)) as caught:
        write_table(pd.DataFrame({"a": [1]}), target)
    if caught.type is InputError:
        assert "cannot be written (No space left on device)" in str(caught.value)
    assert target.read_text() == "the old content"
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_an_existing_file_is_kept_unless_it_may_be_overwritten(tmp_path, monkeypatch):
    target = tmp_path / "table.csv"
    frame = pd.DataFrame({"a": [1]})
    write_table(frame, target, overwrite=False)
    with pytest.raises(InputError, match="exists already; give another name"):
        write_table(pd.DataFrame({"a": [2]}), target, overwrite=False)
    # Even where it comes into being between the question and the answer.
    monkeypatch.setattr(Path, "exists", lambda self: False)
    with pytest.raises(InputError, match="exists already; give another name"):
        write_table(pd.DataFrame({"a": [2]}), target, overwrite=False)
    monkeypatch.undo()
    pd.testing.assert_frame_equal(read_table(target), frame)
    assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]


def test_targets_and_tables_that_cannot_be_written(tmp_path):
    frame = pd.DataFrame({"a": [1]})
    with pytest.raises(InputError, match=r"the folder of .* does not exist; create it first"):
        write_table(frame, tmp_path / "no" / "table.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="is a folder; give the name of a file"):
        write_table(frame, tmp_path / "folder.csv")
    with pytest.raises(InputError, match="does not say the kind of file"):
        write_table(frame, tmp_path / "table.xlsx")
    with pytest.raises(InputError, match="the table is a Series"):
        write_table(frame["a"], tmp_path / "table.csv")
    with pytest.raises(InputError, match="the table has no columns"):
        write_table(frame[[]], tmp_path / "table.csv")
    with pytest.raises(InputError, match="the table has more than one column named '1'"):
        write_table(pd.DataFrame([[1, 2]], columns=[1, "1"]), tmp_path / "table.csv")
    with pytest.raises(InputError, match="column 1 of the table has no name"):
        write_table(pd.DataFrame({"": [1]}), tmp_path / "table.csv")


def test_threads_may_write_the_same_file(tmp_path):
    frames = [pd.DataFrame({"a": np.full(20_000, i)}) for i in range(4)]
    threads = [threading.Thread(target=write_table, args=(frame, tmp_path / "t.csv")) for frame in frames]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(read_table(tmp_path / "t.csv")["a"])) == 1
    assert len(list(tmp_path.iterdir())) == 1


# ------------------------------------------------------------ databases


@pytest.fixture
def mixed():
    """A table with every kind of column that a database can hold."""
    return pd.DataFrame(
        {
            "n": [1, 2, 3],
            "maybe": pd.array([1, None, 2**60], dtype="Int64"),
            "x": [0.1, math.nan, math.inf],
            "flag": pd.array([True, None, False], dtype="boolean"),
            "Text with ä": ["=1", None, ""],
            "level": pd.Categorical(["b", None, "a"], categories=["b", "a"]),
            "rank": pd.Categorical([3, None, 1]),
            "day": pd.to_datetime(["2020-01-31", None, "2020-02-01 10:20:30.123456"], format="ISO8601"),
        }
    )


def assert_same_values(again, frame):
    assert list(again.columns) == list(frame.columns)
    for name in frame.columns:
        assert values(again[name]) == values(frame[name]), name


def test_duckdb_keeps_values_and_replaces_tables(tmp_path, mixed, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = f"duckdb://{tmp_path}/store.ddb#release"
    write_table(mixed.iloc[:1], url)
    write_table(mixed, url)
    assert_same_values(read_table(url), mixed)
    assert_same_values(read_table("duckdb://store.ddb#main.release"), mixed)
    assert str(read_table(url)["maybe"].dtype) == "Int64"
    with pytest.raises(InputError, match="exists already"):
        write_table(mixed, url, overwrite=False)
    write_table(mixed, url.replace("release", "other"), overwrite=False)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["store.ddb"]


def test_a_failed_write_leaves_the_database_as_it_was(tmp_path, mixed, monkeypatch):
    import ibis

    url = f"duckdb://{tmp_path}/store.ddb#release"
    write_table(mixed, url)
    create = ibis.backends.duckdb.Backend.create_table

    def fail(self, *args, **kwargs):
        create(self, *args, **kwargs)
        raise RuntimeError("the power went off")

    monkeypatch.setattr(ibis.backends.duckdb.Backend, "create_table", fail)
    with pytest.raises(InputError, match=r"cannot be written .the power went off"):
        write_table(mixed.iloc[:1], url)
    with pytest.raises(InputError, match="cannot be written"):
        write_table(mixed, f"duckdb://{tmp_path}/new.ddb#release")
    monkeypatch.undo()
    assert_same_values(read_table(url), mixed)
    assert [file.name for file in tmp_path.iterdir()] == ["store.ddb"]


def test_a_database_that_this_process_has_open_can_be_read(tmp_path, mixed):
    import ibis

    url = f"duckdb://{tmp_path}/store.ddb#release"
    write_table(mixed, url)
    connection = ibis.connect(f"duckdb://{tmp_path}/store.ddb")
    try:
        assert_same_values(read_table(url), mixed)
    finally:
        connection.disconnect()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("duckdb://{}/store.ddb", "does not name a table; add it behind #"),
        ("duckdb://{}/store.ddb#", "does not name a table; add it behind #"),
        ("duckdb://{}/store.ddb#relaese", "has no table 'relaese'; it has 'release'"),
        ("duckdb://{}/store.ddb#nowhere.release", "has no table 'release'; it has no tables"),
        ("duckdb://{}/none.ddb#release", "does not exist; check the path"),
        ("duckdb://#release", "names no file"),
        ("duckdb://[1/store.ddb#release", "cannot be read (Invalid IPv6 URL)"),
        ("duckdb://{}/text.ddb#release", "cannot be read"),
        ("https://example.org/table.csv#x", "is not a database that can be used; expected one of duckdb"),
    ],
)
def test_database_urls_that_cannot_be_read(tmp_path, url, said):
    write_table(pd.DataFrame({"a": [1]}), f"duckdb://{tmp_path}/store.ddb#release")
    (tmp_path / "text.ddb").write_text("this is no database " * 1000)
    with pytest.raises(InputError) as caught:
        read_table(url.format(tmp_path))
    assert said in one_sentence(caught)
    assert not (tmp_path / "none.ddb").exists()


def test_a_missing_driver_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(
        MissingExtraError, match=r"reading from postgres:// needs .*psycopg.*oversafe\[engines\]"
    ):
        read_table("postgres://user@localhost/db#t")


@pytest.mark.parametrize(
    "url",
    [
        "duckdb://user:hunter2@nowhere/x.ddb#t",
        "postgres://user:hunter2@127.0.0.1:1/db",
        "mysql://user:hunter2@127.0.0.1:1/db#t",
        "mysql://user:p#hunter2@127.0.0.1:1/db#t",
        "mysql://127.0.0.1:1/db?password=hunter2&x=1#t",
    ],
)
def test_a_password_is_never_shown(url):
    with pytest.raises(InputError) as caught:
        read_table(url)
    assert "hunter2" not in one_sentence(caught)
    assert "//user@" in str(caught.value) or "password=***&x=1#t" in str(caught.value)


def test_a_password_in_a_drivers_own_words_is_hidden(tmp_path, monkeypatch):
    import ibis

    def refuse(address, **options):
        raise RuntimeError(f"login with hunter 2 failed at {address}")

    monkeypatch.setattr(ibis, "connect", refuse)
    monkeypatch.setitem(sys.modules, "psycopg", io)
    with pytest.raises(InputError) as caught:
        read_table("postgres://user:hunter%202@localhost/db#t")
    assert "hunter" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.engines
def test_postgres_keeps_values(postgres_url, mixed):
    pytest.importorskip("psycopg")
    import ibis

    connection = ibis.connect(postgres_url)
    if "other" not in connection.list_databases():
        connection.create_database("other")
    for table in ("files_release", "other.files_release"):
        url = f"{postgres_url}#{table}"
        write_table(mixed.iloc[:1], url)
        write_table(mixed, url)
        assert_same_values(read_table(url), mixed)
        with pytest.raises(InputError, match="exists already"):
            write_table(mixed, url, overwrite=False)
    with pytest.raises(InputError, match="has no table 'files_relaese'; it has 'files_release'"):
        read_table(f"{postgres_url}#files_relaese")
    connection.drop_table("files_release")
    connection.drop_table("files_release", database="other")
    connection.disconnect()


@pytest.mark.engines
def test_a_refused_connection_is_one_sentence():
    pytest.importorskip("psycopg")
    with pytest.raises(
        InputError, match=r"cannot be read .*; check the address, rights and server"
    ) as caught:
        read_table("postgres://user:hunter2@127.0.0.1:1/db#t")
    assert "hunter2" not in one_sentence(caught)


@pytest.mark.engines
def test_spark_keeps_values(spark, mixed):
    write_table(mixed, "pyspark://#files_release")
    again = read_table("pyspark://#files_release").sort_values("n", ignore_index=True)
    assert_same_values(again, mixed)
    with pytest.raises(InputError, match="has no table"):
        read_table("pyspark://#nothing_of_the_kind")
    assert spark.sql("SELECT count(*) FROM files_release").collect()[0][0] == 3


@pytest.mark.engines
def test_sqlite_keeps_values(tmp_path, mixed):
    pytest.importorskip("regex")
    url = f"sqlite://{tmp_path}/store.db#release"
    # Ibis cannot store a missing date in SQLite.
    frame = mixed.drop(columns="day")
    write_table(frame, url)
    assert_same_values(read_table(url), frame)
    with pytest.raises(InputError, match="does not exist; check the path"):
        read_table(f"sqlite://{tmp_path}/none.db#release")


# ------------------------------------------------------------ the real sets

REAL = [
    "abalone",
    "abalone_19",
    "adult",
    "car_eval_34",
    "car_eval_4",
    "covertype_25k",
    "creditcard_fraud_21k",
]
REAL += ["dry_bean", "ecoli", "employee", "german_credit_20", "german_credit_9", "letter_recognition"]
REAL += ["magic_gamma", "mammography", "occupancy", "personal_loan", "solar_flare_m0", "yeast_me2"]


@pytest.mark.data
@pytest.mark.parametrize("name", REAL)
def test_a_real_set_keeps_its_values(name, tmp_path):
    frame = load_dataset(name).frame
    for target in (tmp_path / "set.csv", tmp_path / "set.parquet", f"duckdb://{tmp_path}/set.ddb#t"):
        write_table(frame, target)
        again = read_table(target)
        assert list(again.columns) == list(frame.columns)
        for column in frame.columns:
            expected = frame[column]
            if expected.dtype == "category":
                # Codes such as 0 and 1 come back from CSV as the numbers that they look like.
                assert again[column].astype(str).tolist() == expected.astype(str).tolist()
            else:
                assert again[column].dtype.kind == expected.dtype.kind
                np.testing.assert_array_equal(again[column].to_numpy(), expected.to_numpy())
    pd.testing.assert_frame_equal(read_table(tmp_path / "set.parquet"), frame)


def test_cells_mean_the_same_whatever_their_column_holds(tmp_path):
    cells = [
        "1.234",
        "1.234,5",
        "7",
        "63,4 %",
        "1.2.2024",
        "31.12.2024 10:30",
        "NA",
        "2024-01-02",
        "x",
        "1.5",
    ]
    (tmp_path / "t.csv").write_text("a;b\n" + "".join(f"{cell};{cell}\n" for cell in cells))
    read = read_as_text(tmp_path / "t.csv", decimal=",")
    assert read["a"].tolist()[:6] == ["1234", "1234.5", "7", "63.4", "2024-02-01", "2024-12-31 10:30"]
    assert pd.isna(read["a"][6]) and read["a"].tolist()[7:] == ["2024-01-02", "x", "1.5"]
    assert read_table(tmp_path / "t.csv", decimal=",")["b"].tolist() == cells
    # By itself each is what a column of its own kind says.
    for cell, said in zip(cells[:6], read["a"], strict=False):
        (tmp_path / "one.csv").write_text(f"a;b\n{cell};1\n{cell};2\n")
        alone = read_table(tmp_path / "one.csv", decimal=",")["a"][0]
        assert alone == (pd.Timestamp(said) if "-" in said else float(said))


def test_one_byte_of_another_encoding_does_not_change_the_others(tmp_path):
    text = "name,x\nMüller,1\nMaier,2\n€,3\n".encode()
    (tmp_path / "t.csv").write_bytes(text + b"Schr\xf6der,4\n\xfc\xe4,5\n")
    assert read_table(tmp_path / "t.csv")["name"].tolist() == ["Müller", "Maier", "€", "Schröder", "üä"]
    # A file of Windows-1252 throughout is one.
    (tmp_path / "w.csv").write_bytes("name,x\nMüller,1\nÄÖ,2\n".encode("cp1252"))
    read = read_table(tmp_path / "w.csv")
    assert read["name"].tolist() == ["Müller", "ÄÖ"] and Schema.infer(read).file.encoding == "cp1252"


@pytest.mark.parametrize("name", ["t.csv", "t.tsv.gz", "t.parquet"])
def test_a_table_and_its_hash_are_of_the_same_bytes(tmp_path, monkeypatch, name):
    """Another table is put at the path once the first one's bytes were read."""
    path, table = tmp_path / name, pd.DataFrame({"x": [1, 2]})
    digest = files.write_file(table, path)
    parse = files._read_untold

    def swapped(source, **options):
        files.write_file(pd.DataFrame({"x": [3, 4]}), path)
        return parse(source, **options)

    monkeypatch.setattr(files, "_read_untold", swapped)
    found = files.read_file(path)
    assert found.table.equals(table) and found.sha256 == digest and found.source == str(path)


def test_a_folder_has_no_hash(tmp_path):
    pd.DataFrame({"x": [1, 2]}).to_parquet(tmp_path / "part.parquet")
    assert files.read_file(tmp_path).sha256 is None
