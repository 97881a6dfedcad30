"""A declared cell means the same whatever the other cells are."""

import itertools
import random

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oversafe._core.errors import InputError
from oversafe.data import Column, Schema, read_table
from oversafe.data.cells import (
    UNREADABLE,
    Categories,
    FileFormat,
    cell_key,
    check_spellings,
    read_cell,
    read_column,
    read_number,
    was_read_by,
)
from oversafe.data.io.declared import declared_table

PUBLIC = {"domain": "public", "source": "a textbook"}
COLUMNS = {
    "continuous": Column("x", "continuous", "float64", bounds=(0.0, 10.0), **PUBLIC),
    "integer": Column("x", "integer", "int64", bounds=(0, 10), **PUBLIC),
    "date": Column("x", "datetime", "datetime64[us]", bounds=("2024-01-01", "2024-12-31"), resolution="D", **PUBLIC),
    "fine date": Column("x", "datetime", "datetime64[ns]", bounds=("2024-01-01", "2024-12-31"), resolution="ns"),
    "texts": Column("x", "categorical", "str", categories=("a", "NA", "", "2024-01-01", "1.10", "1.1"), **PUBLIC),
    "numbers": Column("x", "categorical", "int64", categories=(1, 2, 30), **PUBLIC),
    "truth": Column("x", "boolean", "bool", categories=(False, True), **PUBLIC),
    "ids": Column("x", "identifier", "str"),
    "numbers of persons": Column("x", "identifier", "int64"),
}  # fmt: skip
FILES = {
    "usual": FileFormat(),
    "German": FileFormat("cp1252", ";", ",", "day first"),
    "American": FileFormat(dates="month first", missing=("", "?")),
}
TEXTS = [
    None, "", " ", "NA", "nan", "-nan", "NAN", "nan(1)", "?", "a", " a", "'=1", "'-5", "''=x", "0", "-0", "+1", "01",
    "1", "1.0", "1.10", "1.1", "1,5", "1.5", "1e3", "1E-3", "1.e2", ".5", ",5", "5.", "5,", "1,234", "1.234", "0,123",
    "0.123", "1'234.5", "1 234,5", "1\u00a0234", "12,34,567", "1.234.567,8", "63,4 %", "5%", "%", "inf", "-Infinity",
    "+inf", "1_000", "0x1F", "٣", "1e400", "-1e400", "9" * 15, "9" * 18, "9" * 19, "9" * 30, "9007199254740993", "true",
    "TRUE", "True", "tRUE", "false", "2024-01-01", "2024-02-30", "2024-1-1", "01.02.2024", "1.2.2024", "31.02.2024",
    "02/01/2024", "13/01/2024", "1-2-2024", "2024-01-01 10:20", "2024-01-01T10:20:30", "2024-01-01T10:20:30.123456",
    "2024-01-01 10:20:30.123456789", "2024-01-01T24:00", "2024-01-01T10:20+02:00", "2024-01-01T10:20Z", "0001-01-01",
    "9999-12-31", "10000-01-01", "20240101", "2024", "now", "M\ufffdller", "x\ty",
    "1677-09-21T00:12:43.145224193", "\t7\n", "7\u202f",
]  # fmt: skip


# Columns that are read at once.
ALIKE = {
    "groups": ["1,234", "12,345,678", "-1,234.5"],
    "apostrophes": ["1'234.5", "+7", "1\u2019234\u2019567"],
    "commas": ["1.234,5", "+7", "-,5 %", "1 234,5"],
    "shares": ["5 %", "6.25\u00a0%", "+7%"],
    "odd dates": ["0000-01-01", "2024-01-02"],
    "times": ["2024-01-01T10:20:30.123456", "2024-01-01 10:20"],
    "zones": ["2024-01-01T10:20Z", "2024-01-01 10:20:30.5+02:00", "2024-01-01T10:20-11:30"],
    "German dates": ["1.2.2024", "31.12.2024 10:20", "03.04.2024"],
    "dates in any order": ["1/2/2024", "3-4-2024 10:20:30.25", "03.04.2024"],
}


