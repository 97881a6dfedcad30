"""ReconSMOTE: the real records behind a synthetic table, from where its lines meet."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from time import perf_counter
from typing import Any, Literal

import numpy as np
import pandas as pd
from pandas.api import types

from oversafe._core.errors import InputError
from oversafe.attack.base import (
    ONLY_THE_FILE,
    About,
    Attack,
    AttackResult,
    Earlier,
    SuccessRate,
    wilson_interval,
)
from oversafe.attack.class_tables import ClassTables
from oversafe.attack.geometry.claims import (
    CERTAIN,
    CLAIMED,
    of_lines,
    seeds_of,
    with_single_rows,
)
from oversafe.attack.geometry.identify_sampler import recognise
from oversafe.attack.geometry.lattice.stage import SingleRows, from_single_rows, nothing_of_rows
from oversafe.attack.geometry.matching import match_records, of_other_classes
from oversafe.attack.geometry.noise import lines_at_their_error
from oversafe.attack.geometry.prepared import Prepared, prepare
from oversafe.attack.geometry.recovery import find_records
from oversafe.attack.geometry.sentences import reconstructed
from oversafe.attack.geometry.shapes.line_intersections import Meetings, find_meetings
from oversafe.attack.geometry.shapes.lines import neighbors_to_search, random_axis
from oversafe.attack.geometry.shapes.points import (
    BoolArray,
    FloatArray,
    IntArray,
    Points,
    as_frame,
    read_points,
)
from oversafe.attack.geometry.shapes.probability import wrong_places
from oversafe.attack.geometry.values import in_units, names_of, perhaps_filled


@dataclass(frozen=True)
class ReconstructionResult(AttackResult):
    """The records that ReconSMOTE recovered.

    Parameters
    ----------
    name, threat, risk, interval, evidence, details
        See :class:`~oversafe.attack.AttackResult`.
    records : DataFrame or array
        One recovered record per row, in the columns, order and units of the attacked table. Columns
        that took no part (neither numbers nor dates, or with too many missing values) are missing, unless they
        are constant.
    support : array of int
        How many lines end in each record, or from how many known records a ray leads to it.
    radius : array of float
        How far a value of each record may be from the true one, as a share of its column's range; columns that
        were filled in are not counted.
    errors : DataFrame
        How far each value may be from the true one, in the table's units; for dates in days, or in the largest unit
        of which all are multiples.
    estimated : DataFrame
        Which values are estimates: those of coarser columns (whole numbers beside floats) that the released rows leave
        open, and values of columns with gaps that may have been filled in. All other values are read, to within their
        errors.
    p_wrong : array of float
        The probability that no real record has the values of each record that are not estimates. Records that are
        wrong with a probability above .05 are left out; :attr:`certain` are those below 1e-6.
    p_values : DataFrame
        The same for each value.
    """

    records: Any = field(default=None, repr=False)
    support: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64), repr=False)
    radius: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)
    errors: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False)
    estimated: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False)
    p_wrong: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)
    p_values: pd.DataFrame = field(default_factory=pd.DataFrame, repr=False)
    _ranges: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)
    _segments: IntArray = field(default_factory=lambda: np.empty((0, 2), dtype=np.int64), repr=False)
    _shares: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)
    _filled_in: BoolArray = field(default_factory=lambda: np.empty(0, dtype=bool), repr=False)
    _units: dict[int, pd.Timedelta] = field(default_factory=dict, repr=False)

    @property
    def certain(self) -> Any:
        """The records that are wrong with a probability below 1e-6 each."""
        return self.records[self.p_wrong < CERTAIN]

    def score(self, X_real: Any, tolerance: float | None = None) -> tuple[float, float]:
        """Return the precision and the recall of the recovered records.

        Parameters
        ----------
        X_real : DataFrame or array
            The real records, with the columns of the attacked table. Equal records count once.
        tolerance : float, optional
            A record is recovered when every value is right within this share of the column's range. By
            default within a millionth of it, or the stated error where that is larger; values that are told as
            estimates may then be off, if most values are right.

        Returns
        -------
        precision : float
            Share of the recovered records that are real; nan if nothing was recovered.
        recall : float
            Share of the distinct real records that were recovered.
        """
        nearest, found, _ = match_records(
            self.records,
            self.errors,
            self.estimated,
            self._ranges,
            self._filled_in,
            X_real,
            tolerance,
            self._units,
        )
        precision = float((nearest >= 0).mean()) if len(nearest) else math.nan
        return precision, float(found.mean())

    def proof(self, record: int) -> pd.DataFrame:
        """Return the released rows that lie on straight lines through a recovered record.

        Parameters
        ----------
        record : int
            The record's number, from 0.

        Returns
        -------
        DataFrame
            One row per released row: ``line`` (its number, from 0), ``to`` (the recovered record at the other
            end), ``row`` (its number in the attacked table), ``share`` (how far it is on the way from this
            record, 0, to the other, 1).
        """
        if not 0 <= record < len(self.support):
            raise InputError(
                f"record {record!r} was asked for; {len(self.support)} were recovered, numbered from 0"
            )
        row, side = np.nonzero(self._segments == record)
        other = self._segments[row, 1 - side]
        share = np.where(side == 0, self._shares[row], 1 - self._shares[row])
        table = pd.DataFrame({"to": other, "row": row, "share": share}).sort_values(["to", "share"])
        table.insert(0, "line", pd.factorize(table["to"])[0])
        return table.reset_index(drop=True)


@dataclass(eq=False, repr=False)
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
    min_lines : int, optional
        How many lines must end in a record. By default three, as in the paper, and two where the lines are
        in general position: they move in three and more columns, and do not cross elsewhere.
    expand : bool
        Whether to go on from the records where lines meet: real values lie on grids (decimals, whole
        numbers, 0 and 1), so that one released row and one known record give the record at the other end.
        Without it the attack stops where the paper's does.
    tolerance : float, optional
        Error of the released values as a share of their column's range. By default it follows from the
        precision of the columns' dtypes, from their decimals, and from the rows themselves.
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

    about = About(
        question="Can real records be computed from the release?",
        attacker=ONLY_THE_FILE,
        method=(
            "SMOTE puts every new row on a straight line between two real records. Rows on one line give "
            "the line away, and where lines meet there is a real record, even if it was never handed out."
        ),
        risk=(
            "The share of the real records that were read back. With the release alone, an estimate: the "
            "share of the released rows on lines that end in a record read back. Somebody who guesses "
            "reads back none."
        ),
        threat="reconstruction",
        needs=("release",),
        helped_by=("real",),
        work=6.0,
        reads="computed",
    )

    n_neighbors: int | Literal["auto"] = "auto"
    _: KW_ONLY
    k_neighbors: int = 5
    ratio: float | None = None
    min_lines: int | None = None
    expand: bool = True
    tolerance: float | None = None
    n_jobs: int | None = None

    def run(
        self,
        X: Any,
        real: Any = None,
        known: Any = None,
        other_classes: Mapping[str, Any] | None = None,
    ) -> ReconstructionResult:
        """Recover real records from the synthetic rows of the minority class.

        Parameters
        ----------
        X : DataFrame or array of shape (n_rows, n_columns)
            The released minority rows. Rows of the real table may be among them.
        real : DataFrame or array, optional
            The real minority records. With them the risk is the share of distinct records recovered;
            without, it is estimated by the share of the released rows on lines that end in a recovered
            record.
        known : DataFrame or array, optional
            Rows of the release that are known to be real, such as those of the classes that nobody oversampled: they
            show the grids on which values lie. Without them, values that repeat do.
        other_classes : mapping, optional
            The real records of the other classes, by class: some samplers interpolate towards them.

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
        if self.min_lines is not None and self.min_lines < 2:
            raise InputError(f"min_lines is {self.min_lines}; lines meet from 2 on, the paper takes 3")
        given, table = as_frame(X), prepare(X)
        points = read_points(table.frame, self.tolerance)
        n_neighbors = neighbors_to_search(points, self.n_neighbors, self.k_neighbors, self.ratio)
        exact, (points, lines) = (
            points,
            lines_at_their_error(points, n_neighbors, self.tolerance, self.n_jobs),
        )
        meetings = find_meetings(lines, points, self.min_lines)
        single = (
            self._single_rows(exact, points, meetings, table, known)
            if self.expand
            else nothing_of_rows(table.frame.shape[1])
        )
        records = find_records(
            points,
            lines,
            meetings,
            seeds_of(single, points),
            min_lines=self.min_lines,
            go_on=self.expand,
            n_jobs=self.n_jobs,
        )
        released = _released_row(records.places, records.radius, points)
        p_wrong = wrong_places(points, len(lines), records, single.grids, single.past)
        ranges = _ranges(points)
        claims = of_lines(
            in_units(records, released, points), records, p_wrong, released, points, single.grids
        )
        claims = with_single_rows(claims, single, points, ranges)
        # Whoever says how many lines must meet is told of all places where they do.
        asked = np.array([self.min_lines is not None and by == "lines" for by in claims.found_by], dtype=bool)
        claims = claims.take((claims.p_wrong <= CLAIMED) | asked)
        if len(table.rows) < len(given) or table.gaps:
            claims.estimated[:] |= perhaps_filled(claims.frame, claims.released, given).to_numpy()
        frame, errors, estimated = claims.frame, claims.errors, claims.estimated

        copies = np.bincount(points.row, minlength=len(points.values))
        on_lines = np.unique(lines.indices)
        on_ending = np.flatnonzero(claims.segments[:, 0] >= 0)
        if claims.rows:
            on_ending = np.union1d(on_ending, np.concatenate(claims.rows))
        filled_in = np.isin(np.arange(len(ranges)), list(points.coarse))
        measured = np.flatnonzero((ranges > 0) & ~filled_in)
        stated = (errors.iloc[:, measured] / ranges[measured]).max(axis=1).to_numpy(dtype=float)
        findings = pd.DataFrame(
            {
                "lines": claims.support,
                "released_rows": np.array([copies[those].sum() for those in claims.rows], dtype=np.int64),
                "radius": stated,
                "found_by": claims.found_by,
                "columns_read": (frame.notna() & ~estimated).sum(axis=1).to_numpy(dtype=np.int64),
                "estimated": names_of(estimated),
                "p_wrong": claims.p_wrong,
            }
        )
        details: dict[str, Any] = {
            "lines": len(lines),
            "points_on_lines": int(copies[on_lines].sum()),
            "released": int((claims.released >= 0).sum()),
            "found_by_single_rows": claims.found_by.count("single rows"),
            "found_by_grid": claims.found_by.count("grid"),
            "found_by_rays": claims.found_by.count("rays"),
            "rows_decoded": single.tried,
            "certain": int((claims.p_wrong < CERTAIN).sum()),
            "wrong_expected": float(claims.p_wrong.sum()),
            "p_none_real": claims.none_is_real(),
            "digits": single.digits,
            "n_neighbors": n_neighbors,
            "tolerance": points.noise,
            "columns_left_out": points.left_out,
            "why_left_out": table.why_left_out(points.left_out),
            "rows_left_out": len(given) - len(table.rows),
            "columns": frame.shape[1],
            "columns_filled_in": tuple(points.frame.columns[position] for position in points.coarse),
            "columns_estimated": tuple(frame.columns[estimated.any().to_numpy(dtype=bool)]),
            "read_in_all_columns": int((findings["columns_read"] == frame.shape[1]).sum()),
        }
        kind = recognise(points, lines, records)
        details["kind"], details["kind_reason"] = kind.name, kind.sentence
        details["tools"], details["tools_error_rate"] = kind.tools, kind.error_rate
        details["k_neighbors"], details["mutuality"] = kind.k_neighbors, kind.mutuality
        details["recall_bound"] = kind.recall_bound
        if not len(frame):
            details["reason"] = points.reason or kind.sentence
        restored = table.restored(frame, given)
        if real is None:
            details["risk_basis"] = "estimate"
            successes, trials = int(copies[on_ending].sum()), len(points.row)
        else:
            how = (errors, estimated, ranges, filled_in)
            nearest, found, blank = match_records(restored, *how, real, None, table.units)
            findings["real_row"] = nearest
            belong = np.asarray(nearest >= 0)
            if other_classes:
                theirs = of_other_classes(restored, how, nearest, other_classes, table.units)
                findings["real_class"] = theirs
                belong = belong | theirs.notna().to_numpy()
                details["other_classes"] = theirs.value_counts().to_dict()
            details["precision"] = float(belong.mean()) if len(belong) else math.nan
            details["recall"] = float(found.mean())
            details["recovered"] = int(found.sum())
            details["distinct_real"] = len(found)
            details["real_with_a_blank"] = int(blank.sum())
            details["risk_basis"] = "recall"
            successes, trials = int(found.sum()), len(found)
        details["seconds"] = perf_counter() - started
        segments = np.full((len(given), 2), -1, dtype=np.int64)
        segments[table.rows] = claims.segments[points.row]
        shares = np.full(len(given), np.nan)
        shares[table.rows] = claims.shares(points)[points.row]
        return ReconstructionResult(
            name="ReconSMOTE",
            threat="reconstruction",
            risk=successes / trials,
            interval=wilson_interval(successes, trials),
            evidence=pd.concat([restored, findings], axis=1),
            details=details,
            records=restored if isinstance(X, pd.DataFrame) else restored.to_numpy(),
            support=claims.support,
            radius=stated,
            errors=errors,
            estimated=estimated,
            p_wrong=claims.p_wrong,
            p_values=claims.p_values,
            _ranges=ranges,
            _segments=segments,
            _shares=shares,
            _filled_in=filled_in,
            _units=table.units,
        )

    def _single_rows(
        self, exact: Points, points: Points, meetings: Meetings, table: Prepared, known: Any
    ) -> SingleRows:
        """Return what single rows give away, with the records in which lines meet as known ones."""
        columns = np.array(sorted(exact.numeric), dtype=np.int64)
        m = table.frame.shape[1]

        def numbers(frame: pd.DataFrame) -> FloatArray:
            values = np.full((len(frame), m), np.nan)
            for j in columns:
                column = pd.to_numeric(frame.iloc[:, j], errors="coerce")
                values[:, j] = column.to_numpy(dtype=float, na_value=np.nan)
            return values

        rows = None if known is None or not len(known) else numbers(table.like(known))
        met = None
        if points.exact and len(meetings.places):
            met = numbers(table.frame.iloc[np.zeros(len(meetings.places), dtype=int)])
            met[:, points.columns] = points.low + meetings.places * points.span
        whole = np.array([pd.api.types.is_integer_dtype(dtype) for dtype in table.frame.dtypes])
        return from_single_rows(numbers(table.frame), rows, met, whole)

    def why_not(self, tables: ClassTables, earlier: Earlier) -> str | None:
        """Return that a class has nothing to compute with, if it has not."""
        numbers = [
            types.is_any_real_numeric_dtype(dtype) or types.is_datetime64_any_dtype(dtype)
            for dtype in tables.release.dtypes
        ]
        return None if any(numbers) else "the release has no column of numbers or dates"

    def run_on(self, tables: ClassTables, earlier: Earlier) -> ReconstructionResult:
        """Run it on the released rows, and count the records that are real where that is known."""
        return self.run(
            tables.release, tables.truth, known=tables.other_rows, other_classes=tables.other_truth
        )

    def headline(self, result: Any, label: str, certain: int = 0) -> str:
        """Return what a result means, for a reader who does not know the attack."""
        return reconstructed(result, label, certain)

    def rates(self, result: AttackResult) -> list[SuccessRate]:
        """Return the share of the records, or of the released rows, that the attack explains."""
        label = (
            "real records read back"
            if result.details.get("risk_basis") == "recall"
            else "released rows on lines that end in a record read back"
        )
        own = SuccessRate(label, result.risk, result.interval, "attack")
        return [own, SuccessRate("guessing", 0.0, None)]


