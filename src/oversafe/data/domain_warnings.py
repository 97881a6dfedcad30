"""Where the rows do not fit what was declared: told to whoever holds them, and no part of a release."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.text import counted, listed, shorten
from oversafe.data.column import Column
from oversafe.data.encode import outside_domain
from oversafe.data.io.declared import OddCells
from oversafe.data.schema import Schema

# Whether most values of a column are outside shows in a part of the rows.
_ROWS = 10_000
# Beyond this share of its values a range is wrong, rather than the values rare.
_A_FEW = 0.05
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
        many = outside > _A_FEW * present
        sentences.append(
            f"column {shorten(column.name, 60)!r} has {share} of its values outside of {declared}; "
            f"{_what_of_many(column) if many else _what_of_a_few(column)}"
        )
    return sentences


def _what_of_a_few(column: Column) -> str:
    """Return that all is well: a range that is fitted to the rows would tell of them."""
    fine = f"under differential privacy they count as {_stand_in(column)}, which is fine"
    if column.domain != "public":
        return fine
    what = "the categories" if column.is_category else "the range"
    return f"{fine}: do not fit {what} to the data, or the proof fails"


def _what_of_many(column: Column) -> str:
    wrong, them = (
        ("the categories seem to be wrong, in their spelling perhaps", "them")
        if column.is_category
        else ("the range seems to be wrong, in its unit perhaps", "it")
    )
    source = (
        f"from the source that is named ({shorten(column.source, 60)!r})"
        if column.source
        else "by what is known"
    )
    return (
        f"{wrong}; correct {them} {source}, not by the data: under differential privacy these values count as "
        f"{_stand_in(column)}"
    )


def _stand_in(column: Column) -> str:
    """Return what a value outside counts as."""
    if not column.is_category:
        return "the nearest end of the range"
    if column.missing or not column.categories:
        return "missing"
    return repr(shorten(str(column.stand_in), 60))


def warn_of_cells(odd: OddCells, stacklevel: int = 2) -> None:
    """Warn of cells that a declaration cannot read."""
    warnings.warn(odd.sentence() + _FOR_THE_HOLDER, MisfitWarning, stacklevel=stacklevel + 1)


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


def warn_of_labels(label: Column, places: NDArray[Any], labels: pd.Series, stacklevel: int = 2) -> None:
    """Warn of labels that are no declared class, whose place is below 0 or missing, and of classes without a row."""
    known, classes = places >= 0, label.categories or ()
    empty = np.flatnonzero(np.bincount(places[known].astype(np.int64), minlength=len(classes)) == 0)
    # As text: what is no label may be a list, and an error would tell of it.
    odd = list(dict.fromkeys(_text(label) for label in labels[~known].head(_ROWS)))
    if not len(empty) and not odd:
        return
    found = []
    if odd:
        found.append(
            f"{counted(int((~known).sum()), 'row')} with the labels {listed(odd)}, which are not declared, "
            f"count as {shorten(str(label.stand_in), 60)!r}"
        )
    if len(empty):
        found.append(f"no row is itself labelled {listed([str(classes[i]) for i in empty.tolist()])}")
    warnings.warn(
        " and ".join(found) + "; check the classes" + _FOR_THE_HOLDER,
        MisfitWarning,
        stacklevel=stacklevel + 1,
    )


def warn_of_persons(codes: NDArray[np.int64], *, numbers: bool, exact: bool, stacklevel: int = 2) -> None:
    """Warn of rows that name nobody, whose code is below 0; what names nobody depends on what ids are declared as."""
    if not (nameless := int((codes < 0).sum())):
        return
    what, remedy = " that is text", "fill in the ids"
    if numbers:
        what = " that is a whole number below 2^53"
        remedy += ", and declare them as text (dtype = 'str') if they are no such numbers"
    elif not exact:
        what += " and does not read as a number, a boolean or a date"
        remedy += ", declare them as int64 if they are whole numbers, or read the file with read_table and this schema"
    warnings.warn(
        f"{counted(nameless, 'row')} without a person's id{what} cannot be limited by person and are left out; "
        f"{remedy}{_FOR_THE_HOLDER}",
        MisfitWarning,
        stacklevel=stacklevel + 1,
    )


def _text(label: Any) -> str:
    try:
        return str(label)
    except Exception:
        return f"a {type(label).__name__}"
