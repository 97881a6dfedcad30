"""DistinSMOTE on releases that are not the paper's: other samplers, few rows per record, rounded files.

Development: see it with ``python -m benchmarks.distin_cases development``; what decides a result was chosen there.
Test: ``python -m benchmarks distin-cases``.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from imblearn.over_sampling import ADASYN, SMOTE, SMOTENC, SVMSMOTE, BorderlineSMOTE, KMeansSMOTE
from rich.console import Console

from benchmarks import lattice
from benchmarks.lattice import Bools, Floats, digits, single, table
from benchmarks.runner import Cost, Side, summarize
from benchmarks.tables import mean, show_tables, storable
from oversafe.attack import DistinSMOTE, ReconSMOTE
from oversafe.data.infer import column_decimals

SUMMARY = "`oversafe.attack.DistinSMOTE` on other samplers, few rows per record and rounded files"

DEVELOPMENT = {**lattice.DEVELOPMENT, "magic_gamma": None, "dry_bean": "BOMBAY"}
TEST = {name: lattice.TEST[name] for name in lattice.TEST if name not in DEVELOPMENT} | lattice.NO_GRID
# Larger tables are thinned: what is told apart are the rows of one class.
_MOST_RECORDS, _MOST_OTHERS = 300, 1500
# A column with so few values is one of categories to SMOTENC.
_CATEGORIES = 5


def own_decimals(X: Floats) -> Callable[[Floats], Floats]:
    """Return what rounds each column to the decimals that the real table has in it."""
    decimals = column_decimals(X)

    def write(values: Floats) -> Floats:
        result = values.copy()
        for j, own in enumerate(decimals):
            if own is not None:
                result[:, j] = np.round(values[:, j], own)
        return result

    return write


FILES: dict[str, Callable[[Floats], Callable[[Floats], Floats]]] = {
    "full": lambda X: lambda values: values,
    "12 digits": lambda X: digits(12),
    "9 digits": lambda X: digits(9),
    "float32": lambda X: single,
    "6 digits": lambda X: digits(6),
    "3 decimals": lambda X: lambda values: np.round(values, 3),
    "own decimals": own_decimals,
}
SAMPLERS: dict[str, Callable[..., Any]] = {
    "SMOTE": lambda X, **settings: SMOTE(**settings),
    "Borderline-1": lambda X, **settings: BorderlineSMOTE(kind="borderline-1", **settings),
    "Borderline-2": lambda X, **settings: BorderlineSMOTE(kind="borderline-2", **settings),
    "SVMSMOTE": lambda X, **settings: SVMSMOTE(**settings),
    "ADASYN": lambda X, **settings: ADASYN(**settings),
    "KMeansSMOTE": lambda X, **settings: KMeansSMOTE(cluster_balance_threshold=0.01, **settings),
    "SMOTENC": lambda X, **settings: SMOTENC(categorical_features=categories(X), **settings),
}


@dataclass(frozen=True)
class Case:
    """An augmented table: its data, sampler, rows added per record (None: they balance the classes), and file."""

    data: str
    target: Any
    sampler: str
    rows: float | None
    written: str
    seed: int


def categories(X: Floats) -> list[int]:
    """Return the columns that are categories."""
    return [j for j in range(X.shape[1]) if len(np.unique(X[:, j])) <= _CATEGORIES]


def augmented(case: Case) -> tuple[Floats, Bools] | None:
    """Return the minority rows of an augmented table and which are real, or None where the sampler makes none."""
    X, minority = table(case.data, case.target)
    rng = np.random.default_rng(case.seed)
    kept = np.sort(
        np.concatenate(
            [
                rng.permutation(np.flatnonzero(minority))[:_MOST_RECORDS],
                rng.permutation(np.flatnonzero(~minority))[:_MOST_OTHERS],
            ]
        )
    )
    X, minority = X[kept], minority[kept]
    n_1, n_0 = int(minority.sum()), int((~minority).sum())
    added = n_0 - n_1 if case.rows is None else round(case.rows * n_1)
    if case.sampler == "SMOTENC" and len(categories(X)) in (0, X.shape[1]):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sampler = SAMPLERS[case.sampler](
                X, random_state=case.seed, sampling_strategy={0: n_0, 1: n_1 + added}
            )
            rows, labels = sampler.fit_resample(X, minority.astype(int))
    except (ValueError, RuntimeError):
        return None
    real, made = X[minority], np.asarray(rows[len(X) :], dtype=float)[labels[len(X) :] == 1]
    if not len(made):
        return None
    both = FILES[case.written](X)(np.vstack([real, made]))
    order = np.random.default_rng(case.seed).permutation(len(both))
    truth = order < len(real)
    # What equals a real row is one.
    names = np.unique(both[order], axis=0, return_inverse=True)[1].ravel()
    return both[order], np.isin(names, names[truth])


def measured(case: Case, *, recon: bool = False) -> dict[str, Any] | None:
    """Attack one table."""
    made = augmented(case)
    if made is None:
        return None
    X, truth = made
    begin = perf_counter()
    result = DistinSMOTE().run(X)
    seconds = perf_counter() - begin
    p_real = getattr(result, "p_real", result.is_real.astype(float))
    outcome = {"p": p_real, "truth": truth, "rows made": int((~truth).sum()), "seconds": seconds}
    outcome |= scores(result.is_real, truth)
    if recon:
        outcome |= {f"recon {key}": value for key, value in scores(at_records(X), truth).items()}
    return outcome


def at_records(X: Floats) -> Bools:
    """Return the rows that ReconSMOTE takes for real: each record's nearest, if it is within the record's error."""
    found = ReconSMOTE().run(X)
    there = np.zeros(len(X), dtype=bool)
    span = np.where(np.ptp(X, axis=0) > 0, np.ptp(X, axis=0), 1.0)
    for record, radius in zip(np.asarray(found.records, dtype=float), found.radius, strict=True):
        off = np.nanmax(np.abs(X - record) / span, axis=1)
        there |= (off == off.min()) & (off <= max(2.0 * radius, 1e-9))
    return there


def scores(is_real: Bools, truth: Bools) -> dict[str, float]:
    """Return precision, recall and the true less the false positive rate."""
    hits = int((is_real & truth).sum())
    false = int((is_real & ~truth).sum())
    made = int((~truth).sum())
    return {
        "P": hits / int(is_real.sum()) if is_real.any() else np.nan,
        "R": hits / int(truth.sum()),
        "gain": hits / int(truth.sum()) - (false / made if made else 0.0),
    }


def cases(sets: dict[str, Any], seeds: Sequence[int]) -> Iterator[Case]:
    """Return all releases."""
    for seed in seeds:
        for name, target in sets.items():
            for sampler in SAMPLERS:
                for rows in (None, 0.2):
                    for written in FILES:
                        yield Case(name, target, sampler, rows, written, seed)


def summed(outcomes: list[tuple[Case, dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Return the tables: by sampler, ratio and file, by set, and stated against true shares."""
    frame = pd.DataFrame([vars(case) | outcome for case, outcome in outcomes])
    frame["ratio"] = ["1:1" if case.rows is None else str(case.rows) for case, _ in outcomes]

    def figures(group: pd.DataFrame) -> dict[str, Any]:
        p = np.concatenate([*group["p"], np.zeros(0)])
        truth = np.concatenate([*group["truth"], np.zeros(0, dtype=bool)])
        names = [name for name in ("P", "R", "gain", "recon P", "recon R", "recon gain") if name in group]
        return {
            "tables": len(group),
            **{name: mean([value for value in group[name] if not np.isnan(value)]) for name in names},
            "worst": float(group["gain"].min()),
            "Brier": float(((p - truth) ** 2).mean()),
            "s": float(group["seconds"].mean()),
        }

    keys = ["sampler", "ratio", "written"]
    by_case = [
        dict(zip(keys, key, strict=True)) | figures(group) for key, group in frame.groupby(keys, sort=False)
    ]
    by_set = [
        {"data": key[0], "written": key[1]} | figures(group)
        for key, group in frame.groupby(["data", "written"], sort=False)
    ]
    p, truth = np.concatenate(list(frame["p"])), np.concatenate(list(frame["truth"]))
    ends = [0, 1e-4, 0.01, 0.05, 0.2, 0.4, 0.5, 0.6, 0.8, 0.95, 0.99, 0.9999, 1.0]
    stated = []
    for low, high in pairwise(ends):
        here = (p >= low) & ((p < high) | (high == 1.0))
        if here.any():
            stated.append(
                {
                    "p_real": f"{low:g} to {high:g}",
                    "rows": int(here.sum()),
                    "stated real": float(p[here].mean()),
                    "real": float(truth[here].mean()),
                }
            )
    return {"by release": by_case, "by set": by_set, "stated and true shares": stated}


