"""A part of the people set aside before anything is made, so that a release can be tested against them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.errors import InputError
from oversafe._core.text import did_you_mean, listed
from oversafe.data.rows.values import value_keys


def split_rows(
    table: pd.DataFrame,
    holdout: float = 0.5,
    *,
    unit: str | None = None,
    label: str | None = None,
    random_state: int | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return two random parts of a table: the one that a release is made from, and the one that is held out.

    The test of membership compares people who were in the table with people who were not. It needs both to be drawn
    at random, before anything is made, and it sees most when both are of the same size.

    Parameters
    ----------
    table : DataFrame
        The rows.
    holdout : float
        The share that is held out, of the rows or of the units.
    unit : str, optional
        The column that says whose row it is. All rows of a unit are on one side.
    label : str, optional
        The column of the class: each class is split by itself, so that the rare one is on both sides. A unit counts
        for the class of its first row.
    random_state : int, optional
        For the draw; random by default.

    Returns
    -------
    part, holdout : DataFrame
        Their rows in the order of the table.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"patient": [1, 1, 2, 2, 3, 4], "age": [61, 62, 44, 45, 38, 70]})
    >>> part, others = split_rows(table, unit="patient", random_state=0)
    >>> set(part["patient"]) & set(others["patient"])
    set()
    >>> part["patient"].nunique(), others["patient"].nunique()
    (2, 2)
    """
    if not 0 < holdout < 1:
        raise InputError(f"holdout = {holdout!r} was given; give a share between 0 and 1, such as 0.5")
    for what, name in (("unit", unit), ("label", label)):
        if name is not None and name not in table.columns:
            known = [str(column) for column in table.columns]
            raise InputError(
                f"the table has no column {name!r} for the {what}{did_you_mean(name, known)}; "
                f"its columns are {listed(known)}"
            )
    units = np.arange(len(table)) if unit is None else _codes(table[unit])
    classes = np.zeros(len(table), dtype=np.int64) if label is None else _codes(table[label])
    _, first, of_row = np.unique(units, return_index=True, return_inverse=True)
    rng = np.random.default_rng(random_state)
    out = np.zeros(len(first), dtype=bool)
    for own in np.unique(classes[first]):
        members = np.flatnonzero(classes[first] == own)
        # Half a unit too many is drawn as often as half a unit too few.
        count = math.floor(holdout * len(members) + rng.random())
        out[rng.permutation(members)[:count]] = True
    if out.all() or not out.any():
        what = "rows" if unit is None else f"different {unit!r}"
        raise InputError(
            f"holdout = {holdout!r} of {len(first)} {what} leaves one part empty; give a larger table or another share"
        )
    held = out[of_row]
    return table[~held].reset_index(drop=True), table[held].reset_index(drop=True)


def _codes(values: pd.Series) -> NDArray[np.int64]:
    """Return a number for each value; a missing one is nobody else's."""
    codes = pd.factorize(value_keys(values))[0].astype(np.int64)
    alone = codes < 0
    codes[alone] = codes.max(initial=-1) + 1 + np.arange(int(alone.sum()))
    return codes
