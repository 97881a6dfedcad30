"""Counts of column combinations, from memory or from where the table lies."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.errors import InputError
from oversafe._core.text import listed
from oversafe.data.bins import Bins

IntArray = NDArray[np.int64]

# So many cells are counted at a time (200 MB); more take further passes over the table.
_CELLS_AT_ONCE = 50_000_000
# The compiled counters hold 32 bits.
_ROWS_AT_ONCE = 2**31


class CodeSource(Protocol):
    """Where a table's cells come from, as small whole numbers."""

    n_rows: int
    # Whether `counted` answers, so that rows need not come here.
    counts_by_itself: bool = False

    def blocks(self, names: Sequence[str]) -> Iterator[NDArray[Any]]:
        """Give the cells of the named columns, of shape (n_columns, n_rows of the block), block by block."""

    def counted(
        self,
        sets: Sequence[tuple[str, ...]],
        sizes: Mapping[str, int],
        made: Mapping[str, tuple[str, IntArray]],
    ) -> list[IntArray] | None:
        """Return the flat counts of each combination if the source counts by itself, else None.

        ``made`` are columns that come from others, as in :meth:`Counts.coarsened`.
        """
        return None


class Counts:
    """How many rows fall into each cell of any combination of columns; all that a private synthesizer sees.

    The table may be in memory, or a table of Ibis: a Parquet folder through DuckDB, PostgreSQL or Spark, read where
    it lies and never held as a whole. The answers are the same to the last row.

    Parameters
    ----------
    table : DataFrame or Ibis table
        Has a column for each of the bins; see :meth:`open` for files and addresses.
    bins : sequence of Bins, or mapping of column name to Bins
        The cells of each column, the label's too.
    n_jobs : int, default=1
        How many threads count; -1 takes one for each core.

    Attributes
    ----------
    n_rows : int
        How many rows the table has.
    sizes : dict of str to int
        How many cells each column has.

    Examples
    --------
    >>> import pandas as pd
    >>> from oversafe.data import Bins, Counts, Schema
    >>> table = pd.DataFrame({"smoker": [True, False, True], "ward": ["a", "b", "a"]})
    >>> counts = Counts(table, [Bins(column) for column in Schema.infer(table)])
    >>> smoker, both = counts.of([["smoker"], ["smoker", "ward"]])
    >>> both
    array([[0, 1],
           [2, 0]])
    """

    # Told the share of the rows that are counted; set by whoever wants to show it.
    on_progress: Callable[[float], None] | None = None

    def __init__(self, table: Any, bins: Sequence[Bins] | Mapping[str, Bins], *, n_jobs: int = 1):
        named = dict(bins) if isinstance(bins, Mapping) else {own.column.name: own for own in bins}
        if isinstance(table, pd.DataFrame):
            source: CodeSource = TableCodes.of(table, named)
        elif hasattr(table, "get_backend"):
            from oversafe.data.io._sources import ibis_codes

            source = ibis_codes(table, named)
        else:
            raise InputError(
                f"counts of a {type(table).__name__} were asked for; give a DataFrame or an Ibis table"
            )
        self._begin(source, {name: own.n_cells for name, own in named.items()}, n_jobs)

    def _begin(
        self,
        source: CodeSource,
        sizes: Mapping[str, int],
        n_jobs: int,
        on_progress: Callable[[float], None] | None = None,
    ) -> None:
        self.on_progress = on_progress
        self._source = source
        self.sizes = dict(sizes)
        self.n_rows = source.n_rows
        self.n_jobs = n_jobs

    @classmethod
    def of_cells(cls, cells: Mapping[str, IntArray], sizes: Mapping[str, int], *, n_jobs: int = 1) -> Counts:
        """Return the counts of columns that are cells already."""
        counts = cls.__new__(cls)
        counts._begin(TableCodes(cells, sizes), sizes, n_jobs)
        return counts

    @classmethod
    def open(
        cls,
        source: str | os.PathLike[str],
        bins: Sequence[Bins] | Mapping[str, Bins],
        *,
        n_jobs: int = 1,
        memory_limit: str | None = "1GB",
    ) -> Counts:
        """Return the counts of a Parquet file, a folder of them, or a table in a database.

        Parameters
        ----------
        source : str or path
            As in :func:`oversafe.data.read_table`, without CSV.
        bins : sequence or mapping of Bins
            The cells of each column.
        n_jobs : int, default=1
            How many threads count.
        memory_limit : str, optional
            What DuckDB may use to read Parquet files.
        """
        from oversafe.data.io._sources import open_table

        return cls(open_table(source, memory_limit=memory_limit), bins, n_jobs=n_jobs)

    def of(self, sets: Sequence[Sequence[str]]) -> list[IntArray]:
        """Return the counts of each combination of columns, all of them in one pass over the table.

        Parameters
        ----------
        sets : sequence of sequences of str
            Each names different columns.

        Returns
        -------
        list of int arrays
            Of the shape (cells of the first column, cells of the second, ...).
        """
        asked = [tuple(names) for names in sets]
        for names in asked:
            self._check(names)
        # In one order whatever was asked, so that columns in common are joined once, and doubles are not counted.
        order = {name: i for i, name in enumerate(self.sizes)}
        wanted = sorted(
            {tuple(sorted(names, key=order.__getitem__)) for names in asked},
            key=lambda s: (len(s), [order[name] for name in s]),
        )
        found: dict[tuple[str, ...], IntArray] = {}
        for part in self._parts(wanted):
            own = self._source.counted(part, self.sizes, {})
            own = self._count(part) if own is None else own
            for names, flat in zip(part, own, strict=True):
                found[names] = flat.reshape([self.sizes[name] for name in names])
        results = []
        for names in asked:
            kept = tuple(sorted(names, key=order.__getitem__))
            results.append(np.ascontiguousarray(found[kept].transpose([kept.index(name) for name in names])))
        return results

    def of_with_sample(
        self, sets: Sequence[Sequence[str]], most_rows: int, rng: np.random.Generator
    ) -> tuple[list[IntArray], Counts]:
        """Return the counts, and in the same pass the counts of a random sample of the rows, kept in memory.

        Every row is taken by itself with the same probability, so one row more or less changes the sample by no
        more than that row. A table that is in memory, has few rows, or is counted elsewhere is its own sample.

        Parameters
        ----------
        sets : sequence of sequences of str
            As in :meth:`of`.
        most_rows : int
            How many rows the sample is meant to have.
        rng : numpy Generator
            Draws the sample.
        """
        if isinstance(self._source, TableCodes) or self._source.counts_by_itself or self.n_rows <= most_rows:
            return self.of(sets), self
        thinned = _Thinned(self._source, list(self.sizes), most_rows / self.n_rows, rng)
        counts = Counts.__new__(Counts)
        counts._begin(thinned, self.sizes, self.n_jobs, self.on_progress)
        found = counts.of(sets)
        sample = Counts.__new__(Counts)
        sample._begin(thinned.sample(self.sizes), self.sizes, self.n_jobs, None)
        return found, sample

    def coarsened(self, columns: Mapping[str, tuple[str, IntArray]]) -> Counts:
        """Return the counts with further columns, each of them an existing one with cells joined.

        Parameters
        ----------
        columns : mapping of str to (str, int array)
            For each new name the column that it comes from and the new cell of each of its cells.
        """
        for name, (parent, groups) in columns.items():
            if name in self.sizes or parent not in self.sizes or len(groups) != self.sizes[parent]:
                raise InputError(
                    f"column {name!r} cannot be made of {parent!r}; give a group for each of its cells"
                )
        counts = Counts.__new__(Counts)
        sizes = {name: int(groups.max(initial=0)) + 1 for name, (_, groups) in columns.items()}
        source = (
            self._source.with_coarser(columns, sizes)
            if isinstance(self._source, TableCodes)
            else _Coarser(self._source, columns, sizes)
        )
        counts._begin(source, {**self.sizes, **sizes}, self.n_jobs, self.on_progress)
        return counts

    def _check(self, names: tuple[str, ...]) -> None:
        if not names:
            raise InputError("counts of no column were asked for; name at least one")
        if unknown := [name for name in names if name not in self.sizes]:
            raise InputError(
                f"column {unknown[0]!r} is not counted; the columns are {listed(list(self.sizes))}"
            )
        if len(set(names)) < len(names):
            raise InputError(f"counts of {listed(list(names))} were asked for; name each column once")
        if math.prod(self.sizes[name] for name in names) > 2**31:
            raise InputError(
                f"{listed(list(names))} have too many cells together; take fewer columns or bins"
            )

    def _parts(self, wanted: list[tuple[str, ...]]) -> Iterator[list[tuple[str, ...]]]:
        part: list[tuple[str, ...]] = []
        cells = 0
        for names in wanted:
            own = math.prod(self.sizes[name] for name in names)
            if part and cells + own > _CELLS_AT_ONCE:
                yield part
                part, cells = [], 0
            part.append(names)
            cells += own
        if part:
            yield part

    def _count(self, sets: list[tuple[str, ...]]) -> list[IntArray]:
        columns = [name for name in self.sizes if any(name in names for names in sets)]
        sizes = np.array([self.sizes[name] for name in columns], dtype=np.int64)
        jobs = _jobs(sets, {name: i for i, name in enumerate(columns)}, sizes, self.n_jobs)
        totals = [np.zeros(job.n_cells, dtype=np.int64) for job in jobs]
        partial = [np.zeros(job.n_cells, dtype=np.uint32) for job in jobs]
        since = done = 0
        with ThreadPoolExecutor(max(1, len(jobs))) as threads:
            for block in self._source.blocks(columns):
                since += block.shape[1]
                if since > _ROWS_AT_ONCE:
                    _flush(totals, partial)
                    since = block.shape[1]
                list(threads.map(lambda job, own, block=block: job.add(block, sizes, own), jobs, partial))
                done += block.shape[1]
                if self.on_progress is not None:
                    self.on_progress(min(1.0, done / max(self.n_rows, 1)))
        _flush(totals, partial)
        return [flat for job, total in zip(jobs, totals, strict=True) for flat in job.split(total)]


