"""The shape of the package: the order of its rooms, what an import costs, what is documented."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "oversafe"
# A room may use itself and the rooms on the lines above it.
ORDER = [
    {"data"},
    {"privacy"},
    {"protect"},
    {"learn"},
    {"attack"},
    {"measure"},
    {"experiment"},
    {"auditing"},
    {"releasing"},
    {"papers"},
    {"report"},
    {"app"},
    {"cli"},
    {"__main__"},
]
# The only calls down, made when a page or a text is asked for: what renders them comes later.
RENDERING = {
    "auditing/run.py": {"oversafe.report.page", "oversafe.report.terminal"},
    "auditing/comparing/comparison.py": {"oversafe.report.comparison_page", "oversafe.report.page"},
}
MOST_MODULES = 15
RANK = {room: rank for rank, rooms in enumerate(ORDER) for room in rooms}
SHARED = {"_core"}
# What `pip install oversafe` alone does not bring.
OPTIONAL = {
    "altair",
    "ctgan",
    "dask",
    "distributed",
    "jax",
    "matplotlib",
    "mbi",
    "opacus",
    "psycopg",
    "pyspark",
    "sdv",
    "streamlit",
    "torch",
    "umap",
    "xgboost",
}

MODULES = sorted(PACKAGE.rglob("*.py"))
ROOM_MODULES = [path for path in MODULES if path != PACKAGE / "__init__.py"]


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(tree: ast.AST, path: Path) -> Iterator[str]:
    """Absolute names of everything imported anywhere below a node."""
    parents = ["oversafe", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = parents[: len(parents) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            # "from oversafe import data" is an import of oversafe.data.
            yield from (
                [f"{module}.{alias.name}" for alias in node.names] if module == "oversafe" else [module]
            )


def misplaced_imports(source: str, path: Path) -> list[str]:
    room = room_of(path)
    wrong = []
    for name in imports_of(ast.parse(source), path):
        package, _, rest = name.partition(".")
        used = rest.partition(".")[0]
        if package != "oversafe" or used == room or used in SHARED or used == "__version__":
            continue
        # Shared modules serve every room, so they can lean on none.
        if room in SHARED or used not in RANK or RANK[used] >= RANK[room]:
            wrong.append(name)
    return wrong


def optional_imports(source: str) -> list[str]:
    """Optional packages imported when the module is loaded, not inside a function."""
    found = []
    stack: list[ast.AST] = [ast.parse(source)]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            stack.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.append(node.module)
        stack.extend(ast.iter_child_nodes(node))
    return sorted(name for name in found if name.partition(".")[0] in OPTIONAL)


@pytest.mark.parametrize("path", ROOM_MODULES, ids=name_of)
def test_every_module_has_its_place(path: Path) -> None:
    assert room_of(path) in RANK or room_of(path) in SHARED, f"put {name_of(path)} into a room"


@pytest.mark.parametrize("path", ROOM_MODULES, ids=name_of)
def test_a_room_imports_only_from_the_rooms_before_it(path: Path) -> None:
    misplaced = misplaced_imports(path.read_text(encoding="utf-8"), path)
    assert set(misplaced) == RENDERING.get(name_of(path), set())


def test_a_folder_has_few_modules() -> None:
    folders = Counter(path.parent for path in ROOM_MODULES if path.name != "__init__.py")
    assert {str(folder): n for folder, n in folders.items() if n > MOST_MODULES} == {}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_optional_packages_are_imported_where_they_are_used(path: Path) -> None:
    assert optional_imports(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("source", "wrong"),
    [
        ("import oversafe.report", ["oversafe.report"]),
        ("from oversafe import report", ["oversafe.report"]),
        ("from ..measure.epsilon import audit_epsilon", ["oversafe.measure.epsilon"]),
        ("def late():\n    from oversafe.report import audit", ["oversafe.report"]),
        ("from oversafe import unknown", ["oversafe.unknown"]),
        (
            "from oversafe.data import Schema\nfrom .base import Attack\nfrom .._core.errors import InputError",
            [],
        ),
        ("from . import base\nfrom oversafe import __version__\nimport numpy", []),
    ],
)
def test_misplaced_imports_are_seen_in_every_form(source: str, wrong: list[str]) -> None:
    assert misplaced_imports(source, PACKAGE / "attack" / "example.py") == wrong


def test_optional_imports_are_seen_only_at_load_time() -> None:
    source = """
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import torch
try:
    import umap
except ImportError:
    pass
class Plot:
    from matplotlib import pyplot
def late():
    import mbi
"""
    assert optional_imports(source) == ["matplotlib", "umap"]


def attack_names(source: str, names: list[str]) -> list[str]:
    """Attacks that texts of a module name, docstrings aside."""
    tree = ast.parse(source)
    described = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, described) and node.body and isinstance(node.body[0], ast.Expr)
    }
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
    ]
    return [name for name in names if any(re.search(rf"\b{name}\b", text) for text in texts)]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_its_own_module_knows_an_attack_by_name(path: Path) -> None:
    from oversafe.attack import ATTACKS

    own = {kind.__name__: kind.__module__ for kind in ATTACKS}
    module = ".".join(["oversafe", *path.relative_to(PACKAGE).with_suffix("").parts])
    found = attack_names(path.read_text(encoding="utf-8"), list(own))
    assert [name for name in found if module not in (own[name], "oversafe.attack.__init__")] == []


def test_names_of_attacks_are_seen_in_every_text() -> None:
    source = 'def f(r):\n    """Of Linkability."""\n    return r.name == "Linkability (two)" or f"{r}: SinglingOut"'
    assert attack_names(source, ["Linkability", "SinglingOut", "Other"]) == ["Linkability", "SinglingOut"]


def test_importing_the_package_does_not_import_the_heavy_libraries() -> None:
    code = "import oversafe, sys; print(*{'numpy', 'pandas', 'scipy', 'sklearn', 'numba'} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []


def test_commands_walk_from_room_to_room_and_not_back() -> None:
    walks = PACKAGE.parents[1] / "scripts" / "walks.py"
    done = subprocess.run(
        [sys.executable, str(walks), "--check"], capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, "back:" in done.stdout) == (0, False), done.stdout + done.stderr
