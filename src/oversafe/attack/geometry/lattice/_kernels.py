"""Compiled loops of the lattice attack: pure functions on arrays.

A row is t = a + u d in units of the grids, with integers a and d. An integer relation c with c . d = 0 makes c . t an
integer, so the relations of t that are short and hold to the last digit give d back.
"""

from __future__ import annotations

import math

import numpy as np

from oversafe._core.compiled import compiled

# How much the last coordinate of the lattice grows between two reductions: doubles hold no more at once.
_STAGE = 64.0
# The constant of Lovasz's condition.
_DELTA = 0.99
# A reduction of so few columns ends far earlier.
_MOST_SWAPS = 20_000
# Numbers beyond this are not whole any more.
_EXACT = 2.0**52
# How often the steps of the columns found so far may be a common divisor too short.
_MOST_MULTIPLE = 12

# Columns that are searched for all steps that fit have at most so many steps, and so many wrong ones expected.
_WIDEST, _HOPELESS = 300_000.0, 8.0
# A column in which more wrong steps are expected than this is given up unseen.
_TOO_MANY = 5e-2
# So many rows are tried, and if fewer than this share have a line, no others are.
_PATIENCE, _RARE = 500, 0.01
# Columns are left out of the first rows that have no line, and later on where most rows have one.
_FIRST_TRIES, _OFTEN = 50, 0.3
# Below this probability nobody looks for a second step.
_DOUBTFUL = 1e-8

OPEN, FIXED, AMBIGUOUS, BLOCKED = 0, 1, 2, 3


@compiled
def log2_lines(reach, error, used):
    """Return log2 of a bound on the lines that fit one row by accident, over the columns in use.

    Lines with steps of at most ``reach`` per column: the volume of the tubes around their segments.
    """
    total = -1.0
    ends = 0.0
    for j in range(len(reach)):
        if used[j]:
            total += math.log2(4.0 * reach[j] * error[j])
            ends += (reach[j] + 1.0) / (4.0 * error[j])
    return total + math.log2(ends) if ends > 0.0 else 0.0


@compiled
def _rivals(multiple, size):
    """Return how many other multiples a vector of so many columns could be, each weighted by how usual it is."""
    if multiple == 1:
        return 1.3 * 2.0**-size
    return multiple * (math.log(multiple) + 1.0 / (size - 1))


@compiled
def near_lines(ways, tolerance, reach):
    """Return the expected number of wrong lines that share a part of each line's steps and fit the rest by accident.

    Columns whose steps are k times shorter ones are worth one column only: they hold on k^2 / 2 other lines up to
    that length, if the true steps are another multiple.

    Parameters
    ----------
    ways, tolerance : array (n, m)
        The steps of each line, and how much a grid point may be off it.
    reach : array (m,)
        The usual range of each column.
    """
    n, m = ways.shape
    total = np.zeros(n)
    fits = np.empty(m)
    seen = np.empty(m * m)
    for i in range(n):
        count = 0
        largest = 0.0
        for j in range(m):
            if ways[i, j] != 0.0:
                count += 1
                largest = max(largest, abs(ways[i, j]) / reach[j])
        for j in range(m):
            fits[j] = min(1.0, 4.0 * max(1.0, largest * reach[j]) * tolerance[i, j])
            if ways[i, j] != 0.0 and count > 2:
                total[i] += _rivals(1.0, count - 1) * fits[j]
        kinds = 0
        for first in range(m):
            for second in range(first):
                if ways[i, first] == 0.0 or ways[i, second] == 0.0:
                    continue
                a, b = abs(ways[i, first]), abs(ways[i, second])
                while b > 0.0:
                    a, b = b, a % b
                known = a == 1.0
                for o in range(kinds):
                    known |= seen[o] == a
                if known:
                    continue
                seen[kinds] = a
                kinds += 1
                size = 0
                others = 1.0
                for j in range(m):
                    if ways[i, j] != 0.0:
                        if ways[i, j] % a == 0.0:
                            size += 1
                        else:
                            others *= fits[j]
                if size < count:
                    total[i] += _rivals(a, size) * 0.5 * (a * a + 1.0) * others
    return total