class _Job:
    """Some of the combinations, for one thread."""

    def __init__(self, sets: list[tuple[int, ...]], sizes: IntArray):
        width = max(map(len, sets))
        self.sets = np.full((len(sets), width), -1, dtype=np.int64)
        numbers: dict[tuple[int, ...], int] = {}
        self.prefixes = np.empty(len(sets), dtype=np.int64)
        for i, own in enumerate(sets):
            self.sets[i, : len(own)] = own
            self.prefixes[i] = numbers.setdefault(own[:-1], len(numbers))
        cells = [math.prod(int(sizes[column]) for column in own) for own in sets]
        self.starts = np.concatenate([[0], np.cumsum(cells)]).astype(np.int64)
        self.n_cells = int(self.starts[-1])

    def add(self, block: NDArray[Any], sizes: IntArray, out: NDArray[np.uint32]) -> None:
        # Loaded here: compiled code is not needed to read a table.
        from oversafe.data._kernels import add_counts

        add_counts(block, self.sets, self.prefixes, sizes, self.starts, out)

    def split(self, total: IntArray) -> list[IntArray]:
        return np.split(total, self.starts[1:-1])


def _jobs(
    sets: list[tuple[str, ...]], position: Mapping[str, int], sizes: IntArray, n_jobs: int
) -> list[_Job]:
    placed = [tuple(position[name] for name in names) for names in sets]
    threads = max(1, (os.cpu_count() or 1) + 1 + n_jobs if n_jobs < 0 else n_jobs)
    pieces = np.array_split(np.arange(len(placed)), min(threads, len(placed)))
    return [_Job([placed[i] for i in piece], sizes) for piece in pieces if len(piece)]


