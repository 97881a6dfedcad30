"""Which cells of a table are off the grid on which the real values of their column lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversafe.attack.geometry.lattice import Precision, grids_of_repeats

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# Steps that people measure in: a power of ten times one of these.
_STEPS = (5.0, 2.5, 2.0, 1.0)
# A grid says little if so many numbers of the file are on it by chance.
_COMMON = 0.35
# Finer steps, as shares of the range, are not those of measurements: among so many some seem to fit.
_FINEST = 1e-12
# The range of a column whose steps can be written as floats is between this and its inverse.
_SMALLEST = 1e-280
# So many more at least.
_FEWEST = 4.0
# A finer grid must hold so many cells more, in standard deviations of what chance puts there.
_FINER = 3.0
# How many standard deviations more cells than chance puts there must be on a grid.
_SURE = 6.0


@dataclass(frozen=True)
class OffGrid:
    """Cells beside the grids of their columns.

    Parameters
    ----------
    cells : array of bool (n, m)
        Which are off their grid.
    columns : array of bool (m,)
        Which columns have one.
    step, origin : array (m,)
        The grids; NaN and 0 where there is none.
    by_chance : array (n, m)
        The share of the numbers that the file could have here which are on the grid; 1 where there is none.
    """

    cells: BoolArray
    columns: BoolArray
    step: FloatArray
    origin: FloatArray
    by_chance: FloatArray

    def beside(self, values: FloatArray, error: FloatArray) -> BoolArray:
        """Return which cells of other rows are off the grids; none that is missing is."""
        step = np.where(self.columns, self.step, 1.0)
        with np.errstate(invalid="ignore"):
            return np.asarray(self.columns & _is_off(values, error, self.origin, step))

    def without(self, columns: BoolArray) -> OffGrid:
        """Return what the other columns show."""
        return OffGrid(
            self.cells & ~columns,
            self.columns & ~columns,
            np.where(columns, np.nan, self.step),
            self.origin,
            np.where(columns, 1.0, self.by_chance),
        )


def off_grid(values: FloatArray, written: Precision) -> OffGrid:
    """Return the cells that are off the grid of their column, where more cells are on one than chance puts there.

    Of the grids that do, the one is taken that holds most cells beyond chance, and the coarsest of these.

    Parameters
    ----------
    values : array (n, m)
        Rows of a table, interpolated ones among them.
    written : Precision
        How precisely the file is written.
    """
    n, m = values.shape
    error = written.errors(values)
    cells = np.zeros((n, m), dtype=bool)
    step, origin, by_chance = np.full(m, np.nan), np.zeros(m), np.ones((n, m))
    shown = grids_of_repeats(values, written)
    for j in range(m):
        with np.errstate(over="ignore"):
            span = float(np.ptp(values[:, j]))
        # Of ranges beyond all measures the steps are no numbers.
        if not _SMALLEST < span < 1 / _SMALLEST:
            continue
        finest = max(2 * float(np.median(error[:, j])) / _COMMON, _FINEST * span)
        candidates = [(0.0, size) for size in _ladder(span, finest)]
        if np.isfinite(shown.step[j]) and shown.step[j] > finest:
            candidates.append((float(shown.origin[j]), float(shown.step[j])))
        kinds, first, counts = np.unique(values[:, j], return_index=True, return_counts=True)
        # The most frequent value may be a bound, or stand for "none".
        counts[counts.argmax()] = 0
        best, found = 0.0, None
        for begin, size in candidates:
            chance = np.minimum(1.0, 2 * error[first, j] / size)
            spread = float(np.sqrt((counts * chance * (1 - chance)).sum()))
            on = counts[~_is_off(kinds, error[first, j], begin, size)].sum()
            excess = float(on - (counts * chance).sum())
            if excess > max(_FEWEST, _SURE * spread) and excess > best + 0.5 + _FINER * spread:
                best, found = excess, (begin, size)
        # Where all cells are on it, the grid is that of the file.
        if found is None:
            continue
        off = _is_off(values[:, j], error[:, j], *found)
        if off.any():
            cells[:, j] = off
            origin[j], step[j] = found
            by_chance[:, j] = np.minimum(1.0, 2 * error[:, j] / found[1])
    return OffGrid(cells, np.isfinite(step), step, origin, by_chance)


def _ladder(span: float, finest: float) -> list[float]:
    """Return steps from the coarsest that a range can show to the finest that a file can."""
    powers = range(int(np.floor(np.log10(span))), int(np.floor(np.log10(finest))) - 1, -1)
    sizes = [size * (10.0**power if power >= 0 else 1.0) / (1.0 if power >= 0 else 10.0**-power)
             for power in powers for size in _STEPS]  # fmt: skip
    return [size for size in sizes if finest < size <= span]


def _is_off(values: FloatArray, error: FloatArray, origin: Any, step: Any) -> BoolArray:
    """Return which values are off a grid by more than their error."""
    away = values - origin
    return np.asarray(np.abs(away - step * np.rint(away / step)) > 1.01 * error)
