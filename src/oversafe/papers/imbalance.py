"""The experiments of "Differential Privacy Under Class Imbalance": what is fitted, to what, and how it is scored.

Features are as in the data sets, a fifth of the rows is for testing, and the learners keep their packages' settings;
the published figures without privacy come out of that. Their weighted learners do not use the weights that the paper
prints (n1 / n and n0 / n, under which weighting after SMOTE would change nothing): what fits the figures is a weight
of 1 for the rare class and 2 n0 n1 / n^2 for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split

from oversafe._core.checks import check_choice
from oversafe._core.errors import import_extra
from oversafe.data.datasets import load_dataset
from oversafe.data.one_hot import fold_one_hot
from oversafe.data.schema import Schema
from oversafe.measure.scores import imbalance_scores


class Split(NamedTuple):
    """One split of a data set; label 1 is the rare class."""

    X: pd.DataFrame
    y: NDArray[np.int64]
    X_test: pd.DataFrame
    y_test: NDArray[np.int64]


def split_of(name: str, seed: int, *, folded: bool = False) -> Split:
    """Return a stratified split of a data set, four fifths for training.

    Parameters
    ----------
    name : str
        One of ``EIGHT``, or another data set of two classes.
    seed : int
        Of the split.
    folded : bool, default=False
        Whether one-hot columns become categories again.
    """
    X, labels = load_dataset(name)
    if folded:
        X = fold_one_hot(X)
    y = (labels == labels.value_counts().idxmin()).to_numpy().astype(np.int64)
    kept, tested = train_test_split(np.arange(len(y)), test_size=0.2, stratify=y, random_state=seed)
    return Split(X.iloc[kept], y[kept], X.iloc[tested], y[tested])


def scores_of(model: Any, split: Split) -> dict[str, float]:
    """Return the scores of a fitted classifier on the test rows."""
    found = imbalance_scores(
        split.y_test, model.predict(split.X_test), model.predict_proba(split.X_test)[:, 1], n_bootstrap=0
    )
    return {str(key): float(value) for key, value in found["score"].items()}


def published_weights(y: NDArray[np.int64]) -> dict[int, float]:
    """Return the class weights that the published figures of the weighted learners fit."""
    share = float(y.mean())
    return {0: 2 * share * (1 - share), 1: 1.0}


# ----------------------------------------------------------------------------------------- without privacy


def _logistic(y: NDArray[np.int64], weighted: bool, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=500, class_weight=published_weights(y) if weighted else None)


def _boosted(y: NDArray[np.int64], weighted: bool, seed: int) -> Any:
    xgboost = import_extra("xgboost", "boost", "the boosted trees of the published tables")
    # Weights of 1 and w0 are those of 1 / w0 and 1, but for how much the trees are regularised, which counts here.
    return _Weighted(xgboost.XGBClassifier(n_jobs=1, random_state=seed), weighted)


class _Weighted:
    """A learner that takes the published weights as weights of the rows."""

    def __init__(self, model: Any, weighted: bool):
        self.model, self.weighted = model, weighted

    def fit(self, X: Any, y: NDArray[np.int64]) -> _Weighted:
        weights = published_weights(y)
        rows = np.where(y == 1, weights[1], weights[0]) if self.weighted else None
        self.model.fit(X, y, sample_weight=rows)
        return self

    def predict(self, X: Any) -> Any:
        return self.model.predict(X)

    def predict_proba(self, X: Any) -> Any:
        return self.model.predict_proba(X)


# The rows of the published tables: what is done to the rows first, the learner, and whether it is weighted.
BASELINES: dict[str, tuple[str, Callable[[NDArray[np.int64], bool, int], Any], bool]] = {
    "Identity + NonPriv. LogReg": ("Identity", _logistic, False),
    "Identity + NonPriv. Weighted LogReg": ("Identity", _logistic, True),
    "Identity + NonPriv. XGBoost": ("Identity", _boosted, False),
    "Identity + NonPriv. Weighted XGBoost": ("Identity", _boosted, True),
    "SMOTE + NonPriv. LogReg": ("SMOTE", _logistic, False),
    "SMOTE + NonPriv. Weighted LogReg": ("SMOTE", _logistic, True),
    "SMOTE + NonPriv. Weighted XGB": ("SMOTE", _boosted, True),
    "SMOTE + NonPriv. XGBoost": ("SMOTE", _boosted, False),
}


def baseline_scores(name: str, approach: str, split: int) -> dict[str, float]:
    """Return the scores of a learner without privacy on one split.

    Parameters
    ----------
    name : str
        The data set.
    approach : str
        A row of the published tables, one of ``BASELINES``.
    split : int
        The seed.
    """
    data = split_of(name, split)
    return scores_of(fit_baseline(approach, data.X, data.y, split), data)


def fit_baseline(approach: str, X: pd.DataFrame, y: NDArray[np.int64], seed: int) -> Any:
    """Return a fitted learner without privacy, one of ``BASELINES``."""
    from imblearn.over_sampling import SMOTE

    check_choice("approach", approach, BASELINES)
    first, learner, weighted = BASELINES[approach]
    if first == "SMOTE":
        X, y = SMOTE(random_state=seed).fit_resample(X, y)
    return learner(y, weighted, seed).fit(X, y)


# -------------------------------------------------------------------------------------------- with privacy


def _linear(weighted: bool) -> Callable[..., Any]:
    def make(**settings: Any) -> Any:
        from oversafe.learn.linear import PrivateLogisticRegression

        if weighted:
            return PrivateLogisticRegression(class_weight="balanced", calibration="paper", **settings)
        return PrivateLogisticRegression(class_weight=None, method="objective", **settings)

    return make


def _synthesis(synthesizer: str) -> Callable[..., Any]:
    def make(**settings: Any) -> Any:
        import oversafe.protect as protect
        from oversafe.learn.balanced_synthesis import BalancedSynthesisClassifier

        xgboost = import_extra("xgboost", "boost", "the boosted trees of the published tables")
        trees = xgboost.XGBClassifier(n_jobs=1, random_state=0)
        return BalancedSynthesisClassifier(
            getattr(protect, synthesizer)(), trees, n_samples=4_000, **settings
        )

    return make


def _transformer(**settings: Any) -> Any:
    from oversafe.learn.ft_transformer import PrivateFTTransformer

    return PrivateFTTransformer(class_weight="balanced", **settings)


def _chosen(**settings: Any) -> Any:
    from oversafe.learn.chooser import PrivateClassifier

    return PrivateClassifier(**settings)


# The paper's four first; then its other synthesizer, and what this package takes when nothing is said.
PRIVATE: dict[str, Callable[..., Any]] = {
    "GEM + XGBoost": _synthesis("GEM"),
    "Priv. LogReg": _linear(False),
    "Priv. Weighted LogReg": _linear(True),
    "Priv. Weighted FTT": _transformer,
    "PrivBayes + XGBoost": _synthesis("PrivBayes"),
    "PrivateClassifier": _chosen,
}
PUBLISHED_METHODS = tuple(PRIVATE)[:4]
EPSILONS = (0.1, 1.0, 5.0)
RANKED = (
    "auc",
    "f1",
    "balanced_accuracy",
    "precision",
    "recall",
    "worst_class_accuracy",
    "macro_accuracy",
    "g_mean",
)


def private_scores(name: str, method: str, epsilon: float, split: int) -> dict[str, float]:
    """Return the scores of a private learner on one split.

    Parameters
    ----------
    name : str
        The data set. Its ranges, categories and labels count as public, for every method alike.
    method : str
        One of ``PRIVATE``.
    epsilon : float
        The budget.
    split : int
        The seed, of the noise too.
    """
    data = split_of(name, split, folded=True)
    schema = Schema.infer(pd.concat([data.X, data.X_test]))
    return scores_of(fit_private(method, epsilon, data.X, data.y, schema, split), data)


def fit_private(
    method: str, epsilon: float, X: pd.DataFrame, y: NDArray[np.int64], schema: Schema, seed: int
) -> Any:
    """Return a fitted private learner, one of ``PRIVATE``."""
    check_choice("method", method, PRIVATE)
    return PRIVATE[method](epsilon=epsilon, schema=schema, classes=[0, 1], random_state=seed).fit(X, y)


def mean_ranks(table: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """Return the mean rank of each method by each score, 1 being the best; ties share their ranks.

    Parameters
    ----------
    table : DataFrame
        A row for each data set, method, epsilon and split, as :func:`~oversafe.experiment.run_grid` returns it.
    methods : sequence of str
        Those that are ranked against each other.
    """
    own = table[table["method"].isin(methods)]
    ranks = own.groupby(["name", "epsilon", "split"])[list(RANKED)].rank(ascending=False)
    return ranks.groupby(own["method"]).mean().loc[list(methods)]
