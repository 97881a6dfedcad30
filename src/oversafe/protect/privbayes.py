"""PrivBayes: a Bayesian network whose structure and tables are paid for with differential privacy."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe.data._sources import open_table
from oversafe.data.bins import Bins
from oversafe.data.column import Column
from oversafe.data.counts import Counts
from oversafe.data.schema import Schema
from oversafe.errors import InputError
from oversafe.privacy.accountant import Accountant
from oversafe.privacy.domains import Binning, Domains, Estimate, resolve_domains
from oversafe.privacy.estimates import whole_shares
from oversafe.privacy.guarantee import Relation
from oversafe.protect.base import Shape, Synthesizer
from oversafe.protect.network import Node, draw_column, grow_network
from oversafe.protect.noisy_tables import joined_cells, nearest, rake, shrink, sum_groups
from oversafe.protect.quasi_identifiers import check_count
from oversafe.text import listed

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_BASIS = (
    "the exponential mechanism for the network and {noise} noise on all counts "
    "(the docs page 'Guarantees, proofs and errata', section 'PrivBayes')"
)
# Of the budget: the columns within the classes, the network, and its tables.
_SHARES = {"columns": 0.6, "network": 0.1, "tables": 0.3}
# Of larger tables the network is chosen on a random sample of about so many rows.
_SAMPLE = 4_000_000
# So many groups of cells are tried for a column in a larger table.
_LADDER = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128)
# All candidates are counted in one pass over the table if they have no more cells than this.
_CELLS_AT_ONCE = 20_000_000


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
        learner = _Learner(counts, label, self._bins, accountant, self.degree, self.usefulness)
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


class _Learner:
    """One fit: what is measured, in order, and what is made of it."""

    def __init__(
        self,
        counts: Counts,
        label: str,
        bins: Mapping[str, Bins],
        accountant: Accountant,
        degree: int,
        usefulness: float,
    ):
        self.counts = counts
        self.label = label
        self.bins = bins
        self.names = list(bins)
        self.accountant = accountant
        self.degree = min(degree, len(self.names) - 1)
        self.usefulness = usefulness
        self.n_classes = counts.sizes[label]
        # Draws the sample; the accountant has its own for the noise.
        self.rng = np.random.default_rng(accountant.random_state)
        self.progress: Callable[[str, float], None] = lambda step, share: None

    def learn(self) -> None:
        """Measure, choose, measure."""
        self.exact, self.sample = self.counts.of_with_sample(
            [[self.label, name] for name in self.names], self.sample_rows(), self.rng
        )
        shares = self.accountant.split(_SHARES) if self.degree else {}
        if not shares or (self.accountant.n_rows_public and not self.may_have_tables(shares["tables"])):
            self.measure_columns(self.accountant.left)
            self.nodes = [Node(column, ()) for column in range(len(self.names))]
        else:
            self.measure_columns(shares["columns"])
            self.nodes = self.choose_network(shares["network"], shares["tables"])
        self.measure_tables()

    def may_have_tables(self, share: float) -> bool:
        """Whether the rows are enough for a table of two columns with four groups each."""
        deviation = self.accountant.deviation(share, len(self.names) - 1)
        return self.counts.n_rows >= 16 * self.usefulness * deviation

    # What every column is within the classes

    def measure_columns(self, share: float) -> None:
        """Count every column within every class, and take the class counts from there."""
        exact = self.exact
        noisy = self.accountant.counts(
            np.concatenate([table.ravel() for table in exact]),
            share,
            what="columns by class",
            tables=len(exact),
        )
        self.column_deviation = self.accountant.deviation(share, len(exact))
        parts = np.split(noisy.astype(np.float64), np.cumsum([table.size for table in exact])[:-1])
        by_class = [part.reshape(table.shape) for part, table in zip(parts, exact, strict=True)]
        # The sum over a column's cells has the noise of all of them: the fewer, the more it counts.
        weights = np.array([1.0 / part.shape[1] for part in by_class])
        sums = np.array([part.sum(axis=1) for part in by_class])
        estimate = (weights[:, None] * sums).sum(axis=0) / weights.sum()
        if self.accountant.n_rows_public:
            self.n = float(self.counts.n_rows)
        else:
            self.n = float(max(self.n_classes, round(estimate.sum())))
        total = int(self.n)
        class_counts = nearest(estimate, self.n)
        # A class that was declared keeps a row, whatever the noise says; which one is not read from the data.
        if total >= self.n_classes:
            class_counts = np.maximum(class_counts, 1.0)
            class_counts *= self.n / class_counts.sum()
        self.class_counts = whole_shares(class_counts, total)
        self.class_sizes = np.maximum(class_counts, 1e-9)
        self.overall = []
        self.columns = []
        for part in by_class:
            # Class by class, because the noise in a class of few rows cannot outweigh them.
            pairs = zip(part, self.class_sizes, strict=True)
            overall = np.sum([nearest(own, size) for own, size in pairs], axis=0)
            guess = self.class_sizes[:, None] * overall / max(self.n, 1e-9)
            slices = [
                nearest(shrink(noisy, own, self.column_deviation), size)
                for noisy, own, size in zip(part, guess, self.class_sizes, strict=True)
            ]
            self.overall.append(overall)
            self.columns.append(np.array(slices))

    def sample_rows(self) -> int:
        # The size of a sample must not depend on a number of rows that is private.
        return _SAMPLE if self.accountant.n_rows_public else sys.maxsize

    # Which columns go together

    def choose_network(self, share: float, for_tables: float) -> list[Node]:
        n_columns = len(self.names)
        self.deviation = self.accountant.deviation(for_tables, n_columns - 1)
        self.most_cells = self.n / (self.usefulness * self.deviation)
        self.levels: dict[tuple[int, int], IntArray] = {}
        # Under replace-one the score moves by at most 3, under add-remove by at most 2: see the docs page.
        sensitivity = 3.0 if self.accountant.relation == "replace-one" else 2.0
        self.known: dict[tuple[int, ...], dict[int, float]] = {}
        self.prepare()
        # Which column is first says nothing; the one with the most cells is cheapest without parents.
        root = int(np.argmax([self.counts.sizes[name] for name in self.names]))

        def choose(candidates: Sequence[Node], scores: FloatArray) -> int:
            return self.accountant.choose(
                scores, share / (n_columns - 1), what="a column and its parents", sensitivity=sensitivity
            )

        return grow_network(
            n_columns,
            self.scores_of,
            root=root,
            degree=self.degree,
            choose=choose,
            progress=lambda done: self.progress("Choosing the network", done),
        )

    def level_of(self, columns: tuple[int, ...]) -> int | None:
        """Return how many groups each of some columns may have so that their table is useful, None if none."""
        sizes = [self.counts.sizes[self.names[column]] for column in columns]
        best = None
        for level in (*_LADDER, max(sizes)):
            if math.prod(min(size, level) for size in sizes) <= self.most_cells:
                best = level if best is None else max(best, level)
        return best

    def groups_of(self, column: int, level: int) -> IntArray:
        if (column, level) not in self.levels:
            own = self.bins[self.names[column]].column
            self.levels[column, level] = joined_cells(
                self.overall[column],
                level,
                ordered=own.is_number or own.kind == "ordinal",
                missing=own.missing,
            )
        return self.levels[column, level]

    def prepare(self) -> None:
        """Join cells where tables would be too large, and count all candidates in one pass if there is room."""
        self.set_levels = {}
        cells = 0
        for count in range(2, self.degree + 2):
            for columns in combinations(range(len(self.names)), count):
                if (level := self.level_of(columns)) is not None:
                    self.set_levels[columns] = level
        used = {(c, level) for columns, level in self.set_levels.items() for c in columns}
        made = {}
        self.coarse: dict[tuple[int, int], str] = {}
        for column, level in sorted(used):
            name = self.names[column]
            groups = self.groups_of(column, level)
            self.coarse[column, level] = name
            if len(np.unique(groups)) < self.counts.sizes[name]:
                self.coarse[column, level] = f"{name}\0{level}"
                made[self.coarse[column, level]] = (name, groups)
        self.wide = self.counts.coarsened(made) if made else self.counts
        self.scored = self.wide
        if self.sample is not self.counts:
            self.scored = self.sample.coarsened(made) if made else self.sample
        cells = sum(self.table_cells(columns) for columns in self.set_levels)
        if cells <= _CELLS_AT_ONCE:
            self.score_sets(list(self.set_levels))

    def table_names(self, columns: tuple[int, ...]) -> list[str]:
        return [self.coarse[c, self.set_levels[columns]] for c in columns]

    def table_cells(self, columns: tuple[int, ...]) -> int:
        return math.prod(self.wide.sizes[name] for name in self.table_names(columns))

    def score_sets(self, sets: Sequence[tuple[int, ...]]) -> None:
        # In a sample both the dependence and the price of a table shrink.
        rate = min(1.0, self.sample_rows() / max(self.n, 1.0)) if self.scored is not self.wide else 1.0
        for columns, table in zip(sets, self.scored.of([self.table_names(s) for s in sets]), strict=True):
            # What a table would cost in noise, in rows; it is no matter of the data.
            price = 0.4 * table.size * self.deviation * rate
            self.known[columns] = {
                column: dependence(np.moveaxis(table, i, -1)) - price for i, column in enumerate(columns)
            }

    def scores_of(self, candidates: Sequence[Node]) -> list[float | None]:
        sets = [tuple(sorted((node.column, *node.parents))) for node in candidates]
        if missing := {s for s in sets if s in self.set_levels and s not in self.known}:
            self.score_sets(sorted(missing))
        return [
            0.0 if not node.parents else self.known[s][node.column] if s in self.set_levels else None
            for node, s in zip(candidates, sets, strict=True)
        ]

    # The tables of the network

    def measure_tables(self) -> None:
        large = [node for node in self.nodes if node.parents]
        self.groups = []
        self.tables = []
        measured: dict[Node, tuple[FloatArray, bool]] = {}
        if large:
            share = self.accountant.left
            deviation = self.accountant.deviation(share, len(large))
            asked, labelled = [], []
            for node in large:
                columns = tuple(sorted((node.column, *node.parents)))
                level = self.set_levels[columns]
                names = [self.coarse[c, level] for c in (*node.parents, node.column)]
                cells = math.prod(self.wide.sizes[name] for name in names)
                # With the label if the rows of the smallest class are enough for it.
                with_label = bool(self.class_sizes.min() >= self.usefulness * deviation * cells)
                asked.append([self.label, *names] if with_label else names)
                labelled.append(with_label)
            exact = self.wide.of(asked)
            noisy = self.accountant.counts(
                np.concatenate([t.ravel() for t in exact]),
                share,
                what="tables of the network",
                tables=len(exact),
            )
            parts = np.split(noisy.astype(np.float64), np.cumsum([t.size for t in exact])[:-1])
            for node, part, table, with_label in zip(large, parts, exact, labelled, strict=True):
                measured[node] = part.reshape(table.shape), with_label
            self.table_deviation = deviation
        for node in self.nodes:
            if node in measured:
                table, groups = self.table_of(node, *measured[node])
            else:
                table, groups = self.columns[node.column], ()
            self.groups.append(groups)
            self.tables.append(table)

    def table_of(
        self, node: Node, noisy: FloatArray, with_label: bool
    ) -> tuple[FloatArray, tuple[IntArray, ...]]:
        """Return the counts (class, groups of each parent, cells of the column) that the noisy tables speak of.

        It is the table nearest to "no more relations than were measured": the class's own column counts, the
        parents' within the class, and the measured table, which may be coarser than the column.
        """
        columns = tuple(sorted((node.column, *node.parents)))
        level = self.set_levels[columns]
        groups = tuple(self.groups_of(parent, level) for parent in node.parents)
        own_groups = self.groups_of(node.column, level)
        n_parents = len(node.parents)
        by_class = self.columns[node.column]
        parents_by_class = [
            sum_groups(self.columns[p], 1, g) for p, g in zip(node.parents, groups, strict=True)
        ]
        pooled = noisy.sum(axis=0) if with_label else noisy
        deviation = self.table_deviation * (math.sqrt(self.n_classes) if with_label else 1.0)
        n = max(self.n, 1e-9)
        # The parents among themselves, first in all rows, then within the classes.
        own = sum_groups(by_class.sum(axis=0), 0, own_groups)
        joint = parents_by_class[0].sum(axis=0)
        if n_parents > 1:
            guess = joint
            for margin in parents_by_class[1:]:
                guess = guess[..., None] * margin.sum(axis=0) / n
            joint = nearest(
                shrink(pooled.sum(axis=-1), guess, deviation * math.sqrt(pooled.shape[-1])), self.n
            )
        guess = joint[..., None] * own / n
        pooled = nearest(shrink(pooled, guess, deviation), self.n)
        pooled = rake(pooled, [(tuple(range(n_parents)), joint), ((n_parents,), own)])
        shape = (self.n_classes, *joint.shape)
        parents = np.broadcast_to(self.class_sizes.reshape(-1, *[1] * n_parents) / n, shape) * joint
        parents = rake(
            parents,
            [(tuple(range(1, n_parents + 1)), joint)]
            + [((0, i + 1), margin) for i, margin in enumerate(parents_by_class)],
        )
        # Within the classes: begin without a relation, then scale to what was measured.
        spread = parents[..., None] * by_class.reshape(self.n_classes, *[1] * n_parents, -1)
        spread = spread / np.maximum(self.class_sizes, 1e-9).reshape(-1, *[1] * (n_parents + 1))
        table = self._fit_coarse(spread, pooled, parents, by_class, own_groups)
        if with_label:
            coarse = sum_groups(table, n_parents + 1, own_groups)
            slices = np.array(
                [
                    nearest(shrink(own, guess, self.table_deviation), size)
                    for own, guess, size in zip(noisy, coarse, self.class_sizes, strict=True)
                ]
            )
            factor = np.divide(slices, coarse, out=np.zeros_like(coarse), where=coarse > 0)
            table = table * np.take(factor, own_groups, axis=n_parents + 1)
        return table, groups

    def _fit_coarse(
        self,
        table: FloatArray,
        pooled: FloatArray,
        parents: FloatArray,
        by_class: FloatArray,
        groups: IntArray,
    ) -> FloatArray:
        """Return the table scaled to a margin over joined cells, to its parents' and to its column's."""
        last = table.ndim - 1
        for _ in range(30):
            now = sum_groups(table.sum(axis=0), last - 1, groups)
            factor = np.divide(pooled, now, out=np.zeros_like(now), where=now > 0)
            table = table * np.take(factor, groups, axis=last - 1)
            for axes, sums in (((0, last), by_class), (tuple(range(last)), parents)):
                others = tuple(axis for axis in range(table.ndim) if axis not in axes)
                now = table.sum(axis=others)
                factor = np.divide(sums, now, out=np.zeros_like(now), where=now > 0)
                table = table * np.expand_dims(factor, others)
        return table


def dependence(table: IntArray) -> float:
    """Return how many rows would have to move for the last axis to be independent of the others: n times R.

    R is the score of the PrivBayes paper (Section 4.4): half the L1 distance between the joint distribution and
    the product of the two sides'. One row moves it by far less than mutual information.
    """
    joint = table.reshape(-1, table.shape[-1]).astype(np.float64)
    n = joint.sum()
    if n <= 0:
        return 0.0
    return float(0.5 * np.abs(joint - joint.sum(axis=1, keepdims=True) * joint.sum(axis=0) / n).sum())
