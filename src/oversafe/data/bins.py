"""From columns to a fixed, finite set of cells and back, whatever the values are.

Every record is treated by itself and nothing raises on a value: the result of one record says nothing of
the others, and an error would.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.checks import check_count
from oversafe._core.errors import InputError
from oversafe.data.cells import FileFormat, read_texts
from oversafe.data.column import Column
from oversafe.data.encode import column_codes, column_values, domain_codes


@dataclass(frozen=True)
class Bins:
    """The cells of one column: its categories, or intervals between its bounds, and one for missing.

    Parameters
    ----------
    column : Column
        With bounds or categories.
    n_bins : int
        How many intervals a number is cut into at most; whole numbers are never cut apart.
    cuts : tuple of float, optional
        Where a number is cut, in codes, in place of intervals of one width: quantiles, for example. Those that do
        not lie between the bounds, or come too many, are left out.
    file : FileFormat
        How texts are written.
    """

    column: Column
    n_bins: int = 20
    cuts: tuple[float, ...] | None = None
    file: FileFormat = field(default_factory=FileFormat)

    def __post_init__(self) -> None:
        check_count("n_bins", self.n_bins)
        if self.column.is_number and self.column.bounds is None and not self.column.missing:
            raise InputError(
                f"column {self.column.name!r} has no minimum and maximum; declare them in the schema"
            )
        if self.column.kind == "integer" and max(map(abs, self.column.bounds or (0,))) > 2**53:
            raise InputError(
                f"column {self.column.name!r} has whole numbers beyond 2^53; declare it identifier, or "
                "categorical with the numbers as text"
            )

    @property
    def n_values(self) -> int:
        """How many cells there are without the one for missing values."""
        if self.column.is_category:
            return len(self.column.categories or ())
        return max(0, len(self.edges) - 1)

    @property
    def n_cells(self) -> int:
        """How many cells there are."""
        return self.n_values + self.column.missing

    @property
    def edges(self) -> NDArray[np.float64]:
        """The ends of a number's intervals, in codes; whole numbers lie in the middle of unit steps."""
        if self.column.bounds is None:
            return np.empty(0)
        low, high = domain_codes(self.column)
        if self.cuts is not None:
            return self._edges_at_cuts(low, high)
        if self.column.kind == "continuous":
            return np.linspace(low, high, self.n_bins + 1) if high > low else np.array([low, high])
        steps = int(high - low) + 1
        return low - 0.5 + np.round(np.linspace(0, steps, min(self.n_bins, steps) + 1))

    def _edges_at_cuts(self, low: float, high: float) -> NDArray[np.float64]:
        cuts = np.asarray(self.cuts, dtype=np.float64)
        if self.column.kind != "continuous":
            # Between two whole numbers.
            low, high, cuts = low - 0.5, high + 0.5, np.floor(cuts) + 0.5
        cuts = np.unique(cuts[(cuts > low) & (cuts < high)])[: self.n_bins - 1]
        return np.concatenate([[low], cuts, [high]])

    def assign(self, values: pd.Series) -> NDArray[np.int64]:
        """Return each value's cell; what lies outside the domain goes to its nearest end or to missing."""
        codes = column_codes(self.column, read_texts(values, self.column, self.file), strict=False)
        gaps = np.isnan(codes)
        cells = self._cells(np.where(gaps, 0.0, codes))
        cells[gaps] = self.gap_cell
        return cells

    def _cells(self, codes: NDArray[np.float64]) -> NDArray[np.int64]:
        if self.column.is_number and self.n_values:
            codes = (np.searchsorted(self.edges, codes, side="right") - 1).astype(np.float64)
        return np.clip(codes, 0, max(self.n_values - 1, 0)).astype(np.int64)

    @property
    def gap_cell(self) -> int:
        """The cell of what is missing or cannot be read: one of its own, or that of the column's stand-in."""
        if self.column.missing:
            return self.n_values
        if self.column.stand_in is None:
            return 0
        if self.column.is_category:
            return self.column.stand_in_place
        code = column_codes(self.column, pd.Series([self.column.stand_in], dtype=object), strict=False)
        return int(self._cells(code)[0])

    def draw(self, cells: NDArray[np.int64], rng: np.random.Generator) -> pd.Series:
        """Return a value for each cell, uniform within an interval at the column's own resolution."""
        gaps = cells >= self.n_values
        if self.column.is_category or not self.n_values:
            codes = cells.astype(np.float64)
        else:
            edges = self.edges
            inside = np.where(gaps, 0, cells)
            low, high = edges[inside], edges[inside + 1]
            codes = low + (high - low) * rng.random(len(cells))
            if self.column.kind != "continuous":
                codes = np.clip(np.rint(codes), low + 0.5, high - 0.5)
            elif self.column.decimals is not None:
                codes = self._rounded_inward(codes, low, high)
        codes[gaps] = np.nan
        return column_values(self.column, codes)

    def _rounded_inward(
        self, numbers: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return numbers with the column's decimals that stay in their intervals, or at least in the bounds."""
        decimals = self.column.decimals or 0
        step = 10.0**decimals
        rounded = np.round(numbers, decimals)
        bottom, top = domain_codes(self.column)
        first, last = np.ceil(bottom * step) / step, np.floor(top * step) / step
        if first <= last:
            rounded = np.clip(rounded, first, last)
        # An inner end belongs to the interval above it.
        first_inside = np.round(np.ceil(low * step) / step, decimals)
        ceiling = np.floor(high * step)
        last_inside = np.round((ceiling - ((ceiling / step >= high) & (high < top))) / step, decimals)
        inside = np.clip(rounded, first_inside, np.maximum(last_inside, first_inside))
        return np.where((first_inside <= last_inside) & (first_inside >= low), inside, rounded)
