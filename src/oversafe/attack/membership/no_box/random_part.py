"""Is the holdout a random part of the people, as the test of membership takes for granted?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oversafe.attack.membership.no_box import _kernels
from oversafe.attack.membership.no_box.comparable import Comparable
from oversafe.attack.membership.no_box.exact import choices, p_values, percentiles, strata_of

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_NEIGHBORS = 5
# So many of a column's categories are looked at, the most frequent.
_MOST = 20


def random_part(
    tables: Comparable, member: BoolArray, *, n_choices: int = 1_999, random_state: int = 0
) -> float:
    """Return the p-value of real rows and held-out rows being one population, whatever was released.

    The statistics are the means of each column and category, in either direction, and how often neighbors are on the
    same side; their smallest p-value is held against that of random choices, as in the test of membership.

    Parameters
    ----------
    tables : Comparable
        The pool; the release has no part.
    member : array of bool
        Which rows are of the real table.
    n_choices : int
        How many choices are drawn.
    random_state : int
        For the choices.
    """
    _, unit_of = np.unique(tables.units, return_inverse=True)
    n_units = int(unit_of.max()) + 1
    chosen = np.zeros(n_units, dtype=bool)
    chosen[unit_of[member]] = True
    columns = _columns(tables)
    sums = np.zeros((n_units, columns.shape[1]))
    np.add.at(sums, unit_of, columns)
    first, second = _pairs(tables)
    first, second = unit_of[first], unit_of[second]
    values = np.empty((n_choices + 1, columns.shape[1] + 1))
    for rows, picks in choices(chosen, strata_of(unit_of, tables.classes), n_choices, random_state):
        values[rows, :-1] = picks @ sums
        sides = picks > 0
        values[rows, -1] = (sides[:, first] == sides[:, second]).sum(axis=1)
    values = np.round(values, 9)
    every = p_values(np.hstack([values, -values[:, :-1]]))
    pairs = columns.shape[1]
    families = np.column_stack([np.delete(every, pairs, axis=1).min(axis=1), every[:, pairs]])
    least = p_values(-families).min(axis=1)
    return float((least <= least[0]).mean())


def _columns(tables: Comparable) -> FloatArray:
    numbers = np.where(np.isnan(tables.numbers), -np.inf, tables.numbers)
    found = [percentiles(numbers, tables.classes)] if numbers.shape[1] else []
    for j in range(tables.codes.shape[1]):
        codes, counts = np.unique(tables.codes[:, j], return_counts=True)
        often = codes[np.argsort(-counts, kind="stable")[:_MOST]]
        found.append((tables.codes[:, j, None] == often).astype(float))
    return np.hstack([np.zeros((len(tables.classes), 1)), *found])


def _pairs(tables: Comparable) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows and their neighbors within the classes, by numbers and categories."""
    flags = [
        (tables.codes[:, j, None] == np.unique(tables.codes[:, j])[:_MOST]) / np.sqrt(2)
        for j in range(tables.codes.shape[1])
    ]
    points = np.hstack([np.nan_to_num(tables.numbers), *flags])
    first, second = [], []
    for label in np.unique(tables.classes):
        rows = np.flatnonzero(tables.classes == label)
        near = _kernels.closest_rows(points[rows], tables.units[rows], _NEIGHBORS)
        at, place = np.nonzero(near >= 0)
        first.append(rows[at])
        second.append(rows[near[at, place]])
    return np.concatenate(first), np.concatenate(second)
