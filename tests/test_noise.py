"""Each proven method from inside: its noise has the law that it says, and each answer costs what was paid for it.

The noise is the real one, from OpenDP and the operating system, so a test fails by chance with the probability that it
names, and halved noise passes with far less: see ``CHANCE``.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from unittest import mock

import numpy as np
import pytest
from benchmarks.tight import CASES, half_noise
from scipy import stats
from scipy.optimize import brentq

from oversafe.learn import base, ft_transformer, linear
from oversafe.learn.solver import Perturbed, Spherical
from oversafe.measure import answers as inside
from oversafe.privacy import accountant, mechanisms
from oversafe.privacy.answers import Choice, Laplace, Sampled, Tape, Thresholded, recorded
from oversafe.privacy.gradients import GRID, steps_epsilon
from oversafe.privacy.zcdp import zcdp_epsilon
from oversafe.protect.deep import dpgan
from tests.measure.mechanisms import gaussian_delta

# A right law gives a smaller p-value with this probability, by each of a method's at most five questions. Half the
# noise gives 1e-11 or less on average, and more than CHANCE as seldom.
CHANCE = 1e-6
DRAWS, CHOICES, FITS = 1500, 800, 350


def probability(question) -> float:
    """Return the p-value of fresh answers to a question under the law that it names."""
    law, rng = question.law, np.random.default_rng(0)
    if isinstance(law, Choice):
        # The second of two, so far behind that it is chosen now and then; in the units that scores are counted in.
        scores = np.array([round(1.5 * law.scale), 0])
        chosen = sum(question.draw(scores, None) for _ in range(CHOICES))
        behind = scores[0] / law.scale
        chance = np.exp(-behind) / 2 if law.pure else 1 / (1 + np.exp(behind))
        return stats.binomtest(int(chosen), CHOICES, chance).pvalue
    if isinstance(law, Perturbed | Spherical):
        return _of_vectors(question)
    # Far above any threshold, so that nothing is cut off.
    truth = np.full(DRAWS, 2**20 if isinstance(law, Thresholded) else 0, dtype=np.int64)
    noise = question.draw(truth, None) - truth
    return stats.kstest(_uniform(law, noise, rng), "uniform").pvalue


def _uniform(law, noise, rng):
    """Return what is uniform between 0 and 1 if whole numbers have a law: a random point of each one's step."""
    if isinstance(law, Laplace):
        # P(x <= k) of P(x) ~ exp(-|x| / scale).
        rest = np.exp(-1 / law.scale) / (1 + np.exp(-1 / law.scale))

        def below(k):
            tail = rest * np.exp(-np.abs(np.where(k < 0, k + 1, k)) / law.scale)
            return np.where(k < 0, tail, 1 - tail)

    elif law.deviation > 1000:
        # A step is less than a thousandth of the deviation, and its mass that of the normal law.
        def below(k):
            return stats.norm.cdf((k + 0.5) / law.deviation)

    else:
        reach = np.arange(-int(40 * law.deviation) - 1, int(40 * law.deviation) + 2)
        mass = np.exp(-(reach**2) / (2 * law.deviation**2))
        sums = np.cumsum(mass / mass.sum())

        def below(k):
            return sums[np.clip(k - reach[0], 0, len(sums) - 1)]

    low = below(noise - 1)
    return low + rng.random(len(noise)) * (below(noise) - low)


def _of_vectors(question):
    law = question.law
    if isinstance(law, Spherical):
        drawn = [question.draw(question.truth, None) - question.truth for _ in range(FITS)]
        lengths, size = (
            np.array([np.linalg.norm(own) for own in drawn]) / law.scale,
            np.count_nonzero(drawn[0]),
        )
        return stats.kstest(lengths, stats.gamma(size).cdf).pvalue
    problem = question.truth.merged()
    terms = [law.implied(problem, question.draw(problem, None))[0] for _ in range(FITS)]
    lengths = np.linalg.norm(terms, axis=1) / law.plan.scale
    known = stats.chi if law.plan.method == "gaussian" else stats.gamma
    return stats.kstest(lengths, known(len(terms[0])).cdf).pvalue


