"""Which rows are real by the grids of their columns, and by the rows on either side."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import SMOTE, SVMSMOTE, BorderlineSMOTE

from oversafe.attack import DistinSMOTE
from oversafe.attack.geometry.distinguishing import ODDS
from oversafe.attack.geometry.labels.between import places_among
from oversafe.attack.geometry.labels.off_grid import off_grid
from oversafe.attack.geometry.labels.rows import told_of
from oversafe.attack.geometry.labels.told import SETTINGS
from oversafe.attack.geometry.lattice import Precision


def measured(n: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "height": rng.normal(170, 10, n).round(1),
            "weight": rng.normal(70, 10, n).round(1),
            "dose": rng.exponential(3, n).round(2),
            "visits": rng.integers(0, 9, n).astype(float),
        }
    )


def augmented(sampler=None, per_record: float = 4.0, n: int = 60) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the rows of one class and which are real."""
    added = round(per_record * n)
    X = measured(n + 400)
    y = np.repeat([1, 0], [n, 400])
    sampler = (SMOTE if sampler is None else sampler)(
        random_state=0, sampling_strategy={1: n + added, 0: 400}
    )
    rows, labels = sampler.fit_resample(X, y)
    return rows[labels == 1].reset_index(drop=True), (np.arange(len(rows)) < len(X))[labels == 1]


# ------------------------------------------------------------------------------------------ by hand


def test_cells_off_the_grid_of_their_column() -> None:
    values = np.array([[0.5, 0.0], [1.5, 1.0], [2.25, 0.0], [3.0, 1.0], [2.0**0.5, 0.7**0.5]] * 9)
    values[np.arange(4, 45, 5)] += np.arange(9)[:, None] * [0.0123456789012345, 0.00123456789012345]
    off = off_grid(values, Precision.of(values))
    assert off.step[0] == 0.25 and off.step[1] == 1.0
    assert off.cells.all(axis=1).tolist() == [False, False, False, False, True] * 9
    assert (off.by_chance[:, 0] < 1e-12).all()


def test_a_row_between_two_others_and_beyond_one() -> None:
    a, b, c = np.array([[0.0, 0.0, 0.0], [3.0, 6.0, -3.0], [9.0, 1.0, 4.0]])
    rows = np.array([a + 0.3 * (b - a), b + 0.4 * (b - a), b + 0.8 * (b - a), [1.0, 1.0, 1.0]])
    others = np.vstack([a, b, c])
    found = places_among(rows, np.full((4, 3), 1e-12), others, np.full((3, 3), 1e-12))
    assert found.between.tolist() == [True, False, False, False]
    assert found.explained.tolist() == [True, True, False, False]
    assert found.lines.tolist() == [1, 1, 1, 0]


# ------------------------------------------------------------------------------------------ samplers


@pytest.mark.parametrize("per_record", [0.2, 4.0])
@pytest.mark.parametrize("sampler", [SMOTE, SVMSMOTE, BorderlineSMOTE])
@pytest.mark.parametrize("file", ["full", "9 digits", "float32", "4 decimals"])
def test_few_rows_for_each_record_are_enough(sampler, per_record: float, file: str) -> None:
    X, truth = augmented(sampler, per_record)
    if file == "9 digits":
        X = X.map(lambda value: float(f"{value:.9g}"))
    elif file == "float32":
        X = X.astype(np.float32)
    elif file == "4 decimals":
        X = X.round(4)
    result = DistinSMOTE().run(X)
    assert result.score(truth) == (1.0, 1.0)
    assert "height" in result.details["told_by_grids"]
    assert (result.p_real[truth] > 0.99).all() and (result.p_real[~truth] < 0.05).all()
    assert (result.is_real == (result.p_real >= 0.5)).all()


def test_parents_of_other_classes_are_not_missed() -> None:
    X, truth = augmented(lambda **settings: BorderlineSMOTE(kind="borderline-2", **settings))
    precision, recall = DistinSMOTE().run(X).score(truth)
    assert precision == 1.0 and recall == 1.0


