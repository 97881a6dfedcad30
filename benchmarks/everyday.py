"""The commands of every day, each in a fresh process: the help, the demonstration, the audit of a large release.

The demonstration is timed cold, with no compiled kernels at all, and warm, as from its second run on.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd

from benchmarks.runner import Cost, Side

SUMMARY = "oversafe --help, demo (cold and warm), and audit of a 100,000 x 30 release with its real table"
_ROWS, _RARE = 51_000, 1_000
_NUMBERS, _CATEGORIES = 25, 4


def command(folder: Path, *arguments: str, kernels: Path | None = None) -> Cost:
    """Return what a command took, with the kernels of a folder."""
    environment = dict(os.environ)
    if kernels is not None:
        environment["NUMBA_CACHE_DIR"] = str(kernels)
    begin = perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "oversafe", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    seconds = perf_counter() - begin
    # 1 is a verdict that does not let a release through.
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)
    return Cost(seconds)


def write_tables(folder: Path, rows: int, rare: int) -> None:
    """Write a real table of mixed columns with a rare class, and the release that SMOTE makes of it."""
    from oversafe.data import write_table
    from oversafe.protect import SMOTENC

    rng = np.random.default_rng(0)
    y = np.repeat(["common", "rare"], [rows - rare, rare])
    mixing = rng.normal(size=(_NUMBERS, _NUMBERS)) / np.sqrt(_NUMBERS)
    numbers = rng.normal(size=(rows, _NUMBERS)) @ mixing + 0.8 * (y == "rare")[:, None]
    X = pd.DataFrame(numbers, columns=[f"measurement_{i}" for i in range(_NUMBERS)]).round(4)
    for i in range(_CATEGORIES):
        X[f"group_{i}"] = rng.choice([f"level {j}" for j in range(5 + i)], size=rows)
    X_new, y_new = SMOTENC(random_state=0).fit_resample(X, pd.Series(y, name="outcome"))
    write_table(X.assign(outcome=y), folder / "real.csv")
    write_table(X_new.assign(outcome=np.asarray(y_new)), folder / "release.csv")


def sides(quick: bool, folder: Path) -> list[Side]:
    """Return the commands; a quick run audits a small release."""
    rows, rare = (2_000, 100) if quick else (_ROWS, _RARE)
    write_tables(folder, rows, rare)
    warm = folder / "kernels"

    def demo(kernels: Callable[[], Path]) -> Callable[[], Cost]:
        def run() -> Cost:
            with tempfile.TemporaryDirectory(dir=folder) as empty:
                return command(Path(empty), "demo", kernels=kernels())

        return run

    def audit() -> Cost:
        given = ("audit", "release.csv", "--real", "real.csv", "--label", "outcome")
        return command(folder, *given, "--report", "audit.html", kernels=warm)

    cases: dict[str, Callable[[], Cost]] = {
        "oversafe --help": lambda: command(folder, "--help"),
        "oversafe demo, warm": demo(lambda: warm),
        "oversafe demo, cold": demo(lambda: Path(tempfile.mkdtemp(dir=folder))),
        f"oversafe audit, {2 * (rows - rare):,} x {_NUMBERS + _CATEGORIES + 1}": audit,
    }
    return [Side(label, run, ["oversafe", "numba", "scikit-learn"]) for label, run in cases.items()]
