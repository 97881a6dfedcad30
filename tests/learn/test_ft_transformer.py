"""The FT-Transformer keeps the contract of a private classifier, with and without noise."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from oversafe._core.errors import InputError, MissingExtraError
from oversafe.learn import PrivateFTTransformer, TuningWarning
from oversafe.learn.ft_transformer import TokenMap
from oversafe.privacy import Ledger, OverdraftError
from oversafe.privacy.gradients import steps_epsilon
from tests.learn.test_contract import people, public

pytestmark = pytest.mark.filterwarnings("ignore:.*are too few to find the scale:UserWarning")

# The tests look at the contract, not at how well a network learns.
SMALL = {"dimension": 4, "depth": 1, "heads": 2, "epochs": 2}


def small(**settings):
    return PrivateFTTransformer(**{**SMALL, **settings})


# ------------------------------------------------------------------------------------------- without the extra


def test_tokens_of_mixed_columns_are_told_apart():
    X, y = people(n=6)
    X.loc[0, "age"], X.loc[1, "ward"] = np.nan, "elsewhere"
    tokens = TokenMap.of_schema(public(X.assign(ward="north"), y).features)
    numbers, places = tokens.apply(X)
    assert numbers.shape == (6, 2) and places.shape == (6, 5)
    # Age and visits have two tokens each, the wards and smoking one per category and one for missing.
    widths = [len(c.categories) for c in tokens.schema if c.is_category]
    assert tokens.n_tokens == 1 + 2 * 2 + sum(width + 1 for width in widths)
    assert (places[:, 0] == 0).all() and places.max() < tokens.n_tokens
    assert places[0, 1] == 2 and numbers[0, 0] == 0 and places[2, 1] == 1
    assert places[1, 3] == 1 + 2 * 2 + widths[0]
    assert (np.abs(numbers) <= 1).all()


def test_odd_numbers_become_tokens_too():
    X = np.array([[np.nan, 1.0], [np.inf, 2.0], [-np.inf, 1e300]])
    for tokens in (TokenMap.of_numbers(X, "none", 0.0, None), TokenMap.standardised(X, None)):
        numbers, places = tokens.apply(X)
        assert np.isfinite(numbers).all()
        assert places[0].tolist() == [0, 2, 3]


def test_a_missing_package_is_told_before_the_ledger_pays(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "opacus", None)
    ledger = Ledger(tmp_path / "budget.db", key_file=tmp_path / "key")
    ledger.create("patients", 1.0, 1e-6)
    with pytest.raises(MissingExtraError, match="oversafe\\[deep\\]"):
        small(scaling="none", classes=[0, 1], ledger=ledger.for_dataset("patients")).fit(
            np.eye(10), np.arange(10) % 2
        )
    assert len(ledger.history("patients")) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 0}, "epsilon = 0"),
        ({"delta": 0.0}, "delta = 0"),
        ({"epochs": 0}, "epochs = 0"),
        ({"heads": 3}, "heads = 3"),
        ({"dropout": 1.0}, "dropout = 1.0"),
        ({"learning_rate": 0.0}, "learning_rate = 0.0"),
        ({"max_grad_norm": -1.0}, "max_grad_norm = -1.0"),
        ({"class_weight": "auto"}, "class_weight = 'auto'"),
        ({"class_weight": {7: 1.0}}, "names the class 7"),
        ({"class_weight": {0: 0.0}}, "class_weight of 0"),
        ({"scaling": "minmax"}, "scaling = 'minmax'"),
        ({"epsilon": None, "ledger": "mine"}, "epsilon = None was given with a ledger"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        small(**settings).fit(np.eye(10), np.arange(10) % 2)


# ---------------------------------------------------------------------------------------------- with the extra


@pytest.fixture(scope="module")
def deep():
    pytest.importorskip("opacus", reason="needs: pip install 'oversafe[deep]'")


@pytest.mark.extras
@parametrize_with_checks(
    [small(random_state=0), small(epsilon=None, scaling="none", class_weight="threshold", random_state=0)]
)
def test_scikit_learn_checks(deep, estimator, check):
    # Arrays of other libraries are no claim of ours; the check skips itself, which this tier does not allow.
    if check.func.__name__ != "check_array_api_input":
        check(estimator)


@pytest.mark.extras
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("class_weight", ["balanced", "threshold", None])
def test_mixed_tables_with_a_public_schema_are_proven(deep, classes, class_weight):
    X, y = people(classes=classes, n=600)
    model = small(epsilon=5.0, schema=public(X, y), class_weight=class_weight).fit(X, y)
    assert model.guarantee_.status == "proven" and model.guarantee_.caveats == ()
    assert (model.guarantee_.epsilon, model.guarantee_.delta) == (5.0, 1e-9)
    assert set(model.predict(X)) <= set(y)
    assert model.predict_proba(X).shape == (len(X), classes)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-6)
    # The event that the guarantee carries costs what it says.
    assert type(model.guarantee_).from_dict(model.guarantee_.to_dict()) == model.guarantee_
    # The steps and the class counts together cost no more than was promised.
    paid = 0.0 if class_weight is None else 0.25
    cost = steps_epsilon(model.noise_multiplier_, 1e-9, rate=model.sample_rate_, steps=model.n_steps_)
    assert cost + paid <= 5.0


@pytest.mark.extras
def test_the_noise_that_was_promised_is_drawn(deep, monkeypatch):
    from oversafe.privacy import gradients

    drawn = []
    honest = gradients.noisy

    def watched(total, noise, rng):
        drawn.append((len(total), noise))
        return honest(total, noise, rng)

    monkeypatch.setattr(gradients, "noisy", watched)
    model = small(max_grad_norm=0.5, batch_size=50, scaling="none", classes=[0, 1])
    model.fit(np.eye(200)[:, :3], np.arange(200) % 2)
    assert (model.sample_rate_, model.n_steps_) == (0.25, 8)
    # All weights together, once in a step.
    assert drawn == 8 * [(sum(own.size for own in model.weights_.values()), model.noise_multiplier_)]


@pytest.mark.extras
def test_what_was_read_from_the_data_is_said(deep):
    X, y = people(n=120)
    assert "columns were read" in str(small().fit(X, y).guarantee_)
    numbers = X[["age", "visits"]].to_numpy(dtype=float)
    known = {"scaling": "none", "classes": ["healthy", "ill"]}
    assert "set of labels" in small(scaling="none").fit(numbers, y).guarantee_.caveats[0]
    assert small(**known).fit(numbers, y).guarantee_.status == "proven"
    paid = small(classes=["healthy", "ill"]).fit(numbers, y)
    assert paid.guarantee_.status == "proven" and "the scale of the columns (0.2)" in paid.guarantee_.basis
    assert "random_state" in small(**known, random_state=0).fit(numbers, y).guarantee_.caveats[0]
    standard = small(**{**known, "scaling": "standard"}).fit(numbers, y).guarantee_
    assert standard.status == "nominal" and "standardised" in standard.caveats[0]


@pytest.mark.extras
def test_a_proven_model_holds_no_record(deep):
    X, y = people(n=200)
    X["age"] = 18.0 + np.random.default_rng(1).random(200) * 70
    model = small(schema=public(X, y)).fit(X, y)
    stored = pickle.dumps(model)
    for kind in (np.float64, np.float32):
        assert not any(kind(age).tobytes() in stored for age in X["age"])
    assert (pickle.loads(stored).predict(X) == model.predict(X)).all()


@pytest.mark.extras
def test_odd_values_raise_no_error_that_would_tell_of_them(deep):
    X = np.random.default_rng(0).normal(size=(100, 3))
    X[0], X[1] = [np.nan, np.inf, -np.inf], [1e300, 1e300, -1e300]
    model = small(scaling="none", classes=[0, 1]).fit(X, np.arange(100) % 2)
    assert np.isfinite(model.decision_function(X)).all()
    assert all(np.isfinite(value).all() for value in model.weights_.values())


@pytest.mark.extras
def test_the_ledger_is_charged_before_any_noise(deep, tmp_path):
    ledger = Ledger(tmp_path / "budget.db", key_file=tmp_path / "key")
    ledger.create("patients", 1.5, 1e-6)
    model = small(scaling="none", classes=[0, 1], ledger=ledger.for_dataset("patients"))
    X, y = np.eye(10), np.arange(10) % 2
    model.fit(X, y)
    assert ledger.history("patients")[-1].id == model.ledger_entry_
    again = clone(model)
    with pytest.raises(OverdraftError):
        again.fit(X, y)
    assert not hasattr(again, "weights_")


@pytest.mark.extras
def test_searches_are_warned_of_and_pipelines_work(deep):
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.array(["a", "b"])[np.arange(60) % 2]
    model = small(scaling="none", classes=["a", "b"])
    assert len(cross_val_score(make_pipeline(StandardScaler(), model), X, y, cv=2)) == 2
    search = GridSearchCV(model, {"learning_rate": [0.001, 0.01]}, cv=2)
    with pytest.warns(TuningWarning, match="every fit costs privacy"):
        search.fit(X, y)
    assert "chosen by a search" in search.best_estimator_.guarantee_.caveats[0]
    with pytest.raises(InputError, match="sample_weight"):
        model.fit(X, y, sample_weight=np.ones(60))


@pytest.mark.extras
def test_it_learns_with_and_without_noise(deep):
    rng = np.random.default_rng(0)
    y = (rng.random(1500) < 0.2).astype(int)
    # What tells the classes apart is whether two signs agree, and a category: no line does.
    X = pd.DataFrame({"a": rng.normal(size=1500), "b": rng.normal(size=1500)})
    X["b"] = np.abs(X["b"]) * np.sign(X["a"]) * (2 * y - 1)
    settings = {"dimension": 8, "depth": 2, "heads": 2, "batch_size": 100, "learning_rate": 0.01}
    plain = PrivateFTTransformer(None, epochs=8, random_state=0, **settings).fit(X[:1000], y[:1000])
    assert plain.guarantee_.status == "none"
    assert roc_auc_score(y[1000:], plain.decision_function(X[1000:])) > 0.9
    # Noise needs an easier question: which of two columns is larger on average.
    X["a"], X["b"] = rng.normal(size=1500) + 2 * y, rng.normal(size=1500) - 2 * y
    noisy = PrivateFTTransformer(50.0, 1e-3, scaling="none", epochs=8, random_state=0, **settings)
    noisy.fit(X[:1000], y[:1000])
    assert roc_auc_score(y[1000:], noisy.decision_function(X[1000:])) > 0.9
    # Any constant, and guessing, have one half.
    assert balanced_accuracy_score(y[1000:], noisy.predict(X[1000:])) > 0.75


@pytest.mark.extras
def test_torch_keeps_its_own_random_state(deep):
    import torch

    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    model = small(scaling="none", random_state=0).fit(np.eye(20), np.arange(20) % 2)
    model.predict(np.eye(20))
    assert torch.equal(torch.rand(3), expected)
