"""Approximate neighbours at any size: cells of close points, searched together.

An attack needs most of the neighbours of most of the points, not all of them. The points are put into cells
around sampled centres; the points of a cell are held against those of the nearest cells in one matrix
product. Time grows with the number of points times a fixed number of candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TypeVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from oversafe.attack.geometry.shapes._kernels import smallest_columns

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Result = TypeVar("Result")

# Points in a cell, and candidates for each neighbour wanted.
_CELL = 256
_CANDIDATES = 12
_FEWEST = 3072
# Up to this many cells each point is held against every centre.
_FEW_CELLS = 256


class Cells:
    """Points sorted into cells, for repeated searches.

    Parameters
    ----------
    values : array of shape (n, d)
        The points.
    """

    def __init__(self, values: FloatArray) -> None:
        n, d = values.shape
        self._origin = values.mean(axis=0)
        single = (values - self._origin).astype(np.float32)
        n_cells = max(1, n // _CELL)
        rng = np.random.default_rng(0)
        centres = single[rng.choice(n, n_cells, replace=False)]
        # Regions keep the search for the closest of many centres from growing with their number.
        self._regions = centres[: max(1, int(n_cells**0.5))] if n_cells > _FEW_CELLS else centres[:1]
        cell = self._cell_of(single, centres)
        # One step of k-means makes the cells rounder and more even.
        size = np.bincount(cell, minlength=n_cells)
        used = size > 0
        centres = np.stack([np.bincount(cell, single[:, k], n_cells) for k in range(d)], axis=1)[used]
        self._centres = (centres / size[used, None]).astype(np.float32)
        self._cell = self._cell_of(single, self._centres)
        self._order = np.argsort(self._cell, kind="stable")
        self._limits = np.searchsorted(self._cell[self._order], np.arange(len(self._centres) + 1))
        self._sorted = single[self._order]
        self._squared = np.einsum("ij,ij->i", self._sorted, self._sorted)

    def _cell_of(self, values: NDArray[np.float32], centres: NDArray[np.float32]) -> IntArray:
        """Return a centre close to each point: the closest one in its region."""
        if len(self._regions) == 1:
            return _closest(values, centres)
        region, region_of_centre = _closest(values, self._regions), _closest(centres, self._regions)
        result = np.empty(len(values), dtype=np.int64)
        order = np.argsort(region, kind="stable")
        limits = np.searchsorted(region[order], np.arange(len(self._regions) + 1))
        for number in range(len(self._regions)):
            rows = order[limits[number] : limits[number + 1]]
            those = np.flatnonzero(region_of_centre == number)
            if len(those):
                result[rows] = those[_closest(values[rows], centres[those])]
            else:
                result[rows] = _closest(values[rows], centres)
        return result

    def search(
        self,
        queries: FloatArray,
        m: int,
        each: Callable[[IntArray, IntArray], Result],
        n_jobs: int | None = None,
    ) -> list[Result]:
        """Call a function with parts of the queries and the m nearest points of each; return its results.

        Parameters
        ----------
        queries : array of shape (q, d)
            Places to search from.
        m : int
            How many points to find for each. Fewer only if there are fewer points; the order is arbitrary.
        each : callable
            Is given the positions of some queries and an array with their neighbours, one row per query.
        n_jobs : int, optional
            Number of threads, as in joblib.
        """
        single = (queries - self._origin).astype(np.float32)
        cell = self._cell_of(single, self._centres)
        order = np.argsort(cell, kind="stable")
        limits = np.searchsorted(cell[order], np.arange(len(self._centres) + 1))

        def part(number: int, rows: IntArray) -> Result:
            return each(rows, self._nearest(number, single[rows], m))

        def parts() -> Iterator[tuple[int, IntArray]]:
            for number in range(len(self._centres)):
                for start in range(limits[number], limits[number + 1], 4 * _CELL):
                    yield number, order[start : min(start + 4 * _CELL, limits[number + 1])]

        # The parts are the threads; matrix products that start their own would wait for one another.
        with _thread_pools().limit(limits=1, user_api="blas"):
            return Parallel(n_jobs=n_jobs, prefer="threads")(delayed(part)(*those) for those in parts())

    def _nearest(self, cell: int, queries: NDArray[np.float32], m: int) -> IntArray:
        n = len(self._sorted)
        m = min(m, n)
        wanted = max(_FEWEST, _CANDIDATES * m)
        away = ((self._centres - self._centres[cell]) ** 2).sum(axis=1)
        near = np.argsort(away)
        sizes = np.diff(self._limits)
        near = near[: int(np.searchsorted(np.cumsum(sizes[near]), min(wanted, n))) + 1]
        near.sort()
        rows = np.concatenate([np.arange(self._limits[c], self._limits[c + 1]) for c in near])
        if m >= len(rows):
            return np.ascontiguousarray(np.broadcast_to(self._order[rows], (len(queries), len(rows))))
        distance = self._squared[rows] - 2 * (queries @ self._sorted[rows].T)
        return self._order[rows[smallest_columns(distance, m)]]


@cache
def _thread_pools() -> ThreadpoolController:
    # Finding the libraries takes longer than many a search.
    return ThreadpoolController()


def _closest(values: NDArray[np.float32], centres: NDArray[np.float32]) -> IntArray:
    """Return the centre closest to each point."""
    squared = np.einsum("ij,ij->i", centres, centres)
    result = np.empty(len(values), dtype=np.int64)
    step = max(1, 2**22 // len(centres))
    for start in range(0, len(values), step):
        part = slice(start, start + step)
        result[part] = np.argmin(squared - 2 * (values[part] @ centres.T), axis=1)
    return result
