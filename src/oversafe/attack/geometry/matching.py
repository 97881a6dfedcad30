"""Recovered records held against real ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.spatial import KDTree

from oversafe._core.errors import InputError
from oversafe.attack.geometry.prepared import in_numbers
from oversafe.attack.geometry.shapes.points import BoolArray, FloatArray, IntArray
from oversafe.data.column import select_columns

# Values that agree to this share of their column's range are equal.
EQUAL = 1e-6


def match_records(
    records: Any,
    errors: pd.DataFrame,
    estimated: pd.DataFrame,
    ranges: FloatArray,
    filled_in: BoolArray,
    X_real: Any,
    tolerance: float | None,
    units: dict[int, pd.Timedelta],
) -> tuple[IntArray, BoolArray, BoolArray]:
    """Hold recovered records against real ones.

    Returns the row of the real table that each record equals, or -1, which distinct real records were
    recovered, and which records equal a real one but for what it lacks.
    """
    by_name = all(isinstance(t, pd.DataFrame) and t.columns.is_unique for t in (records, X_real))
    records, real = pd.DataFrame(records), pd.DataFrame(X_real)
    if by_name:
        missing = [name for name in records.columns if name not in real.columns]
        if missing:
            raise InputError(f"the real table lacks the column {missing[0]!r} of the attacked one; add it")
        real = select_columns(real, records.columns)
    elif real.shape[1] != records.shape[1]:
        raise InputError(
            f"the real table has {real.shape[1]} columns, the attacked one {records.shape[1]}; "
            "pass the same columns in the same order"
        )
    if not len(real):
        raise InputError("the real table is empty; pass the real minority records")
    records, real = in_numbers(records, units), in_numbers(real, units)
    used = np.flatnonzero(~np.isnan(ranges))
    # By position: pandas finds no repeats where a column is named NaN.
    numbers = real.iloc[:, used].set_axis(range(len(used)), axis=1).apply(pd.to_numeric, errors="coerce")
    # Records with the same gaps are equal too.
    first = np.flatnonzero(~numbers.duplicated().to_numpy())
    there = numbers.to_numpy(dtype=float, na_value=np.nan)[first]
    complete = np.flatnonzero(~np.isnan(there).any(axis=1))
    found = np.zeros(len(there), dtype=bool)
    nearest = np.full(len(records), -1, dtype=np.int64)
    blank = np.zeros(len(records), dtype=bool)
    if not len(records) or np.isnan(there).all():
        return nearest, found, blank
    # Missing where a column of the real table has no number at all.
    spread = np.fmax.reduce(there, axis=0) - np.fmin.reduce(there, axis=0)
    scale = np.fmax(ranges[used], spread)
    here, stated = records.iloc[:, used].to_numpy(dtype=float), errors.iloc[:, used].to_numpy(dtype=float)
    # Values that are not told are not compared.
    unknown, stated = np.isnan(here), np.nan_to_num(stated)
    told = np.flatnonzero(~unknown.any(axis=1))
    allowed = np.broadcast_to((EQUAL if tolerance is None else tolerance) * scale, here.shape)
    if tolerance is None:
        allowed = np.maximum(allowed, stated)
    # Where a column is filled in, only what was stated about it can be asked; the true value may be the very end.
    allowed = np.where(filled_in[used], np.maximum(allowed, stated + EQUAL * scale), allowed)
    unit = np.maximum(np.median(allowed, axis=0), 1e-300)
    close_to: Any = [[]] * len(told)
    if len(complete) and len(told):
        reach = float((allowed / unit).max())
        close_to = KDTree(there[complete] / unit).query_ball_point(here[told] / unit, reach, p=np.inf)
    for number, close in zip(told.tolist(), close_to, strict=True):
        those = complete[close]
        those = those[(np.abs(there[those] - here[number]) <= allowed[number]).all(axis=1)]
        found[those] = True
        if len(those):
            best = np.argmin((np.abs(there[those] - here[number]) / unit).max(axis=1))
            nearest[number] = first[those[best]]
    # What a real record lacks was filled in before the rows were made; the others of its values are its own. Where the
    # release has gaps of its own the value is told as an estimate, else nobody who has the release alone can know. An
    # estimate may also be farther off than its error.
    doubtful = estimated.iloc[:, used].to_numpy(dtype=bool)
    gaps = np.isnan(there)
    unmatched = nearest < 0
    if not gaps.any():
        unmatched &= (doubtful | unknown).any(axis=1)
    for number in np.flatnonzero(unmatched).tolist():
        agrees = np.abs(there - here[number]) <= allowed[number]
        excused = (gaps | doubtful[number] if tolerance is None else gaps) | unknown[number]
        own = np.flatnonzero((agrees | excused).all(axis=1) & (2 * agrees.sum(axis=1) > len(used)))
        found[own] = True
        if len(own):
            # The one that agrees in the most.
            best = own[np.argmax(agrees[own].sum(axis=1))]
            nearest[number] = first[best]
            blank[number] = bool((gaps[best] & ~doubtful[number] & ~unknown[number]).any())
    return nearest, found, blank


def of_other_classes(
    records: pd.DataFrame,
    how: tuple[pd.DataFrame, pd.DataFrame, FloatArray, BoolArray],
    nearest: IntArray,
    classes: Mapping[str, Any],
    units: dict[int, pd.Timedelta],
) -> pd.Series:
    """Return the other class that each record is a real one of; missing where it is of none, or of its own."""
    found = pd.Series([None] * len(records), dtype=object)
    for label, rows in classes.items():
        if len(rows) and len(records):
            theirs = match_records(records, *how, rows, None, units)[0]
            found[(theirs >= 0) & (nearest < 0) & found.isna().to_numpy()] = label
    return found
