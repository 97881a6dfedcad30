"""Every proven method audited from inside and some from their releases alone, as they are and with half the noise."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy.stats import beta

from benchmarks.runner import CHECKOUT, Cost, Side, summarize
from oversafe import learn, protect
from oversafe.data import Column, Schema
from oversafe.learn import linear
from oversafe.measure import audit_epsilon, worst_case_neighbours
from oversafe.privacy import gradients, mechanisms

SUMMARY = "lower bounds on epsilon from inside, beside what the claimed noise yields, and with half the noise"
BOTH = ("replace-one", "add-remove")
# Large, so that normal noise shows: at epsilon 1 and 1e-9 it hides all but mu = 0.15 of a record. Networks, of which
# fewer trials fit into a minute, have a larger one.
DELTA, DEEP_DELTA = 1e-3, 0.05
_PUBLIC: dict[str, Any] = {"domain": "public", "source": "by definition"}


def flags(n_columns: int) -> Schema:
    """Return a schema of columns with two categories each."""
    columns = [
        Column(name, "categorical", "object", False, categories=("a", "b"), **_PUBLIC)
        for name in [f"c{i}" for i in range(n_columns)]
    ]
    return Schema((*columns, _LABEL), label="y")


_LABEL = Column("y", "categorical", "object", False, categories=("no", "yes"), **_PUBLIC)
NUMBER = Schema(
    (Column("x", "continuous", "float64", False, bounds=(-1.0, 1.0), **_PUBLIC), _LABEL), label="y"
)


@dataclass(frozen=True)
class Case:
    """A method in a setting in which an auditor sees as much as it gives away.

    Parameters
    ----------
    make : callable
        Of the method, with the settings, a schema and an epsilon of 1.
    settings : dict
        Beside these.
    schema : Schema
        Of the tables.
    rows : int
        How many the tables have.
    same_class : bool
        Whether the differing record is the only one of its class.
    trials : int
        From inside, within a minute.
    relations : tuple of str
        Those that the method has.
    package : str, optional
        What it needs.
    pair : callable, optional
        Of the two tables, where the schema's corners are not the worst; the method is given no schema then.
    halved : int, default=4
        What part of the trials half of the noise takes.
    """

    make: Callable[..., Any]
    settings: dict[str, Any] = field(default_factory=dict)
    schema: Schema = field(default_factory=lambda: flags(1))
    rows: int = 20
    same_class: bool = False
    trials: int = 30_000
    relations: tuple[str, ...] = BOTH
    package: str | None = None
    pair: Callable[[], Any] | None = None
    halved: int = 4

    @property
    def delta(self) -> float:
        """The claimed delta."""
        return float(self.settings.get("delta", 0.0))

    @property
    def missing(self) -> bool:
        """Whether what it needs is not installed."""
        return self.package is not None and find_spec(self.package) is None

    def model(self, relation: str) -> Any:
        """Return the method, not fitted."""
        settings = {"epsilon": 1.0, **({} if self.pair else {"schema": self.schema}), **self.settings}
        if len(self.relations) > 1:
            settings["relation"] = relation
        return self.make(**settings)

    def neighbours(self, relation: str) -> Any:
        """Return the two tables."""
        if self.pair is not None:
            return self.pair()
        return worst_case_neighbours(
            self.schema, n_rows=self.rows, same_class=self.same_class, relation=relation
        )


def _replaced(X: Any, y: Any, first: Any, second: Any, label: str) -> Any:
    """Return two tables whose last record is the one or the other, in the same class."""
    tables = [X.copy(), X.copy()]
    labels = np.append(y[:-1], label)
    for table, record in zip(tables, (first, second), strict=True):
        table[-1] = record
    return [(table, labels) for table in tables]


def _beyond() -> Any:
    """Return tables whose last record alone has its class and lies beyond all others, at either end."""
    X = np.where(np.arange(1000) % 2, 1.0, -1.0)[:, None]
    return _replaced(X, np.full(1000, "no"), 1e6, -1e6, "yes")


def _misplaced(sizes: dict[str, int], across: float) -> Any:
    """Return tables whose last record lies with another class, on either side.

    The classes are told apart by the second column, so well that the last record's own class has nearly no chance
    where it lies: then it pulls as hard as it may. The nearer to the first column's axis, the more its sides differ.
    """
    y = np.repeat(list(sizes), list(sizes.values()))
    X = np.zeros((len(y), 2))
    X[:, 1] = np.where(y == "a", 1.0, np.where(y == "b", -1.0, 0.0))
    along = math.sqrt(1 - across**2)
    return _replaced(X, y, (along, -across), (-along, -across), "a")


def _linear(make: Any, method: str, trials: int, **more: Any) -> Case:
    settings = {"method": method, "fit_intercept": False, **more}
    return Case(make, settings, NUMBER, 1000, True, trials, BOTH[:1])


def _bagging(**settings: Any) -> Any:
    return learn.PrivateBaggingClassifier(learn.PrivateThresholdClassifier(), 2, **settings)


def _from_histograms(**settings: Any) -> Any:
    return learn.BalancedSynthesisClassifier(protect.HistogramSynthesizer(), n_samples=40, **settings)


def _private(trials: int, pair: Callable[[], Any], **settings: Any) -> Case:
    return Case(
        learn.PrivateLogisticRegression, settings, trials=trials, relations=BOTH[:1], pair=pair, halved=1
    )


_GAUSSIAN = {"delta": DELTA}
_THREE = Schema(
    (*NUMBER.features, Column("y", "categorical", "object", False, categories=("a", "b", "c"), **_PUBLIC)),
    label="y",
)
_UNIT = {"data_norm": 1.0, "class_weight": "balanced", "fit_intercept": False}
_SMALL = {**_GAUSSIAN, "n_rounds": 1, "n_products": 8, "embedding": 4, "n_steps": 2}
_MIXED = {"n_steps": 2, "n_components": 2}
_FORMER = {
    "delta": DEEP_DELTA,
    "epochs": 2,
    "batch_size": 10,
    "dimension": 8,
    "depth": 1,
    "heads": 2,
    "dropout": 0.0,
}
_BATCHES = {"delta": DEEP_DELTA, "epochs": 2, "batch_size": 10, "max_grad_norm": 0.01}
_TEACHERS = {"delta": DEEP_DELTA, "n_rounds": 20, "n_votes": 4, "n_teachers": 2}

CASES: dict[str, Case] = {
    "HistogramSynthesizer": Case(protect.HistogramSynthesizer),
    "HistogramSynthesizer, delta": Case(protect.HistogramSynthesizer, _GAUSSIAN, trials=60_000),
    "PrivBayes": Case(protect.PrivBayes, schema=flags(2), rows=1000, trials=120_000),
    "PrivBayes, delta": Case(protect.PrivBayes, _GAUSSIAN, flags(2), 1000, trials=60_000),
    "PrivateMixture": Case(protect.PrivateMixture, {"delta": 0.0, **_MIXED}, trials=120_000),
    "PrivateMixture, delta": Case(
        protect.PrivateMixture, {**_GAUSSIAN, **_MIXED, "pairs": True}, flags(2), trials=50_000
    ),
    "GEM": Case(protect.GEM, _SMALL, flags(2), 1000, package="torch"),
    "MST": Case(protect.MST, _GAUSSIAN, flags(2), 1000, trials=60_000, package="mbi"),
    "AIM": Case(protect.AIM, _GAUSSIAN, flags(2), 1000, package="mbi"),
    "DPGAN": Case(protect.DPGAN, _BATCHES, trials=20_000, package="opacus"),
    "PATEGAN": Case(protect.PATEGAN, _TEACHERS, rows=4, trials=20_000, package="opacus"),
    "PrivateThresholdClassifier": Case(learn.PrivateThresholdClassifier, schema=NUMBER, relations=BOTH[:1]),
    "PrivateThresholdClassifier, delta": Case(
        learn.PrivateThresholdClassifier, _GAUSSIAN, NUMBER, trials=60_000, relations=BOTH[:1]
    ),
    "PrivateBaggingClassifier": Case(_bagging, schema=NUMBER, relations=BOTH[:1]),
    "BalancedSynthesisClassifier": Case(_from_histograms, relations=BOTH[:1]),
    "PrivateLogisticRegression": _linear(learn.PrivateLogisticRegression, "objective", 20_000),
    "PrivateLogisticRegression, output": _linear(learn.PrivateLogisticRegression, "output", 20_000),
    "PrivateLogisticRegression, gaussian": _linear(
        learn.PrivateLogisticRegression, "gaussian", 20_000, delta=DELTA
    ),
    "PrivateLinearSVC": _linear(learn.PrivateLinearSVC, "objective", 20_000, class_weight=None),
    "PrivateLinearSVC, output": _linear(learn.PrivateLinearSVC, "output", 20_000),
    "PrivateLinearSVC, gaussian": _linear(learn.PrivateLinearSVC, "gaussian", 20_000, delta=DELTA),
    "PrivateClassifier": Case(learn.PrivateClassifier, {"delta": 0.0}, NUMBER, 1000, True, 20_000, BOTH[:1]),
    "PrivateFTTransformer": Case(
        learn.PrivateFTTransformer,
        _FORMER,
        NUMBER,
        trials=20_000,
        relations=BOTH[:1],
        package="opacus",
    ),
}


# Settings in which no table was found that moves all answers as far as was paid for: half of the noise still shows.
HARDER: dict[str, Case] = {
    "PrivateLogisticRegression, private scaling": _private(5000, _beyond, classes=["no", "yes"]),
    "PrivateLogisticRegression, private norm": _private(
        20_000, _beyond, classes=["no", "yes"], scaling="none"
    ),
    "PrivateLogisticRegression, balanced": _private(
        20_000, partial(_misplaced, {"a": 300, "b": 9700}, 0.4), classes=["a", "b"], **_UNIT
    ),
    "PrivateLogisticRegression, balanced, three classes": _private(
        20_000, partial(_misplaced, dict.fromkeys("abc", 3000), 0.35), classes=["a", "b", "c"], **_UNIT
    ),
    "PrivateLogisticRegression, three classes": Case(
        learn.PrivateLogisticRegression,
        {"class_weight": None},
        _THREE,
        1000,
        True,
        20_000,
        BOTH[:1],
        halved=1,
    ),
}


@dataclass(frozen=True)
class Release:
    """An audit from the release alone: of whom, between which tables, how often, and how many rows are released."""

    case: Case
    relation: str
    trials: int
    tables: dict[str, Any]
    times: int = 1


_CROWD = {"n_rows": 60, "crowd": True}
RELEASES: dict[str, Release] = {
    "HistogramSynthesizer": Release(CASES["HistogramSynthesizer"], BOTH[1], 2000, _CROWD, 20),
    "PrivBayes": Release(Case(protect.PrivBayes), BOTH[1], 2000, _CROWD, 20),
    "PrivateLogisticRegression": Release(
        CASES["PrivateLogisticRegression"], BOTH[0], 2000, {"n_rows": 1000, "same_class": True}
    ),
    "PrivateThresholdClassifier": Release(CASES["PrivateThresholdClassifier"], BOTH[0], 3000, _CROWD),
}


@contextmanager
def half_noise() -> Iterator[None]:
    """Halve the noise that mechanisms draw, but not what they say of it."""
    laplace, normal, largest = mechanisms._laplace, mechanisms._gaussian, mechanisms._noisy_max
    frequent, steps = mechanisms._gaussian_threshold, gradients.noisy
    spherical, gaussian = linear.spherical_laplace, linear.gaussian
    seeded = mechanisms._seeded_laplace

    def choosing(moved: int, spent: str, budget: float, monotonic: bool) -> Any:
        return largest(moved, spent, (2 if spent == "epsilon" else 4) * budget, monotonic)

    # A quarter of the variance costs twice the epsilon and four times the rho.
    swapped: list[tuple[Any, str, Any]] = [
        (mechanisms, "_laplace", lambda sensitivity, epsilon: laplace(sensitivity, 2 * epsilon)),
        (mechanisms, "_gaussian", lambda sensitivity, rho: normal(sensitivity, 4 * rho)),
        (mechanisms, "_gaussian_threshold", lambda a, b, c, rho, d: frequent(a, b, c, 4 * rho, d)),
        (mechanisms, "_noisy_max", choosing),
        (gradients, "noisy", lambda total, noise, rng: steps(total, noise / 2, rng)),
        (linear, "spherical_laplace", lambda size, scale, rng: spherical(size, scale / 2, rng)),
        (linear, "gaussian", lambda size, scale, rng: gaussian(size, scale / 2, rng)),
        # Of seeded runs, which an audit of releases makes.
        (mechanisms, "_seeded_laplace", lambda shape, scale, rng: seeded(shape, scale / 2, rng)),
    ]
    with ExitStack() as stack:
        for owner, name, own in swapped:
            stack.enter_context(mock.patch.object(owner, name, own))
        yield


def run(quick: bool, folder: Path, rounds: int | None) -> dict[str, Any]:
    """Audit every method under every relation that it has; one round."""
    cases = {**CASES, **HARDER}
    cells = [(name, relation) for name, own in cases.items() for relation in own.relations if not own.missing]
    # What has been done of a run that was stopped is not done again.
    store = folder if quick else CHECKOUT / "benchmarks" / "results" / "tight.local"
    seen = [_kept(store, f"{name}, {relation}", inside, name, relation, quick) for name, relation in cells]
    alone = [_kept(store, f"{name}, alone", outside, name, quick) for name in RELEASES]
    sides = [Side(f"{row['method']}, {row['relation']}", lambda: Cost(0.0), ["oversafe"]) for row in seen]
    summary = summarize("tight", sides, [[Cost(row["seconds"])] for row in seen], quick)
    summary["tables"] = {"from inside": seen, "from the release alone": alone}
    return summary


def _kept(store: Path, name: str, work: Callable[..., dict[str, Any]], *settings: Any) -> dict[str, Any]:
    file = store / f"{name}.json"
    if not file.exists():
        store.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(work(*settings)), encoding="utf-8")
    return json.loads(file.read_text(encoding="utf-8"))


def inside(name: str, relation: str, quick: bool) -> dict[str, Any]:
    """Return a method's bounds from inside, in epsilon where it is pure and else in mu."""
    case = {**CASES, **HARDER}[name]
    trials = 200 if quick else case.trials
    model, (table, neighbour) = case.model(relation), case.neighbours(relation)

    def audit(trials: int) -> Any:
        return audit_epsilon(
            model, table, neighbour, trials=trials, delta=case.delta, view="answers", random_state=0
        )

    # Of the processor, all cores together.
    begin = time.process_time()
    found = audit(trials)
    seconds = time.process_time() - begin
    with half_noise():
        halved = audit(max(trials // case.halved, 100))
    unit = "mu" if case.delta else "epsilon"
    bound, ideal, half = (
        (found.mu, found.ideal_mu, halved.mu)
        if case.delta
        else (found.lower_bound, found.ideal, halved.lower_bound)
    )
    return {
        "method": name,
        "relation": relation,
        "delta": case.delta,
        "in": unit,
        "claimed": 1.0 if unit == "epsilon" else claimed_mu(case.delta),
        "lower bound": bound,
        "ideal": ideal,
        "ratio": bound / ideal,
        "half the noise": half,
        "trials": trials,
        "seconds": seconds,
    }


def outside(name: str, quick: bool) -> dict[str, Any]:
    """Return a method's bounds from its release alone, at which no right one is refuted in a million audits."""
    own = RELEASES[name]
    tables = worst_case_neighbours(own.case.schema, relation=own.relation, **own.tables)
    trials = 40 if quick else own.trials

    def audit() -> tuple[float, float]:
        """Return the bound, and what no chance explains: of the same event, at 1 - 1e-6."""
        model = own.case.model(own.relation)
        found = audit_epsilon(model, *tables, trials=trials, times=own.times, random_state=0)
        hits, others = found.counts
        low = beta.ppf(5e-7, hits, found.trials - hits + 1) if hits else 0.0
        high = beta.ppf(1 - 5e-7, others + 1, found.trials - others) if others < found.trials else 1.0
        return found.lower_bound, max(0.0, math.log(low / high)) if low else 0.0

    begin = time.process_time()
    found, sure = audit()
    seconds = time.process_time() - begin
    with half_noise():
        halved, surely = audit()
    return {
        "method": name,
        "relation": own.relation,
        "claimed": 1.0,
        "lower bound": found,
        "at 1 - 1e-6": sure,
        "half the noise": halved,
        "at 1 - 1e-6, half": surely,
        "trials": trials,
        "seconds": seconds,
    }


def claimed_mu(delta: float, epsilon: float = 1.0) -> float:
    """Return how far apart normal distributions are that (epsilon, delta) allows."""
    from scipy.optimize import brentq

    from oversafe.learn.objective import gaussian_delta

    return float(brentq(lambda mu: gaussian_delta(epsilon, mu) - delta, 1e-3, 10))
