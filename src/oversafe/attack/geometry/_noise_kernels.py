"""Compiled loops for rounded and perturbed tables: pure functions on arrays."""

from __future__ import annotations

import math

import numpy as np

from oversafe._core.compiled import compiled
from oversafe.attack.geometry.shapes._kernels import grow


@compiled
def straightest_triples(values, queries, shift, neighbours, shortest):
    """Return how straight the straightest triple is that has each query, shifted, in the middle.

    Straight is the distance of the query from the chord between two neighbours, divided by the shorter of
    its distances from them; both are farther than ``shortest``. Also returns the two neighbours.
    """
    n, m = neighbours.shape
    d = values.shape[1]
    best = np.full(n, np.inf)
    pair = np.zeros((n, 2), dtype=np.int64)
    way = np.empty((m, d))
    length = np.empty(m)
    for row in range(n):
        for column in range(m):
            total = 0.0
            for k in range(d):
                way[column, k] = values[neighbours[row, column], k] - values[queries[row], k] - shift[row, k]
                total += way[column, k] ** 2
            length[column] = math.sqrt(total) if neighbours[row, column] != queries[row] else 0.0
        for a in range(m):
            if length[a] <= shortest[row]:
                continue
            for b in range(a):
                if length[b] <= shortest[row]:
                    continue
                along = 0.0
                for k in range(d):
                    along += way[a, k] * way[b, k]
                if along > -0.9 * length[a] * length[b]:
                    continue
                share = length[a] / (length[a] + length[b])
                off = 0.0
                for k in range(d):
                    off += ((1.0 - share) * way[a, k] + share * way[b, k]) ** 2
                straight = math.sqrt(off) / min(length[a], length[b])
                if straight < best[row]:
                    best[row] = straight
                    pair[row, 0] = neighbours[row, a]
                    pair[row, 1] = neighbours[row, b]
    return best, pair


@compiled
def longest_tubes(values, queries, neighbours, noise, width, shortest):
    """Find, for each query, the neighbour with the most others in a tube between the two.

    Returns the limits of each query's group in the list of members, and the members: the neighbour at the
    other end first. Groups of fewer than two between are left out.
    """
    n, m = neighbours.shape
    d = values.shape[1]
    limits = np.zeros(n + 1, dtype=np.int64)
    members = np.empty(512, dtype=np.int64)
    count = 0
    way = np.empty((m, d))
    length = np.empty(m)
    inside = np.empty(m, dtype=np.int64)
    kept = np.empty(m, dtype=np.int64)
    for row in range(n):
        for column in range(m):
            total = 0.0
            for k in range(d):
                way[column, k] = values[neighbours[row, column], k] - values[queries[row], k]
                total += way[column, k] ** 2
            length[column] = math.sqrt(total)
        most = 1
        far = -1
        for a in range(m):
            if length[a] < shortest:
                continue
            found = 0
            for b in range(m):
                # The tube is no wider than the error, so that what lies in it is in front of the far end.
                if length[b] >= length[a] or length[b] < 4.0 * noise:
                    continue
                along = 0.0
                for k in range(d):
                    along += way[a, k] * way[b, k]
                if along <= 0.0:
                    continue
                along /= length[a] * length[a]
                off = length[b] * length[b] - along * along * length[a] * length[a]
                spread = noise * math.sqrt(1.0 + (1.0 - along) ** 2 + along * along)
                if off > (width * spread) ** 2:
                    continue
                inside[found] = b
                found += 1
            if found > most or (found == most and far >= 0 and length[a] < length[far]):
                most = found
                far = a
                for at in range(found):
                    kept[at] = inside[at]
        if far >= 0:
            while count + most + 1 > len(members):
                members = grow(members)
            members[count] = neighbours[row, far]
            for at in range(most):
                members[count + 1 + at] = neighbours[row, kept[at]]
            count += most + 1
        limits[row + 1] = count
    return limits, members[:count]


