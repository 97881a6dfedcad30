"""Two axes, of numbers or of names, and what is drawn between them: SVG without scripts, in the page's colours.

Colours and strokes are classes of the page's style sheet, not attributes, so that one drawing serves every theme.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from oversafe._core.text import shorten

# As many as the style sheet has, "group-0" and so on.
_GROUPS = 10
_WIDTH, _RIGHT, _BOTTOM = 640, 16, 58
_LETTER = 7.2
_MOST_LETTERS = 40
Ticks = list[tuple[float, str]]
Scale = Callable[[Any], float]


class Plane:
    """Axes that hold all of the values given, and a drawing that grows by what is added to it.

    Parameters
    ----------
    x, y : iterable
        Values that the axes must hold: numbers, or names that each get a place.
    x_name, y_name : str
        What stands beside the axes.
    height : float
        Of the drawing, which is 640 wide.
    heading : str
        What stands above.
    """

    def __init__(
        self,
        x: Iterable[Any],
        y: Iterable[Any],
        x_name: str,
        y_name: str,
        *,
        height: float = 430,
        heading: str = "",
    ) -> None:
        y = pd.Series(list(y))
        letters = 5 if pd.api.types.is_numeric_dtype(y) else max(len(_shown(name)) for name in y)
        self.height = height
        self.left, self.right = 38 + _LETTER * letters, _WIDTH - _RIGHT
        self.top, self.bottom = 34 if heading else 14, height - _BOTTOM
        x_ticks, self.x = _axis(pd.Series(list(x)), self.left, self.right)
        y_ticks, self.y = _axis(y, self.bottom, self.top)
        self._parts = [
            f'<line class="grid" x1="{at}" x2="{at}" y1="{self.top}" y2="{self.bottom}"/>'
            f'<text x="{at}" y="{self.bottom + 20}" text-anchor="middle">{told}</text>'
            for at, told in x_ticks
        ] + [
            f'<line class="grid" x1="{self.left}" x2="{self.right}" y1="{at}" y2="{at}"/>'
            f'<text x="{self.left - 9}" y="{at + 5}" text-anchor="end">{told}</text>'
            for at, told in y_ticks
        ]
        middle = (self.left + self.right) / 2
        self.add(
            f'<text class="axis" x="{middle}" y="{height - 12}" text-anchor="middle">{_shown(x_name, 60)}</text>'
            f'<text class="axis" transform="translate(18 {(self.top + self.bottom) / 2}) rotate(-90)" '
            f'text-anchor="middle">{_shown(y_name, 60)}</text>'
            f'<text class="axis" x="{middle}" y="18" text-anchor="middle">{_shown(heading, 60)}</text>'
        )

    def add(self, *parts: str) -> None:
        """Draw on top of what is there."""
        self._parts += parts

    def dot(self, x: Any, y: Any, css: str, radius: float, told: str) -> None:
        """Add a point that tells what it is."""
        self.add(
            f'<circle class="{css}" cx="{self.x(x)}" cy="{self.y(y)}" r="{radius}">'
            f"<title>{escape(told)}</title></circle>"
        )

    def line(self, points: Iterable[tuple[Any, Any]], css: str) -> None:
        """Add a line through points, if none is missing."""
        points = list(points)
        if pd.notna(pd.DataFrame(points)).all(axis=None):
            places = " ".join(f"{self.x(x)},{self.y(y)}" for x, y in points)
            self.add(f'<polyline class="{css}" points="{places}"/>')

    def svg(self, css: str, description: str) -> Markup:
        """Return the drawing, and for those who do not see it what it shows."""
        return Markup(
            f'<svg class="chart {css}" viewBox="0 0 {_WIDTH} {self.height}" role="img" '
            f'aria-label="{escape(description)}">{"".join(self._parts)}</svg>'
        )


def group_class(position: int) -> str:
    """Return the class of the colour of a group."""
    return f"group-{position % _GROUPS}"


def key(entries: Sequence[tuple[str, str]]) -> Markup:
    """Return the list of what each colour, given by its class, stands for."""
    return Markup('<ul class="key">{}</ul>').format(
        Markup("").join(
            Markup(
                '<li><svg viewBox="0 0 22 16" aria-hidden="true" class="chart"><circle class="{}" cx="11" cy="8" '
                'r="5"/></svg>{}</li>'
            ).format(css, _shown(told))
            for css, told in entries
        )
    )


def _axis(values: pd.Series, start: float, end: float) -> tuple[Ticks, Scale]:
    """Return what stands along an axis, and where a value is on the page."""
    if not pd.api.types.is_numeric_dtype(values):
        slot = (end - start) / values.nunique()
        places = {name: round(start + (i + 0.5) * slot, 2) for i, name in enumerate(values.unique())}
        # Names that would run into each other are left out: upright ones need their height, the others their width.
        every = max(1, math.ceil((18 if end < start else 40) / abs(slot)))
        return [(at, _shown(name)) for name, at in list(places.items())[::every]], places.__getitem__
    known = values[np.isfinite(values.astype(float))]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    if high <= low:
        low, high = low - 0.5, high + 0.5
    margin = 0.04 * (high - low)
    low, high = low - margin, high + margin
    step = 10.0 ** math.floor(math.log10((high - low) / 5))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (factor * step) <= 6)
    ticks = np.arange(math.ceil(low / step), math.floor(high / step) + 1) * step

    def at(value: float) -> float:
        return round(start + (value - low) / (high - low) * (end - start), 2)

    return [(at(tick), f"{float(f'{tick:.12g}'):g}") for tick in ticks], at


def _shown(name: Any, most: int = _MOST_LETTERS) -> Markup:
    return escape(shorten(str(name), most))