# ------------------------------------------------------------------------------------------------ what it costs

# By how much one unit can move what is chosen by or voted on, whatever the table: proven on the docs page "Guarantees,
# proofs and errata". The worst tables of an audit need not reach it. All else is taken from the tables.
PROVEN = {
    ("PrivBayes", "a column and its parents", "replace-one"): 3.0,
    ("PrivBayes", "a column and its parents", "add-remove"): 2.0,
    ("GEM", "a table", "replace-one"): 1.0,
    ("GEM", "a table", "add-remove"): 1.0,
    ("MST", "a table", "replace-one"): 2.0,
    ("MST", "a table", "add-remove"): 1.0,
    ("AIM", "a table", "replace-one"): 2.0,
    ("AIM", "a table", "add-remove"): 1.0,
    # Each teacher has a vote on each of 4 rows.
    ("PATEGAN", "votes", "replace-one"): 2.0,
    ("PATEGAN", "votes", "add-remove"): 2.0,
}


@dataclass(frozen=True)
class Cost:
    """What a question costs by the law that its answer had and by how far the truth moves, and what was paid."""

    what: str
    cost: float
    paid: float
    pure: bool


def costs(name: str, relation: str) -> tuple[list[Cost], float]:
    """Return what each question of a run costs, and the whole guarantee's epsilon by composing them."""
    case = CASES[name]
    # What a record moves that keeps its class, and one that changes it.
    pairs = [case] if not case.same_class else [case, replace(case, same_class=False)]
    found: list[Cost] = []
    for each in pairs:
        first, second, outside, _ = inside._asked(case.model(relation), *each.neighbours(relation), 1, 0)
        asked = list(zip(first, second, outside, strict=True))
        steps = [own for own in asked if isinstance(own[0].law, Sampled)]
        own = [_cost(name, relation, a, b) for a, b, _ in asked if not isinstance(a.law, Sampled)]
        found = [max(pair, key=lambda c: c.cost) for pair in zip(found or own, own, strict=True)]
    delta = case.delta * (0.5 if "DPGAN" in name else 1.0)
    whole = sum(own.cost for own in found if own.pure)
    if rho := sum(own.cost for own in found if not own.pure):
        whole += zcdp_epsilon(rho, delta)
    if steps:
        whole += _steps(steps, relation, delta)
    return found, whole


def _cost(name, relation, first, second) -> Cost:
    law = first.law
    if isinstance(law, Perturbed):
        (b, volume), (c, other) = (law.implied(own.truth, first.answer) for own in (first, second))
        moved = np.linalg.norm(b - c) / law.plan.scale
        if law.plan.method == "gaussian":
            delta = CASES[name].delta
            moved = brentq(lambda epsilon: gaussian_delta(epsilon, 1 / moved) - delta, 0, 100)
        return Cost(first.what, moved + abs(volume - other), first.paid, True)
    if isinstance(law, Choice):
        # In units of what one unit moves a score by; scores with fractions are counted in steps of a millionth of it.
        moved = PROVEN[name.partition(",")[0], first.what, relation] / law.declared
        epsilon = 2 * moved * law.sensitivity / law.scale
        return Cost(first.what, epsilon if law.pure else epsilon**2 / 8, first.paid, law.pure)
    mine, theirs = (np.asarray(own.truth, dtype=float).ravel() for own in (first, second))
    if isinstance(law, Spherical):
        return Cost(first.what, np.linalg.norm(mine - theirs) / law.scale, first.paid, True)
    if isinstance(law, Laplace):
        return Cost(first.what, np.abs(mine - theirs).sum() / law.scale, first.paid, True)
    moved = PROVEN.get((name, first.what, relation), np.linalg.norm(mine - theirs))
    return Cost(first.what, (moved / law.deviation) ** 2 / 2, first.paid, False)


