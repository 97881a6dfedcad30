"""Base records that follow from the seed: every row says what its record and its neighbor may be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oversafe.attack.geometry.lattice import Precision
from oversafe.attack.geometry.lattice.precision import decimals_of
from oversafe.attack.seed import _kernels
from oversafe.attack.seed.search import FloatArray, IntArray, Layout, doubles_of, words_of

BoolArray = NDArray[np.bool_]

# Real values may lie so much outside the released ones, as a share of their range.
_MARGIN = 0.5
# Beyond so many decimals a number is written in full.
_WRITTEN = 9
# How probable it may be that a grid fits by chance.
_GRID = 1e-6
# Values that contradict the draws, as a share; with more they follow from something else.
_WRONG = 0.02
# One way to write numbers fits better than another if so many fewer values contradict it.
_CLEAR = 4
# Sweeps over the rows, and rows times records that are compared to name neighbors.
_SWEEPS, _COMPARED = 30, 100_000_000
# A value without a grid is known if it is within so much of its column's range.
_EQUAL = 1e-6


@dataclass(frozen=True)
class Followed:
    """Records that follow from the seed and the order of the rows.

    Parameters
    ----------
    records : array (n_base, m)
        The records, NaN where a value is not known.
    p_value : array (n_base, m)
        The probability that a value is wrong, but for the seed's own.
    impossible : float
        The share of the values that cannot be reconciled with the draws.
    rows_from : array (n_base,)
        How many rows were made from each.
    """

    records: FloatArray
    p_value: FloatArray
    impossible: float
    rows_from: IntArray


@dataclass(frozen=True)
class _Pairs:
    """Rows by the pair of records that they lie between."""

    order: IntArray
    first: IntArray
    base: IntArray
    share: FloatArray


def follow(
    values: FloatArray,
    seed: int,
    layout: Layout,
    whole: BoolArray,
    known: FloatArray | None = None,
    *,
    closed: bool,
) -> Followed:
    """Return the records that rows in order come from, under a seed.

    Parameters
    ----------
    values : array (n, m)
        The rows.
    seed : int
        The seed.
    layout : Layout
        Records, neighbors and real rows in front.
    whole : array of bool (m,)
        Columns that may have been cut off to whole numbers.
    known : array, optional
        Rows known to be real: they show the decimals that real values have.
    closed : bool
        Whether the neighbors are among the records.
    """
    made = values[layout.begin :]
    pairs = _pairs(seed, layout, len(made))
    low, high, step, p_grid = _written(values, made, whole, known, pairs, layout.n_base)
    found = _solved(made, low, high, step, pairs, layout.n_base, closed=closed)
    rec_low, rec_high, dead = found
    span = np.ptp(values, axis=0)
    told: BoolArray = ~dead & (rec_high - rec_low <= np.where(step > 0, 1e-6 * step, _EQUAL * span))
    # A column that never changes is the same in all records.
    told |= span == 0
    middle = 0.5 * (rec_low + rec_high)
    with np.errstate(divide="ignore", invalid="ignore"):
        decimals = np.where(step > 0, np.rint(-np.log10(step)), 15).astype(np.int64)
    for j, count in enumerate(decimals.tolist()):
        if step[j] > 0:
            middle[:, j] = np.round(middle[:, j], count)
    from_each = np.bincount(pairs.base, np.diff(pairs.first), minlength=layout.n_base).astype(np.int64)
    touched = from_each > 0
    impossible = dead[touched].mean(axis=0) if touched.any() else np.ones(values.shape[1])
    p_value = np.broadcast_to(np.minimum(1.0, p_grid + impossible), told.shape)
    records = np.where(told & (impossible <= _WRONG) & touched[:, None], middle, np.nan)
    share = float(impossible.mean()) if len(impossible) else 1.0
    return Followed(records, np.where(np.isnan(records), 1.0, p_value), share, from_each)


def _pairs(seed: int, layout: Layout, n_made: int) -> _Pairs:
    words = words_of(seed, int(4 * n_made + 8 * np.sqrt(n_made) + 64))
    drawn = np.empty(n_made, dtype=np.int64)
    begin = _kernels.whole_numbers(words, 0, layout.n_base * layout.k, drawn)
    share = np.clip(doubles_of(words)[begin : begin + 2 * n_made : 2], 1e-12, 1 - 1e-12)
    order = np.argsort(drawn, kind="stable")
    codes, first = np.unique(drawn[order], return_index=True)
    return _Pairs(order, np.append(first, n_made).astype(np.int64), codes // layout.k, share[order])


def _box(made: FloatArray) -> tuple[FloatArray, FloatArray]:
    low, high = made.min(axis=0), made.max(axis=0)
    return low - _MARGIN * (high - low), high + _MARGIN * (high - low)


def _solved(
    made: FloatArray,
    low: FloatArray,
    high: FloatArray,
    step: FloatArray,
    pairs: _Pairs,
    n_base: int,
    *,
    closed: bool = False,
    patient: bool = False,
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return the bounds of each record, and which values cannot be reconciled with the draws."""
    m = made.shape[1]
    least, most = _box(made)
    rec_low, rec_high = np.tile(least, (n_base, 1)), np.tile(most, (n_base, 1))
    other_low, other_high = np.tile(least, (len(pairs.base), 1)), np.tile(most, (len(pairs.base), 1))
    dead = np.zeros((n_base, m), dtype=bool)
    below, above = low[pairs.order], high[pairs.order]
    slack = 1e-9 * (most - least)
    closed = closed and n_base * len(pairs.base) <= _COMPARED
    for sweep in range(_SWEEPS):
        changed = _kernels.squeeze(
            pairs.share,
            below,
            above,
            pairs.first,
            pairs.base,
            rec_low,
            rec_high,
            other_low,
            other_high,
            step,
            dead,
        )
        if (dead.mean() > _WRONG and not patient) or (not changed and sweep):
            break
        if closed:
            counts = _kernels.name_neighbors(pairs.base, rec_low, rec_high, other_low, other_high, slack)
            if (counts == 0).mean() > _WRONG:
                return _solved(made, low, high, step, pairs, n_base)
    return rec_low, rec_high, dead


