"""Plots hold what they draw, and draw it where they are told to."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from oversafe._core.errors import InputError, MissingExtraError
from oversafe.attack import AttackResult, GroundHog, ReconSMOTE, reconstruction_recall_bound
from oversafe.attack.membership.game import MembershipResult
from oversafe.data import load_dataset
from oversafe.learn import PrivateLogisticRegression
from oversafe.protect import SMOTE
from oversafe.report import (
    FrontierDisplay,
    MarginalsDisplay,
    MembershipDisplay,
    PrivateBoundaryDisplay,
    RecallDisplay,
    ReconstructionDisplay,
)

mpl.use("agg")


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def attacked():
    X, y = load_dataset("breast_cancer")
    X_new, y_new = SMOTE(random_state=0).fit_resample(X, y)
    rows = X_new[y_new == "malignant"]
    return ReconSMOTE().run(rows), rows, X[y == "malignant"]


def test_lines_join_records(attacked):
    result, rows, real = attacked
    display = ReconstructionDisplay.from_result(
        result, rows, real=real, columns=["mean_texture", "mean_symmetry"]
    )
    assert (
        display.rows.shape == (300, 2) and display.records.shape == (15, 2) and display.real.shape == (15, 2)
    )
    # Each released row that lies on a line of the proof lies on one of the drawn segments.
    proof = result.proof(0)
    for end in proof["to"].unique():
        assert sorted((0, int(end))) in display.lines.tolist()
    assert display.ax_.get_xlabel() == "mean_texture" and len(display.ax_.lines) == len(display.lines)


def test_columns_are_chosen_when_none_are_named(attacked):
    result, rows, _ = attacked
    display = ReconstructionDisplay.from_result(result, rows)
    assert set(display.columns) <= set(rows.columns) and display.real is None
    with pytest.raises(InputError, match="two columns"):
        ReconstructionDisplay.from_result(result, rows, columns=["nope", "mean_texture"])


def test_arrays_are_drawn_too(attacked):
    _, rows, real = attacked
    values = rows.to_numpy()
    display = ReconstructionDisplay.from_result(ReconSMOTE().run(values), values, real=real.to_numpy())
    assert display.records.shape == (15, 2)


def test_given_axes_are_used(attacked):
    result, rows, _ = attacked
    figure, ax = plt.subplots()
    display = ReconstructionDisplay.from_result(result, rows, ax=ax)
    assert display.ax_ is ax and display.figure_ is figure
    other = display.plot()
    assert other.figure_ is not figure


def test_recall_beside_the_bounds():
    display = RecallDisplay.from_recalls([5, 20], [[0.5, 0.7], [1.0, 1.0]], n_minority=40, mutuality=0.5)
    assert display.bounds["Theorem 4"][0] == reconstruction_recall_bound(40, 160, 5, 0.5)
    assert display.bounds["Theorem 3"][1] == reconstruction_recall_bound(40, 760, 5, exact=False)
    line = display.ax_.lines[-1]
    assert line.get_ydata().tolist() == [0.6, 1.0]
    with pytest.raises(InputError, match="above 1"):
        RecallDisplay.from_recalls([0.5], [0.5], n_minority=40)


def test_recall_of_releases_that_it_makes():
    """With a thousand rows of twenty records every record is on many lines, so all are read back."""
    X = np.random.default_rng(0).normal(size=(20, 4))
    display = RecallDisplay.from_records(X, [2, 50], n_runs=2, random_state=0)
    assert display.recalls.shape == (2, 2) and (display.recalls[1] == 1.0).all()
    assert (display.recalls[0] < 1).all()


def test_a_curve_per_target():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(220, 3)), np.repeat([0, 1], [200, 20])
    result = GroundHog(n_targets=3, n_train=60, n_test=60, random_state=0).run(SMOTE(), X, y)
    display = MembershipDisplay.from_result(result, n_highlighted=2)
    areas = [np.trapezoid(y, x) for x, y in display.curves]
    assert areas == pytest.approx(list(result.auc))
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert sum(label.startswith("row") for label in labels) == 2


def test_a_result_without_scores_has_no_curve():
    plain = MembershipResult("GroundHog", "membership", 0.0, (0.0, 1.0), pd.DataFrame())
    assert isinstance(plain, AttackResult)
    with pytest.raises(InputError, match="no scores"):
        MembershipDisplay.from_result(plain)


def test_marginals_of_every_kind():
    real = pd.DataFrame(
        {
            "age": [20.0, 30.0, 40.0, np.nan],
            "ward": ["A", "A", "B", None],
            "ill": [True, False, False, False],
            "same": [1, 1, 1, 1],
            "seen": pd.to_datetime(["2020-01-01"] * 4),
        }
    )
    released = real.assign(ward=["A", "B", "B", "B"], ill=[True, True, False, False])
    display = MarginalsDisplay.from_tables(real, released)
    distances = {m.name: m.distance for m in display.marginals}
    assert distances == pytest.approx({"age": 0, "ward": 0.5, "ill": 0.25, "same": 0, "seen": 0})
    ward = display.marginals[1]
    shares = dict(zip(ward.cells, zip(ward.real, ward.released, strict=True), strict=True))
    assert shares == {"A": (0.5, 0.25), "B": (0.25, 0.75), "missing": (0.25, 0.0)}
    assert len(display.axes_) == 5 and display.ax_ is display.axes_[0]


def test_many_categories_are_summed_up():
    real = pd.DataFrame({"town": [f"town {i}" for i in range(50)]})
    marginal = MarginalsDisplay.from_tables(real, real).marginals[0]
    assert marginal.cells[-1] == "others" and marginal.real.sum() == pytest.approx(1)
    assert marginal.real[-1] == pytest.approx(38 / 50)


@pytest.mark.parametrize(
    ("released", "columns"), [(pd.DataFrame({"b": [1]}), None), (pd.DataFrame({"a": [1]}), ["b"])]
)
def test_marginals_need_shared_columns(released, columns):
    with pytest.raises(InputError, match="share no such columns"):
        MarginalsDisplay.from_tables(pd.DataFrame({"a": [1]}), released, columns=columns)


def test_boundaries_of_several_fits():
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.2).astype(int)
    X = pd.DataFrame(rng.normal(size=(400, 2)) + 2 * y[:, None], columns=["a", "b"])
    model = PrivateLogisticRegression(2.0, data_norm=3.0, classes=[0, 1])
    display = PrivateBoundaryDisplay.from_estimator(model, X, y, n_fits=3)
    assert len(display.heights) == 3 and not np.array_equal(display.heights[0], display.heights[1])
    assert display.ax_.get_xlabel() == "a" and display.rare.sum() == (y == 1).sum()
    with pytest.raises(InputError, match="two columns"):
        PrivateBoundaryDisplay.from_estimator(model, np.zeros((4, 3)), [0, 1, 0, 1])


def test_boundaries_of_three_classes():
    from sklearn.tree import DecisionTreeClassifier

    X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    y = np.array(["a", "b", "c"] * 2)
    display = PrivateBoundaryDisplay.from_estimator(DecisionTreeClassifier(random_state=0), X, y, n_fits=1)
    assert set(np.unique(display.heights)) == {0.0, 1.0, 2.0}


def test_the_frontier_by_hand():
    names = ["strong", "weak", "beaten", "equal"]
    privacy, utility = [0.0, 0.8, 0.8, 0.8], [0.6, 0.9, 0.7, 0.9]
    intervals = [[0, 0.1], [0.7, 0.9], [0.7, 0.9], [np.nan, np.nan]]
    display = FrontierDisplay.from_arrays(names, privacy, utility, privacy_intervals=intervals)
    assert display.on_frontier.tolist() == [True, True, False, True]
    turned = FrontierDisplay.from_arrays(names, privacy, utility, more_private="higher")
    assert turned.on_frontier.tolist() == [False, True, False, True]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"privacy": [1]}, "privacy has the shape"),
        ({"utility_intervals": [[0, 1]]}, "utility_intervals has the shape"),
        ({"more_private": "up"}, "use 'lower' or 'higher'"),
    ],
)
def test_a_frontier_of_figures_that_do_not_fit(change, message):
    given = {"names": ["a", "b"], "privacy": [0, 1], "utility": [0, 1]} | change
    with pytest.raises(InputError, match=message):
        FrontierDisplay.from_arrays(**given)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"oversafe\[plot\]"):
        FrontierDisplay.from_arrays(["a"], [0.1], [0.9])
