"""Whose row is whose, and how many rows of each person are kept."""

from __future__ import annotations

import re
from datetime import date
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe.data.column import as_number, value_key
from oversafe.data.misfits import warn_of_persons
from oversafe.privacy.accountant import check_neighbours


def limit_rows(
    persons: Any, most: int, *, random_state: int | np.random.Generator | None = None
) -> NDArray[np.int64]:
    """Return the positions of the rows that are kept when nobody may have more than ``most`` of them.

    Of a person with more rows, ``most`` are kept at random. What is kept of one person does not depend on the
    others, so a guarantee for a change of ``most`` rows is one for a person. Rows that name nobody are left out, and
    so are those whose id is a number of 2^53 or more: one missing id turns such a column into floats, in which these
    people fall together. Long numbers are told apart as text.

    Parameters
    ----------
    persons : Series or array of shape (n_rows,)
        Whose row each is.
    most : int
        How many rows a person may keep.
    random_state : int or Generator, optional
        Makes the choice repeatable, for experiments.
    """
    check_neighbours("replace-one", "person", most)
    codes = _person_codes(pd.Series(persons).reset_index(drop=True))
    warn_of_persons(codes, stacklevel=4)
    # Without a seed numpy takes its entropy from the operating system.
    lot = np.random.default_rng(random_state).random(len(codes))
    order = np.lexsort((lot, codes))
    ranked = codes[order]
    first = np.searchsorted(ranked, ranked, side="left")
    # If the nameless shared some rows, one more among them would move another's row out.
    return np.sort(order[(np.arange(len(codes)) - first < most) & (ranked >= 0)])


def _person_codes(ids: pd.Series) -> NDArray[np.int64]:
    """Return a number for each row that is the same for the rows of one person, and -1 where nobody is named."""
    places, distinct = (np.arange(len(ids)), ids) if ids.dtype == object else pd.factorize(ids)
    numbers: dict[str | None, int] = {None: -1}
    codes = [numbers.setdefault(_person_key(value), len(numbers)) for value in distinct]
    return np.array([*codes, -1], dtype=np.int64)[places]


def _person_key(value: Any) -> str | None:
    """Return whose row it is, as text that does not depend on how the ids are stored; None if that cannot be told.

    One missing id turns a column of whole numbers into floats, in which those from 2^53 on are rounded to each other.
    So such a number says whose row it is in neither form.
    """
    if isinstance(value, str):
        # Only whole numbers as they are printed: as text, long ones are told apart, and "1.10" is not "1.1".
        whole = re.fullmatch(r"(-?(?:0|[1-9]\d{0,15}))(?:\.0)?", value)
        return str(int(whole[1])) if whole and abs(int(whole[1])) < 2**53 else value
    if isinstance(value, Number | np.bool_):
        return value_key(value) if abs(as_number(value)) < 2**53 else None
    if value is None or value is pd.NA or isinstance(value, date | np.datetime64):
        return value_key(value)
    try:
        return repr(value)
    except Exception:
        # Whatever the value's own methods raise: an error would tell of the record.
        return None
