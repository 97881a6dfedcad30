"""Compiled loops of the line-based attacks: pure functions on arrays."""

from __future__ import annotations

import math

import numpy as np

from oversafe._core.compiled import compiled


@compiled
def grow(array):
    """Return an array of twice the length that starts with the given one."""
    # Element by element: numba compiles a slice assignment many times slower.
    longer = np.empty(2 * len(array), dtype=array.dtype)
    for at in range(len(array)):
        longer[at] = array[at]
    return longer


@compiled
def grow_rows(array):
    """Return an array of twice the rows that starts with the given one."""
    longer = np.empty((2 * array.shape[0], array.shape[1]), dtype=array.dtype)
    for row in range(array.shape[0]):
        for column in range(array.shape[1]):
            longer[row, column] = array[row, column]
    return longer


@compiled
def smallest_columns(values, m):
    """Return the columns of about the m smallest values of each row.

    A threshold is found by halving intervals until m values, or a few more, are below it; the few too many are
    left out among the largest. It is several times as fast as sorting out the very smallest.
    """
    n, width = values.shape
    result = np.empty((n, m), dtype=np.int64)
    most = m + m // 16
    for row in range(n):
        low = values[row, 0]
        high = values[row, 0]
        for column in range(width):
            low = min(low, values[row, column])
            high = max(high, values[row, column])
        threshold = high
        count = width
        for _ in range(40):
            if m <= count <= most:
                break
            middle = low + (high - low) / np.float32(2.0)
            if middle <= low or middle >= high:
                break
            below = 0
            for column in range(width):
                below += values[row, column] <= middle
            if below >= m:
                high = middle
                threshold = middle
                count = below
            else:
                low = middle
        # Fewer than m values are at or below the last lower limit: they come first.
        taken = 0
        for column in range(width):
            if values[row, column] <= low and taken < m:
                result[row, taken] = column
                taken += 1
        for column in range(width):
            if taken == m:
                break
            if values[row, column] > low and values[row, column] <= threshold:
                result[row, taken] = column
                taken += 1
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
def projections(points, queries, neighbours, axis, closest):
    """Return how far along an axis, up to sign, the direction to each neighbour points.

    Neighbours that are too close for their direction to mean anything get 2, which is no cosine.
    """
    d = points.shape[1]
    result = np.empty(neighbours.shape)
    for row in range(len(queries)):
        i = queries[row]
        for column in range(neighbours.shape[1]):
            j = neighbours[row, column]
            squared = 0.0
            along = 0.0
            for k in range(d):
                difference = points[j, k] - points[i, k]
                squared += difference * difference
                along += difference * axis[k]
            result[row, column] = abs(along) / math.sqrt(squared) if squared >= closest * closest else 2.0
    return result


