"""What the attacks found, in sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oversafe._core.text import listed
from oversafe.attack import AttackResult
from oversafe.auditing.formatting import percent
from oversafe.auditing.plan.attack_steps import ANOTHER_LABEL
from oversafe.auditing.verdict import Finding, columns_read, computed_in_vain, not_real, with_a_blank

_SIMILAR_PROVES_NOTHING = "This is no evidence of privacy"


def headline(result: Any, label: str, certain: int) -> str:
    """Return what a result means, for a reader who does not know the attack.

    Parameters
    ----------
    result : AttackResult
        What was found.
    label : str
        The class that was attacked.
    certain : int
        How many real records it names with certainty.
    """
    if result.name == "ReconSMOTE":
        return _reconstructed(result, label, certain)
    if result.name == "ExactCopies":
        return _copied(result, label, certain)
    return _HEADLINES[result.name.partition(" ")[0]](result, label)


def _reconstructed(result: Any, label: str, certain: int) -> str:
    if "distinct_real" in result.details:
        records = f"{certain} of the {result.details['distinct_real']} real records of class {label!r}"
        if left_out := len(result.details.get("columns_left_out", ())):
            # Equal ones count once, and in fewer columns more are equal.
            compared = result.details["columns"] - left_out
            records += f" that differ in the {compared} column{'s' if compared != 1 else ''} compared"
    else:
        records = f"{certain or 'No'} real record{'s' if certain > 1 else ''} of class {label!r}"
    sentence = f"{records} can be computed from the released rows alone"
    if columns := columns_read([Finding(result, sentence, certain)]):
        sentence += f", {columns}"
    if blank := int(result.details.get("real_with_a_blank", 0)):
        sentence += f"; {with_a_blank(blank)}"
    if (wrong := computed_in_vain(result)) and certain:
        sentence += f"; {not_real(wrong)}"
    elif wrong:
        computed = "1 that was computed is" if wrong == 1 else f"{wrong} that were computed are"
        sentence += f"; {computed} not in the real table, or the release was made from another table"
    return sentence + "."


def _copied(result: AttackResult, label: str, certain: int) -> str:
    copied, total = result.details["copied"], result.details["distinct_real"]
    if result.details.get("avoided"):
        others = result.details["copied_holdout"] / result.details["distinct_holdout"]
        return (
            f"The release avoids the real records of class {label!r}: it holds {copied} of the {total} different ones, "
            f"and {percent(others)} of the records of people who had no part. So a missing record hints that the "
            "person took part."
        )
    chance = ", no more than by chance" if copied and not certain and result.interval[0] <= 0 else ""
    if label == ANOTHER_LABEL:
        return f"{copied} different real records stand in the release under {label}{chance}."
    records = f"{copied} of the {total} different real records of class {label!r}"
    return f"{records} stand in the release as they are{chance}."


def _distinguished(result: AttackResult, label: str) -> str:
    details = result.details
    if result.risk <= 0:
        return f"The rows of class {label!r} do not show which of them are real."
    if (columns := details.get("told_by_decimals")) and details.get("precision", 1.0) == 1.0:
        return (
            f"{details['labelled_real']} rows of class {label!r} have few decimals and {details['labelled_synthetic']} "
            f"as many as a computer keeps ({listed(columns)}): the former are real, the latter were added."
        )
    if details["risk_basis"] == "estimate":
        return (
            f"{details['certain']} of the {details['labelled_real']} rows of class {label!r} that look real "
            "are so with certainty: lines of added rows end in them."
        )
    return (
        f"{percent(details['recall'])} of the real rows of class {label!r} are recognised in the released "
        f"table, and {percent(max(0.0, details['recall'] - result.risk))} of the added ones are taken for real"
        f"{'; with so few rows that may be chance' if result.interval[0] <= 0 else ''}."
    )


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
    if result.details["baseline"] != "holdout":
        return _next_to_one(result, label)
    if result.interval[0] <= 0:
        return (
            f"The released rows of class {label!r} are no closer to the real records than to other people's. "
            f"{_beside(result.details)}"
        )
    return (
        f"The released rows of class {label!r} are closer to real records than to those of people who had "
        f"no part in it, {result.risk:.0%} of the way from chance to always."
    )


def _next_to_one(result: AttackResult, label: str) -> str:
    identical = result.details["identical_share_release"]
    others = "released rows" if identical == 0 else "released rows that are no copies"
    if identical == 1:
        return f"Every released row of class {label!r} is equal to a real record; others there are none."
    if result.interval[0] <= 0:
        return (
            f"The {others} of class {label!r} are not next to one real record each. {_beside(result.details)}"
        )
    return (
        f"About {result.risk:.0%} of the {others} of class {label!r} are next to one real record each, as if they had "
        "been made from it by small changes: twenty times closer to it than to any other."
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
    "DistinSMOTE": _distinguished,
    "SinglingOut": _singled_out,
    "Linkability": _linked,
    "AttributeInference": _inferred,
    "ClosestRecord": _close,
    "NaiveDistinguisher": _recognised,
}
