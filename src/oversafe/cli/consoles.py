"""Where the commands print to: results, notes beside them, and how far the work is."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from oversafe._core.text import showable

if TYPE_CHECKING:
    from rich.console import Console

# What a file or a pipe gets: wide enough that no table has to be broken.
_WIDE = 160
_OPTIONS = {
    "stable_ties=False": "--unstable-ties",
    "declare it with classes=, or in the schema file": "declare it in the schema file",
    "(unproven='record', on the command line --record-unproven)": "(--record-unproven)",
}


def console() -> Console:
    """Return the standard output: as wide as the terminal, or wide if it is none and COLUMNS does not say otherwise."""
    from rich.console import Console

    shown = Console()
    return shown if shown.is_terminal or os.environ.get("COLUMNS") else Console(width=_WIDE)


def note(message: str) -> None:
    """Print a sentence beside the result, where it does not disturb whoever reads that."""
    print("oversafe: " + showable(in_options(" ".join(message.split()))), file=sys.stderr)


def in_options(text: str) -> str:
    """Return a sentence of the library with the command line's options in place of Python's arguments."""
    for argument, option in _OPTIONS.items():
        text = text.replace(argument, option)
    return text


@contextmanager
def progress(title: str) -> Iterator[Callable[[str, float], None]]:
    """Show in a terminal which step runs, how much is done and how long the rest will take."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    out = console()
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TextColumn("so far,"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=out,
        transient=True,
        disable=not out.is_terminal,
    ) as shown:
        task = shown.add_task(title, total=None)
        yield lambda step, share: shown.update(task, description=showable(step), total=1.0, completed=share)
