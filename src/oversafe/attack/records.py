"""Tables of mixed kinds side by side as numbers, and the nearest rows of one to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from oversafe._core.errors import InputError
from oversafe._core.text import listed
from oversafe.attack import _linkage_kernels
from oversafe.data.cells import numbers_in
from oversafe.data.rows.keys import aligned
from oversafe.data.rows.values import keys_of

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# Where a missing value stands: farther from every scaled number than a distance counts, and on itself.
_MISSING_AT = 3.0
# Below this many comparisons of values a thread costs more than it saves.
_WORK_OF_A_THREAD = 20_000_000


@dataclass(frozen=True)
class Records:
    """Tables in their shared columns, as numbers that mean the same in each.

    Parameters
    ----------
    names : tuple
        The shared columns, those with an order first.
    n_numbers : int
        How many of them have an order: numbers, dates, ordered categories. The others are categories.
    codes : dict of arrays
        For each table a column per row: numbers as they are, dates in microseconds since 1970,
        categories by their position, NaN for what is missing.
    columns : tuple of _Coded
        How each column was read.
    """

    names: tuple[Any, ...]
    n_numbers: int
    codes: dict[str, FloatArray]
    columns: tuple[_Coded, ...]

    def positions(self, names: Sequence[Any], what: str) -> IntArray:
        """Return where the named columns stand, or say which one is not shared."""
        place = {name: i for i, name in enumerate(self.names)}
        for name in names:
            if name not in place:
                raise InputError(
                    f"{what} names {name!r}, which is not a column that all tables share; "
                    f"they share {listed([str(name) for name in self.names])}"
                )
        return np.array([place[name] for name in names], dtype=np.int64)

    def scaled(self) -> dict[str, FloatArray]:
        """Return the codes with each number's range over all tables as 1 and no NaN, for distances."""
        scaled = {table: codes.copy() for table, codes in self.codes.items()}
        for column in range(len(self.names)):
            parts = [codes[column] for codes in scaled.values()]
            gaps = [np.isnan(part) for part in parts]
            if column < self.n_numbers:
                low = min((np.nanmin(p) for p, g in zip(parts, gaps, strict=True) if not g.all()), default=0)
                high = max((np.nanmax(p) for p, g in zip(parts, gaps, strict=True) if not g.all()), default=0)
                # A range may be more than a float can hold; its half is not.
                half = 0.5 if high / 2 - low / 2 > np.finfo(float).max / 2 else 1.0
                for part in parts:
                    part *= half
                    part -= half * low
                    part /= (half * high - half * low) or 1.0
            for part, gap in zip(parts, gaps, strict=True):
                part[gap] = _MISSING_AT
        return scaled

    def text(self, column: int, code: float) -> str:
        """Return a code as a person reads it."""
        coded = self.columns[column]
        if np.isnan(code):
            return "missing"
        if coded.texts is not None:
            return repr(coded.texts[int(code)])
        if coded.kind == "date":
            return str(pd.Timestamp(int(code), unit="us"))
        # Exactly, so that a predicate can be tried by hand.
        return str(int(code)) if float(code).is_integer() else repr(float(code))


@dataclass(frozen=True)
class _Coded:
    """One column of several tables as numbers, and the texts of its categories."""

    kind: Literal["number", "date", "ordered", "category"]
    parts: list[FloatArray]
    texts: tuple[str, ...] | None = None


def read_records(tables: dict[str, Any]) -> Records:
    """Return tables in the columns that they share, as numbers.

    A column is a number when it is one in every table (text that prints numbers counts beside numbers), a
    date when it is one everywhere, ordered when all tables order the same categories; else it is a
    category, matched by value however it is stored.

    Raises
    ------
    InputError
        If a table is empty, the tables share no column, or a number is infinite.
    """
    frames = aligned(tables)
    shared = list(frames["real"].columns)
    read = {name: _code([frame[name] for frame in frames.values()]) for name in shared}
    names = tuple(sorted(shared, key=lambda name: read[name].kind == "category"))
    codes = {
        table: np.ascontiguousarray(np.stack([read[name].parts[number] for name in names]))
        for number, table in enumerate(frames)
    }
    for table, matrix in codes.items():
        if (infinite := np.isinf(matrix).any(axis=1)).any():
            raise InputError(
                f"column {names[int(np.argmax(infinite))]!r} of the {table} table has infinite values; "
                "remove them or mark them as missing"
            )
    columns = tuple(replace(read[name], parts=[]) for name in names)
    return Records(names, sum(column.kind != "category" for column in columns), codes, columns)


