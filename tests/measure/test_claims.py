"""Every guarantee that says "proven" survives the audit, and every copy with a mistake in it is caught.

The audits hold at confidence 1 - 1e-6, so each test of a right mechanism fails by chance with at most that
probability. Those of broken ones have fixed seeds; how far each bound lies above the claim is asserted.
"""

from __future__ import annotations

from unittest import mock

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from oversafe._core.errors import InputError
from oversafe.data import Schema
from oversafe.measure import audit_epsilon, audit_epsilon_one_run, privacy_gain, worst_case_neighbours
from oversafe.measure.one_run import chance_of_guesses
from oversafe.measure.outputs import differing_records
from oversafe.privacy import accountant
from oversafe.privacy.mechanisms import noisy_counts
from oversafe.protect import SMOTE, HistogramSynthesizer, RandomOverSampler
from tests.measure.mechanisms import BROKEN, PROVEN, Case, gaussian_delta, gaussian_sigma
from tests.protect.conformance import CASES

CONFIDENCE = 1 - 1e-6


def bound(case: Case, trials: int = 200_000) -> float:
    audit = audit_epsilon(
        case.run,
        case.table,
        case.neighbour,
        trials=trials,
        delta=case.delta,
        confidence=CONFIDENCE,
        vectorized=True,
        random_state=0,
    )
    return audit.lower_bound


# ---------------------------------------------------------------------------------------- simple mechanisms


@pytest.mark.parametrize("name", PROVEN)
def test_a_proven_mechanism_survives_and_the_audit_has_power(name: str) -> None:
    case = PROVEN[name]
    assert 0.3 * case.epsilon < bound(case) <= case.epsilon


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_copy_is_caught(name: str) -> None:
    case = BROKEN[name]
    assert bound(case) > case.epsilon


def test_the_noise_of_opendp_survives() -> None:
    # The path without a seed, which releases take.
    def run(counts, rng, size):
        return noisy_counts(np.tile(counts, (size, 1)), sensitivity=2, epsilon=1.0)

    case = Case(run, [30, 20], [29, 21], 1.0)
    assert 0.3 < bound(case, trials=100_000) <= 1.0


def test_the_reference_for_gaussian_noise() -> None:
    # The value of the classical example: sigma = 1 is (1, 0.1269)-DP.
    assert gaussian_delta(1.0, 1.0) == pytest.approx(0.126937, abs=1e-6)
    assert gaussian_sigma(1.0, 0.126937) == pytest.approx(1.0, abs=1e-4)


# ------------------------------------------------------------------------------------ synthesizers and models


def schema() -> Schema:
    return Schema.infer(
        pd.DataFrame({"x": [0.0, 1.0], "c": ["a", "b"], "y": ["no", "yes"]}), label="y"
    ).declare("x", domain="public", source="by definition").declare(
        "c", domain="public", source="by definition"
    ).declare("y", domain="public", source="by definition")  # fmt: skip


def white_box(synthesizer):
    """Return a mechanism that releases all that a fitted synthesizer holds."""

    def run(table, rng):
        fitted = synthesizer(int(rng.integers(2**31))).fit(*table)
        parts = [fitted.class_counts_, *(np.ravel(h * 1.0) for h in fitted.histograms_.values())]
        return np.concatenate(parts)

    return run


def histogram(seed: int) -> HistogramSynthesizer:
    return HistogramSynthesizer(epsilon=1.0, schema=schema(), n_bins=2, random_state=seed)


PROVEN_PROTECTORS = {name: case.proven for name, case in CASES.items() if case.proven is not None}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.extras, pytest.mark.slow] if CASES[name].extra else [])
        for name in PROVEN_PROTECTORS
    ],
)
@pytest.mark.parametrize("crowd", [False, True])
def test_every_proven_protector_survives(name: str, crowd: bool) -> None:
    table, neighbour = worst_case_neighbours(schema(), n_rows=20, crowd=crowd)
    protector = PROVEN_PROTECTORS[name](schema())
    epsilon = protector.epsilon
    assert protector.fit(*table).guarantee_.status == "proven"
    protector.set_params(random_state=0)
    # Networks take a second to train.
    trials = 30 if CASES[name].extra else 120
    audit = audit_epsilon(protector, table, neighbour, trials=trials, confidence=CONFIDENCE, random_state=0)
    assert audit.lower_bound <= epsilon


