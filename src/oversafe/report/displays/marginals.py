"""The columns of a real table beside those of its release."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.errors import InputError, import_extra
from oversafe._core.text import shorten
from oversafe.report.displays.axes import REAL, RELEASED

_BINS = 20
_MOST_CATEGORIES = 12
_MOST_COLUMNS = 12
_OTHERS, _MISSING = "others", "missing"


@dataclass(frozen=True)
class Marginal:
    """One column in both tables.

    Parameters
    ----------
    name : str
        The column.
    cells : array or list
        Edges of intervals, or categories.
    real, released : array
        Share of the rows in each cell.
    distance : float
        Total variation distance between the two, from 0 (equal) to 1.
    """

    name: str
    cells: Any
    real: NDArray[Any]
    released: NDArray[Any]
    numeric: bool

    @property
    def distance(self) -> float:
        """Half the sum of the differences."""
        return float(np.abs(self.real - self.released).sum() / 2)


@dataclass(eq=False, repr=False)
class MarginalsDisplay:
    """Small plots, one per column, of the real values and of the released ones.

    Make one with :meth:`from_tables`. That columns agree says how useful a release is, and nothing about how private.

    Parameters
    ----------
    marginals : list of Marginal
        The columns.

    Attributes
    ----------
    axes_ : array of matplotlib axes
        One per column.
    ax_ : matplotlib axes
        The first of them.
    figure_ : matplotlib figure
        The figure that holds them.

    Examples
    --------
    >>> import pandas as pd
    >>> from oversafe.report import MarginalsDisplay
    >>> real = pd.DataFrame({"ward": ["A", "A", "B", "B"]})
    >>> display = MarginalsDisplay.from_tables(real, pd.DataFrame({"ward": ["A", "B", "B", "B"]}))
    >>> display.marginals[0].distance
    0.25
    """

    marginals: list[Marginal]

    @classmethod
    def from_tables(
        cls,
        real: pd.DataFrame,
        released: pd.DataFrame,
        *,
        columns: Sequence[Any] | None = None,
        axes: Any = None,
    ) -> MarginalsDisplay:
        """Return the drawn display of two tables.

        Parameters
        ----------
        real, released : DataFrame
            The tables.
        columns : sequence of names, optional
            Which columns; the first twelve that both tables have when not given.
        axes : array of matplotlib axes, optional
            Where to draw, one per column; a new figure when not given.
        """
        shared = [name for name in real.columns if name in released.columns]
        names = shared[:_MOST_COLUMNS] if columns is None else list(columns)
        if not names or any(name not in shared for name in names):
            raise InputError("the tables share no such columns; name columns that both have")
        if real.empty or released.empty:
            raise InputError("a table has no rows; give at least one in each")
        return cls([_marginal(name, real[name], released[name]) for name in names]).plot(axes)

    def plot(self, axes: Any = None) -> MarginalsDisplay:
        """Draw on the axes, one per column, or on those of a new figure."""
        n = len(self.marginals)
        if axes is None:
            pyplot = import_extra("matplotlib.pyplot", "plot", "drawing a plot")
            across = min(n, 4)
            down = math.ceil(n / across)
            self.figure_, grid = pyplot.subplots(
                down, across, figsize=(2.6 * across, 2.2 * down), layout="constrained", squeeze=False
            )
            for spare in grid.ravel()[n:]:
                spare.set_axis_off()
            self.axes_ = grid.ravel()[:n]
        else:
            self.axes_ = np.ravel(np.asarray(axes, dtype=object))
            if len(self.axes_) < n:
                raise InputError(f"{len(self.axes_)} axes were given for {n} columns; give one each")
            self.figure_ = self.axes_[0].figure
        self.ax_ = self.axes_[0]
        for ax, marginal in zip(self.axes_, self.marginals, strict=False):
            _draw(ax, marginal)
        self.ax_.legend(frameon=False, fontsize="small")
        return self


def _draw(ax: Any, marginal: Marginal) -> None:
    if marginal.numeric:
        ax.stairs(marginal.real, marginal.cells, color=REAL, label="real")
        ax.stairs(marginal.released, marginal.cells, color=RELEASED, fill=True, alpha=0.5, label="released")
    else:
        at = np.arange(len(marginal.cells))
        ax.bar(at - 0.2, marginal.real, 0.4, color=REAL, label="real")
        ax.bar(at + 0.2, marginal.released, 0.4, color=RELEASED, label="released")
        ax.set_xticks(
            at, [shorten(name, 14) for name in marginal.cells], rotation=45, ha="right", fontsize="small"
        )
    ax.set_yticks([])
    ax.set_title(f"{shorten(marginal.name, 28)}  ({marginal.distance:.2f})", fontsize="small")


def _marginal(name: Any, real: pd.Series, released: pd.Series) -> Marginal:
    numeric = all(
        pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)
        for column in (real, released)
    )
    if numeric:
        values = [column.to_numpy(dtype=float, na_value=np.nan) for column in (real, released)]
        kept = [v[np.isfinite(v)] for v in values]
        together = np.concatenate(kept)
        if len(together) and together.min() < together.max():
            edges = np.histogram_bin_edges(together, bins=_BINS)
            shares = [np.histogram(v, edges)[0] / max(1, len(v)) for v in kept]
            return Marginal(str(name), edges, shares[0], shares[1], True)
    texts = [column.astype(object).where(column.notna(), _MISSING).astype(str) for column in (real, released)]
    counts = [text.value_counts(normalize=True) for text in texts]
    order = counts[0].add(counts[1], fill_value=0).sort_values(ascending=False, kind="stable").index
    named = list(order[:_MOST_CATEGORIES])
    shares = [count.reindex(named, fill_value=0).to_numpy() for count in counts]
    if len(order) > len(named):
        named.append(_OTHERS)
        shares = [np.append(share, max(0.0, 1 - share.sum())) for share in shares]
    return Marginal(str(name), named, shares[0], shares[1], False)
