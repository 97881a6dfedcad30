"""Bagging of private learners: what each may spend, what it sees, how they vote."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from oversafe._core.errors import InputError
from oversafe.data import Column, MisfitWarning, Schema
from oversafe.learn import (
    BalancedSynthesisClassifier,
    PrivateBaggingClassifier,
    PrivateLinearSVC,
    PrivateLogisticRegression,
)
from oversafe.privacy import Guarantee, Ledger
from oversafe.privacy.guarantee import OVER_THE_REALS, SEEDED, composed_epsilon
from oversafe.protect import PrivateMixture


def sample(n: int = 3000, seed: int = 0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.2).astype(int)
    return rng.normal(size=(n, 2)) + 2 * y[:, None], y


BASE = PrivateLogisticRegression(data_norm=4.0)


@pytest.mark.parametrize("sampling", ["subsample", "disjoint", "stratified"])
@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_every_way_learns(sampling, voting):
    X, y = sample()
    model = PrivateBaggingClassifier(BASE, 5, 4.0, sampling=sampling, voting=voting, classes=[0, 1]).fit(X, y)
    assert model.score(X, y) > 0.7
    assert len(model.estimators_) == 5
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    if voting == "hard":
        assert set(np.round(np.unique(shares) * 5, 9)) <= set(range(6))
    assert model.guarantee_.status == ("nominal" if sampling == "stratified" else "proven")
    if sampling == "stratified":
        assert "labels count as public" in str(model.guarantee_)


def test_parts_of_their_own_may_each_spend_everything():
    X, y = sample()
    model = PrivateBaggingClassifier(BASE, 7, 0.5, classes=[0, 1]).fit(X, y)
    assert model.learner_epsilon_ == 0.5
    assert {learner.guarantee_.epsilon for learner in model.estimators_} == {0.5}
    seen = model._samples(np.zeros(100, dtype=int), 7, np.random.default_rng(0))
    assert sorted(np.concatenate(seen)) == list(range(100))


def test_samples_that_overlap_share_the_budget():
    X, y = sample()
    model = PrivateBaggingClassifier(BASE, 4, 1.0, sampling="subsample", max_samples=0.5, classes=[0, 1]).fit(
        X, y
    )
    # Basic composition of four learners, each amplified by sampling one half: 4 log(1 + (e^E - 1) / 2) = 1.
    assert 4 * math.log1p(0.5 * math.expm1(model.learner_epsilon_)) == pytest.approx(1.0)
    seen = model._samples(np.zeros(100, dtype=int), 4, np.random.default_rng(0))
    assert all(len(rows) == len(set(rows)) == 50 for rows in seen)


def test_a_sample_of_one_row_is_paid_for_as_what_it_is():
    X, y = sample(50)
    model = PrivateBaggingClassifier(
        BASE, 10, 1.0, sampling="subsample", max_samples=0.001, classes=[0, 1]
    ).fit(X, y)
    # One row of fifty, not a thousandth of them.
    assert 10 * math.log1p(math.expm1(model.learner_epsilon_) / 50) == pytest.approx(1.0)


def test_what_a_learner_leaves_unpaid_is_told_to_the_ledger(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", key_file=tmp_path / "key")
    ledger.create("patients", 3.0)
    X, y = sample(500)
    account = ledger.for_dataset("patients")
    for base, words in (
        (PrivateLogisticRegression(scaling="standard", data_norm=2.0), "standardised"),
        (PrivateLogisticRegression(data_norm=2.0, random_state=0), "random_state"),
        (BalancedSynthesisClassifier(), "known only after its fit"),
    ):
        with pytest.raises(InputError, match=words):
            PrivateBaggingClassifier(base, 2, classes=[0, 1], ledger=account).fit(X, y)
    assert ledger.remaining("patients").epsilon == 3.0


def test_what_a_bag_in_a_bag_leaves_unpaid_is_told_to_the_ledger(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", key_file=tmp_path / "key")
    ledger.create("patients", 3.0)
    account = ledger.for_dataset("patients")
    X, y = np.linspace(-1, 1, 400)[:, None], np.arange(400) % 2
    seeded = PrivateBaggingClassifier(PrivateLogisticRegression(data_norm=1.0, random_state=0), 2)
    stratified = PrivateBaggingClassifier(PrivateLogisticRegression(data_norm=1.0), 2, sampling="stratified")
    unknown = PrivateBaggingClassifier(BalancedSynthesisClassifier(), 2)
    for inner, words in ((seeded, "random_state"), (stratified, "labels"), (unknown, "known only after")):
        with pytest.raises(InputError, match=words):
            PrivateBaggingClassifier(inner, 2, classes=[0, 1], ledger=account).fit(X, y)
    assert ledger.remaining("patients").epsilon == 3.0
    inner = PrivateBaggingClassifier(PrivateLogisticRegression(data_norm=1.0), 2)
    bag = PrivateBaggingClassifier(inner, 2, classes=[0, 1], ledger=account).fit(X, y)
    assert bag.guarantee_.status == "proven" and ledger.remaining("patients").epsilon == 2.0


def test_what_a_learners_own_schema_leaves_unpaid_is_told_to_the_ledger(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", key_file=tmp_path / "key")
    ledger.create("patients", 3.0)
    X, y = sample(500)
    table = pd.DataFrame(X, columns=["a", "b"])
    read = Schema.infer(table)
    public = Schema(tuple(replace(c, domain="public", source="a textbook") for c in read))
    bag = PrivateBaggingClassifier(n_estimators=2, classes=[0, 1])
    for frame in (table, table.astype({"b": object})):
        bag.set_params(estimator=PrivateLogisticRegression(schema=read), ledger=None).fit(frame, y)
        assert bag.guarantee_.status == "nominal" and "read from the data" in bag.guarantee_.caveats[0]
        with pytest.raises(InputError, match="read from the data"):
            bag.set_params(ledger=ledger.for_dataset("patients")).fit(frame, y)
        bag.set_params(estimator=PrivateLogisticRegression(schema=public), ledger=None).fit(frame, y)
        assert bag.guarantee_.status == "proven" and bag.predict(frame).shape == y.shape
    assert ledger.remaining("patients").epsilon == 3.0


def test_a_learners_columns_that_do_not_fit_are_named_once():
    X, y = sample(500)
    facts = {"bounds": (100.0, 200.0), "domain": "public", "source": "a textbook"}
    wrong = Schema(tuple(Column(name, "continuous", "float64", **facts) for name in ("x0", "x1")))
    inside = BalancedSynthesisClassifier(PrivateMixture(schema=wrong, classes=[0, 1]), LogisticRegression())
    for base, own, most in (
        (PrivateLogisticRegression(), wrong, 2),
        (PrivateLogisticRegression(schema=wrong), None, 2),
        # What is deeper inside, each learner says itself.
        (inside, None, 4),
    ):
        bag = PrivateBaggingClassifier(base, 2, schema=own, classes=[0, 1])
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            bag.fit(X, y)
        found = [str(w.message) for w in told if issubclass(w.category, MisfitWarning)]
        assert {text.split("'")[1] for text in found} == {"x0", "x1"}
        assert len(found) == most


def test_a_delta_lets_many_learners_spend_more():
    X, y = sample()
    pure, loose = (
        PrivateBaggingClassifier(
            BASE, 60, 1.0, delta, sampling="subsample", max_samples=0.3, classes=[0, 1]
        ).fit(X, y)
        for delta in (0.0, 1e-5)
    )
    assert loose.learner_epsilon_ > 1.2 * pure.learner_epsilon_
    guarantee = loose.guarantee_
    assert guarantee.epsilon <= 1.0 and guarantee.delta == 1e-5
    assert composed_epsilon(guarantee.event, 1e-5) <= 1.0
    assert type(guarantee).from_dict(guarantee.to_dict()) == guarantee


def test_stratified_parts_have_each_class_alike():
    y = np.r_[np.zeros(90, dtype=int), np.ones(10, dtype=int)]
    parts = PrivateBaggingClassifier(sampling="stratified")._samples(y, 5, np.random.default_rng(0))
    assert [int(y[rows].sum()) for rows in parts] == [2] * 5


def test_what_the_learners_do_not_pay_for_is_said():
    X, y = sample(500)
    base = PrivateLogisticRegression(scaling="standard", data_norm=2.0)
    guarantee = PrivateBaggingClassifier(base, 2, classes=[0, 1]).fit(X, y).guarantee_
    assert guarantee.status == "nominal" and "standardised" in guarantee.caveats[0]
    seeded = PrivateBaggingClassifier(BASE, 2, classes=[0, 1], random_state=0).fit(X, y).guarantee_
    assert seeded.status == "nominal" and seeded.caveats == (SEEDED, OVER_THE_REALS)


def test_what_learners_of_another_make_say_of_themselves_is_said():
    class Foreign(LogisticRegression):
        def __init__(self, epsilon=1.0):
            super().__init__()
            self.epsilon = epsilon

        def fit(self, X, y, **kwargs):
            super().fit(X, y)
            self.guarantee_ = Guarantee.pure(self.epsilon, "a theorem").weaken("its noise is a guess")
            return self

    X, y = sample(200)
    guarantee = PrivateBaggingClassifier(Foreign(), 2, classes=[0, 1]).fit(X, y).guarantee_
    assert guarantee.status == "nominal" and guarantee.caveats == ("its noise is a guess",)


def test_a_learner_without_privacy_is_refused():
    X, y = sample(100)
    with pytest.raises(InputError, match="LogisticRegression has no epsilon"):
        PrivateBaggingClassifier(LogisticRegression(), classes=[0, 1]).fit(X, y)


def test_a_learner_that_spends_more_than_it_was_given_is_refused():
    class Greedy(PrivateLogisticRegression):
        def fit(self, X, y, **kwargs):
            self.epsilon = 10.0
            return super().fit(X, y, **kwargs)

    X, y = sample(200)
    with pytest.raises(InputError, match="spent 10"):
        PrivateBaggingClassifier(Greedy(data_norm=4.0), 2, classes=[0, 1]).fit(X, y)


def test_text_labels_more_classes_and_frames():
    rng = np.random.default_rng(0)
    y = pd.Series(rng.choice(["low", "mid", "high"], size=2000))
    X = pd.DataFrame(
        {"a": rng.normal(size=2000) + 3 * (y == "mid"), "b": rng.normal(size=2000) + 3 * (y == "high")}
    )
    model = PrivateBaggingClassifier(
        PrivateLinearSVC(data_norm=5.0), 3, 8.0, classes=["low", "mid", "high"], random_state=0
    ).fit(X, y)
    assert model.score(X, y) > 0.7
    assert model.predict_proba(X).shape == (2000, 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_estimators": 0}, "n_estimators = 0"),
        ({"n_estimators": 1000}, "use fewer"),
        ({"sampling": "random"}, "sampling = 'random'"),
        ({"voting": "loud"}, "voting = 'loud'"),
        ({"max_samples": 2.0}, "max_samples = 2.0"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, message):
    X, y = sample(100)
    with pytest.raises(InputError, match=message):
        PrivateBaggingClassifier(**{"estimator": BASE, **settings}).fit(X, y)


@pytest.mark.parametrize("epsilon", [1e-10, 0.5, 1e4])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_samples_of_the_records_at_any_epsilon(epsilon, delta):
    model = PrivateBaggingClassifier(
        PrivateLogisticRegression(data_norm=3.0), 3, epsilon=epsilon, delta=delta, sampling="subsample",
        classes=[0, 1],
    )  # fmt: skip
    rng = np.random.default_rng(0)
    model.fit(rng.normal(size=(200, 2)), rng.integers(0, 2, 200))
    assert 0 < model.guarantee_.epsilon <= epsilon and model.learner_epsilon_ >= epsilon / 3
    # What the learners' event costs is what is stated.
    share = math.floor(0.632 * 200) / 200
    if delta == 0:
        cost = math.log1p(share * math.expm1(min(model.learner_epsilon_, 700.0)))
        assert epsilon > 1000 or 3 * cost == pytest.approx(epsilon)
