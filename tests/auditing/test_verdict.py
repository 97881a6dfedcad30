"""The verdict follows its rules, at their very edges."""

from dataclasses import replace

import pandas as pd
import pytest

from oversafe.attack import AttackResult
from oversafe.attack.class_tables import ANOTHER_LABEL
from oversafe.auditing.verdict import Finding, judge
from oversafe.privacy import Guarantee
from oversafe.privacy.guarantee import OVER_THE_REALS


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
        ([finding(0.0)], Guarantee.pure(3.0, "a theorem"), "protected"),
        ([finding(0.0)], Guarantee.pure(3.01, "a theorem"), "unproven"),
        ([finding(0.0)], PROVEN.weaken("seeded"), "unproven"),
        ([finding(0.0)], PROVEN.assuming(OVER_THE_REALS), "protected"),
        ([finding(0.0)], NONE, "unproven"),
        ([], NONE, "unproven"),
    ],
)
def test_rules(findings, guarantee, level):
    verdict = judge(findings, guarantee)
    assert verdict.level == level
    assert verdict.sentence.endswith(".")


def read_out(label, certain, columns, estimated=()):
    evidence = pd.DataFrame(
        {
            "age": 1.0,
            "columns_read": columns,
            "estimated": ["age" if c < 2 else "" for c in columns],
            "real_row": 0,
        }
    )
    details = {"class": label, "columns": 2, "columns_estimated": estimated, "columns_left_out": ()}
    result = AttackResult("ReconSMOTE", "reconstruction", 0.5, (0.4, 0.6), evidence, details)
    return Finding(result, "read.", certain)


def copies(label, copied, total, low=0.9):
    details = {"class": label, "copied": copied, "distinct_real": total}
    result = AttackResult("ExactCopies", "reconstruction", low, (low, 1.0), pd.DataFrame(), details)
    return Finding(result, "copied.", copied if low else 0)


def test_of_two_attacks_that_compute_records_of_a_class_the_best_is_told():
    findings = [read_out("a", 3, [2, 2, 1]), read_out("a", 2, [2, 2])]
    for own in (findings, findings[::-1]):
        assert judge(own, NONE).sentence.startswith(
            "3 real records were read out of this table with certainty, 2 of them in all 2 columns, "
        )


def test_the_sentence_counts_all_classes_and_the_copies():
    findings = [read_out("a", 2, [2, 2]), read_out("b", 3, [2, 2, 2]), copies("a", 7, 8), copies("b", 5, 9)]
    assert judge(findings, NONE).sentence == (
        "12 real records were read out of this table with certainty, 5 of them computed, in all 2 columns: "
        "7 of class 'a', 5 of class 'b'. 12 of the 17 real records of the attacked classes stand in it as they are."
    )
    by_chance = [read_out("a", 1, [2]), copies("a", 3, 8, low=0.0)]
    assert judge(by_chance, NONE).sentence == (
        "1 real record was read out of this table with certainty, in all 2 columns."
    )


def test_where_some_that_were_computed_are_not_real_none_is_called_certain():
    right, partly = read_out("a", 2, [2, 2]), read_out("b", 3, [2, 2, 2, 2])
    partly.result.evidence["real_row"] = [4, -1, 7, 9]
    assert judge([right, partly], NONE).sentence == (
        "5 real records were read out of this table, in all 2 columns: 3 of class 'b', 2 of class 'a'; "
        "1 more that was computed is no real record."
    )


def test_values_that_the_real_records_lack_are_told():
    found = read_out("a", 2, [2, 2])
    found.result.details["real_with_a_blank"] = 1
    assert judge([found], NONE).sentence == (
        "2 real records were read out of this table with certainty, in all 2 columns; "
        "1 of them has a value where the real record has a blank."
    )


def test_what_is_estimated_is_not_called_certain():
    findings = [read_out("a", 3, [2, 1, 1], ("age",))]
    assert judge(findings, NONE).sentence == (
        "3 real records were read out of this table with certainty, 1 of them in all 2 columns, "
        "the others in at least 1 (other values of 'age' are estimates, marked as such)."
    )


def test_records_of_which_nothing_was_read_are_not_told():
    assert judge([read_out("a", 2, [2, 0, 1, 0], ("age",))], NONE).sentence == (
        "2 real records were read out of this table with certainty, 1 of them in all 2 columns, "
        "the others in at least 1 (other values of 'age' are estimates, marked as such)."
    )


@pytest.mark.parametrize(("low", "told"), [(0.9954, "at least 99 %"), (1.0, "100 %"), (0.5, "at least 50 %")])
def test_nothing_succeeds_more_often_than_always(low, told):
    sentence = judge([finding(low)], NONE).sentence
    assert sentence == f"Some attack gains {told} over chance: it tells who was in the data."


def test_records_that_stand_in_a_release_are_not_called_computed():
    assert judge([copies("a", 1, 8, low=0.01)], PROVEN).sentence == (
        "1 real record of the attacked classes stands in the release word for word."
    )
    found = [copies("a", 2, 8), copies("b", 5, 9)]
    assert (
        judge(found, NONE).sentence
        == "7 different real records of the attacked classes stand in the release word for word."
    )


def test_nothing_is_certain_that_was_not_held_against_the_real_table():
    finding = read_out("a", 2, [2, 2])
    alone = replace(finding.result, evidence=finding.result.evidence.drop(columns="real_row"))
    sentence = judge([replace(finding, result=alone)], NONE).sentence
    assert sentence == "2 real records were read out of this table, in all 2 columns."


def test_records_under_another_label_come_first():
    findings = [copies(ANOTHER_LABEL, 3, 8), copies("b", 5, 9)]
    assert judge(findings, NONE).sentence == (
        "3 real records stand in the release word for word, under another label than their own. 5 different real "
        "records of the attacked classes stand in the release word for word."
    )
    assert "1 real record stands" in judge([copies(ANOTHER_LABEL, 1, 8)], NONE).sentence
