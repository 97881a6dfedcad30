"""What the rows of a table tell, whatever their columns and gaps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe.attack.geometry.labels.told import Told, told_by_grids, told_by_neighbors
from oversafe.attack.geometry.lattice import Precision
from oversafe.attack.geometry.prepared import Prepared, in_numbers, prepare

FloatArray = NDArray[np.float64]

# A file with so many digits holds all of a float: lines without errors tell more.
_FULL = 16
# Fewer rows tell nothing.
_FEWEST = 4


@dataclass(frozen=True)
class TableRows:
    """What is told of the rows of a table.

    Parameters
    ----------
    p_real : array (n,)
        The probability that each is real, NaN where it is not told.
    columns : tuple of str
        The columns whose grids tell.
    full : bool
        Whether the file holds all digits of a float, so that lines are exact.
    """

    p_real: FloatArray = field(default_factory=lambda: np.empty(0))
    columns: tuple[str, ...] = ()
    full: bool = True

    @property
    def tells(self) -> bool:
        """Whether anything is told."""
        return bool((~np.isnan(self.p_real)).any())

    @property
    def by_grids(self) -> bool:
        """Whether the grids of columns tell it."""
        return bool(self.columns)


def told_of(given: Any, table: Prepared | None = None, n_jobs: int | None = None) -> TableRows:
    """Return what the grids of a table's columns, or the rows beside each row, tell.

    Parameters
    ----------
    given : DataFrame
        The table.
    table : Prepared, optional
        The same as the geometric attacks use it.
    n_jobs : int, optional
        Number of threads, as in joblib.
    """
    table = prepare(given) if table is None else table
    p_real = np.full(table.n_given, np.nan)
    values, positions = _numbers(table.frame)
    if len(values) < _FEWEST or not len(positions):
        return TableRows(p_real)
    distinct, row = np.unique(values, axis=0, return_inverse=True)
    written = Precision.of(values)
    full = written.digits != "float32" and written.digits >= _FULL
    told = told_by_grids(distinct, n_jobs) if len(distinct) >= _FEWEST else None
    if told is None and not full and len(distinct) >= _FEWEST:
        told = told_by_neighbors(distinct, written.errors(distinct), n_jobs)
    if told is None:
        return TableRows(p_real, full=full)
    p_real[table.rows] = told.p_real[row.ravel()]
    left = np.setdiff1d(np.arange(table.n_given), table.rows)
    if len(left) and told.columns.any():
        p_real[left] = _of_gaps(told, in_numbers(given.iloc[left], table.units), values, positions)
    return TableRows(p_real, tuple(str(table.frame.columns[i]) for i in positions[told.columns]), full)


def _numbers(frame: pd.DataFrame) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the columns of numbers that vary and have no gaps, and where they are."""
    columns, positions = [np.empty((len(frame), 0))], []
    for position, dtype in enumerate(frame.dtypes):
        if pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_complex_dtype(dtype):
            values = frame.iloc[:, position].to_numpy(dtype=float, na_value=np.nan)
            if np.isfinite(values).all() and np.ptp(values) > 0:
                columns.append(values[:, None])
                positions.append(position)
    return np.hstack(columns), np.array(positions, dtype=np.int64)


def _of_gaps(told: Told, frame: pd.DataFrame, known: FloatArray, positions: NDArray[np.int64]) -> FloatArray:
    """Return what the grids tell of rows with gaps."""
    values = np.column_stack([frame.iloc[:, i].to_numpy(dtype=float, na_value=np.nan) for i in positions])
    filled = np.where(np.isnan(values), known[0], values)
    return told.with_gaps(values, Precision.of(np.vstack([known, filled])).errors(filled))
