"""The verdict follows its rules, at their very edges."""

import pandas as pd
import pytest

from oversafe.attack import AttackResult
from oversafe.privacy import Guarantee
from oversafe.report.verdict import Finding, judge


def finding(low, high=1.0, certain=0):
    result = AttackResult("Some attack", "membership", (low + high) / 2, (low, high), pd.DataFrame())
    return Finding(result, "it tells who was in the data.", certain)


PROVEN = Guarantee.pure(1.0, "a theorem")
NONE = Guarantee.none("rows are real")


@pytest.mark.parametrize(
    ("findings", "guarantee", "level"),
    [
        ([finding(0.0, 0.1, certain=1)], PROVEN, "exposed"),
        ([finding(0.1)], PROVEN, "exposed"),
        ([finding(0.0), finding(0.1)], NONE, "exposed"),
        ([finding(0.0999)], PROVEN, "unproven"),
        ([finding(0.0501)], PROVEN, "unproven"),
        ([finding(0.05)], PROVEN, "protected"),
        ([], PROVEN, "protected"),
        ([finding(0.0)], Guarantee.pure(10.0, "a theorem"), "protected"),
        ([finding(0.0)], Guarantee.pure(10.1, "a theorem"), "unproven"),
        ([finding(0.0)], PROVEN.weaken("seeded"), "unproven"),
        ([finding(0.0)], NONE, "unproven"),
        ([], NONE, "unproven"),
    ],
)
def test_rules(findings, guarantee, level):
    verdict = judge(findings, guarantee)
    assert verdict.level == level
    assert verdict.sentence.endswith(".")
