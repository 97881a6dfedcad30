"""The lines through single rows: every row that has enough bits, each for itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oversafe.attack.geometry.lattice import _kernels
from oversafe.attack.geometry.lattice.grids import Grids
from oversafe.attack.geometry.lattice.precision import Precision

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

# Columns in which a random step fits more often than this tell nothing about the line.
_VAGUE = 0.1
# So few rows do not show their own range.
_FEW = 20
# Columns that relations are searched in; more only take time.
_COLUMNS = 12
# Bits that a line has to spare where one row is said to be enough.
SPARE = 20.0
# Rows of a single column are taken for interpolated if so many others have a line, and so large a share of them.
_SURELY, _SURE = 20, 0.9
# Bits from which a line is worth looking at beside others.
_LEAST = 6.0


@dataclass(frozen=True)
class Lines:
    """Lines through rows, in units of the grids.

    Parameters
    ----------
    row : array (k,)
        The row.
    starts, ways : array (k, m)
        The grid points next to the row are start and start + way.
    states : array (k, m)
        What is known of each value: OPEN, FIXED, AMBIGUOUS or BLOCKED.
    share, slack : array (k,)
        The row is start + u way; u is the share up to the slack.
    bits : array (k,)
        -log2 of the expected number of lines that fit by accident.
    success : float
        The share of the rows with a line among those that could have had one.
    """

    row: IntArray
    starts: FloatArray
    ways: FloatArray
    states: NDArray[np.int8]
    share: FloatArray
    slack: FloatArray
    bits: FloatArray
    success: float

    def __len__(self) -> int:
        return len(self.row)

    def take(self, chosen: NDArray[np.int64] | BoolArray) -> Lines:
        """Return some of the lines."""
        row = self.row[chosen]
        return Lines(
            row,
            self.starts[chosen],
            self.ways[chosen],
            self.states[chosen],
            self.share[chosen],
            self.slack[chosen],
            self.bits[chosen],
            self.success * len(row) / max(1, len(self)),
        )


@dataclass(frozen=True)
class Cells:
    """Released rows in units of the grids.

    Parameters
    ----------
    units, error : array (n, m)
        The values and how much each may be off.
    moving, informative : array of bool (n, m)
        Which are off the grid, and which tell about the line.
    reach : array (m,)
        How far the ends of a row are apart, about; at least one step.
    """

    units: FloatArray
    error: FloatArray
    moving: BoolArray
    informative: BoolArray
    reach: FloatArray


def cells_of(
    released: FloatArray, grids: Grids, precision: Precision, reach: FloatArray | None = None
) -> Cells:
    """Return rows in units of the grids; columns without a grid tell nothing.

    Parameters
    ----------
    released : array (n, m)
        Interpolated rows.
    grids : Grids
        The grids.
    precision : Precision
        How precisely the file is written.
    reach : array (m,), optional
        How far the ends of rows are apart; the usual range of each column by default.
    """
    has = np.isfinite(grids.step)
    step = np.where(has, grids.step, 1.0)
    units = np.where(has, (released - np.where(has, grids.origin, 0.0)) / step, 0.0)
    error = np.where(has, (precision.errors(released) + grids.noise) / step, 1.0)
    if reach is None:
        reach = _usual(units, has, step, grids)
    informative = 4 * reach * error < _VAGUE
    moving = np.abs(units - np.rint(units)) > error
    return Cells(units, error, moving, informative, reach)


def _usual(units: FloatArray, has: BoolArray, step: FloatArray, grids: Grids) -> FloatArray:
    spread = np.maximum(np.subtract(*np.percentile(units, [95, 5], axis=0)), 2 * units.std(axis=0))
    if len(units) < _FEW:
        spread = np.maximum(spread, np.where(has, grids.usual, 0.0) / step)
    return np.maximum(spread, 1.0)


def lines_of_rows(cells: Cells, grids: Grids, rows: IntArray | None = None) -> Lines:
    """Return the line of every row in which enough columns move.

    Parameters
    ----------
    cells : Cells
        The rows.
    grids : Grids
        The grids, whose box holds the ends.
    rows : array, optional
        Which rows; all by default.
    """
    rows = np.arange(len(cells.units)) if rows is None else rows
    # The first rows decide whether it is worth while.
    rows = np.random.default_rng(0).permutation(rows)
    with np.errstate(invalid="ignore"):
        lowest = np.nan_to_num(np.ceil(grids.units(grids.lowest) - 1e-6))
        highest = np.nan_to_num(np.floor(grids.units(grids.highest) + 1e-6))
    starts, ways, states, shares, bits, tried = _kernels.decode(
        cells.units[rows],
        cells.error[rows],
        cells.moving[rows],
        cells.informative[rows],
        cells.reach,
        lowest,
        highest,
        _COLUMNS,
        SPARE,
        _LEAST,
    )
    success = ((bits >= _LEAST).sum() + 1) / (tried + 1)
    if success >= _SURE and (bits >= SPARE).sum() >= _SURELY:
        _between_two_values(cells, rows, lowest, highest, (starts, ways, states, shares, bits))
    found = np.flatnonzero(bits >= _LEAST)
    found = found[np.argsort(rows[found])]
    low, high = shares[found].T
    # No negative zeros: points are compared by their bytes.
    return Lines(
        rows[found],
        starts[found] + 0.0,
        ways[found] + 0.0,
        states[found],
        0.5 * (low + high),
        0.5 * (high - low),
        bits[found],
        min(1.0, success),
    )


def _between_two_values(
    cells: Cells,
    rows: IntArray,
    lowest: FloatArray,
    highest: FloatArray,
    found: tuple[FloatArray, FloatArray, NDArray[np.int8], FloatArray, FloatArray],
) -> None:
    """Fill in the lines of rows that move in one column of two values only: these are the ends, if rows have lines."""
    starts, ways, states, shares, bits = found
    moving = cells.moving[rows] & cells.informative[rows]
    column = moving.argmax(axis=1)
    alone = np.flatnonzero((moving.sum(axis=1) == 1) & (highest - lowest == 1)[column])
    at = column[alone]
    units = cells.units[rows[alone]]
    starts[alone] = np.where(cells.informative[rows[alone]], np.rint(units), starts[alone])
    states[alone] = np.where(cells.informative[rows[alone]], _kernels.FIXED, states[alone])
    starts[alone, at], ways[alone, at] = lowest[at], 1.0
    share = units[np.arange(len(alone)), at] - lowest[at]
    error = cells.error[rows[alone], at]
    shares[alone] = np.column_stack([share - error, share + error])
    bits[alone] = SPARE
