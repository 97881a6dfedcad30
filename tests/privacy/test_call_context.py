"""A guarantee knows of the searches and pipelines that a fit is part of."""

import _thread
import functools
import importlib.util
import multiprocessing
import subprocess
import sys
import threading
import time
import types
import zipfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import ClassVar
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from imblearn.ensemble import BalancedBaggingClassifier, EasyEnsembleClassifier, RUSBoostClassifier
from imblearn.pipeline import make_pipeline as make_sampling_pipeline
from joblib import Parallel, delayed, parallel_config
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_selection import RFE, RFECV, SelectFromModel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    KFold,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_validate,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer, StandardScaler, minmax_scale
from sklearn.semi_supervised import SelfTrainingClassifier

from oversafe._core.errors import InputError
from oversafe.data import Column, Schema
from oversafe.experiment import run_grid
from oversafe.learn import (
    BalancedSynthesisClassifier,
    PrivateBaggingClassifier,
    PrivateClassifier,
    PrivateLogisticRegression,
    TuningWarning,
)
from oversafe.privacy import Ledger
from oversafe.privacy.call_context import VOUCHED
from oversafe.privacy.guarantee import OVER_THE_REALS
from oversafe.protect import SMOTE, GaussianCopula, HistogramSynthesizer

CLASSES = ["rare", "usual"]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(400) < 0.2, "rare", "usual")
    return rng.normal(size=(400, 2)) + 2 * (y == "rare")[:, None], y


def learner(**settings):
    return PrivateLogisticRegression(data_norm=4.0, classes=CLASSES, **settings)


def synthesizer(X, classes=CLASSES, **settings):
    schema = Schema.infer(pd.DataFrame(X, columns=["x0", "x1"]))
    for name in schema.names:
        schema = schema.declare(name, domain="public", source="a textbook")
    return HistogramSynthesizer(schema=schema, classes=classes, **settings)


def vouched(guarantee):
    return any(caveat.startswith(VOUCHED) for caveat in guarantee.caveats)


