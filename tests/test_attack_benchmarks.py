"""What the attacks are measured with: the plain transcription, the scores, and who took part in a release."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from benchmarks.atlas import PAGE, STORED, with_figures
from benchmarks.plain_smote_attacks import plain_distin, plain_recon
from benchmarks.recon import PUBLISHED
from benchmarks.recon_cases import gaussian_copula, records_on_segments, thinned
from benchmarks.releases import (
    augmented,
    gaussian_release,
    new_rows,
    scaled,
    score_labels,
    score_records,
    smote_release,
)
from benchmarks.tables import growth_exponent, mean, shown, storable
from imblearn.over_sampling import SVMSMOTE, BorderlineSMOTE
from sklearn.neighbors import NearestNeighbors

from oversafe.papers.base import EIGHT

SHARES = np.array([0.1234567, 0.3141592, 0.5772156, 0.7071067])
CENTRE = np.array([0.1, 0.2, 0.3])
ENDS = np.array([[0.5, 0.3, 0.4], [0.0, 0.7, -0.2], [-0.2, 0.1, 0.9]])


def star(ends: np.ndarray, shares: np.ndarray = SHARES) -> np.ndarray:
    return np.vstack([CENTRE + shares[:, None] * (end - CENTRE) for end in ends])


# ------------------------------------------------------------------------------------- the plain attacks


def test_plain_recon_finds_where_three_lines_meet() -> None:
    assert plain_recon(star(ENDS), 5, 26) == pytest.approx(CENTRE[None], abs=1e-12)
    assert len(plain_recon(star(ENDS[:2]), 5, 26)) == 0
    assert len(plain_recon(star(ENDS, SHARES[:2]), 5, 26)) == 0


def test_plain_distin_leaves_the_ends_of_the_lines() -> None:
    rows = np.vstack([CENTRE, ENDS, star(ENDS), [[0.9, 0.9, 0.9]]])
    assert np.flatnonzero(plain_distin(rows, 5, 26)).tolist() == [0, 1, 2, 3, 16]


def test_plain_attacks_on_a_gaussian_release() -> None:
    """Twenty-six rows per record in general position: what Algorithms 2 and 3 are made for."""
    real, synthetic = gaussian_release(1560, seed=0)
    assert real.shape == (60, 28)
    assert synthetic.shape == (1560, 28)
    assert np.abs(real).max() <= 1 + 1e-12
    precision, recall = score_records(plain_recon(synthetic, 5, 26), real)
    assert precision == 1
    assert recall > 0.95
    rows = augmented(real, synthetic, seed=0)
    precision, recall = score_labels(rows, plain_distin(rows, 5, 26), real)
    assert precision > 0.9
    assert recall == 1


@pytest.mark.data
@pytest.mark.parametrize("name", EIGHT)
def test_plain_attacks_reach_the_paper_s_figures(name: str, data_folder) -> None:
    """Within what 5 seeds can tell: the paper's recalls have deviations up to 0.03, ours are of other seeds."""
    X, minority = scaled(name)
    ratio = (~minority).sum() / minority.sum()
    recon, distin = [], []
    for seed in range(5):
        real, synthetic = smote_release(X, minority, seed)
        recon.append(score_records(plain_recon(synthetic, 5, ratio), real))
        rows = augmented(real, synthetic, seed)
        distin.append(score_labels(rows, plain_distin(rows, 5, ratio), real))
    assert np.mean(recon, axis=0) == pytest.approx(PUBLISHED.loc[name].to_numpy(), abs=0.15)
    assert (np.mean(recon, axis=0) > PUBLISHED.loc[name].to_numpy() - [0.01, 0.05]).all()
    assert (np.mean(distin, axis=0) > 0.98).all()


# ------------------------------------------------------------------------------------------- the scores


def test_scores_of_records() -> None:
    real = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    found = np.array([[0.0, 5e-7], [1.0, 1.0 + 2e-6], [2.0, np.nan], [3.0, 3.0]])
    assert score_records(found, real) == (0.5, 0.5)
    assert score_records(found, real, 1e-5) == (0.75, 0.75)
    assert score_records(found[2:3], real) == (0, 0)
    precision, recall = score_records(found[:0], real)
    assert math.isnan(precision)
    assert recall == 0


