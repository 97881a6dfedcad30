"""From findings and a guarantee to one of three verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import pandas as pd

from oversafe._core.text import percent_at_least, shorten
from oversafe.attack.base import Attack, AttackResult
from oversafe.attack.class_tables import ANOTHER_LABEL
from oversafe.attack.geometry.sentences import columns_read, computed_in_vain, not_real, with_a_blank
from oversafe.attack.registry import attack_named
from oversafe.privacy import Guarantee, Voucher
from oversafe.privacy.meaning import LIMITS, Limits, allows, weakness
from oversafe.privacy.signing.vouching import NOBODY

Level = Literal["exposed", "unproven", "protected"]

EXPOSED_FROM = 0.1
PROTECTED_UP_TO = 0.05
_MOST_CLASSES = 5


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
        How many real records it names with certainty: reconstructed, or standing in the release as they are.
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
    _attack: Attack | None = field(default=None, repr=False)

    @property
    def attack(self) -> Attack:
        """What found it; known by its name in what is kept of earlier runs."""
        return attack_named(self.result.name) if self._attack is None else self._attack

    @property
    def is_of_largest(self) -> bool:
        """Whether it is about the largest class, which is told after the others."""
        return bool(self.result.details.get("is_largest_class", False))

    @property
    def gravity(self) -> tuple[bool, bool, float, float]:
        """What the graver of two has more of; records of the smaller classes before all."""
        read_out = self.certain_records > 0
        return read_out and not self.is_of_largest, read_out, self.result.interval[0], self.result.risk


def in_order(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings by their risk; copies of the largest class after what was read out of the others.

    Every oversampled table holds them, and what it gives away of the rare people is not to be looked for below them.
    """
    ordered = sorted(
        findings, key=lambda f: (f.result.risk, f.result.interval[0], f.certain_records), reverse=True
    )
    copies = [f for f in ordered if f.is_of_largest and f.certain_records]
    others = [f for f in ordered if not (f.is_of_largest and f.certain_records)]
    place = max((number for number, f in enumerate(others, 1) if f.certain_records), default=0)
    return [*others[:place], *copies, *others[place:]]


def records_read_out(findings: Sequence[Finding]) -> int:
    """Return how many real records of all classes but the largest were read out with certainty."""
    return sum(_by_class([f for f in findings if not f.is_of_largest]).values())


def copies_of_largest(findings: Sequence[Finding]) -> int:
    """Return how many real records of the largest class stand in the release, more than chance explains."""
    return sum(_by_class([f for f in findings if f.is_of_largest]).values())


def _by_class(findings: Sequence[Finding]) -> dict[str, int]:
    """Return how many records of each class: attacks on one class find the same people, so that the best counts."""
    counts: dict[str, int] = {}
    for f in findings:
        if f.certain_records:
            label = _class_of(f)
            counts[label] = max(counts.get(label, 0), f.certain_records)
    return counts


def _read_out(findings: Sequence[Finding]) -> str:
    """Return how many real records were computed, of which classes, and how many stand in the release anyway."""
    found = [f for f in findings if f.certain_records]
    if moved := next((f for f in found if f.result.details.get("class") == ANOTHER_LABEL), None):
        stand = (
            f"stand{'s' * (moved.certain_records == 1)} in the release word for word, under {ANOTHER_LABEL}"
        )
        said = f"{_real_records(moved.certain_records)} {stand}."
        others = [f for f in findings if f is not moved]
        return f"{said} {_read_out(others)}" if any(f.certain_records for f in others) else said
    copies = [f for f in found if f.attack.about.reads == "copied" and not f.is_of_largest]
    computed = [f for f in found if f.attack.about.reads != "copied"]
    largest = [f for f in found if f.is_of_largest]
    if computed:
        return _computed(computed, copies, largest)
    number = records_read_out(copies) or copies_of_largest(largest)
    whose = "the attacked classes" if copies else f"class {_class_of(largest[0])}, the largest,"
    also = ""
    if copies and largest:
        also = f", and {copies_of_largest(largest)} of class {_class_of(largest[0])}, the largest"
    if number == 1:
        return f"1 real record of {whose} stands in the release word for word{also}."
    return f"{number} different real records of {whose} stand in the release word for word{also}."


