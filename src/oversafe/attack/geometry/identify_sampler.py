"""What kind of sampler made a release, as far as its geometry tells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oversafe.attack.geometry.bounds import reconstruction_recall_bound
from oversafe.attack.geometry.recovery import Recovered
from oversafe.attack.geometry.shapes.lines import Lines
from oversafe.attack.geometry.shapes.neighbors import Cells
from oversafe.attack.geometry.shapes.points import BoolArray, FloatArray, IntArray, Points
from oversafe.attack.geometry.shapes.segments import shares_of

# Below this share of rows between records nothing is said about the sampler.
_EXPLAINED = 0.5
# Above this share of repeated rows a table was made by duplication.
_REPEATED = 0.5
# The share of rows beyond records, of one-sided segments and of records without rows of their own from which
# on they are no accident.
_BEYOND = 0.05
_ONE_SIDED = 0.2
_SILENT = 0.1
# How much more the rows per record may vary than chance makes them.
_UNEVEN = 2.5
# The share of records with neighbours at equal distances from which on SMOTE's choice is open.
_TIED = 0.2
# Segments that SMOTE's neighbours explain, and how many neighbours are looked at.
_COVERED = 0.98
_MOST_NEIGHBOURS = 50


@dataclass(frozen=True)
class Kind:
    """What a release looks like.

    Parameters
    ----------
    name : str
        The sampler, or the samplers that look alike: "SMOTE", "SMOTENC", "BorderlineSMOTE-2", "SVMSMOTE",
        "ADASYN", "BorderlineSMOTE or KMeansSMOTE", "duplication", "no lines", ...
    sentence : str
        The reason, for a person to read.
    k_neighbors : int, optional
        The number of neighbours that explains the segments between the recovered records.
    mutuality : float, optional
        The share of neighbour relations between recovered records that hold in both directions.
    recall_bound : float, optional
        The paper's lower bound (Theorem 4) on the expected recall, for what was recovered.
    """

    name: str
    sentence: str
    k_neighbors: int | None = None
    mutuality: float | None = None
    recall_bound: float | None = None


def recognise(points: Points, lines: Lines, records: Recovered) -> Kind:
    """Tell from recovered records and the rows between them which sampler made a table.

    Parameters
    ----------
    points : Points
        The table.
    lines : Lines
        Its lines.
    records : Recovered
        What was recovered from it.
    """
    n_rows = len(points.row)
    on_segment = records.segments[:, 0] >= 0
    if len(points.values) <= (1 - _REPEATED) * n_rows:
        return Kind("duplication", f"{n_rows} rows are copies of {len(points.values)} distinct ones")
    if len(records.places) < 3 or on_segment.mean() < _EXPLAINED:
        if len(np.unique(lines.indices)) < _EXPLAINED * len(points.values):
            return Kind("no lines", _why_not(points))
        return Kind(
            "BorderlineSMOTE-2" if len(records.places) >= 3 else "lines that do not meet",
            "most rows lie on lines that lead away from the recovered records, as to those of another class",
        )
    pairs, which, counts = np.unique(
        records.segments[on_segment], axis=0, return_inverse=True, return_counts=True
    )
    share = shares_of(points.values, records.segments, records.places)[on_segment]
    neighbours, k, tied = _neighbours(points, records.places, pairs, counts)
    mutual = _is_neighbour(neighbours[:, :k], neighbours[:, :k])
    mutuality = float(mutual.mean())
    bound = None
    if len(records.places) > k:
        bound = reconstruction_recall_bound(len(records.places), n_rows, k, mutuality)
    own = None if tied else _own_rows(pairs, counts, neighbours[:, :k], mutual)
    name, sentence = _name(points, which.reshape(-1), counts, share, own)
    return Kind(name, sentence, k, mutuality, bound)


def _why_not(points: Points) -> str:
    if points.reason is not None:
        return points.reason
    return (
        "rows do not lie between common records: the table was not made by interpolation, or by one that "
        "leaves no lines (Geometric SMOTE; SMOTEN, which copies categories), or its values are too inexact "
        f"(to {points.noise:.1g} of their range)"
    )


def _name(
    points: Points,
    which: IntArray,
    counts: IntArray,
    share: FloatArray,
    own: tuple[IntArray, FloatArray] | None,
) -> tuple[str, str]:
    """Return the sampler and the reason, from the rows' segments, their places on them, and own rows."""
    outside = float(((share < 0) | (share > 1)).mean())
    if outside > _BEYOND:
        return "SVMSMOTE", f"{outside:.0%} of the rows lie beyond a record, on the line to another"
    long = np.flatnonzero(counts >= 5)
    low, high = np.full(len(counts), np.inf), np.full(len(counts), -np.inf)
    np.minimum.at(low, which, share)
    np.maximum.at(high, which, share)
    one_sided = (high[long] < 0.5) | (low[long] > 0.5)
    if len(long) and one_sided.mean() > _ONE_SIDED:
        return (
            "BorderlineSMOTE-2",
            f"{one_sided.mean():.0%} of the segments have rows in one half only, as those that lead to "
            "another class",
        )
    if own is not None and len(own[0]) >= 10:
        rows, ways = own
        silent = float((rows == 0).mean())
        expected = rows.sum() / ways[rows > 0].sum() * ways
        spread = float(((rows - expected) ** 2 / expected)[rows > 0].mean())
        if silent > _SILENT:
            return (
                "ADASYN, BorderlineSMOTE or KMeansSMOTE"
                if spread > _UNEVEN
                else "BorderlineSMOTE or KMeansSMOTE",
                f"{silent:.0%} of the records have no rows of their own, only on the way from others",
            )
        if spread > _UNEVEN:
            return "ADASYN", "some records have many more rows than others, more than chance makes"
    if any(_varies(points, name) for name in points.left_out):
        return "SMOTENC", "rows lie evenly between records in the numbers, and categories vary beside them"
    return "SMOTE", "rows lie evenly on the segments between records and their neighbours"


