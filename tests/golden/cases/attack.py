"""Every attack: where it finds something, where it does not, on numbers, mixed tables and arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.neighbors import KNeighborsClassifier

from oversafe import attack
from oversafe.protect import SMOTE, SMOTENC, GaussianCopula, HistogramSynthesizer, RandomOverSampler
from tests.golden.case import case
from tests.golden.output import Output
from tests.golden.tables import cancer, mixed, numeric, sampled


def _smote(k: int = 5, ratio: float = 1.0, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the minority of the embedded data set, and SMOTE's rows of that class, the real ones first."""
    real, _ = cancer()
    X, y = real.drop(columns="diagnosis"), real["diagnosis"]
    made, labels = SMOTE(k_neighbors=k, sampling_strategy=ratio, random_state=seed).fit_resample(X, y)
    return X[y == "malignant"].reset_index(drop=True), made[labels == "malignant"].reset_index(drop=True)


def _recon(out: Output, rows: pd.DataFrame, real: pd.DataFrame, name: str = "", **settings: Any) -> None:
    own = attack.ReconSMOTE(**settings)
    found = own.run(rows)
    out.attack(found, f"{name} result")
    out.number(f"{name} score", found.score(real))
    out.table(f"{name} records", found.records)
    if len(found.records):
        out.table(f"{name} proof", found.proof(0))


@case("attack/ReconSMOTE, released rows", covers=("attack.ReconSMOTE",), quick=True)
def _reconstruct(out: Output) -> None:
    real, rows = _smote()
    _recon(out, rows, real)


@case("attack/ReconSMOTE, made rows alone", covers=("attack.ReconSMOTE",))
def _reconstruct_made(out: Output) -> None:
    for k in (3, 5):
        real, rows = _smote(k, seed=1)
        _recon(out, rows.iloc[len(real) :].reset_index(drop=True), real, f"k {k}")


@case("attack/ReconSMOTE, settings", covers=("attack.ReconSMOTE",))
def _reconstruct_settings(out: Output) -> None:
    real, rows = _smote(ratio=0.6, seed=2)
    for name, settings in {
        "neighbours": {"n_neighbors": 40},
        "lines": {"min_lines": 4},
        "not expanded": {"expand": False},
        "ratio": {"ratio": 0.6, "k_neighbors": 4},
        "tolerance": {"tolerance": 1e-6},
    }.items():
        _recon(out, rows, real, name, **settings)


@case("attack/ReconSMOTE, rounded and noised", covers=("attack.ReconSMOTE",))
def _reconstruct_rounded(out: Output) -> None:
    real, rows = _smote(seed=3)
    noise = np.random.default_rng(0).normal(scale=1e-3, size=rows.shape)
    _recon(out, rows.round(6), real, "six decimals")
    _recon(out, rows.round(2), real, "two decimals")
    _recon(out, rows + noise, real, "noise")


@case("attack/ReconSMOTE, array and few rows", covers=("attack.ReconSMOTE",))
def _reconstruct_array(out: Output) -> None:
    _, rows = _smote(seed=4)
    out.attack(attack.ReconSMOTE().run(rows.to_numpy()), "array")
    for n in (0, 1, 3):
        out.error(f"{n} rows", lambda n=n: attack.ReconSMOTE().run(rows.iloc[:n]))
        try:
            out.attack(attack.ReconSMOTE().run(rows.iloc[:n]), f"{n} rows")
        except ValueError:
            continue


@case("attack/ReconSMOTE, mixed columns", covers=("attack.ReconSMOTE",))
def _reconstruct_mixed(out: Output) -> None:
    X, y = mixed(250, seed=5)
    X = X.drop(columns=["admitted", "visits"]).dropna().astype({"town": "category"})
    y = y.loc[X.index]
    made, labels = SMOTENC(random_state=0).fit_resample(X, y)
    found = attack.ReconSMOTE().run(made[labels == "ill"].reset_index(drop=True))
    out.attack(found)


