"""The learners without privacy of "Differential Privacy Under Class Imbalance" beside their published figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.runner import CHECKOUT, Cost, Side, summarize
from benchmarks.tables import storable
from oversafe import experiment
from oversafe.papers.base import EIGHT, published
from oversafe.papers.imbalance import BASELINES, baseline_scores

SUMMARY = "learners without privacy on eight data sets beside the published AUC, F1 and G-mean; resumable"
_NEAR = 0.05
COMPARED = ("auc", "f1", "g_mean")


def run(quick: bool, folder: Path, rounds: int | None) -> dict[str, Any]:
    """Fit every learner on every split; a round is a split, 10 by default."""
    approaches = [name for name in BASELINES if not (quick and "XG" in name)]
    names = ("breast_cancer",) if quick else EIGHT
    n_splits = rounds or (2 if quick else 10)
    store = folder if quick else CHECKOUT / "benchmarks" / "results" / "imbalance-baselines.local"
    grid = {"approach": approaches, "name": names, "split": range(n_splits)}
    table = experiment.run_grid(baseline_scores, grid, store=store)
    costs = [
        [Cost(seconds) for seconds in own["seconds"]] for _, own in table.groupby("approach", sort=False)
    ]
    sides = [Side(name, lambda: Cost(0.0), ["oversafe", "scikit-learn"]) for name in approaches]
    summary = summarize("imbalance-baselines", sides, costs, quick)
    means = table.groupby(["name", "approach"], sort=False)[list(COMPARED)].mean()
    printed = published("dp_imbalance_nonprivate").set_index(["dataset", "approach"])
    rows = []
    near: list[bool] = []
    for (name, approach), line in means.iterrows():
        row: dict[str, Any] = {"set": name, "approach": approach}
        for score in COMPARED:
            row[score] = float(line[score])
            if not quick:
                row[f"published {score}"] = float(printed.loc[(name, approach), score])
                near.append(abs(row[score] - row[f"published {score}"]) <= _NEAR)
        rows.append(row)
    summary["tables"] = storable({"measured and published": rows})
    if near:
        summary["notes"] = [f"{sum(near)} of {len(near)} cells within 0.05 ({sum(near) / len(near):.0%})"]
    return summary
