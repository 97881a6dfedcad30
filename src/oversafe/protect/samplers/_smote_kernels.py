"""Nearest neighbours, among all rows or some, with certain and uncertain members."""

from __future__ import annotations

import numpy as np

from oversafe._core.compiled import compiled

COINCIDES = -1.0
# A tree's distances are rounded in its own way: by far less than this, except where squares vanish.
SAFE = 1e-6
FAR_ABOVE_UNDERFLOW = 1e-280


@compiled
def distances(X, codes, i, others, out):
    """Write the squared distances from row i to others; -1 for rows that coincide with it, infinity for itself.

    Rows coincide when their codes are the same: a small distance may be computed as 0. Returns where row i is among the
    others, or -1.
    """
    d = X.shape[1]
    itself = -1
    for m in range(len(others)):
        j = others[m]
        total = 0.0
        for c in range(d):
            gap = X[i, c] - X[j, c]
            total += gap * gap
        out[m] = COINCIDES if codes[i] == codes[j] else total
        if j == i:
            out[m] = np.inf
            itself = m
    return itself


@compiled
def choose(found, itself, k, relative, absolute, chosen):
    """Write the places of the k smallest of the distances found that are certain.

    Distances within ``relative`` and ``absolute`` of the k-th count as equal to it. Where that leaves open who is a
    neighbour, the first number returned is how many are not in doubt; the others' distances lie between the other two.
    """
    n = len(found)
    nearest = np.full(k, np.inf)
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
        if j == itself:
            continue
        # A coincident row is nearer than any other, however small the other's distance.
        if found[j] < last - margin or (found[j] == COINCIDES and last != COINCIDES):
            if sure < k:
                chosen[sure] = j
            sure += 1
        elif found[j] <= last + margin:
            doubtful += 1
    certain = sure
    if margin == 0.0 or sure + doubtful == k:
        # Ties are exact, and the first rows in order come first; or nobody has to stay out.
        for j in range(n):
            if sure == k:
                break
            if j != itself and last - margin <= found[j] <= last + margin:
                if found[j] == COINCIDES and last != COINCIDES:
                    continue
                chosen[sure] = j
                sure += 1
        certain = k
    return certain, last - margin, last + margin


@compiled
def neighbour_lists(X, codes, k, relative, absolute, rows, lists, certain, low, high):
    """Write the neighbours of some rows among all, as :func:`choose` has them."""
    everyone = np.arange(X.shape[0])
    found = np.empty(X.shape[0])
    for i in rows:
        itself = distances(X, codes, i, everyone, found)
        certain[i], low[i], high[i] = choose(found, itself, k, relative, absolute, lists[i])


@compiled
def neighbours_among(X, codes, k, relative, absolute, rows, near, reach, lists, certain, low, high):
    """Write the neighbours of some rows among rows that are near, in the order of their positions.

    Returns which of them are settled: beyond the near ones nothing is closer than ``reach``, a squared distance, and
    where the k-th is not clearly within that, others may belong to the list.
    """
    found = np.empty(near.shape[1])
    done = np.zeros(len(rows), dtype=np.bool_)
    for r in range(len(rows)):
        i = rows[r]
        itself = distances(X, codes, i, near[r], found)
        certain[i], low[i], high[i] = choose(found, itself, k, relative, absolute, lists[i])
        done[r] = reach[r] > (1.0 + SAFE) * max(high[i], 0.0) + FAR_ABOVE_UNDERFLOW
        for m in range(certain[i]):
            lists[i, m] = near[r, lists[i, m]]
    return done