@case("attack/RecoverSeed", covers=("attack.RecoverSeed",))
def _recover_seed(out: Output) -> None:
    table, _ = cancer()
    X, rare = table.drop(columns="diagnosis"), table["diagnosis"] == "malignant"
    for name, seed in {"usual": 42, "not usual": 3_141_592_653}.items():
        made = SMOTE(random_state=seed).fit_resample(X, rare)[0].iloc[len(X) :].reset_index(drop=True)
        own = attack.RecoverSeed(int(rare.sum()), max_work=1e7)
        for how, rows in {
            "shuffled": made.sample(frac=1, random_state=0).reset_index(drop=True),
            "rounded": made.round(2),
        }.items():
            found = own.run(rows, X[rare], known=X[~rare])
            out.attack(found, f"{name}, {how}")
            out.table(f"{name}, {how}, records", found.records)
            out.number(f"{name}, {how}, p", found.p_wrong)


@case("attack/DistinSMOTE, augmented rows", covers=("attack.DistinSMOTE",), quick=True)
def _distinguish(out: Output) -> None:
    real, rows = _smote()
    truth = np.arange(len(rows)) < len(real)
    for name, table in {
        "exact": rows,
        "rounded": rows.round(4),
        "shuffled": rows.sample(frac=1, random_state=0),
    }.items():
        found = attack.DistinSMOTE().run(table.reset_index(drop=True))
        out.attack(found, name)
        if name != "shuffled":
            out.number(f"{name}, score", found.score(truth))


@case("attack/DistinSMOTE, settings", covers=("attack.DistinSMOTE",))
def _distinguish_settings(out: Output) -> None:
    real, rows = _smote(3, 0.5, seed=1)
    for name, settings in {
        "neighbours": {"n_neighbors": 30},
        "three": {"k_neighbors": 3, "ratio": 0.5},
        "tolerance": {"tolerance": 1e-5},
    }.items():
        out.attack(attack.DistinSMOTE(**settings).run(rows), name)
    out.attack(attack.DistinSMOTE().run(real), "nothing made")
    out.attack(attack.DistinSMOTE().run(rows.to_numpy()), "array")


@case(
    "attack/bounds",
    covers=("attack.reconstruction_recall_bound", "attack.neighbour_mutuality", "attack.identifiable_share"),
    quick=True,
)
def _bounds(out: Output) -> None:
    real, _ = _smote()
    for n, made, k in ((15, 285, 5), (50, 100, 5), (100, 50, 3), (20, 1000, 10)):
        for settings in (
            {},
            {"exact": False},
            {"tight": True},
            {"mutuality": 0.6},
            {"mutuality": 0.6, "tight": True},
        ):
            label = f"{n}, {made}, {k}, {settings}"
            try:
                out.number(label, attack.reconstruction_recall_bound(n, made, k, **settings))
            except ValueError as error:
                out.text(f"{label}, refused", str(error))
    for k in (1, 3, 5):
        out.number(f"mutuality, {k}", attack.neighbour_mutuality(real, k))
        out.number(f"identifiable, {k}", [attack.identifiable_share(real, m, k) for m in (10, 100, 1000)])


@case("attack/ExactCopies", covers=("attack.ExactCopies",), quick=True)
def _copies(out: Output) -> None:
    X, _ = mixed(seed=6)
    held, _ = mixed(seed=7)
    kept = pd.concat([X.iloc[:30], held.iloc[:3], X.iloc[:10]], ignore_index=True)
    for both in (True, False):
        out.attack(attack.ExactCopies(both).run(kept, X), f"both ways {both}")
        out.attack(attack.ExactCopies(both).run(kept, X, held), f"both ways {both}, holdout")
    out.attack(attack.ExactCopies().run(held, X), "none")
    out.attack(attack.ExactCopies().run(kept.astype(object), X.convert_dtypes()), "other dtypes")
    numbers, _ = numeric()
    out.attack(attack.ExactCopies().run(numbers.round(1), numbers), "rounded")


Tables = tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]


def _three_tables(seed: int = 8) -> Tables:
    """Return a release with half of the real rows, the real table, and other rows."""
    X, _ = mixed(240, seed=seed)
    real, holdout = X.iloc[:120].reset_index(drop=True), X.iloc[120:].reset_index(drop=True)
    fresh, _ = mixed(60, seed=seed + 1)
    return pd.concat([real.iloc[:60], fresh], ignore_index=True), real, holdout


