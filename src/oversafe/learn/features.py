"""From a table to records of bounded norm, by a map that is public or paid for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.checks import check_choice, check_share
from oversafe._core.errors import InputError
from oversafe._core.text import listed
from oversafe.data.cells import check_spellings
from oversafe.data.column import Column
from oversafe.data.encode import column_codes, domain_codes
from oversafe.data.schema import Schema, check_columns
from oversafe.privacy.accountant import Accountant
from oversafe.privacy.domains import UNPAID
from oversafe.privacy.estimates import private_bounds

FloatArray = NDArray[np.float64]
Scaling = Literal["auto", "private", "none", "standard"]

_STANDARD = "the columns were standardised by their mean and deviation in the data, without noise"
# The mean square of a number that is scaled to [-1, 1], for the norm at which records are cut off by default.
_MEAN_SQUARE = 0.25


@dataclass(frozen=True)
class FeatureMap:
    """How a record becomes a vector; a function of one record, fixed before the fit.

    Parameters
    ----------
    norm : float
        No vector is longer; longer ones are shortened.
    schema : Schema, optional
        Columns to encode: numbers are scaled from their bounds to [-1, 1], categories become one column each.
    centre, spread : array of shape (n_features,), optional
        Without a schema: taken off the columns, and divided by.
    limit : float
        Scaled values beyond it are moved to it.
    """

    norm: float
    schema: Schema | None = None
    centre: FloatArray | None = None
    spread: FloatArray | None = None
    limit: float = math.inf

    def apply(self, X: Any) -> FloatArray:
        """Return the vectors of some records."""
        if self.schema is not None:
            matrix = np.hstack([_block(column, X[column.name]) for column in self.schema])
            return shorten(matrix, self.norm, own=True)
        if self.centre is None or self.spread is None:
            return shorten(X, self.norm)
        # What leaves the range of floats is cut off below, and a warning would tell of it.
        with np.errstate(over="ignore"):
            matrix = X - self.centre
            matrix /= self.spread
        np.clip(matrix, -self.limit, self.limit, out=matrix)
        return shorten(matrix, self.norm, own=True)


def learn_features(
    X: Any,
    *,
    schema: Schema | None,
    scaling: Scaling,
    data_norm: float | None,
    epsilon: float,
    rng: np.random.Generator | None,
) -> FeatureMap:
    """Return the map of a table's records to vectors.

    Parameters
    ----------
    X : array of shape (n_rows, n_features), or DataFrame
        A DataFrame needs a schema.
    schema, scaling, data_norm
        As the classifiers have them.
    epsilon : float
        What may be spent, if :func:`costs_epsilon` says that something must be.
    rng : Generator, optional
        For repeatable noise.
    """
    if schema is not None:
        norm = data_norm
        if norm is None:
            norm = math.sqrt(sum(1.0 if column.is_category else _MEAN_SQUARE for column in schema))
        return FeatureMap(float(norm), schema)
    d = X.shape[1]
    if scaling == "standard":
        centre, spread = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        norm = math.sqrt(d) if data_norm is None else data_norm
        return FeatureMap(float(norm), None, centre, spread, 1e6)
    if scaling == "none":
        if data_norm is not None:
            return FeatureMap(float(data_norm))
        # One record has one norm, so all but a few fit below a bound that one histogram finds.
        accountant = Accountant(epsilon, random_state=rng)
        lengths = np.sqrt(np.einsum("ij,ij->i", X, X))
        _, high = private_bounds(np.nan_to_num(lengths, nan=0.0, posinf=1e18), accountant=accountant)
        return FeatureMap(max(float(high), 1e-12))
    accountant = Accountant(epsilon, random_state=rng)
    ends = np.array([private_bounds(X[:, i], accountant=accountant, share=1 / d) for i in range(d)])
    spread = (ends[:, 1] - ends[:, 0]) / 2
    norm = math.sqrt(_MEAN_SQUARE * d) if data_norm is None else data_norm
    return FeatureMap(float(norm), None, ends.mean(axis=1), np.where(spread > 0, spread, 1.0), 1.0)


def resolve_scaling(scaling: str, schema: Schema | None, data_norm: float | None) -> Scaling:
    """Return what "auto" means: as given where a public norm is stated, else paid for."""
    check_choice("scaling", scaling, get_args(Scaling))
    if data_norm is not None:
        check_share("data_norm", data_norm, 1e-20, 1e20)
    if schema is not None:
        return "none"
    if scaling == "auto":
        return "private" if data_norm is None else "none"
    return scaling  # type: ignore[return-value]


def costs_epsilon(scaling: Scaling, schema: Schema | None, data_norm: float | None) -> bool:
    """Whether the map has to be paid for."""
    if schema is not None or scaling == "standard":
        return False
    return scaling == "private" or data_norm is None


def unpaid(scaling: Scaling, schema: Schema | None) -> list[str]:
    """Return what the map reads from the data without paying, in sentences."""
    if schema is None:
        return [_STANDARD] if scaling == "standard" else []
    named = {domain: [column.name for column in schema if column.domain == domain] for domain in UNPAID}
    return [f"{caveat}: {listed(named[domain])}" for domain, caveat in UNPAID.items() if named[domain]]


def shorten(matrix: FloatArray, norm: float, own: bool = False) -> FloatArray:
    """Return vectors of at most a norm; what is missing counts as 0. Every row is treated by itself."""
    squares = np.einsum("ij,ij->i", matrix, matrix)
    odd = ~np.isfinite(squares)
    if odd.any():
        if not own:
            matrix, own = matrix.copy(), True
        # First each value by itself, so that no square overflows; and only here, or one record would change the others.
        matrix[odd] = np.clip(np.nan_to_num(matrix[odd], nan=0.0, posinf=norm, neginf=-norm), -norm, norm)
        squares[odd] = np.einsum("ij,ij->i", matrix[odd], matrix[odd])
    too_long = squares > norm**2
    if not too_long.any():
        return matrix
    if not own:
        matrix = matrix.copy()
    # A little less, so that rounding does not make it longer.
    matrix[too_long] *= (norm * (1 - 1e-12) / np.sqrt(squares[too_long]))[:, None]
    return matrix


def check_schema(schema: Schema, table: pd.DataFrame) -> Schema:
    """Return the feature columns of a schema, or say which of them cannot be used."""
    features = schema.features
    check_columns(features, [str(name) for name in table.columns])
    for column in features:
        if column.names_people:
            raise InputError(
                f"column {column.name!r} holds {column.naming}, which nothing is learned from; "
                "drop it, or declare another kind for it in the schema"
            )
        if column.is_number and column.bounds is None:
            raise InputError(f"column {column.name!r} has no minimum and maximum; declare them in the schema")
        if column.is_category and not column.categories:
            raise InputError(f"column {column.name!r} has no categories; declare them in the schema")
        check_spellings(column, table[column.name])
    return features


def encoded_width(column: Column) -> int:
    """Return how many numbers a column becomes."""
    return (len(column.categories or ()) if column.is_category else 1) + column.missing


def _block(column: Column, values: pd.Series) -> FloatArray:
    """Return a column's numbers; what does not fit the schema counts as missing, so that no error tells of it."""
    codes = column_codes(column, values, strict=False)
    gaps = np.isnan(codes)
    block = np.zeros((len(codes), encoded_width(column)))
    if column.is_category:
        rows = np.flatnonzero(~gaps)
        block[rows, codes[rows].astype(np.int64)] = 1.0
    else:
        low, high = domain_codes(column)
        half = (high - low) / 2 or 1.0
        block[:, 0] = np.where(gaps, 0.0, np.clip((codes - (low + high) / 2) / half, -1.0, 1.0))
    if column.missing:
        block[gaps, -1] = 1.0
    return block
