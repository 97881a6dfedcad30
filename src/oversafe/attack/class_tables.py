"""The rows of one class of a release, with what is known beside them: what an attack is run on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

# In the place of a class: real rows that stand in the release under any but their own.
ANOTHER_LABEL = "another label than their own"
# A class that fewer rows speak for cannot hold the three lines of three rows that name a record.
_FEWEST_ROWS = 7


@dataclass(frozen=True)
class ClassTables:
    """The rows of one class in each table, without the label.

    Parameters
    ----------
    label : str
        The class.
    release, real, holdout : DataFrame
        Its released rows, the real ones they were made from, and real ones that had no part in them.
    same_units : bool
        Whether the real rows can show which records that are computed from the release are real.
    is_largest : bool
        Whether it is the largest class, of which only copies are looked for.
    others_copied : float
        The share of other people's rows, of all classes together, that may stand in the release although their values
        are rare: the upper end of its interval, or 0 if none does.
    shared : bool array, optional
        Which of the real rows are those of several people of other classes too.
    other_rows : DataFrame, optional
        The released rows of the other classes.
    other_real : mapping
        The real rows of each of the other classes, by class.
    """

    label: str
    release: pd.DataFrame
    real: pd.DataFrame | None = None
    holdout: pd.DataFrame | None = None
    same_units: bool = True
    is_largest: bool = False
    others_copied: float = 0.0
    shared: NDArray[np.bool_] | None = None
    other_rows: pd.DataFrame | None = None
    other_real: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    @property
    def truth(self) -> pd.DataFrame | None:
        """The real rows where they can be held against what is computed from the release."""
        return self.real if self.same_units else None

    @property
    def other_truth(self) -> Mapping[str, pd.DataFrame]:
        """The same of the other classes."""
        return self.other_real if self.same_units else {}


def rows_in_words(label: str) -> str:
    """Return what is attacked: a class, or what stands in the place of one."""
    return f"rows under {label}" if label == ANOTHER_LABEL else f"class {label!r}"


def too_few(released: pd.DataFrame) -> str:
    """Return that a class has too few released rows for the lines that name a record; nothing where it "
    "has enough."""
    return f"the release has only {len(released)} rows of it" if len(released) < _FEWEST_ROWS else ""
