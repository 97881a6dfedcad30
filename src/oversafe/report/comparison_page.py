"""A comparison as one HTML file, and for the terminal."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from oversafe.report.comparison import Comparison, Setting
from oversafe.report.page import cell, page_environment
from oversafe.report.plots import svg
from oversafe.text import shorten, showable

_COLOURS = {"exposed": "#c8372d", "unproven": "#c98a12", "protected": "#2e8b57"}
_COLUMNS = (
    ("utility", "utility"),
    ("privacy", "privacy"),
    ("records", "records read out"),
    ("guarantee", "guarantee"),
    ("marginal", "2-way distance"),
    ("correlation", "correlation"),
    ("seconds", "seconds"),
    ("memory", "MB"),
)
_STATUS_ORDER = {"proven": 0, "nominal": 1, "none": 2}


def comparison_page(comparison: Comparison) -> str:
    """Return the page of a comparison."""
    # The best first, as long as nobody sorts.
    rows = sorted(
        (_row(s, comparison) for s in comparison.settings),
        key=lambda row: float(row["sort"]["utility"]),
        reverse=True,
    )
    drawn = [s for s in comparison.settings if s.status == "done"]
    return (
        page_environment()
        .get_template("comparison.html")
        .render(
            title=f"Protections of {shorten(str(comparison.facts.get('name', 'a table')), 80)} compared",
            comparison=comparison,
            score=comparison.score.replace("_", " "),
            level=_level(comparison),
            columns=_COLUMNS,
            rows=rows,
            chart=Markup(frontier_chart(comparison)) if drawn else None,
            details=[_details(s) for s in drawn],
            failed=[
                (s.name, showable(s.error or "was not started"))
                for s in comparison.settings
                if s.status != "done"
            ],
        )
    )


def _level(comparison: Comparison) -> str:
    """Return the verdict of what is recommended; red when nothing is."""
    for s in comparison.settings:
        if s.name == comparison.recommendation.setting and s.verdict is not None:
            return s.verdict.level
    return "exposed"


def frontier_chart(comparison: Comparison) -> str:
    """Return privacy against utility: one point per setting with its intervals, and the line that none beats."""
    import altair as alt

    data = pd.DataFrame(
        [
            {
                "setting": shorten(s.name, 40),
                "utility": s.utility[0],
                "utility_low": s.utility[1],
                "utility_high": s.utility[2],
                "privacy": s.privacy[0],
                "privacy_low": s.privacy[1],
                "privacy_high": s.privacy[2],
                "verdict": "unknown" if s.verdict is None else s.verdict.level,
                "frontier": s.on_frontier,
            }
            for s in comparison.settings
            if s.status == "done"
        ]
    )
    colour = alt.Color(
        "verdict:N",
        title=None,
        legend=alt.Legend(orient="top"),
        scale=alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values())),
    )
    x = alt.X(
        "privacy:Q",
        title="privacy: 1 - the gravest attack's advantage over chance",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format="%"),
    )
    y = alt.Y("utility:Q", title=comparison.score.replace("_", " "), scale=alt.Scale(zero=False))
    base = alt.Chart(data)
    parts: list[Any] = [
        base.transform_filter("datum.frontier")
        .mark_line(interpolate="step-before", strokeDash=[5, 4], color="#7a7f87")
        .encode(x=x, y=y, order="privacy:Q"),
        base.mark_rule(opacity=0.35).encode(x=x, y=alt.Y("utility_low:Q"), y2="utility_high:Q", color=colour),
        base.mark_rule(opacity=0.35).encode(x=alt.X("privacy_low:Q"), x2="privacy_high:Q", y=y, color=colour),
        base.mark_point(filled=True, size=90, opacity=1).encode(x=x, y=y, color=colour),
        base.mark_text(align="left", dx=7, dy=-7, color="#7a7f87").encode(x=x, y=y, text="setting:N"),
        alt.Chart(pd.DataFrame({"at": [comparison.original[0]]}))
        .mark_rule(color="#7a7f87", strokeDash=[2, 3])
        .encode(y="at:Q"),
    ]
    return svg(alt.layer(*parts).properties(width=640, height=380))


def comparison_text(comparison: Comparison) -> str:
    """Return what the terminal shows of a comparison, as plain text."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=110, highlight=False)
    console.print(comparison_summary(comparison))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def comparison_summary(comparison: Comparison) -> Any:
    """Return what the terminal shows of a comparison: the recommendation and the table."""
    from rich import box
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    styles = {"exposed": "red", "unproven": "yellow", "protected": "green"}
    advice = comparison.recommendation
    lines = "\n".join([advice.sentence, *(f"- {reason}" for reason in advice.reasons)])
    parts: list[Any] = [Panel(Text(showable(lines)), title="Recommendation", title_align="left")]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("setting", "verdict"):
        table.add_column(heading, overflow="fold")
    for heading in (comparison.score, "95 % interval", "privacy", "records read out", "guarantee", "s"):
        table.add_column(heading, justify="right", overflow="fold")
    table.add_row("the real table", "", *_utility(comparison.original), "", "", "", "")
    for s in comparison.settings:
        if s.verdict is None:
            table.add_row(Text(showable(s.name)), Text(s.status), "", "", "", "", "", "")
            continue
        mark = " *" if s.on_frontier else ""
        table.add_row(
            Text(showable(s.name) + mark),
            Text(s.verdict.level, style=styles[s.verdict.level]),
            *_utility(s.utility),
            f"{s.privacy[0]:.2f}",
            str(s.certain_records),
            "-" if s.guarantee is None else s.guarantee.status,
            f"{s.figures['fit_seconds']:.2f}",
        )
    parts.append(table)
    parts.append(Text("* no other setting is better in both utility and privacy"))
    for s in comparison.settings:
        if s.status == "failed":
            parts.append(Text(showable(f"{s.name} failed: {s.error}")))
    if any(s.status == "pending" for s in comparison.settings):
        parts.append(Text("pending: the time limit came before; run it again to go on"))
    return Group(*parts)