def test_scores_of_labels() -> None:
    real = np.array([[0.0], [0.0], [1.0]])
    rows = np.array([[0.0], [0.5], [0.0], [1.0], [0.0]])
    # The last row is synthetic and equals a real one.
    assert score_labels(rows, np.array([True, False, True, True, True]), real) == (1, 1)
    assert score_labels(rows, np.array([True, True, False, False, False]), real) == (0.5, 0.5)


def test_figures() -> None:
    assert growth_exponent([10, 100, 1000], [2.0, 20.0**1.5 / 5, 2e3]) == pytest.approx(1.5, abs=0.01)
    assert math.isnan(growth_exponent([10], [1.0]))
    assert mean([1.0, None, math.nan, 3.0]) == 2
    assert math.isnan(mean([]))
    assert storable({"t": [{"a": math.nan, "b": 1}]}) == {"t": [{"a": None, "b": 1}]}
    assert [shown(value) for value in (None, "x", 3, 0.0, 0.5, 1e-5, 12.34, 1234.5)] == [
        "-", "x", "3", "0.000", "0.500", "1e-05", "12.3", "1234",
    ]  # fmt: skip


# ----------------------------------------------------------------------------------- who took part


def test_records_on_two_segments_by_hand() -> None:
    minority = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [5.0, 5.0], [6.0, 7.0], [9.0, 1.0]])
    # Six records, five neighbours: all of them. The first has rows to the second and the third.
    rows = np.array([[0.3, 0.0], [0.0, 0.5], [5.5, 6.0], [0.0, 0.0]])
    records, unexplained = records_on_segments(rows, minority, minority, beyond=0)
    assert records.tolist() == [[0.0, 0.0]]
    assert unexplained == 0
    _, unexplained = records_on_segments(np.array([[0.3, 0.01], [-0.2, 0.0]]), minority, minority, beyond=0)
    assert unexplained == 2
    _, unexplained = records_on_segments(np.array([[-0.2, 0.0]]), minority, minority, beyond=0.5)
    assert unexplained == 0


@pytest.mark.parametrize("kind", ["borderline-1", "borderline-2", "svm"])
def test_all_rows_of_the_variants_are_explained(kind: str) -> None:
    X, minority = scaled("breast_cancer")
    sampler = SVMSMOTE(random_state=1) if kind == "svm" else BorderlineSMOTE(kind=kind, random_state=1)
    pool = X if kind == "borderline-2" else X[minority]
    rows = new_rows(sampler, X, minority)
    records, unexplained = records_on_segments(rows, X[minority], pool, beyond=0.5 if kind == "svm" else 0)
    assert unexplained == 0
    assert 2 <= len(records) <= 15
    assert NearestNeighbors().fit(X[minority]).kneighbors(records, 1)[0].max() < 1e-9


# ------------------------------------------------------------------------------------- other releases


def test_the_copula_keeps_the_columns_and_their_correlation() -> None:
    rng = np.random.default_rng(0)
    first = rng.normal(size=4000)
    X = np.column_stack([first, (first + rng.normal(size=4000)).round(1), np.ones(4000)])
    new = gaussian_copula(X, rng)
    assert new.shape == X.shape
    assert all(np.isin(new[:, column], X[:, column]).all() for column in range(3))
    # The standard error of either correlation is below 0.01.
    assert np.corrcoef(new[:, :2].T)[0, 1] == pytest.approx(np.corrcoef(X[:, :2].T)[0, 1], abs=0.1)


def test_a_minority_is_thinned() -> None:
    X, minority = thinned("mixed breast_cancer", seed=0)
    assert (~minority).sum() == 300
    assert minority.sum() == 12
    assert X["size"].dtype == "category"
    assert X["mean_area"].dtype == "int64"


def test_the_atlas_in_the_documentation_is_the_stored_one() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_figures(page, json.loads(STORED.read_text(encoding="utf-8"))) == page
