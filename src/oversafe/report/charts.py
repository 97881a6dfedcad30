"""Charts as SVG, so that a page needs no script and no network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from oversafe.report.verdict import EXPOSED_FROM, Finding
from oversafe.text import shorten

_INK = "#7a7f87"
_COLOURS = {"exposed": "#c8372d", "quiet": "#3b7dd8"}


def risk_chart(findings: Sequence[Finding]) -> str:
    """Return each attack's risk with its interval against the line where a release counts as exposed."""
    import altair as alt

    data = pd.DataFrame(
        [
            {
                "attack": f"{f.result.name}, class {shorten(f.result.details.get('class', ''), 24)}",
                "risk": f.result.risk,
                "low": f.result.interval[0],
                "high": f.result.interval[1],
                "level": "exposed" if f.certain_records or f.result.interval[0] >= EXPOSED_FROM else "quiet",
            }
            for f in findings
        ]
    )
    colour = alt.Color(
        "level:N", legend=None, scale=alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values()))
    )
    base = alt.Chart(data).encode(
        y=alt.Y("attack:N", title=None, sort=None, axis=alt.Axis(labelLimit=280, ticks=False, domain=False))
    )
    scale = alt.Scale(domain=[0, 1])
    bars = base.mark_rule(strokeWidth=3).encode(
        x=alt.X("low:Q", title="attacker's advantage over chance", scale=scale, axis=alt.Axis(format="%")),
        x2="high:Q",
        color=colour,
    )
    dots = base.mark_point(filled=True, size=110, opacity=1).encode(
        x=alt.X("risk:Q", scale=scale), color=colour
    )
    limit = (
        alt.Chart(pd.DataFrame({"at": [EXPOSED_FROM]}))
        .mark_rule(strokeDash=[4, 4], color=_INK)
        .encode(x="at:Q")
    )
    return _svg((limit + bars + dots).properties(width=420, height=alt.Step(34)))


def records_chart(points: pd.DataFrame, x: str, y: str) -> str:
    """Return released rows and the records read out of them, in two columns of the table."""
    import altair as alt

    kinds = ["released row", "record read back"]
    data = points.assign(size=points["kind"].map({kinds[0]: 14, kinds[1]: 130}))
    chart = (
        alt.Chart(data)
        .mark_point(filled=True)
        .encode(
            x=alt.X("x:Q", title=shorten(x, 60), scale=alt.Scale(zero=False)),
            y=alt.Y("y:Q", title=shorten(y, 60), scale=alt.Scale(zero=False)),
            color=alt.Color(
                "kind:N",
                title=None,
                legend=alt.Legend(orient="top"),
                scale=alt.Scale(domain=kinds, range=[_COLOURS["quiet"], _COLOURS["exposed"]]),
            ),
            size=alt.Size("size:Q", legend=None, scale=None),
            opacity=alt.condition(alt.datum.kind == kinds[1], alt.value(0.9), alt.value(0.55)),
        )
        .properties(width=520, height=320)
    )
    return _svg(chart)


def _svg(chart: Any) -> str:
    import vl_convert

    styled = (
        # The padding: a reader's fonts may be wider than those that the renderer measures with.
        chart.configure(background="transparent", font="sans-serif", padding={"left": 24, "right": 12})
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=_INK,
            titleColor=_INK,
            gridColor=_INK,
            gridOpacity=0.18,
            tickColor=_INK,
            domainColor=_INK,
        )
        .configure_legend(labelColor=_INK)
    )
    return str(vl_convert.vegalite_to_svg(styled.to_json(validate=False)))
