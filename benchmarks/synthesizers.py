"""The synthesizers under differential privacy beside each other, on the table that they are compared on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import mean
from time import perf_counter
from typing import Any

from benchmarks import dp_table
from benchmarks.runner import Side, in_this_process
from oversafe.protect import AIM, GEM, MST, HistogramSynthesizer, PrivateMixture, PrivBayes, Synthesizer

SUMMARY = "Six synthesizers at epsilon 1: seconds and distances from the real table"
KNOWN: dict[str, Any] = {"schema": dp_table.schema(), "classes": [0, 1]}
# The peers' relation, under which their figures were made.
METHODS: dict[str, Callable[..., Synthesizer]] = {
    "PrivateMixture": lambda **p: PrivateMixture(1.0, relation="add-remove", **KNOWN, **p),
    "PrivateMixture, replace-one": lambda **p: PrivateMixture(1.0, **KNOWN, **p),
    "GEM": lambda **p: GEM(1.0, relation="add-remove", **KNOWN, **p),
    "GEM, replace-one": lambda **p: GEM(1.0, **KNOWN, **p),
    "AIM": lambda **p: AIM(1.0, relation="add-remove", **KNOWN, **p),
    "MST": lambda **p: MST(1.0, relation="add-remove", **KNOWN, **p),
    "PrivBayes, delta 1e-9": lambda **p: PrivBayes(1.0, delta=1e-9, relation="add-remove", **KNOWN, **p),
    "PrivBayes, replace-one, pure": lambda **p: PrivBayes(1.0, **KNOWN, **p),
    "HistogramSynthesizer, replace-one, pure": lambda **p: HistogramSynthesizer(1.0, **KNOWN, **p),
}
# Fit and sample, seconds and mean 2-way total variation, measured with the peers' own packages on two cores.
PEERS = {
    "smartnoise AIM, sampled properly": {10_000: (73.0, 0.091), 50_000: (103.0, 0.069)},
    "smartnoise MST, sampled properly": {10_000: (22.0, 0.225), 50_000: (22.0, 0.068)},
    "dpart PrivBayes": {10_000: (6.2, 0.363), 50_000: (13.3, 0.179)},
}


def sides(quick: bool, folder: Path) -> list[Side]:
    """Return fit and sample at 50,000 rows; all noise is OpenDP's."""
    real = dp_table.table(2_000 if quick else 50_000)
    X, y = real.drop(columns="y"), real["y"]
    names = ["PrivateMixture", "PrivBayes, delta 1e-9"] + ([] if quick else ["MST", "AIM", "GEM"])
    return [
        Side(
            name,
            in_this_process(lambda name=name: METHODS[name]().fit_resample(X, y)),
            ["oversafe", "opendp"],
        )
        for name in names
    ]


def figures(quick: bool) -> list[dict[str, Any]]:
    """Return distances from the real table, the mean of some fits with OpenDP's noise, beside those of peers."""
    found = []
    sizes, fits = ((1_000,), 1) if quick else ((10_000, 50_000), 3)
    for n in sizes:
        real = dp_table.table(n)
        for name, make in METHODS.items():
            if quick and name.startswith(("AIM", "MST", "GEM")):
                continue
            rows = []
            for _ in range(fits):
                begin = perf_counter()
                X, y = make().fit_resample(real.drop(columns="y"), real["y"])
                seconds, made = perf_counter() - begin, X.assign(y=y)
                distances = dp_table.total_variation(real, made), dp_table.minority_variation(real, made)
                rows.append((seconds, *distances, float((y == 1).mean())))
            seconds, both, rare, share = (mean(column) for column in zip(*rows, strict=True))
            found.append(_row(name, n, seconds, both, rare, share))
        fresh = dp_table.table(n, seed=1)
        distances = dp_table.total_variation(real, fresh), dp_table.minority_variation(real, fresh)
        found.append(_row("a fresh sample of the same distribution", n, 0.0, *distances, 0.05))
        for name, known in PEERS.items():
            if n in known:
                found.append(_row(name, n, *known[n], None, None))
    return found


def _row(
    name: str, n: int, seconds: float, both: float, rare: float | None, share: float | None
) -> dict[str, Any]:
    return {
        "method": name,
        "rows": n,
        "s": seconds,
        "2-way TV": both,
        "rare rows": rare,
        "P(y = 1)": share,
    }
