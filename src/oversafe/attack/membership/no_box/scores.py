"""Scores of how much each row of the pool looks like one that a release was made from.

None of them knows who is a member: they see the pool of real and held-out rows, shuffled, and the release.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from oversafe.attack.membership.no_box import _kernels
from oversafe.attack.membership.no_box.comparable import Comparable
from oversafe.attack.membership.no_box.exact import percentiles

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# SMOTE's usual number of neighbors.
_NEIGHBORS = 5
_TINY = 1e-12


@dataclass(frozen=True)
class Scores:
    """Scores of the rows of a pool.

    Parameters
    ----------
    names : tuple of str
        What each is.
    values : array (n, s)
        Higher is likelier a member.
    meta : tuple of bool
        Which are made of the others: the mean of their places within the class.
    """

    names: tuple[str, ...]
    values: FloatArray
    meta: tuple[bool, ...]


def scores_of(tables: Comparable) -> Scores:
    """Return the scores of each row of a pool, each within its class.

    Parameters
    ----------
    tables : Comparable
        The pool and the release.
    """
    found: dict[str, FloatArray] = {}
    for space in (tables, tables.in_ranks()):
        name = "values" if space is tables else "ranks"
        for what, values in _of_distances(space).items():
            found[f"{what}, {name}"] = values
    found["match that is rare"] = _rare_matches(tables)
    found["rare values"] = _rare_values(tables)
    if tables.numbers.shape[1] >= 2:
        found["segment"] = _near_segments(tables)
    values = np.column_stack(list(found.values()))
    places = percentiles(values, tables.classes)
    names = list(found)
    groups = {
        "all": list(range(len(names))),
        "against the pool": [i for i, name in enumerate(names) if name.startswith("density")],
        "near": [i for i, name in enumerate(names) if not name.startswith("density")],
    }
    means = np.column_stack([places[:, own].mean(axis=1) for own in groups.values()])
    return Scores(
        (*names, *groups), np.hstack([values, means]), (*([False] * len(names)), *([True] * len(groups)))
    )


def _of_distances(tables: Comparable) -> dict[str, FloatArray]:
    """Return scores by the distances to released rows, and to other rows of the pool, of the same class."""
    n = len(tables.classes)
    near, own = np.full((n, 8), np.inf), np.full((n, 8), np.inf)
    nobody = np.full(len(tables.released_classes), -1)
    for label in np.unique(tables.classes):
        rows = np.flatnonzero(tables.classes == label)
        released = np.flatnonzero(tables.released_classes == label)
        numbers, codes, unit = tables.numbers[rows], tables.codes[rows], tables.units[rows]
        if len(released):
            near[rows] = _kernels.nearest(
                numbers,
                codes,
                unit,
                tables.low[released],
                tables.low[released] if tables.high is tables.low else tables.high[released],
                tables.released_codes[released],
                nobody[released],
                tables.costs,
                tables.starts,
                tables.widths,
            )
        own[rows] = _kernels.nearest(numbers, codes, unit, numbers, numbers, codes, unit, *tables.own_costs)
    # A class that was not released, or with one row, says nothing.
    far = 1.0 + tables.numbers.shape[1] + tables.codes.shape[1]
    near, own = np.minimum(near, far), np.minimum(own, far)
    return {
        "nearest": -near[:, 0],
        "three nearest": -near[:, :3].mean(axis=1),
        "fifth nearest": -near[:, 4],
        "nearest by squares": -near[:, 7],
        "nearest to second": -near[:, 0] / np.maximum(near[:, 1], _TINY),
        "nearest but one column": -near[:, 5],
        "density of one": np.log(own[:, 0] + _TINY) - np.log(near[:, 0] + _TINY),
        "density of five": np.log(own[:, 4] + _TINY) - np.log(near[:, 4] + _TINY),
    }


def _rare_matches(tables: Comparable) -> FloatArray:
    """Return for rows that stand in the release how rare they are in the pool, 0 for others."""
    released = {row.tobytes() for row in _keys(tables.low, tables.matched_codes, tables.released_classes)}
    keys = [row.tobytes() for row in _keys(tables.numbers, tables.codes, tables.classes)]
    counts: dict[bytes, int] = {}
    for key in keys:
        counts[key] = counts.get(key, 0) + 1
    return np.array([1.0 / counts[key] if key in released else 0.0 for key in keys])


def _keys(numbers: FloatArray, codes: IntArray, classes: IntArray) -> FloatArray:
    return np.ascontiguousarray(np.column_stack([np.round(numbers, 9) + 0.0, codes, classes]))


def _rare_values(tables: Comparable) -> FloatArray:
    """Return how surprising the values are that the release has too: rare ones of the pool, in the same column."""
    total = np.zeros(len(tables.classes))
    columns: list[Any] = [(tables.numbers[:, j], tables.low[:, j]) for j in range(tables.numbers.shape[1])]
    columns += [(tables.codes[:, j], tables.matched_codes[:, j]) for j in range(tables.codes.shape[1])]
    for own, released in columns:
        own, released = np.round(own, 9), np.round(released, 9)
        _, which, counts = np.unique(own, return_inverse=True, return_counts=True)
        surprise = np.log(len(own) / counts[which])
        total += np.where(np.isin(own, released), surprise, 0.0)
    return total


def _near_segments(tables: Comparable) -> FloatArray:
    """Return how near a released row is to a segment from each row to one of its neighbors."""
    result = np.full(len(tables.classes), -np.inf)
    numbers, released = np.nan_to_num(tables.numbers), np.nan_to_num(tables.low)
    for label in np.unique(tables.classes):
        rows = np.flatnonzero(tables.classes == label)
        others = np.flatnonzero(tables.released_classes == label)
        if len(others) and len(rows) > 1:
            neighbors = _kernels.closest_rows(numbers[rows], tables.units[rows], _NEIGHBORS)
            result[rows] = -_kernels.off_segments(numbers[rows], neighbors, released[others])
    finite = np.isfinite(result)
    result[~finite] = result[finite].min() - 1 if finite.any() else 0.0
    return result


def ranks_in(pool: FloatArray, release: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the places of the values of two tables in one column, from 0 to 3: any two are 1 apart on average."""
    both = np.concatenate([pool, release])
    present = ~np.isnan(both)
    places = np.full(len(both), np.nan)
    if present.any():
        places[present] = 3 * rankdata(both[present]) / present.sum()
    return places[: len(pool)], places[len(pool) :]
