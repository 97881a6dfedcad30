"""PrivBayes: a Bayesian network whose structure and tables are paid for with differential privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.checks import check_count
from oversafe._core.errors import InputError
from oversafe.data.counts import Counts
from oversafe.data.schema import Schema
from oversafe.privacy.accountant import Accountant
from oversafe.privacy.call_context import CallContext
from oversafe.privacy.domains import Binning, Estimate, drawn_values
from oversafe.privacy.guarantee import Relation
from oversafe.privacy.ledger.ledger import DatasetLedger
from oversafe.protect.base import Material
from oversafe.protect.counting import CountingSynthesizer
from oversafe.protect.descriptions import PRIVATE, described
from oversafe.protect.explanations import Explanation
from oversafe.protect.marginals.network import draw_column
from oversafe.protect.marginals.private_network import PrivateNetwork

IntArray = NDArray[np.int64]

_BASIS = (
    "the exponential mechanism for the network and {noise} noise on all counts "
    "(the docs page 'Guarantees, proofs and errata', section 'PrivBayes')"
)


@described(PRIVATE)
@dataclass(eq=False, repr=False)
class PrivBayes(CountingSynthesizer):
    """Draw each column given the class and a few other columns, from counts with noise.

    The class comes first and conditions every column, so a sample has any class shares that are asked for. The
    columns within the classes are counted with noise; a network of columns that tell most of each other is chosen
    by the exponential mechanism; its tables are counted with noise, with cells joined where the noise would
    outweigh the rows. Everything else is made of these three and costs nothing.

    Parameters
    ----------
    epsilon : float, default=1.0
        Differential privacy of the whole fit: domains, class counts, network and tables.
    delta : float, default=0.0
        With 0 the privacy is pure and the noise discrete Laplace; above 0 it is discrete Gaussian, which is less
        when there are more than a few columns.
    {schema, domains, classes}
    degree : int, default=2
        How many columns a column is drawn from at most, beside the class; 0 leaves only the class. It is
        lowered where more than 500,000 sets of columns would have to be scored: from 2 to 1 above 144 columns, to 0
        above 1000.
    {n_bins, binning}
    usefulness : float, default=4
        How many times the noise's deviation the average count of a table must be; cells are joined until it is.
    {sampling_strategy, relation, rows_per_person, n_jobs, random_state, ledger, call_context}

    Attributes
    ----------
    {guarantee_, schema_, classes_, class_counts_}
    network_ : list of tuple
        Each column and the columns, beside the class, that it is drawn from, in order.

    See Also
    --------
    BayesianNetwork : The same without noise, and without a guarantee.
    HistogramSynthesizer : Each column by itself within the class.

    Notes
    -----
    A class that was declared keeps at least one row, and its columns are drawn towards those of all rows as far
    as the noise may have made the difference, so that a rare class neither vanishes nor becomes noise. Both look
    at noisy counts only.

    Of a table with more than four million rows, the network is chosen on a random sample of about so many.

    References
    ----------
    .. [1] Zhang, Cormode, Procopiuc, Srivastava and Xiao, "PrivBayes: Private Data Release via Bayesian
       Networks", ACM TODS 42(4), 2017.

    Examples
    --------
    >>> from oversafe.data import load_dataset
    >>> from oversafe.protect import PrivBayes
    >>> X, y = load_dataset("breast_cancer")
    >>> synthesizer = PrivBayes(epsilon=5.0, random_state=0).fit(X, y)
    >>> X_new, y_new = synthesizer.sample(class_counts={"benign": 100, "malignant": 100})
    >>> X_new.shape
    (200, 10)
    """

    method_name = "privbayes"
    explanation = Explanation(
        "A fully synthetic table; each column is drawn given the class and up to degree other columns, from noisy "
        "counts; which columns is chosen with noise too.",
        "Differential privacy with the given epsilon (and delta) for every record, if the schema declares public "
        "ranges and categories; otherwise the figure is nominal.",
        "It keeps no relation that the network leaves out, and of a class with few rows little more than each "
        "column by itself.",
    )

    epsilon: float = 1.0
    _: KW_ONLY
    delta: float = 0.0
    schema: Schema | None = None
    domains: Estimate = "data"
    classes: Sequence[Any] | None = None
    degree: int = 2
    n_bins: int = 20
    binning: Binning = "uniform"
    usefulness: float = 4
    sampling_strategy: str | float | Mapping[Any, int] | None = None
    relation: Relation = "replace-one"
    rows_per_person: int | None = None
    n_jobs: int = 1
    random_state: int | None = None
    ledger: DatasetLedger | None = None
    call_context: CallContext = "checked"

    def _budget(self, n_rows: int, n_columns: int, data: Material | None) -> tuple[Accountant, int]:
        check_count("degree", self.degree, 0)
        if not 0 < self.usefulness < math.inf:
            raise InputError(f"usefulness = {self.usefulness!r} was given; it is a finite number above 0")
        return super()._budget(n_rows, n_columns, data)

    def _basis(self, accountant: Accountant) -> str:
        return _BASIS.format(noise="discrete Laplace" if accountant.pure else "discrete Gaussian")

    def _learn(self, counts: Counts, label: str, accountant: Accountant) -> None:
        learner = PrivateNetwork(counts, label, self._bins, accountant, self.degree, self.usefulness)
        learner.progress = self._report
        learner.learn()
        self.class_counts_ = learner.class_counts
        self._nodes = learner.nodes
        self._groups = learner.groups
        self._tables = learner.tables
        names = list(self._bins)
        self.network_ = [(names[n.column], tuple(names[p] for p in n.parents)) for n in self._nodes]

    def _draw(self, classes: NDArray[np.int64], rng: np.random.Generator) -> pd.DataFrame:
        cells: dict[int, IntArray] = {}
        for node, groups, table in zip(self._nodes, self._groups, self._tables, strict=True):
            codes = classes.astype(np.int64)
            for parent, own, size in zip(node.parents, groups, table.shape[1:-1], strict=True):
                codes = codes * size + own[cells[parent]]
            cells[node.column] = draw_column(table.reshape(-1, table.shape[-1]), codes, rng)
        return drawn_values(self._bins, [cells[i] for i in range(len(self._bins))], rng)
