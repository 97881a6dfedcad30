"""Noisy histograms of each column within each class: the simplest table with a proven guarantee."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe.data.bins import Bins
from oversafe.data.column import Column
from oversafe.data.encode import column_codes
from oversafe.data.schema import Schema
from oversafe.errors import InputError
from oversafe.privacy.guarantee import SEEDED, Guarantee, Relation, check_epsilon
from oversafe.privacy.ledger import DatasetLedger
from oversafe.privacy.mechanisms import noisy_counts
from oversafe.protect.base import Synthesizer, check_labels
from oversafe.text import listed

_BASIS = (
    "discrete Laplace noise on the counts of every column within every class and on the class counts "
    "(Dwork et al. 2006; the docs page 'Guarantees, proofs and errata', section 'Class histograms')"
)

_UNPAID = {
    "data": "the domains of these columns were read from the data without noise",
    "private estimate": "the private estimates of these columns' domains are not paid from this budget",
}


class HistogramSynthesizer(Synthesizer):
    """Draw each column by itself from its noisy histogram within the class.

    The relation between a column and the class is kept, the relations among the columns of one class are
    not. Use it as the floor that better synthesizers are measured against.

    Parameters
    ----------
    epsilon : float, default=1.0
        Pure differential privacy of the whole fit, class counts included.
    schema : Schema, optional
        What the columns are. Only public bounds and categories (and ``classes``) give a proven guarantee;
        without a schema they are read from the data and the guarantee is nominal.
    classes : sequence, optional
        The labels that exist, when they are public; also taken from the schema's label column or from a
        categorical y.
    n_bins : int, default=20
        How many intervals a number is cut into at most.
    sampling_strategy : None, "auto" or dict, default=None
        Class shares of a sample: as in the data (with noise), balanced, or counts per label.
    relation : {"replace-one", "add-remove"}, default="replace-one"
        Which tables count as neighbours.
    random_state : int, optional
        Makes fit and sample repeatable, for experiments; the guarantee is then nominal.
    ledger : DatasetLedger, optional
        The budget that every fit is charged to before its noise is drawn, from
        :meth:`Ledger.for_dataset <oversafe.privacy.Ledger.for_dataset>`.

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
    ledger_entry_ : str or None
        The budget entry that paid for the fit.

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
        schema: Schema | None = None,
        classes: Sequence[Any] | None = None,
        n_bins: int = 20,
        sampling_strategy: str | Mapping[Any, int] | None = None,
        relation: Relation = "replace-one",
        random_state: int | None = None,
        ledger: DatasetLedger | None = None,
    ):
        self.epsilon = epsilon
        self.schema = schema
        self.classes = classes
        self.n_bins = n_bins
        self.sampling_strategy = sampling_strategy
        self.relation = relation
        self.random_state = random_state
        self.ledger = ledger

    def _fit(self, table: pd.DataFrame, labels: pd.Series) -> None:
        check_epsilon(self.epsilon)
        if self.relation not in ("replace-one", "add-remove"):
            raise InputError(f"relation = {self.relation!r} was given; use 'replace-one' or 'add-remove'")
        self.schema_ = self._check_schema(table, self.schema)
        label, caveats = self._label_column(labels)
        for domain, caveat in _UNPAID.items():
            if names := [column.name for column in self.schema_ if column.domain == domain]:
                caveats.append(f"{caveat}: {listed(names)}")
        kinds = {type(category) for category in label.categories or ()}
        self.classes_ = np.array(label.categories, dtype=None if len(kinds) == 1 else object)
        self._bins = {column.name: Bins(column, self.n_bins) for column in self.schema_}

        n_classes = len(self.classes_)
        codes = column_codes(label, labels, strict=False)
        # A label that was not declared counts as the first: a fixed choice, so that no error tells of it.
        codes = np.where(np.isnan(codes), 0, codes).astype(np.int64)
        counts = [np.bincount(codes, minlength=n_classes)]
        for name, bins in self._bins.items():
            cells = codes * bins.n_cells + bins.assign(table[name])
            counts.append(np.bincount(cells, minlength=n_classes * bins.n_cells))
        # One record is in one cell of each of the len(counts) tables; replacing it moves two.
        sensitivity = len(counts) * (2 if self.relation == "replace-one" else 1)
        guarantee = Guarantee.pure(float(self.epsilon), _BASIS, relation=self.relation)
        if self.random_state is not None:
            caveats.append(SEEDED)
        self._pay(guarantee.weaken(*caveats), (table, labels))
        noisy = noisy_counts(
            np.concatenate(counts),
            sensitivity=sensitivity,
            epsilon=float(self.epsilon),
            random_state=self.random_state,
        )
        parts = np.split(noisy, np.cumsum([len(part) for part in counts])[:-1])
        # Under replace-one the number of rows is public; under add-remove it is the noisy counts' sum.
        total = len(table) if self.relation == "replace-one" else max(0, int(parts[0].sum()))
        self.class_counts_ = whole_shares(project(parts[0].astype(float), total), total)
        self.histograms_ = {}
        for (name, bins), part in zip(self._bins.items(), parts[1:], strict=True):
            rows = part.reshape(n_classes, bins.n_cells).astype(float)
            # Each class keeps at least one row's weight, so that no histogram is empty.
            fitted = [
                project(row, max(count, 1)) for row, count in zip(rows, self.class_counts_, strict=True)
            ]
            self.histograms_[name] = np.array([row / row.sum() for row in fitted])

    def _label_column(self, labels: pd.Series) -> tuple[Column, list[str]]:
        declared: Sequence[Any] | None = self.classes
        entry = None
        if declared is None and self.schema is not None and self.schema.label is not None:
            entry = self.schema[self.schema.label]
            declared = entry.categories if entry.domain == "public" else None
        # The schema's word counts before y's: a file may have stored the labels that it found as categories.
        if declared is None and entry is None and isinstance(labels.dtype, pd.CategoricalDtype):
            declared = labels.dtype.categories.tolist()
        if declared is not None:
            return Column("label", "categorical", "object", True, categories=tuple(declared)), []
        check_labels(labels)
        found = pd.Series(labels.unique()).sort_values().tolist()
        column = Column("label", "categorical", "object", True, categories=tuple(found))
        return column, ["the set of labels was read from the data; declare it with classes= or in the schema"]

    def _draw(self, classes: NDArray[np.int64], rng: np.random.Generator) -> pd.DataFrame:
        columns = {}
        for name, shares in self.histograms_.items():
            cells = np.empty(len(classes), dtype=np.int64)
            for c in range(len(self.classes_)):
                rows = np.flatnonzero(classes == c)
                cells[rows] = rng.choice(shares.shape[1], size=len(rows), p=shares[c])
            columns[name] = self._bins[name].draw(cells, rng)
        return pd.DataFrame(columns)


def project(noisy: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """Return the nearest counts (in the Euclidean sense) that are not negative and add up to a total."""
    if total <= 0:
        return np.zeros_like(noisy)
    # From the largest down, so that very large noise leaves digits for the total.
    below = noisy - noisy.max()
    falling = np.sort(below)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(noisy) + 1)
    last = np.flatnonzero(falling > excess)[-1]
    return np.maximum(below - excess[last], 0.0)


def whole_shares(counts: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Return whole numbers that add up to a total, nearest to the given counts."""
    whole = np.floor(counts).astype(np.int64)
    short = total - int(whole.sum())
    whole[np.argsort(whole - counts)[:short]] += 1
    return whole
