"""Code that is shown to a reader runs."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import oversafe

MODULES = [
    module.name
    for module in pkgutil.walk_packages(oversafe.__path__, "oversafe.")
    if module.name != "oversafe.cli"
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_the_readmes_python(monkeypatch, tmp_path, capsys):
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    assert "EXPOSED" in capsys.readouterr().out
    assert (tmp_path / "report.html").exists()
