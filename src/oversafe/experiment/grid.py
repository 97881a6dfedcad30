"""A grid of settings, run cell by cell: what is finished is kept, whatever happens to the rest."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import Parallel, delayed

from oversafe._core.errors import InputError, was_interrupted
from oversafe.experiment.store import Cell, Store, cell_key, plain

# Of a row beside the settings and the results.
_STATUS, _SECONDS, _ERROR = "status", "seconds", "error"


def run_grid(
    function: Callable[..., Mapping[str, Any] | float],
    grid: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]],
    *,
    store: str | Path | None = None,
    version: str = "",
    retry_failed: bool = True,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Run a function on every cell of a grid and return a table of the results, one row per cell.

    A cell is known by its settings and the function's name. It is stored by the process that ran it, the moment
    it ends; a later call with the same store runs only what is missing. A cell that fails is stored with its
    error, does not disturb the others, and is tried again by the next call.

    Parameters
    ----------
    function : callable
        Called with a cell's settings as keyword arguments. Returns a mapping of names to results (numbers,
        text, lists, arrays, DataFrames), or a single number, which is then named "value". Seeds belong to
        the settings.
    grid : mapping of str to iterable, or iterable of mappings
        The values of each setting, of which all combinations are run; or the cells themselves. Values are
        numbers, text, None, lists, mappings of these, or estimators (known by class and parameters, and by their
        code unless they are oversafe's or scikit-learn's).
    store : path, optional
        A folder for the results, readable by its owner alone. Without one nothing is kept.
    version : str, optional
        Change it when the function has changed, so that earlier cells are not taken for its results.
    retry_failed : bool, default=True
        Whether cells that failed in an earlier call are run again.
    time_limit : float, optional
        Seconds after which no further cell is started; the rest is "pending".
    n_jobs : int, optional
        As in joblib.
    progress : bool, optional
        Whether to show a bar with the time left, or a line now and then where the standard error is no terminal; by
        default the bar alone.

    Returns
    -------
    DataFrame
        The settings, "status" ("done", "failed" or "pending"), "seconds", "error", and the results, in the
        order of the grid.

    Raises
    ------
    InputError
        If the grid or the store cannot be used. Errors of the function do not end the run.

    Examples
    --------
    >>> from oversafe.experiment import run_grid
    >>> def area(width, height):
    ...     return {"area": width * height}
    >>> table = run_grid(area, {"width": [1, 2], "height": [3, 5]})
    >>> table["area"].tolist()
    [3, 5, 6, 10]
    """
    cells = _cells(function, grid, version)
    place = None if store is None else Store(Path(store))
    known: dict[str, Cell] = {}
    if place is not None:
        for cell in cells:
            found = place.read(cell.key)
            if found is not None and (found.status == "done" or not retry_failed):
                known[cell.key] = replace(found, settings=cell.settings)
    missing = [cell for cell in cells if cell.key not in known]
    # The wall clock, because it means the same in every process.
    deadline = None if time_limit is None else time.time() + time_limit
    with _bar(len(cells), len(known), progress) as advance:
        try:
            for cell in _run_all(function, missing, place, deadline, n_jobs):
                known[cell.key] = cell
                advance(cell)
        except KeyboardInterrupt as error:
            kept = sum(cell.status == "done" for cell in known.values()) if place is not None else 0
            raise KeyboardInterrupt(f"{kept} of {len(cells)} cells are kept") from error
    return _table([known[cell.key] for cell in cells])


def _cells(
    function: Callable[..., Any],
    grid: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]],
    version: str,
) -> list[Cell]:
    if isinstance(grid, Mapping):
        for name, values in grid.items():
            if isinstance(values, str) or not isinstance(values, Iterable):
                raise InputError(
                    f"the setting {name!r} has the value {values!r}; give a list of values to run"
                )
        names = list(grid)
        settings: list[Mapping[str, Any]] = [
            dict(zip(names, values, strict=True)) for values in product(*grid.values())
        ]
    else:
        settings = list(grid)
    name = (
        f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__name__)}"
    )
    cells: dict[str, Cell] = {}
    for entry in settings:
        if not isinstance(entry, Mapping) or not all(isinstance(key, str) for key in entry):
            raise InputError(f"a cell of the grid is {entry!r}; give a mapping of setting names to values")
        if clash := {_STATUS, _SECONDS, _ERROR}.intersection(entry):
            raise InputError(f"a setting is named {clash.pop()!r}, which the result uses itself; rename it")
        key = cell_key(name, version, entry)
        cells.setdefault(key, Cell(key, dict(entry)))
    return list(cells.values())


