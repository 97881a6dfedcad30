"""The protectors by the names that they give themselves, and what they say of themselves."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from sklearn.base import BaseEstimator

from oversafe import protect
from oversafe._core.errors import InputError
from oversafe._core.plugins import load
from oversafe.data.schema import Schema
from oversafe.privacy.ledger.ledger import DatasetLedger
from oversafe.privacy.persons import check_persons
from oversafe.protect.base import Protector
from oversafe.protect.explanations import Explanation
from oversafe.protect.external import check_class, own_method

# Other packages name their methods in this group of entry points.
PLUGINS = "oversafe.protectors"
# The plugins that were warned of: they are looked up several times in a process.
_warned: set[tuple[str, str]] = set()

# What the room exports, by the names that the classes give themselves, in that order: the recommended method first.
METHODS: Mapping[str, type[Protector]] = {
    kind.method_name: kind
    for kind in (getattr(protect, name) for name in protect.__all__)
    if isinstance(kind, type) and issubclass(kind, Protector) and kind.method_name
}
RECOMMENDED = next(iter(METHODS))


def plugins() -> dict[str, EntryPoint]:
    """Return the methods that installed packages bring; none takes the place of one of ours."""
    found = {point.name: point for point in entry_points(group=PLUGINS)}
    for name in sorted(METHODS.keys() & found.keys()):
        value = found.pop(name).value
        if (name, value) not in _warned:
            _warned.add((name, value))
            warnings.warn(
                f"the plugin {name!r} ({value}) has the name of a method of oversafe's own and is not used",
                stacklevel=2,
            )
    return found


def method_names() -> list[str]:
    """Return the names of all methods, ours first."""
    return [*METHODS, *plugins()]


def check_method(method: str) -> None:
    """Refuse a method that does not exist."""
    if method not in METHODS and method not in plugins():
        raise InputError(f"the method {method!r} is not known; use one of {', '.join(method_names())}")


def method_class(method: str) -> type[Any]:
    """Return the class of a method, which is loaded now if a plugin brings it."""
    check_method(method)
    if method in METHODS:
        return METHODS[method]
    point = plugins()[method]
    kind = load(method, point)
    check_class(method, kind)
    return kind


def promises(method: Any) -> bool:
    """Whether a method, by its name or an object, has a promise; of others' methods only one for persons is known."""
    kind = method_class(method) if isinstance(method, str) else type(method)
    settings = kind._get_param_names() if issubclass(kind, BaseEstimator) else ()
    return "rows_per_person" in settings or getattr(kind, "_promises_records", False)


def settings_of(method: str) -> dict[str, Any]:
    """Return the settings of a method with their defaults, but for those that every command has."""
    parameters = inspect.signature(method_class(method)).parameters
    return {
        name: parameter.default
        for name, parameter in parameters.items()
        if name not in ("schema", "random_state", "n_jobs", "ledger")
    }


def explain(method: str) -> str:
    """Return what a method does, promises and does not promise, and the settings it takes."""
    kind = method_class(method)
    lines = [f"{method} ({kind.__name__})", "", *explained(method)]
    settings = [f"{name}={default!r}" for name, default in settings_of(method).items()]
    lines += ["", "Settings (change one with --set NAME=VALUE): " + ", ".join(settings)]
    return "\n".join(lines)


def explained(method: str) -> list[str]:
    """Return what a method does, promises and does not promise, in lines with empty ones between them."""
    kind = method_class(method)
    known = getattr(kind, "explanation", None)
    if not isinstance(known, Explanation):
        return [(inspect.getdoc(kind) or kind.__name__).partition("\n\n")[0]]
    return [
        f"What it does: {known.does}",
        "",
        f"What it promises: {known.promises}",
        "",
        f"What it does not promise: {known.does_not}",
    ]


def make_protector(
    method: str,
    *,
    epsilon: float | None = None,
    schema: Schema | None = None,
    rows_per_person: int | None = None,
    balance: bool = False,
    random_state: int | None = None,
    quasi_identifiers: list[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    ledger: DatasetLedger | None = None,
) -> Any:
    """Return a protector by name, given what it has a use for; ``settings`` are parameters by their names.

    A schema that says whose row each is needs ``rows_per_person`` where the method has a promise.
    """
    kind = method_class(method)
    accepted = kind._get_param_names()
    if epsilon is not None and "epsilon" not in accepted:
        raise InputError(f"the method {method!r} takes no epsilon; leave it out, or use {RECOMMENDED!r}")
    if quasi_identifiers and "quasi_identifiers" not in accepted:
        raise InputError(f"the method {method!r} takes no quasi-identifiers; leave them out")
    if balance and "sampling_strategy" not in accepted:
        raise InputError(f"the method {method!r} cannot balance the classes; leave --balance out")
    if rows_per_person is not None:
        if "rows_per_person" not in accepted:
            raise InputError(
                f"the method {method!r} does not limit the rows of a person; leave --rows-per-person out, or use "
                f"{RECOMMENDED!r}"
            )
        if (set_too := (settings or {}).get("rows_per_person", rows_per_person)) != rows_per_person:
            raise InputError(
                f"--rows-per-person {rows_per_person} and --set rows_per_person={set_too} were given; give one of them"
            )
    wanted: dict[str, Any] = {
        "epsilon": epsilon,
        "schema": schema,
        "rows_per_person": rows_per_person,
        "random_state": random_state,
        "quasi_identifiers": quasi_identifiers or None,
        "sampling_strategy": "auto" if balance else None,
        "ledger": ledger,
    }
    parameters = {k: v for k, v in wanted.items() if k in accepted and v is not None}
    for name, value in (settings or {}).items():
        if name not in accepted or name in ("schema", "random_state"):
            known = [n for n in accepted if n not in ("schema", "random_state")]
            raise InputError(f"the method {method!r} has no setting {name!r}; it has {', '.join(known)}")
        parameters[name] = value
    if promises(method):
        takes, rows = "rows_per_person" in accepted, parameters.get("rows_per_person")
        check_persons(f"the method {method!r}", schema, rows, takes_persons=takes)
    return own_method(method, kind(**parameters))
