"""Plots of pages as SVG, so that a page needs no script and no network."""

from __future__ import annotations

from typing import Any

_INK = "#7a7f87"


def svg(chart: Any) -> str:
    """Return an Altair chart as SVG, in colours that suit light and dark pages."""
    import altair as alt
    import vl_convert

    styled = (
        # The padding: a reader's fonts may be wider than those that the renderer measures with.
        chart.configure(
            background="transparent",
            font="sans-serif",
            padding={"left": 24, "right": 60, "top": 8, "bottom": 14},
        )
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=_INK,
            titleColor=_INK,
            gridColor=_INK,
            gridOpacity=0.18,
            tickColor=_INK,
            domainColor=_INK,
        )
        .configure_legend(labelColor=_INK, titleColor=_INK)
        .configure_title(color=_INK)
        .configure_header(labelColor=_INK, titleColor=_INK)
    )
    # Altair's limit is meant for notebooks that would store the data; only the picture is kept here.
    with alt.data_transformers.enable("default", max_rows=None):
        return str(vl_convert.vegalite_to_svg(styled.to_json(validate=False)))
