"""The audit's steps with the real table and a holdout: linkage, singling out, inference, similarity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pandas as pd

from oversafe.attack import (
    AttackResult,
    AttributeInference,
    ClosestRecord,
    Linkability,
    NaiveDistinguisher,
    SinglingOut,
)
from oversafe.attack.copies import is_copy
from oversafe.report.verdict import Finding

# An audit of the same tables must say the same thing twice.
AUDIT_SEED = 0
NEED_A_HOLDOUT = "Linkability, SinglingOut, AttributeInference and ClosestRecord"
_SIMILAR_PROVES_NOTHING = "This is no evidence of privacy"


@dataclass(frozen=True)
class ClassTables:
    """The rows of one class in each table."""

    label: str
    release: pd.DataFrame
    real: pd.DataFrame
    holdout: pd.DataFrame | None


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


def linkage_steps(
    classes: Sequence[ClassTables], findings: Sequence[Finding], not_run: dict[str, str]
) -> Iterator[tuple[str, Callable[[], Finding | None]]]:
    """Yield the attacks in the order of their severity, each on every class."""
    compared = [tables for tables in classes if tables.holdout is not None]
    for make, headline in _LINKAGE:
        for tables in compared:
            attack = make()
            title = f"{_title(attack)} on class {tables.label!r}"
            if isinstance(attack, Linkability | AttributeInference) and tables.real.shape[1] < 2:
                not_run[title] = "the tables share one column only"
                continue
            yield title, partial(_against_holdout, attack, tables, headline)
    for tables in compared:
        title = f"ClosestRecord on class {tables.label!r}"
        yield title, partial(_closest, tables, findings)
    for tables in classes:
        title = f"NaiveDistinguisher on class {tables.label!r}"
        copied = is_copy(tables.release, tables.real)
        if not copied.any():
            not_run[title] = "no released row is a real record, so there is none to be told from the others"
        elif min(len(tables.real), int((~copied).sum())) < 2:
            not_run[title] = "it needs at least two real and two other rows"
        else:
            yield title, partial(_distinguish, tables, findings)


def _title(attack: Any) -> str:
    name = type(attack).__name__
    return f"{name} ({attack.mode})" if isinstance(attack, SinglingOut) else name


def _against_holdout(attack: Any, tables: ClassTables, headline: Callable[..., str]) -> Finding:
    result = attack.run(tables.release, tables.real, tables.holdout)
    return Finding(_labelled(result, tables.label), headline(result, tables.label))


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


_LINKAGE: tuple[tuple[Callable[[], Any], Callable[[AttackResult, str], str]], ...] = (
    (lambda: SinglingOut("univariate", random_state=AUDIT_SEED), _singled_out),
    (lambda: SinglingOut("multivariate", random_state=AUDIT_SEED), _singled_out),
    (lambda: Linkability(random_state=AUDIT_SEED), _linked),
    (lambda: AttributeInference(random_state=AUDIT_SEED), _inferred),
)


def _closest(tables: ClassTables, findings: Sequence[Finding]) -> Finding:
    result = ClosestRecord(random_state=AUDIT_SEED).run(
        tables.release, tables.real, tables.holdout, reconstruction=_reconstruction(findings, tables.label)
    )
    if result.interval[0] <= 0:
        headline = (
            f"The released rows of class {tables.label!r} are no closer to the real records than to other people's. "
            f"{_beside(result.details)}"
        )
    else:
        headline = (
            f"The released rows of class {tables.label!r} are closer to real records than to those of people who had "
            f"no part in it, {result.risk:.0%} of the way from chance to always."
        )
    return Finding(_labelled(result, tables.label), headline)


def _distinguish(tables: ClassTables, findings: Sequence[Finding]) -> Finding:
    result = NaiveDistinguisher(random_state=AUDIT_SEED).run(
        tables.release, tables.real, reconstruction=_reconstruction(findings, tables.label)
    )
    headline = (
        f"A random forest recognises {result.details['recall']:.0%} of the real rows of class {tables.label!r} "
        "in the release."
    )
    if result.interval[0] <= 0:
        headline += f" {_beside(result.details)}"
    return Finding(_labelled(result, tables.label), headline)


def _beside(details: Mapping[str, Any]) -> str:
    """Return that a low figure proves nothing, and the attack that shows it."""
    if details.get("reconstruction_risk", 0) > 0:
        return f"{_SIMILAR_PROVES_NOTHING}: {details['reconstruction']} reads records out of the same rows."
    return f"{_SIMILAR_PROVES_NOTHING}."


def _reconstruction(findings: Sequence[Finding], label: str) -> AttackResult | None:
    """Return what the reconstruction attack got out of the same class."""
    for finding in findings:
        if finding.result.name == "ReconSMOTE" and finding.result.details["class"] == label:
            return finding.result
    return None


def _labelled(result: AttackResult, label: str) -> AttackResult:
    return replace(result, details={"class": label, **result.details})
