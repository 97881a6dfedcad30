"""Rows that the lattice attack decodes one by one: each lies between two records on the grids."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oversafe.attack.geometry.lattice import decode_rows

FloatArray = NDArray[np.float64]

# Ends that are likelier wrong than this say nothing about their row.
_SOUND = 0.05
# So many rows show whether a table was interpolated, and so large a share of them.
_SAMPLE, _SHARE = 200, 0.3


def are_decoded(rows: FloatArray, known: FloatArray) -> bool:
    """Return whether rows lie between two records each, of which none needs to be in the table.

    Parameters
    ----------
    rows : array (n, m)
        Rows that may be interpolated, those that tell least first.
    known : array (k, m)
        Rows that seem to be real: they show the grids.
    """
    some = rows[:_SAMPLE]
    if len(some) < 2 or some.shape[1] < 2:
        return False
    found = decode_rows(some, known if len(known) > 1 else None)
    sound = (found.p_wrong[found.ends] <= _SOUND).all(axis=1)
    return bool(len(np.unique(found.row[sound])) > max(1.0, _SHARE * len(some)))
