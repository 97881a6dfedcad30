"""UMAPSMOTENC: its two loops by hand, and on tables what it keeps and what it never does."""

import sys
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from oversafe._core.errors import InputError, MissingExtraError
from oversafe.attack import ExactCopies, ReconSMOTE
from oversafe.data import load_dataset
from oversafe.data.rows import is_copy
from oversafe.protect import UMAPSMOTENC
from oversafe.protect.samplers._umap_kernels import back_project, mixed_neighbors
from oversafe.protect.samplers.umap_smotenc import _spike, _vote

from .conformance import mixed_table

needs_umap = pytest.mark.skipif(find_spec("umap") is None, reason="needs the optional package umap")
NO_SPIKE = np.array([np.nan])
NO_FILL = np.array([0.5])


@pytest.mark.parametrize("penalty", [0.0, 0.05, 100.0])
def test_neighbours_are_those_of_the_full_distance(penalty):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(150, 2))
    points = points[np.argsort(points[:, 0])]
    categories = rng.integers(0, 3, (150, 4))
    square = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    square += penalty * (categories[:, None] != categories[None]).sum(axis=2)
    np.fill_diagonal(square, np.inf)
    found = mixed_neighbors(points, categories, penalty, 5)
    expected = np.sort(square, axis=1)[:, :5]
    np.testing.assert_allclose(np.take_along_axis(square, found, axis=1), expected)


def test_without_spread_a_row_is_the_weighted_mean_of_the_known_values():
    values = np.array([[0.2], [0.6], [np.nan]])
    neighbors = np.array([[0, 1, 2], [2, 2, 2]])
    weights = np.array([[0.25, 0.25, 0.5], [0.5, 0.25, 0.25]])
    rows = back_project(
        values,
        neighbors,
        weights,
        np.ones((2, 3)),
        np.zeros((2, 1)),
        np.full((2, 1), 0.9),
        NO_SPIKE,
        NO_FILL,
        0.0,
    )
    # All neighbours missing: the column's fill.
    np.testing.assert_allclose(rows, [[0.4], [0.5]])


def test_draws_have_the_covariance_of_the_surroundings():
    rng = np.random.default_rng(0)
    values = np.array([[0.3, 0.4], [0.5, 0.6], [0.6, 0.5], [0.45, 0.55]])
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    n = 200_000
    rows = back_project(
        values,
        np.tile(np.arange(4), (n, 1)),
        np.tile(weights, (n, 1)),
        rng.standard_normal((n, 4)),
        np.zeros((n, 2)),
        rng.random((n, 2)),
        np.full(2, np.nan),
        np.full(2, 0.5),
        0.5,
    )
    mean = weights @ values
    covariance = 0.25 * (weights[:, None] * (values - mean)).T @ (values - mean)
    # Standard error of each entry below 1e-5; 7 of them: failure probability below 1e-10.
    np.testing.assert_allclose(rows.mean(axis=0), mean, atol=7 * 0.06 / np.sqrt(n))
    np.testing.assert_allclose(np.cov(rows.T), covariance, atol=7e-5)


def test_draws_beyond_the_range_are_reflected():
    values = np.array([[0.0], [0.2]])
    rows = back_project(
        values,
        np.array([[0, 1]]),
        np.array([[0.5, 0.5]]),
        np.array([[2.0, 0.0]]),
        np.array([[-0.01]]),
        np.array([[0.9]]),
        NO_SPIKE,
        NO_FILL,
        1.0,
    )
    # 0.1 + 2 * sqrt(0.5) * (0 - 0.1) - 0.01 is below 0 by 0.0514.
    np.testing.assert_allclose(rows, [[0.1 * (np.sqrt(2.0) - 1.0) + 0.01]])


def test_a_spike_comes_as_often_as_around_and_takes_no_part_in_the_mean():
    values = np.array([[0.0], [0.5], [0.7]])
    neighbors, weights = np.array([[0, 1, 2]] * 2), np.array([[0.4, 0.3, 0.3]] * 2)
    uniform = np.array([[0.39], [0.41]])
    rows = back_project(
        values, neighbors, weights, np.zeros((2, 3)), np.zeros((2, 1)), uniform, np.array([0.0]), NO_FILL, 1.0
    )
    np.testing.assert_allclose(rows, [[0.0], [0.6]])


