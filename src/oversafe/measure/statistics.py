"""Whether methods differ over data sets: Friedman with Holm, and the Bayes sign test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import integrate, stats

from oversafe._core.errors import InputError

_FEWEST_METHODS = 3


@dataclass(frozen=True)
class FriedmanHolm:
    """Ranks of methods over data sets, and which differences are more than chance.

    Parameters
    ----------
    ranks : Series
        Mean rank of each method, 1 for the best.
    statistic, p_value : float
        Of the Friedman test that all methods are alike.
    control : str
        The method that the others are compared with.
    pairs : DataFrame
        One row per other method: the mean difference from the control, the Wilcoxon signed-rank
        test's statistic and p-value, and the p-value as Holm adjusts it.
    """

    ranks: pd.Series
    statistic: float
    p_value: float
    control: Any
    pairs: pd.DataFrame


def friedman_holm(
    scores: Any, *, control: Any = None, larger_is_better: bool = True, alternative: str = "two-sided"
) -> FriedmanHolm:
    """Test whether methods differ over data sets, and each of them from one.

    Parameters
    ----------
    scores : DataFrame or array of shape (n_data_sets, n_methods)
        One row per data set (or fold), one column per method.
    control : optional
        The column that the others are compared with; the one of the best mean rank when not given.
    larger_is_better : bool, default=True
        Whether rank 1 is the largest score.
    alternative : {"two-sided", "less", "greater"}, default="two-sided"
        Of the Wilcoxon tests, for the control against each other method.

    Notes
    -----
    Ties share their mean rank. Differences of zero are left out of a Wilcoxon test, and if all are zero its
    p-value is 1. With eight data sets the smallest two-sided p-value is 2/256.

    References
    ----------
    .. [1] J. Demsar, "Statistical comparisons of classifiers over multiple data sets", JMLR 7 (2006).

    Examples
    --------
    >>> import pandas as pd
    >>> from oversafe.measure import friedman_holm
    >>> scores = pd.DataFrame({"a": [0.9, 0.8, 0.95, 0.7, 0.85], "b": [0.5, 0.6, 0.7, 0.4, 0.6],
    ...                        "c": [0.4, 0.65, 0.6, 0.3, 0.5]})
    >>> test = friedman_holm(scores)
    >>> test.control, round(test.p_value, 3)
    ('a', 0.015)
    """
    table = pd.DataFrame(scores).astype(float)
    if table.shape[1] < _FEWEST_METHODS or len(table) < 2:
        raise InputError(
            f"scores of {table.shape[1]} methods on {len(table)} data sets were given; at least three methods and "
            "two data sets are needed"
        )
    if not np.isfinite(table.to_numpy()).all():
        raise InputError("the scores have missing or infinite values; leave out the data sets that lack one")
    ranks = table.rank(axis=1, ascending=not larger_is_better).mean()
    if control is None:
        control = ranks.idxmin()
    if control not in table.columns:
        raise InputError(f"the control {control!r} is no method; the methods are {list(table.columns)}")
    if table.eq(table.iloc[:, 0], axis=0).all(axis=None):
        statistic, p_value = 0.0, 1.0
    else:
        statistic, p_value = stats.friedmanchisquare(*table.to_numpy().T)
    rows = []
    for method in table.columns.drop(control):
        difference = (table[control] - table[method]).to_numpy()
        if not difference.any():
            rows.append((method, 0.0, 0.0, 1.0))
            continue
        test = stats.wilcoxon(difference, alternative=alternative)
        rows.append((method, float(difference.mean()), float(test.statistic), float(test.pvalue)))
    pairs = pd.DataFrame(rows, columns=["method", "mean_difference", "statistic", "p_value"])
    pairs["p_holm"] = holm(pairs["p_value"].to_numpy())
    return FriedmanHolm(ranks, float(statistic), float(p_value), control, pairs)


def holm(p_values: Any) -> np.ndarray:
    """Return p-values adjusted for their number by Holm's method."""
    p_values = np.asarray(p_values, dtype=float)
    order = np.argsort(p_values, kind="stable")
    steps = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


@dataclass(frozen=True)
class BayesSignTest:
    """How probable it is that one method wins, draws or loses against another.

    Parameters
    ----------
    win, draw, lose : float
        Probability that this is the most common outcome; they add up to 1.
    wins, draws, losses : int
        Of the data sets that were compared.
    """

    win: float
    draw: float
    lose: float
    wins: int
    draws: int
    losses: int


def bayes_sign_test(
    scores: Any, baseline: Any, *, rope: float = 0.01, relative: bool = True, prior: float = 1.0
) -> BayesSignTest:
    """Return the probabilities that a method is better than, equivalent to or worse than a baseline.

    Parameters
    ----------
    scores, baseline : array of shape (n_data_sets,)
        The scores of both, larger being better.
    rope : float, default=0.01
        Region of practical equivalence: smaller differences are draws.
    relative : bool, default=True
        Whether differences are shares of the baseline's score, as in [2]_; else plain ones.
    prior : float, default=1.0
        Weight of one imagined draw, against which the data must speak [1]_.

    Notes
    -----
    The probabilities of the three outcomes have a Dirichlet posterior; returned is the probability that
    each of them is the largest, by numerical integration and not by drawing from the posterior.

    References
    ----------
    .. [1] A. Benavoli, G. Corani, J. Demsar and M. Zaffalon, "Time for a change: a tutorial for comparing multiple
       classifiers through Bayesian analysis", JMLR 18 (2017).
    .. [2] "epsilon-PrivateSMOTE", Section 4.1.

    Examples
    --------
    >>> from oversafe.measure import bayes_sign_test
    >>> test = bayes_sign_test([0.90, 0.80, 0.70, 0.85], [0.80, 0.70, 0.70, 0.75])
    >>> test.wins, test.draws, round(test.win, 2)
    (3, 1, 0.69)
    """
    ours, theirs = (np.asarray(values, dtype=float).ravel() for values in (scores, baseline))
    if ours.shape != theirs.shape or not len(ours):
        raise InputError(
            f"{len(ours)} scores and {len(theirs)} of the baseline were given; give as many of both, at least one"
        )
    if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        raise InputError("the scores have missing or infinite values; leave out the data sets that lack one")
    if rope < 0 or prior < 0:
        raise InputError(f"rope = {rope} and prior = {prior} were given; neither may be negative")
    if relative and (theirs == 0).any():
        raise InputError("a score of the baseline is 0, so that no share can be taken; use relative=False")
    difference = (ours - theirs) / np.abs(theirs) if relative else ours - theirs
    # A difference at the border but for rounding is a draw.
    wins = int((difference > rope + 1e-12).sum())
    losses = int((difference < -rope - 1e-12).sum())
    draws = len(difference) - wins - losses
    win, draw, lose = _largest(np.array([wins, draws + prior, losses], dtype=float))
    return BayesSignTest(win, draw, lose, wins, draws, losses)


def _largest(weights: np.ndarray) -> list[float]:
    """Return the probability of each part of a Dirichlet variable to be the largest."""
    # The parts are independent gamma variables, but for their sum; one of weight zero is zero.
    used = np.flatnonzero(weights > 0)
    probabilities = np.zeros(len(weights))
    for at in used:
        others = [stats.gamma(weights[other]) for other in used if other != at]
        own = stats.gamma(weights[at])
        # Over the quantiles of the part, so that the integrand is bounded and smooth.
        probabilities[at] = integrate.quad(
            lambda q, own=own, others=others: np.prod([other.cdf(own.ppf(q)) for other in others]), 0, 1
        )[0]
    return (probabilities / probabilities.sum()).tolist()
