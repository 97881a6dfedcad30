"""What commands share: options, and how what is given with them is read or refused."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from oversafe._core.errors import InputError

_LONGEST_HEADING = 1_000_000


def complete_label(context: typer.Context, incomplete: str) -> list[str]:
    """Return the columns of the table that the command line names, for the shell."""
    source = context.params.get("release") or context.params.get("table")
    try:
        with Path(source or "").open(encoding="utf-8", errors="replace", newline="") as file:
            heading = file.readline(_LONGEST_HEADING)
        separator = max(",;\t|", key=heading.count)
        return [
            name for name in next(csv.reader([heading], delimiter=separator)) if name.startswith(incomplete)
        ]
    except (OSError, TypeError, ValueError, StopIteration, csv.Error):
        return []


TABLE = "CSV or Parquet file, folder of Parquet files, or database address with its table (duckdb://file.ddb#table)."
PAGE = "Write the page here (.html), and the figures beside it (.json); older ones of oversafe are replaced."
# Checked by hand, so that its absence is told in the same words as other mistakes.
LabelOption = Annotated[
    str | None,
    typer.Option(
        "--label", "-l", help="The column that holds the class; required.", autocompletion=complete_label
    ),
]
SeparatorOption = Annotated[str | None, typer.Option(help="Of CSV files; detected when not given.")]
DecimalOption = Annotated[
    str | None, typer.Option(help="Decimal sign of CSV files; detected when not given.")
]
# Of commands that take a schema, which says the sign.
DeclaredDecimalOption = Annotated[
    str | None,
    typer.Option(help="Decimal sign of CSV files; when not given, the schema's, or without one detected."),
]
EncodingOption = Annotated[str | None, typer.Option(help="Of CSV files; detected when not given.")]
DropOption = Annotated[
    list[str] | None, typer.Option(help="A column to leave out, such as a name; may be given again.")
]
QuasiIdentifierOption = Annotated[
    list[str] | None,
    typer.Option("--quasi-identifier", "-q", help="A column that outsiders may know; may be given again."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
DropUnlabelledOption = Annotated[
    bool,
    typer.Option("--drop-unlabelled", help="Leave out rows without a label, such as a totals line."),
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists already.")]
_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def given_label(label: str | None, command: str) -> str:
    """Return the label, or refuse a command without it, in the same words everywhere."""
    if label is None:
        raise InputError(f"--label is missing; name the column that holds the class: {command}")
    return label


def seconds_of(text: str | None) -> float | None:
    """Return the seconds of a time limit such as 30s, 5m or 1h; None where none is given."""
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*(s|min|m|h)?", text.strip())
    seconds = 0.0 if match is None else float(match[1]) * _SECONDS[match[2] or ""]
    # In no time nothing is measured, and the page would be empty.
    if match is None or not seconds:
        raise InputError(f"--time-limit {text!r} was given; write it as 30s, 5m or 1h")
    return seconds


def check_seed(seed: int | None) -> None:
    """Refuse a seed below 0."""
    if seed is not None and seed < 0:
        raise InputError(f"--seed {seed} was given; use a whole number of at least 0")


def plain_number(text: str) -> float:
    """Return the number that a text of the command line is, NaN if it is none."""
    # Late: a command line that prints its help needs no pandas.
    from oversafe.data.cells.grammar import read_plain_number

    return read_plain_number(text)


def number_of(option: str, text: str | None) -> float | None:
    """Return the number that an option gives, None where it is not given."""
    if text is None:
        return None
    if math.isnan(number := plain_number(text)):
        raise InputError(f"{option} {text} was given; {_how_to_write(text)}")
    return number


def number_option(description: str) -> Any:
    """Return an option for a number, which says what is wrong with 1,5."""

    def parse(text: str) -> float:
        # A default comes as the number that it is.
        if math.isnan(number := plain_number(str(text))):
            raise typer.BadParameter(f"{text} was given; {_how_to_write(text)}")
        return number

    return typer.Option(parser=parse, metavar="<float>", help=description)


def _how_to_write(text: str) -> str:
    if not math.isnan(plain_number(text.replace(",", ".", 1))):
        return f"write {text.strip().replace(',', '.')}, with a point"
    return "write a number, such as 1.0"
