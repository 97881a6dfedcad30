"""An audit for the terminal."""

from __future__ import annotations

import io

from rich import box
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from oversafe.report.audit import Audit
from oversafe.text import shorten, showable

_STYLES = {"exposed": "red", "unproven": "yellow", "protected": "green"}


def summary(audit: Audit) -> RenderableType:
    """Return what the terminal shows of an audit: the verdict, the findings, what was not checked."""
    style = _STYLES[audit.verdict.level]
    parts: list[RenderableType] = [
        Panel(
            Text(showable(audit.verdict.sentence)),
            title=Text(audit.verdict.level.upper(), style=f"bold {style}"),
            title_align="left",
            border_style=style,
        )
    ]
    if audit.findings:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for heading, justify in (
            ("attack", "left"),
            ("class", "left"),
            ("risk", "right"),
            ("95 % interval", "right"),
        ):
            table.add_column(heading, justify=justify, no_wrap=heading != "class")  # type: ignore[arg-type]
        table.add_column("what it found")
        for finding in audit.findings:
            low, high = finding.result.interval
            table.add_row(
                Text(finding.result.name),
                Text(shorten(finding.result.details.get("class", ""), 20)),
                Text(f"{finding.result.risk:.0%}"),
                Text(f"{low:.0%} to {high:.0%}"),
                Text(showable(finding.headline)),
            )
        parts.append(table)
    parts.append(Text(showable(f"Guarantee: {audit.guarantee}")))
    parts += [Text(showable(f"Note: {warning}.")) for warning in audit.warnings]
    parts += [
        Text(showable(f"Not run: {name} ({reason})."), style="dim") for name, reason in audit.not_run.items()
    ]
    return Group(*parts)


def as_text(audit: Audit) -> str:
    """Return the summary as plain text."""
    console = Console(file=io.StringIO(), width=100, color_system=None, force_terminal=False)
    console.print(summary(audit))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().rstrip()
