"""An attack's success rate beside what its baselines reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from oversafe.attack.base import AttackResult, wilson_interval

Role = Literal["attack", "baseline"]
_MOST_SECRETS = 12


@dataclass(frozen=True)
class Rate:
    """One bar of a chart.

    Parameters
    ----------
    label : str
        Whose rate it is.
    share : float
        The rate.
    interval : tuple of float, optional
        Its 95 % interval, where it is an estimate.
    role : {"attack", "baseline"}
        Which of the two it is.
    """

    label: str
    share: float
    interval: tuple[float, float] | None
    role: Role = "baseline"


def rates(result: AttackResult) -> list[Rate]:
    """Return the attack's own rate and those of its baselines, in the terms that the attack counts in."""
    details = result.details
    if "main_rate" in details:
        found = [Rate("this attack", details["main_rate"], _pair(details["main_interval"]), "attack")]
        if "control_rate" in details:
            label = "the same attack on people who had no part"
            found.append(Rate(label, details["control_rate"], _pair(details["control_interval"])))
        found.append(Rate("guessing", details["naive_rate"], _pair(details["naive_interval"])))
        return found
    if result.name == "ExactCopies":
        return _copies(details)
    if result.name == "ReconSMOTE":
        label = (
            "real records read back"
            if details.get("risk_basis") == "recall"
            else "released rows on lines that end in a record read back"
        )
        return [Rate(label, result.risk, result.interval, "attack"), Rate("guessing", 0.0, None)]
    return [
        Rate("advantage of this attack", result.risk, result.interval, "attack"),
        Rate("guessing", 0.0, None),
    ]


def rates_by_secret(result: AttackResult) -> list[Rate]:
    """Return the risk of each column whose values were guessed, the most exposed first."""
    evidence = result.evidence
    if result.threat != "attribute" or not {"secret", "risk", "low", "high"} <= set(evidence.columns):
        return []
    rows = evidence[["secret", "risk", "low", "high"]].head(_MOST_SECRETS)
    return [
        Rate(str(secret), risk, (low, high), "attack")
        for secret, risk, low, high in rows.itertuples(index=False)
    ]


def _copies(details: dict[str, Any]) -> list[Rate]:
    copied, total = details["copied"], details["distinct_real"]
    found = [
        Rate(
            "real records that stand in the release", copied / total, wilson_interval(copied, total), "attack"
        )
    ]
    if details.get("distinct_holdout"):
        copied, total = details["copied_holdout"], details["distinct_holdout"]
        found.append(
            Rate("records of people who had no part", copied / total, wilson_interval(copied, total))
        )
    elif "expected_by_chance" in details:
        found.append(Rate("to expect by chance", details["expected_by_chance"], None))
    return found


def _pair(interval: Any) -> tuple[float, float]:
    low, high = np.asarray(interval, dtype=float)
    return float(low), float(high)
