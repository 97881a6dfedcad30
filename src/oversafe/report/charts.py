"""Charts of an audit as SVG, in the page's colours in light, dark and print, that tell their values on hover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd
from markupsafe import Markup, escape

from oversafe._core.text import percent, percent_range, shorten
from oversafe.attack.base import SuccessRate
from oversafe.auditing.formatting import cell
from oversafe.auditing.picture import READ_BACK, REAL, RELEASED, SHOWN
from oversafe.auditing.verdict import EXPOSED_FROM, Level
from oversafe.report.plane import Plane

_LAMPS: Sequence[tuple[Level, int]] = (("exposed", 17), ("unproven", 45), ("protected", 73))
_COLOURS = {"exposed": "red", "unproven": "amber", "protected": "green"}
_SYMBOLS = {"exposed": "M-5-5 5 5M5-5-5 5", "unproven": "M0-6V1.5M0 5.5V6", "protected": "M-6 0-2 4.5 6-4.5"}


def traffic_light(level: Level) -> Markup:
    """Return a traffic light; its lamps also differ in place and sign, for readers who do not see the colours."""
    lamps = []
    for name, height in _LAMPS:
        lit = " lit" if name == level else ""
        sign = f'<path d="{_SYMBOLS[name]}" transform="translate(19 {height})"/>' if lit else ""
        lamps.append(f'<g class="lamp {name}{lit}"><circle cx="19" cy="{height}" r="11.5"/>{sign}</g>')
    return Markup(
        f'<svg class="light" viewBox="0 0 38 90" width="38" height="90" role="img" '
        f'aria-label="Traffic light: {_COLOURS[level]}">'
        f'<rect class="housing" width="38" height="90" rx="12"/>{"".join(lamps)}</svg>'
    )


def strip(share: float, interval: tuple[float, float] | None, role: str, *, limit: bool = False) -> Markup:
    """Return one rate from 0 to 100 % with its interval; the figures stand beside it, so readers aloud skip it."""
    told = percent(share) + ("" if interval is None else f", 95 % interval {percent_range(*interval)}")
    parts = ['<line class="rail" x1="4" x2="204" y1="10" y2="10"/>']
    if limit:
        at = _along(EXPOSED_FROM)
        parts.append(f'<line class="limit" x1="{at}" x2="{at}" y1="1" y2="19"/>')
    if interval is not None:
        low, high = (_along(end) for end in interval)
        parts.append(f'<line class="span" x1="{low}" x2="{max(high, low + 0.5)}" y1="10" y2="10"/>')
    parts.append(f'<circle class="dot" cx="{_along(share)}" cy="10" r="4.5"/>')
    return Markup(
        f'<svg class="strip {escape(role)}" viewBox="0 0 208 20" aria-hidden="true">'
        f"<title>{escape(told)}</title>{''.join(parts)}</svg>"
    )


def rate_rows(bars: Sequence[SuccessRate], *, limit: bool = False) -> list[dict[str, object]]:
    """Return bars as rows of a chart: a label, a drawing and the figures in words."""
    return [
        {
            "label": shorten(bar.label, 60),
            "role": bar.role,
            "drawing": strip(bar.share, bar.interval, bar.role, limit=limit),
            "share": percent(bar.share),
            "interval": None if bar.interval is None else percent_range(*bar.interval),
        }
        for bar in bars
    ]


def records_chart(points: pd.DataFrame) -> Markup:
    """Return released rows and the records read out of them, with the lines that meet in one record."""
    plane = Plane(points["x"], points["y"], points.attrs["x"], points.attrs["y"])
    # Plain values from here on: drawing hundreds of points through a DataFrame takes longer than all else on the page.
    places = [
        _Place(kind, line, plane.x(x), plane.y(y), x, y)
        for x, y, kind, line in points[["x", "y", "kind", "line"]].itertuples(index=False, name=None)
    ]
    plane.add(*(_dot(p, "row", 2.4) for p in places if p.kind == RELEASED and p.line < 0), *_lines(places))
    # The last drawn is on top: the records over the rows, the one that is told about over all.
    for kind, css, radius in ((REAL, "real", 8.5), (READ_BACK, "read", 4.5), (SHOWN, "shown", 7.5)):
        plane.add(*(_dot(p, css, radius) for p in places if p.kind == kind))
    return plane.svg("records", _description(points))


class _Place(NamedTuple):
    """A point: what it is, the line it lies on, where it is on the page, and its values."""

    kind: str
    line: int
    left: float
    top: float
    x: float
    y: float


def _lines(places: list[_Place]) -> list[str]:
    """Return each line through the record shown with its rows, as one group that hovering lifts out."""
    start = next((p for p in places if p.kind == SHOWN), None)
    if start is None:
        return []
    parts = []
    for end in sorted((p for p in places if p.kind == READ_BACK and p.line >= 0), key=lambda p: p.line):
        rows = [p for p in places if p.kind == RELEASED and p.line == end.line]
        rows_told = "1 released row" if len(rows) == 1 else f"{len(rows)} released rows"
        parts.append(
            f'<g class="way"><title>Line {end.line + 1}: {rows_told} between two records</title>'
            f'<line x1="{start.left}" y1="{start.top}" x2="{end.left}" y2="{end.top}"/>'
            + "".join(_dot(row, "on-line", 3.2) for row in rows)
            + "</g>"
        )
    return parts


def _dot(place: _Place, css: str, radius: float) -> str:
    return (
        f'<circle class="{css}" cx="{place.left}" cy="{place.top}" r="{radius}">'
        f"<title>{place.kind}: {cell(place.x)}, {cell(place.y)}</title></circle>"
    )


def _description(points: pd.DataFrame) -> str:
    x, y = (shorten(str(points.attrs[axis]), 60) for axis in ("x", "y"))
    counts = points["kind"].value_counts()
    lines = points.loc[points["line"] >= 0, "line"].nunique()
    read_back = counts.get(READ_BACK, 0) + counts.get(SHOWN, 0)
    return (
        f"{counts.get(RELEASED, 0)} released rows and {read_back} records read back, by {x} and {y}. "
        f"{lines} straight lines of released rows meet in one of the records."
    )


def _along(share: float) -> float:
    return round(4 + 200 * min(1.0, max(0.0, share)), 2)
