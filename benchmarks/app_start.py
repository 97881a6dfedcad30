"""From the command to the local page that answers: ``oversafe app`` in a fresh process each time."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from pathlib import Path
from time import perf_counter

from benchmarks.runner import Cost, Side

SUMMARY = "`oversafe app` until its page answers (extra `app`)"


def start() -> Cost:
    """Return how long it takes until the page is served."""
    begin = perf_counter()
    command = [sys.executable, "-c", "from oversafe.cli.program import main; main()", "app", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        told = process.stdout.readline()
        address = told.split()[4].rstrip(";")
        with urllib.request.urlopen(address) as page:
            page.read()
        return Cost(perf_counter() - begin)
    finally:
        # Not an interrupt, which commands in the background of a shell do not receive.
        process.terminate()
        process.wait()


def sides(quick: bool, folder: Path) -> list[Side]:
    """Return the one start; there is no smaller version of it."""
    return [Side("oversafe app", start, ["oversafe", "streamlit"])]
