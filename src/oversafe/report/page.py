"""One HTML file that opens without network; its one script sorts tables, and its policy lets no other run."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader
from markupsafe import Markup, escape

from oversafe._core.text import percent, percent_range, shorten, showable
from oversafe.attack.base import QUESTIONS, AttackResult, SuccessRate
from oversafe.attack.class_tables import ANOTHER_LABEL
from oversafe.attack.registry import all_attacks
from oversafe.auditing.anonymisation_criteria import CRITERIA, MEANINGS, assess
from oversafe.auditing.formatting import cell, estimated_cell, told_risk
from oversafe.auditing.picture import REAL
from oversafe.auditing.plan.not_run import by_attack
from oversafe.auditing.run import FORMAT_VERSION, Audit
from oversafe.auditing.verdict import EXPOSED_FROM, Finding, copies_of_largest, records_read_out
from oversafe.privacy.guarantee import Guarantee
from oversafe.privacy.meaning import allows
from oversafe.report.advice import advice
from oversafe.report.charts import rate_rows, records_chart, strip, traffic_light
from oversafe.report.glossary import GLOSSARY, MEANING

_MOST_ROWS = 25
_MOST_COLUMNS = 16
_MOST_CLASSES = 8
_MOST_SECRETS = 12
_ANSWERS = {"shown": "possible", "some": "some gain", "none": "no success", "unchecked": "not checked"}


def audit_page(audit: Audit) -> str:
    """Return the page of one audit."""
    title = f"Privacy audit of {shorten(str(audit.facts.get('name', 'a release')), 80)}"
    return (
        page_environment()
        .get_template("audit.html")
        .render(title=title, audit=section(audit), glossary=GLOSSARY)
    )


def demo_page(**parts: Any) -> str:
    """Return the page of the demonstration."""
    return page_environment().get_template("demo.html").render(**parts)


def section(audit: Audit, prefix: str = "finding") -> dict[str, Any]:
    """Return what the templates show of an audit; the prefix keeps two audits on one page apart."""
    level = audit.verdict.level
    word, _, meaning = MEANING[level]
    findings = [_finding(f, f"{prefix}-{number}") for number, f in enumerate(audit.findings, 1)]
    worst = max(range(len(findings)), key=lambda i: audit.findings[i].gravity, default=None)
    gravest = None if worst is None or not _is_grave(audit.findings[worst]) else findings[worst]
    if gravest is not None:
        gravest["gravest"] = True
    classes = list(audit.facts.get("classes", {}).items())
    return {
        "level": level,
        "word": word,
        "light": traffic_light(level),
        "sentence": showable(audit.verdict.sentence),
        "meaning": meaning,
        "name": shorten(str(audit.facts.get("name", "a release")), 120),
        "facts": audit.facts,
        "classes": classes[:_MOST_CLASSES],
        "more_classes": len(classes) - _MOST_CLASSES if len(classes) > _MOST_CLASSES else 0,
        "findings": findings,
        "anchors": True,
        "gravest": gravest,
        "highest": max(findings, key=lambda f: (f["risk"], f["interval"][0]), default=None),
        "certain": records_read_out(audit.findings),
        "certain_of": _real_records(audit),
        "largest": copies_of_largest(audit.findings),
        "holds_records": any(not f.result.evidence.empty for f in audit.findings),
        "stopped": audit.stopped,
        "law": [
            {
                "criterion": row.criterion,
                "meaning": MEANINGS[row.criterion],
                "answer": row.answer,
                "word": _ANSWERS[row.answer],
                "sentence": row.sentence,
                "attacks": ", ".join(row.attacks),
            }
            for row in assess(audit.findings, audit.guarantee, audit.limits)
        ],
        "guarantee": audit.guarantee,
        "guarantee_word": {"proven": "Proven", "nominal": "Nominal", "none": "None"}[audit.guarantee.status],
        "guarantee_figures": _figures(audit.guarantee),
        "promise": _promise(audit.guarantee),
        "vouched": showable(audit.voucher.sentence if audit.voucher.counts else ""),
        "total": showable(audit.total if audit.guarantee.status == "proven" else ""),
        "limits": audit.limits,
        "warnings": [_sentence(warning) for warning in audit.warnings],
        "not_run": {showable(name): showable(reason) for name, reason in by_attack(audit.not_run)},
        "never": _never_checked(),
        "advice": advice(level, audit.findings, audit.guarantee, audit.facts, audit.settings, audit.voucher),
        "command": showable(str(audit.settings.get("command", ""))),
        "settings": _flat(audit.settings),
        "seconds": audit.seconds,
        "version": FORMAT_VERSION,
    }


def _never_checked() -> tuple[tuple[str, str], ...]:
    """Return what no audit of a file can see, whatever tables it is given, and why."""
    games = [type(own).__name__ for own in all_attacks() if "generator" in own.about.needs]
    return (
        (
            f"Membership games ({', '.join(games)})",
            "they run the method itself many times, with and without a person, so they need the method and not its "
            f"output. In Python: {games[0]}().run(protector, X, y).",
        ),
        (
            "Several releases of the same people",
            "each was looked at alone. What they tell together is bounded by a budget only.",
        ),
        (
            "Attackers with other knowledge",
            "registers, leaks, or people who know a person well. Only a proven guarantee speaks about them.",
        ),
    )


def table(frame: pd.DataFrame) -> dict[str, Any] | None:
    """Return the first rows and columns of a table as text, and how many were left out."""
    if frame.empty:
        return None
    shown = frame.iloc[:_MOST_ROWS, :_MOST_COLUMNS]
    estimates = _estimates(frame)[:_MOST_ROWS]
    names = [str(name) for name in shown.columns]
    return {
        "columns": [shorten(name, 60) for name in names],
        "rows": [
            [
                (_sort_key(value), estimated_cell(value) if name in estimated else cell(value))
                for name, value in zip(names, row, strict=True)
            ]
            for row, estimated in zip(shown.itertuples(index=False, name=None), estimates, strict=True)
        ],
        "more_rows": len(frame) - len(shown),
        "more_columns": frame.shape[1] - shown.shape[1],
    }


def _estimates(frame: pd.DataFrame) -> list[set[str]]:
    """Return for each row of evidence the columns whose values are estimates."""
    # A column of the table itself may bear the name.
    if not {"columns_read", "estimated"} <= set(frame.columns) or frame.columns.has_duplicates:
        return [set()] * len(frame)
    return [set(str(names).split(", ")) for names in frame["estimated"]]


def _is_grave(finding: Finding) -> bool:
    return finding.certain_records > 0 or finding.result.interval[0] > 0


def _finding(found: Finding, anchor: str) -> dict[str, Any]:
    result, about = found.result, found.attack.about
    hit = found.certain_records > 0 or result.interval[0] >= EXPOSED_FROM
    bars = rate_rows(found.attack.rates(result))
    return {
        "anchor": anchor,
        "name": result.name,
        "class": result.details.get("class", ""),
        "of": "rows under" if result.details.get("class") == ANOTHER_LABEL else "class",
        "about": about,
        "question": about.question or QUESTIONS[result.threat],
        "criteria": CRITERIA[result.threat],
        "headline": showable(found.headline),
        "warning": _sentence(result.details.get("warning", "")),
        "risk": result.risk,
        "risk_text": told_risk(result),
        "interval": result.interval,
        "interval_text": percent_range(*result.interval),
        "strip": strip(result.risk, result.interval, "hit" if hit else "attack", limit=True),
        "rates": bars,
        "by_secret": rate_rows(_rates_by_secret(result), limit=True),
        "chart": None if found.points is None else _chart(found.points),
        "record": None if found.record is None else _record(found.record),
        "gravest": False,
        "evidence": table(result.evidence),
        "evidence_rows": _rows_told(result),
        "figures": [
            (key.replace("_", " "), cell(value))
            for key, value in result.details.items()
            if isinstance(value, str | int | float | np.number) and key not in ("class", "warning")
        ],
    }


def _rates_by_secret(result: AttackResult) -> list[SuccessRate]:
    """Return the risk of each column whose values were guessed, the most exposed first."""
    evidence = result.evidence
    if result.threat != "attribute" or not {"secret", "risk", "low", "high"} <= set(evidence.columns):
        return []
    rows = evidence[["secret", "risk", "low", "high"]].head(_MOST_SECRETS)
    return [
        SuccessRate(str(secret), risk, (low, high), "attack")
        for secret, risk, low, high in rows.itertuples(index=False)
    ]


def _rows_told(result: AttackResult) -> str:
    """Return how many rows of evidence there are, and of how many where they are the first ones only."""
    shown = len(result.evidence)
    every = int(result.details.get("copied", shown))
    return (
        f"the first {shown} of {every} rows" if every > shown else "1 row" if shown == 1 else f"{shown} rows"
    )


def _chart(points: pd.DataFrame) -> dict[str, Any]:
    lines = int(points.loc[points["line"] >= 0, "line"].nunique())
    caption = "Hover over a point or a line to see what it is."
    if lines:
        met = (
            "One straight line of released rows ends"
            if lines == 1
            else f"{lines} straight lines of released rows meet"
        )
        caption = f"{met} in the large red record. But for rounding they do so in all columns. {caption}"
    return {
        "drawing": records_chart(points),
        "lines": lines,
        "real": bool((points["kind"] == REAL).any()),
        "caption": caption,
    }


def _record(record: pd.DataFrame) -> dict[str, Any]:
    shown = record.head(_MOST_COLUMNS)
    has_real = "real" in record.columns
    return {
        "real": has_real,
        "rows": [
            {
                "column": shorten(row["column"], 60),
                "read_back": row["read_back"],
                "off": row["off_by_at_most"],
                "real": row["real"] if has_real else "",
                "same": has_real and row["read_back"] == row["real"],
            }
            for row in shown.to_dict("records")
        ],
        "more": len(record) - len(shown),
    }


def _real_records(audit: Audit) -> int | None:
    """Return of how many real records those that were read are: of the attacked classes, if that is known.

    Those that stand under another label may be of any class.
    """
    if any(f.result.details.get("class") == ANOTHER_LABEL and f.certain_records for f in audit.findings):
        return None
    attacked = [f.result.details for f in audit.findings if f.attack.about.reads == "computed"]
    if not attacked or any("distinct_real" not in details for details in attacked):
        return None
    # Several attacks compute the records of one class.
    return sum({details.get("class"): int(details["distinct_real"]) for details in attacked}.values())


def _figures(guarantee: Guarantee) -> str:
    if guarantee.status == "none":
        return "nothing is promised"
    delta = f", delta = {guarantee.delta:g}" if guarantee.delta else ""
    return f"epsilon = {guarantee.epsilon:g}{delta}"


def _promise(guarantee: Guarantee) -> dict[str, Any]:
    caveats = [_sentence(caveat) for caveat in guarantee.caveats]
    if guarantee.status == "none":
        return {"headline": "Nothing: the release carries no privacy guarantee.", "caveats": caveats}
    who = (
        "every record"
        if guarantee.unit == "record"
        else f"every person, with at most {guarantee.rows_per_unit} rows each"
    )
    start = "Proven" if guarantee.status == "proven" else "Stated, but not proven"
    factor = f"{np.exp(guarantee.epsilon or 0):.3g}"
    other = "missing" if guarantee.relation == "add-remove" else "another in its place"
    meaning = (
        f"Whether a person's record is in the table or {other}, anything that anyone concludes from the release "
        f"becomes at most {factor} times more likely"
        + (f", but for a chance of {guarantee.delta:g}" if guarantee.delta else "")
        + f". {allows(guarantee)}"
    )
    if guarantee.status == "nominal":
        meaning = f"Did it hold, this would be so: {meaning[0].lower()}{meaning[1:]}"
    return {
        "headline": f"{start}: {_figures(guarantee)} differential privacy for {who}.",
        "meaning": meaning,
        "basis": showable(guarantee.basis.rstrip(".")),
        "caveats": caveats,
    }


def _flat(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows = []
    for name, value in settings.items():
        if isinstance(value, Mapping):
            rows += [(f"{name} of {showable(str(key))}", cell(entry)) for key, entry in value.items()]
        elif name != "command" and value is not None:
            rows.append((name.replace("_", " "), cell(value)))
    return rows


def _sort_key(value: Any) -> str | None:
    """Return a number in full, since what is shown of it is rounded."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        return None
    return "-Infinity" if value != value else repr(float(value))


