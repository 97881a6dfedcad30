"""The risk between two success rates, and its interval."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oversafe.attack.base import wilson_interval
from oversafe.attack.linkage.rates import GUESSING, NO_HOLDOUT, Rate, compare, paired_interval, risk_over


def test_the_risk_is_the_share_of_what_the_other_leaves_open() -> None:
    risk, (low, high) = risk_over(Rate(60, 100), Rate(20, 100))
    assert risk == pytest.approx((0.6 - 0.2) / (1 - 0.2))
    assert 0 < low < risk < high < 1


def test_against_an_exact_rate_the_interval_is_that_of_the_main_attack() -> None:
    risk, interval = risk_over(Rate(30, 100), Rate(10, 100, exact=True))
    low, high = wilson_interval(30, 100)
    assert risk == pytest.approx((0.3 - 0.1) / 0.9)
    assert interval == pytest.approx(((low - 0.1) / 0.9, (high - 0.1) / 0.9))


@given(st.integers(1, 300), st.integers(1, 300), st.data())
def test_risk_and_interval_stay_between_0_and_1(trials: int, others: int, data: st.DataObject) -> None:
    main = Rate(data.draw(st.integers(0, trials)), trials)
    other = Rate(data.draw(st.integers(0, others)), others)
    risk, (low, high) = risk_over(main, other)
    assert 0 <= low <= risk <= high <= 1


def test_people_who_were_attacked_again_count_once_against_a_control() -> None:
    often, once = Rate(250, 500, people=20), Rate(10, 20)
    assert often.interval == wilson_interval(250, 500)
    assert risk_over(often, Rate(0, 20))[1] == pytest.approx(risk_over(once, Rate(0, 20))[1])


def test_intervals_cover() -> None:
    """Of 2000 simulated pairs of rates, the interval holds the true risk in about 95 %.

    Fewer than 92 % or more than 98.5 % have a probability below 1e-6 if the coverage is between 94 % and 97 %.
    """
    rng = np.random.default_rng(0)
    truth = (0.4 - 0.2) / 0.8
    hits = 0
    for _ in range(2000):
        _, (low, high) = risk_over(Rate(rng.binomial(300, 0.4), 300), Rate(rng.binomial(300, 0.2), 300))
        hits += low <= truth <= high
    assert 0.92 <= hits / 2000 <= 0.985


def test_paired_trials() -> None:
    main = np.array([1, 1, 1, 0, 0, 0, 0, 0] * 20)
    same = paired_interval(main, main, 0.0, 1.0)
    unrelated = paired_interval(main, np.roll(main, 4), 0.0, 1.0)
    # Trials that always agree leave less open than trials that have nothing to do with each other.
    assert same[1] < unrelated[1]
    assert paired_interval(main, main, 0.0, 4.0)[1] > same[1]
    low, high = paired_interval(np.zeros(100), np.zeros(100), 0.0, 1.0)
    assert low == 0 and 0 < high < 0.1


def test_what_the_figures_say() -> None:
    risk, _, details = compare(Rate(60, 100), Rate(1, 100), Rate(20, 100))
    assert details["main_rate"] == 0.6 and details["naive_rate"] == 0.01 and details["control_rate"] == 0.2
    assert details["main_interval"] == wilson_interval(60, 100)
    assert details["risk_basis"] == "control" and "warning" not in details and risk == pytest.approx(0.5)
    _, _, alone = compare(Rate(60, 100), Rate(1, 100))
    assert alone["risk_basis"] == "naive" and alone["warning"] == NO_HOLDOUT and "control_rate" not in alone
    _, _, weak = compare(Rate(2, 100), Rate(1, 100), Rate(2, 100))
    assert weak["warning"] == GUESSING
