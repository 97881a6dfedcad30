"""Protectors that are charged to a ledger."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from oversafe._core.errors import InputError
from oversafe.data import Column, Schema
from oversafe.privacy import Ledger, OverdraftError, accountant
from oversafe.protect import DPGAN, PATEGAN, HistogramSynthesizer, PrivateMixture, PrivBayes
from tests.protect.conformance import mixed_table, public_schema

CLASSES = ("healthy", "ill")


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", key_file=tmp_path / "key")
    ledger.create("patients", 1.0)
    return ledger


@pytest.fixture
def table():
    return mixed_table()


def synthesizer(ledger, X, *, unproven="refuse", **parameters):
    account = ledger.for_dataset("patients", unproven=unproven)
    return HistogramSynthesizer(
        **{"epsilon": 0.4, "schema": public_schema(X), "classes": CLASSES, "ledger": account, **parameters}
    )


def test_a_fit_is_charged_and_samples_are_free(ledger, table):
    X, y = table
    fitted = synthesizer(ledger, X).fit(X, y)
    for _ in range(3):
        fitted.sample(10)
    _, entry = ledger.history("patients")
    assert entry.id == fitted.ledger_entry_ and entry.what == "HistogramSynthesizer"
    assert entry.guarantee == fitted.guarantee_ and fitted.guarantee_.status == "proven"
    fitted.fit(X, y)
    assert ledger.remaining("patients").epsilon == pytest.approx(0.2)


def test_the_charge_comes_before_the_noise_and_stands_when_it_fails(ledger, table, monkeypatch):
    X, y = table
    left = []

    def crash(*_, **__):
        left.append(ledger.remaining("patients").epsilon)
        raise RuntimeError("the power fails")

    monkeypatch.setattr(accountant, "noisy_counts", crash)
    with pytest.raises(RuntimeError, match="power"):
        synthesizer(ledger, X).fit(X, y)
    assert left == [0.6] and ledger.remaining("patients").epsilon == 0.6


def test_an_overdraft_draws_no_noise_and_leaves_nothing_to_sample_from(ledger, table, monkeypatch):
    X, y = table
    protector = synthesizer(ledger, X, epsilon=0.8).fit(X, y)

    def never(*_, **__):
        raise AssertionError("noise was drawn")

    monkeypatch.setattr(accountant, "noisy_counts", never)
    with pytest.raises(OverdraftError, match=r"0\.2 left, and epsilon = 0\.8"):
        protector.fit(X, y)
    with pytest.raises(NotFittedError):
        protector.sample(1)


def test_seeded_runs_are_refused_or_recorded(ledger, table):
    X, y = table
    with pytest.raises(InputError, match=r"nominal, not proven \(a fixed random_state"):
        synthesizer(ledger, X, random_state=0).fit(X, y)
    assert len(ledger.history()) == 1
    fitted = synthesizer(ledger, X, random_state=0, unproven="record").fit(X, y)
    assert ledger.history()[-1].kind == "unaccounted" and ledger.history()[-1].id == fitted.ledger_entry_
    assert ledger.remaining("patients").epsilon == 1.0


def test_labels_in_columns_are_not_charged_as_proven(ledger, table):
    X, y = table
    ill = (y == "ill").to_numpy(dtype=int)
    with pytest.raises(InputError, match="labels in one column per class"):
        synthesizer(ledger, X, classes=(0, 1)).fit(X, np.column_stack([1 - ill, ill]))
    assert len(ledger.history()) == 1


def test_a_ledger_without_a_data_set_is_refused(ledger, table):
    X, y = table
    with pytest.raises(InputError, match="for_dataset"):
        HistogramSynthesizer(ledger=ledger).fit(X, y)


def test_clones_and_pickles_charge_the_same_budget(ledger, table):
    X, y = table
    protector = synthesizer(ledger, X, epsilon=0.25)
    clone(protector).fit(X, y)
    pickle.loads(pickle.dumps(protector.fit(X, y))).fit(X, y)
    assert ledger.remaining("patients").charges == 3 and ledger.verify().ok


def test_a_set_of_values_that_pure_privacy_cannot_find_is_told_to_the_ledger(ledger):
    X, y = mixed_table(60_000)
    with pytest.raises(InputError, match="cannot find a set of values"):
        synthesizer(ledger, X, epsilon=1.0, schema=None, domains="private").fit(X, y)
    with pytest.raises(InputError, match="set of labels"):
        synthesizer(ledger, X, classes=None, domains="private").fit(X, y)
    assert ledger.remaining("patients").epsilon == 1.0


def test_rows_of_a_person_are_not_limited_where_the_table_lies(ledger, table, tmp_path):
    X, y = table
    X.assign(label=y).to_parquet(tmp_path / "table.parquet")
    with pytest.raises(InputError, match="limited in memory only"):
        synthesizer(ledger, X, rows_per_person=2).fit_source(tmp_path / "table.parquet", "label")
    assert ledger.remaining("patients").epsilon == 1.0


def test_labels_in_several_columns_are_nominal(table):
    X, y = table
    several = pd.get_dummies(y)
    fitted = HistogramSynthesizer(1.0, schema=public_schema(X)).fit(X, several)
    assert fitted.guarantee_.status == "nominal"
    assert any("one column per class" in caveat for caveat in fitted.guarantee_.caveats)


MISTAKES = [
    ({"classes": ["0", "1", "1.0"]}, "there are the classes '1' and '1.0', which are the same value"),
    ({"classes": []}, r"classes = \[\] was given"),
    ({"classes": [0, 1, 1]}, "give each label once"),
    ({"classes": [], "domains": "private"}, r"classes = \[\] was given"),
    ({"classes": [0, 1, 1], "domains": "private"}, "give each label once"),
]


@pytest.mark.parametrize(("settings", "words"), MISTAKES)
@pytest.mark.parametrize("make", [HistogramSynthesizer, PrivateMixture, PrivBayes])
def test_a_mistake_in_the_classes_is_not_charged(ledger, table, make, settings, words):
    refused_without_charge(make, ledger, table, settings, words)


@pytest.mark.extras
@pytest.mark.parametrize(("settings", "words"), MISTAKES[:2])
@pytest.mark.parametrize("make", [DPGAN, PATEGAN])
def test_a_mistake_in_the_classes_is_not_charged_to_networks(ledger, table, make, settings, words):
    pytest.importorskip("opacus")
    refused_without_charge(make, ledger, table, settings, words)


def refused_without_charge(make, ledger, table, settings, words):
    X, y = table
    account = ledger.for_dataset("patients")
    fresh = make(epsilon=0.4, schema=public_schema(X), ledger=account, **settings)
    with pytest.raises(InputError, match=words):
        fresh.fit(X, (y == "ill").astype(int))
    assert ledger.remaining("patients").epsilon == 1.0


def test_a_mistake_in_the_classes_is_not_charged_where_the_table_lies(ledger, table, tmp_path):
    X, y = table
    X.assign(outcome=y).to_parquet(tmp_path / "table.parquet")
    label = Column(
        "outcome", "categorical", "object", categories=CLASSES, domain="public", source="a textbook"
    )
    schema = Schema((*public_schema(X), label), label="outcome")
    with pytest.raises(InputError, match=r"classes = \[\] was given"):
        synthesizer(ledger, X, schema=schema, classes=[]).fit_source(tmp_path / "table.parquet")
    assert ledger.remaining("patients").epsilon == 1.0
