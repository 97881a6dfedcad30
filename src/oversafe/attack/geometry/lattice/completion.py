"""Values that the lines leave open: columns without a grid, or too wide for the digits of the file."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oversafe.attack.geometry.lattice import _completion_kernels

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# A value is taken to its grid if it is known to within this share of a step, in standard errors times this.
_SNAP, _SIGMAS = 0.3, 5.0
# A value is told if it is known to within this share of the range of its column.
TOLD = 1e-5


def complete(
    values: FloatArray,
    error: FloatArray,
    share: FloatArray,
    slack: FloatArray,
    ends: IntArray,
    given: tuple[FloatArray, FloatArray],
    step: float,
    noise: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what the points must be in one column for all rows to be on their lines, NaN where nothing tells.

    A row says (1 - u) x_a + u x_b = s. Two rows between the same points give both, and each row carries a known
    value over to its other end.

    Parameters
    ----------
    values, error : array (k,)
        What the rows have in the column, less the origin of its grid, and how much it may be off.
    share, slack : array (k,)
        Where each row lies between its ends, and how much that may be off.
    ends : array (k, 2)
        The points next to each row.
    given : pair of arrays (n_points,)
        Values that are known already, and how much each may be off: NaN and infinity where nothing is.
    step, noise : float
        The grid of the column; the step is NaN if it has none.

    Returns
    -------
    found, confirm, contradict : array (n_points,)
        The values, and how many rows confirm and contradict each.
    """
    grid = step if np.isfinite(step) else 0.0
    found, doubt = given[0].copy(), given[1].copy()
    for points, at, off in _segments(values, error, share, slack, ends):
        better = np.flatnonzero(off < doubt[points])
        # The best of several segments is written last.
        better = better[np.argsort(-off[better], kind="stable")]
        found[points[better]], doubt[points[better]] = at[better], off[better]
    if grid:
        whole = np.rint(found / grid) * grid
        near = doubt < _SNAP * grid
        fits = near & (np.abs(found - whole) <= doubt + noise)
        found, doubt = np.where(fits, whole, found), np.where(fits, noise, doubt)
        lost = near & ~fits
        found[lost], doubt[lost] = np.nan, np.inf
    _completion_kernels.carry_over(values, error, share, slack, ends, found, doubt, grid, noise, _SNAP)
    confirm, contradict = _completion_kernels.check(values, error, share, slack, ends, found, doubt)
    span = float(np.ptp(values)) if len(values) else 0.0
    told = (doubt <= max(TOLD * span, 1e-12 * span)) | ((grid > 0) & (doubt < _SNAP * grid))
    return np.where(told, found, np.nan), confirm, contradict


def _segments(
    values: FloatArray, error: FloatArray, share: FloatArray, slack: FloatArray, ends: IntArray
) -> list[tuple[IntArray, FloatArray, FloatArray]]:
    """Return by end of the segments with several rows the points, their values and how much those may be off."""
    turned = ends[:, 0] > ends[:, 1]
    u = np.where(turned, 1 - share, share)
    pairs, segment, rows = np.unique(np.sort(ends, axis=1), axis=0, return_inverse=True, return_counts=True)
    segment = segment.ravel()
    slope = np.zeros(len(pairs))

    def by_segment(what: FloatArray) -> FloatArray:
        return np.bincount(segment, what, minlength=len(pairs)).astype(float)

    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(2):
            off = error + slack * np.abs(slope[segment])
            weight = 3.0 / off**2
            total = by_segment(weight)
            middle, height = by_segment(weight * u) / total, by_segment(weight * values) / total
            apart = u - middle[segment]
            square = by_segment(weight * apart**2)
            slope = by_segment(weight * apart * (values - height[segment])) / square
            slope[rows < 2] = 0.0
        many = (rows >= 2) & (square > 0)
        result = []
        for side in (0, 1):
            way = side - middle
            spread = _SIGMAS * np.sqrt(1 / total + way**2 / square)
            result.append((pairs[many, side], (height + way * slope)[many], spread[many]))
    return result
