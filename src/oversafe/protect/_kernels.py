"""Compiled loops of the protectors: pure functions on arrays."""

from __future__ import annotations

import numpy as np

from oversafe.compiled import compiled


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
