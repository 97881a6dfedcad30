"""Every private classifier keeps scikit-learn's contract and says what it promises."""

from __future__ import annotations

import pickle
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from oversafe._core.errors import InputError
from oversafe.data import Column, MisfitWarning, Schema
from oversafe.learn import (
    BalancedSynthesisClassifier,
    PrivateBaggingClassifier,
    PrivateClassifier,
    PrivateFTTransformer,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateThresholdClassifier,
    TuningWarning,
)
from oversafe.learn.features import FeatureMap
from oversafe.privacy import Ledger, OverdraftError
from oversafe.privacy.guarantee import OVER_THE_REALS, SEEDED
from oversafe.protect import DPGAN, HistogramSynthesizer

pytestmark = pytest.mark.filterwarnings("ignore:.*are too few to find the scale:UserWarning")

LEARNERS = [PrivateLogisticRegression, PrivateLinearSVC]
every_learner = pytest.mark.parametrize("learner", LEARNERS)


@parametrize_with_checks(
    [
        PrivateLogisticRegression(random_state=0),
        PrivateLogisticRegression(data_norm=5.0, class_weight="balanced", random_state=0),
        PrivateLogisticRegression(method="gaussian", delta=1e-6, class_weight=None, random_state=0),
        PrivateLogisticRegression(method="output", random_state=0),
        PrivateLinearSVC(random_state=0),
        PrivateLinearSVC(
            data_norm=5.0, kernel="rbf", n_components=10, class_weight="threshold", random_state=0
        ),
        PrivateThresholdClassifier(random_state=0),
        PrivateThresholdClassifier(delta=1e-6, data_norm=5.0, random_state=0),
        PrivateBaggingClassifier(PrivateLogisticRegression(data_norm=5.0), 2, random_state=0),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def people(n: int = 600, classes: int = 2, seed: int = 0):
    rng = np.random.default_rng(seed)
    code = rng.choice(classes, size=n, p=np.array([1 - 0.15 * (classes - 1), *[0.15] * (classes - 1)]))
    X = pd.DataFrame(
        {
            "age": np.clip(rng.normal(40 + 15 * code, 8), 18, 95),
            "visits": rng.poisson(2 + 2 * code),
            "ward": np.array(["north", "south", "east"])[rng.integers(0, 3, n)],
            "smoker": rng.random(n) < 0.2 + 0.2 * code,
        }
    )
    X.loc[rng.random(n) < 0.1, "age"] = np.nan
    return X, pd.Series(np.array(["healthy", "ill", "worse"])[code], name="state")


def public(X: pd.DataFrame, y: pd.Series) -> Schema:
    schema = Schema.infer(X.assign(state=y), label="state")
    schema = schema.declare("age", bounds=(18.0, 95.0)).declare("visits", bounds=(0, 40))
    for name in schema.names:
        schema = schema.declare(name, domain="public", source="the study's protocol")
    return schema


@every_learner
@pytest.mark.parametrize("classes", [2, 3])
def test_mixed_tables_with_a_public_schema_are_proven(learner, classes):
    X, y = people(classes=classes, n=4000)
    model = learner(epsilon=5.0, schema=public(X, y)).fit(X, y)
    assert model.guarantee_.status == "proven"
    assert model.guarantee_.epsilon == 5.0
    assert set(model.predict(X)) <= set(y)
    assert model.predict_proba(X).shape == (len(X), classes)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    # The event that the guarantee carries costs what it says.
    assert type(model.guarantee_).from_dict(model.guarantee_.to_dict()) == model.guarantee_


@pytest.mark.parametrize(
    "make",
    [
        *LEARNERS,
        PrivateThresholdClassifier,
        PrivateFTTransformer,
        PrivateBaggingClassifier,
        lambda schema: PrivateBaggingClassifier(PrivateLogisticRegression(schema=schema)),
        BalancedSynthesisClassifier,
        lambda schema: BalancedSynthesisClassifier(HistogramSynthesizer(schema=schema)),
        lambda schema: BalancedSynthesisClassifier(HistogramSynthesizer(rows_per_person=2), schema=schema),
        PrivateClassifier,
    ],
)
def test_a_promise_for_records_refuses_a_schema_with_a_person(make):
    X, y = people(60)
    schema = public(X, y)
    schema = Schema((*schema.columns, Column("pid", "identifier", "int64")), "state", "pid")
    for given in (X, X.assign(pid=range(60))):
        with pytest.raises(
            InputError, match=r"\('pid'\), and \w+ promises for every record only; use .* remove"
        ):
            make(schema=schema).fit(given, y)


@every_learner
def test_what_was_read_from_the_data_is_said(learner):
    X, y = people()
    assert "columns were read" in str(learner().fit(X, y).guarantee_)
    numbers = X[["age", "visits"]].to_numpy(dtype=float)
    guarantee = learner(data_norm=50.0).fit(numbers, y).guarantee_
    assert guarantee.status == "nominal" and "set of labels" in guarantee.caveats[0]
    assert learner(data_norm=50.0, classes=["healthy", "ill"]).fit(numbers, y).guarantee_.status == "proven"
    # One odd label would be a category as well.
    categorical = learner(data_norm=50.0).fit(numbers, y.astype("category")).guarantee_
    assert categorical.status == "nominal" and "set of labels" in categorical.caveats[0]
    seeded = learner(data_norm=50.0, classes=["healthy", "ill"], random_state=0).fit(numbers, y).guarantee_
    assert seeded.status == "nominal" and "random_state" in seeded.caveats[0]
    standard = learner(data_norm=2.0, scaling="standard", classes=["healthy", "ill"]).fit(numbers, y)
    assert standard.guarantee_.status == "nominal" and "standardised" in standard.guarantee_.caveats[0]


@every_learner
def test_scales_can_be_paid_for(learner):
    X, y = people(n=20_000)
    numbers = X[["age", "visits"]]
    model = learner(epsilon=4.0, classes=["healthy", "ill"]).fit(numbers, y)
    assert model.guarantee_.status == "proven"
    assert "the scale of the columns (0.8)" in model.guarantee_.basis
    low = model.features_.centre - model.features_.spread
    high = model.features_.centre + model.features_.spread
    # All but a few people are between the private bounds, and these are no wider than a power of two more.
    assert (numbers.fillna(40) >= low).all(axis=1).mean() > 0.9 and (numbers.fillna(40) <= high).all(
        axis=1
    ).mean() > 0.9
    assert (high <= [256, 64]).all()
    one_norm = learner(epsilon=4.0, scaling="none", classes=["healthy", "ill"]).fit(numbers, y)
    assert one_norm.guarantee_.status == "proven" and 40 < one_norm.features_.norm < 200


@every_learner
def test_few_rows_for_private_scales_are_warned_of(learner):
    with pytest.warns(UserWarning, match="too few"):
        learner().fit(np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 2)


@every_learner
def test_sample_weights_are_refused(learner):
    X, y = np.eye(10), np.arange(10) % 2
    with pytest.raises(InputError, match="sample_weight"):
        learner(data_norm=1.0).fit(X, y, sample_weight=np.ones(10))
    learner(data_norm=1.0).fit(X, y, sample_weight=None)


@every_learner
def test_a_search_over_settings_is_warned_of_and_remembered(learner):
    X, y = np.random.default_rng(0).normal(size=(90, 2)), np.arange(90) % 2
    search = GridSearchCV(learner(data_norm=3.0, classes=[0, 1]), {"C": [0.1, 1.0]}, cv=2)
    with pytest.warns(TuningWarning, match="every fit costs privacy"):
        search.fit(X, y)
    assert search.best_estimator_.guarantee_.status == "nominal"
    assert "chosen by a search" in search.best_estimator_.guarantee_.caveats[0]


@every_learner
@pytest.mark.filterwarnings("error::oversafe.learn.TuningWarning")
def test_cross_validation_and_pipelines_work_without_that_warning(learner):
    X, y = np.random.default_rng(0).normal(size=(90, 2)), np.array(["a", "b"])[np.arange(90) % 2]
    model = make_pipeline(StandardScaler(), learner(data_norm=3.0, classes=["a", "b"]))
    assert len(cross_val_score(model, X, y, cv=2)) == 2


@every_learner
def test_a_label_that_was_not_declared_counts_as_the_first(learner):
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = np.array(["a", "b"])[np.arange(200) % 2].astype(object)
    odd = y.copy()
    odd[0] = "never heard of"
    kwargs = {"data_norm": 3.0, "classes": ["a", "b"], "random_state": 0}
    np.testing.assert_array_equal(learner(**kwargs).fit(X, y).coef_, learner(**kwargs).fit(X, odd).coef_)


@every_learner
def test_odd_values_raise_no_error_that_would_tell_of_them(learner):
    X = np.random.default_rng(0).normal(size=(200, 3))
    X[0] = [np.nan, np.inf, -np.inf]
    X[1] = [1e300, 1e300, -1e300]
    model = learner(data_norm=2.0, classes=[0, 1]).fit(X, np.arange(200) % 2)
    assert np.isfinite(model.coef_).all() and np.isfinite(model.decision_function(X)).all()
    assert (np.linalg.norm(model.features_.apply(X), axis=1) <= 2.0).all()


@every_learner
@pytest.mark.parametrize("form", [pd.DataFrame, np.asarray])
@pytest.mark.parametrize("odd", [pd.NA, None, 2**70, 10**400, Decimal("1.5")], ids=range(5))
def test_one_number_that_is_stored_as_an_object_makes_no_other_promise(learner, form, odd):
    X = np.random.default_rng(0).normal(size=(50, 2)).astype(object)
    X[0, 1] = odd
    X = form(pd.DataFrame({"a": X[:, 0].astype(float), "b": pd.Series(X[:, 1], dtype=object)}))
    model = learner(data_norm=2.0, classes=[0, 1]).fit(X, np.arange(50) % 2)
    assert model.guarantee_.status == "proven"
    assert np.isfinite(model.decision_function(X)).all()


@every_learner
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("odd", [1e308, -1e308, np.inf])
def test_a_huge_number_where_the_scale_is_paid_for_is_no_warning(learner, odd):
    X = np.random.default_rng(0).normal(size=(2000, 2)) * 1e-3
    X[0] = [odd, 0.0]
    model = learner(epsilon=20.0, classes=[0, 1]).fit(X, np.arange(2000) % 2)
    assert (model.features_.spread < 0.1).all() and np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("odd", [(np.nan, 0.0), (np.inf, 1.0), (1e200, 1.0), (-1e308, 1e308)])
@pytest.mark.parametrize("scaling", ["none", "private", "standard"])
def test_one_odd_record_leaves_the_vectors_of_all_others_alone(odd, scaling):
    X = np.tile([[10.0, 1.0], [-3.0, 4.0]], (500, 1))
    changed = X.copy()
    changed[0] = odd
    maps = {
        "none": FeatureMap(1.0),
        "private": FeatureMap(0.7, None, np.zeros(2), np.full(2, 5.0), 1.0),
        "standard": FeatureMap(1.0, None, np.zeros(2), np.ones(2), 1e6),
    }
    before, after = (maps[scaling].apply(table) for table in (X, changed))
    np.testing.assert_array_equal(before[1:], after[1:])
    assert np.linalg.norm(after[0]) <= maps[scaling].norm


@every_learner
def test_a_refit_that_is_refused_leaves_no_guarantee(learner, tmp_path):
    ledger = Ledger(tmp_path / "budget.db", key_file=tmp_path / "key")
    ledger.create("patients", 6.0)
    X, y = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 2
    account = ledger.for_dataset("patients")
    model = learner(epsilon=5.0, data_norm=3.0, classes=[0, 1], ledger=account).fit(X, y)
    assert model.guarantee_.epsilon == 5.0
    with pytest.raises(OverdraftError):
        model.set_params(epsilon=2.0).fit(X, y)
    # The coefficients are those of the first fit, and must not carry the second one's promise.
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert not hasattr(model, "guarantee_")


@every_learner
def test_declared_classes_are_put_in_order(learner):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(1000) < 0.3, "high", "low")
    X = rng.normal(size=(1000, 2)) + 3 * (y == "high")[:, None]
    model = learner(epsilon=20.0, data_norm=5.0, classes=["low", "high"], random_state=0)
    assert model.fit(X, y).classes_.tolist() == ["high", "low"]
    # scikit-learn takes the second class for the positive one, by order.
    assert cross_val_score(model, X, y, scoring="roc_auc", cv=2).min() > 0.9


@every_learner
def test_numbers_are_no_text_labels(learner):
    # Told to the holder alone: one label that is text makes text of the others, and an error would tell of it.
    X = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.warns(MisfitWarning, match="60 rows with the labels .* count as 'high'"):
        learner(data_norm=5.0, classes=["low", "high"]).fit(X, np.arange(60) % 2)
    assert learner(data_norm=5.0, classes=["1", "0"]).fit(X, np.arange(60) % 2).classes_.tolist() == [
        "0",
        "1",
    ]


@pytest.mark.parametrize(
    "maker",
    [
        PrivateLogisticRegression,
        PrivateThresholdClassifier,
        HistogramSynthesizer,
        pytest.param(DPGAN, marks=pytest.mark.extras),
    ],
)
@pytest.mark.parametrize("last", [2**53 + 1, None])
def test_long_numbers_are_no_classes_or_categories(maker, last):
    # Floats, which one missing value makes of them, do not hold them.
    facts = {"domain": "public", "source": "the study's protocol"}
    x = Column("x", "continuous", "float64", bounds=(0.0, 1.0), **facts)
    c = Column("c", "categorical", "int64", True, categories=(2**53, 2**53 + 1), **facts)
    labels = pd.Series([2**53, last])
    with pytest.raises(
        InputError,
        match=r"the classes 9007199254740992 and .*, which are one value",
    ):
        maker(schema=Schema((x,)), classes=[2**53, 2**53 + 1]).fit(pd.DataFrame({"x": [0.0, 1.0]}), labels)
    with pytest.raises(InputError, match="column 'c' has the categories 9007199254740992 and"):
        maker(schema=Schema((c,)), classes=[0, 1]).fit(pd.DataFrame({"c": labels}), [0, 1])


@pytest.mark.filterwarnings("ignore::oversafe.data.MisfitWarning")
@pytest.mark.parametrize("form", [list, tuple])
@pytest.mark.parametrize("odd", ["fifty", None, [1, 2], 1j, "\ud800"])
def test_one_odd_cell_of_a_list_changes_no_other(form, odd):
    facts = {"domain": "public", "source": "the study's protocol"}
    schema = Schema(
        (
            Column("smoker", "integer", "int64", bounds=(0, 1), **facts),
            Column("age", "continuous", "float64", bounds=(0.0, 100.0), **facts),
        )
    )
    rows, y = form([[True, 50.0]] * 200), form([0, 1] * 100)
    settings = {"epsilon": 1e6, "schema": schema, "classes": [0, 1], "random_state": 0}
    plain = PrivateThresholdClassifier(**settings).fit(rows, y).means_
    for X, labels in ((rows[:-1] + form([[True, odd]]), y), (rows, y[:-1] + form([odd]))):
        means = PrivateThresholdClassifier(**settings).fit(X, labels).means_
        # Smokers all, but for noise.
        assert abs(means[:, 0] - plain[:, 0]).max() < 0.01


@every_learner
def test_a_proven_model_holds_no_record(learner):
    X, y = people(n=300)
    X["age"] = 18.0 + np.random.default_rng(1).random(300) * 70
    model = learner(schema=public(X, y)).fit(X, y)
    stored = pickle.dumps(model)
    assert not any(np.float64(age).tobytes() in stored for age in X["age"])
    assert (pickle.loads(stored).predict(X) == model.predict(X)).all()


@every_learner
def test_a_single_declared_class_in_the_data_is_no_error(learner):
    model = learner(data_norm=1.0, classes=["no", "yes"]).fit(np.eye(30), ["no"] * 30)
    assert model.guarantee_.status == "proven"


@every_learner
def test_the_ledger_is_charged_before_any_noise(learner, tmp_path):
    ledger = Ledger(tmp_path / "budget.db", key_file=tmp_path / "key")
    ledger.create("patients", 1.5, 1e-6)
    model = learner(data_norm=1.0, classes=[0, 1], ledger=ledger.for_dataset("patients"))
    X, y = np.eye(10), np.arange(10) % 2
    model.fit(X, y)
    entry = ledger.history("patients")[-1]
    assert (entry.id, entry.what) == (model.ledger_entry_, learner.__name__)
    again = clone(model)
    with pytest.raises(OverdraftError):
        again.fit(X, y)
    assert not hasattr(again, "coef_")
    with pytest.raises(InputError, match="for_dataset"):
        learner(data_norm=1.0, classes=[0, 1], ledger=ledger).fit(X, y)


@every_learner
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 0}, "epsilon = 0"),
        ({"epsilon": "1"}, "epsilon = '1'"),
        ({"delta": 1.0}, "delta = 1.0"),
        ({"data_norm": -1.0}, "data_norm = -1.0"),
        ({"C": 0.0}, "C = 0.0"),
        ({"method": "sgd"}, "method = 'sgd'"),
        ({"method": "gaussian"}, "needs a delta"),
        ({"calibration": "mine"}, "calibration = 'mine'"),
        ({"class_weight": "auto"}, "class_weight = 'auto'"),
        ({"class_weight": {7: 1.0}}, "names the class 7"),
        ({"class_weight": {0: -1.0}}, "class_weight of 0"),
        ({"scaling": "minmax"}, "scaling = 'minmax'"),
        ({"classes": [0]}, "at least two labels"),
        ({"intercept_scaling": 0.0}, "intercept_scaling = 0.0"),
    ],
)
def test_settings_that_mean_nothing_are_refused(learner, settings, message):
    model = learner(**{"data_norm": 1.0, **settings})
    with pytest.raises(InputError, match=message):
        model.fit(np.eye(10), np.arange(10) % 2)


