"""One HTML file that opens without network and runs no script."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from oversafe.report.audit import Audit
from oversafe.report.charts import records_chart, risk_chart
from oversafe.text import shorten, showable

_MOST_ROWS = 25
_MOST_COLUMNS = 16
_LIGHTS = {"exposed": "Exposed", "unproven": "Unproven", "protected": "Protected"}
_THREATS = {
    "reconstruction": "Can real records be computed from the release?",
    "distinguishing": "Can the real rows in the release be told from the added ones?",
    "membership": "Can an outsider tell whether a person was in the data?",
    "linkage": "Can two sources about one person be linked through the release?",
    "singling-out": "Can a person be singled out?",
    "attribute": "Can an unknown fact about a person be inferred?",
    "similarity": "Are the rows closer to real ones than chance allows?",
}


def audit_page(audit: Audit) -> str:
    """Return the page of one audit."""
    return (
        _environment()
        .get_template("audit.html")
        .render(
            title=f"Audit of {shorten(str(audit.facts.get('name', 'a release')), 80)}", audit=section(audit)
        )
    )


def demo_page(**parts: Any) -> str:
    """Return the page of the demonstration."""
    return _environment().get_template("demo.html").render(**parts)


def section(audit: Audit) -> dict[str, Any]:
    """Return what the templates show of an audit."""
    return {
        "level": audit.verdict.level,
        "light": _LIGHTS[audit.verdict.level],
        "sentence": showable(audit.verdict.sentence),
        "facts": audit.facts,
        "label_argument": shlex.quote(shorten(str(audit.facts.get("label", "")), 200)),
        "guarantee": audit.guarantee,
        "warnings": [showable(warning) for warning in audit.warnings],
        "not_run": {showable(name): showable(reason) for name, reason in audit.not_run.items()},
        "seconds": audit.seconds,
        "chart": Markup(risk_chart(audit.findings)) if audit.findings else None,
        "findings": [
            {
                "name": f.result.name,
                "class": f.result.details.get("class", ""),
                "question": _THREATS[f.result.threat],
                "headline": showable(f.headline),
                "warning": _sentence(f.result.details.get("warning", "")),
                "risk": f.result.risk,
                "interval": f.result.interval,
                "chart": None
                if f.points is None
                else Markup(records_chart(f.points, f.points.attrs["x"], f.points.attrs["y"])),
                "evidence": table(f.result.evidence),
                "figures": [
                    (key.replace("_", " "), cell(value))
                    for key, value in f.result.details.items()
                    if isinstance(value, str | int | float | np.number) and key not in ("class", "warning")
                ],
            }
            for f in audit.findings
        ],
    }


def table(frame: pd.DataFrame) -> dict[str, Any] | None:
    """Return the first rows and columns of a table as text, and how many were left out."""
    if frame.empty:
        return None
    shown = frame.iloc[:_MOST_ROWS, :_MOST_COLUMNS]
    return {
        "columns": [shorten(str(c), 60) for c in shown.columns],
        "rows": [[cell(v) for v in row] for row in shown.itertuples(index=False, name=None)],
        "more_rows": len(frame) - len(shown),
        "more_columns": frame.shape[1] - shown.shape[1],
    }


def _sentence(text: str) -> str:
    return showable(text[:1].upper() + text[1:] + "." if text else "")


def cell(value: Any) -> str:
    """Return a value as a reader expects it."""
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and np.isnan(value)):
        return "-"
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    return shorten(str(value), 120)


def _environment() -> Environment:
    # Everything is escaped; the charts alone are marked as markup, and their texts are escaped by the renderer.
    from oversafe import __version__

    environment = Environment(
        loader=PackageLoader("oversafe.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals["version"] = __version__
    environment.filters["shown"] = lambda text: shorten(str(text), 120)
    environment.filters["percent"] = lambda share: f"{share:.0%}"
    return environment
