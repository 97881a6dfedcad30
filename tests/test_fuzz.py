"""Hostile input: a little of it in every run, the same each time; ``python -m tests.fuzz`` for more."""

import random

import pytest

from tests.fuzz.targets import TARGETS, run

CASES = {"reading": 300, "schemas": 300, "inferring": 60, "protecting": 40, "attacking": 40, "learning": 60,
         "auditing": 20, "commanding": 10, "replay": 60}  # fmt: skip


@pytest.mark.parametrize("name", TARGETS)
def test_hostile_input_is_used_or_refused_in_one_sentence(name):
    rng = random.Random(name)
    done = [run(name, rng.randbytes(rng.choice((16, 64, 256)))) for _ in range(CASES[name])]
    # Both happen, or nothing was tried.
    assert any(done) and (not all(done) or name == "commanding")
