"""Reading a CSV file of mixed kinds, exactly: every number as it was written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.runner import Side, in_a_fresh_process, in_this_process
from oversafe.data import read_table

SUMMARY = "`oversafe.data.read_table` against `pandas.read_csv(float_precision='round_trip')`"


def mixed_table(rows: int) -> pd.DataFrame:
    """Return 20 columns: 8 of numbers, 5 of integers, 4 of categories, 1 boolean, 2 with gaps."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"number_{i}": rng.normal(size=rows) * 10.0**i for i in range(8)})
    for i in range(5):
        table[f"integer_{i}"] = rng.integers(-(10 ** (i + 1)), 10 ** (i + 1), rows)
    for i in range(4):
        table[f"category_{i}"] = rng.choice([f"value {chr(97 + i)}{j}" for j in range(4 ** (i + 1))], rows)
    table["flag"] = rng.random(rows) < 0.1
    table["gaps_number"] = np.where(rng.random(rows) < 0.1, np.nan, rng.gamma(2.0, size=rows))
    table["gaps_category"] = pd.Series(rng.choice(["low", "middle", "high"], rows)).mask(
        rng.random(rows) < 0.2
    )
    return table


def read_with_pandas(file: Path | str) -> pd.DataFrame:
    return pd.read_csv(file, float_precision="round_trip")


def check_agreement(ours: pd.DataFrame, theirs: pd.DataFrame) -> None:
    """Raise unless both tables hold the same values; the dtypes of text and gaps may differ."""
    if list(ours.columns) != list(theirs.columns):
        raise AssertionError(f"the columns differ: {list(ours.columns)} and {list(theirs.columns)}")
    for column in theirs.columns:
        same_gaps = ours[column].isna().to_numpy() == theirs[column].isna().to_numpy()
        filled = theirs[column].notna().to_numpy()
        same_values = ours[column].to_numpy(object)[filled] == theirs[column].to_numpy(object)[filled]
        if not (same_gaps.all() and same_values.all()):
            raise AssertionError(f"the values of column {column!r} differ")


def sides(quick: bool, folder: Path) -> list[Side]:
    """Write the file, check that both readers agree on it, and return them."""
    file = folder / "mixed.csv"
    mixed_table(5_000 if quick else 200_000).to_csv(file, index=False)
    check_agreement(read_table(file), read_with_pandas(file))

    def memory(setup: str, work: str) -> int | None:
        return in_a_fresh_process(work.format(str(file)), setup)().peak_memory

    return [
        Side(
            "read_table",
            in_this_process(lambda: read_table(file)),
            ["oversafe", "pyarrow"],
            lambda: memory("from oversafe.data import read_table", "read_table({!r})"),
        ),
        Side(
            "pandas.read_csv",
            in_this_process(lambda: read_with_pandas(file)),
            ["pandas"],
            lambda: memory(
                "from benchmarks.read_csv import read_with_pandas",
                "read_with_pandas({!r})",
            ),
        ),
    ]
