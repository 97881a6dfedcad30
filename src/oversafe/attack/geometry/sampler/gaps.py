"""One gap for all columns of a row (a line between its parents), or a gap for each column (a box)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from oversafe.attack.geometry.lattice import _kernels
from oversafe.attack.geometry.lattice.grids import Grids, grids_of_repeats
from oversafe.attack.geometry.lattice.precision import Precision
from oversafe.attack.geometry.lattice.search import SPARE, cells_of, lines_of_rows
from oversafe.attack.geometry.lattice.tuning import tuned
from oversafe.attack.geometry.sampler.traces import BoolArray, Finding, FloatArray

# Rows that are decoded for the test.
_SAMPLE = 100
# Were there a common gap, at least this share of the rows with bits enough would show it. On the development sets .96
# and more did, where 20 rows and more could; far less is asked because a grid may be read wrong.
_SHOWN = 0.3
# Columns in which at least this share of the cells is static, and of the others, were interpolated.
_BOTH = 0.02


@dataclass(frozen=True)
class Cells:
    """The cells of a release.

    Parameters
    ----------
    grids : Grids
        The grids of the real values.
    written : Precision
        How precisely the file is written.
    static : array of bool (n, m)
        Cells on the grid of their column where others are off it, or with a value that others have as well: both
        parents have that value.
    columns : array of bool (m,)
        The columns with static and with other cells.
    """

    grids: Grids
    written: Precision
    static: BoolArray
    columns: BoolArray


def read_cells(rows: FloatArray, grids: Grids | None = None) -> Cells:
    """Return which cells are those of both parents, and which lie between.

    Parameters
    ----------
    rows : array (n, m)
        Released rows without gaps.
    grids : Grids, optional
        The grids of the real values; by default those of the cells that repeat.
    """
    written = Precision.of(rows)
    grids = grids_of_repeats(rows, written) if grids is None else grids
    cells = cells_of(rows, grids, written)
    # Where a grid is as fine as the numbers are written any cell is on it.
    clear = np.isfinite(grids.step) & (np.median(cells.error, axis=0) < _BOTH / 4)
    share = (~cells.moving).mean(axis=0)
    columns = clear & (share > _BOTH) & (share < 1 - _BOTH)
    static = ~cells.moving & columns
    error = written.errors(rows)
    for j in np.flatnonzero(np.isnan(grids.step)).tolist():
        values, number, counts = np.unique(rows[:, j], return_inverse=True, return_counts=True)
        # Among so many cells of the precision of the file two of all rows are equal by chance less than once.
        if len(rows) ** 2 * np.median(error[:, j]) < _BOTH * (values[-1] - values[0]):
            static[:, j] = counts[number.reshape(-1)] > 1
    return Cells(grids, written, static, columns)


def own_gaps(rows: FloatArray, read: Cells) -> Finding:
    """Return whether rows that a common gap of all columns would explain are explained by none."""
    written = read.written
    if not read.columns.any():
        return Finding("no column shows whether its values were interpolated", 1.0)
    some = np.sort(np.random.default_rng(0).permutation(len(rows))[:_SAMPLE])
    grids = tuned(rows, read.grids.only(np.flatnonzero(read.columns).tolist()), written)
    cells = cells_of(rows[some], grids, written, cells_of(rows, grids, written).reach)
    used = cells.moving & cells.informative & np.isfinite(grids.step)
    bits = np.zeros(len(some))
    for i in range(len(some)):
        if used[i].sum() > 1:
            bits[i] = -_kernels.log2_lines(cells.reach, cells.error[i], used[i])
    enough = bits >= SPARE
    if not enough.any():
        return Finding("too few rows could show a common gap of all columns", 1.0)
    found = np.isin(np.arange(len(some)), lines_of_rows(cells, grids).row)
    hits, tries = int((found & enough).sum()), int(enough.sum())
    p = float(binom.cdf(hits, tries, _SHOWN))
    return Finding(
        f"no common gap of all columns explains {tries - hits} of {tries} rows that would show it", p
    )
