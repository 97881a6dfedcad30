"""Code that is shown to a reader runs."""

import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import oversafe

CHECKOUT = Path(__file__).parents[1]
PAGES = sorted(
    page
    for page in (CHECKOUT / "docs").rglob("*.md")
    if "_build" not in page.parts
    and re.search(r"^```(python|console)$", page.read_text(encoding="utf-8"), re.M)
)
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
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    assert "EXPOSED" in capsys.readouterr().out
    assert (tmp_path / "report.html").exists()


def steps(text):
    """Yield what a page does, in order: ("python", code) or ("console", command, whether it shows an error).

    Lines that begin with "% setup: " are Python that a reader does not see; a block after a line "% not run: reason" is
    left out.
    """
    pattern = re.compile(
        r"^% not run: .*\n\n*```\w+\n(?:.*\n)*?```$|^% setup: (?P<setup>.*)$"
        r"|^```(?P<kind>python|console)\n(?P<code>(?:.*\n)*?)```$",
        flags=re.MULTILINE,
    )
    for match in pattern.finditer(text):
        if match["setup"] is not None:
            yield "python", match["setup"]
        elif match["kind"] == "python":
            yield "python", match["code"]
        elif match["kind"] == "console":
            for part in re.split(r"^\$ ", match["code"], flags=re.MULTILINE)[1:]:
                command, *output = re.sub(r"\\\n\s*", "", part).splitlines()
                yield "console", command, any(line.startswith("oversafe: ") for line in output)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT / "docs")))
def test_a_pages_code(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    names = {}
    for kind, code, *fails in steps(page.read_text(encoding="utf-8")):
        if kind == "python":
            exec(compile(code, str(page), "exec"), names)
            continue
        done = subprocess.run(code, shell=True, capture_output=True, text=True)
        assert (done.returncode == 2) is any(fails), f"{code}\n{done.stdout}{done.stderr}"
        if not any(fails):
            assert done.returncode == 0, f"{code}\n{done.stdout}{done.stderr}"


def test_pages_are_read_in_order():
    text = """
% setup: x = 1

```python
y = x + 1
```

% not run: needs a server

```python
reach("elsewhere")
```

```console
$ oversafe one \\
      --more
Fine.
$ oversafe two
oversafe: that is wrong; nothing was done
```
"""
    assert list(steps(text)) == [
        ("python", "x = 1"),
        ("python", "y = x + 1\n"),
        ("console", "oversafe one --more", False),
        ("console", "oversafe two", True),
    ]
