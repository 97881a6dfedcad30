"""How many real records three lines give away: the paper's bounds, and the exact figure for given records."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import pdtr, xlog1py
from scipy.stats import binom

from oversafe._core.checks import check_count, check_pandas
from oversafe._core.errors import InputError

# A segment is seen from this many synthetic rows on it, a record from this many segments (Section 4.3).
_ROWS = 3
_SEGMENTS = 3
# Distances that differ by less than this part count as equal, whatever the order of the sums in them.
_TIE = 1e-9
_CHUNK = 2**22
# The squares of larger ones are infinite.
_LARGEST = 1e150


def reconstruction_recall_bound(
    n_minority: int,
    n_synthetic: int,
    k: int,
    mutuality: float | None = None,
    exact: bool = True,
    *,
    tight: bool = False,
) -> float:
    """Return a lower bound on the expected share of the records that three lines give away.

    A record counts when at least three segments that end in it hold at least three synthetic rows each, which
    is what Algorithm 3 of [1]_ needs to see it. The expectation is over SMOTE's draws.

    Parameters
    ----------
    n_minority : int
        Number of real minority records, more than ``k``.
    n_synthetic : int
        Number of synthetic rows that SMOTE made of them.
    k : int
        The number of neighbours that SMOTE used. For one or two of them the bound is 0: a record has ``k``
        segments of its own, and the third would have to lead from a record that is not its neighbour but
        counts it among its own. Such records may all point to the same few, and where neighbours are mutual
        there are none.
    mutuality : float, optional
        Share of the neighbour relations that hold in both directions, see :func:`neighbour_mutuality`. The
        bound grows with it; by default it is 0, the value for which the bound holds whatever the records.
    exact : bool
        True for Theorem 4 (binomial counts, both directions), False for Theorem 3 (Poisson counts, one
        direction, no ``mutuality``).
    tight : bool
        Whether to replace the last step of Theorem 4, an inequality of Markov's kind, by the exact joint
        distribution of the rows on a record's own ``k`` segments. The result is never below Theorem 4's and
        often far above it.

    Returns
    -------
    float
        The bound, from 0 to 1.

    Raises
    ------
    InputError
        If a number is out of its range, or ``mutuality`` or ``tight`` is given without ``exact``.

    See Also
    --------
    identifiable_share : The share itself instead of a bound, for given records.
    ReconSMOTE : The attack, which also finds records on fewer lines.

    Notes
    -----
    Both theorems need distinct records of which no three lie on one line, and speak of an attack that finds
    every segment with three rows; the search among ``2 k r`` neighbours in the paper can miss some.

    *Theorem 4* is proven in [1]_ for each record, which holds only if the share of mutual neighbours is the
    same for each. For the mean over the records, and so for the recall, the mean share is enough: the bound
    is a convex function of it.

    *Theorem 3* rests on P(Poisson >= 3) being no more than P(binomial >= 3), which the paper does not say. It
    is so when the rows per directed segment, ``n_synthetic / (n_minority k)``, exceed 2, and reversed below:
    there the bound can be too high. It is then 0 anyway for ``k`` up to 6; for larger ``k`` it is off by less
    than 7e-4 in all cases that were compared (``k`` up to 30 and at least ``k + 1`` records), and by less the
    more records there are.

    References
    ----------
    .. [1] "SMOTE and Mirrors: Exposing Privacy Leakage from Synthetic Minority Oversampling", Theorem 3 and
       Appendix A, Theorem 4.

    Examples
    --------
    >>> from oversafe.attack import reconstruction_recall_bound
    >>> round(reconstruction_recall_bound(100, 2500, k=5, exact=False), 3)
    0.792
    >>> round(reconstruction_recall_bound(100, 2500, k=5, mutuality=0.6), 3)
    0.914
    >>> round(reconstruction_recall_bound(100, 2500, k=5, mutuality=0.6, tight=True), 3)
    0.994
    """
    n_minority = check_count("n_minority", n_minority, 2)
    n_synthetic = check_count("n_synthetic", n_synthetic, 0)
    k = check_count("k", k, 1)
    if n_minority <= k:
        raise InputError(
            f"n_minority is {n_minority} and k is {k}; SMOTE needs more minority records than neighbours"
        )
    if not exact and (mutuality is not None or tight):
        given = "mutuality" if mutuality is not None else "tight"
        raise InputError(f"{given} has no part in Theorem 3; leave it out, or take Theorem 4 with exact=True")
    mutual = 0.0 if mutuality is None else float(mutuality)
    if not 0 <= mutual <= 1:
        raise InputError(f"mutuality is {mutuality!r}; expected a share from 0 to 1")
    if k < _SEGMENTS:
        return 0.0
    segments = n_minority * k
    if not exact:
        seen = 1 - float(pdtr(_ROWS - 1, n_synthetic / segments))
    elif not tight:
        one, both = binom.sf(_ROWS - 1, n_synthetic, np.array([1, 2]) / segments)
        seen = float((1 - mutual) * one + mutual * both)
    else:
        shares = [
            _chance_of_segments(n_synthetic, segments, Counter({1: k - m, 2: m}), _SEGMENTS)
            for m in range(k + 1)
        ]
        return _lowest_mean(np.array(shares), mutual * k)
    return min(1.0, max(0.0, (k * seen - (_SEGMENTS - 1)) / (k - (_SEGMENTS - 1))))


def neighbour_mutuality(X: Any, k: int = 5) -> float:
    """Return the share of the neighbour relations that hold in both directions.

    Of all pairs of a record and one of its ``k`` nearest neighbours, this is the share in which the record is
    among the neighbour's ``k`` nearest too: the paper's alpha, measured.

    Parameters
    ----------
    X : DataFrame or array of shape (n_records, n_columns)
        The real minority records in numeric columns, scaled as SMOTE saw them. Equal records count once.
        Of neighbours at the same distance (within a 1e-9 part) the one whose values come first in order is
        taken, so that neither the order of the rows nor their copies change the result. On tables with many
        ties SMOTE's own choice, which depends on both, can differ.
    k : int
        The number of neighbours that SMOTE used.

    Returns
    -------
    float
        The share, above 0 and at most 1.

    Raises
    ------
    InputError
        If a column is not numeric, a value is missing or infinite, or there are not more than ``k`` distinct
        records.

    See Also
    --------
    reconstruction_recall_bound : What follows from it.

    Examples
    --------
    The neighbour of 0 is 1, but that of 1 is 1.5, and that of 1.5 is 1:

    >>> from oversafe.attack import neighbour_mutuality
    >>> round(neighbour_mutuality([[0.0], [1.0], [1.5]], k=1), 3)
    0.667
    """
    records, _ = _distinct_records(X, k)
    neighbours = _nearest(records, k)
    edge = (np.arange(len(records))[:, None] * len(records) + neighbours).ravel()
    back = (neighbours * len(records) + np.arange(len(records))[:, None]).ravel()
    return float(np.isin(edge, back).mean())


def identifiable_share(X: Any, n_synthetic: int, k: int = 5, *, min_lines: int = _SEGMENTS) -> float:
    """Return the expected share of the given records that the lines of a SMOTE release give away.

    Where :func:`reconstruction_recall_bound` knows counts only, this uses the neighbours of the records
    themselves: the segments of a record are those to its neighbours and those from the records that count it
    among theirs, and the numbers of synthetic rows on them are multinomial. The share is exact, not a bound.

    Parameters
    ----------
    X : DataFrame or array of shape (n_records, n_columns)
        The real minority records in numeric columns, scaled as SMOTE saw them. Records with copies count once
        in the share; the copies take their places among the neighbours, as they do in SMOTE, and no segment
        leads to them. Ties are broken as in :func:`neighbour_mutuality`.
    n_synthetic : int
        Number of synthetic rows that SMOTE makes of them.
    k : int
        The number of neighbours that SMOTE uses.
    min_lines : int
        How many segments with at least three rows give a record away: 3 in the paper.

    Returns
    -------
    float
        The expected share, from 0 to 1.

    Raises
    ------
    InputError
        As in :func:`neighbour_mutuality`, or if a number is out of its range.

    See Also
    --------
    ReconSMOTE : The attack, which also finds records on fewer lines.

    Examples
    --------
    >>> import numpy as np
    >>> from oversafe.attack import identifiable_share
    >>> X = np.random.default_rng(0).normal(size=(100, 4))
    >>> round(identifiable_share(X, n_synthetic=500), 2)
    0.13
    >>> round(identifiable_share(X, n_synthetic=2500), 2)
    1.0
    """
    n_synthetic = check_count("n_synthetic", n_synthetic, 0)
    min_lines = check_count("min_lines", min_lines, 1)
    records, copies = _distinct_records(X, k)
    n = len(records)
    neighbours = _nearest(records, k)
    # A row's k places go to its own copies first, then to all copies of the nearest record, and so on.
    free = k - (copies - 1)
    wanted = copies[neighbours]
    taken = np.clip(free[:, None] - (np.cumsum(wanted, axis=1) - wanted), 0, wanted)
    start = np.repeat(np.arange(n), k)
    stop, weight = neighbours.ravel(), (copies[:, None] * taken).ravel()
    start, stop, weight = start[weight > 0], stop[weight > 0], weight[weight > 0]
    # Each segment once for each of its two ends, with the number of (row, neighbour) draws that fall on it.
    pairs = np.concatenate((start * n + stop, stop * n + start))
    segment, at = np.unique(pairs, return_inverse=True)
    draws = np.bincount(at.reshape(-1), weights=np.tile(weight, 2)).astype(np.int64)
    limits = np.searchsorted(segment, np.arange(n + 1) * n)
    rows = int(copies.sum())
    chances: dict[tuple[tuple[int, int], ...], float] = {}
    total = 0.0
    for record in range(n):
        cells = Counter(draws[limits[record] : limits[record + 1]].tolist())
        kind = tuple(sorted(cells.items()))
        if kind not in chances:
            chances[kind] = _chance_of_segments(n_synthetic, rows * k, cells, min_lines)
        total += chances[kind]
    return total / n


def _chance_of_segments(n_draws: int, total: int, cells: Counter[int], least: int) -> float:
    """Return the chance that at least so many cells of a multinomial get three draws or more.

    Parameters
    ----------
    n_draws : int
        Number of draws.
    total : int
        Number of equally likely outcomes.
    cells : Counter
        How many cells there are of each size, in outcomes. They need not make up the total.
    least : int
        The number of cells.

    Notes
    -----
    Let S be the number of cells with three draws or more, D that of all cells, and U_b the sum, over all
    choices of b cells, of the chance that the D - b others get at most two each. A choice has this property
    when the others are among the D - S cells that do, so U_b = E[C(D - S, D - b)], which is solved for
    P(S = 0), P(S = 1), ... in turn. Each U_b comes from independent Poisson counts held to their total.
    """
    number = cells.total()
    if number < least or n_draws < _ROWS * least:
        return 0.0
    mean = n_draws / total
    # For each number and total size of the chosen cells: the chances, with Poisson counts, that the others
    # get at most two each and t together.
    others: dict[tuple[int, int], NDArray[np.float64]] = {(0, 0): np.ones(1)}
    for size, count in cells.items():
        rate = size * mean
        few = np.exp(-rate) * np.array([1.0, rate, rate * rate / 2])
        for _ in range(count):
            grown: dict[tuple[int, int], NDArray[np.float64]] = {}
            for (chosen, sizes), chances in others.items():
                _add(grown, (chosen, sizes), np.convolve(chances, few))
                if chosen + 1 < least:
                    _add(grown, (chosen + 1, sizes + size), chances)
            others = grown
    all_sizes = sum(size * count for size, count in cells.items())
    sums = np.zeros(least)
    for (chosen, sizes), chances in others.items():
        t = np.arange(min(len(chances), n_draws + 1))
        falling = np.concatenate(([0.0], np.cumsum(np.log1p(-t[:-1] / n_draws))))
        outside = all_sizes - sizes
        # P(the rest gets n - t) / P(all get n) of Poisson counts, without the common e^(-mean size).
        given_total = np.exp(falling + xlog1py(n_draws - t, -outside / total) + mean * outside)
        sums[chosen] += chances[: len(t)] @ given_total
    exactly = np.zeros(least)
    for b in range(least):
        exactly[b] = sums[b] - sum(math.comb(number - s, number - b) * exactly[s] for s in range(b))
    return float(min(1.0, max(0.0, 1 - exactly.sum())))


def _add(
    table: dict[tuple[int, int], NDArray[np.float64]], key: tuple[int, int], values: NDArray[np.float64]
) -> None:
    """Add an array to an entry of a table, which may be shorter or not there."""
    before = table.get(key)
    if before is not None:
        longer, shorter = (values, before) if len(values) >= len(before) else (before, values)
        values = longer.copy()
        values[: len(shorter)] += shorter
    table[key] = values


def _lowest_mean(values: NDArray[np.float64], at: float) -> float:
    """Return the lowest mean of ``values[m]`` over all distributions of m with the given mean.

    It is taken by two values of m, one on each side (the lower convex hull).
    """
    below, above = np.arange(math.floor(at) + 1), np.arange(math.ceil(at), len(values))
    left, right = np.meshgrid(below, above, indexing="ij")
    width = np.maximum(right - left, 1)
    mean = (values[left] * (right - at) + values[right] * (at - left)) / width
    return float(np.where(left == right, values[left], mean).min())


def _distinct_records(X: Any, k: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the distinct records in the order of their values, and how often each occurs."""
    k = check_count("k", k, 1)
    check_pandas(X)
    if not isinstance(X, pd.DataFrame):
        X = np.asarray(X)
        if X.ndim != 2:
            raise InputError(f"the records have {X.ndim} dimension(s), expected 2: one row for each record")
        X = pd.DataFrame(X)
    for name, dtype in X.dtypes.items():
        if not pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_complex_dtype(dtype):
            raise InputError(
                f"column {name!r} is not numeric and distances between neighbours are; "
                "pass the numeric columns alone, scaled as SMOTE saw them"
            )
    values = X.to_numpy(dtype=float, na_value=np.nan)
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        raise InputError(
            f"column {X.columns[bad[0, 1]]!r} has a missing or infinite value in row {bad[0, 0]}; "
            "remove such records, SMOTE does not take them"
        )
    if np.abs(values).max(initial=0.0) > _LARGEST:
        raise InputError(
            f"a value is beyond {_LARGEST:g}, and no float holds the squares of distances; rescale the records"
        )
    # Adding 0 turns a negative zero into the positive one, which it equals.
    records, copies = np.unique(values + 0.0, axis=0, return_counts=True)
    if len(records) <= k:
        raise InputError(
            f"there are {len(records)} distinct records for k = {k} neighbours; pass more records than that"
        )
    return records, copies.astype(np.int64)


