"""Where the commands may write: refused before anything is read or charged."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from oversafe.data import Schema


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=60).round(2), "y": ["a", "b", "b"] * 20})
    frame.to_csv(tmp_path / "t.csv", index=False)
    schema = Schema.infer(frame, label="y")
    for column in schema:
        schema = schema.declare(column.name, domain="public", source="a test")
    schema.to_toml(tmp_path / "s.toml")
    (tmp_path / "folder").mkdir()
    (tmp_path / "old.csv").write_text("x,y\n1,a\n")
    (tmp_path / "half.csv.manifest.json").write_text("{}")
    return tmp_path


REFUSED = [
    ("r7.xlsx", "name a .csv file, which Excel opens"),
    ("release", "name a .csv"),
    ("r.csv.json", "name a .csv"),
    ("folder", "is a folder"),
    ("nowhere/r.csv", "'nowhere' is not a folder"),
    ("t.csv", "is the table itself"),
    ("old.csv", "exists already; name another file with --out, or add --overwrite"),
    ("half.csv", "'half.csv.manifest.json' exists already"),
    (f"{'n' * 300}.csv", "cannot be written"),
]


@pytest.mark.parametrize(("out", "message"), REFUSED)
def test_an_output_is_refused_before_a_budget_is_charged(run, table, out, message):
    run("budget", "create", "budget.db", "people", "--epsilon", "5")
    before = {path: path.read_bytes() for path in table.rglob("*") if path.is_file() and path.suffix != ".db"}
    done = run(
        *("protect", "t.csv", "-l", "y", "--schema", "s.toml", "--method", "histograms", "--out", out),
        *("--ledger", "budget.db", "--dataset", "people"),
    )
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1
    (balance,) = json.loads(run("budget", "show", "budget.db", "--json").stdout)
    assert balance["epsilon"] == 5.0 and balance["charges"] == 0
    assert before == {path: path.read_bytes() for path in before}


def test_an_output_is_refused_before_the_table_is_read(run, table):
    for arguments in (
        ("protect", "absent.csv", "-l", "y", "--out", "r.xlsx"),
        ("audit", "absent.csv", "-l", "y", "--report", "folder"),
        ("compare", "absent.csv", "-l", "y", "--report", "folder"),
        ("schema", "init", "absent.csv", "--out", "folder"),
    ):
        done = run(*arguments)
        assert done.returncode == 2 and "absent" not in done.stderr and "--" in done.stderr, arguments


@pytest.mark.parametrize("command", ["audit", "compare"])
@pytest.mark.parametrize(
    ("report", "message"),
    [
        ("page.pdf", "ends with .html"),
        ("folder", "is a folder"),
        ("nowhere/page.html", "not a folder"),
        ("figures.html", "'figures.json' is a folder"),
    ],
)
def test_a_report_is_refused_before_the_work(run, table, command, report, message):
    (table / "figures.json").mkdir()
    done = run(command, "absent.csv", "-l", "y", "--report", report)
    assert done.returncode == 2 and message in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="every folder is writable for root")
def test_a_folder_that_cannot_be_written_to(run, table):
    (table / "folder").chmod(0o500)
    done = run("protect", "t.csv", "-l", "y", "--out", "folder/r.csv")
    assert done.returncode == 2 and "cannot be written to" in done.stderr


def test_an_older_release_is_replaced_only_if_that_is_said(run, table):
    command = (
        "protect",
        "t.csv",
        "-l",
        "y",
        "--schema",
        "s.toml",
        "--method",
        "histograms",
        "--out",
        "old.csv",
    )
    assert run(*command).returncode == 2
    done = run(*command, "--overwrite")
    assert done.returncode == 0, done.stderr
    assert len(pd.read_csv(table / "old.csv")) == 60
    # Not even then is a release to take the place of what it is made from.
    for out, what in (("t.csv", "the table itself"), ("s.csv", "the schema that was given")):
        (table / "s.csv").write_bytes((table / "s.toml").read_bytes())
        given = ("protect", "t.csv", "-l", "y", "--schema", "s.csv", "--out", out, "--overwrite")
        assert what in run(*given).stderr


def test_an_edited_schema_is_kept(run, table):
    (table / "mine.toml").write_text("# edited for hours\n")
    done = run("schema", "init", "t.csv", "-l", "y", "--out", "mine.toml")
    assert done.returncode == 2 and "--overwrite" in done.stderr
    assert (table / "mine.toml").read_text() == "# edited for hours\n"
    assert run("schema", "init", "t.csv", "-l", "y", "--out", "mine.toml", "--overwrite").returncode == 0
    assert Schema.from_toml(table / "mine.toml").label == "y"
    done = run("schema", "init", "t.csv", "-l", "y", "--out", "t.csv", "--overwrite")
    assert done.returncode == 2 and "the table itself" in done.stderr


@pytest.mark.parametrize("command", ["audit", "compare"])
@pytest.mark.parametrize("mine", ["page.html", "page.json"])
def test_a_page_replaces_no_file_of_somebody_else(run, table, command, mine):
    (table / mine).write_text("mine")
    done = run(command, "t.csv", "-l", "y", "--report", "page.html")
    assert done.returncode == 2 and f"{mine!r} exists already" in done.stderr
    assert (table / mine).read_text() == "mine"


def test_a_page_replaces_no_file_that_cannot_be_read(run, table, monkeypatch):
    (table / "page.html").write_text("theirs")
    opened = Path.open

    def refused(path, *args, **settings):
        # Root, as tests may be run, is refused no file.
        if path.name == "page.html":
            raise PermissionError(13, "Permission denied")
        return opened(path, *args, **settings)

    monkeypatch.setattr(Path, "open", refused)
    done = run("audit", "t.csv", "-l", "y", "--report", "page.html")
    assert done.returncode == 2 and "oversafe did not write it" in done.stderr
    monkeypatch.undo()
    assert (table / "page.html").read_text() == "theirs"


@pytest.mark.parametrize("mine", ["report.html", "smote_release.csv"])
def test_the_demonstration_replaces_no_file_of_somebody_else(run, table, mine):
    (table / "folder" / mine).write_text("mine")
    done = run("demo", "--out", "folder")
    assert done.returncode == 2 and "oversafe did not write it" in done.stderr


def test_a_report_is_written_again(run, table):
    for _ in range(2):
        assert run("audit", "t.csv", "-l", "y", "--report", "page.html").returncode == 0


def test_suggested_commands_leave_out_unlabelled_rows_too(run, table):
    frame = pd.read_csv(table / "t.csv")
    frame.loc[3, "y"] = None
    frame.to_csv(table / "gap.csv", index=False)
    done = run("audit", "t.csv", "-l", "y", "--real", "gap.csv", "--drop-unlabelled")
    commands = [
        line for line in done.stdout.splitlines() if line.startswith("  oversafe ") and "init" not in line
    ]
    assert len(commands) == 2 and all("--drop-unlabelled" in command for command in commands)


def test_a_folder_is_called_one(run, table):
    (table / "folder" / "a.csv").write_text("x,y\n1,a\n")
    done = run("audit", "folder", "-l", "y")
    assert done.returncode == 2 and "is a folder" in done.stderr and "a.csv" in done.stderr
