"""The noise in what linear classifiers release, read off their coefficients, and what it is worth.

At the coefficients the gradient of the objective is zero, so the noise that led to them is what the gradient lacks
without it. Its distribution is known: a Gamma length in a uniform direction, or normal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit, softmax
from scipy.stats import beta, gamma, kstest
from scipy.stats import norm as normal

from oversafe.learn import PrivateLinearSVC, PrivateLogisticRegression, linear
from oversafe.learn.objective import Risk, calibrate
from tests.learn.test_objective import log_density, worst_pair

FITS = 160
# Of each Kolmogorov-Smirnov test: the chance that right noise fails it.
LEVEL = 1e-7
TOLERANCE = 1e-3  # of epsilon, for what hides the solver's error

RNG = np.random.default_rng(5)
X = RNG.normal(size=(24, 2))
X *= (1.5 / np.linalg.norm(X, axis=1))[:, None]
TWO = (np.arange(24) % 3 == 0).astype(int)
THREE = np.arange(24) % 3


def plain_sigma(shift: float, epsilon: float, delta: float) -> float:
    """Return the deviation of normal noise on a number that moves by a shift, from its hockey-stick divergence."""

    def excess(sigma: float) -> float:
        mu = shift / sigma
        first, second = normal.cdf(mu / 2 - epsilon / mu), normal.cdf(-mu / 2 - epsilon / mu)
        return float(first - math.exp(epsilon) * second - delta)

    return float(brentq(excess, 1e-3 * shift, 1e3 * shift))


@dataclass
class Case:
    """A classifier, and the scale that its noise must have: the sensitivity over what is left of epsilon."""

    settings: dict[str, Any]
    sensitivity: float
    left: float
    learner: Any = PrivateLogisticRegression
    y: np.ndarray = field(default_factory=lambda: TWO)
    weights: Any = None
    constant: float = 0.0

    def fitted(self, seed: int | None) -> Any:
        model = self.learner(
            data_norm=1.5, classes=sorted(set(self.y.tolist())), random_state=seed, C=1e3, **self.settings
        )
        return model.fit(X, self.y)

    def noise(self, model: Any) -> np.ndarray:
        """Return the noise in the objective that makes a model's coefficients its minimiser, one row per column."""
        rows = X if not self.constant else np.column_stack([X, np.full(len(X), self.constant)])
        B = (
            model.coef_
            if not self.constant
            else np.column_stack([model.coef_, model.intercept_ / self.constant])
        )
        weights = np.ones(len(X)) if self.weights is None else self.weights
        margins = rows @ B.T
        if len(B) == 1:
            if model.get_params()["class_weight"] == "threshold":
                margins = margins + math.log(model.class_counts_[1] / model.class_counts_[0])
            slopes = slopes_of_two(self.learner, margins[:, 0], self.y == 1)[:, None]
        elif self.learner is PrivateLinearSVC:
            slopes = np.column_stack(
                [slopes_of_two(self.learner, m, self.y == c) for c, m in enumerate(margins.T)]
            )
        else:
            slopes = softmax(margins, axis=1) - np.eye(len(B))[self.y]
        return -((weights[:, None] * slopes).T @ rows + model.ridge_ * B)


def slopes_of_two(learner: Any, margins: np.ndarray, positive: np.ndarray) -> np.ndarray:
    signs = np.where(positive, 1.0, -1.0)
    if learner is PrivateLogisticRegression:
        return -signs * expit(-signs * margins)
    return -signs * np.clip(1.5 - signs * margins, 0.0, 1.0)


def huber_left(epsilon: float, radius: float, ridge: float) -> float:
    # One record adds 1 / (2 width) = 1 times its square to the determinant's direction.
    return epsilon - math.log1p(radius**2 / ridge)


