"""PrivBayes on the table that synthesizers under differential privacy are compared on."""

from __future__ import annotations

from pathlib import Path
from statistics import mean
from time import perf_counter
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
    """Return distances from the real table, the mean of some fits with OpenDP's noise, beside those of peers."""
    found = []
    known: dict[str, Any] = {"schema": dp_table.schema(), "classes": [0, 1]}
    sizes, fits = ((1_000,), 1) if quick else ((10_000, 50_000), 5)
    for n in sizes:
        real = dp_table.table(n)
        for name, make in (
            ("PrivBayes", lambda: PrivBayes(1.0, **known)),
            ("PrivBayes, degree 1", lambda: PrivBayes(1.0, degree=1, **known)),
            ("PrivBayes, delta 1e-9", lambda: PrivBayes(1.0, delta=1e-9, **known)),
            ("HistogramSynthesizer", lambda: HistogramSynthesizer(1.0, **known)),
        ):
            rows = []
            for _ in range(fits):
                begin = perf_counter()
                X, y = make().fit_resample(real.drop(columns="y"), real["y"])
                seconds, made = perf_counter() - begin, X.assign(y=y)
                rows.append(
                    (
                        seconds,
                        dp_table.total_variation(real, made),
                        dp_table.minority_variation(real, made),
                        float((y == 1).mean()),
                    )
                )
            seconds, both, rare, share = (mean(column) for column in zip(*rows, strict=True))
            found.append(
                {
                    "method": name,
                    "rows": n,
                    "s": seconds,
                    "2-way TV": both,
                    "rare rows": rare,
                    "P(y = 1)": share,
                }
            )
        fresh = dp_table.table(n, seed=1)
        found.append(
            {
                "method": "a fresh sample of the same distribution",
                "rows": n,
                "s": 0.0,
                "2-way TV": dp_table.total_variation(real, fresh),
                "rare rows": dp_table.minority_variation(real, fresh),
                "P(y = 1)": float(fresh["y"].mean()),
            }
        )
    for name, (seconds, both) in dp_table.PEERS.items():
        found.append(
            {"method": name, "rows": 50_000, "s": seconds, "2-way TV": both, "rare rows": "", "P(y = 1)": ""}
        )
    return found
