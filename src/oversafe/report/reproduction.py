"""A reproduction as one HTML file, as JSON and for the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from oversafe.data.files import write_text
from oversafe.experiment.papers.base import AGREES, DIFFERS, NOT_MEASURED, STRONGER, Plot, counted
from oversafe.experiment.reproduce import Reproduction
from oversafe.report.audit import plain
from oversafe.report.page import page_environment
from oversafe.report.plots import svg
from oversafe.text import showable

# What agrees needs no mark.
_MARKS = {AGREES: "", STRONGER: "stronger", DIFFERS: "differs", NOT_MEASURED: "not measured"}
_STYLES = {"differs": "red", "stronger": "cyan"}


def reproduction_page(found: Reproduction) -> str:
    """Return the page of a reproduction."""
    rows = found.table
    return page_environment().get_template("reproduction.html").render(
        title=f"{found.title}: published and measured",
        found=found,
        settings=found.settings,
        tables=[(number, _lines(part)) for number, part in rows.groupby("table", sort=False)],
        n_rows=len(rows),
        counted=counted(rows),
        all_fine=not rows["mark"].isin([DIFFERS, NOT_MEASURED]).any(),
        claims=[(c.sentence, {True: "holds", False: "does not hold", None: "undecided"}[c.holds], c.measured)
                for c in found.summary.claims],
        extra=[(name, _plain_table(table)) for name, table in found.summary.tables.items()],
        plots=[(plot.title, Markup(draw(plot))) for plot in found.summary.plots if len(plot.data)],
    )  # fmt: skip


def write_reproduction(found: Reproduction, page: Path) -> None:
    """Write the page, and the figures beside it as JSON."""
    write_text(reproduction_page(found), page)
    document = {
        "format": "oversafe-reproduction",
        "version": 1,
        "paper": found.paper,
        "settings": plain(found.settings),
        "figures": plain(found.table.astype(object).where(found.table.notna(), None)),
        "counts": {mark: int((found.table["mark"] == mark).sum()) for mark in _MARKS},
        "claims": [
            {"claim": c.sentence, "holds": c.holds, "measured": c.measured} for c in found.summary.claims
        ],
        "tables": {name: plain(table) for name, table in found.summary.tables.items()},
        "missing": dict(found.missing),
        "failed": dict(found.failed),
        "notes": list(found.notes),
    }
    write_text(
        json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n", page.with_suffix(".json")
    )


def reproduction_summary(found: Reproduction) -> Any:
    """Return what the terminal shows: published and measured side by side, with a mark where they differ."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[Any] = [Text(showable(found.title), style="bold")]
    if len(found.table):
        parts.append(Text(f"{len(found.table)} figures: {counted(found.table)}."))
    for number, part in found.table.groupby("table", sort=False):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=f"Table {number}", title_justify="left")
        for heading, side in (
            ("data", "left"), ("figure", "left"), ("published", "right"), ("measured", "right"),
            ("95 % interval", "right"), ("difference", "right"), ("", "left"),
        ):  # fmt: skip
            table.add_column(heading, justify=side, overflow="fold")  # type: ignore[arg-type]
        for line in _lines(part):
            style = _STYLES.get(line["mark"], "")
            table.add_row(*(Text(line[key], style=style) for key in
                            ("data", "figure", "published", "measured", "interval", "difference", "mark")))  # fmt: skip
        parts.append(table)
    for claim in found.summary.claims:
        holds = {True: "holds", False: "DOES NOT HOLD", None: "undecided"}[claim.holds]
        parts.append(Text(showable(f"{holds}: {claim.sentence} ({claim.measured})")))
    if found.settings.get("pending"):
        parts.append(Text(f"not finished: {found.settings['pending']} of {found.settings['cells']} cells"))
    for name, reason in found.missing.items():
        parts.append(Text(showable(f"missing: {name}: {reason}"), style="yellow"))
    for name, reason in found.failed.items():
        parts.append(Text(showable(f"failed: {name}: {reason}"), style="red"))
    return Group(*parts)


def draw(plot: Plot) -> str:
    """Return a plot as SVG."""
    import altair as alt

    data = plot.data
    if plot.kind == "map":
        chart = (
            alt.Chart(data)
            .mark_rect()
            .encode(
                x=alt.X("x:O", title=plot.x, axis=alt.Axis(labelOverlap=True)),
                y=alt.Y("group:O", title=plot.y, sort="descending", axis=alt.Axis(labelOverlap=True)),
                color=alt.Color("y:Q", title=None, scale=alt.Scale(scheme="viridis")),
            )
        )
        if "facet" not in data.columns:
            return svg(chart.properties(width=420, height=260))
        return svg(
            chart.properties(width=230, height=230).facet(
                facet=alt.Facet("facet:N", title=None, sort=None), columns=3
            )
        )
    kind = "Q" if pd.api.types.is_numeric_dtype(data["x"]) else "N"
    x = alt.X(f"x:{kind}", title=plot.x, sort=None)
    y = alt.Y("y:Q", title=plot.y, scale=alt.Scale(zero=plot.kind == "bars"))
    colour = alt.Color("group:N", title=None, sort=None, scale=alt.Scale(scheme="tableau10"))
    base = alt.Chart(data)
    chart = {
        "line": lambda: base.mark_line(point=True).encode(x=x, y=y, color=colour),
        "points": lambda: base.mark_point(filled=True, size=70).encode(x=x, y=y, color=colour),
        "bars": lambda: base.mark_bar().encode(x=x, xOffset="group:N", y=y, color=colour),
    }[plot.kind]()
    if {"low", "high"} <= set(data.columns) and plot.kind != "bars":
        chart = base.mark_rule(opacity=0.4).encode(x=x, y="low:Q", y2="high:Q", color=colour) + chart
    chart = chart.properties(width=300 if "facet" in data.columns else 520, height=260)
    if "facet" in data.columns:
        chart = chart.facet(facet=alt.Facet("facet:N", title=None), columns=2)
    return svg(chart)


def _lines(part: pd.DataFrame) -> list[dict[str, str]]:
    lines = []
    for row in part.to_dict("records"):
        known = not np.isnan(row["low"])
        lines.append(
            {
                "data": showable(str(row["data"])),
                "figure": showable(str(row["figure"])),
                "published": f"{row['published']:.3g}",
                "measured": "-" if np.isnan(row["measured"]) else f"{row['measured']:.3f}",
                "interval": f"{row['low']:.3f} to {row['high']:.3f}" if known else "-",
                "difference": "-" if np.isnan(row["difference"]) else f"{row['difference']:+.3f}",
                "mark": _MARKS[row["mark"]],
            }
        )
    return lines


def _plain_table(table: pd.DataFrame) -> dict[str, Any]:
    shown = table.reset_index() if table.index.name or not isinstance(table.index, pd.RangeIndex) else table
    return {
        "columns": [str(name) for name in shown.columns],
        "rows": [
            [f"{v:.3f}" if isinstance(v, float | np.floating) else showable(str(v)) for v in row]
            for row in shown.itertuples(index=False, name=None)
        ],
    }
