"""Runs the tests of each fault in a process of its own, forked from one that has the libraries but not the package."""

from __future__ import annotations

import contextlib
import gc
import importlib
import itertools
import math
import os
import pickle
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.fault import PACKAGE, Fault

ROOT = Path(__file__).parents[2]
# What the package and its tests import, so that a fault's process has it at once; what is not installed is left out.
_LIBRARIES = (
    "numpy.testing", "pandas", "scipy.stats", "scipy.optimize", "sklearn.pipeline", "sklearn.linear_model",
    "sklearn.ensemble", "sklearn.model_selection", "imblearn.pipeline", "imblearn.over_sampling", "pyarrow.parquet",
    "numba", "joblib", "opendp.measurements", "dp_accounting.pld.privacy_loss_distribution", "dp_accounting.rdp",
    "hypothesis", "jsonschema", "typer", "rich.console", "jinja2", "torch", "opacus.grad_sample",
)  # fmt: skip
# What costs seconds at every start and helps nobody here.
_OPTIONS = (
    "-q", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:unraisableexception", "-p", "no:threadexception",
)  # fmt: skip
# A fault's tests may take this many times as long as without it, and this many seconds more.
_PATIENCE, _GRACE = 5, 20


@dataclass
class Outcome:
    """How the tests of one run ended.

    Parameters
    ----------
    code : int
        pytest's exit code, or -1 where the time was up.
    seconds : dict of str to float
        Of each test that passed.
    failed : list of str
        The tests that did not.
    took : float
        Seconds in all.
    said : str
        What pytest printed.
    """

    code: int = 3
    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    took: float = 0.0
    said: str = ""

    @property
    def word(self) -> str:
        """The outcome in a word."""
        # 1: a test failed, 2: the tests could not be imported any more.
        return {0: "SURVIVED", 1: "killed", 2: "killed", -1: "timed out"}.get(self.code, "ERROR")


class _Listener:
    """Takes down what each test came to."""

    def __init__(self) -> None:
        self.outcome = Outcome()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.outcome.failed.append(report.nodeid)
        elif report.when == "call" and report.passed:
            self.outcome.seconds[report.nodeid] = report.duration

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.outcome.failed.append(report.nodeid)


def import_libraries() -> None:
    """Import what is slow to import, but nothing of the package."""
    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    assert not any(name.partition(".")[0] == "oversafe" for name in sys.modules)
    # Nothing of it is looked through again in the forked processes.
    gc.collect()
    gc.freeze()


class Copy:
    """A copy of the package in a folder of its own, of which one module at a time is changed.

    The compiled loops of numba are kept beside the copy, so that they are made once.
    """

    def __init__(self, folder: Path, source: Path = PACKAGE):
        self.folder = folder
        shutil.copytree(source, folder / "src" / "oversafe", ignore=shutil.ignore_patterns("*.pyc"))
        self._edits = 0

    @contextlib.contextmanager
    def changed(self, file: str, source: str) -> Iterator[None]:
        """Have another source in a module for a while."""
        path = self.folder / "src" / "oversafe" / file
        before, status = path.read_bytes(), path.stat()
        self._edits += 1
        path.write_text(source, encoding="utf-8")
        # Byte code is told by the second in which its source was changed, and by its length.
        os.utime(path, (status.st_atime, status.st_mtime + 10 * self._edits))
        try:
            yield
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


