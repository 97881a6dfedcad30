"""Linkability: two sources about one person, joined through a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from time import perf_counter
from typing import Any, Literal

import numpy as np
import pandas as pd

from oversafe._core.checks import check_count
from oversafe._core.errors import InputError
from oversafe.attack.base import About, Attack, AttackResult, Earlier, wilson_interval
from oversafe.attack.class_tables import ClassTables
from oversafe.attack.linkage.rates import Rate, compare
from oversafe.attack.records import BoolArray, FloatArray, IntArray, Records, nearest, read_records

_SHOWN = 100
# Of the published figures: one pair of halves for each of five rounds, five people attacked in each.
_PUBLISHED_ROUNDS = 5
_PUBLISHED_ATTACKS = 5


@dataclass(eq=False, repr=False)
class Linkability(Attack):
    """Link what two sources know about a person, because both point to the same released row.

    An attacker holds some columns of a person from one source and some others from another source, without
    knowing that they belong together. For each the attacker looks up the nearest released rows; a link is a
    row that both look-ups find. The same is done to people of a holdout, who had no part in the release, and
    what succeeds with them tells what the release says about people in general. The risk is the
    share of what the holdout leaves open: (main - control) / (1 - control), as in [1]_.

    Parameters
    ----------
    columns_a, columns_b : sequence of column names, optional
        What the first and the second source know. When neither is given, every attack draws its own two
        halves of the columns, so that the risk is a mean over what sources may know.
    n_neighbors : int
        How many released rows each look-up finds.
    n_attacks : int
        How many people to attack, drawn without replacement; at most as many as there are when the columns are
        given. With 500 the interval of a rate is narrower than 0.1. Without given columns a person may
        be attacked again in other columns.
    random_state : int, optional
        For the people, the halves and the choice among released rows that are equally near.
    protocol : {"intervals", "published"}
        "published" gives the figure of [2]_, Table 4: five rounds, each with halves of the columns of its own
        and five attacks, and as risk the mean over the rounds of the lower end of the main attack's
        interval. Five attacks are too few for a steady figure, and the lower end of a wide interval is
        far below the rate itself; it is here for comparison.
    n_jobs : int, optional
        Number of threads, as in joblib.

    See Also
    --------
    AttributeInference : Guesses an unknown value of a person from the nearest released row.
    SinglingOut : Isolates a person by a combination of values.

    Notes
    -----
    The distance is Gower's: the sum of the differences of numbers over their range and of 1 for each
    category that differs; a missing value equals a missing value and is at 1 from all others. Guessing
    links two random sets of rows, whose chance to meet is known.

    References
    ----------
    .. [1] Giomi, Boenisch, Wehmeyer and Tasnádi, "A Unified Framework for Quantifying Privacy Risk in
       Synthetic Data", PoPETs 2023(2).
    .. [2] "SMOTE and Mirrors: Exposing Privacy Leakage from Synthetic Minority Oversampling", Section 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from oversafe.attack import Linkability
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame(rng.normal(size=(400, 4)), columns=["age", "income", "height", "weight"])
    >>> real, holdout = people[:200], people[200:]
    >>> attack = Linkability(["age", "income"], ["height", "weight"], random_state=0)
    >>> attack.run(real, real, holdout).risk  # the people themselves were handed out
    1.0
    """

    about = About(
        question="Can two sources about one person be linked through the release?",
        attacker="Somebody with two lists that share no column, such as a gym's and an insurer's.",
        method=(
            "For a person on each list the closest released row is looked up. If it is the same row for "
            "both, the two entries are taken to be one person's."
        ),
        risk="Of the people whom chance does not link, the share whom the release links.",
        threat="linkage",
        needs=("release", "real", "holdout"),
        helped_by=(),
        work=1.5,
    )

    columns_a: Sequence[Any] | None = None
    columns_b: Sequence[Any] | None = None
    n_neighbors: int = 1
    n_attacks: int = 500
    _: KW_ONLY
    random_state: int | None = None
    protocol: Literal["intervals", "published"] = "intervals"
    n_jobs: int | None = None

    def run(self, release: Any, real: Any, holdout: Any = None) -> AttackResult:
        """Link people of the real table through the release.

        Parameters
        ----------
        release : DataFrame or array
            The released rows.
        real : DataFrame or array
            The real rows, whose people are attacked. Only columns that all tables share are used.
        holdout : DataFrame or array, optional
            Rows of the same kind that had no part in the release. Without it the risk is what the attack gains
            over guessing, which counts too much: columns that go together link people in general.

        Returns
        -------
        AttackResult
            ``evidence`` holds the 100 people that were linked most often, with the row of the real table, a
            released row that links them and the share of the attempts that succeeded; ``details`` the rates of
            the main attack, of guessing and of the control, each with its interval.

        Raises
        ------
        InputError
            If a table is empty, the tables share fewer than two columns, or a setting makes no sense.
        """
        started = perf_counter()
        check_count("n_neighbors", self.n_neighbors)
        check_count("n_attacks", self.n_attacks)
        if self.protocol not in ("intervals", "published"):
            raise InputError(f"protocol is {self.protocol!r}; use 'intervals' or 'published'")
        records = read_records({"release": release, "real": real, "holdout": holdout})
        sides = self._sides(records)
        scaled = records.scaled()
        rng = np.random.default_rng(self.random_state)
        n_rows = scaled["release"].shape[1]
        k = min(self.n_neighbors, n_rows)

        def attack(people: FloatArray) -> tuple[IntArray, IntArray]:
            if self.protocol == "intervals":
                return self._attack(scaled["release"], people, records, sides, self.n_attacks, k, rng)
            rounds = []
            for _ in range(_PUBLISHED_ROUNDS):
                drawn = np.array_split(rng.permutation(len(records.names))[::-1], 2)
                halves = (drawn[1], drawn[0]) if sides is None else sides
                rounds.append(
                    self._attack(scaled["release"], people, records, halves, _PUBLISHED_ATTACKS, k, rng)
                )
            return np.concatenate([p for p, _ in rounds]), np.concatenate([r for _, r in rounds])

        person, linked_by = attack(scaled["real"])
        main = Rate(int((linked_by >= 0).sum()), len(person), people=len(np.unique(person)))
        naive = Rate(_chance_to_meet(n_rows, k) * len(person), len(person), exact=True)
        control = None
        if holdout is not None:
            others, links = attack(scaled["holdout"])
            control = Rate(int((links >= 0).sum()), len(links), people=len(np.unique(others)))
        risk, interval, details = compare(main, naive, control)
        if self.protocol == "published":
            rounds = (linked_by >= 0).reshape(_PUBLISHED_ROUNDS, -1)
            lower_ends = [wilson_interval(int(links.sum()), len(links))[0] for links in rounds]
            risk = float(np.mean(lower_ends))
            interval = min(interval[0], risk), max(interval[1], risk)
            details |= {"lower_ends": lower_ends, "risk_basis": "published"}
        details["n_neighbors"] = k
        if sides is not None:
            for name, side in zip(("columns_a", "columns_b"), sides, strict=True):
                details[name] = [records.names[i] for i in side]
        details["seconds"] = perf_counter() - started

        evidence = _linked_people(person, linked_by, pd.DataFrame(real))
        return AttackResult("Linkability", "linkage", risk, interval, evidence, details)

    def why_not(self, tables: ClassTables, earlier: Earlier) -> str | None:
        """Return that one column is not enough."""
        return "the tables share one column only" if tables.release.shape[1] < 2 else None

    def headline(self, result: Any, label: str, certain: int = 0) -> str:
        """Return what a result means, for a reader who does not know the attack."""
        rates = result.details
        if result.interval[0] <= 0:
            return (
                f"The release links two sources about people of class {label!r} no better than about people "
                "who had no part in it."
            )
        return (
            f"Two sources about a person of class {label!r} are linked through the release in "
            f"{rates['main_rate']:.0%} of the attempts, against {rates['control_rate']:.0%} for people who "
            "had no part in it."
        )

    def _sides(self, records: Records) -> tuple[IntArray, IntArray] | None:
        """Return the two sets of columns, or None if each attack draws its own."""
        if (self.columns_a is None) != (self.columns_b is None):
            raise InputError("one of columns_a and columns_b was given; give both, or none to draw halves")
        if self.columns_a is None or self.columns_b is None:
            if len(records.names) < 2:
                raise InputError(
                    f"the tables share one column only ({records.names[0]!r}); linking needs at least two"
                )
            return None
        sides = (
            records.positions(list(self.columns_a), "columns_a"),
            records.positions(list(self.columns_b), "columns_b"),
        )
        for name, side in zip(("columns_a", "columns_b"), sides, strict=True):
            if not len(side):
                raise InputError(f"{name} is empty; name the columns that the source knows")
        if len(both := np.intersect1d(*sides)):
            raise InputError(
                f"column {records.names[both[0]]!r} is in columns_a and in columns_b; "
                "a column that both sources know links them without the release"
            )
        return sides

    def _attack(
        self,
        table: FloatArray,
        people: FloatArray,
        records: Records,
        sides: tuple[IntArray, IntArray] | None,
        n_attacks: int,
        k: int,
        rng: np.random.Generator,
    ) -> tuple[IntArray, IntArray]:
        """Return who was attacked, and the released row that links each, or -1."""
        n_people, n_columns = people.shape[1], len(records.names)
        count = n_attacks if sides is None else min(n_attacks, n_people)
        rounds = -(-count // n_people)
        person = np.concatenate([rng.permutation(n_people) for _ in range(rounds)])[:count]
        uses: BoolArray = np.zeros((2, count, n_columns), dtype=bool)
        if sides is None:
            # Of an odd number of columns the one in the middle goes to the second source.
            halves = rng.permuted(np.tile(np.arange(n_columns), (count, 1)), axis=1)
            np.put_along_axis(uses[0], halves[:, : n_columns // 2], True, axis=1)
            uses[1] = ~uses[0]
        else:
            uses[0][:, sides[0]] = True
            uses[1][:, sides[1]] = True
        targets = np.ascontiguousarray(people.T[person])
        found, _ = nearest(
            table,
            records.n_numbers,
            np.concatenate([targets, targets]),
            uses.reshape(2 * count, n_columns),
            k,
            seed=int(rng.integers(2**62)),
            n_jobs=self.n_jobs,
        )
        first, second = found[:count], found[count:]
        shared = (first[:, :, None] == second[:, None, :]).any(axis=2)
        link = np.where(shared.any(axis=1), first[np.arange(count), shared.argmax(axis=1)], -1)
        return person, link


def _linked_people(person: IntArray, linked_by: IntArray, real: pd.DataFrame) -> pd.DataFrame:
    """Return the people who were linked, those most often first, with one of the rows that link them."""
    attempts = np.bincount(person, minlength=len(real))
    links = np.bincount(person[linked_by >= 0], minlength=len(real))
    row = np.full(len(real), -1)
    row[person[linked_by >= 0]] = linked_by[linked_by >= 0]
    shown = np.flatnonzero(links)
    shown = shown[np.argsort(-links[shown] / attempts[shown], kind="stable")][:_SHOWN]
    evidence = real.iloc[shown].reset_index(drop=True)
    for name, values in (("linked", links / np.maximum(attempts, 1)), ("released_row", row)):
        evidence.insert(0, name, values[shown], allow_duplicates=True)
    evidence.insert(0, "real_row", shown, allow_duplicates=True)
    return evidence


def _chance_to_meet(n: int, k: int) -> float:
    """Return the probability that two random sets of k out of n rows have one in common."""
    if 2 * k > n:
        return 1.0
    return float(-np.expm1(np.log1p(-k / (n - np.arange(k))).sum()))
