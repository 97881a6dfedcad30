"""SMOTE's releases for the membership game, drawn from its segments and summed up in compiled code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.errors import InputError
from oversafe.attack.membership._kernels import smote_histograms, smote_summaries
from oversafe.attack.membership.statistics import N_BINS, QUARTILES, RADII, Matrix, Statistics, Surroundings
from oversafe.data.infer import column_decimals

IntArray = NDArray[np.int64]

# A quantile is outside its window with probability 6e-5; its column is then sorted.
_DEVIATIONS = 4.0
# Stratified points on each segment that stand for its distribution when the windows are laid out.
_STRATA = 8
# Beyond this the products of two values may overflow.
_LARGEST = 1e150
# Of the sums that wait for their matrix product.
_MOST_FLOATS = 4_000_000


def smote_neighbors(protector: Any, X: Any) -> int | None:
    """Return SMOTE's number of neighbours if this is plain SMOTE on float columns, else None.

    Subclasses and other dtypes are left to the general path: imbalanced-learn rounds what it computes to the
    dtype of the table, and our adapter restores integers, categories and decimals.
    """
    from imblearn.over_sampling import SMOTE

    from oversafe.protect import SMOTE as OwnSMOTE

    if type(protector) not in (SMOTE, OwnSMOTE) or not isinstance(protector.k_neighbors, int):
        return None
    dtypes = X.dtypes if isinstance(X, pd.DataFrame) else [getattr(X, "dtype", None)]
    if hasattr(X, "tocsr") or any(dtype != np.float64 for dtype in dtypes):
        return None
    if getattr(protector, "schema", None) is not None:
        return None
    values = np.asarray(X)
    if not (np.abs(values) < _LARGEST).all():
        return None
    if type(protector) is OwnSMOTE and any(own is not None for own in column_decimals(values)):
        return None
    return protector.k_neighbors


def n_added(protector: Any, y: NDArray[Any], label: Any) -> int:
    """Return how many rows of a class SMOTE adds."""
    from imblearn.utils import check_sampling_strategy

    return int(check_sampling_strategy(protector.sampling_strategy, y, "over-sampling").get(label, 0))


class Neighbors:
    """The neighbour lists of a class, with and without each record.

    One search with two more neighbours than SMOTE uses gives every leave-one-out graph: where a list held
    the record that is left out, its next neighbour moves up. With records at equal distances (copies, one-hot
    columns) imbalanced-learn's lists depend on the search's own order, which removing a record can change
    anywhere; the search is then repeated without the record, as imbalanced-learn would.
    """

    def __init__(self, points: Matrix, k_neighbors: int) -> None:
        if len(points) < k_neighbors + 2:
            raise InputError(
                f"the class has {len(points)} rows; the game leaves one out and SMOTE with {k_neighbors} neighbours "
                f"needs {k_neighbors + 1} others, so give at least {k_neighbors + 2}, or ask for fewer neighbours"
            )
        self.points = points
        self.k = k_neighbors
        self.lists = self._search(points)
        n_searched = min(k_neighbors + 3, len(points))
        distances, found = self._neighbors(points, n_searched)
        self._longer = found[:, 1 : k_neighbors + 2]
        gaps = np.diff(distances[:, : k_neighbors + 3], axis=1)
        crucial = [0, *range(k_neighbors, gaps.shape[1])]
        self.has_ties = bool((gaps[:, crucial] <= 1e-12 * distances[:, -1:]).any())

    @staticmethod
    def _neighbors(points: Matrix, n_neighbors: int) -> tuple[Matrix, IntArray]:
        from sklearn.neighbors import NearestNeighbors

        return NearestNeighbors(n_neighbors=n_neighbors).fit(points).kneighbors(points)

    def _search(self, points: Matrix) -> IntArray:
        # As imbalanced-learn does, which takes the first for the record itself.
        return self._neighbors(points, self.k + 1)[1][:, 1:]

    def segments(self, without: int | None = None) -> tuple[Matrix, Matrix]:
        """Return start and span of every segment from a record to a neighbour, of shape (n_columns, n_segments)."""
        if without is None:
            kept, lists = self.points, self.lists
            ends = kept[lists]
        elif self.has_ties:
            kept = np.delete(self.points, without, axis=0)
            ends = kept[self._search(kept)]
        else:
            rows = np.delete(np.arange(len(self.points)), without)
            longer = self._longer[rows]
            held = longer == without
            # Where the record is not in the longer list, its last entry goes.
            held[~held.any(axis=1), -1] = True
            ends = self.points[longer[~held].reshape(len(rows), self.k)]
            kept = self.points[rows]
        starts = np.repeat(kept, self.k, axis=0)
        spans = ends.reshape(-1, kept.shape[1]) - starts
        return np.ascontiguousarray(starts.T), np.ascontiguousarray(spans.T)


@dataclass(frozen=True)
class _Layout:
    """Where each quantile is looked for; see :func:`smote_summaries`."""

    windows: Matrix
    below: IntArray
    below_ends: IntArray
    near: IntArray
    near_ends: IntArray


def _lay_out(starts: Matrix, spans: Matrix, n_rows: int) -> _Layout:
    d = len(starts)
    steps = (np.arange(_STRATA) + 0.5) / _STRATA
    pilot = np.sort((starts[:, :, None] + spans[:, :, None] * steps).reshape(d, -1), axis=1)
    slack = _DEVIATIONS * np.sqrt(QUARTILES * (1 - QUARTILES) / n_rows) + 1.0 / n_rows
    last = pilot.shape[1] - 1
    first_place = np.clip(np.floor((QUARTILES - slack) * last) - 1, 0, last).astype(np.int64)
    last_place = np.clip(np.ceil((QUARTILES + slack) * last) + 1, 0, last).astype(np.int64)
    windows = np.stack([pilot[:, first_place], pilot[:, last_place]], axis=2)
    lows, highs = starts + np.minimum(spans, 0), starts + np.maximum(spans, 0)
    # A hair is left for rounding: a row at step 1 - 2^-53 may round beyond its segment's end.
    hair = 4 * np.finfo(float).eps * (np.abs(starts) + np.abs(spans))
    flat = spans == 0
    under = np.where(flat, highs, highs + hair)[:, None, :] < windows[:, :, :1]
    over = np.where(flat, lows, lows - hair)[:, None, :] > windows[:, :, 1:]
    crossing = ~(under | over)
    return _Layout(windows, *_lists(under), *_lists(crossing))


def _lists(chosen: NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Return the chosen segments of each column and quantile, one list after the other, and where they end."""
    flat = chosen.reshape(-1, chosen.shape[2])
    ends = np.concatenate([[0], np.cumsum(flat.sum(axis=1))])
    return np.ascontiguousarray(np.nonzero(flat)[1]), ends


