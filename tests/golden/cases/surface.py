"""What users import, call and type: exports, signatures, defaults, public attributes, commands and their help."""

from __future__ import annotations

import dataclasses
import inspect
from functools import partial
from importlib import import_module
from typing import Any

import oversafe
from oversafe.cli.program import _command
from tests.golden.case import case
from tests.golden.coverage import ROOMS
from tests.golden.output import Output, is_value_object

# They have their own constructors from exceptions, and nothing else.
_WITHOUT_SIGNATURE = Warning


def parameters(call: Any) -> list[list[Any]]:
    """Return the parameters of a function: name, kind and default."""
    return [
        [own.name, own.kind.name.lower(), *([] if own.default is own.empty else [shown(own.default)])]
        for own in inspect.signature(call).parameters.values()
    ]


def shown(value: Any) -> Any:
    """Return a default as a value, or by what it is."""
    if value is None or isinstance(value, str | int | float | tuple):
        return value
    # As dataclasses show a default that is made anew each time.
    return f"<{type(value).__name__}>"


def members(kind: type) -> dict[str, Any]:
    """Return the public methods of a class with their parameters, and its properties."""
    found: dict[str, Any] = {}
    for name in dir(kind):
        own = inspect.getattr_static(kind, name)
        if name.startswith("_") or not _is_ours(kind, name):
            continue
        if isinstance(own, property):
            found[name] = "property"
        elif callable(getattr(kind, name)) and not isinstance(own, type):
            found[name] = parameters(getattr(kind, name))
    return found


def _is_ours(kind: type, name: str) -> bool:
    owner = next((base for base in kind.__mro__ if name in vars(base)), object)
    return owner.__module__.startswith("oversafe")


def _room(room: str, out: Output) -> None:
    module = import_module(f"oversafe.{room}" if room else "oversafe")
    out.number("exports", list(module.__all__))
    for name in module.__all__:
        own = getattr(module, name)
        if isinstance(own, str):
            continue
        if not isinstance(own, type):
            out.number(name, parameters(own))
            continue
        out.number(f"{name}, bases", [b.__name__ for b in own.__mro__ if b.__module__.startswith("oversafe")])
        out.number(f"{name}, members", members(own))
        if not issubclass(own, _WITHOUT_SIGNATURE):
            out.number(name, parameters(own))
        if is_value_object(own):
            out.number(f"{name}, fields", [each.name for each in dataclasses.fields(own)])
        if hasattr(own, "get_params") and not inspect.isabstract(own):
            out.number(f"{name}, defaults", own().get_params())


for _name in ("", *ROOMS):
    case(f"surface/{_name or 'oversafe'}", partial(_room, _name), quick=True)


@case("surface/rooms", quick=True)
def _rooms(out: Output) -> None:
    out.number("names", dir(oversafe))
    for room in ROOMS:
        out.text(room, import_module(f"oversafe.{room}").__doc__ or "")


@case("surface/commands", quick=True)
def _commands(out: Output) -> None:
    """Every command, its options with their defaults, and its help."""
    waiting: list[tuple[str, Any]] = [("oversafe", _command())]
    while waiting:
        name, command = waiting.pop()
        out.text(f"{name}, help", command.help or "")
        out.number(
            f"{name}, parameters",
            [
                [own.name, own.param_type_name, list(own.opts), shown(own.default), bool(own.required)]
                for own in command.params
            ],
        )
        for own in command.params:
            if getattr(own, "help", None):
                out.text(f"{name} {own.name}", own.help)
        waiting += [(f"{name} {each}", inner) for each, inner in getattr(command, "commands", {}).items()]
