"""The noise of private empirical risk minimisation, held against the exact privacy loss.

The density of the minimiser is known: that of the noise that leads to it, times a determinant. So the privacy loss can
be computed at any point, and a calibration is right when it exceeds epsilon at none.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, softmax
from scipy.stats import norm as normal

from oversafe._core.errors import InputError
from oversafe.learn import PrivateLinearSVC, PrivateLogisticRegression
from oversafe.learn.objective import (
    Risk,
    calibrate,
    gaussian_delta,
    gaussian_sigma,
    objective_delta,
    paper_calibration,
    split,
)
from oversafe.learn.solver import Problem
from oversafe.privacy.noise import gaussian, spherical_laplace, uniform


def balanced(y):
    return np.where(y == 1, np.mean(y == 0), np.mean(y == 1))


def log_density(beta, X, y, weights, ridge, scale, loss="logistic", width=0.5, kind="laplace"):
    """Return the logarithm of the density of the minimiser at a point, but for a constant."""
    m = (2 * y - 1) * (X @ beta)
    if loss == "logistic":
        p = expit(-m)
        bend = p * (1 - p)
    else:
        p = np.clip((1 + width - m) / (2 * width), 0, 1)
        bend = ((p > 0) & (p < 1)) / (2 * width)
    b = X.T @ (weights * (2 * y - 1) * p) - ridge * beta
    hessian = (X.T * (weights * bend)) @ X + ridge * np.eye(len(beta))
    noise = -np.linalg.norm(b) / scale if kind == "laplace" else -b @ b / (2 * scale**2)
    return noise + np.linalg.slogdet(hessian)[1]


def worst_loss(first, second, tries=40, reach=6.0, seed=0, **kwargs):
    """Return the largest privacy loss that a search finds, in either direction."""
    rng = np.random.default_rng(seed)
    d = first[0].shape[1]

    def loss(beta):
        return log_density(beta, *first, **kwargs) - log_density(beta, *second, **kwargs)

    worst = 0.0
    for _ in range(tries):
        start = rng.normal(size=d) * np.exp(rng.uniform(-3, 1)) * reach
        for sign in (1, -1):
            found = minimize(
                lambda beta, s=sign: -s * loss(beta), start, method="Nelder-Mead", options={"maxiter": 400}
            )
            worst = max(worst, -found.fun)
    return worst


def neighbours(rng, n, d, flip):
    """Return two tables of norm at most 1 whose last records are opposite, with or without a flipped label."""
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (rng.random(n) < 0.3).astype(int)
    X2, y2 = X.copy(), y.copy()
    X2[-1] = -X[-1]
    if flip:
        y2[-1] = 1 - y[-1]
        X2[-1] = X[-1]
    return (X, y), (X2, y2)


def worst_pair(angle=0.1, pull=1e9, hold=1e4):
    """Return two tables in which one record's gradient turns round although both of its versions are misclassified.

    Records are given with multiplicities. Many pull the coefficients up, so that both versions of the last record
    are far on the wrong side; as many of one label as of the other hold them in the middle.
    """
    x = np.array([math.cos(angle), math.sin(angle)])
    others = [[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]
    labels, times = np.array([1, 1, 0, 0]), np.array([pull, hold, hold, 1.0])
    return (np.array([*others, x]), labels, times), (np.array([*others, x * [-1, 1]]), labels, times)


def planned(epsilon, loss, moving, factor):
    """Return a risk, a ridge (also below the one that is used, where the determinant costs) and what is left."""
    risk = Risk(loss, 1.0, 2, curvature=0.25 if loss == "logistic" else 1.0, weights_move=moving)
    ridge = factor * 4 / epsilon
    return risk, ridge, split(risk, epsilon, ridge)


CASES = [
    (epsilon, loss, moving, factor)
    for epsilon in (0.1, 1.0, 4.0)
    for loss in ("logistic", "huber")
    for moving in (False, True)
    for factor in (1.0, 0.5, 0.25, 0.1)
    if planned(epsilon, loss, moving, factor)[2] > 0
]


@pytest.mark.parametrize(("epsilon", "loss", "moving", "factor"), CASES)
def test_the_exact_loss_never_exceeds_epsilon(epsilon, loss, moving, factor):
    risk, ridge, left = planned(epsilon, loss, moving, factor)
    rng = np.random.default_rng(1)
    found = []
    for n in (2, 5):
        for flip in (False, True):
            pairs = neighbours(rng, n, 2, flip)
            (first, second) = [
                (X, y, balanced(y) if moving else np.ones(len(y)), ridge, risk.sensitivity / left)
                for X, y in pairs
            ]
            found.append(worst_loss(first, second, tries=6, loss=loss))
    assert max(found) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_bound_is_reached(epsilon):
    ridge = 4 / epsilon
    scale = 2 / split(Risk("logistic", 1.0, 2), epsilon, ridge)
    first, second = worst_pair(hold=1e8)
    # Far up, and a little to one side, so that the many records in the middle turn the noise that way.
    beta = np.array([0.02, 200.0])
    loss = log_density(beta, *first, ridge, scale) - log_density(beta, *second, ridge, scale)
    assert 0.98 * epsilon < abs(loss) <= epsilon


def test_the_determinant_is_free_where_the_ridge_is_large_enough():
    for epsilon in (0.1, 1.0, 5.0):
        for moving in (False, True):
            risk = Risk("logistic", 3.0, 7, weights_move=moving)
            assert split(risk, epsilon, 2 * 9.0 / epsilon) == pytest.approx(epsilon)
            assert split(risk, epsilon, 1.5 * 9.0 / epsilon) < epsilon
        assert split(Risk("softmax", 3.0, 7, n_classes=4), epsilon, 8 * 9.0 / epsilon) == epsilon


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
def test_all_but_the_tolerance_is_left_for_the_noise(loss):
    plan = calibrate(Risk(loss, 2.0, 10, n_classes=5), 0.7, method="objective", n=100, ridge=1e-6)
    assert plan.noise_epsilon == pytest.approx(0.999 * 0.7)
    assert plan.tolerance_scale * plan.ridge < 1e-3 * plan.scale


def test_the_determinant_as_the_errata_state_it():
    # The terms of the page, for radius 1: log(1 + c/L) with fixed weights, min(2c/L, d log(1 + 2c/(d L))) with moving.
    fixed = Risk("huber", 1.0, 4, curvature=1.0)
    assert split(fixed, 2.0, 5.0) == pytest.approx(2.0 - math.log1p(1 / 5))
    moving = Risk("huber", 1.0, 4, curvature=1.0, weights_move=True)
    assert split(moving, 2.0, 5.0) == pytest.approx(2.0 - 4 * math.log1p(2 / 20))
    assert moving.sensitivity == 2.0
    assert Risk("softmax", 1.0, 4, n_classes=3).sensitivity == pytest.approx(2 * math.sqrt(2))


@pytest.mark.parametrize("k", [0.01, 0.1, 1.0])
def test_the_softmax_loss_never_exceeds_epsilon(k):
    # One record of norm 1, whose share of the loss is eps / (2 sqrt 2) |p - e_y| and a determinant; the other record's
    # part is at most eps / 2.
    epsilon, classes = 1.0, 4
    left = split(Risk("softmax", 1.0, 6, n_classes=classes), epsilon, 1 / k)
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(200_000, classes)) * np.exp(rng.uniform(-2, 3, size=(200_000, 1)))
    p = softmax(logits, axis=1)
    gradient = p.copy()
    gradient[:, 0] -= 1
    bend = np.einsum("nc,cd->ncd", p, np.eye(classes)) - p[:, :, None] * p[:, None, :]
    determinant = np.linalg.slogdet(np.eye(classes) + k * bend)[1]
    loss = left / (2 * math.sqrt(2)) * (np.linalg.norm(gradient, axis=1) + math.sqrt(2)) + determinant
    assert loss.max() <= epsilon * (1 + 1e-9)


def test_moving_weights_change_the_gradient_by_at_most_two():
    # All tables of up to 7 records with labels that flip, residuals and directions at their worst.
    worst = 0.0
    for n in range(2, 8):
        for ones in range(n + 1):
            y = (np.arange(n) < ones).astype(int)
            for at in range(n):
                for label in (0, 1):
                    y2 = y.copy()
                    y2[at] = label
                    w, w2 = balanced(y), balanced(y2)
                    others = np.abs(w - w2).sum() - abs(w[at] - w2[at])
                    worst = max(worst, w[at] + w2[at] + others)
    assert 1.5 < worst <= 2


def test_half_of_the_noise_is_caught_by_the_exact_loss():
    plan = calibrate(Risk("logistic", 1.0, 2), 1.0, method="objective", n=2, ridge=1.0)
    first, second = worst_pair(hold=1e8)
    beta = np.array([0.02, 200.0])
    args = (plan.ridge, plan.scale / 2)
    assert abs(log_density(beta, *first, *args) - log_density(beta, *second, *args)) > 1.9


def test_a_second_derivative_that_is_taken_as_linear_in_the_norm_is_caught():
    # c R in place of c R^2 (diffprivlib 0.6): at norm 100 and ridge 1 the determinant alone costs log(1 + 2500).
    R, epsilon = 100.0, 1.0
    determinant = 0.25 * R
    ridge = max(1.0, determinant / math.expm1(epsilon / 4))
    scale = 2 * R / (epsilon / 2)
    args = (np.array([1]), np.ones(1), ridge, scale)
    loss = worst_loss((np.array([[R]]), *args), (np.array([[0.0]]), *args), reach=0.01)
    assert loss > 1.5 * epsilon
    plan = calibrate(Risk("logistic", R, 1), epsilon, method="objective", n=1, ridge=1.0)
    ours = (np.array([1]), np.ones(1), plan.ridge, plan.scale)
    assert worst_loss((np.array([[R]]), *ours), (np.array([[0.0]]), *ours), reach=0.01) <= epsilon


# ----------------------------------------------------------------------------------- the published calibration


def fallback_loss(epsilon, d):
    """Return the exact loss of the published fallback on a table without a rare record and one with one, at zero."""
    risk = Risk("logistic", 1.0, d, weights_move=True)
    plan = paper_calibration(risk, epsilon, n=2000, ridge=1e-3, columns=d)
    X = np.tile(np.vstack([np.eye(d), -np.eye(d)]), (20, 1))
    y = np.zeros(len(X), dtype=int)
    y2 = y.copy()
    y2[-1] = 1
    at = np.zeros(d)
    first = log_density(at, X, y, balanced(y), plan.ridge, plan.scale)
    return log_density(at, X, y2, balanced(y2), plan.ridge, plan.scale) - first, plan


def test_the_published_fallback_is_caught_where_it_is_invalid():
    loss, plan = fallback_loss(12.0, 50)
    assert plan.noise_epsilon == 4.0  # the fallback, as 4 c d > epsilon
    assert loss > 1.4 * 12.0


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 3.0])
def test_the_published_fallback_holds_at_the_epsilons_of_the_paper(epsilon):
    # With the corrected analysis it spends 2 e / 9 + 2 (exp(e / 4) - 1), and less is found.
    spends = 2 * epsilon / 9 + 2 * math.expm1(epsilon / 4)
    assert spends <= epsilon
    assert fallback_loss(epsilon, 50)[0] <= spends
    rng = np.random.default_rng(0)
    plan = paper_calibration(Risk("logistic", 1.0, 2), epsilon, n=5, ridge=1e-9, columns=2)
    (X, y), (X2, y2) = neighbours(rng, 5, 2, True)
    first, second = ((A, b, balanced(b), plan.ridge, plan.scale) for A, b in ((X, y), (X2, y2)))
    assert worst_loss(first, second, tries=6) <= spends


def test_the_published_calibration_as_algorithm_1_has_it():
    risk = Risk("logistic", 2.0, 5)
    # On records of norm 1: eps'' = 4 c d / (n lambda) = 0.5 leaves 1.5, and the noise has scale 3 / 1.5.
    plan = paper_calibration(risk, 2.0, n=100, ridge=40.0, columns=5)
    assert plan.noise_epsilon == pytest.approx(1.5) and plan.ridge == pytest.approx(40.0)
    assert plan.scale == pytest.approx(2.0 * 3 / 1.5)
    fallback = paper_calibration(risk, 1.0, n=100, ridge=1.0, columns=5)
    assert fallback.noise_epsilon == pytest.approx(1 / 3)
    assert fallback.ridge == pytest.approx(4 * 0.25 / math.expm1(0.25))


# ---------------------------------------------------------------------------------------------- normal noise


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.02, 1e-4])
@pytest.mark.parametrize("factor", [1.5, 4.0])
def test_normal_noise_meets_its_delta(epsilon, delta, factor):
    # In one dimension the hockey-stick divergence is an integral over the minimiser.
    ridge = factor / epsilon
    sigma = gaussian_sigma(Risk("logistic", 1.0, 1), epsilon, delta, ridge)
    y = np.array([1, 0])
    tables = [np.array([[1.0], [0.5]]), np.array([[-1.0], [0.5]]), np.array([[0.0], [0.5]])]
    found = []
    grid = np.linspace(-12 * sigma / ridge - 3 / ridge, 12 * sigma / ridge + 3 / ridge, 200_001)
    step = grid[1] - grid[0]
    densities = []
    for X in tables:
        m = (2 * y - 1) * (X[:, 0] * grid[:, None])
        p = expit(-m)
        b = (p * (2 * y - 1) * X[:, 0]).sum(axis=1) - ridge * grid
        densities.append(normal.pdf(b, scale=sigma) * ((p * (1 - p) * X[:, 0] ** 2).sum(axis=1) + ridge))
        assert densities[-1].sum() * step == pytest.approx(1, abs=1e-6)
    for i in range(3):
        for j in range(3):
            found.append(np.maximum(densities[i] - math.exp(epsilon) * densities[j], 0).sum() * step)
    assert max(found) <= delta


def minimisers(table, ridge, b):
    """Return the minimiser for each row of noise, by Newton's method on all of them at once."""
    X, y, times = table
    beta = np.tile([0.0, 10.0], (len(b), 1))
    for _ in range(200):
        p = expit(-(2 * y - 1) * (beta @ X.T))
        gradient = -(times * (2 * y - 1) * p) @ X + ridge * beta + b
        hessian = np.einsum("ni,ij,ik->njk", times * p * (1 - p), X, X) + ridge * np.eye(2)
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        beta -= step / np.maximum(1.0, np.linalg.norm(step, axis=1, keepdims=True))
    assert np.abs(gradient).max() < 1e-3
    return beta


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_normal_noise_is_tight(epsilon):
    delta, ridge = 0.02, 4 / epsilon
    sigma = gaussian_sigma(Risk("logistic", 1.0, 2), epsilon, delta, ridge)
    first, second = worst_pair(angle=0.3, pull=1e13)
    b = np.random.default_rng(0).normal(scale=sigma, size=(20_000, 2))
    losses = np.array(
        [
            log_density(beta, *first, ridge, sigma, kind="normal")
            - log_density(beta, *second, ridge, sigma, kind="normal")
            for beta in minimisers(first, ridge, b)
        ]
    )
    found = np.maximum(-np.expm1(epsilon - losses), 0)
    # Five standard errors: fails by chance with less than 1e-6.
    assert 0.5 * delta < found.mean() <= delta + 5 * found.std() / math.sqrt(len(b))


