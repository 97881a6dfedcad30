"""Sanitising as statistics offices and NHS England do it: generalise, cap, and leave out what is rare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.checks import check_count, check_share
from oversafe._core.errors import InputError
from oversafe.data.column import Column
from oversafe.data.encode import column_values
from oversafe.data.schema import Schema
from oversafe.privacy.guarantee import Guarantee
from oversafe.protect.anonymize.quasi_identifiers import SUGGESTED, chosen_columns, group_sizes
from oversafe.protect.base import Sampler
from oversafe.protect.explanations import Explanation
from oversafe.protect.margins import NumberMargin, finite_codes

FloatArray = NDArray[np.float64]

_REASONS = (
    "the release consists of real rows, coarser in some columns: whoever knows enough of a person finds the row, "
    "or sees that it was left out",
    "the limits (quantiles, rare categories and combinations) depend on the records and are published with them",
)


@dataclass(eq=False, repr=False)
class NHSSanitizer(Sampler):
    """Generalise quasi-identifiers, cap outliers, and leave out rows with rare combinations.

    The classic alternative to synthetic data, after the disclosure control of NHS England's published
    accident and emergency records, as comparisons of synthetic data use it [1]_ [2]_:

    1. numbers and dates beyond a quantile are moved to it, at both ends;
    2. categories that fewer than ``k_anonymity`` rows have count as missing, or as the most common one
       where values cannot be missing;
    3. quasi-identifiers are made coarser: a number becomes the median of its bin;
    4. rows whose combination of quasi-identifiers fewer than ``k_anonymity`` rows share are left out. While
       that would be more than ``max_suppression`` of them, the quasi-identifier with the most values
       is made coarser again: half as many bins, or half as many categories.

    Parameters
    ----------
    quasi_identifiers : list of column names or positions, optional
        What an outsider may know of a person. When not given, the four columns that single out most rows
        each by itself; see :func:`suggest_quasi_identifiers`.
    k_anonymity : int, default=10
        How many rows must share a combination.
    cap : float, default=0.95
        The quantile beyond which numbers are moved to it; the lower one is 1 - ``cap``. 1 keeps all.
    n_bins : int, default=10
        How many bins of about equally many rows a quasi-identifier that is a number has at first.
    max_suppression : float, default=0.1
        The share of the rows that may be left out before quasi-identifiers are made coarser.
    random_state : int, optional
        Has no effect, as nothing is random.
    schema : Schema, optional
        What the columns are; read from the table when not given.

    Attributes
    ----------
    guarantee_ : Guarantee
        None: real rows are published.
    schema_ : Schema
        What the feature columns are.
    quasi_identifiers_ : tuple of str
        The columns that were made coarser.
    kept_ : array of int
        The rows of the table that are in the result.
    sampling_strategy_ : dict
        The rows of each class in the result.

    References
    ----------
    .. [1] NHS England, "A&E Synthetic Data".
    .. [2] Stadler, Oprisanu and Troncoso, "Synthetic Data - Anonymisation Groundhog Day", USENIX Security 2022.

    Examples
    --------
    >>> from oversafe.data import load_dataset
    >>> from oversafe.protect import NHSSanitizer
    >>> X, y = load_dataset("breast_cancer")
    >>> sanitizer = NHSSanitizer(quasi_identifiers=list(X.columns[:2]))
    >>> X_new, y_new = sanitizer.fit_resample(X, y)
    >>> int(X_new.groupby(list(X.columns[:2])).size().min()) >= 10
    True
    """

    method_name = "nhs-sanitizer"
    explanation = Explanation(
        "Real rows: outliers capped, rare categories merged, quasi-identifiers made coarser, rows with rare "
        "combinations left out.",
        "Every released combination of the quasi-identifiers is shared by at least k_anonymity rows.",
        "It bounds nothing for an outsider who knows other columns, and leaves out the rare, who may be the "
        "minority class.",
    )

    quasi_identifiers: Sequence[Any] | None = None
    k_anonymity: int = 10
    _: KW_ONLY
    cap: float = 0.95
    n_bins: int = 10
    max_suppression: float = 0.1
    random_state: int | None = None
    schema: Schema | None = None

    def _resample(self, table: pd.DataFrame, labels: pd.Series) -> tuple[pd.DataFrame, pd.Series]:
        check_count("k_anonymity", self.k_anonymity, 2)
        check_count("n_bins", self.n_bins, 1)
        check_share("cap", self.cap, 0.5, 1.0)
        check_share("max_suppression", self.max_suppression, 0.0, 1.0)
        self.schema_ = self._check_schema(table, self.schema)
        table = self.schema_.conform(table)
        codes = finite_codes(self.schema_, table)
        columns = (
            self._telling(codes)
            if self.quasi_identifiers is None
            else chosen_columns(self.quasi_identifiers, self.schema_)
        )
        self.quasi_identifiers_ = tuple(self.schema_.names[i] for i in columns)
        self.guarantee_ = Guarantee.none(*_REASONS, *([SUGGESTED] if self.quasi_identifiers is None else []))
        if len(table) < self.k_anonymity:
            raise InputError(
                f"{len(table)} rows are fewer than k_anonymity = {self.k_anonymity}; ask for a smaller number"
            )
        safe = [self._calmed(column, v) for column, v in zip(self.schema_, codes, strict=True)]
        sizes = self._generalise(columns, safe)
        self.kept_ = np.flatnonzero(sizes >= self.k_anonymity)
        for i, column in enumerate(self.schema_):
            if not np.array_equal(safe[i], codes[i], equal_nan=True):
                table[column.name] = column_values(column, safe[i])
        table = table.iloc[self.kept_].reset_index(drop=True)
        labels = labels.iloc[self.kept_].reset_index(drop=True)
        self.sampling_strategy_ = labels.value_counts().to_dict()
        return table, labels

    def _telling(self, codes: list[FloatArray]) -> list[int]:
        alone = [int((group_sizes([values]) < self.k_anonymity).sum()) for values in codes]
        return sorted(np.argsort(np.negative(alone), kind="stable")[:4].tolist())

    def _calmed(self, column: Column, codes: FloatArray) -> FloatArray:
        """Return a column without outliers and rare categories."""
        gaps = np.isnan(codes)
        if gaps.all():
            return codes
        if column.is_category:
            rare = ~gaps & (group_sizes([codes]) < self.k_anonymity)
            common = float(np.bincount(codes[~gaps].astype(np.int64)).argmax())
            return np.where(rare, np.nan if column.missing else common, codes)
        # Observed values, so that they are ones that the column can hold.
        low = float(np.quantile(codes[~gaps], 1 - self.cap, method="higher"))
        high = float(np.quantile(codes[~gaps], self.cap, method="lower"))
        return np.clip(codes, min(low, high), max(low, high))

    def _generalise(self, columns: list[int], codes: list[FloatArray]) -> NDArray[np.int64]:
        """Make the quasi-identifiers coarse enough, in place; return how many rows share each row's."""
        fine = {i: codes[i] for i in columns}
        room = {
            i: self.n_bins if self.schema_.columns[i].is_number else len(np.unique(codes[i])) for i in columns
        }
        for i in columns:
            codes[i] = _coarser(self.schema_.columns[i], fine[i], room[i])
        while True:
            sizes = group_sizes([codes[i] for i in columns])
            if (sizes < self.k_anonymity).mean() <= self.max_suppression or max(room.values()) <= 1:
                return sizes
            widest = max(columns, key=lambda i: (room[i] > 1, len(np.unique(codes[i]))))
            room[widest] = max(1, room[widest] // 2)
            codes[widest] = _coarser(self.schema_.columns[widest], fine[widest], room[widest])


def _coarser(column: Column, codes: FloatArray, room: int) -> FloatArray:
    """Return a column with so many different values: medians of bins, or the most common categories."""
    gaps = np.isnan(codes)
    if gaps.all():
        return codes
    if column.is_number:
        edges = NumberMargin.of(codes).edges(room)
        cells = np.minimum(np.searchsorted(edges, codes), len(edges) - 1)
        medians = np.array(
            [
                np.quantile(codes[~gaps & (cells == c)], 0.5, method="lower")
                if (~gaps & (cells == c)).any()
                else np.nan
                for c in range(len(edges))
            ]
        )
        return np.where(gaps, np.nan, medians[cells])
    counts = np.bincount(codes[~gaps].astype(np.int64), minlength=len(column.categories or ()))
    order = np.argsort(-counts, kind="stable")
    target = np.where(np.argsort(order) < room, np.arange(len(counts)), order[0]).astype(np.float64)
    # At the coarsest a missing value would still stand out.
    coarse = target[np.where(gaps, 0, codes).astype(np.int64)]
    return np.where(gaps, np.nan if room > 1 else float(order[0]), coarse)
