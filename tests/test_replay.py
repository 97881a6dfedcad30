"""Neighbours leave the same behind: by hand where they once did not, and a few dozen pairs at random."""

import random
from contextlib import nullcontext

import numpy as np
import pytest

from oversafe.data import Column, Schema
from oversafe.privacy import Accountant, mechanisms
from tests.replay import holes
from tests.replay.answers import Transcript, replayed
from tests.replay.neighbours import Pair
from tests.replay.pairs import compared, replay
from tests.replay.ways import METHODS

PUBLIC = {"domain": "public", "source": "a code book"}
# Spellings that meet in one number, and dates, which are others where every row is one.
SPELLINGS = {
    "decimals": ("1.1", "1.10"),
    "whole": ("1", "1.0"),
    "below one": ("0.1", "0.10"),
    "zero": ("-0", "0"),
    "truth": ("true", "TRUE"),
    "powers": ("1e3", "1000"),
    "signs": ("+1", "1"),
    "long codes": ("9007199254740992", "9007199254740993"),
    "dates": ("2024-01-01", "2024-06-30"),
}
READ = (
    "command, CSV",
    "command, Parquet of texts",
    "pandas.read_csv",
    "declared",
    "nullable",
    "source of texts",
)


def schema_of(x0=("a", "b"), y=("no", "yes"), person=False):
    columns = [
        Column("x0", "categorical", "object", False, categories=x0, **PUBLIC),
        Column("x1", "integer", "int64", False, bounds=(0, 9), **PUBLIC),
        Column("y", "categorical", "object", False, categories=y, **PUBLIC),
    ]
    if person:
        columns.append(Column("pid", "identifier", "object", True))
    return Schema(tuple(columns), label="y", person="pid" if person else None)


def replaced(schema, rows, first, second, **more):
    return Pair(schema, ([*rows, first], [*rows, second]), **more)