@compiled
def collinear_groups(points, queries, neighbours, projection, order, noise, chance):
    """Find, for each query row, the neighbours that lie with it on one line.

    Parallel and antiparallel directions have equal absolute projections on any axis, so only neighbours
    whose projections agree within their errors are compared; ``order`` sorts each row's projections.
    Each group is led by its farthest neighbour, whose direction is the most accurate. Groups whose
    spacings are all simple fractions are dropped: they are what a grid looks like.

    Returns the query row of each group, the limits of the groups in the list of members, and the
    members, leader first.
    """
    d = points.shape[1]
    m = neighbours.shape[1]
    distance = np.empty(m)
    free = np.empty(m, dtype=np.bool_)
    joined = np.empty(m, dtype=np.int64)

    owners = np.empty(64, dtype=np.int64)
    limits = np.zeros(65, dtype=np.int64)
    members = np.empty(512, dtype=np.int64)
    n_groups = 0
    n_members = 0

    for row in range(len(queries)):
        i = queries[row]
        start = 0
        while start < m:
            # A run of neighbours in which each projection overlaps with one before it.
            stop = start
            reach = -1.0
            while stop < m:
                column = order[row, stop]
                if projection[row, column] > 1.5:
                    break
                squared = 0.0
                for k in range(d):
                    squared += (points[neighbours[row, column], k] - points[i, k]) ** 2
                distance[stop] = math.sqrt(squared)
                slack = 2.0 * noise / distance[stop]
                if stop > start and projection[row, column] - slack > reach:
                    break
                reach = max(reach, projection[row, column] + slack)
                free[stop] = True
                stop += 1
            if stop == start:
                break

            left = stop - start
            while left >= 2:
                leader = -1
                for at in range(start, stop):
                    if free[at] and (leader < 0 or distance[at] > distance[leader]):
                        leader = at
                far = neighbours[row, order[row, leader]]
                free[leader] = False
                joined[0] = far
                size = 1
                grid = True
                for at in range(start, stop):
                    apart = abs(projection[row, order[row, at]] - projection[row, order[row, leader]])
                    if not free[at] or apart > 2.0 * noise * (1.0 / distance[at] + 1.0 / distance[leader]):
                        continue
                    j = neighbours[row, order[row, at]]
                    along = 0.0
                    for k in range(d):
                        along += (points[j, k] - points[i, k]) * (points[far, k] - points[i, k])
                    along /= distance[leader] * distance[leader]
                    off = 0.0
                    for k in range(d):
                        off += (points[j, k] - points[i, k] - along * (points[far, k] - points[i, k])) ** 2
                    if off <= (4.0 * noise) ** 2:
                        free[at] = False
                        joined[size] = j
                        size += 1
                        grid = grid and is_simple_fraction(along, 4.0 * noise / distance[leader], chance)
                left -= size
                if size < 2 or grid:
                    continue
                if n_groups == len(owners):
                    owners = grow(owners)
                    limits = grow(limits)
                while n_members + size > len(members):
                    members = grow(members)
                for at in range(size):
                    members[n_members + at] = joined[at]
                n_members += size
                owners[n_groups] = i
                n_groups += 1
                limits[n_groups] = n_members
            start = stop

    return owners[:n_groups], limits[: n_groups + 1], members[:n_members]


@compiled
def mark_inside(points, owners, limits, members, inside):
    """Mark the points inside groups of five and more: neither the first nor the last along their line."""
    d = points.shape[1]
    for g in range(len(owners)):
        if limits[g + 1] - limits[g] < 4:
            continue
        i = owners[g]
        far = members[limits[g]]
        first = 0.0
        last = 0.0
        first_point = i
        last_point = i
        for at in range(limits[g], limits[g + 1]):
            along = 0.0
            for k in range(d):
                along += (points[members[at], k] - points[i, k]) * (points[far, k] - points[i, k])
            if along < first:
                first = along
                first_point = members[at]
            if along > last:
                last = along
                last_point = members[at]
        for at in range(limits[g] - 1, limits[g + 1]):
            point = i if at < limits[g] else members[at]
            if point != first_point and point != last_point:
                inside[point] = True


