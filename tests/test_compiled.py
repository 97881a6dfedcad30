"""Compilation keeps its machine code where it can, and leaves nothing behind where it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from oversafe._core import compiled as compiled_module
from oversafe._core.compiled import compiled

KERNEL = """
from oversafe._core.compiled import compiled

@compiled
def double(x):
    return 2 * x
"""
SCRIPT = """
import numba, kernel
assert kernel.double(21) == 42
assert not numba.config.CACHE_DIR, numba.config.CACHE_DIR
print(kernel.double.stats.cache_path)
print(sum(kernel.double.stats.cache_hits.values()))
"""


def run(folder: Path, home: Path, temporary: Path) -> tuple[Path, int]:
    """Compile the kernel in a process of its own; return its cache folder and the number of cache hits."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    environment |= {"HOME": str(home), "XDG_CACHE_HOME": str(home), "TMPDIR": str(temporary)}
    # The package may be installed where HOME says; a path keeps it importable.
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    where, hits = done.stdout.split()
    return Path(where), int(hits)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A folder with the kernel, a home, and a folder for temporary files."""
    source, home, temporary = tmp_path / "source", tmp_path / "home", tmp_path / "temporary"
    for folder in (source, home, temporary):
        folder.mkdir()
    (source / "kernel.py").write_text(KERNEL)
    return source, home, temporary


def test_second_process_reuses_the_code_beside_the_source(folders: tuple[Path, Path, Path]) -> None:
    source, home, temporary = folders
    assert run(source, home, temporary) == (source / "__pycache__", 0)
    assert run(source, home, temporary) == (source / "__pycache__", 1)


def test_code_goes_to_the_users_folder_when_the_source_cannot_be_written(
    folders: tuple[Path, Path, Path],
) -> None:
    source, home, temporary = folders
    # A file in the place of a folder stops root as well, whom permissions do not.
    (source / "__pycache__").write_text("")
    where, _ = run(source, home, temporary)
    assert home in where.parents


def test_temporary_folder_when_nothing_can_be_written_and_none_left_behind(
    folders: tuple[Path, Path, Path],
) -> None:
    source, home, temporary = folders
    (source / "__pycache__").write_text("")
    (home / "file").write_text("")
    where, hits = run(source, home / "file" / "nowhere", temporary)
    assert temporary in where.parents
    assert hits == 0
    assert list(temporary.iterdir()) == []


def test_forked_child_leaves_the_folder_to_its_parent(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    compiled_module._remove(str(folder), owner=os.getpid() + 1)
    assert folder.exists()
    compiled_module._remove(str(folder), owner=os.getpid())
    assert not folder.exists()


def test_other_failures_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(**settings: object) -> object:
        def decorate(function: object) -> object:
            raise RuntimeError("the compiler is broken")

        return decorate

    monkeypatch.setattr(numba, "njit", broken)
    with pytest.raises(RuntimeError, match="the compiler is broken"):
        compiled(lambda x: x)


def test_result_is_that_of_the_function() -> None:
    def total(values):
        result = 0.0
        for value in values:
            result += value
        return result

    values = np.arange(10.0)
    assert compiled(total)(values) == total(values)
