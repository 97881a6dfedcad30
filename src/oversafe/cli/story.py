"""The whole story on the embedded medical data: a release broken record by record, and one that holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oversafe.auditing.formatting import cell
from oversafe.auditing.run import Audit, audit
from oversafe.auditing.verdict import records_read_out
from oversafe.data import Schema, load_dataset
from oversafe.data.io.files import write_text
from oversafe.privacy import write_release
from oversafe.protect import SMOTE, HistogramSynthesizer
from oversafe.report.page import demo_page, section

LABEL = "diagnosis"
EPSILON = 1.0
# Few intervals: with fifteen patients, finer histograms would hold more noise than people.
N_BINS = 3
# How many more releases are drawn, to show how far their noise makes them differ.
MORE_DRAWS = 10
_SEED = 0
_MOST_PAIRS = 15
_SOURCE = "the summary table in scikit-learn's description of the data set, rounded outward"
_BOUNDS = {
    "mean_radius": (5.0, 30.0),
    "mean_texture": (5.0, 40.0),
    "mean_perimeter": (40.0, 190.0),
    "mean_area": (100.0, 2600.0),
    "mean_smoothness": (0.05, 0.17),
    "mean_compactness": (0.0, 0.35),
    "mean_concavity": (0.0, 0.45),
    "mean_concave_points": (0.0, 0.25),
    "mean_symmetry": (0.1, 0.35),
    "mean_fractal_dimension": (0.04, 0.1),
}


@dataclass(frozen=True)
class Demo:
    """What the demonstration made.

    Parameters
    ----------
    smote, private : Audit
        Of SMOTE's release and of the differentially private one.
    report : Path
        The page.
    """

    smote: Audit
    private: Audit
    report: Path


def demo_schema() -> Schema:
    """Return the public description of the demonstration's table."""
    X, y = load_dataset("breast_cancer")
    schema = Schema.infer(X.assign(**{LABEL: y}), label=LABEL)
    for name, bounds in _BOUNDS.items():
        schema = schema.declare(name, bounds=bounds, domain="public", source=_SOURCE)
    return schema.declare(LABEL, domain="public", source="the meaning of the diagnosis")


def run_demo(folder: Path, progress: Callable[[str], None] = lambda step: None) -> Demo:
    """Make both releases, attack them, and write everything into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    X, y = load_dataset("breast_cancer")
    real = X.assign(**{LABEL: y})

    progress("Balancing the table with SMOTE, and leaving the patients out")
    sampler = SMOTE(random_state=_SEED)
    X_new, y_new = sampler.fit_resample(X, y)
    augmented = X_new.assign(**{LABEL: y_new})
    patients = real.loc[real[LABEL] == "malignant"]
    # imbalanced-learn appends the new rows; of the malignant class only those are handed out.
    released = pd.concat(
        [augmented.iloc[: len(real)].query(f"{LABEL} == 'benign'"), augmented.iloc[len(real) :]]
    )
    smote_file = folder / "smote_release.csv"
    write_release(released, smote_file, sampler.guarantee_, {"method": "SMOTE", "random_state": _SEED})

    progress("Attacking SMOTE's release")
    smote = audit(smote_file, LABEL, real=real)
    smote.to_json(folder / "smote_audit.json")

    progress(f"Drawing a table from noisy histograms, epsilon = {EPSILON:g}")
    synthesizer = HistogramSynthesizer(epsilon=EPSILON, schema=demo_schema(), n_bins=N_BINS)
    counts = {"benign": len(y) - len(patients), "malignant": len(y) - len(patients)}
    X_private, y_private = synthesizer.fit(X, y).sample(class_counts=counts)
    private_file = folder / "private_release.csv"
    write_release(
        X_private.assign(**{LABEL: y_private}),
        private_file,
        synthesizer.guarantee_,
        {"method": "histograms", "epsilon": EPSILON, "n_bins": N_BINS},
    )

    progress("Attacking the private release")
    private = audit(private_file, LABEL, real=real)
    private.to_json(folder / "private_audit.json")

    progress("Measuring what the guarantee costs")
    X_test, y_test = load_dataset("breast_cancer_holdout")
    draws = []
    for _ in range(MORE_DRAWS):
        X_draw, y_draw = (
            HistogramSynthesizer(**synthesizer.get_params()).fit(X, y).sample(class_counts=counts)
        )
        draws.append(_auc(X_draw.assign(**{LABEL: y_draw}), X_test, y_test))
    costs = [
        _cost("the real table", real, X_test, y_test, None),
        _cost("SMOTE's release", released, X_test, y_test, smote),
        _cost("the private release", X_private.assign(**{LABEL: y_private}), X_test, y_test, private),
        {
            "name": f"{MORE_DRAWS} more releases made like it, with other noise",
            "auc": f"{np.median(draws):.3f} ({min(draws):.3f} to {max(draws):.3f})",
            "recovered": "not attacked",
        },
    ]
    report = folder / "report.html"
    page = demo_page(
        title="What a SMOTE release gives away",
        recovered=_recovered(smote),
        patients=len(patients),
        benign=len(y) - len(patients),
        synthetic=int((released[LABEL] == "malignant").sum()),
        smote=section(smote, "smote"),
        private=section(private, "private"),
        pairs=pairs(smote, patients.drop(columns=LABEL)),
        costs=costs,
        test_rows=len(y_test),
        test_malignant=int((y_test == "malignant").sum()),
    )
    write_text(page, report)
    return Demo(smote, private, report)


def pairs(found: Audit, patients: pd.DataFrame) -> dict[str, Any]:
    """Return each record that was read back with the patient it belongs to, most certain first."""
    evidence = next(f.result.evidence for f in found.findings if f.attack.about.reads == "computed")
    names = list(patients.columns)
    spread = patients.max() - patients.min()
    rows = []
    for _, record in evidence.head(_MOST_PAIRS).iterrows():
        distance = ((patients - record[names].astype(float)) / spread).abs().max(axis=1)
        patient = patients.loc[distance.idxmin()]
        rows.append(
            (
                ["read back", *(cell(float(record[name])) for name in names)],
                ["patient", *(cell(float(patient[name])) for name in names)],
            )
        )
    return {"columns": ["", *(name.replace("_", " ") for name in names)], "rows": rows}


def _recovered(found: Audit) -> int:
    return records_read_out(found.findings)


def _cost(
    name: str, table: pd.DataFrame, X_test: pd.DataFrame, y_test: pd.Series, found: Audit | None
) -> dict[str, Any]:
    return {
        "name": name,
        "auc": f"{_auc(table, X_test, y_test):.3f}",
        "recovered": "all, they stand in it" if found is None else f"{_recovered(found)}",
    }


def _auc(table: pd.DataFrame, X_test: pd.DataFrame, y_test: pd.Series) -> float:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, class_weight="balanced"))
    model.fit(table.drop(columns=LABEL), table[LABEL])
    scores = model.predict_proba(X_test)[:, list(model.classes_).index("malignant")]
    return float(roc_auc_score(np.asarray(y_test) == "malignant", scores))
