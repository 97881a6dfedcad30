"""imbalanced-learn's samplers, on tables of any kind, with the guarantee they have: none."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from imblearn import over_sampling, under_sampling
from numpy.typing import NDArray
from pandas.api import types
from sklearn.utils._indexing import _get_column_indices

from oversafe._core.errors import InputError
from oversafe.data.column import Column
from oversafe.data.encode import column_codes
from oversafe.data.infer import count_decimals, infer_column
from oversafe.data.schema import Schema
from oversafe.privacy.guarantee import Guarantee
from oversafe.protect.base import Sampler
from oversafe.protect.descriptions import SAMPLER, described
from oversafe.protect.explanations import Explanation

_COPIES = "the result holds real rows as they are"
_LINES = (
    "new rows lie on straight lines between real records of the same class, and an outsider who has the result "
    "can follow the lines back to the records",
    _COPIES,
)


# Single precision holds so many digits of any number.
_SINGLE = 6
# Squares of larger numbers are infinite, and those of smaller ones vanish.
_LARGEST, _SMALLEST = 2.0**500, 2.0**-500


def _unit(matrix: NDArray[Any]) -> float:
    """Return the power of two in which distances can be computed; dividing by it changes no digit."""
    largest = float(np.abs(matrix).max(initial=0.0))
    if largest > _LARGEST:
        return 2.0 ** (np.frexp(largest)[1] - 500)
    return 2.0 ** np.frexp(largest)[1] if 0 < largest < _SMALLEST else 1.0


class _Adapter(Sampler):
    """Runs one of imbalanced-learn's samplers on the table as a numeric matrix."""

    explanation = Explanation(
        "Keeps every real row and adds rows on straight lines between neighbours of the smaller classes.",
        "Nothing.",
        "It hides nobody: the real rows are in the release, and the added rows alone can be followed back to "
        "real records (oversafe audit shows it).",
    )

    _method: ClassVar[Any]
    _reasons: ClassVar[tuple[str, ...]] = _LINES
    schema: Schema | None

    def _resample(self, table: pd.DataFrame, labels: pd.Series) -> tuple[pd.DataFrame, pd.Series]:
        self.schema_ = self._check_schema(table, self.schema)
        self.guarantee_ = Guarantee.none(*self._reasons)
        table = self.schema_.conform(table)
        schema = self._interpolated(with_own_decimals(self.schema_, table))
        matrix, nominal = self._encode(schema, table)
        resampled, codes, classes = self._run(matrix, nominal, labels)
        added = self._decode(schema, resampled[len(table) :])
        added_labels = pd.Series(classes[codes[len(table) :]]).astype(labels.dtype)
        return pd.concat([table, added], ignore_index=True), pd.concat(
            [labels, added_labels], ignore_index=True
        )

    def _interpolated(self, schema: Schema) -> Schema:
        return as_interpolated(schema)

    def _encode(self, schema: Schema, table: pd.DataFrame) -> tuple[NDArray[Any], list[bool]]:
        """Return the table as a matrix, and which of its columns are nominal."""
        matrix = schema.encode(table, one_hot=True)
        # imbalanced-learn computes in the table's own precision.
        if all(column.dtype == "float32" for column in schema):
            return matrix.astype(np.float32), []
        return matrix, []

    def _decode(self, schema: Schema, matrix: NDArray[Any]) -> pd.DataFrame:
        return schema.decode(matrix, one_hot=True)

    def _make(self, nominal: list[bool], parameters: dict[str, Any]) -> Any:
        return self._method(**parameters)

    def _run(
        self, matrix: NDArray[Any], nominal: list[bool], labels: pd.Series
    ) -> tuple[NDArray[Any], NDArray[np.int64], Any]:
        """Return the resampled matrix, the codes of its labels, and the labels that they stand for."""
        # Classes are coded as 0, 1, ... so that any label works.
        codes, classes = pd.factorize(labels, sort=True)
        sampler = self._make(nominal, self._parameters(labels, classes))
        unit = _unit(matrix)
        try:
            # What scikit-learn divides by zero within, on clusters of equal rows for example, it refuses itself.
            with np.errstate(all="ignore"):
                resampled, new_codes = sampler.fit_resample(matrix / unit, codes)
        except (ValueError, RuntimeError) as error:
            raise InputError(self._explain(error, labels, classes)) from error
        self.sampling_strategy_ = {classes[code]: count for code, count in sampler.sampling_strategy_.items()}
        self._picked = getattr(sampler, "sample_indices_", None)
        return resampled * unit, new_codes, classes

    def _parameters(self, labels: pd.Series, classes: Any) -> dict[str, Any]:
        parameters = self.get_params(deep=False)
        del parameters["schema"]
        strategy = parameters["sampling_strategy"]
        if callable(strategy):
            strategy = strategy(labels.to_numpy())
        if isinstance(strategy, dict):
            position = {label: i for i, label in enumerate(classes)}
            for label in strategy:
                if label not in position:
                    raise InputError(
                        f"sampling_strategy names the class {label!r}; the classes are {list(position)}"
                    )
            parameters["sampling_strategy"] = {position[k]: v for k, v in strategy.items()}
        return parameters

    def _explain(self, error: Exception, labels: pd.Series, classes: Any) -> str:
        counts = labels.value_counts()
        smallest, rows = counts.index[-1], int(counts.iloc[-1])
        needed = getattr(self, "k_neighbors", getattr(self, "n_neighbors", None))
        if isinstance(needed, int) and rows <= needed and "n_neighbors" in str(error):
            return (
                f"class {str(smallest)!r} has {rows} row{'s' if rows != 1 else ''}, and {type(self).__name__} with "
                f"{needed} neighbours needs at least {needed + 1}; ask for fewer neighbours, or use RandomOverSampler"
            )
        if "NaN to integer" in str(error):
            return (
                f"{type(self).__name__} cannot resample this table: the rows of a cluster are all alike; use SMOTE or "
                "RandomOverSampler"
            )
        # Its classes are the codes that it was given.
        said = re.sub(r"\bclass (\d+)", lambda m: f"class {str(classes[int(m[1])])!r}", str(error))
        return f"{type(self).__name__} cannot resample this table: {said.partition(chr(10))[0]}"