@compiled
def _reduce(basis, inverse, n):
    """Reduce the rows of a basis in place (LLL), and keep the inverse of what was done to them."""
    width = basis.shape[1]
    star = np.empty((n, width))
    mu = np.zeros((n, n))
    norm = np.zeros(n)
    k = 0
    swaps = 0
    while k < n:
        for _ in range(20):
            for c in range(width):
                star[k, c] = basis[k, c]
            for j in range(k):
                along = 0.0
                for c in range(width):
                    along += star[k, c] * star[j, c]
                mu[k, j] = along / norm[j] if norm[j] > 0.0 else 0.0
                for c in range(width):
                    star[k, c] -= mu[k, j] * star[j, c]
            changed = False
            for j in range(k - 1, -1, -1):
                if abs(mu[k, j]) > 0.51:
                    q = np.rint(mu[k, j])
                    changed = True
                    for c in range(width):
                        basis[k, c] -= q * basis[j, c]
                    for i in range(j):
                        mu[k, i] -= q * mu[j, i]
                    mu[k, j] -= q
                    for i in range(n):
                        inverse[i, j] += q * inverse[i, k]
            if not changed:
                break
        norm[k] = 0.0
        for c in range(width):
            norm[k] += star[k, c] * star[k, c]
        if k == 0 or norm[k] >= (_DELTA - mu[k, k - 1] ** 2) * norm[k - 1]:
            k += 1
            continue
        swaps += 1
        if swaps > _MOST_SWAPS:
            return False
        for c in range(width):
            basis[k, c], basis[k - 1, c] = basis[k - 1, c], basis[k, c]
        for i in range(n):
            inverse[i, k], inverse[i, k - 1] = inverse[i, k - 1], inverse[i, k]
        k -= 1
    return True


@compiled
def line_of_row(part, error, reach, start, way):
    """Find the line through one row by its integer relations; fill ``start`` and ``way``, or return False.

    Parameters
    ----------
    part, error : array
        The row in units of the grids, its whole part taken off, and how much each value may be off.
    reach : array
        How far the ends of such a row are apart, about.
    start, way : array
        Filled with a grid point of the line and its primitive direction.
    """
    m = len(part)
    n = m + 1
    middle = 0.0
    for j in range(m):
        middle += math.log2(reach[j])
    middle /= m
    basis = np.zeros((n, n))
    inverse = np.zeros((n, n))
    relative = 0.0
    for j in range(m):
        weight = 2.0 ** np.rint(math.log2(reach[j]) - middle)
        basis[j, j] = weight
        basis[j, m] = part[j]
        inverse[j, j] = 1.0
        relative += (error[j] / weight) ** 2
    basis[m, m] = 1.0
    inverse[m, m] = 1.0
    final = 2.0 ** np.floor(-0.5 * math.log2(relative))
    scale = 1.0
    while scale < final:
        step = min(_STAGE, final / scale)
        for i in range(n):
            basis[i, m] *= step
        scale *= step
        if not _reduce(basis, inverse, n):
            return False
    # All relations but the last two hold on the whole line: it is spanned by the last two columns of the inverse.
    p, q = inverse[m, m - 1], inverse[m, m]
    r0, r1, x0, x1, y0, y1 = p, q, 1.0, 0.0, 0.0, 1.0
    while r1 != 0.0:
        whole = np.floor(r0 / r1)
        r0, r1 = r1, r0 - whole * r1
        x0, x1 = x1, x0 - whole * x1
        y0, y1 = y1, y0 - whole * y1
    if abs(r0) != 1.0:
        return False
    for j in range(m):
        way[j] = q * inverse[j, m - 1] - p * inverse[j, m]
        start[j] = (x0 * inverse[j, m - 1] + y0 * inverse[j, m]) * r0
        if not (abs(way[j]) < _EXACT and abs(start[j]) < _EXACT):
            return False
    return True


@compiled
def share_on_line(part, error, start, way):
    """Return the interval of u in which start + u way fits every value; it is empty if none does."""
    low, high = -math.inf, math.inf
    for j in range(len(part)):
        if way[j] == 0.0:
            if abs(part[j] - start[j]) > error[j]:
                return 1.0, 0.0
            continue
        a = (part[j] - start[j] - error[j]) / way[j]
        b = (part[j] - start[j] + error[j]) / way[j]
        low = max(low, min(a, b))
        high = min(high, max(a, b))
    return low, high


@compiled
def step_of_column(value, error, low, high, most, lowest, highest):
    """Return the shortest step of one column that fits a share in [low, high], and how many fit in all.

    Counts at most two; the ends must be grid points between ``lowest`` and ``highest``.
    """
    middle = 0.5 * (low + high)
    slack = 0.5 * (high - low)
    found = 0.0
    count = 0
    for size in range(int(most) + 1):
        for sign in range(1 if size == 0 else 2):
            d = float(size) if sign == 0 else -float(size)
            start = value - middle * d
            whole = np.rint(start)
            inside = lowest <= whole <= highest and lowest <= whole + d <= highest
            if inside and abs(start - whole) <= error + slack * size:
                if count == 0:
                    found = d
                count += 1
        # Nobody looks further where a second one would be a miracle.
        if count >= 2 or (count == 1 and 4.0 * most * (error + slack * most) < _DOUBTFUL):
            break
    return found, count


