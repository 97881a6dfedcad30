"""Noisy histograms of each column within each class: the simplest table with a proven guarantee."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe.data.counts import Counts
from oversafe.data.schema import Schema
from oversafe.privacy.accountant import Accountant
from oversafe.privacy.call_context import CallContext
from oversafe.privacy.domains import Binning, Estimate
from oversafe.privacy.estimates import project, whole_shares
from oversafe.privacy.guarantee import Relation
from oversafe.privacy.ledger.ledger import DatasetLedger
from oversafe.protect.counting import CountingSynthesizer
from oversafe.protect.descriptions import PRIVATE, described
from oversafe.protect.explanations import Explanation

_BASIS = (
    "discrete Laplace noise on the counts of every column within every class and on the class counts "
    "(Dwork et al. 2006; the docs page 'Guarantees, proofs and errata', section 'Class histograms')"
)

_GAUSSIAN_BASIS = _BASIS.replace("discrete Laplace", "discrete Gaussian").replace(
    "Dwork et al. 2006", "Canonne, Kamath and Steinke 2020"
)
_ESTIMATES = "; private estimates of the domains (section 'Domains')"


@described(PRIVATE)
@dataclass(eq=False, repr=False)
class HistogramSynthesizer(CountingSynthesizer):
    """Draw each column by itself from its noisy histogram within the class.

    The relation between a column and the class is kept, the relations among the columns of one class are
    not. Use it as the floor that better synthesizers are measured against.

    Parameters
    ----------
    {epsilon}
    delta : float, default=0.0
        With 0 the privacy is pure and the noise discrete Laplace; above 0 it is discrete Gaussian, which is less
        when there are many columns.
    {schema, domains, classes, n_bins, binning, sampling_strategy, relation, rows_per_person, n_jobs,
     random_state, ledger, call_context}

    Attributes
    ----------
    {guarantee_, schema_, classes_, class_counts_}
    histograms_ : dict of str to array of shape (n_classes, n_cells)
        Shares of each column's cells within each class.
    {ledger_entry_}

    Examples
    --------
    >>> from oversafe.data import load_dataset
    >>> from oversafe.protect import HistogramSynthesizer
    >>> X, y = load_dataset("breast_cancer")
    >>> synthesizer = HistogramSynthesizer(epsilon=5.0, random_state=0).fit(X, y)
    >>> X_new, y_new = synthesizer.sample(class_counts={"benign": 100, "malignant": 100})
    >>> X_new.shape
    (200, 10)
    """

    method_name = "histograms"
    explanation = Explanation(
        "A fully synthetic table; each column is drawn by itself from a noisy histogram within the class.",
        "Differential privacy with the given epsilon for every record, if the schema declares public ranges "
        "and categories; otherwise the figure is nominal.",
        "It keeps no relation among the columns of one class.",
    )

    epsilon: float = 1.0
    _: KW_ONLY
    delta: float = 0.0
    schema: Schema | None = None
    domains: Estimate = "data"
    classes: Sequence[Any] | None = None
    n_bins: int = 20
    binning: Binning = "uniform"
    sampling_strategy: str | float | Mapping[Any, int] | None = None
    relation: Relation = "replace-one"
    rows_per_person: int | None = None
    n_jobs: int = 1
    random_state: int | None = None
    ledger: DatasetLedger | None = None
    call_context: CallContext = "checked"

    def _basis(self, accountant: Accountant) -> str:
        basis = _BASIS if accountant.pure else _GAUSSIAN_BASIS
        return basis + _ESTIMATES if self.domains == "private" else basis

    def _learn(self, counts: Counts, label: str, accountant: Accountant) -> None:
        tables = counts.of([[label], *([label, name] for name in self._bins)])
        noisy = accountant.counts(
            np.concatenate([own.ravel() for own in tables]),
            accountant.left,
            what="class histograms",
            tables=len(tables),
        )
        parts = np.split(noisy.astype(np.float64), np.cumsum([own.size for own in tables])[:-1])
        # Under replace-one the number of rows is public; under add-remove it is the noisy counts' sum.
        total = counts.n_rows if accountant.n_rows_public else max(0, int(parts[0].sum()))
        self.class_counts_ = whole_shares(project(parts[0], total), total)
        self.histograms_ = {}
        for (name, bins), part in zip(self._bins.items(), parts[1:], strict=True):
            # Each class keeps at least one row's weight, so that no histogram is empty.
            fitted = [
                project(row, max(count, 1))
                for row, count in zip(part.reshape(-1, bins.n_cells), self.class_counts_, strict=True)
            ]
            self.histograms_[name] = np.array([row / row.sum() for row in fitted])

    def _draw(self, classes: NDArray[np.int64], rng: np.random.Generator) -> pd.DataFrame:
        columns = {}
        for name, shares in self.histograms_.items():
            cells = np.empty(len(classes), dtype=np.int64)
            for c in range(len(self.classes_)):
                rows = np.flatnonzero(classes == c)
                cells[rows] = rng.choice(shares.shape[1], size=len(rows), p=shares[c])
            columns[name] = self._bins[name].draw(cells, rng)
        return pd.DataFrame(columns)
