"""Grids and precision by whether rows can be decoded with them: what no value shows directly."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from oversafe.attack.geometry.lattice import _kernels
from oversafe.attack.geometry.lattice.grids import Grids
from oversafe.attack.geometry.lattice.precision import Precision
from oversafe.attack.geometry.lattice.search import SPARE, cells_of, lines_of_rows

FloatArray = NDArray[np.float64]

# Rows that are tried with each grid, and with each precision.
_TRIED, _SAMPLE = 60, 500
# Grids are left alone if so many of the rows that could be decoded are.
_FINE = 0.9
# A column is used if so many of the rows that were decoded without it still are.
_KEEP = 0.8
# A step may be a multiple of the true one.
_DIVISORS = (1, 2, 3, 5, 4, 6, 10)
# A column's steps are too long if so many fewer of the lines that show it are met than of others, which chance hardly
# explains; and how many columns such a line has.
_SHARE, _CHANCE, _COLUMNS = 0.8, 1e-4, 4
# So many lines, and so many of the rows that could have one, show how far ends are apart.
_LEARNED, _HOLDS = 20, 0.25
# A shorter way must tell so much more, in bits of which so many per line are enough.
_BETTER, _ENOUGH = 0.05, 40.0
# Columns among which the first three are sought.
_FIRST = 6


def late_or_early(released: FloatArray, grids: Grids, written: Precision) -> Precision:
    """Return whether float32 rounded the rows alone, or their parents too: then the finer error decodes fewer rows."""
    if written.digits != "float32":
        return written
    early = replace(written, early=True)
    sample = released[:_SAMPLE]
    return written if _decoded(sample, grids, written) >= _FINE * _decoded(sample, grids, early) else early


def tuned(released: FloatArray, grids: Grids, written: Precision) -> Grids:
    """Return grids that decode rows: steps divided where they are too long, columns left out that fit none.

    Parameters
    ----------
    released : array (n, m)
        Interpolated rows.
    grids : Grids
        What the values show.
    written : Precision
        How precisely the file is written.
    """
    some = np.random.default_rng(0).permutation(len(released))[:_TRIED]
    sample = released[np.sort(some)]
    cells = cells_of(sample, grids, written)
    could = int(((cells.moving & cells.informative).sum(axis=1) >= 3).sum())
    if _decoded(sample, grids, written) >= _FINE * could:
        return grids
    columns: list[int] = np.flatnonzero(np.isfinite(grids.step)).tolist()
    # Columns that tell most come first.
    worth = np.log2(4 * cells.reach * np.maximum(np.median(cells.error, axis=0), 2.0**-60))
    narrow = sorted(columns, key=lambda j: (cells.reach[j] > 2, worth[j] + np.log2(cells.reach[j])))
    best, used = -1, narrow
    for three in combinations(narrow[:_FIRST], 3):
        score = _decoded(sample, grids.only(list(three)), written)
        if score > best:
            best, used = score, list(three)
    if best < 3:
        return grids
    result = grids
    for j in narrow:
        if j in used:
            continue
        for divisor in _DIVISORS:
            finer = result.changed(j, grids.origin[j], grids.step[j] / divisor) if divisor > 1 else result
            score = _decoded(sample, finer.only([*used, j]), written)
            if score >= _KEEP * best:
                best, used, result = score, [*used, j], finer
                break
    return result.only(used)


def reach_of(released: FloatArray, grids: Grids, written: Precision) -> FloatArray:
    """Return how far the ends of rows are apart: neighbours are nearer than the range of their columns."""
    sample = released[np.random.default_rng(0).permutation(len(released))[:_SAMPLE]]
    usual = cells_of(sample, grids, written).reach
    best, most = None, 0.0
    for nearer in (1.0, 2.0, 4.0, 8.0):
        lines = lines_of_rows(cells_of(sample, grids, written, np.maximum(usual / nearer, 1.0)), grids)
        # Accidents are few among the rows that could have a line.
        told = float((lines.states == _kernels.FIXED).sum())
        if len(lines) >= _LEARNED and lines.success >= _HOLDS and told > (1 + _BETTER) * most:
            best, most = lines, told
    if best is None:
        return usual
    fixed = np.where(best.states == _kernels.FIXED, np.abs(best.ways), np.nan)
    known = np.isfinite(fixed).sum(axis=0) >= _LEARNED
    if not known.any():
        return usual
    seen = np.nanquantile(fixed[:, known], 0.95, axis=0)
    # Columns that no line tells are as much nearer as the others.
    reach = float(np.median(seen / usual[known])) * usual
    reach[known] = seen
    return np.clip(reach, 1.0, usual)


def halved(ways: FloatArray, met: NDArray[np.bool_], grids: Grids) -> Grids | None:
    """Return grids with the steps divided that lines show to be too long, or None if they show none.

    Where one column's values lie between its grid points, all other steps of the line have a common divisor that its
    own does not share, and the line ends where no other does. By chance there is the first without the second.

    Parameters
    ----------
    ways : array (k, m)
        The steps of distinct segments, 0 where unknown.
    met : array of bool (k,)
        Whether other lines meet both ends.
    grids : Grids
        The grids.
    """
    column, divisor = shared_divisors(ways)
    usual = float(met[divisor == 1].mean()) if (divisor == 1).any() else 0.0
    finer = None
    for g in (2, 3, 5):
        for j in np.unique(column[divisor == g]).tolist():
            here = met[(divisor == g) & (column == j)]
            if here.mean() < _SHARE * usual and binom.cdf(here.sum(), len(here), usual) < _CHANCE:
                finer = finer or grids
                finer = finer.changed(j, grids.origin[j], finer.step[j] / g)
    return finer


def shared_divisors(ways: FloatArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return by line the column without which 2, 3 or 5 divides all steps of at least four columns, and which does.

    The column is -1 where there is none.
    """
    column = np.full(len(ways), -1)
    divisor = np.ones(len(ways), dtype=np.int64)
    moving = ways != 0
    for g in (5, 3, 2):
        odd = moving & (ways % g != 0)
        alone = (odd.sum(axis=1) == 1) & (moving.sum(axis=1) >= _COLUMNS)
        column[alone] = odd[alone].argmax(axis=1)
        divisor[alone] = g
    return column, divisor


def _decoded(sample: FloatArray, grids: Grids, written: Precision) -> int:
    """Return how many rows lie on a line in all columns that tell."""
    lines = lines_of_rows(cells_of(sample, grids, written), grids)
    blocked = (lines.states == _kernels.BLOCKED).any(axis=1)
    return int(((lines.bits >= SPARE) & ~blocked).sum())
