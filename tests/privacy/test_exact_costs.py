"""What mechanisms cost, held against sums and searches that know nothing of how they are made."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from dp_accounting import dp_event
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from oversafe._core.errors import InputError
from oversafe.data import Column, Counts, Schema
from oversafe.data.bins import Bins
from oversafe.learn.bagging import _amplified, _spendable
from oversafe.learn.base import private_counts
from oversafe.learn.features import FeatureMap, learn_features
from oversafe.learn.threshold import grid_steps, longest_l1, noisy_totals
from oversafe.privacy import Accountant, Guarantee, accountant, bagging_cost, mechanisms, oversampling_cost
from oversafe.privacy.accountant import as_replace_one
from oversafe.privacy.costs.group_privacy import GroupSize, Mechanism, whole_epsilon
from oversafe.privacy.filters import Filter
from oversafe.privacy.guarantee import approximate_event, composed_epsilon, failure_event, pure_event
from oversafe.privacy.zcdp import zcdp_epsilon, zcdp_rho
from oversafe.protect.deep.pategan import noisy_votes
from oversafe.protect.marginals.private_network import PrivateNetwork, dependence
from tests.protect.sensitivity import CountsSeen
from tests.protect.test_privbayes import tiny

# ------------------------------------------------------------------------------------------------ mechanisms


def test_opendps_own_costs_are_within_the_budget():
    rng = np.random.default_rng(0)
    for epsilon, moved in zip(
        np.exp(rng.uniform(-4, 2, 60)).tolist(), rng.integers(1, 9, 60).tolist(), strict=True
    ):
        assert mechanisms._laplace(moved, epsilon).map(moved) <= epsilon
        assert mechanisms._gaussian(math.sqrt(moved), epsilon).map(math.sqrt(moved)) <= epsilon
        for spent, monotonic in itertools.product(("epsilon", "rho"), (False, True)):
            assert mechanisms._noisy_max(moved, spent, epsilon, monotonic).map(moved) <= epsilon


@pytest.mark.parametrize("monotonic", [False, True])
def test_rounded_scores_move_by_no_more_than_is_paid_for(monotonic):
    # Quarters of a step, errors of up to half a step before and after, and a unit's move: up or down, or all scores up.
    steps = 2.0**20
    quarters, errors = np.arange(0, 3, 0.25), (-0.5, 0.0, 0.5)
    moves = (0.0, steps) if monotonic else (-steps, 0.0, steps)
    told = [(at + e, at + move + f) for at in quarters for e in errors for f in errors for move in moves]
    before, after = (np.array(each) / steps for each in zip(*told, strict=True))
    (first, moved), (second, _) = (mechanisms._whole_scores(each, 1.0, monotonic) for each in (before, after))
    apart = second - first
    # A choice depends on differences of scores: if all move one way, on how much further one moves than another.
    assert (np.ptp(apart) if monotonic else np.abs(apart).max()) <= moved


def test_large_whole_scores_are_told_apart():
    scores = np.array([0, 10**6, 10**15, 10**15 - 10**6])
    assert {
        mechanisms.choose(scores, sensitivity=1, epsilon=1.0, random_state=seed) for seed in range(20)
    } == {2}


def gaussian_tail(at: int, scale: float) -> float:
    """Return the chance that discrete Gaussian noise is at least a number."""
    grid = np.arange(-400, 401)
    weights = np.exp(-(grid**2) / (2 * scale**2))
    return float(weights[grid >= at].sum() / weights.sum())


@pytest.mark.parametrize(("changed", "largest"), [(1, 1), (4, 1), (2, 3)])
@pytest.mark.parametrize("random_state", [0, None])
def test_a_value_that_only_one_unit_has_is_named_as_seldom_as_delta_says(changed, largest, random_state):
    # Noise of three times the sensitivity.
    rho, delta, scale = 1 / 18, 0.05, 3.0 * largest
    # The lowest threshold at which none of so many values is named but with probability delta.
    threshold = next(
        t for t in range(largest, 400) if 1 - (1 - gaussian_tail(t - largest, scale)) ** changed <= delta
    )
    named = 0
    counts = np.full(4000, largest)
    for _ in range(1 if random_state is None else 5):
        noisy = mechanisms.frequent_counts(
            counts,
            changed=changed,
            sensitivity=float(largest),
            largest=largest,
            rho=rho,
            delta=delta,
            random_state=random_state,
        )
        assert noisy[noisy > 0].min() >= threshold
        named += int((noisy > 0).sum())
    trials = len(counts) * (1 if random_state is None else 5)
    most = gaussian_tail(threshold - largest, scale)
    # Six standard errors: fails by chance with less than 1e-8.
    assert named / trials <= most + 6 * math.sqrt(most / trials)
    assert named / trials >= most / 3 - 6 * math.sqrt(most / trials)


@pytest.mark.parametrize(("n_classes", "moved"), [(2, 1), (4, 2)])
@pytest.mark.parametrize("seeded", [True, False])
def test_class_counts_have_exactly_the_noise_that_a_replaced_record_asks_for(n_classes, moved, seeded):
    codes = np.repeat(np.arange(n_classes), 4000)
    epsilon = 0.5
    noise = []
    for seed in range(600):
        rng = np.random.default_rng(seed) if seeded else None
        noise.append(private_counts(codes, n_classes, epsilon, rng)[-1] - 4000)
    # Several classes' counts are moved by the mean of their noise, so that they add up to the number of rows.
    share = 1.0 if n_classes == 2 else 1 - 1 / n_classes
    q = math.exp(-epsilon / moved)
    variance = 2 * q / (1 - q) ** 2 * share
    # The variance of 600 draws of noise with heavy tails is off by 7 %; half of the noise would be off by 75 %.
    assert np.var(noise) == pytest.approx(variance, rel=0.4)


# ------------------------------------------------------------------------------------------------ accountants


@pytest.fixture
def handed(monkeypatch):
    """What an accountant hands to the mechanisms."""
    seen = []

    def watch(name):
        real = getattr(accountant, name)

        def call(values, **given):
            seen.append((name, given))
            return real(values, **given)

        monkeypatch.setattr(accountant, name, call)

    for name in ("noisy_counts", "gaussian_counts", "choose", "frequent_counts"):
        watch(name)
    return seen


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_what_is_handed_to_the_mechanisms_is_what_is_paid_for(handed, relation, rows, delta):
    unit = "record" if rows == 1 else "person"
    payer = Accountant(1.0, delta, relation=relation, unit=unit, rows_per_unit=rows, random_state=0)
    # Every way in which one unit's rows lie in three cells, or do not.
    ways = [
        np.bincount(cells, minlength=3)
        for n in range(0 if unit == "person" else 1, rows + 1)
        for cells in itertools.combinations_with_replacement(range(3), n)
    ]
    moves = [a - b for a in ways for b in (ways if relation == "replace-one" else [np.zeros(3, dtype=int)])]
    payer.counts([5, 5, 5], 0.2, what="one")
    payer.counts([5, 5, 5] * 3, 0.3, what="three", tables=3)
    payer.choose([1, 2], 0.1, what="a choice", sensitivity=1)
    if delta:
        payer.frequent([5, 5, 5], 0.2, what="found", delta=1e-8)
    names = [name for name, _ in handed]
    given = [settings for _, settings in handed]
    order, mechanism = (2, "gaussian_counts") if delta else (1, "noisy_counts")
    assert names[:3] == [mechanism, mechanism, "choose"]
    # Scores may move against each other, unless somebody says that they do not.
    assert given[2]["monotonic"] is False
    for settings, tables in zip(given[:2], (1, 3), strict=True):
        most = max(np.linalg.norm(np.tile(move, tables), ord=order) for move in moves)
        assert settings["sensitivity"] == pytest.approx(most)
    # What they may spend adds up to what was charged, and with the delta that is set aside to no more than the budget.
    spent = [settings.get("rho" if delta else "epsilon") for settings in given]
    charges = [
        charge.rho if delta else charge.epsilon for charge in payer.charges if charge.event is not None
    ]
    assert spent == pytest.approx(charges)
    total = zcdp_rho(1.0, delta - (1e-8 if delta else 0.0)) if delta else 1.0
    assert sum(spent) <= (0.8 if delta else 0.6) * (zcdp_rho(1.0, delta) if delta else 1.0) * (1 + 1e-9)
    assert payer.total == pytest.approx(total)
    if delta:
        assert given[3]["changed"] == max(np.count_nonzero(np.abs(m)) for m in _wide(rows, relation))
        assert given[3]["largest"] == max(int(np.abs(m).max()) for m in moves)
        assert given[3]["sensitivity"] == pytest.approx(max(np.linalg.norm(m) for m in moves))
        assert given[3]["delta"] == 1e-8 and payer.failure == 1e-8
    assert payer.rows_changed == max(np.abs(m).sum() for m in moves)
    stated = payer.guarantee("counts", ())
    assert (stated.relation, stated.unit, stated.rows_per_unit) == (relation, unit, rows)
    assert payer.n_rows_public == (relation == "replace-one" and unit == "record")


def _wide(rows: int, relation: str) -> list[np.ndarray]:
    """Return moves over as many cells as one unit can reach."""
    one = np.concatenate([np.ones(rows, dtype=int), np.zeros(rows, dtype=int)])
    return [one, one - one[::-1]] if relation == "replace-one" else [one]


def test_failures_and_noise_are_held_against_the_budget_together():
    payer = Accountant(1.0, 1e-6, random_state=0)
    payer.spend("failures", delta=9e-7)
    payer.counts([1, 2], 1.0, what="all")
    rho = sum(charge.rho for charge in payer.charges)
    assert zcdp_epsilon(rho, 1e-7) <= 1.0 + 1e-9
    half = Accountant(1.0)
    half.spend("half", share=0.5)
    assert sum(half.split({"a": 1, "b": 3}).values()) == pytest.approx(0.5)
    # Laplace noise for half of a pure budget.
    for epsilon in (0.5, 2.0):
        noise = Accountant(epsilon).calibrate(dp_event.LaplaceDpEvent, what="x", share=0.5)
        assert 1 <= noise * epsilon / 2 < 1.01
    # Many pure charges are joined, at no less than their sum.
    many = Accountant(1.0)
    for number in range(40):
        many.spend(str(number), epsilon=0.01)
    assert composed_epsilon(many.guarantee("x").event, 0.0) == pytest.approx(0.4)
    shown = Accountant(1.0, 1e-3)
    shown.spend("failures", delta=5e-4)
    shown.spend("pure", epsilon=0.5)
    assert composed_epsilon(shown.guarantee("x").event, 4e-4) == math.inf
    # Half a unit of a pure mechanism is half a unit, whatever its rho says at this delta.
    assert 0.49 < shown.guarantee("x").epsilon <= 0.5
    promised = Accountant(1.0, 1e-6).promise("x", counts_only=True)
    assert composed_epsilon(promised.event, 1e-6) == pytest.approx(1.0, rel=1e-6)
    assert composed_epsilon(dp_event.ComposedDpEvent([promised.event] * 2), 1e-6) > 1.3


# ------------------------------------------------------------------------------------------------ composition


@pytest.mark.parametrize("rho", [1e-4, 0.01, 0.3, 5.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-9])
def test_zcdp_is_converted_at_the_best_order(rho, delta):
    # Canonne, Kamath and Steinke 2020, Proposition 12, minimised over the order itself.
    def epsilon(log: float) -> float:
        order = 1 + math.exp(log)
        return order * rho + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)

    best = min(
        minimize_scalar(epsilon, bounds=(low, low + 4), method="bounded", options={"xatol": 1e-12}).fun
        for low in range(-10, 12, 2)
    )
    assert zcdp_epsilon(rho, delta) == pytest.approx(max(best, 0.0), rel=1e-6, abs=1e-9)
    if best > 1e-3:
        assert zcdp_rho(best, delta) == pytest.approx(rho, rel=1e-6)
    # Gaussian noise of that rho has no more than this delta at that epsilon.
    mu, at = math.sqrt(2 * rho), zcdp_epsilon(rho, delta)
    if at > 0:
        exact = norm.cdf(mu / 2 - at / mu) - math.exp(at) * norm.cdf(-mu / 2 - at / mu)
        assert exact <= delta


def hockey_stick(pairs: list[tuple[float, float]], times: int, epsilon: float) -> float:
    """Return the delta at an epsilon of independent pairs of outcomes' chances, by going through all of them."""
    outcomes = [(1.0, 1.0)]
    for _ in range(times):
        outcomes = [(a * p, b * q) for a, b in outcomes for p, q in pairs]
    return sum(max(a - math.exp(epsilon) * b, 0.0) for a, b in outcomes)