def _written(
    values: FloatArray,
    made: FloatArray,
    whole: BoolArray,
    known: FloatArray | None,
    pairs: _Pairs,
    n_base: int,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the bounds of each cell, and of each column the grid (0 without one) and how probably it is wrong."""
    real = np.zeros((0, values.shape[1])) if known is None else known
    decimals = np.array([decimals_of(values[:, j]) for j in range(values.shape[1])])
    # Where one column is written in full, all are, but for those that were cut off.
    exact = (decimals > _WRITTEN) | ((decimals.max(initial=0) > _WRITTEN) & ~whole)
    # Files of so many significant digits have fewer decimals where values are larger.
    half = np.maximum(
        Precision.of(values).errors(made), np.where(exact, 0.0, 0.5 * 10.0 ** -np.minimum(decimals, _WRITTEN))
    )
    half = half * (1 + 1e-9) + 2.0**-51 * (np.abs(made) + np.ptp(values, axis=0))
    low, high = made - half, made + half
    step, p_grid, reach = np.zeros(values.shape[1]), np.ones(values.shape[1]), np.ptp(values, axis=0)
    for j in range(values.shape[1]):
        ways = [(low[:, j], high[:, j])]
        if whole[j]:
            ways.append((made[:, j] - (made[:, j] <= 0), made[:, j] + (made[:, j] >= 0)))
            ways.append((np.minimum(ways[0][0], ways[1][0]), np.maximum(ways[0][1], ways[1][1])))
        shown = decimals_of(real[:, j]) if len(real) else None
        fits = []
        for below, above in ways:
            cells = made[:, [j]], below[:, None], above[:, None]
            rec_low, rec_high, dead = _solved(*cells, np.zeros(1), pairs, n_base, patient=len(ways) > 1)
            most = _WRITTEN if exact[j] else min(int(decimals[j]), _WRITTEN)
            grid, p = _grid(rec_low[~dead], rec_high[~dead], most, reach[j])
            if (
                shown is not None
                and shown <= _WRITTEN
                and 10.0**-shown <= reach[j]
                and _share_off(rec_low[~dead], rec_high[~dead], shown) <= _WRONG
            ):
                # So many real rows lie on this grid, and none off it.
                grid, p = 10.0**-shown, min(p if grid == 10.0**-shown else 1.0, 1.0 / (len(real) + 1))
            on_grid = (
                _solved(*cells, np.array([grid]), pairs, n_base, patient=True)[2] if len(ways) > 1 else dead
            )
            fits.append((int(dead.sum() + on_grid.sum()), grid, p, below, above))
        wrong = np.array([fit[0] for fit in fits])
        # Rounded or cut off: what fits by far better, or either.
        best = int(wrong.argmin()) if len(fits) == 1 or wrong[:2].min() + _CLEAR <= wrong[:2].max() else 2
        _, step[j], p_grid[j], low[:, j], high[:, j] = fits[best]
        if exact[j] and not step[j]:
            # Exact numbers need no grid.
            p_grid[j] = 0.0
    return low, high, step, p_grid


def _share_off(low: FloatArray, high: FloatArray, decimals: int) -> float:
    step = 10.0**-decimals
    off = np.floor(high / step + 1e-6) < np.ceil(low / step - 1e-6)
    return float(off.mean()) if len(off) else 0.0


def _grid(low: FloatArray, high: FloatArray, decimals: int, reach: float) -> tuple[float, float]:
    """Return the coarsest power of ten on which all values may lie, 0 without one, and the chance of that."""
    for count in range(decimals + 1):
        step = 10.0**-count
        if step > reach:
            # All values would be one.
            continue
        width = (high - low) / step
        narrow = width < 1
        off = np.floor(high / step + 1e-6) < np.ceil(low / step - 1e-6)
        if narrow.any() and off.sum() <= _WRONG * narrow.sum():
            # Several grids are tried.
            chance = (decimals + 1) * _chance(low, high, step)
            if chance <= _GRID:
                return step, chance
    # Nothing shows that real values have fewer decimals than released ones.
    step = 10.0**-decimals
    if step > reach:
        return 0.0, 1.0
    return (step, _chance(low, high, step)) if _share_off(low, high, decimals) <= _WRONG else (0.0, 1.0)


def _chance(low: FloatArray, high: FloatArray, step: float) -> float:
    """Return how probable it is that all these intervals reach a point of a grid on which the values do not lie."""
    width = (high - low) / step
    off = np.floor(high / step + 1e-6) < np.ceil(low / step - 1e-6)
    narrow = (width < 1) & ~off
    by_chance = float(np.exp(np.log(np.maximum(width[narrow], 1e-9)).sum()))
    return min(1.0, by_chance + (float(off.mean()) if len(off) else 0.0))
