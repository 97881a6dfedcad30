"""Attacks on what the synthesizers under differential privacy release, with SMOTE beside them; resumable."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.groundhog import data_folder
from benchmarks.runner import CHECKOUT, Side, in_this_process
from oversafe import protect
from oversafe.attack import GroundHog, Linkability, ReconSMOTE
from oversafe.data import Schema, fold_one_hot, load_dataset
from oversafe.experiment import run_grid

SUMMARY = "Reconstruction, membership and linkage against synthesizers at epsilon 1, with SMOTE beside them"
SETS = ("yeast_me2", "car_eval_4")
METHODS = ("SMOTE", "PrivBayes", "PrivateMixture", "GEM", "AIM")
ATTACKS = ("reconstruction", "linkage", "membership")
EPSILON = 1.0
# AIM in its cheapest form, without rounds after the tree of pairs. It has no part in the game: every fit compiles the
# model of another tree, and the game has 300.
SETTINGS: dict[str, dict[str, Any]] = {"AIM": {"n_rounds": 0}}
# Releases with the record and without it, to learn from and to test on, for each target.
TARGETS, LEARNED, TESTED = 5, 60, 40


def attacked(name: str, method: str, attack: str) -> dict[str, Any]:
    """Return what an attack achieves on the rare class's rows that a method makes of a data set."""
    begin = perf_counter()
    X, y = load_dataset(name)
    # SMOTE sees numbers; it would otherwise be no SMOTE.
    table = X if method == "SMOTE" else fold_one_hot(X)
    protector = _protector(method, table)
    if attack == "membership":
        game = GroundHog(TARGETS, LEARNED, TESTED, random_state=0, n_jobs=1)
        details = game.run(protector, table, y).details
        found = {
            "value": details["auc"],
            "low": details["auc_interval"][0],
            "high": details["auc_interval"][1],
        }
    elif attack == "linkage":
        # Half of the rows had no part in the release.
        half = np.random.default_rng(0).permutation(len(table)) % 2 == 0
        made = _made(protector, table[half], y[half])
        rare = y == 1
        result = Linkability(random_state=0, n_jobs=1).run(made, table[half & rare], table[~half & rare])
        found = {"value": result.risk, "low": result.interval[0], "high": result.interval[1]}
    else:
        made = _made(protector, table, y)
        if method != "SMOTE":
            made = _one_hot(made, X)
        result = ReconSMOTE(n_jobs=1).run(made, X[y == 1])
        found = {"value": result.risk, "low": result.interval[0], "high": result.interval[1]}
    return {**{key: float(value) for key, value in found.items()}, "s": perf_counter() - begin}


def _protector(method: str, table: pd.DataFrame) -> Any:
    if method == "SMOTE":
        return protect.SMOTE(random_state=0)
    # What the columns are is known to the attacker and to the synthesizer; only the records are not.
    schema = Schema.infer(table)
    for column in schema:
        schema = schema.declare(column.name, domain="public", source="the data set's description")
    return getattr(protect, method)(
        epsilon=EPSILON,
        schema=schema,
        classes=[0, 1],
        sampling_strategy="auto",
        random_state=0,
        **SETTINGS.get(method, {}),
    )


def _made(protector: Any, X: pd.DataFrame, y: pd.Series) -> pd.DataFrame:
    """Return the made rows of the rare class."""
    made, labels = protector.fit_resample(X, y)
    if isinstance(protector, protect.SMOTE):
        made, labels = made.iloc[len(X) :], labels.iloc[len(X) :]
    return made[labels == 1].reset_index(drop=True)


def _one_hot(made: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    """Return folded columns as they were before."""
    columns = {
        name: made[name].to_numpy()
        if name in made
        else (made[name.rpartition("_")[0]].astype(str) == name.rpartition("_")[2]).astype(float).to_numpy()
        for name in like
    }
    return pd.DataFrame(columns)


def sides(quick: bool, folder: Path) -> list[Side]:
    """Return one reconstruction attempt on the data set that is part of the package; the figures are what counts."""
    X, y = load_dataset("breast_cancer")
    made, labels = protect.PrivateMixture(epsilon=EPSILON, random_state=0).fit_resample(X, y)
    rows = made[labels == "malignant"].reset_index(drop=True)
    return [
        Side(
            "ReconSMOTE on PrivateMixture",
            in_this_process(lambda: ReconSMOTE(n_jobs=1).run(rows)),
            ["oversafe"],
        )
    ]


def figures(quick: bool) -> list[dict[str, Any]]:
    """Return a row for each data set, attack and method; none without the data sets."""
    if quick or data_folder() is None:
        return []
    cells = [
        {"attack": attack, "method": method, "name": name}
        for attack, method, name in product(ATTACKS, METHODS, SETS)
        if (attack, method) != ("membership", "AIM")
    ]
    table = run_grid(attacked, cells, store=CHECKOUT / "benchmarks" / "results" / "attacked.local")
    if failed := table["error"].dropna().tolist():
        raise RuntimeError(f"a cell failed: {failed[0]}")
    return table.drop(columns=["status", "error", "seconds"]).to_dict("records")
