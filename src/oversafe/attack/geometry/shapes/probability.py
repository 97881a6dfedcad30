"""How likely a record of lines, rays or a grid is wrong: accidental meetings, ghosts, and where it was found from.

Lines meet in a place by accident: L lines in d dimensions satisfy L (d - 1) - d conditions beyond those that fix the
place, each with a chance of about the error over the way between two records. Among N lines there are C(N, L) sets.
Their expected number, beside the places that were found on as many lines, is the probability.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from oversafe.attack.geometry.lattice.grids import Grids
from oversafe.attack.geometry.lattice.probability import MULTIPLES, SUREST, ghost_weights
from oversafe.attack.geometry.recovery import Recovered
from oversafe.attack.geometry.shapes.points import BoolArray, FloatArray, IntArray, Points

# Of inexact rows a value may be farther off than it states: no record of them is surer.
_INEXACT = 1e-5
# How many known records a ray may start from, as far as accidents are counted.
_STARTS = 40
# So many real values may be off the grid of a column.
_OFF_GRID = 0.02
# Values off their grid by more than this share of a step are off it, if the step is so many errors long.
_NEAR, _CLEAR = 0.05, 16.0


def wrong_places(
    points: Points, n_lines: int, records: Recovered, grids: Grids, past: float = 0.0
) -> FloatArray:
    """Return the probability that there is no record at each place.

    Parameters
    ----------
    points : Points
        The table.
    n_lines : int
        How many lines it has.
    records : Recovered
        What was found.
    grids : Grids
        The grids of the table's columns, as far as they are known.
    past : float
        How likely a row lies past a record that a single line leads to.
    """
    if not len(records.places):
        return np.zeros(0)
    pairs, rows = np.unique(records.segments[records.segments[:, 0] >= 0], axis=0, return_counts=True)
    step = (grids.step[points.columns] / points.span) if len(points.columns) else np.zeros(0)
    wrong = _accidental(points, n_lines, records, pairs, step)
    off = _off_grid(points, records, grids)
    # Few real values are off a grid that most places keep to; of all wrong places it is expected.
    odds = wrong / np.maximum(1 - wrong, 1e-300)
    odds = np.where(off, odds / np.clip(2 * off.mean(), _OFF_GRID, 1.0), odds)
    wrong = odds / (1 + odds)
    if len(pairs) and not records.beyond:
        on = ~off[pairs].any(axis=1)
        wrong = _carried_over(points, records, pairs[on], rows[on], grids, wrong, past)
    return np.clip(wrong, SUREST if points.exact else _INEXACT, 1.0)


def _accidental(
    points: Points, n_lines: int, records: Recovered, pairs: IntArray, step: FloatArray
) -> FloatArray:
    """Return the probability that so many lines meet in a place by accident."""
    support = np.maximum(records.support, _directions(records.places, records.radius, pairs))
    way = _usual_way(records, pairs, points)
    # The lines that meet fix the place far better than each of them is known.
    error = np.full(len(records.places), 2 * points.noise)
    room = np.log1p(way / np.fmax(np.where(np.isfinite(step), step, 0.0), error[:, None]))
    room = np.where(way > 0, room, 0.0)
    # Columns that are one another's linear functions count once, and those with common factors as many as these.
    alone = np.unique(points.same, return_index=True)[1]
    d = min(len(alone), points.dimensions)
    mean = room[:, alone].mean(axis=1)
    lines = max(n_lines, len(pairs), int(support.max(initial=2)))
    total = np.minimum(support, lines)
    log_sets = gammaln(lines + 1) - gammaln(total + 1) - gammaln(lines - total + 1)
    conditions = np.maximum(total * (d - 1) - d, 0)
    # As many or more lines, among the places that have them.
    found = np.searchsorted(np.sort(-support), -support, side="right")
    log_odds = log_sets - conditions * mean - np.log(found)
    wrong = 1 / (1 + np.exp(-np.clip(log_odds, -700, 700)))
    return np.where(support < 2, 1.0, wrong)


def _directions(places: FloatArray, radius: FloatArray, pairs: IntArray) -> IntArray:
    """Return from how many others rows lead to each place, opposite ones counted once."""
    counts = np.zeros(len(places), dtype=np.int64)
    if not len(pairs):
        return counts
    order = np.argsort(pairs.ravel(), kind="stable")
    owner = pairs.ravel()[order]
    other = pairs[:, ::-1].ravel()[order]
    limits = np.searchsorted(owner, np.arange(len(places) + 1))
    for place in range(len(places)):
        those = other[limits[place] : limits[place + 1]]
        if len(those):
            way = places[those] - places[place]
            way /= np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 1e-300)
            cosine = np.abs(way @ way.T)
            counts[place] = (~np.triu(cosine > 1 - 1e-9, 1).any(axis=0)).sum()
    return counts


def _usual_way(records: Recovered, pairs: IntArray, points: Points) -> FloatArray:
    """Return how far the records at the two ends of a line are apart in each column."""
    if len(pairs):
        return np.abs(records.places[pairs[:, 0]] - records.places[pairs[:, 1]]).mean(axis=0)
    return np.asarray(points.values.std(axis=0))


def _off_grid(points: Points, records: Recovered, grids: Grids) -> BoolArray:
    """Return which places are off the grid of a column."""
    origin, step = grids.origin[points.columns], grids.step[points.columns]
    values = points.low + records.places * points.span
    with np.errstate(invalid="ignore"):
        off = np.abs(values - origin - np.rint((values - origin) / step) * step)
        slack = records.radius[:, None] * points.span + grids.noise[points.columns]
        clear = step > _CLEAR * 2 * points.noise * points.span
        return np.asarray((clear & (off > np.maximum(_NEAR * step, slack))).any(axis=1))


def _carried_over(
    points: Points,
    records: Recovered,
    pairs: IntArray,
    rows: IntArray,
    grids: Grids,
    wrong: FloatArray,
    past: float,
) -> FloatArray:
    """Return the probabilities with those of places at the other end of a row from a record that is surer.

    They are added up along the way, never multiplied: what is known of a place is known from its neighbours.
    """
    on = np.isfinite(grids.step[points.columns])
    if on.sum() < 2:
        return wrong
    columns = points.columns[on]
    units = np.rint(
        (points.low[on] + records.places[:, on] * points.span[on] - grids.origin[columns])
        / grids.step[columns]
    )
    way = units[pairs[:, 1]] - units[pairs[:, 0]]
    moving = (way != 0).sum(axis=1) >= 2
    pairs, rows, way = pairs[moving], rows[moving], way[moving]
    if not len(pairs):
        return wrong
    start = units[pairs[:, 0]]
    # A segment whose steps have a common divisor has other places of the grid on it.
    divisor = np.gcd.reduce(way.astype(np.int64), axis=1)
    lowest = (grids.lowest[columns] - grids.origin[columns]) / grids.step[columns]
    highest = (grids.highest[columns] - grids.origin[columns]) / grids.step[columns]
    reach = np.maximum(np.abs(way).mean(axis=0), 1.0)
    error = points.noise * points.span[on] / grids.step[columns]
    tolerance = np.broadcast_to(error, way.shape)
    first, second, _, _ = ghost_weights(
        start,
        way,
        reach,
        grids.popular[columns],
        grids.modulus[columns],
        lowest - 1e-6,
        highest + 1e-6,
        tolerance,
    )
    again = (1.0 / MULTIPLES) ** (rows - 1.0)[:, None]
    # Of segments of which only one half has rows, half of the way looks like all of it.
    again[:, 0] += past * (1.0 - again[:, 0])
    # A ray meets the grid at a wrong place by accident: one column fixes how far it goes, the others must agree.
    fits = np.where(way != 0, np.log(np.minimum(1.0, 8 * error + 1e-300)), 0.0)
    widest = np.abs(way).argmax(axis=1)
    fits[np.arange(len(way)), widest] = np.log(2 * np.abs(way).max(axis=1))
    accident = np.exp(np.minimum(fits.sum(axis=1) + np.log(len(points.values) * _STARTS), 0.0))
    ghost = np.column_stack([(first * again).sum(axis=1), (second * again).sum(axis=1)])
    added = np.where((divisor > 1)[:, None], 0.5, 0.0) + ghost / (1 + ghost) + accident[:, None] + past
    for _ in range(len(wrong)):
        before = wrong.copy()
        for side in (0, 1):
            np.minimum.at(wrong, pairs[:, side], before[pairs[:, 1 - side]] + added[:, side])
        if (before - wrong <= 1e-3 * wrong).all():
            break
    return wrong
