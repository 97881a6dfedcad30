"""The membership game: releases with and without a record, and how well they are told apart."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.errors import InputError
from oversafe.attack.base import AttackResult
from oversafe.attack.copies import difference_interval

IntArray = NDArray[np.int64]
Matrix = NDArray[np.float64]
Targets = Literal["random", "outliers"] | Sequence[int] | NDArray[Any]

_BOOTSTRAPS = 1000
# The two figures of the published protocol.
_TEN, _FIFTY = 10, 50


@dataclass(frozen=True)
class MembershipResult(AttackResult):
    """How well an outsider tells whether a record was among the data.

    Parameters
    ----------
    name, threat, risk, interval, evidence, details
        See :class:`~oversafe.attack.AttackResult`.
    targets : array of int
        Positions of the attacked records.
    auc : array of float
        For each of them the area under the ROC curve, between releases with the record and without.
    privacy_gain : array of float
        For each of them 1 - advantage, where the advantage is the share of right minus the share of wrong
        claims "the record is in it" (Stadler et al. 2022).
    scores_inside, scores_outside : array of shape (n_targets, n_releases)
        The judge's scores on the test releases with and without each record, for ROC curves.
    """

    targets: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False)
    auc: Matrix = field(default_factory=lambda: np.empty(0), repr=False)
    privacy_gain: Matrix = field(default_factory=lambda: np.empty(0), repr=False)
    scores_inside: Matrix = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    scores_outside: Matrix = field(default_factory=lambda: np.empty((0, 0)), repr=False)


def rarest(y: NDArray[Any]) -> Any:
    """Return the label of the smallest class."""
    labels, counts = np.unique(y, return_counts=True)
    return labels[np.argmin(counts)]


def check_game(X: Any, y: Any, label: Any) -> tuple[NDArray[Any], Any, IntArray]:
    """Return the labels as an array, the attacked class and the positions of its rows."""
    if hasattr(X, "tocsr"):
        raise InputError("a sparse matrix was given; convert it with .toarray() first")
    labels = y.to_numpy() if isinstance(y, pd.Series) else np.asarray(y)
    labels = labels.ravel() if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.ndim != 1:
        raise InputError(f"y has {labels.ndim} dimensions; give one label per row")
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if n_rows != len(labels):
        raise InputError(f"X has {n_rows} rows and y has {len(labels)}; give as many labels as rows")
    if pd.isna(labels).any():
        raise InputError("y has missing labels; drop these rows first")
    if len(np.unique(labels)) < 2:
        raise InputError("y has a single class; the game needs at least two")
    label = rarest(labels) if label is None else label
    members = np.flatnonzero(labels == label)
    if len(members) < 2:
        raise InputError(
            f"class {label!r} has {len(members)} rows; the game leaves one out, so give at least 2"
        )
    return labels, label, members


def choose_targets(
    targets: Targets, n_targets: int | None, matrix: Matrix, members: IntArray, rng: np.random.Generator
) -> IntArray:
    """Return the positions of the records to attack.

    Parameters
    ----------
    targets : "random", "outliers" or sequence of int
        Random rows of the class; those outside the 95 % range of a column; or given positions.
    n_targets : int or None
        How many at most; None is all of them.
    matrix : array of shape (n_members, n_columns)
        The class's rows as numbers.
    members : array of int
        Their positions in the table.
    rng : Generator
        Chooses among them.
    """
    if n_targets is not None and n_targets < 1:
        raise InputError(f"n_targets = {n_targets} was given; give at least 1")
    if not isinstance(targets, str):
        given = np.asarray(targets)
        if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer) or not len(given):
            raise InputError("targets are positions of rows; give whole numbers, 'random' or 'outliers'")
        if strangers := sorted(set(given.tolist()) - set(members.tolist())):
            raise InputError(
                f"row {strangers[0]} is no row of the attacked class; give positions of its rows"
            )
        return given.astype(np.int64)
    if targets == "outliers":
        low, high = np.quantile(matrix, [0.025, 0.975], axis=0)
        members = members[((matrix < low) | (matrix > high)).any(axis=1)]
        if not len(members):
            raise InputError(
                "no row of the class is outside the 95 % range of a column; use targets='random'"
            )
    elif targets != "random":
        raise InputError(f"targets = {targets!r} was given; use 'random', 'outliers' or positions")
    if n_targets is None or n_targets >= len(members):
        return members
    return np.sort(rng.choice(members, n_targets, replace=False))


def seeded_copy(estimator: Any, seed: int) -> Any:
    """Return a fresh copy of an estimator with another seed, wherever it takes one."""
    refuse_class(estimator)
    if hasattr(estimator, "get_params"):
        from sklearn.base import clone

        fresh = clone(estimator)
        names = [name for name in fresh.get_params(deep=True) if name.split("__")[-1] == "random_state"]
        if names:
            fresh.set_params(**dict.fromkeys(names, seed))
        return fresh
    fresh = copy.deepcopy(estimator)
    if hasattr(fresh, "random_state"):
        fresh.random_state = seed
    return fresh


def without(X: Any, position: int | None) -> Any:
    """Return a table without one row; a DataFrame stays one."""
    if position is None:
        return X
    if isinstance(X, pd.DataFrame | pd.Series):
        return X.drop(index=X.index[position]) if X.index.is_unique else X.iloc[_others(len(X), position)]
    X = np.asarray(X) if not hasattr(X, "shape") else X
    return X[_others(X.shape[0], position)]


def _others(n: int, position: int) -> IntArray:
    return np.delete(np.arange(n), position)


def is_protector(model: Any) -> bool:
    """Whether an object makes tables."""
    return hasattr(model, "fit_resample") or (hasattr(model, "fit") and hasattr(model, "sample"))


def refuse_class(protector: Any) -> None:
    """Refuse a class where an object of it is meant."""
    if isinstance(protector, type):
        raise InputError(
            f"the class {protector.__name__} was given; give an object of it: {protector.__name__}()"
        )


def released(protector: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Return the whole table that a protector makes: by ``fit_resample``, or by ``fit`` and ``sample``."""
    refuse_class(protector)
    if not is_protector(protector):
        raise InputError(
            f"{type(protector).__name__} has neither fit_resample nor fit and sample; give a sampler or a synthesizer"
        )
    if hasattr(protector, "fit_resample"):
        return protector.fit_resample(X, y)
    from oversafe.protect.external import drawn

    fitted = protector.fit(X, y)
    return drawn(protector if fitted is None else fitted, len(y))


