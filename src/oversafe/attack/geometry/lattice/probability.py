"""How likely a recovered record is wrong: lines by accident, ghosts between the ends, agreement of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oversafe.attack.geometry.lattice import _kernels

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# By how much the steps of a line may be too short.
MULTIPLES = np.arange(2, 13)
# The differences of a table may all be multiples of something: measured on 20 tables.
_ALL_MULTIPLES = 1e-3
# How wide lengths are smoothed, in bits.
_BANDWIDTH = 0.5
# How far the popularity of values in other classes is trusted, and how much it can say.
_TRUST, _MOST_APPEAL = 0.5, 12.0
# What the model itself may miss: no claim is surer.
SUREST = 1e-9


def spare_bits(ways: FloatArray, error: FloatArray, used: BoolArray, reach: FloatArray) -> FloatArray:
    """Return -log2 of the lines that fit each row by accident and are no longer than the true one.

    Parameters
    ----------
    ways, error : array (n, m)
        The steps between the ends of each row and how much its values may be off, in units of the grids.
    used : array of bool (n, m)
        Which columns move and have a grid.
    reach : array (m,)
        The usual range of each column.
    """
    bits = np.zeros(len(ways))
    for i in range(len(ways)):
        if used[i].sum() > 1:
            box = np.maximum(1.0, (np.abs(ways[i]) / reach)[used[i]].max() * reach)
            bits[i] = -_kernels.log2_lines(box, error[i], used[i])
    return bits


def ghost_weights(
    starts: FloatArray,
    ways: FloatArray,
    reach: FloatArray,
    popular: FloatArray,
    modulus: FloatArray,
    lowest: FloatArray,
    highest: FloatArray,
    tolerance: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return how likely the ends of a line are not those next to the row, against that they are.

    If the true steps are g times the primitive ones, g - 1 grid points between the ends are ghosts. A multiple g
    counts by the room for it, by how usual the longer length is, and by how popular the values at its ends are.

    Parameters
    ----------
    starts, ways : array (n, m)
        The ends next to each row are start and start + way.
    reach : array (m,)
        The usual range of each column.
    popular, modulus : array (m, 20), (m,)
        How frequent real values with each rest are.
    lowest, highest : array (m,)
        The box of plausible values.
    tolerance : array (n, m)
        How much a grid point may be off the line: a column can fit a wrong one by accident.

    Returns
    -------
    first, second, either : array (n, 11)
        By g the weight of the cases where the first end is a ghost, the second, and of all; that of g = 1 is 1.
    unusual : array (n,)
        How many times less usual the length is than the commonest: accidents have any length.
    """
    relative = np.abs(ways) / reach
    length = np.log2(np.maximum(relative.max(axis=1), 2.0**-20))
    at, height = _density(length)
    here = np.interp(length, at, height)
    moving = ways != 0
    accident = np.minimum(1.0, 4.0 * np.maximum(np.abs(ways), 1.0) * tolerance)
    shape = (len(starts), len(MULTIPLES))
    first, second, either = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    column = np.arange(ways.shape[1])
    log_popular = np.log(popular)

    def appeal(points: FloatArray) -> FloatArray:
        return np.asarray(log_popular[column, (points % modulus).astype(np.int64)].sum(axis=1))

    plain = appeal(starts) + appeal(starts + ways)
    for i, g in enumerate(MULTIPLES.tolist()):
        room = np.where(moving, np.minimum(1.0, 1.0 / g + accident), 1.0).prod(axis=1)
        usual = np.interp(length + np.log2(g), at, height) / here / g
        for place in range(g):
            begin = starts - place * ways
            end = begin + g * ways
            inside = ((np.minimum(begin, end) >= lowest) & (np.maximum(begin, end) <= highest)).all(axis=1)
            better = np.exp(
                _TRUST * np.clip(appeal(begin) + appeal(end) - plain, -_MOST_APPEAL, _MOST_APPEAL)
            )
            weight = usual * inside * (room * better + _ALL_MULTIPLES / g)
            either[:, i] += weight
            first[:, i] += weight * (place > 0)
            second[:, i] += weight * (place < g - 1)
    return first, second, either, height.max() / here


def _density(length: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the smoothed density of the logarithms of lengths, as points to interpolate."""
    at = np.arange(length.min() - 4, length.max() + 6, _BANDWIDTH / 2) if len(length) else np.zeros(2)
    counts = np.histogram(length, np.append(at, at[-1] + _BANDWIDTH / 2))[0] if len(length) else np.ones(2)
    offsets = np.arange(-8, 9)
    kernel = np.exp(-0.5 * (offsets / 2.0) ** 2)
    smooth = np.convolve(counts, kernel / kernel.sum(), mode="same")
    # One more line could have any length.
    return at + _BANDWIDTH / 4, (smooth + 1.0 / len(at)) / (smooth.sum() + 1.0)


def agreement(
    odds: FloatArray,
    point: NDArray[np.int64],
    n_points: int,
    coincidence: float,
    shared: float,
    known: BoolArray | None = None,
) -> FloatArray:
    """Return the probability that a point is no record, from the distinct lines that end there.

    Parameters
    ----------
    odds : array (k,)
        For each end of a distinct line the odds that it is a ghost or the line an accident.
    point : array (k,)
        The point where it ends.
    n_points : int
        Number of points.
    coincidence : float
        How likely two ghosts meet by accident.
    shared : float
        How likely another line ends at a record.
    known : array of bool (n_points,), optional
        Which points are records by other means, which counts as another line.
    """
    total = np.bincount(point, np.log(np.maximum(odds, 1e-300)), minlength=n_points)
    lines = np.bincount(point, minlength=n_points) + (0 if known is None else known)
    total += (lines - 1) * np.log(min(1.0, coincidence) / shared)
    # Of records few have a single line where most ends are shared.
    total -= np.where(lines == 1, np.log1p(-shared), 0.0)
    wrong = 1.0 / (1.0 + np.exp(-np.clip(total, -700, 700)))
    return np.maximum(wrong, SUREST)
