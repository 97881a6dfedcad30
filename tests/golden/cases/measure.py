"""Scores, fidelity, statistics, utility, trade-offs and audits of epsilon."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from oversafe import measure
from oversafe.data import Schema
from oversafe.learn import PrivateLogisticRegression
from oversafe.protect import SMOTE, GaussianCopula, HistogramSynthesizer, RandomOverSampler
from tests.golden.case import case
from tests.golden.output import Output
from tests.golden.tables import PUBLIC, mixed, numeric, sampled


@case("measure/imbalance_scores", covers=("measure.imbalance_scores",), quick=True)
def _scores(out: Output) -> None:
    rng = np.random.default_rng(0)
    y = rng.choice(["no", "yes"], 120, p=[0.85, 0.15])
    score = rng.random(120) * 0.6 + (y == "yes") * 0.3
    predicted = np.where(score > 0.5, "yes", "no")
    own = partial(measure.imbalance_scores, n_bootstrap=50, random_state=0)
    out.table("both", own(y, predicted, score, positive="yes"))
    out.table("predictions", own(y, predicted))
    out.table("scores", own(y, y_score=score, positive="yes", confidence=0.9))
    three = rng.choice(["a", "b", "c"], 150, p=[0.7, 0.2, 0.1])
    probabilities = rng.dirichlet([1, 1, 1], 150)
    out.table("three classes", own(three, np.roll(three, 3), probabilities, labels=["a", "b", "c"]))
    out.error("nothing", lambda: own(y))
    out.error("lengths", lambda: own(y, predicted[:-1]))
    out.error("positive", lambda: own(y, predicted, score, positive="maybe"))


@case("measure/fidelity", covers=("measure.fidelity", "measure.Fidelity"), quick=True)
def _fidelity(out: Output) -> None:
    X, y = mixed(seed=1)
    release, _ = HistogramSynthesizer(5.0, n_bins=4, random_state=0).fit_resample(X, y)
    for statistic in ("mean", "median", "std"):
        found = measure.fidelity(release, X, statistic=statistic, n_bins=6)  # type: ignore[arg-type]
        out.number(f"{statistic}, overall", found.overall)
        out.table(f"{statistic}, by column", found.by_column)
        out.table(f"{statistic}, by pair", found.by_pair)
    out.number("itself", measure.fidelity(X, X).overall)
    out.error("columns", lambda: measure.fidelity(release[["age"]], X[["dose"]]))


@case("measure/friedman_holm", covers=("measure.friedman_holm", "measure.FriedmanHolm"), quick=True)
def _friedman(out: Output) -> None:
    rng = np.random.default_rng(0)
    scores = pd.DataFrame(rng.random((12, 4)) + np.array([0, 0.1, 0.2, 0.4]), columns=list("abcd"))
    for settings in (
        {},
        {"control": "b"},
        {"larger_is_better": False},
        {"control": "a", "alternative": "greater"},
    ):
        out.number(str(settings), measure.friedman_holm(scores, **settings))
    out.error("one method", lambda: measure.friedman_holm(scores[["a"]]))


@case("measure/bayes_sign_test", covers=("measure.bayes_sign_test", "measure.BayesSignTest"))
def _bayes(out: Output) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random(30), rng.random(30) - 0.1
    for settings in ({}, {"rope": 0.1}, {"relative": False, "prior": 2.0}):
        out.number(str(settings), measure.bayes_sign_test(a, b, **settings))


@case("measure/tradeoff", covers=("measure.tradeoff", "measure.frontier"), quick=True)
def _tradeoff(out: Output) -> None:
    privacy = pd.Series({"a": 0.2, "b": 0.5, "c": 0.9, "d": 0.9})
    utility = pd.Series({"a": 0.9, "b": 0.8, "c": 0.6, "d": 0.7})
    out.table("table", measure.tradeoff(privacy, utility, original_utility=0.92))
    out.number("frontier", measure.frontier(privacy, utility))


@case("measure/release_overlap", covers=("measure.release_overlap", "measure.Overlap"), quick=True)
def _overlap(out: Output) -> None:
    train, test, made = (mixed(100, seed=s)[0] for s in (1, 2, 3))
    for n in (0, 2, 30):
        leaked = pd.concat([made, test.iloc[:n]], ignore_index=True)
        for given in ((test, train), (test,)):
            found = measure.release_overlap(leaked, *given)
            out.number(f"{n} leaked, {len(given)} tables", found)
            out.number(f"{n} leaked, {len(given)} tables, leakage", found.is_leakage)


@case("measure/train_on_release", covers=("measure.train_on_release",))
def _on_release(out: Output) -> None:
    X, y = mixed(200, seed=4)
    test = mixed(100, seed=5)
    release = HistogramSynthesizer(5.0, n_bins=4, random_state=0).fit_resample(X, y)
    table = measure.train_on_release(release, test, train=X, random_state=0)
    out.table("quick", table.drop(columns="seconds"))
    own = {"one": LogisticRegression()}
    table = measure.train_on_release(release, test, classifiers=own, positive="healthy", random_state=0)
    out.table("one's own", table.drop(columns="seconds"))


@case("measure/train_on_release, as in the papers", covers=("measure.train_on_release",), needs=("xgboost",))
def _on_release_paper(out: Output) -> None:
    X, y = numeric(150, 40, seed=4)
    table = measure.train_on_release((X, y), numeric(80, 20, seed=5), classifiers="paper", random_state=0)
    out.table("paper", table.drop(columns="seconds"))


@case("measure/train_on_synthetic", covers=("measure.train_on_synthetic", "measure.Utility"))
def _on_synthetic(out: Output) -> None:
    X, y = mixed(150, seed=6)
    for name, protector in {
        "original": None,
        "copula": GaussianCopula(),
        "copies": RandomOverSampler(),
    }.items():
        found = measure.train_on_synthetic(protector, X, y, n_folds=2, random_state=0)
        out.table(f"{name}, scores", found.scores.drop(columns="seconds"))
        out.table(f"{name}, overall", found.overall)
        by_classifier = found.by_classifier
        out.table(f"{name}, by classifier", by_classifier.drop(columns="seconds", errors="ignore"))


@case("measure/train_on_synthetic, tuned", covers=("measure.train_on_synthetic",))
def _tuned(out: Output) -> None:
    X, y = numeric(120, 40, seed=7)
    own = {"one": LogisticRegression()}
    found = measure.train_on_synthetic(SMOTE(), X, y, classifiers=own, n_folds=2, n_repeats=2, random_state=1)
    out.table("overall", found.overall)


@case("measure/privacy_gain", covers=("measure.privacy_gain",))
def _gain(out: Output) -> None:
    X, y = numeric(100, 20, seed=8)
    for name, settings in {
        "outliers": {"n_targets": 2},
        "random": {"targets": "random", "n_targets": 2},
    }.items():
        table = measure.privacy_gain(SMOTE(), X, y, n_train=10, n_test=10, random_state=0, **settings)
        out.table(name, table)


def _laplace(epsilon: float) -> Any:
    def run(values: Any, rng: np.random.Generator, size: int) -> np.ndarray:
        return sum(values) + rng.laplace(scale=1 / epsilon, size=size)

    return run


@case("measure/audit_epsilon", covers=("measure.audit_epsilon", "measure.EpsilonAudit"), quick=True)
def _audit(out: Output) -> None:
    for epsilon in (0.5, 1.0, 3.0):
        for delta in (0.0, 1e-3):
            found = measure.audit_epsilon(
                _laplace(epsilon), [1.0, 0.0], [0.0, 0.0], trials=4000, delta=delta, vectorized=True, random_state=0
            )  # fmt: skip
            out.number(f"{epsilon}, {delta}", found)
    for confidence in (0.8, 0.999):
        out.number(f"confidence {confidence}", measure.audit_epsilon(
            _laplace(1.0), [1.0], [0.0], trials=3000, confidence=confidence, vectorized=True, random_state=1
        ))  # fmt: skip
    out.error("trials", lambda: measure.audit_epsilon(_laplace(1.0), [1], [0], trials=3))
    out.error("confidence", lambda: measure.audit_epsilon(_laplace(1.0), [1], [0], confidence=2.0))


@case("measure/audit_epsilon, distinguishers", covers=("measure.audit_epsilon",))
def _distinguishers(out: Output) -> None:
    def run(table: Any, rng: np.random.Generator, size: int) -> np.ndarray:
        return np.asarray(table) + rng.laplace(scale=1.0, size=(size, 3))

    for distinguisher in ("linear", "forest"):
        found = measure.audit_epsilon(
            run, [0.0, 0.0, 1.0], [0.0, 0.0, 0.0], trials=600, distinguisher=distinguisher, vectorized=True,
            random_state=0,
        )  # fmt: skip
        out.number(distinguisher, found)


def _schema() -> Schema:
    table = pd.DataFrame({"a": [0.0, 10.0], "b": ["x", "y"], "y": ["no", "yes"]})
    schema = Schema.infer(table, label="y")
    for name in schema.names:
        schema = schema.declare(name, **PUBLIC)
    return schema


@case("measure/worst_case_neighbours", covers=("measure.worst_case_neighbours",), quick=True)
def _neighbours(out: Output) -> None:
    for relation in ("replace-one", "add-remove"):
        for crowd in (False, True):
            pairs = measure.worst_case_neighbours(_schema(), n_rows=12, crowd=crowd, relation=relation)  # type: ignore[arg-type]
            for which, (X, y) in zip(("table", "neighbour"), pairs, strict=True):
                out.table(f"{relation}, {crowd}, {which}", X, y)


@case("measure/audit_epsilon of methods", covers=("measure.audit_epsilon",))
def _methods(out: Output) -> None:
    pair = measure.worst_case_neighbours(_schema(), n_rows=30)
    own = HistogramSynthesizer(2.0, schema=_schema(), n_bins=3)
    out.number("histograms", measure.audit_epsilon(own, *pair, trials=30, random_state=0))
    model = PrivateLogisticRegression(2.0, schema=_schema())
    out.number("logistic regression", measure.audit_epsilon(model, *pair, trials=30, random_state=0))


@case("measure/audit_epsilon_one_run", covers=("measure.audit_epsilon_one_run",), quick=True)
def _one_run(out: Output) -> None:
    def noisy_bits(included: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        keep = np.exp(2.0) / (1 + np.exp(2.0))
        return np.where(rng.random(len(included)) < keep, included, ~included).astype(float)

    for delta in (0.0, 1e-3):
        out.number(
            f"bits, {delta}", measure.audit_epsilon_one_run(noisy_bits, 2000, delta=delta, random_state=0)
        )
    out.number(
        "guesses", measure.audit_epsilon_one_run(noisy_bits, 1000, n_guesses=[100, 500], random_state=0)
    )
    rng = np.random.default_rng(0)
    table = rng.normal(size=(60, 2)), np.repeat([0, 1], [40, 20])
    canaries = rng.uniform(-30, 30, size=(40, 2)), np.repeat([0, 1], 20)
    out.number("copies", measure.audit_epsilon_one_run(RandomOverSampler(), canaries, table, random_state=0))


def _on_data(name: str, out: Output) -> None:
    X, y = sampled(name, 200)
    release, labels = GaussianCopula(random_state=0).fit_resample(X, y)
    out.number("fidelity", measure.fidelity(release, X).overall)
    out.number("overlap", measure.release_overlap(release, X))
    scores = measure.train_on_release((release, labels), (X, y), random_state=0)
    out.table("utility", scores.drop(columns="seconds"))


for _name in ("german_credit_20", "abalone"):
    case(f"measure/data set {_name}", partial(_on_data, _name), data=True)
