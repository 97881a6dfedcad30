"""Real rows that stand in a release verbatim, or that it avoids."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.text import percent
from oversafe.attack.base import About, Attack, AttackResult, Earlier, SuccessRate, Threat, wilson_interval
from oversafe.attack.class_tables import ANOTHER_LABEL, ClassTables
from oversafe.data.rows.keys import Numbers, column_codes, combined, row_numbers

_SHOWN = 100


@dataclass(eq=False, repr=False)
class ExactCopies(Attack):
    """Count the real rows that a release contains word for word, but for the decimals it was rounded to.

    The risk is the share of the distinct real rows that are in the release. Rows that many people share
    (three yes-or-no columns) are copied by chance, and what chance gives is subtracted: the share of a
    holdout of people who had no part in the release, or, without one that has other rows than the real ones, the share
    to expect if the release drew each of its columns by itself.

    A release that avoids real rows tells who took part as well: those who are missing. Where surely fewer real rows
    than holdout rows are in the release, the risk is the difference of the two shares, the threat is "membership" and
    ``details["avoided"]`` is true.

    Parameters
    ----------
    both_ways : bool, default=True
        Whether to look for avoided rows too. That takes real rows and a holdout that were chosen alike.

    Notes
    -----
    The 95 % interval of the difference has two ends, and chance passes each with a probability of about 2.5 %. Its
    lower end decides on copies, its upper end on avoided rows. So looking both ways changes nothing for copies, and
    both together err as often as the interval says. Of few rows such an interval is too short, so that avoided rows
    must pass Fisher's exact test at 2.5 % as well. Where real and holdout rows coincide, those of the holdout that are
    left are rare kinds of rows, which makes the finding of avoided rows less likely, never more.

    See Also
    --------
    ReconSMOTE : Recovers real rows that are not in the release.

    Examples
    --------
    >>> import pandas as pd
    >>> from oversafe.attack import ExactCopies
    >>> real = pd.DataFrame({"age": [31, 47, 58, 64], "town": ["A", "B", "B", None]})
    >>> release = pd.DataFrame({"age": [64, 31, 50], "town": [None, "A", "B"]})
    >>> ExactCopies().run(release, real).risk
    0.5
    """

    about = About(
        question="Do real records stand in the release as they are?",
        attacker="Somebody who has the released file, and meets a person whose values they recognise.",
        method=(
            "Every released row is compared with every real one, value by value. The records of people "
            "who had no part in the release show what chance gives. If clearly more of theirs stand "
            "there, the release avoids the real ones."
        ),
        risk=(
            "The share of the real records that stand in the release, less what chance gives. Where real "
            "records are avoided: the share of other people's records that stand there, less that of the real ones."
        ),
        threat="reconstruction",
        rows=("largest", "relabelled", "attacked"),
        work=0.5,
        reads="copied",
    )

    both_ways: bool = True

    def run(self, release: Any, real: Any, holdout: Any = None) -> AttackResult:
        """Compare the rows of the release with the real ones.

        Parameters
        ----------
        release : DataFrame or array
            The released rows.
        real : DataFrame or array
            The real rows. DataFrames are compared in the columns that all tables share, by name; with an
            array among the tables, all columns are compared in their order.
        holdout : DataFrame or array, optional
            Rows of the same kind that had no part in the release. Those equal to a real row are left out.

        Returns
        -------
        AttackResult
            ``evidence`` holds the first 100 copied rows with the number of their copies, ``details`` the
            counts.

        Raises
        ------
        InputError
            If a table is empty or the tables have no column in common.
        """
        rows = row_numbers({"release": release, "real": real, "holdout": holdout})
        released = rows["release"]
        distinct = pd.unique(rows["real"])
        copied = np.isin(distinct, released)
        shares = [(int(copied.sum()), len(distinct))]
        details: dict[str, Any] = {
            "copied": shares[0][0],
            "distinct_real": shares[0][1],
            "released_copies": int(np.isin(released, distinct).sum()),
            "released_rows": len(released),
        }
        threat: Threat = "reconstruction"
        risk = shares[0][0] / shares[0][1]
        interval = wilson_interval(*shares[0])
        others = None if holdout is None else np.setdiff1d(rows["holdout"], distinct)
        if others is not None:
            by_chance = int(np.isin(others, released).sum())
            details["copied_holdout"] = by_chance
            details["distinct_holdout"] = len(others)
        if others is not None and len(others):
            risk -= by_chance / len(others)
            interval = difference_interval(*shares[0], by_chance, len(others))
            if self.both_ways and interval[1] < 0 and _seldom(*shares[0], by_chance, len(others)) <= 0.025:
                details["avoided"], threat = True, "membership"
                risk, interval = -risk, (-interval[1], -interval[0])
        else:
            # A holdout whose rows are all among the real ones shows a coarse table, and no chance.
            chance = _chance_of_copies(release, real)
            details["expected_by_chance"] = chance
            risk -= chance
            interval = interval[0] - chance, interval[1] - chance
        first = np.flatnonzero(np.isin(rows["real"], released) & ~pd.Series(rows["real"]).duplicated())[
            :_SHOWN
        ]
        evidence = pd.DataFrame(real).iloc[first].copy()
        copies = np.bincount(released, minlength=int(distinct.max()) + 1)[rows["real"][first]]
        evidence.insert(evidence.shape[1], "copies", copies, allow_duplicates=True)
        return AttackResult(
            name="ExactCopies",
            threat=threat,
            risk=max(0.0, risk),
            interval=(max(0.0, interval[0]), max(0.0, interval[1])),
            evidence=evidence,
            details=details,
        )

    def run_on(self, tables: ClassTables, earlier: Earlier) -> AttackResult:
        """Run it on a class, and on rows under another label for copies alone."""
        if tables.label == ANOTHER_LABEL:
            # The real rows were chosen for being missing under their own; the holdout's were not chosen.
            return replace(self, both_ways=False).run(tables.release, tables.real, tables.holdout)
        return self.run(tables.release, tables.real, tables.holdout)

    def headline(self, result: Any, label: str, certain: int = 0) -> str:
        """Return what a result means, for a reader who does not know the attack."""
        copied, total = result.details["copied"], result.details["distinct_real"]
        if result.details.get("avoided"):
            others = result.details["copied_holdout"] / result.details["distinct_holdout"]
            return (
                f"The release avoids the real records of class {label!r}: it holds {copied} of the {total} "
                f"different ones, and {percent(others)} of the records of people who had no part. So a "
                "missing record hints that the person took part."
            )
        chance = ", no more than by chance" if copied and not certain and result.interval[0] <= 0 else ""
        if label == ANOTHER_LABEL:
            return f"{copied} different real records stand in the release under {label}{chance}."
        records = f"{copied} of the {total} different real records of class {label!r}"
        return f"{records} stand in the release as they are{chance}."

    def rates(self, result: AttackResult) -> list[SuccessRate]:
        """Return the shares of the real records and of others that stand in the release."""
        details = result.details
        copied, total = details["copied"], details["distinct_real"]
        interval = wilson_interval(copied, total)
        found = [SuccessRate("real records that stand in the release", copied / total, interval, "attack")]
        if details.get("distinct_holdout"):
            copied, total = details["copied_holdout"], details["distinct_holdout"]
            interval = wilson_interval(copied, total)
            found.append(SuccessRate("records of people who had no part", copied / total, interval))
        elif "expected_by_chance" in details:
            found.append(SuccessRate("to expect by chance", details["expected_by_chance"], None))
        return found


def _seldom(copied: int, total: int, others: int, all_others: int) -> float:
    """Return how probable so few copies are if real rows stand in the release as often as others."""
    from scipy.stats import fisher_exact

    table = [[copied, total - copied], [others, all_others - others]]
    return float(fisher_exact(table, alternative="less").pvalue)


def _chance_of_copies(release: Any, real: Any) -> float:
    """Return the expected share of the distinct real rows in a release whose columns are drawn independently.

    How common a row's values are is counted among the other released rows: a copy must not count as the
    reason why there is a copy.
    """
    columns = [codes for _, codes in column_codes({"release": release, "real": real})]
    numbers = combined(columns)
    rows = np.unique(numbers["real"], return_index=True)[1]
    copies = _counts(numbers)[rows]
    others = np.maximum(len(numbers["release"]) - copies, 1)
    log_chance = np.zeros(len(rows))
    for codes in columns:
        with np.errstate(divide="ignore"):
            log_chance += np.log((_counts(codes)[rows] - copies) / others)
    # The chance that one of the released rows is this one: 1 - (1 - p)^n, without losing a small p.
    chance = np.minimum(np.exp(log_chance), 1.0)
    with np.errstate(divide="ignore"):
        return abs(float(np.expm1(len(numbers["release"]) * np.log1p(-chance)).mean()))


def _counts(numbers: Numbers) -> NDArray[np.int64]:
    """Return how often each real row stands in the release."""
    return np.bincount(numbers["release"], minlength=int(numbers["real"].max()) + 1)[numbers["real"]]


def difference_interval(
    successes: float, trials: int, other_successes: float, other_trials: int, confidence: float = 0.95
) -> tuple[float, float]:
    """Return Newcombe's hybrid score interval of the difference of two independent proportions.

    Parameters
    ----------
    successes, trials : float, int
        The first proportion.
    other_successes, other_trials : float, int
        The proportion that is subtracted.
    confidence : float
        Coverage of the interval.

    References
    ----------
    Newcombe, "Interval estimation for the difference between independent proportions: comparison of
    eleven methods", Statistics in Medicine 17 (1998), method 10.
    """
    share = successes / trials if trials else 0.5
    other = other_successes / other_trials if other_trials else 0.5
    low, high = wilson_interval(successes, trials, confidence)
    other_low, other_high = wilson_interval(other_successes, other_trials, confidence)
    below = np.hypot(share - low, other_high - other)
    above = np.hypot(high - share, other - other_low)
    return max(-1.0, float(share - other - below)), min(1.0, float(share - other + above))
