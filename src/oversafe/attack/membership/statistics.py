"""What a membership attack looks at in a release: statistics of its columns, and the surroundings of a record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.checks import check_choice, check_pandas
from oversafe._core.errors import InputError
from oversafe.data.column import Column
from oversafe.data.encode import column_codes
from oversafe.data.infer_objects import settle_table
from oversafe.data.schema import Schema

Matrix = NDArray[np.float64]
FeatureSet = Literal["paper", "naive", "histogram", "correlation", "ensemble"]

QUARTILES = np.array([0.25, 0.5, 0.75])
N_BINS = 45
# Circles around a target, as shares of the distance to its k-th neighbour.
RADII = np.array([0.1, 0.25, 0.5, 1.0])
# Relative error of a covariance that is computed from sums.
_ROUNDING = 1e-11
# Binary digits of a number that count, about twelve decimal ones: the others are the rounding errors of whoever
# computed it, which differ with the number of summands although the sums say the same.
_DIGITS = 40
# Covariances of larger numbers, and their products, are beyond what a float holds.
_LARGEST = 1e75
# Forests compute in single precision, which holds the squares of numbers of up to about 60 binary places.
_PLACES = 50
_LEAST_PLACES = 500
# Beyond this many pairs of columns a covariance matrix holds more than a forest of 400 examples can use.
_MOST_PAIRS = 20_000


def check_numbers(table: pd.DataFrame, largest: float = _LARGEST) -> None:
    """Refuse a table without columns, and numbers that cannot be computed with: infinite or beyond a limit."""
    if not table.shape[1]:
        raise InputError("the table has no columns besides the label; give at least one")
    for name in table.columns[[pd.api.types.is_float_dtype(dtype) for dtype in table.dtypes]]:
        numbers = table[name].to_numpy(dtype=np.float64, na_value=np.nan)
        if np.isinf(numbers).any():
            raise InputError(f"column {name!r} has infinite values; remove them or mark them as missing")
        if (np.abs(numbers) > largest).any():
            raise InputError(f"column {name!r} has values beyond {largest:g}; rescale it")


class Encoder:
    """Turns tables into matrices of numbers, the same way for every release.

    A category has one column of zeros and ones per value. A number that may be missing is filled with the
    real median and followed by an indicator. What the real table does not have (an unknown category) is
    encoded as missing. Numbers are rounded to twelve digits.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        schema = Schema.infer(table)
        if naming := schema.naming_columns:
            raise InputError(
                f"column {naming[0]!r} seems to hold {schema[naming[0]].naming}; drop it before the attack"
            )
        # Without bounds, so that a release's values beyond the real range are seen as they are.
        self._columns = [replace(column, bounds=None) for column in schema]
        self._fill: dict[str, float] = {}
        for column in self._columns:
            codes = self._codes(column, table[column.name])
            self._fill[column.name] = 0.0 if np.isnan(codes).all() else float(np.nanmedian(codes))

    @staticmethod
    def _codes(column: Column, values: pd.Series) -> Matrix:
        return column_codes(column, values.reset_index(drop=True), strict=False)

    @property
    def names(self) -> list[str]:
        """Names of the matrix's columns."""
        names = []
        for column in self._columns:
            if column.is_category:
                names += [f"{column.name} = {category}" for category in column.categories or ()]
            else:
                names.append(column.name)
            if column.missing:
                names.append(f"{column.name} missing")
        return names

    def matrix(self, table: pd.DataFrame) -> Matrix:
        """Return a table of the same columns as numbers."""
        blocks = []
        for column in self._columns:
            codes = self._codes(column, table[column.name])
            gaps = np.isnan(codes)
            if column.is_category:
                blocks += [codes == place for place in range(len(column.categories or ()))]
            else:
                blocks.append(_rounded(np.where(gaps, self._fill[column.name], codes)))
            if column.missing:
                blocks.append(gaps)
        return np.column_stack(blocks).astype(np.float64)


