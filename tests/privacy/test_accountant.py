"""A budget is handed out in shares, never overdrawn, and says what was promised."""

import itertools
import math

import numpy as np
import pytest
from dp_accounting import dp_event
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from oversafe._core.errors import InputError
from oversafe.measure import audit_epsilon
from oversafe.privacy import Accountant, Guarantee
from oversafe.privacy.accountant import as_replace_one
from oversafe.privacy.guarantee import approximate_event, composed_epsilon
from oversafe.privacy.zcdp import zcdp_epsilon, zcdp_rho

COUNTS = np.array([50, 30, 20])
MODES = [(1.0, 0.0), (1.0, 1e-9), (0.2, 1e-5), (8.0, 0.0)]


@pytest.mark.parametrize(("epsilon", "delta"), MODES)
@settings(max_examples=25, deadline=None)
@given(weights=st.lists(st.floats(0.01, 100), min_size=1, max_size=40))
def test_shares_use_up_the_budget_and_no_more(epsilon, delta, weights):
    accountant = Accountant(epsilon, delta, random_state=0)
    shares = accountant.split({str(i): weight for i, weight in enumerate(weights)})
    for name, share in shares.items():
        accountant.counts(COUNTS, share, what=name)
    assert accountant.left == 0
    spent = math.fsum((c.epsilon if delta == 0 else c.rho) for c in accountant.charges)
    assert spent <= accountant.total
    guarantee = accountant.guarantee("noise")
    assert guarantee.epsilon == epsilon and guarantee.delta == delta
    # The event costs what the guarantee says, for whoever composes it.
    assert composed_epsilon(guarantee.event, delta) == pytest.approx(epsilon, rel=1e-6)
    before = list(accountant.charges)
    for overdraft in (
        lambda: accountant.counts(COUNTS, 0.01, what="more"),
        lambda: accountant.choose([1, 2], 0.01, what="more", sensitivity=1),
        lambda: accountant.spend("more", epsilon=0.1),
        lambda: accountant.spend("more", rho=0.001),
        lambda: accountant.split({"more": 1}),
    ):
        with pytest.raises(InputError, match=r"more costs more than|not purely private"):
            overdraft()
    assert accountant.charges == before


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("rows", [1, 3])
def test_no_neighbour_moves_counts_by_more_than_the_sensitivity(relation, rows):
    unit = "record" if rows == 1 else "person"
    accountant = Accountant(1.0, relation=relation, unit=unit, rows_per_unit=rows)
    people = [
        np.bincount(cells, minlength=3)
        for n in range(rows + 1)
        for cells in itertools.combinations_with_replacement(range(3), n)
        if n or unit == "person"
    ]
    for tables in (1, 2, 3):
        l1, l2 = accountant.sensitivity(tables)
        others = people if relation == "replace-one" else [np.zeros(3, dtype=int)]
        # The same cells in every table is the worst there is.
        moves = [np.tile(a - b, tables) for a in people for b in others]
        assert max(np.abs(m).sum() for m in moves) == l1
        assert max(np.linalg.norm(m) for m in moves) == pytest.approx(l2)
        assert max(np.abs(m).max() for m in moves) <= accountant.rows_per_unit


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_counts_and_choices_work_in_both_kinds_of_budget(delta):
    for random_state in (None, 0):
        accountant = Accountant(100.0, delta, random_state=random_state)
        noisy = accountant.counts(np.array([1000, 10]), 0.5, what="counts")
        assert noisy[0] > 900 and noisy.dtype == np.int64
        assert accountant.choose([0, 500, 3], 0.4, what="choice", sensitivity=1) == 1
        assert accountant.left == pytest.approx(0.1)
        assert [charge.what for charge in accountant.charges] == ["counts", "choice"]


def test_the_noise_is_what_was_announced():
    # Each of 20,000 draws; the estimate of a deviation is off by 5 % with probability below 1e-9.
    zeros = np.zeros(20_000, dtype=int)
    for delta in (0.0, 1e-9):
        for tables in (1, 4):
            accountant = Accountant(1.0, delta, random_state=1)
            announced = accountant.deviation(0.5, tables)
            noise = accountant.counts(zeros, 0.5, what="zeros", tables=tables)
            assert noise.std() == pytest.approx(announced, rel=0.05)
            for probability in (0.1, 0.001):
                doubt = Accountant(1.0, delta).doubt(0.5, probability, tables)
                assert binom.sf((noise >= doubt).sum() - 1, len(noise), probability) > 1e-6


