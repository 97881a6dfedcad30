"""A guarantee knows of the searches and pipelines that a fit is part of."""

import functools
import importlib.util
import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from imblearn.ensemble import BalancedBaggingClassifier, EasyEnsembleClassifier, RUSBoostClassifier
from imblearn.pipeline import make_pipeline as make_sampling_pipeline
from joblib import Parallel, delayed, parallel_config
from sklearn.base import BaseEstimator, TransformerMixin, clone
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
    ShuffleSplit,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_validate,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler, minmax_scale
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


def test_steps_that_saw_the_data_are_named(data):
    X, y = data
    guarantee = make_pipeline(StandardScaler(), learner()).fit(X, y)[-1].guarantee_
    assert guarantee.status == "nominal" and guarantee.caveats[0].endswith("nobody paid for: StandardScaler")
    both = make_sampling_pipeline(StandardScaler(), SMOTE(), learner()).fit(X, y)[-1].guarantee_
    assert both.caveats[0].endswith("StandardScaler, SMOTE")
    nested = make_pipeline(StandardScaler(), make_pipeline("passthrough", learner())).fit(X, y)
    assert nested[-1][-1].guarantee_.caveats[0].endswith("StandardScaler")
    # Nominal is no proof either: a seed is known to somebody.
    seeded = make_sampling_pipeline(synthesizer(X, random_state=0), learner()).fit(X, y)[-1].guarantee_
    assert seeded.caveats[0].endswith("HistogramSynthesizer")
    early = make_sampling_pipeline(StandardScaler(), synthesizer(X), LogisticRegression()).fit(X, y)
    assert early[1].guarantee_.caveats[-1].endswith("StandardScaler")


def test_steps_that_learn_nothing_or_pay_are_not(data):
    X, y = data
    fills = SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True)
    for first in (
        FunctionTransformer(np.tanh),
        "passthrough",
        None,
        Normalizer(),
        fills,
        make_column_transformer(("passthrough", [0]), (fills, [1])),
        make_column_transformer((Normalizer(), [0]), remainder="passthrough"),
        make_union(FunctionTransformer(), make_pipeline(fills, Normalizer())),
    ):
        assert make_pipeline(first, learner()).fit(X, y)[-1].guarantee_.status == "proven"
    # What comes after a private step is made of what it paid for; steps after it do not concern it.
    whole = make_sampling_pipeline(synthesizer(X), StandardScaler(), LogisticRegression()).fit(X, y)
    assert whole[0].guarantee_.status == "proven"


def test_a_fit_to_made_rows_does_not_speak_of_real_ones(data):
    X, y = data
    # One real record is many of the made ones.
    chained = make_sampling_pipeline(synthesizer(X, epsilon=100.0), learner(epsilon=0.01)).fit(X, y)
    assert chained[0].guarantee_.status == "proven"
    guarantee = chained[-1].guarantee_
    assert guarantee.status == "nominal" and guarantee.caveats[0].endswith("made rows: HistogramSynthesizer")


def test_folds_that_labels_decide_on_are_not_paid_for(data):
    X, y = data
    ways = {
        "proven": (KFold(2), ShuffleSplit(2)),
        "nominal": (2, StratifiedKFold(2), [(range(200), range(200, 400))]),
    }
    for status, splitters in ways.items():
        for cv in splitters:
            (model, *_) = cross_validate(learner(), X, y, cv=cv, return_estimator=True)["estimator"]
            assert model.guarantee_.status == status
            assert status == "proven" or "folds" in model.guarantee_.caveats[0]


