"""The two searches for the seed: by the shares of single rows, and by the order of the rows.

Each states p: how probable so good a match is at one of all the seeds and layouts tried if none of them made the
release. Then the numbers drawn under a seed have nothing to do with the rows, whatever these are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, rankdata

from oversafe.attack.seed import _kernels
from oversafe.attack.seed.shares import Shares

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Words that the Mersenne Twister makes at once.
BLOCK = 624
# Bits of a double that are looked up first.
_BITS = 18
# The shares that are used may match so many of the random doubles: more tell nothing more.
_MATCHED_BY_CHANCE = 0.02
# A part of a stream has so many doubles of rows whose share is known.
_IN_A_PART = 20
# At least so many of the rows are made.
_SMALLEST_SHARE = 0.25
# Making a word and throwing it away takes so much less than looking at it.
_SKIPPED = 0.35
# Rows whose order is looked at, so that many are made from the same records as others; and near rows of each.
_FEWEST_ROWS, _MOST_ROWS, _PAIRS, _NEAR = 300, 3_000, 100, 3
# Rows after which most layouts are given up.
_EARLY = 100
# Comparing a row with those near it takes so much more than looking at a word.
_COMPARING = 5.0
# Matches that are worth a list.
_MOST_FOUND = 1_000


@dataclass(frozen=True)
class Plan:
    """Which seeds are tried, the likeliest first, until one matches.

    Parameters
    ----------
    portions : iterable of Portion
        The seeds; it ends where the time does.
    deep : array
        Seeds of which more of the stream is tried.
    more : int
        How many words more.
    n_seeds : int
        How many seeds there are in all: p counts those that are not reached too.
    """

    portions: Iterable[IntArray]
    deep: IntArray
    more: int
    n_seeds: int


@dataclass(frozen=True)
class SeedMatch:
    """A seed whose numbers match the rows.

    Parameters
    ----------
    seed : int
        The seed.
    matched : int
        How many numbers match.
    expected : float
        How many match by chance.
    p : float
        The probability that one of all the seeds tried matches as well by chance.
    way : int
        The number of the layout, where one was tried.
    part : int
        The first word of the part of the stream that matches.
    """

    seed: int
    matched: int
    expected: float
    p: float
    way: int = -1
    part: int = 0


@dataclass(frozen=True)
class Layout:
    """How a table of rows in order may have been made.

    Parameters
    ----------
    n_base : int
        The records that rows were made from.
    k : int
        Their neighbors.
    begin : int
        How many real rows come first.
    """

    n_base: int
    k: int
    begin: int


def words_of(seed: int, count: int) -> NDArray[np.uint32]:
    """Return the first words of a seed's stream, and as many more as fill a block."""
    state, words = np.empty(BLOCK, np.uint32), np.empty(_blocks(count), np.uint32)
    _kernels.start(seed, state)
    _kernels.fill(state, words)
    return words