def test_a_spike_is_a_frequent_value_among_many():
    assert np.isnan(_spike(np.repeat([0.0, 0.5, 1.0], 20)))
    assert np.isnan(_spike(np.linspace(0, 1, 100)))
    assert _spike(np.concatenate([np.zeros(30), np.linspace(0.1, 1, 100)])) == 0.0


def test_the_vote_takes_the_most_frequent_and_on_a_tie_the_nearer():
    categories = np.array([[0, 5], [1, 6], [1, 7]])
    np.testing.assert_array_equal(_vote(categories, np.array([[0, 1, 2]])), [[1, 5]])


@needs_umap
def test_every_class_keeps_its_count_and_other_counts_can_be_asked_for():
    X, y = mixed_table(classes=3)
    synthesizer = UMAPSMOTENC(random_state=0).fit(X, y)
    _, labels = synthesizer.sample()
    assert labels.value_counts().to_dict() == y.value_counts().to_dict()
    _, labels = synthesizer.sample(class_counts={"ill": 7, "healthy": 2})
    assert labels.value_counts().to_dict() == {"ill": 7, "healthy": 2}


@needs_umap
def test_missing_values_stay_together_and_as_frequent():
    X, y = mixed_table(2000)
    together = np.random.default_rng(5).random(len(X)) < 0.3
    X.loc[together, ["dose", "visits"]] = None
    X.loc[~together, "dose"] = 5.0
    X.loc[~together, "visits"] = 3
    X_new, _ = UMAPSMOTENC(random_state=0).fit_resample(X, y)
    assert (X_new["dose"].isna() == X_new["visits"].isna()).all()
    # Rows drawn twice around the same records are not independent: the error of a share is taken as that of
    # 2000 / 20 rows, 0.046; six of them.
    assert abs(X_new["dose"].isna().mean() - together.mean()) < 6 * 0.046


@needs_umap
@pytest.mark.parametrize("seed", range(3))
def test_nobody_is_told_by_absence(seed):
    """Of 4096 possible rows members are drawn about as often as others; without their rows they would stand out.

    About half of the 2,100 different members and of the 1,000 others are drawn. The difference of their shares, 0.03 to
    0.05 here, has a deviation of 0.02: every end below is more than five deviations away, which all three seeds
    together pass by chance with a probability below 1e-6.
    """
    rng = np.random.default_rng(seed)
    real, holdout = (pd.DataFrame(rng.integers(0, 16, (3000, 3)), columns=list("abc")) for _ in range(2))
    y = pd.Series(np.where(rng.random(3000) < 0.3, "ill", "well"))
    X_new, _ = UMAPSMOTENC(random_state=seed).fit_resample(real, y)
    assert (X_new.dtypes == real.dtypes).all()
    found = ExactCopies().run(X_new, real, holdout)
    assert found.details["copied"] > 0.3 * found.details["distinct_real"] and found.interval[0] < 0.1
    # As if rows that equal a real one were drawn again.
    avoiding = ExactCopies().run(X_new[~is_copy(X_new, real)], real, holdout)
    assert avoiding.details["avoided"] and avoiding.interval[0] > 0.3


@needs_umap
@pytest.mark.parametrize(
    "options",
    [
        {"interpolation": "box"},
        {"interpolation": "triangle"},
        {"n_components": 3},
        {"graph_categories": True},
        {"categories": "vote"},
        {"spread": 0},
        {"noise": 0.0},
        {"n_jobs": 2},
    ],
    ids=str,
)
def test_options(options):
    X, y = mixed_table()
    seed = None if "n_jobs" in options else 0
    synthesizer = UMAPSMOTENC(random_state=seed, n_epochs=20, **options)
    X_new, y_new = synthesizer.fit_resample(X, y)
    assert X_new.dtypes.to_dict() == X.dtypes.to_dict()
    assert y_new.value_counts().to_dict() == y.value_counts().to_dict()
    assert synthesizer.embedding_.shape == (len(X), options.get("n_components", 2))


