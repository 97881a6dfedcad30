"""What learners and synthesizers promise is what they spend, and what they read without paying is said."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from oversafe.data import Column, Schema
from oversafe.learn import (
    PrivateBaggingClassifier,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateThresholdClassifier,
)
from oversafe.privacy import accountant
from oversafe.protect import HistogramSynthesizer, PrivateMixture

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2000, 2))
Y = (RNG.random(2000) < 0.3).astype(int)
PUBLIC = {"domain": "public", "source": "a code book"}


@pytest.fixture
def spent(monkeypatch):
    """The epsilon of every look at the data that an accountant hands on."""
    seen: list[float] = []
    for name in ("noisy_counts", "choose"):
        real = getattr(accountant, name)

        def call(values, real=real, **given):
            seen.append(given["epsilon"])
            return real(values, **given)

        monkeypatch.setattr(accountant, name, call)
    return seen


@pytest.mark.parametrize(
    ("learner", "share"),
    [(PrivateThresholdClassifier, 1.0), (PrivateLogisticRegression, 0.2), (PrivateLinearSVC, 0.2)],
)
def test_looks_before_a_fit_are_paid_from_its_epsilon(spent, learner, share):
    # Of the linear models the fit itself has the other four fifths, in continuous noise; see test_linear_noise.
    weight = {} if learner is PrivateThresholdClassifier else {"class_weight": None}
    model = learner(epsilon=4.0, scaling="private", classes=[0, 1], **weight).fit(X, Y)
    assert sum(spent) == pytest.approx(share * 4.0) and model.guarantee_.epsilon == 4.0


@pytest.mark.parametrize("sampling", ["disjoint", "stratified"])
def test_each_record_is_in_one_part_of_a_bag(sampling):
    bag = PrivateBaggingClassifier(n_estimators=7, sampling=sampling)
    parts = bag._samples(Y, 7, np.random.default_rng(0))
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(Y)))


def test_samples_of_a_bag_have_their_share_of_the_records():
    bag = PrivateBaggingClassifier(n_estimators=5, sampling="subsample", max_samples=0.1)
    samples = bag._samples(Y, 5, np.random.default_rng(0))
    assert (
        [len(set(sample.tolist())) for sample in samples] == [len(sample) for sample in samples] == [200] * 5
    )


def test_parts_by_class_take_the_labels_as_public():
    bag = PrivateBaggingClassifier(
        PrivateLogisticRegression(data_norm=3.0), n_estimators=2, sampling="stratified", classes=[0, 1]
    ).fit(X, Y)
    assert bag.guarantee_.status == "nominal" and "labels count as public" in bag.guarantee_.caveats[0]


@pytest.mark.parametrize("read", [None, "x", "label"])
@pytest.mark.parametrize(
    "make", [PrivateLogisticRegression, PrivateLinearSVC, PrivateThresholdClassifier, HistogramSynthesizer]
)
def test_only_what_a_schema_calls_public_is_public(make, read):
    def domain(name: str) -> dict[str, str]:
        return {"domain": "data"} if name == read else PUBLIC

    schema = Schema(
        (
            Column("x", "continuous", "float64", bounds=(-5.0, 5.0), decimals=3, **domain("x")),
            Column("label", "categorical", "str", categories=("no", "yes"), **domain("label")),
        ),
        label="label",
    )
    table = pd.DataFrame({"x": np.clip(X[:, 0], -5, 5).round(3)})
    labels = pd.Series(np.where(Y, "yes", "no"), name="label")
    guarantee = make(schema=schema).fit(table, labels).guarantee_
    assert guarantee.status == ("proven" if read is None else "nominal")


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_number_of_rows_of_persons_is_paid_for_all_rows_of_one(monkeypatch, relation, delta):
    seen = []
    for name in ("noisy_counts", "gaussian_counts"):
        real = getattr(accountant, name)

        def call(values, real=real, **given):
            seen.append((np.size(values), given["sensitivity"]))
            return real(values, **given)

        monkeypatch.setattr(accountant, name, call)
    schema = Schema(
        (
            Column("x", "continuous", "float64", bounds=(-5.0, 5.0), decimals=3, **PUBLIC),
            Column("who", "identifier", "int64"),
            Column("label", "categorical", "str", categories=("no", "yes"), **PUBLIC),
        ),
        label="label",
        person="who",
    )
    table = pd.DataFrame({"x": np.clip(X[:, 0], -5, 5).round(3), "who": np.arange(len(X)) // 3})
    labels = pd.Series(np.where(Y, "yes", "no"), name="label")
    PrivateMixture(20.0, delta, schema=schema, relation=relation, rows_per_person=3).fit(table, labels)
    # It is asked for first, and alone: a person who comes, goes or is replaced changes it by up to three.
    assert seen[0][0] == 1 and seen[0][1] >= 3
