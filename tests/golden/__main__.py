"""Record and compare golden outputs: ``python -m tests.golden record|compare|list``; see the package's docstring."""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import pickle
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line says; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description="Golden outputs.")
    parser.add_argument("what", choices=("record", "compare", "list"))
    parser.add_argument("--only", action="append", metavar="NAME-GLOB", help="may be given again")
    parser.add_argument("--except", action="append", dest="without", metavar="PART", help="do not compare it")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tolerance", type=float, default=None, help="relative; 1e-9 if not given")
    parser.add_argument("--order", type=int, metavar="SEED", help="run the cases in another order")
    parser.add_argument("--shown", type=int, default=3, help="differences of each part of a case")
    parser.add_argument(
        "--slowest", type=int, default=0, help="print so many cases with their processor seconds"
    )
    options = parser.parse_args(arguments)
    # One thread each, before NumPy is imported: small cases are quicker so, and the jobs share the cores.
    for name in _THREADS:
        os.environ.setdefault(name, "1")

    from tests.golden.case import all_cases
    from tests.golden.coverage import uncovered

    cases = all_cases()
    names = [n for n in cases if not options.only or any(fnmatch.fnmatchcase(n, own) for own in options.only)]
    if options.what == "list":
        return _list(cases, names, uncovered(cases))
    skipped = {name: why for name in names if (why := cases[name].skipped) is not None}
    names = [name for name in names if name not in skipped]
    for why, number in sorted(Counter(skipped.values()).items()):
        print(f"skipped {number} case{'s' * (number > 1)}: {why}")
    if options.order is not None:
        random.Random(options.order).shuffle(names)

    from tests.golden import comparing, store

    start = time.monotonic()
    tolerance = comparing.TOLERANCE if options.tolerance is None else options.tolerance
    golden, now, failed, seconds = store.load(), {}, {}, {}
    for name, parts, error, took in _runs(cases, names, options.jobs):
        seconds[name] = took
        if error is None:
            now[name] = parts
        else:
            failed[name] = error
    found = [
        d
        for name in sorted(now)
        for d in comparing.compared(
            name, golden.get(name), now[name], max(tolerance, cases[name].coarsest if tolerance else 0.0)
        )
    ]
    gone = sorted(set(golden) - set(cases)) if not options.only else []
    found += [
        comparing.Difference(name, "case", "the whole case", "recorded", "no such case") for name in gone
    ]
    found = [d for d in found if d.part not in (options.without or ())]

    for name in sorted(seconds, key=lambda n: -seconds[n])[: options.slowest]:
        print(f"{seconds[name]:7.2f} s  {name}")
    if found:
        print(comparing.report(found, options.shown), end="\n\n")
        print(comparing.summary(found))
    for name, error in failed.items():
        print(f"{name} failed:\n{error}")
    if options.what == "record":
        changed = {d.case for d in found}
        # What compares equal stays as it was recorded, so that another processor's last digits change nothing.
        kept = {name: parts for name, parts in golden.items() if name not in changed}
        for path in store.save(kept | {name: now[name] for name in changed & now.keys()}):
            print(f"written: {path.name}")
    differing = len({d.case for d in found})
    print(
        f"{len(now)} cases ran, {len(now) - len({d.case for d in found} & now.keys())} equal, {differing} different, "
        f"{len(failed)} failed, {len(skipped)} skipped, in {time.monotonic() - start:.0f} s"
    )
    return int(bool(failed) or (options.what == "compare" and bool(found)))


def _runs(cases: Any, names: list[str], jobs: int) -> Any:
    """Yield each case's name, parts, error and seconds, as they end."""
    from tests.golden.case import tried

    if jobs <= 1:
        yield from map(tried, names)
        return
    # Programs of their own: in the worker of a pool a fit promises nothing.
    shares: list[list[str]] = [[] for _ in range(3 * jobs)]
    for batch in _batches(cases, names):
        min(shares, key=len).extend(batch)
    with ThreadPoolExecutor(jobs) as pool:
        for done in as_completed([pool.submit(_share, share) for share in shares if share]):
            yield from done.result()


def _share(names: list[str]) -> Any:
    """Return what a program of its own makes of some cases."""
    with tempfile.TemporaryDirectory() as folder:
        asked, made = Path(folder, "names.json"), Path(folder, "made.pickle")
        asked.write_text(json.dumps(names))
        subprocess.run([sys.executable, "-m", "tests.golden.part", asked, made], check=True)
        return pickle.loads(made.read_bytes())


def _batches(cases: Any, names: list[str]) -> list[list[str]]:
    """Return the cases that one process takes at a time: those of one optional package, which compiles for long."""
    batches: dict[Any, list[str]] = {}
    for name in names:
        batches.setdefault(cases[name].needs or name, []).append(name)
    return sorted(batches.values(), key=len, reverse=True)


def _list(cases: Any, names: list[str], missing: list[str]) -> int:
    for name in names:
        own = cases[name]
        marks = [*own.needs, *(["data sets"] if own.data else []), *(["quick"] if own.quick else [])]
        print(f"{name}" + (f"  ({', '.join(marks)})" if marks else ""))
        for place, why in own.unstable.items():
            print(f"    not compared: {place}: {why}")
    rooms = Counter(cases[name].room for name in names)
    print(f"{len(names)} cases: " + ", ".join(f"{room} {number}" for room, number in rooms.items()))
    if missing:
        print(f"without a case: {', '.join(missing)}; add one in tests/golden/cases")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