def same(column, cells, row, expected):
    """Whether a column's reading has what the definition says."""
    if expected is None or expected is UNREADABLE:
        return bool(cells.missing[row]) == (expected is None) and bool(cells.unreadable[row]) == (
            expected is UNREADABLE
        )
    if cells.missing[row] or cells.unreadable[row]:
        return False
    value = cells.values[row]
    if column.is_category:
        return column.categories[value] == expected
    if column.kind == "datetime":
        return pd.Timestamp(value) == expected
    if cells.values.dtype == np.int64:
        return value == max(min(expected, 2**63 - 1), -(2**63))
    return value == expected


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_a_column_is_read_as_its_cells_are(column, file):
    rng = random.Random(0)
    expected = {text: read_cell(column, text, file) for text in TEXTS}
    # Alone, all together, and many plain ones with a few others among them.
    plain = [text for text in TEXTS if expected[text] is not UNREADABLE]
    long = [rng.choice(plain[-8:] if rng.random() < 0.999 else TEXTS) for _ in range(70_000)]
    for texts in (*([text] for text in TEXTS), TEXTS, long, *(each * 400 for each in ALIKE.values())):
        expected |= {text: read_cell(column, text, file) for text in set(texts) - expected.keys()}
        cells = read_column(column, pa.chunked_array([texts[:3], texts[3:]], pa.string()), file)
        wrong = [
            (row, text) for row, text in enumerate(texts) if not same(column, cells, row, expected[text])
        ]
        assert not wrong, (wrong[0], expected[wrong[0][1]])


@settings(max_examples=300, deadline=None)
@given(
    texts=st.lists(
        st.one_of(st.none(), st.text("0123456789+-.,e' %:T/aNtru\u00a0", max_size=12)), max_size=8
    ),
    column=st.sampled_from(list(COLUMNS.values())),
    file=st.sampled_from(list(FILES.values())),
)
def test_any_text_is_read_as_in_its_column(texts, column, file):
    cells = read_column(column, pa.chunked_array([texts], pa.string()), file)
    assert all(same(column, cells, row, read_cell(column, text, file)) for row, text in enumerate(texts))


# ------------------------------------------------------------ categories

# Two spellings of one value, and what makes text of the whole column in an untold reading.
TWINS = {
    "decimals": ("1.1", "1.10"),
    "whole": ("1", "1.0"),
    "shares": ("0.1", "0.10"),
    "signs of zero": ("-0", "0"),
    "truth": ("true", "TRUE"),
    "exponents": ("1e3", "1000"),
    "signs": ("+1", "1"),
    "long codes": ("9007199254740993", "9007199254740992"),
    "dates": ("2024-01-02", "02.01.2024"),
}


def with_twins(twins, label=False):
    category = Column("c", "categorical", "str", categories=(*twins, "other"), **PUBLIC)
    y = Column("y", "categorical", "str", categories=("no", "yes"), **PUBLIC)
    if label:
        return Schema((Column("x", "integer", "int64", bounds=(0, 9), **PUBLIC), category), label="c")
    return Schema((category, y), label="y")


@pytest.mark.parametrize("twins", TWINS.values(), ids=TWINS)
def test_spellings_are_told_apart_by_their_text(twins):
    places = Categories((*twins, "other"))
    assert [places.place(text) for text in (*twins, "other", "another")] == [0, 1, 2, -1]
    assert places.ambiguous == twins
    # What is neither of the two texts, and as much the one as the other, is none of them.
    assert cell_key(twins[0]) == cell_key(twins[1]) and places.place(f" {twins[0]}") == -1
    assert Categories((twins[0], "other")).place(twins[1]) == 0


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("twins", TWINS.values(), ids=TWINS)
def test_no_record_changes_how_the_others_are_read(tmp_path, twins, suffix):
    schema = with_twins(twins)
    read = []
    for last in ("other", twins[0]):
        table = pd.DataFrame({"c": [*twins] * 4 + [last], "y": ["no"] * 9}, dtype=object)
        file = tmp_path / f"{last}{suffix}"
        table.to_csv(file, index=False) if suffix == ".csv" else table.to_parquet(file)
        read.append(read_table(file, schema=schema))
        assert was_read_by(read[-1]["c"], schema["c"])
    assert read[0]["c"].tolist()[:-1] == read[1]["c"].tolist()[:-1] == [*twins] * 4
    assert read[0].dtypes.equals(read[1].dtypes)


