"""What synthesizers share that see the data only through counts: in memory, or where the table lies."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd

from oversafe._core.checks import check_count
from oversafe._core.errors import InputError
from oversafe._core.text import listed
from oversafe.data.bins import Bins
from oversafe.data.cells import mark_read
from oversafe.data.column import Column
from oversafe.data.counts import Counts
from oversafe.data.schema import Schema, features_of
from oversafe.privacy.accountant import Accountant
from oversafe.privacy.call_context import CallContext, context_of
from oversafe.privacy.domains import (
    LABELS_READ,
    Binning,
    Domains,
    Estimate,
    check_classes,
    check_rows,
    resolve_domains,
    unpaid_domains,
)
from oversafe.privacy.guarantee import Guarantee, Relation
from oversafe.privacy.ledger.ledger import DatasetLedger
from oversafe.protect.base import Material, Shape, Synthesizer

# Far below one over the number of rows of any table that a person can be in.
DEFAULT_DELTA = 1e-9


class CountingSynthesizer(Synthesizer):
    """A synthesizer that asks for counts of column combinations and pays for each of them.

    A subclass writes ``_learn``, which sets ``class_counts_`` (``schema_``, ``classes_`` and ``_bins`` are set
    before), and ``_basis``. Its constructor has the parameters below.
    """

    epsilon: float
    delta: float | None
    schema: Schema | None
    domains: Estimate
    classes: Sequence[Any] | None
    n_bins: int
    binning: Binning
    relation: Relation
    rows_per_person: int | None
    n_jobs: int
    ledger: DatasetLedger | None
    call_context: CallContext

    # By which the fit is paid and made: the user's, or with another label.
    _declared: Schema | None

    def _fit(self, table: pd.DataFrame, labels: pd.Series) -> None:
        self._declared = self.schema
        accountant, n_bins = self._budget(len(table), table.shape[1], (table, labels))
        domains = resolve_domains(
            table,
            labels,
            self.schema,
            accountant,
            classes=self.classes,
            estimate=self.domains,
            n_bins=n_bins,
            binning=self.binning,
        )
        label = _unused_name(domains.schema.names)
        cells = {label: domains.label_codes(labels)}
        cells |= {name: bins.assign(table[name]) for name, bins in domains.bins.items()}
        sizes = {label: len(domains.classes)} | {name: b.n_cells for name, b in domains.bins.items()}
        self._learn_counts(Counts.of_cells(cells, sizes, n_jobs=self.n_jobs), label, domains, accountant)

    def fit_source(self, source: Any, label: str | None = None) -> Self:
        """Learn a table where it lies, without ever holding it as a whole.

        Parameters
        ----------
        source : str, path or Ibis table
            A Parquet file, a folder of them, or a database address with its table, as in
            :func:`oversafe.data.read_table`; or a table of Ibis. It has the columns of the schema and the label.
        label : str, optional
            The column that holds the class; the schema's when not given.

        Notes
        -----
        The kinds, bounds and categories come from the schema, which must be given: the data are not read to find
        them.
        """
        if self.schema is None or (label is None and self.schema.label is None):
            raise InputError(
                "a table is learned where it lies by its schema, with a label; make one: oversafe schema init"
            )
        if self.rows_per_person is not None or self.schema.person is not None:
            raise InputError(
                "a person's rows are limited in memory only; use fit, or remove person from the schema and leave "
                "rows_per_person out"
            )
        if self.domains != "data" or self.binning != "uniform":
            raise InputError(
                "domains and bins are estimated from tables in memory only; declare them in the schema"
            )
        from oversafe.data.io._sources import open_table

        self._caveats, self._word = context_of(self.call_context)
        self._check_strategy()
        schema = replace(self.schema, label=label or self.schema.label)
        table = source if hasattr(source, "get_backend") else open_table(source)
        assert schema.label is not None
        if table.get_backend().name == "sqlite":
            raise InputError(
                "in SQLite each cell has a type of its own; read the table with read_table and the schema, and use fit"
            )
        if schema.label not in table.columns:
            raise InputError(
                f"the table has no column {schema.label!r} to be its label; see {listed(table.columns)}"
            )
        if not (entry := schema[schema.label]).categories and self.classes is None:
            raise InputError(f"the label {schema.label!r} has no categories in the schema; declare them")
        features = [name for name in table.columns if name != schema.label]
        # Of texts every character is there, whatever the other rows are: an empty table that was read by the schema.
        texts = [column for column in schema if _holds_text(table, column.name)]
        columns = {column.name: pd.Series(_none_of(column)) for column in texts}
        labels = columns.get(schema.label, pd.Series(dtype=object)).rename(schema.label)
        frame = pd.DataFrame({name: columns.get(name, pd.Series(dtype=object)) for name in features})
        mark_read(frame, texts)
        labels.attrs = frame.attrs
        classes = self.classes
        if classes is None and entry.domain != "public":
            classes = entry.categories
        check_classes(labels, schema, classes)
        features_of(frame, schema)
        self.n_features_in_ = len(features)
        self.feature_names_in_ = np.asarray(features, dtype=object)
        self._shape = Shape("frame", pd.Index(features), {}, "series", schema.label, None)
        self._declared = schema
        accountant, n_bins = self._budget(int(table.count().execute()), len(features), None)
        domains = resolve_domains(
            frame,
            labels,
            schema,
            accountant,
            classes=classes,
            n_bins=n_bins,
        )
        if self.classes is None and entry.domain != "public":
            domains = replace(domains, caveats=(*domains.caveats, LABELS_READ))
        named = replace(domains.label, name=schema.label, missing=False)
        counts = Counts(
            table, {schema.label: Bins(named, file=schema.file), **domains.bins}, n_jobs=self.n_jobs
        )
        self._learn_counts(counts, schema.label, domains, accountant)
        self._finish_fit()
        return self

    def _learn_counts(self, counts: Counts, label: str, domains: Domains, accountant: Accountant) -> None:
        if not domains.bins:
            raise InputError("the table has no column besides the label; give at least one")
        self.schema_, self.classes_, self._bins = domains.schema, domains.classes, dict(domains.bins)
        counts.on_progress = lambda share: self._report("Counting", share)
        self._learn(counts, label, accountant)
        # Of the whole budget: what one run left over depends on its noisy answers, and is no guarantee.
        self.guarantee_ = self._promised(accountant, domains.caveats)

    def _budget(self, n_rows: int, n_columns: int, data: Material | None) -> tuple[Accountant, int]:
        """Return who pays, with the ledger charged, and how many intervals a number is cut into."""
        check_count("n_bins", self.n_bins, 1)
        accountant = self._accountant()
        self._pay_whole(accountant, data)
        return accountant, self.n_bins

    def _accountant(self, delta: float | None = None) -> Accountant:
        delta = self.delta if delta is None else delta
        rows = self.rows_per_person
        return Accountant(
            self.epsilon,
            DEFAULT_DELTA if delta is None else delta,
            relation=self.relation,
            unit="record" if rows is None else "person",
            rows_per_unit=1 if rows is None else rows,
            random_state=self.random_state,
        )

    def _pay_whole(self, accountant: Accountant, data: Material | None) -> None:
        """Charge the ledger with the whole budget, before anything is counted; the fit spends no more than that."""
        check_classes(None if data is None else data[1], self._declared, self.classes)
        if data is not None and self._declared is not None:
            features_of(data[0], self._declared)
        if data is not None:
            check_rows(data[0], self._declared, accountant, self.classes, self.domains, self.binning)
        caveats = unpaid_domains(self._declared, self.classes, self.domains, accountant.pure)
        self._pay(self._promised(accountant, caveats), data)
        # Nothing is learned yet; the fit states its own guarantee in the end.
        del self.guarantee_

    def _promised(self, accountant: Accountant, caveats: Sequence[str]) -> Guarantee:
        counts_only = self.domains == "data"
        return accountant.promise(self._basis(accountant), caveats, counts_only=counts_only)

    @abstractmethod
    def _basis(self, accountant: Accountant) -> str:
        """Return what the guarantee rests on."""

    @abstractmethod
    def _learn(self, counts: Counts, label: str, accountant: Accountant) -> None:
        """Learn from counts; sets ``class_counts_``."""


def _none_of(column: Column) -> pd.Categorical:
    return pd.Categorical([], categories=list(column.categories or ()))


def _holds_text(table: Any, name: str) -> bool:
    return name in table.columns and table[name].type().is_string()


def _unused_name(names: Sequence[str]) -> str:
    name = "label"
    while name in names:
        name += "_"
    return name
