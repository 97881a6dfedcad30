"""Numbers as a release has them written: with fewer decimals than the real ones, or in single precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oversafe.data.infer import column_decimals

FloatArray = NDArray[np.float64]

# Single precision holds at least so many digits, and as many as the second tell all its numbers apart.
_DIGITS_HELD, _DIGITS_TELLING = 6, 9
# Columns of full precision show it by a few rows; an oversampled table has the real ones first.
_FEW_ROWS = 12
# Within these bounds the digits are found by powers of ten that floats hold exactly.
_SMALL, _LARGE = 1e-13, 1e27
_POWERS = np.array([float(f"1e{power}") for power in range(23)])


def write_alike(parts: Sequence[FloatArray]) -> None:
    """Write the values of each column as those of the first part are: a rounded copy is a copy.

    Parameters
    ----------
    parts : sequence of arrays of shape (n_rows, n_columns)
        The same columns in several tables; all but the first are changed.
    """
    if len(parts) < 2:
        return
    ways: dict[_Way, list[int]] = {}
    for column, known in enumerate(_ways_of(parts[0])):
        if len(known) > 1:
            # Few digits can be either: it is the way that finds more of the real values.
            own, real = (part[:, column] for part in parts[:2])
            known.sort(key=lambda way: -int(np.isin(own, way(real)).sum()))
        for way in known[:1]:
            ways.setdefault(way, []).append(column)
    for way, columns in ways.items():
        for part in parts[1:]:
            part[:, columns] = way(part[:, columns])


@dataclass(frozen=True)
class _Way:
    """A way to write numbers: rounded to some decimals, then held in single precision, or printed from there."""

    decimals: int | None = None
    is_held: bool = False
    is_printed: bool = False

    def __call__(self, values: FloatArray) -> FloatArray:
        if self.decimals is not None:
            values = np.round(values, self.decimals)
        return _printed(values) if self.is_printed else _held(values) if self.is_held else values


def _ways_of(values: FloatArray) -> list[list[_Way]]:
    """Return for each column the ways in which its values may have been written; none for full precision."""
    decimals = column_decimals(values)
    most = _before_the_point(values)
    # Whole numbers of many digits are counts and codes, which differ in their last one too.
    fine = [i for i, own in enumerate(decimals) if own is None or (own and most[i] + own > _DIGITS_HELD)]
    held = _written_by(_held, values, fine)
    printed = set(_written_by(_printed, values, [i for i in fine if i not in set(held)]))
    before = dict(zip(held, column_decimals(_printed(values[:, held])), strict=True))
    ways = [[] if own is None else [_Way(own)] for own in decimals]
    for column, known in enumerate(ways):
        if column in before:
            known += [_Way(is_held=True)]
            known += [] if before[column] is None else [_Way(before[column], is_held=True)]
        elif column in printed:
            known += [_Way(is_printed=True)]
    return ways


def _before_the_point(values: FloatArray) -> NDArray[np.int64]:
    """Return how many digits the largest number of each column has before its decimals."""
    largest = np.abs(values).max(axis=0, initial=1.0, where=np.isfinite(values))
    return np.ceil(np.log10(largest)).astype(np.int64)


def _written_by(way: Callable[[FloatArray], FloatArray], values: FloatArray, columns: list[int]) -> list[int]:
    """Return in which of the columns all numbers are as a way of writing leaves them."""
    few = np.unique(np.linspace(0, len(values) - 1, _FEW_ROWS).astype(np.int64))
    for rows in (values[few], values):
        own = rows[:, columns]
        kept = ((way(own) == own) | ~np.isfinite(own)).all(axis=0)
        columns = [column for column, is_kept in zip(columns, kept, strict=True) if is_kept]
    return columns


def _held(values: FloatArray) -> FloatArray:
    """Return the nearest numbers of single precision."""
    with np.errstate(over="ignore", under="ignore"):
        return values.astype(np.float32).astype(np.float64)


def _printed(values: FloatArray) -> FloatArray:
    """Return numbers of single precision as they are printed: the fewest digits that tell them from all others."""
    nearest = _held(values).reshape(-1)
    result = nearest.copy()
    size = np.abs(nearest)
    near = (size >= _SMALL) & (size <= _LARGE)
    # What is nearest to a power of two is not always what tells it from the numbers below and above.
    plain = near & (np.frexp(size)[0] != 0.5)
    others = np.isfinite(size) & (size > 0) & ~plain
    result[others] = nearest[others].astype(np.float32).astype(str).astype(float)
    todo = np.flatnonzero(plain)
    power = np.floor(np.log10(size[todo])).astype(np.int64)
    for digits in range(_DIGITS_HELD, _DIGITS_TELLING + 1):
        own, places = nearest[todo], digits - 1 - power
        # These powers of ten are exact, so that a quotient of them is rounded as text is when it is read.
        up, down = _POWERS[np.maximum(places, 0)], _POWERS[np.maximum(-places, 0)]
        shorter = np.rint(own * up / down) * down / up
        short = _held(shorter) == own
        result[todo[short]] = shorter[short]
        todo, power = todo[~short], power[~short]
    return result.reshape(values.shape)
