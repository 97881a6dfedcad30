"""The membership game on SMOTE, per target, against imbalanced-learn and numpy release by release.

Both sides play the whole game of a target: 300 releases with the record and 300 without, their statistics, and the
random forest that learns to tell them apart. Ours makes the releases with the record once for all targets, and its
share of them is counted.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from imblearn.over_sampling import SMOTE
from scipy.stats import ks_2samp
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import minmax_scale

from benchmarks.runner import CHECKOUT, Cost, Side
from oversafe.attack import GroundHog
from oversafe.attack.membership.smote_releases import Neighbors, SmoteReleases
from oversafe.attack.membership.statistics import Statistics
from oversafe.experiment import run_grid
from oversafe.papers.base import EIGHT, published

SUMMARY = "`GroundHog` against imbalanced-learn's SMOTE, numpy and a forest, release by release"

# "SMOTE and Mirrors", Table 4: mean over the fifty most exposed of 100 targets, columns scaled to [-1, 1].
PUBLISHED = published("smote_and_mirrors_synthetic").set_index("dataset")["groundhog_auc"]


def data_folder() -> Path | None:
    folder = os.environ.get("OVERSAFE_DATA")
    return Path(folder) if folder else None


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a data set as the authors prepare it."""
    folder = data_folder()
    if folder is None:
        raise RuntimeError("set OVERSAFE_DATA to the folder of the data sets")
    table = pd.read_parquet(folder / f"{name}.parquet")
    return minmax_scale(table.drop(columns="target").to_numpy(), (-1, 1)), table["target"].to_numpy()


def table_like_mammography(rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = (np.arange(rows) < rows // 43).astype(int)
    return rng.gamma(2.0, size=(rows, 6)) + y[:, None], y


def statistics_of(rows: np.ndarray) -> np.ndarray:
    """The paper's features, as one writes them with numpy."""
    quartiles = np.quantile(rows, [0.25, 0.5, 0.75], axis=0)
    covariances = np.cov(rows.T)[np.tril_indices(rows.shape[1])]
    return np.concatenate(
        [rows.min(0), quartiles[0], rows.mean(0), quartiles[1], quartiles[2], rows.max(0), covariances]
    )


def releases_one_by_one(X: np.ndarray, y: np.ndarray, n: int, size: int) -> np.ndarray:
    return np.array([statistics_of(SMOTE().fit_resample(X, y)[0][len(X) :][:size]) for _ in range(n)])


def game_one_by_one(X: np.ndarray, y: np.ndarray, target: int, n_train: int, n_test: int) -> float:
    size = int((y == 0).sum() - (y == 1).sum())
    inside = releases_one_by_one(X, y, (n_train + n_test) // 2, size)
    kept = np.arange(len(X)) != target
    outside = releases_one_by_one(X[kept], y[kept], (n_train + n_test) // 2, size)
    half = n_train // 2
    forest = RandomForestClassifier(100).fit(
        np.vstack([inside[:half], outside[:half]]), np.repeat([1, 0], half)
    )
    a, b = (forest.predict_proba(part[half:])[:, 1] for part in (inside, outside))
    return float((a[:, None] > b).mean() + 0.5 * (a[:, None] == b).mean())


def check_same_distribution(X: np.ndarray, y: np.ndarray, n: int) -> None:
    """Raise if a two-sample test tells our statistics from theirs; by chance with probability 1e-6."""
    minority = X[y == 1]
    size = int((y == 0).sum() - (y == 1).sum())
    ours = SmoteReleases(*Neighbors(minority, 5).segments(), size, Statistics("paper", minority)).draw(
        n, np.random.SeedSequence(0)
    )[0]
    theirs = releases_one_by_one(X, y, n, size)
    for feature in range(ours.shape[1]):
        unit = 1e-9 * (1 + np.abs(theirs[:, feature]).max())
        pair = [np.round(side[:, feature] / unit) for side in (ours, theirs)]
        if ks_2samp(*pair).pvalue < 1e-6 / ours.shape[1]:
            raise AssertionError(f"feature {feature} has another distribution")


def per_target(work: Callable[[], object], n_targets: int) -> Callable[[], Cost]:
    def run() -> Cost:
        begin = perf_counter()
        work()
        return Cost((perf_counter() - begin) / n_targets)

    return run


def sides(quick: bool, folder: Path) -> list[Side]:
    """Check that both sides draw from one distribution, and return them, per target."""
    known = data_folder() is not None and not quick
    X, y = load("mammography") if known else table_like_mammography(1000 if quick else 11183)
    check_same_distribution(X, y, 60 if quick else 300)
    n_train, n_test = (20, 20) if quick else (400, 200)
    n_targets = 4 if quick else 100
    attack = GroundHog(n_targets, n_train, n_test, random_state=0, n_jobs=1)
    target = int(np.flatnonzero(y == 1)[0])
    packages = ["numpy", "scikit-learn", "imbalanced-learn"]
    return [
        Side(
            "GroundHog, per target",
            per_target(lambda: attack.run(SMOTE(), X, y), n_targets),
            ["oversafe", "numba", *packages],
        ),
        Side(
            "release by release, per target",
            per_target(lambda: game_one_by_one(X, y, target, n_train, n_test), 1),
            packages,
        ),
    ]


def game(name: str) -> dict[str, Any]:
    """Play the full game on a data set and return its figures."""
    begin = perf_counter()
    details = GroundHog(random_state=0, n_jobs=2).run(SMOTE(), *load(name)).details
    wanted = (
        "auc",
        "auc_interval",
        "auc_ten_most_exposed",
        "auc_ten_most_exposed_fresh",
        "auc_fifty_most_exposed",
    )
    return {**{key: details[key] for key in wanted}, "game_seconds": perf_counter() - begin}


def figures(quick: bool) -> list[dict[str, Any]]:
    """Return our figures beside the published ones, data set by data set; none without the data sets."""
    if quick or data_folder() is None:
        return []
    store = CHECKOUT / "benchmarks" / "results" / "groundhog.local"
    return beside(run_grid(game, {"name": list(EIGHT)}, store=store), lambda row: PUBLISHED[row["name"]])


def beside(table: pd.DataFrame, printed: Callable[[dict[str, Any]], float]) -> list[dict[str, Any]]:
    """Return the rows of a grid with the published figure of each; a cell that failed ends the benchmark."""
    if failed := table["error"].dropna().tolist():
        raise RuntimeError(f"a cell failed: {failed[0]}")
    rows = table.drop(columns=["status", "error", "seconds"]).to_dict("records")
    return [{**row, "published": printed(row)} for row in rows]