@needs_umap
def test_points_lie_where_the_interpolation_says():
    X, y = mixed_table()
    synthesizer = UMAPSMOTENC(random_state=0, k_neighbors=1, n_epochs=20).fit(X, y)
    classes = np.zeros(200, dtype=np.int64)
    for interpolation in ("line", "box"):
        synthesizer.interpolation = interpolation
        points = synthesizer._draw_points(classes, np.random.default_rng(0))
        start = synthesizer.embedding_[points.base]
        end = synthesizer.embedding_[synthesizer._neighbors[points.base, 0]]
        share = (points.where - start) / (end - start)
        assert ((share > -1e-9) & (share < 1 + 1e-9)).all()
        assert np.allclose(share[:, 0], share[:, 1]) == (interpolation == "line")


@needs_umap
def test_a_table_of_categories_alone():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({f"c{i}": rng.choice(["low", "mid", "high"], 200) for i in range(8)})
    y = pd.Series(np.where(rng.random(200) < 0.3, "ill", "well"))
    X_new, _ = UMAPSMOTENC(random_state=0).fit_resample(X, y)
    assert X_new.isin(["low", "mid", "high"]).all(axis=None)


@needs_umap
def test_spikes_and_small_classes_are_kept():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], [300, 6])
    debt = np.where(rng.random(306) < 0.6, 0.0, np.round(rng.gamma(2.0, 1000.0, 306), 2))
    X = pd.DataFrame({"debt": debt, "age": rng.integers(18, 90, 306), "dose": rng.normal(size=306)})
    X_new, y_new = UMAPSMOTENC(random_state=0).fit_resample(X, pd.Series(y))
    # The surroundings overlap, so the error of a share is taken as twice that of 306 independent rows.
    assert abs((X_new["debt"] == 0).mean() - (debt == 0).mean()) < 6 * 2 * 0.028
    assert (y_new == "b").sum() == 6


@needs_umap
def test_the_lines_lead_back_in_the_embedding_and_not_in_the_table():
    X, y = load_dataset("breast_cancer")
    synthesizer = UMAPSMOTENC(random_state=0).fit(X, y)
    rare = list(synthesizer.classes_).index("malignant")
    points = synthesizer._draw_points(np.full(285, rare), np.random.default_rng(0))
    placed = synthesizer.embedding_[synthesizer._codes == rare]
    precision, recall = ReconSMOTE().run(points.where).score(placed)
    assert precision == 1.0 and recall > 0.5
    released, _ = synthesizer.sample(class_counts={"malignant": 285})
    _, recall = ReconSMOTE().run(released).score(X[y == "malignant"])
    assert recall == 0.0


@needs_umap
def test_small_classes_are_told():
    X, y = mixed_table(missing=False)
    y = pd.Series(np.where(np.arange(len(y)) < 4, "rare", "common"))
    with pytest.raises(
        InputError, match="class 'rare' has 4 rows, and UMAPSMOTENC with 5 neighbours needs at least 6"
    ):
        UMAPSMOTENC().fit(X, y)
    UMAPSMOTENC(k_neighbors=3, n_epochs=5).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"k_neighbors": 0}, "k_neighbors = 0 was given"),
        ({"back_neighbors": 1}, "back_neighbors = 1 was given"),
        ({"n_epochs": 2.5}, r"n_epochs = 2\.5 was given"),
        ({"interpolation": "curve"}, "interpolation = 'curve' was given"),
        ({"categories": "mode"}, "categories = 'mode' was given"),
        ({"spread": -1.0}, r"spread = -1\.0 was given"),
        ({"noise": True}, "noise = True was given"),
        ({"spread": float("nan")}, "spread = nan was given"),
        ({"random_state": 0, "n_jobs": 2}, "not repeatable"),
        ({"sampling_strategy": "not minority"}, "sampling_strategy = 'not minority' was given"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameters, message):
    with pytest.raises(InputError, match=message):
        UMAPSMOTENC(**parameters).fit(*mixed_table())


def test_without_the_extra_the_command_that_brings_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'oversafe\[umap\]'"):
        UMAPSMOTENC().fit(*mixed_table())