class Ranks(TransformerMixin, BaseEstimator):
    """Needs no fit, and looks at all rows."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.argsort(X, axis=0) / len(X)


def largest_so_far():
    seen = [0.0]

    def scaled(value):
        seen[0] = max(seen[0], abs(value))
        return value / seen[0]

    return np.frompyfunc(scaled, 1, 1)


FILLED = SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True)


@pytest.mark.parametrize(
    ("first", "named"),
    [
        (StandardScaler(), "StandardScaler"),
        (Ranks(), "Ranks"),
        (FunctionTransformer(minmax_scale), "FunctionTransformer"),
        # Rows are treated one by one, but the dtype of the column, or an error, is every row's doing.
        (FunctionTransformer(np.reciprocal), "FunctionTransformer"),
        (FunctionTransformer(largest_so_far()), "FunctionTransformer"),
        (FILLED, "SimpleImputer"),
        (Normalizer(), "Normalizer"),
        (Binarizer(), "Binarizer"),
        (make_column_transformer(("passthrough", [0, 1])), "ColumnTransformer"),
        (make_union(FunctionTransformer()), "FeatureUnion"),
        (make_pipeline(None, Normalizer()), "Pipeline"),
    ],
)
def test_a_private_step_is_the_first_of_its_pipeline_or_somebody_vouches(data, first, named):
    guarantee = make_pipeline("passthrough", first, learner()).fit(*data)[-1].guarantee_
    assert guarantee.status == "nominal"
    assert "nobody paid for" in guarantee.caveats[0] and guarantee.caveats[0].endswith(f": {named}")
    word = make_pipeline(first, learner(call_context="vouched")).fit(*data)[-1].guarantee_
    assert word.status == "proven" and VOUCHED + named in word.caveats


def test_one_cell_that_changes_the_dtype_of_a_column_is_not_paid_for(data):
    y = np.tile(CLASSES, 200)
    found = []
    for cell in (2, 2.5):
        X = pd.DataFrame({"x": [cell, *np.where(y == "rare", 2, 1000)[1:]]})
        made = make_pipeline(FunctionTransformer(np.reciprocal), learner()).fit(X, y)
        assert made[-1].guarantee_.status == "nominal"
        found.append(made[0].transform(X)["x"].iloc[2])
    # Another row than the one that was changed.
    assert found == [0, 0.5]


def test_steps_that_came_first_are_named_wherever_they_are(data):
    X, y = data
    both = make_sampling_pipeline(StandardScaler(), SMOTE(), learner()).fit(X, y)[-1].guarantee_
    assert both.caveats[0].endswith("StandardScaler, SMOTE")
    nested = make_pipeline(StandardScaler(), make_pipeline("passthrough", learner())).fit(X, y)
    assert nested[-1][-1].guarantee_.caveats[0].endswith("StandardScaler")
    # Nominal is no proof either: a seed is known to somebody.
    seeded = make_sampling_pipeline(synthesizer(X, random_state=0), learner()).fit(X, y)[-1].guarantee_
    assert seeded.caveats[0].endswith("HistogramSynthesizer")
    early = make_sampling_pipeline(StandardScaler(), synthesizer(X), LogisticRegression()).fit(X, y)
    assert early[1].guarantee_.caveats[-1].endswith("StandardScaler")
    # The same object is fitted twice, the second time behind a scaler.
    model = learner()
    model.transform = lambda X: X
    again = Pipeline([("once", model), ("scaler", StandardScaler()), ("again", model)]).fit(X, y)
    assert again[-1].guarantee_.status == "nominal"


def test_a_private_step_that_is_the_first_keeps_its_word(data):
    X, y = data
    for first in (learner(), make_pipeline(learner()), make_sampling_pipeline("passthrough", learner())):
        pipeline = make_pipeline(None, "passthrough", first).fit(X, y)
        last = pipeline[-1] if first is pipeline[-1] and hasattr(first, "coef_") else pipeline[-1][-1]
        assert last.guarantee_.status == "proven"
    # What comes after a private step is made of what it paid for; steps after it do not concern it.
    whole = make_sampling_pipeline(synthesizer(X), StandardScaler(), LogisticRegression()).fit(X, y)
    assert whole[0].guarantee_.status == "proven"
    bag = PrivateBaggingClassifier(learner(), n_estimators=2, classes=CLASSES)
    assert make_pipeline(bag).fit(X, y)[-1].guarantee_.status == "proven"


def test_a_pipeline_of_another_class_may_do_anything(data):
    class Scales(Pipeline):
        def _fit(self, X, y=None, *rest, **more):
            return X / np.abs(X).max()

    disguised = type("Pipeline", (Pipeline,), {"__module__": "sklearn.pipeline"})
    for kind in (Scales, disguised):
        guarantee = kind([("model", learner())]).fit(*data)[-1].guarantee_
        assert guarantee.status == "nominal" and guarantee.caveats[0].endswith(kind.__name__)


def test_a_step_that_was_copied_for_a_cache_is_nominal(data, tmp_path):
    X, y = data
    cached = make_sampling_pipeline(synthesizer(X), LogisticRegression(), memory=str(tmp_path)).fit(X, y)
    guarantee = cached[0].guarantee_
    assert guarantee.status == "nominal" and any(
        caveat.endswith(": Pipeline") for caveat in guarantee.caveats
    )


def test_a_fit_to_made_rows_does_not_speak_of_real_ones(data):
    X, y = data
    # One real record is many of the made ones.
    chained = make_sampling_pipeline(synthesizer(X, epsilon=100.0), learner(epsilon=0.01)).fit(X, y)
    assert chained[0].guarantee_.status == "proven"
    guarantee = chained[-1].guarantee_
    assert guarantee.status == "nominal" and guarantee.caveats[0].endswith("made rows: HistogramSynthesizer")


class Assigned(BaseEstimator):
    """Has its method ``fit`` from a function."""


def fit_a_scaled_one(self, X, y):
    self.model_ = learner().fit(X / np.abs(X).max(), y)
    return self


Assigned.fit = fit_a_scaled_one


class Starred(BaseEstimator):
    """Takes all of its arguments as one."""

    def fit(*given):
        return fit_a_scaled_one(*given)


class Proxy(BaseEstimator):
    """Has everything by its name."""

    def fit(self, **given):
        return fit_a_scaled_one(self=self, **given)


def of_folds(model, X, y, cv):
    return cross_validate(model, X, y, cv=cv, return_estimator=True)["estimator"][0]


class Disguised(StratifiedKFold):
    """Looks at the labels."""


Disguised.__name__ = "KFold"


class Kept(ClassifierMixin, BaseEstimator):
    """Keeps what was promised of its fit, which others copy and throw away."""

    seen: ClassVar = []

    def __init__(self, model=None):
        self.model = model

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.model_ = clone(self.model).fit(X, y)
        Kept.seen.append(self.model_.guarantee_.status)
        return self

    def predict(self, X):
        return self.model_.predict(X)

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


def of_predictions(model, X, y):
    cross_val_predict(Kept(model), X, y, cv=KFold(2), method="predict_proba")
    assert set(Kept.seen) == {"nominal"}
    return Kept(model).fit(X, y).model_


WRAPPERS = {
    "Assigned": lambda model, X, y: Assigned().fit(X, y).model_,
    "Starred": lambda model, X, y: Starred().fit(X, y).model_,
    "Proxy": lambda model, X, y: Proxy().fit(X=X, y=y).model_,
    "Kept": of_predictions,
    "FixedThresholdClassifier": lambda model, X, y: FixedThresholdClassifier(model).fit(X, y).estimator_,
    "MultiOutputClassifier": lambda model, X, y: (
        MultiOutputClassifier(model).fit(X, np.c_[y, y]).estimators_[0]
    ),
    "ClassifierChain": lambda model, X, y: ClassifierChain(model).fit(X, np.c_[y, 1 - y]).estimators_[0],
    "VotingClassifier": lambda model, X, y: VotingClassifier([("a", model)]).fit(X, y).estimators_[0],
    "OneVsRestClassifier": lambda model, X, y: OneVsRestClassifier(model).fit(X, y).estimators_[0],
    "OneVsOneClassifier": lambda model, X, y: OneVsOneClassifier(model).fit(X, y).estimators_[0],
    "BaggingClassifier": lambda model, X, y: BaggingClassifier(model, 1).fit(X, y).estimators_[0],
    "StackingClassifier": lambda model, X, y: (
        StackingClassifier([("a", LogisticRegression())], model, cv=2).fit(X, y).final_estimator_
    ),
    "SelectFromModel": lambda model, X, y: SelectFromModel(model, threshold=-1.0).fit(X, y).estimator_,
    "SelfTrainingClassifier": lambda model, X, y: SelfTrainingClassifier(model).fit(X, y).estimator_,
    "sklearn.cross_validate": lambda model, X, y: of_folds(model, X, y, KFold(2)),
    "cross_validate": lambda model, X, y: of_folds(model, X, y, Disguised(2)),
    "Parallel.__call__": lambda model, X, y: Parallel(n_jobs=1)([delayed(model.fit)(X, y)])[0],
    "numpy": lambda model, X, y: np.vectorize(lambda at: model.fit(X, y))(0).item(),
    "pandas": lambda model, X, y: (
        pd.DataFrame({"g": [0], "v": [0]}).groupby("g").apply(lambda part: model.fit(X, y))[0]
    ),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_whatever_fits_a_method_for_its_user_is_nominal_and_named(data, name):
    X, y = data[0], (data[1] == "usual").astype(int)
    # Two classes that are the numbers of text labels.
    classes = CLASSES if name in ("Assigned", "Starred", "Proxy") else [0, 1]
    labels = data[1] if classes is CLASSES else y
    model = PrivateLogisticRegression(data_norm=4.0, classes=classes)
    guarantee = WRAPPERS[name](model, X, labels).guarantee_
    assert guarantee.status == "nominal"
    assert any("fitted inside of" in caveat and name in caveat for caveat in guarantee.caveats)
    assert any("vouched" in caveat for caveat in guarantee.caveats)


def test_columns_and_thresholds_that_are_chosen_by_fits_cost_privacy(data):
    X, y = data
    for search in (RFE(learner(), n_features_to_select=1), RFECV(learner(), cv=2)):
        with pytest.warns(TuningWarning, match="every fit costs privacy"):
            guarantee = search.fit(X, y).estimator_.guarantee_
        assert guarantee.status == "nominal" and "search over fits" in guarantee.caveats[0]
    with pytest.warns(TuningWarning, match="a threshold or a calibration"):
        tuned = TunedThresholdClassifierCV(learner(), cv=2).fit(X, y)
    assert tuned.estimator_.guarantee_.status == "nominal"
    numbers = (y == "usual").astype(int)
    for ensemble in (True, False):
        with pytest.warns(TuningWarning, match="a threshold or a calibration"):
            model = PrivateLogisticRegression(data_norm=4.0, classes=[0, 1])
            whole = CalibratedClassifierCV(model, cv=2, ensemble=ensemble).fit(X, numbers)
        parts = [each.estimator.guarantee_ for each in whole.calibrated_classifiers_]
        assert all(part.status == "nominal" and "calibration" in part.caveats[0] for part in parts)


def test_ensembles_that_balance_rows_prove_nothing(data):
    X, y = data[0], (data[1] == "usual").astype(int)
    model = PrivateLogisticRegression(data_norm=4.0, classes=[0, 1])
    for ensemble in (EasyEnsembleClassifier(1, model), BalancedBaggingClassifier(model, n_estimators=1)):
        guarantee = ensemble.fit(X, y).estimators_[0][-1].guarantee_
        assert any(caveat.endswith("RandomUnderSampler") for caveat in guarantee.caveats)
    # Weights are refused before anything is fitted.
    for boosted in (AdaBoostClassifier(model), RUSBoostClassifier(model)):
        with pytest.raises(ValueError, match="sample_weight"):
            boosted.fit(X, y)


@pytest.mark.filterwarnings("always::oversafe.learn.TuningWarning")
def test_a_search_is_warned_of_once(data):
    for search in (GridSearchCV(learner(), {"C": [0.1, 1.0, 10.0]}, cv=3), RFECV(learner(), cv=3)):
        with pytest.warns(TuningWarning) as caught:
            search.fit(*data)
        assert sum(issubclass(each.category, TuningWarning) for each in caught) == 1


def test_a_search_over_synthesizers_costs_privacy(data):
    X, y = data
    pipeline = make_sampling_pipeline(synthesizer(X), LogisticRegression())
    with pytest.warns(TuningWarning):
        search = GridSearchCV(pipeline, {"histogramsynthesizer__epsilon": [1.0, 5.0]}, cv=2).fit(X, y)
    guarantee = search.best_estimator_[0].guarantee_
    assert guarantee.status == "nominal" and "search over fits" in guarantee.caveats[-1]


@pytest.mark.filterwarnings("error::oversafe.learn.TuningWarning")
def test_what_promises_nothing_is_not_warned_of(data):
    X, y = data
    pipeline = make_sampling_pipeline(GaussianCopula(), LogisticRegression())
    GridSearchCV(pipeline, {"logisticregression__C": [1.0, 5.0]}, cv=2).fit(X, y)
    # Cross-validation alone chooses nothing.
    cross_validate(make_sampling_pipeline(synthesizer(X), LogisticRegression()), X, y, cv=2)


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_a_worker_cannot_see_what_was_done_around_it(data, backend):
    X, y = data[0], (data[1] == "usual").astype(int)
    model = PrivateLogisticRegression(data_norm=4.0, classes=[0, 1])
    voting = VotingClassifier([("a", model)], n_jobs=2, voting="soft")
    generator = make_sampling_pipeline(synthesizer(X, [0, 1]), LogisticRegression())
    inner = VotingClassifier([("a", generator)], n_jobs=2)
    with parallel_config(backend=backend):
        scaled = make_pipeline(StandardScaler(), OneVsRestClassifier(model, n_jobs=2)).fit(X, y)
        sampled = make_sampling_pipeline(SMOTE(), OneVsRestClassifier(model, n_jobs=2)).fit(X, y)
        search = GridSearchCV(voting, {"a__C": [0.1, 1.0]}, cv=2).fit(X, y)
        generators = GridSearchCV(inner, {"a__histogramsynthesizer__epsilon": [1.0]}, cv=2).fit(X, y)
        tuned = TunedThresholdClassifierCV(voting, cv=2).fit(X, y)
        # Alone it would be right; it looks the same as inside of a search for columns.
        folds = cross_validate(voting, X, y, cv=2, n_jobs=2, return_estimator=True)["estimator"]
        # Also where a user hands the work out.
        own = Parallel(n_jobs=2)(delayed(model.fit)(X, y) for _ in range(2))
    for fitted in (
        *scaled[-1].estimators_,
        *sampled[-1].estimators_,
        *search.best_estimator_.estimators_,
        generators.best_estimator_.estimators_[0][0],
        *tuned.estimator_.estimators_,
        *(fold.estimators_[0] for fold in folds),
        *own,
    ):
        assert fitted.guarantee_.status == "nominal"
        assert any("in a worker process or thread" in caveat for caveat in fitted.guarantee_.caveats)


def test_a_ledger_refuses_what_a_worker_cannot_promise(data, tmp_path):
    X, y = data[0], (data[1] == "usual").astype(int)
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("fraud", epsilon=10.0)
    model = PrivateLogisticRegression(data_norm=4.0, classes=[0, 1], ledger=ledger.for_dataset("fraud"))
    with parallel_config(backend="threading"), pytest.raises(InputError, match="n_jobs=1"):
        MultiOutputClassifier(model, n_jobs=2).fit(X, np.column_stack([y, 1 - y]))
    assert len(ledger.history("fraud")) == 1


class LearnsInPlace(BaseEstimator):
    """Leaves the table where it lies, and has no use for the rows that it is given."""

    def __init__(self, path=None, model=None):
        self.path, self.model = path, model

    def fit(self, X, y=None):
        self.model_ = clone(self.model).fit_source(self.path, "y")
        return self

    def score(self, X, y=None):
        return 0.0


def test_a_table_that_is_learned_where_it_lies_has_surroundings_too(data, tmp_path):
    X, y = data
    path = tmp_path / "table.parquet"
    pd.DataFrame(X, columns=["x0", "x1"]).assign(y=y).to_parquet(path)
    model = synthesizer(X)
    model.schema = Schema((*model.schema, Column("y", "categorical", "object", categories=tuple(CLASSES))))
    lying = LearnsInPlace(path, model)
    alone = clone(model).fit_source(path, "y")
    assert alone.guarantee_.status == "proven"
    with parallel_config(backend="threading"):
        handed_out = Parallel(n_jobs=2)(delayed(clone(model).fit_source)(path, "y") for _ in range(2))
    with pytest.warns(TuningWarning):
        search = GridSearchCV(lying, {"model": [model]}, cv=KFold(2)).fit(X, y)
    behind = make_pipeline(StandardScaler(), lying).fit(X, y)
    for fitted, caveat in (
        (handed_out[0], "in a worker process or thread"),
        (search.best_estimator_.model_, "search over fits"),
        (behind[-1].model_, ": StandardScaler"),
    ):
        assert fitted.guarantee_.status == "nominal"
        assert any(caveat in each for each in fitted.guarantee_.caveats)
    # What surrounded an earlier fit says nothing of this one.
    assert handed_out[0].fit_source(path, "y").guarantee_.status == "proven"
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("fraud", epsilon=10.0)
    paid = clone(model).set_params(ledger=ledger.for_dataset("fraud"))
    with parallel_config(backend="threading"), pytest.raises(InputError, match="n_jobs=1"):
        Parallel(n_jobs=2)(delayed(paid.fit_source)(path, "y") for _ in range(2))
    assert len(ledger.history("fraud")) == 1


def test_own_workers_are_known(data):
    X, y = data[0], (data[1] == "usual").astype(int)
    model = PrivateLogisticRegression(data_norm=4.0, classes=[0, 1])

    def alone(C):
        return {"promise": clone(model).set_params(C=C).fit(X, y).guarantee_.status}

    def voting(C):
        parts = VotingClassifier([("a", model)], n_jobs=2).fit(X, y).estimators_
        return {"promise": parts[0].guarantee_.status}

    bag = PrivateBaggingClassifier(model, n_estimators=2, classes=[0, 1], n_jobs=2)
    with parallel_config(backend="threading"):
        assert bag.fit(X, y).guarantee_.status == "proven"
        # The bag sees for its parts.
        caveats = make_pipeline(StandardScaler(), bag).fit(X, y)[-1].guarantee_.caveats
        assert caveats[0].endswith(": StandardScaler") and caveats[1:] == (OVER_THE_REALS,)
        for function, expected in ((alone, "proven"), (voting, "nominal")):
            found = run_grid(function, {"C": [0.1, 1.0]}, n_jobs=2, progress=False)
            assert found["promise"].tolist() == [expected, expected]


class Repeats(BaseEstimator):
    """Fits three times and keeps the last."""

    def __init__(self, model=None):
        self.model = model

    def fit(self, X, y=None):
        self.model_ = [clone(self.model).fit(X, y) for _ in range(3)][-1]
        return self


def in_a_thread(model, X, y):
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(model.fit, X, y).result()


def in_a_bare_thread(model, X, y):
    done = []
    _thread.start_new_thread(lambda: done.append(model.fit(X, y)), ())
    while not done:
        time.sleep(0.01)
    return model


def in_another_thread(model, X, y):
    thread = threading.Thread(target=model.fit, args=(X, y))
    thread.start()
    thread.join()
    return model


def in_a_greenlet(model, X, y):
    pytest.importorskip("greenlet").greenlet(lambda: model.fit(X, y)).switch()
    return model


def in_a_process(model, X, y):
    # The process would run the file of the main module, which another test may have left there.
    with (
        mock.patch.dict(sys.modules, {"__main__": types.ModuleType("__main__")}),
        ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as processes,
    ):
        return processes.submit(model.fit, X, y).result()


def inside_of_a_package(model, X, y, folder):
    package = folder / "site-packages" / "looping"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def fitted(fit, *rows): return [fit(*rows) for _ in range(3)][-1]")
    spec = importlib.util.spec_from_file_location("looping", package / "__init__.py")
    looping = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(looping)
    return looping.fitted(model.fit, X, y)


UNKNOWN = {
    "Repeats": lambda model, X, y, folder: Repeats(model).fit(X, y).model_,
    "looping": inside_of_a_package,
    "worker process or thread": lambda model, X, y, folder: in_a_thread(model, X, y),
    "process": lambda model, X, y, folder: in_a_process(model, X, y),
    "thread": lambda model, X, y, folder: in_another_thread(model, X, y),
    "or thread": lambda model, X, y, folder: in_a_bare_thread(model, X, y),
    "greenlet": lambda model, X, y, folder: in_a_greenlet(model, X, y),
}


@pytest.mark.parametrize("make", [learner, synthesizer], ids=["learner", "synthesizer"])
@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_makes_a_guarantee_nominal_unless_the_user_vouches(data, tmp_path, name, make):
    X, y = data
    make = functools.partial(make, X) if make is synthesizer else make
    for word, status in (("checked", "nominal"), ("vouched", "proven")):
        promised = UNKNOWN[name](make(call_context=word), X, y, tmp_path / word).guarantee_
        assert promised.status == status
        assert word == "vouched" or name in promised.caveats[0]
        assert vouched(promised) == (word == "vouched")


def test_a_function_of_the_users_own_is_no_wrapper(data):
    X, y = data

    def fitted(model):
        return model.fit(X, y)

    def of_a_copy(model, other=None):
        return clone(model).fit(X, y)

    def with_a_scaler(model, *steps):
        return model.fit(steps[0].fit_transform(X), y)

    assert fitted(learner()).guarantee_.status == "proven"
    assert fitted(make_pipeline(learner()))[-1].guarantee_.status == "proven"
    assert of_a_copy(learner()).guarantee_.status == "proven"
    assert of_a_copy(learner(), synthesizer(X)).guarantee_.status == "proven"
    promised = with_a_scaler(learner(), StandardScaler()).guarantee_
    assert promised.status == "nominal" and promised.caveats[0].endswith(": StandardScaler")


PROGRAM = """
import sys
from pathlib import Path

