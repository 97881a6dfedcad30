"""Charge a ledger from several processes that are killed at random, until its budget is spent.

    python ledger_workers.py LOCATION KEY_FILE FOLDER WORKERS KILLS PAUSE SEED EPSILON

Each worker writes the number of an entry to a file of its own after the charge was confirmed. The parent kills one of
them with SIGKILL after up to PAUSE seconds, and again, and starts another in its place.
"""

import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

from oversafe.privacy import Guarantee, Ledger, OverdraftError


def work(ledger, guarantee, confirmed):
    handle = os.open(confirmed, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        while True:
            entry = ledger.charge("people", guarantee, what=str(os.getpid()))
            os.write(handle, f"{entry.number}\n".encode())
    except OverdraftError:
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def main(location, key_file, folder, workers, kills, pause, seed, epsilon):
    ledger = Ledger(location, key_file=key_file)
    # One charge before the fork, so that what it imports is imported once.
    guarantee = Guarantee.pure(float(epsilon), "randomized response")
    Path(folder, "first").write_text(f"{ledger.charge('people', guarantee).number}\n")
    rng = random.Random(int(seed))
    running, left, status = set(), int(kills), 0

    def start():
        child = os.fork()
        if child == 0:
            work(ledger, guarantee, Path(folder, str(os.getpid())))
        running.add(child)

    for _ in range(int(workers)):
        start()
    while running:
        if left:
            time.sleep(rng.random() * float(pause))
        child, code = os.waitpid(-1, os.WNOHANG if left else 0)
        if child:
            # It found the budget spent: nobody is started in its place.
            running.discard(child)
            status |= code
            continue
        child = rng.choice(sorted(running))
        os.kill(child, signal.SIGKILL)
        running.discard(child)
        # Unless it had ended by itself just before.
        _, code = os.waitpid(child, 0)
        left -= 1
        if os.WIFSIGNALED(code):
            start()
        else:
            status |= code
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