@pytest.mark.parametrize(
    "model",
    [
        PrivateLogisticRegression(method="objective"),
        PrivateLogisticRegression(method="output"),
        PrivateLogisticRegression(method="gaussian", delta=1e-6),
        PrivateLinearSVC(),
        PrivateLinearSVC(kernel="rbf", n_components=3),
        PrivateBaggingClassifier(n_estimators=2),
        PrivateBaggingClassifier(PrivateBaggingClassifier(PrivateLinearSVC(), 2), 2),
        PrivateClassifier(rare_share=0.01),
    ],
)
def test_linear_models_say_that_their_proof_is_over_the_reals(model, tmp_path):
    ledger = Ledger(tmp_path / "budget.db", key_file=tmp_path / "key")
    ledger.create("patients", 1.0, 1e-6)
    X, y = people(200)
    fitted = clone(model).set_params(schema=public(X, y), ledger=ledger.for_dataset("patients")).fit(X, y)
    assert fitted.guarantee_.status == "proven" and fitted.guarantee_.caveats == (OVER_THE_REALS,)
    assert ledger.history("patients")[-1].guarantee == fitted.guarantee_
    seeded = clone(model).set_params(schema=public(X, y), random_state=0).fit(X, y).guarantee_
    assert seeded.status == "nominal" and set(seeded.caveats) == {SEEDED, OVER_THE_REALS}


