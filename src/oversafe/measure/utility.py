"""Train on the release, test on real rows that had no part in it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import stats

from oversafe._core.checks import check_count, check_pandas
from oversafe._core.errors import InputError
from oversafe._core.text import counted
from oversafe.attack.membership.game import is_protector, refuse_class, released, seeded_copy
from oversafe.attack.records import Records, read_records
from oversafe.data.rows.values import value_keys
from oversafe.measure.classifiers import Classifiers, make_classifiers, tuned
from oversafe.measure.leakage import refuse_overlap
from oversafe.measure.scores import SCORES, imbalance_scores

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Table = tuple[Any, Any]

# Rarer categories of a column with more of them share no column of the matrix.
_MOST_CATEGORIES = 1000


@dataclass(frozen=True)
class Utility:
    """Scores on real rows of classifiers that were trained on releases.

    Parameters
    ----------
    scores : DataFrame
        One row per repeat, fold and classifier: the scores of
        :func:`~oversafe.measure.imbalance_scores`, and seconds.
    overall : DataFrame
        One row per score: its mean over all of them, and its 95 % interval over the folds.
    by_classifier : DataFrame
        The mean scores of each classifier.
    """

    scores: pd.DataFrame
    overall: pd.DataFrame
    by_classifier: pd.DataFrame


def train_on_synthetic(
    protector: Any,
    X: Any,
    y: Any,
    *,
    classifiers: Classifiers = "quick",
    tune: bool = False,
    n_folds: int = 5,
    n_repeats: int = 1,
    positive: Any = None,
    random_state: int | None = None,
    n_jobs: int | None = None,
) -> Utility:
    """Train classifiers on releases of training folds and score them on the real test folds.

    The protector sees the training rows of each fold alone, and a release that holds test rows is refused.

    Parameters
    ----------
    protector : object, callable or None
        With ``fit_resample(X, y)``, or ``fit(X, y)`` and ``sample()``; or a function of X and y that returns both; or
        None for the original rows, which is what a release can hope for. It is copied for each fold, with a seed of
        its own where it takes one.
    X : DataFrame or array of shape (n_rows, n_features)
        Columns of any kind, with missing values or not.
    y : Series or array of shape (n_rows,)
        The classes, numbers or text, two or more.
    classifiers : {"quick", "paper"} or mapping of str to classifier, default="quick"
        Logistic regression and a random forest; the six of the UMAP-SMOTENC paper (extra "boost"); or your own.
    tune : bool, default=False
        Whether the named classifiers are tuned on the released rows, by folds within them.
    n_folds : int, default=5
        Stratified folds.
    n_repeats : int, default=1
        How often the folds are drawn.
    positive : optional
        The class that precision, recall and F1 are about when there are two; the rarer one when not given.
    random_state : int, optional
        Of folds, releases and classifiers.
    n_jobs : int, optional
        As in joblib.

    Returns
    -------
    Utility
        ``scores``, ``overall`` and ``by_classifier``.

    Raises
    ------
    InputError
        If a class has fewer rows than there are folds, or a release holds test rows.

    Notes
    -----
    Numbers are standardised by the released rows, missing ones replaced by their median and marked; categories become
    one column each. A release without rows of some class gives classifiers that do not know it. The interval is
    Nadeau and Bengio's for resampled scores, which allows for the folds' shared training rows.

    Examples
    --------
    >>> from oversafe.data import load_dataset
    >>> from oversafe.measure import train_on_synthetic
    >>> from oversafe.protect import SMOTE
    >>> X, y = load_dataset("breast_cancer")
    >>> utility = train_on_synthetic(SMOTE(), X, y, n_folds=3, random_state=0)
    >>> bool(utility.overall.loc["auc", "mean"] > 0.9)
    True
    """
    table, labels = as_table(X, y)
    splits = list(folds(labels, n_folds, n_repeats, random_state))
    chosen = positive_class(labels, positive)
    models = make_classifiers(classifiers, random_state)

    def run(number: int, train: IntArray, test: IntArray) -> pd.DataFrame:
        rows = table.iloc[train].reset_index(drop=True), labels.iloc[train].reset_index(drop=True)
        seed = None if random_state is None else random_state + number
        release = make_release(protector, *rows, seed)
        scored = train_on_release(
            release,
            (table.iloc[test], labels.iloc[test]),
            train=rows[0],
            classifiers=models,
            tune=tune,
            positive=chosen,
            random_state=random_state,
        )
        scored.insert(0, "repeat", number // n_folds)
        scored.insert(1, "fold", number % n_folds)
        return scored

    parts = Parallel(n_jobs=n_jobs)(delayed(run)(number, *split) for number, split in enumerate(splits))
    return summarize(pd.concat(parts, ignore_index=True), n_folds)


def train_on_release(
    release: Table,
    test: Table,
    *,
    train: Any = None,
    classifiers: Classifiers = "quick",
    tune: bool = False,
    positive: Any = None,
    random_state: int | None = None,
) -> pd.DataFrame:
    """Return the scores on test rows of classifiers that were trained on one release.

    Parameters
    ----------
    release : tuple of (X, y)
        The released rows and their classes.
    test : tuple of (X, y)
        Real rows that had no part in the release, which is checked.
    train : DataFrame or array, optional
        Features of the rows that the release was made from, which make the check sharper.
    classifiers, tune, positive, random_state
        See :func:`train_on_synthetic`.

    Returns
    -------
    DataFrame
        One row per classifier: its name, the scores of :func:`~oversafe.measure.imbalance_scores` and the seconds of
        its training.

    Raises
    ------
    InputError
        If the release holds more test rows than chance explains; see the notes of
        :func:`~oversafe.measure.release_overlap`.
    """
    X, y = as_table(*release)
    X_test, y_test = as_table(*test)
    if len(X) == 0:
        raise InputError("the release has no rows; nothing can be trained on it")
    refuse_overlap(X, X_test, train)
    keys, test_keys = value_keys(y), value_keys(y_test)
    classes = sorted(set(keys) | set(test_keys))
    if len(classes) < 2:
        raise InputError(f"the rows have one class, {classes[0]!r}; at least two are needed")
    if positive is not None and len(classes) > 2:
        raise InputError("`positive` was given, and there are more than two classes; leave it out")
    if len(classes) == 2:
        last = value_keys(pd.Series([positive_class(y_test, positive)])).iloc[0]
        classes.sort(key=lambda name: name == last)
    place = {name: at for at, name in enumerate(classes)}
    codes, test_codes = (k.map(place).to_numpy(dtype=np.int64) for k in (keys, test_keys))
    features, test_features = _matrices(read_records({"real": X, "test": X_test}))
    present, numbered = np.unique(codes, return_inverse=True)
    fewest = int(np.bincount(numbered).min())
    rows = []
    for name, model in make_classifiers(classifiers, random_state).items():
        begin = perf_counter()
        probabilities = np.zeros((len(test_codes), len(classes)))
        if len(present) == 1:
            probabilities[:, present[0]] = 1.0
        else:
            fitted = _fit(tuned(name, model, fewest) if tune else model, features, numbered)
            probabilities[:, present] = _probabilities(fitted, test_features)
        predicted = np.argmax(probabilities, axis=1)
        scores = imbalance_scores(
            test_codes,
            predicted,
            probabilities[:, -1] if len(classes) == 2 else probabilities,
            labels=np.arange(len(classes)),
            n_bootstrap=0,
        )["score"]
        rows.append({"classifier": name, **scores.to_dict(), "seconds": perf_counter() - begin})
    return pd.DataFrame(rows)


def summarize(scores: pd.DataFrame, n_folds: int) -> Utility:
    """Return the means of the scores, with intervals over the folds."""
    by_fold = scores.groupby(["repeat", "fold"])[list(SCORES)].mean()
    half = half_width(by_fold, n_folds)
    mean = by_fold.mean()
    bounded = [name for name in SCORES if name != "mcc"]
    low, high = mean - half, mean + half
    low[bounded], high[bounded] = low[bounded].clip(lower=0.0), high[bounded].clip(upper=1.0)
    overall = pd.DataFrame({"mean": mean, "low": low, "high": high}).loc[list(SCORES)]
    by_classifier = scores.groupby("classifier", sort=False)[[*SCORES, "seconds"]].mean()
    return Utility(scores, overall, by_classifier)


def half_width(by_fold: Any, n_folds: int) -> Any:
    """Return half of the 95 % interval of the means over all folds of all repetitions; NaN of a single one."""
    n = len(by_fold)
    # 1/n, and the test rows' share of the training rows for their overlap (Nadeau and Bengio 2003).
    scale = np.sqrt(1 / n + 1 / max(n_folds - 1, 1))
    return by_fold.std(ddof=1) * scale * stats.t.ppf(0.975, n - 1)


def as_table(X: Any, y: Any) -> tuple[pd.DataFrame, pd.Series]:
    """Return features and labels as pandas has them, numbered from 0."""
    check_pandas(X)
    table = X.reset_index(drop=True) if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
    labels = y.reset_index(drop=True) if isinstance(y, pd.Series) else pd.Series(np.asarray(y).ravel())
    if len(table) != len(labels):
        raise InputError(f"X has {len(table)} rows and y has {len(labels)}; give as many labels as rows")
    if labels.isna().any():
        raise InputError(f"{int(labels.isna().sum())} rows have no label; drop or label them")
    return table, labels


def folds(
    labels: pd.Series, n_folds: int, n_repeats: int, random_state: int | None
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the training and test rows of stratified folds."""
    from sklearn.model_selection import RepeatedStratifiedKFold

    for name, value, least in (("n_folds", n_folds, 2), ("n_repeats", n_repeats, 1)):
        check_count(name, value, least)
    keys = value_keys(labels)
    counts = keys.value_counts()
    if len(counts) < 2:
        raise InputError("y has a single class; at least two are needed")
    if counts.iloc[-1] < n_folds:
        raise InputError(
            f"class {counts.index[-1]!r} has {counted(int(counts.iloc[-1]), 'row')}, and each of {n_folds} folds needs "
            "one; leave the class out, or use fewer folds"
        )
    splitter = RepeatedStratifiedKFold(n_splits=n_folds, n_repeats=n_repeats, random_state=random_state)
    yield from splitter.split(np.zeros(len(keys)), keys)


