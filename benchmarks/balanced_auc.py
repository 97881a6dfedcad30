"""What a classifier learns from class-balanced synthetic rows, tested on real rows that it never saw; resumable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks.groundhog import data_folder
from benchmarks.runner import CHECKOUT, Side, in_this_process
from oversafe import protect
from oversafe.data import fold_one_hot, load_dataset
from oversafe.experiment import run_grid
from oversafe.papers.base import EIGHT

SUMMARY = "AUC of XGBoost on class-balanced samples of the synthesizers over eight data sets, by epsilon"
METHODS = ("PrivateMixture", "PrivBayes", "HistogramSynthesizer", "GEM", "MST")
EPSILONS = (0.1, 1.0, 5.0)
SPLITS = 3
_ROWS = 4_000


def balanced_auc(name: str, method: str, epsilon: float, split: int) -> dict[str, Any]:
    """Return the AUC on a fifth of the rows of a classifier that saw synthetic rows only, half of each class."""
    from xgboost import XGBClassifier

    X, y = load_dataset(name)
    X = fold_one_hot(X)
    kept, tested = train_test_split(np.arange(len(X)), test_size=0.2, stratify=y, random_state=split)
    # The set of labels and the ranges are the data's, as in the paper.
    synthesizer = getattr(protect, method)(epsilon=epsilon, classes=[0, 1], random_state=split)
    synthesizer.fit(X.iloc[kept], y.iloc[kept])
    made, labels = synthesizer.sample(class_counts={0: _ROWS // 2, 1: _ROWS // 2})
    model = XGBClassifier(n_jobs=1, random_state=0).fit(_numbers(made, X), labels)
    scores = model.predict_proba(_numbers(X.iloc[tested], X))[:, 1]
    return {"auc": float(roc_auc_score(y.iloc[tested], scores))}


def _numbers(table: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    """Return the table with categories as their positions."""
    return pd.DataFrame(
        {
            name: pd.Categorical(table[name], like[name].cat.categories).codes
            if isinstance(like[name].dtype, pd.CategoricalDtype)
            else table[name].to_numpy()
            for name in like
        }
    )


def sides(quick: bool, folder: Path) -> list[Side]:
    """Return one fit of each on the data set that is part of the package; the figures are what counts."""
    X, y = load_dataset("breast_cancer")

    def work(method: str) -> None:
        getattr(protect, method)(epsilon=1.0, random_state=0).fit_resample(X, y)

    return [
        Side(method, in_this_process(lambda method=method: work(method)), ["oversafe"])
        for method in METHODS[:3]
    ]


def figures(quick: bool) -> list[dict[str, Any]]:
    """Return the mean AUC of each data set and of all of them; none without the data sets."""
    if quick or data_folder() is None:
        return []
    grid = {"method": METHODS, "epsilon": EPSILONS, "name": EIGHT, "split": range(SPLITS)}
    store = CHECKOUT / "benchmarks" / "results" / "balanced-auc.local"
    table = run_grid(balanced_auc, grid, store=store)
    rows = []
    for (method, epsilon), own in table.groupby(["method", "epsilon"], sort=False):
        means = own.groupby("name", sort=False)["auc"].mean()
        rows.append(
            {"method": method, "epsilon": epsilon, "mean": float(means.mean())}
            | {name: float(means[name]) for name in EIGHT}
        )
    return rows