def test_normal_noise_is_nearly_that_of_the_plain_mechanism():
    risk = Risk("logistic", 1.0, 50)
    sigma = gaussian_sigma(risk, 1.0, 1e-6, 4.0)
    assert gaussian_delta(1.0, 2 / sigma) == pytest.approx(1e-6, rel=0.01)
    assert objective_delta(risk, 1.0, sigma, 4.0) <= 1e-6
    # The classical value: a shift of one standard deviation is (1, 0.1269)-DP.
    assert gaussian_delta(1.0, 1.0) == pytest.approx(0.126937, abs=1e-6)


def test_normal_noise_for_moving_weights_is_refused():
    with pytest.raises(InputError, match="move with the data"):
        gaussian_sigma(Risk("logistic", 1.0, 2, weights_move=True), 1.0, 1e-6, 4.0)


# -------------------------------------------------------------------------------------- the solver and the noise


@pytest.mark.parametrize("loss", ["logistic", "huber"])
@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_solver_reaches_the_minimum(loss, classes, weighted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    codes = rng.integers(0, classes, 300)
    k = 1 if classes == 2 else classes
    noise = 5 * rng.normal(size=(6, k))
    problem = Problem(
        X,
        codes,
        classes,
        0.5,
        noise,
        0.7,
        np.linspace(0.2, 1, classes)[codes] if weighted else None,
        np.linspace(-1, 1, k) if k > 1 else np.array([-0.3]),
        loss=loss if classes == 2 else "logistic",
    )
    B = problem.solve(1e-8)

    def value(flat):
        B = flat.reshape(6, k)
        margins = X @ B[:-1] + 0.7 * B[-1] + problem.offset
        if classes > 2:
            losses = logsumexp(margins, axis=1) - margins[np.arange(300), codes]
        else:
            m = (2 * codes - 1) * margins[:, 0]
            bent = np.clip(1.5 - m, 0, None) ** 2 / 2
            losses = np.logaddexp(0, -m) if loss == "logistic" else np.where(m < 0.5, 1 - m, bent)
        weights = 1 if problem.weights is None else problem.weights
        return np.sum(weights * losses) + 0.25 * np.sum(B * B) + np.sum(noise * B)

    numeric = np.array(
        [(value(B.ravel() + 1e-5 * e) - value(B.ravel() - 1e-5 * e)) / 2e-5 for e in np.eye(B.size)]
    )
    assert np.abs(numeric).max() < 1e-4
    slopes, _ = problem._derivatives(problem._margins(B))
    assert np.linalg.norm(problem._back(slopes) + problem.ridge * B + noise) <= 5e-9


@pytest.mark.parametrize("loss", ["logistic", "huber", "softmax"])
def test_steps_against_the_gradient_get_there_where_newtons_do_not(monkeypatch, loss):
    from oversafe.learn import solver

    rng = np.random.default_rng(0)
    classes = 3 if loss == "softmax" else 2
    X, y = rng.normal(size=(100, 3)), rng.integers(0, classes, 100)
    noise = 20 * rng.normal(size=(4, 1 if classes == 2 else classes))
    problem = Problem(X, y, classes, 2.0, noise, 0.5, loss="huber" if loss == "huber" else "logistic")
    by_newton = problem.solve(1e-9)
    monkeypatch.setattr(solver, "_MOST_STEPS", 1)
    # Both gradients are below 5e-10 and the ridge is 2, so each is within 2.5e-10 of the minimum.
    np.testing.assert_allclose(problem.solve(1e-9), by_newton, rtol=0, atol=5e-10)
    # What rounding does not let it reach ends all the same, as near as it gets.
    np.testing.assert_allclose(problem.solve(0.0), by_newton, rtol=0, atol=1e-9)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1e7])
