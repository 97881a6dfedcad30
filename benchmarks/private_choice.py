"""The private classifiers that `PrivateClassifier` chooses from, on small and large tables; resumable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmarks.runner import CHECKOUT, Cost, Side, summarize
from benchmarks.tables import storable
from oversafe.data import Schema, fold_one_hot, load_dataset
from oversafe.experiment import run_grid
from oversafe.learn import (
    BalancedSynthesisClassifier,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    choose_classifier,
)
from oversafe.measure import imbalance_scores
from oversafe.papers.base import EIGHT
from oversafe.papers.imbalance import EPSILONS
from oversafe.protect import PrivateMixture, PrivBayes

SUMMARY = "AUC and G-mean of the private classifiers on 17 data sets, by epsilon, and which one is chosen; resumable"
LARGER = (
    "german_credit_20",
    "employee",
    "personal_loan",
    "dry_bean",
    "magic_gamma",
    "creditcard_fraud_21k",
    "occupancy",
    "covertype_25k",
    "adult",
)
METHODS: dict[str, Any] = {
    "linear": PrivateLogisticRegression(),
    "kernel": PrivateLinearSVC(kernel="rbf"),
    "PrivBayes": BalancedSynthesisClassifier(PrivBayes()),
    "PrivateMixture": BalancedSynthesisClassifier(PrivateMixture()),
}


def scores(name: str, method: str, epsilon: float, split: int) -> dict[str, float]:
    """Return the scores of a method on a fifth of a data set; its ranges, categories and labels count as public."""
    X, y = load_dataset(name)
    if name in EIGHT:
        X = fold_one_hot(X)
    kept, tested = train_test_split(np.arange(len(X)), test_size=0.2, stratify=y, random_state=split)
    model = METHODS[method].set_params(
        epsilon=epsilon, schema=Schema.infer(X), classes=sorted(y.unique().tolist()), random_state=split
    )
    model.fit(X.iloc[kept], y.iloc[kept])
    found = imbalance_scores(
        y.iloc[tested],
        model.predict(X.iloc[tested]),
        model.predict_proba(X.iloc[tested]),
        labels=model.classes_,
        n_bootstrap=0,
    )["score"]
    return {key: float(found[key]) for key in ("auc", "g_mean", "f1", "balanced_accuracy")}


def run(quick: bool, folder: Path, rounds: int | None) -> dict[str, Any]:
    """Fit every method on every split; a round is a split, 2 by default."""
    grid = {
        "method": ["linear", "PrivBayes"] if quick else METHODS,
        "name": ("breast_cancer",) if quick else (*EIGHT, *LARGER),
        "epsilon": EPSILONS[-1:] if quick else EPSILONS,
        "split": range(rounds or (1 if quick else 2)),
    }
    store = folder if quick else CHECKOUT / "benchmarks" / "results" / "private-choice.local"
    table = run_grid(scores, grid, store=store)
    costs = [[Cost(seconds) for seconds in own["seconds"]] for _, own in table.groupby("method", sort=False)]
    sides = [Side(name, lambda: Cost(0.0), ["oversafe"]) for name in table["method"].unique()]
    summary = summarize("private-choice", sides, costs, quick)
    summary["tables"] = storable({f"mean {score}": _by_set(table, score) for score in ("auc", "g_mean")})
    return summary


def _by_set(table: pd.DataFrame, score: str) -> list[dict[str, Any]]:
    means = table.pivot_table(index=["epsilon", "name"], columns="method", values=score, sort=False)
    rows = []
    for (epsilon, name), line in means.iterrows():
        X, y = load_dataset(name)
        share = float(y.value_counts(normalize=True).min())
        choice = choose_classifier(
            int(0.8 * len(X)), X.shape[1], n_classes=y.nunique(), epsilon=epsilon, rare_share=share
        )
        chosen = "linear" if isinstance(choice.classifier, PrivateLogisticRegression) else "PrivateMixture"
        rows.append(
            {"epsilon": epsilon, "set": name}
            | {key: float(value) for key, value in line.items()}
            | {"chosen": chosen}
        )
    return rows
