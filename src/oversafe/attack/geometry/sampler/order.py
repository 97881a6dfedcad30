"""In which order rows were made: record after record, in blocks of one size, cluster after cluster, or at random."""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from oversafe.attack.geometry.sampler.traces import (
    ERROR_RATE,
    BoolArray,
    Finding,
    FloatArray,
    IntArray,
    Traces,
)

# The rows that are looked at: enough for any order, and quick.
_ROWS = 5_000
# Sizes of blocks that are tried.
_LARGEST = 100
# In a block one pair of neighbouring rows in so many may be read wrong.
_MISREAD = 0.01
# Pairs of rows at random, which show how often two rows share a record by chance.
_PAIRS = 20_000
# A cluster has so many rows.
_CLUSTER = 5


@dataclass(frozen=True)
class Order:
    """In which order the rows of a release come.

    Parameters
    ----------
    kind : str
        "random" if no other is shown, "blocks" of one size or sizes that differ by one, "bases" (record after
        record, with counts of their own), or "clusters".
    size : int or None
        The size of a block or a divisor of it, 1 if it is not known; of two sizes the smaller.
    even : bool
        Whether all blocks have one size.
    finding : Finding
        The reason.
    """

    kind: str
    size: int | None
    even: bool
    finding: Finding


def order_of(traces: Traces, static: BoolArray | None = None) -> Order:
    """Return the order of a release's rows.

    Parameters
    ----------
    traces : Traces
        The rows.
    static : array of bool (n, m), optional
        The cells in which both parents have the same value. Rows of one record then agree in all columns where both
        are static, whether or not the record is known; used where few parents are.
    """
    n = min(len(traces.rows), _ROWS)
    told, agrees, chance = _by_records(traces, n)
    bases = _bases(traces, told, agrees, chance, n)
    gain = _gains(told, agrees, np.full(n, chance))
    shown = None
    if told.sum() < n / 2 and static is not None:
        shown = np.where(static[:n], traces.rows[:n], np.nan)
        gain = _by_static(traces.rows[:n], static[:n])
    if not gain.any():
        return Order("random", None, False, Finding("the order of the rows is not known", 1.0))
    blocks, size, even = _blocks(gain, shown)
    rival = blocks
    if shown is None:
        misread, of_size = _misread_blocks(told, agrees, chance)
        rival = max(blocks, misread)
        # Rows that are near each other for another reason are so across the ends of blocks as well.
        anywhere = _any_share(int((told & agrees).sum()), int((told & ~agrees).sum()), chance)
        if misread > blocks and misread + np.log(ERROR_RATE) >= anywhere:
            blocks, size, even = misread, of_size, True
    p = float(np.exp(min(0.0, -max(blocks, bases))))
    if p > ERROR_RATE:
        return _clusters(traces, n)
    # Numbers of their own are said of records only where equal ones are excluded.
    if bases + np.log(ERROR_RATE) > rival:
        found = Finding("the rows come record by record, with numbers that differ", p)
        return Order("bases", None, False, found)
    if bases > blocks:
        size, even = 1, True
    rows = f"{size} or {size + 1}" if not even else f"{size} or a multiple" if size > 1 else "perhaps as many"
    return Order("blocks", size, even, Finding(f"the rows come record by record, {rows} of each", p))


def _by_records(traces: Traces, n: int) -> tuple[BoolArray, BoolArray, float]:
    """Return by row whether it and the one before are known, whether they share a record, and how often any two do."""
    known = np.flatnonzero(traces.known[:n])
    told, agrees = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    if len(known) < 4:
        return told, agrees, 0.0
    ends = traces.ends
    near = known[1:][np.diff(known) == 1]
    told[near], agrees[near] = True, _share(ends[near], ends[near - 1])
    rng = np.random.default_rng(0)
    one, other = rng.choice(known, _PAIRS), rng.choice(known, _PAIRS)
    two = one != other
    chance = (_share(ends[one[two]], ends[other[two]]).sum() + 1) / (two.sum() + 2)
    return told, agrees, float(chance)


def _by_static(rows: FloatArray, static: BoolArray) -> FloatArray:
    """Return by row how much likelier it is after the row before in one block than at random, as a logarithm.

    Rows of one record agree where both are static. At random they agree in the most telling column, and so in all, as
    often as two static values of it are equal.
    """
    chance = np.ones(rows.shape[1])
    for j in np.flatnonzero(static.any(axis=0)).tolist():
        counts = np.unique(rows[static[:, j], j], return_counts=True)[1].astype(float)
        chance[j] = ((counts**2).sum() + 1) / (counts.sum() ** 2 + 1)
    both = static[1:] & static[:-1]
    differ = (both & (rows[1:] != rows[:-1])).any(axis=1)
    least = np.where(both, chance, 1.0).min(axis=1)
    gain = np.zeros(len(rows))
    gain[1:] = np.where(differ, np.log(_MISREAD), np.where(least < 1, np.log((1 - _MISREAD) / least), 0.0))
    return gain


def _share(one: IntArray, other: IntArray) -> BoolArray:
    return np.asarray((one[:, :, None] == other[:, None, :]).any(axis=(1, 2)))


def _gains(told: BoolArray, agrees: BoolArray, chance: FloatArray) -> FloatArray:
    """Return by row the logarithm of how much likelier it is after the row before in one block than at random."""
    chance = np.clip(chance, 1e-9, 1 - 1e-9)
    inside = np.where(agrees, np.log((1 - _MISREAD) / chance), np.log(_MISREAD / (1 - chance)))
    return np.where(told, inside, 0.0)