@pytest.mark.parametrize("trials", [200, pytest.param(20_000, marks=pytest.mark.slow)])
def test_class_histograms_survive_a_look_inside(trials: int) -> None:
    table, neighbour = worst_case_neighbours(schema(), n_rows=200, crowd=True)
    audit = audit_epsilon(
        white_box(histogram), table, neighbour, trials=trials, confidence=CONFIDENCE, random_state=0
    )
    assert audit.lower_bound <= 1.0


def test_bounds_from_the_data_are_caught() -> None:
    # Without a schema the bounds are the data's own: one far value is in the release as its largest.
    def table(largest: float):
        X = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0] * 5 + [largest]})
        return X, pd.Series(["no", "yes"] * 10 + ["no"])

    leaky = HistogramSynthesizer(epsilon=1.0)
    assert leaky.fit(*table(3.0)).guarantee_.status == "nominal"
    audit = audit_epsilon(leaky, table(3.0), table(1000.0), trials=160, confidence=CONFIDENCE, random_state=0)
    assert audit.lower_bound > 1.0


def test_class_counts_that_are_not_paid_for_are_caught() -> None:
    def unpaid(counts, *, sensitivity, epsilon, random_state):
        noisy = noisy_counts(counts, sensitivity=sensitivity, epsilon=epsilon, random_state=random_state)
        noisy[:2] = counts[:2]
        return noisy

    table, neighbour = worst_case_neighbours(schema(), n_rows=30)
    with mock.patch.object(accountant, "noisy_counts", unpaid):
        audit = audit_epsilon(
            histogram(0), table, neighbour, trials=160, confidence=CONFIDENCE, random_state=0
        )
    assert audit.lower_bound > 1.0


@pytest.mark.parametrize(("factor", "trials"), [(16, 400), pytest.param(8, 4000, marks=pytest.mark.slow)])
def test_noise_far_too_small_is_caught_in_a_synthesizer(factor: int, trials: int) -> None:
    # The noise of a composite is spread over many counts, so that only gross mistakes show in so few runs.
    def weak(counts, *, sensitivity, epsilon, random_state):
        return noisy_counts(
            counts, sensitivity=sensitivity, epsilon=factor * epsilon, random_state=random_state
        )

    table, neighbour = worst_case_neighbours(schema(), n_rows=200, crowd=True)
    with mock.patch.object(accountant, "noisy_counts", weak):
        audit = audit_epsilon(
            white_box(histogram), table, neighbour, trials=trials, confidence=CONFIDENCE, random_state=0
        )
    assert audit.lower_bound > 1.0


def test_smote_has_no_privacy() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.repeat([0, 1], [48, 12])
    far = X.copy()
    far[-1] = 50.0
    audit = audit_epsilon(SMOTE(), (X, y), (far, y), trials=100, random_state=0)
    assert audit.lower_bound > 2.0


@pytest.mark.parametrize("model", [LogisticRegression(), DecisionTreeClassifier(), KNeighborsClassifier(3)])
def test_a_classifier_without_noise_is_caught(model) -> None:
    X = np.array([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2]])
    y = np.array([0, 0, 0, 1, 1, 1])
    flipped = np.array([0, 0, 0, 1, 1, 0])
    audit = audit_epsilon(model, (X, y), (X, flipped), trials=200, random_state=0)
    assert audit.lower_bound > 2.0


