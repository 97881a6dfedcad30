"""What a value is, however it is stored or spelt, in tables of which nothing is declared."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from oversafe.data.cells import cell_key
from oversafe.data.cells.grammar import CODE

_CODE = re.compile(CODE)


def value_key(value: Any) -> str | None:
    """Return a value as text that does not depend on how it is stored; None for what is missing or no value.

    1, 1.0, True, "1" and "1.0" are the same category: which of them a column holds depends on its other
    rows (one missing value turns whole numbers into floats), and on whether it came from a CSV file. A text is what
    the grammar of cells says; "007" is a code and stays one.
    """
    return value if isinstance(value, str) and _CODE.match(value) else cell_key(value)


def keys_of(values: pd.Series) -> NDArray[Any]:
    """Return a key for each value, None where it is missing; values that are no text, number or date read alike."""
    if values.dtype == object and types.infer_dtype(values, skipna=True) == "string":
        # As a column of strings each distinct value is looked at once; half of a character is no text for pandas.
        with suppress(UnicodeEncodeError):
            values = values.astype("str")
    keys = value_keys(values).to_numpy(copy=True)
    for row in np.flatnonzero(pd.isna(keys) & values.notna().to_numpy()):
        keys[row] = repr(values.iloc[row])
    return keys


def value_keys(values: pd.Series) -> pd.Series:
    """Return :func:`value_key` of each value; every value is treated by itself."""
    if values.dtype == object:
        return pd.Series([value_key(value) for value in values], index=values.index, dtype=object)
    codes, distinct = pd.factorize(values)
    keys = np.array([*(value_key(value) for value in distinct), None], dtype=object)
    return pd.Series(keys[codes], index=values.index, dtype=object)
