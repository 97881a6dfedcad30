"""The faults of ``python -m tests.mutants`` still fit the source that they were written for."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants import at_random
from tests.mutants.curated import FAST, FAULTS
from tests.mutants.fault import Fault, StaleFault, read_module

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_every_fault_still_applies_and_its_tests_are_there(fault):
    source = read_module(fault.file)
    compile(fault.apply(source), fault.file, "exec")
    assert fault.tests and fault.breaks
    for test in fault.tests:
        file, _, names = test.partition("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        parts = [name.partition("[")[0] for name in names.split("::") if name]
        assert all(f"def {name}(" in text or f"class {name}:" in text for name in parts)


def test_there_are_enough_faults_each_with_a_name_of_its_own():
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 120
    assert {fault.name for fault in FAST} <= {fault.name for fault in FAULTS}
    assert 20 <= len(FAST) <= 30


def fault(old: str, new: str, symbol: str = "privacy.noise:gaussian") -> Fault:
    return Fault("example", symbol, old, new, "nothing", ())


@pytest.mark.parametrize(
    "stale",
    [
        fault("no such piece", "x"),
        fault("rng", "source"),
        fault("scale=sigma", "scale=sigma"),
        fault("x", "y", "privacy.noise:no_such_function"),
        fault("x", "y", "privacy.noise:gaussian.inner"),
    ],
)
def test_a_fault_that_does_not_match_once_or_changes_nothing_is_stale(stale):
    with pytest.raises(StaleFault):
        stale.apply(read_module(stale.file))


def test_random_faults_are_the_same_for_the_same_seed_and_change_one_place():
    drawn = at_random.drawn(40, 7)
    assert [fault.name for fault in drawn] == [fault.name for fault in at_random.drawn(40, 7)]
    assert len({fault.name for fault in drawn}) == 40
    for each in drawn:
        source = read_module(each.file)
        before, after = ast.unparse(ast.parse(source)).splitlines(), each.apply(source).splitlines()
        assert before != after and abs(len(before) - len(after)) < 12
    with pytest.raises(StaleFault):
        drawn[0].apply("x = 1\n")


def test_every_module_that_random_faults_are_drawn_from_has_its_tests():
    assert set(at_random.modules()) <= set(at_random.TESTS)
    assert all((ROOT / test).is_file() for tests in at_random.TESTS.values() for test in tests)
