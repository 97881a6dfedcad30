"""Audits of many releases with all sorts of material, and what the page and the JSON say of them."""

from __future__ import annotations

import html
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oversafe import audit, protect
from oversafe.attack import Attack, AttackResult, GroundHog, ReconSMOTE
from oversafe.auditing import Audit
from oversafe.learn import PrivateLogisticRegression
from oversafe.privacy import Guarantee, write_release
from oversafe.report import (
    FrontierDisplay,
    MarginalsDisplay,
    MembershipDisplay,
    PrivateBoundaryDisplay,
    RecallDisplay,
    ReconstructionDisplay,
)
from tests.golden.case import case
from tests.golden.output import Output, without_stamps
from tests.golden.tables import cancer, declared, mixed, numeric, sampled

LABEL = "diagnosis"
_COVERS = ("auditing.audit", "auditing.Audit", "auditing.Finding", "auditing.Verdict")
Release = tuple[pd.DataFrame, Guarantee | None]


def _small() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return some of the patients, all of the rare class, so that an audit takes a second."""
    real, holdout = cancer()
    kept = pd.concat([real[real[LABEL] == "malignant"], real[real[LABEL] == "benign"].iloc[:105]])
    return kept.sample(frac=1, random_state=0).reset_index(drop=True), holdout.iloc[:100].reset_index(
        drop=True
    )


def _resampled(model: Any, seed: int | None = 0) -> Release:
    real, _ = _small()
    model = model.set_params(random_state=seed)
    X, y = model.fit_resample(real.drop(columns=LABEL), real[LABEL])
    return X.assign(**{LABEL: y}), model.guarantee_


def _smote(**settings: Any) -> pd.DataFrame:
    return _resampled(protect.SMOTE(**settings))[0]


def _without_real(table: pd.DataFrame) -> pd.DataFrame:
    # What was given stands first.
    return table[(table[LABEL] == "benign") | (np.arange(len(table)) >= len(_small()[0]))]


def _changed(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Callable[[], Release]:
    def make() -> Release:
        table = _smote()
        return change(table.drop(columns=LABEL)).assign(**{LABEL: table[LABEL]}), None

    return make


def _noised(scale: float) -> Callable[[pd.DataFrame], pd.DataFrame]:
    # Made anew each time, or what a case gets would hang on those that ran before it.
    return lambda X: X + np.random.default_rng(0).normal(size=X.shape) * scale * X.std().to_numpy()


def _synthesized(**settings: Any) -> Release:
    real, _ = _small()
    schema = declared(real.drop(columns=LABEL), real[LABEL])
    return _resampled(protect.HistogramSynthesizer(schema=schema, n_bins=8, **settings))


def _copies(share: float) -> Release:
    real, _ = _small()
    made, _ = _synthesized(epsilon=5.0)
    return pd.concat([real.iloc[: int(share * len(real))], made], ignore_index=True), None


RELEASES: dict[str, Callable[[], Release]] = {
    "SMOTE": lambda: (_smote(), None),
    "SMOTE, few rows": lambda: (_smote(sampling_strategy=0.3), None),
    "SMOTE, three neighbours": lambda: (_smote(k_neighbors=3), None),
    "SMOTE, the rare class made alone": lambda: (_without_real(_smote()), None),
    "borderline SMOTE": lambda: _resampled(protect.BorderlineSMOTE()),
    "ADASYN": lambda: _resampled(protect.ADASYN()),
    "copies of the rare class": lambda: _resampled(protect.RandomOverSampler()),
    "some rows left out": lambda: _resampled(protect.RandomUnderSampler()),
    "the table itself": lambda: (_small()[0], None),
    "a tenth copied": lambda: _copies(0.1),
    "one in fifty copied": lambda: _copies(0.02),
    "noise of a hundredth": _changed(_noised(0.01)),
    "noise of a half": _changed(_noised(0.5)),
    "rounded to one decimal": _changed(lambda X: X.round(1)),
    "rounded to three decimals": _changed(lambda X: X.round(3)),
    "rescaled": _changed(lambda X: (X - X.min()) / (X.max() - X.min())),
    "standardised": _changed(lambda X: (X - X.mean()) / X.std()),
    "a column changed": _changed(
        lambda X: X.assign(mean_area=X["mean_area"].sample(frac=1, random_state=0).to_numpy())
    ),
    "a column left out": _changed(lambda X: X.drop(columns="mean_area")),
    "a column added": _changed(lambda X: X.assign(patient=range(5000, 5000 + len(X)))),
    "columns in another order": _changed(lambda X: X[sorted(X.columns, reverse=True)]),
    "single precision": _changed(lambda X: X.astype("float32")),
    "histograms, epsilon 1": lambda: _synthesized(epsilon=1.0),
    "histograms, epsilon 1000": lambda: _synthesized(epsilon=1000.0),
    "PrivBayes": lambda: _resampled(protect.PrivBayes(2.0, n_bins=6)),
    "PrivateSMOTE": lambda: _resampled(protect.PrivateSMOTE(1.0, ["mean_radius"])),
    "k-anonymised": lambda: _resampled(protect.KAnonymizer(4, ["mean_radius", "mean_texture"])),
    "NHS sanitizer": lambda: _resampled(protect.NHSSanitizer(["mean_radius"], 4)),
    "copula": lambda: _resampled(protect.GaussianCopula()),
    "Bayesian network": lambda: _resampled(protect.BayesianNetwork()),
    "SMOTE-DP": lambda: _resampled(protect.SMOTEDP(epsilon=50.0)),
}
_QUICK = {("SMOTE", "release alone"), ("a tenth copied", "real")}


def _material(kind: str) -> dict[str, Any]:
    real, holdout = _small()
    return {"release alone": {}, "real": {"real": real}, "holdout": {"real": real, "holdout": holdout}}[kind]


def _one(name: str, kind: str, out: Output) -> None:
    release, guarantee = RELEASES[name]()
    out.audit(audit(release.reset_index(drop=True), LABEL, guarantee=guarantee, **_material(kind)))


for _number, _name in enumerate(RELEASES):
    # All with the most material, and two in three with less.
    _kinds = [["holdout"], ["holdout", "real"], ["holdout", "release alone"]][_number % 3]
    if _name in ("SMOTE", "a tenth copied", "rescaled", "histograms, epsilon 1"):
        _kinds = ["release alone", "real", "holdout"]
    for _kind in _kinds:
        case(
            f"audit/{_name}, {_kind}",
            partial(_one, _name, _kind),
            covers=_COVERS,
            quick=(_name, _kind) in _QUICK,
        )


# ------------------------------------------------------------------------------------------- other tables


def _mixed_release(
    model: Any, classes: int = 2
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, Guarantee]:
    X, y = mixed(300, classes=classes, seed=20)
    table = X.assign(state=y)
    real, holdout = table.iloc[:150].reset_index(drop=True), table.iloc[150:].reset_index(drop=True)
    made, labels = model.set_params(random_state=0).fit_resample(real.drop(columns="state"), real["state"])
    return made.assign(state=labels), real, holdout, model.guarantee_


_MIXED: dict[str, tuple[Callable[[], Any], int]] = {
    "SMOTENC": (protect.SMOTENC, 2),
    "copies, three classes": (protect.RandomOverSampler, 3),
    "histograms, three classes": (lambda: protect.HistogramSynthesizer(2.0, n_bins=4), 3),
    "k-anonymised": (lambda: protect.KAnonymizer(4, ["age", "ward"]), 2),
    "many classes": (lambda: protect.GaussianCopula(), 5),
}


def _on_mixed(name: str, out: Output) -> None:
    model, classes = _MIXED[name]
    if name == "SMOTENC":
        X, y = mixed(300, seed=20)
        keep = X.drop(columns=["admitted", "visits"]).dropna().index
        table = X.drop(columns=["admitted", "visits"]).assign(state=y).loc[keep].reset_index(drop=True)
        real, holdout = table.iloc[:120].reset_index(drop=True), table.iloc[120:].reset_index(drop=True)
        made, labels = protect.SMOTENC(random_state=0).fit_resample(real.drop(columns="state"), real["state"])
        out.audit(audit(made.assign(state=labels), "state", real=real, holdout=holdout))
        return
    release, real, holdout, guarantee = _mixed_release(model(), classes)
    out.audit(audit(release, "state", real=real, holdout=holdout, guarantee=guarantee))


for _name in _MIXED:
    case(f"audit/mixed columns, {_name}", partial(_on_mixed, _name), covers=_COVERS)


@case("audit/dtypes", covers=_COVERS)
def _dtypes(out: Output) -> None:
    """The release as a file has it, the real table with nullable dtypes, the holdout with Arrow's."""
    release, real, holdout, _ = _mixed_release(protect.RandomOverSampler())
    other = holdout.drop(columns="exact").convert_dtypes(dtype_backend="pyarrow")
    out.audit(
        audit(
            release.drop(columns="exact").astype(object),
            "state",
            real=real.convert_dtypes().drop(columns="exact"),
            holdout=other,
        )
    )


