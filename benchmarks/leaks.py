"""Releases that leak people and releases that do not, of any table: what verdicts are measured on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import imblearn.over_sampling as oversampling
import numpy as np
import pandas as pd
from pandas.api import types
from scipy.stats import norm, rankdata
from sklearn.neighbors import NearestNeighbors
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from oversafe.protect import HistogramSynthesizer, KAnonymizer, PrivateSMOTE

LABEL = "y"


@dataclass(frozen=True)
class Given:
    """What a release is made of.

    Parameters
    ----------
    real : DataFrame
        The table, with the label in the column ``y``.
    others : DataFrame
        As many people of the same kind who are in neither the table nor the holdout.
    rng : Generator
        For all draws.
    """

    real: pd.DataFrame
    others: pd.DataFrame
    rng: np.random.Generator

    @property
    def seed(self) -> int:
        """A seed for methods that take one."""
        return int(self.rng.integers(2**31))


Kind = Callable[[Given], pd.DataFrame]


def numbers_of(table: pd.DataFrame) -> list[str]:
    """Return the names of the columns of numbers."""
    return [c for c in table.columns if c != LABEL and types.is_any_real_numeric_dtype(table[c].dtype)]


def _features(table: pd.DataFrame) -> list[str]:
    return [c for c in table.columns if c != LABEL]


def _floats(table: pd.DataFrame) -> pd.DataFrame:
    return table.astype({name: float for name in numbers_of(table)})


def noised(share: float) -> Kind:
    """Return what adds normal noise of so many standard deviations, and draws as many of the categories anew."""

    def make(given: Given) -> pd.DataFrame:
        table = _floats(given.real)
        for name in _features(table):
            if name in numbers_of(table):
                table[name] += given.rng.normal(size=len(table)) * table[name].std() * share
            else:
                hit = given.rng.random(len(table)) < share
                table[name] = table[name].where(
                    ~hit, table[name].sample(frac=1, random_state=given.seed).to_numpy()
                )
        return table

    return make


def one_column(change: str) -> Kind:
    """Return what changes the first column: by noise, or in the order of its values."""

    def make(given: Given) -> pd.DataFrame:
        table = _floats(given.real)
        name = (numbers_of(table) or _features(table))[0]
        if change == "noise" and name in numbers_of(table):
            table[name] += given.rng.normal(size=len(table)) * table[name].std()
        else:
            table[name] = given.rng.permutation(table[name].to_numpy())
        return table

    return make


def swapped(share: float) -> Kind:
    """Return what exchanges a share of each column's values among the rows of a class."""

    def make(given: Given) -> pd.DataFrame:
        table = given.real.copy()
        for name in _features(table):
            for _, rows in table.groupby(LABEL, observed=True).indices.items():
                hit = rows[given.rng.random(len(rows)) < share]
                column = table.columns.get_loc(name)
                table.iloc[hit, column] = table[name].iloc[given.rng.permutation(hit)].to_numpy()
        return table

    return make


def _rounded(given: Given) -> pd.DataFrame:
    table = _floats(given.real)
    for name in numbers_of(table):
        size = np.floor(np.log10(max(table[name].std(), 1e-12)))
        table[name] = table[name].round(int(-size))
    return table


def rescaled(table: pd.DataFrame) -> pd.DataFrame:
    """Return numbers in other units."""
    table = _floats(table)
    for i, name in enumerate(numbers_of(table)):
        table[name] = table[name] * (2.54, 0.45359, 1.8)[i % 3] + (0.0, 0.0, 32.0)[i % 3]
    return table


def _logarithms(given: Given) -> pd.DataFrame:
    table = _floats(given.real)
    for name in numbers_of(table):
        table[name] = np.log1p(table[name] - table[name].min())
    return table


def _scaled(given: Given) -> pd.DataFrame:
    table = _floats(given.real)
    for name in numbers_of(table):
        table[name] = (table[name] - table[name].mean()) / max(table[name].std(), 1e-12)
    return table


def recoded(table: pd.DataFrame) -> pd.DataFrame:
    """Return categories as numbers in an order of their own."""
    table = table.copy()
    for name in _features(table):
        if name not in numbers_of(table):
            kinds = sorted(table[name].astype(str).unique(), key=lambda text: text[::-1])
            table[name] = table[name].astype(str).map({kind: f"k{i}" for i, kind in enumerate(kinds)})
    return table


