"""The cells of tables that are too large for memory, read where they lie, through Ibis."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oversafe._core.errors import InputError
from oversafe._core.text import listed
from oversafe.data._kernels import bin_numbers
from oversafe.data.bins import Bins
from oversafe.data.cells import as_number, is_name, places_of
from oversafe.data.counts import CodeSource, code_type
from oversafe.data.encode import whole_codes
from oversafe.data.io._arrow import reason_of, to_frame
from oversafe.data.io._databases import URL, open_database
from oversafe.data.io.files import parquet_files

IntArray = NDArray[np.int64]
Made = Mapping[str, tuple[str, IntArray]]

# Rows that are handed over at a time; a few megabytes of each column.
_BATCH = 500_000
# The bits of a whole number that cells are packed into, without its sign.
_BITS = 56
_NUMPY_UNITS = {"min": "m"}
_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "D": 86400 * 10**9,
}


def open_table(source: str | os.PathLike[str] | pa.Table, *, memory_limit: str | None = None) -> Any:
    """Return the Ibis table of a Parquet file, a folder of them, a database address, or a table of Arrow."""
    if isinstance(source, pa.Table):
        import ibis

        connection = ibis.duckdb.connect()
        return connection.create_table("given", source, temp=True)
    if isinstance(source, str) and URL.match(source):
        return open_database(source)
    path, shown = Path(source), repr(os.fspath(source))
    files = parquet_files(path, shown) if path.is_dir() else [path]
    if not path.exists() or (path.is_file() and path.suffix.lower() != ".parquet"):
        raise InputError(
            f"{shown} cannot be read piece by piece; give a Parquet file, a folder of them or a database"
        )
    import ibis

    connection = ibis.duckdb.connect(**({"memory_limit": memory_limit} if memory_limit else {}))
    # Without it rows of different files would have to wait for each other; counts do not mind their order.
    connection.raw_sql("SET preserve_insertion_order = false")
    connection.raw_sql("SET enable_progress_bar = false")
    partitioned = any("=" in part for file in files for part in file.relative_to(path).parts[:-1])
    try:
        return connection.read_parquet(
            [str(file) for file in files],
            union_by_name=len(files) > 1,
            hive_partitioning=partitioned,
            # What the names of folders are but text depends on all of them.
            **({"hive_types_autocast": False} if partitioned else {}),
        )
    except Exception as error:
        raise InputError(f"{shown} cannot be read as Parquet ({reason_of(error)}); write it again") from None


def ibis_codes(table: Any, bins: Mapping[str, Bins]) -> _IbisCodes:
    """Return the source of a table's cells that suits its database."""
    if absent := [name for name in bins if name not in table.columns]:
        raise InputError(
            f"the table has no column {absent[0]!r}; its columns are {listed(list(table.columns))}"
        )
    kind = {"duckdb": _DuckDBCodes, "pyspark": _SparkCodes}.get(table.get_backend().name, _IbisCodes)
    return kind(table, bins)