def approximate(epsilon: float, delta: float) -> list[tuple[float, float]]:
    """Return the chances of the worst (epsilon, delta)-DP mechanism's outcomes under two neighbours."""
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    return [
        (delta, 0.0),
        (0.0, delta),
        ((1 - delta) * p, (1 - delta) * (1 - p)),
        ((1 - delta) * (1 - p), (1 - delta) * p),
    ]


@pytest.mark.parametrize("times", [1, 2, 5])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.01), (1.0, 1e-3), (0.5, 0.0)])
def test_composition_is_what_going_through_all_outcomes_gives(times, epsilon, delta):
    event = dp_event.SelfComposedDpEvent(approximate_event(epsilon, delta), times)
    alone = composed_epsilon(dp_event.ComposedDpEvent([approximate_event(epsilon, delta)] * times), 0.05)
    for target in (times * delta * 1.01 + 1e-4, 0.05, 0.1):
        found = composed_epsilon(event, target)
        exact = hockey_stick(approximate(epsilon, delta), times, found)
        assert exact <= target * (1 + 1e-9)
        # And hardly more than is needed: the grid of losses rounds upwards.
        if found > 0.01:
            assert hockey_stick(approximate(epsilon, delta), times, found - 0.01) > target
    assert composed_epsilon(event, 0.05) == pytest.approx(alone, abs=1e-3)