def _linkage(name: str, settings: dict[str, dict[str, Any]], out: Output) -> None:
    release, real, holdout = _three_tables()
    for label, each in settings.items():
        own = getattr(attack, name)(random_state=0, n_attacks=60, **each)
        out.attack(own.run(release, real, holdout), label)
        try:
            out.attack(own.run(release, real), f"{label}, no holdout")
        except (TypeError, ValueError) as error:
            out.text(f"{label}, no holdout, refused", str(error))


LINKAGE: dict[str, dict[str, dict[str, Any]]] = {
    "Linkability": {
        "columns": {"columns_a": ["age", "ward", "dose"], "columns_b": ["grade", "exact", "town"]},
        "chosen": {},
        "neighbours": {"n_neighbors": 3},
        "published": {"protocol": "published", "columns_a": ["age", "ward"], "columns_b": ["dose", "exact"]},
    },
    "SinglingOut": {
        "multivariate": {},
        "univariate": {"mode": "univariate"},
        "two columns": {"n_columns": 2},
    },
    "AttributeInference": {
        "all": {},
        "secret": {"secret": "dose", "known": ["age", "ward"]},
        "category": {"secret": "ward", "n_neighbors": 3},
        "tolerance": {"secret": "exact", "tolerance": 0.2},
    },
}
for _name, _each in LINKAGE.items():
    case(f"attack/{_name}", partial(_linkage, _name, _each), covers=(f"attack.{_name}",))


@case("attack/RareValues", covers=("attack.RareValues",), quick=True)
def _rare_values(out: Output) -> None:
    release, real, holdout = _three_tables()
    for name, made in {"fresh": release, "handed out": real.sample(frac=0.8, random_state=0)}.items():
        out.attack(attack.RareValues().run(made, real, holdout), name)
        out.attack(attack.RareValues().run(made, real), f"{name}, no holdout")


@case("attack/ClosestRecord", covers=("attack.ClosestRecord",))
def _closest(out: Output) -> None:
    release, real, holdout = _three_tables()
    numbers = ["dose", "exact", "age"]
    for metric, columns in (("euclidean", numbers), ("gower", list(real))):
        own = attack.ClosestRecord(metric=metric, random_state=0)
        tables = [t[columns].dropna().reset_index(drop=True) for t in (release, real, holdout)]
        out.attack(own.run(*tables), metric)
        out.attack(own.run(*tables[:2]), f"{metric}, no holdout")
    out.attack(attack.ClosestRecord(20, random_state=0).run(*tables), "few rows")


@case("attack/NaiveDistinguisher", covers=("attack.NaiveDistinguisher",))
def _naive(out: Output) -> None:
    release, real, holdout = _three_tables()
    for protocol in ("copies", "published"):
        own = attack.NaiveDistinguisher(2, protocol=protocol, random_state=0)
        for name, tables in {"real": (release, real), "holdout": (release, real, holdout)}.items():
            try:
                out.attack(own.run(*tables), f"{protocol}, {name}")
            except (TypeError, ValueError) as error:
                out.text(f"{protocol}, {name}, refused", str(error))
    judged = attack.NaiveDistinguisher(2, classifier=KNeighborsClassifier(1), random_state=0)
    out.attack(judged.run(release[["exact", "age"]], real[["exact", "age"]]), "another classifier")


_GAME = {"n_targets": 3, "n_train": 20, "n_test": 20, "random_state": 0}


def _hog(protector: Callable[[], Any], settings: dict[str, Any], kinds: bool, out: Output) -> None:
    X, y = mixed(100, seed=9) if kinds else numeric(120, 20, seed=9)
    if settings.get("targets") == "two":
        settings = {**settings, "targets": np.flatnonzero((y == y.value_counts().index[-1]).to_numpy())[:2]}
    own = attack.GroundHog(**{**_GAME, **settings})
    out.attack(own.run(protector(), X, y))


