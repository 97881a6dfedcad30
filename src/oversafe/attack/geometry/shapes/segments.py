"""Between which two records each released row lies, and what all rows together say about the records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csc_array, csr_array, eye_array
from scipy.sparse.linalg import splu

from oversafe.attack.geometry.shapes import _kernels
from oversafe.attack.geometry.shapes.lines import random_axis
from oversafe.attack.geometry.shapes.neighbors import Cells
from oversafe.attack.geometry.shapes.points import FloatArray, IntArray

# How many records around a row are held against each other at first, and at most: twice as many pairs of
# directions cost hardly more than sorting them.
_FIRST = 32
_WIDEST = 512
# How many rows around a new record may be on its segments.
_CLOSE_ROWS = 512
# How far from its segment a row may be: if errors are bounds, and if they are root mean squares.
WIDTH_OF_BOUNDS = 8.0
WIDTH_OF_SPREAD = 2.5
# How far past a record extrapolating samplers go, as a share of the distance to its neighbour.
BEYOND = 0.5
# How many standard errors the stated error of a record has: neighbours share theirs.
_SURE = 5.0
# How many columns of an inverse are computed at a time.
_AT_A_TIME = 256
# How often the places of the rows and the records are improved in turns.
_TURNS = 10
# How often the intervals of the records are narrowed by those of their neighbours, at most.
_NARROWED = 100
# A row that takes less than this from a record says nothing about it that is worth the rounding.
_LEAST_SHARE = 1e-3


def segments_of(
    rows: FloatArray,
    places: FloatArray,
    radius: FloatArray,
    noise: float,
    *,
    width: float = WIDTH_OF_BOUNDS,
    beyond: float = 0.0,
    n_jobs: int | None = None,
) -> IntArray:
    """Return the two records between which each row lies; -1 for rows on no segment.

    Parameters
    ----------
    rows : array of shape (n, d)
        Released rows, in the unit cube.
    places, radius : array
        The records and their errors.
    noise : float
        Error of a row.
    width : float
        How many errors a row may be away from its segment: more if they are no bounds.
    beyond : float
        How far beyond a record a row may lie, as a share of the distance to the other: SVMSMOTE goes
        :data:`BEYOND` past some records.
    n_jobs : int, optional
        Number of threads, as in joblib.

    Returns
    -------
    array of shape (n, 2)
        For each row two records, the one with the smaller number first.
    """
    n = len(rows)
    result = np.full((n, 2), -1, dtype=np.int64)
    if len(places) < 2 or not n:
        return result
    cells = Cells(places)
    axis = random_axis(rows.shape[1])
    open_rows = np.arange(n)
    m = min(_FIRST, len(places))
    while True:

        def search(numbers: IntArray, neighbours: IntArray, those: IntArray = open_rows) -> None:
            numbers = those[numbers]
            projection = _kernels.projections_on(rows, numbers, places, neighbours, axis)
            order = np.argsort(projection, axis=1)
            result[numbers] = _kernels.between_records(
                rows, numbers, places, radius, neighbours, projection, order, noise, width, beyond
            )

        cells.search(rows[open_rows], m, search, n_jobs)
        if m >= min(_WIDEST, len(places)):
            break
        open_rows = np.flatnonzero(result[:, 0] < 0)
        if not len(open_rows):
            break
        m = min(4 * m, _WIDEST, len(places))
    return np.sort(result, axis=1)


def with_new_records(
    rows: FloatArray,
    segments: IntArray,
    places: FloatArray,
    radius: FloatArray,
    noise: float,
    *,
    n_new: int,
    beyond: float = 0.0,
    n_jobs: int | None = None,
) -> IntArray:
    """Return the segments after new records were added at the end of the list.

    Only rows on no segment and close to a new record are looked at.

    Parameters
    ----------
    rows, places, radius, noise, beyond, n_jobs
        See :func:`segments_of`.
    segments : array of shape (n, 2)
        The segments before.
    n_new : int
        How many records are new.
    """
    open_rows = np.flatnonzero(segments[:, 0] < 0)
    if not n_new or not len(open_rows):
        return segments
    close = np.zeros(len(open_rows), dtype=bool)

    def mark(_: IntArray, neighbours: IntArray) -> None:
        close[neighbours] = True

    Cells(rows[open_rows]).search(places[-n_new:], min(_CLOSE_ROWS, len(open_rows)), mark, n_jobs)
    open_rows = open_rows[close]
    segments = segments.copy()
    segments[open_rows] = segments_of(rows[open_rows], places, radius, noise, beyond=beyond, n_jobs=n_jobs)
    return segments


def shares_of(rows: FloatArray, segments: IntArray, places: FloatArray) -> FloatArray:
    """Return how far along its segment each row lies, from 0 to 1 between the records; nan for none."""
    result = np.full(len(rows), np.nan)
    used = segments[:, 0] >= 0
    start, end = places[segments[used, 0]], places[segments[used, 1]]
    way = end - start
    result[used] = np.einsum("ij,ij->i", rows[used] - start, way) / np.einsum("ij,ij->i", way, way)
    return result


@dataclass(frozen=True)
class Refined:
    """Records fitted to all rows between them at once.

    Parameters
    ----------
    places : array of shape (n_records, d)
        The records.
    radius : array of float
        Their errors.
    weights : sparse array of shape (n_rows, n_records)
        How much each row on a segment takes from each record; rows on none are left out.
    rows : array of int
        The rows on segments.
    """

    places: FloatArray
    radius: FloatArray
    weights: csr_array
    rows: IntArray

    def values(self, column: FloatArray, error: float) -> tuple[FloatArray, FloatArray]:
        """Return what the records have in another column of the table, and the errors of that.

        Parameters
        ----------
        column : array of float
            The column's value in each row.
        error : float
            Half width of the interval over which its errors spread.
        """
        if not len(self.rows):
            return np.full(len(self.places), column.mean()), np.full(len(self.places), np.ptp(column))
        # Around its mean, as the solver pulls what it does not know towards 0.
        mean = column[self.rows].mean()
        solve = _solver(self.weights)
        found = mean + solve((self.weights.T @ (column[self.rows] - mean))[:, None])[:, 0]
        left = column[self.rows] - self.weights @ found
        freedom = max(1, len(self.rows) - len(self.places))
        spread = max(error / 3**0.5, float(np.sqrt((left**2).sum() / freedom)))
        # Records that hang on the same few rows have errors that the rows of each alone do not show.
        error_of_value = 4 * spread * np.sqrt(_diagonal_of_inverse(solve, len(self.places)))
        # Of a record without rows nothing is known but the column's range.
        unknown = error_of_value >= np.ptp(column)
        found = np.where(unknown, (column.min() + column.max()) / 2, found)
        return found, np.where(unknown, np.ptp(column), error_of_value)

    def intervals(
        self,
        low: FloatArray,
        high: FloatArray,
        known: tuple[FloatArray, FloatArray],
        *,
        whole: bool,
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return between which values each record lies in another column; None if the rows contradict one another.

        Each row on a segment is a weighted mean of two records, so that its interval and the other record's bound
        the one's. Records narrow their neighbours until nothing changes; that whole numbers lie on a grid helps.

        Parameters
        ----------
        low, high : array of float
            Between which values the exact number of each row on a segment lies, in the order of ``rows``.
        known : tuple of two arrays
            Between which values the records are known to lie beforehand.
        whole : bool
            Whether the records have whole numbers.
        """
        lower, upper = known[0].copy(), known[1].copy()
        if not len(self.rows):
            return lower, upper
        ends, share = self.weights.indices.reshape(-1, 2), self.weights.data.reshape(-1, 2)
        rounding = 1e-9 * max(1.0, float(np.abs(upper).max()), float(np.abs(lower).max()))
        for _ in range(_NARROWED):
            before = upper - lower
            for own in (0, 1):
                used = np.abs(share[:, own]) > _LEAST_SHARE
                weight, rest, other = share[used, own], share[used, 1 - own], ends[used, 1 - own]
                taken = np.sort(np.stack([rest * lower[other], rest * upper[other]]), axis=0)
                left = np.sort(np.stack([low[used] - taken[1], high[used] - taken[0]]) / weight, axis=0)
                np.maximum.at(lower, ends[used, own], left[0])
                np.minimum.at(upper, ends[used, own], left[1])
            if whole:
                lower, upper = np.ceil(lower - rounding), np.floor(upper + rounding)
            if (lower > upper + 2 * rounding).any():
                return None
            if (before - (upper - lower) <= rounding).all():
                break
        return np.minimum(lower, upper), np.maximum(lower, upper)


