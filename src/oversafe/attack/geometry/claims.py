"""What all stages say about the records, as one list: each with the probability that it is wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from oversafe.attack.geometry.lattice.grids import Grids
from oversafe.attack.geometry.lattice.stage import SingleRows
from oversafe.attack.geometry.matching import EQUAL
from oversafe.attack.geometry.recovery import Recovered, Seeds
from oversafe.attack.geometry.shapes.points import BoolArray, FloatArray, IntArray, Points
from oversafe.attack.geometry.values import is_constant

# Up to this probability of being wrong a record is claimed, and below this one it is called certain.
CLAIMED, CERTAIN = 0.05, 1e-6
# A value is taken to its grid if so many times its error is so small a share of a step.
_SIGMAS, _CLEAR = 4.0, 0.2
# A value that may be off by more than this share of its column's range is an estimate.
_TELLING = 0.1
# So many times its error a fitted value may be off: of 4,000 places of inexact lines 4 were off by up to 1.9 times it.
_WIDER = 2.0
# A record is one in more than this share of the columns that vary; of less a value or two are known.
_MOST = 0.5


@dataclass(frozen=True)
class Claims:
    """The recovered records, with the probability that each is wrong.

    Parameters
    ----------
    frame, errors, estimated, p_values : DataFrame
        By record and column of the table the values, how far each may be off, which are estimates, and the
        probability that each is wrong.
    p_wrong : array (r,)
        The probability that no real record has the values that are not estimates.
    support : array (r,)
        How many lines end in each, or from how many known records a ray leads to it.
    rows : list of array
        The points that gave each away.
    found_by : list of str
        The stage that found each first.
    segments : array (n_points, 2)
        The records between which each point lies, -1 for none.
    released : array (r,)
        The row of the release that each is, or -1.
    """

    frame: pd.DataFrame
    errors: pd.DataFrame
    estimated: pd.DataFrame
    p_values: pd.DataFrame
    p_wrong: FloatArray
    support: IntArray
    rows: list[IntArray]
    found_by: list[str]
    segments: IntArray
    released: IntArray

    def take(self, chosen: BoolArray) -> Claims:
        """Return some of the records."""
        numbers = np.flatnonzero(chosen)
        # One more for "no record".
        new = np.full(len(chosen) + 1, -1, dtype=np.int64)
        new[numbers] = np.arange(len(numbers))
        segments = new[self.segments]
        segments[(segments < 0).any(axis=1)] = -1
        frame, errors, estimated, p_values = (
            part.iloc[numbers].reset_index(drop=True)
            for part in (self.frame, self.errors, self.estimated, self.p_values)
        )
        return Claims(
            frame,
            errors,
            estimated,
            p_values,
            self.p_wrong[numbers],
            self.support[numbers],
            [self.rows[i] for i in numbers],
            [self.found_by[i] for i in numbers],
            segments,
            self.released[numbers],
        )

    def shares(self, points: Points) -> FloatArray:
        """Return how far along its segment each point lies; nan for those on none."""
        varies = points.columns.tolist()
        ends = self.frame.iloc[:, varies].to_numpy(dtype=float)
        first = np.unique(points.row, return_index=True)[1]
        rows = points.frame.iloc[first, varies].to_numpy(dtype=float)
        on = np.flatnonzero(self.segments[:, 0] >= 0)
        start, end = (np.nan_to_num(ends[self.segments[on, side]]) for side in (0, 1))
        # Values that are known of one end only say nothing about the way.
        known = ~np.isnan(ends[self.segments[on]]).any(axis=1)
        way = np.where(known, (end - start) / points.span, 0.0)
        gone = np.where(known, (rows[on] - start) / points.span, 0.0)
        result = np.full(len(points.values), np.nan)
        with np.errstate(invalid="ignore", divide="ignore"):
            result[on] = (gone * way).sum(axis=1) / (way * way).sum(axis=1)
        return result

    def none_is_real(self) -> float:
        """Return a bound on the probability that none of the records is real.

        Records that share rows, or are the ends of the same row, are not independent: of each such group the
        surest counts.
        """
        n = len(self.p_wrong)
        if not n:
            return 1.0
        ends = self.segments[self.segments[:, 0] >= 0]
        points = np.concatenate([np.empty(0, dtype=np.int64), *self.rows])
        owner = np.repeat(np.arange(n), [len(those) for those in self.rows])
        size = n + len(self.segments)
        first, second = np.concatenate([ends[:, 0], owner]), np.concatenate([ends[:, 1], n + points])
        graph = coo_array((np.ones(len(first)), (first, second)), (size, size))
        group = connected_components(graph, directed=False)[1][:n]
        surest = np.ones(size)
        np.minimum.at(surest, group, self.p_wrong)
        return float(np.exp(np.log(surest).sum()))


def seeds_of(found: SingleRows, points: Points) -> Seeds | None:
    """Return the records of single rows as places among the points; None where the points are not as exact."""
    if not points.exact or not len(points.columns):
        return None
    complete = ~np.isnan(found.records[:, points.columns]).any(axis=1)
    chosen = np.flatnonzero(complete & (found.p_wrong <= CLAIMED))
    places = (found.records[np.ix_(chosen, points.columns)] - points.low) / points.span
    return Seeds(
        places,
        np.full(len(chosen), points.noise),
        found.n_lines[chosen],
        _rows_of(found, points.row, chosen),
    )


def _rows_of(found: SingleRows, point_of_row: IntArray, chosen: IntArray) -> list[IntArray]:
    """Return the points that gave each record away."""
    ends = found.ends.ravel()
    order = np.argsort(ends, kind="stable")
    limits = np.searchsorted(ends[order], np.arange(len(found.records) + 1))
    points = point_of_row[np.repeat(found.row, 2)][order]
    return [np.unique(points[limits[i] : limits[i + 1]]) for i in chosen.tolist()]


def of_lines(
    frames: tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame],
    records: Recovered,
    p_wrong: FloatArray,
    released: IntArray,
    points: Points,
    grids: Grids,
) -> Claims:
    """Return the claims of lines, rays and grids, their values as the grids of the columns have them.

    Parameters
    ----------
    frames : tuple of DataFrame
        The records in the table's columns, how far each value may be off, and which are estimates.
    records : Recovered
        What was found.
    p_wrong : array
        The probability that each is wrong.
    released : array of int
        The row of the release that each is, or -1.
    points : Points
        The table.
    grids : Grids
        The grids of its columns, as far as they are known.
    """
    frame, errors, estimated = frames
    for j in points.columns.tolist() if not points.exact else []:
        errors.isetitem(j, _WIDER * errors.iloc[:, j])
    _snap(frame, errors, estimated, released, points, grids)
    for j, span in _ranges(points).items():
        estimated.isetitem(
            j, estimated.iloc[:, j].to_numpy(dtype=bool) | (errors.iloc[:, j] > _TELLING * span).to_numpy()
        )
    told = frame.notna().to_numpy() & ~estimated.to_numpy(dtype=bool)
    p_values = pd.DataFrame(np.where(told, p_wrong[:, None], 1.0), columns=frame.columns)
    return Claims(
        frame,
        errors,
        estimated,
        p_values,
        p_wrong,
        records.support,
        records.rows,
        records.found_by,
        records.segments,
        released,
    )


def _ranges(points: Points) -> dict[int, float]:
    """Return the range of each column of numbers that varies."""
    ranges = {j: float(np.ptp(points.frame.iloc[:, j].to_numpy(dtype=float))) for j in points.numeric}
    return {j: span for j, span in ranges.items() if span > 0}


def _snap(
    frame: pd.DataFrame,
    errors: pd.DataFrame,
    estimated: pd.DataFrame,
    released: IntArray,
    points: Points,
    grids: Grids,
) -> None:
    """Put the values of hidden records on the grids of their columns, where these are clear."""
    values = np.full((len(frame), frame.shape[1]), np.nan)
    columns = points.columns
    values[:, columns] = frame.iloc[:, columns].to_numpy(dtype=float)
    at = grids.values(np.rint(grids.units(values)))
    wide = _SIGMAS * errors.to_numpy(dtype=float)
    with np.errstate(invalid="ignore"):
        near = np.abs(values - at) <= wide + grids.noise
        clear = wide < _CLEAR * grids.step
    here = near & clear & (released < 0)[:, None] & ~estimated.to_numpy(dtype=bool)
    for j in np.flatnonzero(here.any(axis=0)).tolist():
        frame.isetitem(j, np.where(here[:, j], at[:, j], values[:, j]))
        errors.isetitem(j, np.where(here[:, j], grids.noise[j], errors.iloc[:, j]))


def with_single_rows(claims: Claims, found: SingleRows, points: Points, ranges: FloatArray) -> Claims:
    """Return the claims of lines with those of single rows: equal ones are one, and as sure as the surer of the two.

    Both are read from the same rows, so that their probabilities are not multiplied.
    """
    point_of_row = points.row
    varies = ranges > 0
    stated = ~np.isnan(found.records) & varies
    chosen = np.flatnonzero((found.p_wrong <= CLAIMED) & (stated.sum(axis=1) > _MOST * varies.sum()))
    if not len(chosen):
        return claims
    # Where rows tell more, records of lines in a few of the columns are no records of their own.
    told = ~claims.estimated.to_numpy(dtype=bool) & claims.frame.notna().to_numpy() & varies
    claims = claims.take(told.sum(axis=1) > _MOST * varies.sum())
    records, p_value = found.records[chosen], found.p_value[chosen]
    same = _same_records(claims, records, ranges)
    number = np.full(len(found.records), -1, dtype=np.int64)
    n = len(claims.p_wrong)
    new = np.flatnonzero(same < 0)
    number[chosen] = np.where(same >= 0, same, 0)
    number[chosen[new]] = n + np.arange(len(new))
    merged = _appended(claims, records[new], p_value[new], found, chosen[new], points)
    _merge(merged, same[same >= 0], found, chosen[same >= 0])
    segments = merged.segments.copy()
    point = point_of_row[found.row]
    ends = np.sort(number[found.ends], axis=1)
    free = (segments[point, 0] < 0) & (ends[:, 0] >= 0)
    segments[point[free]] = ends[free]
    return replace(merged, segments=segments)


def _same_records(claims: Claims, records: FloatArray, ranges: FloatArray) -> IntArray:
    """Return the claim that each record equals in all columns that both have, or -1."""
    same = np.full(len(records), -1, dtype=np.int64)
    if not len(claims.p_wrong):
        return same
    varies = np.flatnonzero(ranges > 0)
    there = claims.frame.iloc[:, varies].to_numpy(dtype=float)
    errors = claims.errors.iloc[:, varies].to_numpy(dtype=float)
    told = ~claims.estimated.iloc[:, varies].to_numpy(dtype=bool) & ~np.isnan(there)
    here = records[:, varies]
    common = told.all(axis=0)
    stated = ~np.isnan(here)
    for pattern in np.unique(stated, axis=0):
        use = np.flatnonzero(pattern & common)
        those = np.flatnonzero((stated == pattern).all(axis=1))
        if len(use) <= _MOST * pattern.sum():
            continue
        allowed = np.maximum(errors[:, use], EQUAL * ranges[varies[use]])
        unit = np.maximum(np.median(allowed, axis=0), 1e-300)
        reach = float((allowed / unit).max())
        tree = KDTree(there[:, use] / unit)
        for i, close in zip(
            those, tree.query_ball_point(here[np.ix_(those, use)] / unit, reach, p=np.inf), strict=True
        ):
            fits = [j for j in close if (np.abs(there[j, use] - here[i, use]) <= allowed[j]).all()]
            if fits:
                same[i] = min(fits, key=lambda j: claims.p_wrong[j])
    # One claim is one record: the others are other ones.
    _, first = np.unique(same, return_index=True)
    once = np.zeros(len(same), dtype=bool)
    once[first] = True
    return np.where(once, same, -1)


def _appended(
    claims: Claims,
    records: FloatArray,
    p_value: FloatArray,
    found: SingleRows,
    numbers: IntArray,
    points: Points,
) -> Claims:
    """Return the claims with more records, in the columns of numbers; the others are what all claims share."""
    columns: dict[int, Any] = {}
    for j in range(claims.frame.shape[1]):
        column = claims.frame.iloc[:, j]
        values = records[:, j]
        if pd.api.types.is_numeric_dtype(column.dtype):
            columns[j] = np.concatenate([column.to_numpy(dtype=float, na_value=np.nan), values])
        else:
            given = points.frame.iloc[:, j]
            only = given.iloc[0] if is_constant(given) else None
            columns[j] = pd.concat(
                [column, pd.Series([only] * len(values), dtype=column.dtype)], ignore_index=True
            )
    frame = pd.DataFrame(columns).set_axis(claims.frame.columns, axis=1)
    missing = np.isnan(records)

    def longer(part: pd.DataFrame, values: Any) -> pd.DataFrame:
        return pd.DataFrame(np.vstack([part.to_numpy(), values]), columns=part.columns)

    return Claims(
        frame,
        longer(claims.errors, found.error[numbers]),
        longer(claims.estimated, missing & False),
        longer(claims.p_values, p_value),
        np.concatenate([claims.p_wrong, found.p_wrong[numbers]]),
        np.concatenate([claims.support, found.n_lines[numbers]]),
        claims.rows + _rows_of(found, points.row, numbers),
        claims.found_by + ["single rows"] * len(numbers),
        claims.segments,
        np.concatenate([claims.released, np.full(len(numbers), -1, dtype=np.int64)]),
    )


def _merge(claims: Claims, which: IntArray, found: SingleRows, numbers: IntArray) -> None:
    """Put into some of the claims what single rows say about the same records."""
    hidden = claims.released[which] < 0
    for j in range(claims.frame.shape[1]):
        value, p = found.records[numbers, j], found.p_value[numbers, j]
        if np.isnan(value).all():
            continue
        doubtful = claims.estimated.iloc[:, j].to_numpy(dtype=bool).copy()
        before = claims.p_values.iloc[:, j].to_numpy(dtype=float).copy()
        surer = ~np.isnan(value) & ((p <= before[which]) | doubtful[which])
        put = surer & (hidden | doubtful[which])
        for part, own in ((claims.frame, value), (claims.errors, found.error[numbers, j])):
            column = part.iloc[:, j].to_numpy(dtype=float).copy()
            column[which[put]] = own[put]
            part.isetitem(j, column)
        doubtful[which[surer]] = False
        before[which[surer]] = np.minimum(p, before[which])[surer]
        claims.estimated.isetitem(j, doubtful)
        claims.p_values.isetitem(j, before)
    claims.p_wrong[which] = np.minimum(claims.p_wrong[which], found.p_wrong[numbers])
