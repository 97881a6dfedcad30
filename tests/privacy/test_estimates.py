"""Bounds, quantiles, categories and class counts are near the truth and cost what they say."""

import numpy as np
import pandas as pd
import pytest

from oversafe._core.errors import InputError
from oversafe.measure import audit_epsilon
from oversafe.privacy import (
    Accountant,
    private_bounds,
    private_categories,
    private_class_counts,
    private_quantiles,
)
from oversafe.privacy.estimates import noisy_leaves, positive_counts
from tests.privacy.transcript import RecordingAccountant

BUDGETS = [(1.0, 0.0), (1.0, 1e-9)]
ODD = [np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0, 1e-300, 3.0]


def neighbours(rng, relation, rows):
    """Return a table of numbers and a neighbour of it, odd values included."""
    common = rng.normal(50, 20, 30)
    mine, theirs = (
        rng.choice([*ODD, *rng.normal(50, 200, 5)], rng.integers(0 if rows > 1 else 1, rows + 1))
        for _ in range(2)
    )
    return np.concatenate([common, mine]), np.concatenate(
        [common, theirs if relation == "replace-one" else []]
    )


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize(
    "estimate",
    [
        lambda values, a: private_bounds(values, accountant=a),
        lambda values, a: private_bounds(values, accountant=a, whole=True),
        lambda values, a: private_bounds(values, accountant=a, whole=True, within=(0, 1000)),
        lambda values, a: private_quantiles(values, [0.1, 0.5], bounds=(0, 100), accountant=a),
        lambda values, a: private_class_counts(
            (np.nan_to_num(values, posinf=0, neginf=0) % 3).astype(int), 3, accountant=a
        ),
    ],
    ids=["bounds", "whole bounds", "bounds within", "quantiles", "class counts"],
)
def test_no_neighbour_moves_a_question_by_more_than_is_paid(delta, relation, rows, estimate):
    rng = np.random.default_rng(0)
    for seed in range(40):
        transcripts = []
        for values in neighbours(rng, relation, rows):
            accountant = RecordingAccountant(
                *(1.0, delta),
                relation=relation,
                unit="person" if rows > 1 else "record",
                rows_per_unit=rows,
                seed=seed,
                random_state=0,
            )
            estimate(values, accountant)
            transcripts.append(accountant.transcript)
            assert accountant.left == 0
        assert transcripts[0].moved_beyond(transcripts[1]) == []


# A copy that reads the range without paying is caught; the right one is accused with probability at most 1e-6.
@pytest.mark.parametrize("paid", [True, False])
def test_audit_of_bounds(paid):
    def run(values, rng):
        accountant = Accountant(1.0, random_state=rng)
        if paid:
            low, high = private_bounds(values, accountant=accountant)
        else:
            low, high = min(values), max(values)
        return [np.arcsinh(low), np.arcsinh(high)]

    values = np.linspace(1, 2, 40)
    extreme = np.append(values[:-1], 1e6)
    audit = audit_epsilon(run, values, extreme, trials=4_000, confidence=1 - 1e-6, random_state=0)
    assert (audit.lower_bound > 1.0) == (not paid)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_bounds_are_near_the_range(epsilon, delta):
    rng = np.random.default_rng(1)
    ages = np.clip(np.round(rng.normal(45, 15, 50_000)), 17, 90)
    incomes = rng.lognormal(10, 1, 50_000)
    shares = rng.random(50_000)
    small = rng.normal(0, 1e-3, 50_000)
    # Over 200 seeds at most 0.7 % of the values lay outside, and no range was wider than theirs.
    for values, whole in ((ages, True), (incomes, False), (shares, False), (small, False)):
        low, high = private_bounds(values, accountant=Accountant(epsilon, delta, random_state=2), whole=whole)
        assert np.mean((values < low) | (values > high)) < 0.02
        assert high - low < 1.5 * np.ptp(values)
        if whole:
            assert low == int(low) and high == int(high)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_bounds_of_degenerate_columns(epsilon, delta):
    for values in (
        np.full(5_000, 7.5),
        np.zeros(5_000),
        np.array([]),
        np.full(5_000, np.nan),
        np.full(9, np.inf),
    ):
        for whole in (False, True):
            accountant = Accountant(epsilon, delta, random_state=0)
            low, high = private_bounds(values, accountant=accountant, whole=whole)
            assert np.isfinite([low, high]).all() and low <= high
    low, high = private_bounds(np.full(5_000, 7.5), accountant=Accountant(5 * epsilon, delta, random_state=0))
    assert low <= 7.5 <= high and high - low < 2


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_quantiles_are_near_the_truth(epsilon, delta):
    values = np.random.default_rng(2).gamma(2.0, 10.0, 20_000)
    wanted = [0.05, 0.25, 0.5, 0.75, 0.95]
    accountant = Accountant(epsilon, delta, random_state=0)
    found = private_quantiles(values, wanted, bounds=(0.0, 200.0), accountant=accountant)
    # Where the quantiles lie among the values; over 200 seeds none was off by more than 0.021.
    assert np.abs(np.searchsorted(np.sort(values), found) / len(values) - wanted).max() < 0.03
    assert (np.diff(found) > 0).all()


