"""Real rows by their decimals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import SMOTE

from oversafe.attack import DistinSMOTE
from oversafe.attack.geometry.decimals import told_by_decimals


def measured(n: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "height": rng.normal(170, 10, n).round(1),
            "weight": rng.normal(70, 10, n).round(1),
            "dose": rng.exponential(3, n).round(2),
        }
    )


def augmented() -> tuple[pd.DataFrame, int]:
    X = measured(360)
    X_new, y_new = SMOTE(random_state=0).fit_resample(X, np.repeat([0, 1], [300, 60]))
    return X_new[y_new == 1].reset_index(drop=True), 60


def test_added_rows_have_all_decimals() -> None:
    X, n = augmented()
    told = told_by_decimals(X)
    assert told is not None and told.columns == ("height", "weight", "dose")
    assert told.real[:n].mean() > 0.9 and not told.real[n:].any()
    assert told.added[n:].mean() > 0.98 and not told.added[:n].any()


def test_gaps_do_not_hide_them() -> None:
    X, n = augmented()
    X = X.mask(np.random.default_rng(1).random(X.shape) < 0.1)
    result = DistinSMOTE().run(X, truth=np.arange(len(X)) < n)
    assert result.details["told_by_decimals"] == ("height", "weight", "dose")
    assert result.details["precision"] == 1.0 and result.risk > 0.9


def test_tables_of_one_precision_or_with_a_few_computed_columns_tell_nothing() -> None:
    rng = np.random.default_rng(2)
    real = measured(200)
    assert told_by_decimals(real) is None
    assert told_by_decimals(real + rng.normal(size=real.shape)) is None
    # Means of several visits in some rows of one column, or in some rows of each.
    assert (
        told_by_decimals(real.assign(dose=real["dose"].where(rng.random(200) < 0.5, real["dose"] / 3)))
        is None
    )
    assert told_by_decimals(real.where(rng.random(real.shape) < 0.5, real / 3 + 2 * real.mean() / 3)) is None


def test_zeros_and_bounds_are_no_measurements() -> None:
    # What a synthesizer makes where most people have nothing, or where it clips.
    values = np.random.default_rng(3).normal(size=(400, 4))
    assert told_by_decimals(pd.DataFrame(np.maximum(values, 0.0))) is None
    assert told_by_decimals(pd.DataFrame(np.clip(values, -1, 1))) is None


@pytest.mark.parametrize("decimals", [0, 2])
def test_large_numbers_are_no_computed_ones(decimals: int) -> None:
    # Of the turnover of large firms a float does not hold eight decimals.
    rng = np.random.default_rng(4)
    size = np.where(rng.random(300) < 0.4, 4e8, 5e5)[:, None] * rng.lognormal(0, 0.3, (300, 3))
    assert told_by_decimals(pd.DataFrame(size.round(decimals))) is None


def test_rows_between_large_ones_are_computed() -> None:
    X, n = augmented()
    large = pd.concat([(X.head(n) * 1e5).round(1), X.tail(-n) * 1e5])
    told = told_by_decimals(large)
    assert told is not None and told.real[:n].mean() > 0.9 and told.added[n:].mean() > 0.98


def test_values_converted_from_other_units_are_measured() -> None:
    rng = np.random.default_rng(5)
    glucose, cholesterol = rng.uniform(3.97, 8.03, (2, 200))
    here = pd.DataFrame({"glucose": glucose, "cholesterol": cholesterol}).round(1)
    elsewhere = pd.DataFrame(
        {
            "glucose": (glucose * 18.0182).round() / 18.0182,
            "cholesterol": (cholesterol * 38.67).round() / 38.67,
        }
    )
    both = pd.concat([here.head(100), elsewhere.tail(100)])
    assert told_by_decimals(both) is None


def test_added_rows_that_are_there_twice_are_computed_all_the_same() -> None:
    X, n = augmented()
    told = told_by_decimals(pd.concat([X, X.tail(100)]))
    assert told is not None and told.added[n:].mean() > 0.98


def test_values_elsewhere_are_not_between_others() -> None:
    # Another device, with more decimals, for other people.
    other = measured(100, seed=1) + 500 + np.random.default_rng(6).random((100, 3))
    assert told_by_decimals(pd.concat([measured(100), other])) is None


def test_where_most_rows_tell_nothing_the_others_do_not_either() -> None:
    some = measured(60)
    between = some.head(30) + np.sqrt(0.5) * (some.tail(30).to_numpy() - some.head(30))
    assert told_by_decimals(pd.concat([some, between])) is not None
    others = (measured(300, seed=1) + np.random.default_rng(7).random((300, 3)) / 10).round(7)
    assert told_by_decimals(pd.concat([some, between, others])) is None


def test_rows_of_nothing_but_zeros_are_not_measured() -> None:
    # As a synthesizer makes where it clips, with a few short values by the way.
    values = np.random.default_rng(8).normal(size=(400, 4))
    values[:60] = 0.0
    for column in range(4):
        values[60 + 10 * column : 70 + 10 * column, column] = np.linspace(-4.5, 4.5, 10)
    assert told_by_decimals(pd.DataFrame(values)) is None


def test_columns_of_lists_are_no_error():
    frame = pd.DataFrame({"a": np.arange(30.0), "b": [[1]] * 30, "c": np.linspace(0, 1, 30)})
    assert told_by_decimals(frame) is None
