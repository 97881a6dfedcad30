"""From some records to the others, along rays that come back to the grid."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import SMOTE
from sklearn.preprocessing import MinMaxScaler

from oversafe.attack import ReconSMOTE
from oversafe.attack.geometry.shapes.expansion import expand, grid_steps
from oversafe.attack.geometry.shapes.line_intersections import find_meetings
from oversafe.attack.geometry.shapes.lines import find_lines
from oversafe.attack.geometry.shapes.points import read_points
from oversafe.papers.base import EIGHT

NOISE = 1e-15


def test_steps_of_grids() -> None:
    rng = np.random.default_rng(0)
    places = np.column_stack(
        [rng.integers(0, 51, 40) / 50, rng.random(40), np.repeat([0.0, 1.0], 20), np.full(40, 0.5)]
    )
    steps = grid_steps(places, np.full(40, NOISE))
    np.testing.assert_allclose(steps, [0.02, 0, 1, 0], rtol=1e-12)


def test_one_row_and_one_record_give_the_other_end() -> None:
    # Columns in steps of 0.01 and seven of them, so that a common divisor is unlikely; two ends unknown.
    rng = np.random.default_rng(1)
    real = rng.integers(0, 101, (12, 7)) / 100
    known, unknown = real[:10], real[10:]
    rows = np.array(
        [known[3] + 0.377123 * (unknown[0] - known[3]), known[5] + 0.81234 * (unknown[1] - known[5])]
    )
    found = expand(rows, known, np.full(10, NOISE), NOISE)
    assert found.explained.all()
    np.testing.assert_allclose(found.places[10:], unknown, atol=1e-12)
    assert [r.tolist() for r in found.rays] == [[3], [5]] or [r.tolist() for r in found.rays] == [[5], [3]]


def test_rows_between_known_records_tell_of_nobody_new() -> None:
    rng = np.random.default_rng(2)
    real = rng.random((10, 4))
    rows = real[:5] + rng.random((5, 1)) * (real[5:] - real[:5])
    found = expand(rows, real, np.full(10, NOISE), NOISE)
    # Without a grid nothing is followed; with one, these rows are explained and nothing is added.
    assert len(found.places) == 10
    gridded = np.round(real, 2)
    rows = gridded[:5] + rng.random((5, 1)) * (gridded[5:] - gridded[:5])
    found = expand(rows, gridded, np.full(10, NOISE), NOISE)
    assert len(found.places) == 10 and found.explained.all()


def test_a_row_on_the_grid_is_a_record_and_leads_nowhere() -> None:
    rng = np.random.default_rng(6)
    real = rng.integers(0, 101, (40, 7)) / 100
    # Beyond a released record every ray meets the grid again: twice as far, or sooner.
    found = expand(real, real[:30], np.full(30, NOISE), NOISE)
    assert len(found.places) == 30


def test_categories_alone_do_not_vouch_for_numbers() -> None:
    # A ray from the wrong record of the same category leads back to the grid of the one-hot columns, but to
    # numbers that nobody has.
    rng = np.random.default_rng(3)
    real = np.hstack(
        [np.eye(2)[rng.integers(0, 2, 30)], np.eye(2)[rng.integers(0, 2, 30)], rng.random((30, 3))]
    )
    unknown = np.array([1, 0, 0, 1, 0.3, 0.4, 0.5])
    rows = real[:1] + 0.3 * (unknown - real[:1])
    assert len(expand(rows, real, np.full(30, NOISE), NOISE).places) == 30


@pytest.mark.parametrize("decimals", [0, 2])
def test_most_records_of_a_rounded_table_are_recovered_from_few_rows(decimals: int) -> None:
    rng = np.random.default_rng(4)
    minority = np.round(rng.normal(scale=10 if decimals == 0 else 1, size=(50, 6)), decimals)
    X = np.vstack([rng.normal(100, 1, (350, 6)), minority])
    y = np.repeat([0, 1], [350, 50])
    released = SMOTE(random_state=0).fit_resample(X, y)[0][400:]
    assert ReconSMOTE(expand=False, min_lines=3).run(released).score(minority)[1] < 0.5
    result = ReconSMOTE().run(released)
    precision, recall = result.score(minority)
    assert precision >= 0.99 and recall >= 0.95
    # What is known from the lines stays, and how the others were found is told.
    found_by = result.evidence["found_by"].value_counts()
    assert found_by["lines"] == len(ReconSMOTE(expand=False).run(released).records)
    assert found_by["single rows"] == result.details["found_by_single_rows"] > 0
    assert found_by.get("grid", 0) == result.details["found_by_grid"]
    assert found_by.get("rays", 0) == result.details["found_by_rays"]
    assert found_by.sum() == len(result.records)

    # The grid alone gives them too, from where three lines meet.
    points = read_points(released)
    known = find_meetings(find_lines(points), points, min_lines=3)
    found = expand(points.values, known.places, known.radius, points.noise)
    places = points.low + found.places * points.span
    apart = np.abs(places[:, None] - minority).max(axis=2)
    assert (apart.min(axis=1) < 1e-6).all()
    assert (apart.min(axis=0) < 1e-6).mean() >= 0.95


def test_full_precision_is_left_to_the_lines() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(440, 5))
    released = SMOTE(random_state=0).fit_resample(X, np.repeat([0, 1], [400, 40]))[0][440:]
    result = ReconSMOTE().run(released)
    assert result.details["found_by_grid"] == 0 and result.score(X[400:])[0] == 1.0


@pytest.mark.data
@pytest.mark.parametrize("name", ["ecoli", "abalone", "car_eval_34", "solar_flare_m0"])
def test_recall_on_the_sets_where_lines_are_too_few(name, data_folder) -> None:
    table = pd.read_parquet(data_folder / f"{name}.parquet")
    y = table.pop("target").to_numpy()
    X = MinMaxScaler((-1, 1)).fit_transform(table)
    scores = []
    for seed in range(3):
        released = SMOTE(random_state=seed).fit_resample(X, y)[0][len(X) :]
        scores.append(ReconSMOTE().run(released).score(X[y == 1]))
    precision, recall = np.mean(scores, axis=0)
    assert precision >= 0.99 and recall >= 0.98, scores


@pytest.mark.data
@pytest.mark.parametrize("name", EIGHT)
@pytest.mark.parametrize("scaled", [False, True])
def test_every_record_named_in_an_augmented_table_is_real(name, scaled, data_folder) -> None:
    table = pd.read_parquet(data_folder / f"{name}.parquet")
    y = table.pop("target").to_numpy()
    X = table.to_numpy(dtype=float)
    if scaled:
        X = MinMaxScaler((-1, 1)).fit_transform(X)
    augmented, labels = SMOTE(random_state=0).fit_resample(X, y)
    assert ReconSMOTE().run(augmented[labels == 1]).score(X[y == 1]) == (1.0, 1.0)
