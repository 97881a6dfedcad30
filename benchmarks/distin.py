"""DistinSMOTE: how long it takes to tell real rows from synthetic ones, and how many it gets right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.against_plain import Contender, compare
from benchmarks.releases import K_NEIGHBORS, augmented, score_labels
from oversafe.papers.base import published

SUMMARY = "`oversafe.attack.DistinSMOTE` against Algorithm 2 of the paper in numpy"
OURS = Contender(
    "ours", "oversafe.attack", "DistinSMOTE", "DistinSMOTE().run(X).is_real", ["oversafe", "numba", "scipy"]
)
PLAIN = Contender(
    "plain",
    "benchmarks.plain_smote_attacks",
    "plain_distin",
    f"plain_distin(X, {K_NEIGHBORS}, ratio)",
    ["numpy", "scikit-learn"],
)
# Precision and recall in the paper's Table 3.
_COLUMNS = ["distinsmote_precision", "distinsmote_recall"]
PUBLISHED = published("smote_and_mirrors_augmented").set_index("dataset")[_COLUMNS]


def run(quick: bool, folder: Path, rounds: int | None) -> dict[str, Any]:
    """Attack real and synthetic rows together; a round is a seed."""
    return compare("distin", [OURS, PLAIN], augmented, score_labels, PUBLISHED, quick=quick, folder=folder,
                   seeds=rounds or (2 if quick else 5))  # fmt: skip
