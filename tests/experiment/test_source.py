"""Code that does something else has another digest; code that only looks different has not."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

from oversafe.experiment.source import is_settled, source_digest
from oversafe.experiment.store import cell_key, plain
from oversafe.protect import SMOTE

MODULE = """
from sklearn.base import BaseEstimator
import {helpers} as helpers
FACTOR = 2

class Base(BaseEstimator):
    def scale(self, X):
        return X * FACTOR

class Mine(Base):
    def __init__(self, noise=0.1):
        self.noise = noise

    def fit_resample(self, X, y):
        kinds = {{"a", "b", "c", "d"}}
        return helpers.jitter(self.scale(X), self.noise), y

class Other:
    pass
"""
HELPERS = """
def jitter(X, noise):
    return X + noise
"""


@pytest.fixture
def written(tmp_path: Path, monkeypatch):
    """Return a function that writes the module anew and returns its class as a fresh import has it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    helpers = "own_helpers_of_a_test"

    def write(change=("", ""), helper_change=("", "")):
        (tmp_path / "own_method_of_a_test.py").write_text(MODULE.format(helpers=helpers).replace(*change))
        (tmp_path / f"{helpers}.py").write_text(HELPERS.replace(*helper_change))
        for name in ("own_method_of_a_test", helpers):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("own_method_of_a_test").Mine

    yield write
    for name in ("own_method_of_a_test", helpers):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("change", "helper_change"),
    [
        (("FACTOR = 2", "FACTOR = 3"), ("", "")),
        (("X * FACTOR", "X / FACTOR"), ("", "")),
        (("noise=0.1", "noise=0.2"), ("", "")),
        (('"d"', '"e"'), ("", "")),
        (("", ""), ("X + noise", "X - noise")),
    ],
)
def test_an_edit_is_noticed(written, change, helper_change):
    before = source_digest(written())
    assert source_digest(written()) == before
    assert source_digest(written(change, helper_change)) != before


def test_what_does_not_matter_is_not(written):
    before = source_digest(written())
    assert source_digest(written(("    pass", "    something = 1\n\ndef new():\n    return 5"))) == before
    assert source_digest(written(("FACTOR = 2", "# The factor.\n\nFACTOR = 2"))) == before


def test_the_same_in_every_process(written, tmp_path: Path):
    digest = source_digest(written())
    command = (
        "from own_method_of_a_test import Mine\nfrom oversafe.experiment.source import source_digest\n"
        "print(source_digest(Mine))"
    )
    for seed in ("1", "2"):
        path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
        done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True,
                              env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed})  # fmt: skip
        assert done.stdout.strip() == digest


def test_cells_of_an_edited_method_are_others(written):
    before = cell_key("f", "1", {"protector": written()()})
    assert cell_key("f", "1", {"protector": written()()}) == before
    assert cell_key("f", "1", {"protector": written(("X * FACTOR", "X"))()}) != before


def test_oversafe_and_its_libraries_are_known_by_version():
    assert is_settled(SMOTE) and is_settled(BaseEstimator) and is_settled(Path)
    assert "code" not in plain(SMOTE())

    class Local(SMOTE):
        pass

    assert not is_settled(Local) and "code" in plain(Local())