def _computed(computed: Sequence[Finding], copies: Sequence[Finding], largest: Sequence[Finding]) -> str:
    # Of a class the best attack counts, here as everywhere.
    count, own = records_read_out([*computed, *copies]), records_read_out(computed)
    wrong = sum(computed_in_vain(f.result) for f in computed)
    computed = list({_class_of(f): f for f in sorted(computed, key=lambda f: f.certain_records)}.values())
    sentence = f"{_real_records(count)} {'was' if count == 1 else 'were'} read out of this table"
    evidence = [f.result.evidence for f in computed]
    # What is kept of a comparison has none; there all was held against the real table.
    if not wrong and all("real_row" in found or found.empty for found in evidence):
        # Whoever has the release alone cannot tell the right ones from the wrong ones, nor whether there are any.
        sentence += " with certainty"
    if own < count:
        sentence += f", {own} of them computed"
    if columns := columns_read([f.result for f in computed]):
        sentence += f", {columns}"
    classes = sorted(_by_class([*computed, *copies]).items(), key=lambda item: -item[1])
    if len(classes) > 1:
        parts = [f"{count} of class {label}" for label, count in classes[:_MOST_CLASSES]]
        more = sum(count for _, count in classes[_MOST_CLASSES:])
        sentence += f": {', '.join(parts)}" + (f" and {more} of other classes" if more else "")
    if blank := sum(int(f.result.details.get("real_with_a_blank", 0)) for f in computed):
        sentence += f"; {with_a_blank(blank)}"
    if wrong:
        sentence += f"; {not_real(wrong)}"
    standing = [
        part
        for part in (
            _standing(copies, "the attacked classes"),
            _standing(largest, f"class {_class_of(largest[0])}, the largest," if largest else ""),
        )
        if part
    ]
    if not standing:
        return f"{sentence}."
    return f"{sentence}. {' and '.join(standing)} stand in it as they are."


def _standing(copies: Sequence[Finding], whose: str) -> str:
    """Return how many real records stand in the release, and of how many where that is known."""
    if not copies:
        return ""
    # What is kept of a comparison does not say of how many.
    if any("copied" not in f.result.details for f in copies):
        return f"{sum(f.certain_records for f in copies)} real records of {whose}"
    copied, total = (sum(int(f.result.details[key]) for f in copies) for key in ("copied", "distinct_real"))
    return f"{copied} of the {total} real records of {whose}"


def _real_records(count: int) -> str:
    return "1 real record" if count == 1 else f"{count} real records"


def _class_of(finding: Finding) -> str:
    return repr(shorten(str(finding.result.details.get("class", "")), 40))


def judge(
    findings: Sequence[Finding],
    guarantee: Guarantee,
    naming: Sequence[str] = (),
    identifiers: Sequence[str] = (),
    *,
    voucher: Voucher = NOBODY,
    limits: Limits = LIMITS,
    total: str = "",
) -> Verdict:
    """Return the verdict.

    "exposed" when a record was read out with certainty, identifiers of real people stand in the release, or the lower
    end of any risk interval is at least 0.1;
    "protected" only with a proven guarantee within the limits, and no lower end above 0.05;
    everything else "unproven". Columns that name people are told with it, whatever it is.

    The guarantee is what counts of the one that is stated: not proven where nobody trusted vouches for it. The voucher
    says who does, or why nobody; ``total`` what the data set's budget allows in all, where that is known.
    """
    verdict = _judge(findings, guarantee, voucher, limits, total)
    if identifiers:
        said = f"The release has {' and '.join(identifiers)}."
        verdict = Verdict("exposed", f"{said} {verdict.sentence}" if verdict.level == "exposed" else said)
    if not naming:
        return verdict
    named = f"It seems to carry {', '.join(naming)}, which no release should."
    sentences = [verdict.sentence, named] if verdict.level == "exposed" else [named, verdict.sentence]
    return Verdict(verdict.level, " ".join(sentences))


def _judge(
    findings: Sequence[Finding], guarantee: Guarantee, voucher: Voucher, limits: Limits, total: str
) -> Verdict:
    gravest = max(findings, key=lambda f: f.result.interval[0], default=None)
    lower = 0.0 if gravest is None else gravest.result.interval[0]
    if any(f.certain_records for f in findings):
        return Verdict("exposed", _read_out(findings))
    if gravest is not None and lower >= EXPOSED_FROM:
        return Verdict(
            "exposed",
            f"{gravest.result.name} gains {percent_at_least(lower)} over chance: {gravest.headline}",
        )
    proven = guarantee.status == "proven"
    weak = weakness(guarantee, limits) if proven else None
    if proven and weak is None and lower <= PROTECTED_UP_TO:
        tried = "No attack succeeded, and" if findings else "No attack could be run, but"
        told = (str(guarantee), voucher.sentence, allows(guarantee), total)
        return Verdict(
            "protected", " ".join([f"{tried} the release carries a guarantee.", *filter(None, told)])
        )
    after = ""
    if weak is not None:
        reason = f"its guarantee is weak: {weak}"
        after = " ".join(filter(None, ("", allows(guarantee), total)))
    elif proven:
        reason = f"an attack gained {percent_at_least(lower)} over chance, which its guarantee allows"
    elif voucher.words and not voucher.counts and guarantee.status != "none":
        reason = f"its guarantee does not count: {voucher.words}"
    elif guarantee.status == "nominal":
        reason = "its guarantee is nominal, not proven"
    else:
        reason = "it carries no guarantee"
    if not findings:
        return Verdict("unproven", f"No attack could be run on this table, and {reason}.{after}")
    return Verdict("unproven", f"No attack that was run reads people out of this table, but {reason}.{after}")