class Run:
    """pytest in a forked process, on a copy of the package."""

    def __init__(self, copy: Copy, tests: Sequence[str], *, stop_at_first: bool, limit: float):
        self.limit, self.start = limit, time.monotonic()
        self._results = copy.folder / "outcome"
        self._results.unlink(missing_ok=True)
        self._log = copy.folder / "log"
        sys.stdout.flush()
        self.process = os.fork()
        if self.process == 0:
            code = 3
            try:
                code = self._in_child(copy, tests, stop_at_first)
            finally:
                os._exit(code)

    def _in_child(self, copy: Copy, tests: Sequence[str], stop_at_first: bool) -> int:
        os.setsid()
        os.chdir(ROOT)
        with self._log.open("w") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        source = str(copy.folder / "src")
        sys.path.insert(0, source)
        os.environ["PYTHONPATH"] = source
        # Not of the process that started this one, nor of its services.
        os.environ.pop("CI", None)
        listener = _Listener()
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        options = [f"--basetemp={copy.folder / 'tmp'}", *_OPTIONS, *(["-x"] if stop_at_first else [])]
        code = int(pytest.main([*options, *tests], plugins=[listener]))
        package = sys.modules.get("oversafe")
        if package is not None and not str(package.__file__).startswith(source):
            raise AssertionError(f"the tests imported {package.__file__}")
        listener.outcome.code = code
        self._results.write_bytes(pickle.dumps(listener.outcome))
        sys.stdout.flush()
        return code

    def poll(self) -> Outcome | None:
        """Return the outcome if the process has ended or its time is up."""
        took = time.monotonic() - self.start
        ended, _ = os.waitpid(self.process, os.WNOHANG)
        if not ended and took <= self.limit:
            return None
        if not ended:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
            outcome = Outcome(-1)
        elif self._results.exists():
            outcome = pickle.loads(self._results.read_bytes())
        else:
            outcome = Outcome()
        outcome.took, outcome.said = took, self._log.read_text(errors="replace")
        return outcome

    def wait(self) -> Outcome:
        """Return the outcome when the process has ended."""
        while (outcome := self.poll()) is None:
            time.sleep(0.02)
        return outcome


def run_faults(
    faults: Sequence[Fault], *, jobs: int, most: float = math.inf
) -> Iterator[tuple[Fault | None, Outcome]]:
    """Yield the outcome of the tests without any fault, with None, and then each fault's as it comes.

    Parameters
    ----------
    faults : sequence of Fault
        What to try.
    jobs : int
        How many at once.
    most : float
        If it is given, a fault's tests are run from the quickest on, and only those that take so many seconds together.
    """
    import_libraries()
    with tempfile.TemporaryDirectory(prefix="oversafe-mutants-") as place:
        copies = [Copy(Path(place) / "0")]
        tests = list(dict.fromkeys(test for fault in faults for test in fault.tests))
        without = Run(copies[0], tests, stop_at_first=False, limit=3600).wait()
        yield None, without
        if without.code != 0 or not all(_seconds(fault, without) for fault in faults):
            return
        # With what numba compiled meanwhile.
        copies += [
            Copy(Path(place) / str(i), copies[0].folder / "src" / "oversafe") for i in range(1, max(jobs, 1))
        ]
        waiting, running = list(faults[::-1]), {}
        idle = list(copies)
        while waiting or running:
            while waiting and idle:
                fault, copy = waiting.pop(), idle.pop()
                stack = contextlib.ExitStack()
                source = fault.apply(
                    (copy.folder / "src" / "oversafe" / fault.file).read_text(encoding="utf-8")
                )
                stack.enter_context(copy.changed(fault.file, source))
                limit = _GRACE + _PATIENCE * min(most, _seconds(fault, without))
                chosen = fault.tests if most == math.inf else _quickest(fault, without, most)
                running[copy] = fault, stack, Run(copy, chosen, stop_at_first=True, limit=limit)
            for copy, (fault, stack, run) in list(running.items()):
                if (outcome := run.poll()) is not None:
                    stack.close()
                    del running[copy]
                    idle.append(copy)
                    yield fault, outcome
            time.sleep(0.02)


def _named(test: str, without: Outcome) -> dict[str, float]:
    """Return the tests that passed of a file or of a name, and their seconds."""
    prefixes = (f"{test}::", f"{test}[", f"{test}/")
    return {name: took for name, took in without.seconds.items() if name == test or name.startswith(prefixes)}


def _seconds(fault: Fault, without: Outcome) -> float:
    """Return how long a fault's tests take without it; 0 if one of what it names is no test that passed."""
    each = [_named(test, without) for test in fault.tests]
    return sum(sum(own.values()) + 1e-3 for own in each) if all(each) else 0.0


def _quickest(fault: Fault, without: Outcome, most: float) -> list[str]:
    """Return the tests of a fault from the quickest on, as long as they take no more seconds together."""
    known = {name: took for test in fault.tests for name, took in _named(test, without).items()}
    names = sorted(known, key=known.__getitem__)
    sums = itertools.accumulate(known[name] for name in names)
    return [name for name, total in zip(names, sums, strict=True) if total <= most] or names[:1]
