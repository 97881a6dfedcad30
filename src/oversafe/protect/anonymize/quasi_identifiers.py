"""Which columns single people out: rows that share their combination of values with few others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.checks import check_count
from oversafe._core.errors import InputError
from oversafe._core.text import listed
from oversafe.data.encode import column_codes
from oversafe.data.schema import Schema, check_table

IntArray = NDArray[np.int64]
SUGGESTED = "the quasi-identifiers were suggested from the data; an outsider may know other columns"


def suggest_quasi_identifiers(
    X: pd.DataFrame,
    *,
    k_anonymity: int = 3,
    max_columns: int = 4,
    n_sets: int = 20,
    schema: Schema | None = None,
) -> pd.DataFrame:
    """Return sets of columns, those that single out most rows first.

    A row is singled out when fewer than ``k_anonymity`` rows share its values in the set. Larger sets never
    single out fewer rows, so of sets that do equally much the smaller stands first, and nothing is added
    to a set that singles out every row. The most telling sets of each size are grown by every column; with
    many columns that may miss a set whose parts say little.

    Parameters
    ----------
    X : DataFrame
        The table, without its label.
    k_anonymity : int, default=3
        How many rows must share a combination for it to be safe.
    max_columns : int, default=4
        How many columns an outsider may know.
    n_sets : int, default=20
        How many sets to return at most, and to grow at each size.
    schema : Schema, optional
        What the columns are; read from the table when not given.

    Returns
    -------
    DataFrame
        With the columns ``columns`` (a tuple of names), ``rows`` (how many are singled out), ``share`` and
        ``unique`` (how many stand alone).

    Examples
    --------
    >>> import pandas as pd
    >>> from oversafe.protect import suggest_quasi_identifiers
    >>> X = pd.DataFrame({"sex": list("mmmfffff"), "age": [30, 30, 30, 41, 41, 41, 77, 77]})
    >>> suggest_quasi_identifiers(X).head(2)[["columns", "rows"]].to_dict("records")
    [{'columns': ('age',), 'rows': 2}, {'columns': ('sex', 'age'), 'rows': 2}]
    """
    check_table(X)
    check_count("k_anonymity", k_anonymity, 2)
    check_count("max_columns", max_columns, 1)
    check_count("n_sets", n_sets, 1)
    table = X.set_axis([str(name) for name in X.columns], axis=1)
    schema = Schema.infer(table) if schema is None else schema.features
    schema = schema.drop(schema.naming_columns)
    if not len(schema):
        raise InputError("every column holds identifiers or free text; drop them, and keep columns to rank")
    values = [dense_ids(column_codes(c, table[c.name])) for c in schema]
    found = ranked_sets(values, k_anonymity, max_columns, n_sets)[:n_sets]
    names = schema.names
    return pd.DataFrame(
        {
            "columns": [tuple(names[i] for i in members) for members, _, _ in found],
            "rows": [rows for _, rows, _ in found],
            "share": [rows / len(table) for _, rows, _ in found],
            "unique": [unique for _, _, unique in found],
        }
    )


def ranked_sets(
    values: Sequence[IntArray], k: int, max_columns: int, beam: int
) -> list[tuple[tuple[int, ...], int, int]]:
    """Return sets of columns with the rows that they single out and those that stand alone, most first."""
    n = len(values[0])
    ids: dict[tuple[int, ...], IntArray] = {(): np.zeros(n, dtype=np.int64)}
    found: dict[tuple[int, ...], tuple[int, int]] = {}
    for _ in range(min(max_columns, len(values))):
        grown: dict[tuple[int, ...], IntArray] = {}
        for members, own in ids.items():
            if found.get(members, (0, 0))[0] == n:
                continue
            for i, column in enumerate(values):
                larger = tuple(sorted({*members, i}))
                if i in members or larger in grown:
                    continue
                grown[larger] = refine(own, column)
                sizes = np.bincount(grown[larger])
                found[larger] = int(sizes[sizes < k].sum()), int((sizes == 1).sum())
                if len(grown) > 4 * beam:
                    # The codes of a set take as much memory as a column; only the best are grown further.
                    grown = _best(grown, found, beam)
        ids = _best(grown, found, beam)
    return sorted(
        ((members, *counts) for members, counts in found.items()),
        key=lambda item: (-item[1], len(item[0]), item[0]),
    )


def _best(
    sets: dict[tuple[int, ...], IntArray], found: dict[tuple[int, ...], tuple[int, int]], beam: int
) -> dict[tuple[int, ...], IntArray]:
    return {m: sets[m] for m in sorted(sets, key=lambda m: (-found[m][0], m))[:beam]}


def dense_ids(codes: NDArray[Any]) -> IntArray:
    """Return a whole number from 0 for each distinct value; missing values are one of them."""
    return np.asarray(pd.factorize(codes, use_na_sentinel=False)[0], dtype=np.int64)


def refine(ids: IntArray, column: IntArray) -> IntArray:
    """Return the ids of the groups that agree in both."""
    return dense_ids(ids * (int(column.max()) + 1) + column)


def group_ids(columns: Sequence[NDArray[Any]]) -> IntArray:
    """Return the same id for rows that agree in every column."""
    ids = np.zeros(len(columns[0]), dtype=np.int64)
    for codes in columns:
        ids = refine(ids, dense_ids(codes))
    return ids


def group_sizes(columns: Sequence[NDArray[Any]]) -> IntArray:
    """Return how many rows agree with each in every column, itself included."""
    ids = group_ids(columns)
    return np.bincount(ids)[ids]


def telling_set(codes: Sequence[NDArray[np.float64]], k: int) -> list[int]:
    """Return the set of up to four columns that singles out most rows, grown column by column."""
    # One set is grown, which is quick, and singles out nearly as many rows as the best.
    return list(ranked_sets([dense_ids(column) for column in codes], k, 4, 1)[0][0])


def chosen_columns(given: Sequence[Any], schema: Schema) -> list[int]:
    """Return the positions of the quasi-identifiers that were given by name or by position."""
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray | pd.Index):
        raise InputError(f"quasi_identifiers = {given!r} was given; give a list of columns")
    names = list(schema.names)
    positions = []
    for item in given:
        if str(item) in names:
            position = names.index(str(item))
        elif isinstance(item, int | np.integer) and 0 <= int(item) < len(names):
            position = int(item)
        else:
            raise InputError(
                f"the quasi-identifier {item!r} is not a column of the table; it has {listed(names)}"
            )
        if position not in positions:
            positions.append(position)
    if not positions:
        raise InputError("quasi_identifiers is empty; name at least one column, or leave it out")
    return positions