def made_rows(protector: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Return the rows that a protector makes, without those that it passed through.

    The game is about what the made ones give away; the real ones would end it. Most oversamplers put them first.
    """
    table, labels = released(protector, X, y)
    n = len(y)
    if len(labels) <= n:
        return table, labels
    if _same(table[:n], X):
        return table[n:], labels[n:]
    if (made := _besides(table, X)) is not None:
        return table[made], np.asarray(labels)[made]
    return table, labels


def _besides(table: Any, X: Any) -> NDArray[np.bool_] | None:
    """Return which rows a release has besides the real ones, each taken off once; None where it lacks any of them."""
    first, second = (part if isinstance(part, pd.DataFrame) else pd.DataFrame(part) for part in (table, X))
    if first.shape[1] != second.shape[1]:
        return None
    hashes = []
    for part, other in ((first, second), (second, first)):
        alike = {
            i: part.iloc[:, i].to_numpy(float, na_value=np.nan)
            if all(pd.api.types.is_numeric_dtype(side.iloc[:, i]) for side in (part, other))
            else part.iloc[:, i].astype(str).to_numpy(object)
            for i in range(part.shape[1])
        }
        hashes.append(pd.Series(pd.util.hash_pandas_object(pd.DataFrame(alike), index=False).to_numpy()))
    made, real = hashes
    wanted = made.map(real.value_counts()).fillna(0)
    taken = made.groupby(made).cumcount() < wanted
    return ~taken.to_numpy() if int(taken.sum()) == len(real) else None


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, pd.DataFrame) and isinstance(second, pd.DataFrame):
        first, second = first.reset_index(drop=True), second.reset_index(drop=True)
        if list(first.columns) != list(second.columns):
            return False
        return all(
            (
                first[name].astype(object).eq(second[name].astype(object))
                | (first[name].isna() & second[name].isna())
            ).all()
            if first[name].dtype != second[name].dtype
            else first[name].equals(second[name])
            for name in first.columns
        )
    first, second = np.asarray(first), np.asarray(second)
    equal_nan = first.dtype.kind in "fc" and second.dtype.kind in "fc"
    return bool(np.array_equal(first, second, equal_nan=equal_nan))


@dataclass(frozen=True)
class Scores:
    """A judge's scores on test releases, higher where the record seems to be in.

    Parameters
    ----------
    inside : array of shape (n_targets, n_inside)
        Of the releases with the record, which all targets share.
    outside : array of shape (n_targets, n_outside)
        Of those without it.
    threshold : float or array of shape (n_targets, 1)
        From which on the judge claims that the record is in.
    """

    inside: Matrix
    outside: Matrix
    threshold: float | Matrix = 0.5

    def wins(self, target: int) -> Matrix:
        """Return who wins each comparison of a release with and one without: 1, 0, or 1/2 for a tie."""
        a, b = self.inside[target][:, None], self.outside[target][None, :]
        return (a > b) + 0.5 * (a == b)

    @property
    def auc(self) -> Matrix:
        """Area under the ROC curve of each target."""
        return np.array([self.wins(target).mean() for target in range(len(self.inside))])

    @property
    def claims(self) -> tuple[Matrix, Matrix]:
        """Shares of the releases with and without each record for which the judge claims that it is in."""
        return (self.inside > self.threshold).mean(axis=1), (self.outside > self.threshold).mean(axis=1)


def membership_result(
    name: str,
    scores: Scores,
    targets: IntArray,
    X: Any,
    *,
    all_records: bool,
    rng: np.random.Generator,
    details: dict[str, Any],
    claims: tuple[Matrix, Matrix] | None = None,
) -> MembershipResult:
    """Return the result of a game from the scores on its test releases.

    Parameters
    ----------
    name : str
        The attack.
    scores : Scores
        Of the judge.
    targets : array of int
        Positions of the attacked records.
    X : DataFrame or array
        The table, for the evidence.
    all_records : bool
        Whether every record of the class was attacked; else the interval covers the choice of targets too.
    rng : Generator
        Of the bootstrap.
    details : dict
        What else to tell.
    claims : tuple of array, optional
        Shares of claims that each record is in, with and without it, where the scores have no natural threshold.
    """
    auc = scores.auc
    right, wrong = scores.claims if claims is None else claims
    gain = 1.0 - (right - wrong)
    n_inside, n_outside = scores.inside.shape[1], scores.outside.shape[1]
    advantages = [
        difference_interval(r * n_inside, n_inside, w * n_outside, n_outside)
        for r, w in zip(right, wrong, strict=True)
    ]
    gains = 1.0 - np.array(advantages)[:, ::-1]
    draws = _bootstrap(scores, rng)
    lows, highs = np.minimum(np.quantile(draws, [0.025, 0.975], axis=0), 1.0)
    chosen = np.tile(np.arange(len(auc)), (_BOOTSTRAPS, 1))
    if not all_records:
        chosen = rng.integers(len(auc), size=chosen.shape)
    means = np.take_along_axis(draws, chosen, axis=1).mean(axis=1)
    mean_interval = _interval(means)
    order = np.argsort(-auc, kind="stable")
    interval = (max(0.0, 2 * mean_interval[0] - 1), max(0.0, 2 * mean_interval[1] - 1))
    details = {
        "auc": float(auc.mean()),
        "auc_interval": mean_interval,
        "auc_ten_most_exposed": float(auc[order[:_TEN]].mean()),
        "auc_ten_most_exposed_interval": _interval(draws[:, order[:_TEN]].mean(axis=1)),
        "auc_ten_most_exposed_fresh": _fresh_most_exposed(scores),
        "auc_fifty_most_exposed": float(auc[order[:_FIFTY]].mean()),
        "auc_per_target": auc,
        "auc_interval_per_target": np.column_stack([lows, highs]),
        "privacy_gain": float(gain.mean()),
        "privacy_gain_per_target": gain,
        "targets": targets,
        "most_exposed": targets[order[:_TEN]],
        **details,
    }
    evidence = pd.DataFrame(
        {
            "row": targets[order],
            "auc": auc[order],
            "auc_low": lows[order],
            "auc_high": highs[order],
            "privacy_gain": gain[order],
            "gain_low": gains[order, 0],
            "gain_high": gains[order, 1],
        }
    )
    records = (
        X.iloc[targets[order]] if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X)[targets[order]])
    )
    for column, values in records.items():
        evidence.insert(evidence.shape[1], column, values.to_numpy(), allow_duplicates=True)
    return MembershipResult(
        name=name,
        threat="membership",
        risk=float(max(0.0, 2 * auc.mean() - 1)),
        interval=interval,
        evidence=evidence,
        details=details,
        targets=targets,
        auc=auc,
        privacy_gain=gain,
        scores_inside=scores.inside,
        scores_outside=scores.outside,
    )


def _bootstrap(scores: Scores, rng: np.random.Generator) -> Matrix:
    """Return resampled AUCs of shape (n_bootstraps, n_targets).

    The releases with the record are shared by all targets, so they are resampled once for all of them.
    """
    n_inside, n_outside = scores.inside.shape[1], scores.outside.shape[1]
    inside = rng.multinomial(n_inside, np.full(n_inside, 1 / n_inside), size=_BOOTSTRAPS) / n_inside
    draws = np.empty((_BOOTSTRAPS, len(scores.inside)))
    for target in range(len(scores.inside)):
        outside = rng.multinomial(n_outside, np.full(n_outside, 1 / n_outside), size=_BOOTSTRAPS) / n_outside
        draws[:, target] = ((inside @ scores.wins(target)) * outside).sum(axis=1)
    return draws


def _fresh_most_exposed(scores: Scores) -> float:
    """Return the mean AUC of the most exposed targets on releases that had no part in choosing them.

    The highest of many noisy figures are too high; choosing on one half of the releases and measuring on the
    other, both ways, gives a figure without that.
    """
    halves = []
    for parity in (0, 1):
        inside, outside = scores.inside[:, parity::2], scores.outside[:, parity::2]
        if not inside.size or not outside.size:
            return float("nan")
        halves.append(Scores(inside, outside).auc)
    first = np.argsort(-halves[0], kind="stable")[:_TEN]
    second = np.argsort(-halves[1], kind="stable")[:_TEN]
    return float((halves[1][first].mean() + halves[0][second].mean()) / 2)


def _interval(draws: Matrix) -> tuple[float, float]:
    low, high = np.quantile(draws, [0.025, 0.975])
    # Sums of shares may exceed 1 by their rounding.
    return min(float(low), 1.0), min(float(high), 1.0)
