"""Friedman, Holm and the Bayes sign test against hand-computed and simulated figures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from oversafe._core.errors import InputError
from oversafe.measure import bayes_sign_test, friedman_holm, frontier, tradeoff
from oversafe.measure.statistics import holm


def test_ranks_and_tests_of_eight_sets():
    rng = np.random.default_rng(0)
    base = rng.uniform(0.4, 0.9, 8)
    scores = pd.DataFrame(
        {"good": base + 0.1, "same": base + 0.1 + rng.normal(0, 0.01, 8), "bad": base - 0.1}
    )
    test = friedman_holm(scores, control="good")
    assert test.p_value == pytest.approx(stats.friedmanchisquare(*scores.to_numpy().T).pvalue)
    pairs = test.pairs.set_index("method")
    # All eight differences have one sign: the smallest two-sided p-value, doubled for two comparisons.
    assert pairs.loc["bad", "p_value"] == pytest.approx(2 / 256)
    assert pairs.loc["bad", "p_holm"] == pytest.approx(4 / 256)
    assert pairs.loc["bad", "mean_difference"] == pytest.approx(0.2)
    assert test.ranks["bad"] == 3.0
    # Smaller is better turns the ranks around.
    assert friedman_holm(scores, larger_is_better=False).control == "bad"


def test_ties_share_ranks_and_equal_methods_do_not_differ():
    scores = np.array([[0.5, 0.5, 0.5], [0.7, 0.7, 0.7]])
    test = friedman_holm(scores)
    assert test.ranks.tolist() == [2.0, 2.0, 2.0]
    assert test.p_value == 1.0 and (test.pairs["p_holm"] == 1.0).all()


def test_holm_by_hand():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.5]), [0.04, 0.09, 0.09, 0.5])
    np.testing.assert_allclose(holm([0.4, 0.9]), [0.8, 0.9])


@pytest.mark.parametrize("scores", [np.ones((8, 2)), np.ones((1, 4)), [[1, 2, np.nan], [1, 2, 3]]])
def test_too_little_to_test(scores):
    with pytest.raises(InputError):
        friedman_holm(scores)


@pytest.mark.parametrize("counts", [(3, 1, 0), (2, 4, 3), (0, 0, 6), (9, 0, 1)])
def test_bayes_sign_test_agrees_with_draws_from_the_posterior(counts):
    wins, draws, losses = counts
    ours = np.concatenate([np.full(wins, 1.2), np.full(draws, 1.005), np.full(losses, 0.9)])
    test = bayes_sign_test(ours, np.ones(sum(counts)))
    assert (test.wins, test.draws, test.losses) == counts
    rng = np.random.default_rng(1)
    weights = np.array([wins, draws + 1, losses], dtype=float)
    drawn = rng.gamma(np.where(weights > 0, weights, 1), size=(400_000, 3)) * (weights > 0)
    shares = np.bincount(drawn.argmax(axis=1), minlength=3) / len(drawn)
    # Six standard errors of a share over the draws: fails with probability below 1e-8.
    np.testing.assert_allclose([test.win, test.draw, test.lose], shares, atol=6 * 0.5 / np.sqrt(len(drawn)))


def test_differences_are_shares_of_the_baseline_unless_told():
    # 0.5 more of 100 is half a percent.
    assert bayes_sign_test([100.5], [100.0]).draws == 1
    assert bayes_sign_test([100.5], [100.0], relative=False).wins == 1
    assert bayes_sign_test([101.0], [100.0]).draws == 1
    assert bayes_sign_test([98.0], [100.0]).losses == 1


@pytest.mark.parametrize(
    "given",
    [([], []), ([1.0], [1.0, 2.0]), ([np.nan], [1.0]), ([1.0], [0.0])],
    ids=["empty", "uneven", "nan", "zero"],
)
def test_bayes_sign_test_bad_use(given):
    with pytest.raises(InputError):
        bayes_sign_test(*given)


def test_tradeoff_is_equation_5():
    privacy = pd.DataFrame({"near": [0.1, 0.2, 0.05], "ratio": [0.5, 0.9, 1.0]}, index=["a", "b", "c"])
    utility = pd.Series([0.8, 0.6, 0.7], index=privacy.index)
    table = tradeoff(privacy, utility, original_utility=0.9)
    op = np.array([(0.5 + 0.5) / 2, (1 + 0.9) / 2, (0.25 + 1) / 2])
    ou = np.array([2 / 3, 0, 1 / 3])
    np.testing.assert_allclose(table["tradeoff"], 2 * op * ou / (op + ou))
    assert table["rank"].tolist() == [1.0, 3.0, 2.0]
    assert table["frontier"].tolist() == [True, True, True]


def test_frontier():
    privacy = [0.9, 0.5, 0.5, 0.2, 0.9, np.nan]
    utility = [0.5, 0.7, 0.6, 0.9, 0.5, 1.0]
    # The third is beaten by the second; equal points do not beat each other; a missing figure is nowhere.
    assert frontier(privacy, utility).tolist() == [True, True, False, True, True, False]


def test_tradeoff_bad_use():
    with pytest.raises(InputError, match="below 0"):
        tradeoff([-1.0, 0.5], [0.5, 0.6], original_utility=0.9)
    with pytest.raises(InputError, match="different methods"):
        tradeoff(pd.Series([1.0], ["a"]), pd.Series([1.0], ["b"]), original_utility=1.0)
    with pytest.raises(InputError, match="missing"):
        tradeoff([np.nan, 0.5], [0.5, 0.6], original_utility=0.9)
