"""What was not run, and why, for a reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oversafe._core.text import joined, listed
from oversafe.attack.base import AttackResult
from oversafe.attack.class_tables import ClassTables
from oversafe.attack.registry import needing
from oversafe.data.rows import is_copy

_ON_CLASS = " on class "
# Of columns that are named, with how much of each is missing.
_MOST_FIGURES = 8


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
        reasons[joined(needing("holdout"))] = reason
    if not has_real:
        reasons |= dict.fromkeys(needing("real", without="holdout"), "it needs the real table (--real)")
    return reasons


def why_not_the_largest(tables: ClassTables) -> str:
    """Return why the largest class is attacked by none but ExactCopies: oversampling leaves it alone, or others come
    first.
    """
    if tables.real is not None and is_copy(tables.release, tables.real).sum() > len(tables.real) / 2:
        return (
            "it is the largest class of the real table, most of whose rows stand in the release as they are; "
            "oversampling adds rows to the smaller ones"
        )
    return (
        "it is the largest class of the real table, and these attacks look at the people of the smaller ones, who "
        "stand out more; without the real table every class is attacked"
    )


def what_was_left_out(results: Sequence[AttackResult]) -> list[str]:
    """Return which columns attacks left out, and why."""
    attacks: dict[tuple[str, str], list[str]] = {}
    figures: dict[tuple[str, str], str] = {}
    for result in results:
        for column, reason in result.details.get("why_left_out", {}).items():
            why, _, figure = reason.partition(": ")
            figures.setdefault((column, why), figure)
            names = attacks.setdefault((column, why), [])
            if result.name not in names:
                names.append(result.name)
    columns: dict[tuple[str, str], list[str]] = {}
    for (column, why), names in attacks.items():
        columns.setdefault((" and ".join(names), why), []).append(column)
    sentences = []
    for (who, why), own in columns.items():
        told = ", ".join(filter(None, (figures[column, why] for column in own[:_MOST_FIGURES])))
        sentences.append(
            f"{who} made no use of {'the column' if len(own) == 1 else 'the columns'} {listed(own, _MOST_FIGURES)} "
            f"({why}{': ' + told if told else ''})"
        )
    return sentences


def by_attack(not_run: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return what was not run and why, with the classes of one attack and one reason together."""
    classes: dict[tuple[str, str], list[str]] = {}
    for name, reason in not_run.items():
        attack, _, label = name.partition(_ON_CLASS)
        classes.setdefault((attack, reason), []).append(label)
    result = []
    for (attack, reason), labels in classes.items():
        named = [label for label in labels if label]
        where = ""
        if named:
            where = f" on {'class' if len(named) == 1 else 'classes'} {', '.join(named)}"
        result.append((attack + where, reason))
    return result