import numpy as np

here = Path(__file__).parent
sys.path[:0] = [str(here / "vendor"), str(here / "site-packages"), str(here / "archive.zip")]

from oversafe.learn import PrivateLogisticRegression

X, y = np.ones((40, 1)), np.tile(["a", "b"], 20)


def model():
    return PrivateLogisticRegression(data_norm=4.0, classes=["a", "b"])


def main():
    for name in ["beside", "folder.inside", *sys.argv[1:]]:
        fitted = __import__(name, fromlist=["fitted"]).fitted
        print(name, fitted(model().fit, X, y).guarantee_.status)


print("program", model().fit(X, y).guarantee_.status)
exec("print('text', model().fit(X, y).guarantee_.status)")
main()
"""
FITTED = "def fitted(fit, X, y):\n    return [fit(X, y) for _ in range(3)][-1]\n"


def test_own_modules_are_told_from_installed_ones(tmp_path):
    """Libraries in a folder of their own, in an archive and among the user's, and the user's own modules."""
    for name in ("beside", "folder/inside", "src/app/inner", "vendor/target", "site-packages/installed"):
        path = tmp_path / "work" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FITTED)
    work = tmp_path / "work"
    (work / "program.py").write_text(PROGRAM)
    with zipfile.ZipFile(work / "archive.zip", "w") as archive:
        archive.writestr("zipped.py", FITTED)
    libraries = ["target", "installed", "zipped"]

    def told(*command, folder=work):
        command = [sys.executable, *map(str, command), *libraries]
        found = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=True)
        return dict(line.split() for line in found.stdout.splitlines())

    own = dict.fromkeys(("program", "text", "beside", "folder.inside"), "proven")
    expected = own | dict.fromkeys(libraries, "nominal")
    assert told("program.py") == expected
    assert told(work / "program.py", folder=tmp_path) == expected
    assert told("-m", "program") == expected
    # A program of a package that goes elsewhere before it needs this one.
    (work / "app").mkdir()
    program = (
        "import os\nos.chdir('/')\nfrom app.main import *\nprint('program', fit(X, y).guarantee_.status)\n"
    )
    (work / "app/__main__.py").write_text(program)
    inner = PROGRAM.partition("def main")[0] + "def fit(X, y):\n    return model().fit(X, y)\n"
    (work / "app/main.py").write_text(inner)
    assert told("-m", "app") == {"program": "proven"}
    # pip install --target of the program's own folder.
    (work / "beside-1.0.dist-info").mkdir()
    assert told("program.py")["beside"] == "nominal"


def test_a_name_like_a_runners_is_not_enough(data):
    for name in ("clickhouse.jobs", "pytest", "sklearn.pipeline"):
        names = {"__name__": name, "__builtins__": __builtins__}
        exec("def started(fit, X, y): return fit(X, y)", names)
        with ThreadPoolExecutor(1) as threads:
            fitted = threads.submit(names["started"], learner().fit, *data).result()
        assert any("worker process or thread" in caveat for caveat in fitted.guarantee_.caveats)


def test_the_users_word_is_for_what_is_not_known(data, tmp_path):
    X, y = data
    assert not vouched(learner(call_context="vouched").fit(X, y).guarantee_)
    with pytest.raises(InputError, match="call_context = 'trusted' was given"):
        learner(call_context="trusted").fit(X, y)
    with pytest.warns(TuningWarning):
        search = GridSearchCV(learner(call_context="vouched"), {"C": [1.0, 2.0]}, cv=KFold(2)).fit(X, y)
    assert search.best_estimator_.guarantee_.status == "nominal"
    # A bag, a choice and a synthesis hand it on.
    bag = PrivateBaggingClassifier(learner(), n_estimators=2, classes=CLASSES, call_context="vouched")
    balanced = BalancedSynthesisClassifier(synthesizer(X), n_samples=40, call_context="vouched")
    chosen = PrivateClassifier(schema=synthesizer(X).schema, classes=CLASSES, call_context="vouched")
    for model in (bag, balanced, chosen):
        table = X if model is bag else pd.DataFrame(X, columns=["x0", "x1"])
        assert vouched(in_a_thread(model, table, y).guarantee_)
        assert model.guarantee_.status == "proven"
