"""What someone's own code does, as one number: results of code that has changed since are not taken for its own."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

# Known by their version, which the store asks for anyway, or not expected to change what a cell gives.
_SETTLED = {"oversafe", "sklearn", "numpy", "scipy", "pandas", "builtins", "abc", "typing"}
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def is_settled(thing: Any) -> bool:
    """Return whether a class or function is of oversafe, of the libraries it rests on, or of Python itself."""
    top = _package(thing)
    return top in _SETTLED or top in sys.stdlib_module_names - {"__main__"}


def source_digest(thing: type | Callable[..., Any]) -> str:
    """Return a digest of what a class or function does.

    It covers the code of the class, of the classes it inherits from, and of the functions, classes and plain constants
    of the same project that they name, as they are loaded, so that it needs no file and holds in a notebook too.
    Comments and line numbers do not count. Other installed packages count by their version.
    """
    digest = hashlib.sha256()
    for part in _parts(thing):
        digest.update(part.encode(errors="backslashreplace") + b"\0")
    return digest.hexdigest()[:16]


def _package(thing: Any) -> str:
    return str(getattr(thing, "__module__", None) or "").partition(".")[0]


def _is_installed(module: str) -> bool:
    path = str(getattr(sys.modules.get(module), "__file__", None) or "")
    return "site-packages" in path or "dist-packages" in path


def _parts(start: Any) -> Iterator[str]:
    """Yield texts that change when the code does, in an order that does not depend on the process."""
    own, seen, waiting = _package(start), set[int](), [start]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or is_settled(thing):
            continue
        seen.add(id(thing))
        yield f"{thing.__module__}.{thing.__qualname__}"
        if _package(thing) != own and _is_installed(_package(thing)):
            yield str(getattr(sys.modules.get(_package(thing)), "__version__", ""))
            continue
        if isinstance(thing, type):
            waiting += thing.__mro__[1:]
            for name, value in sorted(vars(thing).items()):
                if isinstance(value, _PLAIN):
                    yield "" if name in ("__doc__", "__firstlineno__") else f"{name}={value!r}"
                for function in _functions(value):
                    yield name
                    yield from _function(function, waiting)
        else:
            yield from _function(thing, waiting)


def _functions(value: Any) -> list[FunctionType]:
    """Return the functions behind an attribute of a class: methods, properties, those with a decorator."""
    found = [value, *(getattr(value, name, None) for name in ("__func__", "fget", "fset", "__wrapped__"))]
    return [function for function in found if isinstance(function, FunctionType)]


def _function(function: FunctionType, waiting: list[Any]) -> Iterator[str]:
    """Yield what a function does, and put what it names on the list."""
    names: dict[str, None] = {}
    yield from _code(function.__code__, names)
    cells = [cell.cell_contents for cell in function.__closure__ or () if _filled(cell)]
    defaults = [*(function.__defaults__ or ()), *sorted((function.__kwdefaults__ or {}).items())]
    named = [(name, function.__globals__[name]) for name in names if name in function.__globals__]
    modules = [value for _, value in named if isinstance(value, ModuleType) and not _is_library(value)]
    named += [(name, vars(module)[name]) for module in modules for name in names if name in vars(module)]
    for name, value in [("", value) for value in cells + defaults] + named:
        value = getattr(value, "__func__", value) if isinstance(value, MethodType) else value
        if isinstance(value, type | FunctionType):
            waiting.append(value)
        elif text := _constant(value):
            yield f"{name}={text}"


def _is_library(module: ModuleType) -> bool:
    top = module.__name__.partition(".")[0]
    return top in _SETTLED or top in sys.stdlib_module_names - {"__main__"} or _is_installed(top)


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _code(code: CodeType, names: dict[str, None]) -> Iterator[str]:
    names |= dict.fromkeys(code.co_names)
    yield code.co_code.hex()
    yield " ".join((*code.co_names, *code.co_varnames))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant, names)
        else:
            yield _constant(constant)


def _constant(value: Any) -> str:
    """Return a plain constant as text, also inside of tuples, lists, sets and mappings; of anything else nothing."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, tuple | list):
        return _joined(map(_constant, value))
    if isinstance(value, set | frozenset):
        # Their order differs from process to process.
        return _joined(sorted(map(_constant, value)))
    if isinstance(value, dict):
        return _joined(sorted(f"{_constant(k)}:{_constant(v)}" for k, v in value.items()))
    return ""


def _joined(texts: Iterable[str]) -> str:
    return f"({', '.join(texts)})"
