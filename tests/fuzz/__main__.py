"""Feed a target with hostile input for some time of the processor: ``python -m tests.fuzz protecting --seconds 600``.

With ``--guided`` (needs ``pip install atheris``) what is tried is guided by what it reaches in the code. What fails is
written to ``fuzz-TARGET-*.bin``, and tried again by ``--input FILE``.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

LONGEST = 60


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--guided", action="store_true")
    parser.add_argument("--input", type=Path)
    options = parser.parse_args()
    # Threads that wait for one another on a busy machine would use the time up; read when NumPy is imported.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    if options.guided:
        _guided(options)
        return
    from tests.fuzz.targets import TARGETS, run

    if options.input is not None:
        print("accepted" if run(options.target, options.input.read_bytes()) else "refused")
        return
    if options.target not in TARGETS:
        parser.error(f"unknown target; use one of {', '.join(TARGETS)}")
    rng, end = random.Random(options.seed), time.process_time() + options.seconds
    found: dict[str, str] = {}
    counts: collections.Counter[str] = collections.Counter()
    signal.signal(signal.SIGPROF, _too_long)
    while time.process_time() < end:
        data = rng.randbytes(rng.choice((16, 64, 256)))
        # Of the processor: a busy machine is no hang.
        signal.setitimer(signal.ITIMER_PROF, LONGEST)
        try:
            counts["accepted" if run(options.target, data) else "refused"] += 1
        except (Exception, SystemExit) as error:
            counts["failed"] += 1
            place = traceback.extract_tb(error.__traceback__)[-1]
            key = f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
            if key not in found:
                found[key] = f"fuzz-{options.target}-{hashlib.sha256(data).hexdigest()[:12]}.bin"
                Path(found[key]).write_bytes(data)
                print(f"{key}: {str(error)[:300]!r} ({found[key]})", flush=True)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    print(f"{options.target}: {dict(counts)}, {len(found)} kinds of failure", flush=True)
    sys.exit(bool(found))


def _too_long(*_: object) -> None:
    raise TimeoutError(f"more than {LONGEST} seconds")


def _guided(options: argparse.Namespace) -> None:
    import atheris

    with atheris.instrument_imports(include=["oversafe"]):
        from tests.fuzz.targets import run

    def one(data: bytes) -> None:
        run(options.target, data)

    atheris.Setup(
        [sys.argv[0], f"-max_total_time={options.seconds}", f"-timeout={LONGEST}", "-rss_limit_mb=8000"], one
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