def _varies(points: Points, name: object) -> bool:
    column = points.frame.loc[:, name]
    return column.ndim == 1 and column.astype(str).nunique() > 1


def _own_rows(
    pairs: IntArray, counts: IntArray, neighbours: IntArray, mutual: BoolArray
) -> tuple[IntArray, FloatArray]:
    """Return, per record, the rows on segments that only it leads along, and how many of those it has.

    Records with so few that no row may be chance are left out.
    """
    n, _ = neighbours.shape
    table = dict(zip(map(tuple, pairs.tolist()), counts.tolist(), strict=True))
    own, ways = np.zeros(n, dtype=np.int64), (~mutual).sum(axis=1).astype(float)
    for record, column in np.argwhere(~mutual).tolist():
        other = int(neighbours[record, column])
        own[record] += table.get((min(record, other), max(record, other)), 0)
    rate = own.sum() / max(1.0, ways.sum())
    enough = rate * ways > 5
    return own[enough], ways[enough]


def _neighbours(
    points: Points, places: FloatArray, pairs: IntArray, counts: IntArray
) -> tuple[IntArray, int, bool]:
    """Return the neighbours of each record, nearest first, and how many of them explain the segments.

    SMOTE may have seen the table's own units or scaled columns; the metric that needs fewer neighbours is
    taken. Also returns whether many records have several neighbours at the same distance.
    """
    best: tuple[int, IntArray, FloatArray] | None = None
    sure = pairs[counts >= 2] if (counts >= 2).any() else pairs
    for values in (places, places * points.span):
        m = min(_MOST_NEIGHBOURS + 1, len(places))
        found = np.empty((len(places), m), dtype=np.int64)

        def store(rows: IntArray, close: IntArray, found: IntArray = found) -> None:
            found[rows] = close

        Cells(values).search(values, m, store)
        distance = np.linalg.norm(values[found] - values[:, None], axis=2)
        distance[found == np.arange(len(places))[:, None]] = np.inf
        order = np.argsort(distance, axis=1)[:, : m - 1]
        found, distance = (
            np.take_along_axis(found, order, axis=1),
            np.take_along_axis(distance, order, axis=1),
        )
        rank = np.full(len(sure), m)
        for start, end in ((0, 1), (1, 0)):
            place = found[sure[:, start]] == sure[:, end, None]
            rank = np.minimum(rank, np.where(place.any(axis=1), place.argmax(axis=1) + 1, m))
        k = int(np.sort(rank)[int(np.ceil(_COVERED * len(rank))) - 1])
        if best is None or k < best[0]:
            best = k, found, distance
    assert best is not None
    k, found, distance = best
    k = max(1, min(k, found.shape[1]))
    same = np.isclose(distance[:, 1:k], distance[:, : k - 1], rtol=1e-9, atol=0)
    return found, k, bool(same.any(axis=1).mean() > _TIED)


def _is_neighbour(neighbours: IntArray, of: IntArray) -> BoolArray:
    """Return for each record and neighbour whether the record is among the neighbour's own."""
    record = np.arange(len(neighbours))[:, None, None]
    return (of[neighbours] == record).any(axis=2)
