"""What private classifiers share: scikit-learn's contract, public labels, and a guarantee that is charged first."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from oversafe._core.checks import check_pandas, check_random_state, check_share
from oversafe._core.errors import InputError
from oversafe.data.cells import as_number, read_texts
from oversafe.data.column import Column, as_cells, as_frame, as_series
from oversafe.data.domain_warnings import warn_of_columns, warn_of_labels
from oversafe.data.encode import column_codes
from oversafe.data.labels import (
    as_labels,
    check_class_spellings,
    declared_classes,
    found_classes,
)
from oversafe.data.schema import Schema, check_given_schema, check_table, texts_read
from oversafe.learn.features import Scaling, check_schema, costs_epsilon, resolve_scaling, unpaid
from oversafe.privacy.answers import about
from oversafe.privacy.call_context import CallContext, context_of, warn_if_tuned
from oversafe.privacy.domains import LABELS_READ, file_caveats, frame_caveats, label_stand_in
from oversafe.privacy.estimates import positive_counts
from oversafe.privacy.guarantee import (
    SEEDED,
    Guarantee,
    check_delta,
    check_epsilon,
    failure_event,
    pure_event,
)
from oversafe.privacy.ledger.ledger import pay
from oversafe.privacy.mechanisms import noisy_counts
from oversafe.privacy.persons import check_persons

if TYPE_CHECKING:
    from dp_accounting import DpEvent

FloatArray = NDArray[np.float64]

# What may be looked at before the fit, and its share of epsilon: the columns' scale where it has to be found, and the
# class counts.
SCALE, CLASS_COUNTS = "the scale of the columns", "the class counts"
_SHARES = {SCALE: 0.2, CLASS_COUNTS: 0.05}
COLUMNS_READ = "the kinds, ranges and categories of the columns were read from the data; give a schema"


class PrivateLearner(ClassifierMixin, BaseEstimator, ABC):
    """A scikit-learn classifier that carries a guarantee.

    A subclass writes ``_fit``, which calls ``_promise`` with everything that it is about to spend before it draws any
    noise and returns the guarantee, and ``_scores``. Its constructor has ``epsilon``, ``delta``, ``classes``,
    ``schema``, ``ledger``, ``call_context`` and ``random_state``.

    Attributes
    ----------
    guarantee_ : Guarantee
        What the fitted model promises.
    classes_ : array
        The labels.
    n_features_in_ : int
        The number of columns.
    """

    guarantee_: Guarantee
    classes_: NDArray[Any]
    epsilon: float
    delta: float
    classes: Sequence[Any] | None
    schema: Schema | None
    ledger: Any
    call_context: CallContext
    random_state: int | None
    # What the proof takes for granted.
    _assumed: tuple[str, ...] = ()
    # What the user vouched for.
    _word: tuple[str, ...] = ()

    def fit(self, X: Any, y: Any, **refused: Any) -> Self:
        """Learn to tell the classes apart.

        Parameters
        ----------
        X : DataFrame or array of shape (n_rows, n_features)
            Numbers, or with a schema columns of any kind. What is missing counts as average.
        y : Series or array of shape (n_rows,)
            The class of each row; numbers or text.
        **refused
            ``sample_weight`` is refused: the guarantee does not cover weights that nobody paid for.
        """
        refuse_weights(refused)
        # Not of this fit, should it fail.
        self.__dict__.pop("guarantee_", None)
        self._check_budget()
        if self.epsilon is not None:
            refuse_persons(self, self._given_schema())
        caveats, self._word = context_of(self.call_context)
        warn_if_tuned(caveats)
        caveats += frame_caveats(X, y)
        table, schema, found = self._read_table(X)
        caveats += found
        codes, found = self._read_labels(y)
        caveats += found
        check_consistent_length(table, codes)
        if self.random_state is not None:
            caveats.append(SEEDED)
        self.guarantee_ = self._fit(table, codes, schema, caveats)
        return self

    def _check_budget(self) -> None:
        check_epsilon(self.epsilon)
        # Beyond, the arithmetic of noise and ridge leaves the range of numbers.
        check_share("epsilon", self.epsilon, 1e-100, 1e100)
        check_delta(self.delta)
        check_random_state(self.random_state)

    def _check_class_weight(self, weight: Any) -> None:
        if isinstance(weight, Mapping):
            known = self.classes_.tolist()
            for label, value in weight.items():
                if label not in known:
                    raise InputError(f"class_weight names the class {label!r}; the classes are {known}")
                check_share(f"class_weight of {label!r}", value, 1e-20, 1e20)
        elif weight not in (None, "balanced", "threshold"):
            raise InputError(
                f"class_weight = {weight!r} was given; use None, 'balanced', 'threshold' or a dict of public weights"
            )

    def decision_function(self, X: Any) -> FloatArray:
        """Return how far each row is on a class's side: one column for two classes, else one per class."""
        check_is_fitted(self, "guarantee_")
        scores = self._scores(self._read_again(X))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(np.int64) if scores.ndim == 1 else np.argmax(scores, axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class, in the order of ``classes_``."""
        from scipy.special import expit, softmax

        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(scores, axis=1)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithm of the probability of each class."""
        return np.log(np.maximum(self.predict_proba(X), np.finfo(float).tiny))

    @abstractmethod
    def _fit(
        self, table: Any, codes: NDArray[np.int64], schema: Schema | None, caveats: list[str]
    ) -> Guarantee:
        """Learn, and return what was promised; ``codes`` are positions in ``classes_``."""

    @abstractmethod
    def _scores(self, table: Any) -> FloatArray:
        """Return the scores of rows: one column for two classes, else one per class."""

    # ------------------------------------------------------------------------------------------ reading

    def _given_schema(self) -> Schema | None:
        return self.schema

    def _read_table(self, X: Any) -> tuple[Any, Schema | None, list[str]]:
        """Return numbers as an array, or a table of mixed kinds with its schema; and what was read unpaid."""
        schema = self._given_schema()
        check_pandas(X)
        X = _gaps_as_nan(X if schema is None else as_cells(X))
        if isinstance(X, pd.DataFrame) and not X.columns.is_unique:
            check_table(X)
        X = _objects_as_numbers(X) if schema is None else X
        if schema is None and not _is_mixed(X):
            return validate_data(self, X, dtype=np.float64, ensure_all_finite=False), None, []
        if not isinstance(X, pd.DataFrame):
            validate_data(self, X, dtype=None, ensure_all_finite=False)
            assert schema is not None
            X = as_frame(np.asarray(X), _names(schema, X))
        else:
            validate_data(self, X, skip_check_array=True)
        table = X.set_axis([str(name) for name in X.columns], axis=1)
        if len(table) == 0:
            raise InputError("the table has 0 sample(s); give at least one row")
        if schema is not None:
            table, _ = texts_read(table, None, schema)
            checked = check_schema(schema, table)
            warn_of_columns(checked, table, stacklevel=3)
            return table, checked, file_caveats(schema)
        inferred = check_schema(Schema.infer(table), table)
        return table, inferred, [COLUMNS_READ]

    def _read_again(self, X: Any) -> Any:
        check_pandas(X)
        X = _gaps_as_nan(X if self._feature_schema() is None else as_cells(X))
        if self._feature_schema() is None:
            X = _objects_as_numbers(X)
            return validate_data(self, X, dtype=np.float64, ensure_all_finite=False, reset=False)
        if not isinstance(X, pd.DataFrame):
            X = np.asarray(X)
            validate_data(self, X, dtype=None, ensure_all_finite=False, reset=False)
            return as_frame(X, _names(self._feature_schema(), X))
        validate_data(self, X, skip_check_array=True, reset=False)
        return X.set_axis([str(name) for name in X.columns], axis=1)

    def _feature_schema(self) -> Any:
        features = getattr(self, "features_", None)
        return None if features is None else features.schema

    def _read_labels(self, y: Any) -> tuple[NDArray[np.int64], list[str]]:
        """Set ``classes_`` and return each row's position in it."""
        if y is None:
            raise InputError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        declared: Any = self.classes
        stand_in = None
        caveats: list[str] = []
        schema = self._given_schema()
        if declared is None and schema is not None and schema.label is not None:
            entry = schema[schema.label]
            declared = entry.categories if entry.domain == "public" else None
            stand_in = entry.stand_in if entry.domain == "public" else None
        elif declared is None and isinstance(getattr(y, "dtype", None), pd.CategoricalDtype):
            # Whoever made the categories may have found them in the data.
            declared, caveats = y.dtype.categories.tolist(), [LABELS_READ]
        if declared is None:
            labels = column_or_1d(np.asarray(y), warn=True)
            self.classes_, codes = found_classes(labels)
            return codes, [LABELS_READ]
        declared = declared_classes(declared)
        if not caveats:
            check_class_spellings(declared, y)
        kinds = {type(label) for label in declared}
        self.classes_ = np.array(declared, dtype=None if len(kinds) == 1 else object)
        labels = as_labels(y)
        if labels.ndim != 1:
            column_or_1d(labels)
        if schema is not None and schema.label is not None:
            labels = read_texts(as_series(labels), schema[schema.label], schema.file).to_numpy()
        column = Column("label", "categorical", "object", True, categories=tuple(declared), fallback=stand_in)
        if labels.dtype.kind in "iu" and self.classes_.dtype.kind in "iu":
            # The same, quicker, for the usual case.
            places = pd.Index(self.classes_).get_indexer(labels)
        else:
            places = column_codes(column, as_series(labels), strict=False)
        if not caveats:
            warn_of_labels(column, places, as_series(labels), stacklevel=3)
        # A public choice for a label that was not declared, so that no error tells of it.
        return np.where(places >= 0, places, label_stand_in(column)).astype(np.int64), caveats

    # -------------------------------------------------------------------------------------- the guarantee

    def _unpaid(self, schema: Schema | None) -> list[str]:
        """Return what the settings alone say against the guarantee."""
        caveats = [] if self.random_state is None else [SEEDED]
        settings = self.get_params(deep=False)
        if "scaling" in settings:
            scaling = resolve_scaling(settings["scaling"], schema, settings["data_norm"])
            caveats += unpaid(scaling, schema)
        return caveats

    def _promise(
        self,
        spent: Sequence[tuple[str, float]],
        delta: float,
        basis: str,
        caveats: Sequence[str],
        event: DpEvent | None = None,
    ) -> Guarantee:
        """Charge the ledger with the guarantee and return it; call it before any noise is drawn.

        Parameters
        ----------
        spent : sequence of (str, float)
            What is looked at, and its epsilon; they add up to the whole epsilon.
        delta : float
            The probability that is left, in all.
        basis : str
            Which theorem.
        caveats : sequence of str
            What was not paid for.
        event : DpEvent, optional
            Of all looks together, where it says more than epsilon and delta do.
        """
        from dp_accounting import ComposedDpEvent

        events: list[Any] = [pure_event(epsilon) for _, epsilon in spent]
        if delta:
            events.append(failure_event(delta))
        if event is None:
            event = events[0] if len(events) == 1 else ComposedDpEvent(events)
        looks = ", ".join(f"{what} ({epsilon:.3g})" for what, epsilon in spent)
        guarantee = Guarantee(
            "proven",
            float(self.epsilon),
            delta,
            basis=f"{basis}; epsilon is spent on {looks}" if len(spent) > 1 else basis,
            event=event,
        ).weaken(*dict.fromkeys(caveats))
        guarantee = guarantee.assuming(*self._assumed, *self._word)
        self.ledger_entry_ = pay(self.ledger, guarantee, what=type(self).__name__)
        return guarantee

    def __sklearn_tags__(self) -> Any:
        return private_tags(super().__sklearn_tags__(), self.random_state)


def refuse_weights(refused: Mapping[str, Any]) -> None:
    """Refuse what scikit-learn's classifiers take in fit beside X and y."""
    for name, value in refused.items():
        if value is not None:
            raise InputError(f"{name} was given, and the guarantee does not cover it; leave it out")


def refuse_persons(learner: Any, schema: Schema | None) -> None:
    """Refuse a schema that says whose row each is: private classifiers promise for every record."""
    check_given_schema(schema)
    check_persons(type(learner).__name__, schema, None, takes_persons=False)


def private_tags(tags: Any, seed: int | None) -> Any:
    """Return scikit-learn's tags of a private classifier."""
    # Noise enough to hide a record among the few hundred of a check leaves little to score.
    tags.classifier_tags.poor_score = True
    tags.input_tags.allow_nan = tags.input_tags.categorical = True
    tags.non_deterministic = seed is None
    return tags


def split_epsilon(epsilon: float, *, scale: bool, counts: bool = False) -> tuple[dict[str, float], float]:
    """Return what the looks before the fit take of epsilon, and what is left for the fit."""
    spent = {
        what: share * epsilon
        for (what, share), wanted in zip(_SHARES.items(), (scale, counts), strict=True)
        if wanted
    }
    return spent, epsilon - math.fsum(spent.values())


def plan_features(learner: Any, table: Any, schema: Schema | None) -> tuple[Scaling, bool, list[str]]:
    """Return how the columns are scaled, whether that costs a share of epsilon, and what it reads unpaid."""
    scaling = resolve_scaling(learner.scaling, schema, learner.data_norm)
    costs = costs_epsilon(scaling, schema, learner.data_norm)
    if costs and scaling == "private":
        rows, columns = table.shape
        # Each column's ends are found among some 20 candidates that noise cannot tell apart.
        if rows * learner.epsilon < 1000 * columns:
            warnings.warn(
                f"{rows} rows at epsilon = {learner.epsilon:g} are too few to find the scale of {columns} columns "
                "privately; give a schema with public bounds, or scale them by figures that are public and give "
                "data_norm",
                stacklevel=4,
            )
    return scaling, costs, unpaid(scaling, schema)


def private_counts(
    codes: NDArray[np.int64], n_classes: int, epsilon: float, rng: np.random.Generator | None
) -> FloatArray:
    """Return the class counts with noise, each at least 1; they add up to the number of rows, which is public."""
    n, counts = len(codes), np.bincount(codes, minlength=n_classes)
    about(CLASS_COUNTS, epsilon)
    if n_classes == 2:
        # The other count follows from this one, which a replaced record moves by one.
        noisy = noisy_counts(counts[1:], sensitivity=1, epsilon=epsilon, random_state=rng)[0]
        ones = float(np.clip(noisy, 1, max(n - 1, 1)))
        return np.array([max(n - ones, 1.0), ones])
    noisy = noisy_counts(counts, sensitivity=2, epsilon=epsilon, random_state=rng)
    return positive_counts(noisy, n).astype(np.float64)


def _gaps_as_nan(X: Any) -> Any:
    """Return an array of objects with gaps that every conversion to numbers knows; anything else as it is."""
    if isinstance(X, np.ndarray) and X.dtype == object:
        # Not by isna, which asks each value whether it equals itself, and a signalling NaN has an error for an answer.
        gaps = np.frompyfunc(lambda value: value is None or value is pd.NA or value is pd.NaT, 1, 1)(
            X
        ).astype(bool)
        return np.where(gaps, np.nan, X) if gaps.any() else X
    return X


def _objects_as_numbers(X: Any) -> Any:
    """Return a table of which objects that are all numbers or gaps are numbers, by column in a frame; else as it is.

    One gap of pandas's own, or one whole number beyond 64 bits, makes objects of a column: no other kind of table.
    """
    if isinstance(X, np.ndarray) and X.dtype == object and all(map(_is_number_or_gap, X.flat)):
        return np.fromiter(map(as_number, X.flat), dtype=np.float64, count=X.size).reshape(X.shape)
    if not isinstance(X, pd.DataFrame):
        return X
    table = X.copy(deep=False)
    for place, dtype in enumerate(X.dtypes):
        if types.is_object_dtype(dtype) and all(map(_is_number_or_gap, own := X.iloc[:, place])):
            table.isetitem(place, np.fromiter(map(as_number, own), dtype=np.float64, count=len(own)))
    return table


def _is_number_or_gap(value: Any) -> bool:
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    return isinstance(value, Real | Decimal | np.bool_) and not isinstance(value, np.timedelta64)


def _is_mixed(X: Any) -> bool:
    return isinstance(X, pd.DataFrame) and not all(
        types.is_numeric_dtype(dtype) and not isinstance(dtype, pd.SparseDtype) for dtype in X.dtypes
    )


def _names(schema: Schema, X: Any) -> list[str]:
    names = schema.features.names
    width = np.asarray(X).shape[1]
    if width != len(names):
        raise InputError(f"X has {width} columns, and the schema declares {len(names)}; give a DataFrame")
    return list(names)
