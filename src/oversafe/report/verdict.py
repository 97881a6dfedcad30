"""From findings and a guarantee to one of three verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from oversafe.attack.base import AttackResult
from oversafe.privacy.guarantee import Guarantee

Level = Literal["exposed", "unproven", "protected"]

EXPOSED_FROM = 0.1
PROTECTED_UP_TO = 0.05
LARGEST_EPSILON = 10.0
LARGEST_DELTA = 1e-5


@dataclass(frozen=True)
class Verdict:
    """What an audit comes to.

    Parameters
    ----------
    level : {"exposed", "unproven", "protected"}
        Red, amber or green.
    sentence : str
        Why.
    """

    level: Level
    sentence: str


@dataclass(frozen=True)
class Finding:
    """What one attack found, for a reader who does not know the attack.

    Parameters
    ----------
    result : AttackResult
        What the attack returned.
    headline : str
        What it means, in one sentence.
    certain_records : int
        How many real records it names with certainty.
    points : DataFrame, optional
        Released rows and recovered records in two columns, for a chart: ``x``, ``y``, ``kind`` and ``line``, the line
        through one record that a point lies on, or -1; ``attrs`` has the columns' names.
    record : DataFrame, optional
        One recovered record, value by value, beside the real one if that is known.
    """

    result: AttackResult
    headline: str
    certain_records: int = 0
    points: pd.DataFrame | None = None
    record: pd.DataFrame | None = None


def weakness(guarantee: Guarantee) -> str | None:
    """Return in words what makes a guarantee too weak to rest on, if anything does."""
    for name, value, most in (
        ("epsilon", guarantee.epsilon, LARGEST_EPSILON),
        ("delta", guarantee.delta, LARGEST_DELTA),
    ):
        if (value or 0) > most:
            return f"{name} = {value:g} is too weak to rest on ({most:g} or less is asked)"
    return None


def judge(findings: Sequence[Finding], guarantee: Guarantee) -> Verdict:
    """Return the verdict.

    "exposed" when a record was reconstructed with certainty or the lower end of any risk interval is at
    least 0.1; "protected" only with a proven guarantee of epsilon <= 10 and delta <= 1e-5, and no lower end above 0.05;
    everything else "unproven".
    """
    certain = max((f.certain_records for f in findings), default=0)
    gravest = max(findings, key=lambda f: f.result.interval[0], default=None)
    lower = 0.0 if gravest is None else gravest.result.interval[0]
    if certain:
        records = "1 real record was" if certain == 1 else f"{certain} real records were"
        return Verdict("exposed", f"{records} read out of this table with certainty.")
    if gravest is not None and lower >= EXPOSED_FROM:
        return Verdict(
            "exposed",
            f"{gravest.result.name} succeeds {lower:.0%} or more above chance: {gravest.headline}",
        )
    weak = weakness(guarantee)
    proven = guarantee.status == "proven" and weak is None
    if proven and lower <= PROTECTED_UP_TO:
        return Verdict("protected", f"No attack succeeded, and the release carries a guarantee. {guarantee}")
    if guarantee.status == "proven" and not proven:
        reason = f"its guarantee of {weak}"
    elif proven:
        reason = f"an attack gained at least {lower:.0%} over chance, which its guarantee allows"
    elif guarantee.status == "nominal":
        reason = "its guarantee is nominal, not proven"
    else:
        reason = "it carries no guarantee, and that these attacks failed does not mean that others will"
    return Verdict("unproven", f"No attack that was run reads people out of this table, but {reason}.")