def _sentence(text: str) -> str:
    text = text.rstrip(".")
    return showable(text[:1].upper() + text[1:] + "." if text else "")


def _breakable(name: str) -> Markup:
    """Return a name that may be broken where its words join."""
    return Markup(re.sub(r"(?<=[a-z0-9])([_.-])", r"\1<wbr>", str(escape(name))))


@cache
def _part(name: str) -> tuple[Markup, str]:
    """Return a file of the package as it stands in the page, and the hash by which the page's policy allows it."""
    text = files("oversafe.report").joinpath("templates", name).read_text("utf-8")
    text = re.sub(r"\n\s*", "\n", text)
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return Markup(text), f"sha256-{digest}"


@cache
def page_environment() -> Environment:
    """Return what every page is made with: its templates, its style and script, and the policy that allows no other."""
    # Everything is escaped; the charts alone are marked as markup, and they escape the texts of the table.
    from oversafe import __version__

    environment = Environment(
        loader=PackageLoader("oversafe.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals["version"] = __version__
    environment.globals["style"], environment.globals["style_hash"] = _part("page.css")
    environment.globals["script"], environment.globals["script_hash"] = _part("sort.js")
    environment.filters["shown"] = lambda text: shorten(str(text), 120)
    environment.filters["percent"] = percent
    environment.filters["breakable"] = _breakable
    return environment


def framed(title: str, page: str) -> str:
    """Return a page in a frame of its own origin: a notebook's styles do not reach in, nor does the page reach out."""
    return (
        f'<iframe title="{escape(title)}" style="width:100%;height:48em;border:0" sandbox="allow-scripts" '
        f'srcdoc="{escape(page)}"></iframe>'
    )
