"""Whoever holds the data hears where they do not fit what was declared."""

import warnings
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from oversafe.data import Column, MisfitWarning, Schema
from oversafe.data.bins import Bins
from oversafe.data.domain_warnings import column_misfits
from oversafe.data.encode import outside_domain
from oversafe.learn import BalancedSynthesisClassifier, PrivateBaggingClassifier, PrivateLogisticRegression
from oversafe.protect import PrivateMixture


def schema_of(low, high):
    facts = {"bounds": (low, high), "domain": "public", "source": "a textbook"}
    return Schema(tuple(Column(name, "continuous", "float64", **facts) for name in ("x0", "x1")))


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.random((300, 2)), columns=["x0", "x1"])


@pytest.fixture(scope="module")
def labels():
    return np.random.default_rng(1).choice(["no", "yes"], 300)


@pytest.mark.parametrize(
    "make",
    [
        lambda **given: PrivateLogisticRegression(**given),
        lambda **given: PrivateMixture(**given),
        lambda **given: BalancedSynthesisClassifier(n_samples=200, **given),
    ],
)
def test_labels_and_ranges_that_do_not_fit_are_named(make, table, labels):
    right = schema_of(0.0, 1.0)
    with pytest.warns(
        MisfitWarning, match="300 rows with the labels .*'yes'.* count as 'No'.*itself labelled 'No', 'Yes'"
    ):
        fitted = make(schema=right, classes=["Yes", "No"]).fit(table, labels)
    # The warning is no part of what others see.
    assert fitted.guarantee_.status == "proven"
    with pytest.warns(MisfitWarning, match="no row is itself labelled '2'"):
        make(schema=right, classes=[0, 1, 2]).fit(table, (labels == "yes").astype(int))
    with pytest.warns(
        MisfitWarning, match="'x0' has 100% of its values outside of the declared range 100.0 to 200.0"
    ):
        make(schema=schema_of(100.0, 200.0), classes=["no", "yes"]).fit(table, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error", MisfitWarning)
        # A third beyond the range: cut off on purpose, for all that can be told.
        make(schema=schema_of(0.2, 0.8), classes=["no", "yes"]).fit(table, labels)


@pytest.mark.parametrize("make", [PrivateLogisticRegression, PrivateMixture])
def test_odd_values_are_no_error(make, table, labels):
    # Whatever one record holds: an error would tell of it.
    values, y = np.array(table, dtype=object), labels.astype(object)
    values[0, 0], values[1, 0], values[2, 1] = [1, 2], "n/a", np.inf
    y[3], y[4] = ["no"], None
    odd, y = pd.DataFrame(values, columns=table.columns), pd.Series(y)
    with pytest.warns(MisfitWarning, match="2 rows with the labels"):
        assert (
            make(schema=schema_of(0.0, 1.0), classes=["no", "yes"]).fit(odd, y).guarantee_.status == "proven"
        )


class Unspeakable:
    """A value whose own methods say what it is."""

    def __str__(self):
        raise RuntimeError("a private text")

    __repr__ = __float__ = __str__


ODD = {
    "a signalling NaN": Decimal("sNaN"),
    "the first microsecond": np.datetime64(-(2**63) + 1, "us"),
    "a year that no date has": np.datetime64(2**63 - 1, "Y"),
    "a duration": np.timedelta64(5, "D"),
    "an object that raises": Unspeakable(),
    "half of a character": "\ud800",
    "thousands of digits": 10**5000,
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize("make", [PrivateLogisticRegression, PrivateMixture])
@pytest.mark.filterwarnings("ignore::oversafe.data.MisfitWarning")
def test_no_value_of_one_record_is_an_error(make, odd):
    public = {"missing": True, "domain": "public", "source": "a textbook"}
    schema = Schema(
        (
            Column("x0", "continuous", "float64", bounds=(0.0, 1.0), **public),
            Column(
                "x1",
                "datetime",
                "datetime64[us]",
                bounds=("2024-01-01", "2024-12-31"),
                resolution="us",
                **public,
            ),
            Column(
                "x2",
                "datetime",
                "datetime64[us]",
                bounds=("2024-01-01", "2024-12-31"),
                resolution="D",
                **public,
            ),
            Column("x3", "categorical", "object", categories=("a", "b"), **public),
        )
    )
    values = np.empty((60, 4), dtype=object)
    values[:] = [0.5, pd.Timestamp("2024-06-01"), pd.Timestamp("2024-06-01"), "a"]
    values[0] = odd
    labels = np.repeat(["no", "yes"], 30).astype(object)
    labels[0] = odd
    fresh = make(schema=schema, classes=["no", "yes"])
    assert fresh.fit(values, labels).guarantee_.status == "proven"
    table = pd.DataFrame(values, columns=list(schema.names), dtype=object)
    assert fresh.fit(table, pd.Series(labels, dtype=object)).guarantee_.status == "proven"


def test_a_column_that_cannot_be_looked_at_does_not_hide_the_others(table, labels):
    values = np.array(table, dtype=object)
    values[0, 0] = Decimal("sNaN")
    with pytest.warns(MisfitWarning, match="'x1' has 100%"):
        PrivateLogisticRegression(schema=schema_of(100.0, 200.0), classes=["no", "yes"]).fit(
            pd.DataFrame(values, columns=table.columns), labels
        )


def test_a_date_is_outside_where_its_code_is():
    facts = {"domain": "public", "source": "a textbook"}
    noon = Column(
        "day",
        "datetime",
        "datetime64[us]",
        bounds=("2024-01-01T12", "2024-01-02T12"),
        resolution="D",
        **facts,
    )
    dates = pd.to_datetime(["2023-12-31T23", "2024-01-01T00", "2024-01-02T23", "2024-01-03T00"])
    assert outside_domain(noon, pd.Series(dates)).tolist() == [True, False, False, True]
    fine = replace(noon, resolution=None)
    assert outside_domain(fine, pd.Series(dates)).tolist() == [True, True, True, True]
    assert outside_domain(fine, pd.Series(["9999-12-31", "2024-01-02", None])).tolist() == [
        True,
        False,
        False,
    ]


@pytest.mark.filterwarnings("error::oversafe.data.MisfitWarning")
def test_samples_without_a_rare_class_are_no_misfit(table):
    y = np.zeros(300, dtype=int)
    y[:2] = 1
    base = PrivateLogisticRegression(data_norm=1.5, classes=[0, 1])
    PrivateBaggingClassifier(base, 5, classes=[0, 1]).fit(table, y)


def test_shares_of_every_kind_of_column():
    public = {"domain": "public", "source": "a textbook"}
    schema = Schema(
        (
            Column("age", "integer", "int64", bounds=(0, 10), **public),
            Column(
                "day",
                "datetime",
                "datetime64[us]",
                bounds=("2024-01-01", "2024-01-02"),
                resolution="D",
                **public,
            ),
            Column("town", "categorical", "object", categories=("a", "b"), missing=True, **public),
            Column("right", "continuous", "float64", bounds=(0.0, 1.0), missing=True, **public),
        )
    )
    table = pd.DataFrame(
        {
            "age": [5, 11, 12, 99],
            "day": pd.to_datetime(["2024-01-02T23", "2024-01-03T00", "2024-01-01T00", "2024-01-01T01"]),
            "town": ["a", "c", None, "b"],
            "right": [0.0, 1.0, np.nan, 0.5],
        }
    )
    said = column_misfits(schema, table)
    assert [(text.split("'")[1], text.split()[3]) for text in said] == [
        ("age", "75%"),
        ("day", "25%"),
        ("town", "33%"),
    ]
    assert [text.split("'")[1] for text in column_misfits(schema, table, least=0.5)] == ["age"]


@pytest.mark.parametrize("domain", ["public", "data"])
def test_a_few_values_beyond_the_range_are_fine_and_no_reason_to_widen_it(domain):
    column = Column("CRP", "continuous", "float64", bounds=(0.0, 300.0), domain=domain, source="a textbook")
    table = pd.DataFrame({"CRP": [*np.linspace(0, 300, 999), 412.0]})
    (said,) = column_misfits(Schema((column,)), table)
    assert "less than 1% of its values outside of the declared range 0.0 to 300.0" in said
    assert "they count as the nearest end of the range, which is fine" in said and "correct" not in said
    assert ("do not fit the range to the data, or the proof fails" in said) == (domain == "public")


def test_many_values_beyond_the_range_are_the_schemas_mistake():
    column = Column("height", "integer", "int64", bounds=(0, 3), domain="public", source="a textbook")
    (said,) = column_misfits(Schema((column,)), pd.DataFrame({"height": [1, 180, 175, 2]}))
    assert "50% of its values" in said and "fine" not in said
    assert (
        "the range seems to be wrong" in said
        and "the source that is named ('a textbook'), not by the data" in said
    )


@pytest.mark.parametrize(
    ("missing", "stand_in"),
    [(True, "count as missing"), (False, "count as 'a'")],
)
def test_a_category_that_is_not_declared_is_told_what_it_counts_as(missing, stand_in):
    column = Column("town", "categorical", "object", missing=missing, categories=("a", "b"))
    (said,) = column_misfits(Schema((column,)), pd.DataFrame({"town": [*"ab" * 50, "c"]}))
    assert stand_in in said
    cell = Bins(column, 20).assign(pd.Series(["c"]))[0]
    assert cell == (2 if missing else 0)
