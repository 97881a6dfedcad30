"""Code that is shown to a reader runs."""

import doctest
import importlib
import pkgutil
import shlex
from pathlib import Path

import pytest

import oversafe
from oversafe._core.errors import InputError
from oversafe.cli.program import _command
from oversafe.data import Schema, load_dataset
from oversafe.protect import SMOTE

MODULES = [
    module.name
    for module in pkgutil.walk_packages(oversafe.__path__, "oversafe.")
    if module.name != "oversafe.cli.program"
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


CHECKOUT = Path(__file__).parents[1]
PAGES = sorted((CHECKOUT / "docs").glob("*.md"))

# What the text before the first block says is there already.
SETUP = {
    "learning.md": "X_new = X",
    "membership.md": (
        "from oversafe.protect import HistogramSynthesizer\n"
        "schema = schema.drop([name for name in X.columns if name != 'mean_radius'])\n"
        "synthesizer = HistogramSynthesizer(epsilon=1.0, schema=schema)\n"
    ),
}
# They play hundreds of games on data sets that are not part of the package.
LONG = {"experiments.md": [pytest.mark.data, pytest.mark.slow]}


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """A folder with the files that the pages speak of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OVERSAFE_LEDGER_KEY", "ab" * 32)
    monkeypatch.setenv("OVERSAFE_KEYS", str(tmp_path / "keys"))
    monkeypatch.setenv("MPLBACKEND", "agg")
    X, y = load_dataset("breast_cancer")
    table = X.assign(diagnosis=y)
    for name in ("original.csv", "patients.csv"):
        table.to_csv(name, index=False)
    X_new, y_new = SMOTE(random_state=0).fit_resample(X, y)
    X_new.assign(diagnosis=y_new).to_csv("release.csv", index=False)
    _public_schema(table).to_toml("schema.toml")
    visits = table.assign(pid=[f"P{i // 7}" for i in range(len(table))])
    visits.to_csv("visits.csv", index=False)
    Schema.infer(visits, label="diagnosis", person="pid").to_toml("visits.toml")
    return tmp_path


def _public_schema(table):
    schema = Schema.infer(table, label="diagnosis")
    for column in schema:
        schema = schema.declare(column.name, domain="public", source="a test")
    return schema


def _blocks(page, *languages):
    """The fenced blocks of a page in some languages, in their order."""
    found, inside = [], None
    for line in page.read_text(encoding="utf-8").splitlines(keepends=True):
        if inside is None and line.startswith("```"):
            inside = (line[3:].strip(), [])
        elif inside is not None and line.startswith("```"):
            if inside[0] in languages:
                found.append("".join(inside[1]))
            inside = None
        elif inside is not None:
            inside[1].append(line)
    return found


def _commands(page):
    """The commands of oversafe on a page, with whether the page shows that it refuses them.

    Those in blocks of the shell (sh) are not run: they install something, or take hours.
    """
    for block in _blocks(page, "", "console"):
        lines = block.replace("\\\n", " ").splitlines()
        for at, line in enumerate(lines):
            command = line.removeprefix("$ ").strip()
            if command.startswith("oversafe ") and not command.startswith("oversafe app"):
                refused = at + 1 < len(lines) and lines[at + 1].startswith("oversafe: ")
                yield command, refused


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=LONG.get(page.name, [])) for page in PAGES if _blocks(page, "python")],
    ids=lambda page: page.name,
)
def test_the_python_of_a_page(page, folder):
    """The blocks of a page run one after the other, as a reader would type them."""
    X, y = load_dataset("breast_cancer")
    # These pages bring their own.
    own = page.name in ("budget.md", "keys.md", "synthesizers.md")
    names = {} if own else {"X": X, "y": y, "schema": Schema.from_toml("schema.toml")}
    exec(SETUP.get(page.name, ""), names)
    for block in _blocks(page, "python"):
        exec(compile(block, page.name, "exec"), names)


@pytest.mark.parametrize(
    "page",
    [page for page in [CHECKOUT / "README.md", *PAGES] if list(_commands(page))],
    ids=lambda page: page.name,
)
def test_the_commands_of_a_page(page, folder):
    table = load_dataset("breast_cancer")
    for command, refused in _commands(page):
        arguments = shlex.split(command)[1:]
        if refused:
            with pytest.raises(InputError):
                _command().main(arguments, standalone_mode=False)
            continue
        if arguments[:2] == ["schema", "init"]:
            # The reader has none yet, and one that exists would be kept.
            Path("schema.toml").unlink(missing_ok=True)
        # 1 is a gate that did not let a release through, which is what the release of this test deserves.
        assert _command().main(arguments, standalone_mode=False) in (None, 0, 1), command
        if arguments[:2] == ["schema", "init"]:
            # A person corrects the file before it is used.
            _public_schema(table[0].assign(diagnosis=table[1])).to_toml("schema.toml")


def test_the_readmes_python(monkeypatch, tmp_path, capsys):
    blocks = _blocks(CHECKOUT / "README.md", "python")
    assert blocks
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    assert "EXPOSED" in capsys.readouterr().out
    assert (tmp_path / "report.html").exists()
