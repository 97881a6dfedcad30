"""What commands share: options, and what is refused before the work begins."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from oversafe.errors import InputError

TABLE = "CSV or Parquet file, or database address with its table (duckdb://file.ddb#table)."
SeparatorOption = Annotated[str | None, typer.Option(help="Of CSV files; detected when not given.")]
DecimalOption = Annotated[
    str | None, typer.Option(help="Decimal sign of CSV files; detected when not given.")
]
EncodingOption = Annotated[str | None, typer.Option(help="Of CSV files; detected when not given.")]
DropOption = Annotated[
    list[str] | None, typer.Option(help="A column to leave out, such as a name; may be given again.")
]
QuasiIdentifierOption = Annotated[
    list[str] | None,
    typer.Option("--quasi-identifier", "-q", help="A column that outsiders may know; may be given again."),
]
_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def seconds_of(text: str | None) -> float | None:
    """Return the seconds of a time limit such as 30s, 5m or 1h; None where none is given."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|min|m|h)?", text.strip())
    if match is None:
        raise InputError(f"--time-limit {text!r} was given; write it as 30s, 5m or 1h")
    return float(match[1]) * _SECONDS[match[2] or ""]


def check_seed(seed: int | None) -> None:
    """Refuse a seed below 0."""
    if seed is not None and seed < 0:
        raise InputError(f"--seed {seed} was given; use a whole number of at least 0")