def refine(
    rows: FloatArray, segments: IntArray, places: FloatArray, radius: FloatArray, *, exact: bool
) -> Refined:
    """Move the records to where the rows between them fit best, by least squares.

    The places of the rows on their segments and the records are improved in turns. Exact records stay.

    Parameters
    ----------
    rows : array of shape (n, d)
        Released rows.
    segments : array of shape (n, 2)
        The records between which each lies, -1 for none.
    places, radius : array
        The records and their errors.
    exact : bool
        Whether the rows are exact, so that there is nothing to improve.
    """
    used = np.flatnonzero(segments[:, 0] >= 0)
    start, end = segments[used].T
    target = rows[used]
    weights = _weights(target, start, end, places)
    if exact or not len(used):
        return Refined(places, radius, weights, used)
    for _ in range(_TURNS):
        places = _solver(weights, places)(weights.T @ target)
        weights = _weights(target, start, end, places)
    left = target - weights @ places
    d = rows.shape[1]
    variance = (left**2).sum() / max(1.0, (d - 1) * len(used) - d * len(places))
    # A row tells nothing about the direction of its segment.
    way = places[end] - places[start]
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    systems = np.tile(1e-3 * np.eye(d), (len(places), 1, 1))
    across = np.eye(d) - way[:, :, None] * way[:, None, :]
    share = np.einsum("ij,ij->i", target - places[start], places[end] - places[start])
    share /= np.einsum("ij,ij->i", places[end] - places[start], places[end] - places[start])
    np.add.at(systems, start, ((1 - share) ** 2)[:, None, None] * across)
    np.add.at(systems, end, (share**2)[:, None, None] * across)
    spread = np.trace(np.linalg.inv(systems), axis1=1, axis2=2)
    return Refined(places, _SURE * np.sqrt(variance * spread), weights, used)