@compiled
def _through(values, error, chosen, reach, lowest, highest, starts, ways):
    """Fill in the line of one row in some columns, and return the interval of u; it is empty if there is none."""
    size = len(chosen)
    part, whole = np.empty(size), np.empty(size)
    for o in range(size):
        whole[o] = np.rint(values[chosen[o]])
        part[o] = values[chosen[o]] - whole[o]
    start, way = np.empty(size), np.empty(size)
    if not line_of_row(part, error[chosen], reach[chosen], start, way):
        return 1.0, 0.0
    low, high = share_on_line(part, error[chosen], start, way)
    if not low <= high:
        return 1.0, 0.0
    back = np.floor(0.5 * (low + high))
    for o in range(size):
        j = chosen[o]
        starts[j] = start[o] + back * way[o] + whole[o]
        ways[j] = way[o]
        if not (lowest[j] <= starts[j] <= highest[j] and lowest[j] <= starts[j] + way[o] <= highest[j]):
            return 1.0, 0.0
    return low - back, high - back


@compiled
def _extended(values, error, j, low, high, lowest, highest, used, starts, ways):
    """Return by which multiple of its steps the line fits one more column, and the part of it that the row is in.

    The steps of the columns so far may have a common divisor that the new one does not share. The multiple is 0 if
    there is none; the number of steps of the column that fit is returned too.
    """
    most = highest[j] - lowest[j]
    for multiple in range(1, _MOST_MULTIPLE + 1):
        for place in range(multiple):
            inside = True
            for c in range(len(used)):
                if used[c]:
                    a = starts[c] - place * ways[c]
                    b = a + multiple * ways[c]
                    inside &= lowest[c] <= a <= highest[c] and lowest[c] <= b <= highest[c]
            if inside:
                d, number = step_of_column(
                    values[j],
                    error[j],
                    (low + place) / multiple,
                    (high + place) / multiple,
                    most,
                    lowest[j],
                    highest[j],
                )
                # Steps that share a divisor with the multiple would be those of a shorter line.
                a, b = float(multiple), abs(d)
                while b > 0.0:
                    a, b = b, a % b
                if number and a == 1.0:
                    return multiple, place, d, number
    return 0, 0, 0.0, 0


@compiled
def _settle(values, error, informative, reach, lowest, highest, used, starts, ways, states):
    """Give up columns where other steps fit as well; return the interval of u, the line's length, and what is unseen.

    Unseen are the wrong steps that may fit in columns too wide to look at all of them, as an expected number.

    Each column is judged by the interval of u that the others leave, for it would confirm itself.
    """
    m = len(values)
    lows, highs = np.full(m, -math.inf), np.full(m, math.inf)
    for j in range(m):
        if used[j]:
            a = (values[j] - starts[j] - error[j]) / ways[j]
            b = (values[j] - starts[j] + error[j]) / ways[j]
            lows[j], highs[j] = min(a, b), max(a, b)
    while True:
        largest = 0.0
        for j in range(m):
            if used[j]:
                largest = max(largest, abs(ways[j]) / reach[j])
        given_up = -1
        unseen = 0.0
        for j in range(m):
            if states[j] != FIXED or not informative[j]:
                continue
            low, high = 0.0, 1.0
            for c in range(m):
                if used[c] and c != j:
                    low, high = max(low, lows[c]), min(high, highs[c])
            most = min(2.0 * max(largest, 0.5) * reach[j], highest[j] - lowest[j])
            slack = max(0.5 * (high - low), 0.0)
            expected = 4.0 * most * (error[j] + slack * most)
            if expected > _DOUBTFUL and most > _WIDEST:
                unseen += expected
                if expected > _TOO_MANY:
                    given_up = j
                    break
            elif expected > _DOUBTFUL:
                _, number = step_of_column(values[j], error[j], low, high, most, lowest[j], highest[j])
                if number > 1:
                    given_up = j
                    break
        if given_up < 0:
            break
        states[given_up] = AMBIGUOUS
        used[given_up] = False
    low, high = 0.0, 1.0
    for c in range(m):
        if used[c]:
            low, high = max(low, lows[c]), min(high, highs[c])
    return low, high, largest, unseen


