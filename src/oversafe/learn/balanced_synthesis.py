"""A private synthesizer and any classifier on its class-balanced sample, as one estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from oversafe._core.checks import check_count, check_pandas
from oversafe._core.errors import InputError
from oversafe.data.column import Column, as_cells, as_frame
from oversafe.data.encode import column_codes, domain_codes
from oversafe.data.labels import as_labels, declared_classes, found_classes
from oversafe.data.schema import Schema, check_table
from oversafe.learn.base import private_tags, refuse_persons, refuse_weights
from oversafe.privacy.call_context import CallContext
from oversafe.privacy.ledger.ledger import DatasetLedger
from oversafe.protect.base import Synthesizer
from oversafe.protect.marginals.mixture import PrivateMixture

FloatArray = NDArray[np.float64]

# Rows of a sample when nothing is said: enough to learn from what the model knows, whatever the table's size.
_ROWS = 20_000
# scikit-learn's histogram gradient boosting takes no more categories than that.
_MOST_CATEGORIES = 255


@dataclass(eq=False, repr=False)
class BalancedSynthesisClassifier(ClassifierMixin, BaseEstimator):
    """Learn a synthetic table under differential privacy, and a classifier on as many rows of each class from it.

    The privacy is all in the synthesizer: whatever is trained on its rows costs nothing more, so the classifier may be
    any, and its settings may be tuned on synthetic rows. With classes in equal numbers a rare class is not outvoted
    (Rosenblatt et al. 2025, Algorithm 3).

    Parameters
    ----------
    synthesizer : Synthesizer, optional
        :class:`~oversafe.protect.PrivateMixture` when not given. Its ``epsilon`` and, where it has them, ``delta``,
        ``schema``, ``classes``, ``ledger`` and ``random_state`` are set to those below, if these are given.
    classifier : scikit-learn classifier, optional
        Histogram gradient boosting when not given. Another one gets numbers as they are, missing ones in the middle
        of their range, and one column for each category.
    epsilon : float, default=1.0
        Of the whole fit.
    delta : float, optional
        As the synthesizer has it when not given.
    schema : Schema, optional
        What the columns are; only public ranges and categories give a proven guarantee.
    classes : sequence, optional
        The labels that exist, when they are public.
    n_samples : int, default=20000
        How many synthetic rows the classifier learns from, all classes together.
    ledger : DatasetLedger, optional
        The budget that every fit is charged to before its noise is drawn.
    call_context : {"checked", "vouched"}, default="checked"
        What is done to the data around a fit: "checked" makes the guarantee nominal inside of anything that is not
        known; with "vouched" you state that nothing of that kind looks at them, and the guarantee says so.
    random_state : int, optional
        Makes the fit repeatable, for experiments; the guarantee is then nominal.

    Attributes
    ----------
    guarantee_ : Guarantee
        What the fitted model promises: the synthesizer's guarantee.
    synthesizer_ : Synthesizer
        The fitted synthesizer.
    classifier_ : classifier
        The classifier, fitted to synthetic rows.
    classes_ : array
        The labels.
    n_features_in_ : int
        The number of columns.

    Examples
    --------
    >>> from oversafe.data import load_dataset
    >>> from oversafe.learn import BalancedSynthesisClassifier
    >>> X, y = load_dataset("breast_cancer")
    >>> model = BalancedSynthesisClassifier(epsilon=5.0, random_state=0).fit(X, y)
    >>> model.predict(X[:3]).shape
    (3,)
    """

    synthesizer: Synthesizer | None = None
    classifier: Any = None
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float | None = None
    schema: Schema | None = None
    classes: Sequence[Any] | None = None
    n_samples: int = _ROWS
    ledger: DatasetLedger | None = None
    call_context: CallContext = "checked"
    random_state: int | None = None

    def fit(self, X: Any, y: Any, **refused: Any) -> BalancedSynthesisClassifier:
        """Learn to tell the classes apart.

        Parameters
        ----------
        X : DataFrame or array of shape (n_rows, n_features)
            Columns of any kind, with missing values or not.
        y : Series or array of shape (n_rows,)
            The class of each row; numbers or text.
        **refused
            ``sample_weight`` is refused: the guarantee does not cover weights that nobody paid for.
        """
        refuse_weights(refused)
        check_count("n_samples", self.n_samples, 2)
        if self.classes is not None:
            declared_classes(self.classes)
        inner = self._synthesizer()
        refuse_persons(self, getattr(inner, "schema", None))
        inner.fit(*self._read(X, y, inner._least_rows()))
        self.__dict__.pop("guarantee_", None)
        self.synthesizer_ = inner
        self.classes_ = inner.classes_
        each = np.diff(np.linspace(0, self.n_samples, len(self.classes_) + 1).round()).astype(int)
        made, of = inner.sample(class_counts=dict(zip(self.classes_.tolist(), each.tolist(), strict=True)))
        numbers = self._numbers(made)
        # Boosting refuses a column without a single value; a constant one says as little.
        numbers[:, np.isnan(numbers).all(axis=0)] = 0.0
        # As declared, though the labels of the rows may be written otherwise: 0 for "0".
        named = Column("label", "categorical", "object", True, categories=tuple(self.classes_.tolist()))
        places = column_codes(named, pd.Series(of), strict=False).astype(np.int64)
        self.classifier_ = self._classifier().fit(numbers, self.classes_[places])
        self.guarantee_ = inner.guarantee_
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row."""
        features = self._again(X)
        return self.classifier_.predict(features).astype(self.classes_.dtype)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class, in the order of ``classes_``, as if all were equally frequent."""
        features = self._again(X)
        shares = np.zeros((len(features), len(self.classes_)))
        known = {label: i for i, label in enumerate(self.classes_.tolist())}
        places = [known[label] for label in self.classifier_.classes_.tolist()]
        shares[:, places] = self.classifier_.predict_proba(features)
        return shares

    def _synthesizer(self) -> Synthesizer:
        inner = PrivateMixture() if self.synthesizer is None else clone(self.synthesizer)
        known = inner.get_params()
        if "epsilon" not in known:
            raise InputError(
                f"the synthesizer {type(inner).__name__} has no epsilon; give one under differential privacy, such as "
                "PrivateMixture()"
            )
        given = {"epsilon": self.epsilon} | {
            name: value
            for name in ("delta", "schema", "classes", "ledger", "random_state")
            if (value := getattr(self, name)) is not None
        }
        if self.call_context != "checked":
            given["call_context"] = self.call_context
        if unknown := [name for name in given if name not in known]:
            raise InputError(f"the synthesizer {type(inner).__name__} has no {unknown[0]}; leave it out here")
        return inner.set_params(**given)

    def _classifier(self) -> Any:
        if self.classifier is not None:
            return clone(self.classifier)
        from sklearn.ensemble import HistGradientBoostingClassifier

        schema = self.synthesizer_.schema_
        grouped = [c.is_category and len(c.categories or ()) <= _MOST_CATEGORIES for c in schema]
        return HistGradientBoostingClassifier(categorical_features=grouped, random_state=self.random_state)

    def _read(self, X: Any, y: Any, least: int) -> tuple[Any, Any]:
        if y is None:
            raise InputError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        check_pandas(X)
        if isinstance(X, pd.DataFrame):
            if not X.columns.is_unique:
                check_table(X)
            validate_data(self, X, skip_check_array=True)
            if len(X) < least:
                raise InputError("the table has 0 sample(s); give at least one row")
        else:
            X = validate_data(
                self, as_cells(X), dtype=None, ensure_all_finite=False, ensure_min_samples=least
            )
        if not isinstance(getattr(y, "dtype", None), pd.CategoricalDtype):
            # Where the labels are declared or paid for, no check may look at all of them.
            given = [
                getattr(who, fact, None) for who in (self, self.synthesizer) for fact in ("classes", "schema")
            ]
            paid = getattr(self.synthesizer, "domains", "data") == "private"
            declared = paid or any(fact is not None for fact in given)
            labels = as_labels(y)
            if not declared or labels.ndim != 1:
                labels = column_or_1d(np.asarray(y), warn=True)
            if not declared:
                found_classes(labels)
            y = y if isinstance(y, pd.Series) else labels
        return X, y

    def _again(self, X: Any) -> FloatArray:
        check_is_fitted(self, "classifier_")
        check_pandas(X)
        if isinstance(X, pd.DataFrame):
            validate_data(self, X, skip_check_array=True, reset=False)
        else:
            X = validate_data(self, as_cells(X), dtype=None, ensure_all_finite=False, reset=False)
        return self._numbers(X)

    def _numbers(self, X: Any) -> FloatArray:
        """Return rows as the classifier sees them, each by itself."""
        schema = self.synthesizer_.schema_
        table = X if isinstance(X, pd.DataFrame) else as_frame(X, schema.names)
        table = table.set_axis(list(schema.names), axis=1)
        plain = self.classifier is None
        return np.hstack([_features(column, table[column.name], plain) for column in schema])

    def __sklearn_tags__(self) -> Any:
        tags = private_tags(super().__sklearn_tags__(), self.random_state)
        tags.input_tags.string = True
        return tags


def _features(column: Any, values: pd.Series, plain: bool) -> FloatArray:
    """Return a column as positions and numbers with gaps, or for other classifiers without gaps and one-hot."""
    codes = column_codes(column, values, strict=False)
    if plain:
        return codes[:, None]
    gaps = np.isnan(codes)
    if column.is_category:
        hot = np.zeros((len(codes), len(column.categories or ())))
        hot[np.flatnonzero(~gaps), codes[~gaps].astype(np.int64)] = 1.0
        return hot
    middle = sum(domain_codes(column)) / 2 if column.bounds is not None else 0.0
    filled = np.where(gaps, middle, codes)
    return np.column_stack([filled, gaps]) if column.missing else filled[:, None]
