"""A threshold between noisy class means, what its noise hides, and the paper's bounds on it.

Bounds on epsilon hold at confidence 1 - 1e-6, so a test of the right mechanism fails by chance with at most that
probability. Those of broken copies have fixed seeds.
"""

from __future__ import annotations

import math
import pickle
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

from oversafe._core.errors import InputError
from oversafe.data import Column, Schema
from oversafe.learn import PrivateThresholdClassifier, threshold, threshold_bounds, threshold_scores
from oversafe.learn.features import FeatureMap
from oversafe.learn.objective import gaussian_delta
from oversafe.measure import audit_epsilon
from oversafe.privacy import Accountant, Guarantee, accountant

CONFIDENCE = 1 - 1e-6


def two_gaussians(n: int, share: float, seed: int = 0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    return (rng.normal(size=n) + 2 * y)[:, None], y


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_threshold_is_where_gamma_says(delta):
    X, y = two_gaussians(100_000, 0.1)
    for gamma in (0.5, 0.25):
        model = PrivateThresholdClassifier(
            5.0, delta, gamma, data_norm=6.0, classes=[0, 1], random_state=0
        ).fit(X, y)
        means = X[y == 1].mean(), X[y == 0].mean()
        assert model.threshold_ == pytest.approx(gamma * means[0] + (1 - gamma) * means[1], abs=0.02)
        np.testing.assert_array_equal(model.predict(X) == 1, X[:, 0] > model.threshold_)
        np.testing.assert_allclose(model.class_counts_, np.bincount(y), atol=100)


def test_the_threshold_is_in_the_units_of_the_column():
    X, y = two_gaussians(50_000, 0.2)
    model = PrivateThresholdClassifier(8.0, classes=[0, 1], random_state=0).fit(1000 + 50 * X, y)
    assert 1000 < model.threshold_ < 1100
    np.testing.assert_array_equal(model.predict(1000 + 50 * X) == 1, 1000 + 50 * X[:, 0] > model.threshold_)


def test_the_order_of_the_means_may_be_the_other_way_round():
    X, y = two_gaussians(50_000, 0.2)
    model = PrivateThresholdClassifier(4.0, data_norm=5.0, classes=[1, 0], random_state=0).fit(X, y)
    assert (model.predict(X) == y).mean() > 0.8


def test_several_columns_and_classes():
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "c"], size=20_000, p=[0.8, 0.1, 0.1])
    X = rng.normal(size=(20_000, 3)) + 4 * (y[:, None] == np.array(["a", "b", "c"]))
    model = PrivateThresholdClassifier(2.0, data_norm=7.0, classes=["a", "b", "c"]).fit(X, y)
    assert model.guarantee_.status == "proven"
    assert model.score(X, y) > 0.95
    with pytest.raises(InputError, match="with more than two use"):
        PrivateThresholdClassifier(gamma=0.3, data_norm=7.0).fit(X, y)


def test_gamma_out_of_range_is_refused():
    X, y = two_gaussians(100, 0.5)
    for gamma in (0, 1.0, "half"):
        with pytest.raises(InputError, match="gamma"):
            PrivateThresholdClassifier(gamma=gamma, data_norm=1.0).fit(X, y)


# ------------------------------------------------------------------------------------------- what the noise hides


def epsilon_bound(hits: int, others: int, runs: int, delta: float, confidence: float) -> float:
    """Return the epsilon that an event fixed beforehand shows, by the ends of Clopper and Pearson."""
    tail = (1 - confidence) / 2
    low = beta.ppf(tail, hits, runs - hits + 1) if hits else 0.0
    high = beta.ppf(1 - tail, others + 1, runs - others) if others < runs else 1.0
    return math.log((low - delta) / high) if low > delta else 0.0