@pytest.mark.parametrize("twins", TWINS.values(), ids=TWINS)
def test_in_a_frame_spellings_of_one_value_are_refused_whatever_the_dtype(twins):
    column = with_twins(twins)["c"]
    texts = pd.Series([*twins, "other"] * 3, name="c")
    frames = [texts, texts.astype(object), texts.astype("category"), texts.astype("string"), pd.Series([1.1], name="c"),
              pd.Series([1], name="c"), pd.Series([True], name="c"),
              pd.Series(pd.to_datetime(["2024-01-02"]), name="c"),
              texts.astype(pd.CategoricalDtype(list(column.categories)))]  # fmt: skip
    for values in frames:
        with pytest.raises(InputError, match="read the file with read_table and this schema"):
            check_spellings(column, values)
    check_spellings(Column("c", "categorical", "str", categories=twins), texts)


def test_a_category_with_a_comma_is_refused_in_a_frame():
    # 1.5 where all rows are numbers with a decimal comma, and a text where one is not.
    column = Column("c", "categorical", "str", categories=("1,5", "x"), **PUBLIC)
    with pytest.raises(InputError, match="a number if the file has a decimal comma"):
        check_spellings(column, pd.Series([1.5], name="c"))


@pytest.mark.parametrize("kind", [float, str, object, "category"])
def test_one_spelling_is_the_same_category_however_it_is_stored(kind):
    column = Column("c", "categorical", "str", categories=("1.5", "1000", "other"), **PUBLIC)
    values = pd.Series(["1.50", "1e3", "+1.5", "1000.0"])
    values = values.astype(float) if kind is float else values.astype(kind)
    from oversafe.data.encode import column_codes

    assert column_codes(column, values, strict=False).tolist() == [0, 1, 0, 1]


# ------------------------------------------------------------ tables


def test_cells_that_cannot_be_read_become_what_is_declared():
    schema = Schema(
        (
            Column("gap", "integer", "int64", missing=True, bounds=(0, 9), **PUBLIC),
            Column("low", "continuous", "float64", bounds=(2.0, 9.0), **PUBLIC),
            Column("own", "continuous", "float64", bounds=(2.0, 9.0), fallback=5.0, **PUBLIC),
            Column("first", "categorical", "str", categories=("b", "a"), **PUBLIC),
            Column("named", "categorical", "category", categories=("b", "a"), fallback="a", **PUBLIC),
            Column(
                "day",
                "datetime",
                "datetime64[us]",
                bounds=("2024-01-01", "2024-12-31"),
                resolution="D",
                **PUBLIC,
            ),
        )
    )
    names = schema.names
    table = pa.table({name: pa.array(["?", None, "7"], pa.string()) for name in names})
    frame, odd = declared_table(table, schema)
    assert frame["gap"].tolist() == [pd.NA, pd.NA, 7] and frame["low"].tolist() == [2.0, 2.0, 7.0]
    assert frame["own"].tolist() == [5.0, 5.0, 7.0] and frame["first"].tolist() == ["b"] * 3
    assert frame["named"].tolist() == ["a"] * 3 and frame["day"].eq(pd.Timestamp("2024-01-01")).all()
    assert {cells.column.name: len(cells.rows) for cells in odd} == {
        "gap": 1, "low": 2, "own": 2, "first": 3, "named": 3, "day": 3,
    }  # fmt: skip
    assert (
        odd[0].sentence()
        == "column 'gap': 1 cell does not fit what is declared ('?' in row 1), and counts as missing"
    )
    assert "(nothing in row 2, ..." not in odd[1].sentence() and "nothing in row 2" in odd[1].sentence()
    kept, odd = declared_table(table, schema, gaps=["first", "low"])
    assert kept["first"].isna().tolist() == [False, True, False] and kept["low"].isna().tolist() == [
        False,
        True,
        False,
    ]


def test_one_byte_that_cannot_be_decoded_changes_one_cell(tmp_path):
    schema = Schema(
        (
            Column("name", "categorical", "str", missing=True, categories=("Müller", "Meier"), **PUBLIC),
            Column("x", "integer", "int64", bounds=(0, 9), **PUBLIC),
        )
    )
    rows = ["Müller,1", "Meier,2", "Müller,3"]
    for odd in (b"M\xfcller,1", b"M\xc3ller,1", b"\xff\xfe,1", b"\0,1", b"\xe2\x82,1"):
        (tmp_path / "t.csv").write_bytes("\n".join(["name,x", *rows, ""]).encode() + odd + b"\n")
        with pytest.warns(UserWarning, match="'name': 1 cell does not fit"):
            read = read_table(tmp_path / "t.csv", schema=schema)
        assert read["name"].tolist()[:3] == ["Müller", "Meier", "Müller"] and pd.isna(read["name"][3])
        assert read["x"].tolist() == [1, 2, 3, 1]


