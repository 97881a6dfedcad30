"""The classifier that picks for you: by public facts, with a reason, and with the guarantee of what it picked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from oversafe._core.errors import InputError
from oversafe.learn import (
    BalancedSynthesisClassifier,
    PrivateClassifier,
    PrivateLogisticRegression,
    TuningWarning,
    choose_classifier,
)
from oversafe.privacy import Ledger, OverdraftError
from tests.learn.test_contract import people, public


@parametrize_with_checks([PrivateClassifier(random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_too_few_rows_are_told_of_with_a_way_out_that_there_is():
    X, y = np.random.default_rng(0).random((400, 8)), np.arange(400) % 2
    with pytest.raises(InputError, match=r"400 rows at epsilon = 0.1 .* are needed\); give a schema$"):
        PrivateClassifier(0.1, classes=[0, 1], rare_share=0.5).fit(X, y)


@pytest.mark.parametrize(
    ("facts", "chosen"),
    [
        ({"n_rows": 300, "n_columns": 7}, PrivateLogisticRegression),
        ({"n_rows": 3000, "n_columns": 7}, BalancedSynthesisClassifier),
        ({"n_rows": 3000, "n_columns": 7, "rare_share": 0.01}, PrivateLogisticRegression),
        ({"n_rows": 300, "n_columns": 7, "rare_share": 0.3}, BalancedSynthesisClassifier),
        ({"n_rows": 100_000, "n_columns": 200}, PrivateLogisticRegression),
        ({"n_rows": 1300, "n_columns": 7, "n_classes": 20}, PrivateLogisticRegression),
    ],
)
def test_the_choice_follows_public_facts(facts, chosen):
    choice = choose_classifier(**facts)
    assert isinstance(choice.classifier, chosen)
    assert choice.reason and choice.reason[0].islower()


def test_rows_of_other_values_do_not_change_the_choice():
    X, y = people(1500)
    other = pd.Series(np.where(np.arange(1500) < 3, y.iloc[0], y[y != y.iloc[0]].iloc[0]), name=y.name)
    reasons = [
        PrivateClassifier(epsilon=5.0, schema=public(X, y), random_state=0).fit(X, labels).reason_
        for labels in (y, other)
    ]
    assert reasons[0] == reasons[1]


@pytest.mark.parametrize(("n", "classes"), [(800, 2), (4000, 2), (4000, 3)])
def test_rare_classes_are_learned_from_mixed_tables(n, classes):
    X, y = people(n=n, classes=classes)
    model = PrivateClassifier(epsilon=8.0, schema=public(X, y), random_state=0).fit(X, y)
    fresh, truth = people(n=2000, classes=classes, seed=1)
    assert balanced_accuracy_score(truth, model.predict(fresh)) > (0.7 if classes == 2 else 0.5)
    assert model.predict_proba(fresh).shape == (2000, classes)


@pytest.mark.parametrize("n", [300, 2000])
def test_the_guarantee_is_the_whole_budget_and_proven(n):
    X, y = people(n)
    model = PrivateClassifier(epsilon=2.0, schema=public(X, y)).fit(X, y)
    assert model.guarantee_.status == "proven" and model.guarantee_.epsilon == pytest.approx(2.0)
    assert PrivateClassifier(epsilon=2.0, delta=0.0, schema=public(X, y)).fit(X, y).guarantee_.delta == 0


def test_without_a_schema_what_must_be_known_is_paid_for():
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.1).astype(int)
    X = rng.normal(size=(4000, 3)) + y[:, None]
    model = PrivateClassifier(epsilon=4.0, classes=[0, 1]).fit(X, y)
    assert isinstance(model.classifier_, BalancedSynthesisClassifier)
    assert model.guarantee_.status == "proven"


def test_the_ledger_pays_once(tmp_path):
    X, y = people()
    ledger = Ledger(tmp_path / "budget.db", key_file=tmp_path / "key")
    ledger.create("patients", 1.5, 1e-6)
    model = PrivateClassifier(schema=public(X, y), ledger=ledger.for_dataset("patients")).fit(X, y)
    assert len(ledger.history("patients")) == 2
    model.predict(X)
    with pytest.raises(OverdraftError):
        model.fit(X, y)


def test_a_search_over_settings_is_told():
    X, y = people(300)
    with pytest.warns(TuningWarning):
        search = GridSearchCV(PrivateClassifier(random_state=0), {"epsilon": [1.0, 2.0]}, cv=2).fit(X, y)
    assert any("search" in caveat for caveat in search.best_estimator_.guarantee_.caveats)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"epsilon": 0}, "epsilon = 0"),
        ({"delta": 2.0}, "delta = 2"),
        ({"rare_share": 0.7}, "rare_share = 0.7"),
        ({"rare_share": "few"}, "rare_share = 'few'"),
    ],
)
def test_bad_use_is_refused(parameters, words):
    X, y = people(100)
    with pytest.raises(InputError, match=words):
        PrivateClassifier(**parameters).fit(X, y)


def test_weights_are_refused():
    X, y = people(100)
    with pytest.raises(InputError, match="sample_weight"):
        PrivateClassifier().fit(X, y, sample_weight=np.ones(100))