def test_guarantees_compose_at_no_less_than_they_cost():
    weak = Guarantee("proven", 1.0, 1e-3, basis="x", event=approximate_event(1.0, 1e-3))
    both = Guarantee.compose(weak, weak)
    assert both.delta == 2e-3 and both.epsilon == pytest.approx(2.0, rel=1e-3)
    assert hockey_stick(approximate(1.0, 1e-3), 2, both.epsilon) <= both.delta * (1 + 1e-9)
    with pytest.raises(InputError, match="cannot be stated at delta"):
        Guarantee.compose(weak, weak, delta=1e-3)
    # Thousands of mechanisms, of which the accountants' grids know less than the sums of their figures.
    many = dp_event.SelfComposedDpEvent(pure_event(1e-6), 1000)
    assert composed_epsilon(many, 0.0) == pytest.approx(1e-3, rel=1e-6)
    rhos = dp_event.SelfComposedDpEvent(dp_event.ZCDpEvent(1e-4), 100)
    assert composed_epsilon(rhos, 1e-6) == pytest.approx(zcdp_epsilon(0.01, 1e-6), rel=1e-6)
    nested = dp_event.SelfComposedDpEvent(dp_event.SelfComposedDpEvent(pure_event(0.1), 3), 4)
    assert composed_epsilon(nested, 0.0) == pytest.approx(1.2)
    failures = dp_event.SelfComposedDpEvent(failure_event(1e-3), 3)
    assert composed_epsilon(failures, 2.9e-3) == math.inf and composed_epsilon(failures, 3e-3) == 0
    mixed = dp_event.ComposedDpEvent([pure_event(0.5), dp_event.GaussianDpEvent(5.0)])
    assert composed_epsilon(mixed, 1e-9) >= composed_epsilon(dp_event.GaussianDpEvent(5.0), 1e-9)


