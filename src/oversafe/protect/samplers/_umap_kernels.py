"""Compiled loops of the synthesizer on an embedding: pure functions on arrays."""

from __future__ import annotations

import numpy as np

from oversafe._core.compiled import compiled


@compiled
def mixed_neighbors(points, categories, penalty, k):
    """Return the k nearest other rows of each row, by distance in the embedding and differing categories.

    The squared distance is that of the points plus ``penalty`` for each category that differs. ``points`` are
    sorted by their first coordinate, so that the search goes outwards from a row and stops where that
    coordinate alone is farther than the k-th best.
    """
    n, d = points.shape
    found = np.empty((n, k), dtype=np.int64)
    distance = np.empty(k)
    for row in range(n):
        for place in range(k):
            distance[place] = np.inf
            found[row, place] = row
        left, right = row - 1, row + 1
        while left >= 0 or right < n:
            gap_left = points[row, 0] - points[left, 0] if left >= 0 else np.inf
            gap_right = points[right, 0] - points[row, 0] if right < n else np.inf
            gap = min(gap_left, gap_right)
            if gap * gap >= distance[k - 1]:
                break
            if gap_left <= gap_right:
                other = left
                left -= 1
            else:
                other = right
                right += 1
            total = 0.0
            for column in range(d):
                difference = points[row, column] - points[other, column]
                total += difference * difference
            if total < distance[k - 1]:
                for column in range(categories.shape[1]):
                    if categories[row, column] != categories[other, column]:
                        total += penalty
            if total < distance[k - 1]:
                place = k - 1
                while place > 0 and distance[place - 1] > total:
                    distance[place] = distance[place - 1]
                    found[row, place] = found[row, place - 1]
                    place -= 1
                distance[place] = total
                found[row, place] = other
    return found


@compiled
def back_project(values, neighbors, weights, mixing, jitter, uniform, spikes, fill, spread):
    """Return a row of the original space for each set of neighbours: a draw from their local distribution.

    A row is the neighbours' weighted mean plus ``spread`` times a draw from their weighted covariance: their
    deviations from the mean, each times a normal number (``mixing``) and the root of its weight, add up to just
    that; ``jitter`` is added to it, column by column.

    Missing values (NaN) take no part. Where a column has a spike, a value that many rows share, the row has it
    as often as the neighbours do, and their other values take part otherwise.
    """
    n, k = neighbors.shape
    d = values.shape[1]
    result = np.empty((n, d))
    for row in range(n):
        for column in range(d):
            spike = spikes[column]
            total, at_spike, mean = 0.0, 0.0, 0.0
            for place in range(k):
                value = values[neighbors[row, place], column]
                if value == spike:
                    at_spike += weights[row, place]
                elif not np.isnan(value):
                    total += weights[row, place]
                    mean += weights[row, place] * value
            if total + at_spike == 0.0:
                result[row, column] = fill[column]
                continue
            if total == 0.0 or uniform[row, column] * (total + at_spike) < at_spike:
                result[row, column] = spike
                continue
            mean /= total
            shift = 0.0
            for place in range(k):
                value = values[neighbors[row, place], column]
                if value != spike and not np.isnan(value):
                    share = np.sqrt(weights[row, place] / total)
                    shift += mixing[row, place] * share * (value - mean)
            moved = mean + spread * shift + jitter[row, column]
            # Back into the column's range, [0, 1], by reflection; what is still outside was far off.
            if moved < 0.0:
                moved = -moved
            if moved > 1.0:
                moved = 2.0 - moved
            result[row, column] = min(max(moved, 0.0), 1.0)
    return result
