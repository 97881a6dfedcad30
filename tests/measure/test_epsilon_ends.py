"""The ends of the audits' intervals beside exact values, and how often they hold what they say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom

from oversafe.attack.base import wilson_interval
from oversafe.attack.linkage.rates import paired_interval
from oversafe.measure import audit_epsilon, audit_epsilon_one_run


def lowest_share(hits: int, trials: int, tail: float) -> float:
    """Return the share at which so many hits or more have a chance of ``tail``: the lower end, by its definition."""
    return brentq(lambda p: binom.sf(hits - 1, trials, p) - tail, 0.0, 1.0, xtol=1e-15) if hits else 0.0


def highest_share(hits: int, trials: int, tail: float) -> float:
    """Return the share at which so many hits or fewer have a chance of ``tail``."""
    return brentq(lambda p: binom.cdf(hits, trials, p) - tail, 0.0, 1.0, xtol=1e-15) if hits < trials else 1.0


def results(hits: int, trials: int, chosen_on: int):
    """Return a mechanism's results: ones and zeros, of which the second half has so many hits."""
    half = trials // 2
    return np.concatenate([np.arange(half) < chosen_on, np.arange(trials - half) < hits]).astype(float)


@pytest.mark.parametrize(
    ("hits", "delta"),
    [((90, 10), 0.0), ((60, 40), 0.0), ((100, 1), 0.0), ((100, 0), 0.0), ((37, 0), 0.01), ((80, 20), 0.2)],
)
def test_the_bound_is_that_of_two_exact_ends_at_the_default_confidence(hits, delta):
    # On the first half the event is certain under the one and absent under the other; the second half is measured.
    trials, of = 201, 101
    known = {"table": results(hits[0], trials, 100), "neighbour": results(hits[1], trials, 0)}
    audit = audit_epsilon(
        lambda which, rng, size: known[which],
        "table",
        "neighbour",
        trials=trials,
        delta=delta,
        vectorized=True,
    )
    low, high = lowest_share(hits[0], of, 0.025), highest_share(hits[1], of, 0.025)
    assert (audit.counts, audit.trials, audit.confidence) == (hits, of, 0.95)
    assert audit.lower_bound == pytest.approx(max(0.0, math.log((low - delta) / high)), abs=1e-9)


def test_an_event_that_delta_pays_for_says_nothing():
    known = {"table": results(10, 200, 100), "neighbour": results(0, 200, 0)}
    audit = audit_epsilon(
        lambda which, rng, size: known[which], "table", "neighbour", trials=200, delta=0.1, vectorized=True
    )
    assert audit.lower_bound == 0


def randomized_response(epsilon: float):
    def run(bit: int, rng: np.random.Generator, size: int) -> np.ndarray:
        truth = rng.random(size) < 1 / (1 + math.exp(-epsilon))
        return np.where(truth, bit, 1 - bit).astype(float)

    return run


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_four_hundred_audits_at_the_default_confidence_hold_what_they_say(epsilon):
    # Both events of randomized response have a likelihood ratio of exactly e^epsilon. Both ends must be missed together
    # for a bound above it, so of 400 audits one or two are; 28 or more have a chance far below 1e-6.
    bounds = [
        audit_epsilon(
            randomized_response(epsilon), 1, 0, trials=400, vectorized=True, random_state=seed
        ).lower_bound
        for seed in range(400)
    ]
    assert np.mean(np.array(bounds) <= epsilon) >= 0.93
    if epsilon >= 1:
        assert np.median(bounds) > 0.6 * epsilon


def test_noise_in_many_coordinates_is_not_taken_for_a_difference():
    # Randomized response of epsilon 1 and 120 numbers that say nothing. At most 5 % of the audits may be above it: 13
    # or more of 40 would be with a chance below 1e-6.
    def run(bit: int, rng: np.random.Generator, size: int) -> np.ndarray:
        return np.column_stack([randomized_response(1.0)(bit, rng, size), rng.normal(size=(size, 120))])

    bounds = [
        audit_epsilon(run, 1, 0, trials=600, vectorized=True, random_state=seed).lower_bound
        for seed in range(40)
    ]
    assert np.count_nonzero(np.array(bounds) > 1.0) < 13


# -------------------------------------------------------------------------------------------------- one run


def test_one_run_pays_for_choosing_the_best_number_of_guesses():
    # Scores that say nothing: at most 5 % of 600 audits may find something; 65 or more have a chance below 1e-6.
    def run(included: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.random(len(included))

    found = sum(audit_epsilon_one_run(run, 400, random_state=seed).lower_bound > 0 for seed in range(600))
    assert found < 65


def test_one_run_learns_nothing_from_ties():
    # With confidence 1 - 1e-6 it would by chance once in a million.
    audit = audit_epsilon_one_run(
        lambda included, rng: np.zeros(len(included)), 1000, confidence=1 - 1e-6, random_state=0
    )
    assert audit.lower_bound == 0


def test_one_run_is_never_above_the_truth_of_a_mechanism_that_shows_some_with_delta():
    # Shows all canaries with probability delta and else nothing: (0, delta)-DP. In the runs where it shows them, half
    # of all here, the bound must still be 0.
    audit = audit_epsilon_one_run(
        lambda included, rng: included.astype(float), 100, delta=0.5, confidence=0.6, random_state=0
    )
    assert audit.lower_bound == 0


# ------------------------------------------------------------------------------------------------ intervals


@pytest.mark.parametrize(("successes", "trials"), [(8, 10), (1, 30), (250, 1000), (2, 3)])
@pytest.mark.parametrize("confidence", [0.95, 0.99])
def test_wilsons_ends_are_where_the_score_test_rejects(successes, trials, confidence):
    from scipy.stats import norm

    z, share = norm.isf((1 - confidence) / 2), successes / trials
    ends = wilson_interval(successes, trials, confidence)
    for end in ends:
        assert abs(share - end) == pytest.approx(z * math.sqrt(end * (1 - end) / trials))
    assert ends[0] < share < ends[1]
    if confidence == 0.95:
        assert wilson_interval(successes, trials) == ends


@pytest.mark.parametrize("repeats", [1, 4])
def test_intervals_of_pairs_hold_the_truth_nearly_as_often_as_they_say(repeats):
    # Both attacks on the same people, each of them several times with the same outcome. About 94 % of these intervals
    # hold the true risk of 0.4; fewer than 532 of 600 would with a chance below 1e-6.
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(600):
        other = rng.random(150) < 0.3
        main = other | (rng.random(150) < 0.4)
        main, other = (np.repeat(hits, repeats).astype(float) for hits in (main, other))
        risk = 1 - (1 - main.mean()) / (1 - other.mean())
        low, high = paired_interval(main, other, risk, float(repeats))
        held += low <= 0.4 <= high
    assert held >= 532
