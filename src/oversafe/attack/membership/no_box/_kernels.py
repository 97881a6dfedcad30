"""Compiled loops of the no-box test: neighbors in mixed columns, and distances to segments."""

from __future__ import annotations

import math

import numpy as np

from oversafe._core.compiled import compiled


@compiled
def nearest(numbers, codes, unit, low, high, other_codes, other_unit, costs, starts, widths):
    """Return for each row what its nearest other rows are like.

    Numbers are scaled, so that a difference is a cost; NaN differs from a number by 1. ``low`` and ``high`` are the
    ends of the other rows' ranges. The cost of other code b in column j for own code a is
    ``costs[starts[j] + b * widths[j] + a]``. Rows of the same unit are passed over; units of -1 are nobody's.

    Returns an array (n, 8): the five smallest sums of costs, the two smallest sums without the worst column, and the
    smallest Euclidean distance.
    """
    n, p = numbers.shape
    q = codes.shape[1]
    result = np.full((n, 8), np.inf)
    for i in range(n):
        best = result[i]
        for r in range(len(low)):
            if unit[i] == other_unit[r] and unit[i] >= 0:
                continue
            total, worst, square = 0.0, 0.0, 0.0
            passed = False
            for j in range(p):
                x = numbers[i, j]
                if x < low[r, j]:
                    cost = low[r, j] - x
                elif x > high[r, j]:
                    cost = x - high[r, j]
                elif x >= low[r, j] and x <= high[r, j]:
                    cost = 0.0
                else:
                    # A missing value is like a missing one alone.
                    cost = 0.0 if math.isnan(x) and math.isnan(low[r, j]) else 1.0
                total += cost
                square += cost * cost
                worst = max(worst, cost)
                if total - worst > best[6] and total > best[4] and square > best[7]:
                    passed = True
                    break
            if passed:
                continue
            for j in range(q):
                cost = costs[starts[j] + other_codes[r, j] * widths[j] + codes[i, j]]
                total += cost
                square += cost * cost
                worst = max(worst, cost)
            if total < best[4]:
                place = 4
                while place > 0 and best[place - 1] > total:
                    best[place] = best[place - 1]
                    place -= 1
                best[place] = total
            trimmed = total - worst
            if trimmed < best[5]:
                best[6] = best[5]
                best[5] = trimmed
            elif trimmed < best[6]:
                best[6] = trimmed
            if square < best[7]:
                best[7] = square
        best[7] = math.sqrt(best[7])
    return result


@compiled
def closest_rows(numbers, unit, k):
    """Return for each row the k nearest rows of other units by squared differences; -1 where there are fewer."""
    n, p = numbers.shape
    places = np.full((n, k), -1, dtype=np.int64)
    for i in range(n):
        distance = np.full(k, np.inf)
        for r in range(n):
            if unit[i] == unit[r]:
                continue
            square = 0.0
            for j in range(p):
                difference = numbers[i, j] - numbers[r, j]
                square += difference * difference
                if square >= distance[k - 1]:
                    break
            if square < distance[k - 1]:
                place = k - 1
                while place > 0 and distance[place - 1] > square:
                    distance[place] = distance[place - 1]
                    places[i, place] = places[i, place - 1]
                    place -= 1
                distance[place] = square
                places[i, place] = r
    return places


@compiled
def off_segments(numbers, neighbors, released):
    """Return for each row how far a released row is at least from the segments between it and its neighbors."""
    n, p = numbers.shape
    k = neighbors.shape[1]
    result = np.full(n, np.inf)
    length = np.zeros(k)
    for i in range(n):
        reach = 0.0
        for m in range(k):
            length[m] = 0.0
            if neighbors[i, m] >= 0:
                for j in range(p):
                    way = numbers[neighbors[i, m], j] - numbers[i, j]
                    length[m] += way * way
                reach = max(reach, length[m])
        reach = math.sqrt(reach)
        for r in range(len(released)):
            limit = (reach + math.sqrt(result[i])) ** 2
            square = 0.0
            for j in range(p):
                difference = released[r, j] - numbers[i, j]
                square += difference * difference
                if square > limit:
                    break
            if not square <= limit:
                continue
            for m in range(k):
                if neighbors[i, m] < 0:
                    continue
                along = 0.0
                for j in range(p):
                    along += (released[r, j] - numbers[i, j]) * (numbers[neighbors[i, m], j] - numbers[i, j])
                share = min(max(along / length[m], 0.0), 1.0) if length[m] > 0.0 else 0.0
                off = square - 2.0 * share * along + share * share * length[m]
                result[i] = min(result[i], max(off, 0.0))
    return np.sqrt(result)
