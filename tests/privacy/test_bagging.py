"""What bagging costs."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from oversafe._core.errors import InputError
from oversafe.measure import audit_epsilon
from oversafe.privacy import Guarantee, bagging_budget, bagging_cost
from oversafe.privacy.costs.published import advanced_composition, paper_bagging_cost

ENSEMBLE = {"n_estimators": 10, "n_records": 1000}


def test_disjoint_parts_cost_no_more_than_one_learner():
    cost = bagging_cost(0.3, **ENSEMBLE, delta=1e-9, split="disjoint")
    assert (cost.status, cost.epsilon, cost.delta) == ("proven", 0.3, 1e-9)


def test_stratified_parts_take_the_labels_as_public():
    cost = bagging_cost(0.3, **ENSEMBLE, split="stratified")
    assert (cost.status, cost.epsilon) == ("nominal", 0.3)
    assert "labels" in str(cost)


def test_learners_without_privacy():
    # 10 samples of 5 from 1000: the chance to be in one of them.
    cost = bagging_cost(**ENSEMBLE, n_samples=5)
    assert cost.delta == pytest.approx(1 - 0.999**50) and cost.delta >= 1 - 0.999**50
    assert cost.epsilon <= 1e-9
    # The published pair has the same delta and an epsilon that is not needed.
    assert paper_bagging_cost(10, 5, 1000) == pytest.approx((50 * math.log(1.001), 1 - 0.999**50))
    cost = bagging_cost(**ENSEMBLE, n_samples=100, split="subsample")
    assert cost.delta == pytest.approx(1 - 0.9**10)
    assert bagging_cost(**ENSEMBLE, split="subsample").status == "none"
    assert bagging_cost(n_estimators=10**4, n_records=10**3).status == "none"
    assert bagging_cost(**ENSEMBLE, split="disjoint").status == "none"


def test_proposition_4_leaves_less_than_one_draw():
    # delta = n^-c with c > 1 needs fewer draws than one.
    n = 1000
    one = bagging_cost(n_estimators=1, n_records=n, n_samples=1)
    assert one.delta == pytest.approx(1 / n) and one.delta > n**-1.01


def test_subsamples_are_amplified():
    each = math.log1p(0.2 * math.expm1(0.5))
    cost = bagging_cost(0.5, **ENSEMBLE, n_samples=200, split="subsample")
    assert cost.epsilon == pytest.approx(10 * each)
    # Under add-remove a row of the sample makes way: two steps.
    cost = bagging_cost(0.5, **ENSEMBLE, n_samples=200, split="subsample", relation="add-remove")
    assert cost.epsilon == pytest.approx(10 * math.log1p(0.2 * math.expm1(1.0)))
    # All of the records: plain composition.
    assert bagging_cost(0.5, **ENSEMBLE, split="subsample").epsilon == pytest.approx(5.0)


def test_composition_is_never_worse_than_the_published_one():
    for epsilon, count in ((0.01, 100), (0.1, 20), (0.05, 400)):
        cost = bagging_cost(epsilon, n_estimators=count, n_records=1000, split="subsample", target_delta=1e-6)
        assert cost.epsilon <= advanced_composition(epsilon, count, 1e-6)
        assert cost.epsilon <= count * epsilon + 1e-9
    assert bagging_cost(
        0.01, n_estimators=100, n_records=1000, split="subsample", target_delta=1e-6
    ).epsilon == (pytest.approx(0.44, abs=0.05))


def test_a_bootstrap_may_hold_a_record_many_times():
    # At delta 0 all 10 * 20 draws may be the same record.
    assert bagging_cost(0.1, n_estimators=10, n_records=20).epsilon == pytest.approx(20.0)
    cost = bagging_cost(1.0, n_estimators=1, n_records=1000, target_delta=1e-6)
    # Basic: as often as the record is drawn, more than 8 times only with probability 1e-6.
    assert binom.sf(8, 1000, 1e-3) > 1e-6 > binom.sf(9, 1000, 1e-3)
    assert 7 < cost.epsilon <= 9
    assert bagging_cost(0.1, **ENSEMBLE, target_delta=1e-6, relation="add-remove").epsilon > (
        bagging_cost(0.1, **ENSEMBLE, target_delta=1e-6).epsilon
    )


def test_an_attack_on_a_bootstrap_exceeds_the_learners_epsilon():
    """A noisy sum of a bootstrap sample, claimed as epsilon = 1. Our bound fails with a probability below 1e-6."""

    def run(table, rng, size):
        drawn = rng.integers(len(table), size=(size, len(table)))
        return np.asarray(table)[drawn].sum(axis=1) + rng.laplace(scale=1.0, size=size)

    table, other = np.array([1.0, 0, 0]), np.zeros(3)
    settings = {"trials": 200_000, "confidence": 1 - 1e-6, "vectorized": True, "random_state": 0}
    lower = audit_epsilon(run, table, other, **settings).lower_bound
    assert 1.1 < lower <= bagging_cost(1.0, n_estimators=1, n_records=3).epsilon
    for delta in (0.01, 0.1):
        lower = audit_epsilon(run, table, other, delta=delta, **settings).lower_bound
        assert lower <= bagging_cost(1.0, n_estimators=1, n_records=3, target_delta=delta).epsilon


@pytest.mark.parametrize("split", ["bootstrap", "subsample", "disjoint"])
def test_the_budget_is_the_inverse(split):
    settings = {**ENSEMBLE, "n_samples": 300, "split": split, "target_delta": 1e-6}
    inside = bagging_budget(1.0, **settings)
    assert 0.99 < bagging_cost(inside, **settings).epsilon <= 1.0


def test_it_composes_and_survives_being_written_down():
    cost = bagging_cost(0.1, **ENSEMBLE, target_delta=1e-6)
    assert Guarantee.from_json(cost.to_json()) == cost
    assert Guarantee.compose(cost, cost).epsilon <= 2 * cost.epsilon * (1 + 1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "epsilon = 0.0"),
        ({"epsilon": math.nan}, "epsilon = nan"),
        ({"target_delta": 1.0}, "delta = 1.0"),
        ({"n_estimators": 0}, "n_estimators = 0"),
        ({"n_records": 0}, "n_records = 0"),
        ({"n_samples": 1001, "split": "subsample"}, "at most that"),
        ({"split": "odd"}, "split = 'odd'"),
        ({"relation": "odd"}, "relation = 'odd'"),
        ({"delta": 1e-6, "target_delta": 1e-6}, "cannot be met"),
    ],
)
def test_bad_use_is_one_sentence(change, message):
    settings = {"epsilon": 1.0, **ENSEMBLE} | change
    with pytest.raises(InputError, match=message):
        bagging_cost(settings.pop("epsilon"), **settings)
