"""ReconSMOTE: how long it takes to read the real records back, and how many it gets right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.against_plain import Contender, compare
from benchmarks.releases import K_NEIGHBORS, score_records

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
PUBLISHED = {
    "ecoli": (1.00, 0.43),
    "abalone": (1.00, 0.62),
    "car_eval_34": (1.00, 0.83),
    "solar_flare_m0": (1.00, 0.95),
    "car_eval_4": (1.00, 1.00),
    "yeast_me2": (1.00, 1.00),
    "mammography": (1.00, 1.00),
    "abalone_19": (1.00, 1.00),
}


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
