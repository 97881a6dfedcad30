"""The corrected calibration of the weighted private logistic regression against the published one, and the rest."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Any

import pandas as pd

from benchmarks.imbalanced_sets import QUICK, splits
from benchmarks.runner import Cost, Side, summarize
from benchmarks.tables import storable
from oversafe.learn import PrivateLinearSVC, PrivateLogisticRegression
from oversafe.measure import imbalance_scores
from oversafe.papers.base import EIGHT

SUMMARY = (
    "`PrivateLogisticRegression` by calibration and class weight on the paper's eight sets, epsilon 0.5 and 1"
)
EPSILONS = (0.5, 1.0)
METHODS: dict[str, Any] = {
    "balanced, corrected": PrivateLogisticRegression(class_weight="balanced"),
    "balanced, paper": PrivateLogisticRegression(class_weight="balanced", calibration="paper"),
    "threshold": PrivateLogisticRegression(class_weight="threshold"),
    "none": PrivateLogisticRegression(class_weight=None),
    "balanced, output": PrivateLogisticRegression(class_weight="balanced", method="output"),
    "SVC balanced": PrivateLinearSVC(class_weight="balanced"),
    "SVC threshold": PrivateLinearSVC(class_weight="threshold"),
}


def run(quick: bool, folder: Path, rounds: int | None) -> dict[str, Any]:
    """Fit every method on every split; a round is a split, 100 by default."""
    rows = []
    costs: dict[str, list[Cost]] = {name: [] for name in METHODS}
    for split in splits(QUICK if quick else EIGHT, rounds or (2 if quick else 100)):
        for epsilon in EPSILONS:
            for name, model in METHODS.items():
                model.set_params(
                    epsilon=epsilon, data_norm=split.norm, classes=[0, 1], random_state=1000 * split.seed + 7
                )
                begin = perf_counter()
                model.fit(split.X, split.y)
                costs[name].append(Cost(perf_counter() - begin))
                scores = imbalance_scores(
                    split.y_test,
                    model.predict(split.X_test),
                    model.decision_function(split.X_test),
                    n_bootstrap=0,
                )
                rows.append({"set": split.name, "epsilon": epsilon, "method": name, **scores["score"]})
    table = pd.DataFrame(rows)
    sides = [Side(name, lambda: Cost(0.0), ["oversafe", "numpy", "scipy"]) for name in METHODS]
    summary = summarize("private-logistic", sides, list(costs.values()), quick)
    summary["tables"] = storable(
        {
            "corrected against paper, mean AUC of the weighted fit": _gains(table),
            "mean over the sets": _means(table),
        }
    )
    return summary


def _gains(table: pd.DataFrame) -> list[dict[str, Any]]:
    auc = table.pivot_table(index=["epsilon", "set"], columns="method", values="auc")
    rows = []
    for epsilon in EPSILONS:
        part = auc.loc[epsilon]
        for name, line in [*part.iterrows(), ("mean", part.mean())]:
            rows.append(
                {
                    "epsilon": epsilon,
                    "set": str(name),
                    "paper": line["balanced, paper"],
                    "corrected": line["balanced, corrected"],
                    "gain": line["balanced, corrected"] - line["balanced, paper"],
                    "threshold": line["threshold"],
                }
            )
    return rows


def _means(table: pd.DataFrame) -> list[dict[str, Any]]:
    shown = ["auc", "average_precision", "f1", "balanced_accuracy", "recall", "g_mean", "mcc"]
    means = table.groupby(["epsilon", "method"], sort=False)[shown].mean()
    return [
        {"epsilon": float(epsilon), "method": method, **{key: float(value) for key, value in line.items()}}
        for (epsilon, method), line in zip(means.index, means.to_dict("records"), strict=True)
    ]
