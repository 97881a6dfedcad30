"""Charts as SVG without scripts, in the page's colours in light, dark and print, that tell their values on hover.

Colours and strokes are classes of the page's style sheet, not attributes, so that one drawing serves every theme.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from oversafe.report.baselines import Rate
from oversafe.report.cells import cell, percent, percent_range
from oversafe.report.picture import READ_BACK, REAL, RELEASED, SHOWN
from oversafe.report.verdict import EXPOSED_FROM, Level
from oversafe.text import shorten

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


def rate_rows(bars: Sequence[Rate], *, limit: bool = False) -> list[dict[str, object]]:
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


_WIDTH, _HEIGHT = 640, 430
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 16, 14, 58


def records_chart(points: pd.DataFrame) -> Markup:
    """Return released rows and the records read out of them, with the lines that meet in one record."""
    x_ticks, x_at = _axis(points["x"], _LEFT, _WIDTH - _RIGHT)
    y_ticks, y_at = _axis(points["y"], _HEIGHT - _BOTTOM, _TOP)
    x_name, y_name = (escape(shorten(str(points.attrs[axis]), 60)) for axis in ("x", "y"))
    parts = [
        f'<svg class="records" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{_description(points)}">'
    ]
    for value in x_ticks:
        parts.append(
            f'<line class="grid" x1="{x_at(value)}" x2="{x_at(value)}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>'
            f'<text x="{x_at(value)}" y="{_HEIGHT - _BOTTOM + 20}" text-anchor="middle">{value:g}</text>'
        )
    for value in y_ticks:
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y_at(value)}" y2="{y_at(value)}"/>'
            f'<text x="{_LEFT - 9}" y="{y_at(value) + 5}" text-anchor="end">{value:g}</text>'
        )
    parts.append(
        f'<text class="axis" x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 12}" '
        f'text-anchor="middle">{x_name}</text>'
        f'<text class="axis" transform="translate(18 {(_TOP + _HEIGHT - _BOTTOM) / 2}) rotate(-90)" '
        f'text-anchor="middle">{y_name}</text>'
    )
    # Plain values from here on: drawing hundreds of points through a DataFrame takes longer than all else on the page.
    places = [
        _Place(kind, line, x_at(x), y_at(y), x, y)
        for x, y, kind, line in points[["x", "y", "kind", "line"]].itertuples(index=False, name=None)
    ]
    parts += [_dot(p, "row", 2.4) for p in places if p.kind == RELEASED and p.line < 0]
    parts += _lines(places)
    # The last drawn is on top: the records over the rows, the one that is told about over all.
    for kind, css, radius in ((REAL, "real", 8.5), (READ_BACK, "read", 4.5), (SHOWN, "shown", 7.5)):
        parts += [_dot(p, css, radius) for p in places if p.kind == kind]
    parts.append("</svg>")
    return Markup("".join(parts))


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
    x, y = (escape(shorten(str(points.attrs[axis]), 60)) for axis in ("x", "y"))
    counts = points["kind"].value_counts()
    lines = points.loc[points["line"] >= 0, "line"].nunique()
    read_back = counts.get(READ_BACK, 0) + counts.get(SHOWN, 0)
    return (
        f"{counts.get(RELEASED, 0)} released rows and {read_back} records read back, by {x} and {y}. "
        f"{lines} straight lines of released rows meet in one of the records."
    )


def _along(share: float) -> float:
    return round(4 + 200 * min(1.0, max(0.0, share)), 2)


def _axis(values: pd.Series, start: float, end: float) -> tuple[list[float], Callable[[float], float]]:
    """Return round numbers along an axis, and where a value is on the page."""
    low, high = float(values.min()), float(values.max())
    if high <= low:
        low, high = low - 0.5, high + 0.5
    margin = 0.04 * (high - low)
    low, high = low - margin, high + margin
    step = 10.0 ** math.floor(math.log10((high - low) / 5))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (factor * step) <= 6)
    ticks = np.arange(math.ceil(low / step), math.floor(high / step) + 1) * step

    def at(value: float) -> float:
        return round(start + (value - low) / (high - low) * (end - start), 2)

    return [float(f"{tick:.12g}") for tick in ticks], at
