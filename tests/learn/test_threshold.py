"""A threshold between noisy class means, and the paper's bounds on it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oversafe.errors import InputError
from oversafe.learn import PrivateThresholdClassifier, threshold_bounds, threshold_scores
from oversafe.learn.threshold import analytic_sigma


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


def test_sums_and_sizes_together_move_by_no_more_than_the_sums():
    # All replacements between the ends of the interval, in both classes.
    R, worst = 3.0, 0.0
    for label in (0, 1):
        for other in (0, 1):
            for x in (-R, 0.0, R):
                for z in (-R, 0.0, R):
                    move = np.zeros((2, 2))
                    move[label] -= [x, R]
                    move[other] += [z, R]
                    worst = max(worst, float(np.linalg.norm(move)))
    assert worst == pytest.approx(2 * R)


def test_normal_noise_is_calibrated_exactly():
    # Balle and Wang: at epsilon 1 and delta 1e-5 the least standard deviation is 3.73, the classical one 4.84.
    assert analytic_sigma(1.0, 1e-5) == pytest.approx(3.73, abs=0.01)


def test_gamma_out_of_range_is_refused():
    X, y = two_gaussians(100, 0.5)
    for gamma in (0, 1.0, "half"):
        with pytest.raises(InputError, match="gamma"):
            PrivateThresholdClassifier(gamma=gamma, data_norm=1.0).fit(X, y)


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
