"""Columns as codes, and the margin of one: how its values are spread, and how to draw from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.errors import InputError
from oversafe.data.encode import column_codes
from oversafe.data.schema import Schema

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Quantiles that are kept of a column of numbers.
_KNOTS = 2001


@dataclass(frozen=True)
class NumberMargin:
    """The empirical quantiles of a column of numbers, as codes.

    Parameters
    ----------
    knots : array
        Values at evenly spaced shares from 0 to 1; values between two knots are met by a straight line.
    """

    knots: FloatArray

    @classmethod
    def of(cls, codes: FloatArray) -> NumberMargin:
        """Return the margin of values; at least one of them is not missing."""
        present = np.sort(codes[~np.isnan(codes)])
        if len(present) <= _KNOTS:
            return cls(present)
        return cls(np.quantile(present, np.linspace(0, 1, _KNOTS)))

    def quantiles(self, shares: FloatArray) -> FloatArray:
        """Return the values below which the given shares lie."""
        return np.interp(shares, np.linspace(0, 1, len(self.knots)), self.knots)

    def edges(self, n_cells: int) -> FloatArray:
        """Return the upper ends of cells with about equally many rows; often repeated values share one cell."""
        inner = self.quantiles(np.linspace(0, 1, n_cells + 1)[1:])
        edges = np.unique(inner)
        # A value that fills a cell of its own from the bottom is kept apart from those above it.
        lowest = self.knots[0]
        if len(edges) > 1 and edges[0] > lowest and (self.knots == lowest).mean() > 1 / n_cells:
            edges = np.concatenate([[lowest], edges])
        return edges

    def draw_between(self, low: FloatArray, high: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return values drawn from the margin above ``low`` and up to ``high``."""
        grid = np.linspace(0, 1, len(self.knots))
        # Shares of rows up to each end; of a repeated value the last place counts.
        last = np.searchsorted(self.knots, high, side="right") - 1
        first = np.searchsorted(self.knots, low, side="right")
        first = np.minimum(first, last)
        return self.quantiles(grid[first] + (grid[last] - grid[first]) * rng.random(len(low)))


def finite_codes(schema: Schema, table: pd.DataFrame) -> list[FloatArray]:
    """Return the columns of a table that fits the schema as codes; infinite values are refused."""
    codes = [column_codes(column, table[column.name]) for column in schema]
    for column, values in zip(schema, codes, strict=True):
        if np.isinf(values).any():
            raise InputError(f"column {column.name!r} holds infinite values; replace them")
    return codes