def _steps(steps, relation, delta) -> float:
    """Return the epsilon of all noisy gradients, by the noise that they had relative to the longest row's vector."""
    law = steps[0][0].law
    for first, second, outside in steps:
        assert (first.law.deviation, first.law.rate) == (law.deviation, law.rate)
        for own in (first, second):
            assert np.linalg.norm((own.truth - outside.truth) * GRID) <= 1
    noise = law.deviation * GRID
    return steps_epsilon(noise, delta, rate=law.rate, steps=len(steps), relation=relation)


# What a method's answers cost of its epsilon, where that is less than nine tenths: AIM keeps a part for each of its
# rounds, and of two columns there is only one pair to choose.
SHORT = {("AIM", "replace-one"): 0.75, ("AIM", "add-remove"): 0.75}


def asked(name: str, relation: str):
    """Return one run's questions, one of each kind."""
    case = CASES[name]
    with recorded(Tape(1)) as tape:
        case.model(relation).set_params(random_state=1).fit(*case.neighbours(relation)[0])
    return list({(q.what, type(q.law)): q for q in tape.questions}.values())


METHODS = [
    pytest.param(name, relation, marks=[pytest.mark.extras] if case.package else [])
    for name, case in CASES.items()
    for relation in case.relations
]


@pytest.mark.parametrize(("name", "relation"), METHODS)
def test_the_noise_has_the_law_that_it_says_and_half_of_it_has_not(name, relation) -> None:
    questions = asked(name, relation)
    assert min(probability(question) for question in questions) > CHANCE
    with half_noise():
        # Each by itself, so that no answer of a method gets by with half of its noise.
        assert max(probability(question) for question in questions) < CHANCE


@contextmanager
def half_scales():
    """Let every mechanism be given half the scale that was paid for, as half a sensitivity or twice a share would."""
    honest = {name: getattr(mechanisms, name) for name in ("noisy_counts", "gaussian_counts", "choose")}
    calibrated, steps = linear.calibrate, dpgan.noise_for_steps

    def counted(*arguments, epsilon, **more):
        return honest["noisy_counts"](*arguments, epsilon=2 * epsilon, **more)

    def normal(*arguments, rho, **more):
        return honest["gaussian_counts"](*arguments, rho=4 * rho, **more)

    def chosen(*arguments, sensitivity, **more):
        return honest["choose"](*arguments, sensitivity=sensitivity / 2, **more)

    def planned(*arguments, **more):
        plan = calibrated(*arguments, **more)
        return replace(plan, scale=plan.scale / 2, tolerance_scale=plan.tolerance_scale / 2)

    def fewer(*arguments, **more):
        return steps(*arguments, **more) / 2

    with ExitStack() as stack:
        for owner, name, own in (
            (accountant, "noisy_counts", counted),
            (base, "noisy_counts", counted),
            (accountant, "gaussian_counts", normal),
            (accountant, "choose", chosen),
            (linear, "calibrate", planned),
            (dpgan, "noise_for_steps", fewer),
            (ft_transformer, "noise_for_steps", fewer),
        ):
            stack.enter_context(mock.patch.object(owner, name, own))
        yield


@pytest.mark.parametrize(("name", "relation"), METHODS)
def test_every_answer_costs_what_was_paid_and_half_the_scale_costs_more(name, relation) -> None:
    found, whole = costs(name, relation)
    assert [own for own in found if own.cost > own.paid * (1 + 1e-5)] == []
    assert SHORT.get((name, relation), 0.9) < whole < 1 + 1e-5
    with half_scales():
        found, whole = costs(name, relation)
    # Each that moves at all: a record is in one part of a bag, and the tolerance's noise comes after the minimum.
    assert [own for own in found if 0 < own.cost <= own.paid] == []
    assert whole > 1.4
