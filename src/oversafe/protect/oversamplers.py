"""imbalanced-learn's samplers, on tables of any kind, with the guarantee they have: none."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
from imblearn import over_sampling, under_sampling
from numpy.typing import NDArray
from pandas.api import types

from oversafe.data.encode import column_codes
from oversafe.data.schema import Column, Schema
from oversafe.errors import InputError
from oversafe.privacy.guarantee import Guarantee
from oversafe.protect.base import Sampler

_COPIES = "the result holds real rows as they are"
_LINES = (
    "new rows lie on straight lines between real records of the same class, and an outsider who has the result "
    "can follow the lines back to the records",
    _COPIES,
)


class _Adapter(Sampler):
    """Runs one of imbalanced-learn's samplers on the table as a numeric matrix."""

    _method: ClassVar[Any]
    _reasons: ClassVar[tuple[str, ...]] = _LINES

    def _resample(self, table: pd.DataFrame, labels: pd.Series) -> tuple[pd.DataFrame, pd.Series]:
        self.schema_ = self._check_schema(table, as_interpolated(Schema.infer(table)))
        self.guarantee_ = Guarantee.none(*self._reasons)
        matrix = self.schema_.encode(table, one_hot=True)
        new, new_labels = self._new_rows(matrix, labels)
        added = self.schema_.decode(new, one_hot=True)
        return pd.concat([table, added], ignore_index=True), pd.concat(
            [labels, new_labels], ignore_index=True
        )

    def _new_rows(
        self, matrix: NDArray[np.float64], labels: pd.Series
    ) -> tuple[NDArray[np.float64], pd.Series]:
        """Return the rows that the method adds to the given ones."""
        codes, classes = pd.factorize(labels, sort=True)
        sampler = self._method(**self._parameters(labels, classes))
        try:
            resampled, resampled_codes = sampler.fit_resample(matrix, codes)
        except (ValueError, RuntimeError) as error:
            raise InputError(self._explain(error, labels)) from error
        self._note_strategy(sampler, classes)
        labels_of_new = pd.Series(classes[resampled_codes[len(matrix) :]]).astype(labels.dtype)
        return resampled[len(matrix) :], labels_of_new

    def _parameters(self, labels: pd.Series, classes: Any) -> dict[str, Any]:
        """Return the method's parameters; classes are coded as 0, 1, ... so that any label works."""
        parameters = self.get_params(deep=False)
        strategy = parameters["sampling_strategy"]
        position = {label: i for i, label in enumerate(classes)}
        if isinstance(strategy, dict):
            for label in strategy:
                if label not in position:
                    raise InputError(
                        f"sampling_strategy names the class {label!r}; the classes are {list(position)}"
                    )
            parameters["sampling_strategy"] = {position[k]: v for k, v in strategy.items()}
        elif callable(strategy):
            parameters["sampling_strategy"] = {position[k]: v for k, v in strategy(labels.to_numpy()).items()}
        return parameters

    def _note_strategy(self, sampler: Any, classes: Any) -> None:
        self.sampling_strategy_ = {classes[code]: count for code, count in sampler.sampling_strategy_.items()}

    def _explain(self, error: Exception, labels: pd.Series) -> str:
        counts = labels.value_counts()
        smallest, rows = counts.index[-1], int(counts.iloc[-1])
        needed = getattr(self, "k_neighbors", getattr(self, "n_neighbors", None))
        if isinstance(needed, int) and rows <= needed and "n_neighbors" in str(error):
            return (
                f"class {smallest!r} has {rows} row{'s' if rows != 1 else ''}, and {type(self).__name__} with "
                f"{needed} neighbours needs at least {needed + 1}; ask for fewer neighbours, or use RandomOverSampler"
            )
        return f"{type(self).__name__} cannot resample this table: {error}"


class _Picker(_Adapter):
    """Runs a sampler that only picks rows, so that the columns need not be numbers."""

    _reasons = (_COPIES,)

    def _resample(self, table: pd.DataFrame, labels: pd.Series) -> tuple[pd.DataFrame, pd.Series]:
        self.schema_ = self._check_schema(table, None)
        self.guarantee_ = Guarantee.none(*self._reasons)
        codes, classes = pd.factorize(labels, sort=True)
        sampler = self._method(**self._parameters(labels, classes))
        try:
            sampler.fit_resample(np.zeros((len(table), 1)), codes)
        except (ValueError, RuntimeError) as error:
            raise InputError(self._explain(error, labels)) from error
        self._note_strategy(sampler, classes)
        picked = sampler.sample_indices_
        return table.iloc[picked].reset_index(drop=True), labels.iloc[picked].reset_index(drop=True)


