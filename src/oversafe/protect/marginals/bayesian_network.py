"""A Bayesian network without privacy: what PrivBayes would be with an endless budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.checks import check_count
from oversafe.data.encode import column_values
from oversafe.data.schema import Schema
from oversafe.privacy.guarantee import Guarantee
from oversafe.protect.base import Synthesizer
from oversafe.protect.descriptions import PLAIN, described
from oversafe.protect.explanations import Explanation
from oversafe.protect.marginals.network import (
    Node,
    affordable_degree,
    conditional_tables,
    draw_cells,
    greedy_network,
)
from oversafe.protect.margins import NumberMargin, finite_codes

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_REASONS = (
    "the network and its tables are counted from the records without noise, and a combination of values that "
    "only one record has can be drawn again",
)


@described(PLAIN)
@dataclass(eq=False, repr=False)
class BayesianNetwork(Synthesizer):
    """Draw each column from a table of counts given a few of the columns before it.

    The class comes first. Then, one by one, the column of which the chosen ones tell most is added, with
    those of them, at most ``degree``, that tell most of it (the greedy network of PrivBayes, without its
    noise). Numbers are cut into cells of about equally many rows, and a value is drawn from the
    distribution within its cell.

    Parameters
    ----------
    degree : int, default=2
        How many columns a column is drawn from at most. It is lowered where more than 500,000 sets of columns
        would have to be scored: from 2 to 1 above 143 columns, to 0 (the class alone) above 999.
    n_bins : int, default=20
        How many cells a number is cut into at most.
    {sampling_strategy, schema, random_state}

    Attributes
    ----------
    guarantee_ : Guarantee
        None: the tables are counted without noise.
    {schema_, classes_, class_counts_}
    network_ : list of tuple
        Each column with the columns that it is drawn from, in the order in which they were chosen; None is
        the class.

    Notes
    -----
    Columns are scored by their mutual information less what chance alone gives a table of so many cells,
    so that a parent of many cells needs many rows. The cost is n d^(degree + 1).

    References
    ----------
    .. [1] Zhang, Cormode, Procopiuc, Srivastava and Xiao, "PrivBayes: Private Data Release via Bayesian
       Networks", ACM TODS 42(4), 2017, Section 4.

    Examples
    --------
    >>> from oversafe.data import load_dataset
    >>> from oversafe.protect import BayesianNetwork
    >>> X, y = load_dataset("breast_cancer")
    >>> synthesizer = BayesianNetwork(degree=1, random_state=0).fit(X, y)
    >>> len(synthesizer.network_)
    10
    >>> synthesizer.sample(50)[0].shape
    (50, 10)
    """

    method_name = "bayesian-network"
    explanation = Explanation(
        "A fully synthetic table; each column is drawn given a few others, from counts of the real rows.",
        "Nothing: the counts carry no noise.",
        "It does not hide rare combinations: one that a single record has can come out again.",
    )

    degree: int = 2
    _: KW_ONLY
    n_bins: int = 20
    sampling_strategy: str | float | Mapping[Any, int] | None = None
    schema: Schema | None = None
    random_state: int | None = None

    def _fit(self, table: pd.DataFrame, labels: pd.Series) -> None:
        members = self._read_classes(labels)
        check_count("degree", self.degree, 1)
        check_count("n_bins", self.n_bins, 1)
        self.schema_ = self._check_schema(table, self.schema)
        table = self.schema_.conform(table)
        self.guarantee_ = Guarantee.none(*_REASONS)
        codes = finite_codes(self.schema_, table)
        self._cells = [
            _Cells.of(values, None if column.is_number else len(column.categories or ()), self.n_bins)
            for column, values in zip(self.schema_, codes, strict=True)
        ]
        cells = [members, *(c.assign(values) for c, values in zip(self._cells, codes, strict=True))]
        self._sizes = [len(self.classes_), *(c.size for c in self._cells)]
        if degree := affordable_degree(len(cells), self.degree):
            self._nodes = greedy_network(
                cells,
                self._sizes,
                root=0,
                degree=degree,
                # A table larger than this takes more memory than the rows; chance would fill it anyway.
                max_cells=max(10_000.0, 4.0 * len(table)),
                progress=lambda share: self._report("Building the network", share),
            )
        else:
            self._nodes = [Node(0, ()), *(Node(column, (0,)) for column in range(1, len(cells)))]
        self._tables = conditional_tables(cells, self._sizes, self._nodes)
        names = (None, *self.schema_.names)
        self.network_ = [(names[n.column], tuple(names[p] for p in n.parents)) for n in self._nodes[1:]]

    def _draw(self, classes: NDArray[np.int64], rng: np.random.Generator) -> pd.DataFrame:
        cells = draw_cells(self._nodes, self._tables, self._sizes, classes, rng)
        return pd.DataFrame(
            {
                column.name: column_values(column, own.draw(cells[i + 1], rng))
                for i, (column, own) in enumerate(zip(self.schema_, self._cells, strict=True))
            }
        )


class _Cells:
    """The cells of one column: its categories, or stretches of its margin, and the last one for missing."""

    def __init__(self, margin: NumberMargin | None, edges: FloatArray, n_values: int):
        self.margin = margin
        self.edges = edges
        self.n_values = n_values
        self.size = n_values + 1

    @classmethod
    def of(cls, codes: FloatArray, n_categories: int | None, n_bins: int) -> _Cells:
        if n_categories is not None:
            return cls(None, np.empty(0), n_categories)
        if np.isnan(codes).all():
            return cls(None, np.empty(0), 0)
        margin = NumberMargin.of(codes)
        edges = margin.edges(n_bins)
        return cls(margin, edges, len(edges))

    def assign(self, codes: FloatArray) -> IntArray:
        gaps = np.isnan(codes)
        values = np.where(gaps, 0.0, codes)
        if self.margin is not None:
            values = np.minimum(np.searchsorted(self.edges, values, side="left"), self.n_values - 1)
        return np.where(gaps, self.n_values, values).astype(np.int64)

    def draw(self, cells: IntArray, rng: np.random.Generator) -> FloatArray:
        gaps = cells >= self.n_values
        if self.margin is None:
            return np.where(gaps, np.nan, cells.astype(np.float64))
        inside = np.where(gaps, 0, cells)
        low = np.concatenate([[-np.inf], self.edges])[inside]
        return np.where(gaps, np.nan, self.margin.draw_between(low, self.edges[inside], rng))
