"""The five generators of the UMAP-SMOTENC paper on its eight data sets, with its statistics; resumable.

The cells are those of ``oversafe reproduce umap-smotenc``, whose quick run leaves out the two deep generators.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.runner import CHECKOUT, Cost, Side, summarize
from benchmarks.tables import storable
from oversafe.experiment import run_grid
from oversafe.papers import umap_smotenc

SUMMARY = (
    "trade-off of five generators on eight data sets, 5,000 rows (extras umap, boost, baselines); resumable"
)


def run(quick: bool, folder: Path, rounds: int | None) -> dict[str, Any]:
    """Make and measure each release once: one fold, classifiers that are not tuned."""
    names = ("breast_cancer",) if quick else umap_smotenc.SETS
    cells = umap_smotenc.cells(True, names)
    if not quick:
        first = [cell for cell in cells if cell["method"] == umap_smotenc.ORIGINAL]
        cells += [cell | {"method": method} for method in umap_smotenc.DEEP for cell in first]
    store = folder if quick else CHECKOUT / "benchmarks" / "results" / "umap-five.local"
    table = run_grid(umap_smotenc.run, cells, store=store, n_jobs=1)
    done = table[table["status"] == "done"]
    costs = [[Cost(seconds) for seconds in own["seconds"]] for _, own in done.groupby("method", sort=False)]
    sides = [Side(name, lambda: Cost(0.0), ["oversafe"]) for name in done["method"].unique()]
    summary = summarize("umap-five", sides, costs, quick)
    found = umap_smotenc.summarize(table)
    tables = {title: rows.to_dict("records") for title, rows in found.tables.items()}
    tables["published and measured"] = found.rows.drop(columns="agrees").to_dict("records")
    summary["tables"] = storable(tables)
    summary["notes"] = [f"{claim.sentence}: {claim.holds} ({claim.measured})" for claim in found.claims]
    return summary
