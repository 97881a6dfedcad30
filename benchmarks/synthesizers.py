"""The synthesizers under differential privacy beside each other, on the table that they are compared on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import dp_table
from benchmarks.runner import Side, in_this_process
from oversafe.protect import AIM, GEM, MST, HistogramSynthesizer, PrivateMixture, PrivBayes, Synthesizer

SUMMARY = "Six synthesizers at epsilon 1: seconds and distances from the real table"
KNOWN: dict[str, Any] = {"schema": dp_table.schema(), "classes": [0, 1]}
# The peers' relation, under which their figures were made.
METHODS: dict[str, Callable[[], Synthesizer]] = {
    "PrivateMixture": lambda: PrivateMixture(1.0, relation="add-remove", **KNOWN),
    "PrivateMixture, replace-one": lambda: PrivateMixture(1.0, **KNOWN),
    "GEM": lambda: GEM(1.0, relation="add-remove", **KNOWN),
    "GEM, replace-one": lambda: GEM(1.0, **KNOWN),
    "AIM": lambda: AIM(1.0, relation="add-remove", **KNOWN),
    "MST": lambda: MST(1.0, relation="add-remove", **KNOWN),
    "PrivBayes, delta 1e-9": lambda: PrivBayes(1.0, delta=1e-9, relation="add-remove", **KNOWN),
    "PrivBayes, replace-one, pure": lambda: PrivBayes(1.0, **KNOWN),
    "HistogramSynthesizer, replace-one, pure": lambda: HistogramSynthesizer(1.0, **KNOWN),
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
    """Return distances from the real table beside those of peers."""
    slow = ("AIM", "MST", "GEM")
    methods = {name: make for name, make in METHODS.items() if not quick or not name.startswith(slow)}
    return dp_table.figures(methods, *(((1_000,), 1) if quick else ((10_000, 50_000), 3)))
