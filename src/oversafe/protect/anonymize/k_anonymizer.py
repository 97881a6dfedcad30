"""k-anonymity, l-diversity and t-closeness: groups of rows that share their quasi-identifiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.checks import check_choice, check_count, check_share
from oversafe._core.errors import InputError
from oversafe._core.text import listed
from oversafe.data.column import Column
from oversafe.data.encode import column_values
from oversafe.data.schema import Schema
from oversafe.privacy.guarantee import Guarantee
from oversafe.protect.anonymize.quasi_identifiers import chosen_columns, dense_ids, group_sizes
from oversafe.protect.base import Sampler
from oversafe.protect.explanations import Explanation
from oversafe.protect.margins import finite_codes

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Hierarchy = Mapping[Any, Sequence[str]]

_OTHERS = (
    "columns that are not quasi-identifiers are published unchanged, and whoever knows one of them exactly "
    "finds the row"
)
_SAME = "a group whose rows agree in a sensitive value tells it of all of them; ask for l_diversity"
_COMPOSE = "two k-anonymous releases of one table together need not be k-anonymous"


@dataclass(eq=False, repr=False)
class KAnonymizer(Sampler):
    """Cut the table into groups of at least k rows and give the rows of a group the same quasi-identifiers.

    The groups come from Mondrian: the table is cut in two at the middle of its widest quasi-identifier, and
    each part again, as long as both sides keep at least ``k_anonymity`` rows and the other demands.
    Categories are cut along their hierarchy, or by frequency without one. Every row then carries its
    group's median of numbers and dates, and the most frequent category; other columns stay as they are.
    The rows keep their order, which is often that of the people's numbers: ``oversafe protect`` shuffles them, and
    so should whoever hands out the result.

    Parameters
    ----------
    k_anonymity : int, default=5
        How many rows a group has at least.
    quasi_identifiers : list of column names or positions, optional
        What an outsider may know of a person: every column, or every one but the sensitive, when not given.
    l_diversity : int, optional
        How many different sensitive values a group has at least.
    t_closeness : float, optional
        How far the sensitive values of a group may be spread from those of the table, from 0 to 1: the earth
        mover's distance, with ordered values a step apart and others all equally far.
    sensitive : column name, optional
        What must not be learnt of a person; the label when not given.
    hierarchies : mapping of column name to mapping, optional
        For each category the terms that it falls under, the nearest first:
        ``{"town": {"Ulm": ("Swabia", "south"), "Kiel": ("Holstein", "north")}}``.
    max_suppression : float, default=0.0
        The share of the rows that may be left out because a category of theirs is rarer than
        ``k_anonymity``, the rarest first.
    output : {"values", "ranges"}, default="values"
        "values" keeps each column's dtype. "ranges" writes what is known of a group instead, as text:
        ``30 to 39``, ``Swabia``, ``a or b``.
    random_state : int, optional
        Has no effect, as nothing is random.
    schema : Schema, optional
        What the columns are; read from the table when not given.

    Attributes
    ----------
    guarantee_ : Guarantee
        None: k-anonymity is a property of the table, which bounds no outsider with other knowledge.
    schema_ : Schema
        What the feature columns are.
    quasi_identifiers_ : tuple of str
        The columns that were generalised.
    groups_ : array of int
        The group of each row of the result.
    sampling_strategy_ : dict
        The rows of each class in the result.

    References
    ----------
    .. [1] LeFevre, DeWitt and Ramakrishnan, "Mondrian Multidimensional K-Anonymity", ICDE 2006.
    .. [2] Machanavajjhala et al., "l-Diversity: Privacy Beyond k-Anonymity", ACM TKDD 1(1), 2007.
    .. [3] Li, Li and Venkatasubramanian, "t-Closeness: Privacy Beyond k-Anonymity and l-Diversity", ICDE 2007.

    Examples
    --------
    >>> import pandas as pd
    >>> from oversafe.protect import KAnonymizer
    >>> X = pd.DataFrame({"age": [21, 23, 22, 60, 64, 69], "dose": [1.0, 1.5, 1.2, 3.0, 2.5, 2.0]})
    >>> y = pd.Series(["well", "ill", "well", "ill", "well", "ill"])
    >>> anonymizer = KAnonymizer(k_anonymity=3, quasi_identifiers=["age"], l_diversity=2, output="ranges")
    >>> anonymizer.fit_resample(X, y)[0]["age"].tolist()
    ['21 to 23', '21 to 23', '21 to 23', '60 to 69', '60 to 69', '60 to 69']
    """

    method_name = "k-anonymizer"
    explanation = Explanation(
        "Real rows whose quasi-identifiers are replaced by those of a group of at least k_anonymity rows.",
        "k-anonymity for the quasi-identifiers; l-diversity and t-closeness of the sensitive column when asked for.",
        "It bounds nothing for an outsider who knows other columns, and two such releases together may single "
        "people out.",
    )

    k_anonymity: int = 5
    quasi_identifiers: Sequence[Any] | None = None
    _: KW_ONLY
    l_diversity: int | None = None
    t_closeness: float | None = None
    sensitive: Any = None
    hierarchies: Mapping[str, Hierarchy] | None = None
    max_suppression: float = 0.0
    output: Literal["values", "ranges"] = "values"
    random_state: int | None = None
    schema: Schema | None = None

    def _resample(self, table: pd.DataFrame, labels: pd.Series) -> tuple[pd.DataFrame, pd.Series]:
        from oversafe.protect.samplers._neighbor_kernels import mondrian

        self._check()
        self.schema_ = self._check_schema(table, self.schema)
        table = self.schema_.conform(table)
        codes = finite_codes(self.schema_, table)
        columns = (
            [i for i, name in enumerate(self.schema_.names) if name != str(self.sensitive)]
            if self.quasi_identifiers is None
            else chosen_columns(self.quasi_identifiers, self.schema_)
        )
        self.quasi_identifiers_ = tuple(self.schema_.names[i] for i in columns)
        self.guarantee_ = self._guarantee()
        trees = {
            i: self._tree(self.schema_.columns[i]) for i in columns if self.schema_.columns[i].is_category
        }

        kept = self._kept(columns, codes)
        table, labels = table.iloc[kept].reset_index(drop=True), labels.iloc[kept].reset_index(drop=True)
        codes = [values[kept] for values in codes]
        sensitive, ordered = self._sensitive_values(codes, labels)
        self._report("Cutting the table", 0.2)
        ranked = [_ranks(codes[i], trees.get(i)) for i in columns]
        width = 1 + max(int(ranks.max()) for ranks, _ in ranked)
        depths = np.zeros((len(columns), width), dtype=np.int64)
        for row, (_, depth) in enumerate(ranked):
            depths[row, : len(depth)] = depth
        overall = np.bincount(sensitive) / len(sensitive)
        self._check_possible(len(table), len(overall))
        self.groups_ = mondrian(
            np.stack([ranks for ranks, _ in ranked]),
            depths,
            sensitive,
            overall,
            int(self.k_anonymity),
            int(self.l_diversity or 1),
            float(1.0 if self.t_closeness is None else self.t_closeness),
            ordered,
        )
        self._report("Writing the groups", 0.8)
        for i in columns:
            column = self.schema_.columns[i]
            if self.output == "ranges":
                table[column.name] = _described(column, codes[i], self.groups_, trees.get(i))
            else:
                common = _mode if column.is_category else _median
                table[column.name] = column_values(column, common(codes[i], self.groups_)[self.groups_])
        self.sampling_strategy_ = labels.value_counts().to_dict()
        return table, labels

    def _check(self) -> None:
        check_count("k_anonymity", self.k_anonymity, 2)
        check_share("max_suppression", self.max_suppression, 0.0, 1.0)
        if self.l_diversity is not None:
            check_count("l_diversity", self.l_diversity, 1)
        if self.t_closeness is not None:
            check_share("t_closeness", self.t_closeness, 0.0, 1.0)
        check_choice("output", self.output, ("values", "ranges"))

    def _check_possible(self, n: int, n_sensitive: int) -> None:
        if n < self.k_anonymity:
            raise InputError(
                f"{n} rows are fewer than k_anonymity = {self.k_anonymity}; ask for a smaller number"
            )
        if n_sensitive < (self.l_diversity or 1):
            raise InputError(
                f"the sensitive column has {n_sensitive} different values, fewer than l_diversity = "
                f"{self.l_diversity}; ask for a smaller number"
            )

    def _guarantee(self) -> Guarantee:
        reasons = [
            f"each combination of {listed(self.quasi_identifiers_)} is shared by at least {self.k_anonymity} rows, "
            "which bounds what a row tells by itself and not what the groups together tell of one person"
        ]
        if len(self.quasi_identifiers_) < len(self.schema_):
            reasons.append(_OTHERS)
        if (self.l_diversity or 1) < 2 and self.t_closeness is None:
            reasons.append(_SAME)
        return Guarantee.none(*reasons, _COMPOSE)

    def _tree(self, column: Column) -> list[tuple[str, ...]] | None:
        """Return for each category the terms that it falls under, the widest first."""
        given = (self.hierarchies or {}).get(column.name)
        if given is None:
            return None
        if absent := [c for c in column.categories or () if c not in given]:
            raise InputError(
                f"the hierarchy of column {column.name!r} lacks the category {absent[0]!r}; add it"
            )
        return [tuple(str(t) for t in reversed(list(given[c]))) for c in column.categories or ()]

    def _kept(self, columns: Sequence[int], codes: Sequence[FloatArray]) -> IntArray:
        n = len(codes[0])
        rarest = np.full(n, n)
        for i in columns:
            if self.schema_.columns[i].is_category:
                rarest = np.minimum(rarest, group_sizes([codes[i]]))
        rare = np.flatnonzero(rarest < self.k_anonymity)
        left_out = rare[np.argsort(rarest[rare], kind="stable")][: int(self.max_suppression * n)]
        return np.setdiff1d(np.arange(n), left_out)

    def _sensitive_values(self, codes: Sequence[FloatArray], labels: pd.Series) -> tuple[IntArray, bool]:
        if self.sensitive is None:
            return dense_ids(labels.to_numpy()), False
        name = str(self.sensitive)
        column = self.schema_[name]
        if name in self.quasi_identifiers_:
            raise InputError(f"column {name!r} is sensitive and a quasi-identifier; it can be one of them")
        values = codes[self.schema_.names.index(name)]
        ordered = column.is_number or column.kind == "ordinal"
        # Missing values stand before the smallest.
        return np.unique(np.where(np.isnan(values), -np.inf, values), return_inverse=True)[1], ordered


def _ranks(codes: FloatArray, paths: list[tuple[str, ...]] | None) -> tuple[IntArray, IntArray]:
    """Return the dense ranks of a column's values, missing ones first, and how deep neighbours part."""
    values, ranks = np.unique(np.where(np.isnan(codes), -np.inf, codes), return_inverse=True)
    if paths is None:
        return ranks, np.zeros(len(values), dtype=np.int64)
    # Categories under one term stand together.
    terms = [() if value < 0 else (*paths[int(value)], str(int(value))) for value in values]
    order = sorted(range(len(values)), key=lambda i: terms[i])
    place = np.empty(len(values), dtype=np.int64)
    place[order] = np.arange(len(values))
    depths = [0] + [_shared(terms[a], terms[b]) for a, b in pairwise(order)]
    return place[ranks], np.array(depths, dtype=np.int64)


