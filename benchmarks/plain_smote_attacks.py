"""DistinSMOTE and ReconSMOTE as the paper gives them, in numpy: what ours are measured against.

A transcription of Algorithms 2 and 3 of "SMOTE and Mirrors", with k and the imbalance ratio given, as the paper
needs them. It leaves out the convex hull, from which Algorithm 2 starts its queue: here the queue starts with all
records, which is what the queue reaches anyway and far cheaper than a hull in ten or more dimensions.

What makes it decent: the neighbours come from scikit-learn, in blocks, and only for records that are still to be
looked at; all pairs of a record's neighbours are tested in one product of matrices; a line takes in all of its
records at once instead of pair by pair; and the pairs of lines are intersected in blocks of matrix products. These
products are small, so they run on one thread: two would wait for one another most of the time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# A pair of neighbours is looked at closer when the cosine of the angle between them is this close to 1 or -1. As
# cosines cannot tell angles below 1e-8 from none, the sine then decides: rounding moves a value in [-1, 1] by about
# 3e-16, a record of 30 of them by less than 2e-15, and its direction by that over its distance.
NEARLY_COLLINEAR = 1e-13
ROUNDING = 4e-15
# Lines meet when they pass this close, in units of features scaled to [-1, 1]; intersections that agree to this many
# decimals are one.
CLOSE = 1e-7
DECIMALS = 6
_QUERIES = 256
_BLOCK = 2**23


@threadpool_limits.wrap(limits=1, user_api="blas")
def plain_distin(X: Floats, k: int, ratio: float) -> NDArray[np.bool_]:
    """Return which records of an augmented minority class are real (Algorithm 2)."""
    X, row = np.unique(X, axis=0, return_inverse=True)
    candidate = np.ones(len(X), dtype=bool)
    pairs = _Pairs(_reach(X, k, ratio))
    for record, neighbours in _in_turn(X, k, ratio, candidate):
        units, distance = _directions(X, record, neighbours)
        first, second, cosine = pairs.collinear(units, distance)
        # Both on one side: the nearer one is in the middle. One on each side: the record itself is.
        nearer = np.where(distance[first] < distance[second], first, second)
        candidate[neighbours[nearer[cosine > 0]]] = False
        if (cosine < 0).any():
            candidate[record] = False
    return candidate[row.reshape(-1)]


@threadpool_limits.wrap(limits=1, user_api="blas")
def plain_recon(X: Floats, k: int, ratio: float) -> Floats:
    """Return the real records behind a synthetic minority class (Algorithm 3)."""
    X = np.unique(X, axis=0)
    middle, direction = _lines(X, k, ratio)
    if len(middle) < 3:
        return np.empty((0, X.shape[1]))
    places, pairs = _intersections(middle, direction)
    return _supported(places, pairs, least=3)


def _reach(X: Floats, k: int, ratio: float) -> int:
    """Return the paper's number of neighbours."""
    return min(len(X) - 1, math.ceil(2 * k * ratio))


def _in_turn(X: Floats, k: int, ratio: float, waiting: NDArray[np.bool_]) -> Iterator[tuple[int, Ints]]:
    """Yield each record that is still waiting when its turn comes, with its 2 k r nearest neighbours."""
    search = NearestNeighbors(n_neighbors=_reach(X, k, ratio) + 1).fit(X)
    at = 0
    while at < len(X):
        block = at + np.flatnonzero(waiting[at:])[:_QUERIES]
        if not len(block):
            return
        at = int(block[-1]) + 1
        found = search.kneighbors(X[block], return_distance=False)
        for record, near in zip(block.tolist(), found, strict=True):
            if waiting[record]:
                yield record, near[near != record]


def _directions(X: Floats, record: int, neighbours: Ints) -> tuple[Floats, Floats]:
    """Return the unit vectors from a record to its neighbours, and their distances."""
    difference = X[neighbours] - X[record]
    distance = np.sqrt(np.einsum("ij,ij->i", difference, difference))
    return difference / distance[:, None], distance


class _Pairs:
    """All pairs of neighbours, in memory that is taken once: new pages for each record would take most of the time."""

    def __init__(self, n_neighbors: int) -> None:
        self._cosine = np.empty((n_neighbors, n_neighbors))
        self._size = np.empty_like(self._cosine)
        self._close = np.empty(self._cosine.shape, dtype=bool)

    def collinear(self, units: Floats, distance: Floats) -> tuple[Ints, Ints, Floats]:
        """Return the pairs of neighbours on one line with the record, and the cosines of their angles."""
        np.matmul(units, units.T, out=self._cosine)
        np.abs(self._cosine, out=self._size)
        np.greater_equal(self._size, 1 - NEARLY_COLLINEAR, out=self._close)
        first, second = np.divmod(np.flatnonzero(self._close), len(units))
        first, second = first[first < second], second[first < second]
        cosine = self._cosine[first, second]
        across = units[first] - cosine[:, None] * units[second]
        sine = np.sqrt(np.einsum("ij,ij->i", across, across))
        collinear = sine <= ROUNDING * (1 + 1 / distance[first] + 1 / distance[second])
        return first[collinear], second[collinear], cosine[collinear]