class Statistics:
    """A set of features of a release, as a vector.

    Parameters
    ----------
    kind : str
        "paper": minimum, quartiles, mean, median and maximum of each column and the lower triangle of the
        covariance matrix. Stadler et al.'s sets: "naive" (mean, median, variance), "histogram" (shares of
        45 equal bins) and "correlation" (of all pairs of columns); "ensemble" holds all three.
    reference : array of shape (n_rows, n_columns)
        The real rows, for the range of the bins.
    """

    def __init__(self, kind: FeatureSet, reference: Matrix) -> None:
        check_choice("features", kind, get_args(FeatureSet))
        self.kind = kind
        d = reference.shape[1]
        self.center = reference.mean(axis=0)
        self.variance = reference.var(axis=0)
        self.low = reference.min(axis=0)
        width = reference.max(axis=0) - self.low
        # A width that is hardly a number has infinitely many of its bins in a unit.
        shown = width > N_BINS / np.finfo(float).max
        self.bins_per_unit = np.where(shown, N_BINS / np.where(shown, width, 1.0), 0.0)
        self.unit = _units(reference)
        rows, columns = np.tril_indices(d)
        if len(rows) > _MOST_PAIRS:
            # All variances, and a fixed choice of the covariances.
            others = np.flatnonzero(rows != columns)
            chosen = np.random.default_rng(0).choice(others, _MOST_PAIRS - d, replace=False)
            kept = np.sort(np.concatenate([np.flatnonzero(rows == columns), chosen]))
            rows, columns = rows[kept], columns[kept]
        self.pairs = rows, columns

    @property
    def needs_histograms(self) -> bool:
        """Whether bins must be counted."""
        return self.kind in ("histogram", "ensemble")

    @property
    def needs_summaries(self) -> bool:
        """Whether order statistics and moments are used."""
        return self.kind != "histogram"

    def of(self, rows: Matrix) -> Matrix:
        """Return the features of one release; zeros if it has no row."""
        if len(rows) == 0:
            rows = np.zeros((1, rows.shape[1]))
        orders = means = products = histograms = None
        if self.needs_summaries:
            inner = np.quantile(rows, QUARTILES, axis=0)
            orders = np.vstack([rows.min(axis=0), inner, rows.max(axis=0)]).T[None]
            centred = rows - self.center
            means = centred.mean(axis=0)[None]
            products = (centred.T @ centred)[self.pairs][None]
        if self.needs_histograms:
            histograms = self._histogram(rows)[None]
        return self.combine(len(rows), orders, means, products, histograms)[0]

    def _histogram(self, rows: Matrix) -> Matrix:
        places = ((rows - self.low) * self.bins_per_unit).astype(np.int64).clip(0, N_BINS - 1)
        places += N_BINS * np.arange(rows.shape[1])
        return np.bincount(places.ravel(), minlength=N_BINS * rows.shape[1]).astype(np.float64)

    def combine(
        self,
        n_rows: int,
        orders: Matrix | None,
        means: Matrix | None,
        products: Matrix | None,
        histograms: Matrix | None,
    ) -> Matrix:
        """Return the features of several releases of one size from their summaries.

        Parameters
        ----------
        n_rows : int
            Of each release.
        orders : array of shape (n_releases, n_columns, 5), optional
            Minimum, quartiles and maximum.
        means : array of shape (n_releases, n_columns), optional
            Of the values minus ``center``.
        products : array of shape (n_releases, n_pairs), optional
            Sums of the products of the values minus ``center``, for the pairs of columns in ``pairs``.
        histograms : array of shape (n_releases, n_columns * 45), optional
            Counts.
        """
        parts: list[Matrix] = []
        if orders is not None and means is not None and products is not None:
            rows, columns = self.pairs
            covariances = (products - n_rows * means[:, rows] * means[:, columns]) / max(n_rows - 1, 1)
            # A column that is constant in a release has a variance of rounding errors, which must not be read.
            scale = self.variance + means**2
            error = _ROUNDING * np.sqrt(scale[:, rows] * scale[:, columns])
            covariances = np.where(np.abs(covariances) > error, covariances, 0.0)
            averages = (means + self.center) / self.unit
            orders = orders / self.unit[:, None]
            covariances = covariances / (self.unit[rows] * self.unit[columns])
            if self.kind == "paper":
                parts = [
                    orders[:, :, 0], orders[:, :, 1], averages, orders[:, :, 2], orders[:, :, 3], orders[:, :, 4],
                    covariances,
                ]  # fmt: skip
            else:
                variances = covariances[:, rows == columns]
                if self.kind in ("naive", "ensemble"):
                    parts += [averages, orders[:, :, 2], variances]
                if self.kind in ("correlation", "ensemble"):
                    below = rows != columns
                    deviations = np.sqrt(np.maximum(variances, 0.0))
                    scale = deviations[:, rows[below]] * deviations[:, columns[below]]
                    safe = np.where(scale > 0, scale, 1.0)
                    parts.append(np.where(scale > 0, covariances[:, below] / safe, 0.0))
        if histograms is not None:
            parts.append(histograms / n_rows)
        return np.hstack(parts)


