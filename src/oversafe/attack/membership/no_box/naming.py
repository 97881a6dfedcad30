"""Who is at risk: real rows that score higher than held-out ones, with a bound on how many are named in error."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


def named(
    scores: FloatArray, member: BoolArray, units: IntArray, *, wrong: float = 0.1, random_state: int = 0
) -> BoolArray:
    """Return which members can be named, with a share of false names of at most ``wrong`` on average.

    Others above a score show how many members are above it by chance. The score is chosen on one half of the units for
    the other half, so that the choice is independent of whom it names.

    Parameters
    ----------
    scores : array (n, s)
        Of rows of one class; higher is likelier a member.
    member : array of bool (n,)
        Who is a member.
    units : array of int (n,)
        Whose row each is.
    wrong : float
        The share of false names.
    random_state : int
        For the halves.
    """
    _, unit_of = np.unique(units, return_inverse=True)
    half = np.random.default_rng(random_state).permutation(int(unit_of.max()) + 1)[unit_of] % 2 == 0
    result = np.zeros(len(member), dtype=bool)
    for own in (half, ~half):
        if not member[own].any() or member[own].all() or not member[~own].any() or member[~own].all():
            continue
        counts = [int(_above(scores[~own, j], member[~own], wrong).sum()) for j in range(scores.shape[1])]
        best = int(np.argmax(counts))
        if counts[best]:
            result[own] = _above(scores[own, best], member[own], wrong)
    return result


def _above(score: FloatArray, member: BoolArray, wrong: float) -> BoolArray:
    """Return the members above the lowest score above which few others are."""
    n_members, n_others = int(member.sum()), int((~member).sum())
    limits = np.unique(score[member])
    members = n_members - np.searchsorted(np.sort(score[member]), limits, "left")
    others = n_others - np.searchsorted(np.sort(score[~member]), limits, "left")
    fine = (1 + others) / (n_others + 1) * n_members <= wrong * members
    if not fine.any():
        return np.zeros(len(member), dtype=bool)
    return np.asarray(member & (score >= limits[np.argmax(fine)]))
