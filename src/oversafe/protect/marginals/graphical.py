"""MST and AIM: graphical models fitted to noisy tables that were chosen privately, with the label in each of them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import combinations, count
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.checks import check_count
from oversafe._core.errors import import_extra
from oversafe.data.counts import Counts
from oversafe.data.schema import Schema
from oversafe.privacy.accountant import Accountant
from oversafe.privacy.call_context import CallContext
from oversafe.privacy.domains import Binning, Estimate, drawn_values
from oversafe.privacy.estimates import project, whole_shares
from oversafe.privacy.guarantee import Relation
from oversafe.privacy.ledger.ledger import DatasetLedger
from oversafe.protect.base import Material
from oversafe.protect.counting import CountingSynthesizer
from oversafe.protect.descriptions import PRIVATE, described
from oversafe.protect.explanations import COUNTED, Explanation
from oversafe.protect.marginals.network import draw_column
from oversafe.protect.marginals.noisy_tables import shrink

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Pair = tuple[int, int]

_BASIS = (
    "the exponential mechanism for the choice of tables and discrete {noise} noise on all counts "
    "(the docs page 'Guarantees, proofs and errata', section 'Counts with noise')"
)
# So many rows are drawn from a model to see which tables it does not know yet.
_DRAWN = 100_000
_STEPS = 200
# Every choice of tables is a program of its own, and JAX keeps them all: some thousands fill a process's address space.
_FITS, _PROGRAMS_KEPT = count(1), 50


class _Graphical(CountingSynthesizer):
    """The label with every column, then a tree of pairs, then what the model does not know yet."""

    # Of the budget: the columns within the classes, the choice of tables, the tables.
    _shares: ClassVar[Mapping[str, float]]
    max_cells: int

    @property
    def _rounds(self) -> int:
        return 0

    def _budget(self, n_rows: int, n_columns: int, data: Material | None) -> tuple[Accountant, int]:
        check_count("n_bins", self.n_bins, 1)
        # Before anything is paid for.
        import_extra("mbi", "marginals", type(self).__name__)
        return super()._budget(n_rows, n_columns, data)

    def _learn(self, counts: Counts, label: str, accountant: Accountant) -> None:
        names = list(self._bins)
        # Another stream than the noise's.
        rng = np.random.default_rng(None if self.random_state is None else [self.random_state, 2])
        learner = _Learner(counts, label, names, accountant, self.max_cells, rng)
        shares = accountant.split(self._shares)
        per_round = math.ceil(len(names) / 2) if self._rounds else 0
        n_tables = len(names) - 1 + self._rounds * per_round
        learner.measure_classes(shares["within"])
        self.class_counts_ = learner.class_counts
        if n_tables:
            learner.one_choice = shares["choice"] / n_tables
            learner.one_table = shares["tables"] / n_tables
            learner.add_tables(len(names) - 1, tree=True)
            for number in range(self._rounds):
                self._report("Fitting the graphical model", (number + 1) / (self._rounds + 2))
                learner.estimate()
                learner.add_tables(per_round, tree=False)
        learner.estimate()
        self._model = learner.model
        self.tables_ = [tuple(names[i] for i in own) for own in learner.measured]

    def _basis(self, accountant: Accountant) -> str:
        return _BASIS.format(noise="Laplace" if accountant.pure else "Gaussian")

    def _draw(self, classes: IntArray, rng: np.random.Generator) -> pd.DataFrame:
        drawn = self._model.draw(classes, rng)
        return drawn_values(self._bins, [drawn[i] for i in range(len(self._bins))], rng)


@described(PRIVATE)
@dataclass(eq=False, repr=False)
class MST(_Graphical):
    """Measure the label with every column and a tree of pairs of columns, and fit a graphical model to them.

    The tree is chosen by the exponential mechanism: a pair counts by how far its table lies from what its columns
    within the classes say. McKenna, Miklau and Sheldon (2021) begin with the columns alone; here every column is
    measured with the label, so that each class keeps its own margins and rows can be drawn class by class.
    Needs the extra ``marginals``.

    Parameters
    ----------
    {epsilon}
    delta : float, optional
        1e-9 when not given; with 0, pure differential privacy and more noise.
    {schema, domains, classes, n_bins, binning, sampling_strategy, relation, rows_per_person, n_jobs,
     random_state, ledger, call_context}

    Attributes
    ----------
    {guarantee_, schema_, classes_, class_counts_}
    tables_ : list of tuple of str
        The pairs of columns that were measured.
    """

    method_name = "mst"
    extra = "marginals"
    explanation = Explanation(
        "A fully synthetic table from a graphical model fitted to noisy tables: every column with the label, and "
        "a tree of pairs of columns.",
        COUNTED,
        "It keeps no relation beyond those of the tree.",
    )

    _shares: ClassVar = {"within": 0.35, "choice": 0.1, "tables": 0.55}
    max_cells = 1_000_000

    epsilon: float = 1.0
    delta: float | None = None
    _: KW_ONLY
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


@described(PRIVATE)
@dataclass(eq=False, repr=False)
class AIM(_Graphical):
    """Measure what the model does not know yet, round by round, and fit a graphical model to all of it.

    After the label with every column and a tree of pairs, as :class:`MST` has them, each round draws rows from the
    model, chooses by the exponential mechanism the tables whose counts lie farthest from it beyond what their noise
    would cost (McKenna et al. 2022), measures them and fits again. A round chooses several tables, so that few fits
    are needed. Every table holds the label implicitly: the model knows it with each column, and pairs may be
    measured within the classes. Needs the extra ``marginals``.

    Parameters
    ----------
    {epsilon}
    delta : float, optional
        1e-9 when not given; with 0, pure differential privacy and more noise.
    {schema, domains, classes, n_bins, binning}
    n_rounds : int, default=1
        How often tables are added after the tree.
    max_cells : int, default=50000
        How many cells the largest table of the model's junction tree may have.
    {sampling_strategy, relation, rows_per_person, n_jobs, random_state, ledger, call_context}

    Attributes
    ----------
    {guarantee_, schema_, classes_, class_counts_}
    tables_ : list of tuple of str
        The pairs of columns that were measured, alone or within the classes.
    """

    method_name = "aim"
    extra = "marginals"
    explanation = Explanation(
        "A fully synthetic table from a graphical model fitted to noisy tables: every column with the label, and "
        "those pairs of columns that the model did not know before.",
        COUNTED,
        "It keeps no relation that it did not choose to measure, and no pair of columns with very many values.",
    )

    _shares: ClassVar = {"within": 0.3, "choice": 0.1, "tables": 0.6}

    epsilon: float = 1.0
    delta: float | None = None
    _: KW_ONLY
    schema: Schema | None = None
    domains: Estimate = "data"
    classes: Sequence[Any] | None = None
    n_bins: int = 20
    binning: Binning = "uniform"
    n_rounds: int = 1
    max_cells: int = 50_000
    sampling_strategy: str | float | Mapping[Any, int] | None = None
    relation: Relation = "replace-one"
    rows_per_person: int | None = None
    n_jobs: int = 1
    random_state: int | None = None
    ledger: DatasetLedger | None = None
    call_context: CallContext = "checked"

    @property
    def _rounds(self) -> int:
        return int(self.n_rounds)

    def _budget(self, n_rows: int, n_columns: int, data: Material | None) -> tuple[Accountant, int]:
        check_count("max_cells", self.max_cells, 1)
        check_count("n_rounds", self.n_rounds, 0)
        return super()._budget(n_rows, n_columns, data)


@dataclass
class Elimination:
    """An order in which columns are drawn: each from the label and the columns it was joined with.

    Parameters
    ----------
    order : list of int
        The columns, the first to be drawn first.
    parents : dict of int to tuple of int
        The columns, drawn before, that each is drawn from.
    """

    order: list[int] = field(default_factory=list)
    parents: dict[int, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, sizes: Sequence[int], pairs: Iterable[Pair]) -> Elimination:
        """Return the order that a greedy search finds: the column with the smallest table goes last."""
        near: dict[int, set[int]] = {i: set() for i in range(len(sizes))}
        for i, j in pairs:
            near[i].add(j)
            near[j].add(i)
        order, parents = [], {}
        while near:
            last = min(near, key=lambda i: (math.prod(sizes[j] for j in near[i]) * sizes[i], i))
            joined = near.pop(last)
            for i in joined:
                near[i] |= joined - {i}
                near[i].discard(last)
            order.append(last)
            parents[last] = tuple(sorted(joined))
        return cls(order[::-1], parents)

    def largest(self, sizes: Sequence[int]) -> int:
        """Return how many cells the largest table has, without the label."""
        return max(sizes[i] * math.prod(sizes[j] for j in own) for i, own in self.parents.items())


@dataclass(frozen=True)
class GraphicalModel:
    """Tables of a column given the label and earlier columns, in the order in which they are drawn."""

    sizes: tuple[int, ...]
    elimination: Elimination
    tables: dict[int, FloatArray]

    def draw(self, classes: IntArray, rng: np.random.Generator) -> dict[int, IntArray]:
        """Return the cells of each column for rows of the given classes."""
        cells: dict[int, IntArray] = {}
        for column in self.elimination.order:
            place = classes
            for parent in self.elimination.parents[column]:
                place = place * self.sizes[parent] + cells[parent]
            table = self.tables[column]
            cells[column] = draw_column(table.reshape(-1, table.shape[-1]), place, rng)
        return cells


class _Learner:
    """One fit: what is measured, in order, and the model of it."""

    def __init__(
        self,
        counts: Counts,
        label: str,
        names: list[str],
        accountant: Accountant,
        max_cells: int,
        rng: np.random.Generator,
    ):
        self.counts, self.label, self.names = counts, label, names
        self.accountant = accountant
        self.max_cells = max_cells
        self.sizes = tuple(counts.sizes[name] for name in names)
        self.n_classes = counts.sizes[label]
        self.rng = rng
        # Of each pair its noisy counts, their deviation, and whether the label is in the table.
        self.measured: dict[Pair, tuple[FloatArray, float, bool]] = {}
        self.one_choice = self.one_table = 0.0
        self.potentials: Any = None

    def measure_classes(self, share: float) -> None:
        """Count every column within the classes; the class counts come from there."""
        exact = self.counts.of([[self.label, name] for name in self.names])
        noisy = self.accountant.counts(
            np.concatenate([own.ravel() for own in exact]),
            share,
            what="columns within classes",
            tables=len(exact),
        ).astype(float)
        self.deviation = self.accountant.deviation(share, len(exact))
        ends = np.cumsum([own.size for own in exact])[:-1]
        self.within = [part.reshape(self.n_classes, -1) for part in np.split(noisy, ends)]
        # The sum over a column's cells has the noise of all of them: the fewer, the more it counts.
        trust = np.array([1.0 / size for size in self.sizes])
        told = np.array([own.sum(axis=1) for own in self.within]).T @ (trust / trust.sum())
        public = self.accountant.n_rows_public
        self.total = self.counts.n_rows if public else max(self.n_classes, round(told.sum()))
        kept = project(told, float(self.total))
        if self.total >= self.n_classes:
            # A class that was declared keeps a row, whatever the noise says.
            kept = np.maximum(kept, 1.0) * self.total / np.maximum(kept, 1.0).sum()
        self.class_counts = whole_shares(kept, self.total)
        margins = []
        for own in self.within:
            overall = project(own.sum(axis=0), float(self.total)) / self.total
            margins.append(
                np.array(
                    [
                        project(shrink(row, size * overall, self.deviation), size)
                        for row, size in zip(own, kept, strict=True)
                    ]
                )
            )
        tables = {i: np.maximum(own, 1e-9) for i, own in enumerate(margins)}
        self.model = GraphicalModel(self.sizes, Elimination.of(self.sizes, ()), tables)

    def add_tables(self, n_tables: int, *, tree: bool) -> None:
        """Choose pairs that the model does not know, up to a number, and measure them."""
        pairs = [own for own in combinations(range(len(self.names)), 2) if own not in self.measured]
        if not pairs:
            return
        scores = self._scores(pairs)
        chosen: list[tuple[Pair, bool]] = []
        for _ in range(n_tables):
            candidates = self._allowed(scores, [own for own, _ in chosen], tree)
            if not candidates:
                break
            # The last candidate is to measure nothing more.
            values = np.array([scores[own] for own in candidates] + [0.0])
            place = self.accountant.choose(
                values,
                self.one_choice,
                what="a table",
                sensitivity=float(self.accountant.rows_changed),
            )
            if place == len(candidates):
                break
            chosen.append(candidates[place])
        if not chosen:
            return
        asked = [
            [*([self.label] if with_label else []), *(self.names[i] for i in own)]
            for own, with_label in chosen
        ]
        exact = self.counts.of(asked)
        share = self.one_table * len(chosen)
        noisy = self.accountant.counts(
            np.concatenate([own.ravel() for own in exact]), share, what="pairs of columns", tables=len(exact)
        ).astype(float)
        deviation = self.accountant.deviation(share, len(exact))
        ends = np.cumsum([own.size for own in exact])[:-1]
        for (own, with_label), table, part in zip(chosen, exact, np.split(noisy, ends), strict=True):
            self.measured[own] = part.reshape(table.shape), deviation, with_label

    def _scores(self, pairs: list[Pair]) -> dict[tuple[Pair, bool], float]:
        """Return how far each table lies from the model, less what its noise would cost; with the label and without.

        One unit moves each score by at most as many rows as it changes: the model's counts are fixed by then.
        """
        n_drawn = max(_DRAWN, self.total)
        classes = np.repeat(
            np.arange(self.n_classes), whole_shares(self.class_counts.astype(np.float64), n_drawn)
        )
        drawn = self.model.draw(classes, self.rng)
        named = {self.label: classes} | {self.names[i]: own for i, own in drawn.items()}
        modelled = Counts.of_cells(named, {name: self.counts.sizes[name] for name in named})
        sets = [[self.label, self.names[i], self.names[j]] for i, j in pairs]
        deviation = self.accountant.deviation(self.one_table)
        scores = {}
        for own, exact, made in zip(pairs, self.counts.of(sets), modelled.of(sets), strict=True):
            expected = made * (self.total / n_drawn)
            for with_label in (False, True):
                a, b = (exact, expected) if with_label else (exact.sum(axis=0), expected.sum(axis=0))
                price = math.sqrt(2 / math.pi) * deviation * a.size
                scores[own, with_label] = float(np.abs(a - b).sum()) - price
        return scores

    def _allowed(
        self,
        scores: Mapping[tuple[Pair, bool], float],
        chosen: list[Pair],
        tree: bool,
    ) -> list[tuple[Pair, bool]]:
        known: list[Pair] = [*self.measured, *chosen]
        allowed = []
        for own, with_label in scores:
            if own in chosen or (tree and _connected(known, *own)):
                continue
            cells = Elimination.of(self.sizes, [*known, own]).largest(self.sizes) * self.n_classes
            if cells <= self.max_cells:
                allowed.append((own, with_label))
        return allowed

    def estimate(self) -> None:
        """Fit the graphical model to everything that was measured."""
        if not self.measured:
            return
        elimination = Elimination.of(self.sizes, self.measured)
        names = [str(i) for i in range(len(self.sizes))]
        label = "y"
        sizes = dict(zip([*names, label], [*self.sizes, self.n_classes], strict=True))
        tables: list[tuple[tuple[str, ...], FloatArray, float]] = [
            ((label, names[i]), own, self.deviation) for i, own in enumerate(self.within)
        ]
        for (i, j), (table, deviation, with_label) in self.measured.items():
            columns = (label, names[i], names[j]) if with_label else (names[i], names[j])
            tables.append((columns, table, deviation))
        cliques = [(label, *(names[j] for j in elimination.parents[i]), names[i]) for i in elimination.order]
        self.potentials, found = _fit(sizes, tables, cliques, float(self.total), self.potentials)
        self.model = GraphicalModel(
            self.sizes,
            elimination,
            dict(zip(elimination.order, found, strict=True)),
        )


def _connected(pairs: Sequence[Pair], first: int, second: int) -> bool:
    """Return whether a path of pairs leads from one column to the other."""
    reached, grown = {first}, True
    while grown:
        further = {k for own in pairs if reached & set(own) for k in own}
        grown = not further <= reached
        reached |= further
    return second in reached


def _fit(
    sizes: Mapping[str, int],
    tables: Sequence[tuple[tuple[str, ...], FloatArray, float]],
    cliques: Sequence[tuple[str, ...]],
    total: float,
    start: Any,
) -> tuple[Any, list[FloatArray]]:
    """Return the potentials of the model nearest to noisy tables, and its counts of the given combinations."""
    with warnings.catch_warnings():
        # It advises on where compiled programs are kept, which is the user's own choice.
        warnings.simplefilter("ignore")
        import jax
        import mbi
        from mbi import estimation, marginal_oracles

        if next(_FITS) % _PROGRAMS_KEPT == 0:
            jax.clear_caches()
        with jax.enable_x64(True):
            domain = mbi.Domain(list(sizes), list(sizes.values()))
            measured = [
                mbi.LinearMeasurement(table.ravel(), columns, stddev=deviation)
                for columns, table, deviation in tables
            ]
            model = estimation.MirrorDescent().estimate(
                domain, measured, known_total=total, iters=_STEPS, warm_start=start
            )
            widest = [own for own in map(set, cliques) if not any(own < set(other) for other in cliques)]
            wide = list({domain.canonical(tuple(own)) for own in widest})
            marginals = marginal_oracles.message_passing_stable(model.potentials.expand(wide), total)
            found = []
            for columns in cliques:
                holder = next(own for own in wide if set(columns) <= set(own))
                counts = np.asarray(marginals[holder].datavector(flatten=False), dtype=np.float64)
                others = tuple(k for k, name in enumerate(holder) if name not in columns)
                kept = [name for name in holder if name in columns]
                counts = counts.sum(axis=others).transpose([kept.index(name) for name in columns])
                found.append(np.ascontiguousarray(np.maximum(counts, 0.0)))
            return model.potentials, found