def _rounded(numbers: Matrix) -> Matrix:
    """Return numbers without the digits that rounding errors change."""
    mantissas, exponents = np.frexp(numbers)
    return np.ldexp(np.round(np.ldexp(mantissas, _DIGITS)), exponents - _DIGITS)


def _units(reference: Matrix) -> Matrix:
    """Return a power of two for each column, 1 for all but very large and very small ones."""
    places = np.frexp(np.abs(reference).max(axis=0, initial=0.0))[1]
    # Not beyond what the product of two of them can be.
    return 2.0 ** np.where(np.abs(places) > _PLACES, places, 0).clip(-_LEAST_PLACES, _LEAST_PLACES)


class Surroundings:
    """The nearest row of a release to each target, and how many rows lie around it.

    Distances are in units of the columns' standard deviations among the real rows of the class. The circles
    around a target are shares of the distance to its k-th real neighbour.
    """

    def __init__(self, reference: Matrix, targets: Matrix, k_neighbors: int = 5) -> None:
        from sklearn.neighbors import NearestNeighbors

        deviation = reference.std(axis=0)
        # The deviation of equal numbers is 0 up to the rounding of their mean.
        dust = np.ldexp(np.abs(reference).max(axis=0), -_DIGITS)
        self.scale = np.where(deviation > dust, deviation, 1.0)
        self.targets = targets / self.scale
        k = min(k_neighbors, len(reference) - 1)
        scaled = reference / self.scale
        reach = NearestNeighbors(n_neighbors=k + 1).fit(scaled).kneighbors(self.targets)[0][:, -1]
        # Copies of a record are no measure of how dense its surroundings are.
        reach = np.where(reach > 0, reach, reach[reach > 0].min() if (reach > 0).any() else 1.0)
        self.radii = reach[:, None] * RADII

    def of(self, rows: Matrix, targets: slice | NDArray[np.int64] = slice(None)) -> Matrix:
        """Return the features of one release for some targets, of shape (n_targets, n_features)."""
        from scipy.spatial.distance import cdist

        radii = self.radii[targets]
        if len(rows) == 0:
            return np.zeros((len(radii), 1 + len(RADII)))
        distances = cdist(self.targets[targets], rows / self.scale)
        counts = [(distances <= radius[:, None]).sum(axis=1) for radius in radii.T]
        return np.column_stack([distances.min(axis=1), *counts])


def as_frame(X: Any) -> pd.DataFrame:
    """Return a table as a DataFrame whose columns are named by text."""
    check_pandas(X)
    if isinstance(X, pd.DataFrame):
        frame = X.copy(deep=False)
        frame.columns = [str(name) for name in X.columns]
        if frame.columns.has_duplicates:
            twice = frame.columns[frame.columns.duplicated()][0]
            raise InputError(f"the table has two columns named {twice!r}; rename one")
        return settle_table(frame.reset_index(drop=True))
    array = np.asarray(X)
    if array.ndim != 2:
        raise InputError(f"X has {array.ndim} dimension(s); a table with rows and columns is expected")
    frame = pd.DataFrame(array, columns=[f"x{i}" for i in range(array.shape[1])])
    return settle_table(frame.infer_objects()) if array.dtype == object else frame