def _blocks(gain: FloatArray, shown: FloatArray | None) -> tuple[float, int, bool]:
    """Return the logarithm of the likelihood ratio of the best sizes of blocks against a random order, and the size.

    Every size that is not excluded by a better one is a multiple of the size that is returned, 1 if nothing is. Static
    values exclude sizes in whose blocks they differ.
    """
    n = len(gain)
    total = np.concatenate([[0.0], np.cumsum(gain)])
    sizes = range(2, min(_LARGEST, n // 2) + 1)
    # The first row of a block says nothing.
    gains = np.array([gain.sum() - gain[::one].sum() for one in sizes])
    best, size, even = -np.inf, 1, True
    if len(gains):
        best = float(gains.max())
        margin = float(np.log(ERROR_RATE / len(gains)))
        possible = np.flatnonzero(gains >= best + margin)
        if shown is not None:
            wrong = np.array([contradicted(shown, int(one) + sizes.start) for one in possible])
            score = gains[possible] + wrong * np.log(_MISREAD)
            possible = possible[score >= score.max() + margin]
        size = int(np.gcd.reduce(possible + sizes.start))
    # Blocks of a size or one more, all sizes at once: what is known of the best way up to each row.
    two = np.arange(3, sizes.stop)
    if len(two):
        value = np.full((n + 1, len(two)), -np.inf)
        value[0] = 0.0
        number = np.arange(len(two))
        for at in range(1, n + 1):
            for length in (two, two + 1):
                start = np.maximum(at - length, 0)
                way = value[start, number] + total[at] - total[np.minimum(start + 1, n)] - np.log(2)
                value[at] = np.maximum(value[at], np.where(at >= length, way, -np.inf))
        # The last block may be cut off.
        last = value + total[n] - total[np.minimum(np.arange(n + 1) + 1, n)][:, None]
        last[np.arange(n + 1)[:, None] < n - two[None]] = -np.inf
        found = last.max(axis=0)
        if found.max() + np.log(ERROR_RATE) > best:
            best, size, even = float(found.max()), int(two[found.argmax()]), False
    # Every size had its chance, even or not.
    return best - np.log(2 * max(1, len(sizes))), size, even


def _misread_blocks(told: BoolArray, agrees: BoolArray, chance: float) -> tuple[float, int]:
    """Return the same of blocks of one size in which any share of the pairs was read wrong."""
    n = len(told)
    sizes = range(2, min(_LARGEST, n // 2) + 1)
    if not len(sizes) or not 0 < chance < 1:
        return -np.inf, 1
    gains = []
    for one in sizes:
        inside = told & (np.arange(n) % one != 0)
        gains.append(_any_share(int((inside & agrees).sum()), int((inside & ~agrees).sum()), chance))
    best = max(gains)
    margin = float(np.log(ERROR_RATE / len(gains)))
    possible = np.flatnonzero(np.array(gains) >= best + margin)
    return best - float(np.log(2 * len(sizes))), int(np.gcd.reduce(possible + sizes.start))


def _any_share(hits: int, misses: int, chance: float) -> float:
    """Return the logarithm of the likelihood ratio of agreement with any probability against that by chance."""
    beta = lgamma(hits + 1) + lgamma(misses + 1) - lgamma(hits + misses + 2)
    return beta - hits * float(np.log(chance)) - misses * float(np.log(1 - chance))


def in_blocks(shown: FloatArray, size: int) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest value of each block of rows in each column; NaN where it has none."""
    starts = np.arange(0, len(shown), size)
    return np.fmin.reduceat(shown, starts, axis=0), np.fmax.reduceat(shown, starts, axis=0)


def contradicted(shown: FloatArray, size: int) -> int:
    """Return in how many blocks of rows static values of one column differ."""
    low, high = in_blocks(shown, size)
    return int((low < high).any(axis=1).sum())


def _bases(traces: Traces, told: BoolArray, agrees: BoolArray, chance: float, n: int) -> float:
    """Return the same of runs of any length, each with a record of its own."""
    tries, hits = int(told.sum()), int((told & agrees).sum())
    # A record has one run only: there are no more runs than records. A sorted file has more.
    if tries < 3 or hits < tries / 2 or _runs(traces.ends[:n][traces.known[:n]]) > len(traces.places):
        return -np.inf
    return _any_share(hits, tries - hits, chance)


def _runs(ends: IntArray) -> int:
    """Return into how many runs with a common record the rows fall at least."""
    runs, common = 0, set[int]()
    for pair in ends.tolist():
        common &= set(pair)
        if not common:
            runs, common = runs + 1, set(pair)
    return runs


def _clusters(traces: Traces, n: int) -> Order:
    """Return whether the rows come cluster by cluster: no row leads from one to another, and each is one run."""
    none = Order("random", None, False, Finding("the rows come in no order that shows", 1.0))
    known = np.flatnonzero(traces.known[:n])
    if not len(known):
        return none
    first, second = traces.ends[known].T
    r = len(traces.places)
    links = coo_array((np.ones(len(known)), (first, second)), shape=(r, r))
    label = connected_components(links, directed=False)[1][first]
    _, number, counts = np.unique(label, return_inverse=True, return_counts=True)
    number = number[counts[number] >= _CLUSTER]
    large = int((counts >= _CLUSTER).sum())
    if large < 2 or int((np.diff(number) != 0).sum()) != large - 1:
        return none
    # All orders of the runs among all orders of the rows.
    log_p = (
        lgamma(large + 1) + sum(lgamma(c + 1) for c in counts[counts >= _CLUSTER]) - lgamma(len(number) + 1)
    )
    found = Finding(
        f"the rows come in {large} groups whose records have nothing in common", float(np.exp(log_p))
    )
    return Order("clusters", None, False, found) if found.holds else none
