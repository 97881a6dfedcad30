"""Methods that are not oversafe's, used like its own: tables in, tables out, and no promise but the one they state."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone

from oversafe._core.errors import InputError
from oversafe.privacy.guarantee import STRICT, UNLABELLED, Guarantee
from oversafe.protect.base import Protector


class OwnMethod(BaseEstimator):
    """Somebody's method behind the contract of a protector.

    Parameters
    ----------
    wrapped : object
        With ``fit_resample``, or with ``fit`` and ``sample``; or a function of X and y.

    Attributes
    ----------
    guarantee_ : Guarantee
        The one that the method states as its own ``guarantee_``, or none.
    """

    # As those of a protector have it; such a method does not tell.
    on_progress: Callable[[str, float], None] | None = None
    unlabelled_left_out: bool = False
    odd_cells_refused: bool = False

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped

    def fit_resample(self, X: pd.DataFrame, y: pd.Series) -> tuple[pd.DataFrame, pd.Series]:
        """Return the release of a table: named columns and labels, whatever the method returned them as."""
        method = clone(self.wrapped, safe=False)
        if hasattr(method, "fit_resample"):
            made = method.fit_resample(X, y)
        elif hasattr(method, "sample"):
            fitted = method.fit(X, y)
            method = method if fitted is None else fitted
            made = drawn(method, len(X))
        else:
            made = method(X, y)
        stated = getattr(method, "guarantee_", None)
        if not isinstance(stated, Guarantee):
            stated = Guarantee.none("the method states none")
        if stated.status != "none":
            counted = self.unlabelled_left_out and stated.n_rows_public
            stated = stated.weaken(*[UNLABELLED] * counted, *[STRICT] * self.odd_cells_refused)
        self.guarantee_ = stated
        return _release(made, X, y, type(self.wrapped).__name__)


def drawn(method: Any, n: int) -> Any:
    """Return a fitted method's sample: of n rows, where it has to be told how many."""
    told = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    parameters = signature(method.sample).parameters.values()
    needed = any(p.default is Parameter.empty and p.kind in told for p in parameters)
    return method.sample(n) if needed else method.sample()


def own_method(name: str, given: Any) -> Any:
    """Return a method as comparisons run it, or say what it lacks.

    Parameters
    ----------
    name : str
        What it is called.
    given : object
        A protector, or an object with ``fit_resample``, or with ``fit`` and ``sample``, that inherits from
        ``sklearn.base.BaseEstimator``; or a function of X and y.
    """
    if isinstance(given, type):
        raise InputError(
            f"the method {name!r} is the class {given.__name__}; give an object of it: {given.__name__}()"
        )
    if isinstance(given, Protector | OwnMethod):
        return given
    kind = type(given).__name__
    is_function = callable(given) and hasattr(given, "__qualname__")
    if not is_function and not _makes_releases(given):
        raise InputError(
            f"the method {name!r} is of type {kind}, which has neither fit_resample nor fit and sample; give a "
            "protector, or an object that has them"
        )
    if not is_function:
        if not hasattr(given, "get_params"):
            raise InputError(
                f"the method {name!r} is of the class {kind}, whose settings cannot be read; let it inherit from "
                "sklearn.base.BaseEstimator"
            )
        try:
            clone(given)
        except (TypeError, RuntimeError, AttributeError) as error:
            raise InputError(
                f"the method {name!r} cannot be copied ({error}); let {kind}.__init__ store its arguments as they are, "
                "under their own names"
            ) from None
    return OwnMethod(given)


def _makes_releases(method: Any) -> bool:
    return hasattr(method, "fit_resample") or (hasattr(method, "fit") and hasattr(method, "sample"))


def check_class(name: str, kind: Any) -> None:
    """Refuse what a plugin names if no method can be made of it."""
    if not isinstance(kind, type) or not _makes_releases(kind):
        raise InputError(
            f"the plugin {name!r} names {kind!r}; name a class with fit_resample, or with fit and sample"
        )
    if not hasattr(kind, "_get_param_names"):
        raise InputError(
            f"the plugin {name!r} names the class {kind.__name__}, whose settings cannot be read; let it inherit from "
            "sklearn.base.BaseEstimator"
        )


def _release(made: Any, X: pd.DataFrame, y: pd.Series, kind: str) -> tuple[pd.DataFrame, pd.Series]:
    if not isinstance(made, tuple | list) or len(made) != 2:
        raise InputError(
            f"{kind} returned {type(made).__name__}; return two things, the table and its labels"
        )
    table, labels = made
    if not isinstance(table, pd.DataFrame):
        table = pd.DataFrame(table.toarray() if hasattr(table, "toarray") else np.asarray(table))
    if list(table.columns) == list(range(X.shape[1])):
        # An array, or a table made of one: its columns are those of X in their order.
        table = table.set_axis(X.columns, axis=1)
    if missing := [name for name in X.columns if name not in table.columns]:
        raise InputError(
            f"{kind} returned a table without the column {missing[0]!r}; return all columns of X"
        )
    frame = table[list(X.columns)].reset_index(drop=True)
    for column in frame.select_dtypes(object).columns:
        # An array of numbers and text holds both as objects.
        if pd.api.types.is_numeric_dtype(X[column].dtype):
            frame[column] = pd.to_numeric(frame[column])
    values = pd.Series(np.asarray(labels).ravel(), name=y.name)
    if len(values) != len(frame):
        raise InputError(
            f"{kind} returned {len(frame)} rows and {len(values)} labels; return as many labels as rows"
        )
    try:
        same = values.astype(y.dtype)
        if not same.isna().any() and (same.astype(object) == values.astype(object)).all():
            values = same
    except (TypeError, ValueError):
        # Labels that y does not have stay what they are.
        pass
    return frame, values
