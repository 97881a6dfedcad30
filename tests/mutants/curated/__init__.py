"""Faults that break a promise, each with the tests that must notice it.

One more is a line in one of these modules; a new module is named in ``_MODULES``.
"""

from __future__ import annotations

from tests.mutants.curated import budgets, evidence, ledger, noise, promises, sensitivities, vouching
from tests.mutants.fault import Fault

_MODULES = (noise, sensitivities, budgets, promises, ledger, vouching, evidence)
FAULTS: tuple[Fault, ...] = tuple(fault for module in _MODULES for fault in module.FAULTS)
# The most telling ones whose tests are quick, for every run of the continuous integration.
_FAST = {
    "laplace-seeded", "laplace-opendp", "gaussian-seeded", "threshold-lower-seeded", "linear-objective-scale",
    "linear-drawn-in-the-objective", "linear-drawn-on-the-output", "counts-l1-replaced", "counts-l2-of-a-person",
    "counts-of-one-table", "norm-not-shortened", "pay-laplace", "zcdp-rho", "compose-epsilons", "event-approximate",
    "filter-sum-renyi", "weaken", "learner-seeded", "person-one-row-more", "mac-without-previous", "verify-sums",
    "overdraft-allowed", "audit-tail", "wilson-confidence", "verdict-weak", "verdict-nominal", "manifest-of-other-bytes",
}  # fmt: skip
FAST: tuple[Fault, ...] = tuple(fault for fault in FAULTS if fault.name in _FAST)
