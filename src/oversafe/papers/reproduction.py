"""The tables of the papers, measured anew and put beside the published ones."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from oversafe._core.errors import InputError
from oversafe._core.text import listed
from oversafe.data import load_dataset
from oversafe.experiment.grid import run_grid
from oversafe.papers.base import Paper, Summary

PAPERS = ("smote-and-mirrors", "smote-dp", "umap-smotenc", "private-smote", "dp-imbalance")


@dataclass(frozen=True)
class Reproduction:
    """The tables of a paper, published and measured.

    Parameters
    ----------
    paper : str
        Its name here.
    title : str
        Its title.
    summary : Summary
        Figures side by side, statements, plots.
    missing : mapping of str to str
        Data sets that could not be had, and why.
    failed : mapping of str to str
        What ended with an error.
    notes : tuple of str
        Where the set-up differs.
    settings : mapping
        Date, seconds, whether it was quick, the machine's cores and the versions.
    cells : DataFrame
        Everything as it was measured.
    """

    paper: str
    title: str
    summary: Summary
    missing: Mapping[str, str]
    failed: Mapping[str, str]
    notes: tuple[str, ...]
    settings: Mapping[str, Any]
    cells: pd.DataFrame = field(repr=False)

    @property
    def table(self) -> pd.DataFrame:
        """Published and measured figures side by side, with the difference and whether they agree."""
        return self.summary.rows


def reproduce(
    paper: str,
    *,
    quick: bool = True,
    data_sets: Sequence[str] | None = None,
    store: str | Path | None = None,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> Reproduction:
    """Measure the tables of a paper and put them beside the published ones.

    Parameters
    ----------
    paper : {"smote-and-mirrors", "smote-dp", "umap-smotenc", "private-smote", "dp-imbalance"}
        Which one.
    quick : bool, default=True
        Fewer repetitions, within ten minutes on two cores; else those of the paper, for hours.
    data_sets : sequence of str, optional
        Some of the paper's data sets; by default all that are there.
    store : path, optional
        A folder that keeps what is finished, so that a stopped run goes on.
    time_limit : float, optional
        Seconds after which nothing further is started; the tables then hold what is there.
    n_jobs : int, optional
        As in joblib.
    progress : bool, optional
        As in :func:`oversafe.experiment.run_grid`.

    Returns
    -------
    Reproduction
        With ``table``, ``summary``, ``missing`` and ``notes``.

    Raises
    ------
    InputError
        If the paper or a data set is not known, or none of its data sets is there.
    """
    chosen = load_paper(paper)
    begin = time.perf_counter()
    there, missing = [], dict(chosen.unavailable)
    wanted = list(chosen.data_sets if data_sets is None else data_sets)
    for name in wanted:
        if name not in chosen.data_sets:
            raise InputError(f"the data set {name!r} is not one of {paper}; use {listed(chosen.data_sets)}")
        try:
            load_dataset(name)
            there.append(name)
        except InputError as error:
            missing[name] = str(error)
    if chosen.data_sets and not there:
        raise InputError(
            f"none of the data sets of {paper!r} is there: {missing[wanted[0]]}"
            + (f" (and {listed([f'{name}.parquet' for name in wanted[1:]])})" if len(wanted) > 1 else "")
        )
    from oversafe import __version__

    cells = run_grid(
        chosen.run,
        chosen.cells(quick, there),
        store=store,
        version=__version__,
        time_limit=time_limit,
        n_jobs=n_jobs,
        progress=progress,
    )
    failed = {
        " ".join(
            f"{key}={value}" for key, value in row.items() if key in ("kind", "name", "method", "seed")
        ): row["error"]
        for row in cells[cells["status"] == "failed"].to_dict("records")
    }
    settings = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": quick,
        "seconds": round(time.perf_counter() - begin, 1),
        "cell_seconds": round(float(cells["seconds"].sum()), 1),
        "cells": len(cells),
        "pending": int((cells["status"] == "pending").sum()),
        **_machine(),
    }
    return Reproduction(
        paper,
        chosen.title,
        chosen.summarize(cells),
        missing,
        failed,
        tuple(chosen.notes),
        settings,
        cells,
    )


def load_paper(name: str) -> Paper:
    """Return what the reproduction of a paper consists of."""
    if name not in PAPERS:
        raise InputError(f"the paper {name!r} is not known; use one of {', '.join(PAPERS)}")
    return import_module(f"oversafe.papers.{name.replace('-', '_')}").PAPER


def _machine() -> dict[str, Any]:
    import os
    import platform
    from importlib.metadata import version

    packages = ("oversafe", "numpy", "scikit-learn", "imbalanced-learn")
    return {
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": platform.system(),
        "versions": {name: version(name) for name in packages},
    }
