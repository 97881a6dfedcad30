"""One classifier that picks its method by what is public."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from oversafe._core.checks import check_count
from oversafe._core.errors import InputError
from oversafe.data.column import as_cells
from oversafe.data.labels import in_order
from oversafe.data.schema import Schema
from oversafe.learn.balanced_synthesis import BalancedSynthesisClassifier
from oversafe.learn.base import private_tags, refuse_persons
from oversafe.learn.linear import PrivateLogisticRegression
from oversafe.privacy.call_context import CallContext
from oversafe.privacy.domains import TooFewRowsError
from oversafe.privacy.guarantee import check_delta, check_epsilon
from oversafe.privacy.ledger.ledger import DatasetLedger
from oversafe.protect.counting import DEFAULT_DELTA
from oversafe.protect.marginals.mixture import PrivateMixture

FloatArray = NDArray[np.float64]

# Fewer rows of the rarest class than this, and a synthesizer's tables of it are mostly noise. Between 54 rows
# (solar_flare_m0, where a linear model is better) and 107 (car_eval_34, where it is worse): docs/learning.md.
_FEW = 60
# What the rarest class is taken to be where nobody says.
_RARE = 0.05
# The pairs of columns that a synthesizer measures share its budget, and their number grows with the square.
_MANY_COLUMNS = 60


@dataclass(frozen=True)
class Choice:
    """A method, and why it was taken.

    Parameters
    ----------
    classifier : PrivateLogisticRegression or BalancedSynthesisClassifier
        Not fitted.
    reason : str
        In a sentence.
    """

    classifier: PrivateLogisticRegression | BalancedSynthesisClassifier
    reason: str


def choose_classifier(
    n_rows: int,
    n_columns: int,
    *,
    n_classes: int = 2,
    epsilon: float = 1.0,
    delta: float | None = None,
    rare_share: float | None = None,
) -> Choice:
    """Return the classifier that is expected to do best, by public facts alone.

    Parameters
    ----------
    n_rows : int
        How many rows there are.
    n_columns : int
        How many columns, before categories become one column each.
    n_classes : int, default=2
        How many classes.
    epsilon : float, default=1.0
        The budget of the whole fit.
    delta : float, optional
        The probability that may be left; 1e-9 when not given. With 0 the fit is pure.
    rare_share : float, optional
        The share of the rarest class, as publicly known; taken as 0.05, or less with many classes, when not given.

    Examples
    --------
    >>> from oversafe.learn import choose_classifier
    >>> choice = choose_classifier(300, 7, epsilon=1.0)
    >>> type(choice.classifier).__name__
    'PrivateLogisticRegression'
    >>> type(choose_classifier(20_000, 10).classifier).__name__
    'BalancedSynthesisClassifier'
    """
    check_count("n_rows", n_rows, 1)
    check_count("n_columns", n_columns, 1)
    check_count("n_classes", n_classes, 2)
    check_epsilon(epsilon)
    delta = DEFAULT_DELTA if delta is None else delta
    check_delta(delta)
    if rare_share is not None and not (
        isinstance(rare_share, int | float) and 0 < rare_share <= 1 / n_classes
    ):
        raise InputError(
            f"rare_share = {rare_share!r} was given; it is above 0 and at most 1 / {n_classes}, or None"
        )
    share = min(_RARE, 0.5 / n_classes) if rare_share is None else float(rare_share)
    expected = n_rows * share
    said = "as declared" if rare_share is not None else "as nobody declared rare_share"
    rows = f"{n_rows:,} rows with {share:.2g} of them in the rarest class, {said}"
    linear = PrivateLogisticRegression(epsilon=epsilon, delta=delta)
    if expected < _FEW:
        return Choice(
            linear,
            f"a linear model: {rows}, are about {expected:.0f} rare ones, and below {_FEW} there is more noise than "
            "signal in a synthesizer's tables of them",
        )
    if n_columns > _MANY_COLUMNS:
        return Choice(
            linear,
            f"a linear model: {n_columns} columns have {n_columns * (n_columns - 1) // 2:,} pairs, too many for a "
            "synthesizer to measure from one budget",
        )
    return Choice(
        BalancedSynthesisClassifier(PrivateMixture(), epsilon=epsilon, delta=delta),
        f"boosted trees on class-balanced synthetic rows: {rows}, are about {expected:.0f} rare ones, enough to learn "
        "relations that are no lines",
    )


@dataclass(eq=False, repr=False)
class PrivateClassifier(ClassifierMixin, BaseEstimator):
    """A classifier under differential privacy that takes the method expected to do best.

    It picks by public facts alone: the number of rows, columns and classes, epsilon, and the declared share of the
    rarest class. So the choice costs nothing and tells nothing of the data.

    Parameters
    ----------
    epsilon : float, default=1.0
        The budget of the whole fit, under replace-one neighbours.
    delta : float, optional
        1e-9 when not given; 0 for a pure guarantee.
    schema : Schema, optional
        What the columns are, with public bounds and categories. Without one, what has to be known of the columns is
        estimated and paid for out of epsilon, where the method that is chosen can do so; the guarantee says if not.
    classes : sequence, optional
        The labels that exist, when they are public; also taken from the schema's label.
    rare_share : float, optional
        The share of the rarest class, as publicly known: a rough figure is enough.
    ledger : DatasetLedger, optional
        The budget that the fit is charged to before its noise is drawn.
    call_context : {"checked", "vouched"}, default="checked"
        What is done to the data around a fit: "checked" makes the guarantee nominal inside of anything that is not
        known; with "vouched" you state that nothing of that kind looks at them, and the guarantee says so.
    random_state : int, optional
        Makes the fit repeatable, for experiments; the guarantee is then nominal.

    Attributes
    ----------
    guarantee_ : Guarantee
        What the fitted model promises.
    classifier_ : PrivateLogisticRegression or BalancedSynthesisClassifier
        What was chosen, fitted.
    reason_ : str
        Why.
    classes_ : array
        The labels.
    n_features_in_ : int
        The number of columns.

    See Also
    --------
    choose_classifier : The choice alone.

    Examples
    --------
    >>> from oversafe.data import load_dataset
    >>> from oversafe.learn import PrivateClassifier
    >>> X, y = load_dataset("breast_cancer")
    >>> model = PrivateClassifier(epsilon=5.0, random_state=0).fit(X, y)
    >>> print(model.reason_)  # doctest: +ELLIPSIS
    a linear model: ... rows with 0.05 of them in the rarest class, ...
    >>> model.predict(X[:3]).shape
    (3,)
    """

    epsilon: float = 1.0
    delta: float | None = None
    _: KW_ONLY
    schema: Schema | None = None
    classes: Sequence[Any] | None = None
    rare_share: float | None = None
    ledger: DatasetLedger | None = None
    call_context: CallContext = "checked"
    random_state: int | None = None

    def fit(self, X: Any, y: Any, **refused: Any) -> PrivateClassifier:
        """Choose a method and learn to tell the classes apart.

        Parameters
        ----------
        X : DataFrame or array of shape (n_rows, n_features)
            Columns of any kind, with missing values or not.
        y : Series or array of shape (n_rows,)
            The class of each row; numbers or text.
        **refused
            ``sample_weight`` is refused: the guarantee does not cover weights that nobody paid for.
        """
        refuse_persons(self, self.schema)
        choice = self._choose(X, y)
        inner = choice.classifier.set_params(
            schema=self.schema,
            classes=self.classes,
            ledger=self.ledger,
            call_context=self.call_context,
            random_state=self.random_state,
        )
        if isinstance(inner, BalancedSynthesisClassifier) and self.schema is None:
            inner.set_params(synthesizer=PrivateMixture(domains="private"))
        try:
            inner.fit(X, y, **refused)
        except TooFewRowsError as error:
            # The other way out is a setting of synthesizers.
            raise InputError(f"{error.reason}; give a schema") from error
        self.classifier_, self.reason_ = inner, choice.reason
        self.classes_, self.guarantee_ = inner.classes_, inner.guarantee_
        self.n_features_in_ = inner.n_features_in_
        if hasattr(inner, "feature_names_in_"):
            self.feature_names_in_ = inner.feature_names_in_
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row."""
        check_is_fitted(self, "classifier_")
        return self.classifier_.predict(X)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class, in the order of ``classes_``, as if all were equally frequent."""
        check_is_fitted(self, "classifier_")
        return self.classifier_.predict_proba(X)

    def _choose(self, X: Any, y: Any) -> Choice:
        shape = X.shape if hasattr(X, "shape") else np.asarray(as_cells(X)).shape
        if len(shape) != 2 or 0 in shape or y is None:
            # scikit-learn's words for what is wrong come from the classifier.
            shape = (1, 1)
        return choose_classifier(
            shape[0],
            shape[1],
            n_classes=max(2, self._n_classes()),
            epsilon=self.epsilon,
            delta=self.delta,
            rare_share=self.rare_share,
        )

    def _n_classes(self) -> int:
        """Return how many classes are declared; 2 where none are, as the number of those that occur is private."""
        if self.classes is not None:
            return len(in_order(self.classes))
        if self.schema is not None and self.schema.label is not None:
            return len(self.schema[self.schema.label].categories or ())
        return 2

    def __sklearn_tags__(self) -> Any:
        tags = private_tags(super().__sklearn_tags__(), self.random_state)
        tags.input_tags.string = True
        return tags