def _run_all(
    function: Callable[..., Any],
    cells: list[Cell],
    place: Store | None,
    deadline: float | None,
    n_jobs: int | None,
) -> Iterator[Cell]:
    if not cells:
        return
    # Each cell as it ends, in whatever order, so that the bar moves and a stop loses nothing.
    workers = Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs")
    yield from workers(delayed(_run)(function, cell, place, deadline) for cell in cells)


def _run(function: Callable[..., Any], cell: Cell, place: Store | None, deadline: float | None) -> Cell:
    if deadline is not None and time.time() >= deadline:
        return cell
    begin = time.perf_counter()
    try:
        result = function(**cell.settings)
        if not isinstance(result, Mapping):
            result = {"value": result}
        if clash := {_STATUS, _SECONDS, _ERROR, *cell.settings}.intersection(result):
            raise InputError(f"a result is named {sorted(clash)[0]!r}, like a setting; give it another name")
        done = Cell(cell.key, cell.settings, "done", time.perf_counter() - begin, result=dict(result))
        if place is not None:
            place.write(done)
        return done
    except Exception as error:
        # Whatever a cell raises, the others go on; a stop from the keyboard ends the run.
        if was_interrupted(error):
            raise KeyboardInterrupt from error
        failed = Cell(
            cell.key,
            cell.settings,
            "failed",
            time.perf_counter() - begin,
            error="".join(traceback.format_exception_only(error)).strip(),
        )
        if place is not None:
            place.write(failed)
        return failed


@contextmanager
def _bar(total: int, done: int, wanted: bool | None) -> Iterator[Callable[[Cell], None]]:
    """Show how many cells are done and how long the rest will take."""
    if not (sys.stderr.isatty() if wanted is None else wanted) or total == done:
        yield lambda cell: None
        return
    if not sys.stderr.isatty():
        yield _lines(total, done)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("cells", total=total, completed=done)
        failed = 0

        def advance(cell: Cell) -> None:
            nonlocal failed
            failed += cell.status == "failed"
            bar.update(task, description=f"cells, {failed} failed" if failed else "cells")
            if cell.status != "pending":
                bar.advance(task)

        yield advance


def _lines(total: int, done: int) -> Callable[[Cell], None]:
    """Return what tells each tenth of the cells in a line of its own, for files that a bar would fill."""
    begin, failed, told = time.monotonic(), 0, done * 10 // total

    def advance(cell: Cell) -> None:
        nonlocal done, failed, told
        done += cell.status != "pending"
        failed += cell.status == "failed"
        if done * 10 // total > told:
            told = done * 10 // total
            failures = f", {failed} failed" if failed else ""
            seconds = time.monotonic() - begin
            print(f"{done} of {total} cells{failures}, {seconds:.0f} s", file=sys.stderr, flush=True)

    return advance


def _table(cells: list[Cell]) -> pd.DataFrame:
    rows = [
        {
            **{name: _shown(value) for name, value in cell.settings.items()},
            _STATUS: cell.status,
            _SECONDS: cell.seconds,
            _ERROR: cell.error,
            **cell.result,
        }
        for cell in cells
    ]
    names = list(dict.fromkeys(name for row in rows for name in row))
    # A column of lists or tables must stay one object per cell.
    columns = {name: pd.Series([row.get(name) for row in rows], dtype=object) for name in names}
    # An error is text or None: pandas would make NaN of the None beside a text.
    return pd.DataFrame(
        {name: values if name == _ERROR else values.infer_objects() for name, values in columns.items()}
    )


def _shown(value: Any) -> Any:
    """Return a setting as it is shown: an estimator by its text."""
    return value if value is None or isinstance(value, bool | int | float | str) else str(plain(value))
