"""What the records say that were computed from a release, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from oversafe._core.text import listed
from oversafe.attack.base import AttackResult


def reconstructed(result: Any, label: str, certain: int) -> str:
    """Return what a reconstruction means, for a reader who does not know the attack."""
    if "distinct_real" in result.details:
        records = f"{certain} of the {result.details['distinct_real']} real records of class {label!r}"
        if left_out := len(result.details.get("columns_left_out", ())):
            # Equal ones count once, and in fewer columns more are equal.
            compared = result.details["columns"] - left_out
            records += f" that differ in the {compared} column{'s' if compared != 1 else ''} compared"
    else:
        records = f"{certain or 'No'} real record{'s' if certain > 1 else ''} of class {label!r}"
    sentence = f"{records} can be computed from the released rows alone"
    if certain and (columns := columns_read([result])):
        sentence += f", {columns}"
    if blank := int(result.details.get("real_with_a_blank", 0)):
        sentence += f"; {with_a_blank(blank)}"
    if (wrong := computed_in_vain(result)) and certain:
        sentence += f"; {not_real(wrong)}"
    elif wrong:
        computed = "1 that was computed is" if wrong == 1 else f"{wrong} that were computed are"
        sentence += f"; {computed} not in the real table, or the release was made from another table"
    return sentence + "."


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
    return int((result.evidence["real_row"] < 0).sum()) if "real_row" in result.evidence else 0


def with_a_blank(count: int) -> str:
    """Return in words that records have a value, filled in before the release was made, that the real one lacks."""
    return f"{count} of them {'has' if count == 1 else 'have'} a value where the real record has a blank"


def not_real(count: int) -> str:
    """Return in words that records were computed which nobody has."""
    if count == 1:
        return "1 more that was computed is no real record"
    return f"{count} more that were computed are no real records"
