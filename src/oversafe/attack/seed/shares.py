"""How far along its segment each released row lies: the numbers that the sampler drew, as far as they can be read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oversafe.attack.geometry.lattice import Precision, decode_rows

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# A column in which the ends differ by less than so many errors says nothing about the share.
_CLEAR = 8.0
# Sums of doubles are off by so much of a share.
_ROUNDING = 2.0**-50


@dataclass(frozen=True)
class Shares:
    """Released rows between two records.

    Parameters
    ----------
    row : array (n,)
        The row.
    ends : array (n, 2)
        The records on both sides of it.
    low, high : array (n,)
        The row is (1 - u) times the first plus u times the second record, and u lies between these.
    records : array (r, m)
        The records, NaN where a value is not known.
    p_value : array (r, m)
        The probability that a value is wrong.
    """

    row: IntArray
    ends: IntArray
    low: FloatArray
    high: FloatArray
    records: FloatArray
    p_value: FloatArray

    def __len__(self) -> int:
        return len(self.row)

    def take(self, chosen: IntArray) -> Shares:
        """Return some of the rows."""
        return Shares(
            self.row[chosen],
            self.ends[chosen],
            self.low[chosen],
            self.high[chosen],
            self.records,
            self.p_value,
        )


def read_shares(released: FloatArray, known: FloatArray | None = None) -> Shares:
    """Return the rows whose ends can be read, from the grids on which real values lie.

    Parameters
    ----------
    released : array (n, m)
        Rows of one class.
    known : array, optional
        Rows known to be real, such as those of other classes.
    """
    found = decode_rows(released, known)
    return between(released, found.row, found.ends, found.records, found.p_value)


def between(
    released: FloatArray,
    row: IntArray,
    ends: IntArray,
    records: FloatArray,
    p_value: FloatArray,
    error: FloatArray | None = None,
) -> Shares:
    """Return where rows lie between records, with the interval that the errors of both leave.

    Parameters
    ----------
    released : array (n, m)
        The rows.
    row, ends, records, p_value
        See :class:`Shares`.
    error : array (r, m), optional
        How much each value of a record may be off; nothing by default.
    """
    written = (
        Precision.of(released).errors(released)[row] if len(released) else np.zeros((0, released.shape[1]))
    )
    first, second = records[ends[:, 0]], records[ends[:, 1]]
    slack = written.copy()
    if error is not None:
        slack += np.maximum(error[ends[:, 0]], error[ends[:, 1]])
    way = second - first
    with np.errstate(invalid="ignore", divide="ignore"):
        tells = np.abs(way) > _CLEAR * slack
        middle, half = (released[row] - first) / way, slack / np.abs(way)
    middle, half = np.where(tells, middle, 0.0), np.where(tells, half, np.inf)
    low = (middle - half).max(axis=1, initial=-np.inf) - _ROUNDING
    high = (middle + half).min(axis=1, initial=np.inf) + _ROUNDING
    good = np.flatnonzero((low <= high) & (low > -1) & (high < 2))
    return Shares(row[good], ends[good], low[good], high[good], records, p_value)