def test_sums_of_leaves_are_better_than_those_of_noisy_cells():
    counts = np.full(256, 40)
    tree, flat = [], []
    for seed in range(60):
        tree.append(
            np.cumsum(
                noisy_leaves(counts, accountant=Accountant(0.5, random_state=seed), share=1.0, what="x")
            )
        )
        flat.append(np.cumsum(Accountant(0.5, random_state=seed).counts(counts, 1.0, what="x")))
    truth = np.cumsum(counts)
    assert np.abs(np.array(tree) - truth).mean() < 0.7 * np.abs(np.array(flat) - truth).mean()


def test_quantiles_without_rows():
    found = private_quantiles(
        np.array([np.nan]), [0.0, 0.5, 1.0], bounds=(2.0, 2.0), accountant=Accountant(1.0, random_state=0)
    )
    assert found.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda a: private_quantiles([1.0], [1.5], bounds=(0, 1), accountant=a),
        lambda a: private_quantiles([1.0], [0.5], bounds=(1, 0), accountant=a),
        lambda a: private_quantiles([1.0], [0.5], bounds=(0, np.nan), accountant=a),
        lambda a: private_bounds([1.0], accountant=a, share=2.0),
        lambda a: private_categories(["a"], accountant=a),
    ],
)
def test_bad_use_costs_nothing(call):
    accountant = Accountant(1.0)
    with pytest.raises(InputError):
        call(accountant)
    assert accountant.charges == []


def test_categories_are_named_when_enough_rows_have_them():
    values = pd.Series(["b"] * 5_000 + ["a"] * 2_000 + ["rare"] * 3 + [None] * 50)
    for random_state in (None, 0):
        accountant = Accountant(1.0, 1e-9, random_state=random_state)
        assert private_categories(values, accountant=accountant) == ["a", "b"]
        assert accountant.failure == pytest.approx(1e-10)


@pytest.mark.parametrize("dtype", ["int64", "float64", "object", "Int64", "category", "str"])
def test_categories_do_not_depend_on_how_they_are_stored(dtype):
    values = pd.Series([0, 1, 2] * 2_000).astype(dtype)
    accountant = Accountant(1.0, 1e-9, random_state=0)
    assert private_categories(values, accountant=accountant) == ["0", "1", "2"]


def test_a_mark_of_a_missing_value_is_no_category():
    values = pd.Series(["NA", "nan", "", "x"] * 2_000)
    assert private_categories(values, accountant=Accountant(1.0, 1e-9, random_state=0)) == ["x"]


def test_class_counts_add_up_and_none_is_empty():
    codes = np.repeat([0, 1], [90, 10])
    for seed in range(50):
        counts = private_class_counts(codes, 3, accountant=Accountant(0.5, random_state=seed))
        assert counts.sum() == 100 and counts.min() >= 1
        counts = private_class_counts(
            codes, 3, accountant=Accountant(0.5, relation="add-remove", random_state=seed)
        )
        assert counts.min() >= 1
    assert private_class_counts(codes, 2, accountant=Accountant(1e6)).tolist() == [90, 10]
    # A person's rows are not public, so their number is not either.
    person = Accountant(1.0, unit="person", rows_per_unit=2, random_state=1)
    assert private_class_counts(codes, 2, accountant=person).sum() != 100


def test_positive_counts():
    assert positive_counts(np.array([50, -7, 60]), 100).tolist() == [45, 1, 54]
    assert positive_counts(np.array([-5, 3]), None).tolist() == [1, 3]
    assert positive_counts(np.array([-5, 3, 0]), 2).tolist() == [1, 3, 1]
