"""Joint decoding: the ends of many rows' lines, where they meet, and how sure each one is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oversafe.attack.geometry.lattice import _kernels
from oversafe.attack.geometry.lattice.grids import Grids
from oversafe.attack.geometry.lattice.probability import MULTIPLES, agreement, ghost_weights
from oversafe.attack.geometry.lattice.search import Cells, Lines
from oversafe.attack.geometry.lattice.tuning import shared_divisors

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# How far off its grid a record of lines may be.
_ON_GRID = 0.01
# The odds that an end is a ghost where a point that other lines share lies behind it.
_BEHIND = 10.0
# The odds against a point in which two parts of one line meet.
_BETWEEN = 3.0
# How often the values of a column lie between the points of a grid that seemed to hold.
_TOO_COARSE = 1e-3
# The odds that the ends are wrong where a column fits no step.
_BLOCKED = 1.0
# How likely a sampler goes beyond records (one of a dozen in use does), which share of the rows with one known end it
# then puts there, how far as a share of the way to the neighbour, and how often the way is a part of a longer one.
EXTRAPOLATES, _PAST, _FARTHEST, _PART = 0.05, (0.3, 0.999), 0.5, 0.05
# How many lines share an end, at least and at most, as a share: few rows show none. So many segments show it.
_SHARED, _ENOUGH = 0.05, 10


@dataclass(frozen=True)
class Points:
    """The ends of lines.

    Parameters
    ----------
    units : array (p, m)
        Points in units of the grids.
    p_wrong : array (p,)
        The probability that no record lies there.
    n_lines : array (p,)
        The distinct lines that end there.
    ends : array (k, 2)
        For each line the points next to its row.
    past : float
        How likely a row with one known end lies past it, and not on the way to the other.
    """

    units: FloatArray
    p_wrong: FloatArray
    n_lines: IntArray
    ends: IntArray
    past: float


def join(lines: Lines, grids: Grids, cells: Cells, key: BoolArray, known: FloatArray | None = None) -> Points:
    """Return the points where lines end, in the columns that tell them apart.

    Parameters
    ----------
    lines : Lines
        Lines whose steps in these columns are known.
    grids : Grids
        The grids of the columns.
    cells : Cells
        The rows.
    key : array of bool (m,)
        The columns.
    known : array (r, m), optional
        Records that are known by other means.
    """
    reach, error = cells.reach, cells.error
    starts, ways = lines.starts[:, key], lines.ways[:, key]
    both = np.vstack([starts, starts + ways])
    units, names = np.unique(both, axis=0, return_inverse=True)
    ends = names.reshape(2, -1).T.astype(np.int64)
    # Rows between the same two points are one segment; segments of one direction through a point are one line.
    order = np.sort(ends, axis=1)
    segments, first, segment, rows = np.unique(
        order, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    segment = segment.ravel()
    begin, way = units[segments[:, 0]], units[segments[:, 1]] - units[segments[:, 0]]
    low, high = grids.units(grids.lowest)[key], grids.units(grids.highest)[key]
    off = (error[lines.row] + lines.slack[:, None] * np.abs(lines.ways))[:, key]
    *ghosts, unusual = ghost_weights(
        begin,
        way,
        reach[key],
        grids.popular[key],
        grids.modulus[key],
        low - 1e-6,
        high + 1e-6,
        off[first],
    )
    between, adjacent = _between(segments, way)
    n_lines = (
        np.bincount(segments.ravel(), minlength=len(units))
        - np.bincount(segments[between], minlength=len(units)) // 2
    )
    is_known = _are_known(units, grids.only(np.flatnonzero(key)), known, key)
    released = _are_released(units, cells, key)
    # Where most records stand in the release, one that does not is likelier none.
    met = n_lines > 1
    stand = float((released & met).sum() / (met.sum() + 2))
    missing = np.where(released, 1.0, 1.0 / (1.0 - stand))
    # What ends in a known record is as good as met by another line.
    is_known = is_known | released
    met = n_lines + is_known > 1
    # Past a record there is nothing on the way to a neighbor that cannot be.
    inside = np.column_stack(
        [
            ((other >= low - 1e-6) & (other <= high + 1e-6)).all(axis=1)
            for other in (begin + 2 * way, begin - way)
        ]
    )
    past, odds_past = _past(ends, order, segments, lines.share, met, segment, inside)
    # All rows of a segment lie in the same part of it, unless another segment goes on where it ends. A row in another
    # part may have no line.
    elsewhere = 1.0 - min(1.0, lines.success) * (1.0 - 1.0 / MULTIPLES)
    again = elsewhere ** np.where(adjacent, 0.0, rows - 1.0)[:, None]
    # Of segments of which only one half has rows, half of the way looks like all of it.
    again[:, 0] += past * (1.0 - again[:, 0])
    ghost_first, ghost_second, either = (weight * again for weight in ghosts)
    accident = np.zeros(len(segments))
    np.maximum.at(accident, segment, 2.0**-lines.bits * key.sum())
    # Where few rows have a line, these are likelier accidents.
    unusual /= lines.success
    # Accidents do not repeat: where most rows share their ends, a row alone is likelier one.
    unusual *= np.where(rows == 1, len(lines) / max(1, int((rows == 1).sum())), 1.0)
    # A line as long as few others is likelier an accident.
    accident = (
        np.minimum((accident + _kernels.near_lines(way, off[first], reach[key])) * unusual, 1.0) ** rows
    )
    # A column that does not fit may be off its grid, or show that the ends are others.
    blocked = np.zeros(len(segments))
    np.maximum.at(blocked, segment, _BLOCKED * (lines.states == _kernels.BLOCKED).any(axis=1))
    # So may a divisor that all columns share but one.
    _, divisor = shared_divisors(way)
    odd = (way != 0).sum(axis=1) - 1.0
    accident += blocked + np.where(divisor > 1, _TOO_COARSE * divisor**odd, 0.0)
    behind = _behind(begin, way, units[met])
    # Two parts of one line that meet in a point are one line, and the point is likelier between its ends than one.
    once = ~between
    _, one = np.unique(segments[between], return_index=True)
    once[tuple(np.argwhere(between)[one].T)] = True
    spread = np.log1p(np.abs(way).mean(axis=0)).sum()
    # Columns depend on each other: only half of their room counts.
    coincidence = min(1.0, len(units) * float(np.exp(-0.5 * spread)))
    shared = _shared(met[segments], rows)
    wrong = np.ones(len(units))
    for _ in range(2):
        odds = np.empty((len(segments), 2))
        for side, (ghost, opposite) in enumerate(((ghost_first, ghost_second), (ghost_second, ghost_first))):
            other = wrong[segments[:, 1 - side]]
            # If the other end is a record, the row lies in the part of the segment beside it, and the line is one.
            beside = (either - opposite).sum(axis=1) + coincidence * accident
            alone = ghost.sum(axis=1) + accident
            odds[:, side] = (
                other * alone + (1 - other) * np.minimum(beside, alone) + _BEHIND * behind[:, side]
            )
        odds[between] = np.maximum(odds[between], _BETWEEN)
        odds += np.where(met[segments], 0.0, odds_past)
        wrong = agreement(odds[once], segments[once], len(units), coincidence, shared, is_known)
        wrong = wrong * missing / (1.0 + wrong * (missing - 1.0))
    return Points(units, wrong, n_lines, ends, past)


def _are_known(units: FloatArray, grids: Grids, known: FloatArray | None, key: BoolArray) -> BoolArray:
    """Return which points are records that are known by other means."""
    if known is None or not len(known):
        return np.zeros(len(units), dtype=bool)
    there = grids.units(known)[:, key]
    on = (np.abs(there - np.rint(there)) < _ON_GRID).all(axis=1)
    names = {point.tobytes() for point in np.rint(there[on]) + 0.0}
    return np.array([point.tobytes() in names for point in units + 0.0], dtype=bool)


def _are_released(units: FloatArray, cells: Cells, key: BoolArray) -> BoolArray:
    """Return which points stand in the release as they are."""
    still = ~cells.moving.any(axis=1) & cells.informative[:, key].all(axis=1)
    names = {point.tobytes() for point in np.rint(cells.units[np.ix_(still, key)]) + 0.0}
    return np.array([point.tobytes() in names for point in units + 0.0], dtype=bool)


def _shared(met: BoolArray, rows: IntArray) -> float:
    """Return the share of the ends of segments that other lines share, of those that several rows confirm if they are
    enough: accidents share none."""
    told = met[rows > 1] if (rows > 1).sum() >= _ENOUGH else met
    # As if one more segment shared none.
    return float(np.clip(told.sum() / (told.size + 2), _SHARED, 1.0))


def _past(
    ends: IntArray,
    order: IntArray,
    segments: IntArray,
    share: FloatArray,
    met: BoolArray,
    segment: IntArray,
    inside: BoolArray,
) -> tuple[float, FloatArray]:
    """Return how likely a row lies past a record, and by end of each segment the odds that its rows lie past the other.

    Some samplers go on beyond a record, by half of the way at most: such rows are nearer to the record. The neighbor
    from which they come lies as far behind it, ``inside`` the box of the plausible values.
    """
    # As the segments have them: the smaller number first.
    share = np.where(ends[:, 0] == order[:, 0], share, 1 - share)
    shared = met[segments[segment]]
    one = shared.sum(axis=1) == 1
    possible = np.where(shared[:, 0], inside[segment, 1], inside[segment, 0])
    told = one & possible
    # Where one end is known to be a record: how many rows are in the half beside it.
    beside = np.where(shared[:, 0], share < _FARTHEST, share > 1 - _FARTHEST)[told]
    ways = np.linspace(*_PAST, 50)
    likely = beside.sum() * np.log1p(ways) + (~beside).sum() * np.log1p(-ways)
    weight = np.exp(np.minimum(likely, 700.0)) * EXTRAPOLATES / len(ways)
    past = float((weight * ways).sum() / (1 - EXTRAPOLATES + weight.sum()))
    odds = np.where(inside, 2 * past / max(1 - past, 1e-9), 0.0)
    # Rows in the half beside an end speak for it, unless the way is a part of a longer one.
    for side, against in ((0, share < 1 - _FARTHEST), (1, share > _FARTHEST)):
        odds[segment[against], side] *= _PART
    return past, odds


def _between(segments: IntArray, way: FloatArray) -> tuple[BoolArray, BoolArray]:
    """Return which ends of segments another one of the same direction goes on from, and which segments have one."""
    sign = np.sign(way[np.arange(len(way)), (way != 0).argmax(axis=1)])
    names = np.unique(way * sign[:, None], axis=0, return_inverse=True)[1].ravel()
    pairs = np.column_stack([segments.T.ravel(), np.tile(names, 2)])
    _, which, counts = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    between: BoolArray = (counts[which.ravel()] > 1).reshape(2, -1).T
    return between, np.asarray(between.any(axis=1))


def _behind(begin: FloatArray, way: FloatArray, shared: FloatArray) -> BoolArray:
    """Return whether a point that other lines share lies on the line behind each end."""
    solid = {point.tobytes() for point in shared}
    found = np.zeros((len(begin), 2), dtype=bool)
    if not solid:
        return found
    for more in range(1, int(MULTIPLES[-1])):
        for side, points in enumerate((begin - more * way, begin + (more + 1) * way)):
            points += 0.0  # no negative zeros, which have other bytes
            for i in range(len(points)):
                found[i, side] |= points[i].tobytes() in solid
    return found
