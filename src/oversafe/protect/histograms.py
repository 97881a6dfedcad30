"""Noisy histograms of each column within each class: the simplest table with a proven guarantee."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe.data.schema import Schema
from oversafe.privacy.domains import Binning, Estimate, resolve_domains
from oversafe.privacy.estimates import project, whole_shares
from oversafe.privacy.guarantee import Relation
from oversafe.protect.base import Synthesizer

_BASIS = (
    "discrete Laplace noise on the counts of every column within every class and on the class counts "
    "(Dwork et al. 2006; the docs page 'Guarantees, proofs and errata', section 'Class histograms')"
)

_GAUSSIAN_BASIS = _BASIS.replace("discrete Laplace", "discrete Gaussian").replace(
    "Dwork et al. 2006", "Canonne, Kamath and Steinke 2020"
)
_ESTIMATES = "; private estimates of the domains (section 'Domains')"


class HistogramSynthesizer(Synthesizer):
    """Draw each column by itself from its noisy histogram within the class.

    The relation between a column and the class is kept, the relations among the columns of one class are
    not. Use it as the floor that better synthesizers are measured against.

    Parameters
    ----------
    epsilon : float, default=1.0
        Differential privacy of the whole fit, domains and class counts included.
    delta : float, default=0.0
        With 0 the privacy is pure and the noise discrete Laplace; above 0 it is discrete Gaussian, which is less
        when there are many columns.
    schema : Schema, optional
        What the columns are.
    domains : {"data", "private"}, default="data"
        Where bounds and categories come from that are not public: read from the data, and the guarantee is
        nominal, or estimated with a tenth of the budget.
    classes : sequence, optional
        The labels that exist, when they are public; also taken from the schema's label column or from a
        categorical y.
    n_bins : int, default=20
        How many intervals a number is cut into at most.
    binning : {"uniform", "quantile"}, default="uniform"
        Intervals of one width, or of about as many rows each, found with a tenth of the budget.
    sampling_strategy : None, "auto" or dict, default=None
        Class shares of a sample: as in the data (with noise), balanced, or counts per label.
    relation : {"replace-one", "add-remove"}, default="replace-one"
        Which tables count as neighbours.
    rows_per_person : int, optional
        With a person column in the schema and in X: how many rows of each person are used, drawn at random. The
        guarantee is then for a person; the result does not have the column.
    random_state : int, optional
        Makes fit and sample repeatable, for experiments; the guarantee is then nominal.

    Attributes
    ----------
    guarantee_ : Guarantee
        What the result promises.
    schema_ : Schema
        What the feature columns are.
    classes_ : array
        The labels.
    class_counts_ : array of int
        Their noisy counts.
    histograms_ : dict of str to array of shape (n_classes, n_cells)
        Shares of each column's cells within each class.

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

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        schema: Schema | None = None,
        domains: Estimate = "data",
        classes: Sequence[Any] | None = None,
        n_bins: int = 20,
        binning: Binning = "uniform",
        sampling_strategy: str | Mapping[Any, int] | None = None,
        relation: Relation = "replace-one",
        rows_per_person: int | None = None,
        random_state: int | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.domains = domains
        self.classes = classes
        self.n_bins = n_bins
        self.binning = binning
        self.sampling_strategy = sampling_strategy
        self.relation = relation
        self.rows_per_person = rows_per_person
        self.random_state = random_state

    def _fit(self, table: pd.DataFrame, labels: pd.Series) -> None:
        accountant = self._accountant()
        domains = resolve_domains(
            table,
            labels,
            self.schema,
            accountant,
            classes=self.classes,
            estimate=self.domains,
            n_bins=self.n_bins,
            binning=self.binning,
        )
        self.schema_, self.classes_, self._bins = domains.schema, domains.classes, dict(domains.bins)
        n_classes = len(self.classes_)
        codes = domains.label_codes(labels)
        counts = [np.bincount(codes, minlength=n_classes)]
        for name, bins in self._bins.items():
            cells = codes * bins.n_cells + bins.assign(table[name])
            counts.append(np.bincount(cells, minlength=n_classes * bins.n_cells))
        noisy = accountant.counts(
            np.concatenate(counts), accountant.left, what="class histograms", tables=len(counts)
        )
        parts = np.split(noisy, np.cumsum([len(part) for part in counts])[:-1])
        # Under replace-one the number of rows is public; under add-remove it is the noisy counts' sum.
        total = len(table) if accountant.n_rows_public else max(0, int(parts[0].sum()))
        self.class_counts_ = whole_shares(project(parts[0].astype(float), total), total)
        self.histograms_ = {}
        for (name, bins), part in zip(self._bins.items(), parts[1:], strict=True):
            rows = part.reshape(n_classes, bins.n_cells).astype(float)
            # Each class keeps at least one row's weight, so that no histogram is empty.
            fitted = [
                project(row, max(count, 1)) for row, count in zip(rows, self.class_counts_, strict=True)
            ]
            self.histograms_[name] = np.array([row / row.sum() for row in fitted])
        basis = _GAUSSIAN_BASIS if self.delta else _BASIS
        estimated = any(column.domain == "private estimate" for column in self.schema_)
        self.guarantee_ = accountant.guarantee(basis + _ESTIMATES if estimated else basis, domains.caveats)

    def _draw(self, classes: NDArray[np.int64], rng: np.random.Generator) -> pd.DataFrame:
        columns = {}
        for name, shares in self.histograms_.items():
            cells = np.empty(len(classes), dtype=np.int64)
            for c in range(len(self.classes_)):
                rows = np.flatnonzero(classes == c)
                cells[rows] = rng.choice(shares.shape[1], size=len(rows), p=shares[c])
            columns[name] = self._bins[name].draw(cells, rng)
        return pd.DataFrame(columns)