def test_a_forest_sees_what_a_line_does_not() -> None:
    # Half of the points are alike. The other half sit in the middle, or in four places around it: no straight line
    # cuts the middle out, and those that cut two of the four off find them at most 2.5 times as often.
    def run(in_the_middle, rng, size):
        points = rng.normal(size=(size, 2))
        chosen = rng.random(size) < 0.5
        places = 0.0 if in_the_middle else rng.choice([-0.5, 0.5], size=(size, 2))
        return np.where(chosen[:, None], places + rng.normal(scale=0.02, size=(size, 2)), points)

    linear, forest = (
        audit_epsilon(
            run, True, False, trials=3000, vectorized=True, distinguisher=kind, random_state=0
        ).lower_bound
        for kind in ("linear", "forest")
    )
    assert linear < np.log(2.5)
    assert forest > 2.0


def test_jobs_and_repeatability() -> None:
    table, neighbour = worst_case_neighbours(schema(), n_rows=8)
    audits = [
        audit_epsilon(RandomOverSampler(), table, neighbour, trials=20, random_state=0, n_jobs=jobs)
        for jobs in (None, None, 2, 2)
    ]
    assert audits[0] == audits[1]
    assert audits[2] == audits[3]


# ------------------------------------------------------------------------------------------ neighbours


def test_worst_case_neighbours_differ_in_one_record_from_corner_to_corner() -> None:
    (X, y), (X_other, y_other) = worst_case_neighbours(schema(), n_rows=6)
    assert X["x"].tolist() == [0, 0, 0, 0, 0, 1]
    assert y.tolist() == ["yes", "no", "no", "no", "no", "yes"]
    assert X_other["c"].tolist() == ["a"] * 6
    assert y_other.tolist() == ["yes", "no", "no", "no", "no", "no"]
    assert len(differing_records((X, y), (X_other, y_other))) == 2
    (X, _), (X_other, _) = worst_case_neighbours(schema(), n_rows=6, relation="add-remove", crowd=True)
    assert (len(X), len(X_other)) == (6, 5)
    assert X["x"].tolist() == [0, 0, 0, 1, 1, 1]


def test_tables_that_are_no_neighbours_are_refused() -> None:
    X, y = np.arange(6.0)[:, None], np.array([0, 0, 0, 1, 1, 1])
    with pytest.raises(InputError, match="differ in 6 records"):
        audit_epsilon(
            SMOTE(), (X, y), (X, 1 - y) if False else (X + np.array([[0], [0], [0], [9], [9], [9]]), y)
        )
    with pytest.raises(InputError, match="differ in 0 records"):
        audit_epsilon(SMOTE(), (X, y), (X, y))
    with pytest.raises(InputError, match="pairs"):
        audit_epsilon(SMOTE(), X, X)
    with pytest.raises(InputError, match="no mechanism"):
        audit_epsilon(object(), (X, y), (X, y))


@pytest.mark.parametrize(
    ("given", "message"),
    [({"n_rows": 2}, "n_rows = 2"), ({"relation": "swap"}, "relation = 'swap'")],
)
def test_bad_neighbours(given, message) -> None:
    with pytest.raises(InputError, match=message):
        worst_case_neighbours(schema(), **given)
    with pytest.raises(InputError, match="no label"):
        worst_case_neighbours(schema().features)


# -------------------------------------------------------------------------------------------- one run


def noisy_bits(epsilon: float):
    def run(included, rng):
        return included + rng.laplace(scale=1 / epsilon, size=len(included))

    return run


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_one_run_stays_below_the_truth_and_comes_near(epsilon: float) -> None:
    audit = audit_epsilon_one_run(noisy_bits(epsilon), 50_000, confidence=CONFIDENCE, random_state=0)
    assert 0.7 * epsilon < audit.lower_bound <= epsilon
    assert audit.trials == 50_000


def test_one_run_catches_halved_noise() -> None:
    audit = audit_epsilon_one_run(noisy_bits(2.0), 20_000, confidence=CONFIDENCE, random_state=0)
    assert audit.lower_bound > 1.0


