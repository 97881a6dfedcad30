"""The report's page and its JSON once the findings exist: the first of a process, libraries and templates included."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.runner import Side, in_a_fresh_process
from oversafe.auditing import Audit, audit
from oversafe.data import load_dataset
from oversafe.protect import SMOTE

SUMMARY = "the report's page and JSON, once the findings exist"


def small() -> Audit:
    """Return the audit of the embedded medical table with every attack."""
    X, y = load_dataset("breast_cancer")
    X_held, y_held = load_dataset("breast_cancer_holdout")
    X_new, y_new = SMOTE(random_state=0).fit_resample(X, y)
    tables = [X_new.assign(label=y_new), X.assign(label=y), X_held.assign(label=y_held)]
    return audit(tables[0], "label", real=tables[1], holdout=tables[2])


def wide() -> Audit:
    """Return the audit of a table with 60 columns and three rare classes, with every attack."""
    rng, rows = np.random.default_rng(0), 1500
    y = np.repeat(["common", "rare", "rarer", "rarest"], [rows - 450, 200, 150, 100])
    columns = [f"measurement_{i}" for i in range(60)]
    real, held = (pd.DataFrame(rng.normal(size=(rows, 60)), columns=columns) for _ in range(2))
    X_new, y_new = SMOTE(random_state=0).fit_resample(real, y)
    release = X_new.copy().assign(label=np.asarray(y_new))
    return audit(release, "label", real=real.assign(label=y), holdout=held.assign(label=y))


def sides(quick: bool, folder: Path) -> list[Side]:
    """Return the page of a small audit and, unless it is quick, of a large one, each in a process of its own."""
    cases = {"315 x 10, one rare class": "report_page.small()"}
    if not quick:
        cases["1,500 x 60, three rare classes"] = "report_page.wide()"
    return [
        Side(
            label,
            in_a_fresh_process(
                "page, figures = found.to_html(), found.to_json()",
                f"from benchmarks import report_page\nfound = {code}",
            ),
            ["oversafe", "jinja2", "pandas"],
        )
        for label, code in cases.items()
    ]


def figures(quick: bool) -> list[dict[str, object]]:
    """Return how large the files are."""
    found = {"small": small()} if quick else {"small": small(), "wide": wide()}
    return [
        {
            "audit": name,
            "findings": len(report.findings),
            "page_kib": len(report.to_html().encode()) / 1024,
            "json_kib": len(report.to_json().encode()) / 1024,
        }
        for name, report in found.items()
    ]
