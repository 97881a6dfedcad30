"""A reproduction as one HTML file, as JSON and for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from oversafe._core.text import showable
from oversafe.auditing.to_json import as_json, plain, written
from oversafe.papers.base import (
    AGREES,
    DIFFERS,
    NOT_IN_QUICK,
    NOT_MEASURED,
    STRONGER,
    TOLERANCE,
    UNDECIDED,
    Plot,
    counted,
)
from oversafe.papers.reproduction import Reproduction
from oversafe.report.page import page_environment
from oversafe.report.plane import Plane, group_class, key

# As many as the style sheet has, "shade-0" and so on.
_SHADES = 7
# What agrees needs no mark.
_MARKS = {AGREES: "", **{mark: mark for mark in (STRONGER, DIFFERS, UNDECIDED, NOT_IN_QUICK, NOT_MEASURED)}}
_STYLES = {DIFFERS: "red", STRONGER: "cyan"}
_COLOURS = {STRONGER: "protected", DIFFERS: "exposed", NOT_MEASURED: "exposed"}


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
        tolerance=TOLERANCE,
        all_fine=rows["mark"].isin([AGREES, STRONGER]).all(),
        colours=_COLOURS,
        claims=[(c.sentence, {True: "holds", False: "does not hold", None: "undecided"}[c.holds], c.measured)
                for c in found.summary.claims],
        extra=[(name, _plain_table(table)) for name, table in found.summary.tables.items()],
        plots=[(plot.title, draw(plot)) for plot in found.summary.plots if len(plot.data)],
    )  # fmt: skip


def write_reproduction(found: Reproduction, page: Path) -> None:
    """Write the page, and the figures beside it as JSON."""
    written(reproduction_page(found), page)
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
    written(as_json(document), page.with_suffix(".json"), end="\n")


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


def draw(plot: Plot) -> Markup:
    """Return a plot as SVG, one drawing for each facet, and the key to its groups."""
    data = plot.data.dropna(subset=["x", "y"])
    parts = data.groupby("facet", sort=False) if "facet" in data else [("", data)]
    if plot.kind == "map":
        ends = [f"{data['y'].min():.2g}", *[""] * (_SHADES - 2), f"{data['y'].max():.2g}"]
        entries = [(f"shade-{shade}", told) for shade, told in enumerate(ends)]
        return Markup("").join(_map(plot, part, str(facet)) for facet, part in parts) + key(entries)
    colours = {group: group_class(i) for i, group in enumerate(data["group"].unique())}
    drawings = Markup("").join(_by_group(plot, part, str(facet), colours) for facet, part in parts)
    return drawings + key([(css, str(group)) for group, css in colours.items()])


def _map(plot: Plot, data: pd.DataFrame, facet: str) -> Markup:
    rows, columns = data["group"].nunique(), data["x"].nunique()
    plane = Plane(data["x"].astype(str), data["group"].astype(str), plot.x, plot.y, heading=facet)
    width, height = (plane.right - plane.left) / columns, (plane.bottom - plane.top) / rows
    shades = pd.cut(data["y"], _SHADES, labels=False)
    for x, group, y, shade in zip(data["x"], data["group"], data["y"], shades, strict=True):
        left, top = plane.x(str(x)) - width / 2, plane.y(str(group)) - height / 2
        plane.add(
            f'<rect class="shade-{shade}" x="{left:.2f}" y="{top:.2f}" width="{width:.2f}" height="{height:.2f}">'
            f"<title>{escape(f'{plot.x} {x}, {plot.y} {group}: {y:.3f}')}</title></rect>"
        )
    return plane.svg("", f"{plot.title} {facet}")


def _by_group(plot: Plot, data: pd.DataFrame, facet: str, colours: Mapping[Any, str]) -> Markup:
    figures = data[[name for name in ("y", "low", "high") if name in data]].to_numpy().ravel()
    # Names are long, so that they stand one below the other, with their figures to the right.
    lying = plot.kind == "points" and not pd.api.types.is_numeric_dtype(data["x"])
    if lying:
        height = 100 + 28 * data["x"].nunique()
        plane = Plane(figures, data["x"][::-1], plot.y, plot.x, heading=facet, height=height)
    else:
        plane = Plane(data["x"], figures, plot.x, plot.y, heading=facet, height=320)

    def at(x: Any, y: float) -> tuple[Any, Any]:
        return (y, x) if lying else (x, y)

    for group, part in data.groupby("group", sort=False):
        if plot.kind == "line":
            plane.line(zip(part["x"], part["y"], strict=True), colours[group])
        for row in part.to_dict("records"):
            if "low" in row:
                plane.line(
                    [at(row["x"], row["low"]), at(row["x"], row["high"])], f"interval {colours[group]}"
                )
            radius = 3 if plot.kind == "line" else 5
            plane.dot(*at(row["x"], row["y"]), colours[group], radius, f"{group}, {row['x']}: {row['y']:.3f}")
    return plane.svg("", f"{plot.title} {facet}")


def _lines(part: pd.DataFrame) -> list[dict[str, str]]:
    lines = []
    for row in part.to_dict("records"):
        known = not np.isnan(row["low"])
        lines.append(
            {
                "data": showable(str(row["data"])),
                "figure": showable(str(row["figure"])),
                # Most are printed with two decimals, a few with three.
                "published": f"{row['published']:.3f}".removesuffix("0"),
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
