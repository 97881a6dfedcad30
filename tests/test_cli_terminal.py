"""What a person sees of the command line: help, progress, a summary to paste, completion."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from oversafe.auditing import Audit, audit
from oversafe.cli.options import complete_label
from oversafe.cli.program import _command, app
from oversafe.data import load_dataset
from oversafe.protect import SMOTE
from oversafe.report.terminal import as_text, summary

RUN = "from oversafe.cli.program import main; main()"


def oversafe(*arguments, cwd, **environment):
    return subprocess.run(
        [sys.executable, "-c", RUN, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "COLUMNS": "80", **environment},
        check=False,
    )


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> Path:
    X, y = load_dataset("breast_cancer")
    X_new, y_new = SMOTE(random_state=0).fit_resample(X, y)
    path = tmp_path_factory.mktemp("tables") / "release.csv"
    X_new.assign(diagnosis=y_new).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def found(release) -> Audit:
    return audit(release, "diagnosis")


def commands(command=None, path=()):
    command = _command() if command is None else command
    inner = getattr(command, "commands", None)
    if inner is None:
        yield " ".join(path), command
    else:
        for name, each in inner.items():
            yield from commands(each, (*path, name))


def test_the_help_fits_one_screen(tmp_path):
    lines = oversafe("--help", cwd=tmp_path).stdout.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize(
    ("path", "command"), list(commands()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_command_has_two_examples_of_itself(path, command):
    text, _, examples = command.help.partition("\b\nExamples:\n")
    lines = [line.strip() for line in examples.splitlines()]
    assert text.strip() and len(lines) >= 2
    assert all(line.startswith(f"oversafe {path} ") or line == f"oversafe {path}" for line in lines)


def test_every_command_shows_its_examples_on_their_own_lines(tmp_path):
    shown = oversafe("audit", "--help", cwd=tmp_path).stdout
    assert re.search(r"^ +oversafe audit release.csv --label y$", shown, flags=re.MULTILINE)


def test_the_summary_can_be_pasted(found):
    text = as_text(found)
    lines = text.splitlines()
    assert lines[0].startswith("EXPOSED: 15 real records")
    assert "Privacy audit of release.csv (600 rows, 10 columns and the label) alone." in text
    assert text.isascii() and max(len(line) for line in lines if "oversafe" not in line) <= 76
    assert "  oversafe protect TABLE.csv --label diagnosis" in text
    assert str(found) == text == summary(found).plain


def test_colours_only_in_a_terminal(found):
    import io

    from rich.console import Console

    shown = {}
    for terminal in (False, True):
        console = Console(
            file=io.StringIO(), force_terminal=terminal, color_system="standard" if terminal else None
        )
        console.print(summary(found), soft_wrap=True)
        shown[terminal] = console.file.getvalue()
    assert "\x1b" not in shown[False] and "\x1b[1;31mEXPOSED" in shown[True]


def test_json_alone_is_printed(release, tmp_path):
    done = oversafe("audit", release, "--label", "diagnosis", "--json", cwd=tmp_path)
    figures = json.loads(done.stdout)
    assert figures["verdict"]["level"] == "exposed" and done.stderr == ""
    assert figures["settings"]["command"] == f"oversafe audit {release} --label diagnosis"


def test_protect_and_schema_check_speak_json(release, tmp_path):
    schema = tmp_path / "schema.toml"
    assert (
        oversafe("schema", "init", release, "-l", "diagnosis", "--out", schema, cwd=tmp_path).returncode == 0
    )
    checked = oversafe("schema", "check", release, "--schema", schema, "--json", cwd=tmp_path)
    facts = json.loads(checked.stdout)
    assert facts["columns"] == 11 and "mean_radius" in facts["from_the_data"]
    out = tmp_path / "protected.csv"
    arguments = (
        "protect",
        release,
        "-l",
        "diagnosis",
        "--method",
        "histograms",
        "--epsilon",
        1,
        "--out",
        out,
    )
    made = json.loads(oversafe(*arguments, "--json", cwd=tmp_path).stdout)
    assert made["guarantee"]["epsilon"] == 1 and made["release"] == str(out) and made["rows"] == 600


def test_a_terminal_sees_progress_and_the_time_left(release, tmp_path):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, "audit", str(release), "--label", "diagnosis"],
        cwd=tmp_path,
        stdout=theirs,
        stderr=theirs,
        stdin=theirs,
        env={**os.environ, "COLUMNS": "120", "TERM": "xterm"},
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux's way to say that the other side is closed
            break
        if not part:
            break
        seen += part
    os.close(ours)
    assert process.wait() == 0
    text = seen.decode(errors="replace")
    assert "ReconSMOTE on class" in text and "left" in text and "EXPOSED" in text


def test_progress_grows_and_stays_within_its_bounds(release):
    steps = []
    audit(release, "diagnosis", on_progress=lambda step, share: steps.append((step, share)))
    shares = [share for _, share in steps]
    assert shares[0] == 0 and shares == sorted(shares) and shares[-1] <= 1
    assert len(shares) >= 3 and shares[-1] > 0.4


def test_the_shell_completes_commands(tmp_path):
    done = oversafe(
        cwd=tmp_path, _OVERSAFE_COMPLETE="complete_bash", COMP_WORDS="oversafe au", COMP_CWORD="1"
    )
    assert "audit" in done.stdout.split()


def test_the_shell_completes_columns(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("age;ward;diagnosis\n1;2;3\n", encoding="utf-8")
    context = typer.Context(typer.main.get_command(app))
    context.params = {"release": str(table)}
    assert complete_label(context, "") == ["age", "ward", "diagnosis"]
    assert complete_label(context, "w") == ["ward"]
    context.params = {"table": str(tmp_path / "missing.csv")}
    assert complete_label(context, "") == []