@pytest.mark.parametrize(
    "facts", [{"unit": "person"}, {"unit": "person", "rows_per_unit": 3}, {"relation": "add-remove"}]
)
def test_only_guarantees_of_one_kind_compose_and_keep_it(facts):
    def of(**facts):
        return Guarantee("proven", 0.5, 0.0, basis="x", event=pure_event(0.5), **facts)

    with pytest.raises(InputError, match="do not compose"):
        Guarantee.compose(of(), of(**facts))
    if "rows_per_unit" in facts:
        with pytest.raises(InputError, match="do not compose"):
            Guarantee.compose(of(unit="person"), of(**facts))
    both = Guarantee.compose(of(**facts), of(**facts))
    assert {name: getattr(both, name) for name in facts} == facts


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.02), (1.0, 1e-3), (1.5, 0.0)])
def test_a_replaced_record_is_one_removed_and_one_added(epsilon, delta):
    added = Guarantee(
        "proven", epsilon, delta, relation="add-remove", basis="x", event=approximate_event(epsilon, delta)
    )
    # Three tables: with one record, without it, with another; chances that keep to the claim from each to the next, and
    # lie as far apart as they can: of the first outcome (x, y, z) with x <= e^eps y + delta, y <= e^eps z + delta.
    z = 0.01
    y = math.exp(epsilon) * z + delta
    x = math.exp(epsilon) * y + delta
    assert x < 1 and all(1 - b <= math.exp(epsilon) * (1 - a) + delta for a, b in ((x, y), (y, z)))
    known = as_replace_one(added)
    assert known.relation == "replace-one"
    assert x <= math.exp(known.epsilon) * z + known.delta + 1e-12
    # The ledger's filter takes the same.
    cost = Filter.of(10.0, 0.5 if delta else 0.0).cost(added, "replace-one")
    assert x <= math.exp(cost.epsilon) * z + cost.delta + 1e-12