def _shared(a: Sequence[str], b: Sequence[str]) -> int:
    """Return how many terms two paths have in common from the top."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _median(codes: FloatArray, groups: IntArray) -> FloatArray:
    """Return the lower median of each group, missing where most of its values are."""
    order = np.lexsort((codes, groups))  # missing values are sorted last
    sizes = np.bincount(groups)
    present = np.bincount(groups, weights=~np.isnan(codes)).astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    middle = codes[order[starts + np.maximum(present - 1, 0) // 2]]
    return np.where(2 * present >= sizes, middle, np.nan)


def _mode(codes: FloatArray, groups: IntArray) -> FloatArray:
    """Return the most frequent category of each group, the first of equals; missing is one of them."""
    values, places = np.unique(codes, return_inverse=True)
    counts = np.bincount(groups * len(values) + places, minlength=(int(groups.max()) + 1) * len(values))
    return values[counts.reshape(-1, len(values)).argmax(axis=1)]


def _described(
    column: Column, codes: FloatArray, groups: IntArray, paths: list[tuple[str, ...]] | None
) -> pd.Series:
    """Return what is known of each row's group, as text."""
    if column.is_number:
        ends = [
            column_values(column, pd.Series(codes).groupby(groups).agg(side).to_numpy(dtype=float)).astype(
                str
            )
            for side in ("min", "max")
        ]
        texts = np.where(ends[0] == ends[1], ends[0], ends[0] + " to " + ends[1]).astype(object)
    else:
        names = [str(c) for c in column.categories or ()]
        pairs = (
            pd.DataFrame({"group": groups, "code": codes})
            .dropna()
            .drop_duplicates()
            .sort_values(["group", "code"])
        )
        texts = np.full(int(groups.max()) + 1, "", dtype=object)
        for group, members in pairs.groupby("group")["code"]:
            texts[group] = _term([int(code) for code in members], names, paths)
    incomplete = np.bincount(groups, weights=np.isnan(codes)) == np.bincount(groups)
    texts[incomplete] = "missing"
    partly = (np.bincount(groups, weights=np.isnan(codes)) > 0) & ~incomplete
    texts[partly] = texts[partly] + " or missing"
    return pd.Series(texts[groups])


def _term(codes: list[int], names: list[str], paths: list[tuple[str, ...]] | None) -> str:
    if len(codes) == 1:
        return names[codes[0]]
    if paths is not None:
        depth = min(_shared(paths[codes[0]], paths[code]) for code in codes[1:])
        if depth:
            return paths[codes[0]][depth - 1]
    return "any" if len(codes) == len(names) else " or ".join(names[code] for code in codes)
