"""Which rows are real by their decimals: measured values have few, interpolated ones as many as a float holds."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from oversafe.attack.geometry.shapes.points import BoolArray, FloatArray

# Measured values have at most this many decimals, computed ones more than the second.
_FEW = 6
_MANY = 8
# How many columns must tell about a row, and how many rows and values of each kind a column must have.
_COLUMNS = 2
_LEAST = 5
# The share of the rows, or of a column's values, that may be in doubt.
_IN_DOUBT = 0.02
# The share of the rows about which they must tell: tables of many decimals have a few short values too.
_TOLD = 0.9
# The last digits of a float are those of the arithmetic: beyond so many steps every number seems to be whole.
_STEPS = 2.0**44


@dataclass(frozen=True)
class Told:
    """What the decimals of a table tell.

    Parameters
    ----------
    real, added : array of bool
        Which rows they show to be real, and which to be computed.
    columns : tuple
        The names of the columns that tell.
    """

    real: BoolArray
    added: BoolArray
    columns: tuple[Hashable, ...]


def told_by_decimals(frame: pd.DataFrame) -> Told | None:
    """Return which rows are measured and which computed, if their decimals show it; else None.

    A row between two others has as many decimals as a float holds in all columns in which they differ. It is clear
    only when nearly all rows have either few decimals in several columns and many in none, or many in several and in
    most. In each column its most frequent value is left aside: it may be a bound, or stand for "none".

    Parameters
    ----------
    frame : DataFrame
        The table.
    """
    few, many, columns = [], [], []
    floats = [i for i, dtype in enumerate(frame.dtypes) if pd.api.types.is_float_dtype(dtype)]
    # Of the others some may hold lists, which nothing tells whether they repeat.
    # By position: pandas finds no repeats where a column is named NaN.
    once = ~frame.iloc[:, floats].set_axis(range(len(floats)), axis=1).duplicated().to_numpy()
    for position in floats:
        values = frame.iloc[:, position].to_numpy(dtype=float, na_value=np.nan)
        short, long = _is_whole(values, _FEW), ~_is_whole(values, _MANY) & ~np.isnan(values)
        kinds, counts = np.unique(values[short], return_counts=True)
        if (
            min(len(kinds) - 1, int(long.sum())) >= _LEAST
            and _between(values[long], kinds)
            and _hardly_repeat(values[long & once])
        ):
            short &= values != kinds[counts.argmax()]
            few.append(short)
            many.append(long)
            columns.append(frame.columns[position])
    if len(columns) < _COLUMNS:
        return None
    n_few, n_many = np.sum(few, axis=0), np.sum(many, axis=0)
    real = (n_few >= _COLUMNS) & (n_many == 0)
    added = (n_many >= _COLUMNS) & (n_many >= n_few)
    mixed = (n_many > 0) & (n_few > n_many)
    if min(real.sum(), added.sum()) < _LEAST or mixed.sum() > _IN_DOUBT * added.sum():
        return None
    if (real | added).mean() < _TOLD:
        return None
    return Told(real, added, tuple(columns))


def _is_whole(values: FloatArray, decimals: int) -> BoolArray:
    """Return which values have no more decimals than these."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # Of a large number a float holds fewer decimals: it is told by those.
        held = np.floor(np.log10(_STEPS / np.maximum(np.abs(values), 1)))
        steps = values * 10.0 ** np.clip(held, 0, decimals)
        near: BoolArray = np.abs(steps - np.round(steps)) <= 4 * np.finfo(float).eps * np.maximum(
            np.abs(steps), 1
        )
    return near


def _between(inner: FloatArray, outer: FloatArray) -> bool:
    """Whether values lie within the range of others, as interpolated ones do; gaps may hide an end of the range."""
    return bool(((inner < outer.min()) | (inner > outer.max())).mean() <= _IN_DOUBT)


def _hardly_repeat(values: FloatArray) -> bool:
    """Whether values differ, as interpolated ones do; converted from other units they are as coarse as before."""
    return len(np.unique(values)) >= (1 - _IN_DOUBT) * len(values)