class _IbisCodes(CodeSource):
    """The cells of an Ibis table: the database assigns them and sends several packed into one number."""

    def __init__(self, table: Any, bins: Mapping[str, Bins]):
        self._table = table
        self._bins = dict(bins)
        self.n_rows = int(table.count().execute())

    def blocks(self, names: Sequence[str]) -> Iterator[NDArray[Any]]:
        """Give the cells of the named columns, batch by batch."""
        dtype = code_type([self._bins[name].n_cells for name in names])
        query, packed, raw = self._query(names)
        for batch in self._batches(query):
            codes = np.empty((len(names), batch.num_rows), dtype=dtype)
            for i, name in enumerate(names):
                if name in raw:
                    codes[i] = cells_of(self._bins[name], batch.column(raw[name]))
                else:
                    word, shift, mask = packed[name]
                    codes[i] = (batch.column(word).to_numpy(zero_copy_only=False) >> shift) & mask
            yield codes

    def _query(self, names: Sequence[str]) -> tuple[Any, dict[str, tuple[str, int, int]], dict[str, str]]:
        """Return the query for cells, where each column's are in it, and the columns that come as they are."""
        packed: dict[str, tuple[str, int, int]] = {}
        raw: dict[str, str] = {}
        words: list[list[tuple[Any, int]]] = []
        room = 0
        for name in names:
            expression = cell_expression(self._bins[name], self._table[name])
            if expression is None:
                raw[name] = f"raw{len(raw)}"
                continue
            bits = max(1, (self._bins[name].n_cells - 1).bit_length())
            if bits > room:
                words.append([])
                room = _BITS
            words[-1].append((expression, _BITS - room))
            packed[name] = (f"word{len(words) - 1}", _BITS - room, 2**bits - 1)
            room -= bits
        columns = {}
        for i, word in enumerate(words):
            total = None
            for expression, shift in word:
                part = expression.cast("int64") * 2**shift
                total = part if total is None else total + part
            columns[f"word{i}"] = total
        columns |= {alias: self._table[name] for name, alias in raw.items()}
        return self._table.select(**columns), packed, raw

    def _batches(self, query: Any) -> Iterator[pa.RecordBatch]:
        yield from query.to_pyarrow_batches(chunk_size=_BATCH)


class _DuckDBCodes(_IbisCodes):
    """The cells of a table in DuckDB: values come as Arrow, and compiled loops find their cells faster."""

    def _query(self, names: Sequence[str]) -> tuple[Any, dict[str, tuple[str, int, int]], dict[str, str]]:
        raw = {name: f"raw{i}" for i, name in enumerate(names)}
        return self._table.select(**{alias: self._table[name] for name, alias in raw.items()}), {}, raw

    def _batches(self, query: Any) -> Iterator[pa.RecordBatch]:
        # Not through Ibis, whose own way DuckDB 2 no longer has.
        backend = self._table.get_backend()
        yield from backend.con.sql(str(backend.compile(query))).to_arrow_reader(_BATCH)


class _SparkCodes(_IbisCodes):
    """The cells of a table in Spark, whose workers count their parts by themselves."""

    def __init__(self, table: Any, bins: Mapping[str, Bins]):
        super().__init__(table, bins)
        self.counts_by_itself = not self._query(list(bins))[2]

    def counted(
        self, sets: Sequence[tuple[str, ...]], sizes: Mapping[str, int], made: Made
    ) -> list[IntArray] | None:
        """Return the sum of what the workers counted; None if they cannot assign all cells by themselves."""
        parents = {name: made[name][0] if name in made else name for names in sets for name in names}
        query, packed, raw = self._query(list(dict.fromkeys(parents.values())))
        if raw:
            return None
        backend = self._table.get_backend()
        frame = backend._session.sql(str(backend.compile(query)))
        groups = {name: made[name][1] for name in parents if name in made}
        count = _part_counter(
            sets=[tuple(names) for names in sets],
            sizes={name: int(sizes[name]) for name in parents},
            places={name: packed[parent] for name, parent in parents.items()},
            groups=groups,
        )
        totals = [np.zeros(math.prod(sizes[name] for name in names), dtype=np.int64) for names in sets]
        starts = np.concatenate([[0], np.cumsum([len(total) for total in totals])])
        flat = np.zeros(int(starts[-1]), dtype=np.int64)
        for row in frame.mapInArrow(count, "begin long, counts binary").toLocalIterator():
            part = np.frombuffer(row["counts"], dtype=np.int64)
            flat[row["begin"] : row["begin"] + len(part)] += part
        return [flat[a:b] for a, b in pairwise(starts)]

    def _batches(self, query: Any) -> Iterator[pa.RecordBatch]:
        backend = self._table.get_backend()
        frame = backend._session.sql(str(backend.compile(query)))
        # Row by row through the driver, for the few kinds of column whose values need more than Spark's own words.
        rows: list[tuple[Any, ...]] = []
        schema = query.schema().to_pyarrow()
        for row in frame.toLocalIterator(prefetchPartitions=True):
            rows.append(tuple(row))
            if len(rows) == _BATCH:
                yield _batch(rows, schema)
                rows = []
        if rows:
            yield _batch(rows, schema)


