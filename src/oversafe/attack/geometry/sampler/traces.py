"""What is known of the rows of a release: between which records each lies, and where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# The probability that a statement about a release is wrong.
ERROR_RATE = 1e-3
# What the models themselves may miss: no statement is surer.
SUREST = 1e-9
# How far a record may be from a line, in ranges of the columns.
_ON_LINE = 1e-9


@dataclass(frozen=True)
class Traces:
    """Released rows, in the order of the file, and the records between which they lie.

    Parameters
    ----------
    rows : array (n, m)
        The released rows.
    places : array (r, m)
        The recovered records, in the same columns and units.
    ends : array (n, 2)
        The two records of each row, -1 where they are not known.
    share : array (n,)
        Where the row lies on the way from the first (0) to the second (1); NaN where that is not known.
    partial : bool
        Whether other columns vary, so that distances in these are not those that a tool took.
    """

    rows: FloatArray
    places: FloatArray
    ends: IntArray
    share: FloatArray
    partial: bool = False

    @property
    def known(self) -> BoolArray:
        """Which rows lie between two known records."""
        return np.asarray((self.ends >= 0).all(axis=1))


@dataclass(frozen=True)
class Finding:
    """One statement about a release.

    Parameters
    ----------
    sentence : str
        What was found.
    p : float
        An upper bound on the probability of such a release if the statement is false.
    """

    sentence: str
    p: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", min(1.0, max(SUREST, float(self.p))))

    @property
    def holds(self) -> bool:
        """Whether the statement is made."""
        return self.p <= ERROR_RATE


def between_decoded(
    rows: FloatArray,
    records: FloatArray,
    sure: BoolArray,
    n_lines: IntArray,
    row: IntArray,
    ends: IntArray,
    share: FloatArray,
) -> Traces:
    """Return the traces of rows that were decoded one by one.

    A row's ends are the grid points next to it. Where one of them is no sure record, or only this line leads to it
    although others meet two points beyond the other end, the nearest sure records on the line are taken; if all are on
    one side the row lies beyond them.

    Parameters
    ----------
    rows : array (n, m)
        The released rows.
    records : array (r, m)
        The decoded points, NaN where a value is not known.
    sure : array of bool (r,)
        Which of them are taken for records.
    n_lines : array (r,)
        On how many distinct lines each lies.
    row, ends, share : array
        The decoded rows, the points next to each, and where it lies between them.
    """
    columns = ~np.isnan(records[sure]).any(axis=0) if sure.any() else np.zeros(rows.shape[1], dtype=bool)
    pair = np.full((len(rows), 2), -1, dtype=np.int64)
    at = np.full(len(rows), np.nan)
    both = sure[ends].all(axis=1)
    pair[row[both]], at[row[both]] = ends[both], share[both]
    met = n_lines > 1
    doubtful = ~(both & met[ends].all(axis=1))
    doubtful &= ~np.isnan(records[ends][:, :, columns]).any(axis=(1, 2))
    anchors = np.flatnonzero(sure & met)
    places = records[anchors][:, columns]
    spread = np.ptp(places, axis=0) if len(places) else np.ones(0)
    spread = np.where(spread > 0, spread, 1.0)
    for i in np.flatnonzero(doubtful).tolist() if len(anchors) > 1 else ():
        start, way = records[ends[i, 0], columns], np.diff(records[ends[i]][:, columns], axis=0)[0]
        length = float((way / spread) @ (way / spread))
        if not length:
            continue
        step = ((places - start) / spread) @ (way / spread) / length
        off = (np.abs(places - start - step[:, None] * way) / spread).max(axis=1)
        on = np.flatnonzero(off < _ON_LINE)
        if len(on) < 2:
            continue
        before, after = on[step[on] < share[i]], on[step[on] > share[i]]
        if len(before) and len(after):
            one, other = before[step[before].argmax()], after[step[after].argmin()]
        elif len(before):
            one, other = before[np.argsort(-step[before])[:2]]
        else:
            one, other = after[np.argsort(step[after])[:2]]
        pair[row[i]] = anchors[one], anchors[other]
        at[row[i]] = (share[i] - step[one]) / (step[other] - step[one])
    used, number = np.unique(pair[pair[:, 0] >= 0], return_inverse=True)
    pair[pair[:, 0] >= 0] = number.reshape(-1, 2)
    partial = bool((np.ptp(rows[:, ~columns], axis=0) > 0).any()) if len(rows) else False
    return Traces(rows[:, columns], records[used][:, columns], pair, at, partial)
