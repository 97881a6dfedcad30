"""RecoverSeed: the seed that made a release, and the records that follow from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial import KDTree

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
from oversafe.attack.class_tables import ClassTables, too_few
from oversafe.attack.geometry.prepared import Prepared, in_numbers, prepare
from oversafe.attack.geometry.shapes.points import as_frame
from oversafe.attack.seed.candidates import favourites, more_seeds, usual_seeds
from oversafe.attack.seed.draws import Draws, Origin, draws_of, origin_of
from oversafe.attack.seed.follow import Followed, follow
from oversafe.attack.seed.search import (
    FloatArray,
    IntArray,
    Layout,
    Plan,
    SeedMatch,
    by_order,
    by_shares,
)
from oversafe.attack.seed.shares import Shares, between, read_shares

BoolArray = NDArray[np.bool_]

# The largest p of a seed that is named: one in a million releases that no seed tried has made.
LEVEL = 1e-6
# Records that are likelier wrong are not claimed.
_CLAIMED = 0.05
# Seeds that are tried together.
_AT_ONCE = 500
# Rows that are decoded before a seed is known.
_FIRST_ROWS = 250
# The shares of so few rows do not show a seed.
_FEWEST = 3
# Real values equal to this share of their column's range are equal.
_EQUAL = 1e-6
# Words of the likeliest seeds that are tried beyond what SMOTE takes: something else may have drawn first.
_DEEP = 1_000_000
# Numbers of records that are tried where it is not known.
_MOST_RECORDS = 1_500
# By shares, by the lines of another attack, and by order with two sets of layouts.
_SEARCHES = 4
# The release alone shows that a record follows if it is wrong with no more than this probability.
_CERTAIN = 1e-3


@dataclass(frozen=True)
class SeedResult(AttackResult):
    """The seed that made a release.

    Parameters
    ----------
    name, threat, risk, interval, evidence, details
        See :class:`~oversafe.attack.AttackResult`. ``details["seed"]`` is the seed or None, ``details["p"]`` the
        probability that one of all the seeds tried matches as well by chance, ``details["sampler"]`` what draws so, and
        ``details["order"]`` how the rows stand.
    records : DataFrame or array
        One real record per row that follows from the seed, in the columns of the attacked table; missing where a
        value does not follow.
    p_wrong : array of float
        The probability that no real record has these values.
    """

    records: Any = field(default=None, repr=False)
    p_wrong: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)


@dataclass(frozen=True)
class _Claims:
    """Records that follow from a seed, and what share of the rows was made from them."""

    records: FloatArray
    p_value: FloatArray
    how: tuple[str, ...]
    rows: IntArray

    def __len__(self) -> int:
        return len(self.records)


def _range(values: FloatArray) -> FloatArray:
    """Return the range of each column, infinite where floats cannot hold it."""
    with np.errstate(over="ignore"):
        return np.asarray(np.ptp(values, axis=0)) if len(values) else np.zeros(values.shape[1])


@dataclass(eq=False, repr=False)
class RecoverSeed(Attack):
    """Find the seed that made a release, and the real records that follow from it.

    Who writes ``SMOTE(random_state=42)`` tells everybody which random numbers were used. Two things show that a seed is
    the right one:

    - **Shares.** A row that can be decoded lies at the share u between two records, and u is one of the doubles that
      the sampler drew. The rows may be shuffled.
    - **Order.** If the rows stand in the order in which they were made, the seed says which rows were made from the
      same record, and they lie near one another. The rows may be rounded, to whole numbers too.

    With the seed, a row whose share was drawn lies between two real records beyond doubt. And where the rows are in
    order, each row says what its record and its neighbor may be; those of one record together often leave one.

    Parameters
    ----------
    n_real : int, optional
        The number of real records of the class, if it is known. By default some are tried.
    k_neighbors : int
        The number of neighbors that SMOTE used, as far as known. The order of rows shows seeds under this number only.
    time_limit : float, optional
        Seconds to go on with seeds above 100,000 if none of the usual ones fits.
    max_rows : int
        How many rows are decoded once the seed is known; it shows in the first 250.
    max_work : float
        Random numbers to look at, in each search.

    Notes
    -----
    Under a wrong seed the numbers drawn have nothing to do with the rows. So p is exact or a bound whatever the rows
    are: a binomial tail for the shares, and for the order Chernoff's bound, because given all rows before it a row is
    from the same record as one of three near ones with a probability of at most three over the number of records. It
    is multiplied by all the seeds on the list, all parts of their streams and all layouts. A seed is named if p is at
    most 1e-6.

    imbalanced-learn begins each class anew with a whole number as ``random_state``; a ``RandomState`` goes on from
    class to class. For the likeliest seeds the next million words of the stream are tried too.

    See Also
    --------
    ReconSMOTE : Recovers real records from the rows alone.

    Examples
    --------
    >>> import numpy as np
    >>> from imblearn.over_sampling import SMOTE
    >>> from oversafe.attack import RecoverSeed
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 1000, size=(240, 5)).astype(float)
    >>> y = np.repeat([0, 1], [200, 40])
    >>> rows = SMOTE(random_state=42).fit_resample(X, y)[0][240:].round()
    >>> result = RecoverSeed(n_real=40).run(rows, real=X[y == 1], known=X[y == 0])
    >>> result.details["seed"], result.details["sampler"], result.details["precision"]
    (42, 'SMOTE', 1.0)
    """

    about = About(
        question="Can the seed be found that made the release?",
        attacker=ONLY_THE_FILE,
        method=(
            "The seeds that people use (42, 0 to 100,000, dates) are tried one by one. Under the right one the random "
            "numbers explain where the rows lie between real records, or which rows were made from the same one. Then "
            "real records follow from them."
        ),
        risk=(
            "The share of the real records that follow from the seed. With the release alone, an estimate: the share "
            "of the rows made from a record that follows. 0 if no seed is found."
        ),
        threat="reconstruction",
        needs=("release",),
        helped_by=("real", "reconstruction"),
        work=4.0,
        reads="computed",
    )

    n_real: int | None = None
    _: KW_ONLY
    k_neighbors: int = 5
    time_limit: float | None = None
    max_rows: int = 1_000
    max_work: float = 1e9

    def run(self, X: Any, real: Any = None, *, known: Any = None, reconstruction: Any = None) -> SeedResult:
        """Try seeds on the released rows of one class.

        Parameters
        ----------
        X : DataFrame or array of shape (n_rows, n_columns)
            The released rows of a class. Rows of the real table may come before those that were made.
        real : DataFrame or array, optional
            The real records of the class, to count what was recovered. They are not used for the attack.
        known : DataFrame or array, optional
            Rows known to be real, such as those of other classes. They show which decimals real values have.
        reconstruction : ReconstructionResult, optional
            What ReconSMOTE found in the same rows. Its lines give shares where no grid does.

        Returns
        -------
        SeedResult
            The seed and the records that follow from it.

        Raises
        ------
        InputError
            If the table is empty, not two-dimensional, or has infinite values.
        """
        started = perf_counter()
        if self.k_neighbors < 1:
            raise InputError(f"k_neighbors is {self.k_neighbors}; give 1 or more")
        given, table = as_frame(X), prepare(X)
        columns = _numbers(table.frame)
        values = table.frame.iloc[:, columns].to_numpy(dtype=float)
        if np.isinf(values).any():
            raise InputError("the released rows have infinite values; remove them or mark them as missing")
        others = None if known is None or not len(known) else _like(known, given, table, columns)
        ordered = len(table.rows) == len(given)
        match, origin, claims, tried = self._found(
            given, values, columns, others, reconstruction if not table.units else None, ordered
        )
        records = pd.DataFrame(np.nan, index=range(len(claims)), columns=range(given.shape[1]))
        records[columns] = claims.records
        frame = table.restored(records.set_axis(given.columns, axis=1), given)
        p_wrong = np.where(np.isnan(claims.records), 0.0, claims.p_value).max(axis=1, initial=0.0)
        p_wrong = np.minimum(1.0, p_wrong + (match.p if match else 0.0))
        details: dict[str, Any] = {
            "seed": match.seed if match else None,
            "p": match.p if match else 1.0,
            "sampler": origin.sampler if match else None,
            "order": _order_in_words(origin) if match else None,
            "seeds_tried": tried,
            "n_records": origin.layout.n_base if origin.layout else None,
            "k_neighbors": origin.layout.k if origin.layout else None,
            "matched": match.matched if match else 0,
            "expected_by_chance": match.expected if match else 0.0,
            "records": len(claims),
            "columns": given.shape[1],
            "columns_left_out": tuple(given.columns[p] for p in range(given.shape[1]) if p not in columns),
            "columns_estimated": (),
            "tested": bool(tried),
        }
        findings = pd.DataFrame(
            {
                "p_wrong": p_wrong,
                "rows": claims.rows,
                "found_by": list(claims.how),
                "columns_read": np.where(p_wrong <= _CERTAIN, (~np.isnan(claims.records)).sum(axis=1), 0),
            }
        )
        if real is None:
            details["risk_basis"] = "estimate"
            successes, trials = min(int(claims.rows.sum()), len(given)), len(given)
        else:
            which, recovered, n_distinct = _real_rows(claims.records, _like(real, given, table, columns))
            findings["real_row"] = which
            details["risk_basis"] = "recall"
            details["precision"] = float((which >= 0).mean()) if len(which) else float("nan")
            details["recovered"], details["distinct_real"] = recovered, n_distinct
            details["recall"] = recovered / n_distinct if n_distinct else 0.0
            successes, trials = recovered, n_distinct
        details["seconds"] = perf_counter() - started
        return SeedResult(
            name="RecoverSeed",
            threat="reconstruction",
            risk=successes / trials if trials else 0.0,
            interval=wilson_interval(successes, trials) if trials else (0.0, 1.0),
            evidence=pd.concat([frame, findings], axis=1),
            details=details,
            records=frame if isinstance(X, pd.DataFrame) else frame.to_numpy(),
            p_wrong=p_wrong,
        )

    def _found(
        self,
        given: pd.DataFrame,
        values: FloatArray,
        columns: IntArray,
        known: FloatArray | None,
        reconstruction: Any,
        ordered: bool,
    ) -> tuple[SeedMatch | None, Origin, _Claims, int]:
        """Return the seed, how the table was made, the records that follow, and how many seeds were tried."""
        m, tried = values.shape[1], 0
        nothing = _Claims(np.zeros((0, m)), np.zeros((0, m)), (), np.zeros(0, dtype=np.int64))
        if (
            len(values) < _FEWEST
            or not m
            or not np.isfinite(_range(values)).all()
            or not _range(values).any()
        ):
            return None, Origin(""), nothing, 0
        level = LEVEL / _SEARCHES
        for number, shares in enumerate(self._shares(values, columns, known, reconstruction)):
            if len(shares) < _FEWEST:
                continue
            match, count = by_shares(shares, len(values), self._plan(), self.max_work, level)
            tried = max(tried, count)
            if match is None:
                continue
            if number == 0 and len(values) > _FIRST_ROWS:
                # With the seed known it is worth the time to decode more of them.
                shares = self._decoded(values, known, self.max_rows)
            draws = draws_of(match, shares, len(values))
            origin = origin_of(match, shares, draws, len(values), level)
            claims = _joined(
                _certified(shares, draws), self._followed(given, values, columns, known, match, origin)
            )
            return _corrected(match), origin, claims, count
        for layouts in self._layouts(len(values)) if ordered else ():
            match, count = by_order(values, self._plan(), layouts, 0.5 * self.max_work, level)
            tried = max(tried, count)
            if match is not None:
                layout = layouts[match.way]
                some = self.n_real is not None and layout.n_base < self.n_real
                origin = Origin(
                    "BorderlineSMOTE" if some else "SMOTE", layout, len(values) - layout.begin, True
                )
                followed = self._followed(given, values, columns, known, match, origin)
                return _corrected(match), origin, _joined(nothing, followed), count
        return None, Origin(""), nothing, tried

    def _plan(self) -> Plan:
        usual, likely = usual_seeds(), favourites()
        stop = None if self.time_limit is None else perf_counter() + self.time_limit

        def portions() -> Iterator[IntArray]:
            yield likely
            for i in range(len(likely), len(usual), _AT_ONCE):
                yield usual[i : i + _AT_ONCE]
            begin = 0
            while stop is not None and perf_counter() < stop and len(more := more_seeds(begin, _AT_ONCE)):
                yield more
                begin += len(more)

        return Plan(portions(), likely, _DEEP, len(usual) if stop is None else 2**32)

    def _shares(
        self, values: FloatArray, columns: IntArray, known: FloatArray | None, reconstruction: Any
    ) -> Iterator[Shares]:
        """Yield the shares of rows: by grids, then by the lines of another attack."""
        few = self._decoded(values, known, _FIRST_ROWS)
        yield few
        if len(few) < _FEWEST and known is None and self.max_rows > _FIRST_ROWS:
            # More rows may show the grids.
            yield self._decoded(values, known, self.max_rows)
        segments = getattr(reconstruction, "_segments", None)
        if segments is None or len(segments) != len(values) or not len(reconstruction.support):
            return
        places = pd.DataFrame(reconstruction.records).iloc[:, columns].to_numpy(dtype=float)
        error, open_ = (
            pd.DataFrame(part).iloc[:, columns].to_numpy(dtype=float)
            for part in (reconstruction.errors, reconstruction.estimated)
        )
        places = np.where(open_ > 0, np.nan, places)
        row = np.flatnonzero((segments >= 0).all(axis=1) & (segments[:, 0] != segments[:, 1]))
        p_value = np.where(np.isnan(places), 1.0, 0.0)
        yield between(values, row, segments[row], places, p_value, np.nan_to_num(error))

    def _decoded(self, values: FloatArray, known: FloatArray | None, count: int) -> Shares:
        """Return the shares of some rows, by the grids of their columns."""
        order = np.random.default_rng(0).permutation(len(values))
        some = np.sort(order[: min(count, self.max_rows)])
        found = read_shares(values[some], known)
        return Shares(some[found.row], found.ends, found.low, found.high, found.records, found.p_value)

    def _layouts(self, n_rows: int) -> Iterator[list[Layout]]:
        """Yield how the table may have been made; BorderlineSMOTE takes some of the records only."""
        k, most = self.k_neighbors, min(4 * n_rows, _MOST_RECORDS) + 1
        if self.n_real is not None:
            begins = (0, self.n_real) if self.n_real < n_rows else (0,)
            yield [Layout(self.n_real, k, begin) for begin in begins if self.n_real > 1]
            most = min(most, self.n_real)
        yield [Layout(n, k, 0) for n in range(k + 1, most)]

    def _followed(
        self,
        given: pd.DataFrame,
        values: FloatArray,
        columns: IntArray,
        known: FloatArray | None,
        match: SeedMatch,
        origin: Origin,
    ) -> Followed | None:
        layout = origin.layout
        if layout is None or not origin.in_order or layout.begin + origin.n_made != len(values):
            return None
        whole = np.array([pd.api.types.is_integer_dtype(given.dtypes.iloc[p]) for p in columns])
        return follow(values, match.seed, layout, whole, known, closed=origin.sampler == "SMOTE")

    def why_not(self, tables: ClassTables, earlier: Earlier) -> str | None:
        """Return that a class is too small, if it is."""
        return too_few(tables.release) or None

    def run_on(self, tables: ClassTables, earlier: Earlier) -> SeedResult | None:
        """Run it on the released rows, and count the records that are real where that is known."""
        own = (
            self
            if tables.real is None
            else self.__class__(
                len(tables.real),
                k_neighbors=self.k_neighbors,
                time_limit=self.time_limit,
                max_rows=self.max_rows,
                max_work=self.max_work,
            )
        )
        result = own.run(
            tables.release,
            real=tables.truth,
            known=tables.other_rows,
            reconstruction=earlier.get("computed"),
        )
        return result if result.details["tested"] else None

    def headline(self, result: Any, label: str, certain: int = 0) -> str:
        """Return what a result means, for a reader who does not know the attack."""
        found = result.details
        if found["seed"] is None:
            return f"None of {found['seeds_tried']:,} seeds that people use explains the rows of class {label!r}."
        order = f", and they are {found['order']}" if found["order"] else ""
        made = f"The rows of class {label!r} were made with {found['sampler']} and the seed {found['seed']}{order}."
        count = max(certain, int(found.get("recovered", 0)))
        if not count:
            doubtful = len(result.evidence)
            follow = f"{doubtful} record{'s follow' if doubtful > 1 else ' follows'}, but none is sure"
            return f"{made} {follow if doubtful else 'No real record follows from that'}."
        records = f"{count} real record{'s' if count != 1 else ''}"
        if "distinct_real" in found:
            records = f"{count} of the {found['distinct_real']} real records"
        return f"{made} With the seed {records} can be computed."

    def rates(self, result: AttackResult) -> list[SuccessRate]:
        """Return the share of the records, or of the released rows, that the seed explains."""
        label = (
            "real records that follow from the seed"
            if result.details.get("risk_basis") == "recall"
            else "released rows made from a record that follows"
        )
        return [
            SuccessRate(label, result.risk, result.interval, "attack"),
            SuccessRate("guessing", 0.0, None),
        ]


def _corrected(match: SeedMatch) -> SeedMatch:
    """Return a match whose p counts that there are several searches."""
    return SeedMatch(
        match.seed, match.matched, match.expected, min(1.0, _SEARCHES * match.p), match.way, match.part
    )


def _order_in_words(origin: Origin) -> str | None:
    return {None: None, True: "in the order in which they were made", False: "shuffled"}[origin.in_order]


def _numbers(frame: pd.DataFrame) -> IntArray:
    """Return the columns of numbers without gaps."""
    return np.array(
        [
            p
            for p, dtype in enumerate(frame.dtypes)
            if pd.api.types.is_numeric_dtype(dtype)
            and not pd.api.types.is_complex_dtype(dtype)
            and not frame.iloc[:, p].isna().any()
        ],
        dtype=np.int64,
    )


def _like(table: Any, given: pd.DataFrame, prepared: Prepared, columns: IntArray) -> FloatArray:
    """Return other rows in the columns that are used, as numbers."""
    frame = as_frame(table)
    if frame.columns.is_unique and given.columns.is_unique and set(given.columns) <= set(frame.columns):
        frame = frame[list(given.columns)]
    elif frame.shape[1] != given.shape[1]:
        raise InputError(
            f"a table has {frame.shape[1]} columns, the attacked one {given.shape[1]}; pass the same columns"
        )
    frame = in_numbers(frame.reset_index(drop=True), prepared.units).iloc[:, columns]
    numbers = frame.apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)
    return numbers[~np.isnan(numbers).any(axis=1)]


def _certified(shares: Shares, draws: Draws) -> _Claims:
    """Return the records at the ends of rows whose share was drawn: only the true ends give that."""
    # Where rows lie beyond a record, as SVMSMOTE's do, the other end is no record. If the steps to the neighbor are all
    # even, half a number looks like a whole one, so that no row shows its other end there.
    between_two = ~draws.beyond & ~draws.beyond.any()
    ends = np.concatenate([draws.base, draws.other[between_two]])
    log_chance = np.zeros(len(shares.records))
    np.add.at(log_chance, ends, np.log(np.concatenate([draws.chance, draws.chance[between_two]])))
    which = np.unique(ends)
    stated = shares.p_value[which]
    records = shares.records[which].copy()
    own = np.where(np.isnan(records), np.inf, stated).min(axis=1, initial=np.inf)
    p_value = np.minimum(1.0, np.exp(log_chance[which])[:, None] + np.maximum(stated - own[:, None], 0.0))
    # What the rows complete is no surer than the rows say.
    records[p_value > _CLAIMED] = np.nan
    rows = np.bincount(draws.base, minlength=len(shares.records))[which]
    return _Claims(records, p_value, ("share",) * len(which), rows.astype(np.int64))


def _joined(certified: _Claims, followed: Followed | None) -> _Claims:
    """Return the records that say most: those of the shares, and others that follow from the order."""
    records, p_value, how, rows = certified.records, certified.p_value, certified.how, certified.rows
    if followed is not None:
        more, p = followed.records.copy(), followed.p_value
        more[p > _CLAIMED] = np.nan
        chosen = np.flatnonzero(_says_enough(more))
        chosen = chosen[~_among(more[chosen], records)]
        records, p_value = np.vstack([records, more[chosen]]), np.vstack([p_value, p[chosen]])
        how, rows = how + ("order",) * len(chosen), np.concatenate([rows, followed.rows_from[chosen]])
    keep = np.flatnonzero(_says_enough(records))
    return _Claims(records[keep], p_value[keep], tuple(how[i] for i in keep), rows[keep])


def _says_enough(records: FloatArray) -> BoolArray:
    """Return which records have most of their values."""
    return np.asarray(2 * (~np.isnan(records)).sum(axis=1) > records.shape[1])


def _among(records: FloatArray, others: FloatArray) -> BoolArray:
    """Return which records equal one of others in the columns that both have."""
    return _nearest(records, others) >= 0


def _nearest(records: FloatArray, others: FloatArray) -> IntArray:
    """Return one of the others that each record equals, -1 for none."""
    result = np.full(len(records), -1, dtype=np.int64)
    if not len(records) or not len(others):
        return result
    both = np.vstack([records, others])
    with np.errstate(invalid="ignore"):
        span = np.nanmax(np.where(np.isnan(both), -np.inf, both), axis=0) - np.nanmin(
            np.where(np.isnan(both), np.inf, both), axis=0
        )
    scale = np.where(np.isfinite(span) & (span > 0), span, 1.0)
    if np.isnan(others).any():
        for i, record in enumerate(records):
            off = np.abs(others - record) > _EQUAL * scale
            shared = (~np.isnan(others) & ~np.isnan(record)).any(axis=1)
            equal = np.flatnonzero(shared & ~off.any(axis=1))
            result[i] = equal[0] if len(equal) else -1
        return result
    stated = ~np.isnan(records)
    for pattern in np.unique(stated, axis=0):
        if pattern.any():
            here = (stated == pattern).all(axis=1)
            far, which = KDTree(others[:, pattern] / scale[pattern]).query(
                records[np.ix_(here, pattern)] / scale[pattern], p=np.inf
            )
            result[here] = np.where(far <= _EQUAL, which, -1)
    return result


def _real_rows(records: FloatArray, real: FloatArray) -> tuple[IntArray, int, int]:
    """Return the real row that each record equals, how many distinct ones they are, and of how many."""
    which = _nearest(records, real)
    distinct, number = np.unique(real, axis=0, return_inverse=True) if len(real) else (real, np.zeros(0, int))
    found = np.unique(number.ravel()[which[which >= 0]])
    return which, len(found), len(distinct)