class Ranks(TransformerMixin, BaseEstimator):
    """Needs no fit, and looks at all rows."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.argsort(X, axis=0) / len(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


@pytest.mark.parametrize(
    ("first", "named"),
    [
        (FunctionTransformer(minmax_scale), "FunctionTransformer"),
        (FunctionTransformer(lambda X: X / X.max(axis=0)), "FunctionTransformer"),
        (FunctionTransformer(np.tanh, kw_args={"where": True}), "FunctionTransformer"),
        (Ranks(), "Ranks"),
        # Whether a column is empty, or has a gap, is the rows' doing.
        (SimpleImputer(strategy="constant", fill_value=0.0), "SimpleImputer"),
        (
            SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True, add_indicator=True),
            "SimpleImputer",
        ),
        (SimpleImputer(keep_empty_features=True), "SimpleImputer"),
        (make_column_transformer((StandardScaler(), [0]), remainder=Ranks()), "StandardScaler, Ranks"),
        (make_column_transformer(("passthrough", lambda X: [0])), "ColumnTransformer"),
        (make_union(make_pipeline(Normalizer(), StandardScaler())), "StandardScaler"),
    ],
)
def test_steps_that_may_look_at_all_rows_are_named(data, first, named):
    guarantee = make_pipeline(first, learner()).fit(*data)[-1].guarantee_
    assert guarantee.status == "nominal" and guarantee.caveats[0].endswith(f"nobody paid for: {named}")


def test_columns_and_thresholds_that_are_chosen_by_fits_cost_privacy(data):
    X, y = data
    for search in (RFE(learner(), n_features_to_select=1), RFECV(learner(), cv=2)):
        with pytest.warns(TuningWarning, match="every fit costs privacy"):
            guarantee = search.fit(X, y).estimator_.guarantee_
        assert guarantee.status == "nominal" and "search over fits" in guarantee.caveats[0]
    with pytest.warns(TuningWarning, match="a threshold or a calibration"):
        tuned = TunedThresholdClassifierCV(learner(), cv=2).fit(X, y)
    assert tuned.estimator_.guarantee_.status == "nominal"
    assert (
        FixedThresholdClassifier(learner(), threshold=0.3).fit(X, y).estimator_.guarantee_.status == "proven"
    )
    numbers = (y == "usual").astype(int)
    for ensemble in (True, False):
        with pytest.warns(TuningWarning, match="a threshold or a calibration"):
            model = PrivateLogisticRegression(data_norm=4.0, classes=[0, 1])
            whole = CalibratedClassifierCV(model, cv=2, ensemble=ensemble).fit(X, numbers)
        parts = [each.estimator.guarantee_ for each in whole.calibrated_classifiers_]
        assert all(part.status == "nominal" and "calibration" in part.caveats[0] for part in parts)


def test_parts_of_ensembles_promise_what_they_are_fitted_to(data):
    X, y = data
    numbers = (y == "usual").astype(int)
    model = PrivateLogisticRegression(data_norm=4.0, classes=[0, 1])
    # A label -1 of one record would make the others 1 and 2, of which the parts know but one.
    for ensemble in (VotingClassifier([("a", model), ("b", model)]), OneVsRestClassifier(model)):
        for part in ensemble.fit(X, numbers).estimators_:
            assert part.guarantee_.status == "nominal" and "labels were written" in part.guarantee_.caveats[0]
    # Each part keeps its own word; the costs of both add up.
    for part in MultiOutputClassifier(model).fit(X, np.column_stack([numbers, 1 - numbers])).estimators_:
        assert part.guarantee_.status == "proven"
    stacked = StackingClassifier([("a", LogisticRegression())], model, cv=2).fit(X, numbers)
    assert any("other models" in caveat for caveat in stacked.final_estimator_.guarantee_.caveats)
    drawn = BaggingClassifier(model, n_estimators=1).fit(X, numbers).estimators_[0].guarantee_
    assert drawn.status == "nominal" and "repetition" in drawn.caveats[0]
    whole = BaggingClassifier(model, n_estimators=1, bootstrap=False).fit(X, numbers).estimators_[0]
    # scikit-learn gives every part a seed.
    assert (
        "labels were written" in whole.guarantee_.caveats[0] and "random_state" in whole.guarantee_.caveats[1]
    )
    pairs = OneVsOneClassifier(model).fit(X, numbers).estimators_[0].guarantee_
    assert pairs.status == "nominal" and any("chosen by their labels" in caveat for caveat in pairs.caveats)


def test_what_earlier_fits_say_is_not_paid_for(data):
    X, y = data[0], (data[1] == "usual").astype(int)
    model = PrivateLogisticRegression(data_norm=4.0, classes=[0, 1])
    unlabelled = np.where(np.arange(len(y)) % 3 == 0, -1, y)
    trained = SelfTrainingClassifier(model, threshold=0.5).fit(X, unlabelled).estimator_.guarantee_
    assert trained.status == "nominal" and "what earlier fits" in trained.caveats[0]
    both = np.column_stack([y, 1 - y])
    for link in ClassifierChain(model, cv=2).fit(X, both).estimators_:
        assert link.guarantee_.status == "nominal" and "what earlier fits" in link.guarantee_.caveats[0]
    # Here the further column is a label of the same record.
    for link in ClassifierChain(model).fit(X, both).estimators_:
        assert link.guarantee_.status == "proven"


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


def test_outputs_and_chosen_columns_keep_their_word(data):
    X, y = data[0], (data[1] == "usual").astype(int)
    model = PrivateLogisticRegression(data_norm=4.0, classes=[0, 1])
    for part in MultiOutputClassifier(model).fit(X, np.column_stack([y, 1 - y])).estimators_:
        assert part.guarantee_.status == "proven"
    chosen = make_pipeline(SelectFromModel(model, threshold=-1.0), model).fit(X, y)
    assert chosen[0].estimator_.guarantee_.status == "proven"
    assert chosen[-1].guarantee_.caveats[0].endswith("SelectFromModel")


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
        (behind[-1].model_, "nobody paid for: StandardScaler"),
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


def test_one_job_is_done_on_the_spot_and_own_workers_are_known(data):
    X, y = data[0], (data[1] == "usual").astype(int)
    model = PrivateLogisticRegression(data_norm=4.0, classes=[0, 1])
    (fitted,) = Parallel(n_jobs=1)(delayed(model.fit)(X, y) for _ in range(1))
    assert fitted.guarantee_.status == "proven"

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
        assert caveats[0].endswith("nobody paid for: StandardScaler") and caveats[1:] == (OVER_THE_REALS,)
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


def in_a_process(model, X, y):
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as processes:
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
}


@pytest.mark.parametrize("make", [learner, synthesizer], ids=["learner", "synthesizer"])
@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_makes_a_guarantee_nominal_unless_the_user_vouches(data, tmp_path, name, make):
    X, y = data
    make = functools.partial(make, X) if make is synthesizer else make
    for word, status in (("checked", "nominal"), ("vouched", "proven")):
        promised = UNKNOWN[name](make(call_context=word), X, y, tmp_path / word).guarantee_
        assert promised.status == status
        assert (name in promised.caveats[0]) == (word == "checked")
        assert (VOUCHED in promised.caveats) == (word == "vouched")


def test_a_package_whose_name_begins_like_a_runners_runs_no_fits(data):
    names = {"__name__": "clickhouse.jobs", "__builtins__": __builtins__}
    exec("def started(fit, X, y): return fit(X, y)", names)
    with ThreadPoolExecutor(1) as threads:
        fitted = threads.submit(names["started"], learner().fit, *data).result()
    assert any("worker process or thread" in caveat for caveat in fitted.guarantee_.caveats)


def test_a_function_that_takes_a_model_is_no_wrapper(data):
    def fitted(model, X, y):
        return model.fit(X, y)

    assert fitted(learner(), *data).guarantee_.status == "proven"


def test_the_users_word_is_for_what_is_not_known(data, tmp_path):
    X, y = data
    assert VOUCHED not in learner(call_context="vouched").fit(X, y).guarantee_.caveats
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
        assert VOUCHED in in_a_thread(model, table, y).guarantee_.caveats
        assert model.guarantee_.status == "proven"
