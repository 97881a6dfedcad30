"""The table that synthesizers under differential privacy are compared on, and how far a synthetic one is from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from oversafe.data import Column, Schema
from oversafe.protect import Synthesizer

COLUMNS, BINS = 15, 10
CARDINALITY = {**{f"c{i}": BINS for i in range(COLUMNS)}, "y": 2}
# Fit and sample in seconds and mean two-way total variation by the number of rows, at epsilon 1, measured with the
# peers' own packages on two cores.
PEERS = {
    "DataSynthesizer PrivBayes, k = 2": {50_000: (1500.0, 0.133)},
    "dpart PrivBayes": {10_000: (6.2, 0.363), 50_000: (13.3, 0.179)},
    "smartnoise AIM, sampled properly": {10_000: (73.0, 0.091), 50_000: (103.0, 0.069)},
    "smartnoise MST, sampled properly": {10_000: (22.0, 0.225), 50_000: (22.0, 0.068)},
}


def table(n: int, seed: int = 0) -> pd.DataFrame:
    """Return 15 columns of ten ordered cells that hang together, and a label that five in a hundred rows have."""
    rng = np.random.default_rng(seed)
    weights = np.random.default_rng(12345).normal(size=(4, COLUMNS)) * 0.7
    y = (rng.random(n) < 0.05).astype(int)
    z = rng.normal(size=(n, 4)) + 1.2 * y[:, None] * np.array([1, -1, 0.5, 0])
    x = z @ weights + 0.6 * rng.normal(size=(n, COLUMNS))
    bins = np.clip(((x + 4) / 8 * BINS).astype(int), 0, BINS - 1)
    return pd.DataFrame(bins, columns=[f"c{i}" for i in range(COLUMNS)]).assign(y=y)


def schema() -> Schema:
    """Return the public schema of the feature columns."""
    return Schema(
        tuple(
            Column(f"c{i}", "integer", "int64", bounds=(0, BINS - 1), domain="public", source="the benchmark")
            for i in range(COLUMNS)
        )
    )


def figures(
    methods: Mapping[str, Callable[[], Synthesizer]], sizes: Sequence[int], fits: int
) -> list[dict[str, Any]]:
    """Return distances from the real table, the mean of some fits with OpenDP's noise, beside those of peers."""
    found = []
    for n in sizes:
        real = table(n)
        for name, make in methods.items():
            rows = []
            for _ in range(fits):
                begin = perf_counter()
                X, y = make().fit_resample(real.drop(columns="y"), real["y"])
                rows.append((perf_counter() - begin, *_figures(real, X.assign(y=y))))
            found.append((name, n, *np.mean(rows, axis=0).tolist()))
        found.append(("a fresh sample of the same distribution", n, 0.0, *_figures(real, table(n, seed=1))))
        found += [(name, n, *known[n], "", "") for name, known in PEERS.items() if n in known]
    headings = ("method", "rows", "s", "2-way TV", "rare rows", "P(y = 1)")
    return [dict(zip(headings, row, strict=True)) for row in found]


def _figures(real: pd.DataFrame, made: pd.DataFrame) -> tuple[float, float, float]:
    return total_variation(real, made), minority_variation(real, made), float((made["y"] == 1).mean())


def total_variation(real: pd.DataFrame, synthetic: pd.DataFrame, order: int = 2) -> float:
    """Return the mean total variation distance over all marginals of an order, the label's included."""
    sets = list(combinations(CARDINALITY, order))
    return float(np.mean([_distance(real, synthetic, s) for s in sets]))


def minority_variation(real: pd.DataFrame, synthetic: pd.DataFrame) -> float:
    """Return the mean two-way total variation distance of the rows with the rare label alone."""
    real, synthetic = real[real["y"] == 1], synthetic[synthetic["y"] == 1]
    sets = list(combinations([name for name in CARDINALITY if name != "y"], 2))
    return float(np.mean([_distance(real, synthetic, s) for s in sets]))


def _distance(real: pd.DataFrame, synthetic: pd.DataFrame, names: tuple[str, ...]) -> float:
    return 0.5 * float(np.abs(_shares(real, names) - _shares(synthetic, names)).sum())


def _shares(rows: pd.DataFrame, names: tuple[str, ...]) -> np.ndarray:
    index = np.zeros(len(rows), dtype=np.int64)
    for name in names:
        index = index * CARDINALITY[name] + rows[name].to_numpy().astype(np.int64)
    size = int(np.prod([CARDINALITY[name] for name in names]))
    return np.bincount(index, minlength=size) / max(len(rows), 1)
