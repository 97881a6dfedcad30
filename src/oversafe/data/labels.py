"""What labels must be to count as classes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.errors import InputError
from oversafe._core.text import counted
from oversafe.data.cells import check_spellings
from oversafe.data.column import Column, as_cells, as_frame

# The attacks and several methods go through the classes one by one.
MOST_CLASSES = 1000
# In fewer rows a class may well have one row.
_FEWEST_TO_TELL = 20


def in_order(classes: Iterable[Any]) -> list[Any]:
    """Return declared classes in their order, as scikit-learn has them; as given if they have none."""
    if isinstance(classes, str) or not isinstance(classes, Iterable):
        raise InputError(f"classes = {classes!r} was given; give the labels that exist in a list")
    classes = list(classes)
    try:
        return sorted(classes)
    except TypeError:
        return classes


def declared_classes(classes: Iterable[Any], least: Literal[0, 2] = 2) -> list[Any]:
    """Return declared classes in their order, or refuse fewer than there must be, or one that is listed twice."""
    declared = in_order(classes)
    if len(declared) < least or any(label in declared[:i] for i, label in enumerate(declared)):
        wanted = "at least two labels, each" if least else "each label"
        raise InputError(f"classes = {declared!r} was given; give {wanted} once")
    return declared


def as_labels(y: Any) -> NDArray[Any]:
    """Return labels as an array, those in a list each by itself; no check looks at all of them."""
    cells = as_cells(y)
    if cells is y or cells.ndim != 1:
        labels = np.asarray(y)
    else:
        labels = as_frame(cells[:, None], ["label"], infer=True)["label"].to_numpy()
    return labels.ravel() if labels.ndim == 2 and labels.shape[1] == 1 else labels


def check_class_spellings(classes: Sequence[Any], y: Any) -> None:
    """Refuse declared classes that are one label in several spellings, unless the labels were read by them."""
    label = Column(
        "label", "categorical", "object", categories=tuple(classes), domain="public", source="declared"
    )
    if not isinstance(y, pd.Series):
        y = pd.Series(dtype=object)
    check_spellings(label, y, "there are the classes")


def found_classes(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the classes that labels have, in order, and each label's position among them, or say what is wrong."""
    from sklearn.utils import assert_all_finite
    from sklearn.utils.multiclass import check_classification_targets

    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    if labels.dtype == object and pd.isna(labels).any():
        raise InputError(f"{int(pd.isna(labels).sum())} rows have no label; drop or label them")
    try:
        check_classification_targets(labels)
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise InputError(
            f"the labels cannot be put in order ({error}); give numbers or text, not both"
        ) from error
    if len(classes) < 2:
        raise InputError(
            f"the labels need to have more than 1 class; got 1 class ({classes.tolist()[0]!r}) instead"
        )
    return classes, codes.astype(np.int64).ravel()


def check_class_count(n_classes: int, n_rows: int, what: str = "the labels have") -> None:
    """Refuse labels that are no classes: names, numbers or codes, of which there are thousands."""
    if n_classes > MOST_CLASSES or (n_rows >= _FEWEST_TO_TELL and n_classes > n_rows // 2):
        raise InputError(
            f"{what} {n_classes} different values in {n_rows} rows; name a column of classes (at most {MOST_CLASSES}, "
            "and no more than half the rows)"
        )


def check_labels(labels: pd.Series) -> None:
    """Refuse labels that are missing, continuous, all alike or nearly all different."""
    if labels.isna().any():
        row = int(np.argmax(labels.isna().to_numpy()))
        raise InputError(
            f"{counted(int(labels.isna().sum()), 'row has', 'rows have')} no label (first: row {row + 1}); "
            "drop or label them"
        )
    from sklearn.utils.multiclass import check_classification_targets

    try:
        with warnings.catch_warnings():
            # Labels that are nearly all different are refused below.
            warnings.filterwarnings("ignore", message="The number of unique classes", category=UserWarning)
            check_classification_targets(labels)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"the labels cannot be used as classes ({error}); give whole numbers, text or booleans"
        ) from error
    n_classes = labels.nunique()
    check_class_count(n_classes, len(labels))
    if n_classes < 2:
        raise InputError(
            f"the labels need to have more than 1 class; got 1 class ({labels.iloc[:1].tolist()[0]!r}) instead"
        )
