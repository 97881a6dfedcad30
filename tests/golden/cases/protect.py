"""Every protector: on every kind of column, under both relations, with delta, persons and all sorts of domains."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

from oversafe import protect
from oversafe.protect.registry import METHODS, explain, make_protector, method_names
from oversafe.releasing import release
from tests.golden.case import case
from tests.golden.output import Output
from tests.golden.tables import cancer, declared, mixed, numeric, sampled, with_persons


@dataclass(frozen=True)
class Method:
    """A protector in small settings."""

    settings: dict[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    only_numbers: bool = False
    # Fits of all kinds of columns take it too long.
    narrow: bool = False
    # What it depends on beside its seed.
    unstable: dict[str, str] = field(default_factory=dict)


SAMPLERS = {
    "RandomOverSampler": Method(),
    "RandomUnderSampler": Method(),
    "SMOTE": Method(only_numbers=True),
    "SMOTENC": Method(),
    "BorderlineSMOTE": Method(only_numbers=True),
    "ADASYN": Method(only_numbers=True),
    "SVMSMOTE": Method(only_numbers=True),
    "KMeansSMOTE": Method(
        # A number of clusters would give a clustering that shares its work among the cores.
        {"kmeans_estimator": KMeans(4, n_init=1, random_state=0), "cluster_balance_threshold": 0.01},
        only_numbers=True,
    ),
    "PrivateSMOTE": Method({"quasi_identifiers": [2, 5]}),
    "KAnonymizer": Method({"quasi_identifiers": [2, 4], "k_anonymity": 4}),
    "NHSSanitizer": Method({"quasi_identifiers": [2, 4], "k_anonymity": 4}),
}
MODELS = {
    "GaussianCopula": Method(),
    "BayesianNetwork": Method(),
    "SMOTEDP": Method({"epsilon": 1000.0}),
    "UMAPSMOTENC": Method({"n_epochs": 30}, needs=("umap",)),
    "CTGAN": Method({"epochs": 1, "batch_size": 20}, needs=("ctgan",)),
    "TVAE": Method({"epochs": 5, "batch_size": 20}, needs=("ctgan",)),
    "CopulaGAN": Method({"epochs": 1, "batch_size": 20}, needs=("sdv", "ctgan")),
}
PRIVATE = {
    "HistogramSynthesizer": Method({"n_bins": 5}),
    "PrivBayes": Method({"n_bins": 5}),
    "PrivateMixture": Method({"n_bins": 5, "n_steps": 20, "n_components": 20}),
    "MST": Method({"n_bins": 3}, needs=("mbi",), narrow=True),
    "AIM": Method({"n_bins": 3, "max_cells": 60}, needs=("mbi",), narrow=True),
    "GEM": Method(
        {"n_bins": 4, "n_rounds": 1, "n_products": 10, "embedding": 8, "n_steps": 3},
        needs=("torch",),
        narrow=True,
    ),
    "DPGAN": Method({"n_bins": 4, "epochs": 1, "batch_size": 30}, needs=("opacus",), narrow=True),
    "PATEGAN": Method(
        {"n_bins": 4, "n_rounds": 1, "n_votes": 10, "n_teachers": 5}, needs=("opacus",), narrow=True
    ),
}
for _kind in METHODS.values():
    # A new one has its defaults until it is given other settings here.
    if not any(_kind.__name__ in known for known in (SAMPLERS, MODELS, PRIVATE)):
        (SAMPLERS if issubclass(_kind, protect.Sampler) else MODELS)[_kind.__name__] = Method()
# The default tier compares one case of each of these.
QUICK = {
    "SMOTE",
    "SMOTENC",
    "PrivateSMOTE",
    "KAnonymizer",
    "GaussianCopula",
    "HistogramSynthesizer",
    "PrivBayes",
}


def made(name: str, method: Method, **changes: Any) -> Any:
    """Return a protector with its seed and small settings."""
    settings = {**method.settings, **changes}
    return getattr(protect, name)(**{"random_state": 0, **settings})


def _arity(name: str) -> bool:
    return "rows_per_person" in getattr(protect, name)._get_param_names()


def _narrowed(method: Method, X: pd.DataFrame, more: tuple[str, ...] = ()) -> pd.DataFrame:
    return X[["dose", "visits", "ward", "smoker", *more]] if method.narrow else X


def _keep(out: Output, model: Any, X: Any, y: Any, name: str = "release") -> None:
    release, labels = model.fit_resample(X, y)
    out.table(name, release, labels)
    out.fitted(model, name)


def _on_mixed(name: str, method: Method, out: Output) -> None:
    X, y = numeric() if method.only_numbers else mixed()
    _keep(out, made(name, method), X, y)


def _on_array(name: str, method: Method, out: Output) -> None:
    """An array, labels that are numbers, three classes."""
    X, y = numeric(180, 40, seed=3)
    y = y.where(np.arange(180) % 6 > 0, 2).to_numpy()
    if name in ("KAnonymizer", "NHSSanitizer", "PrivateSMOTE"):
        method = Method({**method.settings, "quasi_identifiers": [0, 1]})
    _keep(out, made(name, method), X.to_numpy(), y)


def _odd_frame() -> tuple[pd.DataFrame, pd.Series]:
    """Nullable and Arrow dtypes, a Categorical label, an index of its own."""
    X, y = mixed(90, seed=4)
    X = X.drop(columns=["exact", "admitted"])
    X["dose"] = X["dose"].astype("Float32")
    X["age"] = X["age"].astype("int64[pyarrow]")
    X["town"] = X["town"].astype("string")
    X["smoker"] = X["smoker"].astype("boolean")
    index = pd.Index([f"row {i}" for i in range(len(X))])
    return X.set_axis(index), y.astype("category").set_axis(index)


def _on_dtypes(name: str, method: Method, out: Output) -> None:
    X, y = _odd_frame()
    _keep(out, made(name, method), X, y)


def _balanced(name: str, method: Method, out: Output) -> None:
    """Ways to say how many rows of each class, and ``sample``."""
    X, y = mixed(100, classes=3, seed=5)
    model = made(name, method, sampling_strategy="auto").fit(X, y)
    out.fitted(model)
    out.table("balanced", *model.sample())
    out.table("n rows", *model.sample(17))
    out.table("counts", *model.sample(class_counts={"ill": 5, "healthy": 2}))
    other = made(name, method, sampling_strategy={"ill": 40}).fit(X, y)
    out.table("dict", *other.sample())


def _public(name: str, method: Method, out: Output, *, relation: str) -> None:
    X, y = mixed()
    X = _narrowed(method, X)
    schema = declared(X, y)
    delta = {"delta": 1e-6} if relation == "replace-one" else {}
    _keep(out, made(name, method, schema=schema, epsilon=3.0, relation=relation, **delta), X, y)


def _from_data(name: str, method: Method, out: Output) -> None:
    X, y = mixed(seed=2)
    X = _narrowed(method, X)
    _keep(out, made(name, method, epsilon=3.0), X, y)


def _estimated(name: str, method: Method, out: Output) -> None:
    X, y = mixed(150, seed=6)
    X = _narrowed(method, X)
    settings = {"domains": "private", "classes": ["healthy", "ill"], "epsilon": 40.0, "delta": 1e-4}
    _keep(out, made(name, method, **settings), X, y)


def _persons(name: str, method: Method, out: Output) -> None:
    X, y, schema = with_persons()
    if method.narrow:
        X = _narrowed(method, X, ("pid",))
        schema = schema.drop([name for name in schema.names if name not in (*X.columns, y.name)])
    _keep(out, made(name, method, schema=schema, rows_per_person=2, epsilon=4.0), X, y)
    out.error("without a bound", lambda: made(name, method, schema=schema).fit(X, y))


def _proven(name: str, method: Method, out: Output) -> None:
    """What an unseeded fit promises: the release itself cannot be the same twice."""
    X, y = mixed()
    X = _narrowed(method, X)
    schema = declared(X, y)
    for relation in ("replace-one", "add-remove"):
        model = made(name, method, schema=schema, relation=relation, random_state=None)
        out.guarantee(model.fit(X, y).guarantee_, relation)
        out.number(f"{relation}, schema", model.schema_)
        out.number(f"{relation}, dtypes", [str(dtype) for dtype in model.sample(5)[0].dtypes])


def _add(kind: str, run: Callable[..., None], name: str, method: Method, **more: Any) -> None:
    quick = more.pop("quick", False)
    case(
        f"protect/{name}, {kind}",
        partial(run, name, method, **more),
        covers=(f"protect.{name}",),
        needs=method.needs,
        quick=quick,
        unstable=method.unstable,
    )


for _name, _method in (SAMPLERS | MODELS).items():
    _add("numbers" if _method.only_numbers else "all kinds", _on_mixed, _name, _method, quick=_name in QUICK)
    _add("array", _on_array, _name, _method)
    if not _method.only_numbers and "ctgan" not in _method.needs:
        if _name in MODELS:
            _add("dtypes", _on_dtypes, _name, _method)
            _add("balanced", _balanced, _name, _method)
        elif _name not in ("PrivateSMOTE", "KAnonymizer", "NHSSanitizer"):
            _add("dtypes", _on_dtypes, _name, _method)
for _name, _method in PRIVATE.items():
    _add("replace-one", _public, _name, _method, relation="replace-one", quick=_name in QUICK)
    _add("add-remove", _public, _name, _method, relation="add-remove")
    _add("domains from the data", _from_data, _name, _method)
    _add("domains estimated", _estimated, _name, _method)
    _add("unseeded", _proven, _name, _method)
    if _arity(_name):
        _add("persons", _persons, _name, _method)
    if _name in ("HistogramSynthesizer", "PrivBayes", "PrivateMixture"):
        _add("array", _on_array, _name, _method)
        _add("dtypes", _on_dtypes, _name, _method)
        _add("balanced", _balanced, _name, _method)


def _missing_extra(name: str, package: str, out: Output) -> None:
    X, y = mixed(60)
    with mock.patch.dict(sys.modules, {package: None}):
        out.error("not installed", lambda: getattr(protect, name)().fit(X, y))


for _name, _package in {
    "CTGAN": "ctgan",
    "TVAE": "ctgan",
    "CopulaGAN": "sdv",
    "AIM": "mbi",
    "MST": "mbi",
    "UMAPSMOTENC": "umap",
    "DPGAN": "torch",
    "PATEGAN": "torch",
    "GEM": "torch",
}.items():
    case(
        f"protect/{_name}, not installed",
        partial(_missing_extra, _name, _package),
        covers=(f"protect.{_name}",),
    )


# ------------------------------------------------------------------------------------------ what is particular


@case("protect/HistogramSynthesizer, quantiles", covers=("protect.HistogramSynthesizer",))
def _quantiles(out: Output) -> None:
    X, y = mixed(seed=7)
    model = protect.HistogramSynthesizer(
        5.0, schema=declared(X, y), binning="quantile", n_bins=6, random_state=1
    )
    _keep(out, model, X, y)


@case("protect/PrivBayes, degrees", covers=("protect.PrivBayes",))
def _degrees(out: Output) -> None:
    X, y = mixed(seed=8)
    for degree in (0, 1, 3):
        model = protect.PrivBayes(
            20.0, degree=degree, n_bins=4, schema=declared(X, y), usefulness=1, random_state=1
        )
        out.table(f"degree {degree}", *model.fit_resample(X, y))
    out.fitted(model)


@case("protect/PrivateMixture, pairs", covers=("protect.PrivateMixture",))
def _pairs(out: Output) -> None:
    X, y = mixed(seed=8)
    for pairs in (True, False):
        model = protect.PrivateMixture(
            20.0, pairs=pairs, n_steps=20, n_components=10, n_bins=4, schema=declared(X, y), random_state=1
        )
        out.table(f"pairs {pairs}", *model.fit_resample(X, y))
        out.fitted(model, f"pairs {pairs}")


@case("protect/GEM, marginals", covers=("protect.GEM",), needs=("torch",))
def _marginals(out: Output) -> None:
    X, y = mixed(seed=8)
    X = _narrowed(PRIVATE["GEM"], X)
    for marginals in ("all", "label"):
        settings = {**PRIVATE["GEM"].settings, "marginals": marginals, "random_state": 2}
        try:
            model = protect.GEM(20.0, schema=declared(X, y), **settings)
            out.table(marginals, *model.fit_resample(X, y))
        except ValueError as error:
            out.text(marginals, str(error))


@case("protect/SMOTEDP, a synthesizer of one's own", covers=("protect.SMOTEDP",))
def _smote_dp(out: Output) -> None:
    X, y = mixed(seed=9)
    schema = declared(X, y)
    for run_at in ("nominal", "proven"):
        inner = protect.HistogramSynthesizer(n_bins=4, schema=schema)
        model = protect.SMOTEDP(
            inner, epsilon=60.0, k_neighbors=2, run_at=run_at, schema=schema, random_state=3
        )
        try:
            _keep(out, model, X, y, run_at)
        except ValueError as error:
            out.text(run_at, str(error))


@case("protect/PrivateSMOTE, all rows", covers=("protect.PrivateSMOTE",))
def _private_smote(out: Output) -> None:
    X, y = mixed(seed=10)
    model = protect.PrivateSMOTE(
        0.5, quasi_identifiers=["age", "ward"], n_copies=2, synthesize="all", random_state=4
    )
    _keep(out, model, X, y, "all")
    one = protect.PrivateSMOTE(5.0, quasi_identifiers=["grade"], k_anonymity=5, k_neighbors=3, random_state=4)
    _keep(out, one, X, y, "high-risk")


@case("protect/KAnonymizer, closeness and hierarchies", covers=("protect.KAnonymizer",))
def _closeness(out: Output) -> None:
    X, y = mixed(seed=11)
    tree = {"north": "country", "south": "country", "east": "border"}
    settings: list[dict[str, Any]] = [
        {"l_diversity": 2, "sensitive": "smoker"},
        {"t_closeness": 0.5, "sensitive": "smoker", "output": "ranges"},
        {"hierarchies": {"ward": tree}, "max_suppression": 0.1, "output": "ranges"},
    ]
    for number, each in enumerate(settings):
        model = protect.KAnonymizer(4, ["age", "ward"], random_state=0, **each)
        try:
            _keep(out, model, X, y, str(number))
        except ValueError as error:
            out.text(f"{number}, refused", str(error))


@case("protect/NHSSanitizer, settings", covers=("protect.NHSSanitizer",))
def _sanitizer(out: Output) -> None:
    X, y = mixed(200, seed=12)
    model = protect.NHSSanitizer(["age", "ward"], 5, cap=0.9, n_bins=4, max_suppression=0.4, random_state=0)
    _keep(out, model, X, y)


@case("protect/UMAPSMOTENC, settings", covers=("protect.UMAPSMOTENC",), needs=("umap",))
def _umap(out: Output) -> None:
    X, y = mixed(100, seed=13)
    for interpolation, categories in (("box", "vote"), ("triangle", "surroundings")):
        model = protect.UMAPSMOTENC(
            3, n_epochs=20, interpolation=interpolation, categories=categories, graph_categories=True,
            random_state=0,
        )  # fmt: skip
        _keep(out, model, X, y, interpolation)


@case("protect/suggest_quasi_identifiers", covers=("protect.suggest_quasi_identifiers",), quick=True)
def _suggest(out: Output) -> None:
    X, _ = mixed(200, seed=14)
    out.table("suggested", protect.suggest_quasi_identifiers(X))
    out.table("few", protect.suggest_quasi_identifiers(X, k_anonymity=5, max_columns=2, n_sets=4))


@case("protect/imbalanced-learn's settings", covers=("protect.SMOTE", "protect.BorderlineSMOTE"))
def _settings(out: Output) -> None:
    X, y = numeric(200, 40, seed=15)
    models = {
        "ratio": protect.SMOTE(sampling_strategy=0.7, k_neighbors=3, random_state=1),
        "dict": protect.SMOTE(sampling_strategy={1: 90}, random_state=1),
        "borderline-2": protect.BorderlineSMOTE(kind="borderline-2", m_neighbors=5, random_state=1),
        "svm": protect.SVMSMOTE(out_step=0.2, k_neighbors=3, random_state=1),
        "adasyn": protect.ADASYN(n_neighbors=3, random_state=1),
        "under": protect.RandomUnderSampler(replacement=True, random_state=1),
    }
    for name, model in models.items():
        out.table(name, *model.fit_resample(X, y))


@case("protect/what is refused", quick=True)
def _refused(out: Output) -> None:
    X, y = mixed(60)
    numbers, labels = numeric(60, 3)
    refused: dict[str, Callable[[], Any]] = {
        "epsilon": lambda: protect.HistogramSynthesizer(-1.0).fit(X, y),
        "delta": lambda: protect.PrivBayes(delta=1.5).fit(X, y),
        "random state": lambda: protect.SMOTE(random_state="x").fit(numbers, labels),
        "few neighbours": lambda: protect.SMOTE(k_neighbors=5).fit_resample(numbers, labels),
        "relation": lambda: protect.HistogramSynthesizer(relation="remove").fit(X, y),
        "domains": lambda: protect.HistogramSynthesizer(domains="public").fit(X, y),
        "strategy": lambda: protect.GaussianCopula(sampling_strategy="most").fit(X, y),
        "class": lambda: protect.GaussianCopula().fit(X, y).sample(class_counts={"dead": 3}),
        "quasi-identifiers": lambda: protect.KAnonymizer(3, ["postcode"]).fit(X, y),
        "lengths": lambda: protect.GaussianCopula().fit(X, y[:-1]),
        "labels": lambda: protect.GaussianCopula().fit(X, y.where(y == "ill")),
        "text to SMOTE": lambda: protect.SMOTE().fit_resample(X, y),
        "not fitted": lambda: protect.GaussianCopula().sample(),
        "jobs": lambda: protect.HistogramSynthesizer(n_jobs=0).fit(X, y),
        "method": lambda: make_protector("smite"),
    }
    for name, call in refused.items():
        out.error(name, call)


@case("protect/methods by name", covers=("protect.PrivateMixture",), quick=True)
def _by_name(out: Output) -> None:
    out.number("names", method_names())
    out.number("classes", {name: kind.__name__ for name, kind in METHODS.items()})
    for name, kind in METHODS.items():
        asks = {"quasi_identifiers": ["a"]} if "quasi_identifiers" in kind._get_param_names() else {}
        epsilon = 2.0 if "epsilon" in kind._get_param_names() else None
        balance = issubclass(kind, protect.Synthesizer)
        out.number(name, make_protector(name, epsilon=epsilon, balance=balance, random_state=1, **asks))
        out.text(f"explained, {name}", explain(name))


@case("protect/releases of a table in memory", covers=("releasing.release", "releasing.Release"), quick=True)
def _released(out: Output) -> None:
    real, _ = cancer()
    schema = declared(real.drop(columns="diagnosis"), real["diagnosis"])
    for name, given in {
        "histograms": {"epsilon": 1.0, "schema": schema, "rows": 90},
        "mixture": {"epsilon": 9.0, "balance": True, "drop": ["mean_area"], "settings": {"n_steps": 20}},
        "private-smote": {"quasi_identifiers": ["mean_area"], "drop_unlabelled": True},
    }.items():
        notes: list[str] = []
        made = release(real, "diagnosis", method=name, random_state=0, on_note=notes.append, **given)
        out.table(name, made.table)
        out.guarantee(made.guarantee, name)
        out.number(f"{name}, settings", dict(made.settings))
        out.number(f"{name}, shuffled", made.shuffled)
        out.text(f"{name}, notes", notes)
    for name, given in {
        "label": {"label": None},
        "strict": {"strict": True},
        "rows": {"method": "smote", "rows": 9},
        "left out": {"drop": ["x"]},
    }.items():
        out.error(name, partial(release, real, **{"label": "diagnosis", **given}))


@case("protect/the embedded data set", covers=("protect.SMOTE", "protect.GaussianCopula"))
def _cancer(out: Output) -> None:
    real, _ = cancer()
    X, y = real.drop(columns="diagnosis"), real["diagnosis"]
    for name in ("SMOTE", "ADASYN", "BorderlineSMOTE"):
        out.table(name, *made(name, SAMPLERS[name]).fit_resample(X, y))
    for name in ("GaussianCopula", "HistogramSynthesizer"):
        out.table(name, *getattr(protect, name)(random_state=0).fit_resample(X, y))


def _on_data(name: str, out: Output) -> None:
    X, y = sampled(name)
    models = [
        protect.GaussianCopula(),
        protect.HistogramSynthesizer(5.0, n_bins=6),
        protect.BayesianNetwork(),
    ]
    for model in models:
        model.set_params(random_state=0)
        _keep(out, model, X, y, type(model).__name__)


for _name in ("adult", "abalone_19", "german_credit_20", "car_eval_34"):
    case(f"protect/data set {_name}", partial(_on_data, _name), data=True)