def positive_class(labels: pd.Series, positive: Any = None) -> Any:
    """Return the class that two-class scores are about, the given one or the rarer; None of more than two."""
    counts = labels.value_counts()
    if positive is None:
        return counts.index[-1] if len(counts) <= 2 else None
    if len(counts) > 2:
        raise InputError("`positive` was given, and there are more than two classes; leave it out")
    if value_keys(pd.Series([positive])).iloc[0] not in set(value_keys(labels)):
        raise InputError(f"positive = {positive!r} is no class; the classes are {counts.index.tolist()}")
    return positive


def make_release(protector: Any, X: pd.DataFrame, y: pd.Series, seed: int | None) -> Table:
    """Return what a protector, a function, or nothing at all makes of a table."""
    if protector is None:
        return X, y
    refuse_class(protector)
    if callable(protector) and not is_protector(protector):
        return protector(X, y)
    return released(protector if seed is None else seeded_copy(protector, seed), X, y)


def _fit(model: Any, features: FloatArray, codes: IntArray) -> Any:
    from sklearn.base import clone
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        # A score from the last step is a score; whoever tunes sees it in the figures.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(model).fit(features, codes)


def _probabilities(model: Any, features: FloatArray) -> FloatArray:
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(features), dtype=np.float64)
    if not hasattr(model, "decision_function"):
        raise InputError(
            f"{type(model).__name__} has neither predict_proba nor decision_function; give a classifier that ranks"
        )
    scores = np.asarray(model.decision_function(features), dtype=np.float64)
    if scores.ndim == 1:
        return np.column_stack([-scores, scores])
    return scores


def _matrices(records: Records) -> tuple[FloatArray, FloatArray]:
    """Return released and test rows as matrices, with every quantity taken from the released rows."""
    made, test = records.codes["real"], records.codes["test"]
    blocks: list[FloatArray] = []
    n = made.shape[1]
    for place in range(len(made)):
        column, values = made[place], np.concatenate([made[place], test[place]])
        if place < records.n_numbers:
            gaps = np.isnan(column)
            middle = float(np.median(column[~gaps])) if not gaps.all() else 0.0
            filled = np.where(np.isnan(values), middle, values)
            centre, spread = float(filled[:n].mean()), float(filled[:n].std())
            scale = spread if np.isfinite(spread) and spread > 0 else 1.0
            blocks.append(((filled - centre) / scale)[:, None])
            if gaps.any():
                blocks.append(np.isnan(values)[:, None].astype(float))
            continue
        known, counts = np.unique(column[~np.isnan(column)], return_counts=True)
        kept = known[np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES]]
        blocks.append((values[:, None] == kept).astype(float))
    matrix = np.hstack(blocks)
    if not matrix.shape[1]:
        raise InputError("the release has no value in any column; nothing can be trained on it")
    return matrix[:n], matrix[n:]
