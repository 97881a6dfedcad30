"""PrivateLogisticRegression on a million rows: how long, and in how much memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.runner import Side, in_a_fresh_process
from oversafe.learn import PrivateLogisticRegression

SUMMARY = "`PrivateLogisticRegression`, 1,000,000 x 50, two classes and five"
ROWS, QUICK_ROWS, COLUMNS = 1_000_000, 20_000, 50


def table(rows: int, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return records of which one in twenty belongs to each class but the first."""
    rng = np.random.default_rng(0)
    rare = np.full(classes - 1, 0.05)
    y = rng.choice(classes, size=rows, p=np.r_[1 - rare.sum(), rare])
    X = rng.normal(size=(rows, COLUMNS))
    X += 0.3 * np.random.default_rng(1).normal(size=(classes, COLUMNS))[y]
    return X, y


_SETUP = """
from benchmarks.logistic_large import table
from oversafe.learn import PrivateLogisticRegression
X, y = table({rows}, {classes})
model = PrivateLogisticRegression(epsilon=1.0, {settings}classes=list(range({classes})))
"""


def sides(quick: bool, folder: Path) -> list[Side]:
    """Return fits to a large table, each in a process of its own."""
    rows = QUICK_ROWS if quick else ROWS
    cases = {
        "two classes, public norm": (2, "data_norm=8.0, "),
        "two classes, scales paid for": (2, ""),
        "two classes, weighted": (2, "data_norm=8.0, class_weight='balanced', "),
        "five classes": (5, "data_norm=8.0, "),
    }
    return [
        Side(
            f"{rows:,} x {COLUMNS}, {label}",
            in_a_fresh_process(
                "model.fit(X, y)", _SETUP.format(rows=rows, classes=classes, settings=settings)
            ),
            ["oversafe", "numpy", "scipy"],
        )
        for label, (classes, settings) in cases.items()
    ]


def figures(quick: bool) -> list[dict[str, float]]:
    """Return what the fit is worth: its AUC beside that of the fit without noise, on fresh rows."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    X, y = table(QUICK_ROWS if quick else 200_000)
    half = len(X) // 2
    model = PrivateLogisticRegression(epsilon=1.0, data_norm=8.0, classes=[0, 1]).fit(X[:half], y[:half])
    plain = LogisticRegression().fit(X[:half], y[:half])
    return [
        {
            "rows": half,
            "auc": float(roc_auc_score(y[half:], model.decision_function(X[half:]))),
            "auc without privacy": float(roc_auc_score(y[half:], plain.decision_function(X[half:]))),
        }
    ]
