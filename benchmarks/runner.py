"""Times several ways to do the same work, turn by turn in one run, and keeps the figures.

Turns matter: on a shared machine the speed drifts by more than the differences of interest, and a run of ours
followed by a run of theirs would measure the drift. Each side is run once before the clock starts.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

CHECKOUT = Path(__file__).parents[1]


class Cost(NamedTuple):
    """What one run took: seconds, and the process's peak memory in bytes where it can be told."""

    seconds: float
    peak_memory: int | None = None


@dataclass(frozen=True)
class Side:
    """One way to do the work.

    Parameters
    ----------
    label : str
        What the table calls it.
    run : callable
        Does the work once and returns its cost. Make it with `in_this_process` or `in_a_fresh_process`.
    packages : sequence of str
        The packages whose versions belong to the figure.
    measure_memory : callable, optional
        Returns the peak memory in bytes, for a ``run`` that cannot tell it; called once, not timed.
    versions : mapping, optional
        Versions of packages that are not in this environment.
    """

    label: str
    run: Callable[[], Cost]
    packages: Sequence[str] = ()
    measure_memory: Callable[[], int | None] | None = None
    versions: Mapping[str, str] = field(default_factory=dict)


def in_this_process(work: Callable[[], Any]) -> Callable[[], Cost]:
    """Return a run that calls a function here, with the garbage of earlier turns out of the way."""

    def run() -> Cost:
        gc.collect()
        begin = perf_counter()
        work()
        return Cost(perf_counter() - begin)

    return run


# VmHWM and not getrusage, whose peak a child inherits from the process that started it.
_FRESH = """
import sys, time
{setup}
begin = time.perf_counter()
{work}
seconds = time.perf_counter() - begin
try:
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
except OSError:
    peak = ""
print("cost", seconds, peak)
"""


def in_a_fresh_process(work: str, setup: str = "", python: str = sys.executable) -> Callable[[], Cost]:
    """Return a run that executes code in a Python of its own, timed inside it, after its ``setup``.

    A peer that cannot share our environment is run by its own interpreter: pass its ``python``.
    """
    code = _FRESH.format(setup=textwrap.dedent(setup), work=textwrap.dedent(work))

    def run() -> Cost:
        done = subprocess.run([python, "-c", code], cwd=CHECKOUT, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the process for {work!r} ended with an error:\n{done.stderr}")
        _, seconds, *peak = done.stdout.splitlines()[-1].split()
        return Cost(float(seconds), int(peak[0]) if peak else None)

    return run


def measure(sides: Sequence[Side], rounds: int) -> list[list[Cost]]:
    """Return the costs of each side over the rounds, every side having one turn in each round."""
    for side in sides:
        side.run()
    turns = [[side.run() for side in sides] for _ in range(rounds)]
    return [list(costs) for costs in zip(*turns, strict=True)]


def summarize(
    name: str, sides: Sequence[Side], costs: Sequence[Sequence[Cost]], quick: bool
) -> dict[str, Any]:
    """Return the figures of a benchmark as they are stored; the first side is ours."""
    rows: list[dict[str, Any]] = []
    for side, taken in zip(sides, costs, strict=True):
        seconds = [cost.seconds for cost in taken]
        peaks = [cost.peak_memory for cost in taken if cost.peak_memory]
        if side.measure_memory is not None:
            peaks.append(side.measure_memory() or 0)
        rows.append(
            {
                "label": side.label,
                "median_seconds": median(seconds),
                "fastest_seconds": min(seconds),
                "slowest_seconds": max(seconds),
                "peak_memory_mib": round(max(peaks) / 2**20, 1) if any(peaks) else None,
                "seconds": seconds,
            }
        )
    for row in rows:
        row["times_ours"] = row["median_seconds"] / rows[0]["median_seconds"]
    packages = sorted({package for side in sides for package in side.packages})
    return {
        "name": name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "quick": quick,
        "rounds": len(costs[0]),
        "machine": {
            "cores": os.cpu_count(),
            "memory_gib": _memory_gib(),
            "system": platform.system(),
            "processor": platform.machine(),
            "python": platform.python_version(),
        },
        "versions": {package: version(package) for package in packages}
        | {package: known for side in sides for package, known in side.versions.items()},
        "sides": rows,
    }


def _commit() -> str | None:
    """Return which state of the project was measured, None outside a checkout; figures just stored change nothing."""
    try:
        head, changed = (
            subprocess.run(["git", *arguments], cwd=CHECKOUT, capture_output=True, text=True)
            for arguments in (
                ("rev-parse", "--short", "HEAD"),
                ("status", "--porcelain", "--untracked-files=no", "--", ".", ":!benchmarks/results"),
            )
        )
    except OSError:  # no Git
        return None
    return head.stdout.strip() + "-dirty" * bool(changed.stdout) if head.stdout else None


def _memory_gib() -> float | None:
    if not hasattr(os, "sysconf"):  # Windows
        return None
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)


def show(summary: dict[str, Any], console: Console) -> None:
    """Print the figures as a table."""
    table = Table(title=f"{summary['name']}: {summary['rounds']} rounds{', quick' * summary['quick']}")
    table.add_column("side", overflow="fold")
    for heading in ("median s", "range s", "peak MiB", "times ours"):
        table.add_column(heading, justify="right")
    for row in summary["sides"]:
        table.add_row(
            row["label"],
            f"{row['median_seconds']:.4f}",
            f"{row['fastest_seconds']:.4f} - {row['slowest_seconds']:.4f}",
            "" if row["peak_memory_mib"] is None else f"{row['peak_memory_mib']:.0f}",
            f"{row['times_ours']:.2f}",
        )
    console.print(table)
    if summary.get("figures"):
        figures = Table()
        for heading in summary["figures"][0]:
            figures.add_column(heading, overflow="fold")
        for row in summary["figures"]:
            figures.add_row(*(_shown(value) for value in row.values()))
        console.print(figures)


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " - ".join(_shown(entry) for entry in value)
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def write(summary: dict[str, Any], file: Path) -> None:
    """Store the figures as JSON."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
