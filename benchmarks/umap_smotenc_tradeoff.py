"""The trade-off of the UMAP-SMOTENC paper on one fold: ``python -m benchmarks.umap_smotenc_tradeoff``.

The generators and figures are those of ``oversafe reproduce umap-smotenc``, which takes all folds and tunes the
classifiers; but the copula is the protector's, one for each class, and not the paper's GC. The scales of the trade-off
run over the generators that are chosen.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold

from benchmarks.runner import CHECKOUT
from oversafe.data import load_dataset
from oversafe.measure import tradeoff
from oversafe.papers.umap_smotenc import CLASSIFIERS, DEEP, DISTANCES, ORIGINAL, make, measured

GENERATORS = ["GaussianCopula", "SMOTE-NC", "UMAP-SMOTENC"]
SETS = ["personal_loan", "dry_bean", "magic_gamma", "letter_recognition", "occupancy", "covertype_25k"]


def run(name: str, generators: list[str]) -> dict[str, Any]:
    X, y = load_dataset(name)
    train, test = next(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    real, held = (
        (X.iloc[rows].reset_index(drop=True), y.iloc[rows].reset_index(drop=True)) for rows in (train, test)
    )
    found = {}
    for method in (ORIGINAL, *generators):
        begin = perf_counter()
        release = make(method, *real, seed=0)
        seconds = perf_counter() - begin
        found[method] = measured(release, real, held, distances=method != ORIGINAL) | {"seconds": seconds}
        found[method]["mean_f1"] = float(
            np.mean([found[method][c] for c in CLASSIFIERS if c in found[method]])
        )
        print(name, method, {key: round(value, 4) for key, value in found[method].items()}, flush=True)
    figures = pd.DataFrame(found).T
    made = figures.drop(index=ORIGINAL)
    scores = tradeoff(
        made[list(DISTANCES)], made["mean_f1"], original_utility=figures.loc[ORIGINAL, "mean_f1"]
    )
    print(scores.round(3).to_string(), flush=True)
    shown = scores[["privacy", "utility", "tradeoff"]].T.to_dict()
    return {method: row | shown.get(method, {}) for method, row in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.umap_smotenc_tradeoff", description=__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--generators", nargs="+", default=GENERATORS, choices=[*GENERATORS, "GC", *DEEP])
    parser.add_argument(
        "--json", type=Path, default=CHECKOUT / "benchmarks" / "results" / "umap-smotenc-tradeoff.json"
    )
    options = parser.parse_args()
    stored = json.loads(options.json.read_text()) if options.json.exists() else {}
    for name in options.sets:
        stored[name] = run(name, list(options.generators))
        options.json.write_text(json.dumps(stored, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
