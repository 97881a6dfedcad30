"""Axes to draw on, and the colours that all plots share."""

from __future__ import annotations

from typing import Any

from oversafe._core.errors import import_extra

# Red is what leaks, blue what is real, grey what was released; they differ in lightness too.
LEAK, REAL, RELEASED = "#c8372d", "#1d5fc4", "#8a94a3"


def axes_for(ax: Any, **figure: Any) -> tuple[Any, Any]:
    """Return the given axes, or those of a new figure, and their figure."""
    if ax is not None:
        return ax, ax.figure
    pyplot = import_extra("matplotlib.pyplot", "plot", "drawing a plot")
    figure_, ax_ = pyplot.subplots(layout="constrained", **figure)
    return ax_, figure_
