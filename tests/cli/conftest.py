"""The command line in the tests' own process, which spares the imports."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from oversafe.cli.program import main


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in a folder of its own, with a configuration folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["oversafe", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return SimpleNamespace(returncode=ended.value.code or 0, stdout=said.out, stderr=said.err)

    return run
