"""Run faults: python -m tests.mutants [curated|random] [--only GLOB] [--jobs N] [--seed N] [--count N] [--fast]."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatch

from tests.mutants import at_random, curated
from tests.mutants.fault import Fault
from tests.mutants.runner import run_faults


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; 1 if a curated fault survived or something went wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description="Faults that the tests must notice."
    )
    parser.add_argument("which", nargs="?", choices=("curated", "random"), default="curated")
    parser.add_argument("--only", metavar="GLOB", help="only faults of these names")
    parser.add_argument("--jobs", type=int, default=1, help="how many at once")
    parser.add_argument("--seed", type=int, default=0, help="of the random faults")
    parser.add_argument("--count", type=int, default=300, help="how many random faults")
    parser.add_argument(
        "--seconds", type=float, default=20, help="of tests for each random fault, the quickest first"
    )
    parser.add_argument("--fast", action="store_true", help="the most telling curated faults alone")
    parser.add_argument("--list", action="store_true", help="name the faults, run none")
    parser.add_argument("--verbose", action="store_true", help="show what pytest said where a fault survived")
    chosen = parser.parse_args(arguments)
    faults: Sequence[Fault]
    if chosen.which == "random":
        faults = at_random.drawn(chosen.count, chosen.seed)
    else:
        faults = curated.FAST if chosen.fast else curated.FAULTS
    if chosen.only:
        faults = [fault for fault in faults if fnmatch(fault.name, chosen.only)]
    if chosen.list:
        for fault in faults:
            print(f"{fault.name:45} {fault.symbol}: {fault.old!r} -> {fault.new!r}; {fault.breaks}")
        return 0
    return _run(faults, chosen)


def _run(faults: Sequence[Fault], chosen: argparse.Namespace) -> int:
    begin, found = time.monotonic(), Counter[str]()
    most = chosen.seconds if chosen.which == "random" else math.inf
    for fault, outcome in run_faults(faults, jobs=chosen.jobs, most=most):
        if fault is None:
            print(f"without a fault: {len(outcome.seconds)} tests passed in {outcome.took:.0f} s", flush=True)
            if outcome.code != 0:
                print(outcome.said[-5000:])
                return 1
            continue
        found[outcome.word] += 1
        by = outcome.failed[0].rpartition("/")[2] if outcome.failed else ""
        print(f"{outcome.word:9} {outcome.took:6.1f} s  {fault.name}  {by[:90]}", flush=True)
        if outcome.word in ("SURVIVED", "ERROR"):
            print(f"          {fault.symbol}: {fault.old!r} -> {fault.new!r}", flush=True)
            print(f"          {fault.breaks}", flush=True)
            if chosen.verbose or outcome.word == "ERROR":
                print(outcome.said[-2000:], flush=True)
    total = found.total()
    noticed = found["killed"] + found["timed out"]
    words = ", ".join(f"{count} {word}" for word, count in found.items())
    print(f"{noticed} of {total} faults noticed ({words}) in {time.monotonic() - begin:.0f} s")
    if total < len(faults):
        named = [fault.name for fault in faults]
        print(
            f"only {total} of {len(faults)} were run: a test that a fault names did not pass without it ({named[:3]})"
        )
        return 1
    wrong = found["ERROR"] + (found["SURVIVED"] if chosen.which == "curated" else 0)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
