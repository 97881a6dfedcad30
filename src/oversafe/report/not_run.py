"""What was not run, for a reader: each reason once."""

from __future__ import annotations

from collections.abc import Mapping

_ON_CLASS = " on class "


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
