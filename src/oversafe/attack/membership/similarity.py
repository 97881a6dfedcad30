"""How close a release is to the real table: the usual figures, and why they prove nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from time import perf_counter
from typing import Any, Literal

import numpy as np
import pandas as pd

from oversafe._core.checks import check_count
from oversafe._core.errors import InputError
from oversafe.attack.base import About, Attack, AttackResult, Earlier, wilson_interval
from oversafe.attack.class_tables import ClassTables, too_few
from oversafe.attack.copies import difference_interval
from oversafe.attack.records import FloatArray, IntArray, Records, nearest, read_records

WARNING = (
    "low similarity is no evidence of privacy: these figures compare distributions, and a release can look "
    "harmless in all of them while records can be computed from it"
)
_SIMILAR_PROVES_NOTHING = "This is no evidence of privacy"
_NEIGHBOURS = 10
# A row is next to a record if it is closer by this ratio to it than to the second, and closer than this share of the
# records are to one another.
_NEXT_TO, _UNCOMMON = 0.05, 0.01
_SHOWN = 100


@dataclass(eq=False, repr=False)
class ClosestRecord(Attack):
    """Measure how close released rows come to their closest real records, against people who are not in it.

    For each released row: the distance to its closest real record, the ratios of that distance to those
    of the 2nd and the 10th closest (near 0 when the row belongs to one record rather than to a
    neighbourhood), and whether it is identical to a record. The same for the rows of a holdout, which is
    what new people of the same kind would give ([1]_, Section 4.2).

    The risk says how much more often than chance a released row is closer to the real table than to the
    holdout, where chance is the real table's share of both. It is 0 for rows that have nothing to do with
    the records in particular, wherever they lie.

    Parameters
    ----------
    n_rows : int
        At most so many released, and holdout, rows are measured, drawn at random.
    metric : {"euclidean", "gower"}
        Root of the sum of squared differences, as in the paper, or the sum of the differences. Numbers are
        divided by their range; categories, and a missing value and a known one, differ by 1.
    random_state : int, optional
        For the choice of rows.
    n_jobs : int, optional
        Number of threads, as in joblib.

    See Also
    --------
    ReconSMOTE : Computes records from releases that look harmless here.

    References
    ----------
    .. [1] "UMAP-SMOTENC: a simple, efficient, and consistent alternative for privacy-aware synthetic data
       generation".

    Examples
    --------
    >>> import numpy as np
    >>> from oversafe.attack import ClosestRecord
    >>> rng = np.random.default_rng(0)
    >>> people = rng.normal(size=(400, 4))
    >>> real, holdout = people[:200], people[200:]
    >>> result = ClosestRecord(random_state=0).run(real + 0.01, real, holdout)
    >>> result.risk
    1.0
    """

    about = About(
        question="Are released rows closer to real records than chance allows?",
        attacker="Nobody: this is a figure that is often reported, not an attack.",
        method=(
            "The distance of each released row to the closest real record is held against its distance to "
            "people who had no part in the release; without such people, to the second closest record."
        ),
        risk=(
            "How much more often the real record is closer than chance has it, or the row next to one "
            "record alone. A low figure proves nothing."
        ),
        threat="similarity",
        helped_by=("holdout", "reconstruction"),
    )

    n_rows: int = 2000
    _: KW_ONLY
    metric: Literal["euclidean", "gower"] = "euclidean"
    random_state: int | None = None
    n_jobs: int | None = None

    def run(
        self, release: Any, real: Any, holdout: Any = None, *, reconstruction: AttackResult | None = None
    ) -> AttackResult:
        """Measure the released rows against the real records.

        Parameters
        ----------
        release : DataFrame or array
            The released rows.
        real : DataFrame or array
            The real rows. Only columns that all tables share are used.
        holdout : DataFrame or array, optional
            Rows of the same kind that had no part in the release. Without it the risk is the share of the released
            rows, but for identical ones, that are next to one record: twenty times closer to it than to any other, and
            closer than all but one in a hundred records are to their closest other one; less what chance gives.
        reconstruction : AttackResult, optional
            Of an attack that recovers records from the same release; its figure is put beside these.

        Returns
        -------
        AttackResult
            ``evidence`` holds one row per figure: its mean over the release, over the baseline, and the
            difference with its interval; ``details["closest"]`` the 100 closest pairs of rows.

        Raises
        ------
        InputError
            If a table is empty, the tables share no column, or a setting makes no sense.
        """
        started = perf_counter()
        check_count("n_rows", self.n_rows)
        if self.metric not in ("euclidean", "gower"):
            raise InputError(f"metric is {self.metric!r}; use 'euclidean' or 'gower'")
        records = read_records({"release": release, "real": real, "holdout": holdout})
        scaled = records.scaled()
        rng = np.random.default_rng(self.random_state)
        measured = {name: self._sample(scaled[name].shape[1], rng) for name in scaled}
        closest, distances = self._nearest(records, scaled["real"], scaled["release"], measured["release"])
        base = "real" if holdout is None else "holdout"
        # Without a holdout a record stands for a new person, and must not find itself.
        skip = measured["real"] if holdout is None else None
        _, usual = self._nearest(records, scaled["real"], scaled[base], measured[base], skip)
        evidence = _figures(distances, usual)

        if holdout is None:
            risk, interval = _next_to_one(distances, closest[:, 0], usual)
        else:
            risk, interval = self._closer_to_real(records, scaled, measured["release"])
        order = np.argsort(distances[:, 0], kind="stable")[:_SHOWN]
        details: dict[str, Any] = {
            "rows": len(distances),
            "baseline": "holdout" if holdout is not None else "other real records",
            **{f"{row.figure}_release": row.release for row in evidence.itertuples()},
            **{f"{row.figure}_baseline": row.baseline for row in evidence.itertuples()},
            "closest": pd.DataFrame(
                {
                    "released_row": measured["release"][order],
                    "real_row": closest[order, 0],
                    "distance": distances[order, 0],
                }
            ),
            "seconds": perf_counter() - started,
            **warn(reconstruction),
        }
        return AttackResult("ClosestRecord", "similarity", risk, interval, evidence, details)

    def why_not(self, tables: ClassTables, earlier: Earlier) -> str | None:
        """Return that a class is too small, where no holdout shows what chance gives."""
        return (too_few(tables.release) or None) if tables.holdout is None else None

    def run_on(self, tables: ClassTables, earlier: Earlier) -> AttackResult:
        """Run it on a class, beside what was reconstructed from it."""
        known = earlier.get("computed")
        return self.run(tables.release, tables.real, tables.holdout, reconstruction=known)

    def headline(self, result: Any, label: str, certain: int = 0) -> str:
        """Return what a result means, for a reader who does not know the attack."""
        if result.details["baseline"] != "holdout":
            return _told_next_to_one(result, label)
        if result.interval[0] <= 0:
            return (
                f"The released rows of class {label!r} are no closer to the real records than to other people's. "
                f"{beside(result.details)}"
            )
        return (
            f"The released rows of class {label!r} are closer to real records than to those of people who had "
            f"no part in it, {result.risk:.0%} of the way from chance to always."
        )

    def _sample(self, n: int, rng: np.random.Generator) -> IntArray:
        return np.arange(n) if n <= self.n_rows else np.sort(rng.choice(n, self.n_rows, replace=False))

    def _nearest(
        self,
        records: Records,
        table: FloatArray,
        others: FloatArray,
        rows: IntArray,
        skip: IntArray | None = None,
        k: int = _NEIGHBOURS,
    ) -> tuple[IntArray, FloatArray]:
        """Return the closest records of a table to some rows, and their distances."""
        found, distances = nearest(
            table,
            records.n_numbers,
            np.ascontiguousarray(others.T[rows]),
            np.ones((len(rows), len(records.names)), dtype=bool),
            k,
            skip=skip,
            squared=self.metric == "euclidean",
            n_jobs=self.n_jobs,
        )
        return found, np.sqrt(distances) if self.metric == "euclidean" else distances

    def _closer_to_real(
        self, records: Records, scaled: dict[str, FloatArray], rows: IntArray
    ) -> tuple[float, tuple[float, float]]:
        """Return the risk: how often a released row is closer to the real table than to the holdout."""
        sizes = [scaled[name].shape[1] for name in ("real", "holdout")]
        (real, holdout), (far, far_holdout) = zip(
            *(
                self._nearest(records, scaled[name], scaled["release"], rows, k=1)
                for name in ("real", "holdout")
            ),
            strict=True,
        )
        far, far_holdout = far[:, 0], far_holdout[:, 0]
        by_chance = sizes[0] / sum(sizes)
        closer = (far < far_holdout) + by_chance * (far == far_holdout)
        person = np.where(far <= far_holdout, real[:, 0], sizes[0] + holdout[:, 0])
        return _above_chance(closer, by_chance, person)


def _figures(release: FloatArray, baseline: FloatArray) -> pd.DataFrame:
    """Return the four figures of the release and of the baseline, and the difference with its interval."""
    rows = []
    for figure, values, usual in zip(
        ("closest_distance", "ratio_to_2nd", "ratio_to_10th"),
        _measures(release),
        _measures(baseline),
        strict=True,
    ):
        mean, usual_mean = (float(v.mean()) if len(v) else np.nan for v in (values, usual))
        error = np.sqrt(sum(v.var(ddof=1) / len(v) if len(v) > 1 else np.nan for v in (values, usual)))
        difference = mean - usual_mean
        rows.append(
            (figure, mean, usual_mean, difference, difference - 1.96 * error, difference + 1.96 * error)
        )
    same, usual_same = (int((d[:, 0] == 0).sum()) for d in (release, baseline))
    shares = same / len(release), usual_same / len(baseline)
    interval = difference_interval(same, len(release), usual_same, len(baseline))
    rows.append(("identical_share", *shares, shares[0] - shares[1], *interval))
    return pd.DataFrame(rows, columns=["figure", "release", "baseline", "difference", "low", "high"])


def _measures(distances: FloatArray) -> list[FloatArray]:
    """Return the distance to the closest record and its ratios to the 2nd and 10th, where there are as many."""
    measures = []
    for neighbour in (0, 1, _NEIGHBOURS - 1):
        known = distances[np.isfinite(distances[:, neighbour])]
        if neighbour == 0:
            measures.append(known[:, 0])
        else:
            # A row on top of several equal records is as exposed as one of them: 0 to 0 counts as 1.
            with np.errstate(invalid="ignore"):
                measures.append(np.where(known[:, neighbour] == 0, 1.0, known[:, 0] / known[:, neighbour]))
    return measures


def _above_chance(
    closer: FloatArray, by_chance: float, person: IntArray
) -> tuple[float, tuple[float, float]]:
    """Return how far a share is above chance, 0 to 1, with its interval over the people behind the rows."""
    share = float(closer.mean())
    # Which table a person is in was drawn once, for all the rows nearest to that person: the variance is that
    # of as many equally weighted people (Kish's effective sample size).
    rows = np.bincount(person)
    trials = max(1, round(float(rows.sum() ** 2 / (rows**2).sum())))
    risk, low, high = (
        max(0.0, (value - by_chance) / (1 - by_chance))
        for value in (share, *wilson_interval(share * trials, trials))
    )
    return risk, (low, high)


def _next_to_one(
    release: FloatArray, record: IntArray, usual: FloatArray
) -> tuple[float, tuple[float, float]]:
    """Return how many released rows are next to one record, beyond chance.

    Around a place that has nothing to do with the records in particular, the ratio of the distances to the closest two
    of them, to the power of the dimension, is uniform: in one dimension or more it is below a limit no more often than
    the limit itself, wherever the place is. Distances as large as are common among the records do not count, so that a
    row which alone shares a record's categories is not next to it. Identical rows, which are frequent in coarse tables,
    are left to :class:`ExactCopies`.
    """
    apart = usual[(usual[:, 0] > 0) & np.isfinite(usual[:, 1])]
    others = (release[:, 0] > 0) & np.isfinite(release[:, 1])
    if not len(apart) or not others.any():
        return 0.0, (0.0, 1.0)
    limit = np.quantile(apart[:, 0], _UNCOMMON)
    closest, second = release[others, 0], release[others, 1]
    near = (closest < limit) & (closest < _NEXT_TO * second)
    return _above_chance(near.astype(float), _NEXT_TO, record[others])


def warn(reconstruction: AttackResult | None) -> dict[str, Any]:
    """Return the warning, with the figure of a reconstruction where it succeeded."""
    if reconstruction is None:
        return {"warning": WARNING}
    figures = {"reconstruction": reconstruction.name, "reconstruction_risk": reconstruction.risk}
    if reconstruction.risk <= 0:
        return {"warning": WARNING, **figures}
    recovered, total = (reconstruction.details.get(key) for key in ("recovered", "distinct_real"))
    what = (
        f"{recovered} of the {total} real records"
        if recovered is not None and total is not None
        else f"at a risk of {reconstruction.risk:.0%}"
    )
    verb = "recovers" if recovered is not None else "succeeds"
    return {"warning": f"{WARNING}; from this one {reconstruction.name} {verb} {what}", **figures}


def _told_next_to_one(result: AttackResult, label: str) -> str:
    identical = result.details["identical_share_release"]
    others = "released rows" if identical == 0 else "released rows that are no copies"
    if identical == 1:
        return f"Every released row of class {label!r} is equal to a real record; others there are none."
    if result.interval[0] <= 0:
        return (
            f"The {others} of class {label!r} are not next to one real record each. {beside(result.details)}"
        )
    return (
        f"About {result.risk:.0%} of the {others} of class {label!r} are next to one real record each, as "
        "if they had been made from it by small changes: twenty times closer to it than to any other."
    )


def beside(details: Mapping[str, Any]) -> str:
    """Return that a low figure proves nothing, and the attack that shows it."""
    if details.get("reconstruction_risk", 0) > 0:
        return f"{_SIMILAR_PROVES_NOTHING}: {details['reconstruction']} reads records out of the same rows."
    return f"{_SIMILAR_PROVES_NOTHING}."