def too_fine(mean: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Whether a class of at most one record has a mean with digits that noise added to 1.0 cannot have.

    A count of 1 is one that was cut off, so the mean is the noisy sum itself.
    """
    return (count == 1.0) & (np.abs(mean) < 1.0) & (mean * 2.0**53 % 1 != 0)


def floating_point_means(size: int, epsilon: float, delta: float, runs: int, rng: np.random.Generator):
    """Return the mean and the count of a class of ``size`` records of value 1.0 with continuous noise, unrounded."""
    if delta:
        low, high = 0.1, 100.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if gaussian_delta(epsilon, 1 / middle) <= delta else (middle, high)
        noise = rng.normal(scale=2 * high, size=(runs, 4))
    else:
        noise = rng.normal(size=(runs, 4))
        noise /= np.linalg.norm(noise, axis=1, keepdims=True)
        noise *= rng.gamma(4, 2 / epsilon, size=(runs, 1))
    count = np.clip(size + noise[:, 3], 1.0, 10.0)
    return (size + noise[:, 2]) / count, count


@pytest.mark.parametrize(("delta", "least"), [(0.0, 4.5), (1e-6, 3.5)])
def test_the_attack_on_floating_point_noise_works(delta, least):
    rng = np.random.default_rng(0)
    empty, one = (
        int(too_fine(*floating_point_means(size, 1.0, delta, 20_000, rng)).sum()) for size in (0, 1)
    )
    assert one == 0 and epsilon_bound(empty, one, 20_000, delta, 0.99) > least


def published(size: int, delta: float, runs: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = np.ones((12, 1)), np.zeros(12, dtype=int)
    y[:size] = 1
    model = PrivateThresholdClassifier(1.0, delta, data_norm=1.0, classes=[0, 1])
    fits = [(model.fit(X, y).means_[1, 0], model.class_counts_[1]) for _ in range(runs)]
    return tuple(np.array(column) for column in zip(*fits, strict=True))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("runs", [500, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:no row is itself labelled")
def test_no_digit_tells_an_empty_class_from_one_record(delta, runs):
    found = [published(size, delta, runs) for size in (0, 1)]
    events = {
        "finer than floats near one": too_fine,
        "the last step of the grid": lambda mean, count: (count == 1.0) & (mean * 2.0**20 % 2 == 1),
        "above one half": lambda mean, count: mean > 0.5,
        "more than one record": lambda mean, count: count > 1.0,
    }
    for event in events.values():
        hits = [int(event(*own).sum()) for own in found]
        for a, b in (hits, hits[::-1]):
            assert epsilon_bound(a, b, runs, delta, CONFIDENCE) <= 1.0
    assert not any(too_fine(*own).any() for own in found)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_no_published_number_has_digits_below_its_grid(delta):
    X, y = two_gaussians(4000, 0.3)
    model = PrivateThresholdClassifier(1.0, delta, data_norm=3.0, classes=[0, 1]).fit(X, y)
    weight = 2**20 if delta else threshold.size_weight(2**20, 1)
    sizes = model.class_counts_ * weight
    # Both are quotients of whole numbers, which come back but for a double's rounding.
    sums = model.means_ * model.class_counts_[:, None] * 2.0**20 / 3.0
    np.testing.assert_allclose(sizes, np.rint(sizes), rtol=0, atol=1e-5)
    np.testing.assert_allclose(sums, np.rint(sums), rtol=0, atol=1e-5)
    assert (np.abs(sums) > 1e6).all()


ODD = np.array([0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 1e308, -1e-308, 3.0, 5e-324])


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_everything_published_is_a_function_of_the_noisy_numbers(delta):
    rng = np.random.default_rng(0)
    fixed = rng.integers(-(2**22), 2**22, size=(2, 2))

    def fitted(X, y):
        model = PrivateThresholdClassifier(1.0, delta, data_norm=1.0, classes=[0, 1])
        with mock.patch.object(Accountant, "counts", lambda *args, **kwargs: fixed):
            return pickle.dumps(model.fit(X, y))

    seen = {fitted(rng.choice(ODD, size=(30, 1)), rng.integers(0, 2, 30)) for _ in range(20)}
    assert len(seen) == 1


def feature_maps():
    names = ("age", "smoker", "ward")
    schema = Schema(
        (
            Column("age", "continuous", "float64", True, bounds=(0.0, 99.0)),
            Column("smoker", "categorical", "object", False, categories=("no", "yes")),
            Column("ward", "categorical", "object", True, categories=("a", "b", "c")),
        )
    )
    cells = ([0.0, 99.0, 49.5, math.nan, math.inf, 1e308], ["no", "yes", "?"], ["a", "b", "c", None])
    return {
        "as they are": (FeatureMap(2.5), None, 4),
        "scaled": (FeatureMap(1.5, None, np.zeros(4), np.full(4, 3.0), 1.0), None, 4),
        "scaled, hardly shortened": (FeatureMap(3.9, None, np.zeros(4), np.full(4, 3.0), 1.0), None, 4),
        "schema": (FeatureMap(1.2, schema), (names, cells), 8),
        "schema, not shortened": (FeatureMap(5.0, schema), (names, cells), 8),
        "one column": (FeatureMap(1e-20), None, 1),
    }


def drawn(cells, n: int, width: int, rng: np.random.Generator):
    if cells is None:
        values = rng.choice(ODD, size=(n, width)) * rng.choice([1.0, 1e-20, rng.random()], size=(n, width))
        return np.where(rng.random((n, width)) < 0.5, values, rng.normal(size=(n, width)))
    names, values = cells
    return pd.DataFrame(
        {
            name: pd.Series([own[i] for i in rng.integers(0, len(own), n)], dtype=object)
            for name, own in zip(names, values, strict=True)
        }
    )


@pytest.mark.parametrize("name", feature_maps())
@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered")
def test_no_record_moves_the_totals_by_more_than_is_paid_for(name):
    features, cells, width = feature_maps()[name]
    rng = np.random.default_rng(0)
    table = drawn(cells, 6000, width, rng)
    steps = threshold.grid_steps(features.apply(table), features.norm)
    assert steps.shape[1] == width
    longest = threshold.longest_l1(features, width)
    weight = threshold.size_weight(longest, width)
    most_l1, most_l2 = 0, 0
    for _ in range(3000):
        old, new = steps[rng.integers(0, 6000, 2)]
        rest, of_rest = steps[:3], rng.integers(0, 3, 3)
        a, b = rng.integers(0, 3, 2)
        for own, square in ((weight, False), (2**20, True)):
            before = threshold.class_totals(np.vstack([rest, old]), np.append(of_rest, a), 3, own)
            after = threshold.class_totals(np.vstack([rest, new]), np.append(of_rest, b), 3, own)
            # Of Python's whole numbers, which do not overflow.
            moved = [int(m) for m in (after - before).ravel()]
            if square:
                most_l2 = max(most_l2, sum(m * m for m in moved))
            else:
                most_l1 = max(most_l1, sum(map(abs, moved)))
    assert most_l1 <= 2 * (longest + weight) and most_l2 <= (2 * 2**20) ** 2
    # And hardly less is paid than records can move them by.
    assert most_l1 > 0.7 * 2 * (longest + weight)


def audited(delta: float) -> float:
    """Return a bound on the epsilon of the totals, by a record that changes its class."""
    features, x = FeatureMap(1.0), np.ones((2, 1))

    def run(codes, rng):
        budget = Accountant(1.0, delta, random_state=rng)
        sums, sizes = threshold.noisy_totals(x, np.array(codes), 2, features, budget)
        moves = np.array([1 - sums[0, 0], sums[1, 0], 1 - sizes[0], sizes[1]])
        # With discrete Laplace noise the likeliest sign of the second table is that all four moved.
        return moves.sum() if delta else moves.min()

    audit = audit_epsilon(
        run, [0, 1], [0, 0], trials=12_000, delta=delta, confidence=CONFIDENCE, random_state=0
    )
    return audit.lower_bound


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_noisy_totals_survive_the_audit(delta):
    assert audited(delta) <= 1.0


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_half_of_the_noise_is_caught(delta, monkeypatch):
    for name in ("noisy_counts", "gaussian_counts"):
        honest = getattr(accountant, name)

        def weak(counts, *, sensitivity, honest=honest, **budget):
            return honest(counts, sensitivity=sensitivity // 2, **budget)

        monkeypatch.setattr(accountant, name, weak)
    assert audited(delta) > 1.0


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_guarantee_composes(delta):
    X, y = two_gaussians(200, 0.5)
    one = PrivateThresholdClassifier(1.0, delta, data_norm=3.0, classes=[0, 1]).fit(X, y).guarantee_
    assert (one.status, one.epsilon, one.delta, one.caveats) == ("proven", 1.0, delta, ())
    assert Guarantee.from_dict(one.to_dict()) == one
    both = Guarantee.compose(one, one)
    assert both.epsilon < 1.6 if delta else both.epsilon == pytest.approx(2.0)


# ------------------------------------------------------------------------------------------- Proposition 12


def test_the_bounds_of_proposition_12():
    n0, r, sigma, R, epsilon, delta, beta = 4000, 8.0, 1.0, 6.0, 0.5, 1e-5, 0.05
    found = threshold_bounds(n0, r, sigma=sigma, radius=R, epsilon=epsilon, delta=delta, beta=beta)
    inside = sigma**2 / n0 * (1 + r) + 2 * R**2 * math.log(1.25 / delta) / (n0 * epsilon) ** 2 * (1 + r**2)
    assert found.published_upper == pytest.approx(2 * math.sqrt(math.log(4 / beta)) * math.sqrt(inside))
    assert found.published_lower == pytest.approx(sigma * math.sqrt((1 + r) / n0) * 1.959964, rel=1e-5)
    rng = np.random.default_rng(0)
    n1 = n0 / r
    noise = 2 * R * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    draws = rng.normal(size=(4, 200_000))
    off = np.abs(
        (
            draws[0] * sigma / n0**0.5
            + draws[1] * sigma / n1**0.5
            + draws[2] * noise / n0
            + draws[3] * noise / n1
        )
        / 2
    )
    assert (off <= found.upper).mean() >= 1 - beta
    assert found.upper < found.published_upper
    # The mean of the class means without noise is nearer than the published "lower bound for any estimator".
    best = np.abs(draws[0] * sigma / n0**0.5 + draws[1] * sigma / n1**0.5) / 2
    assert (best < found.published_lower).mean() > 0.99
    assert (best <= found.without_privacy).mean() == pytest.approx(1 - beta, abs=0.005)


def test_bounds_refuse_what_means_nothing():
    with pytest.raises(InputError, match="ratio ="):
        threshold_bounds(100, 0.5, sigma=1, radius=1, epsilon=1.0, delta=1e-5)
    with pytest.raises(InputError, match="beta"):
        threshold_bounds(100, 2, sigma=1, radius=1, epsilon=1.0, delta=1e-5, beta=0.0)


@pytest.mark.parametrize("gamma", [0.2, 0.5, 0.8])
def test_the_scores_of_a_threshold_are_those_of_a_sample(gamma):
    from oversafe.measure import imbalance_scores

    X, y = two_gaussians(400_000, 0.1)
    expected = threshold_scores(gamma, 2.0, 9.0)
    scores = imbalance_scores(y, (X[:, 0] > 2 * gamma).astype(int), n_bootstrap=0)["score"]
    for name, value in expected.items():
        assert scores[name] == pytest.approx(value, abs=0.01)
