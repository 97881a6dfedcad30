"""What kind of values a column holds, by a noisy vote of its rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from oversafe.data.cells import as_date, as_number, is_marker
from oversafe.data.column import RESOLUTIONS, Column
from oversafe.privacy.accountant import Accountant

# The cells of the vote: what a value needs to be written down exactly.
_MISSING, _BINARY, _WHOLE = 0, 1, 2
_MOST_DECIMALS = 12
_FULL = _WHOLE + _MOST_DECIMALS + 1
_DATES = _FULL + 1
_TEXT = _DATES + len(RESOLUTIONS)
_N_CELLS = _TEXT + 1
# What fewer of the rows than this need, a column is not given.
_RARE = 0.01
_NANOSECONDS = {
    "D": 86_400 * 10**9,
    "h": 3600 * 10**9,
    "min": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 1000,
}


def rows_for_kinds(accountant: Accountant, share: float, n_columns: int) -> int:
    """Return how many rows a vote on the kinds of columns needs so that noise does not decide it."""
    # A family of kinds is a sum over cells, whose noise adds up; five deviations are hardly ever reached.
    return math.ceil(5 * math.sqrt(_N_CELLS) * accountant.deviation(share, tables=n_columns))


def private_kinds(
    table: pd.DataFrame, names: Sequence[str], *, accountant: Accountant, share: float
) -> dict[str, Column]:
    """Return each column's kind, decimals or resolution, and whether values are missing; no bounds or categories.

    Each row says by itself what its value needs, however the column is stored, so one odd row is one vote.

    Parameters
    ----------
    table : DataFrame
        The table.
    names : sequence of str
        The columns that are voted on.
    accountant : Accountant
        Who pays.
    share : float
        Of the whole budget, for all of them.
    """
    votes = np.array([np.bincount(_cells(table[name]), minlength=_N_CELLS) for name in names])
    noisy = accountant.counts(votes, share, what="kinds of the columns", tables=len(names))
    doubt = accountant.doubt(share, 0.01 / _N_CELLS, tables=len(names))
    return {name: _column(name, row, doubt) for name, row in zip(names, noisy, strict=True)}


def _column(name: str, votes: NDArray[np.int64], doubt: float) -> Column:
    """Return the column that most of its rows ask for."""
    missing = bool(votes[_MISSING] > doubt)
    families = [votes[_BINARY:_DATES].sum(), votes[_DATES:_TEXT].sum(), votes[_TEXT]]
    family = int(np.argmax(families))
    rare = max(doubt, _RARE * families[family])
    if family == 2:
        return Column(name, "categorical", "object", missing)
    if family == 1:
        finest = _finest(votes[_DATES:_TEXT], rare)
        return Column(name, "datetime", "datetime64[us]", missing, resolution=RESOLUTIONS[finest])
    finest = _finest(votes[_BINARY:_DATES], rare) + _BINARY
    if finest == _BINARY:
        return Column(name, "boolean", "int64", missing, categories=(0, 1))
    if finest == _WHOLE:
        return Column(name, "integer", "int64", missing)
    return Column(
        name, "continuous", "float64", missing, decimals=None if finest == _FULL else finest - _WHOLE
    )


def _finest(votes: NDArray[np.int64], rare: float) -> int:
    """Return the finest cell that more than a few rows ask for."""
    return int(np.flatnonzero([True, *(votes[1:] > rare)])[-1])


def _cells(values: pd.Series) -> NDArray[np.int64]:
    """Return what each value needs, each by itself."""
    if types.is_any_real_numeric_dtype(values.dtype) or types.is_bool_dtype(values.dtype):
        return _number_cells(values.to_numpy(dtype=np.float64, na_value=np.nan))
    if values.dtype == object:
        return np.array([_cell(value) for value in values], dtype=np.int64)
    codes, distinct = pd.factorize(values)
    cells = np.array([*(_cell(value) for value in distinct), _MISSING], dtype=np.int64)
    return cells[codes]


def _cell(value: Any) -> int:
    if value is None or value is pd.NA or value is pd.NaT:
        return _MISSING
    if isinstance(value, float | np.floating | complex | np.complexfloating) and value != value:
        return _MISSING
    if not isinstance(value, datetime | np.datetime64):
        number = as_number(value)
        if number == number:
            return int(_number_cells(np.array([number]))[0])
    if isinstance(value, np.datetime64 | np.timedelta64) and np.isnat(value):
        return _MISSING
    if isinstance(value, str):
        if is_marker(value):
            return _MISSING
    elif not isinstance(value, date | np.datetime64):
        return _TEXT
    stamp = as_date(value)
    if stamp is pd.NaT:
        return _TEXT
    within = _nanoseconds_of_day(stamp if stamp.tz is None else stamp.tz_convert("UTC"))
    return _DATES + next(
        (i for i, unit in enumerate(RESOLUTIONS[:-1]) if within % _NANOSECONDS[unit] == 0), 6
    )


def _nanoseconds_of_day(stamp: pd.Timestamp) -> int:
    seconds = stamp.hour * 3600 + stamp.minute * 60 + stamp.second
    return (seconds * 10**6 + stamp.microsecond) * 1000 + stamp.nanosecond


def _number_cells(numbers: NDArray[np.float64]) -> NDArray[np.int64]:
    cells = np.full(len(numbers), _FULL, dtype=np.int64)
    with np.errstate(invalid="ignore", over="ignore"):
        for decimals in range(_MOST_DECIMALS, 0, -1):
            # Beyond 15 significant digits every float looks rounded.
            exact = (np.round(numbers, decimals) == numbers) & (np.abs(numbers) < 10.0 ** (15 - decimals))
            cells[exact] = _WHOLE + decimals
        cells[np.rint(numbers) == numbers] = _WHOLE
    cells[(numbers == 0) | (numbers == 1)] = _BINARY
    cells[np.isnan(numbers)] = _MISSING
    return cells
