"""ReconSMOTE: the real records behind a synthetic table, from where its lines meet."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.spatial import KDTree
from scipy.special import gammaincc

from oversafe.attack import _kernels
from oversafe.attack.base import Attack, AttackResult, wilson_interval
from oversafe.attack.expansion import expand
from oversafe.attack.lines import (
    BoolArray,
    FloatArray,
    IntArray,
    Lines,
    Points,
    find_lines,
    neighbors_to_search,
    random_axis,
    read_points,
)
from oversafe.errors import InputError

# A true end of a line is turned down with this probability, because its last stretch is empty by chance.
REJECTION = 1e-4
# Up to this many lines, each is held against each; above, against those with an end close to its own.
_ALL_PAIRS = 6000
_CLOSE_ENDS = 64
# The largest error of an intersection, in column ranges, that is followed up.
_LARGEST_RADIUS = 1e-4


@dataclass(frozen=True)
class ReconstructionResult(AttackResult):
    """The records that ReconSMOTE recovered.

    Parameters
    ----------
    name, threat, risk, interval, evidence, details
        See :class:`~oversafe.attack.AttackResult`.
    records : DataFrame or array
        One recovered record per row, in the columns, order and units of the attacked table. Columns
        that took no part (not numeric, or with missing values) are missing, unless they are constant.
    support : array of int
        How many lines end in each record, or from how many known records a ray leads to it.
    radius : array of float
        Estimated distance of each record from the true one, where a column's range counts as 1.
    """

    records: Any = field(default=None, repr=False)
    support: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False)
    radius: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)
    _ranges: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)

    def score(self, X_real: Any, tolerance: float = 1e-6) -> tuple[float, float]:
        """Return the precision and the recall of the recovered records.

        Parameters
        ----------
        X_real : DataFrame or array
            The real records, with the columns of the attacked table. Equal records count once.
        tolerance : float
            A record is recovered when every value is right within this share of the column's range.

        Returns
        -------
        precision : float
            Share of the recovered records that are real; nan if nothing was recovered.
        recall : float
            Share of the distinct real records that were recovered.
        """
        hit, found = _match(self.records, self._ranges, X_real, tolerance)
        precision = float(hit.mean()) if len(hit) else math.nan
        return precision, float(found.mean())


class ReconSMOTE(Attack):
    """Reconstruct the real records from which SMOTE made a table.

    Synthetic rows lie on segments between real records. Three of them on one line give the line away,
    and the lines that end in the same record meet there. Algorithm 3 of [1]_ keeps the intersections on
    at least three lines. Here an intersection must also be an end of its lines, beyond or at their
    outermost rows, and each end of a line belongs to one record: the one where the stretches without
    rows are the most plausible. This leaves out the chance meetings of lines between the points of a
    grid, such as one-hot encoded or rounded columns.

    Parameters
    ----------
    n_neighbors : int or "auto"
        How many neighbours of each row to search for lines. "auto" takes ``2 * k_neighbors * ratio``
        as in the paper if ``ratio`` is given, else 1000 (fewer above 20,000 rows).
    k_neighbors : int
        The number of neighbours that SMOTE used, as far as known.
    ratio : float, optional
        Majority rows per minority row in the real table, if known.
    min_lines : int
        How many lines must end in a record.
    expand : bool
        Whether to go on from the records where lines meet: real values lie on grids (decimals, whole
        numbers, 0 and 1), so that one released row and one known record give the record at the other end.
        Without it the attack stops where the paper's does.
    tolerance : float, optional
        Error of the released values as a share of their column's range. By default it follows from the
        precision of the columns' dtypes; give it for a table that was rounded.
    n_jobs : int, optional
        Number of threads, as in joblib.

    See Also
    --------
    DistinSMOTE : Tells the real rows of an augmented table from the synthetic ones.
    ExactCopies : Counts the real rows that stand in a release verbatim.

    References
    ----------
    .. [1] "SMOTE and Mirrors: Exposing Privacy Leakage from Synthetic Minority Oversampling", Section 4.3.

    Examples
    --------
    >>> import numpy as np
    >>> from imblearn.over_sampling import SMOTE
    >>> from oversafe.attack import ReconSMOTE
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1020, 4))
    >>> y = np.repeat([0, 1], [1000, 20])
    >>> X_augmented, y_augmented = SMOTE(random_state=0).fit_resample(X, y)
    >>> result = ReconSMOTE().run(X_augmented[1020:])
    >>> result.score(X[y == 1])
    (1.0, 1.0)
    """

    def __init__(
        self,
        n_neighbors: int | Literal["auto"] = "auto",
        *,
        k_neighbors: int = 5,
        ratio: float | None = None,
        min_lines: int = 3,
        expand: bool = True,
        tolerance: float | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.k_neighbors = k_neighbors
        self.ratio = ratio
        self.min_lines = min_lines
        self.expand = expand
        self.tolerance = tolerance
        self.n_jobs = n_jobs

    def run(self, X: Any, real: Any = None) -> ReconstructionResult:
        """Recover real records from the synthetic rows of the minority class.

        Parameters
        ----------
        X : DataFrame or array of shape (n_rows, n_columns)
            The released minority rows. Rows of the real table may be among them.
        real : DataFrame or array, optional
            The real minority records. With them the risk is the share of distinct records recovered;
            without, it is estimated by the share of the released rows on lines that end in a recovered
            record.

        Returns
        -------
        ReconstructionResult
            The recovered records. ``details["risk_basis"]`` is "recall" or "estimate".

        Raises
        ------
        InputError
            If the table is empty, not two-dimensional, or has infinite values.
        """
        started = perf_counter()
        if self.min_lines < 2:
            raise InputError(f"min_lines is {self.min_lines}; lines meet from 2 on, the paper takes 3")
        points = read_points(X, self.tolerance)
        n_neighbors = neighbors_to_search(points, self.n_neighbors, self.k_neighbors, self.ratio)
        lines = find_lines(points, n_neighbors, n_jobs=self.n_jobs)
        ends = _recover(lines, self.min_lines)
        places, radius = _intersect(lines, ends)
        support = np.array([len(end) for end in ends], dtype=np.int64)
        members = [np.unique(np.concatenate([lines.members(line) for line in end])) for end in ends]
        if self.expand and len(places):
            expansion = expand(points.values, places, radius, points.noise)
            places, radius = expansion.places, expansion.radius
            support = np.append(support, [len(rays) for rays in expansion.rays]).astype(np.int64)
            members += expansion.rows
        released = _released_row(places, radius, points)

        copies = np.bincount(points.row, minlength=len(points.values))
        on_lines = np.unique(lines.indices)
        on_ending = np.unique(np.concatenate(members)) if members else np.empty(0, dtype=np.int64)
        frame, ranges = _in_units(places, released, points)
        findings = pd.DataFrame(
            {
                "lines": support,
                "released_rows": np.array([copies[those].sum() for those in members], dtype=np.int64),
                "radius": radius,
                "found_by": ["lines"] * len(ends) + ["grid"] * (len(places) - len(ends)),
            }
        )
        details: dict[str, Any] = {
            "lines": len(lines),
            "points_on_lines": int(copies[on_lines].sum()),
            "released": int((released >= 0).sum()),
            "found_by_grid": len(places) - len(ends),
            "n_neighbors": n_neighbors,
            "tolerance": points.noise,
            "columns_left_out": points.left_out,
        }
        if points.reason is not None:
            details["reason"] = points.reason
        if real is None:
            details["risk_basis"] = "estimate"
            successes, trials = int(copies[on_ending].sum()), len(points.row)
        else:
            hit, found = _match(frame, ranges, real, tolerance=1e-6)
            details["precision"] = float(hit.mean()) if len(hit) else math.nan
            details["recall"] = float(found.mean())
            details["recovered"] = int(found.sum())
            details["distinct_real"] = len(found)
            details["risk_basis"] = "recall"
            successes, trials = int(found.sum()), len(found)
        details["seconds"] = perf_counter() - started
        return ReconstructionResult(
            name="ReconSMOTE",
            threat="reconstruction",
            risk=successes / trials,
            interval=wilson_interval(successes, trials),
            evidence=pd.concat([frame, findings], axis=1),
            details=details,
            records=frame if isinstance(X, pd.DataFrame) else frame.to_numpy(),
            support=support,
            radius=radius,
            _ranges=ranges,
        )


def _recover(lines: Lines, min_lines: int) -> list[IntArray]:
    """Return, for each recovered record, the lines that end in it."""
    if len(lines) < min_lines:
        return []
    first, last, size = lines.t_min, lines.t_max, lines.sizes
    largest_gap = -math.log(REJECTION)
    pairs, found = _kernels.common_ends(
        lines.centre,
        lines.direction,
        first,
        last,
        size,
        _partners(lines),
        lines.noise,
        largest_gap,
        _LARGEST_RADIUS,
    )
    line, position, radii = pairs.T.ravel(), found[:, :2].T.ravel(), np.tile(found[:, 2], 2)
    order = np.lexsort((position, line))
    order = order[_kernels.shared_places(line[order], position[order], radii[order], min_lines - 1)]
    line, radii = line[order], radii[order]
    places = lines.centre[line] + position[order, None] * lines.direction[line]
    chosen = _distinct(places, radii)
    places, radii = places[chosen], radii[chosen]
    limits, line, position = _kernels.lines_through(
        places, radii, lines.centre, lines.direction, first, last, lines.noise
    )
    place = np.repeat(np.arange(len(places)), np.diff(limits))
    beyond = np.maximum(position - last[line], first[line] - position)
    slack = 2 * (radii[place] + lines.error_at(line, position))
    inside = np.bincount(place[beyond < -slack], minlength=len(places))
    gap = (size[line] - 1) * np.log1p(np.maximum(beyond, 0) / lines.length[line])
    candidates = []
    for number in range(len(places)):
        entries = np.arange(limits[number], limits[number + 1])
        entries = entries[(beyond[entries] >= -slack[entries]) & (gap[entries] <= largest_gap)]
        entries = entries[np.argsort(gap[entries], kind="stable")]
        entries = entries[_not_parallel(lines, line[entries])]
        ends = 2 * line[entries] + (position[entries] > 0)
        candidates.append((ends, gap[entries], int(inside[number])))
    return [ends // 2 for ends in _claim(candidates, min_lines)]


def _distinct(places: FloatArray, radii: FloatArray) -> IntArray:
    """Return one of each set of places that agree within their errors, the most accurate."""
    projection = places @ random_axis(places.shape[1])
    order = np.argsort(projection)
    reach = radii + radii.max(initial=0)
    start = np.searchsorted(projection[order], projection - reach)
    stop = np.searchsorted(projection[order], projection + reach, side="right")
    taken = np.zeros(len(places), dtype=bool)
    chosen = []
    for place in np.argsort(radii, kind="stable"):
        if not taken[place]:
            chosen.append(place)
            near = order[start[place] : stop[place]]
            distance = np.linalg.norm(places[near] - places[place], axis=1)
            taken[near[distance <= radii[near] + radii[place]]] = True
    return np.array(chosen, dtype=np.int64)


def _claim(candidates: list[tuple[IntArray, FloatArray, int]], min_lines: int) -> list[IntArray]:
    """Give each end of a line to one candidate, the most plausible first; return what those kept hold.

    The gaps of a true record's lines add up to a gamma variable with one degree per line; the candidate
    whose sum is the least surprising takes its ends, and the others must do without them.
    """
    claimed: set[int] = set()

    def rank(number: int) -> tuple[float, int, int] | None:
        ends, gaps, inside = candidates[number]
        free = np.array([end not in claimed for end in ends.tolist()], dtype=bool)
        count = int(free.sum())
        # A crossing in the middle of as many lines as end there is more likely a crossing than a record.
        if count < min_lines or inside >= count:
            return None
        surprise = float(gammaincc(count, gaps[free].sum()))
        return None if surprise < REJECTION else (-surprise, -count, number)

    queue = [ranked for ranked in map(rank, range(len(candidates))) if ranked is not None]
    heapq.heapify(queue)
    kept = []
    while queue:
        ranked = heapq.heappop(queue)
        current = rank(ranked[2])
        if current is None:
            continue
        if current > ranked:
            heapq.heappush(queue, current)
            continue
        ends = candidates[ranked[2]][0]
        kept.append(np.array([end for end in ends.tolist() if end not in claimed], dtype=np.int64))
        claimed.update(ends.tolist())
    return kept


def _partners(lines: Lines) -> IntArray:
    """Return which lines to hold against each line."""
    n = len(lines)
    if n <= _ALL_PAIRS:
        return np.arange(n)[None, :]
    outermost = np.concatenate(
        [lines.centre + t[:, None] * lines.direction for t in (lines.t_min, lines.t_max)]
    )
    close = KDTree(outermost).query(outermost, k=_CLOSE_ENDS, workers=-1)[1] % n
    partners = np.sort(np.concatenate((close[:n], close[n:]), axis=1), axis=1).astype(np.int64)
    partners[:, 1:][partners[:, 1:] == partners[:, :-1]] = -1
    return np.ascontiguousarray(partners)


def _not_parallel(lines: Lines, chosen: IntArray) -> IntArray:
    """Return the places in the list of the lines that are parallel to none before them."""
    direction = lines.direction[chosen]
    slack = 4 * lines.noise / lines.length[chosen]
    kept: list[int] = []
    for place in range(len(chosen)):
        before = direction[kept]
        cosine = before @ direction[place]
        sine = np.linalg.norm(direction[place] - cosine[:, None] * before, axis=1)
        if (sine > slack[place] + slack[kept]).all():
            kept.append(place)
    return np.array(kept, dtype=np.int64)


def _intersect(lines: Lines, ends: list[IntArray]) -> tuple[FloatArray, FloatArray]:
    """Return the points closest to the lines that end in each record, and their errors.

    The squared distances are weighted by the precision of each line at the intersection.
    """
    d = lines.centre.shape[1]
    places, radii = np.empty((len(ends), d)), np.empty(len(ends))
    for number, end in enumerate(ends):
        direction, centre = lines.direction[end], lines.centre[end]
        error = np.full(len(end), lines.noise)
        for _ in range(2):
            weight = (error.min() / error) ** 2
            system = np.eye(d) * weight.sum() - np.einsum("i,ij,ik->jk", weight, direction, direction)
            along = np.einsum("ij,ij->i", centre, direction)
            target = weight @ (centre - along[:, None] * direction)
            place = np.linalg.solve(system, target)
            error = lines.error_at(end, np.einsum("ij,ij->i", place - centre, direction))
        places[number] = place
        radii[number] = error.min() * math.sqrt(np.trace(np.linalg.inv(system)))
    return places, radii


def _released_row(places: FloatArray, radius: FloatArray, points: Points) -> IntArray:
    """Return the row of the release that each record is, or -1."""
    if not len(places):
        return np.empty(0, dtype=np.int64)
    distance, nearest = KDTree(points.values).query(places)
    first_row = np.unique(points.row, return_index=True)[1]
    return np.where(distance <= 4 * radius + points.noise, first_row[nearest], -1)


def _in_units(places: FloatArray, released: IntArray, points: Points) -> tuple[pd.DataFrame, FloatArray]:
    """Return the records in the table's columns and units, and the columns' ranges (nan: left out)."""
    table = points.frame
    ranges = np.full(table.shape[1], np.nan)
    columns: dict[int, Any] = {}
    for position in range(table.shape[1]):
        column = table.iloc[:, position]
        value, dtype = np.nan, "float" if pd.api.types.is_numeric_dtype(column.dtype) else "object"
        if _is_constant(column):
            value, dtype = column.iloc[0], column.dtype
            if position in points.numeric:
                ranges[position] = 0.0
        columns[position] = pd.Series([value] * len(places), dtype=dtype)
    for at, position in enumerate(points.columns.tolist()):
        given = table.iloc[:, position].to_numpy(dtype=float)
        scaled_back = points.low[at] + places[:, at] * points.span[at]
        columns[position] = np.where(released >= 0, given[released], scaled_back)
        ranges[position] = points.span[at]
    frame = pd.DataFrame(columns)
    frame.columns = table.columns
    return frame, ranges


def _is_constant(column: pd.Series) -> bool:
    first = column.iloc[0]
    return bool(pd.api.types.is_scalar(first) and column.notna().all() and (column == first).all())


def _match(records: Any, ranges: FloatArray, X_real: Any, tolerance: float) -> tuple[BoolArray, BoolArray]:
    """Return which recovered records are real, and which distinct real records were recovered."""
    by_name = isinstance(records, pd.DataFrame) and isinstance(X_real, pd.DataFrame)
    records, real = pd.DataFrame(records), pd.DataFrame(X_real)
    if by_name:
        missing = [name for name in records.columns if name not in real.columns]
        if missing:
            raise InputError(f"the real table lacks the column {missing[0]!r} of the attacked one; add it")
        real = real[list(records.columns)]
    elif real.shape[1] != records.shape[1]:
        raise InputError(
            f"the real table has {real.shape[1]} columns, the attacked one {records.shape[1]}; "
            "pass the same columns in the same order"
        )
    if not len(real):
        raise InputError("the real table is empty; pass the real minority records")
    used = np.flatnonzero(~np.isnan(ranges))
    wanted = np.unique(real.iloc[:, used].to_numpy(dtype=float, na_value=np.nan), axis=0)
    complete = ~np.isnan(wanted).any(axis=1)
    found = np.zeros(len(wanted), dtype=bool)
    hit = np.zeros(len(records), dtype=bool)
    if not len(records) or not complete.any():
        return hit, found
    scale = np.maximum(ranges[used], np.ptp(wanted[complete], axis=0))
    scale[scale == 0] = 1.0
    there = wanted[complete] / scale
    here = records.iloc[:, used].to_numpy(dtype=float) / scale
    hit = KDTree(there).query(here, p=np.inf)[0] <= tolerance
    found[complete] = KDTree(here).query(there, p=np.inf)[0] <= tolerance
    return hit, found
