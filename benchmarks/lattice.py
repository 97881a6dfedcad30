"""ReconSMOTE with few rows per record: what single rows give away, and whether its claims are as sure as they say.

Sets and seeds were written down before the first run. Development: see it with ``python -m benchmarks.lattice
development``; what decides a result was chosen there. Test: ``python -m benchmarks lattice``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from imblearn.over_sampling import ADASYN, SMOTE, SMOTENC, SVMSMOTE, BorderlineSMOTE, KMeansSMOTE
from numpy.typing import NDArray
from rich.console import Console
from scipy.spatial import KDTree
from sklearn import datasets as embedded

from benchmarks.runner import Cost, Side, summarize
from benchmarks.tables import mean, show_tables, storable
from oversafe.attack import ReconSMOTE
from oversafe.attack.geometry.lattice import Precision, grids_of_known
from oversafe.attack.geometry.lattice.probability import spare_bits
from oversafe.attack.geometry.lattice.search import SPARE, cells_of
from oversafe.data import load_dataset

SUMMARY = "`oversafe.attack.ReconSMOTE` with few rows per record: recall, and stated against true errors"

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# A set and the class that is interpolated; None is the rarest. All columns of numbers, as floats.
DEVELOPMENT: dict[str, Any] = {
    "breast_cancer": None,
    "abalone": None,
    "abalone_19": None,
    "car_eval_34": None,
    "car_eval_4": None,
    "ecoli": None,
    "solar_flare_m0": None,
    "covertype_25k": 4,
    "employee": None,
    "personal_loan": None,
    "letter_recognition": "A",
    "magic_gamma": None,
    "dry_bean": "BOMBAY",
}
TEST: dict[str, Any] = {
    "yeast_me2": None,
    "german_credit_20": None,
    "adult": None,
    "wine": 2,
    "digits": 8,
    "iris": 2,
}
NO_GRID: dict[str, Any] = {"mammography": None, "occupancy": None, "creditcard_fraud_21k": None}
DEVELOPMENT_SEEDS, TEST_SEEDS = (0, 1), (100, 101, 102)
CERTAIN, CLAIMED = 1e-6, 0.05


def digits(count: int) -> Callable[[Floats], Floats]:
    """Return what writes numbers with so many significant digits."""

    def write(values: Floats) -> Floats:
        return np.array([float(f"{value:.{count}g}") for value in values.ravel()]).reshape(values.shape)

    return write


def single(values: Floats) -> Floats:
    """Return numbers that went through float32."""
    return values.astype(np.float32).astype(float)


WRITTEN: dict[str, Callable[[Floats], Floats]] = {
    "full": lambda values: values,
    "15 digits": digits(15),
    "12 digits": digits(12),
    "9 digits": digits(9),
    "float32": single,
    "6 digits": digits(6),
}
# Of the finest of these a record is right if it is so near in standard deviations of its columns.
NEAR = {
    "full": 1e-6,
    "15 digits": 1e-6,
    "12 digits": 1e-6,
    "9 digits": 1e-6,
    "float32": 1e-4,
    "6 digits": 1e-4,
}


@dataclass(frozen=True)
class Case:
    """A release: which set and class, rows per record (None: as many as balance the classes), neighbors, file, tool."""

    data: str
    target: Any
    rows: float | None
    k: int
    written: str
    seed: int
    tool: str = "SMOTE"


class _Remembering(SMOTE):  # type: ignore[misc]
    """SMOTE that keeps the parents of its rows."""

    def _generate_samples(self, X: Any, nn_data: Any, nn_num: Any, rows: Any, cols: Any, *rest: Any) -> Any:
        self.parents_ = X[rows], nn_data[nn_num[rows, cols]]
        return super()._generate_samples(X, nn_data, nn_num, rows, cols, *rest)


# The other tools that interpolate; SMOTENC is given the columns of two values as categories.
OTHERS: dict[str, Callable[..., Any]] = {
    "ADASYN": ADASYN,
    "BorderlineSMOTE 1": BorderlineSMOTE,
    "BorderlineSMOTE 2": partial(BorderlineSMOTE, kind="borderline-2"),
    "SVMSMOTE": SVMSMOTE,
    "KMeansSMOTE": partial(KMeansSMOTE, cluster_balance_threshold=0.01),
    "SMOTENC": SMOTENC,
}


def table(name: str, target: Any) -> tuple[Floats, Bools]:
    """Return the columns of numbers of a set, and which rows are of the class."""
    if name in ("digits", "iris", "wine"):
        X, y = getattr(embedded, f"load_{name}")(return_X_y=True, as_frame=True)
    else:
        X, y = load_dataset(name)
    minority = (y == (y.value_counts().idxmin() if target is None else target)).to_numpy()
    return X.select_dtypes("number").to_numpy(dtype=float), minority


def measured(case: Case) -> dict[str, Any] | None:
    """Attack one release, of which only the rows of the other classes are known to be real; None if there is none."""
    X, minority = table(case.data, case.target)
    n_1, n_0 = int(minority.sum()), int((~minority).sum())
    added = n_0 - n_1 if case.rows is None else round(case.rows * n_1)
    sampling = {0: n_0, 1: n_1 + added}
    if case.tool == "SMOTE":
        sampler: Any = _Remembering(k_neighbors=case.k, random_state=case.seed, sampling_strategy=sampling)
    else:
        settings: dict[str, Any] = {"random_state": case.seed, "sampling_strategy": sampling}
        if case.tool == "SMOTENC":
            two = [j for j in range(X.shape[1]) if len(np.unique(X[:, j])) == 2]
            settings["categorical_features"] = two or [int(np.argmin([len(np.unique(x)) for x in X.T]))]
        sampler = OTHERS[case.tool](**settings)
    try:
        made, labels = sampler.fit_resample(X, minority.astype(int))
    except (ValueError, RuntimeError):
        return None
    rows = made[len(X) :][labels[len(X) :] == 1]
    if not len(rows):
        return None
    order = np.random.default_rng(case.seed).permutation(len(rows))
    write = WRITTEN[case.written]
    released, known = write(rows[order]), write(X[~minority])
    compared = np.ones(X.shape[1], dtype=bool)
    if case.tool == "SMOTENC":
        compared[settings["categorical_features"]] = False
        released, known = released[:, compared], known[:, compared]
        X = X[:, compared]
    begin = process_time()
    found = ReconSMOTE().run(released, X[minority], known=known, other_classes={"other": X[~minority]})
    seconds = process_time() - begin
    values = np.asarray(found.records, dtype=float).reshape(-1, X.shape[1])
    records = np.unique(X[minority], axis=0)
    near = found.evidence["real_row"].to_numpy() >= 0
    right = np.asarray(near | found.evidence["real_class"].notna().to_numpy(), dtype=bool)
    complete = ~np.isnan(values).any(axis=1) & ~found.estimated.to_numpy(dtype=bool).any(axis=1)
    scale = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    tree = KDTree(records / scale)

    def recovered(chosen: Bools) -> Bools:
        there = np.zeros(len(records), dtype=bool)
        if (chosen & complete).any():
            off, which = tree.query(values[chosen & complete] / scale, p=np.inf)
            there[which[off <= NEAR[case.written]]] = True
        return there

    got, certain = recovered(np.ones(len(values), dtype=bool)), recovered(found.p_wrong < CERTAIN)
    outcome = {
        "had": 0,
        "had here": 0,
        "got": int(got.sum()),
        "got here": 0,
        "certain": 0,
        "records": len(records),
        "rows": len(rows),
        "decoded": found.details["rows_decoded"],
        "seconds": seconds,
        "p": found.p_wrong,
        "right": right,
    }
    if case.tool != "SMOTE":
        return outcome
    first, second = (end[order] for end in sampler.parents_)

    def among(ends: Bools) -> Bools:
        there = np.zeros(len(records), dtype=bool)
        taking = np.vstack([first[ends], second[ends]])
        there[tree.query(taking / scale, p=np.inf)[1]] = True
        return there

    had = among(could_be_had(rows[order], first, second, X, Precision.of(rows)))
    had_here = among(could_be_had(released, first, second, X, Precision.of(released)))
    return outcome | {
        "had": int(had.sum()),
        "had here": int(had_here.sum()),
        "got of all": int(got.sum()),
        "got": int((got & had).sum()),
        "got here": int((got & had_here).sum()),
        "certain": int((certain & had_here).sum()),
    }


def could_be_had(released: Floats, first: Floats, second: Floats, X: Floats, written: Precision) -> Bools:
    """Return which rows have enough bits to spare: the columns that move have grids, and few lines fit by accident."""
    grids = grids_of_known(X, released, written)
    cells = cells_of(released, grids, written)
    moves = first != second
    ways = np.where(np.isfinite(grids.step), (second - first) / grids.step, 0.0)
    used = moves & np.isfinite(grids.step) & (4 * cells.reach * cells.error < 1)
    bits = spare_bits(ways, cells.error, used, cells.reach)
    return np.asarray((bits >= SPARE) & ~(moves & ~np.isfinite(grids.step)).any(axis=1))


def cases(sets: dict[str, Any], seeds: Sequence[int]) -> Iterator[Case]:
    """Return the releases of the issue's table."""
    for name, target in sets.items():
        for seed in seeds:
            for rows, k in ((None, 5), (0.2, 5), (None, 1)):
                for written in WRITTEN:
                    yield Case(name, target, rows, k, written, seed)
            for tool in OTHERS:
                for rows in (None, 0.2):
                    yield Case(name, target, rows, 5, "full", seed, tool)