for _name, (_protector, _settings, _kinds) in {
    "SMOTE": (SMOTE, {}, False),
    "SMOTE, correlations of outliers": (SMOTE, {"features": "correlation", "targets": "outliers"}, False),
    "SMOTE, per record": (SMOTE, {"per_record": True}, False),
    "copies, mixed columns": (RandomOverSampler, {"n_train": 10, "n_test": 10}, True),
    "histograms, mixed columns": (
        partial(HistogramSynthesizer, n_bins=4),
        {"targets": "two", "n_train": 6, "n_test": 6},
        True,
    ),
    "copula": (GaussianCopula, {"n_train": 10, "n_test": 10, "features": "correlation"}, False),
}.items():
    case(
        f"attack/GroundHog, {_name}",
        partial(_hog, _protector, _settings, _kinds),
        covers=("attack.GroundHog", "attack.MembershipResult"),
    )


@case(
    "attack/ShadowClassifier",
    covers=("attack.ShadowClassifier", "attack.MembershipResult"),
    unstable={"findings/SMOTE/*": "the last digits of its classifiers hang on the processor"},
)
def _shadow(out: Output) -> None:
    X, y = numeric(100, 20, seed=10)
    for name, settings, protector in (
        ("confidence", {}, None),
        ("likelihood ratio", {"score": "likelihood-ratio"}, None),
        ("neighbour", {"classifier": KNeighborsClassifier(1), "targets": "outliers"}, None),
        ("SMOTE", {"targets": [81, 90]}, SMOTE()),
    ):
        own = attack.ShadowClassifier(**{"n_targets": 3, "n_models": 16, "random_state": 0, **settings})
        out.attack(own.run(X, y, protector=protector), name)


@case("attack/AttackResult", covers=("attack.AttackResult",), quick=True)
def _result(out: Output) -> None:
    evidence = pd.DataFrame({"row": [1]})
    out.attack(attack.AttackResult("Mine", "linkage", 1 + 1e-12, (-1e-12, 1.0), evidence, {"x": 1}))
    for name, changes in {
        "threat": {"threat": "x"},
        "risk": {"risk": 2.0},
        "interval": {"interval": (0.9, 0.1)},
        "evidence": {"evidence": None},
    }.items():
        given = {
            "name": "Mine",
            "threat": "linkage",
            "risk": 0.5,
            "interval": (0.1, 0.9),
            "evidence": evidence,
        }
        out.error(name, lambda given={**given, **changes}: attack.AttackResult(**given))


@case("attack/what is refused", quick=True)
def _refused(out: Output) -> None:
    release, real, holdout = _three_tables()
    X, y = numeric()
    for name, call in {
        "columns": lambda: attack.ExactCopies().run(release, real.rename(columns={"age": "years"})),
        "unknown columns": lambda: attack.Linkability(["nothing"], ["age"]).run(release, real, holdout),
        "secret": lambda: attack.AttributeInference("nothing").run(release, real, holdout),
        "mode": lambda: attack.SinglingOut("x").run(release, real, holdout),
        "attacks": lambda: attack.SinglingOut(n_attacks=0).run(release, real, holdout),
        "one class": lambda: attack.GroundHog(3, 10, 10).run(SMOTE(), X, y * 0),
        "lengths": lambda: attack.GroundHog(3, 10, 10).run(SMOTE(), X, y[:-1]),
        "texts": lambda: attack.ReconSMOTE().run(pd.DataFrame({"a": ["x", "y"] * 5})),
        "neighbours": lambda: attack.ReconSMOTE(n_neighbors=1).run(X),
        "metric": lambda: attack.ClosestRecord(metric="x").run(release, real),
        "targets": lambda: attack.GroundHog(targets=[999]).run(SMOTE(), X, y),
    }.items():
        out.error(name, call)


def _on_data(name: str, out: Output) -> None:
    X, y = sampled(name, 240)
    made, labels = SMOTE(random_state=0).fit_resample(X, y)
    minority = y.value_counts().index[-1]
    rows = made[labels == minority].reset_index(drop=True)
    _recon(out, rows, X[y == minority])
    out.attack(attack.DistinSMOTE().run(rows), "distinguished")


for _name in ("ecoli", "yeast_me2", "abalone_19"):
    case(
        f"attack/data set {_name}",
        partial(_on_data, _name),
        data=True,
        unstable={
            "findings/ result/details/mutuality": "equally near neighbours are ordered by the last digits"
        },
    )
