"""Faults that break a promise, each with the tests that must notice it."""

from __future__ import annotations

from tests.mutants.fault import Fault

FAULTS: tuple[Fault, ...] = ()
FAST: tuple[Fault, ...] = ()
