"""PrivateMixture: all pairs of columns at the resolution that the budget affords, and every class's margins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.checks import check_choice, check_count
from oversafe._core.errors import InputError
from oversafe.data.bins import Bins
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
from oversafe.protect.marginals.product_mixture import Cells, Measured, ProductMixture

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_BASIS = (
    "discrete {noise} noise on counts of columns, of columns within classes, of pairs of columns and of classes; "
    "the model is fitted to the noisy counts alone (the docs page 'Guarantees, proofs and errata', section "
    "'Counts with noise')"
)
# What is counted, by share of the budget: columns, columns within classes, pairs of columns.
_WITH_PAIRS = {"columns": 0.1, "within": 0.4, "pairs": 0.5}
_WITHOUT_PAIRS = {"columns": 0.2, "within": 0.8}
# A table of pairs may carry this much noise, as its total variation from the truth, and a class this share of its
# rows in a group; groups are joined until they do.
_PAIR_NOISE, _CLASS_NOISE = 0.05, 1.0
# Pairs in fewer groups than this say less than they cost.
_FEWEST_GROUPS = 3
# So many standard deviations of noise fit into a column's cell on average.
_ROWS_PER_CELL = 0.5
_FEWEST_CELLS = 4
# The share for the number of rows, where it is not public.
_ROWS_SHARE = 0.01
# Of all columns together: the model relates each to each, in a matrix of this many rows and columns.
_MOST_CELLS = 10_000
# Two intervals, and a cell for gaps.
_SMALLEST_COLUMN = 3


@described(PRIVATE)
@dataclass(eq=False, repr=False)
class PrivateMixture(CountingSynthesizer):
    """Count all pairs of columns with noise, and fit a mixture of products to them that knows the classes.

    Counted are each column, each column within the classes, and, if the budget affords it, every pair of columns,
    all in groups of cells that the noise leaves legible. A mixture of products of columns is then fitted to all
    of it at once, each figure as far as its noise lets one believe it, neighbouring cells held together. The classes
    share what the columns have to do with each other and have margins of their own, so that a rare class needs few
    rows. Rows of a class are drawn exactly from the model.

    Parameters
    ----------
    {epsilon}
    delta : float, optional
        1e-9 when not given. Where fewer columns make pure differential privacy the less noisy one, that is what is
        used, and the guarantee's delta is 0; with ``delta=0`` always.
    {schema, domains, classes}
    n_bins : int, default=20
        How many intervals a number is cut into at most; small tables have fewer.
    {binning}
    pairs : bool or "auto", default="auto"
        Whether pairs of columns are counted; "auto" decides by the number of rows and columns and the budget.
    n_components : int, default=200
        How many products the mixture has.
    n_steps : int, default=500
        How many steps the fit takes.
    {sampling_strategy, relation, rows_per_person, n_jobs, random_state, ledger, call_context}

    Attributes
    ----------
    {guarantee_, schema_, classes_}
    class_counts_ : array of int
        Their noisy counts. Each class keeps at least a quarter of the noise's standard deviation, so that none
        vanishes; that uses nothing but the noisy counts.
    pairs_ : bool
        Whether pairs of columns were counted.

    Examples
    --------
    >>> from oversafe.data import load_dataset
    >>> from oversafe.protect import PrivateMixture
    >>> X, y = load_dataset("breast_cancer")
    >>> synthesizer = PrivateMixture(epsilon=5.0, random_state=0).fit(X, y)
    >>> X_new, y_new = synthesizer.sample(class_counts={"benign": 100, "malignant": 100})
    >>> X_new.shape
    (200, 10)
    """

    method_name = "mixture"
    explanation = Explanation(
        "A fully synthetic table from a mixture model that is fitted to noisy counts of columns, of columns within "
        "the classes and, where the rows suffice, of all pairs of columns.",
        COUNTED,
        "It keeps no relation that only three columns together show, and a class of a few dozen rows is drawn mostly "
        "from what the other classes look like.",
    )

    epsilon: float = 1.0
    delta: float | None = None
    _: KW_ONLY
    schema: Schema | None = None
    domains: Estimate = "data"
    classes: Sequence[Any] | None = None
    n_bins: int = 20
    binning: Binning = "uniform"
    pairs: bool | str = "auto"
    n_components: int = 200
    n_steps: int = 500
    sampling_strategy: str | float | Mapping[Any, int] | None = None
    relation: Relation = "replace-one"
    rows_per_person: int | None = None
    n_jobs: int = 1
    random_state: int | None = None
    ledger: DatasetLedger | None = None
    call_context: CallContext = "checked"

    def _budget(self, n_rows: int, n_columns: int, data: Material | None) -> tuple[Accountant, int]:
        """Return who pays, in the kind of privacy with less noise, and the number of intervals."""
        check_count("n_bins", self.n_bins, 1)
        check_count("n_components", self.n_components, 1)
        check_count("n_steps", self.n_steps, 1)
        check_choice("pairs", self.pairs, (True, False, "auto"))
        # Before anything is paid: a column has its declared categories, or two intervals and a cell for gaps at least.
        features = () if self._declared is None else self._declared.features
        categories = sum(len(column.categories or ()) for column in features)
        _check_cells(categories + _SMALLEST_COLUMN * n_columns, n_columns)
        # Intervals are made wider where there would be too many; left to be refused are categories that were paid for.
        n_bins = min(self.n_bins, (_MOST_CELLS - categories) // max(n_columns, 1) - 1)
        accountant = self._accountant()
        self._plan = _Plan.of(accountant, n_rows, n_columns, self.pairs)
        # Sets of values can only be found with a delta.
        if accountant.n_rows_public and not accountant.pure and self.domains != "private":
            pure = self._accountant(0.0)
            plan = _Plan.of(pure, n_rows, n_columns, self.pairs)
            if not self._plan.pairs and plan.class_noise(pure) < self._plan.class_noise(accountant):
                accountant, self._plan = pure, plan
        self._pay_whole(accountant, data)
        if not accountant.n_rows_public:
            m = accountant.rows_changed
            noisy = accountant.counts(np.array([n_rows]), _ROWS_SHARE, what="rows", l1=m, l2=float(m))
            n_rows = max(int(noisy[0]), 1)
            self._plan = _Plan.of(accountant, n_rows, n_columns, self.pairs)
        return accountant, self._plan.n_cells(accountant, n_rows, n_bins)

    def _basis(self, accountant: Accountant) -> str:
        return _BASIS.format(noise="Laplace" if accountant.pure else "Gaussian")

    def _learn(self, counts: Counts, label: str, accountant: Accountant) -> None:
        plan = self._plan
        rng = np.random.default_rng(self.random_state)
        names = [name for name in counts.sizes if name != label]
        cells = Cells(
            np.array([counts.sizes[name] for name in names], dtype=np.int64),
            np.array([_ordered_cells(self._bins[name]) for name in names], dtype=np.int64),
        )
        starts = cells.starts
        _check_cells(int(starts[-1]), len(names))
        shares = accountant.split(plan.shares)
        # The class counts cost as much as one of the tables within classes.
        part = shares["within"] / (len(names) + 1)
        deviation = accountant.deviation(part)
        (classes,) = counts.of([[label]])
        noisy = accountant.counts(classes, part, what="class counts")
        total = counts.n_rows if accountant.n_rows_public else max(1, int(noisy.sum()))
        smallest = float(project(noisy.astype(float), total).min())

        tables = counts.of([[name] for name in names] + [[label, name] for name in names])
        flat = np.concatenate(tables[: len(names)])
        noisy_columns = accountant.counts(flat, shares["columns"], what="columns", tables=len(names))
        columns = noisy_columns.astype(np.float64)
        guess = np.concatenate([project(columns[a:b], total) / total for a, b in pairwise(starts)])
        guess = np.maximum(guess, 1e-3 / np.repeat(cells.sizes, cells.sizes))
        join, joined = cells.join(_groups(guess, cells, plan.class_groups(smallest, deviation)))
        by_class = np.hstack(tables[len(names) :]) @ join
        noisy_within = accountant.counts(
            np.rint(by_class).astype(np.int64),
            part * len(names),
            what="columns within classes",
            tables=len(names),
        )
        # Every table within classes tells the class counts again, with the noise of as many cells as it has groups.
        again = np.add.reduceat(noisy_within, joined[:-1], axis=1)
        trust = np.concatenate([[1.0], 1.0 / np.diff(joined)])
        told = np.column_stack([noisy, again]).astype(np.float64) @ (trust / trust.sum())
        kept = np.maximum(
            project(told.astype(np.float64), total), max(1.0, deviation / math.sqrt(trust.sum()) / 4)
        )
        self.class_counts_ = whole_shares(kept * total / kept.sum(), total)
        within = Measured(join, noisy_within / total, (total / deviation) ** 2)
        spread = accountant.deviation(shares["columns"], len(names))
        every = Measured(np.eye(int(starts[-1])), columns / total, (total / spread) ** 2)
        self.pairs_ = plan.pairs and len(names) > 1
        pairs = (
            _measure_pairs(counts, names, cells, guess, accountant, shares["pairs"], total, plan)
            if self.pairs_
            else None
        )
        n_components = int(self.n_components) if self.pairs_ else 1
        model = ProductMixture(cells, kept / kept.sum(), guess, n_components, rng)
        self._model = model.fit(
            every,
            within,
            pairs,
            n_steps=int(self.n_steps),
            progress=lambda share: self._report("Fitting the mixture", share),
        )

    def _draw(self, classes: IntArray, rng: np.random.Generator) -> pd.DataFrame:
        return drawn_values(self._bins, self._model.draw(classes, rng).T, rng)


def _check_cells(n_cells: int, n_columns: int) -> None:
    if n_cells > _MOST_CELLS:
        raise InputError(
            f"the table has {n_columns} columns with {n_cells} or more values in all, and PrivateMixture takes at most "
            f"{_MOST_CELLS}; leave columns out, group categories, or use HistogramSynthesizer (--method histograms)"
        )


@dataclass(frozen=True)
class _Plan:
    """What is counted, from the number of rows and columns and the budget alone."""

    n_rows: int
    n_columns: int
    pairs: bool
    pair_groups: int

    @classmethod
    def of(cls, accountant: Accountant, n_rows: int, n_columns: int, wanted: bool | str) -> _Plan:
        n_pairs = n_columns * (n_columns - 1) // 2
        groups = 0
        if n_pairs and wanted is not False:
            # A table of g x g groups with noise of deviation s lies about 0.4 g^2 s / n from the truth.
            deviation = accountant.deviation(_WITH_PAIRS["pairs"], n_pairs)
            groups = int(min(math.sqrt(_PAIR_NOISE * n_rows / (0.4 * deviation)), 100.0))
        pairs = groups >= _FEWEST_GROUPS or (wanted is True and n_pairs > 0)
        return cls(n_rows, n_columns, pairs, max(groups, 2))

    @property
    def shares(self) -> dict[str, float]:
        return _WITH_PAIRS if self.pairs and self.n_columns > 1 else _WITHOUT_PAIRS

    def class_noise(self, accountant: Accountant) -> float:
        return accountant.deviation(self.shares["within"], self.n_columns + 1)

    def n_cells(self, accountant: Accountant, n_rows: int, most: int) -> int:
        deviation = accountant.deviation(self.shares["columns"], max(self.n_columns, 1))
        return int(min(max(n_rows / (_ROWS_PER_CELL * deviation), _FEWEST_CELLS), most))

    @staticmethod
    def class_groups(smallest: float, deviation: float) -> int:
        return int(min(max(_CLASS_NOISE * smallest / deviation, 3.0), 1000.0))


def _measure_pairs(
    counts: Counts,
    names: list[str],
    cells: Cells,
    guess: FloatArray,
    accountant: Accountant,
    share: float,
    total: int,
    plan: _Plan,
) -> Measured:
    """Return the noisy shares of every pair of columns, in groups."""
    groups = _groups(guess, cells, plan.pair_groups)
    join, starts = cells.join(groups)
    coarse = counts.coarsened({f"{name}\0": (name, own) for name, own in zip(names, groups, strict=True)})
    sets = [(i, j) for j in range(len(names)) for i in range(j)]
    tables = coarse.of([[f"{names[i]}\0", f"{names[j]}\0"] for i, j in sets])
    noisy = accountant.counts(
        np.concatenate([own.ravel() for own in tables]), share, what="pairs of columns", tables=len(sets)
    )
    precision = (total / accountant.deviation(share, len(sets))) ** 2
    shares = np.zeros((join.shape[1], join.shape[1]))
    weights = np.zeros_like(shares)
    at = 0
    for (i, j), own in zip(sets, tables, strict=True):
        rows, columns = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
        shares[rows, columns] = noisy[at : at + own.size].reshape(own.shape) / total
        weights[rows, columns] = precision
        at += own.size
    return Measured(join, shares + shares.T, weights + weights.T)


def _ordered_cells(bins: Bins) -> int:
    """Return how many of a column's cells, from the first on, have an order."""
    return bins.n_values if bins.column.is_number or bins.column.kind == "ordinal" else 0


def _groups(guess: FloatArray, cells: Cells, most: int) -> list[IntArray]:
    """Return the group of each cell, column by column: of like mass in order, or the frequent ones by themselves."""
    groups = []
    for start, size, ordered in zip(cells.starts, cells.sizes, cells.n_ordered, strict=False):
        own = guess[start : start + size]
        group = np.empty(size, dtype=np.int64)
        if ordered:
            mass = own[:ordered] / own[:ordered].sum()
            group[:ordered] = np.minimum((np.cumsum(mass) - mass / 2) * most, most - 1).astype(np.int64)
            if ordered <= most:
                group[:ordered] = np.arange(ordered)
        rest = np.argsort(-own[ordered:], kind="stable")
        group[ordered:][rest] = size + np.minimum(np.arange(size - ordered), most - 1)
        groups.append(np.unique(group, return_inverse=True)[1].astype(np.int64))
    return groups
