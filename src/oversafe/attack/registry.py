"""Every attack as audits run it, by the name that results and reports have."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from inspect import signature
from typing import Any, get_args

from oversafe import attack
from oversafe._core.errors import InputError
from oversafe._core.plugins import load
from oversafe.attack.base import About, Attack, AttackResult, Material, Threat

# Other packages name their attacks in this group of entry points; audits run them as they run the user's own.
PLUGINS = "oversafe.attacks"
# Attacks on the same tables must say the same thing twice.
AUDIT_SEED = 0


class _Unknown(Attack):
    """An attack of which nothing is known but its result."""

    def run(self, *args: Any, **kwargs: Any) -> AttackResult:
        raise NotImplementedError


UNKNOWN = _Unknown()


@cache
def all_attacks() -> tuple[Attack, ...]:
    """Return every attack of oversafe, in the order in which audits run them."""
    return tuple(variant for kind in attack.ATTACKS for variant in kind.variants(AUDIT_SEED))


@cache
def on_releases() -> tuple[Attack, ...]:
    """Return those that need no more than tables."""
    return tuple(own for own in all_attacks() if "generator" not in own.about.needs)


@cache
def _by_title() -> dict[str, Attack]:
    return {own.title(): own for own in all_attacks()}


def attack_named(name: str) -> Attack:
    """Return an attack by the name that its results have; one that is not oversafe's says nothing about itself."""
    return _by_title().get(name, UNKNOWN)


def needing(material: Material, without: Material | None = None) -> list[str]:
    """Return the classes that need a material, and not another one, in the order of what they threaten."""
    order = get_args(Threat)
    found = [a for a in on_releases() if material in a.about.needs and without not in a.about.needs]
    found.sort(key=lambda own: order.index(own.about.threat))
    return list(dict.fromkeys(type(own).__name__ for own in found))


def about(result: AttackResult) -> About:
    """Return what the attack that found something says about itself."""
    return attack_named(result.name).about


def check_attacks(attacks: Sequence[Any] | None) -> tuple[Any, ...]:
    """Return somebody's own attacks, or say what one of them lacks."""
    if isinstance(attacks, Attack):
        raise InputError(
            f"attacks is a single {type(attacks).__name__}; give a list: [{type(attacks).__name__}()]"
        )
    given = tuple(attacks or ())
    for own in given:
        if isinstance(own, type):
            raise InputError(f"an attack is the class {own.__name__}; give an object of it: {own.__name__}()")
        name = type(own).__name__
        if not isinstance(own, Attack):
            raise InputError(
                f"an attack is of type {name}, which is not an Attack; inherit from oversafe.attack.Attack"
            )
        if not isinstance(given_about := own.about, About):
            raise InputError(
                f"the attack {name} says {given_about!r} about itself; give an oversafe.attack.About, or nothing"
            )
        try:
            signature(own.run).bind(None, None, holdout=None)
        except TypeError:
            raise InputError(
                f"the attack {name} has run{signature(own.run)}; here run(release, real, holdout=None) is called"
            ) from None
    return given


def own_attacks(given: Any) -> tuple[Any, ...]:
    """Return the user's attacks and those that installed packages bring."""
    brought = [own for point in entry_points(group=PLUGINS) for own in _plugin(point)]
    return *check_attacks(given), *check_attacks(brought)


def _plugin(point: EntryPoint) -> tuple[Attack, ...]:
    kind = load(point.name, point)
    if not isinstance(kind, type) or not issubclass(kind, Attack):
        raise InputError(
            f"the plugin {point.name!r} names {kind!r}; name a class that inherits from oversafe.attack.Attack"
        )
    try:
        return kind.variants(AUDIT_SEED)
    except TypeError as error:
        raise InputError(
            f"the plugin {point.name!r} names {kind.__name__}, which cannot be made without settings ({error}); give "
            "them defaults"
        ) from None
