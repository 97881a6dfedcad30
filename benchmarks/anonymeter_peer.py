"""Linkability and singling out against anonymeter: the tables, the check that both agree, and the sides."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.peers import python_of
from benchmarks.runner import CHECKOUT, Side, in_a_fresh_process

REQUIREMENT = "anonymeter==1.1.0"
# Both take the columns in turn, so that each source knows numbers and categories.
COLUMNS = [*(f"number_{i}" for i in range(4)), "age", "visits", *(f"category_{i}" for i in range(3)), "flag"]


def mixed_people(rows: int, seed: int) -> pd.DataFrame:
    """Return ten columns that hang together: numbers, integers, categories and a boolean."""
    rng = np.random.default_rng(seed)
    weights = 0.7 * np.random.default_rng(12345).normal(size=(4, len(COLUMNS)))
    x = rng.normal(size=(rows, 4)) @ weights + 0.6 * rng.normal(size=(rows, len(COLUMNS)))
    table = pd.DataFrame(x, columns=COLUMNS)
    table["age"] = np.clip(np.rint(50 + 15 * x[:, 4]), 18, 95).astype(int)
    table["visits"] = np.floor(np.exp(x[:, 5])).astype(int)
    for i, count in enumerate((3, 6, 12)):
        codes = np.clip(((x[:, 6 + i] + 3) / 6 * count).astype(int), 0, count - 1)
        table[f"category_{i}"] = np.array([f"value {j}" for j in range(count)])[codes]
    table["flag"] = x[:, 9] > 1
    return table


def write_tables(rows: int, folder: Path) -> None:
    """Write a real table, a holdout, and a release that holds three tenths of the real rows."""
    real, holdout, fresh = (mixed_people(rows, seed) for seed in range(3))
    kept = np.random.default_rng(3).random(rows) < 0.3
    release = pd.concat([real[kept], fresh[~kept]]).sample(frac=1, random_state=0)
    for name, table in (("real", real), ("holdout", holdout), ("release", release)):
        table.to_csv(folder / f"{name}.csv", index=False)


_READ = """
import json, logging
import pandas as pd
real, holdout, release = (pd.read_csv({folder!r} + f"/{{name}}.csv") for name in ("real", "holdout", "release"))
columns = list(real.columns)
"""


def make_sides(
    quick: bool, folder: Path, ours: str, theirs: str, labels: tuple[str, str], names: Sequence[str]
) -> list[Side]:
    """Write the tables, check that both sides find the same risks, and return the sides.

    ``ours`` and ``theirs`` define ``work(release, real, holdout)``, which returns a list of risks with the
    ends of their intervals. Each is called once before the clock starts, on a small table, so that
    neither is charged for compiling.
    """
    write_tables(1_000 if quick else 10_000, folder)
    read = _READ.format(folder=str(folder))
    peer = python_of(REQUIREMENT)
    setups = [
        read + textwrap.dedent(code) + "\nwork(release.head(300), real.head(300), holdout.head(300))\n"
        for code in (ours, theirs)
    ]
    found = [_risks(setup, python) for setup, python in zip(setups, (sys.executable, peer), strict=True)]
    check_agreement(*found, names)
    version = REQUIREMENT.partition("==")[2]
    return [
        Side(
            f"{label}: {_shown(risks, names)}",
            in_a_fresh_process("work(release, real, holdout)", setup, python),
            packages,
            versions=versions,
        )
        for label, risks, setup, python, packages, versions in zip(
            labels,
            found,
            setups,
            (sys.executable, peer),
            (["oversafe", "numba"], []),
            ({}, {"anonymeter": version}),
            strict=True,
        )
    ]


def _risks(setup: str, python: str) -> list[tuple[float, float, float]]:
    code = setup + "\nprint(json.dumps(work(release, real, holdout)))"
    done = subprocess.run([python, "-c", code], cwd=CHECKOUT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the process of {python} ended with an error:\n{done.stderr}")
    found: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return [(float(risk), float(low), float(high)) for risk, low, high in found]


def check_agreement(
    ours: Sequence[tuple[float, float, float]],
    theirs: Sequence[tuple[float, float, float]],
    names: Sequence[str],
) -> None:
    """Raise unless the intervals of both sides overlap in every risk."""
    for name, (risk, low, high), (other, other_low, other_high) in zip(names, ours, theirs, strict=True):
        if low > other_high or other_low > high:
            raise AssertionError(
                f"{name}: the risks differ: {risk:.3f} ({low:.3f} to {high:.3f}) and "
                f"{other:.3f} ({other_low:.3f} to {other_high:.3f})"
            )


def _shown(risks: Sequence[tuple[float, float, float]], names: Sequence[str]) -> str:
    return ", ".join(
        f"{name} {risk:.2f} ({low:.2f} to {high:.2f})"
        for name, (risk, low, high) in zip(names, risks, strict=True)
    )
