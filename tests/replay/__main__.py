"""Replay many pairs of neighbours: ``python -m tests.replay --pairs 650 --jobs 2``.

Prints a line for each method and relation, and for each kind of difference the bytes that show it again with
``--method NAME --relation RELATION --input HEX``.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import re
import subprocess
import sys
import time


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.replay", description=__doc__)
    parser.add_argument("--pairs", type=int, default=650, help="of each method and relation")
    parser.add_argument("--deep-pairs", type=int, default=20, help="of those whose fits take seconds")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--method", action="append")
    parser.add_argument("--relation")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--job", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument(
        "--shown", type=int, default=5, help="kinds of differences of each method and relation"
    )
    parser.add_argument("--input", help="bytes, in hexadecimal digits")
    options = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    if options.jobs > 1 and not options.job:
        # Processes of their own: in a worker of a pool nothing is promised.
        parts = [
            subprocess.Popen([sys.executable, "-m", "tests.replay", *sys.argv[1:], "--job", str(job + 1)])
            for job in range(options.jobs)
        ]
        sys.exit(max(part.wait() for part in parts))

    from tests.replay.pairs import replay
    from tests.replay.ways import METHODS

    cells = [
        (name, relation)
        for name, method in METHODS.items()
        for relation in method.relations
        if (not options.method or name in options.method) and options.relation in (None, relation)
    ]
    if options.input:
        print(*replay(*cells[0], bytes.fromhex(options.input)), sep="\n")
        return
    mine = cells[options.job - 1 :: options.jobs] if options.job else cells
    began, totals = time.monotonic(), collections.Counter[str]()
    print(
        "| method | relation | pairs | refused | unproven | differences | questions | seconds |\n"
        + "|---" * 8
        + "|"
    )
    for name, relation in mine:
        if METHODS[name].skipped:
            print(f"| {name} | {relation} | not installed |", flush=True)
            continue
        counts: collections.Counter[str] = collections.Counter()
        kinds: dict[str, str] = {}
        start, rng = time.monotonic(), random.Random(f"{options.seed} {name} {relation}")
        for _ in range(options.deep_pairs if METHODS[name].deep else options.pairs):
            if time.monotonic() > began + 60 * options.minutes:
                break
            data = rng.randbytes(48)
            result = replay(name, relation, data)
            counts.update({"pairs": 1, result.status: 1, "questions": result.questions})
            if result.found:
                counts["differences"] += 1
                kind = f"{result.way}: {re.sub(r'[0-9]+', '0', result.found[0])[:70]}"
                kinds.setdefault(kind, f"  {result.way}: {result.found[0][:300]}\n    --input {data.hex()}")
        totals += counts
        figures = [counts[c] for c in ("pairs", "refused", "unproven", "differences", "questions")]
        print(
            f"| {name} | {relation} | {' | '.join(map(str, figures))} | {time.monotonic() - start:.0f} |",
            flush=True,
        )
        for shown in list(kinds.values())[: options.shown]:
            print(shown, flush=True)
    minutes = (time.monotonic() - began) / 60
    print(f"{totals['pairs']} pairs, {totals['differences']} differences, {minutes:.1f} minutes")
    sys.exit(bool(totals["differences"]))


if __name__ == "__main__":
    main()
