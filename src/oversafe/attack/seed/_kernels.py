"""Compiled loops of the search for the seed: pure functions on arrays."""

from __future__ import annotations

import numpy as np

from oversafe._core.compiled import compiled

# The Mersenne Twister with 624 words of state: Matsumoto and Nishimura, ACM TOMACS 8 (1998), and its seeding of 2002.
_SIZE, _MIDDLE = 624, 397


@compiled
def start(seed, state):
    """Fill the state as numpy's RandomState does from a whole number."""
    state[0] = seed & 0xFFFFFFFF
    for i in range(1, _SIZE):
        before = np.uint64(state[i - 1])
        state[i] = (np.uint64(1812433253) * (before ^ (before >> np.uint64(30))) + np.uint64(i)) & np.uint64(
            0xFFFFFFFF
        )


@compiled
def _turned(high, low, far):
    mixed = (high & np.uint32(0x80000000)) | (low & np.uint32(0x7FFFFFFF))
    odd = np.uint32(0x9908B0DF) if mixed & np.uint32(1) else np.uint32(0)
    return far ^ (mixed >> np.uint32(1)) ^ odd


@compiled
def turn(state):
    """Go on to the next 624 words."""
    for i in range(_SIZE - _MIDDLE):
        state[i] = _turned(state[i], state[i + 1], state[i + _MIDDLE])
    for i in range(_SIZE - _MIDDLE, _SIZE - 1):
        state[i] = _turned(state[i], state[i + 1], state[i + _MIDDLE - _SIZE])
    state[_SIZE - 1] = _turned(state[_SIZE - 1], state[0], state[_MIDDLE - 1])


@compiled
def fill(state, words):
    """Write the next words; their number is a multiple of 624."""
    for block in range(0, len(words), _SIZE):
        turn(state)
        for i in range(_SIZE):
            y = state[i]
            y ^= y >> np.uint32(11)
            y ^= (y << np.uint32(7)) & np.uint32(0x9D2C5680)
            y ^= (y << np.uint32(15)) & np.uint32(0xEFC60000)
            words[block + i] = y ^ (y >> np.uint32(18))


@compiled
def scan(seeds, begins, words, low, high, table, shift, counts):
    """Count, for each seed and each part of its stream, the doubles that lie in one of the intervals.

    A double is made of two words; ``counts`` has those that begin at an even word of the part and at an odd one.
    ``begins`` are the first words of the parts, in order and multiples of 624, and ``words`` has room for a part.
    ``table`` says whether a double whose first word begins with so many bits can lie in an interval.
    """
    state = np.empty(_SIZE, np.uint32)
    for s in range(len(seeds)):
        start(seeds[s], state)
        at = 0
        for part in range(len(begins)):
            while at < begins[part]:
                turn(state)
                at += _SIZE
            fill(state, words)
            at += len(words)
            counts[s, part, 0] = 0
            counts[s, part, 1] = 0
            for i in range(len(words) - 1):
                if table[words[i] >> shift]:
                    value = (
                        (words[i] >> np.uint32(5)) * 67108864.0 + (words[i + 1] >> np.uint32(6))
                    ) / 2.0**53
                    where = np.searchsorted(low, value, side="right") - 1
                    if where >= 0 and value <= high[where]:
                        counts[s, part, i % 2] += 1


@compiled
def whole_numbers(words, begin, bound, drawn):
    """Draw whole numbers below a bound as RandomState.randint does, and return how many words were read, or -1.

    Words are cut to the bits of the largest number and thrown away where they are larger still.
    """
    largest = bound - 1
    mask = largest
    for bits in (1, 2, 4, 8, 16):
        mask |= mask >> bits
    at = begin
    if largest == 0:
        drawn[:] = 0
        return 0
    for i in range(len(drawn)):
        while True:
            if at >= len(words):
                return -1
            value = np.int64(words[at]) & mask
            at += 1
            if value <= largest:
                break
        drawn[i] = value
    return at - begin


@compiled
def kin_in_order(seeds, bounds, neighbors, begins, near, least, early, enough, words, found):
    """Find seeds under which rows in order have their kin next to them.

    For each way to lay out the table (``bounds``: records times neighbors; ``neighbors``; ``begins``: how many real
    rows come first) each row is made from one record. ``near`` lists rows that are near a row: real ones, or, if there
    are none, rows before it, -1 where there are fewer. A row is a hit if its record is one of those, or one of those
    was made from its record. A layout is given up if the first ``early`` rows have fewer hits than ``enough``.
    ``least`` says how many hits are written to ``found`` (seed, layout, hits); their number is returned.
    """
    state = np.empty(_SIZE, np.uint32)
    n_rows, n_near = near.shape
    base = np.empty(n_rows, np.int64)
    count = 0
    for s in range(len(seeds)):
        start(seeds[s], state)
        fill(state, words[:_SIZE])
        filled = _SIZE
        for way in range(len(bounds)):
            largest = bounds[way] - 1
            k = neighbors[way]
            begin = begins[way]
            mask = largest
            for bits in (1, 2, 4, 8, 16):
                mask |= mask >> bits
            for row in range(begin):
                base[row] = row
            hits = 0
            row = begin
            for i in range(len(words)):
                if i == filled:
                    fill(state, words[filled : filled + _SIZE])
                    filled += _SIZE
                value = np.int64(words[i]) & mask
                if value > largest:
                    continue
                base[row] = value // k
                for j in range(n_near):
                    if near[row, j] >= 0 and base[near[row, j]] == base[row]:
                        hits += 1
                        break
                row += 1
                if row == n_rows or (row == begin + early and hits < enough[way]):
                    break
            if hits >= least[way] and count < len(found):
                found[count, 0] = seeds[s]
                found[count, 1] = way
                found[count, 2] = hits
                count += 1
    return count


