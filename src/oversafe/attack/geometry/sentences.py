"""What the records say that were computed from a release, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from oversafe._core.text import joined, listed
from oversafe.attack.base import AttackResult
from oversafe.attack.geometry.lattice.precision import FULL


def reconstructed(result: Any, label: str, certain: int) -> str:
    """Return what a reconstruction means, for a reader who does not know the attack."""
    if not certain:
        return _nothing(result, label)
    own = int(result.details.get("recovered", certain))
    if "distinct_real" in result.details:
        records = f"{own} of the {result.details['distinct_real']} real records of class {label!r}"
        if left_out := len(result.details.get("columns_left_out", ())):
            # Equal ones count once, and in fewer columns more are equal.
            compared = result.details["columns"] - left_out
            records += f" that differ in the {compared} column{'s' if compared != 1 else ''} compared"
    else:
        records = f"{certain} real record{'s' if certain > 1 else ''} of class {label!r}"
    sentence = f"{records} can be computed from the released rows alone"
    if columns := columns_read([result]):
        sentence += f", {columns}"
    if others := of_other_classes(result):
        sentence += f"; {others}"
    if blank := int(result.details.get("real_with_a_blank", 0)):
        sentence += f"; {with_a_blank(blank)}"
    if wrong := computed_in_vain(result):
        sentence += f"; {not_real(wrong)}"
    return sentence + "."


def _nothing(result: Any, label: str) -> str:
    """Return what was tried where no real record came out."""
    details = result.details
    if wrong := computed_in_vain(result):
        computed = "1 record was computed and is" if wrong == 1 else f"{wrong} records were computed and are"
        said = (
            f"Of class {label!r} {computed} not in the real table, or the release was made from another table"
        )
    elif len(result.evidence):
        count = len(result.evidence)
        said = (
            f"Of class {label!r} {count} record{'s were' if count > 1 else ' was'} computed, but chance explains "
            f"{'them' if count > 1 else 'it'} with a probability of {details.get('p_none_real', 1.0):.1g}"
        )
    else:
        said = f"No real record of class {label!r} was found"
    if "tolerance" not in details:
        return f"{said}."
    rows = int(details.get("rows_decoded", 0))
    tried = [f"{rows} row{'s' * (rows != 1)} one by one"] if rows else []
    tried.append("lines through three rows and more")
    digits = details.get("digits", FULL)
    written = "float32" if digits == "float32" else f"{digits} digits" if digits < FULL else "full precision"
    exact = f"values of {written} that count as exact to {details['tolerance']:.1g} of their range"
    return f"{said}. Tried: {joined(tried)}, on {exact}."


def of_other_classes(result: AttackResult) -> str:
    """Return in words how many of the computed records are real ones of other classes; nothing if none is."""
    classes = result.details.get("other_classes", {})
    return " and ".join(
        f"{count} more {'is a real record' if count == 1 else 'are real records'} of class {name!r}"
        for name, count in classes.items()
    )


def columns_read(results: Sequence[AttackResult]) -> str:
    """Return in how many of their columns the records were read, and which values are estimates.

    Nothing where it is not known, as in what is kept of a comparison.
    """
    found = [
        result
        for result in results
        if "columns_estimated" in result.details and result.evidence.columns.is_unique
    ]
    if not found:
        return ""
    counts = pd.concat([result.evidence["columns_read"] for result in found])
    # Records of which every value is an estimate are not counted either.
    counts = counts[counts > 0]
    columns = max(result.details["columns"] for result in found)
    most, least = int(counts.max()), int(counts.min())

    def told(count: int) -> str:
        return f"all {columns} columns" if count == columns else f"{count} of {columns} columns"

    if most == least:
        text = f"in {told(most)}"
    else:
        text = f"{int((counts == most).sum())} of them in {told(most)}, the others in at least {least}"
    estimated = _names(found, "columns_estimated")
    if estimated:
        text += f" (other values of {listed(estimated)} are estimates, marked as such)"
    left_out = [
        name
        for name in _names(found, "columns_left_out")
        if all(name in result.evidence and result.evidence[name].isna().all() for result in found)
    ]
    if left_out:
        text += f" (not read: {listed(left_out)})"
    return text


def _names(results: Sequence[AttackResult], key: str) -> list[str]:
    return list(dict.fromkeys(str(name) for result in results for name in result.details.get(key, ())))


def computed_in_vain(result: AttackResult) -> int:
    """Return how many of the computed records are not real, as far as they were held against the real table."""
    if "real_row" not in result.evidence:
        return 0
    unreal = result.evidence["real_row"] < 0
    if "real_class" in result.evidence:
        unreal &= result.evidence["real_class"].isna()
    return int(unreal.sum())


def with_a_blank(count: int) -> str:
    """Return in words that records have a value, filled in before the release was made, that the real one lacks."""
    return f"{count} of them {'has' if count == 1 else 'have'} a value where the real record has a blank"


def not_real(count: int) -> str:
    """Return in words that records were computed which nobody has."""
    if count == 1:
        return "1 more that was computed is no real record"
    return f"{count} more that were computed are no real records"
