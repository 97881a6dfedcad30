"""An audit for the terminal: text without boxes, so that it can be pasted into an e-mail."""

from __future__ import annotations

import textwrap

from rich.text import Text

from oversafe._core.text import percent_range, shorten, showable
from oversafe.attack.class_tables import ANOTHER_LABEL, rows_in_words
from oversafe.auditing.formatting import told_risk
from oversafe.auditing.plan.not_run import by_attack
from oversafe.auditing.run import Audit
from oversafe.report.advice import advice
from oversafe.report.glossary import MEANING

_STYLES = {"exposed": "bold red", "unproven": "bold yellow", "protected": "bold green"}
# What mail programs do not wrap again.
_WIDTH = 76


def summary(audit: Audit) -> Text:
    """Return what the terminal shows of an audit; where colours are shown, the verdict has its own."""
    text = as_text(audit)
    word = audit.verdict.level.upper()
    shown = Text(text)
    start = text.index(word)
    shown.stylize(_STYLES[audit.verdict.level], start, start + len(word))
    return shown


def as_text(audit: Audit) -> str:
    """Return the verdict, the findings, the guarantee, what was not checked and what to do, as plain text."""
    facts, level = audit.facts, audit.verdict.level
    name = shorten(str(facts.get("name", "the release")), 60)
    lines = [
        *_wrapped(f"{level.upper()}: {audit.verdict.sentence}"),
        *_wrapped(MEANING[level][2]),
        "",
        *_wrapped(f"Privacy audit of {name}{_size(audit)}."),
    ]
    for finding in audit.findings:
        result = finding.result
        estimate = "estimated " if result.details.get("risk_basis") == "estimate" else ""
        risk = f"{estimate}risk {told_risk(result)}, 95 % interval {percent_range(*result.interval)}"
        of_class = f", {_rows(str(result.details['class']))}" if "class" in result.details else ""
        lines += [
            "",
            *_wrapped(f"- {result.name}{of_class}: {risk}.", "  "),
            *_wrapped(finding.headline, "  ", "  "),
        ]
    # Why nobody vouches for it stands among its caveats.
    vouched = f" {audit.voucher.sentence}" if audit.voucher.counts else ""
    lines += ["", *_wrapped(f"Guarantee: {audit.guarantee}{vouched}")]
    lines += [line for warning in audit.warnings for line in _wrapped(f"Note: {warning}.")]
    lines += [
        line for name, reason in by_attack(audit.not_run) for line in _wrapped(f"Not run: {name} ({reason}).")
    ]
    steps = advice(level, audit.findings, audit.guarantee, facts, audit.settings, audit.voucher)
    step = next((s for s in steps if s.commands), None)
    if level != "protected" and step is not None:
        lines += ["", *_wrapped(f"What to do instead: {step.sentence}")]
        lines += [f"  {showable(command)}" for command in step.commands]
        lines += [line for s in steps if s.in_terminal for line in ("", *_wrapped(s.sentence))]
    return "\n".join(lines)


def _size(audit: Audit) -> str:
    facts = audit.facts
    if "rows" not in facts:
        return ""
    against = " alone"
    if facts.get("real_rows") is not None:
        against = f", against the real table of {facts['real_rows']} rows"
        if facts.get("holdout_rows") is not None:
            against += f" and a holdout of {facts['holdout_rows']}"
    return f" ({facts['rows']} rows, {facts['columns']} columns and the label){against}"


def _rows(label: str) -> str:
    return rows_in_words(label) if label == ANOTHER_LABEL else f"class {shorten(label, 20)}"


def _wrapped(text: str, indent: str = "", first: str = "") -> list[str]:
    # A figure and its unit stay on one line.
    lines = textwrap.wrap(
        showable(text).replace(" %", "\0%"),
        _WIDTH,
        initial_indent=first,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
    return [line.replace("\0", " ") for line in lines]
