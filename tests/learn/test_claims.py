"""Every proven private classifier survives the audit on worst-case neighbours, and copies with a mistake are caught.

The audits hold at confidence 1 - 1e-6, so each test of a right mechanism fails by chance with at most that
probability. Those of broken ones have fixed seeds.
"""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from oversafe.learn import (
    PrivateBaggingClassifier,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateThresholdClassifier,
    linear,
)
from oversafe.measure import audit_epsilon

CONFIDENCE = 1 - 1e-6


def turned(n_pull: int = 150, n_hold: int = 20, norm: float = 1.0):
    """Return neighbours in which one record turns round, while most others hold the coefficients in place."""
    x = np.array([np.cos(0.5), np.sin(0.5)])
    X = np.vstack([np.tile([0.0, 1.0], (n_pull, 1)), np.tile([1.0, 0.0], (2 * n_hold, 1)), x])
    y = np.r_[np.ones(n_pull), np.tile([0, 1], n_hold), 0].astype(int)
    other = X.copy()
    other[-1] = x * [-1, 1]
    return (norm * X, y), (norm * other, y)


def flipped(n: int = 12):
    """Return neighbours in which the only record of a class changes sides, and with it all weights."""
    X = np.tile([[1.0, 0.0], [-1.0, 0.0]], (n // 2, 1))
    y = np.zeros(n, dtype=int)
    y[0] = 1
    return (X, y), (X, np.zeros(n, dtype=int))


def lone(n: int = 6):
    """Return neighbours of few records in one column, where each weighs most."""
    X, other = np.ones((n, 1)), np.ones((n, 1))
    other[-1] = -1.0
    y = np.r_[np.ones(n - 1), 0].astype(int)
    return (X, y), (other, y)


NEIGHBOURS = {"turned": turned, "flipped": flipped, "lone": lone}
SETTINGS = {"epsilon": 1.0, "data_norm": 1.0, "classes": [0, 1]}
LEARNERS = {
    "logistic, threshold": PrivateLogisticRegression(**SETTINGS),
    "logistic, plain": PrivateLogisticRegression(**SETTINGS, class_weight=None, fit_intercept=False),
    "logistic, balanced": PrivateLogisticRegression(**SETTINGS, class_weight="balanced", fit_intercept=False),
    "logistic, output": PrivateLogisticRegression(**SETTINGS, method="output", class_weight=None),
    "logistic, normal": PrivateLogisticRegression(
        **SETTINGS, method="gaussian", delta=0.01, class_weight=None
    ),
    "machine": PrivateLinearSVC(**SETTINGS, fit_intercept=False),
    "machine, normal": PrivateLinearSVC(**SETTINGS, method="gaussian", delta=0.01),
    "machine, kernel": PrivateLinearSVC(**SETTINGS, kernel="rbf", n_components=2),
    "means": PrivateThresholdClassifier(**SETTINGS),
    "means, normal": PrivateThresholdClassifier(**SETTINGS, delta=0.01),
    "bagging": PrivateBaggingClassifier(
        PrivateLogisticRegression(data_norm=1.0), 2, epsilon=1.0, classes=[0, 1], sampling="subsample"
    ),
}


def bound(learner, pair, trials: int, **kwargs) -> float:
    table, neighbour = pair
    audit = audit_epsilon(
        learner.set_params(random_state=0),
        table,
        neighbour,
        trials=trials,
        delta=learner.delta,
        confidence=CONFIDENCE,
        random_state=0,
        **kwargs,
    )
    return audit.lower_bound


@pytest.mark.parametrize("pair", NEIGHBOURS)
@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_survives(name, pair):
    learner = LEARNERS[name]
    table, neighbour = NEIGHBOURS[pair]()
    if len(table[0]) < 20 and name == "bagging":
        pytest.skip("a learner needs some records")
    learner.set_params(random_state=None)
    assert learner.fit(*table).guarantee_.status == "proven"
    assert bound(learner, (table, neighbour), 120) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("pair", NEIGHBOURS)
@pytest.mark.parametrize("name", [name for name in LEARNERS if name != "bagging"])
def test_every_learner_survives_many_runs(name, pair):
    assert bound(LEARNERS[name], NEIGHBOURS[pair](), 5000) <= 1.0


def test_the_audit_has_power():
    # One column shows about half of epsilon: with opposite records one residual is large only where the other is small.
    learner = PrivateLogisticRegression(
        **{**SETTINGS, "epsilon": 4.0}, class_weight=None, fit_intercept=False
    )
    assert 0.8 < bound(learner, lone(), 800) <= 4.0


@pytest.mark.parametrize("pair", ["lone", "turned"])
def test_far_too_little_noise_is_caught(pair):
    honest = linear.calibrate

    def weak(*args, **kwargs):
        plan = honest(*args, **kwargs)
        return replace(plan, scale=plan.scale / 8)

    learner = PrivateLogisticRegression(**SETTINGS, class_weight=None, fit_intercept=False)
    with mock.patch.object(linear, "calibrate", weak):
        assert bound(learner, NEIGHBOURS[pair](), 800) > 1.0


def test_a_quarter_of_the_noise_is_caught_in_one_column():
    honest = linear.calibrate

    def weak(*args, **kwargs):
        plan = honest(*args, **kwargs)
        # One column can show half of the gradient's bound of 2 R, so half of the noise does not show in it; the exact
        # loss finds it in two columns.
        return replace(plan, scale=plan.scale / 4)

    learner = PrivateLogisticRegression(**SETTINGS, class_weight=None, fit_intercept=False)
    with mock.patch.object(linear, "calibrate", weak):
        assert bound(learner, lone(), 1500) > 1.0


def test_class_counts_that_are_not_paid_for_are_caught():
    def unpaid(codes, n_classes, epsilon, rng):
        counts = np.bincount(codes, minlength=n_classes).astype(float)
        return np.maximum(counts, 1.0)

    table, _ = flipped()

    def run(pair, rng):
        model = PrivateLogisticRegression(**SETTINGS, random_state=int(rng.integers(2**31))).fit(*pair)
        return model.class_counts_

    with mock.patch.object(linear, "private_counts", unpaid):
        audit = audit_epsilon(
            run,
            table,
            (table[0], np.r_[1, 1, np.zeros(10, dtype=int)]),
            trials=120,
            confidence=CONFIDENCE,
            random_state=0,
        )
    assert audit.lower_bound > 1.0
    honest = audit_epsilon(
        run,
        table,
        (table[0], np.r_[1, 1, np.zeros(10, dtype=int)]),
        trials=800,
        confidence=CONFIDENCE,
        random_state=0,
    )
    assert honest.lower_bound <= 0.05


def test_the_guarantee_holds_at_a_norm_of_one_hundred():
    # Where c R in place of c R^2 gives away twice what is claimed; see the test of the exact loss.
    R = 100.0
    table, neighbour = (
        (np.array([[R]] * 3), np.array([1, 1, 1])),
        (np.array([[R], [R], [0.0]]), np.array([1, 1, 1])),
    )
    learner = PrivateLogisticRegression(
        epsilon=1.0, data_norm=R, classes=[0, 1], class_weight=None, fit_intercept=False
    )
    assert bound(learner, (table, neighbour), 1000) <= 1.0
