"""Guarantees, accountants, costs, mechanisms, estimates, persons, ledgers and manifests."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from dp_accounting import dp_event

from oversafe import privacy
from oversafe.privacy import Accountant, Guarantee, Ledger
from oversafe.privacy.guarantee import composed_epsilon
from oversafe.protect import KAnonymizer
from tests.golden.case import case
from tests.golden.output import Output, without_stamps
from tests.golden.tables import declared, mixed, numeric

RELATIONS = ("replace-one", "add-remove")


def _gaussian(multiplier: float = 10.0, delta: float = 1e-6) -> Guarantee:
    event = dp_event.GaussianDpEvent(multiplier)
    return Guarantee("proven", composed_epsilon(event, delta), delta, basis="Gauss", event=event)


@case("privacy/Guarantee", covers=("privacy.Guarantee", "privacy.as_replace_one"))
def _guarantee(out: Output) -> None:
    pure = Guarantee.pure(0.5, "Laplace noise")
    given = {
        "pure": pure,
        "none": Guarantee.none("SMOTE keeps records."),
        "weakened": pure.weaken("a seed was used"),
        "assuming": pure.assuming("numbers are real"),
        "person": Guarantee("nominal", 2.0, 1e-6, unit="person", rows_per_unit=3, caveats=("few of them",)),
        "add-remove": Guarantee.pure(0.5, "Laplace noise", relation="add-remove"),
        "Gauss": _gaussian(),
    }
    for name, own in given.items():
        out.guarantee(own, name)
        out.number(f"{name}, again", Guarantee.from_dict(own.to_dict()) == own)
        out.number(f"{name}, rows public", own.n_rows_public)
    out.guarantee(privacy.as_replace_one(given["add-remove"]), "as replace-one")
    out.guarantee(Guarantee.compose(pure, pure), "two pure")
    out.guarantee(Guarantee.compose(pure, _gaussian(), delta=1e-5), "pure and Gauss")
    out.guarantee(Guarantee.compose(*[_gaussian()] * 8), "eight of Gauss")
    out.guarantee(Guarantee.compose(pure, given["none"]), "with none")
    out.error("relations", lambda: Guarantee.compose(pure, given["add-remove"]))
    out.error("none given", lambda: Guarantee.compose())
    out.error("epsilon", lambda: Guarantee.pure(-1.0, "x"))
    out.error("status", lambda: Guarantee("sure"))
    out.error("no basis", lambda: Guarantee("proven", 1.0, 0.0))
    out.error("dict", lambda: Guarantee.from_dict({"status": "proven", "event": {"type": "os"}}))


@case("privacy/Accountant", covers=("privacy.Accountant", "privacy.Charge"), quick=True)
def _accountant(out: Output) -> None:
    counts = np.arange(12).reshape(3, 4)
    for relation in RELATIONS:
        for delta in (0.0, 1e-6):
            for unit, rows in (("record", 1), ("person", 3)):
                own = Accountant(2.0, delta, relation=relation, unit=unit, rows_per_unit=rows, random_state=0)  # type: ignore[arg-type]
                name = f"{relation}, delta {delta}, {unit}"
                out.number(f"{name}, start", [own.pure, own.total, own.failure, own.left, own.rows_changed])
                out.number(f"{name}, sensitivity", [own.sensitivity(), own.sensitivity(3)])
                out.number(f"{name}, split", own.split({"a": 1.0, "b": 3.0}))
                out.number(f"{name}, deviation", [own.deviation(0.3), own.doubt(0.3, 0.05, 2)])
                out.number(f"{name}, counts", own.counts(counts, share=0.3, what="counts"))
                out.number(
                    f"{name}, chosen", own.choose(np.arange(6.0), sensitivity=1.0, share=0.2, what="best")
                )
                out.number(f"{name}, left", own.left)
                out.guarantee(own.promise("a promise", ("a caveat",)), f"{name}, promise")
                own.counts(counts, share=own.left, what="the rest")
                out.guarantee(own.guarantee("all of it"), f"{name}, guarantee")
                out.error(f"{name}, overdrawn", lambda own=own: own.counts(counts, share=0.1, what="more"))
                out.text(f"{name}, repr", repr(own))
    out.number("charge", privacy.Charge("a", epsilon=0.5))
    out.error("negative", lambda: Accountant(-1.0))


@case(
    "privacy/mechanisms",
    covers=("privacy.noisy_counts", "privacy.gaussian_counts", "privacy.frequent_counts", "privacy.choose"),
    quick=True,
)
def _mechanisms(out: Output) -> None:
    counts = np.arange(60).reshape(6, 10)
    for seed in (0, 1):
        out.number(
            f"Laplace, {seed}", privacy.noisy_counts(counts, sensitivity=2, epsilon=0.7, random_state=seed)
        )
        out.number(
            f"Gauss, {seed}", privacy.gaussian_counts(counts, sensitivity=1.4, rho=0.1, random_state=seed)
        )
        frequent = privacy.frequent_counts(
            np.array([0, 1, 50, 200, 3]), changed=2, sensitivity=1.0, largest=1, rho=0.2, delta=1e-6,
            random_state=seed,
        )  # fmt: skip
        out.number(f"frequent, {seed}", frequent)
        scores = np.array([1.0, 4.0, 2.0, 4.5])
        out.number(f"chosen, {seed}", [
            privacy.choose(scores, sensitivity=1.0, epsilon=2.0, random_state=seed),
            privacy.choose(scores, sensitivity=1.0, rho=0.2, random_state=seed),
            privacy.choose(scores, sensitivity=1.0, epsilon=2.0, monotonic=True, random_state=seed),
        ])  # fmt: skip
    out.error("epsilon", lambda: privacy.noisy_counts(counts, sensitivity=1, epsilon=-1))
    out.error("both", lambda: privacy.choose([1.0], sensitivity=1.0, epsilon=1.0, rho=1.0))


@case("privacy/seeded noise", quick=True)
def _noise(out: Output) -> None:
    from oversafe.privacy import noise

    rng = np.random.default_rng(0)
    out.number("Gauss", noise.gaussian(10, 2.0, rng))
    out.number("Laplace", noise.spherical_laplace(5, 1.5, rng))
    out.number("sample", noise.poisson_sample(50, 0.3, rng))
    out.number("seeded", noise.random_source(3).random(4))  # type: ignore[union-attr]
    out.number("unseeded", noise.random_source(None))


@case(
    "privacy/estimates",
    covers=(
        "privacy.private_bounds",
        "privacy.private_categories",
        "privacy.private_class_counts",
        "privacy.private_quantiles",
    ),
    quick=True,
)
def _estimates(out: Output) -> None:
    rng = np.random.default_rng(0)
    values, wards = (
        rng.normal(50, 20, 800),
        rng.choice(["A", "B", "C", "rare"], 800, p=[0.5, 0.3, 0.19, 0.01]),
    )
    for relation in RELATIONS:
        for delta in (0.0, 1e-5):
            own = Accountant(8.0, delta, relation=relation, random_state=1)  # type: ignore[arg-type]
            name = f"{relation}, delta {delta}"
            out.number(
                f"{name}, bounds", privacy.private_bounds(values, accountant=own, share=0.2, what="age")
            )
            out.number(
                f"{name}, whole bounds",
                privacy.private_bounds(
                    values.round(), accountant=own, share=0.2, whole=True, within=(0, 1000)
                ),
            )
            out.number(
                f"{name}, quantiles",
                privacy.private_quantiles(
                    values, [0.1, 0.5, 0.9], bounds=(0, 100), accountant=own, share=0.2
                ),
            )
            out.number(
                f"{name}, class counts",
                privacy.private_class_counts((values > 60).astype(int), 2, accountant=own, share=0.1),
            )
            if delta:
                out.number(
                    f"{name}, categories", privacy.private_categories(wards, accountant=own, share=0.2)
                )
            else:
                out.error(
                    f"{name}, categories", lambda own=own: privacy.private_categories(wards, accountant=own)
                )
            out.guarantee(own.guarantee("estimates"), name)


@case("privacy/resolve_domains", covers=("privacy.resolve_domains", "privacy.Domains"), quick=True)
def _domains(out: Output) -> None:
    X, y = mixed(300)
    for name, options in {
        "public": {"schema": declared(X, y)},
        "data": {"schema": None},
        "private": {"schema": None, "estimate": "private", "classes": ["healthy", "ill"]},
        "quantiles": {"schema": declared(X, y), "binning": "quantile", "n_bins": 5},
    }.items():
        own = Accountant(20.0, 1e-4, random_state=0)
        schema = options.pop("schema")
        found = privacy.resolve_domains(X, y, schema, own, **options)  # type: ignore[arg-type]
        out.number(f"{name}, schema", found.schema)
        out.number(f"{name}, label", found.label)
        out.number(
            f"{name}, edges",
            {
                column: [bins.n_cells, bins.edges if bins.column.is_number else None]
                for column, bins in found.bins.items()
            },
        )
        out.text(f"{name}, caveats", found.caveats)
        out.number(f"{name}, number of caveats", len(found.caveats))
        out.number(f"{name}, left", own.left)


@case("privacy/kissing numbers", covers=("privacy.kissing_number_bound",), quick=True)
def _kissing(out: Output) -> None:
    out.number("bounds", [privacy.kissing_number_bound(d) for d in range(1, 60)])
    out.error("no dimension", lambda: privacy.kissing_number_bound(0))


_SIZES: dict[str, dict[str, Any]] = {
    "few": {"n_minority": 100, "n_added": 900},
    "many": {"n_minority": 1000, "n_added": 1000},
    "two classes": {"n_minority": {"a": 50, "b": 200}, "n_added": {"a": 150, "b": 10}},
}


@case(
    "privacy/oversampling_cost",
    covers=("privacy.oversampling_cost", "privacy.oversampling_budget"),
    quick=True,
)
def _oversampling(out: Output) -> None:
    for name, sizes in _SIZES.items():
        for relation in RELATIONS:
            for bases, target in (("cyclic", None), ("random", 1e-6)):
                own = {**sizes, "relation": relation, "bases": bases}
                label = f"{name}, {relation}, {bases}"
                out.guarantee(privacy.oversampling_cost(1.0, target_delta=target, **own), label)
                out.number(label, privacy.oversampling_budget(1.0, target_delta=target or 0.0, **own))
    out.guarantee(
        privacy.oversampling_cost(noise_multiplier=20.0, target_delta=1e-6, **_SIZES["few"]), "Gauss"
    )
    out.guarantee(privacy.oversampling_cost(0.5, delta=1e-9, target_delta=1e-5, **_SIZES["few"]), "delta")
    out.guarantee(privacy.oversampling_cost(0.5, keep_originals=False, **_SIZES["few"]), "no originals")
    out.error("negative", lambda: privacy.oversampling_cost(1.0, n_minority=-1, n_added=4))


@case("privacy/smote_cost", covers=("privacy.smote_cost", "privacy.smote_budget"), quick=True)
def _smote(out: Output) -> None:
    for name, sizes in _SIZES.items():
        for dimensions, k in ((2, 5), (25, 5), (10, 1)):
            for relation in RELATIONS:
                for target in (0.0, 1e-6):
                    own = {**sizes, "dimensions": dimensions, "k_neighbors": k, "relation": relation}
                    label = f"{name}, {dimensions}, {k}, {relation}, {target}"
                    out.guarantee(privacy.smote_cost(1.0, target_delta=target, **own), label)
    few = {**_SIZES["few"], "dimensions": 5}
    out.number("budget", privacy.smote_budget(1.0, target_delta=1e-6, **few))
    out.guarantee(privacy.smote_cost(0.1, bases="cyclic", stable_ties=False, **few), "unstable ties")
    out.guarantee(privacy.smote_cost(noise_multiplier=400.0, target_delta=1e-6, **few), "Gauss")
    out.guarantee(privacy.smote_cost(0.1, keep_originals=False, **few), "no originals")


@case("privacy/bagging_cost", covers=("privacy.bagging_cost", "privacy.bagging_budget"))
def _bagging(out: Output) -> None:
    for split in ("bootstrap", "subsample", "disjoint", "stratified"):
        for relation in RELATIONS:
            own: dict[str, Any] = {
                "n_estimators": 10,
                "n_records": 1000,
                "split": split,
                "relation": relation,
            }
            if split in ("bootstrap", "subsample"):
                own |= {"n_samples": 100, "target_delta": 1e-6}
            label = f"{split}, {relation}"
            try:
                out.guarantee(privacy.bagging_cost(0.5, **own), label)
                out.number(label, privacy.bagging_budget(1.0, **own))
                out.guarantee(privacy.bagging_cost(None, **own), f"{label}, no privacy")
            except ValueError as error:
                out.text(f"{label}, refused", str(error))


@case("privacy/limit_rows", covers=("privacy.limit_rows",), quick=True)
def _persons(out: Output) -> None:
    persons = np.random.default_rng(0).integers(0, 20, 100)
    for most in (1, 3, 50):
        out.number(f"at most {most}", privacy.limit_rows(persons, most, dtype="int64", random_state=0))
    out.number("texts", privacy.limit_rows([f"p{i}" for i in persons], 2, dtype="object", random_state=0))


@case(
    "privacy/Ledger",
    covers=(
        "privacy.Ledger",
        "privacy.DatasetLedger",
        "privacy.Balance",
        "privacy.Entry",
        "privacy.LedgerWarning",
        "privacy.OverdraftError",
        "privacy.Verification",
    ),
)
def _ledger(out: Output) -> None:
    from oversafe.protect import HistogramSynthesizer

    X, y = numeric()
    schema = declared(X, y)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "budget.db", key_file=Path(folder) / "key")
        out.number("created", ledger.create("patients", 3.0, 1e-6, note="the study"))
        ledger.create("visits", 1.0, relation="add-remove", unit="person", rows_per_unit=4)
        ledger.charge("patients", Guarantee.pure(0.25, "Laplace noise"), what="ages")
        ledger.charge("patients", _gaussian(20.0, 1e-8), what="counts")
        own = ledger.for_dataset("patients", unproven="record")
        model = HistogramSynthesizer(1.0, schema=schema, ledger=own).fit(X, y)
        out.number("entry given", model.ledger_entry_ is not None)
        seeded = HistogramSynthesizer(1.0, schema=schema, random_state=0, ledger=own).fit(X, y)
        out.guarantee(seeded.guarantee_, "seeded")
        own.charge(KAnonymizer(3, ["x0"]).fit(X, y).guarantee_, what="k-anonymity")
        out.number("datasets", ledger.datasets())
        for name in ledger.datasets():
            out.number(f"{name}, balance", ledger.remaining(name))
        entries = [dataclasses.asdict(entry) for entry in ledger.history()]
        for entry in entries:
            # The ledger's own number is random, and so is what tells its entries apart.
            entry.pop("id"), entry.pop("when")
            entry["plain_guarantee"] = entry["plain_guarantee"] and Guarantee.from_dict(
                entry["plain_guarantee"]
            )
        out.number("history", entries)
        out.number("verified", ledger.verify())
        out.error("overdraft", lambda: ledger.charge("patients", Guarantee.pure(9.0, "x")), folder)
        out.error("unknown", lambda: ledger.remaining("nobody"), folder)
        out.error("unproven", lambda: ledger.charge("patients", Guarantee.none("nothing")), folder)
        out.error("relation", lambda: ledger.charge("visits", Guarantee.pure(0.1, "x")), folder)
        out.error("again", lambda: ledger.create("patients", 1.0), folder)
        out.text("repr", without_stamps(repr(ledger), folder))


@case(
    "privacy/manifests",
    covers=("privacy.Manifest", "privacy.write_release", "privacy.read_manifest"),
    quick=True,
)
def _manifests(out: Output) -> None:
    X, y = mixed(40)
    with tempfile.TemporaryDirectory() as folder:
        for name, guarantee in {
            "proven.csv": Guarantee.pure(1.0, "Laplace noise"),
            "none.parquet": Guarantee.none("SMOTE keeps records"),
        }.items():
            path = Path(folder) / name
            written = privacy.write_release(
                X.assign(state=y), path, guarantee, {"method": "x", "epsilon": 1.0}
            )
            plain = json.loads(written.to_json())
            out.manifest(name, plain)
            out.number(f"{name}, fields", sorted(plain))
            out.number(f"{name}, read back", privacy.read_manifest(path) == written)
            out.number(f"{name}, files", sorted(p.name for p in Path(folder).iterdir()))

        def edited() -> None:
            path.write_bytes(path.read_bytes() + b"\n")
            privacy.read_manifest(path)

        out.error("edited", edited, folder)
        out.number("no manifest", privacy.read_manifest(Path(folder) / "nothing.csv"))


@case(
    "privacy/vouching",
    covers=(
        "privacy.Keys",
        "privacy.UnsignedWarning",
        "privacy.Vouched",
        "privacy.Voucher",
        "privacy.vouched",
    ),
    quick=True,
)
def _vouching(out: Output) -> None:
    with tempfile.TemporaryDirectory() as folder:
        keys = privacy.Keys(Path(folder) / "keys")
        strangers = privacy.Keys(Path(folder) / "others")
        path = Path(folder) / "release.csv"
        for name, signer in (("own", keys), ("a stranger's", strangers)):
            privacy.write_release(numeric()[0].head(3), path, Guarantee.pure(0.5, "x"), {}, keys=signer)
            found = privacy.vouched(path, keys=keys)
            assert isinstance(found, privacy.Vouched) and isinstance(found.voucher, privacy.Voucher)
            out.number(f"{name}, status", found.guarantee.status)
            out.number(f"{name}, by", [found.voucher.by, found.voucher.counts])
            out.text(f"{name}, sentence", without_stamps(found.voucher.sentence, folder))
        out.number("warning", privacy.UnsignedWarning.__mro__[1].__name__)


@case("privacy/surroundings", quick=True)
def _surroundings(out: Output) -> None:
    """What a guarantee loses inside the wrappers of scikit-learn and imbalanced-learn."""
    from imblearn.ensemble import BalancedBaggingClassifier
    from imblearn.pipeline import make_pipeline
    from sklearn.ensemble import BaggingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_validate
    from sklearn.multiclass import OneVsRestClassifier

    from oversafe.learn import PrivateLogisticRegression
    from oversafe.protect import HistogramSynthesizer

    X, y = numeric(150, 50)
    schema = declared(X, y)
    own = PrivateLogisticRegression(data_norm=20.0, classes=[0, 1], random_state=0)
    for name in X:
        schema = schema.declare(name, missing=False)
    pipe = make_pipeline(HistogramSynthesizer(schema=schema, random_state=0), LogisticRegression()).fit(X, y)
    out.guarantee(pipe[0].guarantee_, "pipeline")
    bagged = BaggingClassifier(own, 2, random_state=0).fit(X, y)
    out.guarantee(bagged.estimators_[0].guarantee_, "bagging")
    rest = OneVsRestClassifier(own).fit(X, y)
    out.guarantee(rest.estimators_[0].guarantee_, "one against the rest")
    inner = PrivateLogisticRegression(data_norm=20.0, random_state=0)
    balanced = BalancedBaggingClassifier(inner, n_estimators=2, random_state=0).fit(X, y)
    out.guarantee(balanced.estimators_[0][-1].guarantee_, "balanced bagging")
    found = cross_validate(own, X, y, cv=2, return_estimator=True)
    out.guarantee(found["estimator"][0].guarantee_, "cross-validation")
