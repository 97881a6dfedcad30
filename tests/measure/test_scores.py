"""Scores for classes of unequal size agree with scikit-learn's, and their intervals cover."""

from __future__ import annotations

import numpy as np
import pytest
from imblearn.metrics import geometric_mean_score
from sklearn import metrics

from oversafe._core.errors import InputError
from oversafe.measure import imbalance_scores
from oversafe.measure.scores import SCORES


def sample(classes: int, seed: int, rounded: bool = False):
    rng = np.random.default_rng(seed)
    y = rng.choice(classes, size=400, p=np.array([0.8, *[0.2 / (classes - 1)] * (classes - 1)]))
    scores = rng.dirichlet(np.ones(classes), size=400) + 0.7 * np.eye(classes)[y]
    scores /= scores.sum(axis=1, keepdims=True)
    if rounded:
        scores = np.round(scores, 1)
        scores[:, 0] = 1 - scores[:, 1:].sum(axis=1)
    return y, np.argmax(scores, axis=1), scores


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_two_classes_agree_with_scikit_learn(seed, rounded):
    y, predicted, scores = sample(2, seed, rounded)
    ours = imbalance_scores(y, predicted, scores[:, 1], n_bootstrap=0)["score"]
    recalls = metrics.recall_score(y, predicted, average=None)
    expected = {
        "auc": metrics.roc_auc_score(y, scores[:, 1]),
        "average_precision": metrics.average_precision_score(y, scores[:, 1]),
        "f1": metrics.f1_score(y, predicted),
        "balanced_accuracy": metrics.balanced_accuracy_score(y, predicted),
        "precision": metrics.precision_score(y, predicted),
        "recall": metrics.recall_score(y, predicted),
        "worst_class_accuracy": recalls.min(),
        "macro_accuracy": recalls.mean(),
        "g_mean": geometric_mean_score(y, predicted),
        "mcc": metrics.matthews_corrcoef(y, predicted),
    }
    assert list(expected) == list(SCORES) == list(ours.index)
    assert ours.to_dict() == pytest.approx(expected)


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("classes", [3, 5])
def test_more_classes_agree_with_scikit_learn(classes, rounded):
    y, predicted, scores = sample(classes, 0, rounded)
    ours = imbalance_scores(y, predicted, scores, n_bootstrap=0)["score"]
    hot = np.eye(classes)[y]
    expected = {
        "auc": np.mean([metrics.roc_auc_score(hot[:, c], scores[:, c]) for c in range(classes)]),
        "average_precision": metrics.average_precision_score(hot, scores, average="macro"),
        "f1": metrics.f1_score(y, predicted, average="macro"),
        "balanced_accuracy": metrics.balanced_accuracy_score(y, predicted),
        "precision": metrics.precision_score(y, predicted, average="macro", zero_division=0),
        "recall": metrics.recall_score(y, predicted, average="macro"),
        "worst_class_accuracy": metrics.recall_score(y, predicted, average=None).min(),
        "macro_accuracy": metrics.recall_score(y, predicted, average="macro"),
        "g_mean": geometric_mean_score(y, predicted, average="multiclass"),
        "mcc": metrics.matthews_corrcoef(y, predicted),
    }
    assert ours.to_dict() == pytest.approx(expected)


def test_text_labels_and_the_positive_class():
    y = np.array(["benign", "benign", "malignant", "benign"])
    predicted = np.array(["benign", "malignant", "malignant", "benign"])
    last = imbalance_scores(y, predicted, n_bootstrap=0)["score"]
    assert (last["precision"], last["recall"]) == (0.5, 1.0)
    assert np.isnan(last["auc"])
    first = imbalance_scores(y, predicted, positive="benign", n_bootstrap=0)["score"]
    assert (first["precision"], first["recall"]) == (1.0, pytest.approx(2 / 3))


def test_scores_of_both_columns_are_read_for_the_positive_class():
    y, _, scores = sample(2, 1)
    both = imbalance_scores(y, y_score=scores, n_bootstrap=0)["score"]
    assert both["auc"] == pytest.approx(metrics.roc_auc_score(y, scores[:, 1]))
    other = imbalance_scores(y, y_score=scores, positive=0, n_bootstrap=0)["score"]
    assert other["auc"] == pytest.approx(metrics.roc_auc_score(1 - y, scores[:, 0]))


def test_no_prediction_of_the_rare_class_is_no_error():
    scores = imbalance_scores([0, 0, 0, 1], [0, 0, 0, 0], n_bootstrap=50, random_state=0)["score"]
    assert (scores["precision"], scores["f1"], scores["mcc"], scores["g_mean"]) == (0, 0, 0, 0)


def test_intervals_are_those_of_resampled_rows():
    y, predicted, scores = sample(2, 2)
    ours = imbalance_scores(y, predicted, scores[:, 1], n_bootstrap=4000, random_state=0)
    rng = np.random.default_rng(1)
    drawn = []
    for _ in range(1500):
        rows = rng.integers(0, len(y), len(y))
        drawn.append(
            [
                metrics.roc_auc_score(y[rows], scores[rows, 1]),
                metrics.average_precision_score(y[rows], scores[rows, 1]),
                metrics.f1_score(y[rows], predicted[rows]),
            ]
        )
    ends = np.quantile(drawn, [0.025, 0.975], axis=0)
    for at, name in enumerate(["auc", "average_precision", "f1"]):
        width = ends[1, at] - ends[0, at]
        # Percentiles of 1,500 draws err by some 4 % of the width.
        assert abs(ours.loc[name, "low"] - ends[0, at]) < 0.25 * width
        assert abs(ours.loc[name, "high"] - ends[1, at]) < 0.25 * width
    assert (ours["low"] <= ours["score"]).all() and (ours["score"] <= ours["high"]).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], []), "empty"),
        (([0, 1],), "neither"),
        (([0, 1], [0]), "y_pred has 1 rows"),
        (([0, 1], [0, 2]), "the class 2"),
        (([0, 0], [0, 0]), "one class"),
        (([0, 1], None, [0.1, np.nan]), "missing"),
        (([0, 1, 2], None, [0.1, 0.2, 0.3]), "shape"),
    ],
)
def test_what_cannot_be_scored_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        imbalance_scores(*arguments)
    with pytest.raises(InputError, match="n_bootstrap"):
        imbalance_scores([0, 1], [0, 1], n_bootstrap=-1)
