"""Values that one real person alone has, and that appear in a release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe.attack.base import ONLY_THE_FILE, About, Attack, AttackResult
from oversafe.attack.copies import difference_interval
from oversafe.attack.linkage.rates import Rate
from oversafe.data.rows import aligned, column_codes

_ERROR = 0.05
_EXAMPLES = 3


@dataclass(frozen=True)
class _Rare:
    """The rows of a table whose value in a column nobody else has, and which of these values the release has."""

    rows: NDArray[np.int64]
    released: NDArray[np.bool_]

    @property
    def rate(self) -> Rate:
        return Rate(int(self.released.sum()), len(self.rows))


class RareValues(Attack):
    """Count the values that one person alone has, and that a release hands out.

    An income to the cent, a rare diagnosis or a village tells whose it is. Of the values that occur once in the real
    table and the holdout together, some belong to people of the one and some to people of the other. A release
    that depends on no person in particular has them equally often. The risk is the share of the real people's values
    that appear in the release, less that of the others: of all columns together, or of one that surely gives away more.

    Notes
    -----
    Which of the people had a part was drawn, so the values are compared by Fisher's exact test, however
    coarse the columns are and however many of their values a release has by chance. Its level is divided by the number
    of columns that are looked at, and one for all together. Of all columns together the values of a person count once.

    Without a holdout nothing shows how many such values a release has by chance, so that the risk is 0 and the upper
    end of its interval says how large it may be.

    See Also
    --------
    SinglingOut : Isolates a person by values that occur once in the release.
    ExactCopies : Counts whole rows.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from oversafe.attack import RareValues
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame(rng.normal(size=(400, 2)), columns=["income", "weight"])
    >>> real, holdout = people[:200], people[200:]
    >>> shuffled = real.apply(lambda column: column.sample(frac=1, random_state=1).to_numpy())
    >>> result = RareValues().run(shuffled, real, holdout)
    >>> result.risk  # no row is a copy, and every value is
    1.0
    """

    about = About(
        question="Does the release hand out values that one person alone has?",
        attacker=ONLY_THE_FILE,
        method=(
            "Values that occur once among all people, real ones and others, are looked up in the release. "
            "Those of people who had no part in it show what chance gives."
        ),
        risk="Of the values that one real person alone has, the share that is handed out, less what chance gives.",
        threat="singling-out",
        needs=("release", "real", "holdout"),
        helped_by=(),
        work=0.5,
    )

    def run(self, release: Any, real: Any, holdout: Any = None) -> AttackResult:
        """Look up the values that one person alone has.

        Parameters
        ----------
        release : DataFrame or array
            The released rows.
        real : DataFrame or array
            The real rows. Only columns that all tables share are used.
        holdout : DataFrame or array, optional
            Rows of the same kind that had no part in the release. Without it nothing counts as a risk.

        Returns
        -------
        AttackResult
            ``evidence`` holds a row for each column with such values: how many there are, how many of them the release
            has, the same of the holdout, and some of the values.

        Raises
        ------
        InputError
            If a table is empty or the tables share no column.
        """
        given = {"release": release, "real": real, "holdout": holdout}
        table = aligned(given)["real"]
        found = {position: _rare(numbers) for position, numbers in column_codes(given)}
        found = {position: found[position] for position in sorted(found) if len(found[position]["real"].rows)}
        level = _ERROR / (1 + len(found))
        rows, best = [], None
        for position, parts in found.items():
            own, others = parts["real"], parts.get("holdout")
            figures = _advantage(own.rate, None if others is None else others.rate, level, level)
            values = table.iloc[own.rows[own.released][:_EXAMPLES], position]
            row: dict[str, Any] = {
                "column": str(table.columns[position]),
                "values": len(own.rows),
                "released": int(own.released.sum()),
            }
            if others is not None:
                row |= {"holdout_values": len(others.rows), "holdout_released": int(others.released.sum())}
            row |= dict(zip(("risk", "low", "high"), figures, strict=True))
            rows.append(row | {"examples": ", ".join(map(str, values))})
            if best is None or figures[1] > best[0][1]:
                best = figures, own.rate, None if others is None else others.rate, row["column"]
        main, control = _all(found, "real"), None if holdout is None else _all(found, "holdout")
        figures = _advantage(main, control, level, _ERROR)
        details: dict[str, Any] = {"risk_basis": "none" if control is None else "control"}
        if best is not None and best[0][1] > figures[1]:
            figures, main, control, details["column"] = best
        for name, rate in (("main", main), ("control", control)):
            if rate is not None:
                details |= {f"{name}_rate": rate.share, f"{name}_interval": rate.interval}
        details |= {"values": main.attacks, "released": int(main.successes), "columns": len(found)}
        names = ["column", "values", "released", "risk", "low", "high", "examples"]
        evidence = pd.DataFrame(rows, columns=list(rows[0]) if rows else names)
        evidence = evidence.sort_values(["low", "risk"], ascending=False, kind="stable", ignore_index=True)
        return AttackResult("RareValues", "singling-out", figures[0], figures[1:], evidence, details)

    def headline(self, result: Any, label: str, certain: int = 0) -> str:
        """Return what a result means, for a reader who does not know the attack."""
        found = result.details
        if not found["values"]:
            return f"No value of class {label!r} occurs only once."
        where = f" in {found['column']!r}" if "column" in found else ""
        whose = f"values{where} that only one person of class {label!r} has are in the release"
        if "control_rate" not in found:
            return f"{found['released']} of {found['values']} {whose}; a holdout would show how many are by chance."
        if result.interval[0] <= 0:
            return f"The {whose} no more often than those of people who had no part in it."
        return (
            f"{found['main_rate']:.0%} of the {whose}, against {found['control_rate']:.0%} for people who had no part "
            "in it."
        )


def _rare(numbers: dict[str, NDArray[np.int64]]) -> dict[str, _Rare]:
    """Return the values of a column that occur once in the real table and the holdout together."""
    counts = np.bincount(np.concatenate([codes for table, codes in numbers.items() if table != "release"]))
    found = {}
    for table, codes in numbers.items():
        if table != "release":
            # What is missing is 0, and no value.
            rows = np.flatnonzero((counts[codes] == 1) & (codes > 0))
            found[table] = _Rare(rows, np.isin(codes[rows], numbers["release"]))
    return found


def _all(found: dict[int, dict[str, _Rare]], table: str) -> Rate:
    """Return the rate of a table's values in all columns together."""
    parts = [rare[table] for rare in found.values()]
    people = len(np.unique(np.concatenate([part.rows for part in parts]))) if parts else 0
    return Rate(sum(part.rate.successes for part in parts), sum(len(part.rows) for part in parts), people)


def _advantage(main: Rate, control: Rate | None, level: float, error: float) -> tuple[float, float, float]:
    """Return how much more often a release has values of real people than of others, and the interval of that.

    ``level`` is that of the test, ``error`` that of the interval.
    """
    from scipy.stats import fisher_exact

    if control is None:
        return 0.0, 0.0, main.interval[1]
    (found, total), (others, of_others) = (_counted(rate) for rate in (main, control))
    low, high = difference_interval(found, total, others, of_others, 1 - error)
    table = [[found, total - found], [others, of_others - others]]
    risk = max(0.0, main.share - control.share)
    if fisher_exact(table, alternative="greater").pvalue > level / 2:
        # Of few values such an interval is too short.
        low = 0.0
    return risk, min(risk, max(0.0, low)), max(risk, high)


def _counted(rate: Rate) -> tuple[int, int]:
    """Return successes and trials, each person once."""
    trials = rate.attacks if rate.people is None else min(rate.people, rate.attacks)
    return round(rate.share * trials), trials