def test_pure_charges_count_as_zcdp_beside_others():
    accountant = Accountant(1.0, 1e-9)
    # epsilon-DP is epsilon^2 / 2-zCDP.
    accountant.spend("pure", epsilon=math.sqrt(2 * accountant.amount(0.25)))
    assert accountant.left == pytest.approx(0.75)
    accountant.counts(COUNTS, 0.75, what="rest")
    assert accountant.left == 0
    # Alone they may use up epsilon itself.
    alone = Accountant(1.0, 1e-9)
    alone.spend("first", epsilon=0.5)
    alone.spend("second", epsilon=0.5)
    with pytest.raises(InputError, match="third"):
        alone.spend("third", epsilon=0.1)
    assert alone.guarantee("pure").epsilon == pytest.approx(1.0)


def test_set_aside_delta_is_taken_off():
    accountant = Accountant(1.0, 1e-6)
    accountant.spend("may fail", delta=4e-7)
    assert accountant.total == pytest.approx(zcdp_rho(1.0, 6e-7))
    accountant.counts(COUNTS, 1.0, what="counts")
    guarantee = accountant.guarantee("noise")
    assert (guarantee.epsilon, guarantee.delta) == (1.0, 1e-6)
    assert Guarantee.from_json(guarantee.to_json()) == guarantee
    both = Guarantee.compose(guarantee, guarantee)
    assert both.delta == 2e-6 and 1.0 < both.epsilon < 2.0
    with pytest.raises(InputError, match="costs more"):
        accountant.spend("may fail", delta=1e-6)
    # Spent beforehand in full, nothing can be set aside any more.
    full = Accountant(1.0, 1e-6)
    full.counts(COUNTS, 1.0, what="counts")
    with pytest.raises(InputError, match="costs more"):
        full.spend("may fail", delta=4e-7)
    with pytest.raises(InputError, match="costs more"):
        full.frequent(COUNTS, 0.1, what="values", delta=1e-8)
    assert len(full.charges) == 1


def test_values_cannot_be_found_with_a_pure_budget():
    accountant = Accountant(1.0)
    with pytest.raises(InputError, match="declare it"):
        accountant.frequent(COUNTS, 0.1, what="values", delta=0.0)
    assert accountant.charges == []


def dp_sgd(noise):
    step = dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(noise))
    return dp_event.SelfComposedDpEvent(step, 200)


def test_events_are_composed_with_what_was_spent_before():
    accountant = Accountant(1.0, 1e-6, relation="add-remove")
    alone = accountant.calibrate(dp_sgd, what="training")
    assert composed_epsilon(dp_sgd(alone), 1e-6) <= 1.0 < composed_epsilon(dp_sgd(0.98 * alone), 1e-6)
    accountant.counts(COUNTS, 0.2, what="class counts")
    noise = accountant.calibrate(dp_sgd, what="training")
    assert noise > alone
    with pytest.raises(InputError, match="training costs more"):
        accountant.spend("training", event=dp_sgd(0.9 * noise))
    accountant.spend("training", event=dp_sgd(noise))
    guarantee = accountant.guarantee("DP-SGD")
    assert 0.99 < guarantee.epsilon <= 1.0
    with pytest.raises(InputError, match="more costs more"):
        accountant.counts(COUNTS, 0.05, what="more")


def test_amplification_by_sampling_is_for_added_and_removed_records():
    accountant = Accountant(1.0, 1e-6)
    with pytest.raises(InputError, match="add-remove"):
        accountant.spend("training", event=dp_sgd(2.0))
    pure = Accountant(1.0, relation="add-remove")
    with pytest.raises(InputError, match="not purely private"):
        pure.spend("training", event=dp_sgd(2.0))
    pure.spend("laplace", event=dp_event.LaplaceDpEvent(2.0))
    assert pure.left == pytest.approx(0.5, abs=1e-3)


def test_the_guarantee_says_how_it_was_earned():
    accountant = Accountant(2.0, 1e-9, relation="add-remove", unit="person", rows_per_unit=3)
    accountant.counts(COUNTS, 0.5, what="counts")
    guarantee = accountant.guarantee("Gaussian noise")
    assert guarantee.status == "proven" and guarantee.unit == "person" and guarantee.rows_per_unit == 3
    assert guarantee.relation == "add-remove"
    # What was not spent is not claimed.
    assert guarantee.epsilon == pytest.approx(zcdp_epsilon(accountant.total / 2, 1e-9))
    assert accountant.guarantee("x", ["bounds were read from the data"]).status == "nominal"
    seeded = Accountant(1.0, random_state=3)
    seeded.spend("counts", share=1.0)
    assert seeded.guarantee("x").status == "nominal"
    with pytest.raises(InputError, match="nothing was charged"):
        Accountant(1.0).guarantee("x")


@pytest.mark.parametrize("epsilon", [0, -1.0, math.nan, math.inf, "1", None, True])
def test_bad_epsilon(epsilon):
    with pytest.raises(InputError, match="epsilon = "):
        Accountant(epsilon)
    accountant = Accountant(1.0)
    if epsilon is not None:
        with pytest.raises(InputError, match="epsilon = "):
            accountant.spend("counts", epsilon=epsilon)
    assert accountant.charges == []


