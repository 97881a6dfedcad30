"""Attribute inference: an unknown value of a person, guessed from the nearest released rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from oversafe._core.checks import check_count
from oversafe._core.errors import InputError
from oversafe.attack.base import About, Attack, AttackResult, Earlier
from oversafe.attack.class_tables import ClassTables
from oversafe.attack.linkage.rates import Rate, compare
from oversafe.attack.records import FloatArray, IntArray, Records, nearest, read_records


@dataclass(frozen=True)
class _Tried:
    """How many of the people's secrets were guessed."""

    successes: float
    people: IntArray

    @property
    def rate(self) -> Rate:
        return Rate(self.successes, len(self.people))


@dataclass(eq=False, repr=False)
class AttributeInference(Attack):
    """Guess an unknown value of a person from the released rows that are nearest in what is known.

    The attacker knows some columns of a person, looks up the nearest released row and takes its value of the
    secret column for the person's. A guess is right when it is the same category, or within a
    tolerance of the number. The same is done to people of a holdout: what can be guessed about them follows
    from how the columns go together in general, which is what data are released for. The risk is the share
    of what the holdout leaves open: (main - control) / (1 - control), as in [1]_.

    Parameters
    ----------
    secret : column name or sequence of them, optional
        The values to guess, one column at a time; by default every column in turn.
    known : sequence of column names, optional
        What the attacker knows; by default every other column.
    n_neighbors : int
        How many released rows decide: the most frequent category among them, or the median.
    n_attacks : int
        How many people to attack for each secret, drawn without replacement.
    tolerance : float
        How far a guess of a number may be off, as a share of the column's range over all tables.
    random_state : int, optional
        For the people and the choice among released rows that are equally near.
    n_jobs : int, optional
        Number of threads, as in joblib.

    See Also
    --------
    Linkability : Links two sources about a person through the release.

    Notes
    -----
    Guessing takes the value of a random released row; its success is computed, not drawn. The distance is
    that of :class:`Linkability`. People whose secret is missing are not attacked.

    References
    ----------
    .. [1] Giomi, Boenisch, Wehmeyer and Tasnádi, "A Unified Framework for Quantifying Privacy Risk in
       Synthetic Data", PoPETs 2023(2).

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from oversafe.attack import AttributeInference
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame(rng.normal(size=(400, 4)), columns=["age", "income", "height", "weight"])
    >>> real, holdout = people[:200], people[200:]
    >>> result = AttributeInference("income", random_state=0).run(real, real, holdout)
    >>> result.risk  # the people themselves were handed out
    1.0
    """

    about = About(
        question="Can an unknown fact about a person be guessed?",
        attacker=(
            "Somebody who knows all about a person but one fact, such as a colleague who does not know the diagnosis."
        ),
        method="The fact is taken from the released row that is closest in everything else.",
        risk="Of the facts that do not follow from what holds for everybody, the share that the release gives away.",
        threat="attribute",
        needs=("release", "real", "holdout"),
        helped_by=(),
        work=1.5,
    )

    secret: Any = None
    known: Sequence[Any] | None = None
    n_neighbors: int = 1
    n_attacks: int = 500
    _: KW_ONLY
    tolerance: float = 0.05
    random_state: int | None = None
    n_jobs: int | None = None

    def run(self, release: Any, real: Any, holdout: Any = None) -> AttackResult:
        """Guess values of people of the real table from the release.

        Parameters
        ----------
        release : DataFrame or array
            The released rows.
        real : DataFrame or array
            The real rows, whose people are attacked. Only columns that all tables share are used.
        holdout : DataFrame or array, optional
            Rows of the same kind that had no part in the release. Without it the risk is what the attack gains
            over guessing, which counts too much: every useful release tells how columns go together.

        Returns
        -------
        AttackResult
            ``evidence`` holds one row per secret column with its rates and its risk, the riskiest first;
            ``details`` the rates over all secrets.

        Raises
        ------
        InputError
            If a table is empty, the tables share fewer than two columns, or a setting makes no sense.
        """
        started = perf_counter()
        check_count("n_neighbors", self.n_neighbors)
        check_count("n_attacks", self.n_attacks)
        if not 0 <= self.tolerance < 1:
            raise InputError(
                f"tolerance is {self.tolerance!r}; it is a share of the range, at least 0 and below 1"
            )
        records = read_records({"release": release, "real": real, "holdout": holdout})
        secrets, known = self._columns(records)
        scaled = records.scaled()
        rng = np.random.default_rng(self.random_state)

        rows = []
        tried = []
        for secret in secrets:
            rates = [*self._attack(records, scaled, "real", secret, known, rng)]
            if holdout is not None:
                rates.append(self._attack(records, scaled, "holdout", secret, known, rng)[0])
            tried.append(rates)
            risk, interval, figures = compare(*(rate.rate for rate in rates))
            rows.append(
                {
                    "secret": records.names[secret],
                    "risk": risk,
                    "low": interval[0],
                    "high": interval[1],
                    "people": len(rates[0].people),
                    **{name: figures[name] for name in figures if name.endswith("_rate")},
                }
            )
        sums = [
            Rate(
                sum(part.successes for part in parts),
                sum(len(part.people) for part in parts),
                people=len(np.unique(np.concatenate([part.people for part in parts]))),
            )
            for parts in zip(*tried, strict=True)
        ]
        risk, interval, details = compare(*sums)
        evidence = pd.DataFrame(rows).sort_values(["low", "risk"], ascending=False, ignore_index=True)
        details |= {
            "secrets": len(secrets),
            "riskiest": str(evidence["secret"].iloc[0]),
            "n_neighbors": self.n_neighbors,
            "tolerance": self.tolerance,
            "seconds": perf_counter() - started,
        }
        return AttackResult("AttributeInference", "attribute", risk, interval, evidence, details)

    def why_not(self, tables: ClassTables, earlier: Earlier) -> str | None:
        """Return that one column is not enough."""
        return "the tables share one column only" if tables.release.shape[1] < 2 else None

    def headline(self, result: Any, label: str, certain: int = 0) -> str:
        """Return what a result means, for a reader who does not know the attack."""
        rates = result.details
        if result.interval[0] <= 0:
            return (
                f"Unknown values of people of class {label!r} are guessed no better than those of people who had "
                "no part in the release."
            )
        return (
            f"Unknown values of people of class {label!r} are guessed from the release in "
            f"{rates['main_rate']:.0%} of the attempts, against {rates['control_rate']:.0%} for people who "
            f"had no part in it; most exposed: {rates['riskiest']!r}."
        )

    def _columns(self, records: Records) -> tuple[IntArray, IntArray]:
        """Return where the secret and the known columns stand."""
        if len(records.names) < 2:
            raise InputError(
                f"the tables share one column only ({records.names[0]!r}); one must be known and one secret"
            )
        everything = np.arange(len(records.names))
        secrets, known = everything, everything
        if self.known is not None:
            known = records.positions(list(self.known), "known")
        if self.secret is not None:
            is_list = isinstance(self.secret, list | tuple | np.ndarray | pd.Index)
            secrets = records.positions(list(self.secret) if is_list else [self.secret], "secret")
        elif self.known is not None:
            secrets = np.setdiff1d(everything, known)
        if not len(secrets):
            raise InputError("no column is left to be secret; name it, or leave it out of the known ones")
        for secret in secrets:
            if not len(np.setdiff1d(known, [secret])):
                raise InputError(
                    f"nothing is known besides the secret {records.names[secret]!r}; name other columns in known"
                )
        return secrets, known

    def _attack(
        self,
        records: Records,
        scaled: dict[str, FloatArray],
        table: str,
        secret: int,
        known: IntArray,
        rng: np.random.Generator,
    ) -> tuple[_Tried, _Tried]:
        """Return how often the secret of people of a table is guessed, and how often by guessing blindly."""
        answers = records.codes[table][secret]
        # Of a release that says nothing of the secret there is nothing to take a guess from.
        offered = np.flatnonzero(~np.isnan(records.codes["release"][secret]))
        person = rng.permutation(np.flatnonzero(~np.isnan(answers)))[: self.n_attacks]
        if not len(offered) or not len(person):
            return _Tried(0, person), _Tried(0, person)
        uses = np.zeros((len(person), len(records.names)), dtype=bool)
        uses[:, known] = True
        uses[:, secret] = False
        found, _ = nearest(
            scaled["release"],
            records.n_numbers,
            np.ascontiguousarray(scaled[table].T[person]),
            uses,
            min(self.n_neighbors, scaled["release"].shape[1]),
            seed=int(rng.integers(2**62)),
            n_jobs=self.n_jobs,
        )
        truth = scaled[table][secret, person]
        values = np.sort(scaled["release"][secret, offered])
        neighbours = np.where(
            np.isnan(records.codes["release"][secret][found]), np.nan, scaled["release"][secret][found]
        )
        if secret < records.n_numbers:
            with np.errstate(all="ignore"):
                guess = neighbours[:, 0] if neighbours.shape[1] == 1 else _median(neighbours)
            near = self.tolerance + 1e-12
            right = np.abs(guess - truth) <= near
            chance = np.searchsorted(values, truth + near, "right") - np.searchsorted(values, truth - near)
        else:
            right = _most_frequent(neighbours) == truth
            chance = np.searchsorted(values, truth, "right") - np.searchsorted(values, truth)
        return _Tried(int(right.sum()), person), _Tried(float((chance / len(values)).sum()), person)


def _median(neighbours: FloatArray) -> FloatArray:
    """Return the median of each row's known values, NaN if there is none."""
    guess = np.full(len(neighbours), np.nan)
    some = ~np.isnan(neighbours).all(axis=1)
    with np.errstate(over="ignore"):
        guess[some] = np.nanmedian(neighbours[some], axis=1)
    return guess


def _most_frequent(neighbours: FloatArray) -> FloatArray:
    """Return the most frequent value of each row, the nearest of those as frequent."""
    votes = (neighbours[:, :, None] == neighbours[:, None, :]).sum(axis=2)
    return neighbours[np.arange(len(neighbours)), votes.argmax(axis=1)]
