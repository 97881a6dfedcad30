"""Whether a release depends on who was in the table: an exact test against people who were held out."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from oversafe._core.checks import check_count
from oversafe.attack.base import About, Attack, AttackResult
from oversafe.attack.membership.no_box.comparable import UNCHECKED, comparable
from oversafe.attack.membership.no_box.exact import epsilon_at_least, exact_test, rate_at
from oversafe.attack.membership.no_box.pool import Pool, pool_of
from oversafe.attack.membership.no_box.scores import Scores, scores_of

# From so many others on a rate of one false positive in a thousand can be told.
_MANY = 10_000


@dataclass(eq=False, repr=False)
class MembershipTest(Attack):
    """Test whether a release depends on who was in the table it was made from."""

    about = About(
        question="Can an outsider tell whether a person was in the data?",
        attacker="Somebody who has the released file and knows the record of a person.",
        method=(
            "Real rows and held-out rows are mixed. Scores say how much each looks like one that the release was made "
            "from. If the release does not depend on who was in the table, any other choice of people would score as "
            "high: the test counts how many random choices do."
        ),
        risk="A lower end of the share of the members who stand out, 0 if the test finds nothing.",
        threat="membership",
        needs=("release", "real", "holdout"),
        helped_by=(),
        work=4.0,
    )

    alpha: float = 0.006
    _: KW_ONLY
    n_choices: int = 9_999
    most: int = 6_000
    random_state: int = 0

    def run(
        self, release: Any, real: Any, holdout: Any, *, label: str | None = None, unit: str | None = None
    ) -> AttackResult:
        """Test a release against real rows and held-out rows."""
        started = perf_counter()
        check_count("n_choices", self.n_choices, 99)
        tables = [pd.DataFrame(table) for table in (release, real, holdout)]
        pool = pool_of(*tables, label=label, unit=unit, most=self.most, random_state=self.random_state)
        aligned = comparable(pool.rows, tables[0], pool.classes, pool.released_classes, pool.units)
        found = scores_of(aligned)
        test = exact_test(
            found.values,
            found.names,
            found.meta,
            pool.member,
            pool.classes,
            pool.units,
            alpha=self.alpha,
            n_choices=self.n_choices,
            random_state=self.random_state,
        )
        best = test.statistics[test.surest]
        main = found.values[:, found.names.index("all")]
        others = int((~pool.member).sum())
        lower = max(0.0, float(test.affected.max()))
        by_class = {
            pool.labels[label]: max(0.0, test.most(label)) for label in np.unique(pool.classes).tolist()
        }
        details: dict[str, Any] = {
            "p_value": test.p_value,
            "rejects": test.p_value <= self.alpha,
            "lower": lower,
            "lower_by_class": by_class,
            "surest": {
                "score": best.score,
                "tail": best.tail,
                "class": pool.labels[best.label] if best.label >= 0 else None,
            },
            "auc": _auc(main, pool),
            "tpr_at_1_percent": rate_at(main, pool.member, 0.01),
            "epsilon": epsilon_at_least(found.values, pool.member, pool.classes, alpha=self.alpha)
            if unit is None
            else None,
            "columns": aligned.report,
            "unchecked": [name for name, how in aligned.report.items() if how == UNCHECKED],
            "members": int(pool.member.sum()),
            "others": others,
            "seconds": perf_counter() - started,
        }
        if others >= _MANY:
            details["tpr_at_1_permille"] = rate_at(main, pool.member, 0.001)
        risk = lower if details["rejects"] else 0.0
        return AttackResult("MembershipTest", "membership", risk, (risk, 1.0), _evidence(test, pool), details)


def _auc(score: Any, pool: Pool) -> float:
    from scipy.stats import rankdata

    ranks = rankdata(score)
    m, k = int(pool.member.sum()), int((~pool.member).sum())
    return float((ranks[pool.member].sum() - m * (m + 1) / 2) / (m * k))


def _evidence(test: Any, pool: Pool) -> pd.DataFrame:
    order = np.argsort(-test.surprise)[:20]
    chosen = [test.statistics[i] for i in order]
    return pd.DataFrame(
        {
            "score": [own.score for own in chosen],
            "highest share": [own.tail or np.nan for own in chosen],
            "class": [pool.labels[own.label] if own.label >= 0 else "all" for own in chosen],
            "surprise": test.surprise[order],
            "members who stand out, at least": test.affected[order],
        }
    )


__all__ = ["MembershipTest", "Scores"]
