"""Faults that break a promise, each with the tests that must notice it.

One more is a line in one of these modules; a new module is named in ``_MODULES``.
"""

from __future__ import annotations

from tests.mutants.curated import budgets, evidence, ledger, noise, promises, sensitivities
from tests.mutants.fault import Fault

_MODULES = (noise, sensitivities, budgets, promises, ledger, evidence)
FAULTS: tuple[Fault, ...] = tuple(fault for module in _MODULES for fault in module.FAULTS)
FAST: tuple[Fault, ...] = ()
