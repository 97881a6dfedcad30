"""What a guarantee allows is exact, and where it becomes too weak is written down once."""

import math
from dataclasses import replace

import pytest

from oversafe._core.errors import InputError
from oversafe.privacy import Guarantee, Ledger
from oversafe.privacy.guarantee import approximate_event
from oversafe.privacy.meaning import (
    LIMITS,
    Limits,
    allows,
    allows_in_all,
    right_at_most,
    share_in_words,
    weakness,
)


def approximate(epsilon, delta, **more):
    return Guarantee(
        "proven", epsilon, delta, basis="a theorem", event=approximate_event(epsilon, delta), **more
    )


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (1.0, 0.1), (3.0, 1e-5), (0.1, 0.5), (10.0, 0.0)])
def test_the_bound_is_what_the_worst_mechanism_gives(epsilon, delta):
    """The mechanism that dominates all others: it tells the table with probability delta, else answers at random."""
    right = math.exp(epsilon) / (1 + math.exp(epsilon))
    first = [delta, (1 - delta) * right, (1 - delta) * (1 - right), 0.0]
    second = first[::-1]
    # Of two tables that are as likely, whoever answers the likelier one is right most often.
    best = sum(max(a, b) for a, b in zip(first, second, strict=True)) / 2
    assert right_at_most(epsilon, delta) == pytest.approx(best, rel=1e-12)
    assert right_at_most(epsilon, delta) == pytest.approx(
        (1 + (math.exp(epsilon) - 1 + 2 * delta) / (math.exp(epsilon) + 1)) / 2, rel=1e-12
    )


def test_no_epsilon_is_too_large_to_tell():
    assert right_at_most(1e6) == 1.0 and share_in_words(1.0) == "100 %"


@pytest.mark.parametrize(
    ("epsilon", "told"), [(1, "73 %"), (3, "95 %"), (5, "99.3 %"), (10, "99.995 %"), (1e-9, "50 %")]
)
def test_shares_in_words(epsilon, told):
    assert share_in_words(right_at_most(epsilon)) == told


@pytest.mark.parametrize(
    ("more", "guess"),
    [
        ({}, "which of two records is a person's"),
        ({"relation": "add-remove"}, "whether a person's record is in the table"),
        ({"unit": "person", "rows_per_unit": 4}, "which of two sets of rows (at most 4) is a person's"),
        (
            {"unit": "person", "rows_per_unit": 4, "relation": "add-remove"},
            "whether a person's rows (at most 4) are in the table",
        ),
    ],
)
def test_the_sentence_speaks_of_the_relation_and_the_unit(more, guess):
    assert allows(replace(Guarantee.pure(1.0, "a theorem"), **more)) == (
        f"Whoever would guess right half of the time {guess} guesses right at most 73 % of the time with the "
        "release at hand."
    )
    assert allows(Guarantee.none("none")) == ""


def test_the_limits_are_where_they_are_said_to_be():
    assert (LIMITS.max_epsilon, LIMITS.max_delta) == (3.0, 1e-5)
    for name in ("NIST SP 800-226", "Patterns (2025)", "EDPB"):
        assert any(name in source for source in LIMITS.sources)
    for wrong in (0, -1, math.inf, math.nan, "3", None):
        with pytest.raises(InputError, match="max_epsilon"):
            Limits(wrong)


@pytest.mark.parametrize(
    ("guarantee", "weak"),
    [
        (Guarantee.pure(3.0, "a theorem"), None),
        (Guarantee.pure(3.01, "a theorem"), "epsilon = 3.01, and 3 or less is asked"),
        (approximate(1.0, 1e-5), None),
        (approximate(1.0, 1.1e-5), "delta = 1.1e-05, and 1e-05 or less is asked"),
        (Guarantee.pure(1.5, "a theorem", relation="add-remove"), None),
        (
            Guarantee.pure(1.6, "a theorem", relation="add-remove"),
            "epsilon = 3.2 under replace-one (epsilon = 1.6 under add-remove as stated), and 3 or less is asked",
        ),
        (
            approximate(1.0, 1e-5, relation="add-remove"),
            "delta = 3.718e-05 under replace-one (epsilon = 1, delta = 1e-05 under add-remove as stated), and 1e-05 or "
            "less is asked",
        ),
        (replace(Guarantee.pure(3.0, "a theorem"), unit="person", rows_per_unit=9), None),
        (Guarantee.none("none"), None),
    ],
)
def test_weakness(guarantee, weak):
    assert weakness(guarantee) == weak


def test_an_add_remove_guarantee_from_which_nothing_follows_is_weak():
    assert "nothing follows under replace-one" in weakness(approximate(2.0, 0.2, relation="add-remove"))


def test_the_limit_is_a_setting():
    assert weakness(Guarantee.pure(5.0, "a theorem"), Limits(5.0)) is None
    assert weakness(Guarantee.pure(1.1, "a theorem"), Limits(1.0)) is not None


def test_what_a_budget_allows_in_all(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", key_file=tmp_path / "key")
    ledger.create("patients", 3.0, 1e-6)
    ledger.charge("patients", Guarantee.none("real rows"), unproven="record")
    assert allows_in_all(ledger.remaining("patients")) == (
        "With all releases that the budget of 'patients' covers (epsilon = 3, delta = 1e-06 in all, replace-one "
        "neighbours, for every record) it is at most 95 %. Not covered: 1 recorded without a proven guarantee."
    )
