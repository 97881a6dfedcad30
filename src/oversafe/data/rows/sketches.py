"""Sketches of rows: numbers that are equal for equal rows, and from which a column can be taken out again.

So rows that agree in all columns but one are found without holding every row against every other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

HashArray = NDArray[np.uint64]


def value_hashes(codes: NDArray[np.int64], column: Any) -> HashArray:
    """Return a random-looking number for each value of a column, equal for equal codes.

    Parameters
    ----------
    codes : array of int
        A number for each value, from 0.
    column : int or array of int
        The column's place, or one for each row of ``codes``: equal codes of two columns have nothing in common.
    """
    place = (np.asarray(column, dtype=np.uint64) + np.uint64(1)) << np.uint64(40)
    return mix(codes.astype(np.uint64) + place)


def table_hashes(codes: NDArray[np.int64]) -> HashArray:
    """Return :func:`value_hashes` of a table with a row per column; their sum over the columns is a row's sketch."""
    return value_hashes(codes, np.arange(len(codes))[:, None])


def row_sketches(codes: NDArray[np.int64]) -> HashArray:
    """Return one number per row of a table with a row per column, equal for equal rows."""
    return table_hashes(codes).sum(axis=0, dtype=np.uint64)


def mix(values: HashArray) -> HashArray:
    """Return 64-bit numbers, each scattered over the whole range (the finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return values ^ (values >> np.uint64(31))
