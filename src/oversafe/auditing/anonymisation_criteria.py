"""The three words of European anonymisation law, and what the findings say about each.

The words are those of Opinion 05/2014 (WP 216) of the Article 29 Working Party on anonymisation techniques.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from oversafe._core.text import percent_at_least
from oversafe.auditing.verdict import EXPOSED_FROM, Finding, copies_of_largest, records_read_out
from oversafe.privacy.guarantee import Guarantee
from oversafe.privacy.meaning import LIMITS, Limits, weakness

Criterion = Literal["singling out", "linkability", "inference"]
Answer = Literal["shown", "some", "none", "unchecked"]

MEANINGS: Mapping[Criterion, str] = {
    "singling out": "Can the record of one person be isolated in the data?",
    "linkability": "Can two records about the same person, in one table or in two, be brought together?",
    "inference": "Can a value about a person be concluded from other values with significant probability?",
}

# A record that was read back is isolated, can be matched with other tables, and all its values are known. Telling
# whether a person was among the data links the person with the table, and says what all in the table share.
CRITERIA: Mapping[str, tuple[Criterion, ...]] = {
    "reconstruction": ("singling out", "linkability", "inference"),
    "distinguishing": ("singling out",),
    "membership": ("linkability", "inference"),
    "linkage": ("linkability",),
    "singling-out": ("singling out",),
    "attribute": ("inference",),
    "similarity": ("singling out",),
}


@dataclass(frozen=True)
class CriterionFinding:
    """What an audit says about one of the three words.

    Parameters
    ----------
    criterion : str
        "singling out", "linkability" or "inference".
    answer : {"shown", "some", "none", "unchecked"}
        Shown to be possible; some attack gained over chance; no attack succeeded; nothing was tried.
    sentence : str
        Why.
    attacks : tuple of str
        What bears on it.
    """

    criterion: Criterion
    answer: Answer
    sentence: str
    attacks: tuple[str, ...]


def assess(
    findings: Sequence[Finding], guarantee: Guarantee, limits: Limits = LIMITS
) -> tuple[CriterionFinding, ...]:
    """Return what the findings and the guarantee say about each of the three words."""
    return tuple(_assess(criterion, findings, guarantee, limits) for criterion in MEANINGS)


def _assess(
    criterion: Criterion, findings: Sequence[Finding], guarantee: Guarantee, limits: Limits
) -> CriterionFinding:
    bearing = [f for f in findings if criterion in CRITERIA[f.result.threat]]
    # That rows are not similar says nothing; that they are does.
    tried = [f for f in bearing if f.result.threat != "similarity" or f.result.interval[0] > 0]
    attacks = tuple(dict.fromkeys(f.result.name for f in tried))
    bound = _bound(guarantee, limits)
    if not tried:
        return CriterionFinding(criterion, "unchecked", f"No attack of this kind was run.{bound}", ())
    worst = max(tried, key=lambda f: f.gravity)
    low = worst.result.interval[0]
    if worst.certain_records:
        count = copies_of_largest(tried) if worst.is_of_largest else records_read_out(tried)
        records = "1 real record" if count == 1 else f"{count} real records"
        how = f"found {records} in" if worst.attack.about.reads == "copied" else f"read {records} out of"
        return CriterionFinding(criterion, "shown", f"{worst.result.name} {how} the release.", attacks)
    if low > 0:
        answer: Answer = "shown" if low >= EXPOSED_FROM else "some"
        sentence = f"{worst.result.name} gains {percent_at_least(low)} over its baseline.{bound}"
        return CriterionFinding(criterion, answer, sentence, attacks)
    sentence = f"No attack of this kind surely gained over its baseline.{bound}"
    return CriterionFinding(criterion, "none", sentence, attacks)


def _bound(guarantee: Guarantee, limits: Limits) -> str:
    if guarantee.status != "proven" or weakness(guarantee, limits) is not None:
        return ""
    return f" The guarantee (epsilon = {guarantee.epsilon:g}) bounds what any attack can gain."
