"""ReconSMOTE: how long it takes to read the real records back, and how many it gets right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.against_plain import Contender, compare
from benchmarks.releases import K_NEIGHBORS, score_records
from oversafe.papers.base import published

SUMMARY = "`oversafe.attack.ReconSMOTE` against Algorithm 3 of the paper in numpy"
OURS = Contender(
    "ours", "oversafe.attack", "ReconSMOTE", "ReconSMOTE().run(X).records", ["oversafe", "numba", "scipy"]
)
PLAIN = Contender(
    "plain",
    "benchmarks.plain_smote_attacks",
    "plain_recon",
    f"plain_recon(X, {K_NEIGHBORS}, ratio)",
    ["numpy", "scikit-learn"],
)
# Precision and recall in the paper's Table 4.
_COLUMNS = ["reconsmote_precision", "reconsmote_recall"]
PUBLISHED = published("smote_and_mirrors_synthetic").set_index("dataset")[_COLUMNS]


def run(quick: bool, folder: Path, rounds: int | None) -> dict[str, Any]:
    """Attack the synthetic rows alone; a round is a seed."""
    return compare(
        "recon",
        [OURS, PLAIN],
        lambda real, synthetic, seed: synthetic,
        lambda table, found, real: score_records(found, real),
        PUBLISHED,
        quick=quick,
        folder=folder,
        seeds=rounds or (2 if quick else 5),
    )
