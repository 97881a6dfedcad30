"""The lattice attack on a table of any kind and size: what single rows give away, in the table's columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oversafe.attack.geometry.lattice.completion import TOLD
from oversafe.attack.geometry.lattice.decode import DecodedRows, decode_rows
from oversafe.attack.geometry.lattice.grids import Grids, grids_of_known, grids_of_repeats, no_grids
from oversafe.attack.geometry.lattice.joint import EXTRAPOLATES
from oversafe.attack.geometry.lattice.precision import Precision
from oversafe.attack.geometry.lattice.search import cells_of

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Rows that are decoded first; they are doubled while so large a share of the records is new.
_FIRST, _NEW = 5_000, 0.01
# How much work decoding may be, in rows times the fourth power of the columns that relations use.
_WORK, _COLUMNS = 2e8, 12
# So many interpolated rows show that a column was rounded.
_SHOWN = 20
# Known rows that show the grids, and how many records of lines do.
_KNOWN, _FEW = 50_000, 10


@dataclass(frozen=True)
class SingleRows:
    """What single rows give away.

    Parameters
    ----------
    records : array (r, m)
        Records in all columns of the table, NaN where a value is not known.
    error : array (r, m)
        How far each value may be from the true one: as precisely as the file is written.
    p_wrong, p_value : array (r,), (r, m)
        The probability that no real record has these values, and the same for each value.
    n_lines : array (r,)
        On how many distinct lines each record lies.
    row, ends, share : array
        For each decoded row its number, the records next to it, and where it lies between them.
    grids : Grids
        The grids of all columns.
    tried : int
        How many rows were decoded.
    digits : int or "float32"
        How precisely the file is written.
    past : float
        How likely a row with one known end lies past it, and not on the way to the other.
    """

    records: FloatArray
    error: FloatArray
    p_wrong: FloatArray
    p_value: FloatArray
    n_lines: IntArray
    row: IntArray
    ends: IntArray
    share: FloatArray
    grids: Grids
    tried: int
    digits: int | str
    past: float = EXTRAPOLATES


def from_single_rows(
    values: FloatArray,
    known: FloatArray | None = None,
    records: FloatArray | None = None,
    whole: BoolArray | None = None,
) -> SingleRows:
    """Return the records that single rows of a table give away.

    Parameters
    ----------
    values : array (n, m)
        The released rows; columns with NaN have no part.
    known : array (k, m), optional
        Rows known to be real, such as those of other classes; they show the grids.
    records : array (r, m), optional
        Records that are known by other means.
    whole : array of bool (m,), optional
        Which columns are of a type of whole numbers: interpolated ones were cut off.
    """
    m = values.shape[1]
    columns = np.flatnonzero(~np.isnan(values).any(axis=0))
    # Equal rows tell the same.
    _, rows = np.unique(values[:, columns], axis=0, return_index=True)
    rows = np.random.default_rng(0).permutation(np.sort(rows))
    released = values[np.ix_(rows, columns)]
    if len(columns):
        written = Precision.of(released[:_FIRST])
        known = _complete(known, columns)
        found = _complete(records, columns)
        grids = _grids(released[:_FIRST], known, found, written)
        whole = np.zeros(m, dtype=bool) if whole is None else whole
        used = ~_rounded(released[:_FIRST], grids, written, whole[columns])
        columns, released = columns[used], released[:, used]
    if len(columns) < 2 or not len(rows):
        return nothing_of_rows(m)
    grids, found, written = grids.of(used), found[:, used], written.of_columns(used)
    most = int(_WORK / min(_COLUMNS, max(2, int(np.isfinite(grids.step).sum()))) ** 4)
    tried, before = 0, -1
    while tried < min(len(rows), most):
        tried = min(len(rows), most, max(_FIRST, 2 * tried))
        decoded = decode_rows(released[:tried], grids=grids, written=written, records=found)
        now = int((decoded.p_wrong <= 0.05).sum())
        if now - before <= _NEW * now and before >= 0:
            break
        before = now
    return _in_columns(decoded, rows, columns, m, tried, written)


def _complete(rows: FloatArray | None, columns: IntArray) -> FloatArray:
    """Return rows in some columns, without those that have gaps."""
    if rows is None:
        return np.empty((0, len(columns)))
    if len(rows) > _KNOWN:
        rows = rows[np.random.default_rng(0).choice(len(rows), _KNOWN, replace=False)]
    rows = rows[:, columns]
    return rows[np.isfinite(rows).all(axis=1)]


def _grids(released: FloatArray, known: FloatArray, records: FloatArray, written: Precision) -> Grids:
    """Return the grids that known rows show, else cells that repeat, else records that lines gave away."""
    if not len(known):
        grids = grids_of_repeats(released, written)
        return grids.filled(grids_of_known(records, released, written)) if len(records) >= _FEW else grids
    grids = grids_of_known(known, released, written)
    # Rows of other classes may be interpolated themselves.
    return grids.filled(grids_of_repeats(np.vstack([known, released]), written))


def _rounded(released: FloatArray, grids: Grids, written: Precision, whole: BoolArray) -> BoolArray:
    """Return which columns were rounded to their grid after interpolation: they vary, but never between its points."""
    cells = cells_of(released, grids, written)
    moves = cells.moving & cells.informative
    interpolated = released[moves.any(axis=1)]
    if not len(interpolated):
        return np.zeros(released.shape[1], dtype=bool)
    # Two values, or those of a few rows, may stand still because neighbors have the same.
    shown = np.array([len(np.unique(column)) > 2 for column in interpolated.T]) & (
        len(interpolated) >= _SHOWN
    )
    still = cells.informative.any(axis=0) & ~moves.any(axis=0) & (np.ptp(interpolated, axis=0) > 0)
    return np.isfinite(grids.step) & still & (whole | shown)


def _in_columns(
    decoded: DecodedRows, rows: IntArray, columns: IntArray, m: int, tried: int, written: Precision
) -> SingleRows:
    shape = len(decoded.records), m
    records, error, p_value = np.full(shape, np.nan), np.full(shape, np.nan), np.ones(shape)
    records[:, columns], p_value[:, columns] = decoded.records, decoded.p_value
    step, noise = decoded.grids.step, decoded.grids.noise
    own = written.errors(decoded.records) + noise
    # Values that lie on no grid are completed from several rows.
    error[:, columns] = np.where(np.isfinite(step), own, np.maximum(own, TOLD * written.span))
    error[np.isnan(records)] = np.nan
    return SingleRows(
        records,
        error,
        decoded.p_wrong,
        p_value,
        decoded.n_lines,
        rows[decoded.row],
        decoded.ends,
        decoded.share,
        decoded.grids.among(columns, m),
        tried,
        written.digits,
        decoded.past,
    )


def nothing_of_rows(m: int) -> SingleRows:
    """Return that no row was decoded, of a table of m columns."""
    none, rows = np.zeros((0, m)), np.zeros(0, dtype=np.int64)
    ends = np.zeros((0, 2), dtype=np.int64)
    return SingleRows(none, none, np.zeros(0), none, rows, rows, ends, np.zeros(0), no_grids(m), 0, 16)
