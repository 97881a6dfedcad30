"""A table larger than memory should hold: PrivBayes through DuckDB, and the same counts in PostgreSQL and Spark."""

from __future__ import annotations

import os
import sys
from itertools import combinations
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import large_table
from benchmarks.runner import Side, in_a_fresh_process, summarize
from benchmarks.tables import storable

SUMMARY = (
    "PrivBayes of degree 2 on 100,000,000 x 20 Parquet; the same counts in PostgreSQL and Spark at 10,000,000"
)
ROWS, SERVER_ROWS = 100_000_000, 10_000_000
# A folder that keeps the large table between runs; without it each run makes it anew, which takes longer than the fit.
FOLDER_VARIABLE = "OVERSAFE_LARGE_TABLE"

_FIT = """
model = PrivBayes(1.0, schema=schema(), degree=2, n_jobs=2).fit_source({folder!r})
assert model.guarantee_.status == "proven", model.guarantee_
"""
_FIT_SETUP = """
from benchmarks.large_table import schema
from oversafe.protect import PrivBayes
"""


def run(quick: bool, folder: Path, rounds: int | None) -> dict[str, Any]:
    """Fit the large table in a process of its own; count the smaller one wherever a service is running."""
    rows, server_rows = (20_000, 20_000) if quick else (ROWS, SERVER_ROWS)
    place = Path(os.environ.get(FOLDER_VARIABLE) or folder / "large")
    if not list(place.glob("*.parquet")):
        large_table.write(place, rows)
    fit = in_a_fresh_process(_FIT.format(folder=str(place)), _FIT_SETUP)
    costs = [fit() for _ in range(rounds or 1)]
    summary = summarize(
        "counts-large",
        [Side("PrivBayes, degree 2", lambda: costs[0], ["oversafe", "duckdb", "ibis-framework"])],
        [costs],
        quick,
    )
    figures = [
        {
            "rows": rows,
            "columns": 20,
            "s": cost.seconds,
            "GiB": np.nan if cost.peak_memory is None else cost.peak_memory / 2**30,
        }
        for cost in costs
    ]
    small = folder / "small"
    small.mkdir()
    # Whole files of the large table.
    n_files = max(1, server_rows // large_table.ROWS_PER_FILE)
    for file in sorted(place.glob("*.parquet"))[:n_files]:
        (small / file.name).symlink_to(file.resolve())
    summary["tables"] = storable(
        {
            "PrivBayes of degree 2, fitted from Parquet through DuckDB": figures,
            f"all pairs and all triples with the label, {server_rows} rows": compare_engines(small, quick),
        }
    )
    return summary


def compare_engines(folder: Path, quick: bool) -> list[dict[str, Any]]:
    """Count one table in DuckDB, PostgreSQL and Spark, and say in how many cells they differ."""
    engines = [("DuckDB", str), ("PostgreSQL", in_postgresql), ("Spark", in_spark)]
    from oversafe.data import Bins, Counts

    schema = large_table.schema()
    bins = {column.name: Bins(column, 20) for column in schema}
    sets = [*combinations(bins, 2)]
    sets += [(*pair, "state") for pair in combinations([n for n in bins if n != "state"], 2)]
    rows, expected = [], None
    # Starting a Spark takes longer than all else of a quick run.
    for name, opened in engines[: 1 if quick else None]:
        begin = perf_counter()
        source = opened(folder)
        loaded = perf_counter()
        row: dict[str, Any] = {"engine": name, "rows": None, "load s": loaded - begin, "count s": None}
        if source is not None:
            counts = Counts.open(source, bins, n_jobs=1)
            found = counts.of(sets)
            row |= {"rows": counts.n_rows, "count s": perf_counter() - loaded}
            expected = found if expected is None else expected
            row["cells"] = sum(table.size for table in found)
            row["cells that differ"] = int(sum((a != b).sum() for a, b in zip(found, expected, strict=True)))
        else:
            row |= {"cells": None, "cells that differ": None}
        rows.append(row)
    if "pyspark" in sys.modules:
        from pyspark.sql import SparkSession

        if session := SparkSession.getActiveSession():
            session.stop()
    return rows


def in_postgresql(folder: Path) -> str | None:
    """Return the address of the table in PostgreSQL, or None where it is not running."""
    url = os.environ.get("OVERSAFE_POSTGRES_URL")
    if not url:
        return None
    import psycopg
    import pyarrow.csv
    import pyarrow.parquet as pq

    kinds = {
        "continuous": "double precision",
        "integer": "bigint",
        "boolean": "boolean",
        "datetime": "timestamp",
    }
    columns = ", ".join(f'"{c.name}" {kinds.get(c.kind, "text")}' for c in large_table.schema())
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS large")
        cursor.execute(f"CREATE UNLOGGED TABLE large ({columns})")
        with cursor.copy("COPY large FROM STDIN (FORMAT csv)") as copy:
            for file in sorted(folder.glob("*.parquet")):
                for batch in pq.ParquetFile(file).iter_batches(100_000):
                    sink = pyarrow.BufferOutputStream()
                    pyarrow.csv.write_csv(batch, sink, pyarrow.csv.WriteOptions(include_header=False))
                    copy.write(sink.getvalue().to_pybytes())
    return f"{url}#large"


def in_spark(folder: Path) -> str | None:
    """Return the address of the table in a Spark of two worker processes, or None where it is not installed."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session = (
        SparkSession.builder.master("local-cluster[2,1,1536]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.executor.memory", "1g")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.parquet.inferTimestampNTZ.enabled", "true")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    session.read.parquet(str(folder)).createOrReplaceTempView("large")
    return "pyspark://#large"
