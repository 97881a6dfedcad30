"""Text that is numbers or dates nearly throughout is read as what another table holds."""

import numpy as np
import pandas as pd
import pytest

from oversafe.data.coerce_text import read_as, reread

NUMBERS = pd.Series([63.4, 79.4, 1210.55, 6210.0])
DATES = pd.Series(pd.to_datetime(["2025-03-20", "2025-08-06"]))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (["63,4 %", "79,4 %"], [63.4, 79.4]),
        (["63.4", "-79.4", "+1e3"], [63.4, -79.4, 1000.0]),
        (["1.210,55", "6.210"], [1210.55, 6210.0]),
        (["1,210.55", "6,210"], [1210.55, 6210.0]),
        # Either sign may be the decimal one; one of them gives a value of the other table.
        (["6.210"], [6210.0]),
        (["01069", "99084"], [1069.0, 99084.0]),
        (["12 345,5", "12\u202f345,5", "12'345,5"], [12345.5] * 3),
        ([" 63,4 kg"], [63.4]),
        (["1,0"] * 9 + ["n.b."], [1.0] * 9 + [np.nan]),
        (["1,0", None], [1.0, np.nan]),
    ],
)
def test_numbers(text, numbers):
    np.testing.assert_array_equal(reread(pd.Series(text), NUMBERS), numbers)


def test_shares_are_told_from_per_cent_by_the_other_table():
    text = pd.Series(["63,4 %", "79,4 %"])
    np.testing.assert_allclose(reread(text, pd.Series([0.634, 0.5])), [0.634, 0.794])


@pytest.mark.parametrize("text", [["5 A", "5 B"], ["<0,6", "1,0"], ["0x1F", "63"], ["ja", "nein"], ["", "-"]])
def test_what_is_no_number(text):
    assert reread(pd.Series(text), NUMBERS) is None


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        (["20.03.2025"] * 9 + ["31.02.2025"], ["2025-03-20"] * 9 + [None]),
        (["6.8.2025"], ["2025-08-06"]),
        (["2025-03-20", "2025-03-20T12:00"], ["2025-03-20", "2025-03-20 12:00"]),
        (["20.03.2025 12:30"], ["2025-03-20 12:30"]),
        # The sixth of August or the eighth of June: the other table has the former.
        (["08/06/2025"], ["2025-08-06"]),
    ],
)
def test_dates(text, dates):
    expected = pd.Series(pd.to_datetime(dates, format="ISO8601"))
    pd.testing.assert_series_equal(reread(pd.Series(text), DATES), expected, check_dtype=False)


def test_numbers_are_no_dates():
    assert reread(pd.Series(["63,4", "yesterday"]), DATES) is None


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pd.Series([1, 2]), "numbers"),
        (pd.Series([1, None], dtype="Int64"), "numbers"),
        (pd.Series([True, None], dtype=object), "numbers"),
        (pd.Series(["a"]), "text"),
        (pd.Series(["a"], dtype="category"), "text"),
        (pd.Series([1.5, 2.5], dtype="category"), "numbers"),
        (DATES, "dates"),
        (pd.Series([np.nan, np.nan]), None),
    ],
)
def test_what_a_column_was_read_as(values, kind):
    assert read_as(values) == kind