def _nearest(records: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Return the k nearest of distinct records, the nearest first, ties in the order of the records."""
    from sklearn.neighbors import NearestNeighbors

    n = len(records)
    # Distances do not change, but lose fewer digits near the origin.
    records = records - records.mean(axis=0)
    search = NearestNeighbors().fit(records)
    nearest = np.empty((n, k), dtype=np.int64)
    waiting, reach = np.arange(n), min(n, k + 2)
    while len(waiting):
        cut = []
        step = max(1, _CHUNK // reach)
        for begin in range(0, len(waiting), step):
            some = waiting[begin : begin + step]
            distance, near = search.kneighbors(records[some], reach)
            distance[near == some[:, None]] = np.inf
            last = np.partition(distance, k - 1, axis=1)[:, k - 1]
            # The record itself is at infinity, so the farthest other one stands before it.
            farthest = np.partition(distance, -2, axis=1)[:, -2]
            complete = (farthest > last * (1 + _TIE)) | (reach == n)
            cut.append(some[~complete])
            nearest[some[complete]] = _in_order(distance[complete], near[complete], k)
        waiting = np.concatenate(cut)
        reach = min(n, 2 * reach)
    return nearest


def _in_order(distance: NDArray[np.float64], near: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Return the first k of each list by distance, equal ones by number."""
    order = np.argsort(distance, axis=1, kind="stable")
    distance = np.take_along_axis(distance, order, axis=1)
    near = np.take_along_axis(near, order, axis=1)
    new = distance[:, 1:] > distance[:, :-1] * (1 + _TIE)
    group = np.concatenate((np.zeros((len(near), 1), dtype=np.int64), np.cumsum(new, axis=1)), axis=1)
    order = np.lexsort((near, group), axis=1)[:, :k]
    return np.take_along_axis(near, order, axis=1)
