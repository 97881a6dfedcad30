"""Sanitising caps, merges, coarsens, and leaves out what is still rare."""

import numpy as np
import pandas as pd
import pytest

from oversafe._core.errors import InputError
from oversafe.protect import NHSSanitizer

from .conformance import mixed_table


def test_combinations_are_common_and_few_rows_are_lost():
    X, y = mixed_table(1000)
    known = ["age", "ward", "visits"]
    sanitizer = NHSSanitizer(known, 10)
    X_new, y_new = sanitizer.fit_resample(X, y)
    assert X_new.groupby(known, dropna=False, observed=True).size().min() >= 10
    assert len(X_new) >= 0.9 * len(X)
    pd.testing.assert_series_equal(y_new, y.iloc[sanitizer.kept_].reset_index(drop=True))
    assert sanitizer.guarantee_.status == "none"


def test_outliers_are_capped_at_observed_quantiles():
    X = pd.DataFrame({"x": np.arange(101) / 2, "q": 0})
    X_new, _ = NHSSanitizer(["q"], 2, cap=0.9).fit_resample(X, [0, 1] * 50 + [0])
    assert X_new["x"].min() == 5.0 and X_new["x"].max() == 45.0
    inner = X["x"].between(5, 45)
    assert X_new.loc[inner, "x"].equals(X.loc[inner, "x"])
    kept, _ = NHSSanitizer(["q"], 2, cap=1.0).fit_resample(X, [0, 1] * 50 + [0])
    assert kept["x"].equals(X["x"])


def test_rare_categories_count_as_missing_or_as_the_most_common():
    X = pd.DataFrame(
        {"with": ["a"] * 20 + ["b"] * 19 + ["odd", None], "out": ["a"] * 21 + ["b"] * 19 + ["odd"]}
    )
    X_new, _ = NHSSanitizer(["out"], 5).fit_resample(X, [0, 1] * 20 + [1])
    assert X_new["with"].isna().sum() == 2 and set(X_new["with"].dropna()) == {"a", "b"}
    assert X_new["out"].value_counts().to_dict() == {"a": 22, "b": 19}


def test_numbers_become_medians_of_bins():
    X = pd.DataFrame({"x": 3 * np.arange(40)})
    X_new, _ = NHSSanitizer(["x"], 10, cap=1.0, n_bins=4).fit_resample(X, [0, 1] * 20)
    assert len(X_new) == 40
    assert X_new["x"].value_counts().min() >= 10
    assert set(X_new["x"]) <= set(X["x"])


def test_without_quasi_identifiers_the_most_telling_columns_are_coarsened():
    X, y = mixed_table(500)
    sanitizer = NHSSanitizer()
    X_new, _ = sanitizer.fit_resample(X, y)
    assert "exact" in sanitizer.quasi_identifiers_ and len(sanitizer.quasi_identifiers_) == 4
    assert X_new.groupby(list(sanitizer.quasi_identifiers_), dropna=False, observed=True).size().min() >= 10


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k_anonymity": 1}, "at least 2"),
        ({"k_anonymity": 1000}, "fewer than k_anonymity"),
        ({"cap": 0.3}, "from 0.5 to 1"),
        ({"n_bins": 0}, "at least 1"),
        ({"max_suppression": 2}, "from 0 to 1"),
    ],
)
def test_bad_settings_are_one_sentence(settings, message):
    X, y = mixed_table()
    with pytest.raises(InputError, match=message):
        NHSSanitizer(**settings).fit_resample(X, y)
