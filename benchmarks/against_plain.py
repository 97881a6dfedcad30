"""An attack of ours beside the plain transcription of the paper's, on the eight data sets and on growing ones.

Each run has a process of its own, so that peaks of memory do not mix, and is timed after the attack has run there on a
tiny release and on the first rows of the table, so that nothing is compiled or imported on the clock. The sides take
turns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.releases import (
    GAUSSIAN_RATIO,
    K_NEIGHBORS,
    QUICK,
    Floats,
    gaussian_release,
    scaled,
    smote_release,
)
from benchmarks.runner import Cost, Side, in_a_fresh_process, summarize
from benchmarks.tables import growth_exponent, mean, storable
from oversafe.papers.base import EIGHT

# Threads that wait for one another in a loop would cost more than they bring where other work has a core.
_SETUP = """
import atexit, os
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
import numpy as np
from {module} import {name}

def attack(X, ratio):
    return {call}

X = np.load({table!r})
attack(np.load({tiny!r}), {tiny_ratio})
attack(X[:{first}], ratio={tiny_ratio})
atexit.register(lambda: np.save({found!r}, found))
"""
_FIRST_ROWS = 1500
SIZES, QUICK_SIZES = (10_000, 30_000, 100_000, 300_000), (1_000, 3_000)


@dataclass(frozen=True)
class Contender:
    """One side of the comparison.

    Parameters
    ----------
    label : str
        What the tables call it.
    module, name : str
        Where the attack is imported from.
    call : str
        An expression for what it finds in ``X``, given ``ratio``.
    packages : sequence of str
        The packages whose versions belong to the figures.
    """

    label: str
    module: str
    name: str
    call: str
    packages: Sequence[str]

    def run(self, folder: Path, X: Floats, ratio: float) -> tuple[Cost, NDArray[Any]]:
        """Attack a table in a fresh process; return what it cost and what was found."""
        tiny_real, tiny = gaussian_release(520, seed=0)
        files = {name: str(folder / f"{name}.npy") for name in ("tiny", "table", "found")}
        np.save(files["tiny"], np.vstack([tiny_real, tiny]))
        np.save(files["table"], X)
        setup = _SETUP.format(
            module=self.module,
            name=self.name,
            call=self.call,
            tiny_ratio=GAUSSIAN_RATIO,
            first=_FIRST_ROWS,
            **files,
        )
        cost = in_a_fresh_process(f"found = attack(X, {ratio!r})", setup)()
        return cost, np.load(files["found"])


def compare(
    name: str,
    contenders: Sequence[Contender],
    release: Callable[[Floats, Floats, int], Floats],
    score: Callable[[Floats, NDArray[Any], Floats], tuple[float, float]],
    published: pd.DataFrame,
    *,
    quick: bool,
    folder: Path,
    seeds: int,
) -> dict[str, Any]:
    """Return the figures of two attacks that do the same.

    Parameters
    ----------
    name : str
        The benchmark.
    contenders : sequence of Contender
        Ours, then the plain one.
    release : callable
        Makes the attacked table of the real records, the synthetic rows and a seed.
    score : callable
        Precision and recall from the attacked table, what was found, and the real records.
    published : DataFrame
        The paper's precision and recall, a row for each data set.
    quick : bool
        One embedded data set and small Gaussian tables.
    folder : Path
        For temporary files.
    seeds : int
        How many releases of each data set are attacked.
    """
    times: list[dict[str, Any]] = []
    found: list[dict[str, Any]] = []
    turns: list[list[Cost]] = [[] for _ in contenders]
    for data_set in QUICK if quick else EIGHT:
        X, minority = scaled(data_set)
        ratio = (~minority).sum() / minority.sum()
        runs = []
        for seed in range(seeds):
            real, synthetic = smote_release(X, minority, seed)
            table = release(real, synthetic, seed)
            runs.append(_turn(contenders, folder, table, real, float(ratio), score))
        times.append({"data": data_set, "rows": len(table), **_costs(contenders, runs)})
        paper = published.loc[data_set].tolist() if data_set in published.index else (None, None)
        found.append(
            {
                "data": data_set,
                "records": len(np.unique(real, axis=0)),
                **_scores(contenders, runs),
                "paper P": paper[0],
                "paper R": paper[1],
            }
        )
        for side in range(len(contenders)):
            turns[side] += [run[side][0] for run in runs]
    found.append({key: mean([row[key] for row in found]) for key in found[0] if key != "data"})
    found[-1] = {"data": "mean", **found[-1], "records": None}

    growth: list[dict[str, Any]] = []
    for size in QUICK_SIZES if quick else SIZES:
        real, synthetic = gaussian_release(size, seed=0)
        table = release(real, synthetic, 0)
        runs = [_turn(contenders, folder, table, real, GAUSSIAN_RATIO, score)]
        times.append({"data": f"Gaussian {size}", "rows": len(table), **_costs(contenders, runs)})
        found.append(
            {
                "data": f"Gaussian {size}",
                "records": len(real),
                **_scores(contenders, runs),
                "paper P": None,
                "paper R": None,
            }
        )
        growth.append(times[-1])
    exponents = {
        c.label: growth_exponent([r["rows"] for r in growth], [r[f"{c.label} s"] for r in growth])
        for c in contenders
    }

    sides = [Side(c.label, lambda: Cost(0.0), c.packages) for c in contenders]
    # One turn is one seed, over all data sets.
    per_seed = [
        [
            Cost(
                sum(cost.seconds for cost in costs[seed::seeds]),
                max(cost.peak_memory or 0 for cost in costs[seed::seeds]) or None,
            )
            for seed in range(seeds)
        ]
        for costs in turns
    ]
    summary = summarize(name, sides, per_seed, quick)
    summary["tables"] = storable(
        {
            f"SMOTE with k = {K_NEIGHBORS}: time and memory": times,
            f"SMOTE with k = {K_NEIGHBORS}: precision (P) and recall (R)": found,
        }
    )
    summary["growth_exponents"] = exponents
    summary["notes"] = [
        "Growth on Gaussian data: "
        + ", ".join(f"{label} takes rows^{power:.2f}" for label, power in exponents.items())
        + ".",
        f"{seeds} seeds of each data set (a round of the first table is one seed of all of them), 1 of the Gaussian "
        "ones. Times are medians, each run in a process of its own after the attack has run there on small tables "
        "(compiled code is loaded by then). Ours gets no parameter, the plain one k and the imbalance ratio.",
    ]
    return summary


def _turn(
    contenders: Sequence[Contender],
    folder: Path,
    table: Floats,
    real: Floats,
    ratio: float,
    score: Callable[[Floats, NDArray[Any], Floats], tuple[float, float]],
) -> list[tuple[Cost, float, float]]:
    """Return the cost, precision and recall of each side on one table."""
    turn = []
    for contender in contenders:
        cost, found = contender.run(folder, table, ratio)
        turn.append((cost, *score(table, found, real)))
    return turn


def _costs(
    contenders: Sequence[Contender], runs: Sequence[list[tuple[Cost, float, float]]]
) -> dict[str, float | None]:
    """Return median seconds, their ratio and the highest peaks of the runs on one data set."""
    seconds = [float(np.median([run[side][0].seconds for run in runs])) for side in range(len(contenders))]
    figures: dict[str, float | None] = {f"{c.label} s": s for c, s in zip(contenders, seconds, strict=True)}
    figures["plain / ours"] = seconds[1] / seconds[0]
    for side, contender in enumerate(contenders):
        peaks = [run[side][0].peak_memory or 0 for run in runs]
        figures[f"{contender.label} MiB"] = max(peaks) / 2**20 if all(peaks) else None
    return figures


def _scores(
    contenders: Sequence[Contender], runs: Sequence[list[tuple[Cost, float, float]]]
) -> dict[str, float]:
    """Return the mean precision and recall of the runs on one data set."""
    figures = {}
    for side, contender in enumerate(contenders):
        figures[f"{contender.label} P"] = mean([run[side][1] for run in runs])
        figures[f"{contender.label} R"] = mean([run[side][2] for run in runs])
    return figures