def rows_of(x0, y=("no", "yes"), n=20):
    return [[x0[i % len(x0)], i % 10, y[i // 2 % len(y)]] for i in range(n)]


def spelled(categories):
    rows = rows_of(categories)
    return replaced(schema_of((*categories, "other")), rows, ["other", 1, "no"], [categories[0], 1, "no"])


def by_person(ids, first, second, bound=1, relation="replace-one"):
    rows = [[*row, ids[i % len(ids)]] for i, row in enumerate(rows_of("ab"))]
    schema = schema_of(person=True)
    return replaced(
        schema, rows, ["a", 1, "no", first], ["b", 2, "yes", second], bound=bound, relation=relation
    )


@pytest.mark.parametrize("way", READ)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_row_does_not_change_how_the_categories_of_others_are_read(spelling, way):
    assert compared("histograms", spelled(SPELLINGS[spelling]), way).found == []


@pytest.mark.parametrize("way", (READ[0], *READ[2:4]))
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_row_does_not_change_how_the_labels_of_others_are_read(spelling, way):
    labels = SPELLINGS[spelling]
    schema, rows = schema_of(y=(*labels, "other")), rows_of("ab", labels)
    pair = replaced(schema, rows, ["a", 1, "other"], ["b", 2, labels[0]])
    assert compared("histograms", pair, way).found == []


@pytest.mark.parametrize("way", ("pandas.read_csv", "declared"))
def test_a_row_does_not_change_what_a_classifier_sees_of_others(way):
    for categories in SPELLINGS.values():
        assert compared("logistic", spelled(categories), way).found == []


@pytest.mark.parametrize("way", READ[:5])
@pytest.mark.parametrize(
    "ids", [("12.1", "12.10"), (12.1, "12.10"), (12, "12.0"), ("007", "7"), (2**53, 2**53 + 1)]
)
def test_a_row_does_not_change_whose_the_other_rows_are(ids, way):
    assert compared("histograms", by_person(ids, "p", 3), way).found == []
    assert compared("histograms", by_person(ids, None, 3, bound=2), way).found == []


@pytest.mark.parametrize(
    ("way", "first", "second"),
    [
        pytest.param("command, CSV", ["a", 1, "yes"], ["a", 1, "no"], id="one class"),
        pytest.param("command, CSV", ["a", 1, None], ["a", 1, "no"], id="no label"),
        pytest.param("command, unlabelled dropped", ["a", 1, None], ["a", 1, "no"], id="no label, dropped"),
        pytest.param("command, CSV", ["a", "x", "no"], ["a", 1, "no"], id="a word for a number"),
        pytest.param("command, CSV", ["a", None, "no"], ["a", 1, "no"], id="nothing for a number"),
        pytest.param("command, CSV", ["c", 1, "no"], ["a", 1, "no"], id="an unknown category"),
        pytest.param("command, CSV", ["a", 1, "perhaps"], ["a", 1, "no"], id="an unknown label"),
        pytest.param("command, Parquet of texts", ["a", "x", "no"], ["a", 1, "no"], id="a word, Parquet"),
    ],
)
def test_no_row_is_refused(way, first, second):
    labels = ("no",) if first[2] == "yes" else ("no", "yes")
    assert (
        compared("histograms", replaced(schema_of(), rows_of("ab", labels), first, second), way).found == []
    )


def test_a_byte_that_is_no_text_does_not_change_the_others():
    categories = ("M\u00fcller", "Maier", "other")
    rows = rows_of(categories[:2])
    pair = replaced(schema_of(categories), rows, ["\ud800", 1, "no"], ["Maier", 1, "no"])
    assert compared("histograms", pair, "command, CSV").found == []


def test_a_column_of_which_no_value_repeats_is_refused_or_released_like_others():
    rows = [[i, i % 10, "no" if i % 2 else "yes"] for i in range(40)]
    pair = replaced(schema_of(), rows, [40, 1, "no"], [7, 1, "no"])
    assert compared("histograms, estimated", pair, "command, CSV").found == []


@pytest.mark.parametrize("way", READ[2:5])
@pytest.mark.parametrize("name", ("histograms", "threshold"))
def test_labels_that_are_numbers_but_for_one_are_refused_or_used_like_numbers(name, way):
    pair = replaced(schema_of(), rows_of("ab", (0, 1)), ["a", 1, "no"], ["a", 1, 1])
    assert compared(name, pair, way).found == []


@pytest.mark.extras
def test_a_row_changes_the_votes_of_one_teacher():
    rng = np.random.default_rng(0)
    for seed in range(20):
        rows = [
            ["ab"[rng.integers(2)], int(rng.integers(10)), ("no", "yes")[rng.integers(2)]] for _ in range(60)
        ]
        pair = Pair(schema_of(), ([*rows, ["b", 9, "yes"]], rows), "add-remove")
        assert compared("pategan", pair, "objects", seed).found == []


# ---------------------------------------------------------------------------------------------- pairs at random


@pytest.mark.parametrize("relation", ("replace-one", "add-remove"))
@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if not method.package])
def test_neighbours_leave_the_same_behind(name, relation):
    if relation not in METHODS[name].relations:
        pytest.skip("has the other relation alone")
    rng = random.Random(f"{name} {relation}")
    results = [replay(name, relation, rng.randbytes(48)) for _ in range(12)]
    assert [(result.way, found) for result in results for found in result.found] == []
    assert any(result.status == "proven" and result.questions for result in results)


# -------------------------------------------------------------------------------------------- the replay itself


@pytest.mark.parametrize(
    ("hole", "pair", "name"),
    [
        pytest.param(holes.merged_spellings, spelled(("1.1", "1.10")), "histograms", id="spellings"),
        pytest.param(holes.merged_persons, by_person(("12.1", "12.10"), "p", 3), "histograms", id="persons"),
        pytest.param(
            holes.refused_one_class,
            replaced(schema_of(), rows_of("ab", ("no",)), ["a", 1, "yes"], ["a", 1, "no"]),
            "histograms",
            id="one class",
        ),
        pytest.param(
            holes.dropped_unlabelled,
            replaced(schema_of(), rows_of("ab"), ["a", 1, None], ["a", 1, "no"]),
            "histograms",
            id="unlabelled",
        ),
        pytest.param(
            holes.turned_votes,
            replaced(schema_of(), rows_of("ab"), ["a", 1, "yes"], ["a", 1, "no"]),
            "pategan",
            id="votes",
            marks=pytest.mark.extras,
        ),
    ],
)
def test_faults_that_are_put_back_are_found(hole, pair, name):
    if name == "pategan":
        pair = Pair(pair.schema, (pair.rows[0], pair.rows[0][:-1]), "add-remove")
    for fault, there in ((nullcontext, False), (hole, True)):
        with fault():
            # Read by the schema, every row has a label.
            result = compared(name, pair, "objects" if hole is holes.dropped_unlabelled else "declared")
        assert bool(result.found) == there, result.found


def test_answers_do_not_depend_on_the_data_and_questions_are_checked():
    def asked(counts, moved):
        with replayed(Transcript(3)) as transcript:
            accountant = Accountant(1.0)
            answers = accountant.counts(np.array(counts), 0.5, what="some", l1=moved, l2=moved)
            chosen = mechanisms.choose(np.array(counts), sensitivity=1, epsilon=1.0)
            return [*answers, chosen], transcript.questions

    (mine, first), (theirs, second) = asked([5, 0, 9], 2), asked([4, 1, 9], 2)
    assert mine == theirs
    assert [q.wrong_beside(r) for q, r in zip(first, second, strict=True)] == [None, None]
    _, third = asked([3, 2, 9], 2)
    assert "moved by 4 in norm 1, and 2 was paid" in first[0].wrong_beside(third[0])
    assert "moved by 2 in norm inf, and 1 was paid" in first[1].wrong_beside(third[1])
    assert "asked" in first[0].wrong_beside(asked([5, 0, 9], 3)[1][0])
    assert "not on the grid" in first[0].wrong_beside(asked([4.5, 0, 9], 2)[1][0])
    # And it is over when it is over.
    drawn = {
        int(mechanisms.noisy_counts(np.array([10**6]), sensitivity=1, epsilon=0.001)[0]) for _ in range(9)
    }
    assert len(drawn) > 1