@pytest.mark.parametrize("classes", [2, 4])
def test_no_fit_is_refused_once_it_is_paid_for(epsilon, classes):
    # Noise so long that its rounding hides the records, and a ridge so small that they hide it.
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(300, 1)), 20, axis=1)
    y = np.arange(300) % classes
    for settings in ({}, {"C": 1e12}, {"method": "output"}, {"intercept_scaling": 1e6}):
        for make in (PrivateLogisticRegression, PrivateLinearSVC):
            model = make(epsilon, data_norm=1.0, classes=list(range(classes)), random_state=0, **settings)
            assert np.isfinite(model.fit(X, y).coef_).all()


@pytest.mark.parametrize(
    "settings", [{}, {"class_weight": "balanced"}, {"delta": 1e-6, "method": "gaussian"}]
)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 3000.0])
def test_the_determinant_of_a_narrow_bend_leaves_half_of_epsilon(epsilon, settings):
    X, y = np.linspace(-1, 1, 60)[:, None], np.arange(60) % 2
    # The ridge that is paid for depends on the records' norm, which may be known after the budget is charged only.
    model = PrivateLinearSVC(
        epsilon, C=1e-3, width=1e-5, data_norm=1e3, classes=[0, 1], random_state=0, **settings
    )
    model.fit(X, y)
    moves = settings.get("class_weight") == "balanced"
    risk = Risk("huber", 1e3, 2, curvature=1 / 2e-5, weights_move=moves)
    assert split(risk, 0.94 * epsilon, model.ridge_) >= 0.4 * epsilon