def test_a_replaced_record_moves_normal_noise_twice():
    event = dp_event.GaussianDpEvent(4.0)
    added = Guarantee(
        "proven", composed_epsilon(event, 1e-6), 1e-6, relation="add-remove", basis="x", event=event
    )
    known = as_replace_one(added)
    at, mu = known.epsilon, 2 / 4.0
    exact = norm.cdf(mu / 2 - at / mu) - math.exp(at) * norm.cdf(-mu / 2 - at / mu)
    assert exact == pytest.approx(1e-6, rel=0.05) and exact <= 1e-6
    keeper = Filter.of(10.0, 1e-5)
    cost = keeper.cost(added, "replace-one")
    # Twice the shift: four times the Renyi divergence of order a, a / (2 sigma^2); or the figures alone count.
    doubled = [4 * a / (2 * 16.0) - 1e-9 for a in keeper.orders]
    assert cost.own_delta > 1e-6 or all(c >= d for c, d in zip(cost.renyi, doubled, strict=True))


def test_every_sum_of_a_filter_counts_every_charge():
    keeper = Filter.of(1.0, 1e-6)
    odd = Guarantee("proven", 0.125, 3e-7, basis="x", event=approximate_event(0.125, 3e-7))
    cost = keeper.cost(odd, "replace-one")
    spent = keeper.empty
    for _ in range(3):
        spent = spent.plus(cost, "sums")
    assert (float(spent.epsilon), float(spent.delta), float(spent.own_delta)) == (0.375, 9e-7, 9e-7)
    assert all(total >= 3 * each * (1 - 1e-12) for total, each in zip(spent.renyi, cost.renyi, strict=True))
    assert keeper.allows(spent) and not keeper.allows(spent.plus(cost, "sums"))
    pure = Filter.of(1.0, 0.0)
    first = pure.spend(pure.empty, pure.cost(Guarantee.pure(0.75, "x"), "replace-one"))
    assert first is not None and pure.spend(first, pure.cost(Guarantee.pure(0.5, "x"), "replace-one")) is None


def test_a_filter_fixes_its_rule_with_the_first_charge_and_rounds_upwards():
    keeper = Filter.of(1.0, 1e-6)
    first = keeper.spend(keeper.empty, keeper.cost(Guarantee.pure(0.01, "x"), "replace-one"))
    assert first is not None and first.rule == "renyi"
    # Figures alone, with a delta beyond half of the budget's: the sums would allow it, but they are not the rule now.
    odd = Guarantee("proven", 0.5, 9e-7, basis="x", event=approximate_event(0.5, 9e-7))
    assert keeper.spend(keeper.empty, keeper.cost(odd, "replace-one")) is not None
    assert keeper.spend(first, keeper.cost(odd, "replace-one")) is None
    # 60 digits do not fit into the sum; it is not below what was charged.
    total = keeper.empty
    for epsilon in (1.0, 1e-60):
        total = total.plus(keeper.cost(Guarantee.pure(epsilon, "x"), "replace-one"), "renyi")
    assert total.epsilon > 1
    repeated = Guarantee(
        "proven",
        composed_epsilon(dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(20.0), 4), 1e-7),
        1e-7,
        basis="x",
        event=dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(20.0), 4),
    )
    curve = keeper.cost(repeated, "replace-one").renyi
    assert curve == pytest.approx([4 * a / (2 * 400.0) for a in keeper.orders])


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 0.99, 1.5, 6.0])
@pytest.mark.parametrize("share", [0.01, 0.3, 1.0])
def test_a_learner_on_a_sample_costs_what_the_mixture_of_outcomes_says(epsilon, share):
    # Randomized response on the record if it is in the sample, on another one if not.
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    one, other = (1 - share) * (1 - p) + share * p, 1 - p
    assert _amplified(epsilon, share) == pytest.approx(math.log(one / other))
    assert _spendable(_amplified(epsilon, share), share) == pytest.approx(epsilon)


