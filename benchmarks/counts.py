"""All three-way marginals of sixteen columns: the compiled counter, numpy, and DuckDB."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.runner import Side, in_this_process
from oversafe.data import Bins, Column, Counts

Sets = list[tuple[str, ...]]
SUMMARY = (
    "`oversafe.data.Counts`: 560 three-way marginals of 16 columns, against numpy and DuckDB, one thread"
)
COLUMNS, CELLS = 16, 10


def cells(rows: int) -> dict[str, NDArray[np.uint8]]:
    """Return correlated columns of ten cells."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(rows, 4)) @ rng.normal(size=(4, COLUMNS))
    codes = np.clip(hidden * 1.2 + 5, 0, CELLS - 1).astype(np.uint8)
    return {f"c{i}": np.ascontiguousarray(codes[:, i]) for i in range(COLUMNS)}


def count_with_numpy(codes: dict[str, NDArray[np.uint8]], sets: Sets) -> list[NDArray[np.int64]]:
    """Count with one bincount per marginal; what two columns share is joined once."""
    wide = {name: own.astype(np.int64) for name, own in codes.items()}
    found, pair, joined = [], None, np.empty(0)
    for a, b, c in sets:
        if (a, b) != pair:
            pair, joined = (a, b), (wide[a] * CELLS + wide[b]) * CELLS
        found.append(np.bincount(joined + wide[c], minlength=CELLS**3).reshape(CELLS, CELLS, CELLS))
    return found


def count_with_duckdb(connection: duckdb.DuckDBPyConnection, wanted: Sets) -> list[NDArray[np.int64]]:
    """Count with grouping sets, one query for all."""
    names = sorted({name for s in wanted for name in s}, key=lambda name: int(name[1:]))
    sets = ", ".join(f"({', '.join(s)})" for s in wanted)
    table = connection.execute(
        f"SELECT {', '.join(names)}, count(*) AS n FROM t GROUP BY GROUPING SETS ({sets})"
    ).fetchnumpy()
    present = np.array([~np.ma.getmaskarray(np.ma.asarray(table[name])) for name in names])
    found = []
    for s in wanted:
        places = [names.index(name) for name in s]
        rows = present[places].all(axis=0) & (present.sum(axis=0) == 3)
        counts = np.zeros((CELLS,) * 3, dtype=np.int64)
        counts[tuple(np.asarray(table[name][rows], dtype=np.int64) for name in s)] = table["n"][rows]
        found.append(counts)
    return found


def sides(quick: bool, folder: Path) -> list[Side]:
    """Check that all count the same, and return them on two sizes; the first is ours."""
    made = []
    sets = list(combinations([f"c{i}" for i in range(5 if quick else COLUMNS)], 3))
    for rows in (2_000, 5_000) if quick else (50_000, 1_000_000):
        codes = cells(rows)
        bins = [Bins(Column(name, "integer", "int64", bounds=(0, CELLS - 1))) for name in codes]
        counts = Counts(pd.DataFrame(codes), bins)
        both = Counts(pd.DataFrame(codes), bins, n_jobs=2)
        connection = duckdb.connect()
        connection.execute("SET threads = 1")
        connection.register("frame", pd.DataFrame(codes))
        connection.execute("CREATE TABLE t AS SELECT * FROM frame")
        ours = counts.of(sets)
        for other in (both.of(sets), count_with_numpy(codes, sets), count_with_duckdb(connection, sets)):
            if not all(np.array_equal(a, b) for a, b in zip(ours, other, strict=True)):
                raise AssertionError("the counts differ")
        packages = ["oversafe", "numba", "numpy", "duckdb"]
        made += [
            Side(f"Counts, {rows} rows", in_this_process(lambda c=counts: c.of(sets)), packages),
            Side(f"Counts with two threads, {rows} rows", in_this_process(lambda c=both: c.of(sets))),
            Side(f"numpy, {rows} rows", in_this_process(lambda c=codes: count_with_numpy(c, sets))),
            Side(f"DuckDB, {rows} rows", in_this_process(lambda c=connection: count_with_duckdb(c, sets))),
        ]
    return made