def _released_row(places: FloatArray, radius: FloatArray, points: Points) -> IntArray:
    """Return the row of the release that each record is, or -1."""
    if not len(places):
        return np.empty(0, dtype=np.int64)
    if not points.exact:
        return np.full(len(places), -1, dtype=np.int64)
    # Equal rows have equal places on any axis.
    axis = random_axis(places.shape[1])
    along, wanted = points.values @ axis, places @ axis
    order = np.argsort(along)
    reach = 4 * radius + points.noise
    start = np.searchsorted(along[order], wanted - reach)
    stop = np.searchsorted(along[order], wanted + reach, side="right")
    result = np.full(len(places), -1, dtype=np.int64)
    first_row = np.unique(points.row, return_index=True)[1]
    for number in np.flatnonzero(stop > start):
        close = order[start[number] : stop[number]]
        distance = np.linalg.norm(points.values[close] - places[number], axis=1)
        if distance.min() <= reach[number]:
            result[number] = first_row[close[distance.argmin()]]
    return result


def _ranges(points: Points) -> FloatArray:
    """Return the range of each column in which records are compared; nan for those that took no part."""
    ranges = np.full(points.frame.shape[1], np.nan)
    for position in points.numeric:
        column = points.frame.iloc[:, position].to_numpy(dtype=float)
        ranges[position] = np.ptp(column)
    return ranges
