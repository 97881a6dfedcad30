"""How well classes of unequal size are told apart, with intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.checks import check_count
from oversafe._core.errors import InputError
from oversafe.measure.epsilon import check_confidence

FloatArray = NDArray[np.float64]

SCORES = (
    "auc",
    "average_precision",
    "f1",
    "balanced_accuracy",
    "precision",
    "recall",
    "worst_class_accuracy",
    "macro_accuracy",
    "g_mean",
    "mcc",
)
# Resampled counts that are held at a time.
_CHUNK = 4_000_000


def imbalance_scores(
    y_true: Any,
    y_pred: Any = None,
    y_score: Any = None,
    *,
    positive: Any = None,
    labels: Any = None,
    n_bootstrap: int = 1000,
    confidence: float = 0.95,
    random_state: int | None = None,
) -> pd.DataFrame:
    """Return the scores that are used for classes of unequal size, with bootstrap intervals.

    Parameters
    ----------
    y_true : array of shape (n_rows,)
        The classes.
    y_pred : array of shape (n_rows,), optional
        The predicted classes; without them only "auc" and "average_precision" are known.
    y_score : array of shape (n_rows,) or (n_rows, n_classes), optional
        The larger, the more the row looks like the positive class, or like each class in the order of ``labels``:
        ``predict_proba`` or ``decision_function``.
    positive : optional
        The class that precision, recall and F1 are about when there are two; the last of ``labels`` when not given.
    labels : sequence, optional
        All classes, in the order of the columns of ``y_score``; the sorted classes of ``y_true`` when not given.
    n_bootstrap : int, default=1000
        How often the rows are resampled for the intervals; 0 for none.
    confidence : float, default=0.95
        Of the intervals.
    random_state : int, optional
        Makes the intervals repeatable.

    Returns
    -------
    DataFrame
        One row per score, with the columns "score", "low" and "high". What cannot be known is NaN.

    Notes
    -----
    With more than two classes precision, recall and F1 are means over the classes, as are "auc" and
    "average_precision" of each class against the others. "balanced_accuracy" and "macro_accuracy" are two names, both
    in use, of the mean share of each class that is recognised; "worst_class_accuracy" is the smallest of these shares
    and "g_mean" their geometric mean. A precision without any prediction counts as 0, as in scikit-learn.

    The intervals are percentiles over resampled rows; resamples without a class are left out where it is needed.

    Examples
    --------
    >>> from oversafe.measure import imbalance_scores
    >>> y_true, y_pred, y_score = [0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0], [0.1, 0.2, 0.1, 0.6, 0.9, 0.4]
    >>> scores = imbalance_scores(y_true, y_pred, y_score, random_state=0)
    >>> scores.loc[["auc", "f1", "g_mean"], "score"].round(3).to_dict()
    {'auc': 0.875, 'f1': 0.5, 'g_mean': 0.612}
    """
    check_confidence(confidence)
    check_count("n_bootstrap", n_bootstrap, 0)
    truth = np.asarray(y_true).ravel()
    if len(truth) == 0:
        raise InputError("y_true is empty; give at least one row")
    if y_pred is None and y_score is None:
        raise InputError("neither y_pred nor y_score was given; give at least one of them")
    classes = np.unique(truth) if labels is None else np.asarray(labels)
    if len(classes) < 2:
        raise InputError(f"there is one class, {classes.tolist()[0]!r}; name all of them in `labels`")
    codes = _codes(truth, classes, "y_true")
    target = len(classes) - 1
    if positive is not None:
        if len(classes) > 2:
            raise InputError("`positive` was given, and there are more than two classes; leave it out")
        target = int(_codes(np.asarray([positive]), classes, "positive")[0])
    rng = np.random.default_rng(random_state)
    values = dict.fromkeys(SCORES, np.nan)
    resampled: dict[str, FloatArray] = {}
    if y_pred is not None:
        predicted = np.asarray(y_pred).ravel()
        _check_length(predicted, truth, "y_pred")
        k = len(classes)
        cells = np.bincount(codes * k + _codes(predicted, classes, "y_pred"), minlength=k * k)
        for name, value in _from_confusion(cells.reshape(1, k, k), target).items():
            values[name] = float(value[0])
        if n_bootstrap:
            # Resampling rows is resampling the cells of the confusion matrix.
            drawn = rng.multinomial(len(truth), cells / len(truth), size=n_bootstrap)
            resampled.update(_from_confusion(drawn.reshape(n_bootstrap, k, k), target))
    if y_score is not None:
        scores = _score_columns(y_score, truth, len(classes), target)
        columns = [target] if len(classes) == 2 else range(len(classes))
        parts = [_Ranking(scores[:, i], codes == c) for i, c in enumerate(columns)]
        for at, name in enumerate(("auc", "average_precision")):
            values[name] = float(np.mean([part.scores(part.counts[None])[at][0] for part in parts]))
        if n_bootstrap:
            draws = [part.resampled(n_bootstrap, rng) for part in parts]
            for at, name in enumerate(("auc", "average_precision")):
                resampled[name] = np.mean([draw[at] for draw in draws], axis=0)
    ends = {name: _ends(resampled.get(name), confidence) for name in SCORES}
    return pd.DataFrame(
        {
            "score": pd.Series(values),
            "low": pd.Series({name: end[0] for name, end in ends.items()}),
            "high": pd.Series({name: end[1] for name, end in ends.items()}),
        }
    ).loc[list(SCORES)]


def _codes(values: NDArray[Any], classes: NDArray[Any], name: str) -> NDArray[np.int64]:
    codes = pd.Index(classes).get_indexer(pd.Index(values))
    if (codes < 0).any():
        first = values[[int(np.argmax(codes < 0))]].tolist()[0]
        raise InputError(
            f"{name} has the class {first!r}; the classes are {classes.tolist()}, name others in `labels`"
        )
    return codes.astype(np.int64)


def _check_length(values: NDArray[Any], truth: NDArray[Any], name: str) -> None:
    if len(values) != len(truth):
        raise InputError(f"{name} has {len(values)} rows and y_true has {len(truth)}; give as many")


def _score_columns(y_score: Any, truth: NDArray[Any], n_classes: int, target: int) -> FloatArray:
    scores = np.asarray(y_score, dtype=np.float64)
    _check_length(scores, truth, "y_score")
    if np.isnan(scores).any():
        raise InputError("y_score has missing values; a score is needed for every row")
    if scores.ndim == 2 and scores.shape[1] == n_classes:
        return scores[:, [target]] if n_classes == 2 else scores
    if n_classes > 2 or (scores.ndim == 2 and scores.shape[1] != 1):
        raise InputError(
            f"y_score has the shape {scores.shape}; one column for each of {n_classes} classes is expected"
        )
    return scores.reshape(-1, 1)


def _from_confusion(cells: NDArray[np.int64], target: int) -> dict[str, FloatArray]:
    """Return scores of confusion matrices, of shape (n, true, predicted)."""
    cells = cells.astype(np.float64)
    right = np.diagonal(cells, axis1=1, axis2=2)
    true, predicted = cells.sum(axis=2), cells.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        recall = np.where(true > 0, right / true, np.nan)
        precision = np.where(predicted > 0, right / predicted, 0.0)
        f1 = np.where(true + predicted > 0, 2 * right / (true + predicted), 0.0)
        total = cells.sum(axis=(1, 2))
        covariance = right.sum(axis=1) * total - (true * predicted).sum(axis=1)
        spread = np.sqrt((total**2 - (true**2).sum(axis=1)) * (total**2 - (predicted**2).sum(axis=1)))
        mcc = np.where(spread > 0, covariance / spread, 0.0)
    one = slice(None) if cells.shape[1] > 2 else slice(target, target + 1)
    balanced = recall.mean(axis=1)
    return {
        "f1": f1[:, one].mean(axis=1),
        "balanced_accuracy": balanced,
        "precision": precision[:, one].mean(axis=1),
        "recall": recall[:, one].mean(axis=1),
        "worst_class_accuracy": recall.min(axis=1),
        "macro_accuracy": balanced,
        "g_mean": np.prod(recall, axis=1) ** (1 / cells.shape[1]),
        "mcc": mcc,
    }


class _Ranking:
    """Rows of one class among others by their score: how many of each share a score."""

    def __init__(self, scores: FloatArray, is_positive: NDArray[np.bool_]):
        _, place = np.unique(-scores, return_inverse=True)
        cells = np.bincount(2 * place + is_positive, minlength=2 * (place.max() + 1))
        # Only the cells that hold rows, so that a resample draws from no more of them than there are rows.
        self.used = np.flatnonzero(cells)
        self.counts = cells[self.used]
        self.positive = (self.used % 2).astype(bool)
        self.starts = np.flatnonzero(np.r_[True, np.diff(self.used // 2) > 0])

    def scores(self, counts: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
        """Return the area under the ROC curve and the average precision of counts, of shape (n, n_cells)."""
        ones = np.add.reduceat(np.where(self.positive, counts, 0), self.starts, axis=1).astype(np.float64)
        others = np.add.reduceat(np.where(self.positive, 0, counts), self.starts, axis=1).astype(np.float64)
        found, missed = np.cumsum(ones, axis=1), np.cumsum(others, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            # From the highest score down: an ordinary row is beaten by all before it, and by half of its ties.
            area = (others * (found - ones / 2)).sum(axis=1) / (found[:, -1] * missed[:, -1])
            precision = np.where(found + missed > 0, found / (found + missed), 0.0)
            average = (ones * precision).sum(axis=1) / found[:, -1]
        return area, average

    def resampled(self, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return both scores of resampled rows."""
        total = int(self.counts.sum())
        step = max(1, _CHUNK // len(self.counts))
        parts = [
            self.scores(rng.multinomial(total, self.counts / total, size=min(step, n - start)))
            for start in range(0, n, step)
        ]
        return np.concatenate([area for area, _ in parts]), np.concatenate([average for _, average in parts])


def _ends(values: FloatArray | None, confidence: float) -> tuple[float, float]:
    if values is None or np.isnan(values).all():
        return np.nan, np.nan
    low, high = np.nanquantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)
