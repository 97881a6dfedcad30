"""ShadowClassifier tells classifiers that saw a record from those that did not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import SMOTE
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from oversafe._core.errors import InputError
from oversafe.attack import ShadowClassifier
from oversafe.attack.membership.shadow import likelihood_ratios
from oversafe.protect import HistogramSynthesizer


def imbalanced(n: int = 120, minority: int = 20) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).normal(size=(n, 3))
    return X, np.repeat([0, 1], [n - minority, minority])


class Coin(ClassifierMixin, BaseEstimator):
    """Answers at random, whatever it was trained on."""

    def __init__(self, random_state: int | None = None) -> None:
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> Coin:
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        p = np.random.default_rng(self.random_state).random(len(X))
        return np.column_stack([1 - p, p])


def test_a_classifier_that_keeps_its_data_gives_them_away() -> None:
    X, y = imbalanced()
    X[-1] = -9.0
    X[0] = -9.1
    # With the record its own neighbour is itself, without it a row of the other class.
    result = ShadowClassifier(KNeighborsClassifier(1), n_models=8, targets=[119], random_state=0).run(X, y)
    assert result.threat == "membership"
    assert result.auc.tolist() == [1.0]
    assert result.risk == 1.0
    assert result.privacy_gain.tolist() == [0.0]
    assert result.details["n_models"] == 8


def test_a_coin_gives_nothing_away() -> None:
    X, y = imbalanced()
    result = ShadowClassifier(Coin(), n_targets=10, n_models=200, random_state=0).run(X, y)
    # The mean AUC has a standard error of at most 0.041; five of them are exceeded with probability 6e-7.
    assert abs(result.details["auc"] - 0.5) < 5 * 0.041
    low, high = result.details["auc_interval"]
    assert low < result.details["auc"] < high
    assert result.interval[0] < 0.41


def test_the_models_with_the_record_are_shared() -> None:
    result = ShadowClassifier(DecisionTreeClassifier(), n_targets=5, n_models=20, random_state=0).run(
        *imbalanced()
    )
    assert result.details["n_models"] == 10 + 5 * 10
    assert len(result.auc) == 5


def test_a_protector_comes_before_the_training() -> None:
    X, y = imbalanced()
    X[-1] = -9.0
    attack = ShadowClassifier(KNeighborsClassifier(1), n_models=8, targets=[119], random_state=0)
    augmented = attack.run(X, y, SMOTE())
    assert augmented.details["protector"] == "SMOTE"
    private = attack.run(X, y, HistogramSynthesizer(epsilon=1.0))
    assert 0 <= private.details["auc"] <= 1


def test_mixed_columns_and_text_labels_with_the_default_perceptron() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"age": rng.integers(20, 90, 60), "ward": rng.choice(["a", "b"], 60), "dose": rng.normal(size=60)}
    )
    X.loc[4, "dose"] = np.nan
    y = pd.Series(np.where(np.arange(60) < 12, "ill", "well"))
    result = ShadowClassifier(n_targets=2, n_models=8, random_state=0).run(X, y)
    assert result.details["label"] == "ill"
    assert result.details["classifier"] == "Pipeline"
    assert set(result.evidence.columns) >= {"row", "auc", "age", "ward", "dose"}


def test_classifiers_without_probabilities() -> None:
    result = ShadowClassifier(LinearSVC(), n_targets=2, n_models=8, random_state=0).run(*imbalanced())
    assert ((result.auc >= 0) & (result.auc <= 1)).all()


def test_likelihood_ratios_see_a_difference_of_spread() -> None:
    rng = np.random.default_rng(0)
    inside = 1 / (1 + np.exp(-rng.normal(0, 0.2, size=(1, 400))))
    outside = 1 / (1 + np.exp(-rng.normal(0, 2.0, size=(1, 400))))
    a, b = likelihood_ratios(inside, outside)
    auc = (b < a.T).mean()
    plain = (outside < inside.T).mean()
    # Analytically 0.94 and 0.5, each with a standard error of about 0.02.
    assert auc > 0.8
    assert abs(plain - 0.5) < 0.15


def test_likelihood_ratios_by_hand() -> None:
    def logistic(x: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-x))

    inside, outside = np.array([[1.0, 2.0, 4.0]]), np.array([[-1.0, 0.0, 1.0]])
    a, _ = likelihood_ratios(logistic(inside), logistic(outside))
    others, mean, variance = np.array([2.0, 4.0]), outside.mean(), outside.var()
    expected = -0.5 * ((1 - others.mean()) ** 2 / others.var() + np.log(others.var()))
    expected += 0.5 * ((1 - mean) ** 2 / variance + np.log(variance))
    assert a[0, 0] == pytest.approx(expected)


def test_both_scores_are_repeatable() -> None:
    for score in ("confidence", "likelihood-ratio"):
        attack = ShadowClassifier(
            DecisionTreeClassifier(max_depth=3, max_features=1),
            n_targets=3,
            n_models=16,
            score=score,
            random_state=1,
        )
        first, second = (attack.run(*imbalanced()) for _ in range(2))
        np.testing.assert_array_equal(first.auc, second.auc)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_models": 5}, "n_models = 5"),
        ({"score": "loss"}, "score = 'loss'"),
        ({"classifier": object()}, "has no fit"),
    ],
)
def test_bad_settings(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ShadowClassifier(**changes).run(*imbalanced())


def test_a_protector_that_is_none() -> None:
    with pytest.raises(InputError, match="neither fit_resample"):
        ShadowClassifier(DecisionTreeClassifier(), n_models=8, n_targets=1).run(*imbalanced(), object())


def test_without_time_one_target_is_attacked() -> None:
    attack = ShadowClassifier(
        DecisionTreeClassifier(), n_targets=6, n_models=8, time_limit=0.0, random_state=0
    )
    result = attack.run(*imbalanced())
    assert len(result.auc) == 1
    assert result.details["n_targets_without_time"] == 5
    assert result.details["n_models"] == 8


def test_a_users_classifier_takes_the_table_as_it_is() -> None:
    class Reader(Coin):
        def fit(self, X: pd.DataFrame, y: np.ndarray) -> Reader:
            assert X["note"].str.len().min() > 100
            return super().fit(X, y)

    X = pd.DataFrame({"note": [f"{i} long free text that names a person " * 4 for i in range(40)]})
    result = ShadowClassifier(Reader(), n_targets=2, n_models=8).run(X, np.repeat([0, 1], [30, 10]))
    assert len(result.auc) == 2
