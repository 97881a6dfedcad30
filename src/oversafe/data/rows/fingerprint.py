"""A digest of a table: of what it holds, or of how it is stored as well."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe.data.rows.sketches import mix


def table_digest(data: Any, *, ordered: bool = False) -> str:
    """Return a digest of a table; equal for equal tables, whatever the order of rows and columns.

    It is for recognising a table, not against forgery, and is only ever stored under a key.

    Parameters
    ----------
    data : DataFrame, array, or tuple of (X, y)
        The table, or its features and labels.
    ordered : bool
        Whether the order of rows and columns and their dtypes make another table, as they make other results.
    """
    frames = [_frame(part, i) for i, part in enumerate(data if isinstance(data, tuple) else (data,))]
    rows: Any = np.zeros(len(frames[0]), dtype=np.uint64)
    names = []
    for frame in frames:
        for position, name in enumerate(frame.columns):
            names.append(str(name))
            salt = int.from_bytes(hashlib.sha256(str(name).encode()).digest()[:8], "big") | 1
            hashed = _hashed(frame.iloc[:, position])
            # Mixed before the sum over the columns, so that values which trade places between columns show.
            rows = rows + mix(hashed ^ np.uint64(salt))
    if ordered:
        kinds = repr([(str(name), str(dtype)) for frame in frames for name, dtype in frame.dtypes.items()])
        return hashlib.sha256(kinds.encode() + rows.tobytes()).hexdigest()
    total = int(mix(rows).sum(dtype=np.uint64))
    text = "\x00".join([str(total), str(len(rows)), *sorted(names)])
    return hashlib.sha256(text.encode()).hexdigest()


def _frame(part: Any, position: int) -> pd.DataFrame:
    if isinstance(part, pd.DataFrame):
        return part
    if isinstance(part, pd.Series):
        return part.to_frame(part.name if part.name is not None else f"label {position}")
    array = np.asarray(part)
    return pd.DataFrame(array if array.ndim == 2 else array.reshape(len(array), -1))


def _hashed(column: pd.Series) -> NDArray[np.uint64]:
    """Return a number for each value."""
    try:
        return pd.util.hash_pandas_object(_plain(column), index=False).to_numpy()
    except Exception:
        # Whatever a record holds: an error, before or after a budget is charged, would tell of it.
        texts = np.fromiter(map(_text, column), dtype=object, count=len(column))
        return pd.util.hash_pandas_object(pd.Series(texts), index=False).to_numpy()


def _text(value: Any) -> str:
    """Return a value as a text that can be written down; of one that has none its type."""
    try:
        return str(value).encode(errors="backslashreplace").decode()
    except Exception:
        return type(value).__name__


def _plain(column: pd.Series) -> pd.Series:
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return column
    if pd.api.types.is_bool_dtype(column.dtype) or pd.api.types.is_numeric_dtype(column.dtype):
        # A column that is stored as another kind of number is the same column.
        with suppress(TypeError, ValueError):
            return column.astype("Float64").astype("float64")
    return column.astype(str).astype(object)
