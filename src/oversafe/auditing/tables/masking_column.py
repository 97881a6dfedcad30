"""A column that hides copies: rows of the release are real ones but for what stands there."""

from __future__ import annotations

import numpy as np
import pandas as pd

from oversafe.data.rows import as_released, column_codes
from oversafe.data.rows.sketches import value_hashes
from oversafe.measure.leakage import release_overlap

# So many of the released rows, at least, are real ones without the column, and at most this share of them with it.
_MANY, _FEW_OF_THEM = 0.1, 0.1
_FEWEST_COLUMNS = 3


def hiding_column(release: pd.DataFrame, real: pd.DataFrame, columns: list[str]) -> tuple[str, int] | None:
    """Return the one column without which many released rows are real ones that are not with it, and how many.

    Codes that were turned round, dates that were moved, or units that lie near one another: none of them makes
    another person of somebody. None where there is no such column, or chance explains the rows.
    """
    if len(columns) < _FEWEST_COLUMNS:
        return None
    hashes = {
        place: [value_hashes(codes[name], place) for name in ("release", "real")]
        for place, codes in column_codes({"release": release[columns], "real": real[columns]})
    }
    released, known = (
        np.sum([pair[which] for pair in hashes.values()], axis=0, dtype=np.uint64) for which in (0, 1)
    )
    found = {
        place: int(np.isin(released - own, known - other).sum()) for place, (own, other) in hashes.items()
    }
    best = max(found, key=lambda place: (found[place], -place))
    with_it = int(np.isin(released, known).sum())
    if found[best] < max(1, _MANY * len(release)) or with_it > _FEW_OF_THEM * found[best]:
        return None
    rest = [name for name in columns if name != columns[best]]
    if not release_overlap(release[rest], as_released(real[rest], release[rest])).is_leakage:
        return None
    return columns[best], found[best]