@pytest.mark.parametrize("delta", [1.0, 1.5, -1e-9, math.nan, math.inf, "0", True])
def test_bad_delta(delta):
    with pytest.raises(InputError, match="delta = "):
        Accountant(1.0, delta)
    with pytest.raises(InputError, match="delta = "):
        Accountant(1.0, 1e-9).spend("counts", delta=delta)


@pytest.mark.parametrize(
    "call",
    [
        lambda a: a.counts(COUNTS, 0.0, what="x"),
        lambda a: a.counts(COUNTS, -0.1, what="x"),
        lambda a: a.counts(COUNTS, math.nan, what="x"),
        lambda a: a.counts(COUNTS, 1.1, what="x"),
        lambda a: a.counts(COUNTS, 0.1, what="x", l1=1),
        lambda a: a.counts(COUNTS, 0.1, what="x", tables=0),
        lambda a: a.counts(COUNTS, 0.1, what="x", l1=0, l2=0.0),
        lambda a: a.choose([], 0.1, what="x", sensitivity=1),
        lambda a: a.choose([1, 2], 0.1, what="x", sensitivity=0),
        lambda a: a.choose([1, 2], math.inf, what="x", sensitivity=1),
        lambda a: a.spend("x"),
        lambda a: a.spend("x", epsilon=0.1, rho=0.1),
        lambda a: a.spend("x", rho=-1.0),
        lambda a: a.spend("x", share=2.0),
        lambda a: a.split({}),
        lambda a: a.split({"a": -1.0}),
        lambda a: a.frequent(COUNTS, 0.1, what="x", delta=0.0),
        lambda a: a.frequent(COUNTS, 0.1, what="x", delta=1.0),
    ],
)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_bad_use_costs_nothing(call, delta):
    accountant = Accountant(1.0, delta)
    with pytest.raises(InputError):
        call(accountant)
    assert accountant.charges == []


@pytest.mark.parametrize(
    "facts",
    [
        {"relation": "swap"},
        {"unit": "household"},
        {"unit": "person", "rows_per_unit": 0},
        {"unit": "person", "rows_per_unit": 2.0},
        {"rows_per_unit": 2},
    ],
)
def test_bad_neighbours(facts):
    with pytest.raises(InputError, match="was given"):
        Accountant(1.0, **facts)


# The right accountant is accused with probability at most 1e-6; the copies that pay less were caught with this seed.
@pytest.mark.parametrize("delta", [0.0, 0.01])
@pytest.mark.parametrize("broken", [None, "half the sensitivity", "a row per person"])
def test_audit_of_a_persons_rows(delta, broken):
    claimed = 1.0

    def run(counts, rng, size):
        rows = 1 if broken == "a row per person" else 3
        accountant = Accountant(claimed, delta, unit="person", rows_per_unit=rows, random_state=rng)
        l1, l2 = accountant.sensitivity()
        if broken == "half the sensitivity":
            l1, l2 = l1 // 2, l2 / 2
        table = np.tile(counts, (size, 1))
        return accountant.counts(table, 1.0, what="counts", l1=l1, l2=l2) @ np.array([1, -1])

    # One person's three rows move from one cell to the other.
    audit = audit_epsilon(
        run,
        [13, 10],
        [10, 13],
        trials=40_000,
        delta=delta,
        confidence=1 - 1e-6,
        vectorized=True,
        random_state=0,
    )
    assert (audit.lower_bound > claimed) == (broken is not None)


def test_what_add_remove_means_for_replaced_records():
    pure = as_replace_one(Guarantee.pure(0.5, "Laplace", relation="add-remove"))
    assert (pure.epsilon, pure.delta, pure.relation) == (1.0, 0.0, "replace-one")
    accountant = Accountant(1.0, 1e-9, relation="add-remove")
    accountant.counts(COUNTS, 1.0, what="counts")
    replaced = as_replace_one(accountant.guarantee("Gaussian"))
    assert (
        replaced.epsilon == pytest.approx(zcdp_epsilon(4 * accountant.total, 1e-9)) and replaced.delta == 1e-9
    )
    training = Accountant(1.0, 1e-9, relation="add-remove")
    training.spend("training", event=dp_sgd(training.calibrate(dp_sgd, what="training")))
    guarantee = training.guarantee("DP-SGD")
    replaced = as_replace_one(guarantee)
    assert replaced.epsilon == 2 * guarantee.epsilon
    assert replaced.delta == pytest.approx((1 + math.exp(guarantee.epsilon)) * 1e-9)
    assert as_replace_one(replaced) == replaced
    assert Guarantee.from_json(replaced.to_json()) == replaced
    # (1 + e^5) / 10 is more than 1.
    loose = Guarantee(
        "proven", 5.0, 0.1, relation="add-remove", basis="any", event=approximate_event(5.0, 0.1)
    )
    assert as_replace_one(loose).status == "none"