EPSILON = 8.0
NET = EPSILON * (1 - TOLERANCE)
NO = {"epsilon": EPSILON, "fit_intercept": False, "class_weight": None}
BALANCED = np.where(TWO == 1, (TWO == 0).mean(), (TWO == 1).mean())
CASES = {
    "logistic": Case({**NO, "method": "objective"}, 3.0, NET),
    "an intercept": Case(
        {**NO, "fit_intercept": True, "intercept_scaling": 2.0, "method": "objective"}, 5.0, NET, constant=2.0
    ),
    "public weights": Case(
        {**NO, "class_weight": {0: 1.0, 1: 5.0}, "method": "objective"},
        15.0,
        NET,
        weights=np.where(TWO == 1, 5.0, 1.0),
    ),
    "balanced": Case({**NO, "class_weight": "balanced", "method": "objective"}, 3.0, NET, weights=BALANCED),
    # A twentieth of epsilon pays for the class counts.
    "threshold": Case({**NO, "class_weight": "threshold", "method": "objective"}, 3.0, 0.95 * NET),
    "three classes": Case({**NO, "method": "objective"}, 3.0 * math.sqrt(2), NET, y=THREE),
    "huber": Case({**NO, "method": "objective"}, 3.0, NET, learner=PrivateLinearSVC),
    "huber, three classes": Case(
        {**NO, "method": "objective"}, 3.0, NET / 3, learner=PrivateLinearSVC, y=THREE
    ),
}


@pytest.mark.parametrize(
    ("name", "seeded"), [*((name, True) for name in CASES), ("logistic", False), ("three classes", False)]
)
def test_the_noise_in_the_coefficients_has_its_distribution(name, seeded):
    case = CASES[name]
    models = [case.fitted(seed if seeded else None) for seed in range(FITS)]
    left = case.left
    if case.learner is PrivateLinearSVC:
        left = huber_left(left, 1.5, models[0].ridge_)
    noise = np.array([case.noise(model) for model in models])
    if case.learner is PrivateLinearSVC and len(noise[0]) > 1:
        # One problem for each class, each with its own noise.
        noise = noise.reshape(-1, 1, noise.shape[2])
    columns = noise.shape[1]
    if columns > 1:
        # All classes' coefficients together have no noise; what is left has a dimension less.
        assert np.abs(noise.sum(axis=1)).max() < 1e-4
        basis = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / np.sqrt([[2.0], [6.0]])
        noise = np.einsum("kc,ncr->nkr", basis, noise)
    flat = noise.reshape(len(noise), -1)
    dimension = flat.shape[1]
    lengths = np.linalg.norm(flat, axis=1)
    assert kstest(lengths, gamma(dimension, scale=case.sensitivity / left).cdf).pvalue > LEVEL
    for part in (flat / lengths[:, None]).T:
        assert kstest((part + 1) / 2, beta((dimension - 1) / 2, (dimension - 1) / 2).cdf).pvalue > LEVEL
    # What is reported is that, to the last digits.
    assert models[0].noise_scale_ == pytest.approx(case.sensitivity / left, rel=1e-7)


@pytest.mark.parametrize("seeded", [True, False])
def test_the_noise_on_the_coefficients_has_its_distribution(seeded):
    case = Case({**NO, "method": "output"}, 3.0, EPSILON)
    models = [case.fitted(seed if seeded else None) for seed in range(FITS)]
    ridge = models[0].ridge_
    # The minimiser without noise, by plain Newton steps.
    exact = np.zeros(2)
    for _ in range(100):
        p = expit(-(2 * TWO - 1) * (X @ exact))
        gradient = -(X.T @ ((2 * TWO - 1) * p)) + ridge * exact
        exact -= np.linalg.solve((X.T * (p * (1 - p))) @ X + ridge * np.eye(2), gradient)
    noise = np.array([model.coef_[0] for model in models]) - exact
    lengths = np.linalg.norm(noise, axis=1)
    # A record moves the minimiser by its gradient's change over the ridge.
    assert kstest(lengths, gamma(2, scale=3.0 / (ridge * EPSILON)).cdf).pvalue > LEVEL
    assert kstest(np.arctan2(*noise.T), "uniform", args=(-math.pi, 2 * math.pi)).pvalue > LEVEL


