"""Private logistic regression against diffprivlib's: same splits, same norm, same epsilon; and an audit of both."""

from __future__ import annotations

import subprocess
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.imbalanced_sets import QUICK, Split, splits
from benchmarks.peers import python_of
from benchmarks.runner import CHECKOUT, Cost, Side, summarize
from benchmarks.tables import storable
from oversafe.learn import PrivateLogisticRegression
from oversafe.measure import audit_epsilon, imbalance_scores
from oversafe.papers.base import EIGHT

SUMMARY = "`PrivateLogisticRegression` against diffprivlib's LogisticRegression on the paper's eight sets"
PEER = "diffprivlib==0.6.6"
# Its metadata allow newer releases of scikit-learn, with which it cannot be imported.
WITH = "scikit-learn==1.6.1"
EPSILONS = (0.5, 1.0)
NORM = 100.0

_FITS = """
import sys, time, warnings
import numpy as np
from diffprivlib.models import LogisticRegression
warnings.simplefilter("ignore")
cases = np.load(sys.argv[1])
results = {}
LogisticRegression(data_norm=1.0).fit(np.eye(10), np.arange(10) % 2)
for i in range(int(cases["count"])):
    X, y, X_test = cases[f"X{i}"], cases[f"y{i}"], cases[f"X_test{i}"]
    for epsilon in cases["epsilons"]:
        model = LogisticRegression(
            epsilon=float(epsilon), data_norm=float(cases[f"norm{i}"]), random_state=1000 * i + 7, max_iter=1000
        )
        taken = []
        for _ in range(3):
            begin = time.process_time()
            model.fit(X, y)
            taken.append(time.process_time() - begin)
        results[f"seconds{i} {epsilon}"] = min(taken)
        results[f"scores{i} {epsilon}"] = model.decision_function(X_test)
np.savez(sys.argv[2], **results)
"""
_RUNS = """
import sys, warnings
import numpy as np
from diffprivlib.models import LogisticRegression
warnings.simplefilter("ignore")
cases = np.load(sys.argv[1])
norm, y = float(cases["norm"]), cases["y"]
results = [
    [
        LogisticRegression(epsilon=1.0, data_norm=norm, fit_intercept=False, random_state=seed, max_iter=1000)
        .fit(X, y).coef_[0, 0]
        for seed in range(start, start + int(cases["trials"]))
    ]
    for start, X in ((0, cases["first"]), (10**6, cases["second"]))
]
np.save(sys.argv[2], np.array(results))
"""


def run(quick: bool, folder: Path, rounds: int | None) -> dict[str, Any]:
    """Fit both on every split, and audit both on records of norm 100; a round is a split, 50 by default."""
    python = python_of(PEER, WITH)
    cases = list(splits(QUICK if quick else EIGHT, rounds or (2 if quick else 50)))
    theirs = _peer(python, _FITS, folder, _packed(cases), "npz")
    rows: list[dict[str, Any]] = []
    costs: dict[str, list[Cost]] = {"ours": [], "theirs": []}
    # Both fit once before the clock starts.
    PrivateLogisticRegression(data_norm=1.0, classes=[0, 1]).fit(np.eye(10), np.arange(10) % 2)
    for i, split in enumerate(cases):
        for epsilon in EPSILONS:
            model = PrivateLogisticRegression(
                epsilon, data_norm=split.norm, classes=[0, 1], random_state=1000 * i + 7
            )
            # Processor time, the least of three fits, on both sides: the peer has a process of its own, and the machine
            # is not always idle.
            taken = []
            for _ in range(3):
                begin = process_time()
                model.fit(split.X, split.y)
                taken.append(process_time() - begin)
            seconds = min(taken)
            costs["ours"].append(Cost(seconds))
            costs["theirs"].append(Cost(float(theirs[f"seconds{i} {epsilon}"])))
            scores = np.asarray(theirs[f"scores{i} {epsilon}"])
            odds = np.log(split.y.mean() / (1 - split.y.mean()))
            for side, values, threshold in (
                ("ours", model.decision_function(split.X_test), 0.0),
                ("diffprivlib", scores, 0.0),
                ("diffprivlib, threshold at the true class share (not paid for)", scores, odds),
            ):
                found = imbalance_scores(
                    split.y_test, (values > threshold).astype(int), values, labels=[0, 1], n_bootstrap=0
                )
                ms = 1e3 * (seconds if side == "ours" else costs["theirs"][-1].seconds)
                rows.append({"set": split.name, "epsilon": epsilon, "side": side, "ms": ms, **found["score"]})
    sides = [
        Side("PrivateLogisticRegression, one fit", lambda: Cost(0.0), ["oversafe", "numpy", "scipy"]),
        Side(
            "diffprivlib, one fit",
            lambda: Cost(0.0),
            versions={"diffprivlib": PEER.partition("==")[2], "scikit-learn of diffprivlib": "1.6.1"},
        ),
    ]
    summary = summarize("diffprivlib", sides, [costs["ours"], costs["theirs"]], quick)
    table = pd.DataFrame(rows)
    summary["tables"] = storable(
        {
            "mean over the sets and splits": _means(table, ["epsilon", "side"]),
            "by set": _means(table[~table["side"].str.contains("true")], ["epsilon", "set", "side"]),
            f"audit at norm {NORM:g}, claimed epsilon 1, confidence 0.999": _audit(python, folder, quick),
        }
    )
    return summary