class RandomOverSampler(_Picker):
    """Repeat rows of the smaller classes.

    Parameters
    ----------
    sampling_strategy : str, dict or callable, default="auto"
        As in imbalanced-learn.
    random_state : int, optional
        Makes the result repeatable.

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

    _method = over_sampling.RandomOverSampler

    def __init__(self, *, sampling_strategy: Any = "auto", random_state: int | None = None):
        self.sampling_strategy = sampling_strategy
        self.random_state = random_state


class RandomUnderSampler(_Picker):
    """Drop rows of the larger classes.

    Parameters
    ----------
    sampling_strategy : str, dict or callable, default="auto"
        As in imbalanced-learn.
    random_state : int, optional
        Makes the result repeatable.
    replacement : bool, default=False
        Whether a row may be picked twice.

    See Also
    --------
    imblearn.under_sampling.RandomUnderSampler : What does the work.
    """

    _method = under_sampling.RandomUnderSampler

    def __init__(
        self, *, sampling_strategy: Any = "auto", random_state: int | None = None, replacement: bool = False
    ):
        self.sampling_strategy = sampling_strategy
        self.random_state = random_state
        self.replacement = replacement


class SMOTE(_Adapter):
    """Add rows on the lines between neighbours of the smaller classes (Chawla et al. 2002).

    Columns of floats are returned exactly as imbalanced-learn computes them, so that what is audited is what
    is released in practice. Other columns are coded as numbers, with one column per category, and turned
    back into their own kind.

    Parameters
    ----------
    sampling_strategy : str, dict or callable, default="auto"
        As in imbalanced-learn.
    random_state : int, optional
        Makes the result repeatable.
    k_neighbors : int, default=5
        How many neighbours a row has.

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

    _method = over_sampling.SMOTE

    def __init__(
        self, *, sampling_strategy: Any = "auto", random_state: int | None = None, k_neighbors: int = 5
    ):
        self.sampling_strategy = sampling_strategy
        self.random_state = random_state
        self.k_neighbors = k_neighbors


