"""PrivBayes on the table that synthesizers under differential privacy are compared on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import dp_table
from benchmarks.runner import Side, in_this_process
from oversafe.protect import HistogramSynthesizer, PrivBayes

SUMMARY = (
    "`oversafe.protect.PrivBayes`, fit and sample at epsilon 1: seconds and distances from the real table"
)


def sides(quick: bool, folder: Path) -> list[Side]:
    """Return fit and sample at 50,000 rows, and a sample of a million; all noise is OpenDP's."""
    real = dp_table.table(2_000 if quick else 50_000)
    X, y = real.drop(columns="y"), real["y"]
    fitted = PrivBayes(1.0, schema=dp_table.schema(), classes=[0, 1]).fit(X, y)
    if fitted.guarantee_.status != "proven":
        raise AssertionError(str(fitted.guarantee_))

    def work(**settings: Any) -> None:
        PrivBayes(1.0, schema=dp_table.schema(), classes=[0, 1], **settings).fit_resample(X, y)

    rows = 10_000 if quick else 1_000_000
    return [
        Side("PrivBayes, pure", in_this_process(work), ["oversafe", "opendp", "numba"]),
        Side("PrivBayes, delta 1e-9", in_this_process(lambda: work(delta=1e-9))),
        Side(f"a sample of {rows} rows", in_this_process(lambda: fitted.sample(rows))),
    ]


def figures(quick: bool) -> list[dict[str, Any]]:
    """Return distances from the real table beside those of peers."""
    known: dict[str, Any] = {"schema": dp_table.schema(), "classes": [0, 1]}
    methods = {
        "PrivBayes": lambda: PrivBayes(1.0, **known),
        "PrivBayes, degree 1": lambda: PrivBayes(1.0, degree=1, **known),
        "PrivBayes, delta 1e-9": lambda: PrivBayes(1.0, delta=1e-9, **known),
        "HistogramSynthesizer": lambda: HistogramSynthesizer(1.0, **known),
    }
    return dp_table.figures(methods, *(((1_000,), 1) if quick else ((10_000, 50_000), 5)))
