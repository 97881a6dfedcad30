"""A Gaussian copula for each class: empirical margins, joined by their rank correlation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe.data.column import Column
from oversafe.data.encode import column_values
from oversafe.data.schema import Schema
from oversafe.privacy.guarantee import Guarantee
from oversafe.protect.base import Synthesizer
from oversafe.protect.descriptions import PLAIN, described
from oversafe.protect.explanations import Explanation
from oversafe.protect.margins import NumberMargin, finite_codes

FloatArray = NDArray[np.float64]

_REASONS = (
    "the model is fitted to the records without noise, and its margins keep their smallest and largest values",
    "a class of few rows is modelled by few rows, so that synthetic rows may lie close to them",
)

# Estimates from coarse columns may come out beyond 1.
_STRONGEST = 0.995


@dataclass(frozen=True)
class _Part:
    """One column within one class: the share of missing values, and a margin or the categories' shares."""

    missing: float
    margin: NumberMargin | None
    # Ends of the categories' intervals in [0, 1], and which category each interval is.
    ends: FloatArray
    order: NDArray[np.int64]


@described(PLAIN)
@dataclass(eq=False, repr=False)
class GaussianCopula(Synthesizer):
    """Draw rows whose columns have the class's own margins and rank correlation.

    The baseline that better synthesizers have to beat: within each class every column has its empirical
    distribution, and the columns move together as normal variables of the same rank correlation do.
    Relations that are not monotone are lost.

    Parameters
    ----------
    {sampling_strategy, schema, random_state}

    Attributes
    ----------
    guarantee_ : Guarantee
        None: the model is fitted without noise.
    {schema_, classes_, class_counts_}
    correlations_ : array of shape (n_classes, n_dimensions, n_dimensions)
        Of the normal scores within each class; a column with missing values has a second dimension for them.

    Notes
    -----
    A category is an interval of its column's normal variable, as wide as the category is frequent. Each
    class's correlation is drawn towards that of all classes together by d / (n + d), with n rows and d
    dimensions, so that a class of few rows does not repeat their chance.

    Examples
    --------
    >>> from oversafe.data import load_dataset
    >>> from oversafe.protect import GaussianCopula
    >>> X, y = load_dataset("breast_cancer")
    >>> X_new, y_new = GaussianCopula(sampling_strategy="auto", random_state=0).fit_resample(X, y)
    >>> y_new.value_counts().sort_index().to_dict()
    {'benign': 300, 'malignant': 300}
    """

    method_name = "gaussian-copula"
    explanation = Explanation(
        "A fully synthetic table with each class's own distributions and rank correlations.",
        "Nothing: the model is fitted without noise.",
        "It keeps no relation that is not monotone, and rows of a small class may lie close to real ones.",
    )

    _: KW_ONLY
    sampling_strategy: str | float | Mapping[Any, int] | None = None
    schema: Schema | None = None
    random_state: int | None = None

    def _fit(self, table: pd.DataFrame, labels: pd.Series) -> None:
        members = self._read_classes(labels)
        self.schema_ = self._check_schema(table, self.schema)
        table = self.schema_.conform(table)
        self.guarantee_ = Guarantee.none(*_REASONS)
        codes = finite_codes(self.schema_, table)
        self._gaps = [bool(np.isnan(values).any()) for values in codes]
        self._parts: list[list[_Part]] = []
        scores = np.empty((len(table), len(codes) + sum(self._gaps)))
        for c in range(len(self.classes_)):
            rows = np.flatnonzero(members == c)
            self._parts.append([_part(k, v[rows]) for k, v in zip(self.schema_, codes, strict=True)])
            scores[rows] = self._scores([v[rows] for v in codes], self._parts[c])
            self._report("Fitting the classes", (c + 1) / len(self.classes_))
        pooled = _correlation(scores)
        d = scores.shape[1]
        self.correlations_ = np.array(
            [
                (n * _correlation(scores[members == c]) + d * pooled) / (n + d)
                for c, n in enumerate(self.class_counts_)
            ]
        )

    def _scores(self, codes: list[FloatArray], parts: list[_Part]) -> FloatArray:
        """Return what each value of one class says of its normal variable: the mean of its interval."""
        from scipy.special import ndtri
        from scipy.stats import rankdata

        columns = []
        for values, part, has_gaps in zip(codes, parts, self._gaps, strict=True):
            gaps = np.isnan(values)
            known = np.zeros(len(values))
            if part.margin is not None:
                present = values[~gaps]
                known[~gaps] = ndtri((rankdata(present) - 0.5) / len(present))
            elif len(part.order):
                means = np.empty(len(part.order))
                means[part.order] = _interval_means(part.ends)
                known = np.where(gaps, 0.0, means[np.where(gaps, 0, values).astype(np.int64)])
            columns.append(known)
            if has_gaps:
                below, above = _interval_means(np.array([part.missing, 1.0]))
                columns.append(np.where(gaps, below, above))
        return np.column_stack(columns)

    def _draw(self, classes: NDArray[np.int64], rng: np.random.Generator) -> pd.DataFrame:
        from scipy.special import ndtr

        drawn = [np.full(len(classes), np.nan) for _ in self.schema_]
        for c in range(len(self.classes_)):
            rows = np.flatnonzero(classes == c)
            root = _root(self.correlations_[c])
            shares = ndtr(rng.normal(size=(len(rows), len(root))) @ root.T)
            at = 0
            for i, part in enumerate(self._parts[c]):
                if part.margin is not None:
                    values = part.margin.quantiles(shares[:, at])
                elif len(part.order):
                    places = np.searchsorted(part.ends, shares[:, at], side="left")
                    values = part.order[np.minimum(places, len(part.order) - 1)].astype(float)
                else:
                    values = np.full(len(rows), np.nan)
                at += 1
                if self._gaps[i]:
                    values[shares[:, at] < part.missing] = np.nan
                    at += 1
                drawn[i][rows] = values
        return pd.DataFrame(
            {column.name: column_values(column, v) for column, v in zip(self.schema_, drawn, strict=True)}
        )


