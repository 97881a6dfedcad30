"""Reading a column's kind and domain off its values."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api import types

from oversafe._core.errors import InputError
from oversafe._core.text import shorten
from oversafe.data.column import RESOLUTIONS, Column
from oversafe.data.infer_objects import settle_column

if TYPE_CHECKING:
    from oversafe.data.schema import Schema

# A column below this many values is too short to tell a code from a name.
_FEWEST_FOR_NAMES = 20
_MOST_DECIMALS = 12
_FIRST_ROWS = 1000
# The mean of a column's texts from which they read as sentences.
_WORDS, _LETTERS = 4, 25
# Numbers of persons are many; a code of which there are fewer in a row is a category.
_FEWEST_OF_A_CODE = 0.1
_ID_NAME = re.compile(
    r"(^|[_\W])(id|ids|uuid|guid|key|nr|no|num|number|code|ssn|mrn|nhs|iban|account|passport|e?mail|phone|tel)$"
    r"|^id([_\W]|$)|[a-z]I[Dd]$",
    re.IGNORECASE,
)
_ID_VALUE = re.compile(
    r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"  # UUID
    r"|^[^@\s]+@[^@\s]+\.[a-z]{2,}$"  # e-mail
    r"|^\+?[\d ()/-]{7,}$",  # telephone or card number
    re.IGNORECASE,
)


def infer_column(name: str, values: pd.Series, *, is_label: bool = False, is_person: bool = False) -> Column:
    """Return what a column seems to be; its domain is what the values show."""
    if not (is_person or is_label):
        values = settle_column(values)
    dtype = str(values.dtype)
    present = values.dropna()
    missing = len(present) < len(values)
    if is_person:
        return Column(name, "identifier", dtype, missing=missing)
    if is_label:
        return _category(name, values, present, missing)
    if isinstance(values.dtype, pd.CategoricalDtype):
        if _names_rows(name, present) and not values.dtype.ordered:
            return Column(name, "identifier", dtype, missing=missing)
        return _category(name, values, present, missing)
    if types.is_bool_dtype(values.dtype):
        return Column(name, "boolean", dtype, missing=missing, categories=(False, True))
    if types.is_datetime64_any_dtype(values.dtype):
        return _datetime(name, dtype, present, missing)
    if types.is_complex_dtype(values.dtype) or types.is_timedelta64_dtype(values.dtype):
        raise InputError(f"column {name!r} holds {dtype} values; convert them to plain numbers first")
    if types.is_numeric_dtype(values.dtype):
        return _number(name, dtype, present, missing)
    return _text(name, values, present, missing)


def doubts(schema: Schema, table: pd.DataFrame | None = None) -> list[str]:
    """Return sentences about columns that only a person can judge: empty, sentences, names or numbers of persons.

    Also about those that are declared public: whoever declares many at once may not have read each. Without a table
    the schema's own entries are looked at.
    """
    found = []
    for column in schema:
        if column.name in (schema.label, schema.person):
            continue
        if column.is_category and _are_sentences(column.categories or ()):
            found.append(_of_sentences(column))
        elif table is not None and column.name in table.columns:
            sentence = _of_values(column, table[column.name].dropna(), schema.person is None)
            found += [] if sentence is None else [sentence]
    return found


def _of_sentences(column: Column) -> str:
    name, quoted = repr(shorten(column.name, 60)), shlex.quote(column.name)
    if column.domain == "data":
        return (
            f"column {name} holds texts of several words; if they are free text, which may name people, leave it "
            f"out with --drop {quoted}"
        )
    return (
        f"column {name} lists texts of several words as its {column.domain} categories, and a release holds them word "
        f"for word, whatever it proves; unless they are a published list of codes, leave it out with --drop {quoted}"
    )


def _of_values(column: Column, values: pd.Series, nobody_named: bool) -> str | None:
    name, quoted = repr(shorten(column.name, 60)), shlex.quote(column.name)
    if not len(values):
        return (
            f"column {name} is empty; leave it out with --drop {quoted}" if column.domain == "data" else None
        )
    if _names_people_after_all(column, values):
        return (
            f"column {name} is declared {column.kind}, and nearly every row has a value of its own, as names and "
            f"numbers of persons have; if they are such, leave it out with --drop {quoted}"
        )
    named = column.kind == "identifier" or (column.kind != "continuous" and _ID_NAME.search(column.name))
    several = max(_FEWEST_FOR_NAMES, _FEWEST_OF_A_CODE * len(values)) <= values.nunique() < len(values)
    if not nobody_named or not named or not several:
        return None
    how = (
        f"name it with oversafe schema init --person {quoted}"
        if column.domain == "data"
        else f"write person = {json.dumps(column.name, ensure_ascii=False)} at the top of the schema"
    )
    return f"column {name} seems to say whose row it is, and some have several rows; if so, {how}"


def _names_people_after_all(column: Column, values: pd.Series) -> bool:
    """Whether a column would be taken for identifiers or free text, had nobody declared another kind."""
    if column.kind == "integer" and types.is_integer_dtype(values.dtype):
        return _numbers_rows(column.name, values.to_numpy())
    if column.kind not in ("categorical", "ordinal") or len(values) < _FEWEST_FOR_NAMES:
        return False
    return _names_rows(column.name, values) or values.nunique() > max(50, len(values) // 2)


def _are_sentences(categories: tuple[Any, ...]) -> bool:
    texts = [text for text in categories if isinstance(text, str)]
    if not texts:
        return False
    words, letters = (sum(map(measure, texts)) / len(texts) for measure in (lambda t: len(t.split()), len))
    return words >= _WORDS and letters >= _LETTERS


def _number(name: str, dtype: str, present: pd.Series, missing: bool) -> Column:
    if types.is_integer_dtype(present.dtype):
        numbers = present.to_numpy()
        whole = True
    else:
        numbers = present.to_numpy(dtype=np.float64)
        numbers = numbers[np.isfinite(numbers)]
        whole = bool(len(numbers)) and bool(np.all(numbers == np.rint(numbers)))
    if len(numbers) == 0:
        return Column(
            name, "integer" if types.is_integer_dtype(dtype) else "continuous", dtype, missing=missing
        )
    low, high = numbers.min(), numbers.max()
    if whole and low == 0 and high == 1 and len(numbers) == len(present):
        values = (0, 1) if types.is_integer_dtype(present.dtype) else (0.0, 1.0)
        return Column(name, "boolean", dtype, missing=missing, categories=values)
    if whole and types.is_integer_dtype(present.dtype) and int(high) >= 2**63:
        # Twenty digits count nothing; they are somebody's number.
        return Column(name, "identifier", dtype, missing=missing)
    if whole and max(abs(int(low)), abs(int(high))) < 2**63:
        if _numbers_rows(name, numbers):
            return Column(name, "identifier", dtype, missing=missing)
        return Column(name, "integer", dtype, missing=missing, bounds=(int(low), int(high)))
    return Column(
        name,
        "continuous",
        dtype,
        missing=missing,
        bounds=(float(low), float(high)),
        decimals=count_decimals(numbers),
    )


def count_decimals(numbers: np.ndarray) -> int | None:
    """Return how many decimal places the numbers are written with, or None for full precision."""
    return column_decimals(numbers[:, None])[0]


def column_decimals(numbers: np.ndarray) -> list[int | None]:
    """Return with how many decimal places the numbers of each column are written, or None for full precision."""
    found: list[int | None] = [None] * numbers.shape[1]
    finite = np.isfinite(numbers)
    largest = np.abs(numbers).max(axis=0, initial=1.0, where=finite)
    # Beyond 15 significant digits every float looks rounded.
    most = np.where(finite.any(axis=0), np.minimum(_MOST_DECIMALS, 15 - np.ceil(np.log10(largest))), -1)
    # Columns that have more show it by their first rows.
    scale = 10.0 ** np.maximum(most, 0)
    own = numbers[:_FIRST_ROWS]
    with np.errstate(over="ignore", invalid="ignore"):
        fits = (np.rint(own * scale) / scale == own) | ~finite[:_FIRST_ROWS]
    most[~fits.all(axis=0)] = -1
    parts = [slice(_FIRST_ROWS), slice(None)] if len(numbers) > _FIRST_ROWS else [slice(None)]
    for decimals in range(int(most.max(initial=-1)) + 1):
        open_ = np.flatnonzero(most >= decimals)
        for rows in parts:
            own = numbers[rows, open_]
            fits = (np.round(own, decimals) == own) | ~finite[rows, open_]
            open_ = open_[fits.all(axis=0)]
        for column in open_:
            found[column] = decimals
        most[open_] = -1
    return found


def _datetime(name: str, dtype: str, present: pd.Series, missing: bool) -> Column:
    if len(present) == 0:
        return Column(name, "datetime", dtype, missing=missing, resolution="D")
    # In UTC: a local midnight that daylight saving moves is still a whole number of hours.
    stamps = present.dt.tz_convert("UTC").dt.tz_localize(None) if present.dt.tz is not None else present
    resolution = next(unit for unit in RESOLUTIONS if (stamps.dt.floor(unit) == stamps).all())
    return Column(
        name, "datetime", dtype, missing=missing, bounds=(present.min(), present.max()), resolution=resolution
    )


def _category(name: str, values: pd.Series, present: pd.Series, missing: bool) -> Column:
    ordered = False
    if isinstance(values.dtype, pd.CategoricalDtype):
        ordered = bool(values.dtype.ordered)
        categories = tuple(values.dtype.categories.tolist())
    else:
        try:
            categories = tuple(pd.Series(present.unique()).sort_values().tolist())
        except TypeError:
            raise InputError(_mixed(name, present)) from None
    if types.is_float_dtype(values.dtype) and not np.isfinite(np.asarray(categories, dtype=float)).all():
        raise InputError(f"column {name!r} holds infinite values; replace them")
    return Column(
        name,
        "ordinal" if ordered else "categorical",
        str(values.dtype),
        missing=missing,
        categories=categories,
    )


def _text(name: str, values: pd.Series, present: pd.Series, missing: bool) -> Column:
    if values.dtype != object and not types.is_string_dtype(values.dtype):
        raise InputError(
            f"column {name!r} holds {values.dtype} values; convert them to numbers, text or dates"
        )
    kinds = {type(v) for v in present} if values.dtype == object else {str}
    if kinds and kinds <= {bool, np.bool_}:
        return Column(name, "boolean", "object", missing=missing, categories=(False, True))
    if kinds and kinds != {str}:
        raise InputError(_mixed(name, present))
    if len(present) >= _FEWEST_FOR_NAMES:
        if _names_rows(name, present):
            words = present.str.count(r"\s+").mean() + 1
            return Column(name, "text" if words >= 2.5 else "identifier", str(values.dtype), missing=missing)
        if present.nunique() > max(50, len(present) // 2):
            return Column(name, "text", str(values.dtype), missing=missing)
    return _category(name, values, present, missing)


def _mixed(name: str, present: pd.Series) -> str:
    first = present.iloc[0]
    other = next((v for v in present if type(v) is not type(first)), first)
    what = (
        f"mixes {type(first).__name__} and {type(other).__name__} values (first: {first!r} and {other!r})"
        if other is not first
        else f"holds {type(first).__name__} values"
    )
    return f"column {name!r} {what}; convert it to one kind: numbers, text, booleans or dates"


def _names_rows(name: str, present: pd.Series) -> bool:
    """Whether a text column has (almost) a value of its own for every row."""
    if len(present) < _FEWEST_FOR_NAMES:
        return False
    distinct = present.nunique()
    if distinct >= 0.95 * len(present):
        return True
    if distinct < max(_FEWEST_FOR_NAMES, 0.5 * len(present)):
        return False
    sample: Any = present.astype(str).head(200)
    return bool(_ID_NAME.search(name)) or bool(sample.str.match(_ID_VALUE).mean() > 0.9)


def _numbers_rows(name: str, numbers: np.ndarray) -> bool:
    """Whether whole numbers count the rows or are registration numbers."""
    if len(numbers) < _FEWEST_FOR_NAMES or len(np.unique(numbers)) < len(numbers):
        return False
    if _ID_NAME.search(name):
        return True
    span = int(numbers.max()) - int(numbers.min())
    return span == len(numbers) - 1 and bool((np.diff(numbers) > 0).all())
