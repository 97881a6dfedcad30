"""A network of columns and its tables, from counts with noise: all of PrivBayes that sees the data."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversafe.data.bins import Bins
from oversafe.data.counts import Counts
from oversafe.privacy.accountant import Accountant
from oversafe.privacy.estimates import project, whole_shares
from oversafe.protect.marginals.network import Node, affordable_degree, grow_network
from oversafe.protect.marginals.noisy_tables import joined_cells, rake, scale_factor, shrink, sum_groups

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Of the budget: the columns within the classes, the network, and its tables.
_SHARES = {"columns": 0.6, "network": 0.1, "tables": 0.3}
# Of larger tables the network is chosen on a random sample of about so many rows.
_SAMPLE = 4_000_000
# With so many times the rows that a table needs, a network costs the smallest class little.
_MANY = 6
# What a look at the class counts may cost.
_LOOK = 0.05
# So many groups of cells are tried for a column in a larger table.
_LADDER = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128)
# All candidates are counted in one pass over the table if they have no more cells than this.
_CELLS_AT_ONCE = 20_000_000


class PrivateNetwork:
    """One fit of PrivBayes: what is measured, in order, and what is made of it.

    Parameters
    ----------
    counts : Counts
        Of the columns and the label.
    label : str
        The name of the label among them.
    bins : mapping of str to Bins
        The feature columns.
    accountant : Accountant
        Pays for every look at the counts.
    degree : int
        How many parents a column has at most, beside the label.
    usefulness : float
        How many times the noise's deviation the average count of a table must be.

    Attributes
    ----------
    class_counts : array of int
        Noisy, whole, and at least 1 where there are rows enough.
    nodes : list of Node
        The network, in the order of drawing; the label is a parent of every column.
    groups : list of tuple of int arrays
        For each node the group of each cell of its parents.
    tables : list of arrays
        For each node the counts by class, by its parents' groups, and by its own cells.
    """

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
        self.degree = affordable_degree(len(self.names), min(degree, len(self.names) - 1))
        self.usefulness = usefulness
        self.n_classes = counts.sizes[label]
        # What was measured so far, and one over the variance of its noise.
        self.noisy_columns: Any = 0.0
        self.precision = 0.0
        self.noisy_classes: FloatArray = np.zeros(self.n_classes)
        self.class_precision = 0.0
        # Draws the sample; the accountant has its own for the noise.
        self.rng = np.random.default_rng(accountant.random_state)
        self.progress: Callable[[str, float], None] = lambda step, share: None

    def learn(self) -> None:
        """Measure, choose, measure."""
        self.exact, self.sample = self.counts.of_with_sample(
            [[self.label, name] for name in self.names], self.sample_rows(), self.rng
        )
        if not self.is_network_worth_it():
            self.measure_columns(self.accountant.left)
            self.nodes = [Node(column, ()) for column in range(len(self.names))]
        else:
            shares = self.accountant.split(_SHARES)
            self.measure_columns(shares["columns"])
            self.nodes = self.choose_network(shares["network"], shares["tables"])
            if not any(node.parents for node in self.nodes):
                # Nothing was found to be worth a table, so the columns get what is left.
                self.measure_columns(self.accountant.left)
        self.measure_tables()

    def is_network_worth_it(self) -> bool:
        """Whether there are rows enough for tables of two columns, at no cost to the smallest class.

        With many rows there are. With few, the columns within the smallest class need the budget more: the class
        counts are looked at first, and paid for.
        """
        if self.degree == 0:
            return False
        shares = self.accountant.split(_SHARES)
        # The rows that a table of four by four groups needs.
        needed = 16 * self.usefulness * self.accountant.deviation(shares["tables"], len(self.names) - 1)
        if self.accountant.n_rows_public:
            if self.counts.n_rows < needed:
                return False
            if self.counts.n_rows >= _MANY * needed:
                return True
        share = _LOOK * self.accountant.left
        exact = self.exact[0].sum(axis=1)
        self.noisy_classes = self.accountant.counts(exact, share, what="class counts").astype(np.float64)
        self.class_precision = self.accountant.deviation(share) ** -2
        n = self.counts.n_rows if self.accountant.n_rows_public else self.noisy_classes.sum()
        cells = float(np.median([self.counts.sizes[name] for name in self.names]))
        deviation = self.accountant.deviation(shares["columns"], len(self.names))
        return bool(n >= _MANY * needed or (n >= needed and self.noisy_classes.min() >= cells * deviation))

    # What every column is within the classes

    def measure_columns(self, share: float) -> None:
        """Count every column within every class, again if they were already, and take the class counts from there."""
        exact = self.exact
        noisy = self.accountant.counts(
            np.concatenate([table.ravel() for table in exact]),
            share,
            what="columns by class",
            tables=len(exact),
        )
        deviation = self.accountant.deviation(share, len(exact))
        # Weighted by how exact each count is.
        self.precision += deviation**-2
        self.noisy_columns = (
            self.noisy_columns + (noisy - self.noisy_columns) * deviation**-2 / self.precision
        )
        self.column_deviation = self.precision**-0.5
        parts = np.split(self.noisy_columns, np.cumsum([table.size for table in exact])[:-1])
        by_class = [part.reshape(table.shape) for part, table in zip(parts, exact, strict=True)]
        # The sum over a column's cells has the noise of all of them: the fewer, the more it counts.
        weights = np.array(
            [*(self.precision / self.counts.sizes[name] for name in self.names), self.class_precision]
        )
        sums = np.array([*(part.sum(axis=1) for part in by_class), self.noisy_classes])
        estimate = (weights[:, None] * sums).sum(axis=0) / weights.sum()
        if self.accountant.n_rows_public:
            self.n = float(self.counts.n_rows)
        else:
            self.n = float(max(self.n_classes, round(estimate.sum())))
        total = int(self.n)
        class_counts = project(estimate, self.n)
        # A class that was declared keeps a row, whatever the noise says; which one is not read from the data.
        if total >= self.n_classes:
            class_counts = np.maximum(class_counts, 1.0)
            class_counts *= self.n / class_counts.sum()
        self.class_counts = whole_shares(class_counts, total)
        self.class_sizes = np.maximum(class_counts, 1e-9)
        self.overall = []
        self.columns = []
        for part in by_class:
            # Class by class: what is above the noise stays, and the noise in a class cannot outweigh its rows.
            pairs = zip(part, self.class_sizes, strict=True)
            own = np.array([project(noisy, size) for noisy, size in pairs])
            overall = own.sum(axis=0)
            # A class that is lost in the noise is drawn towards all rows.
            trust = 1 / (1 + (self.column_deviation / (4 * self.class_sizes)) ** 2)
            guess = self.class_sizes[:, None] * overall / max(self.n, 1e-9)
            self.overall.append(overall)
            self.columns.append(trust[:, None] * own + (1 - trust[:, None]) * guess)

    def sample_rows(self) -> int:
        """Return how many rows are enough to choose the network on."""
        # The size of a sample must not depend on a number of rows that is private.
        return _SAMPLE if self.accountant.n_rows_public else sys.maxsize

    # Which columns go together

    def choose_network(self, share: float, for_tables: float) -> list[Node]:
        """Choose columns and their parents, one by one, each choice with an equal part of a share."""
        n_columns = len(self.names)
        self.deviation = self.accountant.deviation(for_tables, n_columns - 1)
        self.most_cells = self.n / (self.usefulness * self.deviation)
        self.levels: dict[tuple[int, int], IntArray] = {}
        # Under replace-one the score moves by at most 3, under add-remove by at most 2: see the docs page.
        sensitivity = self.accountant.rows_per_unit * (
            3.0 if self.accountant.relation == "replace-one" else 2.0
        )
        self.known: dict[tuple[int, ...], dict[int, float]] = {}
        self.prepare()
        # Which column is first says nothing; the one with the most cells is cheapest without parents.
        root = int(np.argmax([self.counts.sizes[name] for name in self.names]))

        def choose(scores: FloatArray) -> int:
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
        """Return the group of each of a column's cells when it may have so many groups."""
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
        self.set_levels: dict[tuple[int, ...], int] = {}
        for count in range(2, self.degree + 2):
            if 2**count > self.most_cells:
                break
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
        """Return the names under which the joined columns of a table are counted."""
        return [self.coarse[c, self.set_levels[columns]] for c in columns]

    def table_cells(self, columns: tuple[int, ...]) -> int:
        """Return how many cells a table has."""
        return math.prod(self.wide.sizes[name] for name in self.table_names(columns))

    def score_sets(self, sets: Sequence[tuple[int, ...]]) -> None:
        """Note for each set of columns what each of them gains from the others."""
        # In a sample both the dependence and the price of a table shrink.
        rate = min(1.0, self.sample_rows() / max(self.n, 1.0)) if self.scored is not self.wide else 1.0
        for columns, table in zip(sets, self.scored.of([self.table_names(s) for s in sets]), strict=True):
            # What a table would cost in noise, in rows; it is no matter of the data.
            price = 0.4 * table.size * self.deviation * rate
            self.known[columns] = {
                column: dependence(np.moveaxis(table, i, -1)) - price for i, column in enumerate(columns)
            }

    def scores_of(self, candidates: Sequence[Node]) -> list[float | None]:
        """Return how much the parents tell of each column, less the price of the table; None for tables too large."""
        sets = [tuple(sorted((node.column, *node.parents))) for node in candidates]
        if missing := {s for s in sets if s in self.set_levels and s not in self.known}:
            self.score_sets(sorted(missing))
        return [
            0.0 if not node.parents else self.known[s][node.column] if s in self.set_levels else None
            for node, s in zip(candidates, sets, strict=True)
        ]

    # The tables of the network

    def measure_tables(self) -> None:
        """Count the tables of the network with all that is left, and make of them what can be drawn from."""
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
            for node, part, counted, with_label in zip(large, parts, exact, labelled, strict=True):
                measured[node] = part.reshape(counted.shape), with_label
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
            joint = project(
                shrink(pooled.sum(axis=-1), guess, deviation * math.sqrt(pooled.shape[-1])), self.n
            )
        guess = joint[..., None] * own / n
        pooled = project(shrink(pooled, guess, deviation), self.n)
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
                    project(shrink(own, guess, self.table_deviation), size)
                    for own, guess, size in zip(noisy, coarse, self.class_sizes, strict=True)
                ]
            )
            factor = scale_factor(slices, coarse)
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
            table = table * np.take(scale_factor(pooled, now), groups, axis=last - 1)
            for axes, sums in (((0, last), by_class), (tuple(range(last)), parents)):
                others = tuple(axis for axis in range(table.ndim) if axis not in axes)
                now = table.sum(axis=others)
                table = table * np.expand_dims(scale_factor(sums, now), others)
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
