"""The compiled inner loops of the linkage and similarity attacks."""

from __future__ import annotations

import numpy as np

from oversafe._core.compiled import compiled

# Rows are taken in blocks that stay in the cache while every target is held against them.
_BLOCK = 1024
# Conditions of a predicate: a value lies in an interval, outside it, or is missing.
WITHIN, OUTSIDE, MISSING = 0, 1, 2


@compiled
def nearest_rows(table, n_numbers, targets, uses, skip, n_neighbors, squared, seed):
    """Return the nearest rows of a table to each target and their distances, in the columns that the target uses.

    ``table`` holds one column per row, the numbers first. A number's distance counts at most 1, which is
    also what different categories count. Rows at the same distance are taken in an order drawn for the
    target from ``seed``, so that the order of the table gives nothing away. ``skip`` is a row that a
    target must not find, or -1.
    """
    n_rows = table.shape[1]
    n_targets = targets.shape[0]
    found = np.full((n_targets, n_neighbors), -1, dtype=np.int64)
    distances = np.full((n_targets, n_neighbors), np.inf)
    orders = np.zeros((n_targets, n_neighbors), dtype=np.uint64)
    sums = np.empty(_BLOCK)
    for start in range(0, n_rows, _BLOCK):
        size = min(_BLOCK, n_rows - start)
        for target in range(n_targets):
            for i in range(size):
                sums[i] = 0.0
            for column in range(table.shape[0]):
                if not uses[target, column]:
                    continue
                value = targets[target, column]
                block = table[column, start : start + size]
                if column >= n_numbers:
                    for i in range(size):
                        sums[i] += 1.0 if block[i] != value else 0.0
                elif squared:
                    for i in range(size):
                        difference = abs(block[i] - value)
                        difference = difference if difference < 1.0 else 1.0
                        sums[i] += difference * difference
                else:
                    for i in range(size):
                        difference = abs(block[i] - value)
                        sums[i] += difference if difference < 1.0 else 1.0
            best = distances[target]
            worst = best[n_neighbors - 1]
            for i in range(size):
                if sums[i] > worst:
                    continue
                row = start + i
                if row == skip[target]:
                    continue
                order = _order(seed, target, row)
                place = n_neighbors
                while place > 0 and (
                    sums[i] < best[place - 1]
                    or (sums[i] == best[place - 1] and order < orders[target, place - 1])
                ):
                    place -= 1
                if place == n_neighbors:
                    continue
                for later in range(n_neighbors - 1, place, -1):
                    best[later] = best[later - 1]
                    orders[target, later] = orders[target, later - 1]
                    found[target, later] = found[target, later - 1]
                best[place] = sums[i]
                orders[target, place] = order
                found[target, place] = row
                worst = best[n_neighbors - 1]
    return found, distances


@compiled
def _order(seed, target, row):
    """Return a number that orders the rows at random, in another order for each target (splitmix64)."""
    z = np.uint64(seed) + np.uint64(target) * np.uint64(0xD1B54A32D192ED03)
    z += np.uint64(row + 1) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def count_matches(table, columns, kinds, lows, highs, most):
    """Return how many rows each predicate matches, counting on until ``most`` are passed, and the last match.

    ``table`` holds one column per row, NaN where a value is missing; a predicate is a row of ``columns``
    (-1 for none), with the kind and the ends of each condition.
    """
    n_predicates, n_conditions = columns.shape
    n_rows = table.shape[1]
    counts = np.zeros(n_predicates, dtype=np.int64)
    last = np.full(n_predicates, -1, dtype=np.int64)
    matches = np.empty(_BLOCK, dtype=np.uint8)
    for predicate in range(n_predicates):
        for start in range(0, n_rows, _BLOCK):
            size = min(_BLOCK, n_rows - start)
            for i in range(size):
                matches[i] = 1
            for condition in range(n_conditions):
                column = columns[predicate, condition]
                if column < 0:
                    continue
                low, high = lows[predicate, condition], highs[predicate, condition]
                block = table[column, start : start + size]
                if kinds[predicate, condition] == WITHIN:
                    for i in range(size):
                        matches[i] &= (block[i] >= low) & (block[i] <= high)
                elif kinds[predicate, condition] == OUTSIDE:
                    for i in range(size):
                        matches[i] &= (block[i] < low) | (block[i] > high)
                else:
                    for i in range(size):
                        matches[i] &= block[i] != block[i]
            matched = 0
            for i in range(size):
                matched += matches[i]
            if matched:
                counts[predicate] += matched
                for i in range(size):
                    if matches[i]:
                        last[predicate] = start + i
                if counts[predicate] > most:
                    break
    return counts, last
