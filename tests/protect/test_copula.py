"""The Gaussian copula keeps margins, rank correlations and the kinds of columns, class by class."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from oversafe._core.errors import InputError
from oversafe.protect import GaussianCopula

from .conformance import mixed_table


def test_margins_and_correlations_of_each_class():
    rng = np.random.default_rng(0)
    n = 8000
    y = np.repeat(["a", "b"], [6000, 2000])
    z = rng.normal(size=(n, 2))
    sign = np.where(y == "a", 1.0, -1.0)
    X = pd.DataFrame({"u": np.exp(z[:, 0]), "v": 0.8 * sign * z[:, 0] + 0.6 * z[:, 1] + 5 * (y == "b")})
    synthesizer = GaussianCopula(random_state=0).fit(X, y)
    X_new, y_new = synthesizer.sample(class_counts={"a": 20_000, "b": 20_000})
    for label in "ab":
        real, made = X[y == label], X_new[y_new == label]
        for name in X:
            # Two samples of one distribution would differ more with probability below 1e-6.
            assert stats.ks_2samp(real[name], made[name]).pvalue > 1e-6
        rho = [stats.spearmanr(t["u"], t["v"]).statistic for t in (real, made)]
        assert abs(rho[0] - rho[1]) < 0.05
    assert synthesizer.guarantee_.status == "none"


def test_categories_and_gaps_keep_their_shares():
    X, y = mixed_table(2000)
    X_new, y_new = GaussianCopula(random_state=0).fit(X, y).sample(20_000)
    for label in y.unique():
        real, made = X[y == label], X_new[y_new == label]
        for name in ("ward", "grade", "smoker", "town"):
            shares = real[name].value_counts(normalize=True)
            found = made[name].value_counts(normalize=True).reindex(shares.index)
            # Shares within 6 standard deviations of at least 3,900 draws: fails with probability 1e-8.
            np.testing.assert_allclose(found, shares, atol=6 * 0.5 / np.sqrt(len(made)))
        for name in ("dose", "visits", "admitted"):
            assert abs(real[name].isna().mean() - made[name].isna().mean()) < 6 * 0.5 / np.sqrt(len(made))


def test_categories_go_with_numbers():
    rng = np.random.default_rng(0)
    x = rng.normal(size=4000)
    X = pd.DataFrame(
        {"x": x, "c": pd.Categorical(np.where(x > 0.5, "high", "low"), ["low", "high"], ordered=True)}
    )
    X_new, _ = GaussianCopula(random_state=0).fit_resample(X, rng.choice([0, 1], 4000))
    means = X_new.groupby("c", observed=True)["x"].mean()
    assert means["high"] - means["low"] > 1.0


def test_columns_without_any_value_stay_so():
    X = pd.DataFrame({"x": np.arange(20) / 3, "empty": np.nan})
    X_new, _ = GaussianCopula(random_state=0).fit_resample(X, [0, 1] * 10)
    assert X_new["empty"].isna().all() and X_new["x"].between(0, 19 / 3).all()


def test_infinite_values_are_refused():
    with pytest.raises(InputError, match="infinite"):
        GaussianCopula().fit(pd.DataFrame({"x": [1.5, np.inf, 2.5, 3.5]}), [0, 1, 0, 1])
