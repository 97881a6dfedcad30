"""SMOTE on two neighbouring tables with the same draws, row by row: how many rows really differ."""

from __future__ import annotations

from collections import Counter

import numpy as np

from oversafe.protect.samplers.stable_smote import stable_neighbours


def random_table(rng, n, d):
    """A table of one of several kinds, most of them with ties and some with records that coincide."""
    kind = rng.integers(5)
    if kind == 0:
        return rng.normal(size=(n, d))
    if kind == 1:
        return rng.integers(0, 3, (n, d)).astype(float)
    if kind == 2:
        return rng.integers(0, 6, (n, d)) * 0.1
    if kind == 3:
        # Around a centre, where it is everybody's neighbour.
        points = rng.choice([-1.0, 0.0, 1.0], (n, d))
        points[0] = 0.0
        return points * rng.choice([1.0, 2.0], (n, 1))
    return np.repeat(rng.normal(size=(-(-n // 3), d)), 3, axis=0)[:n]


def neighbours(rng, n, d, relation):
    """(table, other table, position that differs): the second lacks the record, or has another in its place."""
    X = random_table(rng, n, d)
    at = 0 if rng.random() < 0.5 else int(rng.integers(n))
    if relation == "add-remove":
        return X, np.delete(X, at, axis=0), at
    other = X.copy()
    other[at] = (
        X[rng.integers(n)] if rng.random() < 0.3 else random_table(rng, n, d)[0] * rng.choice([1.0, 9.0])
    )
    return X, other, at


def aligned_lists(X, other, at, k, relation):
    """The ends of each record's lines in both tables, those in common in the same place: (n, k, d) each.

    The entries of the record that differs are not used.
    """
    n = len(X)
    ends, other_ends = X[stable_neighbours(X, k)], other[stable_neighbours(other, k)]
    for i in range(n):
        if i == at:
            continue
        j = i - (relation == "add-remove" and i > at)
        left, right = ends[i].tolist(), other_ends[j].tolist()
        common = list((Counter(map(tuple, left)) & Counter(map(tuple, right))).elements())
        for side, index in ((ends, i), (other_ends, j)):
            rest = list(map(tuple, side[index].tolist()))
            for entry in common:
                rest.remove(entry)
            side[index] = np.array(common + rest)
    return ends, other_ends


def changed_lists(X, ends, other_ends, at, relation):
    """How many entries of each other record's list differ."""
    keep = np.delete(np.arange(len(X)), at)
    other = keep - (keep > at) if relation == "add-remove" else keep
    return (ends[keep] != other_ends[other]).any(axis=2).sum(axis=1)


def random_bases(rng, X, other, at, ends, other_ends, n_added, trials, relation):
    """The number of rows that differ, for each trial."""
    n, k = len(X), ends.shape[1]
    shape = (trials, n_added)
    base, slot, gap = rng.integers(n, size=shape), rng.integers(k, size=shape), rng.random((*shape, 1))
    other_base = base
    if relation == "add-remove":
        other_base = np.where(base == at, rng.integers(n - 1, size=shape), base - (base > at))
    rows = X[base] + gap * (ends[base, slot] - X[base])
    other_rows = other[other_base] + gap * (other_ends[other_base, slot] - other[other_base])
    return (rows != other_rows).any(axis=2).sum(axis=1)


def cyclic_bases(rng, X, other, at, ends, other_ends, n_added, relation):
    """The number of rows that differ in one run, as multisets."""
    n, m = len(X), len(other)
    k = ends.shape[1]
    uses = -(-n_added // m)
    slot, gap = rng.integers(k, size=(n + 1, uses)), rng.random((n + 1, uses, 1))
    base, turn = np.arange(n_added) % n, np.arange(n_added) // n
    rows = X[base] + gap[base, turn] * (ends[base, slot[base, turn]] - X[base])
    base, turn = np.arange(n_added) % m, np.arange(n_added) // m
    # The same draws for the same record.
    name = base + (base >= at) if relation == "add-remove" else base
    other_rows = other[base] + gap[name, turn] * (other_ends[base, slot[name, turn]] - other[base])
    both = Counter(map(tuple, rows.tolist())) & Counter(map(tuple, other_rows.tolist()))
    return n_added - both.total()