class SMOTENC(_Adapter):
    """SMOTE for mixed tables: numbers on a line, categories by majority among the neighbours.

    Which columns are categories is read from the table; without any it is SMOTE, and with nothing else it
    is SMOTEN.

    Parameters
    ----------
    sampling_strategy : str, dict or callable, default="auto"
        As in imbalanced-learn.
    random_state : int, optional
        Makes the result repeatable.
    k_neighbors : int, default=5
        How many neighbours a row has.

    See Also
    --------
    imblearn.over_sampling.SMOTENC : What does the work.
    """

    def __init__(
        self, *, sampling_strategy: Any = "auto", random_state: int | None = None, k_neighbors: int = 5
    ):
        self.sampling_strategy = sampling_strategy
        self.random_state = random_state
        self.k_neighbors = k_neighbors

    def _resample(self, table: pd.DataFrame, labels: pd.Series) -> tuple[pd.DataFrame, pd.Series]:
        self.schema_ = self._check_schema(table, as_interpolated(Schema.infer(table)))
        self.guarantee_ = Guarantee.none(*self._reasons)
        blocks, nominal = [], []
        for column in self.schema_:
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
        matrix = np.column_stack(blocks)
        self._nominal = nominal
        new, new_labels = self._new_rows(matrix, labels)
        del self._nominal
        added = self.schema_.decode(self._as_codes(new))
        return pd.concat([table, added], ignore_index=True), pd.concat(
            [labels, new_labels], ignore_index=True
        )

    def _method(self, **parameters: Any) -> Any:
        if not any(self._nominal):
            return over_sampling.SMOTE(**parameters)
        if all(self._nominal):
            return over_sampling.SMOTEN(**parameters)
        return over_sampling.SMOTENC(
            categorical_features=np.flatnonzero(self._nominal).tolist(), **parameters
        )

    def _as_codes(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        codes = np.empty((len(matrix), len(self.schema_)))
        at = 0
        for i, column in enumerate(self.schema_):
            codes[:, i] = matrix[:, at]
            at += 1
            if column.is_category:
                codes[codes[:, i] == len(column.categories or ()), i] = np.nan
            elif column.missing:
                codes[matrix[:, at] > 0.5, i] = np.nan
                at += 1
        return codes


class BorderlineSMOTE(_Adapter):
    """SMOTE that starts only from rows near the other classes (Han et al. 2005).

    Parameters
    ----------
    sampling_strategy : str, dict or callable, default="auto"
        As in imbalanced-learn.
    random_state : int, optional
        Makes the result repeatable.
    k_neighbors : int, default=5
        How many neighbours a row has.
    m_neighbors : int, default=10
        How many neighbours decide whether a row is near the other classes.
    kind : {"borderline-1", "borderline-2"}, default="borderline-1"
        Whether lines may also lead to other classes.

    See Also
    --------
    imblearn.over_sampling.BorderlineSMOTE : What does the work.
    """

    _method = over_sampling.BorderlineSMOTE

    def __init__(
        self,
        *,
        sampling_strategy: Any = "auto",
        random_state: int | None = None,
        k_neighbors: int = 5,
        m_neighbors: int = 10,
        kind: str = "borderline-1",
    ):
        self.sampling_strategy = sampling_strategy
        self.random_state = random_state
        self.k_neighbors = k_neighbors
        self.m_neighbors = m_neighbors
        self.kind = kind


class ADASYN(_Adapter):
    """SMOTE that adds more rows where a class is harder to learn (He et al. 2008).

    Parameters
    ----------
    sampling_strategy : str, dict or callable, default="auto"
        As in imbalanced-learn.
    random_state : int, optional
        Makes the result repeatable.
    n_neighbors : int, default=5
        How many neighbours a row has.

    See Also
    --------
    imblearn.over_sampling.ADASYN : What does the work.
    """

    _method = over_sampling.ADASYN

    def __init__(
        self, *, sampling_strategy: Any = "auto", random_state: int | None = None, n_neighbors: int = 5
    ):
        self.sampling_strategy = sampling_strategy
        self.random_state = random_state
        self.n_neighbors = n_neighbors


class SVMSMOTE(_Adapter):
    """SMOTE that starts from the support vectors of a classifier (Nguyen et al. 2009).

    Parameters
    ----------
    sampling_strategy : str, dict or callable, default="auto"
        As in imbalanced-learn.
    random_state : int, optional
        Makes the result repeatable.
    k_neighbors : int, default=5
        How many neighbours a row has.
    m_neighbors : int, default=10
        How many neighbours decide whether a row is noise.
    out_step : float, default=0.5
        How far beyond a row a line may go.

    See Also
    --------
    imblearn.over_sampling.SVMSMOTE : What does the work.
    """

    _method = over_sampling.SVMSMOTE

    def __init__(
        self,
        *,
        sampling_strategy: Any = "auto",
        random_state: int | None = None,
        k_neighbors: int = 5,
        m_neighbors: int = 10,
        out_step: float = 0.5,
    ):
        self.sampling_strategy = sampling_strategy
        self.random_state = random_state
        self.k_neighbors = k_neighbors
        self.m_neighbors = m_neighbors
        self.out_step = out_step


class KMeansSMOTE(_Adapter):
    """SMOTE inside clusters where a class is dense enough (Last et al. 2017).

    Parameters
    ----------
    sampling_strategy : str, dict or callable, default="auto"
        As in imbalanced-learn.
    random_state : int, optional
        Makes the result repeatable.
    k_neighbors : int, default=2
        How many neighbours a row has.
    kmeans_estimator : int or estimator, optional
        How many clusters, or what finds them.
    cluster_balance_threshold : float or "auto", default="auto"
        The share of a class that a cluster needs.

    See Also
    --------
    imblearn.over_sampling.KMeansSMOTE : What does the work.
    """

    _method = over_sampling.KMeansSMOTE

    def __init__(
        self,
        *,
        sampling_strategy: Any = "auto",
        random_state: int | None = None,
        k_neighbors: int = 2,
        kmeans_estimator: Any = None,
        cluster_balance_threshold: Any = "auto",
    ):
        self.sampling_strategy = sampling_strategy
        self.random_state = random_state
        self.k_neighbors = k_neighbors
        self.kmeans_estimator = kmeans_estimator
        self.cluster_balance_threshold = cluster_balance_threshold


def as_interpolated(schema: Schema) -> Schema:
    """Return the schema with every float column as a plain number, as imbalanced-learn treats it."""

    def plain(column: Column) -> Column:
        if types.is_float_dtype(pd.api.types.pandas_dtype(column.dtype)):
            return Column(column.name, "continuous", column.dtype, missing=column.missing)
        return column

    return Schema(tuple(plain(column) for column in schema))
