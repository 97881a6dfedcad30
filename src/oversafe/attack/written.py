"""Numbers as a release has them written: with fewer decimals than the real ones, or in single precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from oversafe.data.infer import column_decimals

FloatArray = NDArray[np.float64]
_Way = Callable[[FloatArray], FloatArray]

# Single precision holds at least so many digits, and as many as the second tell all its numbers apart.
_DIGITS_HELD, _DIGITS_TELLING = 6, 9
# Columns of full precision show it by a few rows; an oversampled table has the real ones first.
_FEW_ROWS = 12
# By so many values is told which of two ways of writing finds more of the real ones.
_COMPARED = 1000


def write_alike(parts: Sequence[FloatArray]) -> None:
    """Write the values of each column as those of the first part are: a rounded copy is a copy.

    Parameters
    ----------
    parts : sequence of arrays of shape (n_rows, n_columns)
        The same columns in several tables; all but the first are changed.
    """
    first = parts[0]
    decimals = column_decimals(first)
    ways: dict[_Way, list[int]] = {}
    most = _before_the_point(first)
    single = _in_single(
        first, [i for i, own in enumerate(decimals) if own is None or most[i] + own > _DIGITS_HELD]
    )
    rounding: dict[int | None, _Way] = {
        own: partial(_rounded, decimals=own) for own in set(decimals) if own is not None
    }
    for column, own in enumerate(decimals):
        known = [way for way in (rounding.get(own), single.get(column)) if way is not None]
        if len(known) > 1 and len(parts) > 1:
            # Few digits can be either.
            found = [np.isin(first[:_COMPARED, column], way(parts[1][:, column])).sum() for way in known]
            known = [known[int(np.argmax(found))]]
        for way in known[:1]:
            ways.setdefault(way, []).append(column)
    for way, columns in ways.items():
        for part in parts[1:]:
            part[:, columns] = way(part[:, columns])


def _rounded(values: FloatArray, decimals: int) -> FloatArray:
    return np.round(values, decimals)


def _before_the_point(values: FloatArray) -> NDArray[np.int64]:
    """Return how many digits the largest number of each column has before its decimals."""
    largest = np.abs(values).max(axis=0, initial=1.0, where=np.isfinite(values))
    return np.ceil(np.log10(largest)).astype(np.int64)


def _in_single(values: FloatArray, columns: list[int]) -> dict[int, _Way]:
    """Return which of the columns have numbers of single precision only, and how others are brought to it."""
    found: dict[int, _Way] = {}
    few = np.unique(np.linspace(0, len(values) - 1, _FEW_ROWS).astype(np.int64))
    for way in (_held, _printed):
        open_ = np.array([column for column in columns if column not in found], dtype=np.int64)
        for own in (values[few], values):
            own = own[:, open_]
            open_ = open_[((way(own) == own) | ~np.isfinite(own)).all(axis=0)]
        found |= dict.fromkeys(open_.tolist(), way)
    return found


def _held(values: FloatArray) -> FloatArray:
    """Return the nearest numbers of single precision."""
    with np.errstate(over="ignore", under="ignore"):
        return values.astype(np.float32).astype(np.float64)


def _printed(values: FloatArray) -> FloatArray:
    """Return numbers of single precision as they are printed: the fewest digits that tell them from all others."""
    nearest = _held(values)
    result = nearest.copy()
    todo = np.isfinite(nearest) & (nearest != 0)
    power = np.zeros(values.shape)
    power[todo] = np.floor(np.log10(np.abs(nearest[todo])))
    # The nearest of few digits; of a power of two the next one may be nearer to it than to the number below.
    for digits, step in product(range(_DIGITS_HELD, _DIGITS_TELLING + 1), (0, 1, -1)):
        places = digits - 1 - power[todo]
        # Powers of ten up to 22 are exact, and so is what is divided by them rounded as text is when read.
        up, down = 10.0 ** np.clip(places, 0, 22), 10.0 ** np.clip(-places, 0, 22)
        shorter = (np.rint(nearest[todo] * up / down) + step) * down / up
        short = _held(shorter) == nearest[todo]
        done = tuple(axis[short] for axis in np.nonzero(todo))
        result[done] = shorter[short]
        todo[done] = False
    return result
