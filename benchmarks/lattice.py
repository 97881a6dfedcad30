"""The lattice attack: what single SMOTE rows give away, and whether its claims are as sure as they say.

Sets and seeds were written down before the first run. Development: see it with ``python -m benchmarks.lattice
development``; what decides a result was chosen there. Test: ``python -m benchmarks lattice``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from imblearn.over_sampling import SMOTE
from numpy.typing import NDArray
from rich.console import Console
from scipy.spatial import KDTree
from sklearn import datasets as embedded

from benchmarks.runner import Cost, Side, summarize
from benchmarks.tables import mean, show_tables, storable
from oversafe.attack.geometry.lattice import Precision, decode_rows, grids_of_known
from oversafe.attack.geometry.lattice.probability import spare_bits
from oversafe.attack.geometry.lattice.search import SPARE, cells_of
from oversafe.data import load_dataset

SUMMARY = "`oversafe.attack.geometry.lattice`: real records from single SMOTE rows"

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
}
TEST: dict[str, Any] = {
    "yeast_me2": None,
    "magic_gamma": None,
    "german_credit_20": None,
    "adult": None,
    "dry_bean": "BOMBAY",
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
    """A release: which set and class, rows per record (None: as many as balance the classes), neighbours, file."""

    data: str
    target: Any
    rows: float | None
    k: int
    written: str
    seed: int


class _Remembering(SMOTE):  # type: ignore[misc]
    """SMOTE that keeps the parents of its rows."""

    def _generate_samples(self, X: Any, nn_data: Any, nn_num: Any, rows: Any, cols: Any, *rest: Any) -> Any:
        self.parents_ = X[rows], nn_data[nn_num[rows, cols]]
        return super()._generate_samples(X, nn_data, nn_num, rows, cols, *rest)


def table(name: str, target: Any) -> tuple[Floats, Bools]:
    """Return the columns of numbers of a set, and which rows are of the class."""
    if name in ("digits", "iris", "wine"):
        X, y = getattr(embedded, f"load_{name}")(return_X_y=True, as_frame=True)
    else:
        X, y = load_dataset(name)
    minority = (y == (y.value_counts().idxmin() if target is None else target)).to_numpy()
    return X.select_dtypes("number").to_numpy(dtype=float), minority


def measured(case: Case) -> dict[str, Any]:
    """Attack one release, of which only the rows of the other classes are known to be real."""
    X, minority = table(case.data, case.target)
    n_1, n_0 = int(minority.sum()), int((~minority).sum())
    added = n_0 - n_1 if case.rows is None else round(case.rows * n_1)
    sampler = _Remembering(
        k_neighbors=case.k, random_state=case.seed, sampling_strategy={0: n_0, 1: n_1 + added}
    )
    rows = sampler.fit_resample(X, minority.astype(int))[0][len(X) :]
    order = np.random.default_rng(case.seed).permutation(len(rows))
    write = WRITTEN[case.written]
    released, known = write(rows[order]), write(X[~minority])
    begin = process_time()
    found = decode_rows(released, known)
    seconds = process_time() - begin

    first, second = (end[order] for end in sampler.parents_)
    records = np.unique(X[minority], axis=0)
    could = could_be_had(rows[order], first, second, X, Precision.of(rows))
    could_here = could_be_had(released, first, second, X, Precision.of(released))
    claimed = found.p_wrong <= CLAIMED
    right = is_real(found.records, X, NEAR[case.written])
    complete = ~np.isnan(found.records).any(axis=1)
    scale = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    tree = KDTree(records / scale)

    def recovered(chosen: Bools) -> Bools:
        near, which = tree.query(found.records[chosen & complete] / scale, p=np.inf)
        there = np.zeros(len(records), dtype=bool)
        there[which[near <= NEAR[case.written]]] = True
        return there

    def among(ends: Bools) -> Bools:
        there = np.zeros(len(records), dtype=bool)
        taking = np.vstack([first[ends], second[ends]])
        there[tree.query(taking / scale, p=np.inf)[1]] = True
        return there

    had, had_here = among(could), among(could_here)
    got, certain = recovered(claimed), recovered(found.p_wrong < CERTAIN)
    return {
        "had": int(had.sum()),
        "had here": int(had_here.sum()),
        "got": int((got & had).sum()),
        "got here": int((got & had_here).sum()),
        "certain": int((certain & had_here).sum()),
        "taking part": int(among((first != second).any(axis=1)).sum()),
        "records": len(records),
        "rows": len(rows),
        "seconds": seconds,
        "p": found.p_wrong,
        "right": right,
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


def is_real(records: Floats, X: Floats, near: float) -> Bools:
    """Return which records equal a real row of any class in all columns that they state."""
    scale = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    right = np.zeros(len(records), dtype=bool)
    stated = ~np.isnan(records)
    for pattern in np.unique(stated, axis=0):
        here = (stated == pattern).all(axis=1)
        if pattern.any():
            tree = KDTree(X[:, pattern] / scale[pattern])
            right[here] = tree.query(records[np.ix_(here, pattern)] / scale[pattern], p=np.inf)[0] <= near
    return right


def cases(sets: dict[str, Any], seeds: Sequence[int]) -> Iterator[Case]:
    """Return the releases of the issue's table."""
    for name, target in sets.items():
        for seed in seeds:
            for rows, k in ((None, 5), (0.2, 5), (None, 1)):
                for written in WRITTEN:
                    yield Case(name, target, rows, k, written, seed)


def summed(outcomes: list[tuple[Case, dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Return the tables: recall by kind of release and by set, and stated against true errors."""
    frame = pd.DataFrame([vars(case) | outcome for case, outcome in outcomes])
    frame["release"] = [f"{'1:1' if case.rows is None else case.rows}, k = {case.k}" for case, _ in outcomes]

    def figures(group: pd.DataFrame) -> dict[str, Any]:
        each = group[group["had"] > 0]
        p = np.concatenate([*group["p"], np.zeros(0)])
        right = np.concatenate([*group["right"], np.zeros(0, dtype=bool)])
        sure, claims = p < CERTAIN, p <= CLAIMED
        return {
            "recall": mean(list(each["got"] / each["had"])),
            "recall here": mean(list((each["got here"] / each["had here"])[each["had here"] > 0])),
            "certain": mean(list((each["certain"] / each["had here"])[each["had here"] > 0])),
            "of all": mean(list(group["got"] / group["records"])),
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
        for file in frame["written"].unique()
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
    decode_rows(np.random.default_rng(0).random((20, 3)), np.eye(3))  # compiled off the clock
    done = []
    for case in cases(sets, seeds):
        if not chosen or case.data in chosen or case.written in chosen:
            done.append((case, measured(case)))
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
        "all minority records. Means over sets and seeds."
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
