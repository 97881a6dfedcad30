"""Where lines meet: the records from which several segments start.

A real record is the common end of its segments: the released rows of each line lie on one side of it. In
three and more dimensions two lines in general position meet only there. Where records lie on a coarse grid,
or lines run through two columns only, lines also cross by accident, and more of them must meet.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import gammaincc

from oversafe.attack.geometry.shapes import _kernels
from oversafe.attack.geometry.shapes.lines import Lines, random_axis, together
from oversafe.attack.geometry.shapes.neighbors import Cells
from oversafe.attack.geometry.shapes.points import BoolArray, FloatArray, IntArray, Points

# A true end of a line is turned down with this probability, because its last stretch is empty by chance.
REJECTION = 1e-4
# Up to this many lines, each is held against each; above, against those with an end close to its own.
_ALL_PAIRS = 4000
_CLOSE_ENDS = 64
# The largest error of an intersection that is followed up, in column ranges and in units of the noise.
_LARGEST_RADIUS = 1e-4
_LARGEST_MULTIPLE = 30.0
# How many of the next crossings along an axis are compared.
_NEXT = 3
# How many of the crossings may lie inside lines, where no record is, if two lines are to be evidence.
_ACCIDENTS = 0.01


@dataclass(frozen=True)
class Meetings:
    """The records where lines meet.

    Parameters
    ----------
    places : array of shape (n_records, d)
        The records, in the unit cube.
    radius : array of float
        Their errors.
    lines : list of array of int
        The lines that end in each.
    general : bool
        Whether two lines were taken for evidence.
    """

    places: FloatArray
    radius: FloatArray
    lines: list[IntArray]
    general: bool


@dataclass(frozen=True)
class _Crossings:
    """Pairs of lines with a common place.

    ``at_end`` tells for both lines whether the place is beyond or at their outermost members;
    ``gap`` how surprising the stretch without members is that leads there.
    """

    pair: IntArray
    position: FloatArray
    radius: FloatArray
    at_end: BoolArray
    gap: FloatArray


@dataclass(frozen=True)
class _Place:
    """A place where lines cross: the ends that lead to it, their gaps, and how many lines go through."""

    ends: IntArray
    gaps: FloatArray
    inside: int
    general: bool


def find_meetings(
    lines: Lines,
    points: Points,
    min_lines: int | None = None,
    taken: set[int] | None = None,
    *,
    extrapolated: bool = False,
) -> Meetings:
    """Find the records in which lines end.

    Parameters
    ----------
    lines : Lines
        The lines.
    points : Points
        The table, for what is known about its columns.
    min_lines : int, optional
        How many lines must end in a record. By default three, or two where lines in general position show
        no accidental crossings.
    taken : set of int, optional
        The ends of lines that lead to a known record: twice the line's number, plus 1 for its last end.
    extrapolated : bool
        Whether rows lie beyond records too, so that records are found inside lines as well.
    """
    d = lines.centre.shape[1]
    if len(lines) < (min_lines or 2):
        return Meetings(np.empty((0, d)), np.empty(0), [], False)
    crossings = _cross(lines)
    freedom = _freedom(lines, points, crossings.pair)
    label, candidates = _places(lines, crossings, freedom >= 3, extrapolated)
    needed = min_lines or 3
    claimed = set() if taken is None else set(taken)
    kept = _claim(candidates, needed, claimed)
    general = min_lines is None and (extrapolated or _in_general_position(crossings, freedom >= 3))
    if general:
        on_grid = _on_grid(lines, points, crossings, label, len(candidates))
        kept += _claim(
            [p for p, fits in zip(candidates, on_grid, strict=True) if p.general and fits], 2, claimed
        )
    line_of_entry = crossings.pair.T.ravel()
    members = [_lines_of(ends, len(lines), line_of_entry) for ends in kept]
    places, radius = _intersect(lines, members)
    return Meetings(places, radius, members, general)


def _lines_of(ends: IntArray, n_lines: int, line_of_entry: IntArray) -> IntArray:
    """Return the lines that claimed ends belong to."""
    through = ends >= 2 * n_lines
    return np.where(through, line_of_entry[np.where(through, ends - 2 * n_lines, 0)], ends // 2)


def _cross(lines: Lines) -> _Crossings:
    """Find the pairs of lines that cross, near the end of one of them at least."""
    largest_radius = max(_LARGEST_RADIUS, _LARGEST_MULTIPLE * lines.noise)
    pair, found = _kernels.crossings(
        lines.centre,
        lines.direction,
        lines.t_min,
        lines.t_max,
        lines.sizes,
        _partners(lines),
        lines.noise,
        -math.log(REJECTION),
        largest_radius,
    )
    position, radius = np.ascontiguousarray(found[:, :2]), found[:, 2]
    length = lines.length[pair]
    beyond = np.maximum(position - lines.t_max[pair], lines.t_min[pair] - position)
    gap = (lines.sizes[pair] - 1) * np.log1p(np.maximum(beyond, 0) / length)
    slack = 2 * (radius[:, None] + lines.error_at(pair, position))
    return _Crossings(pair, position, radius, beyond >= -slack, gap)


def _freedom(lines: Lines, points: Points, pair: IntArray) -> IntArray:
    """Return in how many independent columns each pair of lines moves."""
    moves = together(lines.moves, points.same)
    return (moves[pair[:, 0]] | moves[pair[:, 1]]).sum(axis=1)


def _places(
    lines: Lines, crossings: _Crossings, general: BoolArray, extrapolated: bool
) -> tuple[IntArray, list[_Place]]:
    """Put crossings that agree on a line together; return the place of each, and the places."""
    count = len(crossings.pair)
    entry_line = crossings.pair.T.ravel()
    entry_position = crossings.position.T.ravel()
    entry_radius = np.tile(crossings.radius, 2)
    crossing = np.tile(np.arange(count), 2)
    order = np.lexsort((entry_position, entry_line))
    line, position, radius = entry_line[order], entry_position[order], entry_radius[order]
    same = (line[1:] == line[:-1]) & (position[1:] - position[:-1] <= radius[1:] + radius[:-1])
    left, right = crossing[order][:-1][same], crossing[order][1:][same]
    near_left, near_right = _coincident(lines, crossings)
    left, right = np.concatenate((left, near_left)), np.concatenate((right, near_right))
    graph = coo_array((np.ones(len(left)), (left, right)), (count, count))
    n_places, label = connected_components(graph, directed=False)

    # One entry per place and line, the one with the smallest gap.
    entry_place = label[crossing]
    entry_gap, entry_end = crossings.gap.T.ravel(), crossings.at_end.T.ravel()
    order = np.lexsort((entry_gap, entry_line, entry_place))
    first = np.ones(len(order), dtype=bool)
    first[1:] = (np.diff(entry_place[order]) != 0) | (np.diff(entry_line[order]) != 0)
    order = order[first]
    limits = np.searchsorted(entry_place[order], np.arange(n_places + 1))
    is_general = np.zeros(n_places, dtype=bool)
    is_general[label[general]] = True
    largest_gap = -math.log(REJECTION)
    result = []
    for number in range(n_places):
        entries = order[limits[number] : limits[number + 1]]
        at_end = entry_end[entries] | extrapolated
        inside = int((~at_end).sum())
        entries = entries[at_end & (entry_gap[entries] <= largest_gap)]
        entries = entries[np.argsort(entry_gap[entries], kind="stable")]
        entries = entries[_not_parallel(lines, entry_line[entries])]
        ends = 2 * entry_line[entries] + (entry_position[entries] > 0)
        # A line through a record has both of its ends elsewhere; nobody else can claim this one.
        ends = np.where(entry_end[entries], ends, 2 * len(lines) + entries)
        result.append(_Place(ends, entry_gap[entries], inside, bool(is_general[number])))
    return label, result


def _coincident(lines: Lines, crossings: _Crossings) -> tuple[IntArray, IntArray]:
    """Return pairs of crossings at the same place, also of lines that were not held against each other."""
    line = crossings.pair[:, 0]
    place = lines.centre[line] + crossings.position[:, :1] * lines.direction[line]
    along = place @ random_axis(place.shape[1])
    order = np.argsort(along)
    pairs = []
    # Of crossings in one record, each is next to another of them.
    for step in range(1, _NEXT + 1):
        a, b = order[:-step], order[step:]
        reach = crossings.radius[a] + crossings.radius[b]
        close = along[b] - along[a] <= reach
        a, b, reach = a[close], b[close], reach[close]
        same = np.linalg.norm(place[a] - place[b], axis=1) <= reach
        pairs.append((a[same], b[same]))
    return tuple(np.concatenate(side) for side in zip(*pairs, strict=True))  # type: ignore[return-value]


def _in_general_position(crossings: _Crossings, general: BoolArray) -> bool:
    """Return whether lines that could miss each other cross at their ends only, as segments do."""
    at_ends = crossings.at_end.all(axis=1) & general
    return bool(
        at_ends.any() and (~crossings.at_end.all(axis=1) & general).sum() <= _ACCIDENTS * at_ends.sum()
    )


def _on_grid(
    lines: Lines, points: Points, crossings: _Crossings, label: IntArray, n_places: int
) -> BoolArray:
    """Return which places have values that their columns can have."""
    best = np.lexsort((crossings.radius, label))
    best = best[np.searchsorted(label[best], np.arange(n_places))]
    line = crossings.pair[best, 0]
    place = lines.centre[line] + crossings.position[best, 0, None] * lines.direction[line]
    result = np.ones(len(place), dtype=bool)
    for column, grid in enumerate(points.grid):
        # Real values may be rounded to a grid a little less exactly than floats are.
        slack = 0.01 * grid[1] if grid is not None else 0.0
        result &= ~points.off_grid(column, place[:, column], crossings.radius[best] + slack)
    return result


def _claim(candidates: list[_Place], needed: int, claimed: set[int]) -> list[IntArray]:
    """Give each end of a line to one place, the most plausible first; return what those kept hold.

    The gaps of a true record's lines add up to a gamma variable with one degree per line; the place whose
    sum is the least surprising takes its ends, and the others must do without them. ``claimed`` has the
    ends that are taken, and is added to.
    """

    def rank(number: int) -> tuple[float, int, int] | None:
        place = candidates[number]
        if len(place.ends) < needed:
            return None
        free = np.array([end not in claimed for end in place.ends.tolist()], dtype=bool)
        count = int(free.sum())
        # A crossing in the middle of as many lines as end there is more likely a crossing than a record.
        if count < needed or place.inside >= count:
            return None
        surprise = float(gammaincc(count, place.gaps[free].sum()))
        return None if surprise < REJECTION else (-surprise, -count, number)

    queue = [ranked for ranked in map(rank, range(len(candidates))) if ranked is not None]
    heapq.heapify(queue)
    kept = []
    while queue:
        ranked = heapq.heappop(queue)
        current = rank(ranked[2])
        if current is None:
            continue
        if current > ranked:
            heapq.heappush(queue, current)
            continue
        ends = candidates[ranked[2]].ends.tolist()
        kept.append(np.array([end for end in ends if end not in claimed], dtype=np.int64))
        claimed.update(ends)
    return kept


def _partners(lines: Lines) -> IntArray:
    """Return which lines to hold against each line; -1 for none."""
    n = len(lines)
    if n <= _ALL_PAIRS:
        return np.arange(n)[None, :]
    # A record lies about one mean distance beyond the outermost member.
    beyond = lines.length / (lines.sizes - 1)
    ends = np.concatenate(
        [lines.centre + t[:, None] * lines.direction for t in (lines.t_min - beyond, lines.t_max + beyond)]
    )
    close = np.empty((2 * n, min(_CLOSE_ENDS, 2 * n)), dtype=np.int64)

    def store(rows: IntArray, neighbours: IntArray) -> None:
        close[rows] = neighbours % n

    Cells(ends).search(ends, close.shape[1], store)
    partners = np.sort(np.concatenate((close[:n], close[n:]), axis=1), axis=1)
    partners[:, 1:][partners[:, 1:] == partners[:, :-1]] = -1
    return np.ascontiguousarray(partners)


def _not_parallel(lines: Lines, chosen: IntArray) -> IntArray:
    """Return the places in the list of the lines that are parallel to none before them."""
    if len(chosen) < 2:
        return np.arange(len(chosen))
    direction = lines.direction[chosen]
    slack = 4 * lines.noise / lines.length[chosen]
    cosine = direction @ direction.T
    close = np.argwhere(np.triu(1 - cosine**2 < 1e-6, 1))
    kept = np.ones(len(chosen), dtype=bool)
    for a, b in close:
        sine = np.linalg.norm(direction[b] - cosine[a, b] * direction[a])
        if kept[a] and sine <= slack[a] + slack[b]:
            kept[b] = False
    return np.flatnonzero(kept)


def _intersect(lines: Lines, ends: list[IntArray]) -> tuple[FloatArray, FloatArray]:
    """Return the points closest to the lines that end in each record, and their errors.

    The squared distances are weighted by the precision of each line at the intersection.
    """
    d = lines.centre.shape[1]
    places, radii = np.empty((len(ends), d)), np.empty(len(ends))
    for number, end in enumerate(ends):
        direction, centre = lines.direction[end], lines.centre[end]
        along = np.einsum("ij,ij->i", centre, direction)
        error = np.full(len(end), lines.noise)
        for _ in range(2):
            weight = (error.min() / error) ** 2
            target = weight @ (centre - along[:, None] * direction)
            place, trace = _solve(weight.sum(), np.sqrt(weight)[:, None] * direction, target)
            error = lines.error_at(end, np.einsum("ij,ij->i", place - centre, direction))
        places[number] = place
        radii[number] = error.min() * math.sqrt(trace)
    return places, radii


def _solve(total: float, rows: FloatArray, target: FloatArray) -> tuple[FloatArray, float]:
    """Return the solution of (total I - rows' rows) x = target, and the trace of the inverse."""
    m, d = rows.shape
    if d <= m:
        system = total * np.eye(d) - rows.T @ rows
        solution = np.linalg.solve(system, target).astype(np.float64)
        return solution, float(np.trace(np.linalg.inv(system)))
    # Woodbury's identity: with more columns than lines the system of the lines is the smaller one.
    products = rows @ rows.T
    inverse = np.linalg.inv(total * np.eye(m) - products)
    solution = (target + rows.T @ (inverse @ (rows @ target))) / total
    return solution, float(d + np.trace(inverse @ products)) / total