@compiled
def squeeze(share, low, high, first, base, rec_low, rec_high, other_low, other_high, step, dead):
    """Narrow what the records and their neighbors may be, from rows that are (1 - u) record + u neighbor.

    Rows ``first[g]`` to ``first[g + 1]`` are between the record ``base[g]`` and one neighbor. All bounds are by
    column; ``low`` and ``high`` are those of the rows. ``step`` is the grid of each column, 0 without one. Where
    nothing is left the value is put into ``dead`` and left alone. Returns whether anything became narrower.
    """
    changed = False
    for j in range(low.shape[1]):
        for g in range(len(base)):
            r = base[g]
            if dead[r, j]:
                continue
            a_low, a_high = rec_low[r, j], rec_high[r, j]
            b_low, b_high = other_low[g, j], other_high[g, j]
            for i in range(first[g], first[g + 1]):
                u = share[i]
                v = 1.0 - u
                a_low = max(a_low, (low[i, j] - u * other_high[g, j]) / v)
                a_high = min(a_high, (high[i, j] - u * other_low[g, j]) / v)
                b_low = max(b_low, (low[i, j] - v * rec_high[r, j]) / u)
                b_high = min(b_high, (high[i, j] - v * rec_low[r, j]) / u)
                # Two rows of one pair: what one says of the neighbor, the other turns into a bound on the record.
                for h in range(first[g], i):
                    x, y = (h, i) if share[h] < u else (i, h)
                    apart = 1.0 / share[x] - 1.0 / share[y]
                    if apart > 1e-9:
                        a_high = min(a_high, (high[x, j] / share[x] - low[y, j] / share[y]) / apart)
                        a_low = max(a_low, (low[x, j] / share[x] - high[y, j] / share[y]) / apart)
                    apart = 1.0 / (1.0 - share[y]) - 1.0 / (1.0 - share[x])
                    if apart > 1e-9:
                        b_high = min(
                            b_high, (high[y, j] / (1.0 - share[y]) - low[x, j] / (1.0 - share[x])) / apart
                        )
                        b_low = max(
                            b_low, (low[y, j] / (1.0 - share[y]) - high[x, j] / (1.0 - share[x])) / apart
                        )
            if step[j] > 0:
                a_low = np.ceil(a_low / step[j] - 1e-6) * step[j]
                a_high = np.floor(a_high / step[j] + 1e-6) * step[j]
                b_low = np.ceil(b_low / step[j] - 1e-6) * step[j]
                b_high = np.floor(b_high / step[j] + 1e-6) * step[j]
            slack = 1e-9 * (abs(a_low) + abs(a_high) + abs(b_low) + abs(b_high))
            if a_low > a_high + slack or b_low > b_high + slack:
                dead[r, j] = True
                continue
            if a_low > rec_low[r, j] + slack or a_high < rec_high[r, j] - slack:
                changed = True
            if b_low > other_low[g, j] + slack or b_high < other_high[g, j] - slack:
                changed = True
            rec_low[r, j], rec_high[r, j] = a_low, a_high
            other_low[g, j], other_high[g, j] = b_low, b_high
    return changed


@compiled
def name_neighbors(base, rec_low, rec_high, other_low, other_high, slack):
    """Narrow each neighbor to the records that it may be, and return how many it may be."""
    n, m = rec_low.shape
    counts = np.zeros(len(base), np.int64)
    hull_low, hull_high = np.empty(m), np.empty(m)
    for g in range(len(base)):
        hull_low[:] = np.inf
        hull_high[:] = -np.inf
        only = -1
        for r in range(n):
            if r == base[g]:
                continue
            fits = True
            for j in range(m):
                if rec_low[r, j] > other_high[g, j] + slack[j] or rec_high[r, j] < other_low[g, j] - slack[j]:
                    fits = False
                    break
            if fits:
                counts[g] += 1
                only = r
                for j in range(m):
                    hull_low[j] = min(hull_low[j], rec_low[r, j])
                    hull_high[j] = max(hull_high[j], rec_high[r, j])
        if counts[g] == 0:
            continue
        for j in range(m):
            other_low[g, j] = max(other_low[g, j], hull_low[j])
            other_high[g, j] = min(other_high[g, j], hull_high[j])
            if counts[g] == 1:
                rec_low[only, j] = max(rec_low[only, j], other_low[g, j])
                rec_high[only, j] = min(rec_high[only, j], other_high[g, j])
    return counts
