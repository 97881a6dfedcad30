"""Schemas are inferred, written down, and turn tables into matrices and back."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oversafe._core.errors import InputError
from oversafe.data import Column, Schema


def kinds(table: pd.DataFrame, **roles: str) -> dict[str, str]:
    return {column.name: column.kind for column in Schema.infer(table, **roles)}


def test_kinds_are_found():
    n = 30
    table = pd.DataFrame(
        {
            "height": np.linspace(1.5, 1.9, n),
            "children": np.arange(n) % 4,
            "whole_floats": np.arange(n) * 2.0 % 7,
            "one_hot": np.arange(n) % 2 * 1.0,
            "ward": ["north", "south", "east"] * 10,
            "size": pd.Categorical(["S", "L", "M"] * 10, categories=["S", "M", "L"], ordered=True),
            "alive": [True, False, True] * 10,
            "seen": pd.date_range("2024-01-01", periods=n),
            "patient_id": [f"P-{i:04d}" for i in range(n)],
            "row": np.arange(1, n + 1),
            "mail": [f"person{i % 20}@example.org" for i in range(n)],
            "note": [f"the patient came in on day {i} and left again" for i in range(n)],
        }
    )
    assert kinds(table) == {
        "height": "continuous",
        "children": "integer",
        "whole_floats": "integer",
        "one_hot": "boolean",
        "ward": "categorical",
        "size": "ordinal",
        "alive": "boolean",
        "seen": "datetime",
        "patient_id": "identifier",
        "row": "identifier",
        "mail": "identifier",
        "note": "text",
    }
    assert Schema.infer(table).naming_columns == ("patient_id", "row", "mail", "note")


def test_what_only_looks_like_an_identifier_is_none():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "income": rng.permutation(
                np.arange(100) * 37 + 1000
            ),  # all different, but neither named nor counting
            "weight": rng.normal(size=100),
            "zip": pd.Categorical(rng.integers(10000, 10040, 100).astype(str)),
        }
    )
    assert kinds(table) == {"income": "integer", "weight": "continuous", "zip": "categorical"}


def test_label_and_person():
    table = pd.DataFrame({"who": [1, 1, 2], "x": [0.5, 1.5, 2.5], "y": [0, 1, 0]})
    schema = Schema.infer(table, label="y", person="who")
    assert schema["y"].categories == (0, 1) and schema["y"].kind == "categorical"
    assert schema["who"].kind == "identifier" and schema.naming_columns == ()
    assert schema.features.names == ("x",)


def test_domains_are_read_from_the_data_and_marked_so():
    schema = Schema.infer(pd.DataFrame({"x": [1.25, 3.5, None], "c": ["b", "a", "b"]}))
    assert schema["x"].bounds == (1.25, 3.5) and schema["x"].decimals == 2 and schema["x"].missing
    assert schema["c"].categories == ("a", "b")
    assert {column.domain for column in schema} == {"data"}


@pytest.mark.parametrize(
    ("stamps", "resolution"),
    [
        (["2024-01-01", "2024-03-01"], "D"),
        (["2024-01-01 10:00", "2024-03-01 11:00"], "h"),
        (["2024-01-01 10:00:00.123", "2024-03-01"], "ms"),
        (["2024-01-01 10:00:00.123456789", "2024-03-01"], "ns"),
    ],
)
def test_resolution_of_dates(stamps, resolution):
    table = pd.DataFrame({"t": pd.to_datetime(stamps, format="ISO8601").as_unit("ns")})
    schema = Schema.infer(table)
    assert schema["t"].resolution == resolution
    pd.testing.assert_frame_equal(schema.decode(schema.encode(table)), table)


def everything() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "f64": [0.1, -0.0, np.nan, 1e300],
            "f32": np.array([0.5, 1.25, np.nan, 3], dtype=np.float32),
            "two": [0.07, 1.13, 2.29, np.nan],
            "i8": np.array([-128, 127, 0, 5], dtype=np.int8),
            "big": np.array([2**62, 2**62 + 1, 2**62 + 2, 2**62 + 7]),
            "Int": pd.array([1, None, 3, 9], dtype="Int64"),
            "Float": pd.array([1.5, None, 3.25, 9], dtype="Float64"),
            "bool": [True, False, True, True],
            "boolean": pd.array([True, None, False, True], dtype="boolean"),
            "text": ["ä", "b", None, "ä"],
            "cat": pd.Categorical(["x", None, "y", "x"], categories=["y", "x", "unused"]),
            "intcat": pd.Categorical([3, 1, 3, None], categories=[3, 2, 1], ordered=True),
            "day": pd.to_datetime(["2024-02-29", None, "1900-01-01", "2262-01-01"]),
            "zone": pd.to_datetime(
                ["2024-03-31 01:30", "2024-10-27 02:30", None, "2024-01-01 00:00"]
            ).tz_localize("Europe/Berlin", ambiguous=True),
            "gone": [np.nan] * 4,
        }
    )


@pytest.mark.parametrize("one_hot", [False, True])
def test_round_trip_restores_everything(one_hot):
    table = everything()
    schema = Schema.infer(table)
    matrix = schema.encode(table, one_hot=one_hot)
    assert matrix.dtype == np.float64
    if one_hot:
        assert not np.isnan(matrix).any()
    pd.testing.assert_frame_equal(schema.decode(matrix, one_hot=one_hot), table)


def test_decode_restores_kinds_of_values_in_between():
    table = pd.DataFrame(
        {"n": [1, 4], "d": [0.25, 0.75], "c": ["a", "b"], "t": pd.to_datetime(["2024-01-01"] * 2)}
    )
    schema = Schema.infer(table)
    decoded = schema.decode([[1.6, 0.12345, 0.7, 19723.4], [9.2, 0.5, 5.0, 19724.6]])
    assert decoded["n"].tolist() == [2, 9]
    assert decoded["d"].tolist() == [0.12, 0.5]
    assert decoded["c"].tolist() == ["b", "b"]
    assert decoded["t"].tolist() == [pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-03")]


def test_toml_round_trip(tmp_path):
    schema = Schema.infer(everything())
    assert Schema.from_toml(schema.to_toml()) == schema
    schema.to_toml(tmp_path / "schema.toml")
    assert Schema.from_toml(tmp_path / "schema.toml") == schema


def test_saving_and_loading_keeps_where_a_domain_comes_from():
    schema = Schema.infer(pd.DataFrame({"x": [1.5, 2.5], "z": [1.5, 2.5]}))
    schema = schema.declare("x", bounds=(0.0, 9.0), domain="public", source="code book")
    again = Schema.from_toml(schema.to_toml())
    assert (again["x"].domain, again["x"].source, again["z"].domain) == ("public", "code book", "data")


def toml(**facts: str) -> Schema:
    entry = {"name": '"x"', "kind": '"continuous"', "dtype": '"float64"', **facts}
    return Schema.from_toml("version = 1\n[[column]]\n" + "\n".join(f"{k} = {v}" for k, v in entry.items()))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Column("x", "number", "float64"), "kind 'number'"),
        (lambda: Column("x", "continuous", "float64", domain="public"), "without a source"),
        (lambda: Column("x", "continuous", "float64", bounds=(2.0, 1.0)), "above its maximum"),
        (lambda: Column("x", "continuous", "float64", bounds=(0.0, float("inf"))), "not finite"),
        (lambda: Column("x", "categorical", "str", bounds=(0, 1)), "only numbers and dates"),
        (lambda: Column("x", "categorical", "str", categories=("a", "a")), "twice"),
        (lambda: Schema((Column("x", "integer", "int64"),) * 2), "two columns are called 'x'"),
        (lambda: Schema((Column("x", "integer", "int64"),), label="y"), "label column 'y'"),
        (lambda: Schema.infer(pd.DataFrame({"x": []})), "no rows"),
        (lambda: Schema.infer(pd.DataFrame({"x": [1]}), label="y"), "no column 'y'"),
        (lambda: Schema.infer(pd.DataFrame({"x": [1, "a"]})), "mixes int and str"),
        (lambda: Schema.infer(pd.DataFrame([[1, 2]], columns=["a", "a"])), "two columns are called 'a'"),
        (lambda: Schema.from_toml("version = 1\n[[column\n"), "not valid TOML"),
        (lambda: Schema.from_toml("version = 9\nx = 1"), "version 9"),
        (lambda: Schema.from_toml('version = 1\nperso = "id"\n[[column]]\nname = "x"'), "'perso'.*person"),
        (lambda: Schema.from_toml("missing.toml"), "cannot be read"),
        (lambda: Schema.from_toml('version = 1\n[[column]]\nname = "x"'), "no kind"),
        (lambda: toml(missing='"yes"'), "missing = 'yes'"),
        (lambda: toml(decimals='"two"'), "decimals = 'two'"),
        (lambda: toml(decimals="1.5"), "decimals = 1.5"),
        (lambda: toml(decimals="99"), "decimals = 99"),
        (lambda: toml(source="5"), "source = 5"),
        (lambda: toml(bounds="[1, 2]"), "minimum and maximum"),
        (lambda: toml(minimum="1"), "only one of"),
        (lambda: toml(minimum='"a"', maximum='"b"'), "two numbers"),
        (lambda: toml(minimum="nan", maximum="nan"), "not finite"),
        (lambda: toml(kind='"integer"', minimum="0.5", maximum="9"), "whole numbers"),
        (lambda: toml(kind='"integer"', minimum="0", maximum="1" + "0" * 400), "not finite|whole numbers"),
        (lambda: toml(kind='"datetime"', minimum='"soon"', maximum='"later"'), "2024-12-31"),
        (lambda: toml(kind='"categorical"', categories='[["x"]]'), "categories are text"),
        (lambda: toml(kind='"categorical"', categories="[nan]"), "categories are text"),
        (lambda: toml(kind='"categorical"', categories='"x"'), "not a list"),
        (lambda: toml(dtype='"date"'), "pandas does not know"),
        (lambda: toml(dtype="5"), "dtype = 5"),
        (lambda: toml(dtype='"datetime64[ns, Nowhere/City]"'), "pandas does not know"),
        (lambda: toml(nonsense="1"), "unknown fact 'nonsense'; remove it"),
        (lambda: toml(sorce='"a book"'), r"unknown fact 'sorce' .did you mean 'source'.*; correct it"),
        (lambda: toml(minimun="1", maximum="2"), "did you mean 'minimum'"),
        (lambda: toml(decimal="1"), "did you mean 'decimals'"),
        (
            lambda: toml(source="„Lehrbuch“"),
            'line 6 has the quotation mark „: write straight ones, as in source = "',
        ),
        (lambda: toml(source='"Lehrbuch“'), "line 6 has the quotation mark “"),
        (lambda: toml(source="»Lehrbuch«"), "line 6 has the quotation mark »"),
        (lambda: toml(categories='["a", „b“]'), "line 6 has the quotation mark „"),
        (lambda: toml(categories='[\n"a",\n„b“]'), "line 8 has the quotation mark „"),
        (
            lambda: Schema.from_toml(
                'version = 1\nlabel = ["y"]\n[[column]]\nname = "x"\nkind = "text"\ndtype = "str"'
            ),
            "label",
        ),
        (lambda: Schema.infer(pd.DataFrame({"x": [[1], [2]]})), "holds list values"),
        (lambda: Schema.infer(pd.DataFrame({"x": pd.period_range("2024", periods=3)})), "period"),
    ],
)
def test_nonsense_is_refused_in_one_sentence(make, message):
    with pytest.raises(InputError, match=message) as error:
        make()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('"03.11.2025"', "2025-11-03"),
        ('"3.1.2025 07:30"', "2025-01-03 07:30"),
        ('"2025-11-03"', "2025-11-03"),
        ('"2025-11-03 07:30"', "2025-11-03 07:30"),
        ('"2025-11-03T07:30:00.123456789"', "2025-11-03 07:30:00.123456789"),
        ('"2025-11-03T07:30:00+02:00"', "2025-11-03 05:30"),
        ("2025-11-03", "2025-11-03"),
        ("2025-11-03T07:30:00Z", "2025-11-03 07:30"),
    ],
)
def test_the_day_comes_first_in_a_date_with_points(written, meant):
    schema = toml(kind='"datetime"', dtype='"datetime64[ns]"', minimum='"1900-01-01"', maximum=written)
    assert schema["x"].bounds == (pd.Timestamp("1900-01-01"), pd.Timestamp(meant))
    assert Schema.from_toml(schema.to_toml()) == schema


@pytest.mark.parametrize(
    "written",
    [
        *('"2025"', "2025", '"11/03/2025"', '"03-11-2025"', '"03.11.25"', '"31.02.2025"', '"12.13.1950"'),
        *(
            '"today"',
            '"07:30"',
            "07:30:00",
            '"2025-11"',
            '"20251103"',
            '"2025-11-03 noon"',
            "1.5",
            "true",
            '""',
        ),
    ],
)
def test_dates_that_may_be_read_in_two_ways_are_refused(written):
    with pytest.raises(InputError, match=r"column 'x' has the bound .*; write dates as 2024-12-31"):
        toml(kind='"datetime"', minimum='"1900-01-01"', maximum=written)


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_dates_that_a_schema_writes_are_read_again(zone, unit):
    days = pd.Series([pd.Timestamp("1930-03-01"), pd.Timestamp("2024-12-31T23:59:59.123456789")]).dt.as_unit(
        unit
    )
    schema = Schema.infer(pd.DataFrame({"t": days.dt.tz_localize(zone)}))
    assert Schema.from_toml(schema.to_toml()) == schema


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["1", "n/a"], "column 'age' is declared a number, and 1 of 2 values is no number: 'n/a' .row 2."),
        ([1.5, 2.0], "not whole numbers"),
        ([None, 2], "1 missing value .first in row 1."),
    ],
)
def test_a_table_that_does_not_fit_is_refused(values, message):
    schema = Schema((Column("age", "integer", "int64"),))
    with pytest.raises(InputError, match=message):
        schema.conform(pd.DataFrame({"age": values}))


def test_unknown_category_and_columns_are_refused():
    schema = Schema((Column("sex", "categorical", "str", categories=("f", "m")),))
    with pytest.raises(InputError, match=r"not among its categories .first: 'x' in row 2."):
        schema.encode(pd.DataFrame({"sex": ["f", "x"]}))
    with pytest.raises(InputError, match="no column 'sex'"):
        schema.encode(pd.DataFrame({"gender": ["f"]}))
    with pytest.raises(InputError, match="'age' that the schema does not declare"):
        schema.encode(pd.DataFrame({"sex": ["f"], "age": [3]}))


def test_categories_read_as_numbers_are_the_same_categories():
    schema = Schema((Column("tier", "categorical", "category", categories=("1", "2", "3")),))
    conformed = schema.conform(pd.DataFrame({"tier": [3, 1]}))
    assert conformed["tier"].tolist() == ["3", "1"]


@pytest.mark.parametrize(
    ("kind", "values", "dtype"),
    [
        ("continuous", pd.array([1, None, 3], dtype="Int64"), "float64"),
        ("integer", ["1", "2", None], "Int64"),
        ("integer", [True, False, True], "int64"),
        ("datetime", ["2024-01-01", None, "2024-03-01T12:00:00"], "datetime64[us]"),
        ("categorical", [1.0, 2.0, None], "float64"),
    ],
)
def test_a_column_may_be_declared_another_kind_than_it_was_read_as(kind, values, dtype):
    table = pd.DataFrame({"x": values})
    missing = bool(table["x"].isna().any())
    categories = (1, 2) if kind == "categorical" else None
    column = Column("x", kind, str(table["x"].dtype), missing=missing, categories=categories)
    assert column.dtype == dtype
    schema = Schema((column,))
    decoded = schema.decode(schema.encode(table))
    assert decoded["x"].isna().tolist() == table["x"].isna().tolist() and str(decoded["x"].dtype) == dtype


def test_date_labels_survive_being_written_down():
    table = pd.DataFrame(
        {"x": [1.5, 2.5, 3.5], "y": pd.to_datetime(["2024-01-01", "2024-02-01", "2024-01-01"])}
    )
    schema = Schema.from_toml(Schema.infer(table, label="y").to_toml())
    pd.testing.assert_frame_equal(schema.conform(table), table)


def test_numbers_of_twenty_digits_are_identifiers():
    assert kinds(pd.DataFrame({"n": np.array([2**64 - 1, 5], dtype=np.uint64)})) == {"n": "identifier"}


def test_half_precision_survives():
    table = pd.DataFrame({"x": np.linspace(0, 1, 30).astype(np.float16)})
    schema = Schema.infer(table)
    pd.testing.assert_frame_equal(schema.decode(schema.encode(table)), table)


def test_identifiers_are_not_encoded():
    schema = Schema((Column("mrn", "identifier", "str"),))
    with pytest.raises(InputError, match="'mrn' holds identifiers"):
        schema.encode(pd.DataFrame({"mrn": ["a"]}))


columns = st.one_of(
    st.lists(st.floats(allow_infinity=False), min_size=6, max_size=6).map(
        lambda v: pd.Series(v, dtype=float)
    ),
    st.lists(st.integers(-(2**53), 2**53), min_size=6, max_size=6).map(lambda v: pd.Series(v, dtype="int64")),
    st.lists(st.none() | st.integers(-(2**40), 2**40), min_size=6, max_size=6).map(
        lambda v: pd.Series(v, dtype="Int64")
    ),
    st.lists(st.none() | st.text(max_size=5), min_size=6, max_size=6).map(
        lambda v: pd.Series(v, dtype="str")
    ),
    st.lists(st.none() | st.booleans(), min_size=6, max_size=6).map(lambda v: pd.Series(v, dtype="boolean")),
    st.lists(
        st.none() | st.datetimes(pd.Timestamp("1700-01-01"), pd.Timestamp("2200-01-01")),
        min_size=6,
        max_size=6,
    ).map(lambda v: pd.Series(pd.to_datetime(v)).astype("datetime64[us]")),
    st.lists(st.integers(-1, 3), min_size=6, max_size=6).map(
        lambda v: pd.Series(pd.Categorical.from_codes(v, ["d", "b", "c", "a"]))
    ),
)


@settings(max_examples=200, deadline=None)
@given(st.lists(columns, min_size=1, max_size=5))
def test_any_table_survives_the_round_trip(series):
    table = pd.DataFrame({f"c{i}": values for i, values in enumerate(series)})
    schema = Schema.from_toml(Schema.infer(table).to_toml())
    pd.testing.assert_frame_equal(schema.decode(schema.encode(table)), table, check_exact=True)
    pd.testing.assert_frame_equal(
        schema.decode(schema.encode(table, one_hot=True), one_hot=True), table, check_exact=True
    )


@pytest.mark.data
def test_every_data_set_survives_the_round_trip(data_folder: Path):
    files = sorted(data_folder.glob("*.parquet"))
    assert len(files) >= 19
    for file in files:
        table = pd.read_parquet(file)
        schema = Schema.from_toml(Schema.infer(table, label="target").to_toml())
        assert schema.naming_columns == ()
        pd.testing.assert_frame_equal(
            schema.decode(schema.encode(table)), table, check_exact=True, obj=file.name
        )


def test_a_list_of_categories_is_as_good_as_a_tuple():
    for some in (["b", "a"], np.array(["b", "a"], dtype=object), pd.Index(["b", "a"]), ("b", "a")):
        assert Column("ward", "categorical", "str", categories=some).categories == ("b", "a")
    assert Column("age", "integer", "int64", bounds=[0, 120]).bounds == (0, 120)
    with pytest.raises(InputError, match="it should be a list") as raised:
        Column("ward", "categorical", "str", categories="x" * 500)
    assert len(str(raised.value)) < 200


def test_a_schema_is_shown_in_a_line_or_two():
    table = pd.DataFrame({f"c{i}": [0.5, 1.25] for i in range(40)}).assign(y=["a", "b"])
    schema = Schema.infer(table, label="y").declare("c0", domain="public", source="a textbook")
    shown = repr(schema)
    assert shown.startswith("<Schema of 41 columns, 1 public: 'c0' continuous, 'c1' continuous")
    assert shown.endswith("more; label 'y'>") and len(shown) < 400
    assert (
        repr(schema.drop(schema.names[2:]))
        == "<Schema of 2 columns, 1 public: 'c0' continuous, 'c1' continuous>"
    )