@compiled
def same_line(points, owners, limits, members, of_limits, of_point, noise):
    """Number the groups so that those on one line share a number.

    Groups that share a point and have the same direction are on one line;
    ``of_point[of_limits[i]:of_limits[i + 1]]`` are the groups of point i.
    """
    d = points.shape[1]
    n_groups = len(owners)
    parent = np.arange(n_groups)
    for g in range(n_groups):
        i = owners[g]
        far_g = members[limits[g]]
        for at in range(limits[g], limits[g + 1]):
            j = members[at]
            for entry in range(of_limits[j], of_limits[j + 1]):
                h = of_point[entry]
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
                near_h = owners[h]
                gg = 0.0
                hh = 0.0
                gh = 0.0
                for k in range(d):
                    u = points[far_g, k] - points[i, k]
                    v = points[far_h, k] - points[near_h, k]
                    gg += u * u
                    hh += v * v
                    gh += u * v
                off = 0.0
                for k in range(d):
                    u = points[far_g, k] - points[i, k]
                    v = points[far_h, k] - points[near_h, k]
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
def crossings(centre, direction, first, last, size, partners, noise, largest_gap, largest_radius):
    """Find the places where two lines cross, near both of them.

    ``first`` and ``last`` are the positions of the outermost members, ``partners`` the lines to hold
    against each line (-1 for none); a single row stands for all lines. A line may be prolonged to a place
    if the stretch without members is not implausibly long: given the farthest of ``size`` uniform
    members, the log of the prolonged over the present length, times the number of the others, is
    exponential.

    Returns the two lines of each pair, the positions of the place on them, and the radius of its error.
    """
    n, d = centre.shape
    pairs = np.empty((64, 2), dtype=np.int64)
    found = np.empty((64, 3))
    count = 0
    for a in range(n):
        length_a = last[a] - first[a]
        row = a if partners.shape[0] == n else 0
        for column in range(partners.shape[1]):
            b = partners[row, column]
            if b < 0 or b == a:
                continue
            if b < a:
                # Seen from the other side already, unless that one did not list this one.
                if partners.shape[0] != n:
                    continue
                listed = False
                for other in range(partners.shape[1]):
                    if partners[b, other] == a:
                        listed = True
                        break
                if listed:
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
                if squared_sine < noise * noise:
                    continue
            t = (cosine * along_b - along_a) / squared_sine
            s = (along_b - cosine * along_a) / squared_sine
            length_b = last[b] - first[b]
            error = noise * (2.0 + 2.0 * abs(t) / length_a + 2.0 * abs(s) / length_b)
            radius = error / math.sqrt(squared_sine)
            if radius > largest_radius:
                continue
            beyond_a = max(t - last[a], first[a] - t)
            beyond_b = max(s - last[b], first[b] - s)
            if (size[a] - 1) * math.log1p(max(beyond_a, 0.0) / length_a) > largest_gap:
                continue
            if (size[b] - 1) * math.log1p(max(beyond_b, 0.0) / length_b) > largest_gap:
                continue
            off = 0.0
            for k in range(d):
                off += (centre[a, k] - centre[b, k] + t * direction[a, k] - s * direction[b, k]) ** 2
            if off > error * error:
                continue
            if count == len(pairs):
                pairs = grow_rows(pairs)
                found = grow_rows(found)
            pairs[count, 0] = a
            pairs[count, 1] = b
            found[count, 0] = t
            found[count, 1] = s
            found[count, 2] = radius
            count += 1
    return pairs[:count], found[:count]


@compiled
def rays_to_grid(points, queries, records, radii, neighbours, skip, steps, noise, farthest):
    """Follow the rays from known records through released rows to the next point of the grid.

    On the way from one record to another every gridded column changes by whole steps at once. So the ray
    is followed in steps of its widest column until all others are whole too, beyond the released row, but
    no farther from the record than ``farthest`` in that column. Records below ``skip`` are left out, and
    rows that are on the grid themselves.

    Returns, for each query and neighbour, how far the grid point is in units of the way to the row (0: there
    is none), the logarithm of the chance that a ray meets the grid like this by accident, and the number
    of gridded columns that change.
    """
    n, m = neighbours.shape
    d = points.shape[1]
    reach = np.zeros((n, m))
    accident = np.zeros((n, m))
    changing = np.zeros((n, m), dtype=np.int64)
    way = np.empty(d)
    slack = np.empty(d)
    for row in range(n):
        for column in range(m):
            record = neighbours[row, column]
            if record < skip:
                continue
            error = noise + radii[record]
            count = 0
            widest = -1
            last = 0.0
            for k in range(d):
                if steps[k] <= 0.0:
                    continue
                difference = points[queries[row], k] - records[record, k]
                if abs(difference) <= 8.0 * error:
                    continue
                way[count] = difference / steps[k]
                slack[count] = 2.0 * error / steps[k]
                if widest < 0 or abs(way[count]) > abs(way[widest]):
                    widest = count
                    last = farthest / steps[k]
                count += 1
            if count < 2 or slack[widest] > 0.01:
                continue
            length = abs(way[widest])
            on_grid = True
            for k in range(count):
                if abs(way[k] - round(way[k])) > 2.0 * slack[k]:
                    on_grid = False
                    break
            # A row that is on the grid itself is a record; beyond it the ray meets the grid in any case.
            if on_grid:
                continue
            whole = math.floor(length + 2.0 * slack[widest]) + 1.0
            tried = 0
            while whole <= last:
                tried += 1
                scale = whole / length
                chance = math.log(float(tried))
                meets = True
                for k in range(count):
                    place = way[k] * scale
                    # The row's own error grows with the distance; so does that of the widest column.
                    spread = slack[k] * (1.0 + scale) + slack[widest] * abs(way[k]) / length * scale
                    if abs(place - round(place)) > spread or spread > 0.1:
                        meets = False
                        break
                    if k != widest:
                        chance += math.log(2.0 * spread)
                if meets:
                    reach[row, column] = scale
                    accident[row, column] = chance
                    changing[row, column] = count
                    break
                whole += 1.0
    return reach, accident, changing


