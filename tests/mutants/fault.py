"""One fault: where it is, what it changes, which promise it breaks, and which tests should say so."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "oversafe"


class StaleFault(ValueError):
    """A fault no longer fits the source that it was written for."""


@dataclass(frozen=True)
class Fault:
    """A change of the source of one symbol.

    Parameters
    ----------
    name : str
        By which it is chosen and told.
    symbol : str
        Module and qualified name, such as "privacy.accountant:Accountant.sensitivity"; a constant's name works too.
    old, new : str
        The piece of the symbol's source that is replaced; it stands there exactly once.
    breaks : str
        The promise that no longer holds.
    tests : tuple of str
        What pytest is given, most telling first.
    """

    name: str
    symbol: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]

    @property
    def file(self) -> str:
        """The file's place in the package."""
        return self.symbol.partition(":")[0].replace(".", "/") + ".py"

    def apply(self, source: str) -> str:
        """Return a module's source with the fault."""
        first, last = _place(source, self.symbol.partition(":")[2], self.symbol)
        lines = source.splitlines(keepends=True)
        piece = "".join(lines[first - 1 : last])
        if (times := piece.count(self.old)) != 1:
            raise StaleFault(f"{self.name}: {self.old!r} stands {times} times in {self.symbol}, not once")
        if self.new == self.old:
            raise StaleFault(f"{self.name}: the change of {self.symbol} changes nothing")
        return "".join(lines[: first - 1]) + piece.replace(self.old, self.new) + "".join(lines[last:])


def read_module(file: str) -> str:
    """Return the source of a module of the package as it is."""
    return (PACKAGE / file).read_text(encoding="utf-8")


@lru_cache(maxsize=64)
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def _place(source: str, name: str, symbol: str) -> tuple[int, int]:
    """Return the first and the last line of what a qualified name stands for."""
    body: list[ast.stmt] = _parsed(source).body
    found: ast.stmt | None = None
    for part in name.split("."):
        matches = [node for node in _statements(body) if part in _names(node)]
        if len(matches) != 1:
            raise StaleFault(f"{symbol}: {part!r} is there {len(matches)} times, not once")
        found = matches[0]
        body = getattr(found, "body", [])
    assert found is not None
    decorators = getattr(found, "decorator_list", [])
    return min([found.lineno, *(d.lineno for d in decorators)]), found.end_lineno or found.lineno


def _statements(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the definitions in a body, those within branches too."""
    found = []
    for node in body:
        found.append(node)
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            for inner in ("body", "orelse", "finalbody"):
                found += _statements(getattr(node, inner, []))
    return found


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    flat = [e for t in targets for e in (t.elts if isinstance(t, ast.Tuple) else [t])]
    is_definition = isinstance(node, ast.Assign | ast.AnnAssign)
    return [t.id for t in flat if isinstance(t, ast.Name)] if is_definition else []