@dataclass
class SmoteReleases:
    """Draws releases of SMOTE from its segments and returns their features.

    Parameters
    ----------
    starts, spans : array of shape (n_columns, n_segments)
        The segments.
    n_rows : int
        Synthetic rows of each release.
    statistics : Statistics
        The features.
    """

    starts: Matrix
    spans: Matrix
    n_rows: int
    statistics: Statistics

    def __post_init__(self) -> None:
        self._layout = _lay_out(self.starts, self.spans, self.n_rows)
        self._by_low = np.argsort(self.starts + np.minimum(self.spans, 0), axis=1)
        self._by_high = np.argsort(-(self.starts + np.maximum(self.spans, 0)), axis=1)

    def draw(
        self,
        n_releases: int,
        seed: np.random.SeedSequence,
        surroundings: Surroundings | None = None,
        targets: IntArray | None = None,
    ) -> tuple[Matrix, Matrix]:
        """Return the features of new releases.

        Parameters
        ----------
        n_releases : int
            How many.
        seed : SeedSequence
            Of their random numbers.
        surroundings : Surroundings, optional
            Also look around targets.
        targets : array of int, optional
            Which of the targets.

        Returns
        -------
        features : array of shape (n_releases, n_features)
            Statistics of the whole release.
        local : array of shape (n_releases, n_targets, n_local)
            What lies around each target.
        """
        state = seed.generate_state(4, np.uint64).astype(np.uint64)
        if targets is None:
            targets = np.empty(0, dtype=np.int64)
        anchors, radii = self._anchors(surroundings, targets)
        local = np.zeros((n_releases, len(targets), 1 + len(RADII)))
        n_segments = self.starts.shape[1]
        batch = max(1, min(n_releases, _MOST_FLOATS // (3 * n_segments)))
        features = []
        for first in range(0, n_releases, batch):
            size = min(batch, n_releases - first)
            features.append(self._draw_batch(state, size, anchors, radii, local[first : first + size]))
        return np.vstack(features), local

    def _draw_batch(
        self, state: NDArray[np.uint64], size: int, anchors: Matrix, radii: Matrix, local: Matrix
    ) -> Matrix:
        statistics, d = self.statistics, len(self.starts)
        orders = means = products = histograms = None
        if statistics.needs_summaries or local.size:
            layout = self._layout
            moments = np.empty((size, 3 * self.starts.shape[1]))
            orders = np.empty((size, d, len(QUARTILES) + 2))
            smote_summaries(
                state, self.n_rows, size, self.starts, self.spans, self._by_low, self._by_high, QUARTILES,
                layout.windows, layout.below, layout.below_ends, layout.near, layout.near_ends,
                moments, orders, anchors, radii, local,
            )  # fmt: skip
            sums = moments @ self._weights()
            means, products = sums[:, :d] / self.n_rows, sums[:, d:]
        if statistics.needs_histograms:
            histograms = np.zeros((size, d * N_BINS))
            smote_histograms(
                state, self.n_rows, size, self.starts, self.spans, statistics.low,
                statistics.bins_per_unit, N_BINS, histograms,
            )  # fmt: skip
        if not statistics.needs_summaries:
            orders = None
        return statistics.combine(self.n_rows, orders, means, products, histograms)

    def _weights(self) -> Matrix:
        """Return what turns the sums of 1, u and u^2 on the segments into sums of values and of their products."""
        # Around the centre, so that the variances keep their digits.
        a, b = self.starts - self.statistics.center[:, None], self.spans
        rows, columns = self.statistics.pairs
        linear = np.vstack([a.T, b.T, np.zeros_like(a.T)])
        square = np.vstack(
            [
                (a[rows] * a[columns]).T,
                (a[rows] * b[columns] + b[rows] * a[columns]).T,
                (b[rows] * b[columns]).T,
            ]
        )
        return np.hstack([linear, square])

    def _anchors(self, surroundings: Surroundings | None, targets: IntArray) -> tuple[Matrix, Matrix]:
        """Return the squared distances along every segment as polynomials in the step."""
        if surroundings is None or not len(targets):
            return np.empty((0, 4, self.starts.shape[1])), np.empty((0, len(RADII)))
        scale = surroundings.scale[:, None]
        starts, spans = self.starts / scale, self.spans / scale
        anchors = np.empty((len(targets), 4, starts.shape[1]))
        for at, target in enumerate(targets):
            away = starts - surroundings.targets[target][:, None]
            c0, c1, c2 = (away**2).sum(axis=0), 2 * (away * spans).sum(axis=0), (spans**2).sum(axis=0)
            step = np.clip(np.where(c2 > 0, -c1 / np.where(c2 > 0, 2 * c2, 1.0), 0.0), 0.0, 1.0)
            anchors[at] = c0, c1, c2, c0 + step * (c1 + step * c2)
        return anchors, np.ascontiguousarray(surroundings.radii[targets])