def test_one_run_with_delta_is_more_careful() -> None:
    bounds = [
        audit_epsilon_one_run(noisy_bits(2.0), 2000, delta=delta, random_state=0).lower_bound
        for delta in (0.0, 1e-6, 1e-3)
    ]
    assert bounds[0] >= bounds[1] > bounds[2]


def test_the_chance_of_right_guesses_by_hand() -> None:
    # Two guesses, both right: (e^eps / (1 + e^eps))^2, and with delta the worst step down, which is the mean of the
    # chances of one right guess and of none.
    q = np.e / (1 + np.e)
    assert chance_of_guesses(2, 2, 2, 1.0, 0.0) == pytest.approx(q**2)
    one, none = 2 * q * (1 - q), (1 - q) ** 2
    assert chance_of_guesses(2, 2, 2, 1.0, 0.01) == pytest.approx(q**2 + 0.04 * max(one, (one + none) / 2))
    assert chance_of_guesses(10, 5, 0, 1.0, 0.0) == 1.0


def test_one_run_on_a_protector_and_a_classifier() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(200, 2)), np.repeat([0, 1], [150, 50])
    canaries = rng.uniform(-30, 30, size=(200, 2)), np.repeat([0, 1], 100)
    copies = audit_epsilon_one_run(RandomOverSampler(), canaries, table, random_state=0)
    assert copies.lower_bound > 2.0
    # A canary's label is what its own row says and not what its surroundings say.
    flipped = audit_epsilon_one_run(KNeighborsClassifier(1), canaries, table, random_state=0)
    assert flipped.lower_bound > 0.5
    frame = tuple((pd.DataFrame(X, columns=["a", "b"]), y) for X, y in (canaries, table))
    private = audit_epsilon_one_run(
        HistogramSynthesizer(epsilon=1.0, random_state=0), *frame, confidence=CONFIDENCE, random_state=0
    )
    assert private.lower_bound <= 1.0


@pytest.mark.parametrize(
    ("canaries", "given", "message"),
    [
        (1, {}, "at least 2"),
        (10, {"n_guesses": 11}, "n_guesses = 11"),
        (10, {"confidence": 2.0}, "confidence"),
        ((np.zeros((3, 1)), np.zeros(3)), {}, "number instead"),
    ],
)
def test_bad_use_of_one_run(canaries, given, message) -> None:
    with pytest.raises(InputError, match=message):
        audit_epsilon_one_run(noisy_bits(1.0), canaries, **given)


def test_bad_scores_and_missing_tables() -> None:
    with pytest.raises(InputError, match="one number per canary"):
        audit_epsilon_one_run(lambda included, rng: [1.0], 10)
    with pytest.raises(InputError, match="pairs"):
        audit_epsilon_one_run(SMOTE(), 10)


# ------------------------------------------------------------------------------------------ privacy gain


def test_privacy_gain_of_outliers() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(220, 3)), np.repeat([0, 1], [200, 20])
    X[-1] = 9.0
    gains = privacy_gain(
        SMOTE(), X, y, n_targets=None, n_train=40, n_test=80, features="paper", random_state=0
    )
    assert gains["row"].iloc[0] == 219
    assert gains["privacy_gain"].iloc[0] < 0.1
    assert gains["privacy_gain"].is_monotonic_increasing
    assert (
        (gains["gain_low"] <= gains["privacy_gain"]) & (gains["privacy_gain"] <= gains["gain_high"])
    ).all()


def test_a_tables_own_columns_may_have_any_name() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=["auc", "row", "gain_high"])
    gains = privacy_gain(
        SMOTE(), X, np.repeat([0, 1], [48, 12]), n_targets=2, n_train=8, n_test=8, random_state=0
    )
    assert gains.columns.tolist() == [
        "row", "privacy_gain", "gain_low", "gain_high", "auc", "auc", "row", "gain_high",
    ]  # fmt: skip
