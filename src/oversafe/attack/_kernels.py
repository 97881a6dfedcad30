"""Compiled loops of the line-based attacks: pure functions on arrays."""

from __future__ import annotations

import math

import numpy as np

from oversafe.compiled import compiled


@compiled
def squared_distances(columns, queries):
    """Return the squared distances from each query row to every row.

    ``columns`` holds one column of the table per row, so that the inner loop runs over contiguous
    memory. Differences are taken before squaring: unlike the expansion with a matrix product, they
    keep their digits when the rows lie close together.
    """
    d, n = columns.shape
    result = np.zeros((len(queries), n), dtype=np.float32)
    total = np.empty(n)
    for row in range(len(queries)):
        total[:] = 0.0
        for column in range(d):
            value = columns[column, queries[row]]
            for other in range(n):
                difference = columns[column, other] - value
                total[other] += difference * difference
        for other in range(n):
            result[row, other] = total[other]
    return result


@compiled
def is_simple_fraction(value, error, chance):
    """Return whether a number in [0, 1] is a fraction with a small denominator, within its error.

    Small means that a uniform random number would be one with at most the given chance: there are
    about 3 Q**2 / pi**2 fractions with denominators up to Q, and each covers twice the error. By
    Legendre's theorem such a fraction is a convergent of the continued fraction of the value.
    """
    largest = math.sqrt(chance * math.pi**2 / (6.0 * error))
    remainder = abs(value)
    numerator, numerator_before = math.floor(remainder), 1.0
    denominator, denominator_before = 1.0, 0.0
    while denominator <= largest:
        if abs(abs(value) - numerator / denominator) <= error:
            return True
        fraction = remainder - math.floor(remainder)
        if fraction <= 0.0:
            return False
        remainder = 1.0 / fraction
        digit = math.floor(remainder)
        numerator, numerator_before = digit * numerator + numerator_before, numerator
        denominator, denominator_before = digit * denominator + denominator_before, denominator
    return False


@compiled
def simple_fractions(values, errors, chance):
    """Return ``is_simple_fraction`` for each value."""
    result = np.empty(len(values), dtype=np.bool_)
    for position in range(len(values)):
        result[position] = is_simple_fraction(values[position], errors[position], chance)
    return result


@compiled
def collinear_groups(points, queries, neighbours, axis, noise, closest, chance):
    """Find, for each query row, the neighbours that lie with it on one line.

    Parallel and antiparallel directions have equal absolute projections on any axis, so sorting
    these leaves few pairs to compare in full. Each group is led by its farthest neighbour, whose
    direction is the most accurate. Groups whose spacings are all simple fractions are dropped: they
    are what a grid looks like.

    Returns the query row of each group, the limits of the groups in the list of members, and the
    members, leader first.
    """
    d = points.shape[1]
    m = neighbours.shape[1]
    offsets = np.empty((m, d))
    found = np.empty(m, dtype=np.int64)
    distance = np.empty(m)
    projection = np.empty(m)
    slack = np.empty(m)
    paired = np.empty(m, dtype=np.bool_)
    leader = np.empty(m, dtype=np.int64)
    position = np.empty(m)

    owners = np.empty(64, dtype=np.int64)
    limits = np.zeros(65, dtype=np.int64)
    members = np.empty(512, dtype=np.int64)
    n_groups = 0
    n_members = 0

    for row in range(len(queries)):
        i = queries[row]
        count = 0
        widest = 0.0
        for column in range(m):
            j = neighbours[row, column]
            total = 0.0
            along = 0.0
            for k in range(d):
                difference = points[j, k] - points[i, k]
                offsets[count, k] = difference
                total += difference * difference
                along += difference * axis[k]
            length = math.sqrt(total)
            if j == i or length < closest:
                continue
            found[count] = j
            distance[count] = length
            projection[count] = abs(along) / length
            slack[count] = 2.0 * noise / length
            widest = max(widest, slack[count])
            paired[count] = False
            count += 1

        order = np.argsort(projection[:count])
        for first in range(count):
            a = order[first]
            for second in range(first + 1, count):
                b = order[second]
                apart = projection[b] - projection[a]
                if apart > slack[a] + widest:
                    break
                if apart <= slack[a] + slack[b]:
                    paired[a] = True
                    paired[b] = True

        candidates = np.flatnonzero(paired[:count])
        candidates = candidates[np.argsort(-distance[candidates])]
        n_leaders = 0
        leaders = np.empty(len(candidates), dtype=np.int64)
        for a in candidates:
            best = -1
            smallest = (4.0 * noise) ** 2
            for which in range(n_leaders):
                b = leaders[which]
                if abs(projection[a] - projection[b]) > slack[a] + slack[b]:
                    continue
                along = 0.0
                for k in range(d):
                    along += offsets[a, k] * offsets[b, k]
                share = along / (distance[b] * distance[b])
                off = 0.0
                for k in range(d):
                    difference = offsets[a, k] - share * offsets[b, k]
                    off += difference * difference
                if off <= smallest:
                    smallest = off
                    best = b
                    position[a] = share
            if best < 0:
                leaders[n_leaders] = a
                n_leaders += 1
                best = a
                position[a] = 1.0
            leader[a] = best

        for which in range(n_leaders):
            b = leaders[which]
            size = 0
            grid = True
            for a in candidates:
                if leader[a] == b:
                    size += 1
                    if a != b and grid:
                        grid = is_simple_fraction(position[a], 4.0 * noise / distance[b], chance)
            if size < 2 or grid:
                continue
            if n_groups == len(owners):
                owners = np.concatenate((owners, np.empty_like(owners)))
                limits = np.concatenate((limits, np.empty_like(limits)))
            while n_members + size > len(members):
                members = np.concatenate((members, np.empty_like(members)))
            for a in candidates:
                if leader[a] == b:
                    members[n_members] = found[a]
                    n_members += 1
            owners[n_groups] = i
            n_groups += 1
            limits[n_groups] = n_members

    return owners[:n_groups].copy(), limits[: n_groups + 1].copy(), members[:n_members].copy()