def summed(outcomes: list[tuple[Case, dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Return the tables: recall by kind of release and by set, and stated against true errors."""
    frame = pd.DataFrame([vars(case) | outcome for case, outcome in outcomes])
    frame["release"] = [
        f"{case.tool}, {'1:1' if case.rows is None else case.rows}, k = {case.k}" for case, _ in outcomes
    ]

    def figures(group: pd.DataFrame) -> dict[str, Any]:
        each = group[group["had"] > 0]
        p = np.concatenate([*group["p"], np.zeros(0)])
        right = np.concatenate([*group["right"], np.zeros(0, dtype=bool)])
        sure, claims = p < CERTAIN, p <= CLAIMED
        return {
            "recall": mean(list(each["got"] / each["had"])),
            "recall here": mean(list((each["got here"] / each["had here"])[each["had here"] > 0])),
            "certain": mean(list((each["certain"] / each["had here"])[each["had here"] > 0])),
            "of all": mean(
                list(group.get("got of all", group["got"]).fillna(group["got"]) / group["records"])
            ),
            "could": mean(list(group["had"] / group["records"])),
            "claims": int(claims.sum()),
            "wrong": int((claims & ~right).sum()),
            "stated": float(p[claims].sum()),
            "sure": int(sure.sum()),
            "sure wrong": int((sure & ~right).sum()),
            "s / 1000": float(1000 * group["seconds"].sum() / group["rows"].sum()),
        }

    releases = [
        {
            "release": release,
            "file": file,
            **figures(frame[(frame["release"] == release) & (frame["written"] == file)]),
        }
        for release in frame["release"].unique()
        for file in frame[frame["release"] == release]["written"].unique()
    ]
    sets = [
        {"data": name, "file": file, **figures(frame[(frame["data"] == name) & (frame["written"] == file)])}
        for name in frame["data"].unique()
        for file in frame["written"].unique()
    ]
    p = np.concatenate(list(frame["p"]))
    right = np.concatenate(list(frame["right"]))
    decades = []
    for low in range(-9, 0):
        here = (p > 10.0 ** (low - (low == -9))) & (p <= 10.0 ** (low + 1))
        decades.append(
            {
                "p_wrong": f"to 1e{low + 1}",
                "claims": int(here.sum()),
                "stated wrong": float(p[here].sum()),
                "wrong": int((here & ~right).sum()),
            }
        )
    return {"by release": releases, "by set": sets, "stated and true errors": decades}


def outcomes_of(sets: dict[str, Any], seeds: Sequence[int], chosen: Sequence[str] = ()) -> list[Any]:
    """Attack the releases of some sets."""
    ReconSMOTE().run(np.random.default_rng(0).random((20, 3)), known=np.eye(3))  # compiled off the clock
    done = []
    for case in cases(sets, seeds):
        if not chosen or {case.data, case.written, case.tool} & set(chosen):
            outcome = measured(case)
            if outcome is not None:
                done.append((case, outcome))
    return done


def run(quick: bool, folder: Path, rounds: int | None) -> dict[str, Any]:
    """Attack the test sets; a round is a seed. A quick run takes one set that needs no folder."""
    sets = {"breast_cancer": None} if quick else TEST
    seeds = (
        DEVELOPMENT_SEEDS[:1] if quick else tuple(TEST_SEEDS[0] + i for i in range(rounds or len(TEST_SEEDS)))
    )
    outcomes = outcomes_of(sets, seeds)
    costs = [
        Cost(sum(outcome["seconds"] for case, outcome in outcomes if case.seed == seed)) for seed in seeds
    ]
    side = Side("ours", lambda: Cost(0.0), ["oversafe", "imbalanced-learn", "numba"])
    summary = summarize("lattice", [side], [costs], quick)
    summary["tables"] = storable(summed(outcomes))
    summary["notes"] = [
        "'recall': of the minority records that took part in a row with at least 20 bits to spare at full "
        "precision ('here': at the precision of the file), the share among the claims with p_wrong <= .05; "
        "'certain': p_wrong < 1e-6. 'stated': the sum of p_wrong over the claims. 'of all' and 'could': shares of "
        "all minority records. A record is right if it equals a real one of any class within its stated errors. "
        "Means over sets and seeds."
    ]
    return summary


if __name__ == "__main__":
    which, *only = sys.argv[1:]
    results = outcomes_of(
        *(
            {
                "development": (DEVELOPMENT, DEVELOPMENT_SEEDS),
                "test": (TEST, TEST_SEEDS),
                "no-grid": (NO_GRID, TEST_SEEDS),
            }[which]
        ),
        only,
    )
    show_tables({"tables": storable(summed(results))}, Console(width=160))
