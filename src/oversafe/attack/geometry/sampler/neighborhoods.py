"""Which records are joined by rows: neighbours, or any two, and all records alike or some more than others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from oversafe.attack.geometry.sampler.traces import ERROR_RATE, BoolArray, Finding, IntArray, Traces
from oversafe.attack.geometry.shapes.neighbors import Cells

FloatArray = np.ndarray

# How many neighbours are looked at.
MOST_NEIGHBOURS = 50
# Nobody is taken to use more neighbours than this, of few records: the tools' default is five.
_USUAL = 10
# Of the segments between records so many may be read wrong.
_WRONG = 0.01
# How much the rows per record vary beyond chance (the square of the coefficient of variation): at most where all are
# taken alike, as unknown records and neighbours make it so, and at least where they are not. On the development sets
# SMOTE's releases have at most .19 at one row per record and .10 above, those that prefer some records .4 to 4.
_ALIKE, _UNLIKE = 0.15, 0.5
# From so many rows per record on nearly all records are recovered, whatever number each has.
_ROWS_PER_RECORD = 3
# Releases drawn under each hypothesis.
_DRAWN = 1_999
# Records that must be known for the question, and how many are asked; the share of the rows between two of them.
_RECORDS, _ASKED, _EXPLAINED = 10, 500, 0.8
# The share of records with neighbours at equal distances from which on SMOTE's choice is open.
_TIED = 0.2


@dataclass(frozen=True)
class Neighborhood:
    """The neighbours that explain the segments between records.

    Parameters
    ----------
    near : array (r, k)
        The neighbours of each record, nearest first.
    k : int
        How many explain the segments.
    scaled : bool
        Whether columns were scaled before distances were taken, as far as it shows.
    told : bool
        Whether one of the two metrics needs so many fewer neighbours that the other is excluded.
    tied : bool
        Whether many records have several neighbours at one distance.
    any_pairs : Finding
        That pairs were chosen without regard to distance.
    only_near : Finding
        That they were not.
    """

    near: IntArray
    k: int
    scaled: bool
    told: bool
    tied: bool
    any_pairs: Finding
    only_near: Finding

    @property
    def mutual(self) -> BoolArray:
        """For each record and neighbour whether the record is among the neighbour's own."""
        record = np.arange(len(self.near))[:, None, None]
        return np.asarray((self.near[self.near] == record).any(axis=2))


def segments(traces: Traces) -> tuple[IntArray, IntArray]:
    """Return the pairs of records with rows between them, the smaller number first, and how many rows."""
    pairs, counts = np.unique(np.sort(traces.ends[traces.known], axis=1), axis=0, return_counts=True)
    return pairs, counts


def neighborhood_of(traces: Traces, span: FloatArray) -> Neighborhood:
    """Return how many nearest neighbours explain which records are joined.

    Records that were not recovered make others come nearer in the order, never farther: what needs many neighbours
    here needed as many in the real table.

    Parameters
    ----------
    traces : Traces
        The rows.
    span : array (m,)
        The range of each column: SMOTE may have seen the table's own units or scaled columns.
    """
    pairs, counts = segments(traces)
    sure = pairs[counts >= 2] if (counts >= 2).sum() >= _RECORDS else pairs
    found = []
    for places in (traces.places, traces.places / np.where(span > 0, span, 1.0)):
        near, distance = _nearest(places)
        rank = np.full(len(sure), near.shape[1] + 1)
        for start, end in ((0, 1), (1, 0)):
            place = near[sure[:, start]] == sure[:, end, None]
            rank = np.minimum(rank, np.where(place.any(axis=1), place.argmax(axis=1) + 1, rank))
        found.append((_enough(rank), near, distance, rank))
    plain, scaled = found
    k, near, distance, rank = scaled if scaled[0] < plain[0] else plain
    r = len(traces.places)
    k = max(1, min(k, near.shape[1]))
    same = np.isclose(distance[:, 1:k], distance[:, : k - 1], rtol=1e-9, atol=0)
    return Neighborhood(
        near[:, :k],
        k,
        scaled[0] < plain[0],
        _told(plain[0], scaled[0], len(sure)),
        bool(same.any(axis=1).mean() > _TIED) if k > 1 else False,
        _any_pairs(rank, r),
        _only_near(k, len(sure), r),
    )


def _nearest(places: FloatArray) -> tuple[IntArray, FloatArray]:
    m = min(MOST_NEIGHBOURS + 1, len(places))
    found = np.empty((len(places), m), dtype=np.int64)

    def store(rows: IntArray, close: IntArray) -> None:
        found[rows] = close

    Cells(places).search(places, m, store)
    distance = np.linalg.norm(places[found] - places[:, None], axis=2)
    distance[found == np.arange(len(places))[:, None]] = np.inf
    order = np.argsort(distance, axis=1)[:, : m - 1]
    return np.take_along_axis(found, order, axis=1), np.take_along_axis(distance, order, axis=1)


