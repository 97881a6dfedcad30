"""Brute-force nearest neighbours with certain and uncertain members."""

from __future__ import annotations

import numpy as np

from oversafe.compiled import compiled

COINCIDES = -1.0


@compiled
def distances(X, codes, i, out):
    """Write the squared distances from row i; -1 for rows that coincide with it, infinity for itself.

    Rows coincide when their codes are the same: a small distance may be computed as 0.
    """
    n, d = X.shape
    for j in range(n):
        total = 0.0
        for c in range(d):
            gap = X[i, c] - X[j, c]
            total += gap * gap
        out[j] = COINCIDES if codes[i] == codes[j] else total
    out[i] = np.inf


@compiled
def neighbour_lists(X, codes, k, relative, absolute, start, stop, lists, certain, low, high):
    """Write the neighbours of the rows from start to stop that are certain.

    Distances within ``relative`` and ``absolute`` of the k-th count as equal to it. Where that leaves open who is a
    neighbour, ``certain`` has how many are not in doubt, and the others' distances lie from ``low`` to ``high``.
    """
    n = X.shape[0]
    found = np.empty(n)
    nearest = np.empty(k)
    for i in range(start, stop):
        distances(X, codes, i, found)
        nearest[:] = np.inf
        for j in range(n):
            value = found[j]
            if value < nearest[k - 1]:
                at = k - 1
                while at > 0 and nearest[at - 1] > value:
                    nearest[at] = nearest[at - 1]
                    at -= 1
                nearest[at] = value
        last = nearest[k - 1]
        margin = 0.0
        # What coincides does so exactly, and so does everything when there is no rounding.
        if last != COINCIDES and relative > 0.0:
            margin = relative * last + absolute
        sure = 0
        doubtful = 0
        for j in range(n):
            if j == i:
                continue
            # A coincident row is nearer than any other, however small the other's distance.
            if found[j] < last - margin or (found[j] == COINCIDES and last != COINCIDES):
                if sure < k:
                    lists[i, sure] = j
                sure += 1
            elif found[j] <= last + margin:
                doubtful += 1
        certain[i] = sure
        low[i] = last - margin
        high[i] = last + margin
        if margin == 0.0 or sure + doubtful == k:
            # Ties are exact, and the first rows in order come first; or nobody has to stay out.
            for j in range(n):
                if sure == k:
                    break
                if j != i and last - margin <= found[j] <= last + margin:
                    if found[j] == COINCIDES and last != COINCIDES:
                        continue
                    lists[i, sure] = j
                    sure += 1
            certain[i] = k
