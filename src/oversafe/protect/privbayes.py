"""PrivBayes: a Bayesian network whose structure and tables are paid for with differential privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe.data.bins import Bins
from oversafe.data.column import Column
from oversafe.data.counts import Counts
from oversafe.data.schema import Schema
from oversafe.errors import InputError
from oversafe.privacy.accountant import Accountant
from oversafe.privacy.domains import Binning, Domains, Estimate, resolve_domains
from oversafe.privacy.guarantee import Relation
from oversafe.protect.base import Shape, Synthesizer
from oversafe.protect.network import draw_column
from oversafe.protect.private_network import PrivateNetwork
from oversafe.protect.quasi_identifiers import check_count
from oversafe.text import listed

IntArray = NDArray[np.int64]

_BASIS = (
    "the exponential mechanism for the network and {noise} noise on all counts "
    "(the docs page 'Guarantees, proofs and errata', section 'PrivBayes')"
)


class PrivBayes(Synthesizer):
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
    schema : Schema, optional
        What the columns are.
    domains : {"data", "private"}, default="data"
        Where bounds and categories come from that are not public: read from the data, and the guarantee is
        nominal, or estimated with a tenth of the budget.
    classes : sequence, optional
        The labels that exist, when they are public; also taken from the schema's label column or from a
        categorical y.
    degree : int, default=2
        How many columns a column is drawn from at most, beside the class; 0 leaves only the class.
    n_bins : int, default=20
        How many intervals a number is cut into at most.
    binning : {"uniform", "quantile"}, default="uniform"
        Intervals of one width, or of about as many rows each, found with a tenth of the budget.
    usefulness : float, default=4
        How many times the noise's deviation the average count of a table must be; cells are joined until it is.
    sampling_strategy : None, "auto" or dict, default=None
        Class shares of a sample: as in the data (with noise), balanced, or counts per label.
    relation : {"replace-one", "add-remove"}, default="replace-one"
        Which tables count as neighbours.
    n_jobs : int, default=1
        How many threads count; -1 takes one for each core.
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

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        schema: Schema | None = None,
        domains: Estimate = "data",
        classes: Sequence[Any] | None = None,
        degree: int = 2,
        n_bins: int = 20,
        binning: Binning = "uniform",
        usefulness: float = 4,
        sampling_strategy: str | Mapping[Any, int] | None = None,
        relation: Relation = "replace-one",
        n_jobs: int = 1,
        random_state: int | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.schema = schema
        self.domains = domains
        self.classes = classes
        self.degree = degree
        self.n_bins = n_bins
        self.binning = binning
        self.usefulness = usefulness
        self.sampling_strategy = sampling_strategy
        self.relation = relation
        self.n_jobs = n_jobs
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
        label = _unused_name(domains.schema.names)
        cells = {label: domains.label_codes(labels)}
        cells |= {name: bins.assign(table[name]) for name, bins in domains.bins.items()}
        sizes = {label: len(domains.classes)} | {name: b.n_cells for name, b in domains.bins.items()}
        self._learn(Counts.of_cells(cells, sizes, n_jobs=self.n_jobs), label, domains, accountant)

    def fit_source(self, source: Any, label: str | None = None) -> PrivBayes:
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
        them. Two passes are made over the table, unless it has so many columns that each step takes its own.
        """
        if self.schema is None or (label is None and self.schema.label is None):
            raise InputError(
                "a table is learned where it lies by its schema, with a label; make one: oversafe schema init"
            )
        if self.domains != "data" or self.binning != "uniform":
            raise InputError(
                "domains and bins are estimated from tables in memory only; declare them in the schema"
            )
        from oversafe.data._sources import open_table

        self._check_strategy()
        schema = replace(self.schema, label=label or self.schema.label)
        accountant = self._accountant()
        table = source if hasattr(source, "get_backend") else open_table(source)
        assert schema.label is not None
        if schema.label not in table.columns:
            raise InputError(
                f"the table has no column {schema.label!r} to be its label; see {listed(table.columns)}"
            )
        if not (entry := schema[schema.label]).categories and self.classes is None:
            raise InputError(f"the label {schema.label!r} has no categories in the schema; declare them")
        features = [name for name in table.columns if name != schema.label]
        domains = resolve_domains(
            pd.DataFrame(columns=features),
            pd.Series(dtype=object),
            schema,
            accountant,
            classes=self.classes if self.classes is not None else entry.categories,
            n_bins=self.n_bins,
        )
        if self.classes is None and entry.domain != "public":
            unpaid = "the set of labels was read from the data; declare it with classes= or in the schema"
            domains = replace(domains, caveats=(*domains.caveats, unpaid))
        self.n_features_in_ = len(features)
        self.feature_names_in_ = np.asarray(features, dtype=object)
        self._shape = Shape("frame", pd.Index(features), {}, "series", schema.label, None)
        # What is none of the classes counts as the first.
        named = Column(schema.label, "categorical", "object", categories=tuple(domains.classes.tolist()))
        counts = Counts(table, {schema.label: Bins(named), **domains.bins}, n_jobs=self.n_jobs)
        self._learn(counts, schema.label, domains, accountant)
        shares = self._counts(None, None, np.random.default_rng(self.random_state))
        self.sampling_strategy_ = dict(zip(self.classes_.tolist(), shares.tolist(), strict=True))
        return self

    def _accountant(self) -> Accountant:
        check_count("degree", self.degree, 0)
        check_count("n_bins", self.n_bins, 1)
        if not 0 < self.usefulness < math.inf:
            raise InputError(f"usefulness = {self.usefulness!r} was given; it is a finite number above 0")
        return Accountant(self.epsilon, self.delta, relation=self.relation, random_state=self.random_state)

    def _learn(self, counts: Counts, label: str, domains: Domains, accountant: Accountant) -> None:
        self.schema_, self.classes_, self._bins = domains.schema, domains.classes, dict(domains.bins)
        learner = PrivateNetwork(counts, label, self._bins, accountant, self.degree, self.usefulness)
        learner.progress = self._report
        counts.on_progress = lambda share: self._report("Counting", share)
        learner.learn()
        self.class_counts_ = learner.class_counts
        self._nodes = learner.nodes
        self._groups = learner.groups
        self._tables = learner.tables
        names = list(self._bins)
        self.network_ = [(names[n.column], tuple(names[p] for p in n.parents)) for n in self._nodes]
        basis = _BASIS.format(noise="discrete Laplace" if accountant.pure else "discrete Gaussian")
        self.guarantee_ = accountant.guarantee(basis, domains.caveats)

    def _draw(self, classes: NDArray[np.int64], rng: np.random.Generator) -> pd.DataFrame:
        names = list(self._bins)
        cells: dict[int, IntArray] = {}
        for node, groups, table in zip(self._nodes, self._groups, self._tables, strict=True):
            codes = classes.astype(np.int64)
            for parent, own, size in zip(node.parents, groups, table.shape[1:-1], strict=True):
                codes = codes * size + own[cells[parent]]
            cells[node.column] = draw_column(table.reshape(-1, table.shape[-1]), codes, rng)
        return pd.DataFrame({name: self._bins[name].draw(cells[i], rng) for i, name in enumerate(names)})


def _unused_name(names: Sequence[str]) -> str:
    name = "label"
    while name in names:
        name += "_"
    return name