def test_the_format_is_part_of_the_schema(tmp_path):
    file = FileFormat("cp1252", ";", ",", "month first", ("", "-"))
    schema = Schema((Column("Größe", "continuous", "float64", missing=True, bounds=(0.0, 3.0), **PUBLIC),
                     Column("d", "datetime", "datetime64[us]", missing=True, bounds=("2024-01-01", "2024-12-31"),
                            resolution="D", **PUBLIC)), file=file)  # fmt: skip
    assert Schema.from_toml(schema.to_toml()) == schema and Schema.from_toml(schema.to_toml()).file == file
    (tmp_path / "t.csv").write_bytes("Größe;d\n1,80;02/13/2024\n-;-\n".encode("cp1252"))
    read = read_table(tmp_path / "t.csv", schema=schema)
    assert read["Größe"].tolist()[0] == 1.8 and read["Größe"].isna().tolist() == [False, True]
    assert read["d"].tolist() == [pd.Timestamp("2024-02-13"), pd.NaT]
    for facts, said in (
        ('separator = ";;"', "single character"),
        ('decimal = "\'"', "give '.' or ','"),
        ('encoding = "klingon"', "not known"),
        ('dates = "year first"', "day first or month first"),
        ("missing = [1]", "a list of texts"),
        ('quote = "x"', "unknown fact 'quote'"),
    ):
        text = f'version = 1\n[file]\n{facts}\n[[column]]\nname = "a"\nkind = "integer"\ndtype = "int64"\n'
        with pytest.raises(InputError, match=said):
            Schema.from_toml(text)


def test_a_schema_of_a_file_proposes_its_format(tmp_path):
    (tmp_path / "t.csv").write_bytes("Größe;y\n1,80;a\n1,65;b\n".encode("cp1252"))
    found = Schema.infer(read_table(tmp_path / "t.csv"), label="y")
    assert found.file == FileFormat("cp1252", ";", ",", domain="data")
    assert (
        'separator = ";"' in found.to_toml()
        and "missing =" not in found.to_toml().partition("[file]")[2].partition("[[")[0]
    )


def test_numbers_of_the_grammar():
    cases = {
        (".", "1'234.5"): 1234.5, (".", "1 234.5"): 1234.5, (".", "1,234"): 1234.0, (",", "1.234"): 1234.0,
        (",", "1,5"): 1.5,
        (".", "12 %"): 12.0, (",", "1 234,5"): 1234.5, (".", "-1e-3"): -0.001, (".", "007"): 7.0,
    }  # fmt: skip
    assert {case: read_number(case[1], case[0]) for case in cases} == cases
    for decimal, text in itertools.product(
        ".,", ("", "-", "1.2.3", "1,2,3", "1 23", "e5", "1e", "0x1", "1_0", "٣", "--1")
    ):
        assert np.isnan(read_number(text, decimal)), text


def test_texts_of_a_frame_are_read_in_the_format_that_is_declared():
    # One odd cell leaves text of a column that would be numbers without it.
    file = FileFormat(separator=";", decimal=",", dates="month first")
    number = Column("x", "continuous", "float64", bounds=(0.0, 9.0), **PUBLIC)
    category = Column("x", "categorical", "float64", categories=(0.5, 1.5), **PUBLIC)
    day = Column(
        "x", "datetime", "datetime64[us]", bounds=("2024-01-01", "2024-12-31"), resolution="D", **PUBLIC
    )
    from oversafe.data.cells import read_texts
    from oversafe.data.encode import column_codes

    for column, texts, values in (
        (number, ["1,5", "1.234", "x", "2.5"], [1.5, 9.0, np.nan, np.nan]),
        (category, ["1,5", "0,50", "x", "2,5"], [1, 0, np.nan, np.nan]),
        (day, ["02/13/2024", "2024-02-13", "13/02/2024", "x"], [19766.0, 19766.0, np.nan, np.nan]),
    ):
        for dtype in (object, "str", "category", "string"):
            read = read_texts(pd.Series(texts).astype(dtype), column, file)
            np.testing.assert_array_equal(column_codes(column, read, strict=False), values)
    numbers = pd.Series([1.5])
    assert read_texts(numbers, number, file) is numbers
    plain = pd.Series(["1.5"])
    assert read_texts(plain, number, FileFormat()) is plain


