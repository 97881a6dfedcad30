"""The two contracts of a protector: a sampler keeps real rows, a synthesizer never does."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd
from imblearn.utils import check_target_type
from numpy.typing import NDArray
from pandas.api.types import is_datetime64_any_dtype, is_object_dtype, is_string_dtype
from sklearn.base import BaseEstimator, OneToOneFeatureMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from oversafe._core.checks import check_choice, check_count, check_pandas, check_random_state
from oversafe._core.errors import InputError
from oversafe.data.cells import places_of, was_read_by
from oversafe.data.column import as_cells, as_frame, as_series
from oversafe.data.infer_objects import are_dates, as_objects
from oversafe.data.labels import as_labels, check_labels, in_order
from oversafe.data.rows.values import value_keys
from oversafe.data.schema import Schema, check_given_schema, check_table, features_of, texts_read
from oversafe.privacy.call_context import context_of, warn_if_tuned
from oversafe.privacy.domains import frame_caveats
from oversafe.privacy.guarantee import STRICT, UNLABELLED, Guarantee
from oversafe.privacy.ledger.ledger import pay
from oversafe.privacy.persons import check_persons, limit_rows
from oversafe.protect.explanations import Explanation

Material = tuple[pd.DataFrame, pd.Series]
# imbalanced-learn's words for balance, of those that make sense where all rows are new.
_STRATEGIES = ("auto", "not majority", "minority", "all")
_RATIO = "a ratio is for two classes, so use 'minority' or a dict of label to count"
_SEVERAL = "labels in one column per class are checked all together; give them in one column"
# About four gigabytes of numbers.
_MOST_SPARSE_CELLS = 500_000_000


class Protector(OneToOneFeatureMixin, BaseEstimator, ABC):
    """What samplers and synthesizers share: tables in and out, a schema and a guarantee.

    Attributes
    ----------
    guarantee_ : Guarantee
        What the result promises.
    schema_ : Schema
        What the feature columns are.
    ledger_entry_ : str or None
        The budget entry that paid for it, of methods that take a ``ledger``.
    """

    guarantee_: Guarantee
    schema_: Schema
    # What it says of itself: its name on the command line, in comparisons and on the page; what it does and promises;
    # and the extra of oversafe that it needs.
    method_name: ClassVar[str] = ""
    explanation: ClassVar[Explanation | None] = None
    extra: ClassVar[str] = ""
    # Whether it has a promise, and for records alone; one for persons shows in its parameter rows_per_person.
    _promises_records: ClassVar[bool] = False
    # Told what is being done and the share that is done; set by whoever wants to show it.
    on_progress: Callable[[str, float], None] | None = None
    # Whether the table had rows without a label that were left out, and whether odd cells were refused; set by whoever
    # did so.
    unlabelled_left_out: bool = False
    odd_cells_refused: bool = False

    def _report(self, step: str, share: float) -> None:
        if self.on_progress is not None:
            self.on_progress(step, share)

    ledger_entry_: str | None

    def _read(self, X: Any, y: Any) -> tuple[pd.DataFrame, pd.Series, Shape]:
        """Return the table, the labels, and how the result is to be shaped; the input is never modified."""
        self._check_given()
        shape = Shape.of(X, y)
        table, labels = shape.table(X, self._least_rows()), shape.labels(y)
        if len(table) != len(labels):
            raise InputError(f"X has {len(table)} rows and y has {len(labels)}; give as many labels as rows")
        self.n_features_in_ = table.shape[1]
        if isinstance(X, pd.DataFrame) and all(isinstance(name, str) for name in X.columns):
            self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return table, labels, shape

    def _least_rows(self) -> int:
        """Return how many rows there must be: none where their number is private and all is declared."""
        declared = getattr(self, "schema", None) is not None and self._n_declared() is not None
        persons = getattr(self, "rows_per_person", None) is not None
        return 0 if declared and (persons or getattr(self, "relation", None) == "add-remove") else 1

    def _declared_classes(self) -> list[Any] | None:
        """Return the classes that are declared, or None where none are."""
        classes, schema = getattr(self, "classes", None), getattr(self, "schema", None)
        if classes is None and schema is not None and schema.label is not None:
            classes = schema[schema.label].categories
        return None if classes is None else in_order(classes)

    def _n_declared(self) -> int | None:
        """Return how many classes are declared, or None where none are."""
        classes = self._declared_classes()
        return None if classes is None else len(classes)

    def _check_given(self) -> None:
        """Refuse settings that many protectors have and that none can use."""
        check_random_state(getattr(self, "random_state", None))
        check_given_schema(getattr(self, "schema", None))
        self._check_persons()
        if hasattr(self, "domains"):
            check_choice("domains", self.domains, ("data", "private"))
        if hasattr(self, "binning"):
            check_choice("binning", self.binning, ("uniform", "quantile"))
        jobs = getattr(self, "n_jobs", None)
        if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, Integral) or jobs == 0):
            raise InputError(f"n_jobs = {jobs!r} was given; use a whole number, or -1 for all cores")

    def _check_persons(self) -> None:
        takes = hasattr(self, "rows_per_person")
        if takes or self._promises_records:
            rows, schema = getattr(self, "rows_per_person", None), getattr(self, "schema", None)
            check_persons(type(self).__name__, schema, rows, takes_persons=takes)

    def _pay(self, guarantee: Guarantee, data: Any = None) -> None:
        """Set ``guarantee_`` and charge it to the ledger, if there is one; call it before any noise is drawn.

        A method that calls it has ``ledger`` among its parameters.

        Parameters
        ----------
        guarantee : Guarantee
            What the whole fit will promise.
        data : tuple of (X, y), optional
            The table, which the ledger only compares with earlier ones.
        """
        if hasattr(self, "guarantee_"):
            # What was fitted before is partly overwritten by now, and must not be used if the charge is refused.
            del self.guarantee_
        self.ledger_entry_ = pay(
            getattr(self, "ledger", None), guarantee, what=type(self).__name__, data=data
        )
        self.guarantee_ = guarantee

    def _check_schema(self, table: pd.DataFrame, schema: Schema | None) -> Schema:
        """Return the feature columns' schema, inferred unless it is given; naming columns are refused."""
        return features_of(table, schema)

    def __sklearn_tags__(self) -> Any:
        from imblearn.utils._tags import InputTags, SamplerTags, Tags
        from sklearn.utils import TargetTags

        return Tags(
            estimator_type="sampler",
            target_tags=TargetTags(required=True),
            transformer_tags=None,
            regressor_tags=None,
            classifier_tags=None,
            sampler_tags=SamplerTags(),
            input_tags=InputTags(
                two_d_array=True, dataframe=True, categorical=True, string=True, allow_nan=True
            ),
        )


