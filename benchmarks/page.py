"""All stored figures on one page, for people: ``python -m benchmarks.page`` writes ``benchmarks/results/README.md``.

Every full run writes it anew. Tables longer than a screen stay in the JSON files.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.runner import CHECKOUT
from benchmarks.tables import shown

RESULTS = CHECKOUT / "benchmarks" / "results"
_LONGEST, _WIDEST = 40, 14
_INTRODUCTION = """# Stored figures

Written by `python -m benchmarks.page` from the JSON files beside it. Each benchmark was run with the command that
stands under its name, from a checkout; "commit" is the state of the project that it measured. Times compare the sides
of one run with one another, turn by turn, on the machine of that run; "times ours" is a median over that of the first
side.
"""


def page(results: Path = RESULTS) -> str:
    """Return the page of all results in a folder."""
    stored = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(results.glob("*.json"))]
    summaries = [summary for summary in stored if "sides" in summary and not summary["quick"]]
    listed = [(f"[{s['name']}](#{s['name']})", s["date"][:10], _commit(s), s["rounds"]) for s in summaries]
    contents = _table(("benchmark", "date", "commit", "rounds"), listed)
    return "\n".join([_INTRODUCTION, *contents, *(line for s in summaries for line in _section(s))]) + "\n"


def write_page() -> None:
    """Write the page anew."""
    (RESULTS / "README.md").write_text(page(), encoding="utf-8")


def _section(summary: dict[str, Any]) -> Iterable[str]:
    machine = summary["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in summary["versions"].items())
    yield from ("", f"## {summary['name']}", "")
    yield (
        f"`python -m benchmarks {summary['name']}`, {summary['date'][:10]}, commit {_commit(summary)}, "
        f"{summary['rounds']} rounds; {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"Python {machine['python']}{', ' * bool(versions)}{versions}"
    )
    headings = ("side", "median s", "fastest s", "slowest s", "peak MiB", "times ours")
    keys = ("label", "median_seconds", "fastest_seconds", "slowest_seconds", "peak_memory_mib", "times_ours")
    yield from ("", *_table(headings, ([side[key] for key in keys] for side in summary["sides"])))
    tables = {"figures": summary.get("figures") or [], **summary.get("tables", {})}
    for title, rows in tables.items():
        if not rows:
            continue
        yield from ("", f"**{title}**", "")
        if len(rows) > _LONGEST or len(rows[0]) > _WIDEST:
            yield f"{len(rows)} rows, in `{summary['name']}.json`"
        else:
            yield from _table(list(rows[0]), (list(row.values()) for row in rows))
    for note in summary.get("notes", ()):
        yield from ("", note)


def _commit(summary: dict[str, Any]) -> str:
    return summary.get("commit") or "not stored"


def _table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterable[str]:
    yield _line(headings)
    yield _line(["---"] * len(headings))
    yield from map(_line, rows)


def _line(cells: Sequence[Any]) -> str:
    return "| " + " | ".join(_cell(value) for value in cells) + " |"


def _cell(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " to ".join(map(_cell, value))
    return shown(value).replace("|", "\\|")


if __name__ == "__main__":
    write_page()
