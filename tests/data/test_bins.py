"""Every record finds its cell by itself, whatever the other records are."""

import numpy as np
import pandas as pd
import pytest

from oversafe._core.errors import InputError
from oversafe.data import Column
from oversafe.data.bins import Bins

DATES = "datetime64[us]"
ODD = [
    *(None, np.nan, "unknown", "1.0", 10**30, -(10**30), True, 2.5, [1], {"a": 1}, 1 + 2j, b"x"),
    *(pd.Timestamp("9999-12-31"), "2020-01-01T00:00+02:00"),
]


def column(kind="integer", dtype="int64", **facts):
    return Column("x", kind, dtype, domain="public", source="code book", **facts)


@pytest.mark.parametrize(
    ("bins", "plain"),
    [
        (Bins(column("categorical", categories=(0, 1), missing=True)), [1, 0, 1]),
        (Bins(column("categorical", "str", categories=("1", "2"), missing=True)), [1, 2, 2]),
        (Bins(column("boolean", "bool", categories=(False, True), missing=True)), [True, False, True]),
        (Bins(column(bounds=(0, 99), missing=True)), [3, 50, 98]),
        (Bins(column("continuous", "float64", bounds=(0.0, 9.0), missing=True)), [0.5, 3.25, 8.75]),
        (
            Bins(
                column("datetime", DATES, bounds=("2020-01-01", "2029-12-31"), resolution="D", missing=True)
            ),
            [pd.Timestamp("2021-05-01"), pd.Timestamp("2025-01-01"), pd.Timestamp("2029-01-01")],
        ),
    ],
)
@pytest.mark.parametrize("odd", ODD, ids=str)
def test_one_odd_record_moves_nobody_else(bins, plain, odd):
    expected = bins.assign(pd.Series(plain)).tolist()
    for form in (lambda v: pd.Series(v), lambda v: pd.Series(v, dtype=object)):
        assert bins.assign(form([*plain, odd]))[:-1].tolist() == expected


@pytest.mark.parametrize("dtype", ["int64", "Int64", "float64", "object", "int8", "category"])
def test_the_same_values_in_any_dtype(dtype):
    bins = Bins(column("categorical", categories=(0, 1), missing=True))
    assert bins.assign(pd.Series([0, 1, 1, 0]).astype(dtype)).tolist() == [0, 1, 1, 0]


def test_whole_numbers_are_not_cut_apart():
    bins = Bins(column(bounds=(0, 9)), n_bins=4)
    cells = bins.assign(pd.Series(range(10)))
    assert bins.n_cells == 4 and sorted(set(cells)) == [0, 1, 2, 3]
    drawn = bins.draw(np.repeat(np.arange(4), 200), np.random.default_rng(0))
    assert (
        set(drawn) == set(range(10)) and bins.assign(drawn).tolist() == np.repeat(np.arange(4), 200).tolist()
    )


def test_draws_stay_within_the_bounds_and_have_the_decimals():
    bins = Bins(column("continuous", "float64", bounds=(0.05, 0.17), decimals=1), n_bins=3)
    assert set(bins.draw(np.repeat(np.arange(3), 50), np.random.default_rng(0))) == {0.1}


def test_draws_with_decimals_stay_in_their_interval():
    bins = Bins(column("continuous", "float64", bounds=(0.0, 1.0), decimals=1), n_bins=4)
    cells = np.repeat(np.arange(4), 300)
    drawn = bins.draw(cells, np.random.default_rng(0))
    assert bins.assign(drawn).tolist() == cells.tolist()
    assert set(drawn) == {0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0}


def test_intervals_can_be_cut_where_one_likes():
    bins = Bins(
        column("continuous", "float64", bounds=(0.0, 10.0)), n_bins=4, cuts=(1.0, 0.5, 20.0, 1.0, -3.0)
    )
    assert bins.edges.tolist() == [0.0, 0.5, 1.0, 10.0]
    assert bins.assign(pd.Series([0.2, 0.5, 0.7, 1.0, 9.0])).tolist() == [0, 1, 1, 2, 2]
    whole = Bins(column(bounds=(0, 9)), n_bins=4, cuts=(2.3, 2.9, 6.0))
    assert whole.edges.tolist() == [-0.5, 2.5, 6.5, 9.5]
    drawn = whole.draw(np.repeat(np.arange(3), 200), np.random.default_rng(0))
    assert (
        set(drawn) == set(range(10)) and whole.assign(drawn).tolist() == np.repeat(np.arange(3), 200).tolist()
    )
    assert Bins(column(bounds=(0, 9)), n_bins=2, cuts=(1.0, 4.0, 7.0)).n_cells == 2


def test_what_lies_outside_goes_to_the_nearest_end():
    bins = Bins(column("continuous", "float64", bounds=(0.0, 1.0), missing=True), n_bins=2)
    assert bins.assign(pd.Series([-5.0, 0.2, 0.9, np.inf, -np.inf, np.nan])).tolist() == [0, 0, 1, 1, 0, 2]


def test_far_dates():
    bins = Bins(
        column("datetime", "datetime64[us]", bounds=("0001-01-01", "9999-12-31"), resolution="D"), n_bins=2
    )
    values = pd.Series(pd.array(["0400-01-01", "9000-01-01"], dtype="datetime64[us]"))
    assert bins.assign(values).tolist() == [0, 1]
    assert bins.draw(np.array([0, 1]), np.random.default_rng(0)).dtype == "datetime64[us]"


def test_long_numbers_are_the_same_in_any_dtype():
    bins = Bins(Column("x", "categorical", "int64", categories=(2**53 + 1, 2**53 + 3), missing=True))
    for odd in (2**53 + 1, None, "x"):
        assert bins.assign(pd.Series([2**53 + 1, 2**53 + 3, odd]))[:2].tolist() == [0, 1]
    # Text is told apart, and a number is one of them in either form.
    bins = Bins(
        column("categorical", "str", categories=("9007199254740993", "1152921504606846977"), missing=True)
    )
    assert bins.assign(pd.Series(["9007199254740993", "1152921504606846977"])).tolist() == [0, 1]
    for odd in (1, None):
        assert bins.assign(pd.Series([2**53 + 1, 2**60 + 1, odd]))[:2].tolist() == [0, 1]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Bins(column("continuous", "float64")),
        lambda: Bins(column(bounds=(0, 1)), n_bins=0),
        lambda: Bins(column(bounds=(2**60, 2**60 + 19))),
    ],
)
def test_unusable_domains(make):
    with pytest.raises(InputError):
        make()
