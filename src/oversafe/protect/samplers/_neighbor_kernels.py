"""Compiled loops of the protectors: pure functions on arrays."""

from __future__ import annotations

import numpy as np

from oversafe._core.compiled import compiled


@compiled
def nearest_of_all(tiles, queries, k):
    """Return the k nearest points of each query by squared distance, the nearest first.

    ``tiles`` has the shape (n_tiles, n_features, size): few enough points at a time to stay in a core's own
    cache, one feature after the other, so that the inner loop runs over contiguous memory. Of points at the
    same distance the first counts as nearer.
    """
    n_tiles, d, size = tiles.shape
    found = np.zeros((len(queries), k), dtype=np.int64)
    best = np.full((len(queries), k), np.float32(np.inf), dtype=np.float32)
    distance = np.empty(size, dtype=np.float32)
    for tile in range(n_tiles):
        for query in range(len(queries)):
            for at in range(size):
                distance[at] = 0.0
            for column in range(d):
                value = queries[query, column]
                block = tiles[tile, column]
                for at in range(size):
                    difference = block[at] - value
                    distance[at] += difference * difference
            worst = best[query, k - 1]
            for at in range(size):
                if distance[at] < worst:
                    place = k - 1
                    while place > 0 and best[query, place - 1] > distance[at]:
                        best[query, place] = best[query, place - 1]
                        found[query, place] = found[query, place - 1]
                        place -= 1
                    best[query, place] = distance[at]
                    found[query, place] = tile * size + at
                    worst = best[query, k - 1]
    return found


@compiled
def is_safe_group(members, start, end, sensitive, overall, k, diversity, closeness, ordered, counts):
    """Return whether rows are enough, and their sensitive values different enough and spread like all of them.

    Closeness is the earth mover's distance to the whole table: half the sum of the differences, or, of
    ordered values, the mean of the differences of the cumulated shares.
    """
    size = end - start
    if size < k:
        return False
    if diversity <= 1 and closeness >= 1.0:
        return True
    for value in range(len(counts)):
        counts[value] = 0
    for at in range(start, end):
        counts[sensitive[members[at]]] += 1
    different = 0
    distance = 0.0
    cumulated = 0.0
    for value in range(len(counts)):
        if counts[value] > 0:
            different += 1
        difference = counts[value] / size - overall[value]
        if ordered:
            cumulated += difference
            distance += abs(cumulated)
        else:
            distance += abs(difference)
    if ordered:
        distance /= max(len(counts) - 1, 1)
    else:
        distance /= 2.0
    return different >= diversity and distance <= closeness


@compiled
def mondrian(ranks, depths, sensitive, overall, k, diversity, closeness, ordered):
    """Return the group of each row: the table is cut in two, again and again, while both sides stay safe.

    ``ranks`` holds the dense ranks of one column per row; ``depths[column, r]`` says how deep in the column's
    hierarchy the ranks r - 1 and r part, 0 for numbers. The column with the widest range in a group, as a
    share of its whole range, is cut first: where the hierarchy parts highest, and there nearest to the middle.
    """
    d, n = ranks.shape
    members = np.arange(n)
    groups = np.zeros(n, dtype=np.int64)
    counts = np.zeros(len(overall), dtype=np.int64)
    spans = np.ones(d)
    for column in range(d):
        spans[column] = max(1, ranks[column].max())
    starts = np.empty(n + 1, dtype=np.int64)
    ends = np.empty(n + 1, dtype=np.int64)
    widths = np.empty(d)
    aside = np.empty(n, dtype=np.int64)
    waiting = 1
    starts[0], ends[0] = 0, n
    n_groups = 0
    while waiting > 0:
        waiting -= 1
        start, end = starts[waiting], ends[waiting]
        size = end - start
        for column in range(d):
            low = ranks[column, members[start]]
            high = low
            for at in range(start + 1, end):
                rank = ranks[column, members[at]]
                low = min(low, rank)
                high = max(high, rank)
            widths[column] = (high - low) / spans[column]
        done = False
        while not done and size >= 2 * k:
            column = int(np.argmax(widths))
            if widths[column] <= 0.0:
                break
            widths[column] = 0.0
            values = np.empty(size, dtype=np.int64)
            for at in range(size):
                values[at] = ranks[column, members[start + at]]
            values.sort()
            cut, cut_depth, cut_balance = -1, 0, 0
            for at in range(1, size):
                if values[at] == values[at - 1]:
                    continue
                depth = depths[column, values[at - 1] + 1]
                for rank in range(values[at - 1] + 2, values[at] + 1):
                    depth = min(depth, depths[column, rank])
                balance = abs(2 * at - size)
                if cut < 0 or depth < cut_depth or (depth == cut_depth and balance < cut_balance):
                    cut, cut_depth, cut_balance = values[at], depth, balance
            # Those below the cut to the front, in their order, and the others behind them.
            middle, beyond = start, 0
            for at in range(start, end):
                row = members[at]
                if ranks[column, row] < cut:
                    members[middle] = row
                    middle += 1
                else:
                    aside[beyond] = row
                    beyond += 1
            for at in range(beyond):
                members[middle + at] = aside[at]
            if is_safe_group(
                members, start, middle, sensitive, overall, k, diversity, closeness, ordered, counts
            ) and is_safe_group(
                members, middle, end, sensitive, overall, k, diversity, closeness, ordered, counts
            ):
                starts[waiting], ends[waiting] = start, middle
                starts[waiting + 1], ends[waiting + 1] = middle, end
                waiting += 2
                done = True
        if not done:
            for at in range(start, end):
                groups[members[at]] = n_groups
            n_groups += 1
    return groups
