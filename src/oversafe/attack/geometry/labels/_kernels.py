"""Compiled loops: rows on one line with two others."""

from __future__ import annotations

import numpy as np

from oversafe._core.compiled import compiled

# Where a row is on its way between two others.
NOWHERE, OUTSIDE, BEYOND, BETWEEN = 0, 1, 2, 3
# Samplers that extrapolate go at most half of the way beyond a record.
_HALF = 0.5
# A row nearer than so many errors shows no direction.
_APART = 3.0
# Directions that are told apart at each row.
_DIRECTIONS = 2


@compiled
def _place(ahead, behind, limit):
    """Return where a row lies on the line through two others, by their differences from it."""
    low, high = -np.inf, np.inf
    for j in range(len(limit)):
        way = behind[j] - ahead[j]
        if abs(way) <= limit[j]:
            # The two agree here, and the row must agree with them.
            if abs(ahead[j]) > limit[j] or abs(behind[j]) > limit[j]:
                return NOWHERE
            continue
        first = (-ahead[j] - limit[j]) / way
        last = (-ahead[j] + limit[j]) / way
        low = max(low, min(first, last))
        high = min(high, max(first, last))
        if low > high:
            return NOWHERE
    if low > 0.0 and high < 1.0:
        return BETWEEN
    if (high < 0.0 and low > -_HALF) or (low > 1.0 and high < 1.0 + _HALF):
        return BEYOND
    return OUTSIDE


@compiled
def places(rows, row_error, others, other_error, neighbors):
    """Return for each row the best place on the way between two neighbours, and on how many lines it lies.

    At most two lines are counted. A line counts where the row lies between the two, or beyond one of them by no more
    than half of the way.

    Parameters
    ----------
    rows, row_error : array (n, m)
        The rows, and how much each value may be off.
    others, other_error : array (k, m)
        The rows with which they may be on a line.
    neighbors : array (n, s)
        Which of the others are near, -1 for none.
    """
    n, m = rows.shape
    size = neighbors.shape[1]
    place = np.zeros(n, dtype=np.int8)
    lines = np.zeros(n, dtype=np.int8)
    ways = np.empty((size, m))
    limits = np.empty((size, m))
    limit = np.empty(m)
    known = np.empty(_DIRECTIONS, dtype=np.int64)
    for i in range(n):
        count = 0
        for o in range(size):
            other = neighbors[i, o]
            if other < 0:
                continue
            apart = False
            for j in range(m):
                ways[count, j] = others[other, j] - rows[i, j]
                limits[count, j] = row_error[i, j] + other_error[other, j]
                apart |= abs(ways[count, j]) > _APART * limits[count, j]
            if apart:
                count += 1
        best = NOWHERE
        directions = 0
        for a in range(count):
            for b in range(a):
                for j in range(m):
                    limit[j] = max(limits[a, j], limits[b, j])
                found = _place(ways[a], ways[b], limit)
                if found == NOWHERE:
                    continue
                best = max(best, found)
                if directions == _DIRECTIONS:
                    continue
                new = True
                for o in range(directions):
                    for one in (a, b):
                        same = one == known[o]
                        if not same:
                            for j in range(m):
                                limit[j] = max(limits[one, j], limits[known[o], j])
                            same = _place(ways[one], ways[known[o]], limit) != NOWHERE
                        new &= not same
                if new:
                    known[directions] = a
                    directions += 1
            if best == BETWEEN and directions == _DIRECTIONS:
                break
        place[i] = best
        lines[i] = directions
    return place, lines