def _blocks(count: float) -> int:
    return -(-int(count) // BLOCK) * BLOCK


def doubles_of(words: NDArray[np.uint32]) -> FloatArray:
    """Return the double that begins at each word but the last."""
    first, second = words[:-1] >> np.uint32(5), words[1:] >> np.uint32(6)
    return np.asarray((first * 67108864.0 + second) / 2.0**53)


def candidates_of(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the intervals in which the number drawn for a row may lie, of shape (4, n).

    Which end of a row was drawn first is not known, and SVMSMOTE goes half a number beyond it: u, 1 - u, 2 u and
    2 (1 - u).
    """
    lows = np.stack([low, 1 - high, 2 * low, 2 - 2 * high])
    return lows, np.stack([high, 1 - low, 2 * high, 2 - 2 * low])


def intervals_of(shares: Shares) -> tuple[FloatArray, FloatArray]:
    """Return where a double is the number drawn for one of the rows: sorted intervals that do not overlap.

    Of many rows the sharpest are used.
    """
    order = np.argsort(shares.high - shares.low, kind="stable")
    low, high = shares.low[order], shares.high[order]
    each = 6 * (high - low) + 8 * 2.0**-53
    keep = max(1, int((np.cumsum(each) <= _MATCHED_BY_CHANCE).sum())) if len(low) else 0
    lows, highs = (ends.ravel() for ends in candidates_of(low[:keep], high[:keep]))
    inside = (highs >= 0) & (lows < 1)
    lows, highs = np.maximum(lows[inside], 0.0), np.minimum(highs[inside], 1.0)
    order = np.argsort(lows, kind="stable")
    lows, highs = lows[order], highs[order]
    if not len(lows):
        return lows, highs
    apart = lows[1:] > np.maximum.accumulate(highs)[:-1]
    first = np.flatnonzero(np.concatenate([[True], apart]))
    return lows[first], np.maximum.reduceat(highs, first)


def parts_of(n_rows: int, n_shares: int, more: int) -> tuple[IntArray, int]:
    """Return the first words of the parts of a stream that are looked at, and how long these are.

    If n of the rows are made, their whole numbers end between the words n and 2 n, and their doubles take 2 n words: a
    part lies among them if it begins between 2 n and 3 n. So a ladder of parts finds them whatever n is. Later ones are
    for streams that were used before.

    Parameters
    ----------
    n_rows, n_shares : int
        The rows, and those whose share is known.
    more : int
        How many words behind these are looked at.
    """
    length = max(_blocks(2.0 * _IN_A_PART * n_rows / max(n_shares, 1)), 2 * BLOCK)
    last = int(2.05 * n_rows + 6 * np.sqrt(n_rows)) // BLOCK * BLOCK
    if last <= length:
        # All of a small table is one part.
        last, length = 0, max(length, _blocks(4.0 * n_rows + 6 * np.sqrt(n_rows) + 64))
    ladder, at = [last], float(last)
    while at > max(length, _SMALLEST_SHARE * last):
        at /= 1.4
        ladder.append(int(at) // BLOCK * BLOCK)
    # Later doubles of a table take 2 n words, and n is seldom less than a third of the rows.
    step = max(_blocks(0.6 * n_rows), length)
    later = range(last + step, last + more, step)
    begins: list[int] = []
    for one in sorted({*ladder, *later}):
        if not begins or one >= begins[-1] + length:
            begins.append(one)
    return np.array(begins, dtype=np.int64), length


def by_shares(
    shares: Shares, n_rows: int, plan: Plan, work: float, level: float
) -> tuple[SeedMatch | None, int]:
    """Return the seed whose doubles match the shares of rows, if one does, and how many seeds were tried.

    Parameters
    ----------
    shares : Shares
        The shares.
    n_rows : int
        How many rows the table has.
    plan : Plan
        The seeds.
    work : float
        Words that may be looked at.
    level : float
        The largest p of a match.
    """
    low, high = intervals_of(shares)
    if not len(low):
        return None, 0
    chance = min(1.0, float((high - low).sum()) + len(low) * 2.0**-52)
    table = np.zeros(2**_BITS, dtype=bool)
    for a, b in np.minimum(np.stack([low, high], axis=1) * 2**_BITS, 2**_BITS - 1).astype(np.int64).tolist():
        table[a : b + 1] = True
    usual, length = parts_of(n_rows, len(shares), 0)
    longer, _ = parts_of(n_rows, len(shares), plan.more)
    words, doubles = np.empty(length, np.uint32), length // 2
    planned = 2 * (plan.n_seeds * len(usual) + len(plan.deep) * (len(longer) - len(usual)))
    tried = 0

    def best_of(seeds: IntArray, begins: IntArray) -> SeedMatch:
        counts = np.zeros((len(seeds), len(begins), 2), dtype=np.int64)
        _kernels.scan(seeds, begins, words, low, high, table, np.uint32(32 - _BITS), counts)
        s, part, _ = np.unravel_index(int(counts.argmax()), counts.shape)
        most = int(counts.max())
        p = _at_most_one(planned * float(binom.sf(most - 1, doubles, chance)))
        return SeedMatch(int(seeds[s]), most, doubles * chance, p, part=int(begins[part]))

    for number, seeds in enumerate(plan.portions):
        match = best_of(seeds, usual)
        if match.p > level and number == 0 and len(longer) > len(usual):
            match = best_of(plan.deep, longer[len(usual) - 1 :])
        tried += len(seeds)
        work -= len(seeds) * (_SKIPPED * usual[-1] + length * len(usual))
        if match.p <= level:
            return match, tried
        if work <= 0:
            break
    return None, tried


def nearest_before(values: FloatArray, begin: int = 0) -> IntArray:
    """Return the rows nearest to each row, by the ranks of their values, -1 where there are fewer.

    Parameters
    ----------
    values : array (n, m)
        The rows.
    begin : int
        How many real rows come first. If any do, only they count; else those that come before a row.
    """
    n = len(values)
    ranks = rankdata(values, axis=0) if n else values
    ranks = ranks[:, ranks.std(axis=0) > 0] if n else ranks
    near = np.full((n, _NEAR), -1, dtype=np.int64)
    for row in range(max(begin, 1), n if ranks.shape[1] else 0):
        others = ranks[: begin or row]
        distance = ((others - ranks[row]) ** 2).sum(axis=1)
        some = np.argsort(distance, kind="stable")[:_NEAR]
        near[row, : len(some)] = some
    return near


def log_bound(hits: float, expected: float) -> float:
    """Return the log of Chernoff's bound on the probability of so many hits, each with its chance given all before."""
    return min(0.0, hits - expected + hits * np.log(expected / hits)) if hits > expected else 0.0


def by_order(
    values: FloatArray, plan: Plan, layouts: Sequence[Layout], work: float, level: float
) -> tuple[SeedMatch | None, int]:
    """Return the seed and layout under which rows in order lie near their kin, if any, and how many seeds were tried.

    Under a wrong seed the record that a row is made from is drawn at random. So, whatever the rows are and given all
    rows before it, a row has a hit with a chance of at most its near rows over the number of records.

    Parameters
    ----------
    values : array (n, m)
        The rows.
    plan : Plan
        The seeds.
    layouts : sequence of Layout
        How the table may have been made.
    work : float
        Rows that may be looked at.
    level : float
        The largest p of a match.
    """
    possible = [n for n, layout in enumerate(layouts) if len(values) > layout.begin + _NEAR]
    planned = max(1, len(possible) * plan.n_seeds)
    ready = []
    for begin in sorted({layouts[n].begin for n in possible}):
        numbers = np.array([n for n in possible if layouts[n].begin == begin])
        sizes = np.array([layouts[n].n_base for n in numbers])
        rows = int(np.clip(np.sqrt(2 * _PAIRS * sizes.max()), _FEWEST_ROWS, _MOST_ROWS))
        near = nearest_before(values[: begin + rows], begin)
        expected = (near >= 0).sum() / sizes
        least = np.array([_least_hits(mean, np.log(level / planned)) for mean in expected], dtype=np.int64)
        # Layouts that cannot match need not be tried.
        able = np.flatnonzero(least <= len(near) - begin)
        if len(able):
            ready.append((begin, near, numbers[able], expected[able], least[able]))
    tried = 0
    for seeds in plan.portions if ready else ():
        best: tuple[float, int, int, int, float] | None = None
        for begin, near, numbers, expected, least in ready:
            made = len(near) - begin
            words = np.empty(_blocks(2 * made + 8 * np.sqrt(made) + 64), np.uint32)
            found = np.zeros((_MOST_FOUND, 3), dtype=np.int64)
            k = np.array([layouts[n].k for n in numbers], dtype=np.int64)
            bounds = k * np.array([layouts[n].n_base for n in numbers], dtype=np.int64)
            begins = np.full(len(numbers), begin, dtype=np.int64)
            early = min(_EARLY, made)
            # The true seed has far more hits than chance; a layout that cannot have enough is given up early.
            enough = np.floor(expected * early / made).astype(np.int64) + 1
            count = _kernels.kin_in_order(seeds, bounds, k, begins, near, least, early, enough, words, found)
            work -= len(seeds) * (BLOCK + _COMPARING * len(numbers) * early)
            for seed, way, hits in found[:count].tolist():
                one = (
                    log_bound(hits, float(expected[way])),
                    seed,
                    int(numbers[way]),
                    hits,
                    float(expected[way]),
                )
                best = min(best, one) if best else one
        tried += len(seeds)
        if best is not None:
            p = _at_most_one(planned * float(np.exp(best[0])))
            return SeedMatch(best[1], best[3], best[4], p, way=best[2]), tried
        if work <= 0:
            break
    return None, tried


def _at_most_one(p: float) -> float:
    # Smaller ones are no floats any more, and are not 0.
    return min(1.0, max(p, 1e-300))


def _least_hits(expected: float, log_p: float) -> int:
    hits = max(2, int(expected) + 1)
    while log_bound(hits, expected) > log_p:
        hits += 1
    return hits
