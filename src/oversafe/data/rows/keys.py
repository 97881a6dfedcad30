"""Keys of rows and values: equal for equal ones, in all tables that are held against each other.

Real rows are written as the released ones are before they are compared: a copy that was rounded is a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.checks import check_pandas
from oversafe._core.errors import InputError
from oversafe.data._kernels import row_hashes
from oversafe.data.column import select_columns
from oversafe.data.rows.match_precision import write_alike
from oversafe.data.rows.values import keys_of

# For each table a number per row.
Numbers = dict[str, NDArray[np.int64]]
FloatArray = NDArray[np.float64]

# Columns of numbers are compared several at a time: many of a wide table, few of a long one.
_VALUES_AT_ONCE = 2**22


def is_copy(rows: Any, real: Any) -> NDArray[np.bool_]:
    """Return which released rows are equal to a real one rounded alike, in the columns that both tables share."""
    numbers = row_numbers({"release": rows, "real": real})
    return np.isin(numbers["release"], numbers["real"])


def is_copied(real: Any, release: Any) -> NDArray[np.bool_]:
    """Return which real rows stand in a release, rounded as it is, in the columns that both tables share."""
    numbers = row_numbers({"release": release, "real": real})
    return np.isin(numbers["real"], numbers["release"])


def row_keys(rows: Any) -> NDArray[np.int64]:
    """Return a number for each row, the same for equal ones."""
    return row_numbers({"real": rows})["real"]


def aligned(tables: dict[str, Any]) -> dict[str, pd.DataFrame]:
    """Return the tables in the columns that they share: by name, or by position if one is an array.

    A holdout or training table may be None, and is then left out.
    """
    tables = {
        name: table for name, table in tables.items() if table is not None or name in ("release", "real")
    }
    frames = {}
    for name, table in tables.items():
        check_pandas(table)
        if not isinstance(table, pd.DataFrame) and np.ndim(table) != 2:
            raise InputError(f"the {name} table has {np.ndim(table)} dimension(s), expected 2")
        frames[name] = pd.DataFrame(table)
        if not len(frames[name]):
            raise InputError(f"the {name} table has no rows; pass at least one")
        if frames[name].columns.has_duplicates:
            twice = frames[name].columns[frames[name].columns.duplicated()][0]
            raise InputError(f"the {name} table has two columns named {twice!r}; rename one")
    if not all(isinstance(table, pd.DataFrame) for table in tables.values()):
        widths = {name: frame.shape[1] for name, frame in frames.items()}
        if len(set(widths.values())) > 1:
            raise InputError(
                f"the tables differ in their numbers of columns ({widths}); pass the same columns"
            )
        frames = {name: frame.set_axis(range(frame.shape[1]), axis=1) for name, frame in frames.items()}
    shared = [c for c in frames["real"].columns if all(c in frame.columns for frame in frames.values())]
    if not shared:
        raise InputError(f"the tables {', '.join(frames)} have no column in common; name the columns alike")
    return {name: select_columns(frame, shared) for name, frame in frames.items()}


def row_numbers(tables: dict[str, Any]) -> Numbers:
    """Number the rows of the tables so that equal rows have equal numbers."""
    frames = aligned(tables)
    floats = _float_columns(frames)
    others = (codes for _, codes in _other_codes(frames, np.flatnonzero(~floats)))
    return combined(chain(_float_codes(frames, np.flatnonzero(floats)), others))


def column_codes(tables: dict[str, Any]) -> Iterator[tuple[int, Numbers]]:
    """Number the values of each column so that equal values have equal numbers in all tables.

    Yields the place of a column among those that the tables share, and the numbers; in no order.
    """
    frames = aligned(tables)
    floats = _float_columns(frames)
    for chosen, parts in _float_blocks(frames, np.flatnonzero(floats)):
        for position, values in zip(chosen.tolist(), np.concatenate(parts).T, strict=True):
            yield position, _split(pd.factorize(values)[0] + 1, frames)
    yield from _other_codes(frames, np.flatnonzero(~floats))


def _split(codes: NDArray[np.int64], frames: dict[str, pd.DataFrame]) -> Numbers:
    limits = np.cumsum([len(frame) for frame in frames.values()])[:-1]
    return dict(zip(frames, np.split(codes.astype(np.int64), limits), strict=True))


def _float_columns(frames: dict[str, pd.DataFrame]) -> NDArray[np.bool_]:
    """Return which columns are plain numbers that floats hold exactly, in all tables."""
    found = np.ones(frames["real"].shape[1], dtype=bool)
    for frame in frames.values():
        dtypes = frame.dtypes.to_numpy()
        whole = np.array([isinstance(dtype, np.dtype) and dtype.kind in "iu" for dtype in dtypes])
        found &= whole | [isinstance(dtype, np.dtype) and dtype.kind in "fb" for dtype in dtypes]
        for column in np.flatnonzero(whole & found):
            found[column] = _fits_float(frame.iloc[:, column].to_numpy())
    return found


def _float_blocks(
    frames: dict[str, pd.DataFrame], columns: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], list[FloatArray]]]:
    """Yield several columns of floats at a time, and their values in each table, written as in the first."""
    at_once = max(1, _VALUES_AT_ONCE // sum(map(len, frames.values())))
    for begin in range(0, len(columns), at_once):
        chosen = columns[begin : begin + at_once]
        parts = [
            np.array(frame.iloc[:, chosen].to_numpy(dtype=float), order="C") for frame in frames.values()
        ]
        write_alike(parts)
        yield chosen, parts


def _float_codes(frames: dict[str, pd.DataFrame], columns: NDArray[np.int64]) -> Iterator[Numbers]:
    """Number the rows by several columns of floats at a time."""
    for _, parts in _float_blocks(frames, columns):
        values = np.concatenate(parts)
        # There is one way to be no number.
        values[np.isnan(values)] = np.nan
        yield _split(pd.factorize(row_hashes(values))[0], frames)


def _other_codes(
    frames: dict[str, pd.DataFrame], columns: NDArray[np.int64]
) -> Iterator[tuple[int, Numbers]]:
    """Number the values of columns that are not plain numbers."""
    for position in columns.tolist():
        parts = [frame.iloc[:, position] for frame in frames.values()]
        if all(_are_numbers(part) for part in parts):
            values = _joined(_as_released([_plain(part) for part in parts]))
        else:
            values = np.concatenate([keys_of(part) for part in parts])
        yield position, _split(pd.factorize(values, use_na_sentinel=True)[0] + 1, frames)


def _joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    if len({part.dtype for part in parts}) > 1:
        parts = [part.astype(object) for part in parts]
    return np.concatenate(parts)


def _are_numbers(column: pd.Series) -> bool:
    return pd.api.types.is_any_real_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype)


def combined(columns: Iterable[Numbers]) -> Numbers:
    """Number rows by the numbers of their values."""
    numbers: Any = 0
    for column in columns:
        codes = np.concatenate(list(column.values()))
        # Renumbering after each column keeps the product below the square of the number of rows.
        numbers = pd.factorize(numbers * (int(codes.max()) + 1) + codes)[0].astype(np.int64)
    limits = np.cumsum([len(part) for part in column.values()])[:-1]
    return dict(zip(column, np.split(numbers, limits), strict=True))


def _as_released(parts: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """Return the values of a column as its first part has them written."""
    if all(part.dtype == np.float64 for part in parts):
        parts = [part[:, None].copy() for part in parts]
        write_alike(parts)
        parts = [part[:, 0] for part in parts]
    return parts


def as_released(real: Any, release: Any) -> pd.DataFrame:
    """Return the real rows in the columns of a release, rounded as it is."""
    frames = aligned({"release": release, "real": real})
    floats = _float_columns(frames)
    found: dict[int, Any] = {}
    for chosen, parts in _float_blocks(frames, np.flatnonzero(floats)):
        found |= dict(zip(chosen.tolist(), parts[1].T, strict=True))
    for position in np.flatnonzero(~floats).tolist():
        columns = [_plain(frame.iloc[:, position]) for frame in frames.values()]
        found[position] = _as_released(columns)[1]
    made = pd.DataFrame({position: found[position] for position in sorted(found)}, index=frames["real"].index)
    return made.set_axis(frames["real"].columns, axis=1)


def _plain(column: pd.Series) -> NDArray[Any]:
    """Return the values of a column in a form in which equal values of different dtypes are equal."""
    if pd.api.types.is_bool_dtype(column.dtype) and not column.hasnans:
        return column.to_numpy(dtype=float)
    if pd.api.types.is_integer_dtype(column.dtype) and not column.hasnans:
        values = column.to_numpy()
        return values.astype(float if _fits_float(values) else object)
    if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_complex_dtype(column.dtype):
        return column.to_numpy(dtype=float, na_value=np.nan)
    return column.astype(object).to_numpy()


def _fits_float(whole: NDArray[Any]) -> bool:
    """Whether a float holds each of these whole numbers exactly."""
    return bool(whole.min() > -(2**53) and whole.max() < 2**53)
