"""Cases: seeded functions with a name, what they cover and what they need."""

from __future__ import annotations

import contextlib
import os
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from tests.golden.output import Output, Parts, without_stamps

# Modules of cases, by the room that they look at.
ROOMS = ("surface", "data", "privacy", "protect", "learn", "attack", "measure", "audit", "compare", "command")


@dataclass(frozen=True)
class Case:
    """A golden case.

    Parameters
    ----------
    name : str
        ``room/what``.
    run : callable
        Hands its results to an output.
    covers : tuple of str
        Public names, as ``protect.SMOTE``.
    needs : tuple of str
        Optional packages.
    data : bool
        Whether it reads the data sets of ``OVERSAFE_DATA``.
    quick : bool
        Whether it belongs to the few that the default tier of the tests compares.
    unstable : mapping of str to str
        Places that are not compared, and why.
    """

    # Torch computes in single precision, whose last digits change with the number of threads.
    _SINGLE: ClassVar = {"torch", "opacus"}
    _SINGLE_TOLERANCE: ClassVar = 1e-4

    name: str
    run: Callable[[Output], None]
    covers: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    data: bool = False
    quick: bool = False
    unstable: Mapping[str, str] = field(default_factory=dict)

    @property
    def room(self) -> str:
        """The module of its case, and the file of its golden output."""
        return self.name.partition("/")[0]

    @property
    def coarsest(self) -> float:
        """The relative tolerance that its numbers need at least."""
        return self._SINGLE_TOLERANCE if self._SINGLE.intersection(self.needs) else 0.0

    @property
    def skipped(self) -> str | None:
        """What is missing here for it, if anything is."""
        missing = [package for package in self.needs if find_spec(package) is None]
        if missing:
            return f"{missing[0]} is not installed"
        return (
            "the data sets are missing (OVERSAFE_DATA)" if self.data and not data_folder().is_dir() else None
        )


_cases: dict[str, Case] = {}


def case(
    name: str, run: Callable[[Output], None] | None = None, **settings: Any
) -> Callable[[Callable[[Output], None]], Callable[[Output], None]]:
    """Add a case, as a decorator or with its function given."""

    def add(function: Callable[[Output], None]) -> Callable[[Output], None]:
        if name in _cases:
            raise ValueError(f"there are two cases {name!r}")
        _cases[name] = Case(name, function, **settings)
        return function

    if run is not None:
        add(run)
    return add


def all_cases() -> dict[str, Case]:
    """Return all cases by their names."""
    for room in ROOMS:
        import_module(f"tests.golden.cases.{room}")
    return dict(_cases)


def data_folder() -> Path:
    """Return where the data sets are, if they are there."""
    root = Path(__file__).resolve().parents[2]
    return Path(os.environ.get("OVERSAFE_DATA") or root.parent / "shared" / "data")


def run_case(own: Case) -> Parts:
    """Run a case and return its parts; what it warned of is among the sentences."""
    output = Output(own.unstable)
    with _surroundings() as caught:
        own.run(output)
    said = dict.fromkeys(without_stamps(str(w.message)) for w in caught if _is_ours(w))
    output.number("number of warnings", len(said))
    output.text("warnings", said)
    return {part: values for part, values in output.parts.items() if values}


def tried_all(names: list[str]) -> list[tuple[str, Parts | None, str | None, float]]:
    """Return what :func:`tried` returns of each."""
    return [tried(name) for name in names]


def tried(name: str) -> tuple[str, Parts | None, str | None, float]:
    """Return a case's name, its parts, or the error that ended it, and its processor seconds."""
    start = time.process_time()
    try:
        return name, run_case(all_cases()[name]), None, time.process_time() - start
    except Exception:
        return name, None, traceback.format_exc(limit=-6), time.process_time() - start


def _is_ours(warning: warnings.WarningMessage) -> bool:
    # Others' warnings change with their versions.
    return warning.category.__module__.startswith("oversafe") or (
        warning.category is UserWarning and ("oversafe" in warning.filename or "golden" in warning.filename)
    )


@contextlib.contextmanager
def _surroundings() -> Iterator[list[warnings.WarningMessage]]:
    """Give each case the same environment, whatever ran before it."""
    before = dict(os.environ)
    os.environ["OVERSAFE_DATA"] = str(data_folder())
    os.environ["COLUMNS"] = "100"
    for name in ("OVERSAFE_LEDGER_KEY", "OVERSAFE_DEBUG", "NO_COLOR", "FORCE_COLOR"):
        os.environ.pop(name, None)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield caught
    finally:
        os.environ.clear()
        os.environ.update(before)
