"""Compiled loops of the membership game: releases of SMOTE drawn and summed up without building them."""

from __future__ import annotations

import math

import numpy as np

from oversafe._core.compiled import compiled


@compiled
def next_random(state):
    """Return 64 random bits (xoshiro256++ by Blackman and Vigna) and move the state on."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    total = s0 + s3
    result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + s0
    shifted = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3
    return result


@compiled
def draw_steps(state, counts, steps):
    """Draw the rows of one release: how many fall on each segment, and how far along it each lies.

    Rows are independent, so drawing the counts first and then the steps segment by segment gives the same
    distribution as drawing row by row; only the order of the rows differs.
    """
    n, segments = len(steps), np.uint64(len(counts))
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    for segment in range(len(counts)):
        counts[segment] = 0
    row = 0
    while row < n:
        bits = next_random(state)
        counts[((bits >> half) * segments) >> half] += 1
        row += 1
        if row < n:
            counts[((bits & mask) * segments) >> half] += 1
            row += 1
    for row in range(n):
        steps[row] = (next_random(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@compiled
def select_pair(values, length, rank):
    """Return the values of two consecutive ranks among the first ``length``, which are put into another order."""
    left, right = 0, length - 1
    while left < right:
        pivot = values[(left + right) >> 1]
        i, j = left, right
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if rank <= j:
            right = j
        elif rank >= i:
            left = i
        else:
            break
    lower = values[rank]
    upper = lower
    if rank + 1 < length:
        upper = values[rank + 1]
        for at in range(rank + 2, length):
            upper = min(upper, values[at])
    return lower, upper


@compiled
def select_in_window(values, length, rank, low, high, tally, picked):
    """Return the values of two consecutive ranks among values between two limits.

    The values are counted in equal cells first, so that only those of one or two cells are compared.
    """
    cells = len(tally)
    scale = cells / (high - low)
    if not scale < 1e300:
        # Limits so close together that no cell fits between them.
        return select_pair(values, length, rank)
    for cell in range(cells):
        tally[cell] = 0
    for at in range(length):
        tally[min(int((values[at] - low) * scale), cells - 1)] += 1
    cell, before = 0, 0
    while before + tally[cell] <= rank:
        before += tally[cell]
        cell += 1
    n_picked, upper = 0, math.inf
    for at in range(length):
        place = min(int((values[at] - low) * scale), cells - 1)
        picked[n_picked] = values[at]
        n_picked += int(place == cell)
        if place > cell:
            upper = min(upper, values[at])
    lower, following = select_pair(picked, n_picked, rank - before)
    if rank - before + 1 < n_picked:
        upper = following
    return lower, upper


@compiled
def smote_summaries(
    state,
    n_rows,
    n_releases,
    starts,
    spans,
    by_low,
    by_high,
    quantiles,
    windows,
    below,
    below_ends,
    near,
    near_ends,
    moments,
    orders,
    anchors,
    radii,
    local,
):
    """Draw releases of SMOTE and sum each up, without building its table.

    Means and covariances are linear in three sums per segment (of 1, u and u^2), which ``moments`` receives for
    one matrix product later. The extremes need only the segments that reach out furthest. A quantile needs
    the values in a window in which it lies almost surely, and the number of those below the window; only segments
    that cross the window are looked at value by value. Where the quantile is outside its window after all,
    the column is sorted.

    Parameters
    ----------
    state : array of uint64
        Of the random generator.
    n_rows, n_releases : int
        Rows of each release, and how many releases.
    starts, spans : array of shape (n_columns, n_segments)
        A row at step u of a segment has the value ``start + u * span``.
    by_low, by_high : array of shape (n_columns, n_segments)
        The segments in the order of their lowest value, and of their highest from above.
    quantiles : array
        The wanted quantiles (linear interpolation).
    windows : array of shape (n_columns, n_quantiles, 2)
        In which each quantile lies almost surely.
    below, below_ends, near, near_ends : array
        For each column and quantile the segments entirely below its window, and those that cross it.
    moments : array of shape (n_releases, 3 * n_segments)
        Receives the sums of 1, u and u^2 on each segment.
    orders : array of shape (n_releases, n_columns, n_quantiles + 2)
        Receives the minimum, the quantiles and the maximum of each column.
    anchors : array of shape (n_targets, 4, n_segments)
        Squared distance from a target to a row at step u of a segment is ``c0 + u (c1 + u c2)``; the fourth
        entry is the smallest on the segment.
    radii : array of shape (n_targets, n_radii)
        Around each target, ascending.
    local : array of shape (n_releases, n_targets, 1 + n_radii)
        Receives the distance to the nearest row and the number of rows within each radius.
    """
    n_columns, n_segments = starts.shape
    counts = np.empty(n_segments, dtype=np.int64)
    offsets = np.empty(n_segments + 1, dtype=np.int64)
    steps = np.empty(n_rows)
    first = np.empty(n_segments)
    last = np.empty(n_segments)
    # One more, because a value is written before it is known whether it counts.
    values = np.empty(n_rows + 1)
    picked = np.empty(n_rows + 1)
    tally = np.empty(64, dtype=np.int64)
    for release in range(n_releases):
        draw_steps(state, counts, steps)
        offsets[0] = 0
        for segment in range(n_segments):
            begin = offsets[segment]
            end = begin + counts[segment]
            offsets[segment + 1] = end
            total, squares, low, high = 0.0, 0.0, 1.0, 0.0
            for row in range(begin, end):
                u = steps[row]
                total += u
                squares += u * u
                low = min(low, u)
                high = max(high, u)
            first[segment] = low
            last[segment] = high
            moments[release, segment] = counts[segment]
            moments[release, n_segments + segment] = total
            moments[release, 2 * n_segments + segment] = squares
        for column in range(n_columns):
            start, span = starts[column], spans[column]
            least, most = math.inf, -math.inf
            for at in range(n_segments):
                segment = by_low[column, at]
                if start[segment] + min(span[segment], 0.0) >= least:
                    break
                if counts[segment] > 0:
                    u = first[segment] if span[segment] > 0 else last[segment]
                    least = min(least, start[segment] + u * span[segment])
            for at in range(n_segments):
                segment = by_high[column, at]
                if start[segment] + max(span[segment], 0.0) <= most:
                    break
                if counts[segment] > 0:
                    u = last[segment] if span[segment] > 0 else first[segment]
                    most = max(most, start[segment] + u * span[segment])
            orders[release, column, 0] = least
            orders[release, column, len(quantiles) + 1] = most
            for at in range(len(quantiles)):
                place = column * len(quantiles) + at
                position = quantiles[at] * (n_rows - 1)
                rank = int(position)
                share = position - rank
                low, high = windows[column, at, 0], windows[column, at, 1]
                smaller = 0
                for entry in range(below_ends[place], below_ends[place + 1]):
                    smaller += counts[below[entry]]
                length = 0
                for entry in range(near_ends[place], near_ends[place + 1]):
                    segment = near[entry]
                    a, b = start[segment], span[segment]
                    for row in range(offsets[segment], offsets[segment + 1]):
                        # Written without branches, which no processor could predict.
                        value = a + steps[row] * b
                        smaller += int(value < low)
                        values[length] = value
                        length += int(value >= low) & int(value <= high)
                rank -= smaller
                if rank < 0 or rank >= length or (share > 0.0 and rank + 1 >= length):
                    length = 0
                    for segment in range(n_segments):
                        for row in range(offsets[segment], offsets[segment + 1]):
                            values[length] = start[segment] + steps[row] * span[segment]
                            length += 1
                    rank += smaller
                    low, high = least, most
                if low < high:
                    lower, upper = select_in_window(values, length, rank, low, high, tally, picked)
                else:
                    lower, upper = low, low
                orders[release, column, at + 1] = lower + share * (upper - lower)
        for target in range(len(anchors)):
            anchor = anchors[target]
            n_radii = radii.shape[1]
            widest = radii[target, n_radii - 1] ** 2
            nearest = math.inf
            for at in range(n_radii):
                local[release, target, 1 + at] = 0.0
            for segment in range(n_segments):
                if anchor[3, segment] > widest and anchor[3, segment] >= nearest:
                    continue
                for row in range(offsets[segment], offsets[segment + 1]):
                    u = steps[row]
                    distance = anchor[0, segment] + u * (anchor[1, segment] + u * anchor[2, segment])
                    nearest = min(nearest, distance)
                    if distance <= widest:
                        for at in range(n_radii):
                            if distance <= radii[target, at] ** 2:
                                local[release, target, 1 + at] += 1.0
            local[release, target, 0] = math.sqrt(max(nearest, 0.0))


@compiled
def smote_histograms(state, n_rows, n_releases, starts, spans, lows, scales, n_bins, histograms):
    """Draw releases of SMOTE and count each column's values in equal bins (values beyond go to the end bins)."""
    n_columns, n_segments = starts.shape
    counts = np.empty(n_segments, dtype=np.int64)
    steps = np.empty(n_rows)
    for release in range(n_releases):
        draw_steps(state, counts, steps)
        for column in range(n_columns):
            begin = 0
            for segment in range(n_segments):
                a = (starts[column, segment] - lows[column]) * scales[column]
                b = spans[column, segment] * scales[column]
                for row in range(begin, begin + counts[segment]):
                    place = min(max(int(a + steps[row] * b), 0), n_bins - 1)
                    histograms[release, column * n_bins + place] += 1.0
                begin += counts[segment]
