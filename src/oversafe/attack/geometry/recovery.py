"""The records behind a table: first where lines meet, then from what is known to what is not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from oversafe.attack.geometry.shapes.expansion import expand
from oversafe.attack.geometry.shapes.line_intersections import Meetings, find_meetings
from oversafe.attack.geometry.shapes.lines import Lines
from oversafe.attack.geometry.shapes.points import FloatArray, IntArray, Points
from oversafe.attack.geometry.shapes.rays import meet_rays
from oversafe.attack.geometry.shapes.segments import (
    BEYOND,
    WIDTH_OF_SPREAD,
    Refined,
    refine,
    segments_of,
    shares_of,
    with_new_records,
)

# Records that agree to this many times their error are the same record.
_SAME = 3.0
# The share of the rows beyond records from which on a sampler is taken to extrapolate.
_EXTRAPOLATED = 0.05
# In how many turns, at least, records, segments and their errors are brought into agreement.
_TURNS = 3


@dataclass(frozen=True)
class Recovered:
    """The records recovered from a table.

    Parameters
    ----------
    places : array of shape (n_records, d)
        The records, in the unit cube.
    radius : array of float
        Their errors.
    support : array of int
        How many lines end in each, or from how many known records a ray leads to it.
    rows : list of array of int
        The points that gave each away.
    found_by : list of str
        For each: "lines" that meet, "single rows", "rays" that meet, or a ray's return to the "grid".
    segments : array of shape (n_points, 2)
        The two records between which each point lies, -1 for none.
    refined : Refined
        What all points together say.
    beyond : bool
        Whether rows lie beyond records too.
    """

    places: FloatArray
    radius: FloatArray
    support: IntArray
    rows: list[IntArray]
    found_by: list[str]
    segments: IntArray
    refined: Refined
    beyond: bool = False


@dataclass(frozen=True)
class Seeds:
    """Records that are known before lines are followed.

    Parameters
    ----------
    places, radius : array
        The records, in the unit cube, and their errors.
    n_lines : array of int
        On how many lines each lies.
    rows : list of array of int
        The points that gave each away.
    """

    places: FloatArray
    radius: FloatArray
    n_lines: IntArray
    rows: list[IntArray]


def find_records(
    points: Points,
    lines: Lines,
    meetings: Meetings | None = None,
    seeds: Seeds | None = None,
    *,
    min_lines: int | None,
    go_on: bool,
    n_jobs: int | None,
) -> Recovered:
    """Find the records in which the lines of a table end.

    Parameters
    ----------
    points : Points
        The table.
    lines : Lines
        Its lines.
    meetings : Meetings, optional
        Where they meet, if that is known.
    seeds : Seeds, optional
        Records that are known by other means.
    min_lines : int, optional
        How many lines must end in a record, see
        :func:`~oversafe.attack.geometry.shapes.line_intersections.find_meetings`.
    go_on : bool
        Whether to go on from the records where lines meet.
    n_jobs : int, optional
        Number of threads, as in joblib.
    """
    search = _Search(points, lines, min_lines, n_jobs)
    meetings = find_meetings(lines, points, min_lines) if meetings is None else meetings
    if search.begin(meetings, seeds) and points.exact and go_on:
        search = _Search(points, lines, min_lines, n_jobs)
        search.begin(find_meetings(lines, points, min_lines, extrapolated=True), seeds)
    while go_on and len(search.places):
        # Rays that meet are surer than rays that return to the grid.
        while search.by_rays():
            pass
        if not search.by_grid():
            break
    records = search.records()
    return records if points.exact else _settle(points, records, n_jobs)


class _Search:
    """What is known so far, and the ways to go on from it."""

    def __init__(self, points: Points, lines: Lines, min_lines: int | None, n_jobs: int | None) -> None:
        self._points, self._lines, self._min_lines, self._n_jobs = points, lines, min_lines, n_jobs
        self.places, self.radius = np.empty((0, points.values.shape[1])), np.empty(0)
        self._support: list[int] = []
        self._rows: list[IntArray] = []
        self._found_by: list[str] = []
        self._segments = np.full((len(points.values), 2), -1, dtype=np.int64)
        self._beyond = 0.0

    def add(
        self, places: FloatArray, radius: FloatArray, support: list[int], rows: list[IntArray], found_by: str
    ) -> None:
        """Add records."""
        self.places, self.radius = np.vstack([self.places, places]), np.append(self.radius, radius)
        self._support += support
        self._rows += rows
        self._found_by += [found_by] * len(places)

    def begin(self, found: Meetings, seeds: Seeds | None) -> bool:
        """Add the first records and find their segments; return whether rows lie beyond records too."""
        values, ends = self._points.values, found.lines
        rows = [np.unique(np.concatenate([self._lines.members(line) for line in those])) for those in ends]
        self.add(found.places, found.radius, [len(those) for those in ends], rows, "lines")
        segments = _between_ends(self._lines, ends, len(values))
        if seeds is not None:
            new = _unknown(seeds.places, seeds.radius, self.places, self.radius)
            those = [seeds.rows[i] for i in new]
            self.add(seeds.places[new], seeds.radius[new], seeds.n_lines[new].tolist(), those, "single rows")
        rest = np.flatnonzero(segments[:, 0] < 0)
        segments[rest] = segments_of(
            values[rest], self.places, self.radius, self._points.noise, beyond=BEYOND, n_jobs=self._n_jobs
        )
        share = shares_of(values, segments, self.places)
        outside = (share < 0) | (share > 1)
        if outside.sum() > _EXTRAPOLATED * (segments[:, 0] >= 0).sum():
            self._beyond = BEYOND
        else:
            segments[outside] = -1
        self._segments = segments
        return self._beyond > 0

    def by_rays(self) -> int:
        """Add the records where rays from known ones meet; return how many."""
        open_points = np.flatnonzero(self._segments[:, 0] < 0)
        if len(open_points) < 3:
            return 0
        met, rows = meet_rays(
            self._points,
            open_points,
            self._lines,
            self.places,
            self.radius,
            self._n_jobs,
            min_lines=self._min_lines,
        )
        new = _unknown(met.places, met.radius, self.places, self.radius)
        self.add(
            met.places[new], met.radius[new], [len(met.lines[i]) for i in new], [rows[i] for i in new], "rays"
        )
        self._segments = with_new_records(
            self._points.values,
            self._segments,
            self.places,
            self.radius,
            self._points.noise,
            n_new=len(new),
            beyond=self._beyond,
            n_jobs=self._n_jobs,
        )
        return len(new)

    def by_grid(self) -> int:
        """Add the records where rays return to the grid; return how many."""
        known = len(self.places)
        grown = expand(
            self._points.values,
            self.places,
            self.radius,
            self._points.noise,
            segments=self._segments,
            beyond=self._beyond,
        )
        support = [len(rays) for rays in grown.rays]
        self.add(grown.places[known:], grown.radius[known:], support, grown.rows, "grid")
        self._segments = grown.segments
        return len(grown.rows)

    def records(self) -> Recovered:
        """Return what was found."""
        refined = refine(self._points.values, self._segments, self.places, self.radius, exact=True)
        support = np.array(self._support, dtype=np.int64)
        return Recovered(
            self.places,
            self.radius,
            support,
            self._rows,
            self._found_by,
            self._segments,
            refined,
            self._beyond > 0,
        )


def _between_ends(lines: Lines, ends: list[IntArray], n: int) -> IntArray:
    """Return the segments of the points on lines that end in two records."""
    owners = np.repeat(np.arange(len(ends)), [len(those) for those in ends])
    line = np.concatenate([np.empty(0, dtype=np.int64), *ends])
    order = np.argsort(line, kind="stable")
    line, owners = line[order], owners[order]
    twice = np.flatnonzero(np.bincount(line, minlength=len(lines)) == 2)
    first = np.searchsorted(line, twice)
    pair = np.full((len(lines), 2), -1, dtype=np.int64)
    pair[twice] = np.sort(np.column_stack((owners[first], owners[first + 1])), axis=1)
    segments = np.full((n, 2), -1, dtype=np.int64)
    segments[lines.indices] = pair[lines.line_of_member]
    # A released record is on many lines.
    shared = np.bincount(lines.indices, minlength=n) > 1
    segments[shared] = -1
    return segments


def _settle(points: Points, records: Recovered, n_jobs: int | None) -> Recovered:
    """Bring records and the points between them into agreement, and keep the records that have any."""
    turn, settled = 0, False
    while not settled:
        turn += 1
        # What is left of a record's error after all rows have been fitted is below that of a row.
        error = np.minimum(records.radius, points.noise / 2)
        segments = segments_of(
            points.values, records.places, error, points.noise, width=WIDTH_OF_SPREAD, n_jobs=n_jobs
        )
        refined = refine(points.values, segments, records.places, records.radius, exact=False)
        keep = _supported(segments, len(records.places))
        keep[keep] = _first_of_same(refined.places[keep], refined.radius[keep])
        # A record that the last turn left without its rows would stay as a place that nothing speaks for.
        settled = turn >= _TURNS and bool(keep.all())
        records = Recovered(
            refined.places[keep],
            refined.radius[keep],
            _partners(segments, len(keep))[keep],
            [records.rows[i] for i in np.flatnonzero(keep)],
            [records.found_by[i] for i in np.flatnonzero(keep)],
            segments,
            refined,
        )
    return records


def _supported(segments: IntArray, n: int) -> np.ndarray:
    """Return which records have rows on the way to two others."""
    return _partners(segments, n) >= 2


def _partners(segments: IntArray, n: int) -> IntArray:
    """Return to how many others each record has rows on the way."""
    pairs = np.unique(segments[segments[:, 0] >= 0], axis=0)
    return np.bincount(pairs.ravel(), minlength=n)


def _first_of_same(places: FloatArray, radius: FloatArray) -> np.ndarray:
    """Return which places are not within the error of one before them."""
    keep = np.ones(len(places), dtype=bool)
    for number in range(1, len(places)):
        apart = np.linalg.norm(places[:number] - places[number], axis=1)
        keep[number] = not (keep[:number] & (apart <= _SAME * (radius[:number] + radius[number]))).any()
    return keep


def _unknown(new: FloatArray, error: FloatArray, places: FloatArray, radius: FloatArray) -> IntArray:
    """Return which new places are none of the known ones."""
    if not len(places) or not len(new):
        return np.arange(len(new))
    reach = 8 * (radius.max() + error)
    kept = []
    for number, close in enumerate(KDTree(places).query_ball_point(new, reach)):
        apart = np.linalg.norm(places[close] - new[number], axis=1)
        if (apart > 8 * (radius[close] + error[number])).all():
            kept.append(number)
    return np.array(kept, dtype=np.int64)
