"""Columns of zeros and ones that say one thing together, and the category that they say."""

from __future__ import annotations

import numpy as np
import pandas as pd

from oversafe._core.errors import InputError


def fold_one_hot(table: pd.DataFrame, separator: str = "_") -> pd.DataFrame:
    """Return the table with one-hot columns folded back into categories.

    Columns named ``attribute_value`` that hold zeros and ones, exactly one of them a one in every row, become one
    column ``attribute`` in the place of the first. Synthesizers that count see one category instead of many
    columns, and never make a row that belongs to two.

    Parameters
    ----------
    table : DataFrame
        Other columns are left as they are.
    separator : str, default="_"
        Between attribute and value; the last one in a name counts.

    Examples
    --------
    >>> import pandas as pd
    >>> from oversafe.data import fold_one_hot
    >>> fold_one_hot(pd.DataFrame({"size_s": [1, 0], "size_l": [0, 1], "age": [3, 4]}))
      size  age
    0    s    3
    1    l    4
    """
    if not separator:
        raise InputError(
            "an empty separator was given; give the text between attribute and value, such as '_'"
        )
    folded, gone = {}, set()
    for attribute, names in one_hot_groups(table, separator).items():
        values = [name.rpartition(separator)[2] for name in names]
        codes = table[names].to_numpy(dtype=np.float64).argmax(axis=1)
        categories = pd.Categorical.from_codes(codes, values)
        folded[names[0]] = pd.Series(categories, index=table.index, name=attribute)
        gone.update(names[1:])
    columns = [folded.get(name, table[name]) for name in table.columns if name not in gone]
    return pd.concat(columns, axis=1) if columns else table.copy()


def one_hot_groups(table: pd.DataFrame, separator: str = "_") -> dict[str, list[str]]:
    """Return the columns of each attribute that stands in a table one-hot; see :func:`fold_one_hot`."""
    groups: dict[str, list[str]] = {}
    for name in table.columns:
        if isinstance(name, str) and separator in name and _is_hot(table[name]):
            groups.setdefault(name.rpartition(separator)[0], []).append(name)
    # Two columns are a pair of answers only if both say so; and a name in use stays what it is.
    return {
        attribute: names
        for attribute, names in groups.items()
        if len(names) > 1
        and attribute
        and attribute not in table.columns
        and (table[names].to_numpy(dtype=np.float64).sum(axis=1) == 1).all()
    }


def _is_hot(column: pd.Series) -> bool:
    try:
        return bool(column.isin([0, 1]).all())
    except TypeError:  # cells that are lists, say
        return False
