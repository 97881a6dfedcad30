"""ReconSMOTE on a million rows: does it end, in how much memory, and with how many records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.recon import OURS
from benchmarks.releases import GAUSSIAN_COLUMNS, GAUSSIAN_RATIO, gaussian_release, score_records
from benchmarks.runner import Side, summarize
from benchmarks.tables import storable

SUMMARY = "`oversafe.attack.ReconSMOTE` on 1,000,000 synthetic rows of 38,461 records"
ROWS, QUICK_ROWS = 1_000_000, 3_000


def run(quick: bool, folder: Path, rounds: int | None) -> dict[str, Any]:
    """Attack one large Gaussian table; a round is a seed, one by default."""
    costs, figures = [], []
    for seed in range(rounds or 1):
        real, synthetic = gaussian_release(QUICK_ROWS if quick else ROWS, seed)
        cost, found = OURS.run(folder, synthetic, GAUSSIAN_RATIO)
        costs.append(cost)
        precision, recall = score_records(found, real)
        figures.append(
            {
                "rows": len(synthetic),
                "columns": GAUSSIAN_COLUMNS,
                "records": len(real),
                "s": cost.seconds,
                "GiB": np.nan if cost.peak_memory is None else cost.peak_memory / 2**30,
                "precision": precision,
                "recall": recall,
            }
        )
    summary = summarize("recon-large", [Side("ours", lambda: cost, OURS.packages)], [costs], quick)
    summary["tables"] = storable({"one release per row, each in a process of its own": figures})
    return summary