class _Picker(_Adapter):
    """Runs a sampler that only picks rows, so that the columns need not be numbers."""

    _reasons = (_COPIES,)

    def _resample(self, table: pd.DataFrame, labels: pd.Series) -> tuple[pd.DataFrame, pd.Series]:
        self.schema_ = self._check_schema(table, self.schema)
        self.guarantee_ = Guarantee.none(*self._reasons)
        self._run(np.zeros((len(table), 1)), [], labels)
        picked = self.sample_indices_ = self._picked
        return table.iloc[picked].reset_index(drop=True), labels.iloc[picked].reset_index(drop=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.sampler_tags.sample_indices = True
        return tags


@described(SAMPLER)
@dataclass(eq=False, repr=False)
class RandomOverSampler(_Picker):
    """Repeat rows of the smaller classes.

    Parameters
    ----------
    {sampling_strategy, random_state, schema}

    Attributes
    ----------
    sample_indices_ : array of int
        Where in X each row of the result stands. The result does not have the index of X, which may name people.

    See Also
    --------
    imblearn.over_sampling.RandomOverSampler : What does the work.

    Examples
    --------
    >>> import pandas as pd
    >>> from oversafe.protect import RandomOverSampler
    >>> X = pd.DataFrame({"age": [30, 40, 50, 60], "ward": ["a", "b", "b", "a"]})
    >>> X_new, y_new = RandomOverSampler(random_state=0).fit_resample(X, ["well", "well", "well", "ill"])
    >>> y_new.count("ill")
    3
    """

    method_name = "random-over"
    explanation = Explanation(
        "Keeps every real row and repeats rows of the smaller classes.",
        "Nothing.",
        "It hides nobody: the release is the table, with some rows several times.",
    )

    _method = over_sampling.RandomOverSampler

    _: KW_ONLY
    sampling_strategy: Any = "auto"
    random_state: int | None = None
    schema: Schema | None = None


@described(SAMPLER)
@dataclass(eq=False, repr=False)
class RandomUnderSampler(_Picker):
    """Drop rows of the larger classes.

    Parameters
    ----------
    {sampling_strategy, random_state, schema}
    replacement : bool, default=False
        Whether a row may be picked twice.

    Attributes
    ----------
    sample_indices_ : array of int
        Where in X each row of the result stands. The result does not have the index of X, which may name people.

    See Also
    --------
    imblearn.under_sampling.RandomUnderSampler : What does the work.
    """

    method_name = "random-under"
    explanation = Explanation(
        "Keeps some of the real rows of the larger classes and all of the smallest.",
        "Nothing.",
        "It hides nobody: the release consists of real rows.",
    )

    _method = under_sampling.RandomUnderSampler

    _: KW_ONLY
    sampling_strategy: Any = "auto"
    random_state: int | None = None
    schema: Schema | None = None
    replacement: bool = False


@described(SAMPLER)
@dataclass(eq=False, repr=False)
class SMOTE(_Adapter):
    """Add rows on the lines between neighbours of the smaller classes (Chawla et al. 2002).

    Columns of floats are returned as imbalanced-learn computes them, rounded to the decimals that their real values
    have: with more, one added row can give both its parents away. Other columns are coded as numbers, with one column
    per category, and turned back into their own kind.

    Parameters
    ----------
    {sampling_strategy, random_state, schema, k_neighbors}

    See Also
    --------
    imblearn.over_sampling.SMOTE : What does the work.
    oversafe.attack.ReconSMOTE : Reads the real records back out of the result.

    Examples
    --------
    >>> from oversafe.data import load_dataset
    >>> from oversafe.protect import SMOTE
    >>> X, y = load_dataset("breast_cancer")
    >>> smote = SMOTE(random_state=0)
    >>> X_new, y_new = smote.fit_resample(X, y)
    >>> y_new.value_counts().sort_index().to_dict()
    {'benign': 300, 'malignant': 300}
    >>> smote.guarantee_.status
    'none'
    """

    method_name = "smote"

    _method = over_sampling.SMOTE

    _: KW_ONLY
    sampling_strategy: Any = "auto"
    random_state: int | None = None
    schema: Schema | None = None
    k_neighbors: int = 5


@described(SAMPLER)
@dataclass(eq=False, repr=False)
class SMOTENC(SMOTE):
    """SMOTE for mixed tables: numbers on a line, categories by majority among the neighbours.

    Which columns are categories is read from the table; without any it is SMOTE, and with nothing else it
    is SMOTEN.

    Parameters
    ----------
    {sampling_strategy, random_state, schema, k_neighbors}
    categorical_features : "auto", or sequence of int, str or bool, optional
        Columns that are categories whatever they look like, such as the codes of an ``OrdinalEncoder``: by position, by
        name, or a mask, as in imbalanced-learn. Columns of text, of the dtype "category" and of truth values are
        categories in any case, and what the schema says.

    See Also
    --------
    imblearn.over_sampling.SMOTENC : What does the work.
    """

    method_name = "smotenc"

    _: KW_ONLY
    categorical_features: Any = None

    def _parameters(self, labels: pd.Series, classes: Any) -> dict[str, Any]:
        parameters = super()._parameters(labels, classes)
        del parameters["categorical_features"]
        return parameters

    def _check_schema(self, table: pd.DataFrame, schema: Schema | None) -> Schema:
        given = self.categorical_features
        if given is None or (isinstance(given, str) and given == "auto"):
            return super()._check_schema(table, schema)
        try:
            named = [str(table.columns[i]) for i in _get_column_indices(table, given)]
        except (ValueError, TypeError, IndexError) as error:
            raise InputError(
                f"categorical_features = {given!r} was given; use 'auto', positions, names or a mask of the "
                f"{table.shape[1]} columns ({error})"
            ) from error
        declared = Schema.infer(table) if schema is None else schema
        for name in named:
            if name in declared and not declared[name].is_category:
                seen = infer_column(name, table[name], is_label=True)
                declared = declared.declare(
                    name,
                    kind="categorical",
                    categories=seen.categories,
                    bounds=None,
                    decimals=None,
                    resolution=None,
                )
        return super()._check_schema(table, declared)

    def _interpolated(self, schema: Schema) -> Schema:
        # Numbers that are declared to be categories are not between one another.
        named = {column.name for column in schema if column.kind in ("categorical", "ordinal")}
        return Schema(
            tuple(
                own if own.name in named else plain
                for own, plain in zip(schema, as_interpolated(schema), strict=True)
            )
        )

    def _encode(self, schema: Schema, table: pd.DataFrame) -> tuple[NDArray[Any], list[bool]]:
        blocks, nominal = [], []
        for column in schema:
            codes = column_codes(column, table[column.name])
            gaps = np.isnan(codes)
            if column.is_category:
                # A missing category is one more category.
                blocks.append(np.where(gaps, len(column.categories or ()), codes))
                nominal.append(True)
                continue
            blocks.append(np.where(gaps, 0.0 if gaps.all() else np.nanmedian(codes), codes))
            nominal.append(False)
            if column.missing:
                blocks.append(gaps.astype(float))
                nominal.append(True)
        return np.column_stack(blocks), nominal

    def _make(self, nominal: list[bool], parameters: dict[str, Any]) -> Any:
        if not any(nominal):
            return over_sampling.SMOTE(**parameters)
        if all(nominal):
            return over_sampling.SMOTEN(**parameters)
        return over_sampling.SMOTENC(categorical_features=np.flatnonzero(nominal).tolist(), **parameters)

    def _decode(self, schema: Schema, matrix: NDArray[Any]) -> pd.DataFrame:
        codes = np.empty((len(matrix), len(schema)))
        at = 0
        for i, column in enumerate(schema):
            codes[:, i] = matrix[:, at]
            at += 1
            if column.is_category:
                codes[codes[:, i] == len(column.categories or ()), i] = np.nan
            elif column.missing:
                codes[matrix[:, at] > 0.5, i] = np.nan
                at += 1
        return schema.decode(codes)


@described(SAMPLER)
@dataclass(eq=False, repr=False)
class BorderlineSMOTE(_Adapter):
    """SMOTE that starts only from rows near the other classes (Han et al. 2005).

    Parameters
    ----------
    {sampling_strategy, random_state, schema, k_neighbors}
    m_neighbors : int, default=10
        How many neighbours decide whether a row is near the other classes.
    kind : {"borderline-1", "borderline-2"}, default="borderline-1"
        Whether lines may also lead to other classes.

    See Also
    --------
    imblearn.over_sampling.BorderlineSMOTE : What does the work.
    """

    method_name = "borderline-smote"

    _method = over_sampling.BorderlineSMOTE

    _: KW_ONLY
    sampling_strategy: Any = "auto"
    random_state: int | None = None
    schema: Schema | None = None
    k_neighbors: int = 5
    m_neighbors: int = 10
    kind: str = "borderline-1"


@described(SAMPLER)
@dataclass(eq=False, repr=False)
class ADASYN(_Adapter):
    """SMOTE that adds more rows where a class is harder to learn (He et al. 2008).

    Parameters
    ----------
    {sampling_strategy, random_state, schema}
    n_neighbors : int, default=5
        How many neighbours a row has.

    See Also
    --------
    imblearn.over_sampling.ADASYN : What does the work.
    """

    method_name = "adasyn"

    _method = over_sampling.ADASYN

    _: KW_ONLY
    sampling_strategy: Any = "auto"
    random_state: int | None = None
    schema: Schema | None = None
    n_neighbors: int = 5


@described(SAMPLER)
@dataclass(eq=False, repr=False)
class SVMSMOTE(_Adapter):
    """SMOTE that starts from the support vectors of a classifier (Nguyen et al. 2009).

    Parameters
    ----------
    {sampling_strategy, random_state, schema, k_neighbors}
    m_neighbors : int, default=10
        How many neighbours decide whether a row is noise.
    out_step : float, default=0.5
        How far beyond a row a line may go.
    svm_estimator : estimator, optional
        The classifier; an SVC when not given.

    See Also
    --------
    imblearn.over_sampling.SVMSMOTE : What does the work.
    """

    method_name = "svm-smote"

    _method = over_sampling.SVMSMOTE

    _: KW_ONLY
    sampling_strategy: Any = "auto"
    random_state: int | None = None
    schema: Schema | None = None
    k_neighbors: int = 5
    m_neighbors: int = 10
    out_step: float = 0.5
    svm_estimator: Any = None


@described(SAMPLER)
@dataclass(eq=False, repr=False)
class KMeansSMOTE(_Adapter):
    """SMOTE inside clusters where a class is dense enough (Last et al. 2017).

    Parameters
    ----------
    {sampling_strategy, random_state, schema}
    k_neighbors : int, default=2
        How many neighbours a row has.
    kmeans_estimator : int or estimator, optional
        How many clusters, or what finds them.
    cluster_balance_threshold : float or "auto", default="auto"
        The share of a class that a cluster needs.
    density_exponent : float or "auto", default="auto"
        How much sparse clusters are preferred.
    n_jobs : int, optional
        As in joblib.

    See Also
    --------
    imblearn.over_sampling.KMeansSMOTE : What does the work.
    """

    method_name = "kmeans-smote"

    _method = over_sampling.KMeansSMOTE

    _: KW_ONLY
    sampling_strategy: Any = "auto"
    random_state: int | None = None
    schema: Schema | None = None
    k_neighbors: int = 2
    kmeans_estimator: Any = None
    cluster_balance_threshold: Any = "auto"
    density_exponent: Any = "auto"
    n_jobs: int | None = None


def as_interpolated(schema: Schema) -> Schema:
    """Return the schema with every float column as a plain number, as imbalanced-learn treats it, but for decimals."""

    def plain(column: Column) -> Column:
        if types.is_float_dtype(pd.api.types.pandas_dtype(column.dtype)):
            return Column(
                column.name, "continuous", column.dtype, missing=column.missing, decimals=_decimals(column)
            )
        return column

    return Schema(tuple(plain(column) for column in schema))


def _decimals(column: Column) -> int | None:
    """Return the decimals of a float column's values, or None for full precision."""
    if column.is_category:
        return count_decimals(np.array(column.categories or (), dtype=float))
    return 0 if column.kind == "integer" else column.decimals


def with_own_decimals(schema: Schema, table: pd.DataFrame) -> Schema:
    """Return the schema with the decimals of columns in single precision, as they are printed."""

    def told(column: Column) -> Column:
        if column.kind != "continuous" or column.decimals is not None or column.dtype.lower() != "float32":
            return column
        numbers = table[column.name].dropna().to_numpy(dtype=np.float32).astype(str).astype(float)
        decimals = count_decimals(numbers)
        before = int(np.ceil(np.log10(np.abs(numbers).max(initial=1.0))))
        # With more digits than single precision holds, they are no longer the data's own.
        return (
            column if decimals is None or decimals + before > _SINGLE else replace(column, decimals=decimals)
        )

    return Schema(tuple(told(column) for column in schema))
