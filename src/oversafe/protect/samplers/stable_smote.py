"""SMOTE's rows with a neighbour search that one record cannot upset.

The cost of SMOTE (:func:`oversafe.privacy.smote_cost`) is proven for neighbours in the order of their true distance,
ties in an order of the other records. Two things that are usual break it: searches that break ties by the shape of a
tree, and distances that are rounded, since a record can then be as far away as a thousand others that are nearer.
Here distances are compared exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversafe._core.checks import check_choice, check_count
from oversafe._core.errors import InputError
from oversafe.privacy.costs.oversampling import Bases

_BLOCK = 256
# A tree of cuts pays for tables of more rows and up to so many columns.
_TREE_ROWS = 2000
_TREE_DIMENSIONS = 12
# How many near rows are looked at beyond the neighbours, at first and where ties need more.
_SPARE = (8, 56, 440)
_ASKED = 20_000
# Of squared distances: what may vanish in them.
_UNDERFLOW = 1e-300


@dataclass(frozen=True)
class SmoteRows:
    """Rows on lines between records: ``values = X[base] + gap * (X[neighbour] - X[base])``.

    Parameters
    ----------
    base, neighbour : array of int
        The records at the two ends of each line.
    gap : array of float
        How far along, from 0 to 1.
    values : array of shape (rows, columns)
        The rows.
    """

    base: NDArray[np.int64]
    neighbour: NDArray[np.int64]
    gap: NDArray[np.float64]
    values: NDArray[np.float64]


def stable_smote(
    X: Any,
    n_added: int,
    *,
    k_neighbors: int = 5,
    bases: Bases = "random",
    random_state: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
) -> SmoteRows:
    """Return SMOTE's rows for the records of one class, with stable neighbours.

    Parameters
    ----------
    X : array of shape (records, columns)
        Finite numbers.
    n_added : int
        The number of rows.
    k_neighbors : int, default=5
        As in SMOTE.
    bases : {"random", "cyclic"}
        Whether the record that a row starts from is drawn, or taken in turn.
    random_state : int or Generator, optional
        Makes the rows repeatable. The delta of :func:`~oversafe.privacy.smote_cost` needs draws that nobody knows.
    n_jobs : int, optional
        Threads for the search, as in joblib.

    Examples
    --------
    >>> from oversafe.protect.samplers.stable_smote import stable_smote
    >>> made = stable_smote([[0.0], [1.0], [3.0]], 4, k_neighbors=1, bases="cyclic", random_state=0)
    >>> made.base.tolist(), made.neighbour.tolist()
    ([0, 1, 2, 0], [1, 0, 1, 1])
    """
    X = _matrix(X)
    check_count("n_added", n_added, 0)
    check_choice("bases", bases, ("random", "cyclic"))
    lists = stable_neighbours(X, k_neighbors, n_jobs=n_jobs)
    rng = np.random.default_rng(random_state)
    size = int(n_added)
    base = rng.integers(len(X), size=size) if bases == "random" else np.arange(size) % len(X)
    neighbour = lists[base, rng.integers(k_neighbors, size=size)]
    gap = rng.random(size)
    return SmoteRows(base, neighbour, gap, X[base] + gap[:, None] * (X[neighbour] - X[base]))


def stable_neighbours(X: Any, k_neighbors: int, *, n_jobs: int | None = None) -> NDArray[np.int64]:
    """Return each record's nearest others by exact distance, ties by position.

    Parameters
    ----------
    X : array of shape (records, columns)
        Finite numbers.
    k_neighbors : int
        How many, fewer than there are records.
    n_jobs : int, optional
        Threads, as in joblib.

    Returns
    -------
    array of shape (records, k_neighbors)
        Positions; the order within a row has no meaning.
    """
    X = _matrix(X)
    n, d = X.shape
    if isinstance(k_neighbors, bool) or not hasattr(k_neighbors, "__index__") or not 1 <= k_neighbors < n:
        raise InputError(
            f"k_neighbors = {k_neighbors!r} was given for {n} records; it is a whole number from 1 to below that"
        )
    k = int(k_neighbors)
    scaled, exact = _scaled(X)
    codes = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    # A computed squared distance is within (d + 3) half units in the last place of the true one, and what
    # underflows is smaller than the absolute term; four times that covers both sides of a comparison.
    relative = 0.0 if exact else 4 * (d + 3) * 2.0**-53
    lists = np.empty((n, k), dtype=np.int64)
    certain = np.empty(n, dtype=np.int64)
    low, high = np.empty(n), np.empty(n)
    search = _Search(X, scaled, codes, k, relative, lists, certain, low, high, n_jobs)
    by_tree = n > _TREE_ROWS and d <= _TREE_DIMENSIONS
    search.among_all(search.in_tree() if by_tree else np.arange(n))
    return lists


@dataclass
class _Search:
    """One search: what is searched, and where the answers are written."""

    X: NDArray[np.float64]
    scaled: NDArray[np.float64]
    codes: NDArray[np.int64]
    k: int
    relative: float
    lists: NDArray[np.int64]
    certain: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    n_jobs: int | None

    def among_all(self, rows: NDArray[np.int64]) -> None:
        """Write the lists of rows after a look at every other."""
        from joblib import Parallel, delayed

        from oversafe.protect.samplers._smote_kernels import neighbour_lists

        facts = (self.scaled, self.codes, self.k, self.relative, _UNDERFLOW)
        answers = (self.lists, self.certain, self.low, self.high)
        Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(neighbour_lists)(*facts, rows[at : at + _BLOCK], *answers)
            for at in range(0, len(rows), _BLOCK)
        )
        everyone = np.arange(len(self.X))
        for i in rows[self.certain[rows] < self.k]:
            self._settle(i, everyone)

    def in_tree(self) -> NDArray[np.int64]:
        """Write the lists of the rows for which a tree tells them for certain, and return the others."""
        from joblib import effective_n_jobs
        from scipy.spatial import cKDTree

        from oversafe.protect.samplers._smote_kernels import neighbours_among

        k, workers = self.k, effective_n_jobs(self.n_jobs)
        # Of rows that coincide, the first k + 1 are all that can be anybody's neighbours.
        order = np.argsort(self.codes, kind="stable")
        starts = np.searchsorted(self.codes[order], self.codes)
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        late = place - starts > k
        self.lists[late] = order[starts[late][:, None] + np.arange(k)]
        kept = np.flatnonzero(~late)
        # Rows that lie together are asked for together.
        kept = kept[cKDTree(self.scaled[kept], balanced_tree=False).indices]
        tree = cKDTree(self.scaled[kept], balanced_tree=False)
        waiting = kept
        for spare in _SPARE:
            width = k + 1 + spare
            if width > len(kept):
                break
            unsettled = []
            for at in range(0, len(waiting), _ASKED):
                asked = waiting[at : at + _ASKED]
                reach, near = tree.query(self.scaled[asked], width, workers=workers)
                # In the order of their positions, by which ties are broken.
                near = np.sort(kept[near], axis=1)
                done = neighbours_among(
                    self.scaled, self.codes, k, self.relative, _UNDERFLOW, asked, near, reach[:, -1] ** 2,
                    self.lists, self.certain, self.low, self.high,
                )  # fmt: skip
                for r in np.flatnonzero(done & (self.certain[asked] < k)):
                    self._settle(asked[r], near[r])
                unsettled.append(asked[~done])
            waiting = np.concatenate(unsettled) if unsettled else waiting[:0]
        return waiting

    def _settle(self, i: np.int64, near: NDArray[np.int64]) -> None:
        """Decide in whole numbers of any size what floating point left open."""
        from oversafe.protect.samplers._smote_kernels import COINCIDES, distances

        found = np.empty(len(near))
        distances(self.scaled, self.codes, i, near, found)
        doubtful = (found >= self.low[i]) & (found <= self.high[i]) & (found != COINCIDES)
        candidates = near[doubtful]
        whole = _whole_numbers(self.X[np.append(candidates, i)])
        gaps = whole[:-1] - whole[-1]
        # A stable sort, so that ties keep the order of their positions.
        order = sorted(range(len(candidates)), key=(gaps * gaps).sum(axis=1).__getitem__)
        sure = self.certain[i]
        self.lists[i, sure:] = candidates[order[: self.k - sure]]


def _matrix(X: Any) -> NDArray[np.float64]:
    X = np.ascontiguousarray(X, dtype=np.float64)
    if X.ndim != 2 or 0 in X.shape:
        raise InputError(f"records of shape {X.shape} were given; a matrix of rows and columns is expected")
    if not np.isfinite(X).all():
        raise InputError("the records have values that are missing or not finite; fill them in first")
    # One zero, not two.
    return X + 0.0


def _scaled(X: NDArray[np.float64]) -> tuple[NDArray[np.float64], bool]:
    """Return X times a power of two so that no square overflows, and whether its distances have no rounding."""
    _, exponents = np.frexp(X)
    top = int(exponents[X != 0].max()) if X.any() else 0
    scaled = np.ldexp(X, -top)
    # On a grid of 2^-bits, a squared distance is a whole number of 2^-2bits: exact when it is below 2^53 of them.
    widths = scaled.max(axis=0) - scaled.min(axis=0)
    room = math.floor((52 - math.log2(max(float(widths @ widths), 1e-300))) / 2)
    if not 0 <= room < 500:
        return scaled, not X.any()
    grid = np.ldexp(scaled, room)
    return scaled, bool((grid == np.rint(grid)).all() and (np.ldexp(scaled, top) == X).all())


def _whole_numbers(X: NDArray[np.float64]) -> NDArray[Any]:
    """Return X as whole numbers of one unit, a power of two, without rounding."""
    mantissas, exponents = np.frexp(X)
    digits = np.ldexp(mantissas, 53).astype(np.int64).astype(object)
    lowest = int(exponents[X != 0].min()) if X.any() else 0
    shifts = np.where(X != 0, exponents - lowest, 0).astype(object)
    return digits * 2**shifts
