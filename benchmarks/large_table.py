"""A table of any number of rows with columns of every kind, written as a folder of Parquet files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from oversafe.data import Column, Schema

ROWS_PER_FILE = 1_000_000
_SOURCE = "the code book of the register"
_TOWNS = ("Ulm", "Bonn", "Kiel", "Jena", "Trier", "Essen", "Halle", "Emden", "Worms", "Fulda")
_WARDS = ("north", "south", "east", "west")


def schema() -> Schema:
    """Return the public schema: 12 numbers, 3 whole numbers, 2 texts, a date, a boolean and a label of 2 %."""
    public = {"domain": "public", "source": _SOURCE}
    columns = [
        Column(f"exact{i}", "continuous", "float64", missing=i == 0, bounds=(-6.0, 6.0), **public)
        for i in range(6)
    ]
    columns += [
        Column(f"rounded{i}", "continuous", "float64", bounds=(-6.0, 6.0), decimals=2, **public)
        for i in range(6)
    ]
    columns += [Column(f"whole{i}", "integer", "int64", bounds=(0, 119), **public) for i in range(3)]
    columns += [
        Column("town", "categorical", "str", missing=True, categories=_TOWNS, **public),
        Column("ward", "categorical", "str", categories=_WARDS, **public),
        Column(
            "admitted",
            "datetime",
            "datetime64[us]",
            bounds=(pd.Timestamp("2020-01-01"), pd.Timestamp("2023-12-31")),
            resolution="D",
            **public,
        ),
        Column("smoker", "boolean", "bool", categories=(False, True), **public),
        Column("state", "categorical", "str", categories=("healthy", "ill"), **public),
    ]
    return Schema(tuple(columns), label="state")


def rows(n: int, seed: int) -> pd.DataFrame:
    """Return some rows of the table."""
    rng = np.random.default_rng(seed)
    mix = np.random.default_rng(12345).normal(size=(4, 15)) * 0.7
    ill = rng.random(n) < 0.02
    hidden = rng.normal(size=(n, 4)) + ill[:, None] * np.array([1.2, -1.2, 0.6, 0.0])
    seen = hidden @ mix + 0.6 * rng.normal(size=(n, 15))
    table = {f"exact{i}": seen[:, i] for i in range(6)}
    table |= {f"rounded{i}": np.round(seen[:, 6 + i], 2) for i in range(6)}
    table |= {f"whole{i}": np.clip(60 + 12 * seen[:, 12 + i], 0, 119).astype(np.int64) for i in range(3)}
    table["exact0"][rng.random(n) < 0.05] = np.nan
    place = np.clip((hidden[:, 0] * 2 + 5 + rng.normal(size=n)), 0, 9).astype(np.int64)
    table["town"] = pd.Series(np.array(_TOWNS, dtype=object)[place]).mask(rng.random(n) < 0.01)
    table["ward"] = np.array(_WARDS, dtype=object)[rng.integers(0, 4, n)]
    day = np.clip(730 + 300 * hidden[:, 1], 0, 1460).astype(np.int64)
    table["admitted"] = np.datetime64("2020-01-01", "us") + day.astype("timedelta64[D]")
    table["smoker"] = hidden[:, 2] + rng.normal(size=n) > 0.8
    table["state"] = np.where(ill, "ill", "healthy").astype(object)
    return pd.DataFrame(table)


def write(folder: Path, n: int) -> None:
    """Write the table, a million rows to a file."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, begin in enumerate(range(0, n, ROWS_PER_FILE)):
        frame = rows(min(ROWS_PER_FILE, n - begin), seed=part)
        pq.write_table(
            pa.Table.from_pandas(frame, preserve_index=False),
            folder / f"part-{part:05d}.parquet",
            compression="snappy",
        )
