"""Private learners of "Differential Privacy Under Class Imbalance" and ours, ranked over data sets and budgets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.runner import CHECKOUT, Cost, Side, summarize
from benchmarks.tables import storable
from oversafe import experiment
from oversafe.papers.base import EIGHT, published
from oversafe.papers.imbalance import EPSILONS, PRIVATE, PUBLISHED_METHODS, RANKED, mean_ranks, private_scores

SUMMARY = (
    "mean ranks of private learners over eight data sets and three budgets, beside the published; resumable"
)
OURS = "PrivateClassifier"
_SCORE_NAMES = {
    "bal_acc": "balanced_accuracy",
    "worst_acc": "worst_class_accuracy",
    "macro_acc": "macro_accuracy",
}


def run(quick: bool, folder: Path, rounds: int | None) -> dict[str, Any]:
    """Fit every method on every split; a round is a split, 3 by default."""
    methods = ["Priv. LogReg", OURS] if quick else list(PRIVATE)
    grid = {
        "method": methods,
        "name": ("breast_cancer",) if quick else EIGHT,
        "epsilon": EPSILONS[-1:] if quick else EPSILONS,
        "split": range(rounds or (1 if quick else 3)),
    }
    store = folder if quick else CHECKOUT / "benchmarks" / "results" / "private-ranks.local"
    table = experiment.run_grid(private_scores, grid, store=store)
    table = table[table["status"] == "done"]
    costs = [[Cost(seconds) for seconds in own["seconds"]] for _, own in table.groupby("method", sort=False)]
    sides = [Side(name, lambda: Cost(0.0), ["oversafe"]) for name in table["method"].unique()]
    summary = summarize("private-ranks", sides, costs, quick)
    done = [name for name in methods if name in set(table["method"])]
    four = [name for name in PUBLISHED_METHODS if name in done]
    tables: dict[str, list[dict[str, Any]]] = {}
    if len(four) > 1:
        printed = published("dp_imbalance_ranks").set_index("model").rename(columns=_SCORE_NAMES)
        tables["ranks among the paper's methods, published below"] = _rows(mean_ranks(table, four)) + [
            {"method": f"{name}, published", **{key: printed.loc[name].get(key) for key in RANKED}}
            for name in four
        ]
    tables["ranks with ours"] = _rows(mean_ranks(table, done))
    means = table.groupby(["epsilon", "method"], sort=False)[list(RANKED)].mean()
    tables["means over the sets"] = [
        {"epsilon": epsilon, "method": method, **{key: float(line[key]) for key in RANKED}}
        for (epsilon, method), line in means.iterrows()
    ]
    summary["tables"] = storable(tables)
    return summary


def _rows(ranks: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {"method": method, **{key: float(line[key]) for key in RANKED}} for method, line in ranks.iterrows()
    ]