@compiled
def same_line(points, owners, limits, members, first_group, noise):
    """Number the groups so that those on one line share a number.

    A group passes through each of its members, so it is on one line with the group of a member that
    has its direction. ``first_group[i]`` is the first group owned by row i; groups are in the order
    of their owners.
    """
    d = points.shape[1]
    n_groups = len(owners)
    parent = np.arange(n_groups)
    for g in range(n_groups):
        i = owners[g]
        far_g = members[limits[g]]
        for at in range(limits[g], limits[g + 1]):
            j = members[at]
            for h in range(first_group[j], first_group[j + 1]):
                root_g = g
                while parent[root_g] != root_g:
                    parent[root_g] = parent[parent[root_g]]
                    root_g = parent[root_g]
                root_h = h
                while parent[root_h] != root_h:
                    parent[root_h] = parent[parent[root_h]]
                    root_h = parent[root_h]
                if root_g == root_h:
                    continue
                far_h = members[limits[h]]
                gg = 0.0
                hh = 0.0
                gh = 0.0
                for k in range(d):
                    u = points[far_g, k] - points[i, k]
                    v = points[far_h, k] - points[j, k]
                    gg += u * u
                    hh += v * v
                    gh += u * v
                off = 0.0
                for k in range(d):
                    u = points[far_g, k] - points[i, k]
                    v = points[far_h, k] - points[j, k]
                    # The shorter of the two is held against the longer, whose direction is better known.
                    difference = v - gh / gg * u if gg > hh else u - gh / hh * v
                    off += difference * difference
                if off <= (4.0 * noise) ** 2:
                    parent[root_h] = root_g
    for g in range(n_groups):
        root = g
        while parent[root] != root:
            root = parent[root]
        parent[g] = root
    return parent