def _half_the_columns(given: Given) -> pd.DataFrame:
    names = _features(given.real)
    kept = sorted(given.rng.permutation(len(names))[: max(2, len(names) // 2)])
    return given.real[[*(names[i] for i in kept), LABEL]]


def _coded(table: pd.DataFrame) -> np.ndarray:
    columns = []
    for name in _features(table):
        if name in numbers_of(table):
            values = table[name].astype(float)
            columns.append(((values - values.mean()) / max(values.std(), 1e-12)).fillna(0.0).to_numpy())
        else:
            columns.append(pd.factorize(table[name])[0] * 1.0)
    return np.column_stack(columns)


def _neighbors(table: pd.DataFrame, k: int) -> np.ndarray:
    """Return for each row the k nearest of its class, itself first."""
    result = np.zeros((len(table), k), dtype=np.int64)
    for _, rows in table.groupby(LABEL, observed=True).indices.items():
        points = _coded(table.iloc[rows])
        count = min(k, len(rows))
        found = NearestNeighbors(n_neighbors=count).fit(points).kneighbors(points)[1]
        result[rows] = rows[np.resize(found.T, (k, len(rows))).T]
    return result


def _of_neighbors(given: Given) -> pd.DataFrame:
    """Each cell is that of one of the five nearest rows."""
    table, near = given.real.copy(), _neighbors(given.real, 5)
    for name in _features(table):
        source = near[np.arange(len(table)), given.rng.integers(0, 5, len(table))]
        table[name] = given.real[name].to_numpy()[source]
    return table


def _mean_of_groups(size: int) -> Kind:
    def make(given: Given) -> pd.DataFrame:
        table, near = _floats(given.real), _neighbors(given.real, size)
        for name in numbers_of(table):
            table[name] = table[name].to_numpy()[near].mean(axis=1)
        return table

    return make


def _trees(leaf: int) -> Kind:
    """Sequential trees: each column drawn from the leaf of the columns before it."""

    def make(given: Given) -> pd.DataFrame:
        source = given.real.sample(frac=1, random_state=given.seed).reset_index(drop=True)
        made = pd.DataFrame({LABEL: given.rng.permutation(source[LABEL].to_numpy())})
        seen, drawn = [pd.factorize(source[LABEL], sort=True)[0]], [pd.factorize(made[LABEL], sort=True)[0]]
        for name in _features(source):
            is_number = name in numbers_of(source)
            target = source[name].astype(float).fillna(0) if is_number else pd.factorize(source[name])[0]
            model = DecisionTreeRegressor if is_number else DecisionTreeClassifier
            tree = model(min_samples_leaf=leaf, random_state=0).fit(np.column_stack(seen), target)
            leaves, wanted = tree.apply(np.column_stack(seen)), tree.apply(np.column_stack(drawn))
            places = np.zeros(len(made), dtype=np.int64)
            for own in np.unique(wanted):
                here = np.flatnonzero(wanted == own)
                places[here] = given.rng.choice(np.flatnonzero(leaves == own), len(here))
            made[name] = source[name].to_numpy()[places]
            codes = (
                source[name].astype(float).fillna(0).to_numpy()
                if is_number
                else pd.factorize(source[name])[0]
            )
            seen.append(codes)
            drawn.append(codes[places])
        return made[list(given.real.columns)]

    return make


def _anonymous(as_ranges: bool) -> Kind:
    def make(given: Given) -> pd.DataFrame:
        X, y = given.real.drop(columns=LABEL), given.real[LABEL]
        made, labels = KAnonymizer(k_anonymity=3).fit_resample(X, y)
        if as_ranges or not numbers_of(given.real):
            return made.assign(**{LABEL: np.asarray(labels)})
        table = made.assign(**{LABEL: np.asarray(labels)})
        for name in numbers_of(given.real):
            if not types.is_any_real_numeric_dtype(table[name].dtype):
                ends = table[name].astype(str).str.split(" to ")
                table[name] = ends.map(lambda pair: pd.to_numeric(pd.Series(pair), errors="coerce").mean())
        return table

    return make


def _oversampled(name: str, *, alone: bool = True, rows: float = 1.0, **settings: Any) -> Kind:
    """A sampler of imbalanced-learn on the columns of numbers, each class but the largest made larger by its size."""

    def make(given: Given) -> pd.DataFrame:
        X, y = _floats(given.real)[numbers_of(given.real)].fillna(0.0), given.real[LABEL]
        counts = y.value_counts()
        most = int(counts.max())
        wanted = {c: max(most, int(n * (1 + rows))) if n < most else n for c, n in counts.items() if n > 6}
        sampler = getattr(oversampling, name)(sampling_strategy=wanted, random_state=given.seed, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made, labels = sampler.fit_resample(X, y.astype(object))
        table = made.assign(**{LABEL: np.asarray(labels)})
        table = table.iloc[len(X) :] if alone else table
        # Classes without new rows are those of other people, so that the rest is fair.
        rest = _floats(given.others)[[*numbers_of(given.real), LABEL]]
        rest = rest[rest[LABEL] == counts.idxmax()]
        return pd.concat([table, rest], ignore_index=True) if alone else table

    return make


def _mixed(noise: str) -> Kind:
    """Rows moved towards a neighbor as SMOTE does, with a normal step, or a mean of several neighbors."""

    def make(given: Given) -> pd.DataFrame:
        table, near = _floats(given.real)[[*numbers_of(given.real), LABEL]], _neighbors(given.real, 6)
        X = table[numbers_of(table)].fillna(0.0).to_numpy()
        if noise == "gaussian":
            other = near[np.arange(len(X)), given.rng.integers(1, 6, len(X))]
            step = np.abs(given.rng.normal(0.0, 0.4, size=(len(X), 1)))
            X = X + step * (X[other] - X)
        else:
            weights = given.rng.dirichlet(np.ones(5), len(X))
            X = (X[near[:, 1:]] * weights[:, :, None]).sum(axis=1)
        return pd.DataFrame(X, columns=numbers_of(table)).assign(**{LABEL: table[LABEL].to_numpy()})

    return make


def _private_smote(epsilon: float) -> Kind:
    def make(given: Given) -> pd.DataFrame:
        X, y = given.real.drop(columns=LABEL), given.real[LABEL]
        made, labels = PrivateSMOTE(epsilon=epsilon, random_state=given.seed).fit_resample(X, y)
        return made.assign(**{LABEL: np.asarray(labels)})

    return make


def _only(largest: bool) -> Kind:
    """Copies of one class beside other people of the other classes."""

    def make(given: Given) -> pd.DataFrame:
        counts = given.real[LABEL].value_counts()
        label = counts.idxmax() if largest else counts.idxmin()
        return pd.concat(
            [given.real[given.real[LABEL] == label], given.others[given.others[LABEL] != label]],
            ignore_index=True,
        )

    return make


def leaked(share: float, change: Kind | None = None) -> Kind:
    """Return what hands out other people and a share of the real ones."""

    def make(given: Given) -> pd.DataFrame:
        some = given.real.sample(max(1, round(share * len(given.real))), random_state=given.seed)
        if change is not None:
            some = change(Given(some.reset_index(drop=True), given.others, given.rng))
        return pd.concat([_floats(given.others), _floats(some)], ignore_index=True)

    return make


def _private(given: Given, table: pd.DataFrame) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = HistogramSynthesizer(epsilon=1.0, random_state=given.seed)
        X, y = made.fit(table.drop(columns=LABEL), table[LABEL]).sample(len(table))
    return X.assign(**{LABEL: np.asarray(y)})


def _copula(given: Given) -> pd.DataFrame:
    """A Gaussian copula of each class, fitted honestly on the real table."""
    parts = []
    for label, table in given.real.groupby(LABEL, observed=True):
        coded = _coded(table)
        coded = coded + 1e-9 * given.rng.normal(size=coded.shape)
        z = norm.ppf((rankdata(coded, axis=0) - 0.5) / len(coded))
        shape = np.atleast_2d(np.corrcoef(z, rowvar=False)) if len(table) > 2 else np.eye(z.shape[1])
        shape = 0.99 * np.nan_to_num(shape) + 0.01 * np.eye(len(shape))
        drawn = norm.cdf(given.rng.multivariate_normal(np.zeros(len(shape)), shape, len(table)))
        made = {}
        for j, name in enumerate(_features(table)):
            ordered = table[name].to_numpy()[np.argsort(coded[:, j])]
            if name in numbers_of(table):
                # Between the quantiles, so that no value is copied.
                values = np.quantile(table[name].astype(float).fillna(0), drawn[:, j])
                whole = types.is_integer_dtype(table[name].dtype)
                made[name] = np.rint(values) if whole else values
            else:
                made[name] = ordered[(drawn[:, j] * len(ordered)).astype(int)]
        parts.append(pd.DataFrame(made).assign(**{LABEL: label}))
    return pd.concat(parts, ignore_index=True)


def _margins(given: Given) -> pd.DataFrame:
    """Each column drawn by itself within its class."""
    parts = []
    for label, table in given.real.groupby(LABEL, observed=True):
        made = {name: given.rng.choice(table[name].to_numpy(), len(table)) for name in _features(table)}
        parts.append(pd.DataFrame(made).assign(**{LABEL: label}))
    return pd.concat(parts, ignore_index=True)


def _of_others(kind: Kind) -> Kind:
    return lambda given: kind(Given(given.others, given.real, given.rng))


LEAKS: dict[str, Kind] = {
    "copies": lambda given: given.real,
    "copies, noise 1 %": noised(0.01),
    "copies, noise 5 %": noised(0.05),
    "copies, noise 20 %": noised(0.2),
    "one column noised": one_column("noise"),
    "one column shuffled": one_column("shuffle"),
    "swapped 10 %": swapped(0.1),
    "swapped 30 %": swapped(0.3),
    "rounded": _rounded,
    "other units": lambda given: rescaled(given.real),
    "other units, noise 1 %": lambda given: rescaled(noised(0.01)(given)),
    "logarithms": _logarithms,
    "standardised": _scaled,
    "recoded": lambda given: recoded(given.real),
    "half of the columns": _half_the_columns,
    "cells of neighbors": _of_neighbors,
    "trees, leaf of 1": _trees(1),
    "trees, leaf of 5": _trees(5),
    "means of 3": _mean_of_groups(3),
    "means of 5": _mean_of_groups(5),
    "3-anonymous ranges": _anonymous(True),
    "3-anonymous middles": _anonymous(False),
    "PrivateSMOTE 1": _private_smote(1.0),
    "PrivateSMOTE 5": _private_smote(5.0),
    "SMOTE": _oversampled("SMOTE"),
    "SMOTE, k = 1": _oversampled("SMOTE", k_neighbors=1),
    "SMOTE, all rows": _oversampled("SMOTE", alone=False),
    "BorderlineSMOTE-1": _oversampled("BorderlineSMOTE", kind="borderline-1"),
    "BorderlineSMOTE-2": _oversampled("BorderlineSMOTE", kind="borderline-2"),
    "SVMSMOTE": _oversampled("SVMSMOTE"),
    "ADASYN": _oversampled("ADASYN"),
    "KMeansSMOTE": _oversampled("KMeansSMOTE", cluster_balance_threshold=0.01),
    "RandomOverSampler": _oversampled("RandomOverSampler"),
    "RandomOverSampler, smoothed": _oversampled("RandomOverSampler", shrinkage=0.1),
    "steps of normal length": _mixed("gaussian"),
    "means of neighbors": _mixed("lle"),
    "largest class alone": _only(True),
    "smallest class alone": _only(False),
    "5 % of the rows": leaked(0.05),
    "5 % of the rows, noise 5 %": leaked(0.05, noised(0.05)),
    "20 % of the rows, noise 20 %": leaked(0.2, noised(0.2)),
    "1 % of the rows": leaked(0.01),
    "DP and 5 % of the rows": lambda given: pd.concat(
        [_private(given, given.others), given.real.sample(frac=0.05, random_state=given.seed)],
        ignore_index=True,
    ),
}
SAFE: dict[str, Kind] = {
    "other people": lambda given: given.others,
    "other people, drawn again": lambda given: given.others.sample(
        frac=1, replace=True, random_state=given.seed
    ),
    "other people, rounded": _of_others(_rounded),
    "other people, other units": lambda given: rescaled(given.others),
    "other people, recoded": lambda given: recoded(given.others),
    "other people, noise 5 %": _of_others(noised(0.05)),
    "other people, SMOTE": _of_others(_oversampled("SMOTE", alone=False)),
    "other people, 3-anonymous": _of_others(_anonymous(True)),
    "other people, twice": lambda given: pd.concat([given.others] * 2, ignore_index=True),
    "other people, trees": _of_others(_trees(5)),
    "copula": _copula,
    "margins": _margins,
    "DP": lambda given: _private(given, given.real),
}
