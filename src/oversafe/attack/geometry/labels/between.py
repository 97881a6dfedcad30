"""Rows between two others of a table: where interpolation puts them, and chance hardly any."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oversafe.attack.geometry.labels import _kernels
from oversafe.attack.geometry.shapes.neighbors import Cells

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]

# Pairs of so many neighbours are tried, in the table's own units and with all ranges alike.
_NEIGHBORS = 64


@dataclass(frozen=True)
class Places:
    """Where rows lie among others.

    Parameters
    ----------
    place : array (n,)
        NOWHERE, OUTSIDE, BEYOND or BETWEEN: the last of these that it is with any two others.
    lines : array (n,)
        On how many lines with two others it is, at most 2.
    """

    place: NDArray[np.int8]
    lines: NDArray[np.int8]

    @property
    def between(self) -> BoolArray:
        """Which rows lie between two others."""
        return self.place == _kernels.BETWEEN

    @property
    def explained(self) -> BoolArray:
        """Which rows interpolation explains, or extrapolation by half of the way."""
        return self.place >= _kernels.BEYOND


def places_among(
    rows: FloatArray,
    error: FloatArray,
    others: FloatArray,
    other_error: FloatArray,
    n_jobs: int | None = None,
    *,
    same: bool = False,
) -> Places:
    """Return where each row lies on the way between two of the others.

    Parameters
    ----------
    rows, error : array (n, m)
        Rows, and how much each value may be off.
    others, other_error : array (k, m)
        The rows between which they may lie.
    n_jobs : int, optional
        Number of threads, as in joblib.
    same : bool
        Whether each row was one of the others, which it is not held against.
    """
    if not len(rows) or len(others) < 2:
        return Places(np.zeros(len(rows), dtype=np.int8), np.zeros(len(rows), dtype=np.int8))
    span = np.ptp(np.vstack([rows, others]), axis=0)
    scaled = np.where(span > 0, 1.0 / np.where(span > 0, span, 1.0), 0.0)
    near = [
        _nearest(rows * unit, others * unit, n_jobs) for unit in (np.full(len(span), 1 / span.max()), scaled)
    ]
    neighbors = np.sort(np.hstack(near), axis=1)
    if same:
        neighbors[neighbors == np.arange(len(rows))[:, None]] = -1
    neighbors[:, 1:][neighbors[:, 1:] == neighbors[:, :-1]] = -1
    return Places(*_kernels.places(rows, error, others, other_error, neighbors))


def _nearest(rows: FloatArray, others: FloatArray, n_jobs: int | None) -> IntArray:
    # A row that is one of the others is its own nearest.
    found = np.empty((len(rows), min(_NEIGHBORS + 1, len(others))), dtype=np.int64)

    def store(which: IntArray, neighbors: IntArray) -> None:
        found[which] = neighbors

    Cells(others).search(rows, found.shape[1], store, n_jobs)
    return found
