"""DistinSMOTE: which rows of an augmented table are real."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from time import perf_counter
from typing import Any, Literal

import numpy as np

from oversafe._core.errors import InputError
from oversafe._core.text import listed, percent
from oversafe.attack.base import ONLY_THE_FILE, About, Attack, AttackResult, Earlier, wilson_interval
from oversafe.attack.class_tables import ClassTables, too_few
from oversafe.attack.copies import difference_interval
from oversafe.attack.geometry.labels.rows import TableRows, told_of
from oversafe.attack.geometry.noise import lines_at_their_error
from oversafe.attack.geometry.prepared import prepare
from oversafe.attack.geometry.recovery import Recovered, find_records
from oversafe.attack.geometry.shapes.lines import Lines, find_lines, neighbors_to_search
from oversafe.attack.geometry.shapes.points import (
    EXACT,
    BoolArray,
    FloatArray,
    IntArray,
    Points,
    as_frame,
    read_points,
)
from oversafe.attack.geometry.shapes.segments import shares_of
from oversafe.data.rows import is_copy

# A row in which this many lines end is real beyond doubt, by the argument of the paper's Theorem 2.
_CERTAIN = 3
# A rounded row is within this many errors of where it would be.
_AT = 2.5
# So many rows that are real beyond doubt may be off the grids.
_CONTRADICTED = 0.1
# What is real beyond doubt has at least this probability.
_SURE = 0.99
# A row is said to be real from here on; one of which nothing is known has it.
_OPEN = 0.5


@dataclass(frozen=True)
class Odds:
    """How likely a row is real by the lines of its table; measured on the development sets of benchmarks/distin_cases.

    Parameters
    ----------
    inside, at_end, beside : float
        In a table of full precision: inside a line, at the end of one, on none.
    between, off : float
        In a rounded table: on a line or between two records, and elsewhere.
    at_record : float
        Where a record was recovered.
    beyond : float
        At the end of one line where rows lie beyond records.
    """

    inside: float = 0.001
    at_end: float = 0.99
    beside: float = 0.95
    between: float = 0.1
    off: float = 0.8
    at_record: float = 0.98
    beyond: float = 0.1


ODDS = Odds()


@dataclass(frozen=True)
class DistinguishingResult(AttackResult):
    """Which rows DistinSMOTE takes for real.

    Parameters
    ----------
    name, threat, risk, interval, evidence, details
        See :class:`~oversafe.attack.AttackResult`.
    is_real : array of bool
        For each row of the attacked table, whether it is labelled real; not where gaps leave it open.
    p_real : array of float
        For each row, the probability that it is real; 0.5 where nothing tells, NaN where gaps leave it open.
    """

    is_real: BoolArray = field(default_factory=lambda: np.empty(0, dtype=bool), repr=False)
    p_real: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)
    _point: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False)

    def score(self, truth: Any) -> tuple[float, float]:
        """Return the precision and the recall of the label "real".

        Parameters
        ----------
        truth : array of bool
            For each row of the attacked table, whether it is real. Exact copies of real rows count as
            real.

        Returns
        -------
        precision : float
            Share of the rows labelled real that are; nan if none is labelled real.
        recall : float
            Share of the real rows that are labelled so; nan if none is real.
        """
        real = _with_copies(truth, self._point)
        found = int((self.is_real & real).sum())
        claimed, total = int(self.is_real.sum()), int(real.sum())
        return found / claimed if claimed else math.nan, found / total if total else math.nan


@dataclass(eq=False, repr=False)
class DistinSMOTE(Attack):
    """Tell the real rows of a table that SMOTE augmented from the synthetic ones.

    Among three rows on one line the middle one is synthetic, since SMOTE places its rows strictly between
    two real records and three real ones are not collinear. Algorithm 2 of [1]_ removes these rows, and
    what is left is real. Here the rows that are left are searched again among themselves, however far
    apart, because the ends of every segment are among them; and a row at a simple fraction of its line
    stays, because real records on a grid (integers, rounded values) can be collinear.

    Real values lie on grids, such as whole numbers or two decimals, and interpolated ones beside them. Where columns
    have grids, and the rows off them lie between rows on them or can be decoded by themselves, the grids tell: no line
    through three rows is needed. In rounded tables a row that lies between two others, within the errors of the file
    and more often than chance explains, is synthetic.

    Parameters
    ----------
    n_neighbors : int or "auto"
        How many neighbours of each row to search for lines. "auto" takes ``2 * k_neighbors * ratio``
        as in the paper if ``ratio`` is given, else 1000 (fewer above 20,000 rows).
    k_neighbors : int
        The number of neighbours that SMOTE used, as far as known.
    ratio : float, optional
        Majority rows per minority row in the real table, if known.
    tolerance : float, optional
        Error of the released values as a share of their column's range. By default it follows from the
        precision of the columns' dtypes, from their decimals, and from the rows themselves.
    n_jobs : int, optional
        Number of threads, as in joblib.

    See Also
    --------
    ReconSMOTE : Recovers the real records when only the synthetic rows are released.

    References
    ----------
    .. [1] "SMOTE and Mirrors: Exposing Privacy Leakage from Synthetic Minority Oversampling", Section 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> from imblearn.over_sampling import SMOTE
    >>> from oversafe.attack import DistinSMOTE
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1020, 4))
    >>> y = np.repeat([0, 1], [1000, 20])
    >>> X_augmented, y_augmented = SMOTE(random_state=0).fit_resample(X, y)
    >>> result = DistinSMOTE().run(X_augmented[y_augmented == 1])
    >>> result.score(np.arange(1000) < 20)
    (1.0, 1.0)
    """

    about = About(
        question="Can the real rows be told from the added ones?",
        attacker=ONLY_THE_FILE,
        method=(
            "Added rows lie between others on a line, real ones at its ends, and added values lie between the "
            "measured ones. Whoever sees which rows are real holds the records of real people."
        ),
        risk=(
            "The share of the real rows that are recognised, less the share of the added rows that are "
            "taken for real. With the release alone, the share of the rows taken for real that are so "
            "with certainty."
        ),
        threat="distinguishing",
        needs=("release", "reconstruction"),
        helped_by=("real",),
    )

    n_neighbors: int | Literal["auto"] = "auto"
    _: KW_ONLY
    k_neighbors: int = 5
    ratio: float | None = None
    tolerance: float | None = None
    n_jobs: int | None = None

    def run(self, X: Any, truth: Any = None) -> DistinguishingResult:
        """Label each row of the minority class as real or synthetic.

        Parameters
        ----------
        X : DataFrame or array of shape (n_rows, n_columns)
            The released minority rows, real and synthetic.
        truth : array of bool, optional
            For each row, whether it is real. With it the risk is the true positive rate minus the false
            positive rate; without, the share of the rows labelled real in which at least three lines
            end, which makes them real beyond doubt.

        Returns
        -------
        DistinguishingResult
            The labels and their probabilities. ``details["risk_basis"]`` is "truth" or "estimate". A table without
            lines keeps the paper's labels (all real), at risk 0: there was nothing to tell apart.

        Raises
        ------
        InputError
            If the table is empty, not two-dimensional, or has infinite values.
        """
        started = perf_counter()
        given, table = as_frame(X), prepare(X)
        points = read_points(table.frame, self.tolerance)
        n_neighbors = neighbors_to_search(points, self.n_neighbors, self.k_neighbors, self.ratio)
        points, lines = lines_at_their_error(points, n_neighbors, self.tolerance, self.n_jobs)
        if points.exact:
            found = _search(points, lines, n_neighbors, self.n_jobs)
            by_lines, ends = _exact_lines(points, found, self.n_jobs)
        else:
            found = [lines]
            by_lines, ends = _between_and_at_records(points, lines, self.n_jobs)
        # Rows with gaps in the columns used are judged by their grids alone.
        p_real, ends_of_row = np.full(len(given), np.nan), np.zeros(len(given), dtype=np.int64)
        p_real[table.rows], ends_of_row[table.rows] = by_lines[points.row], ends[points.row]
        told = told_of(given, table, n_jobs=self.n_jobs)
        at_record = p_real == ODDS.at_record
        if points.exact and not told.full:
            # Rounded more than the lines allow for: many rows are beside the lines that they made.
            p_real = np.where(p_real < _OPEN, ODDS.between, np.where(np.isnan(p_real), np.nan, _OPEN))
        sure = (ends_of_row >= _CERTAIN) & (p_real >= _OPEN)
        if told.full and told.by_grids and sure.any() and (told.p_real[sure] < _OPEN).mean() > _CONTRADICTED:
            # Rows that are real by the lines are off the grids, which are those of other rows.
            told = TableRows(np.full(len(given), np.nan))
        if told.tells:
            p_real = np.where(np.isnan(told.p_real), p_real, told.p_real)
        if not told.by_grids:
            # The records that ReconSMOTE recovers are surer than the rows on either side.
            p_real[at_record] = ODDS.at_record
        judged, is_real = ~np.isnan(p_real), p_real >= _OPEN
        certain = is_real & ((ends_of_row >= _CERTAIN) | ((p_real >= _SURE) & told.by_grids))

        n_lines = sum(len(lines) for lines in found)
        details: dict[str, Any] = {
            "lines": n_lines,
            "labelled_real": int(is_real.sum()),
            "labelled_synthetic": int((judged & ~is_real).sum()),
            "certain": int(certain.sum()),
            "told_by_grids": told.columns,
            "n_neighbors": n_neighbors,
            "tolerance": points.noise,
            "columns_left_out": points.left_out,
            "why_left_out": table.why_left_out(points.left_out),
            "rows_left_out": int((~judged).sum()),
        }
        # Rows that are left out equal none but themselves.
        point = len(points.values) + np.arange(len(given))
        point[table.rows] = points.row
        if points.reason is not None:
            details["reason"] = points.reason
        if truth is None:
            details["risk_basis"] = "estimate"
            successes, trials = details["certain"], details["labelled_real"]
            risk = successes / trials if trials else 0.0
            interval = wilson_interval(successes, trials)
        else:
            details["risk_basis"] = "truth"
            real = _with_copies(truth, point)
            hits, total = int((is_real & real).sum()), int((judged & real).sum())
            false, others = int((is_real & ~real).sum()), int((judged & ~real).sum())
            details["precision"] = hits / (hits + false) if hits + false else math.nan
            details["recall"] = hits / total if total else math.nan
            risk = max(0.0, hits / total - false / others) if total and others else 0.0
            low, high = difference_interval(hits, total, false, others)
            interval = max(0.0, low), max(0.0, high)
        details["seconds"] = perf_counter() - started

        shown = is_real & (n_lines > 0 or told.tells)
        evidence = given.loc[shown].copy()
        evidence.insert(evidence.shape[1], "lines", ends_of_row[shown], allow_duplicates=True)
        return DistinguishingResult(
            name="DistinSMOTE",
            threat="distinguishing",
            risk=risk,
            interval=interval,
            evidence=evidence,
            details=details,
            is_real=is_real,
            p_real=p_real,
            _point=point,
        )

    def why_not(self, tables: ClassTables, earlier: Earlier) -> str | None:
        """Return that no real row can be told from added ones, by the real rows or the records computed."""
        if too_few(tables.release):
            return ""
        truth = _truth(tables)
        found = earlier.get("computed")
        if truth is not None and truth.all():
            return "all its rows are real, so there is none to be told from them"
        if found is not None and (
            truth is not None or found.details.get("released", 0) or told_of(tables.release).columns
        ):
            return None
        if found is not None and found.details.get("tolerance", 0.0) > EXACT and not found.evidence.empty:
            # Records were read out, so that the sentence below would deny them.
            return (
                "its values are rounded, so that real rows, if it has any, cannot be told from added ones as they "
                "stand"
            )
        return "no row of the release was found to be a real record"

    def run_on(self, tables: ClassTables, earlier: Earlier) -> DistinguishingResult | None:
        """Run it on the released rows, unless none of them is real."""
        truth = _truth(tables)
        return None if truth is not None and not truth.any() else self.run(tables.release, truth=truth)

    def headline(self, result: Any, label: str, certain: int = 0) -> str:
        """Return what a result means, for a reader who does not know the attack."""
        details = result.details
        if result.risk <= 0:
            return f"The rows of class {label!r} do not show which of them are real."
        if (columns := details.get("told_by_grids")) and details.get("precision", 1.0) == 1.0:
            return (
                f"{details['labelled_real']} rows of class {label!r} have measured values, and "
                f"{details['labelled_synthetic']} have values in between ({listed(columns)}): the former are real, "
                "the latter were added."
            )
        if details["risk_basis"] == "estimate":
            return (
                f"{details['certain']} of the {details['labelled_real']} rows of class {label!r} that look real "
                "are so with certainty: lines of added rows end in them."
            )
        return (
            f"{percent(details['recall'])} of the real rows of class {label!r} are recognised in the released "
            f"table, and {percent(max(0.0, details['recall'] - result.risk))} of the added ones are taken for real"
            f"{'; with so few rows that may be chance' if result.interval[0] <= 0 else ''}."
        )


def _truth(tables: ClassTables) -> BoolArray | None:
    """Return which released rows are real, if that is known."""
    return None if tables.truth is None else is_copy(tables.release, tables.truth)


def _search(points: Points, lines: Lines, n_neighbors: int, n_jobs: int | None) -> list[Lines]:
    """Return the lines of the table, then those among the rows that no line has explained."""
    found = [lines]
    synthetic = np.zeros(len(points.values), dtype=bool)
    searched = np.zeros(len(points.values), dtype=np.int64)
    while len(found[-1]):
        synthetic[found[-1].indices[found[-1].interpolated]] = True
        left = np.flatnonzero(~synthetic)
        if len(left) < 3:
            break
        # Rows farther apart than the neighbours searched before; as many as the same time allows.
        reach = max(n_neighbors, 20_000_000 // len(left))
        found.append(find_lines(points, reach, among=left, searched=searched, n_jobs=n_jobs))
    return found


def _inside_and_ends(points: Points, found: list[Lines]) -> tuple[BoolArray, IntArray]:
    """Return which points lie inside lines, and how many lines end in each."""
    synthetic = np.zeros(len(points.values), dtype=bool)
    ends = np.zeros(len(points.values), dtype=np.int64)
    for lines in found:
        synthetic[lines.indices[lines.interpolated]] = True
        np.add.at(ends, lines.indices[lines.indptr[:-1]], 1)
        np.add.at(ends, lines.indices[lines.indptr[1:] - 1], 1)
    return synthetic, ends


def _exact_lines(
    points: Points, found: list[Lines], n_jobs: int | None, odds: Odds = ODDS
) -> tuple[FloatArray, IntArray]:
    """Return the probability that each point is real, by lines without errors, and how many lines end in each."""
    synthetic, ends = _inside_and_ends(points, found)
    if not sum(map(len, found)):
        return np.full(len(synthetic), _OPEN), ends
    p_real = np.where(synthetic, odds.inside, np.where(ends > 0, odds.at_end, odds.beside))
    records = find_records(points, found[0], min_lines=None, go_on=True, n_jobs=n_jobs)
    shares = shares_of(points.values, records.segments, records.places)
    beyond = (shares < 0) | (shares > 1)
    if beyond.any():
        # Rows lie beyond records, so that records lie inside lines and the rows at their ends.
        p_real[beyond | (records.segments[:, 0] >= 0)] = odds.inside
        on_lines = np.bincount(np.concatenate([lines.indices for lines in found]), minlength=len(p_real))
        p_real[(records.segments[:, 0] < 0) & (on_lines == 1) & (ends == 1)] = odds.beyond
        p_real[[nearest for _, nearest in _at_records(points, records)]] = odds.at_record
    return p_real, ends


def _between_and_at_records(
    points: Points, lines: Lines, n_jobs: int | None, odds: Odds = ODDS
) -> tuple[FloatArray, IntArray]:
    """Return the probability that each point is real, by lines within errors, and how many lines end in each.

    Within errors a row may seem to be inside a line that ends in it; the records tell.
    """
    records = find_records(points, lines, min_lines=None, go_on=True, n_jobs=n_jobs)
    synthetic, ends = _inside_and_ends(points, [lines])
    synthetic |= records.segments[:, 0] >= 0
    ends[:] = 0
    p_real = np.where(synthetic, odds.between, odds.off if len(lines) else _OPEN)
    for number, nearest in _at_records(points, records):
        p_real[nearest] = odds.at_record
        ends[nearest] = records.support[number]
    return p_real, ends


def _at_records(points: Points, records: Recovered) -> Iterator[tuple[int, int]]:
    """Yield each recovered record that stands in the table, and the nearest point."""
    for number, place in enumerate(records.places):
        distance = np.linalg.norm(points.values - place, axis=1)
        nearest = int(distance.argmin())
        if distance[nearest] <= records.radius[number] + _AT * points.noise:
            yield number, nearest


def _with_copies(truth: Any, point: IntArray) -> BoolArray:
    """Return which rows are real or equal to a real row."""
    truth = np.asarray(truth)
    if truth.shape != point.shape or truth.dtype.kind not in "bi":
        raise InputError(
            f"truth has shape {truth.shape} and dtype {truth.dtype}, expected one boolean for each of the "
            f"{len(point)} rows"
        )
    real = np.zeros(int(point.max()) + 1, dtype=bool)
    real[point[truth.astype(bool)]] = True
    return real[point]
