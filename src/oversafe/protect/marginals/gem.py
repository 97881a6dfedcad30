"""GEM: a generator network of products of columns, trained on the tables that it gets most wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.checks import check_choice, check_count, check_share
from oversafe._core.errors import import_extra
from oversafe.data.bins import Bins
from oversafe.data.counts import Counts
from oversafe.data.schema import Schema
from oversafe.privacy.accountant import Accountant
from oversafe.privacy.call_context import CallContext
from oversafe.privacy.domains import Binning, Estimate
from oversafe.privacy.estimates import project, whole_shares
from oversafe.privacy.guarantee import Relation
from oversafe.privacy.ledger.ledger import DatasetLedger
from oversafe.protect.base import Material
from oversafe.protect.counting import CountingSynthesizer
from oversafe.protect.descriptions import PRIVATE, described
from oversafe.protect.explanations import COUNTED, Explanation
from oversafe.protect.marginals.network import draw_column
from oversafe.protect.marginals.noisy_tables import joined_cells
from oversafe.protect.marginals.product_generator import ProductGenerator, Tables
from oversafe.protect.marginals.product_mixture import Cells

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Columns = tuple[int, ...]

_BASIS = (
    "the exponential mechanism for the choice of tables and discrete {noise} noise on all counts; the generator is "
    "trained on the noisy counts alone (the docs page 'Guarantees, proofs and errata', section 'Counts with noise')"
)
# What is counted, by share of the budget: columns, columns within classes, tables with their choice.
_WITH_TABLES = {"columns": 0.1, "within": 0.4, "tables": 0.5}
_WITHOUT_TABLES = {"columns": 0.2, "within": 0.8}
# A table may carry this much noise, as its total variation from the truth, and a class this share of its rows in a
# group; groups are joined until they do.
_TABLE_NOISE, _CLASS_NOISE = 0.05, 1.0
# Tables in fewer groups of each column than this, and fewer tables than columns, say less than they cost.
_FEWEST_GROUPS = 3
# So many standard deviations of noise fit into a column's cell on average.
_ROWS_PER_CELL = 0.5
_FEWEST_CELLS = 4
# The share for the number of rows, where it is not public.
_ROWS_SHARE = 0.01
# So many candidates with the label, and so many without it, are drawn without a look at the data if there are more.
_MOST_CANDIDATES = 1_000
# Every class has at least so many products; where only columns are measured, more make no difference.
_FEWEST_PRODUCTS, _PRODUCTS_WITHOUT_TABLES = 20, 8


@described(PRIVATE)
@dataclass(eq=False, repr=False)
class GEM(CountingSynthesizer):
    """Train a generator of products of columns on the tables that it gets most wrong, round by round.

    A network turns fixed vectors of noise into products of columns; a mixture of these is the model. After each
    column, and each column within the classes, was counted with noise, every round chooses by the exponential
    mechanism the tables of three columns in which the model is farthest off in some cell, measures them, and trains
    the network on all that was measured ([1]_). The class is an input of the network, so that a rare class has as
    much of it as any other, and rows of a class are drawn exactly. Needs the extra ``deep``.

    Parameters
    ----------
    {epsilon}
    delta : float, optional
        1e-9 when not given; with 0, pure differential privacy and more noise.
    {schema, domains, classes}
    n_bins : int, default=20
        How many intervals a number is cut into at most; small tables have fewer.
    {binning}
    marginals : {"all", "label", "features"}, default="all"
        Which tables of three columns are candidates: all, those with the label, or those without it.
    n_tables : int, default=100
        How many tables are measured at most. Small tables and budgets have fewer, down to none, so that each of them
        says more than its noise.
    alpha : float, default=0.33
        How the budget of a table is split: to its choice as the square of alpha, to its counts as that of 1 - alpha.
        Where all candidates are measured none is chosen, and the counts have it all.
    n_rounds : int, default=10
        How often the network is trained after tables were chosen, several at a time; those that need no choice are all
        measured in the first round.
    n_products : int, default=200
        How many products the generator makes, for all classes together; each class has 20 at least.
    embedding : int, default=128
        The length of the noise and the width of the network.
    n_steps : int, default=100
        How many steps the network takes in a round.
    learning_rate : float, default=0.003
        Of these steps; in each round it falls to 0.
    {sampling_strategy, relation, rows_per_person}
    n_jobs : int, default=1
        How many threads count. The network is trained on as many as PyTorch is set to use.
    {random_state, ledger, call_context}

    Attributes
    ----------
    {guarantee_, schema_, classes_}
    class_counts_ : array of int
        Their noisy counts. Each class keeps at least a quarter of the noise's standard deviation, so that none
        vanishes; that uses nothing but the noisy counts.
    tables_ : list of tuple of str
        The tables that were measured besides the columns; those of two columns are within the classes.

    Notes
    -----
    Three columns, 100 tables, 100 steps and squared errors are the settings with which GEM won a study of class
    imbalance ([2]_, Table 12). That study chose one table a round and took fifty hours on a graphics processor. What
    differs here: ten rounds of ten tables; a width of 128 for 512, which was no worse; a learning rate of 0.003 for
    0.0001, at which so few steps leave a rare class unlearned; a rate that falls to 0 in place of the average of later
    states; and an alpha of 0.33 for 0.67, which gives the choice four fifths of the budget and was farther from the
    data. Tables are counted in groups of cells that the noise leaves legible, and each count is believed as far as its
    noise allows.

    References
    ----------
    .. [1] T. Liu, G. Vietri and S. Wu, "Iterative Methods for Private Synthetic Data: Unifying Framework and New
       Methods", NeurIPS 2021.
    .. [2] L. Rosenblatt et al., "Differential Privacy Under Class Imbalance: Methods and Empirical Insights", 2025.
    """

    method_name = "gem"
    extra = "deep"
    explanation = Explanation(
        "A fully synthetic table from a neural network that is trained on noisy tables: every column, every column "
        "within the classes and, where the rows suffice, those combinations of three columns (the label may be one) "
        "that it got most wrong before.",
        COUNTED,
        "It keeps no relation of four columns, and combinations are measured in groups of values, as fine as the rows "
        "allow.",
    )

    epsilon: float = 1.0
    delta: float | None = None
    _: KW_ONLY
    schema: Schema | None = None
    domains: Estimate = "data"
    classes: Sequence[Any] | None = None
    n_bins: int = 20
    binning: Binning = "uniform"
    marginals: str = "all"
    n_tables: int = 100
    alpha: float = 0.33
    n_rounds: int = 10
    n_products: int = 200
    embedding: int = 128
    n_steps: int = 100
    learning_rate: float = 0.003
    sampling_strategy: str | float | Mapping[Any, int] | None = None
    relation: Relation = "replace-one"
    rows_per_person: int | None = None
    n_jobs: int = 1
    random_state: int | None = None
    ledger: DatasetLedger | None = None
    call_context: CallContext = "checked"

    def _budget(self, n_rows: int, n_columns: int, data: Material | None) -> tuple[Accountant, int]:
        for name in ("n_bins", "n_rounds", "n_products", "embedding", "n_steps"):
            check_count(name, getattr(self, name), 1)
        check_count("n_tables", self.n_tables, 0)
        check_share("alpha", self.alpha, 0.01, 0.99)
        check_share("learning_rate", self.learning_rate, 1e-9, 1.0)
        check_choice("marginals", self.marginals, ("all", "label", "features"))
        # Before anything is paid for.
        import_extra("torch", "deep", "GEM")
        accountant = self._accountant()
        self._pay_whole(accountant, data)
        if not accountant.n_rows_public:
            m = accountant.rows_changed
            noisy = accountant.counts(np.array([n_rows]), _ROWS_SHARE, what="rows", l1=m, l2=float(m))
            n_rows = max(int(noisy[0]), 1)
        self._n_rows = n_rows
        columns = accountant.deviation(_WITHOUT_TABLES["columns"], max(n_columns, 1))
        return accountant, int(min(max(n_rows / (_ROWS_PER_CELL * columns), _FEWEST_CELLS), self.n_bins))

    def _basis(self, accountant: Accountant) -> str:
        return _BASIS.format(noise="Laplace" if accountant.pure else "Gaussian")

    def _learn(self, counts: Counts, label: str, accountant: Accountant) -> None:
        # Another stream than the noise's.
        rng = np.random.default_rng(None if self.random_state is None else [self.random_state, 2])
        names = list(self._bins)
        plan = _Plan.of(
            accountant,
            self._n_rows,
            len(names),
            counts.sizes[label],
            _candidates(len(names), self.marginals, rng),
            n_tables=int(self.n_tables),
            alpha=self.alpha,
        )
        learner = _Learner(counts, label, self._bins, accountant, plan, rng)
        learner.measure_columns()
        self.class_counts_ = learner.class_counts
        per_class = max(_FEWEST_PRODUCTS, int(self.n_products) // counts.sizes[label])
        n_products = per_class if plan.n_tables else _PRODUCTS_WITHOUT_TABLES
        model = ProductGenerator(
            learner.cells, learner.class_shares, learner.guess, n_products, int(self.embedding), rng
        )
        n_rounds = int(self.n_rounds) if plan.n_tables else 0

        def train(number: int) -> None:
            model.fit(
                learner.tables(),
                n_steps=int(self.n_steps),
                learning_rate=self.learning_rate,
                progress=lambda share: self._report(
                    "Training the generator", (number + share) / (n_rounds + 1)
                ),
            )

        train(0)
        at_once = math.ceil(plan.n_tables / n_rounds) if plan.choice else plan.n_tables
        for number in range(1, n_rounds + 1):
            if n_chosen := min(at_once, plan.n_tables - len(learner.measured)):
                learner.measure_tables(learner.choose(model, n_chosen))
            train(number)
        self.tables_ = [tuple(names[i] for i in own) for own in learner.measured]
        self._products = [own.astype(np.float32) for own in model.products()]

    def _draw(self, classes: IntArray, rng: np.random.Generator) -> pd.DataFrame:
        n_classes = len(self.classes_)
        per_class = len(self._products[0]) // n_classes
        product = draw_column(np.full((1, per_class), 1.0 / per_class), np.zeros_like(classes), rng)
        product += classes * per_class
        drawn = zip(self._bins.items(), self._products, strict=True)
        return pd.DataFrame(
            {
                name: own.draw(draw_column(shares.astype(np.float64), product, rng), rng)
                for (name, own), shares in drawn
            }
        )


def _candidates(n_columns: int, marginals: str, rng: np.random.Generator) -> list[Columns]:
    """Return the tables to choose from: two columns stand for these within the classes, three for themselves."""
    widths = {"all": (2, 3), "label": (2,), "features": (3,)}[marginals]
    found: list[Columns] = []
    for width in widths:
        n_sets = math.comb(n_columns, width)
        if n_sets <= _MOST_CANDIDATES:
            found += combinations(range(n_columns), width)
            continue
        drawn: set[Columns] = set()
        while len(drawn) < _MOST_CANDIDATES:
            drawn.add(tuple(sorted(int(i) for i in rng.choice(n_columns, width, replace=False))))
        found += sorted(drawn)
    return found


@dataclass(frozen=True)
class _Plan:
    """What is counted, from the numbers of rows, columns and classes and the budget alone.

    Parameters
    ----------
    candidates : list of tuple of int
        The tables to choose from.
    n_tables : int
        How many are measured.
    choice : float
        Which share of the budget of the tables goes to their choice.
    n_groups : dict of int to int
        In how many groups the columns of a table of two, and of three, are counted.
    """

    candidates: list[Columns]
    n_tables: int
    choice: float
    n_groups: dict[int, int]

    @classmethod
    def of(
        cls,
        accountant: Accountant,
        n_rows: int,
        n_columns: int,
        n_classes: int,
        candidates: list[Columns],
        *,
        n_tables: int,
        alpha: float,
    ) -> _Plan:
        split = alpha**2 / (alpha**2 + (1 - alpha) ** 2)
        n_tables = min(n_tables, len(candidates))
        fewest = min(n_columns, n_tables)
        while n_tables >= max(fewest, 1):
            # What is measured anyway needs no choice.
            for choice in (0.0, split):
                share = accountant.left * _WITH_TABLES["tables"] * (1 - choice)
                # A table of m cells with noise of deviation s lies about 0.4 m s / n from the truth; summed over c
                # classes its noise is that of root c tables.
                cells = _TABLE_NOISE * n_rows / (0.4 * accountant.deviation(share / n_tables))
                n_groups = {2: int(math.sqrt(cells / math.sqrt(n_classes))), 3: int(math.cbrt(cells))}
                kept = [own for own in candidates if n_groups[len(own)] >= _FEWEST_GROUPS]
                if kept and (choice or len(kept) <= n_tables):
                    return cls(kept, min(n_tables, len(kept)), choice, n_groups)
            # Half as many have less noise each.
            n_tables //= 2
        return cls([], 0, 0.0, {2: 0, 3: 0})

    @property
    def shares(self) -> dict[str, float]:
        return _WITH_TABLES if self.n_tables else _WITHOUT_TABLES


class _Learner:
    """One fit: what is measured, in order."""

    def __init__(
        self,
        counts: Counts,
        label: str,
        bins: Mapping[str, Bins],
        accountant: Accountant,
        plan: _Plan,
        rng: np.random.Generator,
    ):
        self.counts, self.label, self.names = counts, label, list(bins)
        self.accountant, self.plan, self.rng = accountant, plan, rng
        ordered = [
            own.n_values if own.column.is_number or own.column.kind == "ordinal" else 0
            for own in bins.values()
        ]
        self.missing = [own.column.missing for own in bins.values()]
        self.cells = Cells(
            np.array([counts.sizes[name] for name in self.names], dtype=np.int64),
            np.array(ordered, dtype=np.int64),
        )
        self.shares = accountant.split(plan.shares)
        self.measured: dict[Columns, FloatArray] = {}
        self._exact: dict[Columns, IntArray] | None = None

    def measure_columns(self) -> None:
        """Count the classes, every column, and every column within the classes in groups."""
        accountant, names = self.accountant, self.names
        # The class counts cost as much as one of the tables within classes.
        part = self.shares["within"] / (len(names) + 1)
        (classes,) = self.counts.of([[self.label]])
        noisy = accountant.counts(classes, part, what="class counts").astype(np.float64)
        public = accountant.n_rows_public
        self.total = self.counts.n_rows if public else max(len(noisy), int(noisy.sum()))
        smallest = float(project(noisy, self.total).min())

        tables = self.counts.of([[name] for name in names] + [[self.label, name] for name in names])
        share = self.shares["columns"]
        self.columns = self._noisy(tables[: len(names)], share, "columns")
        self.column_noise = accountant.deviation(share, len(names))
        guess = [project(own, self.total) / self.total for own in self.columns]
        self.guess = np.concatenate([np.maximum(own, 1e-3 / len(own)) for own in guess])

        self.class_noise = accountant.deviation(part)
        self.class_groups = self._groups(
            int(min(max(_CLASS_NOISE * smallest / self.class_noise, 3.0), 1000.0))
        )
        grouped = [
            np.stack([np.bincount(groups, weights=row) for row in own]).astype(np.int64)
            for groups, own in zip(self.class_groups, tables[len(names) :], strict=True)
        ]
        self.within = self._noisy(grouped, part * len(names), "columns within classes")
        # Every table within classes tells the class counts again, with the noise of as many cells as it has groups.
        trust = np.array([1.0, *(1.0 / own.shape[1] for own in self.within)])
        told = np.column_stack([noisy, *(own.sum(axis=1) for own in self.within)]) @ (trust / trust.sum())
        least = max(1.0, self.class_noise / math.sqrt(trust.sum()) / 4)
        kept = np.maximum(project(told, self.total), least)
        self.class_shares = kept / kept.sum()
        self.class_counts = whole_shares(self.class_shares * self.total, self.total)

    def choose(self, model: ProductGenerator, n_tables: int) -> list[Columns]:
        """Return tables in which the model is far off in some cell, chosen privately; or the next, if all will be."""
        left = [own for own in self.plan.candidates if own not in self.measured]
        if not self.plan.choice:
            return left[:n_tables]
        exact = self._candidate_counts()
        scores: list[float] = []
        for width, kind in self._kinds(left):
            made = model.answers(np.array(kind), self._table_groups(width), by_class=width == 2)
            # One unit moves a cell by at most its number of rows: the model's counts are fixed by then.
            scores += [
                float(np.abs(exact[own] - self.total * table).max())
                for own, table in zip(kind, made, strict=True)
            ]
        one = self.shares["tables"] * self.plan.choice / self.plan.n_tables
        chosen: list[Columns] = []
        for _ in range(n_tables):
            place = self.accountant.choose(
                np.array(scores), one, what="a table", sensitivity=float(self.accountant.rows_per_unit)
            )
            chosen.append(left.pop(place))
            scores.pop(place)
        return chosen

    def measure_tables(self, chosen: list[Columns]) -> None:
        """Count tables with noise."""
        exact = self._candidate_counts()
        one = self.shares["tables"] * (1 - self.plan.choice) / self.plan.n_tables
        self.table_noise = self.accountant.deviation(one)
        noisy = self._noisy([exact[own] for own in chosen], one * len(chosen), "tables of three columns")
        self.measured.update(zip(chosen, noisy, strict=True))

    def tables(self) -> list[Tables]:
        """Return everything that was measured."""
        alone = np.arange(len(self.names))[:, None]
        whole = [np.arange(size) for size in self.cells.sizes]
        found = [
            self._as_shares(alone, whole, self.columns, self.column_noise, by_class=False),
            self._as_shares(alone, self.class_groups, self.within, self.class_noise, by_class=True),
        ]
        for width, kind in self._kinds(self.measured):
            counts = [self.measured[own] for own in kind]
            groups = self._table_groups(width)
            found.append(
                self._as_shares(np.array(kind), groups, counts, self.table_noise, by_class=width == 2)
            )
        return found

    def _as_shares(
        self,
        columns: IntArray,
        groups: list[IntArray],
        counts: list[FloatArray],
        noise: float,
        *,
        by_class: bool,
    ) -> Tables:
        shares = [own / self.total for own in counts]
        return Tables(columns, groups, shares, (self.total / noise) ** 2, by_class)

    def _candidate_counts(self) -> dict[Columns, IntArray]:
        """Return the exact counts of all candidates, from one pass; they are forgotten with the learner."""
        if self._exact is None:
            made = {
                f"{name}{mark}": (name, groups)
                for width, mark in ((2, "\0"), (3, "\0\0"))
                for name, groups in zip(self.names, self._table_groups(width), strict=True)
            }
            sets = [
                [self.label, *(f"{self.names[i]}\0" for i in own)]
                if len(own) == 2
                else [f"{self.names[i]}\0\0" for i in own]
                for own in self.plan.candidates
            ]
            tables = self.counts.coarsened(made).of(sets)
            self._exact = dict(zip(self.plan.candidates, tables, strict=True))
        return self._exact

    def _noisy(self, tables: Sequence[IntArray], share: float, what: str) -> list[FloatArray]:
        flat = np.concatenate([own.ravel() for own in tables])
        noisy = self.accountant.counts(flat, share, what=what, tables=len(tables)).astype(np.float64)
        ends = np.cumsum([0, *(own.size for own in tables)])
        return [noisy[a:b].reshape(own.shape) for (a, b), own in zip(pairwise(ends), tables, strict=True)]

    def _kinds(self, tables: Any) -> Iterator[tuple[int, list[Columns]]]:
        for width in (2, 3):
            if kind := [own for own in tables if len(own) == width]:
                yield width, kind

    def _table_groups(self, width: int) -> list[IntArray]:
        return self._groups(max(self.plan.n_groups[width], _FEWEST_GROUPS))

    def _groups(self, most: int) -> list[IntArray]:
        """Return the group of each cell, column by column, by the noisy counts of the columns."""
        return [
            joined_cells(self.guess[start : start + size], most, ordered=bool(ordered), missing=bool(missing))
            for start, size, ordered, missing in zip(
                self.cells.starts, *self.cells, self.missing, strict=False
            )
        ]
