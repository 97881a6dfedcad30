"""What is recorded of mechanisms, how a run is told its answers, and that nothing of it is there otherwise."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from benchmarks.tight import CASES, flags
from scipy.stats import binomtest

from oversafe.measure import worst_case_neighbours
from oversafe.privacy import Accountant, answers
from oversafe.privacy.answers import Choice, Gaussian, Laplace, Sampled, Tape, Thresholded, recorded
from oversafe.privacy.mechanisms import choose, frequent_counts, gaussian_counts, noisy_counts
from oversafe.protect import HistogramSynthesizer


def test_what_was_asked_is_written_down_with_its_law_and_its_price() -> None:
    with recorded() as tape:
        accountant = Accountant(1.0)
        noisy = accountant.counts(np.array([5, 0, 9]), 0.5, what="some", tables=2)
        place = choose(np.array([1.5, 0.5]), sensitivity=0.5, rho=0.02)
        gaussian_counts(np.array([3]), sensitivity=2.0, rho=0.5)
        frequent_counts([900], changed=2, sensitivity=1.0, largest=1, rho=0.5, delta=1e-6)
    first, choice, normal, found = tape.questions
    assert (first.what, first.paid, first.law) == ("some", 0.5, Laplace(8.0, 4))
    assert first.truth.tolist() == [5, 0, 9]
    assert first.answer.tolist() == noisy.tolist()
    assert (choice.law.declared, choice.law.pure, choice.answer) == (0.5, False, place)
    assert normal.law == Gaussian(2.0, 2.0)
    assert isinstance(found.law, Thresholded)
    assert found.law.threshold > 1


def test_a_run_that_is_told_its_answers_keeps_its_own_truths() -> None:
    table, neighbour = worst_case_neighbours(flags(1), n_rows=20)
    model = HistogramSynthesizer(schema=flags(1), random_state=0)
    with recorded() as tape:
        mine = model.fit(*table)
        shares = mine.histograms_["c0"].copy()
    with recorded(Tape(script=tape.answers)) as other:
        theirs = model.fit(*neighbour)
    assert np.array_equal(shares, theirs.histograms_["c0"])
    assert np.abs(tape.questions[0].truth - other.questions[0].truth).sum() == 4
    with recorded(Tape(script=[])), pytest.raises(AssertionError, match="0 answers are known"):
        model.fit(*table)


def test_noise_is_real_while_recorded_and_a_seed_makes_the_rest_the_same() -> None:
    drawn = set()
    for _ in range(5):
        with recorded():
            drawn.add(tuple(noisy_counts(np.zeros(20), sensitivity=1, epsilon=0.01, random_state=0).tolist()))
    # Twenty numbers of a deviation of 140 agree with a probability below 1e-40.
    assert len(drawn) == 5


def test_nothing_is_recorded_afterwards_and_nothing_of_it_is_in_a_release() -> None:
    table, _ = worst_case_neighbours(flags(1), n_rows=20)
    with recorded() as tape:
        fitted = HistogramSynthesizer(schema=flags(1)).fit(*table)
    assert fitted.guarantee_.status == "nominal"
    assert answers.RECORDED in fitted.guarantee_.caveats
    assert b"oversafe.privacy.answers" not in pickle.dumps(fitted)
    assert not answers.recording()
    fitted = HistogramSynthesizer(schema=flags(1)).fit(*table)
    assert fitted.guarantee_.status == "proven"
    assert len(tape.questions) == 1


def test_classifiers_promise_nothing_while_recorded() -> None:
    case = CASES["PrivateThresholdClassifier"]
    with recorded():
        fitted = case.model("replace-one").fit(*case.neighbours("replace-one")[0])
    assert fitted.guarantee_.status == "nominal"


def test_samples_of_rows_are_the_same_for_tables_that_differ_in_the_last_one() -> None:
    first, second = Tape(3), Tape(3)
    mine, theirs = (
        [tape.sample(n, 0.5).tolist() for _ in range(9)] for tape, n in ((first, 31), (second, 30))
    )
    assert [[row for row in rows if row < 30] for rows in mine] == theirs
    assert any(30 in rows for rows in mine)
    assert not all(30 in rows for rows in mine)
    inside, outside = Tape(3, row=4), Tape(3, row=4, included=False)
    assert all(4 in inside.sample(30, 0.5) for _ in range(9))
    assert not any(4 in outside.sample(30, 0.5) for _ in range(9))


# --------------------------------------------------------------------------------------------------- the laws


@pytest.mark.parametrize(
    ("law", "weight"),
    [
        (Laplace(3.0, 1), lambda x: -abs(x) / 3.0),
        (Gaussian(2.0, 1.0), lambda x: -(x**2) / 8.0),
        (Sampled(2.0, 1.0, 0.5), lambda x: -(x**2) / 8.0),
    ],
)
def test_ratios_of_noisy_counts_are_those_of_their_exact_masses(law, weight) -> None:
    answers_, first, second = np.arange(-9, 10)[:, None], np.array([2]), np.array([-1])
    expected = weight(answers_[:, 0] - 2) - weight(answers_[:, 0] + 1)
    assert law.log_ratio(answers_, first, second) == pytest.approx(expected, abs=1e-12)


def test_ratios_of_counts_with_a_threshold() -> None:
    law = Thresholded(4.0, 1.0, threshold=10)
    grid = np.arange(-200, 250)
    for truth, other in ((5, 6), (9, 8)):
        masses = [np.exp(-((grid - t) ** 2) / 32) for t in (truth, other)]
        below = [mass[grid < 10].sum() / mass.sum() for mass in masses]
        found = law.log_ratio(np.array([[0], [12]]), np.array([truth]), np.array([other]))
        exact = [np.log(below[0] / below[1]), ((12 - other) ** 2 - (12 - truth) ** 2) / 32]
        assert found == pytest.approx(exact, abs=1e-3)
    # A value that only one table has tells them apart for sure once it is named.
    assert law.log_ratio(np.array([[12]]), np.array([1]), np.array([0]))[0] == np.inf


@pytest.mark.parametrize("pure", [True, False])
def test_the_chances_of_choices_are_those_of_opendp(pure) -> None:
    # Each of four fails by chance with a probability of 1e-7.
    scores = np.array([4, 3, 0, 2])
    budget = {"epsilon": 1.0} if pure else {"rho": 0.125}
    with recorded() as tape:
        choose(scores, sensitivity=1, **budget)
    question = tape.questions[0]
    chances = np.exp(question.law.log_chances(question.truth))
    assert chances.sum() == pytest.approx(1.0)
    drawn = np.bincount([question.draw(scores, None) for _ in range(1500)], minlength=4)
    assert all(binomtest(int(n), 1500, p).pvalue > 1e-7 for n, p in zip(drawn, chances, strict=True))
    # And the other mechanism's are not.
    other = np.exp(Choice(question.law.scale, 1, 1, pure=not pure).log_chances(scores))
    assert not np.allclose(chances, other, atol=0.01)
