"""Releases whose real records are known."""

from __future__ import annotations

import numpy as np
from imblearn.over_sampling import SMOTE
from sklearn.neighbors import NearestNeighbors


def synthetic(real: np.ndarray, n: int, seed: int = 0, k_neighbors: int = 5) -> np.ndarray:
    """Return n rows that imbalanced-learn's SMOTE makes of the records."""
    rest = np.random.default_rng(seed).normal(size=(len(real) + n, real.shape[1])) + 1000
    y = np.repeat([1, 0], [len(real), len(rest)])
    sampler = SMOTE(random_state=seed, k_neighbors=k_neighbors)
    return sampler.fit_resample(np.vstack([real, rest]), y)[0][len(y) :]


def interpolated(
    real: np.ndarray, n: int, rng: np.random.Generator, k_neighbors: int = 5
) -> tuple[np.ndarray, np.ndarray]:
    """Return n rows between records and their neighbours, and the two records of each, the smaller first."""
    search = NearestNeighbors(n_neighbors=k_neighbors + 1).fit(real)
    neighbours = search.kneighbors(real, return_distance=False)[:, 1:]
    start = rng.integers(0, len(real), n)
    end = neighbours[start, rng.integers(0, k_neighbors, n)]
    rows = real[start] + rng.random((n, 1)) * (real[end] - real[start])
    return rows, np.sort(np.column_stack((start, end)), axis=1)


def taking_part(
    rows: np.ndarray,
    minority: np.ndarray,
    pool: np.ndarray | None = None,
    *,
    beyond: float = 0.0,
    far: bool = True,
) -> np.ndarray:
    """Return the distinct minority records on at least two of whose segments rows lie.

    A row belongs to the shortest segment that it lies on, from a minority record to one of its five nearest
    in the pool, by default the minority. It may lie ``beyond`` the record by a share of the segment; ``far``
    tells whether it counts for the other end then too.
    """
    pool = minority if pool is None else pool
    neighbours = NearestNeighbors(n_neighbors=6).fit(pool).kneighbors(minority, return_distance=False)[:, 1:]
    start, end = np.repeat(minority, 5, axis=0), pool[neighbours.ravel()]
    length = np.linalg.norm(end - start, axis=1)
    order = np.argsort(length, kind="stable")
    order = order[length[order] > 0]
    start, end, length = start[order], end[order], length[order]
    between, outside = np.zeros(len(order), dtype=bool), np.zeros(len(order), dtype=bool)
    for part in np.array_split(rows, 1 + len(rows) // 200):
        share = np.einsum("rsj,sj->rs", part[:, None] - start, end - start) / length**2
        off = np.abs(part[:, None] - start - share[:, :, None] * (end - start)).max(axis=2)
        on = (off < 1e-12) & (share > -beyond - 1e-9) & (share < 1 + 1e-9)
        row = np.flatnonzero(on.any(axis=1))
        segment = on[row].argmax(axis=1)
        inside = share[row, segment] > 0
        between[segment[inside]] = True
        outside[segment[~inside]] = True
    places, number = np.unique(np.vstack([start, end]), axis=0, return_inverse=True)
    ends = np.sort(number.reshape(2, -1).T, axis=1)
    used = np.unique(ends[between | outside if far else between], axis=0).ravel()
    if not far:
        starts = number.reshape(2, -1)[0, outside & ~between]
        used = np.concatenate((used, starts))
    enough = np.bincount(used, minlength=len(places)) >= 2
    return places[enough & (places[:, None] == minority).all(axis=2).any(axis=1)]
