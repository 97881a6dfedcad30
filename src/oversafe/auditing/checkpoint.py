"""Finished steps of an audit, kept in a folder so that one that was stopped goes on where it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pyarrow as pa

from oversafe import __version__
from oversafe.attack import AttackResult
from oversafe.auditing.verdict import Finding
from oversafe.data.rows import table_digest
from oversafe.experiment.store import Cell, Store, cell_key


class KeptSteps:
    """The finished steps of audits of the same tables.

    Parameters
    ----------
    folder : Path
        Where they are kept: private files without anything that could run.
    tables : iterable of DataFrame or None
        What is audited. Another table, another column or another version of oversafe is another audit.
    label : str
        The column that holds the class.
    """

    def __init__(self, folder: Path, tables: Iterable[pd.DataFrame | None], label: str) -> None:
        self._store = Store(folder)
        self._tables = [None if table is None else table_digest(table, ordered=True) for table in tables]
        self._label = label

    def run(self, title: str, step: Callable[[], Finding | None]) -> Finding | None:
        """Return what a step found, from the folder if it has run before."""
        settings = {"step": title, "label": self._label, "tables": self._tables}
        key = cell_key("oversafe.auditing.run", __version__, settings)
        cell = self._store.read(key)
        if cell is not None and cell.status == "done":
            return _finding(cell)
        finding = step()
        # Evidence that no file can hold, as columns of one name, is not kept: the step will run again.
        with suppress(pa.ArrowException, ValueError, TypeError):
            self._store.write(Cell(key, settings, "done", None, _contents(finding)))
        return finding


def _contents(finding: Finding | None) -> dict[str, object]:
    if finding is None:
        return {"found": False}
    result, points = finding.result, finding.points
    return {
        "found": True,
        "name": result.name,
        "threat": result.threat,
        "risk": result.risk,
        "interval": list(result.interval),
        "evidence": result.evidence,
        "details": result.details,
        "headline": finding.headline,
        "certain_records": finding.certain_records,
        "points": None if points is None else points.reset_index(drop=True),
        "axes": None if points is None else points.attrs,
        "record": finding.record,
    }


def _finding(cell: Cell) -> Finding | None:
    kept = cell.result
    if not kept["found"]:
        return None
    result = AttackResult(
        kept["name"], kept["threat"], kept["risk"], tuple(kept["interval"]), kept["evidence"], kept["details"]
    )
    points = kept["points"]
    if points is not None:
        points.attrs = kept["axes"]
    return Finding(result, kept["headline"], kept["certain_records"], points, kept.get("record"))
