"""The seed: how often it is found behind a release, and which records follow from it.

Sets and seeds were written down before the first run. Development: see it with ``python -m benchmarks.seed
development``; what decides a result was chosen there. Test: ``python -m benchmarks seed``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from imblearn.over_sampling import ADASYN, SMOTE, SVMSMOTE, BorderlineSMOTE
from numpy.typing import NDArray
from rich.console import Console
from scipy.spatial import KDTree

from benchmarks.lattice import DEVELOPMENT, DEVELOPMENT_SEEDS, TEST, TEST_SEEDS, table
from benchmarks.runner import Cost, Side, summarize
from benchmarks.tables import mean, show_tables, storable
from oversafe.attack import RecoverSeed
from oversafe.attack.geometry.lattice.precision import decimals_of

SUMMARY = "`oversafe.attack.RecoverSeed`: the seed behind a release, and the records that follow from it"

Floats = NDArray[np.float64]

# Usual ones, and such as nobody tries.
USED = {
    0: (42, 20_240_131),
    1: (4_711, 83_019),
    100: (2_024, 31_337),
    101: (19_991_231, 7),
    102: (60_606, 123_456),
}
UNUSUAL = 2_718_281_828
SAMPLERS = {
    "SMOTE": SMOTE,
    "ADASYN": ADASYN,
    "BorderlineSMOTE": BorderlineSMOTE,
    "BorderlineSMOTE-2": BorderlineSMOTE,
    "SVMSMOTE": SVMSMOTE,
}
# Decimals beyond those of the real values; None is all that a float has, in random order.
FILES: tuple[int | None, ...] = (None, 0, 1, 2)
CLAIMED = 0.05


@dataclass(frozen=True)
class Case:
    """A release: set and class, rows per record (None: as many as balance the classes), sampler, file, seed."""

    data: str
    target: Any
    rows: float | None
    sampler: str
    decimals: int | None
    number: int
    seed: int

    @property
    def usual(self) -> bool:
        """Whether the seed is one that the attack tries."""
        return self.seed < UNUSUAL


def is_real(records: Floats, X: Floats, near: float) -> NDArray[np.bool_]:
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


def measured(case: Case) -> dict[str, Any] | None:
    """Attack one release; None where the sampler refuses the table."""
    X, minority = table(case.data, case.target)
    n_1, n_0 = int(minority.sum()), int((~minority).sum())
    added = n_0 - n_1 if case.rows is None else round(case.rows * n_1)
    more = {"kind": "borderline-2"} if case.sampler == "BorderlineSMOTE-2" else {}
    sampler = SAMPLERS[case.sampler](
        random_state=case.seed, sampling_strategy={0: n_0, 1: n_1 + added}, **more
    )
    try:
        rows = sampler.fit_resample(X, minority.astype(int))[0][len(X) :]
    except (ValueError, RuntimeError):
        return None
    if len(rows) < 2:
        return None
    if case.decimals is None:
        rows = rows[np.random.default_rng(case.number).permutation(len(rows))]
    else:
        rows = np.column_stack(
            [np.round(rows[:, j], decimals_of(X[:, j]) + case.decimals) for j in range(X.shape[1])]
        )
    attack = RecoverSeed(None if case.decimals is None else n_1)
    begin = process_time()
    result = attack.run(rows, X[minority], known=X[~minority])
    seconds = process_time() - begin
    found = result.details
    claimed = result.p_wrong <= CLAIMED
    records = np.asarray(result.records, dtype=float)
    # BorderlineSMOTE-2 starts from records of the other class too.
    right = is_real(records, X, 1e-6)
    whole = ~np.isnan(records).any(axis=1)
    followed, _ = _distinct(records[claimed & right & whole])
    _, of = _distinct(X[minority])
    return {
        "found": found["seed"] == case.seed,
        "other": found["seed"] not in (None, case.seed),
        "named": (found["sampler"] or "").startswith(case.sampler),
        "p": found["p"],
        "followed": followed / of,
        "claims": int(claimed.sum()),
        "wrong": int((claimed & ~right).sum()),
        "stated": float(result.p_wrong[claimed].sum()),
        "seconds": seconds,
        "tried": found["seeds_tried"],
        "rows": len(rows),
    }


def _distinct(rows: Floats) -> tuple[int, int]:
    number = len(np.unique(rows, axis=0)) if len(rows) else 0
    return number, max(1, number)


def cases(sets: dict[str, Any], numbers: Sequence[int]) -> Iterator[Case]:
    """Return the releases: SMOTE in every file and ratio with usual and unusual seeds, the others at full precision."""
    for name, target in sets.items():
        for number in numbers:
            for decimals in FILES:
                for rows in (None, 2.0, 0.5):
                    yield Case(name, target, rows, "SMOTE", decimals, number, USED[number][rows is None])
            for decimals in (None, 1):
                yield Case(name, target, None, "SMOTE", decimals, number, UNUSUAL + number)
            for sampler in list(SAMPLERS)[1:]:
                yield Case(name, target, None, sampler, None, number, USED[number][0])


def summed(outcomes: list[tuple[Case, dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Return the tables: by file, by sampler, and by set."""
    frame = pd.DataFrame([vars(case) | {"usual": case.usual} | outcome for case, outcome in outcomes])
    frame["file"] = [
        "all digits, shuffled" if case.decimals is None else f"+{case.decimals} decimals, in order"
        for case, _ in outcomes
    ]
    frame["ratio"] = [
        "1:1" if case.rows is None else f"{case.rows:g} rows per record" for case, _ in outcomes
    ]

    def figures(group: pd.DataFrame) -> dict[str, Any]:
        used = group[group["usual"]]
        return {
            "releases": len(used),
            "found": mean(list(used["found"].astype(float))),
            "followed": mean(list(used["followed"])),
            "claims": int(group["claims"].sum()),
            "wrong": int(group["wrong"].sum()),
            "stated": float(group["stated"].sum()),
            "unusual": int((~group["usual"]).sum()),
            "false": int(group["other"].sum()),
            "seconds": mean(list(group["seconds"])),
        }

    smote = frame[frame["sampler"] == "SMOTE"]
    files = [
        {"file": file, "ratio": ratio, **figures(smote[(smote["file"] == file) & (smote["ratio"] == ratio)])}
        for file in smote["file"].unique()
        for ratio in smote["ratio"].unique()
    ]
    full = frame[(frame["file"] == "all digits, shuffled") & (frame["ratio"] == "1:1") & frame["usual"]]
    samplers = [
        {
            "sampler": sampler,
            **figures(full[full["sampler"] == sampler]),
            "named": mean(list(full[(full["sampler"] == sampler) & full["found"]]["named"].astype(float))),
        }
        for sampler in full["sampler"].unique()
    ]
    sets = [
        {"data": name, "file": file, **figures(smote[(smote["data"] == name) & (smote["file"] == file)])}
        for name in smote["data"].unique()
        for file in smote["file"].unique()
    ]
    return {"by file": files, "by sampler": samplers, "by set": sets}