def test_narrow_bends_are_solved_from_wider_ones():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 3)), rng.integers(0, 2, 2000)
    problem = Problem(X, y, 2, 0.5, rng.normal(size=(4, 1)), 0.5, loss="huber", width=1e-4)
    B = problem.solve(1e-6)
    slopes, _ = problem._derivatives(problem._margins(B))
    assert np.linalg.norm(problem._back(slopes) + problem.ridge * B + problem.noise) <= 5e-7


def test_the_solver_agrees_with_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X @ [1, -1, 0.5] + rng.normal(size=400) > 1).astype(int)
    ours = Problem(X, y, 2, 2.0, np.zeros((4, 1)), 0.0).solve(1e-10)
    theirs = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-12, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(ours[:-1, 0], theirs.coef_[0], atol=1e-5)


def test_many_columns_are_solved_without_a_hessian(monkeypatch):
    from oversafe.learn import solver

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 30)), rng.integers(0, 2, 200)
    noise = rng.normal(size=(31, 1))
    direct = Problem(X, y, 2, 1.0, noise, 0.5).solve(1e-9)
    monkeypatch.setattr(solver, "_DIRECT", 5)
    np.testing.assert_allclose(Problem(X, y, 2, 1.0, noise, 0.5).solve(1e-9), direct, atol=1e-8)


