"""Noise has the distribution it is said to have, drawn by OpenDP or from a seed."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from oversafe._core.errors import InputError
from oversafe.measure import audit_epsilon
from oversafe.privacy.mechanisms import (
    _gaussian_threshold,
    _whole_scores,
    choose,
    frequent_counts,
    gaussian_counts,
    noisy_counts,
)
from oversafe.privacy.zcdp import zcdp_epsilon

SURE = 1 - 1e-6
ZEROS = np.zeros(40_000, dtype=int)


def discrete_laplace(values, scale):
    ratio = np.exp(-1 / scale)
    return (1 - ratio) / (1 + ratio) * ratio ** np.abs(values)


def discrete_gaussian(values, scale):
    def weight(at):
        return np.exp(-(at.astype(float) ** 2) / (2 * scale**2))

    return weight(np.asarray(values)) / weight(np.arange(-int(50 * scale) - 50, int(50 * scale) + 51)).sum()


def fit_of(noise, probability, ends):
    """Return the p-value of the noise against its exact probabilities, with the tails as one cell each."""
    cells = np.arange(-ends + 1, ends)
    observed = np.array([(noise <= -ends).sum(), *[(noise == v).sum() for v in cells], (noise >= ends).sum()])
    inner = probability(cells)
    tail = (1 - inner.sum()) / 2
    return chisquare(observed, np.array([tail, *inner, tail]) * len(noise)).pvalue


# Each of these fails with probability 1e-6 by its own threshold.
@pytest.mark.parametrize("random_state", [None, 7])
@pytest.mark.parametrize(("sensitivity", "epsilon"), [(2, 1.0), (1, 2.5), (6, 0.4)])
def test_counts_get_discrete_laplace_noise(random_state, sensitivity, epsilon):
    noise = noisy_counts(ZEROS, sensitivity=sensitivity, epsilon=epsilon, random_state=random_state)
    scale = sensitivity / epsilon
    assert fit_of(noise, lambda at: discrete_laplace(at, scale), math.ceil(4 * scale)) > 1e-6


@pytest.mark.parametrize("random_state", [None, 7])
@pytest.mark.parametrize(("sensitivity", "rho"), [(math.sqrt(2), 0.1), (1.0, 2.0), (3.0, 0.05), (1.0, 8.0)])
def test_counts_get_discrete_gaussian_noise(random_state, sensitivity, rho):
    noise = gaussian_counts(ZEROS, sensitivity=sensitivity, rho=rho, random_state=random_state)
    scale = sensitivity / math.sqrt(2 * rho)
    ends = max(1, math.ceil(2.5 * scale))
    assert fit_of(noise, lambda at: discrete_gaussian(at, scale), ends) > 1e-6


def exponential_mechanism(scores, scale):
    weights = np.exp((np.asarray(scores) - np.max(scores)) / scale)
    return weights / weights.sum()


def permute_and_flip(scores, scale):
    """Return the exact chances (McKenna and Sheldon 2020, Algorithm 1), summed over the orders."""
    scores = np.asarray(scores, dtype=float)
    keep = np.exp((scores - scores.max()) / scale)
    chances = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        left = 1.0
        for candidate in order:
            chances[candidate] += left * keep[candidate]
            left *= 1 - keep[candidate]
    return chances / math.factorial(len(scores))


@pytest.mark.parametrize("random_state", [None, 3])
@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("scores", [[3, 1, 0, 3], [0.25, 1.75, -0.5, 2.0]])
@pytest.mark.parametrize("paid", ["epsilon", "rho"])
def test_choices_have_their_exact_chances(random_state, monotonic, scores, paid):
    rng = None if random_state is None else np.random.default_rng(random_state)
    budget = {paid: 1.5}
    chosen = [
        choose(scores, sensitivity=1, monotonic=monotonic, random_state=rng, **budget) for _ in range(8_000)
    ]
    epsilon = 1.5 if paid == "epsilon" else math.sqrt(8 * 1.5)
    scale = (1 if monotonic else 2) / epsilon
    exact = (permute_and_flip if paid == "epsilon" else exponential_mechanism)(scores, scale)
    observed = np.bincount(chosen, minlength=4)
    likely = exact * len(chosen) >= 5
    pooled = [*observed[likely], observed[~likely].sum()] if not likely.all() else observed
    expected = [*exact[likely], exact[~likely].sum()] if not likely.all() else exact
    assert chisquare(pooled, np.array(expected) * len(chosen)).pvalue > 1e-6


def test_scores_are_rounded_so_that_no_unit_moves_them_by_more_than_is_paid():
    rng = np.random.default_rng(0)
    for monotonic in (False, True):
        for _ in range(300):
            sensitivity = float(10 ** rng.uniform(-6, 4))
            scores = rng.normal(size=50) * sensitivity * 10 ** rng.uniform(-2, 4)
            moves = rng.uniform(0 if monotonic else -1, 1, size=50) * sensitivity
            # What computing a score in another order adds.
            error = rng.uniform(-0.5, 0.5, size=50) * sensitivity / 2**20
            first, paid = _whole_scores(scores, sensitivity, monotonic)
            second, _ = _whole_scores(scores + moves + error, sensitivity, monotonic)
            moved = second - first
            assert (np.ptp(moved) if monotonic else np.abs(moved).max()) <= paid <= 1.00001 * 2**20


def test_odd_scores_raise_no_error():
    scores = [np.nan, -np.inf, 1e300, np.inf, 0.0]
    for rng in (None, 1):
        assert choose(scores, sensitivity=1e-3, epsilon=50.0, random_state=rng) in (2, 3)


@pytest.mark.parametrize("delta", [0.1, 0.01, 1e-6, 1e-9])
@pytest.mark.parametrize("scale", [1.0, 3.0, 20.0])
def test_the_threshold_keeps_delta_exactly(delta, scale):
    # A value that a single unit has; 2 of them change when a record is replaced.
    for changed in (1, 2):
        _, threshold = _gaussian_threshold(changed, 1.0, 1, 1 / (2 * scale**2), delta)
        chance = discrete_gaussian(np.arange(threshold - 1, threshold + 40 * int(scale)), scale).sum()
        assert changed * chance <= delta
        nearer = discrete_gaussian(np.arange(threshold - 3, threshold + 40 * int(scale)), scale).sum()
        assert changed * nearer > delta / 2


def test_rare_values_are_released_as_seldom_as_delta_says():
    _, threshold = _gaussian_threshold(1, 1.0, 1, 0.5, 0.01)
    chance = discrete_gaussian(np.arange(threshold - 1, threshold + 60), 1.0).sum()
    for random_state in (None, 5):
        counts = np.ones(40_000, dtype=int)
        released = frequent_counts(
            counts, changed=1, sensitivity=1.0, largest=1, rho=0.5, delta=0.01, random_state=random_state
        )
        assert (released[released > 0] >= threshold).all()
        assert 5e-7 < binom.cdf((released > 0).sum(), len(counts), chance) < 1 - 5e-7
    many = frequent_counts(
        np.array([1000, 3]), changed=2, sensitivity=math.sqrt(2), largest=1, rho=0.01, delta=1e-9
    )
    assert many[0] > 900 and many[1] == 0
    empty = frequent_counts(np.array([], dtype=int), changed=2, sensitivity=1.0, largest=1, rho=1, delta=0.1)
    assert len(empty) == 0


def test_shape_and_repeatability():
    counts = np.arange(12).reshape(3, 4)
    for mechanism, budget in ((noisy_counts, {"epsilon": 2.0}), (gaussian_counts, {"rho": 2.0})):
        assert mechanism(counts, sensitivity=1, **budget).shape == (3, 4)
        again = [mechanism(counts, sensitivity=1, random_state=5, **budget) for _ in range(2)]
        assert np.array_equal(*again)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, True, "1"])
def test_bad_budgets_are_refused(bad):
    counts = np.zeros(3, dtype=int)
    for call in (
        lambda: noisy_counts(counts, sensitivity=1, epsilon=bad),
        lambda: gaussian_counts(counts, sensitivity=1, rho=bad),
        lambda: choose(counts, sensitivity=1, epsilon=bad),
        lambda: choose(counts, sensitivity=1, rho=bad),
        lambda: frequent_counts(counts, changed=1, sensitivity=1.0, largest=1, rho=bad, delta=0.1),
    ):
        with pytest.raises(InputError, match=r"epsilon|rho"):
            call()


@pytest.mark.parametrize("bad", [0, -2, np.nan, np.inf])
def test_bad_sensitivities_are_refused(bad):
    counts = np.zeros(3, dtype=int)
    for call in (
        lambda: noisy_counts(counts, sensitivity=bad, epsilon=1.0),
        lambda: gaussian_counts(counts, sensitivity=bad, rho=1.0),
        lambda: choose(counts, sensitivity=bad, epsilon=1.0),
    ):
        with pytest.raises(InputError, match="sensitivity"):
            call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: choose([1, 2], sensitivity=1),
        lambda: choose([1, 2], sensitivity=1, epsilon=1.0, rho=1.0),
        lambda: choose([], sensitivity=1, epsilon=1.0),
        lambda: choose([[1, 2]], sensitivity=1, epsilon=1.0),
        lambda: frequent_counts(np.ones(2), changed=1, sensitivity=1.0, largest=1, rho=1.0, delta=1.0),
    ],
)
def test_other_bad_use(call):
    with pytest.raises(InputError):
        call()


# At confidence 1 - 1e-6 the right mechanism is accused with probability at most 1e-6; the copy that is run with half
# of the sensitivity, so with half of the noise, was caught with this seed.
@pytest.mark.parametrize("share", [1.0, 0.5], ids=["as it is", "noise halved"])
class TestAudits:
    def check(self, run, table, neighbour, epsilon, share, delta=0.0):
        audit = audit_epsilon(
            run,
            table,
            neighbour,
            trials=40_000,
            delta=delta,
            confidence=SURE,
            vectorized=True,
            random_state=0,
        )
        assert (audit.lower_bound > epsilon) == (share < 1)

    def test_laplace(self, share):
        def run(counts, rng, size):
            table = np.tile(counts, (size, 1))
            return noisy_counts(table, sensitivity=int(4 * share), epsilon=1.0, random_state=rng)[:, 0]

        self.check(run, [10, 4], [6, 4], 1.0, share)

    def test_gaussian(self, share):
        def run(counts, rng, size):
            table = np.tile(counts, (size, 1))
            return gaussian_counts(table, sensitivity=2.0 * share, rho=0.5, random_state=rng)[:, 0]

        self.check(run, [10, 4], [8, 4], zcdp_epsilon(0.5, 0.05), share, delta=0.05)

    @pytest.mark.parametrize("paid", ["epsilon", "rho"])
    def test_choice(self, share, paid):
        def run(scores, rng, size):
            budget = {"epsilon": 1.0} if paid == "epsilon" else {"rho": 1 / 8}
            return [choose(scores, sensitivity=1.0 * share, random_state=rng, **budget) for _ in range(size)]

        # The exponential mechanism with rho = 1/8 is the one with epsilon = 1.
        self.check(run, [0.5, 0.5], [1.5, -0.5], 1.0, share)