def outcomes_of(sets: dict[str, Any], numbers: Sequence[int], chosen: Sequence[str] = ()) -> list[Any]:
    """Attack the releases of some sets."""
    done = []
    for case in cases(sets, numbers):
        if (not chosen or case.data in chosen) and (outcome := measured(case)) is not None:
            done.append((case, outcome))
    return done


def run(quick: bool, folder: Path, rounds: int | None) -> dict[str, Any]:
    """Attack the test sets; a round is a seed. A quick run takes one set that needs no folder."""
    sets = {"breast_cancer": None} if quick else TEST
    numbers = DEVELOPMENT_SEEDS[:1] if quick else TEST_SEEDS[: rounds or len(TEST_SEEDS)]
    outcomes = outcomes_of(sets, numbers)
    costs = [
        Cost(sum(outcome["seconds"] for case, outcome in outcomes if case.number == number))
        for number in numbers
    ]
    side = Side("ours", lambda: Cost(0.0), ["oversafe", "imbalanced-learn", "numba"])
    summary = summarize("seed", [side], [costs], quick)
    summary["tables"] = storable(summed(outcomes))
    summary["notes"] = [
        "'found': the share of the releases whose seed is one that is tried and was named. 'followed': the share of "
        "the distinct real records of the class that follow whole with p_wrong <= .05. 'wrong': claims that equal no "
        "real row in what they say, beside the sum of p_wrong. 'unusual': releases with a seed that is not tried; "
        "'false': releases for which another seed was named."
    ]
    return summary


if __name__ == "__main__":
    which, *only = sys.argv[1:]
    results = outcomes_of(
        *({"development": (DEVELOPMENT, DEVELOPMENT_SEEDS), "test": (TEST, TEST_SEEDS)}[which]), only
    )
    show_tables({"tables": storable(summed(results))}, Console(width=160))
