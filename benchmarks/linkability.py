"""Linking two sources through a release: 500 people of the real table and 500 of the holdout, one core."""

from __future__ import annotations

from pathlib import Path

from benchmarks.anonymeter_peer import REQUIREMENT, make_sides
from benchmarks.runner import Side

SUMMARY = "`oversafe.attack.Linkability` against anonymeter's, 10,000 x 10 mixed columns"
PEER = REQUIREMENT

_OURS = """
from oversafe.attack import Linkability

def work(release, real, holdout):
    result = Linkability(columns[::2], columns[1::2], n_attacks=500, random_state=0, n_jobs=1).run(
        release, real, holdout
    )
    return [(result.risk, *result.interval)]
"""
_THEIRS = """
from anonymeter.evaluators import LinkabilityEvaluator

def work(release, real, holdout):
    attack = LinkabilityEvaluator(
        ori=real, syn=release, control=holdout, n_attacks=min(500, len(real)), n_neighbors=1,
        aux_cols=(columns[::2], columns[1::2]),
    )
    risk = attack.evaluate(n_jobs=1).risk()
    return [(float(risk.value), float(risk.ci[0]), float(risk.ci[1]))]
"""


def sides(quick: bool, folder: Path) -> list[Side]:
    """Write the tables, check that both find the same risk, and return both."""
    return make_sides(quick, folder, _OURS, _THEIRS, ("Linkability", "LinkabilityEvaluator"), ["risk"])
