"""Every private classifier: binary and more classes, mixed and numeric tables, methods, kernels, ensembles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.model_selection import GridSearchCV

from oversafe import learn
from oversafe.protect import HistogramSynthesizer
from tests.golden.case import case
from tests.golden.output import Output
from tests.golden.tables import cancer, declared, mixed, numeric, sampled

_TINY = {"epochs": 1, "batch_size": 60, "dimension": 8, "depth": 1, "heads": 2}


def _keep(out: Output, model: Any, X: Any, y: Any, name: str = "model") -> None:
    model.fit(X, y)
    out.fitted(model, name)
    rows = X[:30]
    out.number(f"{name}, predicted", model.predict(rows))
    for answer in ("predict_proba", "decision_function"):
        if hasattr(model, answer):
            out.number(f"{name}, {answer}", getattr(model, answer)(rows))
    for attribute in ("coef_", "intercept_", "n_iter_", "feature_names_in_", "n_features_in_"):
        if hasattr(model, attribute):
            out.number(f"{name}, {attribute}", getattr(model, attribute))


def _synthesis(**settings: Any) -> Any:
    return learn.BalancedSynthesisClassifier(HistogramSynthesizer(n_bins=4), n_samples=200, **settings)


# How each is made; a second classifier of the same class has settings of its own.
MAKERS: dict[str, Callable[..., Any]] = {
    "PrivateLogisticRegression": learn.PrivateLogisticRegression,
    "PrivateLinearSVC": learn.PrivateLinearSVC,
    "PrivateThresholdClassifier": learn.PrivateThresholdClassifier,
    "PrivateBaggingClassifier": lambda schema=None, **s: learn.PrivateBaggingClassifier(
        learn.PrivateThresholdClassifier(schema=schema), 3, schema=schema, **s
    ),
    "BalancedSynthesisClassifier": _synthesis,
    "PrivateClassifier": learn.PrivateClassifier,
    "PrivateFTTransformer": lambda **s: learn.PrivateFTTransformer(**{**_TINY, **s}),
}
_NEEDS = {"PrivateFTTransformer": ("opacus",)}
_QUICK = {"PrivateLogisticRegression", "PrivateThresholdClassifier"}


def _public(make: Callable[..., Any], out: Output) -> None:
    X, y = mixed(300)
    _keep(out, make(epsilon=5.0, schema=declared(X, y), random_state=0), X, y)


def _three(make: Callable[..., Any], out: Output) -> None:
    X, y = mixed(300, classes=3, seed=1)
    _keep(out, make(epsilon=8.0, schema=declared(X, y), random_state=0), X, y)


def _undeclared(make: Callable[..., Any], out: Output) -> None:
    X, y = numeric(400, 80, seed=2)
    _keep(out, make(epsilon=4.0, random_state=0), X, y)


def _proven(make: Callable[..., Any], out: Output) -> None:
    X, y = mixed(200, seed=3)
    model = make(schema=declared(X, y)).fit(X, y)
    out.guarantee(model.guarantee_)


for _name, _make in MAKERS.items():
    for _kind, _run in {
        "public domains": _public,
        "three classes": _three,
        "numbers, nothing declared": _undeclared,
        "unseeded": _proven,
    }.items():
        if _kind == "three classes" and _name in ("PrivateThresholdClassifier", "PrivateBaggingClassifier"):
            continue
        case(
            f"learn/{_name}, {_kind}",
            partial(_run, _make),
            covers=(f"learn.{_name}",),
            needs=_NEEDS.get(_name, ()),
            quick=_name in _QUICK and _kind == "public domains",
        )


def _settings(name: str, settings: dict[str, dict[str, Any]], out: Output) -> None:
    X, y = numeric(300, 60, seed=4)
    for label, each in settings.items():
        kind = getattr(learn, name)
        _keep(
            out, kind(random_state=0, classes=[0, 1], **{"data_norm": 20.0, **each}), X.to_numpy(), y, label
        )


case(
    "learn/PrivateLogisticRegression, methods",
    partial(
        _settings,
        "PrivateLogisticRegression",
        {
            "output": {"method": "output"},
            "objective": {"method": "objective"},
            "gaussian": {"method": "gaussian", "delta": 1e-6},
            "published": {"calibration": "paper"},
            "balanced": {"class_weight": "balanced"},
            "weights": {"class_weight": {0: 1.0, 1: 4.0}},
            "no weights": {"class_weight": None, "C": 0.1},
            "no intercept": {"fit_intercept": False},
            "paid scales": {"data_norm": None, "epsilon": 6.0},
            "standard": {"data_norm": 2.0, "scaling": "standard"},
            "no scaling": {"scaling": "none"},
        },
    ),
    covers=("learn.PrivateLogisticRegression",),
)
case(
    "learn/PrivateLinearSVC, methods",
    partial(
        _settings,
        "PrivateLinearSVC",
        {
            "output": {"method": "output"},
            "objective": {"method": "objective", "width": 0.3},
            "gaussian": {"method": "gaussian", "delta": 1e-6},
            "published": {"calibration": "paper"},
            "kernel": {"kernel": "rbf", "n_components": 6, "gamma": 0.1},
            "balanced": {"class_weight": "balanced", "intercept_scaling": 2.0},
        },
    ),
    covers=("learn.PrivateLinearSVC",),
)
case(
    "learn/PrivateThresholdClassifier, settings",
    partial(
        _settings,
        "PrivateThresholdClassifier",
        {"delta": {"delta": 1e-6}, "gamma": {"gamma": 0.2}, "small": {"epsilon": 0.1}},
    ),
    covers=("learn.PrivateThresholdClassifier",),
)


@case("learn/PrivateBaggingClassifier, samplings", covers=("learn.PrivateBaggingClassifier",))
def _bagging(out: Output) -> None:
    X, y = numeric(300, 60, seed=5)
    for sampling in ("disjoint", "stratified", "bootstrap", "subsample"):
        for voting in ("soft", "hard"):
            inner = learn.PrivateLogisticRegression(data_norm=20.0, classes=[0, 1])
            model = learn.PrivateBaggingClassifier(
                inner, 3, 5.0, sampling=sampling, voting=voting, classes=[0, 1], random_state=0
            )
            try:
                _keep(out, model, X, y, f"{sampling}, {voting}")
            except ValueError as error:
                out.text(f"{sampling}, {voting}, refused", str(error))


@case(
    "learn/PrivateFTTransformer, without privacy", covers=("learn.PrivateFTTransformer",), needs=("opacus",)
)
def _transformer(out: Output) -> None:
    X, y = mixed(150, seed=6)
    _keep(out, learn.PrivateFTTransformer(None, random_state=0, **_TINY), X, y)


@case("learn/BalancedSynthesisClassifier, default synthesizer", covers=("learn.BalancedSynthesisClassifier",))
def _balanced(out: Output) -> None:
    X, y = mixed(200, seed=6)
    model = learn.BalancedSynthesisClassifier(
        schema=declared(X, y), epsilon=5.0, n_samples=300, random_state=0
    )
    _keep(out, model, X, y)


@case("learn/choose_classifier", covers=("learn.choose_classifier", "learn.Choice"), quick=True)
def _choose(out: Output) -> None:
    for n_rows, n_columns, n_classes, epsilon, rare in (
        (200, 5, 2, 1.0, None),
        (20_000, 5, 2, 1.0, 0.01),
        (20_000, 200, 3, 0.1, 0.2),
        (1_000_000, 20, 2, 10.0, None),
    ):
        choice = learn.choose_classifier(
            n_rows, n_columns, n_classes=n_classes, epsilon=epsilon, rare_share=rare
        )
        name = f"{n_rows} rows, {n_columns} columns, {n_classes} classes, epsilon {epsilon}, rare {rare}"
        out.number(name, choice.classifier)
        out.text(f"{name}, reason", choice.reason)


@case(
    "learn/threshold bounds",
    covers=("learn.threshold_bounds", "learn.ThresholdBounds", "learn.threshold_scores"),
    quick=True,
)
def _bounds(out: Output) -> None:
    for n, ratio, epsilon, delta in (
        (1000, 10.0, 1.0, 0.0),
        (50_000, 100.0, 0.5, 1e-6),
        (200, 2.0, 5.0, 1e-9),
    ):
        if delta:
            found = learn.threshold_bounds(n, ratio, sigma=1.0, radius=5.0, epsilon=epsilon, delta=delta)
            out.number(f"bounds, {n}, {ratio}, {epsilon}", found)
        out.number(f"scores, {ratio}", learn.threshold_scores(0.5, 2.0, ratio))
    out.number("scores", learn.threshold_scores(0.1, 3.0, 50.0))


@case("learn/a search is warned of", covers=("learn.TuningWarning",))
def _search(out: Output) -> None:
    X, y = numeric(150, 50, seed=7)
    inner = learn.PrivateLogisticRegression(data_norm=20.0, classes=[0, 1], random_state=0)
    search = GridSearchCV(inner, {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    out.guarantee(search.best_estimator_.guarantee_)
    out.number("best", search.best_params_)
    out.number("scores", search.cv_results_["mean_test_score"])


@case("learn/dtypes", covers=("learn.PrivateLogisticRegression",))
def _dtypes(out: Output) -> None:
    X, y = mixed(200, seed=8)
    schema = declared(X, y)
    X["age"] = X["age"].astype("int64[pyarrow]")
    X["town"] = X["town"].astype("string")
    index = [f"row {i}" for i in range(len(X))]
    model = learn.PrivateLogisticRegression(5.0, schema=schema, random_state=0)
    _keep(out, model, X.set_axis(index), y.astype("category").set_axis(index))


@case("learn/what is refused", quick=True)
def _refused(out: Output) -> None:
    X, y = numeric(60, 20)
    kinds = learn.PrivateLogisticRegression, learn.PrivateLinearSVC, learn.PrivateThresholdClassifier
    for kind in kinds:
        for name, call in {
            "epsilon": lambda kind=kind: kind(epsilon=0).fit(X, y),
            "delta": lambda kind=kind: kind(delta=2).fit(X, y),
            "norm": lambda kind=kind: kind(data_norm=-1.0).fit(X, y),
            "scaling": lambda kind=kind: kind(scaling="x").fit(X, y),
            "one class": lambda kind=kind: kind(data_norm=1.0).fit(X, y * 0),
            "unknown class": lambda kind=kind: kind(data_norm=1.0, classes=[5, 6]).fit(X, y),
            "infinite": lambda kind=kind: kind(data_norm=1.0).fit(X / 0, y),
            "columns": lambda kind=kind: kind(data_norm=9.0).fit(X, y).predict(X.iloc[:, :2]),
            "not fitted": lambda kind=kind: kind().predict(X),
        }.items():
            out.error(f"{kind.__name__}, {name}", call)
    out.error("method", lambda: learn.PrivateLogisticRegression(data_norm=1.0, method="x").fit(X, y))
    out.error("kernel", lambda: learn.PrivateLinearSVC(data_norm=1.0, kernel="x").fit(X, y))
    out.error("sampling", lambda: learn.PrivateBaggingClassifier(sampling="x").fit(X, y))


@case("learn/the embedded data set", covers=("learn.PrivateClassifier",))
def _cancer(out: Output) -> None:
    real, holdout = cancer()
    X, y = real.drop(columns="diagnosis"), real["diagnosis"]
    model = learn.PrivateClassifier(3.0, schema=declared(X, y), random_state=0).fit(X, y)
    out.number("predicted", model.predict(holdout.drop(columns="diagnosis")))
    out.fitted(model)


def _on_data(name: str, out: Output) -> None:
    X, y = sampled(name, 400)
    for kind in (learn.PrivateLogisticRegression, learn.PrivateThresholdClassifier, learn.PrivateClassifier):
        model = kind(epsilon=3.0, random_state=0).fit(X, y)
        out.number(f"{kind.__name__}, predicted", model.predict(X))
        out.fitted(model, kind.__name__)


for _name in ("adult", "mammography"):
    case(f"learn/data set {_name}", partial(_on_data, _name), data=True)