@compiled
def decode(values, error, moving, informative, reach, lowest, highest, most_columns, least, enough):
    """Find the line of each row, and what it says about each column.

    Parameters
    ----------
    values, error : array (n, m)
        Rows in units of the grids, and how much each value may be off.
    moving, informative : array of bool (n, m)
        Which values are off the grid, and which of those narrow the line down.
    reach, lowest, highest : array (m,)
        The usual range of a column, and the box of its plausible values.
    most_columns : int
        How many columns the relations use at most.
    least : float
        With fewer bits to spare than this no column is left out.
    enough : float
        Rows that can have fewer bits are not tried.

    Returns
    -------
    starts, ways : array (n, m)
        The ends next to the row are start and start + way.
    states : array (n, m)
        What is known of each value: OPEN, FIXED, AMBIGUOUS, BLOCKED.
    shares : array (n, 2)
        The interval of u.
    bits : array (n,)
        -log2 of the lines that fit by accident; 0 where none was found.
    tried : int
        How many rows could have had a line. Where hardly any of the first ones has one, the others are not tried.
    """
    n, m = values.shape
    tried, found = 0, 0
    starts, ways = np.zeros((n, m)), np.zeros((n, m))
    states = np.zeros((n, m), dtype=np.int8)
    shares = np.zeros((n, 2))
    bits = np.zeros(n)
    names = np.empty(m, dtype=np.int64)
    worth = np.empty(m)
    for i in range(n):
        count = 0
        for j in range(m):
            if moving[i, j] and informative[i, j]:
                names[count] = j
                worth[count] = math.log2(4.0 * reach[j] * error[i, j])
                count += 1
        if count < 2:
            continue
        if tried >= _PATIENCE and found < _RARE * tried:
            break
        names[:count] = names[np.argsort(worth[:count])]
        chosen = names[: min(count, most_columns)].copy()
        used = np.zeros(m, dtype=np.bool_)
        for o in range(len(chosen)):
            used[chosen[o]] = True
        if -log2_lines(reach, error[i], used) < enough:
            continue
        tried += 1
        low, high = _through(values[i], error[i], chosen, reach, lowest, highest, starts[i], ways[i])
        attempts = 1
        if not low <= high and len(chosen) > 2 and (tried < _FIRST_TRIES or found > _OFTEN * tried):
            # A column whose grid does not hold in this row blocks the others.
            for out in range(len(chosen)):
                used = np.zeros(m, dtype=np.bool_)
                for o in range(len(chosen)):
                    used[chosen[o]] = o != out
                if -log2_lines(reach, error[i], used) < least:
                    continue
                attempts += 1
                fewer = np.flatnonzero(used)
                low, high = _through(values[i], error[i], fewer, reach, lowest, highest, starts[i], ways[i])
                if low <= high:
                    chosen = fewer
                    break
        if not low <= high:
            continue
        used = np.zeros(m, dtype=np.bool_)
        for o in range(len(chosen)):
            used[chosen[o]] = True
            states[i, chosen[o]] = FIXED
        # The other columns, those that say most first, each narrowing u for the next.
        for o in range(count):
            j = names[o]
            if used[j]:
                continue
            multiple, place, d, number = _extended(
                values[i], error[i], j, low, high, lowest, highest, used, starts[i], ways[i]
            )
            states[i, j] = BLOCKED if number == 0 else FIXED if number == 1 else AMBIGUOUS
            if number == 0:
                continue
            if multiple > 1:
                for c in range(m):
                    if used[c]:
                        starts[i, c] -= place * ways[i, c]
                        ways[i, c] *= multiple
                low, high = (low + place) / multiple, (high + place) / multiple
                attempts *= multiple
            ways[i, j] = d
            starts[i, j] = np.rint(values[i, j] - 0.5 * (low + high) * d)
            if number == 1 and d != 0.0:
                used[j] = True
                a = (values[i, j] - starts[i, j] - error[i, j]) / d
                b = (values[i, j] - starts[i, j] + error[i, j]) / d
                low, high = max(low, min(a, b)), min(high, max(a, b))
        for j in range(m):
            if not moving[i, j] and informative[i, j]:
                starts[i, j] = np.rint(values[i, j])
                states[i, j] = FIXED
        low, high, largest, unseen = _settle(
            values[i], error[i], informative[i], reach, lowest, highest, used, starts[i], ways[i], states[i]
        )
        shares[i, 0], shares[i, 1] = low, high
        # Columns too wide for these digits are fixed if a single step fits in the whole box.
        for j in range(m):
            most = highest[j] - lowest[j]
            if states[i, j] == FIXED or states[i, j] == BLOCKED or not 0.0 < most <= _WIDEST:
                continue
            if 4.0 * most * (error[i, j] + 0.5 * (high - low) * most) > _HOPELESS:
                continue
            d, number = step_of_column(values[i, j], error[i, j], low, high, most, lowest[j], highest[j])
            if number == 1:
                states[i, j] = FIXED
                ways[i, j] = d
                starts[i, j] = np.rint(values[i, j] - 0.5 * (low + high) * d)
        box = np.maximum(1.0, largest * reach)
        if used.sum() > 1:
            bare = -log2_lines(box, error[i], used) - math.log2(attempts)
            # What is unseen leaves the line worth looking at beside others: they show which steps are right.
            bits[i] = max(min(bare, enough), -math.log2(2.0**-bare + unseen))
            found += bits[i] >= enough
    return starts, ways, states, shares, bits, tried
