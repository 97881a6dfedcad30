"""What the attacks with the real table and a holdout found, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oversafe.attack import AttackResult
from oversafe.attack.release_attacks import NEED_A_HOLDOUT
from oversafe.report.cells import percent

_SIMILAR_PROVES_NOTHING = "This is no evidence of privacy"


def why_not_at_all(has_real: bool, has_holdout: bool) -> dict[str, str]:
    """Return which attacks cannot be run on any class, and why."""
    missing = [
        what
        for what, given in (
            ("the real table (--real)", has_real),
            ("real rows that had no part in the release (--holdout)", has_holdout),
        )
        if not given
    ]
    reasons = {}
    if missing:
        reason = f"they need {' and '.join(missing)}"
        if not has_holdout:
            reason += ", or what holds for everybody would count as a leak"
        reasons[NEED_A_HOLDOUT] = reason
    if not has_real:
        reasons["NaiveDistinguisher"] = "it needs the real table (--real)"
    return reasons


def linkage_headline(result: AttackResult, label: str) -> str:
    """Return what a result means, for a reader who does not know the attack."""
    return _HEADLINES[result.name.partition(" ")[0]](result, label)


def _linked(result: AttackResult, label: str) -> str:
    rates = result.details
    if result.interval[0] <= 0:
        return (
            f"The release links two sources about people of class {label!r} no better than about people "
            "who had no part in it."
        )
    return (
        f"Two sources about a person of class {label!r} are linked through the release in "
        f"{rates['main_rate']:.0%} of the attempts, against {rates['control_rate']:.0%} for people who had no part "
        "in it."
    )


def _singled_out(result: AttackResult, label: str) -> str:
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


def _inferred(result: AttackResult, label: str) -> str:
    rates = result.details
    if result.interval[0] <= 0:
        return (
            f"Unknown values of people of class {label!r} are guessed no better than those of people who had "
            "no part in the release."
        )
    return (
        f"Unknown values of people of class {label!r} are guessed from the release in {rates['main_rate']:.0%} of "
        f"the attempts, against {rates['control_rate']:.0%} for people who had no part in it; "
        f"most exposed: {rates['riskiest']!r}."
    )


def _close(result: AttackResult, label: str) -> str:
    if result.interval[0] <= 0:
        return (
            f"The released rows of class {label!r} are no closer to the real records than to other people's. "
            f"{_beside(result.details)}"
        )
    return (
        f"The released rows of class {label!r} are closer to real records than to those of people who had "
        f"no part in it, {result.risk:.0%} of the way from chance to always."
    )


def _recognised(result: AttackResult, label: str) -> str:
    headline = (
        f"A random forest recognises {percent(result.details['recall'])} of the real rows of class {label!r} "
        f"in the release{_taken_for_real(result)}."
    )
    return f"{headline} {_beside(result.details)}" if result.interval[0] <= 0 else headline


def _taken_for_real(result: AttackResult) -> str:
    """Return how many other rows are taken for real too: that real ones are says nothing without it."""
    if "false_positive_rate" not in result.evidence:
        return ""
    return (
        f", and takes {percent(float(result.evidence['false_positive_rate'].mean()))} of the others for real"
    )


def _beside(details: Mapping[str, Any]) -> str:
    """Return that a low figure proves nothing, and the attack that shows it."""
    if details.get("reconstruction_risk", 0) > 0:
        return f"{_SIMILAR_PROVES_NOTHING}: {details['reconstruction']} reads records out of the same rows."
    return f"{_SIMILAR_PROVES_NOTHING}."


_HEADLINES = {
    "SinglingOut": _singled_out,
    "Linkability": _linked,
    "AttributeInference": _inferred,
    "ClosestRecord": _close,
    "NaiveDistinguisher": _recognised,
}