@pytest.mark.parametrize("seeded", [True, False])
@pytest.mark.parametrize("learner", [PrivateLogisticRegression, PrivateLinearSVC])
def test_normal_noise_in_the_coefficients_has_its_distribution(learner, seeded):
    delta = 1e-4
    case = Case({**NO, "epsilon": 1.0, "delta": delta, "method": "gaussian"}, 3.0, 1.0, learner=learner)
    models = [case.fitted(seed if seeded else None) for seed in range(FITS)]
    # At least that of the plain mechanism on the gradient, and hardly more.
    scale = models[0].noise_scale_
    least = plain_sigma(3.0, 1.0, delta)
    assert least <= scale < 1.15 * least
    for part in np.array([case.noise(model)[0] for model in models]).T:
        assert kstest(part, normal(scale=scale).cdf).pvalue > LEVEL


def test_the_deltas_of_several_problems_add_up():
    case = Case(
        {**NO, "epsilon": 1.0, "delta": 1e-4, "method": "gaussian"},
        3.0,
        1.0,
        learner=PrivateLinearSVC,
        y=THREE,
    )
    assert case.fitted(0).noise_scale_ >= plain_sigma(3.0, 1 / 3, 1e-4 / 3)


def test_the_class_counts_have_the_noise_that_is_said():
    X = np.zeros((400, 1))
    y = (np.arange(400) < 200).astype(int)
    noise = []
    for seed in range(600):
        model = PrivateLogisticRegression(4.0, data_norm=1.0, classes=[0, 1], random_state=seed).fit(X, y)
        noise.append(model.class_counts_[1] - 200)
    # Discrete Laplace with a twentieth of epsilon on a count that a record moves by one.
    q = math.exp(-0.05 * 4.0)
    mean, square = 2 * q / (1 - q**2), 2 * q / (1 - q) ** 2
    # Six standard errors: fails with less than 1e-8.
    assert abs(np.abs(noise).mean() - mean) < 6 * math.sqrt((square - mean**2) / len(noise))


# ------------------------------------------------------------------------------------------ what it is worth


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_density_ratio_of_a_fit_reaches_epsilon_and_no_more(epsilon):
    # The pair and the point of tests/learn/test_objective.py, at which the bound is reached.
    model = PrivateLogisticRegression(
        epsilon, class_weight=None, data_norm=1.0, method="objective", fit_intercept=False, classes=[0, 1]
    ).fit(X, TWO)
    first, second = worst_pair(hold=1e8)
    at = np.array([0.02, 200.0])

    def loss(scale: float) -> float:
        known = model.ridge_, scale
        return abs(log_density(at, *first, *known) - log_density(at, *second, *known))

    assert 0.97 * epsilon < loss(model.noise_scale_) <= epsilon
    assert loss(model.noise_scale_ / 2) > 1.9 * epsilon


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_density_ratio_on_the_output_reaches_epsilon_and_no_more(epsilon):
    # One record with a label that flips, and nothing else: the minimisers lie on both sides of 0.
    model = PrivateLogisticRegression(
        epsilon, class_weight=None, data_norm=1.0, method="output", fit_intercept=False, classes=[0, 1]
    ).fit(X, TWO)
    ridge, scale = model.ridge_, model.noise_scale_
    one = brentq(lambda at: expit(-at) - ridge * at, 0.0, 10.0)
    # The slope at 0 is half of the longest, so the loss is about half of epsilon; where many records of both labels
    # hold the coefficient far out, it is all of it.
    assert 2 * one / scale <= epsilon
    pull = 1e9

    def minimiser(sign: float) -> float:
        def gradient(at: float) -> float:
            return -pull * expit(-at / 1e3) / 1e3 - sign * expit(-sign * at) + ridge * at

        return float(brentq(gradient, -1e7, 1e7, xtol=1e-12))

    moved = abs(minimiser(1.0) - minimiser(-1.0))
    assert moved / scale <= epsilon