def outcomes_of(
    sets: dict[str, Any], seeds: Sequence[int], chosen: Sequence[str] = (), *, recon: bool = False
) -> list[Any]:
    """Attack the releases of some sets, samplers, files or ratios."""
    done = []
    for case in cases(sets, seeds):
        facets = [
            (case.data, sets),
            (case.sampler, SAMPLERS),
            (case.written, FILES),
            ("1:1" if case.rows is None else str(case.rows), ("1:1", "0.2")),
        ]
        if all(not set(chosen) & set(every) or own in chosen for own, every in facets):
            outcome = measured(case, recon=recon)
            if outcome is not None:
                done.append((case, outcome))
    return done


def run(quick: bool, folder: Path, rounds: int | None) -> dict[str, Any]:
    """Attack the test sets; a round is a seed. A quick run takes one set that needs no folder."""
    sets = {"breast_cancer": None} if quick else TEST
    seeds = [lattice.TEST_SEEDS[0] + i for i in range(rounds or 1)]
    outcomes = outcomes_of(sets, seeds, ["SMOTE", "SVMSMOTE", "full", "3 decimals"] if quick else ())
    costs = [Cost(sum(found["seconds"] for case, found in outcomes if case.seed == seed)) for seed in seeds]
    side = Side("ours", lambda: Cost(0.0), ["oversafe", "imbalanced-learn", "numba"])
    summary = summarize("distin-cases", [side], [costs], quick)
    summary["tables"] = storable(summed(outcomes))
    summary["notes"] = [
        'Precision (P) and recall (R) of the label "real", and recall less the share of the synthetic rows that '
        "have it ('gain'), means over the sets; what equals a real row counts as real. At most "
        f"{_MOST_RECORDS} records and {_MOST_OTHERS} rows of the other classes are taken of a set."
    ]
    return summary


if __name__ == "__main__":
    which, *only = sys.argv[1:]
    plan = {"development": (DEVELOPMENT, (0,)), "development-1": (DEVELOPMENT, (1,)), "test": (TEST, (100,))}
    results = outcomes_of(*plan[which], [own for own in only if own != "recon"], recon="recon" in only)
    show_tables({"tables": storable(summed(results))}, Console(width=180))
