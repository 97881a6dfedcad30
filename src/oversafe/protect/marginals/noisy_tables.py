"""From noisy counts to tables that can be drawn from: post-processing, which costs no privacy.

Nothing here sees the data: every function takes what was already noised.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_NEXT_TO_NOTHING = 1e-200


def shrink(noisy: FloatArray, towards: FloatArray, deviation: float) -> FloatArray:
    """Return noisy counts, moved towards a simpler guess by as much as their distance can be noise.

    The positive-part James-Stein estimate: of m counts with noise of one variance it has a smaller expected
    squared error than the counts themselves, whatever the guess is, if m > 2.
    """
    distance = noisy - towards
    squared = float((distance**2).sum())
    if squared <= 0:
        return towards
    kept = max(0.0, 1.0 - max(noisy.size - 2, 1) * deviation**2 / squared)
    return towards + kept * distance


def scale_factor(wanted: FloatArray, now: FloatArray, otherwise: float = 0.0) -> FloatArray:
    """Return what cells are multiplied by so that their sums become the wanted ones, and `otherwise` for sums of 0."""
    # Sums that scaling has brought near the smallest numbers count as 0: their factor would be infinite.
    return np.divide(wanted, now, out=np.full_like(now, otherwise), where=now > _NEXT_TO_NOTHING)


def rake(
    table: FloatArray, margins: Sequence[tuple[tuple[int, ...], FloatArray]], rounds: int = 30
) -> FloatArray:
    """Return the table scaled until its sums are the given ones (iterative proportional fitting).

    Parameters
    ----------
    table : array
        Where to begin; its interactions that no margin speaks of are kept.
    margins : sequence of (axes, sums)
        The axes that a margin keeps, in rising order, and its sums.
    rounds : int
        How often all margins are gone through at most.
    """
    table = np.array(table, dtype=np.float64)
    for _ in range(rounds):
        moved = 0.0
        for axes, sums in margins:
            others = tuple(axis for axis in range(table.ndim) if axis not in axes)
            now = table.sum(axis=others)
            # A sum of 0 cannot be scaled up; its cells stay as they are and other margins fill them.
            table *= np.expand_dims(scale_factor(sums, now, otherwise=1.0), others)
            moved = max(moved, float(np.abs(now - sums).sum()))
        if moved <= 1e-6 * max(float(table.sum()), 1.0):
            break
    return table


def joined_cells(weights: FloatArray, n_groups: int, *, ordered: bool, missing: bool) -> IntArray:
    """Return a group for each cell of a column: neighbours of about equal weight together, or the rare ones.

    Parameters
    ----------
    weights : array
        Noisy counts of the cells, not negative.
    n_groups : int
        How many groups at most.
    ordered : bool
        Whether neighbouring cells are alike; if not, the heaviest cells stay by themselves.
    missing : bool
        Whether the last cell is the one for missing values, which is like no other.
    """
    n_cells = len(weights)
    if n_cells <= n_groups:
        return np.arange(n_cells)
    groups = np.zeros(n_cells, dtype=np.int64)
    if not ordered:
        heaviest = np.argsort(-weights, kind="stable")[: n_groups - 1]
        groups[np.sort(heaviest)] = np.arange(1, n_groups)
        return groups
    values = weights[: n_cells - missing] + 1e-9 * max(float(weights.sum()), 1.0)
    own = n_groups - missing if n_groups > 2 else n_groups
    middle = (np.cumsum(values) - values / 2) / values.sum()
    groups[: len(values)] = np.unique(np.floor(middle * own), return_inverse=True)[1]
    if missing:
        groups[-1] = groups[-2] + 1 if own < n_groups else 0
    return groups


def sum_groups(table: FloatArray, axis: int, groups: IntArray) -> FloatArray:
    """Return a table with the cells of one axis added up by group."""
    moved = np.moveaxis(table, axis, 0)
    result = np.zeros((int(groups.max(initial=0)) + 1, *moved.shape[1:]))
    np.add.at(result, groups, moved)
    return np.moveaxis(result, 0, axis)
