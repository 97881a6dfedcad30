"""A comparison as one HTML file, and for the terminal."""

from __future__ import annotations

import io
from itertools import pairwise, zip_longest
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from oversafe._core.text import shorten, showable
from oversafe.auditing.comparing.comparison import Comparison, Setting
from oversafe.report.page import cell, page_environment
from oversafe.report.plane import Plane, key

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
    drawn = _drawn(comparison)
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
            chart=frontier_chart(comparison) if drawn else None,
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


def frontier_chart(comparison: Comparison) -> Markup:
    """Return privacy against utility: one point per setting with its intervals, and the line that none beats."""
    known = [s for s in _drawn(comparison) if np.isfinite(s.utility[0])]
    drawn = sorted(known, key=lambda s: s.utility[0], reverse=True)
    score = comparison.score.replace("_", " ")
    real = comparison.original[0]
    plane = Plane(
        (0.0, 1.0),
        [real, *(end for s in drawn for end in s.utility)],
        "privacy: 1 - the gravest attack's advantage over chance",
        score,
    )
    plane.line([(0.0, real), (1.0, real)], "real-table")
    best = sorted((s for s in drawn if s.on_frontier), key=lambda s: s.privacy[0])
    # Between two settings only the worse of their figures is known to be within reach.
    corners = [(at.privacy[0], after.utility[0]) for at, after in pairwise(best)]
    steps = [(s.privacy[0], s.utility[0]) for s in best]
    plane.line([p for pair in zip_longest(steps, corners) for p in pair if p], "frontier")
    taken: list[tuple[float, float]] = []
    for s in drawn:
        (x, x_low, x_high), (y, y_low, y_high) = s.privacy, s.utility
        level = "unknown" if s.verdict is None else s.verdict.level
        plane.line([(x_low, y), (x_high, y)], f"interval {level}")
        plane.line([(x, y_low), (x, y_high)], f"interval {level}")
        plane.dot(x, y, level, 5, f"{shorten(s.name, 80)}: {score} {y:.3f}, privacy {x:.2f}")
        # A name stands where the chart has room for it, and below those of the points above it.
        left, top = plane.x(x), plane.y(y) - 9
        while any(abs(top - other) < 14 and abs(left - start) < 150 for start, other in taken):
            top += 14
        taken.append((left, top))
        side, anchor = (8, "start") if x < 0.6 else (-8, "end")
        plane.add(
            f'<text x="{left + side}" y="{top}" text-anchor="{anchor}">{escape(shorten(s.name, 40))}</text>'
        )
    levels = ("exposed", "unproven", "protected")
    return plane.svg("", f"{len(drawn)} settings by privacy and {score}") + key(
        [(name, name) for name in levels]
    )


def _drawn(comparison: Comparison) -> list[Setting]:
    return [s for s in comparison.settings if s.status == "done"]


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
            _records(s),
            "-" if s.guarantee is None else s.guarantee.status,
            f"{s.figures['fit_seconds']:.2f}",
        )
    parts.append(table)
    parts.append(Text("* no other setting is better in both utility and privacy"))
    if any(s.copies_of_largest for s in comparison.settings):
        parts.append(Text("+ real records of the largest class that stand in the release as they are"))
    for s in comparison.settings:
        if s.status == "failed":
            parts.append(Text(showable(f"{s.name} failed: {s.error}")))
    if any(s.status == "pending" for s in comparison.settings):
        parts.append(Text("pending: the time limit came before; run it again to go on"))
    return Group(*parts)


def _records(s: Setting) -> str:
    """Return how many records were read out: of the smaller classes, and of the largest."""
    return f"{s.certain_records} + {s.copies_of_largest}" if s.copies_of_largest else str(s.certain_records)


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
        "records": s.certain_records + s.copies_of_largest if s.verdict is not None else np.nan,
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
            "records": "-" if s.verdict is None else _records(s),
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
        "suspicion": showable(s.suspicion or ""),
        "not_run": {showable(name): showable(reason) for name, reason in s.not_run.items()},
    }
