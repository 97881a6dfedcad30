"""What SECURITY.md says of files and of the network."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CHECKOUT = Path(__file__).parents[1]
PACKAGE = CHECKOUT / "src" / "oversafe"
# Modules that run what a file says, and functions that do.
UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "yaml"}
UNSAFE_CALLS = {"eval", "exec", "compile", "read_pickle", "allow_pickle"}

# Every address that is looked up or connected to is an error, in this process and its children that run Python alike.
_CUT = """
import sys

def refuse(event, arguments):
    if event in {"socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "urllib.Request"} or (
        event == "socket.connect" and isinstance(arguments[1], tuple)
    ):
        raise RuntimeError(f"the network was used: {event} {arguments[1:]}")

sys.addaudithook(refuse)
"""


@pytest.mark.parametrize(
    "file", sorted(PACKAGE.rglob("*.py")), ids=lambda file: str(file.relative_to(PACKAGE))
)
def test_nothing_runs_what_a_file_says(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert not {alias.name.split(".")[0] for alias in node.names} & UNSAFE_MODULES
        elif isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] not in UNSAFE_MODULES
        elif isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if isinstance(node.func, ast.Attribute) and called in {"compile", "eval"}:
                continue  # methods of other objects: a pattern, a network
            assert called not in UNSAFE_CALLS, f"line {node.lineno}"
            assert not any(keyword.arg == "allow_pickle" for keyword in node.keywords)


def _run_cut_off(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    call = f"sys.argv = ['oversafe', *{list(arguments)!r}]\nsys.exit(main())"
    code = f"{_CUT}\nfrom oversafe.cli.program import main\n{call}"
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)


def test_the_network_can_be_cut(tmp_path: Path) -> None:
    # The hook works at all, and nothing that the whole demonstration does needs an address.
    cut = subprocess.run(
        [sys.executable, "-c", f"{_CUT}\nimport socket\nsocket.getaddrinfo('localhost', 80)"],
        capture_output=True,
        text=True,
    )
    assert "the network was used" in cut.stderr
    done = _run_cut_off(tmp_path, "demo", "--out", "demo")
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "demo").glob("*.html"))


def test_the_licence_of_every_dependency_is_listed() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (CHECKOUT / "docs" / "licences.md").read_text(encoding="utf-8")
    sections = {part.partition("\n")[0]: part for part in page.split("\n## ")}
    for extra, texts in {None: project["dependencies"], **project["optional-dependencies"]}.items():
        if extra in ("docs", "browser", "dev"):
            continue
        for text in texts:
            name = canonicalize_name(Requirement(text).name)
            assert f"\n| {name} |" in page, f"{text} is not in docs/licences.md; run scripts/licences.py"
    # Of licences that are not free, what nobody gets without asking for it.
    restricted = {title for title, part in sections.items() if "BUSL" in part or "BSL-1.1" in part}
    assert restricted == {"With the extra `baselines`, in addition"}