class Sampler(Protector):
    """imbalanced-learn's contract: ``fit_resample`` returns a table that keeps real rows.

    A subclass writes ``_resample``.
    """

    def fit(self, X: Any, y: Any) -> Sampler:
        """Check the table and the parameters; use ``fit_resample`` to resample."""
        self.fit_resample(X, y)
        return self

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return the resampled table and its labels.

        Parameters
        ----------
        X : DataFrame or array of shape (n_rows, n_features)
            Columns of any kind, with missing values or not.
        y : Series or array of shape (n_rows,)
            The class of each row; numbers or text.

        Returns
        -------
        X_resampled, y_resampled
            In the form they were given.
        """
        table, labels, shape = self._read(X, y)
        check_labels(labels)
        table, labels = self._resample(table, labels)
        return shape.restore(table, labels)

    @abstractmethod
    def _resample(self, table: pd.DataFrame, labels: pd.Series) -> tuple[pd.DataFrame, pd.Series]:
        """Return the resampled table; sets ``guarantee_`` and ``schema_``."""


class Synthesizer(Protector):
    """A model of the table from which fully synthetic rows are drawn, class by class.

    No original row is passed through; an equal row may arise by chance, and stays: to avoid it would tell who is in the
    table.

    A subclass writes ``_fit``, which sets ``schema_``, ``classes_`` and ``class_counts_`` (paid for, if the method
    is private) and calls ``_pay`` with its guarantee before it draws any noise, and ``_draw``. Its constructor has
    ``sampling_strategy`` and ``random_state``.
    """

    classes_: NDArray[Any]
    class_counts_: NDArray[np.int64]
    # What limits the guarantee because of where the fit was called from.
    _caveats: Sequence[str] = ()
    _word: tuple[str, ...] = ()
    sampling_strategy: str | float | Mapping[Any, int] | None
    random_state: int | None

    def fit(self, X: Any, y: Any) -> Synthesizer:
        """Learn the table.

        Parameters
        ----------
        X : DataFrame or array of shape (n_rows, n_features)
            Columns of any kind, with missing values or not.
        y : Series or array of shape (n_rows,)
            The class of each row; numbers or text.
        """
        caveats, self._word = context_of(getattr(self, "call_context", "checked"))
        self._caveats = caveats + frame_caveats(X, y)
        table, labels, self._shape = self._read(X, y)
        table, labels = texts_read(table, labels, getattr(self, "schema", None))
        self._check_strategy()
        table, labels = self._limit_persons(table, labels)
        self._fit(table, labels)
        self._finish_fit()
        return self

    def _finish_fit(self) -> None:
        if self.guarantee_.status == "proven":
            # One odd value changes the dtype that X or y came in, so the result's comes from the schema.
            self._shape.forget_dtypes()
        self._shape.check_label_dtype(self.classes_)
        self.guarantee_ = self._weakened(self.guarantee_)
        warn_if_tuned(self.guarantee_.caveats if self.guarantee_.status != "none" else ())
        counts = self._counts(None, None, np.random.default_rng(self.random_state))
        self.sampling_strategy_ = dict(zip(self.classes_.tolist(), counts.tolist(), strict=True))

    def _pay(self, guarantee: Guarantee, data: Any = None) -> None:
        """Set ``guarantee_`` and charge it to the ledger, if there is one; call it before any noise is drawn."""
        super()._pay(self._weakened(guarantee), data)

    def _weakened(self, guarantee: Guarantee) -> Guarantee:
        several = self._shape.label_kind == "indicator" or (
            self._shape.label_kind == "frame" and len(self._shape.label_name) > 1
        )
        if guarantee.status == "none":
            return guarantee
        known = {
            _SEVERAL: several,
            UNLABELLED: self.unlabelled_left_out and guarantee.n_rows_public,
            STRICT: self.odd_cells_refused,
        }
        caveats = [*(caveat for caveat, holds in known.items() if holds), *self._caveats]
        weakened = guarantee.weaken(*(caveat for caveat in caveats if caveat not in guarantee.caveats))
        return weakened.assuming(*self._word)

    def sample(
        self, n: int | None = None, *, class_counts: Mapping[Any, int] | None = None
    ) -> tuple[Any, Any]:
        """Return a synthetic table and its labels.

        Parameters
        ----------
        n : int, optional
            How many rows; as many as the fitted table has when not given.
        class_counts : mapping of label to int, optional
            How many rows of each class instead; classes left out are not drawn.
        """
        check_is_fitted(self, "guarantee_")
        if n is not None and class_counts is not None:
            raise InputError("both n and class_counts were given; give one of them")
        rng = np.random.default_rng(self.random_state)
        counts = self._counts(n, class_counts, rng)
        order = rng.permutation(np.repeat(np.arange(len(self.classes_)), counts))
        table = self._draw(order, rng)
        labels = pd.Series(self.classes_[order])
        return self._shape.restore(table, labels)

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Learn the table and return a synthetic one in its place, for use in a pipeline."""
        return self.fit(X, y).sample()

    def _counts(
        self, n: int | None, class_counts: Mapping[Any, int] | None, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        if class_counts is None and isinstance(self.sampling_strategy, Mapping) and n is None:
            # As in imbalanced-learn: what is not named stays as it is.
            counts = self.class_counts_.copy()
            class_counts = self.sampling_strategy
        else:
            counts = np.zeros(len(self.classes_), dtype=np.int64)
        if class_counts is not None:
            for label, count in class_counts.items():
                place = _class_place(self.classes_.tolist(), label)
                counts[place] = check_count(f"the number of rows of class {label!r}", count, 0)
            return counts
        if n is not None:
            check_count("n", n, 0)
        if self.sampling_strategy is None or isinstance(self.sampling_strategy, Mapping):
            shares = self.class_counts_ / max(self.class_counts_.sum(), 1)
            return self.class_counts_ if n is None else rng.multinomial(n, shares)
        wanted = self._wanted()
        if n is None:
            return wanted
        # Of each class its share, and of all together just as many as were asked for.
        weights = wanted if wanted.any() else np.ones_like(wanted)
        ends = np.cumsum([0, *weights]) / weights.sum()
        return np.asarray(np.diff((n * ends).round()), dtype=np.int64)

    def _wanted(self) -> NDArray[np.int64]:
        """Return the counts that a strategy asks for; it sees the classes' counts as they were paid for."""
        counts, strategy = self.class_counts_, self.sampling_strategy
        if isinstance(strategy, str) and strategy != "minority":
            # All but the largest have its count then, so that nothing is left to do for it.
            return np.full_like(counts, counts.max())
        wanted, rarest = counts.copy(), int(np.argmin(counts))
        if strategy == "minority":
            wanted[rarest] = counts.max()
            return wanted
        if len(counts) != 2:
            raise InputError(
                f"sampling_strategy = {strategy!r} was given with {len(counts)} classes; {_RATIO}"
            )
        wanted[rarest] = round(float(cast(float, strategy)) * counts.max())
        return wanted

    def _read_classes(self, labels: pd.Series) -> NDArray[np.int64]:
        """Set ``classes_`` and ``class_counts_`` as they are in the data, and return each row's place in them."""
        check_labels(labels)
        codes, classes = pd.factorize(labels, sort=True)
        self.classes_ = np.asarray(classes)
        self.class_counts_ = np.bincount(codes, minlength=len(classes)).astype(np.int64)
        return codes.astype(np.int64)

    def _check_strategy(self) -> None:
        strategy = self.sampling_strategy
        if isinstance(strategy, Mapping) and (declared_ones := self._declared_classes()) is not None:
            for label, count in strategy.items():
                _class_place(declared_ones, label)
                check_count(f"the number of rows of class {label!r}", count, 0)
        if strategy is None or isinstance(strategy, Mapping):
            return
        if isinstance(strategy, str) and strategy in _STRATEGIES:
            return
        if callable(strategy):
            raise InputError(
                "sampling_strategy = a function was given, which would see the classes without paying; use a word, a "
                "number or a dict of label to count"
            )
        if isinstance(strategy, Real) and not isinstance(strategy, bool):
            if not 0 < strategy <= 1:
                raise InputError(
                    f"sampling_strategy = {strategy!r} was given; a ratio is above 0 and at most 1"
                )
            declared = self._n_declared()
            if declared not in (None, 2):
                raise InputError(
                    f"sampling_strategy = {strategy!r} was given with {declared} classes; {_RATIO}"
                )
            return
        raise InputError(
            f"sampling_strategy = {strategy!r} was given; use None (keep the class shares), 'auto', 'not majority' or "
            "'all' (balance them), 'minority' (the rarest alone), for two classes the ratio of the rarer to the other, "
            "or a dict of label to count"
        )

    def _limit_persons(self, table: pd.DataFrame, labels: pd.Series) -> tuple[pd.DataFrame, pd.Series]:
        """Return the table without the person column, with as many rows of each person as may be used."""
        rows, schema = getattr(self, "rows_per_person", None), getattr(self, "schema", None)
        if rows is None or schema is None:
            return table, labels
        if schema.person not in table.columns:
            raise InputError(
                f"the table has no column {schema.person!r}, which says in the schema whose row each is; leave it in "
                "the table"
            )
        # Another stream than the noise's.
        rng = None if self.random_state is None else np.random.default_rng([self.random_state, 1])
        kept = limit_rows(
            table[schema.person],
            rows,
            dtype=schema[schema.person].dtype,
            exact=was_read_by(table[schema.person], schema[schema.person]),
            random_state=rng,
        )
        self._shape.leave_out(schema.person)
        table = table.drop(columns=schema.person).iloc[kept].reset_index(drop=True)
        return table, labels.iloc[kept].reset_index(drop=True)

    @abstractmethod
    def _fit(self, table: pd.DataFrame, labels: pd.Series) -> None:
        """Learn the table."""

    @abstractmethod
    def _draw(self, classes: NDArray[np.int64], rng: np.random.Generator) -> pd.DataFrame:
        """Return one synthetic row for each given class (a position in ``classes_``)."""


def _class_place(classes: list[Any], label: Any) -> int:
    """Return the place of a class that is asked for, by what it is: on the command line all are texts."""
    if (place := places_of(tuple(classes)).place(label)) < 0:
        raise InputError(f"class {label!r} was asked for; the classes are {classes}")
    return place


@dataclass(eq=False, repr=False)
class Shape:
    """How X and y were given: their types, names and dtypes."""

    kind: str
    columns: Any
    # Of arrays and sparse matrices; by name for the columns of a frame that have one to come back to.
    dtype: Any
    label_kind: str
    label_name: Any
    label_dtype: Any
    # Arrow's texts and times have names that pandas reads as those of its own.
    arrow: dict[str, Any] = field(default_factory=dict, init=False)
    # The columns of objects, and those among them that hold days.
    objects: list[str] = field(default_factory=list, init=False)
    dates: list[str] = field(default_factory=list, init=False)

    @classmethod
    def of(cls, X: Any, y: Any) -> Shape:
        """Return the shape of what was given."""
        check_pandas(X)
        if y is None:
            raise InputError("y = None was given; give the class of each row")
        if isinstance(X, pd.DataFrame):
            kind, columns = "frame", X.columns
            dtype: Any = {str(k): v for k, v in X.dtypes.items() if isinstance(v, pd.SparseDtype)}
        elif hasattr(X, "tocsr"):
            if X.shape[0] * X.shape[1] > _MOST_SPARSE_CELLS:
                raise InputError(
                    f"a sparse matrix of {X.shape[0]:,} x {X.shape[1]:,} cells was given, and they are written out; "
                    f"give at most {_MOST_SPARSE_CELLS:,}, or leave columns out"
                )
            from scipy.sparse import sparray

            kind = f"sparse {X.format} {'array' if isinstance(X, sparray) else 'matrix'}"
            columns, dtype = [f"x{i}" for i in range(X.shape[1])], X.dtype
        else:
            array = np.asarray(as_cells(X))
            if array.ndim != 2:
                raise InputError(
                    f"X has {array.ndim} dimension{'s' * (array.ndim != 1)}; a table with rows and columns "
                    "is expected. Reshape your data"
                )
            kind = "list" if isinstance(X, list) else "array"
            columns = [f"x{i}" for i in range(array.shape[1])]
            # The cells of a list have a dtype each.
            dtype = None if isinstance(X, list | tuple) else array.dtype
        if isinstance(y, pd.Series):
            return cls(kind, columns, dtype, "series", y.name, y.dtype)
        if isinstance(y, pd.DataFrame):
            return cls(kind, columns, dtype, "frame", y.columns, y.dtypes)
        label_kind = "list" if isinstance(y, list) else "array"
        labels = as_labels(y)
        if labels.ndim == 2:
            label_kind = "indicator"
        return cls(kind, columns, dtype, label_kind, None, labels.dtype)

    def table(self, X: Any, least: int = 1) -> pd.DataFrame:
        """Return X as a DataFrame whose columns are named by text."""
        if self.kind == "frame":
            table = X.copy(deep=False)
            table.columns = [str(name) for name in X.columns]
            check_table(table, least)
            for name, dtype in table.dtypes.items():
                if isinstance(dtype, pd.SparseDtype):
                    table[name] = table[name].sparse.to_dense()
        else:
            values = X.toarray() if self.kind.startswith("sparse") else np.asarray(as_cells(X))
            table = as_frame(values, self.columns)
        check_table(table, least)
        self.arrow = {str(k): v for k, v in table.dtypes.items() if isinstance(v, pd.ArrowDtype)}
        self.objects = [str(name) for name, dtype in table.dtypes.items() if is_object_dtype(dtype)]
        self.dates = [name for name in self.objects if are_dates(table[name])]
        if self.kind != "frame" and self.objects:
            table = as_frame(values, self.columns, infer=True)
        return table.reset_index(drop=True)

    def labels(self, y: Any) -> pd.Series:
        """Return y as a Series."""
        if self.label_kind == "series":
            return y.reset_index(drop=True)
        if self.label_kind == "frame" and y.shape[1] == 1:
            return y.iloc[:, 0].reset_index(drop=True)
        if self.label_kind == "indicator" or self.label_kind == "frame":
            check_classification_targets(y)
            return pd.Series(check_target_type(np.asarray(y), indicate_one_vs_all=True)[0])
        return as_series(as_labels(y).ravel())

    def leave_out(self, name: str) -> None:
        """Forget a column that the result does not have."""
        self.columns = [column for column in self.columns if str(column) != name]
        if isinstance(self.dtype, dict):
            self.dtype.pop(name, None)

    def forget_dtypes(self) -> None:
        """Keep only what does not depend on the values."""
        self.dtype = {} if self.kind == "frame" else None
        self.arrow, self.objects, self.dates = {}, [], []
        self._forget_label_dtype()

    def _forget_label_dtype(self) -> None:
        self.label_dtype = "category" if isinstance(self.label_dtype, pd.CategoricalDtype) else None

    def check_label_dtype(self, classes: NDArray[Any]) -> None:
        """Forget y's dtype where the classes, as declared, would be others in it: as a boolean, "0" is True."""
        if self.label_dtype is None or (dtype := self._one_label_dtype()) is None:
            return
        declared = as_series(classes)
        with warnings.catch_warnings():
            # Of what is none of y's categories, which is the question.
            warnings.simplefilter("ignore")
            try:
                same = value_keys(declared.astype(dtype)).equals(value_keys(declared))
            except (TypeError, ValueError):
                same = False
        if not same:
            self._forget_label_dtype()

    def _one_label_dtype(self) -> Any:
        """Return y's dtype, or None where labels are in several columns."""
        if self.label_kind == "frame":
            return self.label_dtype.iloc[0] if len(self.label_name) == 1 else None
        return None if self.label_kind == "indicator" else _roomy(self.label_dtype)

    def restore(self, table: pd.DataFrame, labels: pd.Series) -> tuple[Any, Any]:
        """Return the result in the form in which X and y were given."""
        for name in self.dates if self.kind != "frame" else self.objects:
            if name in table.columns:
                table = table.assign(**{name: as_objects(table[name], dates=name in self.dates)})
        for name, dtype in self.arrow.items():
            if name in table.columns and (
                (dtype.kind == "M" and is_datetime64_any_dtype(table[name].dtype))
                or (dtype.type is str and is_string_dtype(table[name]))
            ):
                table = table.assign(**{name: table[name].astype(dtype)})
        if self.kind == "frame":
            X: Any = table.astype(self.dtype).set_axis(self.columns, axis=1)
        else:
            X = table.to_numpy(dtype=_roomy(self.dtype))
            if self.kind.startswith("sparse"):
                from scipy.sparse import csr_array, csr_matrix

                _, layout, form = self.kind.split()
                X = (csr_array if form == "array" else csr_matrix)(X).asformat(layout)
            X = X.tolist() if self.kind == "list" else X
        return X, self._restore_labels(labels.reset_index(drop=True))

    def _restore_labels(self, labels: pd.Series) -> Any:
        if self.label_kind == "series":
            labels = labels if self.label_dtype is None else labels.astype(self.label_dtype)
            return labels.rename(self.label_name)
        if self.label_kind == "frame" and len(self.label_name) == 1:
            labels = labels.to_frame().set_axis(self.label_name, axis=1)
            return labels if self.label_dtype is None else labels.astype(self.label_dtype)
        if self.label_kind in ("indicator", "frame"):
            from sklearn.preprocessing import label_binarize

            width = len(self.label_name) if self.label_kind == "frame" else int(labels.max()) + 1
            hot = label_binarize(labels, classes=np.arange(width))
            return pd.DataFrame(hot, columns=self.label_name) if self.label_kind == "frame" else hot
        y = labels.to_numpy(dtype=_roomy(self.label_dtype))
        return y.tolist() if self.label_kind == "list" else y


def _roomy(dtype: Any) -> Any:
    """Return the dtype, with texts of any length."""
    return str if isinstance(dtype, np.dtype) and dtype.kind in "US" else dtype
