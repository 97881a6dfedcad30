"""Singling out: predicates read off a release that match exactly one real person."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from time import perf_counter
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.checks import check_count
from oversafe._core.errors import InputError
from oversafe.attack import _linkage_kernels as kernels
from oversafe.attack.base import ONLY_THE_FILE, About, Attack, AttackResult
from oversafe.attack.linkage.rates import Rate, compare, paired_interval
from oversafe.attack.records import FloatArray, IntArray, Records, read_records

_SHOWN = 100
# Candidates per round, and how many are tried in all for each predicate that is wanted.
_AT_ONCE = 4
_TRIES = 200
# Below this many comparisons of values a thread costs more than it saves.
_WORK_OF_A_THREAD = 20_000_000
_NO_PREDICATE = "no predicate matches exactly one released row, so there was nothing to try on the real table"


@dataclass(frozen=True)
class _Predicates:
    """Conjunctions of conditions, one per row: a value within or outside an interval, or missing."""

    columns: IntArray
    kinds: IntArray
    lows: FloatArray
    highs: FloatArray

    def __len__(self) -> int:
        return len(self.columns)

    def __getitem__(self, chosen: Any) -> _Predicates:
        return _Predicates(self.columns[chosen], self.kinds[chosen], self.lows[chosen], self.highs[chosen])

    @staticmethod
    def join(parts: list[_Predicates]) -> _Predicates:
        return _Predicates(
            np.concatenate([p.columns for p in parts]),
            np.concatenate([p.kinds for p in parts]),
            np.concatenate([p.lows for p in parts]),
            np.concatenate([p.highs for p in parts]),
        )

    def distinct(self) -> _Predicates:
        """Return the predicates without repetitions, in their order."""
        keys = np.hstack([self.columns.astype(np.float64), self.kinds, self.lows, self.highs])
        _, first = np.unique(keys, axis=0, return_index=True)
        return self[np.sort(first)]

    def count(self, table: FloatArray, most: int, n_jobs: int | None) -> tuple[IntArray, IntArray]:
        """Return how many rows each matches, counting on until more than ``most``, and the last match."""
        from joblib import Parallel, delayed, effective_n_jobs

        work = len(self) * table.shape[1] * self.columns.shape[1]
        jobs = max(1, min(effective_n_jobs(n_jobs), work // _WORK_OF_A_THREAD, len(self)))
        counted = Parallel(n_jobs=jobs, prefer="threads")(
            delayed(kernels.count_matches)(table, p.columns, p.kinds, p.lows, p.highs, most)
            for p in (self[part] for part in np.array_split(np.arange(len(self)), jobs))
        )
        return np.concatenate([c for c, _ in counted]), np.concatenate([r for _, r in counted])

    def text(self, records: Records) -> list[str]:
        """Return each predicate as a person reads it."""
        return [
            " and ".join(_condition(records, *parts) for parts in zip(*row, strict=True) if parts[0] >= 0)
            for row in zip(self.columns, self.kinds, self.lows, self.highs, strict=True)
        ]


def _condition(records: Records, column: int, kind: int, low: float, high: float) -> str:
    name = records.names[column]
    if kind == kernels.MISSING:
        return f"{name} is missing"
    if low == high:
        return f"{name} {'==' if kind == kernels.WITHIN else '!='} {records.text(column, low)}"
    if np.isinf(low) and np.isinf(high):
        return f"{name} is known"
    if np.isinf(low):
        return f"{name} <= {records.text(column, high)}"
    return f"{name} >= {records.text(column, low)}"


_UNIVARIATE = About(
    question="Can one person be isolated by a single value?",
    attacker=ONLY_THE_FILE,
    method="A value that occurs once in the release, such as the highest age, is taken to belong to one real person.",
    risk="Of the descriptions that chance leaves open, the share that isolate a person of the table.",
    threat="singling-out",
    needs=("release", "real", "holdout"),
    helped_by=(),
    work=1.5,
)
_MULTIVARIATE = replace(
    _UNIVARIATE,
    question="Can one person be isolated by a combination of values?",
    method="A description that fits one released row, such as \u201cyounger than 30, from this town, with this blood "
    "pressure\u201d, is taken to fit one real person.",
)


@dataclass(eq=False, repr=False)
class SinglingOut(Attack):
    """Find combinations of values in a release that match exactly one real person.

    The attacker reads predicates off the release that match exactly one released row, such as ``age >= 97`` or
    ``ward == 'north' and income <= 9000``, and hopes that they match exactly one person of the real table.
    Such predicates also isolate people who had no part in the release, the more often the better chosen
    they are; so the same predicates are held against a holdout, and the risk is the share of what
    the holdout leaves open: (main - control) / (1 - control), as in [1]_.

    Parameters
    ----------
    mode : {"multivariate", "univariate"}
        "univariate" takes single values: those that occur once in the release, and the ends of its numbers'
        ranges. "multivariate" takes ``n_columns`` values of a random released row: numbers at least
        or at most as extreme, categories equal.
    n_attacks : int
        How many predicates to try; fewer when the release does not yield as many. With 500 the interval
        of a rate is narrower than 0.1.
    n_columns : int
        How many columns a multivariate predicate combines.
    random_state : int, optional
        For the choice of predicates.
    n_jobs : int, optional
        Number of threads, as in joblib.

    See Also
    --------
    Linkability : Links two sources about a person through the release.

    Notes
    -----
    Guessing means predicates of the same number of columns with random operators and values.

    Fewer people are easier to single out, so a holdout of another size than the real table cannot be compared
    as it is. A larger one counts by its expectation over subsets of the real table's size. A smaller one
    is filled up by random real rows to that size (again by expectation): if the release has nothing
    to do with the real table, that is a fresh table of the same size, and otherwise the filled-in people
    dilute the difference by the holdout's share of the rows, which is divided out.

    References
    ----------
    .. [1] Giomi, Boenisch, Wehmeyer and Tasnádi, "A Unified Framework for Quantifying Privacy Risk in
       Synthetic Data", PoPETs 2023(2).

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from oversafe.attack import SinglingOut
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame(rng.normal(size=(400, 4)), columns=["age", "income", "height", "weight"])
    >>> real, holdout = people[:200], people[200:]
    >>> result = SinglingOut("univariate", random_state=0).run(real, real, holdout)
    >>> result.risk  # the people themselves were handed out
    1.0
    """

    mode: Literal["multivariate", "univariate"] = "multivariate"
    n_attacks: int = 500
    _: KW_ONLY
    n_columns: int = 3
    random_state: int | None = None
    n_jobs: int | None = None

    def run(self, release: Any, real: Any, holdout: Any = None) -> AttackResult:
        """Single out people of the real table by predicates that the release suggests.

        Parameters
        ----------
        release : DataFrame or array
            The released rows; the predicates are made from them alone.
        real : DataFrame or array
            The real rows. Only columns that all tables share are used.
        holdout : DataFrame or array, optional
            Rows of the same kind that had no part in the release. Without it the risk is what the attack gains
            over random predicates, which counts too much.

        Returns
        -------
        AttackResult
            ``evidence`` holds the first 100 predicates that single a person out, with that person's row;
            ``details`` the rates of the main attack, of guessing and of the control, with intervals.

        Raises
        ------
        InputError
            If a table is empty, the tables share no column, or a setting makes no sense.
        """
        started = perf_counter()
        check_count("n_attacks", self.n_attacks)
        check_count("n_columns", self.n_columns)
        if self.mode not in ("multivariate", "univariate"):
            raise InputError(f"mode is {self.mode!r}; use 'multivariate' or 'univariate'")
        records = read_records({"release": release, "real": real, "holdout": holdout})
        codes = records.codes
        rng = np.random.default_rng(self.random_state)
        width = 1 if self.mode == "univariate" else min(self.n_columns, len(records.names))
        if self.mode == "univariate":
            candidates = _rare_values(codes["release"], records.n_numbers)
            chosen = candidates[rng.permutation(len(candidates))[: self.n_attacks]]
        else:
            chosen = self._combinations(codes["release"], records.n_numbers, width, rng)
        guesses = _guesses(codes["release"], records.n_numbers, width, max(1, len(chosen)), rng)

        # Exact counts are needed only for a holdout of another size.
        n_real = codes["real"].shape[1]
        n_held = codes["holdout"].shape[1] if holdout is not None else n_real
        most = 1 if n_held == n_real else n_real + n_held
        counts, rows = chosen.count(codes["real"], most, self.n_jobs)
        alone = counts == 1
        main = Rate(int(alone.sum()), len(chosen))
        guessed, _ = guesses.count(codes["real"], 1, self.n_jobs)
        naive = Rate(int((guessed == 1).sum()), len(guesses))
        control = None
        if holdout is not None:
            held, held_rows = chosen.count(codes["holdout"], most, self.n_jobs)
            isolated = _isolated_in_control(held, n_held, counts, n_real)
            control = Rate(min(max(float(isolated.sum()), 0.0), float(len(chosen))), len(chosen))
        risk, interval, details = compare(main, naive, control)
        if control is not None and len(chosen):
            # The same predicates are tried on both tables, and several may isolate the same person.
            repeats = max(_repeats(rows[alone]), _repeats(held_rows[held == 1]))
            interval = paired_interval(alone, isolated, risk, repeats)
        if n_held != n_real:
            details["holdout_rows"] = n_held
        if not len(chosen):
            risk, interval = 0.0, (0.0, 1.0)
            details["reason"] = _NO_PREDICATE
        details |= {"mode": self.mode, "n_columns": width, "seconds": perf_counter() - started}

        shown = np.flatnonzero(alone)[:_SHOWN]
        evidence = pd.DataFrame(real).iloc[rows[shown]].reset_index(drop=True)
        evidence.insert(0, "real_row", rows[shown], allow_duplicates=True)
        evidence.insert(0, "predicate", chosen[shown].text(records), allow_duplicates=True)
        return AttackResult(f"SinglingOut ({self.mode})", "singling-out", risk, interval, evidence, details)

    @property
    def about(self) -> About:  # type: ignore[override]
        """What it says about itself, by its mode."""
        return _UNIVARIATE if self.mode == "univariate" else _MULTIVARIATE

    def title(self) -> str:
        """Return what results and reports call it, with the mode."""
        return f"{type(self).__name__} ({self.mode})"

    @classmethod
    def variants(cls, seed: int) -> tuple[Attack, ...]:
        """Return one object for each mode."""
        return cls("univariate", random_state=seed), cls("multivariate", random_state=seed)

    def headline(self, result: Any, label: str, certain: int = 0) -> str:
        """Return what a result means, for a reader who does not know the attack."""
        rates = result.details
        what = "combinations of values" if rates["mode"] == "multivariate" else "single values"
        if "reason" in rates:
            return f"No {what} of class {label!r} occur once in the release."
        if result.interval[0] <= 0:
            return (
                f"What is rare in the release ({what}) isolates people of class {label!r} no better than "
                "people who had no part in it."
            )
        return (
            f"{rates['main_rate']:.0%} of the {what} that occur once in the release match exactly one person of "
            f"class {label!r}, against {rates['control_rate']:.0%} among people who had no part in it."
        )

    def _combinations(
        self, table: FloatArray, n_numbers: int, width: int, rng: np.random.Generator
    ) -> _Predicates:
        """Return predicates from released rows that match exactly one of them."""
        n_columns, n_rows = table.shape
        # The mean of two numbers near the largest may be infinite, which is above all of them.
        with np.errstate(invalid="ignore", over="ignore"):
            medians = np.array(
                [np.nan if np.isnan(c).all() else np.nanmedian(c) for c in table[:n_numbers]] or [np.nan]
            )
        kept: list[_Predicates] = [_empty(width)]
        size = _AT_ONCE * self.n_attacks
        for _ in range(_TRIES // _AT_ONCE):
            columns = rng.permuted(np.tile(np.arange(n_columns), (size, 1)), axis=1)[:, :width]
            columns = np.sort(columns, axis=1)
            values = table[columns, rng.integers(n_rows, size=(size, 1))]
            number = columns < n_numbers
            above = number & (values > medians[np.where(number, columns, 0)])
            missing = np.isnan(values)
            made = _Predicates(
                columns,
                np.where(missing, kernels.MISSING, kernels.WITHIN),
                np.where(missing | (number & ~above), -np.inf, values),
                np.where(missing | above, np.inf, values),
            )
            counts, _ = made.count(table, 1, self.n_jobs)
            kept = [_Predicates.join([*kept, made[counts == 1]]).distinct()]
            if len(kept[0]) >= self.n_attacks:
                break
        return kept[0][: self.n_attacks]


def _empty(width: int) -> _Predicates:
    whole, floats = np.empty((0, width), dtype=np.int64), np.empty((0, width))
    return _Predicates(whole, whole, floats, floats)


def _single(column: int, values: FloatArray, low: float | None, high: float | None) -> _Predicates:
    """Return one-column predicates; an end that is not given is the value itself."""
    shape = (len(values), 1)
    return _Predicates(
        np.full(shape, column),
        np.where(np.isnan(values), kernels.MISSING, kernels.WITHIN)[:, None],
        (values if low is None else np.full(len(values), low))[:, None],
        (values if high is None else np.full(len(values), high))[:, None],
    )


def _rare_values(table: FloatArray, n_numbers: int) -> _Predicates:
    """Return the predicates on one column that match exactly one released row."""
    made = [_empty(1)]
    for column, values in enumerate(table):
        known = values[~np.isnan(values)]
        if len(values) - len(known) == 1:
            missing = _single(column, np.array([np.nan]), -np.inf, np.inf)
            made.append(missing)
        distinct, counts = np.unique(known, return_counts=True)
        made.append(_single(column, distinct[counts == 1], None, None))
        if column < n_numbers and len(distinct):
            if counts[0] == 1:
                made.append(_single(column, distinct[:1], -np.inf, None))
            if counts[-1] == 1:
                made.append(_single(column, distinct[-1:], None, np.inf))
    return _Predicates.join(made)


def _guesses(
    table: FloatArray, n_numbers: int, width: int, count: int, rng: np.random.Generator
) -> _Predicates:
    """Return predicates with random columns, operators and values."""
    n_columns = len(table)
    columns = np.sort(rng.permuted(np.tile(np.arange(n_columns), (count, 1)), axis=1)[:, :width], axis=1)
    values = np.empty(columns.shape)
    for column in range(n_columns):
        # Of the distinct values: a rare one is as likely as a common one, as for somebody who knows the domain.
        distinct = np.unique(table[column])
        values[columns == column] = rng.choice(distinct, size=int((columns == column).sum()))
    operator = np.where(
        columns < n_numbers, rng.integers(6, size=columns.shape), rng.integers(2, size=columns.shape)
    )
    equal, different, at_most, at_least, below, above = (operator == i for i in range(6))
    missing = np.isnan(values)
    kinds = np.where(different, kernels.OUTSIDE, kernels.WITHIN)
    # A gap has no order: guessing on it asks whether the value is missing, or whether it is known.
    kinds = np.where(missing, np.where(equal, kernels.MISSING, kernels.WITHIN), kinds)
    lows = np.where(missing | at_most | below, -np.inf, values)
    highs = np.where(missing | at_least | above, np.inf, values)
    lows = np.where(above & ~missing, np.nextafter(values, np.inf), lows)
    highs = np.where(below & ~missing, np.nextafter(values, -np.inf), highs)
    return _Predicates(columns, kinds, lows, highs)


def _repeats(people: IntArray) -> float:
    """Return how many of the successes count as one, because they isolate the same person."""
    _, counts = np.unique(people, return_counts=True)
    return float((counts**2).sum() / counts.sum()) if len(counts) else 1.0


def _isolated_in_control(held: IntArray, n_held: int, counts: IntArray, n_real: int) -> NDArray[np.float64]:
    """Return for each predicate an unbiased estimate of whether it isolates one row of a control.

    The control has the real table's size; ``held`` and ``counts`` are the numbers of matches in the holdout and in
    the real table. With a small holdout single estimates lie outside of [0, 1]; their mean is what counts.
    """
    from scipy.stats import hypergeom

    if n_held == n_real:
        return (held == 1).astype(np.float64)
    if n_held > n_real:
        return hypergeom.pmf(1, n_held, held, n_real)
    filled = n_real - n_held
    none, one = (hypergeom.pmf(i, n_real, counts, filled) for i in (0, 1))
    diluted = np.where(held == 0, one, np.where(held == 1, none, 0.0))
    alone = (counts == 1).astype(np.float64)
    return alone - (alone - diluted) * n_real / n_held