@pytest.mark.parametrize("classes", [2, 3])
def test_many_rows_are_solved_from_a_part_of_them(monkeypatch, classes):
    from oversafe.learn import solver

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 4)), rng.integers(0, classes, 1000)
    noise = rng.normal(size=(5, 1 if classes == 2 else classes))
    weights = np.linspace(0.5, 1, classes)[y]
    whole = Problem(X, y, classes, 1.0, noise, 0.5, weights).solve(1e-9)
    monkeypatch.setattr(solver, "_PART", 70)
    np.testing.assert_allclose(Problem(X, y, classes, 1.0, noise, 0.5, weights).solve(1e-9), whole, atol=1e-8)


@pytest.mark.parametrize("seeded", [True, False])
def test_the_noise_has_its_distribution(seeded):
    from scipy.stats import gamma, kstest

    # Kolmogorov-Smirnov at 1e-7; the unseeded draws fail by chance with that probability each.
    rng = np.random.default_rng(0) if seeded else None
    draws = np.array([spherical_laplace(4, 2.5, rng) for _ in range(3000)])
    assert kstest(np.linalg.norm(draws, axis=1), gamma(4, scale=2.5).cdf).pvalue > 1e-7
    assert (
        kstest(
            draws[:, 0] / np.linalg.norm(draws, axis=1),
            lambda t: 0.5 + (np.arcsin(t) + t * np.sqrt(1 - t**2)) / np.pi,
        ).pvalue
        > 1e-7
    )
    assert kstest(gaussian(5000, 3.0, rng), normal(scale=3.0).cdf).pvalue > 1e-7
    drawn = uniform(5000)
    assert ((drawn > 0) & (drawn < 1)).all() and kstest(drawn, "uniform").pvalue > 1e-7