@compiled
def fit_line(values, chosen, size, centre, direction):
    """Fit a line to some points by least squares of their distances; return the sum of squares along it."""
    d = values.shape[1]
    for k in range(d):
        centre[k] = 0.0
        for at in range(size):
            centre[k] += values[chosen[at], k] / size
    first = chosen[0]
    farthest = 0.0
    for at in range(size):
        distance = 0.0
        for k in range(d):
            distance += (values[chosen[at], k] - values[first, k]) ** 2
        if distance > farthest:
            farthest = distance
            for k in range(d):
                direction[k] = values[chosen[at], k] - values[first, k]
    total = 0.0
    for _ in range(8):
        length = 0.0
        for k in range(d):
            length += direction[k] ** 2
        length = math.sqrt(length)
        for k in range(d):
            direction[k] /= length
        total = 0.0
        turned = np.zeros(d)
        for at in range(size):
            along = 0.0
            for k in range(d):
                along += (values[chosen[at], k] - centre[k]) * direction[k]
            total += along * along
            for k in range(d):
                turned[k] += along * (values[chosen[at], k] - centre[k])
        for k in range(d):
            direction[k] = turned[k]
    length = 0.0
    for k in range(d):
        length += direction[k] ** 2
    length = math.sqrt(length)
    for k in range(d):
        direction[k] /= length
    return total


@compiled
def disjoint_lines(values, order, owners, limits, members, neighbours, noise, width, fewest):
    """Turn groups into lines that share no point, in the given order.

    A group is fitted by least squares, grows by the neighbours of its members that lie on the line, between
    them or not far beyond, and is kept if it has at least ``fewest`` points.

    Returns the limits of the lines' members in their list, and the list.
    """
    n, d = values.shape
    m = neighbours.shape[1]
    taken = np.zeros(n, dtype=np.bool_)
    seen = np.full(n, -1, dtype=np.int64)
    out_limits = np.zeros(len(order) + 1, dtype=np.int64)
    out = np.empty(n, dtype=np.int64)
    n_lines = 0
    count = 0
    chosen = np.empty(n, dtype=np.int64)
    fresh = np.empty(n, dtype=np.int64)
    centre = np.empty(d)
    direction = np.empty(d)
    for at in range(len(order)):
        group = order[at]
        size = 0
        if not taken[owners[group]]:
            chosen[size] = owners[group]
            size += 1
        for entry in range(limits[group], limits[group + 1]):
            if not taken[members[entry]]:
                chosen[size] = members[entry]
                size += 1
        if size < fewest:
            continue
        for turn in range(3):
            total = fit_line(values, chosen, size, centre, direction)
            first = 0.0
            last = 0.0
            for entry in range(size):
                along = 0.0
                for k in range(d):
                    along += (values[chosen[entry], k] - centre[k]) * direction[k]
                first = min(first, along)
                last = max(last, along)
            reach = (last - first) * 1.5 / max(1, size - 1)
            grown = 0
            for entry in range(size):
                for column in range(-1, m):
                    point = chosen[entry] if column < 0 else neighbours[chosen[entry], column]
                    if taken[point] or seen[point] == 3 * at + turn:
                        continue
                    seen[point] = 3 * at + turn
                    along = 0.0
                    squared = 0.0
                    for k in range(d):
                        difference = values[point, k] - centre[k]
                        along += difference * direction[k]
                        squared += difference * difference
                    if along < first - reach or along > last + reach:
                        continue
                    spread = noise * math.sqrt(1.0 + 1.0 / size + along * along / total)
                    if squared - along * along <= (width * spread) ** 2:
                        fresh[grown] = point
                        grown += 1
            same = grown == size
            size = grown
            for entry in range(size):
                chosen[entry] = fresh[entry]
            if size < fewest or same:
                break
        if size < fewest:
            continue
        for entry in range(size):
            taken[chosen[entry]] = True
            out[count + entry] = chosen[entry]
        count += size
        n_lines += 1
        out_limits[n_lines] = count
    return out_limits[: n_lines + 1], out[:count]
