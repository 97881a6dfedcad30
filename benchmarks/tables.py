"""Benchmarks of many cases: their figures as tables, besides the totals that every benchmark has.

A module of this kind has ``run(quick, folder, rounds)``, which returns what `runner.summarize` does with "tables"
added: for each title a list of rows, each of them a dictionary with the same keys.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table


def show_tables(summary: dict[str, Any], console: Console) -> None:
    """Print the tables of a summary, if it has any, and its notes."""
    for title, rows in summary.get("tables", {}).items():
        table = Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for heading in rows[0]:
            numbers = all(isinstance(row[heading], int | float | None) for row in rows)
            table.add_column(
                heading, justify="right" if numbers else "left", overflow="fold", no_wrap=numbers
            )
        for row in rows:
            table.add_row(*map(shown, row.values()))
        console.print(table)
    for note in summary.get("notes", ()):
        console.print(note, highlight=False, soft_wrap=True)


def storable(tables: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Return tables without nan, which JSON does not have: a figure that is not there is None."""
    return {
        title: [
            {
                key: None if isinstance(value, float) and math.isnan(value) else value
                for key, value in row.items()
            }
            for row in rows
        ]
        for title, rows in tables.items()
    }


def shown(value: Any) -> str:
    """Return a figure as a table shows it."""
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    if value and abs(value) < 1e-3:
        return f"{value:.0e}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}" if abs(value) < 100 else f"{value:.0f}"


def mean(values: Any) -> float:
    """Return the mean of the figures that are there; nan if none is."""
    values = np.array([math.nan if value is None else value for value in values], dtype=float)
    values = values[~np.isnan(values)]
    return float(values.mean()) if len(values) else math.nan


def growth_exponent(sizes: Any, seconds: Any) -> float:
    """Return the slope of the straight line through the logarithms: time grows as size to this power."""
    if len(sizes) < 2:
        return math.nan
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