@pytest.mark.parametrize(
    "model",
    [
        PrivateThresholdClassifier(),
        PrivateThresholdClassifier(delta=1e-6),
        PrivateBaggingClassifier(PrivateThresholdClassifier(), 2),
        BalancedSynthesisClassifier(),
    ],
)
def test_what_is_made_of_whole_numbers_needs_no_such_words(model):
    X, y = people(1000)
    fitted = clone(model).set_params(schema=public(X, y)).fit(X, y)
    assert fitted.guarantee_.status == "proven" and fitted.guarantee_.caveats == ()


def test_a_bag_passes_on_what_the_proofs_of_other_learners_take_for_granted():
    class Assuming(PrivateThresholdClassifier):
        def fit(self, X, y):
            super().fit(X, y)
            self.guarantee_ = self.guarantee_.assuming("the moon is round")
            return self

    X, y = people(200)
    bag = PrivateBaggingClassifier(Assuming(), 2, schema=public(X, y)).fit(X, y)
    assert bag.guarantee_.status == "proven" and bag.guarantee_.caveats == ("the moon is round",)


def test_clones_keep_the_settings():
    model = PrivateLinearSVC(epsilon=2.0, kernel="rbf", gamma=0.1, n_components=6, data_norm=2.0)
    assert clone(model).get_params() == model.get_params()
