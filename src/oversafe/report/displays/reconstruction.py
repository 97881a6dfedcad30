"""The lines of a release and the records that were read out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.errors import InputError
from oversafe.attack.geometry.reconstruction import ReconstructionResult
from oversafe.auditing.picture import best_columns, certain_columns
from oversafe.report.displays.axes import LEAK, REAL, RELEASED, axes_for

_MOST_RECORDS = 300


@dataclass(eq=False, repr=False)
class ReconstructionDisplay:
    """Released rows, the lines that they lie on, and the records at whose ends the lines meet.

    Make one with :meth:`from_result`.

    Parameters
    ----------
    rows : array of shape (n_rows, 2)
        The released rows in two columns.
    records : array of shape (n_records, 2)
        The records read back.
    lines : array of int of shape (n_lines, 2)
        The records at the two ends of each line.
    real : array of shape (n_real, 2), optional
        The real records.
    columns : tuple of str
        What the two columns are called.

    Attributes
    ----------
    ax_ : matplotlib axes
        What it was drawn on.
    figure_ : matplotlib figure
        The figure that holds it.

    Examples
    --------
    >>> from oversafe.attack import ReconSMOTE
    >>> from oversafe.data import load_dataset
    >>> from oversafe.protect import SMOTE
    >>> from oversafe.report import ReconstructionDisplay
    >>> X, y = load_dataset("breast_cancer")
    >>> X_new, y_new = SMOTE(random_state=0).fit_resample(X, y)
    >>> rows = X_new[y_new == "malignant"]
    >>> display = ReconstructionDisplay.from_result(ReconSMOTE().run(rows), rows, real=X[y == "malignant"])
    >>> len(display.records)
    15
    """

    rows: NDArray[Any]
    records: NDArray[Any]
    lines: NDArray[Any]
    _: KW_ONLY
    real: NDArray[Any] | None = None
    columns: tuple[str, str] = ("", "")

    @classmethod
    def from_result(
        cls,
        result: ReconstructionResult,
        rows: Any,
        *,
        real: Any = None,
        columns: Sequence[Any] | None = None,
        ax: Any = None,
    ) -> ReconstructionDisplay:
        """Return the drawn display of what ReconSMOTE found.

        Parameters
        ----------
        result : ReconstructionResult
            What :meth:`oversafe.attack.ReconSMOTE.run` returned.
        rows : DataFrame or array
            The rows that were attacked.
        real : DataFrame or array, optional
            The real records, to be drawn as rings.
        columns : sequence of two names, optional
            Which columns to draw; those in which the lines part most widely when not given.
        ax : matplotlib axes, optional
            Where to draw; a new figure when not given.
        """
        released, records = pd.DataFrame(rows), pd.DataFrame(result.records)
        records = records.set_axis(released.columns, axis=1)
        pairs = _pairs(result)
        if columns is None:
            certain = certain_columns(result, records)
            columns = best_columns(released, certain if certain.shape[1] else records, pairs)
        if len(columns) != 2 or any(name not in released.columns for name in columns):
            raise InputError(f"columns = {columns!r} was given; name two columns of the attacked table")
        x, y = columns
        originals = None if real is None else pd.DataFrame(real).set_axis(released.columns, axis=1)
        display = cls(
            released[[x, y]].to_numpy(dtype=float),
            records[[x, y]].to_numpy(dtype=float),
            pairs,
            real=None if originals is None else originals[[x, y]].to_numpy(dtype=float),
            columns=(str(x), str(y)),
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> ReconstructionDisplay:
        """Draw on the axes, or on those of a new figure."""
        self.ax_, self.figure_ = axes_for(ax, figsize=(8, 5.5))
        for a, b in self.lines:
            self.ax_.plot(*self.records[[a, b]].T, color=LEAK, linewidth=0.8, alpha=0.5, zorder=1)
        self.ax_.scatter(*self.rows.T, s=8, color=RELEASED, label="released rows", zorder=2)
        if self.real is not None:
            self.ax_.scatter(
                *self.real.T,
                s=110,
                facecolors="none",
                edgecolors=REAL,
                linewidths=1.5,
                label="real records",
                zorder=3,
            )
        self.ax_.scatter(*self.records.T, s=28, color=LEAK, label="records read back", zorder=4)
        self.ax_.set(xlabel=self.columns[0], ylabel=self.columns[1])
        self.ax_.legend(frameon=False)
        return self


def _pairs(result: ReconstructionResult) -> NDArray[np.int64]:
    """Return the pairs of records that a line of released rows joins, each once."""
    found = set()
    for record in range(min(len(result.support), _MOST_RECORDS)):
        ends = result.proof(record)["to"]
        found |= {(min(record, end), max(record, end)) for end in ends if end >= 0}
    return np.array(sorted(found), dtype=np.int64).reshape(-1, 2)