def _flush(totals: list[IntArray], partial: list[NDArray[np.uint32]]) -> None:
    for total, own in zip(totals, partial, strict=True):
        total += own
        own[:] = 0


def code_type(sizes: Sequence[int]) -> Any:
    """Return the smallest unsigned type that holds the cells of all columns."""
    most = max(sizes, default=1)
    return np.uint8 if most <= 2**8 else np.uint16 if most <= 2**16 else np.uint32


class TableCodes(CodeSource):
    """The cells of a table in memory, a byte for each where that is enough."""

    def __init__(self, cells: Mapping[str, NDArray[Any]], sizes: Mapping[str, int]):
        self._names = list(cells)
        self.n_rows = len(next(iter(cells.values()))) if cells else 0
        self._codes = np.empty((len(cells), self.n_rows), dtype=code_type([sizes[name] for name in cells]))
        for i, own in enumerate(cells.values()):
            self._codes[i] = own

    @classmethod
    def of(cls, table: pd.DataFrame, bins: Mapping[str, Bins]) -> TableCodes:
        """Return the cells that the bins assign to a table's values."""
        if absent := [name for name in bins if name not in table.columns]:
            raise InputError(
                f"the table has no column {absent[0]!r}; its columns are {listed(list(table.columns))}"
            )
        return cls(
            {name: own.assign(table[name]) for name, own in bins.items()},
            {name: own.n_cells for name, own in bins.items()},
        )

    def blocks(self, names: Sequence[str]) -> Iterator[NDArray[Any]]:
        """Give all rows at once."""
        yield (
            self._codes if list(names) == self._names else self._codes[[self._names.index(n) for n in names]]
        )

    def with_coarser(
        self, columns: Mapping[str, tuple[str, IntArray]], sizes: Mapping[str, int]
    ) -> TableCodes:
        """Return the cells with further columns."""
        cells: dict[str, NDArray[Any]] = dict(zip(self._names, self._codes, strict=True))
        all_sizes = {name: np.iinfo(self._codes.dtype).max for name in self._names} | dict(sizes)
        for name, (parent, groups) in columns.items():
            cells[name] = groups.astype(code_type([sizes[name]]))[cells[parent]]
        return TableCodes(cells, all_sizes)