def _code(parts: list[pd.Series]) -> _Coded:
    """Return one column of each table as numbers."""
    if all(types.is_datetime64_any_dtype(part.dtype) for part in parts):
        return _Coded("date", [_microseconds(part) for part in parts])
    first = parts[0].dtype
    if isinstance(first, pd.CategoricalDtype) and first.ordered and all(p.dtype == first for p in parts):
        places = [part.cat.codes.to_numpy(dtype=np.float64) for part in parts]
        return _Coded(
            "ordered", [np.where(p < 0, np.nan, p) for p in places], tuple(map(str, first.categories))
        )
    if any(_is_number(part.dtype) for part in parts):
        numbers = [number for part in parts if (number := _numbers(part)) is not None]
        if len(numbers) == len(parts):
            return _Coded("number", numbers)
    codes, distinct = pd.factorize(np.concatenate([keys_of(part) for part in parts]), use_na_sentinel=True)
    plain = np.where(codes < 0, np.nan, codes.astype(np.float64))
    limits = np.cumsum([len(part) for part in parts])[:-1]
    return _Coded("category", np.split(plain, limits), tuple(map(str, distinct)))


def _is_number(dtype: Any) -> bool:
    return types.is_any_real_numeric_dtype(dtype) or types.is_bool_dtype(dtype)


def _numbers(part: pd.Series) -> FloatArray | None:
    """Return a column as floats, or None if it holds something else than numbers."""
    if not _is_number(part.dtype):
        numbers = numbers_in(part)
        return None if (np.isnan(numbers) & part.notna().to_numpy()).any() else numbers
    return part.to_numpy(dtype=np.float64, na_value=np.nan)


def _microseconds(part: pd.Series) -> FloatArray:
    if part.dt.tz is not None:
        part = part.dt.tz_convert("UTC").dt.tz_localize(None)
    whole = part.to_numpy().astype("datetime64[us]").astype(np.int64)
    return np.where(part.isna().to_numpy(), np.nan, whole.astype(np.float64))


def nearest(
    table: FloatArray,
    n_numbers: int,
    targets: FloatArray,
    uses: BoolArray,
    n_neighbors: int = 1,
    *,
    skip: IntArray | None = None,
    squared: bool = False,
    seed: int = 0,
    n_jobs: int | None = None,
) -> tuple[IntArray, FloatArray]:
    """Return the nearest rows of a scaled table to each target, and their distances.

    Parameters
    ----------
    table : array of shape (n_columns, n_rows)
        From :meth:`Records.scaled`.
    n_numbers : int
        How many of the columns are numbers; they come first.
    targets : array of shape (n_targets, n_columns)
        One target per row.
    uses : array of bool, of shape (n_targets, n_columns)
        The columns in which a target is compared.
    n_neighbors : int
        How many rows to find; a table with fewer gives -1 and an infinite distance.
    skip : array of int, optional
        For each target a row that it must not find, or -1.
    squared : bool
        Whether squares of the differences are summed (Euclid) rather than the differences (Gower).
    seed : int
        For the order among rows at the same distance.
    n_jobs : int, optional
        Number of threads, as in joblib; a small search takes one.

    Returns
    -------
    rows : array of shape (n_targets, n_neighbors)
        Nearest first.
    distances : array of the same shape
        Sums over the columns.
    """
    from joblib import Parallel, delayed, effective_n_jobs

    skip = np.full(len(targets), -1, dtype=np.int64) if skip is None else skip
    work = int(uses.sum()) * table.shape[1]
    jobs = max(1, min(effective_n_jobs(n_jobs), work // _WORK_OF_A_THREAD, len(targets)))
    parts = np.array_split(np.arange(len(targets)), jobs)
    found = Parallel(n_jobs=jobs, prefer="threads")(
        delayed(_linkage_kernels.nearest_rows)(
            table,
            n_numbers,
            np.ascontiguousarray(targets[part]),
            np.ascontiguousarray(uses[part]),
            skip[part],
            n_neighbors,
            squared,
            # Another number for each part, or targets in the same place of two parts would share their order.
            seed + int(part[0]) if len(part) else seed,
        )
        for part in parts
    )
    return np.concatenate([rows for rows, _ in found]), np.concatenate([far for _, far in found])
