"""Whose row is whose, and how many rows of each person are kept."""

from __future__ import annotations

import re
from numbers import Number
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from oversafe._core.checks import check_count
from oversafe._core.errors import InputError
from oversafe.data.cells import as_date, as_number, read_number
from oversafe.data.domain_warnings import warn_of_persons
from oversafe.data.schema import Schema

_TRUTH_OR_DATE = re.compile(r"true|false|\d{4}-\d{2}-\d{2}([T ].*)?", re.IGNORECASE | re.DOTALL)


def limit_rows(
    persons: Any,
    most: int,
    *,
    dtype: str,
    exact: bool = False,
    random_state: int | np.random.Generator | None = None,
) -> NDArray[np.int64]:
    """Return the positions of the rows that are kept when nobody may have more than ``most`` of them.

    Of a person with more rows, ``most`` are kept at random. What is kept of one person does not depend on the
    others, so a guarantee for a change of ``most`` rows is one for a person. Rows that name nobody are left out.

    Who is who is read off each cell by itself, by what is declared, because the dtype of the column depends on its
    other rows. Ids that are declared as numbers are whole numbers below 2^53: 12, 12.0, "12" and "012" are one
    person. Ids that are declared as text are told apart by their exact text. Text that reads as a number, a boolean or
    a date names nobody: another row may have turned it into one, and then "12.1" and "12.10" are one.

    Parameters
    ----------
    persons : Series or array of shape (n_rows,)
        Whose row each is.
    most : int
        How many rows a person may keep.
    dtype : str
        What the ids are declared as: "int64", or another number; "str", or another text.
    exact : bool, default=False
        Whether the cells were read by that declaration, so that no other row had a part in it: then all text names
        somebody.
    random_state : int or Generator, optional
        Makes the choice repeatable, for experiments.
    """
    check_count("rows_per_person", most)
    numbers = _are_numbers(dtype)
    codes = _person_codes(pd.Series(persons).reset_index(drop=True), numbers, exact)
    warn_of_persons(codes, numbers=numbers, exact=exact, stacklevel=4)
    # Without a seed numpy takes its entropy from the operating system.
    lot = np.random.default_rng(random_state).random(len(codes))
    order = np.lexsort((lot, codes))
    ranked = codes[order]
    first = np.searchsorted(ranked, ranked, side="left")
    # If the nameless shared some rows, one more among them would move another's row out.
    return np.sort(order[(np.arange(len(codes)) - first < most) & (ranked >= 0)])


def check_persons(who: str, schema: Schema | None, rows: int | None, *, takes_persons: bool) -> None:
    """Refuse a person without a bound, a bound without a person, and a person where only records are protected.

    Parameters
    ----------
    who : str
        The method, for the sentence.
    schema : Schema or None
        As declared.
    rows : int or None
        How many rows of a person are used.
    takes_persons : bool
        Whether the method has a promise for persons.
    """
    person = None if schema is None else schema.person
    if rows is not None:
        check_count("rows_per_person", rows)
    if person is None and rows is not None:
        raise InputError(
            f"rows_per_person = {rows} was given, and no column says whose row each is; name it in the schema "
            "(person = ...)"
        )
    if schema is None or person is None:
        return
    whose = f"the schema says whose row each is ({person!r})"
    per_record = "remove person from the schema, and the promise is for every record"
    if not takes_persons:
        raise InputError(
            f"{whose}, and {who} promises for every record only; use a synthesizer that has rows_per_person, such as "
            f"PrivateMixture ('mixture' on the command line), or {per_record}"
        )
    if rows is None:
        raise InputError(
            f"{whose}, and no bound on the rows of a person was given; give --rows-per-person N (rows_per_person=N in "
            f"Python, Rows per person on the page), or {per_record}"
        )
    dtype = types.pandas_dtype(schema[person].dtype)
    if not (_are_numbers(str(dtype)) or types.is_string_dtype(dtype) or dtype == "category"):
        raise InputError(
            f"the person column {person!r} is declared as {dtype}; ids are whole numbers (dtype = 'int64') or text "
            "(dtype = 'str')"
        )


def _are_numbers(dtype: str) -> bool:
    return types.is_any_real_numeric_dtype(types.pandas_dtype(dtype))


def _person_codes(ids: pd.Series, numbers: bool, exact: bool) -> NDArray[np.int64]:
    """Return a number for each row that is the same for the rows of one person, and -1 where nobody is named."""
    places, distinct = (np.arange(len(ids)), ids) if ids.dtype == object else pd.factorize(ids)
    found: dict[int | str | None, int] = {None: -1}
    keys = (_whole_number(value) if numbers else _text(value, exact) for value in distinct)
    codes = [found.setdefault(key, len(found)) for key in keys]
    return np.array([*codes, -1], dtype=np.int64)[places]


def _whole_number(value: Any) -> int | None:
    """Return the whole number that a cell is or reads as; None from 2^53 on, where floats round to each other."""
    if isinstance(value, bool | np.bool_ | np.timedelta64) or not isinstance(value, Number | str):
        return None
    number = read_number(value) if isinstance(value, str) else as_number(value)
    return int(number) if number.is_integer() and abs(number) < 2**53 else None


def _text(value: Any, exact: bool) -> str | None:
    """Return the text of a cell; None where it has none, or another row may have had it stored otherwise."""
    text = str(value) if isinstance(value, str | UUID) else ""
    if not text.strip():
        return None
    return text if exact or not _may_be_stored_otherwise(text.strip()) else None


def _may_be_stored_otherwise(text: str) -> bool:
    if _TRUTH_OR_DATE.fullmatch(text) or as_date(text, "day first") is not pd.NaT:
        return True
    if any(read_number(text, sign) == read_number(text, sign) for sign in ".,"):
        return True
    try:
        # Also with commas, which readers are told to take for points or for nothing.
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True