@case("audit/guarantees", covers=_COVERS)
def _guarantees(out: Output) -> None:
    """The same release under claims of all kinds: what the verdict makes of them."""
    real, _ = _small()
    release, _ = _synthesized(epsilon=1.0)
    claims = {
        "none": Guarantee.none("nothing is promised"),
        "nominal": Guarantee.pure(1.0, "x").weaken("a seed was used"),
        **{f"proven, {epsilon}": Guarantee.pure(epsilon, "x") for epsilon in (0.1, 1.0, 3.0, 5.0, 11.0)},
        "proven, add-remove": Guarantee.pure(2.0, "x", relation="add-remove"),
    }
    for name, claim in claims.items():
        found = audit(release, LABEL, real=real, guarantee=claim)
        out.number(f"{name}, level", found.verdict.level)
        out.text(f"{name}, sentence", found.verdict.sentence)
        out.text(f"{name}, terminal", str(found))


@case("audit/a file with its manifest", covers=_COVERS)
def _from_file(out: Output) -> None:
    real, _ = _small()
    release, _ = _synthesized(epsilon=1.0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "release.csv"
        write_release(release, path, Guarantee.pure(1.0, "x"), {"method": "histograms"})
        real.to_csv(Path(folder) / "real.csv", index=False)
        found = audit(path, LABEL, real=Path(folder) / "real.csv", name="my release")
        out.audit(found)
        settings = json.loads(without_stamps(json.dumps(found.to_dict()["settings"], default=str), folder))
        out.number("settings", sorted(settings))


class _Mine(Attack):
    """An attack of one's own."""

    def run(self, release: Any, real: Any, holdout: Any = None) -> AttackResult:  # type: ignore[override]
        """Say how many first values agree."""
        share = float(real.iloc[:, 0].isin(release.iloc[:, 0]).mean())
        return AttackResult("Mine", "attribute", share, (0.0, 1.0), pd.DataFrame({"share": [share]}))


@case("audit/an attack of one's own", covers=_COVERS)
def _own(out: Output) -> None:
    real, holdout = _small()
    release, guarantee = _synthesized(epsilon=5.0)
    out.audit(audit(release, LABEL, real=real, holdout=holdout, guarantee=guarantee, attacks=[_Mine()]))


@case("audit/steps, time and resumption", covers=_COVERS)
def _steps(out: Output) -> None:
    real, holdout = _small()
    release = _smote()
    told: list[tuple[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        given: dict[str, Any] = {"real": real, "holdout": holdout, "resume": folder}
        out.audit(audit(release, LABEL, on_progress=lambda *step: told.append(step), **given), "first")
        out.number("steps", told)
        out.audit(audit(release, LABEL, **given), "second")
    out.number("no time, not run", dict(audit(release, LABEL, real=real, time_limit=0).not_run))


@case("audit/page and JSON", covers=_COVERS)
def _page(out: Output) -> None:
    real, holdout = _small()
    for name, (release, guarantee) in {
        "SMOTE": (_smote(), None),
        "histograms": _synthesized(epsilon=1.0),
        "k-anonymised": RELEASES["k-anonymised"](),
    }.items():
        found = audit(release, LABEL, real=real, holdout=holdout, guarantee=guarantee)
        page = found.to_html()
        out.number(f"{name}, tags", dict(sorted(Counter(re.findall(r"<([a-z0-9]+)[ >]", page)).items())))
        out.text(f"{name}, page", _visible(page))
        document = json.loads(found.to_json())
        out.number(f"{name}, JSON", _shape(document))
        out.text(f"{name}, repr", repr(found))
    out.number("JSON schema", Audit.json_schema())


def _visible(page: str) -> str:
    """Return what a reader of a page sees, line by line, without what differs from run to run."""
    body = re.sub(r"(?s)<(script|style|svg)\b.*?</\1>", "", page)
    body = re.sub(r"</?(b|i|em|strong|code|span|a|abbr|small|sub|sup)\b[^>]*>", "", body)
    lines = [" ".join(html.unescape(line).split()) for line in re.sub(r"<[^>]+>", "\n", body).split("\n")]
    text = without_stamps("\n".join(line for line in lines if line))
    # Versions of packages and of the system stand in the part that says how to repeat it.
    text = re.sub(r"\b\d+\.\d+\.\d+\S*", "<version>", text)
    # What is 0 but for rounding is another number on another processor.
    text = re.sub(r"\b\d+(\.\d+)?e-1\d\b", "<tiny>", text)
    text = re.sub(r"(?m)^seconds\n[\d.e-]+$", "seconds\n<seconds>", text)
    return re.sub(r"\d+(\.\d+)? (s|seconds?)\b", "<seconds>", text)


def _shape(value: Any) -> Any:
    """Return the names and kinds in a document."""
    if isinstance(value, dict):
        return {
            key: _shape(each) for key, each in value.items() if key not in ("details", "evidence", "settings")
        }
    if isinstance(value, list):
        return [_shape(each) for each in value[:3]]
    return type(value).__name__


@case("audit/warnings about the tables", covers=_COVERS)
def _warned(out: Output) -> None:
    real, holdout = _small()
    release = _smote()
    for name, given in {
        "the holdout is the real table": {"real": real, "holdout": real},
        "other units": {"real": real.assign(**{c: real[c] * 100 for c in real if c != LABEL})},
        "one class of the holdout": {"real": real, "holdout": holdout[holdout[LABEL] == "benign"]},
        "few real rows": {"real": real.groupby(LABEL).head(3)},
    }.items():
        try:
            out.audit(audit(release, LABEL, **given), name)
        except ValueError as error:
            out.text(f"{name}, refused", str(error))


@case("audit/synthetic rows of one class alone", covers=_COVERS)
def _one_class(out: Output) -> None:
    real, _ = _small()
    alone = _smote().iloc[len(real) :]
    out.audit(audit(alone, LABEL), "the release alone")
    out.audit(
        audit(alone, LABEL, real=real[real[LABEL] == alone[LABEL].iloc[0]]), "with the real rows of the class"
    )


@case("audit/what is refused", covers=_COVERS, quick=True)
def _refused(out: Output) -> None:
    real, _ = _small()
    release = _smote()
    for name, call in {
        "label": lambda: audit(release, "nothing"),
        "other table": lambda: audit(
            release, LABEL, real=real.rename(columns=lambda c: c if c == LABEL else f"_{c}")
        ),
        "guarantee": lambda: audit(release, LABEL, guarantee="proven"),  # type: ignore[arg-type]
        "attacks": lambda: audit(release, LABEL, attacks=["ReconSMOTE"]),
        "empty": lambda: audit(release.iloc[:0], LABEL),
        "an array": lambda: audit(release.to_numpy(), LABEL),  # type: ignore[arg-type]
        "no file": lambda: audit("nowhere.csv", LABEL),
    }.items():
        out.error(name, call)


@case("audit/displays", covers=tuple(f"report.{kind.__name__}" for kind in (
    FrontierDisplay, MarginalsDisplay, MembershipDisplay, PrivateBoundaryDisplay, RecallDisplay, ReconstructionDisplay
)), needs=("matplotlib",))  # fmt: skip
def _displays(out: Output) -> None:
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    mpl.use("agg")
    release = _smote()
    rows = release[release[LABEL] == "malignant"].drop(columns=LABEL).reset_index(drop=True)
    X, y = numeric(100, 20, seed=1)
    game = GroundHog(2, 10, 10, random_state=0).run(protect.SMOTE(), X, y)
    model = PrivateLogisticRegression(2.0, data_norm=20.0, classes=[0, 1])
    displays = {
        "frontier": FrontierDisplay.from_arrays(["a", "b"], [0.1, 0.5], [0.6, 0.9]),
        "marginals": MarginalsDisplay.from_tables(*(mixed(80, seed=s)[0] for s in (1, 2))),
        "membership": MembershipDisplay.from_result(game),
        "recall": RecallDisplay.from_recalls([5, 20], [[0.5, 0.7], [1.0, 1.0]], n_minority=40, mutuality=0.5),
        "reconstruction": ReconstructionDisplay.from_result(ReconSMOTE().run(rows), rows),
        "boundary": PrivateBoundaryDisplay.from_estimator(
            model.set_params(random_state=0), X[["x0", "x1"]], y, n_fits=1, random_state=0
        ),
    }
    for name, display in displays.items():
        held = {key: value for key, value in vars(display).items() if not key.endswith("_")}
        out.number(name, held)
        axes = np.atleast_1d(getattr(display, "axes_", display.ax_)).ravel()
        out.text(
            f"{name}, words",
            [" | ".join(filter(None, (a.get_title(), a.get_xlabel(), a.get_ylabel()))) for a in axes],
        )
    plt.close("all")


def _on_data(name: str, out: Output) -> None:
    X, y = sampled(name, 300)
    table = X.assign(label=y)
    real, holdout = table.iloc[::2].reset_index(drop=True), table.iloc[1::2].reset_index(drop=True)
    made, labels = protect.HistogramSynthesizer(3.0, n_bins=5, random_state=0).fit_resample(
        real.drop(columns="label"), real["label"]
    )
    out.audit(audit(made.assign(label=labels), "label", real=real, holdout=holdout))


for _name in ("adult", "ecoli", "german_credit_9"):
    case(f"audit/data set {_name}", partial(_on_data, _name), covers=_COVERS, data=True)