def test_failures_of_learners_on_samples_add_up():
    settings = {"delta": 1e-3, "n_estimators": 10, "n_records": 100, "n_samples": 50, "split": "subsample"}
    # Each learner fails with 1e-3 where the record is in its sample, half of the time.
    shown = 1 - (1 - 5e-4) ** 10
    with pytest.raises(InputError, match="cannot be met"):
        bagging_cost(0.1, target_delta=0.99 * shown, **settings)
    assert bagging_cost(0.1, target_delta=1.01 * shown, **settings).epsilon > 0.1


def test_the_way_in_which_a_record_changes_most_rows_counts():
    # Ten copies of each record of the one class and two of the other, beside the records themselves.
    cost = oversampling_cost(0.1, n_minority={"a": 10, "b": 50}, n_added={"a": 100, "b": 100}, bases="cyclic")
    # A record may go from the one to the other.
    assert cost.epsilon == pytest.approx(0.1 * (10 + 2 + 1)) and cost.delta == 0
    cases = [GroupSize.fixed(2), GroupSize.fixed(5), GroupSize.fixed(1)]
    assert whole_epsilon(0.0, cases, Mechanism(0.1)) == (pytest.approx(0.5), 0.0)
    assert whole_epsilon(1e-9, cases, Mechanism(0.1))[0] == pytest.approx(0.5, rel=1e-6)


# ------------------------------------------------------------------------------------------------ records


PUBLIC = {"domain": "public", "source": "a code book"}
MIXED = Schema(
    (
        Column("a", "continuous", "float64", True, bounds=(-5.0, 6.0), decimals=2, **PUBLIC),
        Column("b", "integer", "int64", bounds=(0, 12), **PUBLIC),
        Column("c", "categorical", "str", categories=("low", "mid", "high"), **PUBLIC),
    )
)


def odd_rows(d: int) -> np.ndarray:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(400, d)) * np.exp(rng.uniform(-5, 5, (400, 1)))
    rows[:8] = [[v] * d for v in (np.inf, -np.inf, np.nan, 1e300, -1e300, 1e-300, 0.0, 1.0)]
    rows[8, 0], rows[9, 0] = np.inf, np.nan
    return rows


def mixed_rows() -> pd.DataFrame:
    # Also far outside of what the schema says, and what is no number at all.
    a = [-5.0, 6.0, 0.5, 99.0, -1e9, None, 6.0, -5.0]
    b = [0, 12, 6, 10**9, -(10**9), 12, 12, 0]
    c = ["low", "mid", "high", "other", None, "low", "high", "mid"]
    return pd.DataFrame({"a": a, "b": b, "c": c})


@pytest.mark.parametrize("norm", [0.3, 1.0, 7.0])
def test_no_record_is_longer_than_the_norm_whatever_it_holds(norm):
    paid = learn_features(
        np.random.default_rng(0).normal(size=(3000, 3)),
        schema=None,
        scaling="private",
        data_norm=norm,
        epsilon=5.0,
        rng=np.random.default_rng(0),
    )
    for features, rows in (
        (FeatureMap(norm), odd_rows(3)),
        (paid, odd_rows(3)),
        (FeatureMap(norm, MIXED), mixed_rows()),
    ):
        vectors = features.apply(rows)
        lengths = np.linalg.norm(vectors, axis=1)
        assert (
            np.isfinite(vectors).all() and (lengths <= norm).all() and lengths.max() > 0.99 * min(norm, 1.5)
        )
        steps = grid_steps(vectors, norm)
        assert ((steps**2).sum(axis=1) <= 2**40).all()
        assert (np.abs(steps).sum(axis=1) <= longest_l1(features, steps.shape[1])).all()
    assert (np.abs(paid.apply(odd_rows(3))) <= paid.limit + 1e-12).all()


