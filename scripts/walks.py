"""Draw which rooms ``oversafe audit`` and ``oversafe protect`` walk through: ``python scripts/walks.py``.

Runs both commands on the embedded table, records every call from one module of oversafe into another, and writes
``docs/images/walk-audit.svg`` and ``walk-protect.svg``. A call from a room into a later one is a step back; only the
one that renders a page may be one. ``--check`` writes nothing and ends with 1 if it finds any
other.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

IMAGES = Path(__file__).parents[1] / "docs" / "images"
# In the order of the house: a room uses those before it.
ROOMS = (
    "_core",
    "data",
    "privacy",
    "protect",
    "learn",
    "attack",
    "measure",
    "experiment",
    "auditing",
    "releasing",
    "papers",
    "report",
    "app",
    "cli",
)
# What renders a result comes after what makes it.
RENDERING = ("auditing", "report")
# Every room calls these, so their arrows are pale.
SERVES_ALL = ("data", "privacy")
Call = tuple[str, str]


def walk(arguments: list[str]) -> Counter[Call]:
    """Return how often each module of oversafe calls another while a command runs."""
    from oversafe.cli.program import main

    calls: Counter[Call] = Counter()

    def note(frame: Any, event: str, _: Any) -> None:
        # Modules are read when they are first needed, generators go on where they were asked to, and a function within
        # a function was handed to its caller.
        code = frame.f_code
        if event != "call" or code.co_name == "<module>" or code.co_flags & inspect.CO_GENERATOR:
            return
        if "<locals>" in code.co_qualname:
            return
        callee = frame.f_globals.get("__name__", "")
        if not callee.startswith("oversafe."):
            return
        caller = frame.f_back
        while caller is not None and not caller.f_globals.get("__name__", "").startswith("oversafe."):
            caller = caller.f_back
        if caller is not None and (name := caller.f_globals["__name__"]) != callee:
            calls[name, callee] += 1

    sys.argv = ["oversafe", *arguments]
    sys.setprofile(note)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            main()
    except SystemExit as end:
        if end.code not in (0, None):
            raise RuntimeError(f"oversafe {' '.join(arguments)} ended with {end.code}") from None
    finally:
        sys.setprofile(None)
    return calls


def room(module: str) -> str:
    """Return the room of a module."""
    return module.split(".")[1]


def between_rooms(calls: Counter[Call]) -> Counter[Call]:
    """Return how often each room calls another."""
    found: Counter[Call] = Counter()
    for (caller, callee), times in calls.items():
        if room(caller) != room(callee) and room(callee) != "_core":
            found[room(caller), room(callee)] += times
    return found


def steps_back(calls: Counter[Call]) -> list[str]:
    """Return the calls from a room into a later one that are not asked for."""
    return sorted(
        f"{caller} calls {callee} ({times} times)"
        for (caller, callee), times in calls.items()
        if room(caller) in ROOMS
        and ROOMS.index(room(callee)) > ROOMS.index(room(caller))
        and room(caller) != "_core"
        and (room(caller), room(callee)) != RENDERING
    )


def drawing(title: str, calls: Counter[Call]) -> str:
    """Return the walk as an SVG: the rooms from top to bottom, and an arrow for the calls between two of them."""
    edges = between_rooms(calls)
    modules = {name for pair in calls for name in pair}
    used = [each for each in reversed(ROOMS) if any(each in pair for pair in edges)]
    height, width, left = 56, 420, 24
    row = {each: 64 + height * i for i, each in enumerate(used)}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {64 + height * len(used)}" '
        f'role="img" aria-label="{title}" font-family="sans-serif" font-size="13">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#57606a"/></marker></defs>',
        f'<rect width="{width}" height="{64 + height * len(used)}" fill="#fff"/>',
        f'<text x="{left}" y="30" font-size="16" font-weight="600" fill="#1f2328">{title}</text>',
    ]
    for each in used:
        inside = sorted(name.partition(f".{each}")[2].lstrip(".") for name in modules if room(name) == each)
        parts.append(
            f'<rect x="{left}" y="{row[each]}" width="190" height="36" rx="6" fill="#eef4fb" stroke="#8aa6c4"/>'
            f'<text x="{left + 12}" y="{row[each] + 23}" fill="#1f2328">{each}/ '
            f'<tspan fill="#57606a">{len(inside)} modules</tspan></text>'
        )
    x = left + 190
    for i, ((caller, callee), _) in enumerate(
        sorted(edges.items(), key=lambda e: (row[e[0][0]], row[e[0][1]]))
    ):
        begin, end = row[caller] + 12 + 3 * (i % 5), row[callee] + 12 + 3 * (i % 5)
        out = x + 40 + 16 * abs(used.index(callee) - used.index(caller)) + 7 * (i % 5)
        colour = "#b35900" if end < begin else "#c8d1da" if callee in SERVES_ALL else "#57606a"
        parts.append(
            f'<path d="M{x} {begin}C{out} {begin} {out} {end} {x} {end}" fill="none" stroke="{colour}" '
            f'marker-end="url(#tip)"/>'
        )
    return "\n".join([*parts, "</svg>\n"])


def main(arguments: list[str] | None = None) -> int:
    """Draw or check the two walks; 1 if one of them steps back."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--modules", action="store_true", help="print the calls between modules")
    options = parser.parse_args(arguments)
    from oversafe.data import load_dataset, write_table
    from oversafe.protect import SMOTE

    X, y = load_dataset("breast_cancer")
    bad = False
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["OVERSAFE_KEYS"] = str(Path(folder) / "keys")
        table = Path("table.csv")
        write_table(X.assign(diagnosis=y), table)
        X_new, y_new = SMOTE(random_state=0).fit_resample(X, y)
        write_table(X_new.assign(diagnosis=y_new), Path("release.csv"))
        given = ["--label", "diagnosis"]
        commands = {
            "audit": ["audit", "release.csv", *given, "--real", "table.csv", "--report", "report.html"],
            "protect": ["protect", "table.csv", *given, "--out", "protected.csv"],
        }
        for name, command in commands.items():
            calls = walk(command)
            back = steps_back(calls)
            modules = {each for pair in calls for each in pair}
            print(f"oversafe {name}: {len(modules)} modules of {len({room(m) for m in modules})} rooms")
            if options.modules:
                print(*(f"  {a} -> {b}: {n}" for (a, b), n in sorted(calls.items())), sep="\n")
            print(*(f"  back: {each}" for each in back), sep="\n" if back else "")
            bad |= bool(back)
            if not options.check:
                (IMAGES / f"walk-{name}.svg").write_text(drawing(f"oversafe {name}", calls), encoding="utf-8")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