@compiled
def projections_on(rows, queries, records, neighbours, axis):
    """Return how far along an axis, up to sign, the direction from each query to each neighbour points."""
    d = rows.shape[1]
    result = np.empty(neighbours.shape)
    for row in range(len(queries)):
        for column in range(neighbours.shape[1]):
            squared = 0.0
            along = 0.0
            for k in range(d):
                difference = records[neighbours[row, column], k] - rows[queries[row], k]
                squared += difference * difference
                along += difference * axis[k]
            result[row, column] = abs(along) / math.sqrt(squared) if squared > 0.0 else 2.0
    return result


@compiled
def between_records(rows, queries, records, radii, neighbours, projection, order, noise, width, beyond):
    """Return the two neighbours between which each query lies, or -1; the two that fit best.

    Two records see each other through a row in opposite directions, so their directions have the same
    projection up to sign; ``order`` sorts each row's projections. ``width`` is the largest distance from
    the chord, in errors. Rows that lie between no two records may lie ``beyond`` one of them, by this share
    of the distance between the two.
    """
    n, m = neighbours.shape
    d = rows.shape[1]
    result = np.full((n, 2), -1, dtype=np.int64)
    length = np.empty(m)
    slack = np.empty(m)
    for row in range(n):
        i = queries[row]
        widest = 0.0
        for at in range(m):
            record = neighbours[row, order[row, at]]
            total = 0.0
            for k in range(d):
                total += (records[record, k] - rows[i, k]) ** 2
            length[at] = math.sqrt(total)
            slack[at] = width * (radii[record] + 2.0 * noise) / length[at] if total > 0.0 else 0.0
            if length[at] > 8.0 * (radii[record] + noise):
                widest = max(widest, slack[at])
        best = 1.0
        outside = True
        for first in range(m):
            a = neighbours[row, order[row, first]]
            place = projection[row, order[row, first]]
            if place > 1.5 or length[first] <= 8.0 * (radii[a] + noise):
                continue
            for second in range(first + 1, m):
                apart = projection[row, order[row, second]] - place
                if apart > slack[first] + widest:
                    break
                b = neighbours[row, order[row, second]]
                if apart > slack[first] + slack[second] or length[second] <= 8.0 * (radii[b] + noise):
                    continue
                along = 0.0
                for k in range(d):
                    along += (records[a, k] - rows[i, k]) * (records[b, k] - rows[i, k])
                # The place of the row between the two: from 0 to 1, or beyond one of them.
                if along < 0.0:
                    share = length[first] / (length[first] + length[second])
                else:
                    between = length[second] - length[first]
                    if not outside or between == 0.0:
                        continue
                    share = -length[first] / between
                    if max(-share, share - 1.0) > beyond:
                        continue
                error = abs(1.0 - share) * radii[a] + abs(share) * radii[b] + noise
                off = 0.0
                for k in range(d):
                    chord = (1.0 - share) * records[a, k] + share * records[b, k]
                    off += (chord - rows[i, k]) ** 2
                fit = math.sqrt(off) / (width * error)
                if fit < best or (outside and along < 0.0 and fit < 1.0):
                    best = fit
                    outside = along >= 0.0
                    result[row, 0] = a
                    result[row, 1] = b
    return result