def _part(column: Column, codes: FloatArray) -> _Part:
    gaps = np.isnan(codes)
    missing = float(gaps.mean())
    none = np.empty(0), np.empty(0, dtype=np.int64)
    if gaps.all():
        return _Part(1.0, None, *none)
    if column.is_number:
        return _Part(missing, NumberMargin.of(codes), *none)
    counts = np.bincount(codes[~gaps].astype(np.int64), minlength=len(column.categories or ()))
    # Ordered categories keep their order; of others the frequent stand first, as there is none.
    order = np.arange(len(counts)) if column.kind == "ordinal" else np.argsort(-counts, kind="stable")
    return _Part(missing, None, np.cumsum(counts[order]) / counts.sum(), order)


def _interval_means(ends: FloatArray) -> FloatArray:
    """Return the mean of a normal variable within each interval of shares that ends there."""
    from scipy.special import ndtri
    from scipy.stats import norm

    edges = np.concatenate([[0.0], np.minimum(ends, 1.0)])
    heights = norm.pdf(ndtri(edges))
    shares = np.diff(edges)
    return np.divide(-np.diff(heights), shares, out=np.zeros(len(shares)), where=shares > 0)


def _correlation(scores: FloatArray) -> FloatArray:
    """Return the correlation of the normal variables behind the scores.

    The score m of a variable z is E[z | value], so that Cov(m, z') = rho Var(m), and for two coarse ones
    Cov(m, m') = rho Var(m) Var(m') to first order: without the variances categories would seem less related
    than they are.
    """
    d = scores.shape[1]
    if len(scores) < 2:
        return np.eye(d)
    centred = scores - scores.mean(axis=0)
    covariance = centred.T @ centred / len(scores)
    variance = np.outer(np.diag(covariance), np.diag(covariance))
    correlation = np.divide(covariance, variance, out=np.zeros((d, d)), where=variance > 1e-12)
    correlation = np.clip(correlation, -_STRONGEST, _STRONGEST)
    np.fill_diagonal(correlation, 1.0)
    return correlation


def _root(correlation: FloatArray) -> FloatArray:
    """Return A with A A' = the nearest correlation without negative eigenvalues."""
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return root / np.sqrt(np.square(root).sum(axis=1, keepdims=True))
