"""Where the commands print to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

# What a file or a pipe gets: wide enough that no table has to be broken.
_WIDE = 160


def console() -> Console:
    """Return the standard output: as wide as the terminal, or wide if it is none and COLUMNS does not say otherwise."""
    from rich.console import Console

    shown = Console()
    return shown if shown.is_terminal or os.environ.get("COLUMNS") else Console(width=_WIDE)
