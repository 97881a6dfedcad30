"""A classifier on balanced synthetic rows keeps scikit-learn's contract and the synthesizer's guarantee."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from oversafe._core.errors import InputError
from oversafe.data import Column, Schema
from oversafe.learn import BalancedSynthesisClassifier, TuningWarning
from oversafe.privacy import Ledger, OverdraftError
from oversafe.protect import GaussianCopula, HistogramSynthesizer, PrivateMixture
from tests.learn.test_contract import people, public


@parametrize_with_checks(
    [BalancedSynthesisClassifier(HistogramSynthesizer(), LogisticRegression(), n_samples=200, random_state=0)]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "classifier", [None, make_pipeline(StandardScaler(), LogisticRegression())], ids=["boosting", "logistic"]
)
def test_rare_classes_are_learned_from_mixed_tables(classes, classifier):
    X, y = people(n=4000, classes=classes)
    model = BalancedSynthesisClassifier(
        classifier=classifier, epsilon=8.0, schema=public(X, y), n_samples=4000, random_state=0
    ).fit(X, y)
    fresh, truth = people(n=2000, classes=classes, seed=1)
    assert balanced_accuracy_score(truth, model.predict(fresh)) > (0.75 if classes == 2 else 0.55)
    shares = model.predict_proba(fresh)
    assert shares.shape == (2000, classes) and np.allclose(shares.sum(axis=1), 1)


def test_predictions_have_the_type_of_the_classes():
    X, y = people()
    labels = np.where(np.asarray(y) == np.asarray(y)[0], "well", "ill")
    model = BalancedSynthesisClassifier(
        HistogramSynthesizer(), LogisticRegression(), n_samples=200, random_state=0
    ).fit(X[["age"]], labels)
    assert model.predict(X[["age"]]).dtype == model.classes_.dtype


def test_the_guarantee_is_the_synthesizers():
    X, y = people()
    model = BalancedSynthesisClassifier(epsilon=2.0, schema=public(X, y), n_samples=100).fit(X, y)
    assert model.guarantee_ == model.synthesizer_.guarantee_
    assert model.guarantee_.status == "proven" and model.guarantee_.epsilon == pytest.approx(2.0)


def test_the_ledger_pays_once(tmp_path):
    X, y = people()
    ledger = Ledger(tmp_path / "budget.db", key_file=tmp_path / "key")
    ledger.create("patients", 1.5, 1e-6)
    model = BalancedSynthesisClassifier(
        schema=public(X, y), n_samples=100, ledger=ledger.for_dataset("patients")
    ).fit(X, y)
    assert len(ledger.history("patients")) == 2
    model.predict(X)
    with pytest.raises(OverdraftError):
        model.fit(X, y)


def test_a_search_over_settings_is_told():
    X, y = people(300)
    model = BalancedSynthesisClassifier(HistogramSynthesizer(), n_samples=100, random_state=0)
    with pytest.warns(TuningWarning):
        search = GridSearchCV(model, {"epsilon": [1.0, 2.0]}, cv=2).fit(X, y)
    assert any("search" in caveat for caveat in search.best_estimator_.guarantee_.caveats)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"epsilon": 0}, "epsilon = 0"),
        ({"n_samples": 1}, "n_samples = 1"),
        ({"synthesizer": GaussianCopula()}, "has no epsilon"),
    ],
)
def test_bad_use_is_refused(parameters, words):
    X, y = people(100)
    with pytest.raises(InputError, match=words):
        BalancedSynthesisClassifier(**parameters).fit(X, y)
    with pytest.raises(InputError, match="sample_weight"):
        BalancedSynthesisClassifier().fit(X, y, sample_weight=np.ones(100))


def test_labels_that_are_paid_for_are_not_checked_all_together():
    rng = np.random.default_rng(0)
    y = (rng.random(4_000) < 0.3).astype(float)
    X = rng.normal(size=(4_000, 2)) + y[:, None]
    odd = y.copy()
    odd[0] = 0.5
    for labels in (y, odd):
        model = BalancedSynthesisClassifier(PrivateMixture(domains="private"), epsilon=5.0).fit(X, labels)
        assert model.guarantee_.status == "proven" and model.classes_.tolist() == [0, 1]


def test_classes_that_the_synthesizer_declares_need_no_row():
    schema = Schema(
        (Column("x", "continuous", "float64", bounds=(-1.0, 1.0), domain="public", source="protocol"),)
    )
    X = pd.DataFrame({"x": np.linspace(-1, 1, 40)})
    for rare in (1, 0):
        synthesizer = HistogramSynthesizer(schema=schema, classes=[0, 1])
        model = BalancedSynthesisClassifier(synthesizer, n_samples=40).fit(X, np.array([rare] + [0] * 39))
        assert model.guarantee_.status == "proven" and model.classes_.tolist() == [0, 1]


@pytest.mark.filterwarnings("ignore::oversafe.data.MisfitWarning")
@pytest.mark.parametrize("form", [pd.DataFrame, np.asarray])
def test_where_the_number_of_rows_is_private_there_may_be_none(form):
    schema = Schema(
        (Column("x0", "continuous", "float64", bounds=(-1.0, 1.0), domain="public", source="protocol"),)
    )
    for rows in (1, 0):
        X, y = form(pd.DataFrame({"x0": np.zeros(rows)})), np.zeros(rows, dtype=int)
        for relation in ("add-remove", "replace-one"):
            synthesizer = HistogramSynthesizer(schema=schema, classes=[0, 1], relation=relation)
            model = BalancedSynthesisClassifier(synthesizer, n_samples=40)
            if rows or relation == "add-remove":
                assert model.fit(X, y).guarantee_.status == "proven"
            else:
                with pytest.raises(ValueError, match=r"0 sample\(s\)"):
                    model.fit(X, y)


@pytest.mark.parametrize("dtype", ["int", "bool", "category"])
def test_labels_may_be_written_otherwise_than_declared(dtype):
    rng = np.random.default_rng(0)
    y = rng.random(400) < 0.4
    X = (rng.random(400) * 0.3 + y * 0.6)[:, None]
    given = pd.Series(y).astype(int).astype(dtype)
    model = BalancedSynthesisClassifier(
        classifier=LogisticRegression(), epsilon=50.0, classes=["0", "1"], n_samples=200, random_state=0
    ).fit(X, given)
    assert model.predict_proba(X).shape == (400, 2)
    assert np.mean((model.predict(X) == "1") == y) > 0.9