def test_rows_that_extrapolate_are_told_without_grids() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(460, 6))
    rows, labels = SVMSMOTE(random_state=0).fit_resample(X, np.repeat([1, 0], [60, 400]))
    truth = (np.arange(len(rows)) < 460)[labels == 1]
    result = DistinSMOTE().run(rows[labels == 1])
    precision, recall = result.score(truth)
    assert result.details["told_by_grids"] == ()
    assert precision > 0.95 and recall > 0.95


def test_rounded_rows_without_grids_are_told_by_their_neighbors() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(460, 6)).round(3)
    rows, labels = SMOTE(random_state=0).fit_resample(X, np.repeat([1, 0], [60, 400]))
    truth = (np.arange(len(rows)) < 460)[labels == 1]
    result = DistinSMOTE().run(rows[labels == 1].round(3))
    precision, recall = result.score(truth)
    # Some rows are so near a record that their errors hide the way.
    assert precision > 0.9 and recall == 1.0
    assert set(result.p_real) <= {SETTINGS.between_least, SETTINGS.beside_most, ODDS.at_record}


def test_gaps_do_not_hide_them() -> None:
    X, truth = augmented()
    X = X.mask(np.random.default_rng(1).random(X.shape) < 0.1)
    result = DistinSMOTE().run(X, truth=truth)
    assert set(result.details["told_by_grids"]) <= set(X.columns) and result.details["told_by_grids"]
    assert result.details["precision"] > 0.97 and result.risk > 0.9


# ------------------------------------------------------------------------------- nothing is told of


def test_tables_of_one_precision_or_with_a_few_computed_columns_tell_nothing() -> None:
    rng = np.random.default_rng(2)
    real = measured(200)
    assert not told_of(real).columns
    assert not told_of(real + rng.normal(size=real.shape)).columns
    # Means of several visits in some rows of one column, or in some rows of each.
    mean = real.assign(dose=real["dose"].where(rng.random(200) < 0.5, real["dose"] / 3))
    assert not told_of(mean).columns
    assert not told_of(real.where(rng.random(real.shape) < 0.5, real / 3 + 2 * real.mean() / 3)).columns


def test_zeros_and_bounds_are_no_measurements() -> None:
    # What a synthesizer makes where most people have nothing, or where it clips.
    values = np.random.default_rng(3).normal(size=(400, 4))
    assert not told_of(pd.DataFrame(np.maximum(values, 0.0))).columns
    assert not told_of(pd.DataFrame(np.clip(values, -1, 1))).columns


@pytest.mark.parametrize("decimals", [0, 2])
def test_large_numbers_are_no_computed_ones(decimals: int) -> None:
    # Of the turnover of large firms a float does not hold eight decimals.
    rng = np.random.default_rng(4)
    size = np.where(rng.random(300) < 0.4, 4e8, 5e5)[:, None] * rng.lognormal(0, 0.3, (300, 3))
    assert not told_of(pd.DataFrame(size.round(decimals))).columns


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
    assert not told_of(pd.concat([here.head(100), elsewhere.tail(100)])).columns


def test_values_of_another_device_are_not_between_others() -> None:
    other = measured(100, seed=1) + np.random.default_rng(6).random((100, 4))
    for moved in (0, 500):
        assert not told_of(pd.concat([measured(100), other + moved])).columns


def test_a_few_real_rows_off_the_grid_stay_real() -> None:
    X, truth = augmented()
    # A converted weight in two records.
    X.loc[[3, 7], "weight"] = [62.5957475, 71.21399801]
    result = DistinSMOTE().run(X)
    assert result.score(truth) == (1.0, 1.0)


def test_columns_of_lists_are_no_error() -> None:
    frame = pd.DataFrame({"a": np.arange(30.0), "b": [[1]] * 30, "c": np.linspace(0, 1, 30)})
    assert not told_of(frame).tells