def _enough(rank: IntArray) -> int:
    """Return how many neighbours explain all pairs but those that may have been read wrong."""
    wrong = int(binom.isf(ERROR_RATE, len(rank), _WRONG)) if len(rank) else 0
    return int(np.sort(rank)[max(0, len(rank) - 1 - wrong)]) if len(rank) else 1


def _told(one: int, other: int, pairs: int) -> bool:
    """Return whether the pairs tell two metrics apart: each takes all of its neighbours alike.

    The likelihood ratio is the ratio of the numbers of neighbours to the power of the pairs; every number had a chance.
    """
    few, many = sorted((one, other))
    return pairs * float(np.log(many / few)) - float(np.log(MOST_NEIGHBOURS)) >= -float(np.log(ERROR_RATE))


def _any_pairs(rank: IntArray, r: int) -> Finding:
    """Return whether so many pairs are farther than any usual neighbour that no number of neighbours explains them.

    Under "the nearest ten, or a quarter of the records, at most" only pairs that were read wrong are farther.
    """
    limit = min(MOST_NEIGHBOURS, max(_USUAL, r // 4))
    farther = int((rank > limit).sum())
    p = float(binom.sf(farther - 1, len(rank), _WRONG)) if farther else 1.0
    # Neighbours that are chosen with a larger number look so as well, but not as far apart as any two.
    expected = 1 - (limit / max(1, r - 1)) * (2 - limit / max(1, r - 1))
    if len(rank) and farther / len(rank) < 0.5 * expected:
        p = 1.0
    return Finding(f"{farther} of {len(rank)} pairs of records are no neighbours: any two were joined", p)


def _only_near(k: int, pairs: int, r: int) -> Finding:
    """Return whether any two records would hardly ever be so near each other as all pairs are."""
    far = max(0.0, 1 - k / max(1, r - 1)) ** 2
    wrong = binom.isf(ERROR_RATE, pairs, _WRONG) if pairs else 0
    return Finding(
        f"all pairs of records are {k} neighbours apart at most", float(binom.cdf(wrong, pairs, far))
    )


@dataclass(frozen=True)
class Counts:
    """Whether rows start from all records alike.

    Parameters
    ----------
    uneven : Finding
        That some records have more rows of their own than others.
    alike : Finding
        That all have as many, but for chance.
    fixed : Finding
        That all have as many, with less than chance would make.
    varies : float
        The square of the coefficient of variation of the rows per record, beyond chance.
    """

    uneven: Finding
    alike: Finding
    fixed: Finding
    varies: float


def counts_of(traces: Traces, found: Neighborhood) -> Counts | None:
    """Return whether some records have more rows of their own than others beyond what chance makes.

    Own rows are those on segments that only one of the two records leads along as a neighbour. None where too few
    records are known, or neighbours are tied.
    """
    r = len(traces.places)
    if r < _RECORDS or found.tied or traces.known.mean() < _EXPLAINED:
        return None
    pairs, counts = segments(traces)
    table = dict(zip(map(tuple, pairs.tolist()), counts.tolist(), strict=True))
    own, ways = np.zeros(r), np.zeros(r)
    for record, column in np.argwhere(~found.mutual).tolist():
        other = int(found.near[record, column])
        own[record] += table.get((min(record, other), max(record, other)), 0)
        ways[record] += 1
    own, ways = own[ways > 0], ways[ways > 0]
    if len(own) > _ASKED:
        some = np.random.default_rng(0).permutation(len(own))[:_ASKED]
        own, ways = own[some], ways[some]
    if len(own) < _RECORDS or own.sum() < _RECORDS:
        return None
    expected = own.sum() * ways / ways.sum()
    spread = float(((own - expected) ** 2 / expected).sum())
    silent = float((own == 0).mean())

    def drawn(varies: float) -> FloatArray:
        """Return the spreads of releases whose rates vary so much."""
        rng = np.random.default_rng(0)
        rates = ways * (
            rng.gamma(1 / varies, varies, size=(_DRAWN, len(own))) if varies else np.ones((_DRAWN, 1))
        )
        counts = np.array([rng.multinomial(int(own.sum()), one / one.sum()) for one in rates])
        return np.asarray(((counts - expected) ** 2 / expected).sum(axis=1))

    # Of records with few rows those are recovered that have some, which makes them look alike.
    few = len(traces.rows) < _ROWS_PER_RECORD * r
    return Counts(
        Finding(
            f"some records have more rows of their own than others, and {silent:.0%} have none",
            float(((drawn(_ALIKE) >= spread).sum() + 1) / (_DRAWN + 1)),
        ),
        Finding(
            "rows start from all records alike",
            float(((drawn(_UNLIKE) <= spread).sum() + 1) / (_DRAWN + 1)),
        ),
        Finding(
            "every record has the same number of rows",
            1.0 if few else float(((drawn(0.0) <= spread).sum() + 1) / (_DRAWN + 1)),
        ),
        float(((own - expected) ** 2 - expected).sum() / (expected**2).sum()),
    )