def _packed(cases: list[Split]) -> dict[str, Any]:
    packed: dict[str, Any] = {"count": len(cases), "epsilons": np.array(EPSILONS)}
    for i, split in enumerate(cases):
        packed |= {f"X{i}": split.X, f"y{i}": split.y, f"X_test{i}": split.X_test, f"norm{i}": split.norm}
    return packed


def _peer(python: str, code: str, folder: Path, given: dict[str, Any], kind: str) -> Any:
    source, result = folder / "given.npz", folder / f"result.{kind}"
    np.savez(source, **given)
    done = subprocess.run(
        [python, "-c", code, str(source), str(result)], cwd=CHECKOUT, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"the process of {python} ended with an error:\n{done.stderr}")
    return np.load(result)


def _means(table: pd.DataFrame, keys: list[str]) -> list[dict[str, Any]]:
    means = table.groupby(keys, sort=False)[["auc", "balanced_accuracy", "f1", "ms"]].mean().reset_index()
    return [
        {key: float(value) if isinstance(value, float) else value for key, value in row.items()}
        for row in means.to_dict("records")
    ]


def _audit(python: str, folder: Path, quick: bool) -> list[dict[str, Any]]:
    """Return lower bounds on the epsilon of both, from the density of the coefficient near zero.

    One record of norm 100 against one of norm 0: near zero its curvature is 100^2 / 4, and the more the objective is
    bent, the likelier are coefficients there.
    """
    trials = 400 if quick else 5000
    first = np.array([[0.0], [0.0], [0.0], [NORM]])
    second, y = np.zeros_like(first), np.array([0, 1, 0, 1])
    found = _peer(
        python,
        _RUNS,
        folder,
        {"first": first, "second": second, "y": y, "norm": NORM, "trials": trials},
        "npy",
    )
    ours = np.array(
        [
            [
                PrivateLogisticRegression(
                    1.0,
                    data_norm=NORM,
                    classes=[0, 1],
                    class_weight=None,
                    fit_intercept=False,
                    random_state=seed,
                )
                .fit(X, y)
                .coef_[0, 0]
                for seed in range(start, start + trials)
            ]
            for start, X in ((0, first), (10**6, second))
        ]
    )
    rows = []
    for side, results in (("ours", ours), ("diffprivlib", found)):

        def drawn(table: int, rng: np.random.Generator, size: int, results: Any = results) -> Any:
            return -np.abs(results[table])

        audit = audit_epsilon(drawn, 0, 1, trials=trials, confidence=0.999, vectorized=True, random_state=0)
        rows.append({"side": side, "epsilon at least": audit.lower_bound, "claimed": 1.0, "runs": 2 * trials})
    return rows
