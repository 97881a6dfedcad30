"""Singling people out by what is rare in a release: 500 predicates on one column, 500 on three, one core."""

from __future__ import annotations

from pathlib import Path

from benchmarks.anonymeter_peer import REQUIREMENT, make_sides
from benchmarks.runner import Side

SUMMARY = "`oversafe.attack.SinglingOut` against anonymeter's, both modes, 10,000 x 10 mixed columns"
PEER = REQUIREMENT

_MODES = ("univariate", "multivariate")
_OURS = f"""
from oversafe.attack import SinglingOut

def work(release, real, holdout):
    results = [
        SinglingOut(mode, n_attacks=500, n_columns=3, random_state=0, n_jobs=1).run(release, real, holdout)
        for mode in {_MODES}
    ]
    return [(result.risk, *result.interval) for result in results]
"""
_THEIRS = f"""
from anonymeter.evaluators import SinglingOutEvaluator

def work(release, real, holdout):
    found = []
    for mode in {_MODES}:
        attack = SinglingOutEvaluator(ori=real, syn=release, control=holdout, n_attacks=500, n_cols=3)
        risk = attack.evaluate(mode=mode).risk()
        found.append((float(risk.value), float(risk.ci[0]), float(risk.ci[1])))
    return found
"""


def sides(quick: bool, folder: Path) -> list[Side]:
    """Write the tables, check that both find the same risks, and return both."""
    return make_sides(quick, folder, _OURS, _THEIRS, ("SinglingOut", "SinglingOutEvaluator"), _MODES)
