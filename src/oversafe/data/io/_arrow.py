"""Between pandas and Arrow: types, categories and missing values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pandas as pd
import pyarrow as pa

from oversafe._core.errors import InputError

# What Parquet itself keeps of a category column depends on its type and size, so the levels are stored too.
_LEVELS = b"oversafe:categories"
_ORDERED = b"oversafe:ordered"

_NULLABLE = {
    pa.bool_(): pd.BooleanDtype(),
    pa.int8(): pd.Int8Dtype(),
    pa.int16(): pd.Int16Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.uint8(): pd.UInt8Dtype(),
    pa.uint16(): pd.UInt16Dtype(),
    pa.uint32(): pd.UInt32Dtype(),
    pa.uint64(): pd.UInt64Dtype(),
}


def check_names(names: Iterable[Any], shown: str) -> None:
    """Refuse columns without a name, and names that occur twice."""
    counts = Counter(str(name) for name in names)
    for position, name in enumerate(names, start=1):
        if not str(name).strip():
            raise InputError(
                f"column {position} of {shown} has no name; name it, or remove it if it only counts the rows"
            )
    if repeated := [repr(name) for name, count in counts.items() if count > 1]:
        raise InputError(
            f"{shown} has more than one column named {', '.join(repeated[:5])}; rename all but one"
        )


def to_frame(table: pa.Table) -> pd.DataFrame:
    """Return an Arrow table as a DataFrame with the dtypes that it was written with."""
    levels = {}
    for i, field in enumerate(table.schema):
        if field.metadata and _LEVELS in field.metadata:
            levels[field.name] = field.metadata
        if pa.types.is_decimal(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(pa.float64()))
    frame = table.unify_dictionaries().to_pandas(date_as_object=False)
    if not isinstance(frame.index, pd.RangeIndex):
        named = all(name is not None for name in frame.index.names)
        frame = frame.reset_index(drop=not named)
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name not in frame:
            continue
        if column.null_count and column.type in _NULLABLE and frame[name].dtype != _NULLABLE[column.type]:
            frame[name] = column.to_pandas(types_mapper=_NULLABLE.get)
        if name in levels:
            frame[name] = _categorical(frame[name], levels[name])
    return frame


def _categorical(values: pd.Series, metadata: dict[bytes, bytes]) -> pd.Series:
    with pa.ipc.open_stream(metadata[_LEVELS]) as stream:
        levels = stream.read_all().column(0).to_pandas()
    # Another file of the same folder may have more.
    more = pd.Series(values.dropna().unique()).astype(levels.dtype)
    levels = pd.concat([levels, more[~more.isin(levels)]])
    return values.astype(pd.CategoricalDtype(levels, ordered=metadata[_ORDERED] == b"1"))


def to_arrow(frame: pd.DataFrame) -> pa.Table:
    """Return a DataFrame as an Arrow table that remembers the categories and their order."""
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        for name in frame.columns:
            try:
                pa.array(frame[name], from_pandas=True)
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                raise InputError(
                    f"column {str(name)!r} cannot be stored ({reason_of(error)}); make it all text"
                ) from None
        raise
    schema = table.schema
    for i, name in enumerate(frame.columns):
        dtype = frame[name].dtype
        if isinstance(dtype, pd.CategoricalDtype):
            levels = table.field(i).type.value_type
            stored = pa.table({"": pa.array(dtype.categories, levels)})
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, stored.schema) as stream:
                stream.write_table(stored)
            metadata = {_LEVELS: sink.getvalue().to_pybytes(), _ORDERED: b"1" if dtype.ordered else b"0"}
            schema = schema.set(i, schema.field(i).with_metadata(metadata))
    return pa.Table.from_arrays(table.columns, schema=schema)


def plain_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with categories as the values they stand for, which every database can store."""
    plain = frame.copy(deep=False)
    plain.columns = [str(name) for name in frame.columns]
    for name in plain.columns:
        if isinstance(plain[name].dtype, pd.CategoricalDtype):
            dtype = plain[name].cat.categories.dtype
            dtype = _NULLABLE.get(_arrow_type(dtype), dtype) if plain[name].isna().any() else dtype
            plain[name] = plain[name].astype(dtype)
        elif plain[name].isna().all():
            plain[name] = plain[name].astype(float)
    return plain


def _arrow_type(dtype: Any) -> pa.DataType | None:
    with suppress(pa.ArrowException, NotImplementedError, TypeError):
        return pa.from_numpy_dtype(dtype)
    return None


def reason_of(error: BaseException) -> str:
    """Return what an error says, in one line."""
    text = " ".join(str(error).split("\n")[0].split())
    return text.rstrip(".;:") or type(error).__name__
