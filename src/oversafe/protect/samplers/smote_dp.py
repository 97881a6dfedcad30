"""SMOTEDP: SMOTE first, then a synthesizer under differential privacy, with what the two promise together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from oversafe._core.checks import check_choice, check_count
from oversafe._core.errors import InputError
from oversafe.data.column import Column
from oversafe.data.encode import column_codes, column_values, domain_codes
from oversafe.data.schema import Schema
from oversafe.privacy.costs.oversampling import smote_budget, smote_cost
from oversafe.privacy.guarantee import SEEDED, Guarantee, check_epsilon
from oversafe.protect.base import Synthesizer, check_labels
from oversafe.protect.counting import DEFAULT_DELTA
from oversafe.protect.explanations import Explanation
from oversafe.protect.samplers.stable_smote import stable_smote

RunAt = Literal["nominal", "proven"]
IntArray = NDArray[np.int64]

# What a float has at most behind the point, of numbers about 1.
_MOST_DECIMALS = 16

_NOMINAL = (
    "epsilon is that of the synthesizer alone, which sees rows that SMOTE made; one record changes many of them, "
    "and the contraction of SMOTE's rows bounds that on average at best, not in the worst case"
)
_UNKNOWN_SIZES = (
    "what holds for the whole depends on the class sizes, which were read from the data; declare lower bounds "
    "with class_sizes="
)

_NOTHING = (
    "for the whole nothing is proven: the synthesizer's own delta grows beyond the delta that was given"
)


@dataclass(eq=False, repr=False)
class SMOTEDP(Synthesizer):
    """Replace the table by rows that SMOTE draws between neighbours, and learn those under differential privacy.

    The idea of Zhou et al. ([1]_): SMOTE's rows vary less than the records, so that a synthesizer with a
    large epsilon may do. What they prove is a statement about Gaussian data on average; differential privacy is
    about the worst case, and there a record changes every row that starts from it or ends in it. Both figures are
    stated: the synthesizer's own epsilon, and the one that is proven for the whole, which is far larger. With
    ``run_at="proven"`` the synthesizer runs at the epsilon at which the whole keeps the promised one.

    Parameters
    ----------
    synthesizer : Synthesizer, optional
        Has the parameters ``epsilon``, ``schema`` and ``classes``; :class:`PrivBayes` when not given.
    epsilon : float, default=50.0
        Of the synthesizer with ``run_at="nominal"`` (the paper's 50), of the whole with ``run_at="proven"``.
    delta : float, default=0.0
        At which the proven epsilon of the whole is stated; at 0 every row may change.
    k_neighbors : int, default=1
        As in SMOTE; the paper's value.
    class_sizes : mapping of label to int, optional
        Public: for each class that exists, how many records it has at least in every table that could be the input.
        SMOTE makes as many rows of it. What is proven rests on it. Without them the class sizes are read from the data
        and nothing is proven.
    run_at : {"nominal", "proven"}, default="nominal"
        What ``epsilon`` is the epsilon of.
    schema : Schema, optional
        What the columns are; see the synthesizer.
    sampling_strategy : None, str, float or dict, default=None
        Class shares of a sample; see the synthesizer.
    random_state : int, optional
        Makes fit and sample repeatable, for experiments; the guarantee is then nominal.

    Attributes
    ----------
    guarantee_ : Guarantee
        What the result promises.
    whole_ : Guarantee or None
        What is proven for SMOTE and the synthesizer together, if the class sizes are public and anything is.
    synthesizer_ : Synthesizer
        The fitted synthesizer.

    References
    ----------
    .. [1] Y. Zhou et al., "SMOTE-DP: Improving Privacy-Utility Tradeoff with Synthetic Data", 2025.

    Examples
    --------
    >>> from oversafe.data import load_dataset
    >>> from oversafe.protect import SMOTEDP
    >>> X, y = load_dataset("breast_cancer")
    >>> synthesizer = SMOTEDP(random_state=0).fit(X, y)
    >>> synthesizer.sample(5)[0].shape
    (5, 10)
    """

    method_name = "smote-dp"
    explanation = Explanation(
        "A fully synthetic table: a synthesizer under differential privacy learns rows that SMOTE drew between "
        "neighbours.",
        "With public class sizes (class_sizes) the epsilon of the whole is stated, and with run_at='proven' kept; the "
        "synthesizer's own epsilon is nominal.",
        "SMOTE before a private method does not save budget: one record changes many of its rows.",
    )

    _promises_records = True

    synthesizer: Synthesizer | None = None
    _: KW_ONLY
    epsilon: float = 50.0
    delta: float = 0.0
    k_neighbors: int = 1
    class_sizes: Mapping[Any, int] | None = None
    run_at: RunAt = "nominal"
    schema: Schema | None = None
    sampling_strategy: str | float | Mapping[Any, int] | None = None
    random_state: int | None = None

    def _fit(self, table: pd.DataFrame, labels: pd.Series) -> None:
        check_epsilon(self.epsilon)
        check_count("k_neighbors", self.k_neighbors, 1)
        check_choice("run_at", self.run_at, get_args(RunAt))
        if self.run_at == "proven" and self.class_sizes is None:
            raise InputError("run_at='proven' needs the class sizes; give public ones with class_sizes=")
        schema = self._check_schema(table, self.schema)
        classes, sizes = self._sizes(labels)
        inner = self._inner()
        settings = self._settings(schema, classes, sizes, inner)
        epsilon = float(self.epsilon)
        if self.run_at == "proven":
            epsilon = smote_budget(epsilon, target_delta=self.delta, **settings)

        rng = np.random.default_rng(self.random_state)
        made, of = self._interpolate(table, labels, schema, dict(zip(classes, sizes, strict=True)), rng)
        inner.set_params(
            epsilon=epsilon, schema=schema, classes=list(classes), random_state=self.random_state
        )
        self.synthesizer_ = inner.fit(made, of)
        self.schema_, self.classes_ = inner.schema_, inner.classes_
        self.class_counts_ = inner.class_counts_
        self.whole_ = None
        if self.class_sizes is not None:
            # With a large epsilon and a delta of the synthesizer's own there may be nothing to state.
            with suppress(InputError):
                self.whole_ = smote_cost(epsilon, target_delta=self.delta, **settings)
        self.guarantee_ = self._guarantee(inner.guarantee_)

    def _inner(self) -> Synthesizer:
        from oversafe.protect.marginals.privbayes import PrivBayes

        inner = PrivBayes() if self.synthesizer is None else clone(self.synthesizer)
        known = inner.get_params()
        if missing := [name for name in ("epsilon", "schema", "classes") if name not in known]:
            raise InputError(
                f"the synthesizer {type(inner).__name__} has no parameter {missing[0]!r}; give one under differential "
                "privacy, such as PrivBayes()"
            )
        if known.get("relation", "replace-one") != "replace-one":
            raise InputError("the synthesizer has relation = 'add-remove'; use 'replace-one' within SMOTEDP")
        for name in ("ledger", "rows_per_person"):
            # Both would count the rows that SMOTE made, and not the records behind them.
            if known.get(name) is not None:
                raise InputError(
                    f"the synthesizer has {name} set, which does not hold after SMOTE; leave it out"
                )
        return inner

    def _sizes(self, labels: pd.Series) -> tuple[list[Any], list[int]]:
        least = self.k_neighbors + 2
        if self.class_sizes is None:
            check_labels(labels)
            found = labels.value_counts().sort_index()
            classes, sizes = found.index.tolist(), [int(count) for count in found]
        else:
            classes, sizes = list(self.class_sizes), list(self.class_sizes.values())
            for label, size in zip(classes, sizes, strict=True):
                check_count(f"class_sizes[{label!r}]", size, least)
        if len(classes) < 2:
            raise InputError(f"class_sizes names {len(classes)} class; name all that exist, at least 2")
        return classes, sizes

    def _settings(
        self, schema: Schema, classes: list[Any], sizes: list[int], inner: Synthesizer
    ) -> dict[str, Any]:
        dimensions = sum(
            len(column.categories or ()) if column.is_category else 1 + column.missing for column in schema
        )
        # The synthesizer's own delta grows with the rows that a record changes, as its epsilon does.
        delta = inner.get_params().get("delta", 0.0)
        inner_delta = DEFAULT_DELTA if delta is None else float(delta)
        # A neighbouring table may have one record less of a class.
        return {
            "n_minority": {str(c): size - 1 for c, size in zip(classes, sizes, strict=True)},
            "n_added": {str(c): size for c, size in zip(classes, sizes, strict=True)},
            "dimensions": max(dimensions, 1),
            "k_neighbors": int(self.k_neighbors),
            "keep_originals": False,
            "mechanism_relation": "replace-one",
            "delta": inner_delta,
        }

    def _interpolate(
        self,
        table: pd.DataFrame,
        labels: pd.Series,
        schema: Schema,
        sizes: Mapping[Any, int],
        rng: np.random.Generator,
    ) -> tuple[pd.DataFrame, pd.Series]:
        """Return SMOTE's rows: numbers on the line, everything else from its nearer end."""
        located = []
        for column in schema:
            found = column_codes(column, table[column.name], strict=False)
            located.append(_located(column, np.append(found, _fixed_code(column))))
        codes = np.column_stack([numbers for numbers, _ in located])
        places = np.column_stack([where for _, where in located])
        # By what a label is: one odd label changes how the others are stored.
        named = Column("label", "categorical", "object", True, categories=tuple(sizes))
        classes = column_codes(named, labels, strict=False)
        rows, of = [], []
        for i, (label, size) in enumerate(sizes.items()):
            own = np.flatnonzero(classes == i)
            if len(own) <= self.k_neighbors and self.class_sizes is not None:
                # A declared class raises no error, which would tell of its records; the last row is a fixed one.
                own = np.append(own, np.full(self.k_neighbors + 1 - len(own), len(codes) - 1))
            if len(own) <= self.k_neighbors:
                raise InputError(
                    f"class {label!r} has too few records for k_neighbors = {self.k_neighbors}; give a smaller "
                    "number, or leave the class out"
                )
            made = stable_smote(places[own], size, k_neighbors=int(self.k_neighbors), random_state=rng)
            first, second = codes[own[made.base]], codes[own[made.neighbour]]
            between = first + made.gap[:, None] * (second - first)
            nearer = np.where(made.gap[:, None] < 0.5, first, second)
            whole = np.array([column.is_category for column in schema])
            rows.append(np.where(whole | np.isnan(between), nearer, between))
            of += [label] * size
        stacked = np.vstack(rows)
        columns = {column.name: column_values(column, stacked[:, i]) for i, column in enumerate(schema)}
        return pd.DataFrame(columns), pd.Series(of)

    def _guarantee(self, inner: Guarantee) -> Guarantee:
        caveats = list(inner.caveats)
        if self.run_at == "proven" and self.whole_ is not None:
            kept = [caveat for caveat in caveats if caveat != SEEDED]
            if self.random_state is not None:
                kept.append(SEEDED)
            return self.whole_.weaken(*kept)
        if self.whole_ is None:
            return inner.weaken(_NOMINAL, _UNKNOWN_SIZES if self.class_sizes is None else _NOTHING)
        figure = f"epsilon = {self.whole_.epsilon:.4g}" + (f", delta = {self.delta:g}" if self.delta else "")
        return inner.weaken(_NOMINAL, f"for the whole {figure} is proven")

    def _draw(self, classes: IntArray, rng: np.random.Generator) -> pd.DataFrame:
        return self.synthesizer_._draw(classes, rng)


def _fixed_code(column: Any) -> float:
    """Return the code of a column in a record that nobody has."""
    if column.is_category:
        return 0.0 if column.categories else math.nan
    return 0.0 if column.bounds is None else domain_codes(column)[0]


def _located(column: Any, codes: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a column's codes and where they lie for the search: each record by itself, by the schema alone.

    The cost of SMOTE rests on it that records at one place are alike: of those any may be a neighbour, so a row must
    follow from the places of its two ends.
    """
    if not column.missing and column.stand_in is not None:
        # As the synthesizer has it.
        stand_in = column_codes(column, pd.Series([column.stand_in], dtype=object), strict=False)[0]
        codes = np.where(np.isnan(codes), stand_in, codes)
    gaps = np.isnan(codes)
    if column.is_category:
        hot = np.zeros((len(codes), len(column.categories or ())))
        hot[np.flatnonzero(~gaps), codes[~gaps].astype(np.int64)] = math.sqrt(0.5)
        return codes, hot
    scaled = _scaled(column, codes)
    if column.bounds is not None:
        codes = _of_places(column, scaled)
    places = np.where(gaps, 0.5, scaled)
    return codes, np.column_stack([places, gaps.astype(np.float64)]) if column.missing else places[:, None]


def _scaled(column: Any, codes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers from 0 at the minimum to 1 at the maximum."""
    low, high = domain_codes(column) if column.bounds is not None else (0.0, 0.0)
    return (codes - low) / (high - low) if high > low else np.where(np.isnan(codes), codes, 0.5)


def _of_places(column: Any, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a number for each place: of those that are scaled to it the one with the fewest decimals.

    In a wide range many numbers are scaled to one place.
    """
    low, high = domain_codes(column)
    rough = low + scaled * (high - low)
    if not high > low:
        return rough
    found: NDArray[np.float64] = rough.copy()
    left = np.ones(len(rough), dtype=np.bool_)
    for decimals in range(_MOST_DECIMALS + 1):
        with np.errstate(over="ignore", invalid="ignore"):
            # Of the largest numbers the next steps of rounding are none.
            near: NDArray[np.float64] = np.round(rough, decimals)
            fits = left & (_scaled(column, near) == scaled)
        found[fits] = near[fits]
        left[fits] = False
    return found
