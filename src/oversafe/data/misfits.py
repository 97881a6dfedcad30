"""Where the rows do not fit what was declared: told to whoever holds them, and no part of a release."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe.data.encode import outside_domain
from oversafe.data.schema import Schema
from oversafe.text import counted, listed, shorten

# Whether most values of a column are outside shows in a part of the rows.
_ROWS = 10_000
_FOR_THE_HOLDER = "; this tells of the data without noise, so keep it to yourself"


class MisfitWarning(UserWarning):
    """Rows do not fit what was declared: labels that are no class, a class without a row, values beyond a range.

    It is for whoever holds the data: it tells of them without noise, and is no part of a release. A fit goes on, since
    an error would be part of what others see.
    """


def column_misfits(schema: Schema, table: pd.DataFrame, least: float = 0.0) -> list[str]:
    """Return a sentence for each column of which more than a share of the values is outside of what is declared."""
    sentences = []
    for column in schema:
        if column.names_people or column.name not in table.columns:
            continue
        values = table[column.name]
        if pd.api.types.is_float_dtype(values.dtype):
            # Refused by themselves, in other words.
            values = values.replace([np.inf, -np.inf], np.nan)
        present = int(values.notna().sum())
        outside = int(outside_domain(column, values).sum())
        if outside <= least * present:
            continue
        low, high = column.bounds or (None, None)
        declared = "the declared categories" if column.is_category else f"the declared range {low} to {high}"
        share = f"{outside / present:.0%}" if outside >= 0.01 * present else "less than 1%"
        sentences.append(
            f"column {shorten(column.name, 60)!r} has {share} of its values outside of {declared}; correct the "
            "schema, unless they are to count as its nearest value or as missing"
        )
    return sentences


def warn_of_columns(schema: Schema, table: pd.DataFrame, stacklevel: int = 2) -> None:
    """Warn of columns most values of which are outside of what is declared."""
    part = table.iloc[:: max(1, len(table) // _ROWS)]
    for column in schema:
        try:
            sentences = column_misfits(Schema((column,)), part, least=0.5)
        except Exception:
            # Whatever a record holds: an error would tell of it, and the fit does without this.
            continue
        for sentence in sentences:
            warnings.warn(sentence + _FOR_THE_HOLDER, MisfitWarning, stacklevel=stacklevel + 1)


def warn_of_labels(
    classes: Sequence[Any], places: NDArray[Any], labels: pd.Series, stacklevel: int = 2
) -> None:
    """Warn of labels that are no declared class, whose place is below 0 or missing, and of classes without a row."""
    known = places >= 0
    empty = np.flatnonzero(np.bincount(places[known].astype(np.int64), minlength=len(classes)) == 0)
    # As text: what is no label may be a list, and an error would tell of it.
    odd = list(dict.fromkeys(_text(label) for label in labels[~known].head(_ROWS)))
    if not len(empty) and not odd:
        return
    found = []
    if odd:
        found.append(
            f"{counted(int((~known).sum()), 'row')} with the labels {listed(odd)}, which are not declared, "
            f"count as {shorten(str(classes[0]), 60)!r}"
        )
    if len(empty):
        found.append(
            f"no row has a label that is declared: {listed([str(classes[i]) for i in empty.tolist()])}"
        )
    warnings.warn(
        " and ".join(found) + "; check the classes" + _FOR_THE_HOLDER,
        MisfitWarning,
        stacklevel=stacklevel + 1,
    )


def _text(label: Any) -> str:
    try:
        return str(label)
    except Exception:
        return f"a {type(label).__name__}"