def _lines(X: Floats, k: int, ratio: float) -> tuple[Floats, Floats]:
    """Return the midpoints and the directions of the lines through at least three records."""
    waiting = np.ones(len(X), dtype=bool)
    pairs = _Pairs(_reach(X, k, ratio))
    middles, directions = [], []
    for record, neighbours in _in_turn(X, k, ratio, waiting):
        waiting[record] = False
        units, distance = _directions(X, record, neighbours)
        first, second, _ = pairs.collinear(units, distance)
        while len(first):
            line = np.append(second[first == first[0]], first[0])
            waiting[neighbours[line]] = False
            others = ~np.isin(first, line)
            first, second = first[others], second[others]
            middles.append((X[record] + X[neighbours[line]].sum(axis=0)) / (len(line) + 1))
            # Towards the farthest member, where rounding counts least.
            directions.append(units[line[distance[line].argmax()]])
    if not middles:
        return np.empty((0, X.shape[1])), np.empty((0, X.shape[1]))
    return _distinct_lines(np.array(middles), np.array(directions))


def _distinct_lines(middle: Floats, direction: Floats) -> tuple[Floats, Floats]:
    """Return each line once: neighbourhoods that overlap in part can give two pieces of the same one."""
    largest = np.abs(direction).argmax(axis=1)
    sign = np.sign(direction[np.arange(len(direction)), largest])
    direction = direction * sign[:, None]
    foot = middle - np.einsum("ij,ij->i", middle, direction)[:, None] * direction
    _, first = np.unique(_rounded(np.hstack([foot, direction])), axis=0, return_index=True)
    return middle[first], direction[first]


def _intersections(middle: Floats, direction: Floats) -> tuple[Floats, Ints]:
    """Return the places where two lines meet, and the pairs of lines."""
    along = np.einsum("ij,ij->i", middle, direction)
    square = np.einsum("ij,ij->i", middle, middle)
    places, pairs = [], []
    step = max(1, _BLOCK // len(middle))
    for begin in range(0, len(middle), step):
        block = slice(begin, begin + step)
        # All later lines q for each line p of the block; with w = m_p - m_q the squared distance of two lines is
        # w.w - ((u_p.w)^2 + (u_q.w)^2 - 2 (u_p.w) (u_q.w) (u_p.u_q)) / (1 - (u_p.u_q)^2).
        cosine = direction[block] @ direction[begin:].T
        ours = along[block, None] - direction[block] @ middle[begin:].T
        theirs = middle[block] @ direction[begin:].T - along[begin:]
        apart = square[block, None] + square[begin:] - 2 * (middle[block] @ middle[begin:].T)
        sine = 1 - cosine * cosine
        with np.errstate(divide="ignore", invalid="ignore"):
            apart -= (ours * ours + theirs * theirs - 2 * ours * theirs * cosine) / sine
            # Differences of squares are exact to about 1e-15 / sine^2 only: this is a first choice.
            near = (apart < CLOSE * CLOSE + 1e-13 / sine) & (sine > NEARLY_COLLINEAR)
        p, q = np.nonzero(np.triu(near, 1))
        place, distance = _meet(middle, direction, p + begin, q + begin)
        places.append(place[distance < CLOSE])
        pairs.append(np.column_stack([p, q])[distance < CLOSE] + begin)
    return np.concatenate(places), np.concatenate(pairs)


def _meet(middle: Floats, direction: Floats, p: Ints, q: Ints) -> tuple[Floats, Floats]:
    """Return the points halfway between pairs of lines where they are closest, and their distances."""
    apart = middle[p] - middle[q]
    cosine = np.einsum("ij,ij->i", direction[p], direction[q])
    ours = np.einsum("ij,ij->i", direction[p], apart)
    theirs = np.einsum("ij,ij->i", direction[q], apart)
    # The part of u_q across u_p, whose square is 1 - cosine^2 without the loss of digits.
    across = direction[q] - cosine[:, None] * direction[p]
    sine = np.einsum("ij,ij->i", across, across)
    on_p = middle[p] + ((cosine * theirs - ours) / sine)[:, None] * direction[p]
    on_q = middle[q] + ((theirs - cosine * ours) / sine)[:, None] * direction[q]
    return (on_p + on_q) / 2, np.linalg.norm(on_p - on_q, axis=1)


def _supported(places: Floats, pairs: Ints, least: int) -> Floats:
    """Return the places that at least so many distinct lines share."""
    if not len(places):
        return places
    _, place = np.unique(_rounded(places), axis=0, return_inverse=True)
    place = place.reshape(-1)
    line_at_place = np.unique(np.concatenate([np.column_stack([place, line]) for line in pairs.T]), axis=0)
    support = np.bincount(line_at_place[:, 0])
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    mean = np.add.reduceat(places[order], starts, axis=0) / np.diff(np.append(starts, len(order)))[:, None]
    return mean[support >= least]


def _rounded(values: Floats) -> Floats:
    """Return values cut to cells, whose limits lie where the decimals of real values do not."""
    return np.floor(values * 10**DECIMALS + 0.3819660113)