def _weights(rows: FloatArray, start: IntArray, end: IntArray, places: FloatArray) -> csr_array:
    way = places[end] - places[start]
    share = np.einsum("ij,ij->i", rows - places[start], way) / np.einsum("ij,ij->i", way, way)
    number = np.arange(len(rows))
    entries = (np.concatenate((1 - share, share)), (np.tile(number, 2), np.concatenate((start, end))))
    return csr_array(coo_array(entries, (len(rows), len(places))))


def _solver(weights: csr_array, places: FloatArray | None = None) -> Callable[[FloatArray], FloatArray]:
    """Return what solves the normal equations; a record without rows keeps its place."""
    n = weights.shape[1]
    ridge = 1e-6
    system = splu(csc_array(weights.T @ weights + ridge * eye_array(n)))

    def solve(target: FloatArray) -> FloatArray:
        if places is not None:
            target = target + ridge * places
        return system.solve(np.ascontiguousarray(target))

    return solve


def _diagonal_of_inverse(solve: Callable[[FloatArray], FloatArray], n: int) -> FloatArray:
    """Return the diagonal of the inverse of the normal equations' matrix."""
    result = np.empty(n)
    for start in range(0, n, _AT_A_TIME):
        those = np.arange(start, min(n, start + _AT_A_TIME))
        unit = np.zeros((n, len(those)))
        unit[those, np.arange(len(those))] = 1.0
        result[those] = solve(unit)[those, np.arange(len(those))]
    return result