class _Coarser(CodeSource):
    """A source with further columns, made block by block."""

    def __init__(
        self, source: CodeSource, columns: Mapping[str, tuple[str, IntArray]], sizes: Mapping[str, int]
    ):
        self._source = source
        self._columns = dict(columns)
        self._sizes = dict(sizes)
        self.n_rows = source.n_rows
        self.counts_by_itself = source.counts_by_itself

    def blocks(self, names: Sequence[str]) -> Iterator[NDArray[Any]]:
        """Give the blocks of the source, with the columns that are made of others."""
        parents = [self._columns[name][0] if name in self._columns else name for name in names]
        needed = list(dict.fromkeys(parents))
        for block in self._source.blocks(needed):
            codes = np.empty((len(names), block.shape[1]), dtype=block.dtype)
            for i, (name, parent) in enumerate(zip(names, parents, strict=True)):
                own = block[needed.index(parent)]
                codes[i] = self._columns[name][1].astype(block.dtype)[own] if name in self._columns else own
            yield codes

    def counted(
        self,
        sets: Sequence[tuple[str, ...]],
        sizes: Mapping[str, int],
        made: Mapping[str, tuple[str, IntArray]],
    ) -> list[IntArray] | None:
        """Leave it to the source, which may count by itself."""
        return None if made else self._source.counted(sets, sizes, self._columns)


class _Thinned(CodeSource):
    """A source that keeps a random sample of the rows that pass by; they are counted here, past which they go."""

    def __init__(self, source: CodeSource, names: list[str], rate: float, rng: np.random.Generator):
        self._source = source
        self._names = names
        self._rate = rate
        self._rng = rng
        self._kept: list[NDArray[Any]] | None = None
        self.n_rows = source.n_rows

    def blocks(self, names: Sequence[str]) -> Iterator[NDArray[Any]]:
        """Give the blocks of the source; the first pass keeps the sample."""
        if self._kept is not None:
            yield from self._source.blocks(names)
            return
        kept = []
        places = [self._names.index(name) for name in names]
        for block in self._source.blocks(self._names):
            kept.append(block[:, self._rng.random(block.shape[1]) < self._rate])
            yield block if places == list(range(len(self._names))) else block[places]
        self._kept = kept

    def sample(self, sizes: Mapping[str, int]) -> TableCodes:
        """Return the sample."""
        codes = np.concatenate(self._kept or [np.empty((len(self._names), 0), dtype=np.uint8)], axis=1)
        return TableCodes(dict(zip(self._names, codes, strict=True)), sizes)