def _utility(interval: tuple[float, float, float]) -> tuple[str, str]:
    return f"{interval[0]:.3f}", f"{interval[1]:.3f} to {interval[2]:.3f}"


def _row(s: Setting, comparison: Comparison) -> dict[str, Any]:
    guarantee = "-" if s.guarantee is None else s.guarantee.status
    epsilon = None if s.guarantee is None else s.guarantee.epsilon
    memory = s.figures.get("fit_memory")
    memory = None if memory is None or pd.isna(memory) else memory / 2**20
    figures = {
        "utility": s.utility[0],
        "privacy": s.privacy[0],
        "records": s.certain_records if s.verdict is not None else np.nan,
        "guarantee": _STATUS_ORDER.get(guarantee, 3) + (0 if epsilon is None else 1 - 1 / (1 + epsilon)),
        "marginal": s.figures.get("marginal_distance", np.nan),
        "correlation": s.figures.get("correlation_similarity", np.nan),
        "seconds": s.figures.get("fit_seconds", np.nan),
        "memory": np.nan if memory is None else memory,
    }
    # What is missing sorts below everything.
    sort = {
        key: "-Infinity" if value is None or np.isnan(value) else float(value)
        for key, value in figures.items()
    }
    return {
        "name": showable(s.name),
        "level": "pending" if s.verdict is None else s.verdict.level,
        "verdict": s.status if s.verdict is None else s.verdict.level,
        "chosen": s.name == comparison.recommendation.setting,
        "frontier": s.on_frontier,
        "sort": sort,
        "cells": {
            "utility": "-"
            if s.verdict is None
            else f"{s.utility[0]:.3f} ({s.utility[1]:.3f}-{s.utility[2]:.3f})",
            "privacy": "-"
            if s.verdict is None
            else f"{s.privacy[0]:.2f} ({s.privacy[1]:.2f}-{s.privacy[2]:.2f})",
            "records": "-" if s.verdict is None else str(s.certain_records),
            "guarantee": guarantee if epsilon is None else f"{guarantee}, {epsilon:g}",
            "marginal": _figure(figures["marginal"]),
            "correlation": _figure(figures["correlation"]),
            "seconds": _figure(figures["seconds"]),
            "memory": "-" if memory is None else f"{memory:.0f}",
        },
    }


def _figure(value: float) -> str:
    return "-" if value is None or np.isnan(value) else f"{value:.3f}"


def _details(s: Setting) -> dict[str, Any]:
    return {
        "name": showable(s.name),
        "level": s.verdict.level if s.verdict is not None else "",
        "sentence": showable(s.verdict.sentence) if s.verdict is not None else "",
        "guarantee": showable(str(s.guarantee)),
        "attacks": [
            {key: showable(cell(value)) for key, value in row.items()}
            for row in s.attacks.sort_values("low", ascending=False, kind="stable").to_dict("records")
        ],
        "useless": showable(s.useless or ""),
        "not_run": {showable(name): showable(reason) for name, reason in s.not_run.items()},
    }
