"""The nearest rows of some rows of a table, on one-hot, standardised features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from oversafe.data.schema import Schema
from oversafe.protect.anonymize.quasi_identifiers import group_ids

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Progress = Callable[[float], None]

# Coordinate differences up to which every pair is looked at: half a minute on one core at most, as matrix
# products, which take many dimensions, are ten times as quick.
_ALL_PAIRS = 3e10
_ALL_PRODUCTS = 3e11
# Above this many dimensions a tree of cuts visits most of the table.
_TREE_DIMENSIONS = 12
_LOW_DIMENSIONS = 4
# In a large table a neighbour may be up to 1 + this times as far away as the true one. On a million
# independent normal rows in ten dimensions neighbours are 1.4 % farther away on average, and 83 % are the true ones.
_TOLERANCE = 1.5
_LEAF = 64
# Up to here our own loop over all pairs is quicker than matrix products.
_FEW_DIMENSIONS = 24
_TILE = 512
# How many times as many rows as are wanted are looked at in all dimensions.
_CANDIDATES = 16
_COMPONENTS = 20
# More categories than this are placed at random in so many dimensions, which keeps their distances roughly.
_WIDEST = 32


def standardised(schema: Schema, codes: Sequence[FloatArray]) -> FloatArray:
    """Return the columns as features of mean 0 and deviation 1; every category is one of them.

    A missing number stands at the mean, with a feature beside it that says so.
    """
    blocks: list[FloatArray] = []
    for column, values in zip(schema, codes, strict=True):
        gaps = np.isnan(values)
        if column.is_category:
            blocks.append(_categories(np.where(gaps, len(column.categories or ()), values)))
            continue
        filled = np.where(gaps, 0.0 if gaps.all() else np.nanmean(values), values)
        # Scaled first: the square of a huge number is infinite.
        filled = filled / max(float(np.abs(filled).max()), np.finfo(float).tiny)
        blocks.append(_scaled(filled[:, None]))
        if gaps.any():
            blocks.append(_scaled(gaps[:, None].astype(np.float64)))
    features = np.hstack(blocks)
    varying = features.any(axis=0)
    return features[:, varying] if varying.any() else features[:, :1]


def _scaled(block: FloatArray) -> FloatArray:
    centred = block - block.mean(axis=0)
    deviation = centred.std(axis=0)
    return np.divide(centred, deviation, out=np.zeros_like(centred), where=deviation > 0)


def _categories(positions: FloatArray) -> FloatArray:
    places, members = np.unique(positions, return_inverse=True)
    if len(places) <= _WIDEST:
        return _scaled(np.eye(len(places))[members])
    share = np.bincount(members) / len(members)
    directions = np.random.default_rng(0).normal(size=(len(places), _WIDEST)) / np.sqrt(_WIDEST)
    return (directions / np.sqrt(share * (1 - share))[:, None])[members]


def nearest_rows(
    features: FloatArray,
    rows: IntArray,
    k: int,
    *,
    n_jobs: int | None = None,
    progress: Progress = lambda share: None,
) -> IntArray:
    """Return the k nearest other rows of each given row, the nearest first.

    Small tables are searched exactly, and so are those of few dimensions. In large ones a neighbour may be
    somewhat farther away than the true one, by a factor of at most 2.5 and a few percent on average; above
    twelve dimensions the candidates come from the leading principal components, without that bound.

    Parameters
    ----------
    features : array of shape (n_rows, n_features)
        The whole table.
    rows : array of int
        The rows whose neighbours are wanted.
    k : int
        Less than the number of rows.
    n_jobs : int, optional
        Number of threads, as in joblib.
    progress : callable
        Told the share of the work that is done.
    """
    if not len(rows):
        return np.empty((0, k), dtype=np.int64)
    kept = _at_most(features, k + 1)
    dimensions = features.shape[1]
    most = _ALL_PAIRS if dimensions <= _FEW_DIMENSIONS else _ALL_PRODUCTS
    exact = float(len(rows)) * len(kept) * dimensions <= most
    if exact and (dimensions > _LOW_DIMENSIONS or len(kept) < 1000):
        found = _among_all(features, kept, rows, k + 1, n_jobs, progress)
    elif dimensions <= _TREE_DIMENSIONS:
        tolerance = 0.0 if dimensions <= _LOW_DIMENSIONS else _TOLERANCE
        found = _in_tree(features, kept, rows, k + 1, tolerance, n_jobs, progress)
    else:
        found = _by_components(features, kept, rows, k + 1, n_jobs, progress)
    return _without_self(found, rows)


def _at_most(features: FloatArray, copies: int) -> IntArray:
    """Return the rows without those that repeat others more often than a neighbour list is long."""
    ids = group_ids(list(features.T))
    if int(ids.max()) + 1 == len(ids):
        return np.arange(len(ids))
    order = np.argsort(ids, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(ids))])[:-1]
    rank = np.empty(len(ids), dtype=np.int64)
    rank[order] = np.arange(len(ids)) - starts[ids[order]]
    return np.flatnonzero(rank < copies)


def _without_self(found: IntArray, rows: IntArray) -> IntArray:
    """Drop each row from its own list, or the last of a list that does not hold it."""
    is_self = found == rows[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    return found[~is_self].reshape(len(rows), found.shape[1] - 1)


def _chunks(n: int, size: int) -> list[slice]:
    return [slice(at, min(at + size, n)) for at in range(0, n, size)]


def _among_all(
    features: FloatArray, kept: IntArray, rows: IntArray, k: int, n_jobs: int | None, progress: Progress
) -> IntArray:
    points = features[kept]
    if points.shape[1] <= _FEW_DIMENSIONS:
        search = _looking_at_each(points, k, n_jobs)
    else:
        from sklearn.neighbors import NearestNeighbors

        brute = NearestNeighbors(n_neighbors=k, algorithm="brute", n_jobs=n_jobs).fit(points)
        search = partial(brute.kneighbors, return_distance=False)
    found = np.empty((len(rows), k), dtype=np.int64)
    for part in _chunks(len(rows), max(1000, int(5e9 / points.size))):
        found[part] = kept[search(features[rows[part]])]
        progress(part.stop / len(rows))
    return found


def _looking_at_each(points: FloatArray, k: int, n_jobs: int | None) -> Callable[[FloatArray], IntArray]:
    """Return a search that, in few dimensions, is quicker than one by matrix products."""
    from joblib import Parallel, delayed, effective_n_jobs

    from oversafe.protect.samplers._neighbor_kernels import nearest_of_all

    n, d = points.shape
    padded = np.full((-(-n // _TILE) * _TILE, d), np.inf, dtype=np.float32)
    padded[:n] = points
    tiles = np.ascontiguousarray(padded.reshape(-1, _TILE, d).transpose(0, 2, 1))
    workers = effective_n_jobs(n_jobs)

    def search(queries: FloatArray) -> IntArray:
        asked = queries.astype(np.float32)
        if workers == 1:
            return nearest_of_all(tiles, asked, k)
        parts = np.array_split(asked, workers)
        found = Parallel(workers, prefer="threads")(delayed(nearest_of_all)(tiles, p, k) for p in parts)
        return np.concatenate(found)

    return search


def _in_tree(
    features: FloatArray,
    kept: IntArray,
    rows: IntArray,
    k: int,
    tolerance: float,
    n_jobs: int | None,
    progress: Progress,
) -> IntArray:
    from joblib import effective_n_jobs
    from scipy.spatial import cKDTree

    # Rows that lie together in memory as they do in space, and asked for in that order, take half the time.
    kept = kept[cKDTree(features[kept], leafsize=_LEAF, balanced_tree=False).indices]
    tree = cKDTree(features[kept], leafsize=_LEAF, balanced_tree=False)
    place = np.zeros(len(features), dtype=np.int64)
    place[kept] = np.arange(len(kept))
    turn = np.argsort(place[rows])
    found = np.empty((len(rows), k), dtype=np.int64)
    for part in _chunks(len(rows), 20_000):
        asked = turn[part]
        near = tree.query(features[rows[asked]], k, eps=tolerance, workers=effective_n_jobs(n_jobs))[1]
        found[asked] = kept[near.reshape(-1, k)]
        progress(part.stop / len(rows))
    return found


def _by_components(
    features: FloatArray, kept: IntArray, rows: IntArray, k: int, n_jobs: int | None, progress: Progress
) -> IntArray:
    from sklearn.decomposition import PCA

    components = PCA(min(_COMPONENTS, features.shape[1]), svd_solver="covariance_eigh").fit_transform(
        features
    )
    candidates = _in_tree(
        components, kept, rows, min(_CANDIDATES * k, len(kept)), _TOLERANCE, n_jobs, progress
    )
    found = np.empty((len(rows), k), dtype=np.int64)
    for part in _chunks(len(rows), max(1, int(2e7 / (candidates.shape[1] * features.shape[1])))):
        near = candidates[part]
        distance = np.square(features[near] - features[rows[part]][:, None, :]).sum(axis=2)
        nearest = np.argsort(distance, axis=1, kind="stable")[:, :k]
        found[part] = np.take_along_axis(near, nearest, axis=1)
    return found
