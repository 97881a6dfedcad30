"""Records from single interpolated rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from oversafe.attack.geometry.lattice import _kernels
from oversafe.attack.geometry.lattice.completion import complete
from oversafe.attack.geometry.lattice.grids import Grids, grid_of, grids_of_known, grids_of_repeats, no_grids
from oversafe.attack.geometry.lattice.joint import EXTRAPOLATES, Points, join
from oversafe.attack.geometry.lattice.precision import Precision
from oversafe.attack.geometry.lattice.search import Lines, cells_of, lines_of_rows
from oversafe.attack.geometry.lattice.tuning import halved, late_or_early, reach_of, tuned

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# A column tells points apart if nearly every line says where they are in it.
_KEY = 0.8
# Lines whose ends are likelier wrong than this complete no records.
_SOUND = 0.05
# A value that as many rows contradict as confirm, times this, is that of no single record.
_CONTRADICTED = 4
# How often the grids are mended by what was found.
_ROUNDS = 3
# Completed values that show a grid, and how much worse they are known than released ones.
_ENOUGH, _AMPLIFIED = 10, 20.0


@dataclass(frozen=True)
class DecodedRows:
    """What single rows give away.

    Parameters
    ----------
    records : array (r, m)
        Recovered records, NaN where a value is not known.
    p_wrong : array (r,)
        The probability that no real record has these values.
    p_value : array (r, m)
        The same for each value.
    n_lines : array (r,)
        On how many distinct lines the record lies.
    row, ends, share : array
        For each decoded row its number, the records next to it, and where it lies between them.
    grids : Grids
        The grids that were used.
    past : float
        How likely a row with one known end lies past it, and not on the way to the other.
    """

    records: FloatArray
    p_wrong: FloatArray
    p_value: FloatArray
    n_lines: IntArray
    row: IntArray
    ends: IntArray
    share: FloatArray
    grids: Grids
    past: float = EXTRAPOLATES


def decode_rows(
    released: FloatArray,
    known: FloatArray | None = None,
    *,
    grids: Grids | None = None,
    precision: int | Literal["float32"] | None = None,
    written: Precision | None = None,
    records: FloatArray | None = None,
) -> DecodedRows:
    """Return the real records that interpolated rows give away one by one.

    Parameters
    ----------
    released : array (n, m)
        Interpolated rows: a + u (b - a) with one u per row.
    known : array, optional
        Rows known to be real, such as those of other classes; they show the grids.
    grids : Grids, optional
        The grids, if they are known.
    precision : int or "float32", optional
        The digits of the file; read from the numbers by default.
    written : Precision, optional
        The same, if it was read before.
    records : array, optional
        Records that are known by other means: lines that end in one are surer.
    """
    released = np.asarray(released, dtype=float)
    if not len(released):
        return _nothing(released, grids or no_grids(released.shape[1]))
    written = Precision.of(released, precision) if written is None else written
    if grids is None:
        if known is not None and len(known):
            grids = grids_of_known(np.asarray(known, dtype=float), released, written)
        else:
            grids = grids_of_repeats(released, written)
    grids = tuned(released, grids, written)
    written = late_or_early(released, grids, written)
    result = _decoded(released, grids, written, records)
    # What lines complete may lie on a grid too, and lines that nothing meets may have too coarse ones.
    for _ in range(_ROUNDS):
        shown = _completed_grids(result, grids, written) or _finer_grids(result, grids)
        if shown is None:
            break
        grids = shown
        result = _decoded(released, grids, written, records)
    return result


def _finer_grids(result: DecodedRows, grids: Grids) -> Grids | None:
    segments, rows = np.unique(np.sort(result.ends, axis=1), axis=0, return_counts=True)
    # Accidents do not repeat.
    segments = segments[rows > 1]
    first, second = segments.T
    ways = np.nan_to_num(np.rint((result.records[second] - result.records[first]) / grids.step))
    return halved(ways, np.asarray((result.n_lines[segments] > 1).all(axis=1)), grids)


def _completed_grids(result: DecodedRows, grids: Grids, written: Precision) -> Grids | None:
    """Return the grids with those of columns that had none, where completed values lie on one; None if none do."""
    found = None
    for j in np.flatnonzero(np.isnan(grids.step)).tolist():
        told = ~np.isnan(result.records[:, j]) & (result.p_wrong <= _SOUND)
        if told.sum() < _ENOUGH or not np.ptp(result.records[told, j]):
            continue
        error = _AMPLIFIED * written.errors(result.records)[told, j]
        origin, step, _ = grid_of(result.records[told, j], error)
        if np.isfinite(step):
            found = (found or grids).changed(j, origin, step)
    return found


def _decoded(released: FloatArray, grids: Grids, written: Precision, known: FloatArray | None) -> DecodedRows:
    cells = cells_of(released, grids, written, reach_of(released, grids, written))
    lines = lines_of_rows(cells, grids)
    key = _key(lines, grids)
    whole = (lines.states[:, key] == _kernels.FIXED).all(axis=1) & (lines.ways[:, key] != 0).any(axis=1)
    lines = lines.take(np.asarray(whole))
    if not len(lines):
        return _nothing(released, grids)
    points = join(lines, grids, cells, key, known)
    shape = len(points.units), released.shape[1]
    units, records, p_value = np.full(shape, np.nan), np.full(shape, np.nan), np.ones(shape)
    units[:, key] = points.units
    records[:, key] = grids.values(units)[:, key]
    p_value[:, key] = points.p_wrong[:, None]
    # What never varies is the same in all records.
    still = (np.ptp(released, axis=0) == 0) & (len(released) > 1)
    records[:, still] = released[0, still]
    p_value[:, still] = points.p_wrong[:, None]
    _complete(
        records, p_value, np.flatnonzero(~key & ~still).tolist(), released, lines, points, grids, written
    )
    stated = np.where(np.isnan(records), 0.0, p_value).max(axis=1)
    return DecodedRows(
        records,
        stated,
        p_value,
        points.n_lines,
        lines.row,
        points.ends,
        lines.share,
        grids,
        points.past,
    )


def _complete(
    records: FloatArray,
    p_value: FloatArray,
    columns: list[int],
    released: FloatArray,
    lines: Lines,
    points: Points,
    grids: Grids,
    written: Precision,
) -> None:
    """Fill in the columns that the points do not have, as far as the rows of sound lines tell them."""
    sound = (points.p_wrong[points.ends] <= _SOUND).all(axis=1)
    lines, ends, n = lines.take(np.asarray(sound)), points.ends[sound], len(points.units)
    values, error = released[lines.row], written.errors(released[lines.row]) + grids.noise
    given = {j: _given(lines, ends, j, n, grids) for j in columns}
    # Records that are equal in the columns so far are one point: its rows contradict each other in the others.
    mixed = np.zeros(n, dtype=bool)
    for _, _, differ in given.values():
        mixed |= differ
    confirmed = np.zeros_like(records)
    for _ in range(2):
        pure = ~mixed[ends].any(axis=1)
        for j, (at, doubt, _) in given.items():
            origin = grids.origin[j] if np.isfinite(grids.step[j]) else 0.0
            found, confirmed[:, j], contradict = complete(
                values[pure, j] - origin,
                error[pure, j],
                lines.share[pure],
                lines.slack[pure],
                ends[pure],
                (at, doubt),
                grids.step[j],
                grids.noise[j],
            )
            records[:, j] = _written(found, grids, j)
            mixed |= _CONTRADICTED * contradict > confirmed[:, j]
    records[np.ix_(mixed, np.array(columns, dtype=int))] = np.nan
    # Of two ends the surer one carries a value over; a mixture may go unseen where few rows confirm a value.
    partner = np.ones(n)
    np.minimum.at(partner, ends, points.p_wrong[ends[:, ::-1]])
    often = (mixed.sum() + 0.5) / (n + 1)
    unseen = often * 10.0 ** -np.maximum(confirmed[:, columns] - 2, 0)
    wrong = np.minimum(1.0, (points.p_wrong + partner)[:, None] + unseen)
    p_value[:, columns] = np.where(np.isnan(records[:, columns]), 1.0, wrong)


def _nothing(released: FloatArray, grids: Grids) -> DecodedRows:
    none, rows = np.zeros((0, released.shape[1])), np.zeros(0, dtype=np.int64)
    return DecodedRows(
        none, np.zeros(0), none, rows, rows, np.zeros((0, 2), dtype=np.int64), np.zeros(0), grids
    )


def _given(
    lines: Lines, ends: IntArray, j: int, n_points: int, grids: Grids
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return what the rows by themselves say about one column at their ends, how surely, and where they differ."""
    fixed = lines.states[:, j] == _kernels.FIXED
    low, high = np.full(n_points, np.inf), np.full(n_points, -np.inf)
    for side in (0, 1):
        units = lines.starts[fixed, j] + side * lines.ways[fixed, j]
        np.minimum.at(low, ends[fixed, side], units)
        np.maximum.at(high, ends[fixed, side], units)
    agree = low == high
    return (
        np.where(agree, low * grids.step[j], np.nan),
        np.where(agree, grids.noise[j], np.inf),
        low < high,
    )


def _written(found: FloatArray, grids: Grids, j: int) -> FloatArray:
    """Return values of one column as its grid has them."""
    if not np.isfinite(grids.step[j]):
        return found
    units = np.full((len(found), len(grids.step)), np.nan)
    units[:, j] = found / grids.step[j]
    whole = np.rint(units[:, j])
    on = np.abs(units[:, j] - whole) < 1e-6
    units[on, j] = whole[on]
    return grids.values(units)[:, j]


def _key(lines: Lines, grids: Grids) -> BoolArray:
    fixed = (lines.states == _kernels.FIXED).mean(axis=0) if len(lines) else np.zeros(len(grids.step))
    return np.asarray((fixed >= _KEY) & np.isfinite(grids.step))
