"""Classifiers trained on releases and scored on real rows, for tables of any kind."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from oversafe._core.errors import InputError
from oversafe.data import load_dataset
from oversafe.measure import train_on_release, train_on_synthetic
from oversafe.protect import SMOTE, GaussianCopula


def clinic(n: int, seed: int, classes: int = 2) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(seed)
    y = rng.choice(classes, n, p=[0.7, *[0.3 / (classes - 1)] * (classes - 1)])
    X = pd.DataFrame(
        {
            "value": rng.normal(y, 0.6),
            "count": np.where(rng.random(n) < 0.15, np.nan, rng.poisson(3 + 2 * y)),
            "ward": pd.Categorical(np.where(rng.random(n) < 0.6, y.astype(str), "x")),
            "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, n), "D"),
            "flag": rng.random(n) < 0.5,
        }
    )
    return X, pd.Series(np.array(["healthy", "ill", "worse", "dire"])[y])


def test_the_original_rows_score_as_scikit_learn_scores_them():
    X, y = load_dataset("breast_cancer")
    utility = train_on_synthetic(
        None,
        X,
        y,
        classifiers={"lr": LogisticRegression(max_iter=1000)},
        n_folds=3,
        n_repeats=2,
        random_state=0,
    )
    aucs, f1s = [], []
    for train, test in RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0).split(X, y):
        scaler = StandardScaler().fit(X.iloc[train])
        model = LogisticRegression(max_iter=1000).fit(scaler.transform(X.iloc[train]), y.iloc[train])
        rows = scaler.transform(X.iloc[test])
        aucs.append(roc_auc_score(y.iloc[test] == "malignant", model.predict_proba(rows)[:, 1]))
        f1s.append(f1_score(y.iloc[test], model.predict(rows), pos_label="malignant"))
    np.testing.assert_allclose(utility.scores["auc"], aucs, atol=1e-6)
    np.testing.assert_allclose(utility.scores["f1"], f1s)
    assert utility.scores["repeat"].tolist() == [0, 0, 0, 1, 1, 1]
    assert utility.scores["fold"].tolist() == [0, 1, 2, 0, 1, 2]
    row = utility.overall.loc["auc"]
    assert row["low"] <= row["mean"] <= row["high"]
    assert row["mean"] == pytest.approx(np.mean(aucs), abs=1e-6)


@pytest.mark.parametrize("classes", [2, 4])
def test_mixed_kinds_gaps_and_text_labels(classes):
    X, y = clinic(400, 0, classes)
    original = train_on_synthetic(None, X, y, n_folds=3, random_state=0)
    release = train_on_synthetic(GaussianCopula(), X, y, n_folds=3, random_state=0)
    assert original.overall.loc["auc", "mean"] > 0.8
    assert 0.5 < release.overall.loc["auc", "mean"] <= original.overall.loc["auc", "mean"] + 0.05
    assert set(release.by_classifier.index) == {"lr", "rf"}
    assert np.isfinite(release.scores.drop(columns=["classifier"]).to_numpy(dtype=float)).all()


def test_repeatable_and_the_same_in_parallel():
    X, y = clinic(200, 1)
    model = {"lr": LogisticRegression()}
    first, second = (
        train_on_synthetic(
            SMOTE(), X, y, classifiers=model, n_folds=2, random_state=4, n_jobs=jobs
        ).scores.drop(columns="seconds")
        for jobs in (1, 2)
    )
    pd.testing.assert_frame_equal(first, second)


def test_the_protector_sees_the_training_rows_alone():
    X, y = clinic(300, 2)
    seen = []

    def remember(rows: pd.DataFrame, labels: pd.Series):
        seen.append(set(rows["value"]))
        return rows, labels

    train_on_synthetic(remember, X, y, n_folds=3, random_state=0, classifiers={"lr": LogisticRegression()})
    assert [len(values) for values in seen] == [200, 200, 200]
    # Every row is left out once.
    assert not set.intersection(*seen)


def test_a_protector_may_fit_and_sample():
    class Repeats:
        def fit(self, X, y):
            self.rows = X, y

        def sample(self):
            return self.rows

    X, y = clinic(300, 2)
    settings = {"n_folds": 3, "random_state": 0, "classifiers": {"lr": LogisticRegression()}}
    made, real = (train_on_synthetic(p, X, y, **settings).overall for p in (Repeats(), None))
    pd.testing.assert_frame_equal(made, real)


def test_labels_agree_however_they_are_stored_and_missing_classes_count():
    X, y = clinic(200, 3, classes=4)
    numbered = pd.Series(pd.factorize(y, sort=True)[0])
    test = X.iloc[150:], numbered.iloc[150:]
    scores = train_on_release((X.iloc[:150], numbered.iloc[:150].astype(str)), test)
    assert (scores["auc"] > 0.6).all()
    one = train_on_release((X.iloc[:150], pd.Series(0, index=range(150))), test)
    assert (one["auc"] == 0.5).all() and (one["worst_class_accuracy"] == 0.0).all()


def test_a_classifier_without_probabilities():
    X, y = clinic(300, 5)
    utility = train_on_synthetic(None, X, y, classifiers={"svc": LinearSVC()}, n_folds=3, random_state=0)
    assert utility.overall.loc["auc", "mean"] > 0.75


def test_tuning_chooses_on_the_released_rows():
    X, y = clinic(240, 6)
    noise = pd.DataFrame(np.random.default_rng(6).normal(size=(240, 100))).add_prefix("noise")
    wide = pd.concat([X[["value"]], noise], axis=1)
    models = {"lr": LogisticRegression(C=1e4, max_iter=3000)}
    plain, tuned = (
        train_on_synthetic(None, wide, y, classifiers=models, n_folds=2, random_state=0, tune=tune)
        for tune in (False, True)
    )
    # A weak penalty fits the noise; the grid holds stronger ones.
    assert tuned.overall.loc["auc", "mean"] > plain.overall.loc["auc", "mean"]


def test_the_six_classifiers_of_the_paper():
    pytest.importorskip("xgboost", reason="install the extra 'boost'")
    X, y = clinic(300, 7, classes=3)
    utility = train_on_synthetic(None, X, y, classifiers="paper", n_folds=2, random_state=0)
    assert list(utility.by_classifier.index) == ["lr", "nb", "dt", "rf", "xgb", "mlp"]
    assert (utility.by_classifier["auc"] > 0.65).all()


def test_bad_use():
    X, y = clinic(60, 8)
    with pytest.raises(InputError, match="folds needs one"):
        train_on_synthetic(None, X.iloc[:20], pd.Series(["a"] * 17 + ["b"] * 3), n_folds=5)
    with pytest.raises(InputError, match="single class"):
        train_on_synthetic(None, X, pd.Series(["a"] * 60))
    with pytest.raises(InputError, match="no label"):
        train_on_synthetic(None, X, y.where(y.index > 0))
    with pytest.raises(InputError, match="no class"):
        train_on_synthetic(None, X, y, positive="sick")
    with pytest.raises(InputError, match="'quick', 'paper'"):
        train_on_synthetic(None, X, y, classifiers="all")
    with pytest.raises(InputError, match="neither fit_resample nor fit and sample"):
        train_on_synthetic(3, X, y)
    with pytest.raises(InputError, match=r"^the class SMOTE was given; give an object of it: SMOTE\(\)$"):
        train_on_synthetic(SMOTE, X, y)
    three = pd.Series(np.resize(["a", "b", "c"], 60))
    for score in (
        lambda: train_on_synthetic(None, X, three, positive="a"),
        lambda: train_on_release((X, three), (clinic(60, 9)[0], three), positive="a"),
    ):
        with pytest.raises(InputError, match="`positive` was given, and there are more than two classes"):
            score()