@pytest.mark.parametrize("width", [1, 2, 5, 40])
def test_the_largest_sum_of_a_record_is_bounded_where_it_is_largest(width):
    even = np.full((1, width), 3.0 / math.sqrt(width))
    steps = grid_steps(even, 3.0)
    assert int(np.abs(steps).sum()) <= longest_l1(FeatureMap(3.0), width) < 1.001 * np.abs(steps).sum() + 2
    # Of a schema with a large norm, the corner of the box.
    corner = FeatureMap(10.0, MIXED)
    steps = grid_steps(corner.apply(mixed_rows()), 10.0)
    assert int(np.abs(steps).sum(axis=1).max()) <= longest_l1(corner, steps.shape[1])
    assert longest_l1(corner, steps.shape[1]) <= 3 * 2**20 / 10 + 1


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_no_record_moves_sums_and_sizes_by_more_than_is_paid_for(monkeypatch, delta):
    seen = []

    def watch(name, order):
        real = getattr(accountant, name)

        def call(values, **given):
            seen.append((values, given["sensitivity"], order))
            return real(values, **given)

        monkeypatch.setattr(accountant, name, call)

    watch("noisy_counts", 1)
    watch("gaussian_counts", 2)
    features = FeatureMap(1.0)
    corners = [np.array(at) for at in itertools.product((-1.0, 0.0, 1.0), repeat=2)]
    worst = 0.0
    for record, label in itertools.product(corners, (0, 1)):
        rows = np.vstack([np.zeros((3, 2)), record])
        noisy_totals(rows, np.array([0, 0, 1, label]), 2, features, Accountant(1.0, delta, random_state=0))
        tables = [values for values, _, _ in seen]
        moved, order = seen[-1][1:]
        worst = max(
            worst, max(np.linalg.norm((a - b).ravel(), ord=order) for a in tables for b in tables) / moved
        )
    # The slack of the grid is all that is left.
    assert 0.99 < worst <= 1


# ------------------------------------------------------------------------------------------------ PrivBayes


@pytest.mark.parametrize(
    ("relation", "rows"), [("replace-one", 1), ("add-remove", 1), ("replace-one", 3), ("add-remove", 3)]
)
def test_the_choice_of_a_network_is_paid_at_least_what_records_can_move_it(handed, relation, rows):
    unit = "record" if rows == 1 else "person"
    table = [(0, 0, 0)] * 3000 + [(0, 1, 1)] * 3000 + [(1, 2, 2)] * 2000
    tiny(table, epsilon=20.0, relation=relation, unit=unit, rows_per_unit=rows)
    paid = [given["sensitivity"] for name, given in handed if name == "choose"]
    assert paid
    # Both sides of the record are rare, and rows lie on the sides of independence that a move makes worse: a replaced
    # record moves nearly all that it can, half of 1 + 1 in the table and of 2 + 2 in the product of its margins.
    cells = np.array([[80, 110, 9810], [90, 120, 9790], [9830, 9770, 960400]])
    other = cells.copy()
    other[0, 0] -= rows
    other[1, 1] += rows if relation == "replace-one" else 0
    moved = abs(dependence(other) - dependence(cells))
    assert moved > (2.9 if relation == "replace-one" else 1.9) * rows
    assert min(paid) >= moved


def test_no_record_moves_the_tables_of_a_network_by_more_than_is_paid_for(monkeypatch):
    seen = CountsSeen(monkeypatch)
    names = "abcd"
    bins = {name: Bins(Column(name, "integer", "int64", bounds=(0, 1))) for name in names}

    def fit(cells):
        columns = {"y": cells[:, 0]} | {name: cells[:, 1 + i] for i, name in enumerate(names)}
        counts = Counts.of_cells(columns, {name: 2 for name in columns})
        learner = PrivateNetwork(counts, "y", bins, Accountant(50.0, random_state=0), 1, 0.5)
        learner.learn()
        assert sum(bool(node.parents) for node in learner.nodes) == 3

    # All columns alike: three tables of two columns, in each of which the record counts.
    first = np.repeat([[0] * 5, [1] * 5], 4000, axis=0)
    second = first.copy()
    second[0] = 1
    assert max(seen.moved(fit, first, second)) <= 1


def test_votes_have_the_noise_of_a_vote_on_each_row():
    # Pure: scale 2000 / 1000 on each count. Of 2000 draws the deviation is off by a fifth with a chance below 1e-6.
    drawn = noisy_votes(np.zeros(2000, dtype=np.int64), Accountant(1000.0, random_state=0), 1.0)
    q = math.exp(-1 / 2.0)
    assert drawn.std() == pytest.approx(math.sqrt(2 * q) / (1 - q), rel=0.2)