@pytest.mark.parametrize("learner", [PrivateLogisticRegression, PrivateLinearSVC])
def test_the_hockey_stick_of_a_fit_with_normal_noise_meets_delta(learner):
    epsilon, delta = 1.0, 0.02
    model = learner(
        epsilon,
        delta,
        class_weight=None,
        data_norm=1.0,
        method="gaussian",
        fit_intercept=False,
        classes=[0, 1],
        random_state=0,
    ).fit(X[:, :1], TWO)
    ridge = model.ridge_

    def worst(sigma: float) -> float:
        grid = np.linspace(-12 * sigma / ridge - 3 / ridge, 12 * sigma / ridge + 3 / ridge, 200_001)
        densities = []
        for x in (1.0, -1.0, 0.0):
            rows, labels = np.array([x, 0.5]), np.array([True, False])
            slopes = np.column_stack(
                [
                    slopes_of_two(learner, row * grid, np.array([label]))
                    for row, label in zip(rows, labels, strict=True)
                ]
            )
            b = -(slopes @ rows) - ridge * grid
            # Piecewise smooth in one dimension: the Jacobian is the derivative of b.
            densities.append(normal.pdf(b, scale=sigma) * np.abs(np.gradient(b, grid)))
        step = grid[1] - grid[0]
        assert [d.sum() * step for d in densities] == pytest.approx([1, 1, 1], abs=1e-3)
        return max(
            float(np.maximum(one - math.exp(epsilon) * other, 0).sum() * step)
            for one in densities
            for other in densities
        )

    assert worst(model.noise_scale_) <= delta
    # The worst pair holds its coefficients where both residuals are whole; this one has about half of that.
    assert worst(model.noise_scale_ / 4) > delta


# ---------------------------------------------------------------------------------------------- the solver


@pytest.mark.parametrize("n", [10, 10_000_000])
@pytest.mark.parametrize("loss", ["logistic", "softmax", "huber"])
def test_the_solvers_error_is_part_of_the_budget(loss, n):
    risk = Risk(
        loss, 2.0, 6, n_classes=3 if loss == "softmax" else 2, curvature=1.0 if loss == "huber" else 0.25
    )
    for epsilon in (0.1, 1.0, 10.0):
        plan = calibrate(risk, epsilon, method="objective", n=n, ridge=1e-3)
        # Two runs that end as far from their minima as they may, and the noise on top of them.
        apart = 2 * plan.tolerance / plan.ridge
        hidden = apart / plan.tolerance_scale
        determinant = math.log1p(risk.curvature * risk.radius**2 / plan.ridge) if loss == "huber" else 0.0
        spent = risk.sensitivity / plan.scale + hidden + determinant
        assert 0.99 * epsilon < spent <= epsilon * (1 + 1e-12)
        plan = calibrate(risk, epsilon, method="output", n=n, ridge=1e-3)
        moved = (risk.sensitivity + 2 * plan.tolerance) / plan.ridge
        assert moved / plan.scale <= epsilon * (1 + 1e-12)


@pytest.mark.parametrize("method", ["objective", "output"])
def test_a_fit_goes_as_far_as_its_tolerance_and_hides_the_rest(monkeypatch, method):
    drawn, plans = [], []
    solved = linear.calibrate

    def remembered(*args: Any, **kwargs: Any) -> Any:
        plans.append(solved(*args, **kwargs))
        return plans[-1]

    def nothing(size: int, scale: float, rng: Any) -> np.ndarray:
        drawn.append(scale)
        return np.zeros(size)

    monkeypatch.setattr(linear, "calibrate", remembered)
    monkeypatch.setattr(linear, "spherical_laplace", nothing)
    # The last digits of the coefficients say nothing, but how far the fit went is to be seen here.
    monkeypatch.setattr(linear, "_rounded", lambda B, noise: B)
    rng = np.random.default_rng(0)
    for _ in range(40):
        y = (rng.random(24) < 0.5).astype(int)
        y[:2] = 0, 1
        case = Case({**NO, "method": method}, 3.0, NET, y=y)
        drawn.clear()
        model = case.fitted(0)
        plan = plans[-1]
        # Rounding takes less than a tenth.
        assert np.linalg.norm(case.noise(model)) <= 1.1 * plan.tolerance
        # The scale of "output" has the tolerance in it.
        assert drawn == ([plan.scale, plan.tolerance_scale] if method == "objective" else [plan.scale])
