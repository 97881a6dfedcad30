"""What comes with oversafe, and under which licence: python scripts/licences.py (where all extras are installed).

Writes docs/licences.md from what the installed packages say of themselves.
"""

from __future__ import annotations

import sys
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CHECKOUT = Path(__file__).parents[1]
PAGE = CHECKOUT / "docs" / "licences.md"
CORE = "core"
# Of those who work on oversafe alone: nothing of it reaches a user.
DEVELOPMENT = ("docs", "browser", "dev")
HEAD = """\
# Licences

oversafe is under the BSD 3-Clause License. What an installation brings along, with the version that was read and the
licence that the package states; `python scripts/licences.py` writes this page.

Only `baselines` restricts what you may do: ctgan and its parts from the same house are under the Business Source
License 1.1, which is no free licence. Nothing else needs them. psycopg (LGPL), tqdm and certifi (MPL) ask that
changes to themselves are shared; they are used as they are.
"""


def licence(package: Distribution) -> str:
    """Return the licence that a package states, in one line."""
    stated = package.metadata.get("License") or ""
    if expression := package.metadata.get("License-Expression"):
        return expression
    # Some put the whole text there.
    if stated and len(stated) < 60 and "\n" not in stated:
        return stated
    classes = [c for c in package.metadata.get_all("Classifier") or [] if c.startswith("License ::")]
    if not classes:
        raise SystemExit(f"{package.metadata['Name']} states no licence; look it up")
    return ", ".join(c.rpartition("::")[2].strip() for c in classes)


def brought_along(requirements: list[str]) -> dict[str, Distribution]:
    """Return the packages that requirements bring along, by name."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        extras = {"", *wanted.extras} - {extra for known, extra in seen if known == name}
        if name == "oversafe" or not extras:
            continue
        seen |= {(name, extra) for extra in extras}
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            raise SystemExit(f"{name} is not installed; install oversafe with all extras first") from None
        for text in found[name].requires or []:
            needed = Requirement(text)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(needed)
    return found


def main() -> int:
    """Write the page."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {
        name: texts for name, texts in project["optional-dependencies"].items() if name not in DEVELOPMENT
    }
    lines = [HEAD]
    known: dict[str, Distribution] = {}
    for group, requirements in {CORE: project["dependencies"], **extras}.items():
        packages = {name: found for name, found in brought_along(requirements).items() if name not in known}
        known |= packages
        title = "Always" if group == CORE else f"With the extra `{group}`, in addition"
        lines += [f"## {title}\n", "| package | version | licence |", "|---|---|---|"]
        lines += [
            f"| {name} | {packages[name].version} | {licence(packages[name])} |" for name in sorted(packages)
        ]
        lines.append("")
    PAGE.write_text("\n".join(lines), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