@compiled
def common_ends(centre, direction, first, last, size, partners, noise, largest_gap, largest_radius):
    """Find the places beyond the end of a line where at least two other lines end as well.

    ``first`` and ``last`` are the positions of the outermost members, ``partners`` the lines to try with
    each line (-1 for none); a single row stands for all lines. A line may be prolonged to a place if the
    stretch without members is not implausibly long: given the farthest of ``size`` uniform members, the
    log of the prolonged over the present length, times the number of the others, is exponential.

    Returns the places and the radii of their errors.
    """
    n, d = centre.shape
    m = partners.shape[1]
    at = np.empty(m)
    radius = np.empty(m)
    places = np.empty((64, d))
    radii = np.empty(64)
    count = 0
    for a in range(n):
        length_a = last[a] - first[a]
        row = a if partners.shape[0] == n else 0
        crossings = 0
        for column in range(m):
            b = partners[row, column]
            if b < 0 or b == a:
                continue
            cosine = 0.0
            along_a = 0.0
            along_b = 0.0
            for k in range(d):
                between = centre[a, k] - centre[b, k]
                cosine += direction[a, k] * direction[b, k]
                along_a += direction[a, k] * between
                along_b += direction[b, k] * between
            squared_sine = 1.0 - cosine * cosine
            if squared_sine < 1e-4:
                squared_sine = 0.0
                for k in range(d):
                    squared_sine += (direction[a, k] - cosine * direction[b, k]) ** 2
                if squared_sine < noise:
                    continue
            t = (cosine * along_b - along_a) / squared_sine
            s = (along_b - cosine * along_a) / squared_sine
            length_b = last[b] - first[b]
            error = noise * (2.0 + 2.0 * abs(t) / length_a + 2.0 * abs(s) / length_b)
            r = error / math.sqrt(squared_sine)
            if r > largest_radius:
                continue
            beyond_a = max(t - last[a], first[a] - t)
            beyond_b = max(s - last[b], first[b] - s)
            if beyond_a < -r or beyond_b < -r:
                continue
            if (size[a] - 1) * math.log1p(max(beyond_a, 0.0) / length_a) > largest_gap:
                continue
            if (size[b] - 1) * math.log1p(max(beyond_b, 0.0) / length_b) > largest_gap:
                continue
            off = 0.0
            for k in range(d):
                off += (centre[a, k] - centre[b, k] + t * direction[a, k] - s * direction[b, k]) ** 2
            if off > error * error:
                continue
            at[crossings] = t
            radius[crossings] = r
            crossings += 1

        order = np.argsort(at[:crossings])
        start = 0
        while start < crossings:
            best = order[start]
            reach = at[best] + radius[best]
            stop = start + 1
            while stop < crossings and at[order[stop]] - radius[order[stop]] <= reach:
                reach = max(reach, at[order[stop]] + radius[order[stop]])
                if radius[order[stop]] < radius[best]:
                    best = order[stop]
                stop += 1
            if stop - start >= 2:
                if count == len(radii):
                    places = np.concatenate((places, np.empty_like(places)))
                    radii = np.concatenate((radii, np.empty_like(radii)))
                for k in range(d):
                    places[count, k] = centre[a, k] + at[best] * direction[a, k]
                radii[count] = radius[best]
                count += 1
            start = stop
    return places[:count].copy(), radii[:count].copy()


@compiled
def representatives(places, radii, order, projection):
    """Return the most accurate place of each cluster of places that agree within their errors.

    ``order`` sorts the places by ``projection``, their position along an axis.
    """
    n, d = places.shape
    taken = np.zeros(n, dtype=np.bool_)
    chosen = np.empty(n, dtype=np.int64)
    count = 0
    widest = radii.max() if n else 0.0
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n)
    for a in np.argsort(radii):
        if taken[a]:
            continue
        chosen[count] = a
        count += 1
        for step in (-1, 1):
            at = rank[a]
            while 0 <= at < n:
                b = order[at]
                if abs(projection[b] - projection[a]) > radii[a] + widest:
                    break
                if not taken[b]:
                    off = 0.0
                    for k in range(d):
                        off += (places[a, k] - places[b, k]) ** 2
                    if off <= (radii[a] + radii[b]) ** 2:
                        taken[b] = True
                at += step
    return chosen[:count].copy()


@compiled
def lines_through(places, radii, centre, direction, first, last, noise):
    """List the lines through each place.

    Returns the limits of each place's entries, their lines, and the positions of the place on them.
    """
    d = centre.shape[1]
    limits = np.zeros(len(radii) + 1, dtype=np.int64)
    lines = np.empty(64, dtype=np.int64)
    positions = np.empty(64)
    count = 0
    for place in range(len(radii)):
        for line in range(len(first)):
            t = 0.0
            for k in range(d):
                t += (places[place, k] - centre[line, k]) * direction[line, k]
            error = radii[place] + noise * (1.0 + 2.0 * abs(t) / (last[line] - first[line]))
            limit = error * error
            off = 0.0
            for k in range(d):
                off += (places[place, k] - centre[line, k] - t * direction[line, k]) ** 2
                if off > limit:
                    break
            if off > limit:
                continue
            if count == len(lines):
                lines = np.concatenate((lines, np.empty_like(lines)))
                positions = np.concatenate((positions, np.empty_like(positions)))
            lines[count] = line
            positions[count] = t
            count += 1
        limits[place + 1] = count
    return limits, lines[:count].copy(), positions[:count].copy()