def _batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.record_batch(
        [pa.array(values, type=field.type) for values, field in zip(columns, schema, strict=True)],
        schema=schema,
    )


def _part_counter(
    sets: list[tuple[str, ...]],
    sizes: dict[str, int],
    places: dict[str, tuple[str, int, int]],
    groups: dict[str, IntArray],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return what a worker runs on its part of a table; the counts go back in pieces, as bytes.

    It is sent whole and needs only numpy and pyarrow there: workers may not have this package.
    """

    def count(batches: Any) -> Any:
        import numpy as np
        import pyarrow as pa

        totals: list[Any] = [0] * len(sets)
        for batch in batches:
            cells = {}
            for name, (word, shift, mask) in places.items():
                own = (batch.column(word).to_numpy(zero_copy_only=False) >> shift) & mask
                cells[name] = groups[name][own] if name in groups else own
            prefixes: dict[tuple[str, ...], Any] = {(): np.zeros(batch.num_rows, dtype=np.int64)}
            for i, names in enumerate(sets):
                n_cells = 1
                for k, name in enumerate(names):
                    n_cells *= sizes[name]
                    if names[: k + 1] not in prefixes and k < len(names) - 1:
                        # One of each length at a time: those that follow begin alike.
                        prefixes = {own: codes for own, codes in prefixes.items() if len(own) <= k}
                        prefixes[names[: k + 1]] = prefixes[names[:k]] * sizes[name] + cells[name]
                joined = prefixes[names[:-1]] * sizes[names[-1]] + cells[names[-1]]
                totals[i] = totals[i] + np.bincount(joined, minlength=n_cells)
        if not any(np.ndim(total) for total in totals):
            return
        flat, piece = np.concatenate(totals), 1_000_000
        for begin in range(0, len(flat), piece):
            part = flat[begin : begin + piece].astype(np.int64)
            if part.any():
                yield pa.RecordBatch.from_arrays(
                    [pa.array([begin], pa.int64()), pa.array([part.tobytes()], pa.binary())],
                    names=["begin", "counts"],
                )

    return count


def cells_of(bins: Bins, values: pa.Array) -> NDArray[Any]:
    """Return the cells of Arrow values, the same as :meth:`Bins.assign` of the column would have them."""
    column = bins.column
    kind = values.type
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    dated = pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None)
    if column.is_number and not bins.n_values:
        return np.zeros(len(values), dtype=np.uint8)
    if column.kind == "datetime" and dated:
        gaps = values.is_null().to_numpy(zero_copy_only=False)
        numbers = whole_codes(column, _ticks(values, column.resolution or "ns"), gaps)
    elif column.is_number and column.kind != "datetime" and (plain or pa.types.is_decimal(kind)):
        values = values.cast(pa.float64()) if not pa.types.is_floating(kind) and not plain else values
        values = values.cast(pa.int8()) if pa.types.is_boolean(kind) else values
        numbers = values.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    else:
        return _cells_of_distinct(bins, values)
    cells = np.empty(len(numbers), dtype=code_type([bins.n_cells]))
    bin_numbers(numbers, bins.edges, bins.gap_cell, cells)
    return cells


def _ticks(values: pa.Array, resolution: str) -> IntArray:
    """Return dates as whole units of a resolution since 1970, rounded down; 0 where they are missing."""
    if pa.types.is_date32(values.type):
        values, unit = values.cast(pa.int32()).cast(pa.int64()), "D"
    else:
        unit = "ms" if pa.types.is_date64(values.type) else values.type.unit
        values = values.cast(pa.int64())
    ticks = pc.fill_null(values, 0).to_numpy(zero_copy_only=False)
    ratio = _NANOSECONDS[unit] / _NANOSECONDS[resolution]
    # numpy's own conversion of dates does the same, many times slower.
    return ticks * int(ratio) if ratio >= 1 else ticks // (_NANOSECONDS[resolution] // _NANOSECONDS[unit])


def _cells_of_distinct(bins: Bins, values: pa.Array) -> NDArray[Any]:
    coded = values if pa.types.is_dictionary(values.type) else pc.dictionary_encode(values)
    distinct = pa.table({"": coded.dictionary})
    own = bins.assign(to_frame(distinct)[""])
    # The last one is for missing values.
    lookup = np.append(own, bins.gap_cell).astype(code_type([bins.n_cells]))
    places = pc.fill_null(coded.indices, len(own)).to_numpy(zero_copy_only=False)
    return lookup[places]


def cell_expression(bins: Bins, values: Any) -> Any | None:
    """Return the Ibis expression of a column's cells, or None where only :meth:`Bins.assign` has it exactly."""
    import ibis

    column, kind = bins.column, values.type()
    missing = bins.gap_cell
    if column.is_number and not bins.n_values:
        return ibis.literal(0)
    if column.is_category:
        return _category_expression(bins, values, missing)
    inner = bins.edges[1:-1]
    if column.kind == "datetime":
        if not (kind.is_date() or (kind.is_timestamp() and kind.timezone is None)):
            return None
        resolution = column.resolution or "ns"
        offset = -int(whole_codes(column, np.zeros(1, dtype=np.int64), np.zeros(1, dtype=bool))[0])
        # A date lies above an inner end, half way between two steps, if it has reached the later one.
        steps = np.ceil(inner).astype(np.int64) + offset
        stamps = steps.astype(f"datetime64[{_NUMPY_UNITS.get(resolution, resolution)}]").astype(
            "datetime64[us]"
        )
        if resolution == "ns":
            return None
        ends: list[Any] = [ibis.literal(stamp.item(), type="timestamp(6)") for stamp in stamps]
        values = values.cast("timestamp(6)") if kind.is_date() else values
        return ibis.ifelse(values.isnull(), missing, _place(values, ends, 0))
    if not (kind.is_numeric() or kind.is_boolean()):
        return None
    gaps = values.isnull()
    values = (ibis.ifelse(values, 1, 0) if kind.is_boolean() else values).cast("float64")
    if kind.is_floating():
        gaps = gaps | values.isnan()
    return ibis.ifelse(gaps, missing, _place(values, [float(end) for end in inner], 0))


def _place(values: Any, ends: Sequence[Any], first: int) -> Any:
    """Return how many of some rising ends a value has reached, found by halving."""
    import ibis

    if not len(ends):
        return ibis.literal(first)
    middle = len(ends) // 2
    return ibis.ifelse(
        values >= ends[middle],
        _place(values, ends[middle + 1 :], first + middle + 1),
        _place(values, ends[:middle], first),
    )


def _category_expression(bins: Bins, values: Any, missing: int) -> Any | None:
    import ibis

    kind = values.type()
    categories = list(bins.column.categories or ())
    if kind.is_string():
        # Text such as "1.0" is the category 1; where categories are numbers or dates, only their places know.
        if not all(is_name(category) for category in categories):
            return None
        cases: list[tuple[Any, int]] = [(category, i) for i, category in enumerate(categories)]
    elif kind.is_integer() or kind.is_boolean() or kind.is_floating():
        first: dict[float | int, int] = {}
        for category in categories:
            if (
                not np.isnan(number := as_number(category))
                and (place := places_of(tuple(categories)).place(number)) >= 0
            ):
                first[number] = place
        if kind.is_boolean():
            # Missing values are none of the cases, also as 0.
            values = values.ifelse(1, ibis.ifelse(values.isnull(), -1, 0))
            first.pop(-1, None)
        if not kind.is_floating():
            first = {int(n): i for n, i in first.items() if float(n).is_integer()}
        cases = list(first.items())
    else:
        return None
    if not cases:
        return ibis.literal(missing)
    return values.cases(*cases, else_=missing)