def test_a_number_that_is_no_category_is_one_whether_other_rows_are_text_or_not():
    # The vote on a column's kind would move by two rows otherwise.
    from oversafe.data.cells import read_texts

    file = FileFormat(separator=";", decimal=",")
    column = Column("x", "ordinal", "float64", categories=(1, 1.5), domain="data")
    texts, numbers = ["1,5", "-1e300", "7", "2024-05-01"], [1.5, -1e300, 7.0, pd.Timestamp("2024-05-01")]
    for dtype in (object, "str", "category", "string"):
        assert read_texts(pd.Series(texts).astype(dtype), column, file).tolist() == numbers


@pytest.mark.parametrize("marker", ["NA", "", "null", " nan "])
def test_a_category_that_readers_take_for_missing_is_refused_in_a_frame(marker):
    column = Column("c", "categorical", "str", categories=("a", marker), **PUBLIC)
    with pytest.raises(InputError, match="which is a missing value in a DataFrame"):
        check_spellings(column, pd.Series(["a", marker], name="c"))
    frame, odd = declared_table(pa.table({"c": ["a", marker, "b"]}), Schema((column,)))
    assert frame["c"].tolist()[:2] == ["a", marker] and len(odd) == 1
    check_spellings(column, frame["c"])


@pytest.mark.parametrize(
    ("encoding", "separator"),
    [
        ("cp932", "|"),
        ("gbk", "|"),
        ("johab", ";"),
        ("utf-16-le", ","),
        ("utf-32", ","),
        ("gb18030", ";"),
        ("hz", ","),
    ],
)
def test_an_encoding_whose_bytes_reach_into_the_next_cell_is_refused(encoding, separator):
    with pytest.raises(InputError, match="save the file as UTF-8"):
        FileFormat(encoding=encoding, separator=separator)
    if encoding != "hz":
        assert FileFormat(encoding=encoding, separator=separator, domain="data").encoding == encoding


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "latin-1", "cp932", "gbk", "big5", "cp037"])
def test_an_encoding_whose_cells_end_where_they_end_is_taken(encoding):
    assert FileFormat(encoding=encoding, separator=",").encoding == encoding


@pytest.mark.parametrize("text", ["'-5", "''-5", "'''-5", "'=1", "''=1", "'5"])
def test_one_apostrophe_is_taken_away_of_a_cell_and_of_a_column(text):
    column = Column("x", "continuous", "float64", missing=True)
    cell = read_cell(column, text, FileFormat())
    cells = read_column(column, pa.array([text]), FileFormat())
    assert (cell is UNREADABLE) == cells.unreadable[0] == (text != "'-5")
    assert cell is UNREADABLE or cells.values[0] == cell


_LONG = 2**53 + 1


@pytest.mark.parametrize("other", ["x", 1.5, None])
@pytest.mark.parametrize(
    "time",
    [
        np.timedelta64(5, "ns"),
        np.timedelta64(_LONG, "ns"),
        np.timedelta64(3, "s"),
        np.timedelta64("NaT"),
        np.datetime64(5, "ns"),
        np.datetime64("2024-05-01", "ns"),
        np.datetime64("2024-05-01", "D"),
        np.datetime64("NaT"),
    ],
    ids=str,
)
def test_times_of_numpy_are_no_numbers_whether_all_rows_are_times_or_not(time, other):
    from oversafe.data.encode import column_codes
    from oversafe.privacy.kinds import _cells

    columns = [
        Column("x", "continuous", "float64", bounds=(0.0, 10.0), **PUBLIC),
        Column("x", "integer", "int64", bounds=(0, 10), **PUBLIC),
        Column("x", "categorical", "int64", categories=(5, _LONG), **PUBLIC),
        Column(
            "x", "datetime", "datetime64[us]", bounds=("1900-01-01", "2100-01-01"), resolution="s", **PUBLIC
        ),
    ]
    alone = pd.Series([time] * 3, dtype=f"{type(time).__name__}[ns]" if np.isnat(time) else None)
    assert alone.dtype.kind in "mM"
    beside = pd.Series(np.fromiter([time] * 3 + [other], dtype=object, count=4))
    for column in columns:
        codes = [column_codes(column, values, strict=False)[:3] for values in (alone, beside)]
        np.testing.assert_array_equal(*codes)
    np.testing.assert_array_equal(_cells(alone), _cells(beside)[:3])
