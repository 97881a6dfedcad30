"""The membership game on perceptrons, per target, against training every model anew for each target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from imblearn.over_sampling import SMOTE
from sklearn.neural_network import MLPClassifier

from benchmarks.groundhog import beside, data_folder, load, per_target, table_like_mammography
from benchmarks.runner import CHECKOUT, Side
from oversafe.attack import ShadowClassifier
from oversafe.experiment import run_grid
from oversafe.papers.base import published

SUMMARY = "`ShadowClassifier`, whose models with the record are shared, against models of each target's own"

# "SMOTE and Mirrors", Table 3, real and augmented: mean over the fifty most exposed of 100 targets.
PUBLISHED = published("smote_and_mirrors_augmented").set_index("dataset")[
    ["mia_real_auc", "mia_augmented_auc"]
]
SETS = ("ecoli", "yeast_me2", "solar_flare_m0", "car_eval_34", "abalone_19")


def perceptron(d: int) -> MLPClassifier:
    """Return the authors' classifier: two layers as wide as the table, 25 passes."""
    return MLPClassifier((d, d), max_iter=25)


def sides(quick: bool, folder: Path) -> list[Side]:
    """Return the game with shared and with separate models, per target."""
    X, y = table_like_mammography(600)
    n_targets, n_models = (2, 8) if quick else (20, 40)
    targets = np.flatnonzero(y == 1)[: min(n_targets, int(y.sum()))].tolist()

    def play(chosen: list[int]) -> object:
        attack = ShadowClassifier(perceptron(6), n_models=n_models, targets=chosen, random_state=0)
        return attack.run(X, y, SMOTE(k_neighbors=2))

    packages = ["scikit-learn", "imbalanced-learn"]
    return [
        Side("shared, per target", per_target(lambda: play(targets), len(targets)), ["oversafe", *packages]),
        Side("separate, per target", per_target(lambda: play(targets[:1]), 1), packages),
    ]


def game(name: str, augmented: bool) -> dict[str, Any]:
    """Play the game on a data set with the authors' classifier and return its figures."""
    X, y = load(name)
    attack = ShadowClassifier(perceptron(X.shape[1]), random_state=0)
    details = attack.run(X, y, SMOTE() if augmented else None).details
    return {key: details[key] for key in ("auc", "auc_interval", "auc_ten_most_exposed")}


def figures(quick: bool) -> list[dict[str, Any]]:
    """Return our figures beside the published ones; none without the data sets."""
    if quick or data_folder() is None:
        return []
    grid = {"name": SETS, "augmented": [False, True]}
    store = CHECKOUT / "benchmarks" / "results" / "shadow.local"
    return beside(
        run_grid(game, grid, store=store), lambda row: PUBLISHED.loc[row["name"]].iloc[int(row["augmented"])]
    )
