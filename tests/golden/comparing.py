"""What differs between a golden output and today's, part by part."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.golden.output import PARTS, Parts

TOLERANCE = 1e-9
# Of numbers about 1: what should be 0 is what their rounding left.
_NEAR_ZERO = 1e-3
_ABSENT = "nothing"
_LONGEST = 160


@dataclass(frozen=True)
class Difference:
    """One value that is not what it was."""

    case: str
    part: str
    place: str
    before: Any
    now: Any

    def __str__(self) -> str:
        start = _first_difference(self.before, self.now)
        was, now = _shown(self.before, start), _shown(self.now, start)
        return f"{self.part}: {self.place}\n      was {was}\n      is  {now}"


def compared(case: str, golden: Parts | None, now: Parts, tolerance: float = TOLERANCE) -> list[Difference]:
    """Return how a case differs from its golden output."""
    if golden is None:
        return [Difference(case, "case", "the whole case", _ABSENT, "a case that was not recorded")]
    return [
        Difference(case, part, place, before, after)
        for part in PARTS
        for place, before, after in _walk(golden.get(part, {}), now.get(part, {}), "", tolerance)
    ]


def _walk(before: Any, now: Any, place: str, tolerance: float) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for name in [*before, *(name for name in now if name not in before)]:
            inner = f"{place} > {name}" if place else name
            yield from _walk(before.get(name, _ABSENT), now.get(name, _ABSENT), inner, tolerance)
    elif isinstance(before, list) and isinstance(now, list):
        if len(before) != len(now):
            yield f"{place} > length", len(before), len(now)
        for number, pair in enumerate(zip(before, now, strict=False)):
            yield from _walk(*pair, f"{place}[{number}]", tolerance)
    elif not _same(before, now, tolerance):
        yield place, before, now


def _same(before: Any, now: Any, tolerance: float) -> bool:
    # A whole number, a fraction and a truth value are three things, though Python finds 1 == 1.0 == True.
    if type(before) is not type(now):
        return False
    if not isinstance(before, float):
        return bool(before == now)
    if math.isnan(before) or math.isnan(now):
        return math.isnan(before) and math.isnan(now)
    return math.isclose(before, now, rel_tol=tolerance, abs_tol=_NEAR_ZERO * tolerance)


def report(found: Sequence[Difference], shown: int = 3) -> str:
    """Return for people which parts of which cases changed, and the first values of each part."""
    by_case: dict[str, dict[str, list[Difference]]] = {}
    for each in found:
        by_case.setdefault(each.case, {}).setdefault(each.part, []).append(each)
    lines: list[str] = []
    for case, parts in by_case.items():
        lines.append(f"{case}: " + ", ".join(f"{part} ({len(those)})" for part, those in parts.items()))
        for those in parts.values():
            lines += [f"    {each}" for each in those[:shown]]
            if len(those) > shown:
                lines.append(f"    and {len(those) - shown} more in {those[0].part}")
    return "\n".join(lines)


def summary(found: Sequence[Difference]) -> str:
    """Return a line for each part: in how many cases it changed, and in which."""
    cases: dict[str, dict[str, None]] = {}
    for each in found:
        cases.setdefault(each.part, {})[each.case] = None
    order = [*PARTS, *(part for part in cases if part not in PARTS)]
    return "\n".join(
        f"{part} changed in {len(cases[part])} case{'s' * (len(cases[part]) > 1)}: {_listed(list(cases[part]))}"
        for part in order
        if part in cases
    )


def _listed(names: list[str], most: int = 12) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return "; ".join(names[:most]) + rest


def _first_difference(before: Any, now: Any) -> int:
    """Return from where two long texts are shown: a little before they differ."""
    if not isinstance(before, str) or not isinstance(now, str) or max(len(before), len(now)) <= _LONGEST:
        return 0
    pairs = enumerate(zip(before, now, strict=False))
    at = next((place for place, (a, b) in pairs if a != b), min(len(before), len(now)))
    return max(0, at - _LONGEST // 4)


def _shown(value: Any, start: int) -> str:
    text = repr(value[start:] if isinstance(value, str) else value)
    return "..." * (start > 0) + (text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...")
