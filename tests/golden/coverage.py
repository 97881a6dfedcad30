"""Which public names have no golden case."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from tests.golden.case import Case

ROOMS = (
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
)
# Nothing to run: they are in the golden output of their room's surface, and in the results of others.
NOT_RUN = {
    "attack.About": "what an attack says about itself",
    "attack.Attack": "a base class",
    "learn.PrivateLearner": "a base class",
    "protect.Protector": "a base class",
    "protect.Sampler": "a base class",
    "protect.Synthesizer": "a base class",
    "papers.reproduce": "the papers' tables take minutes, and have tests against the published figures",
    "papers.Reproduction": "the result of reproduce",
}


def public_names() -> list[str]:
    """Return what the rooms export, as ``room.name``."""
    return [f"{room}.{name}" for room in ROOMS for name in import_module(f"oversafe.{room}").__all__]


def uncovered(cases: Mapping[str, Case]) -> list[str]:
    """Return public names that no case covers, and names that cases claim to cover and that are none."""
    covered = {name for own in cases.values() for name in own.covers}
    names = public_names()
    unknown = sorted((covered | NOT_RUN.keys()) - set(names))
    return [
        *(n for n in names if n not in covered and n not in NOT_RUN),
        *(f"{n} (not public)" for n in unknown),
    ]
