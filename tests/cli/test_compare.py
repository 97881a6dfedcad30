"""``oversafe compare`` on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from oversafe.data import Schema


def oversafe(*arguments, cwd):
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "from oversafe.cli.program import main; main()",
            "compare",
            *map(str, arguments),
        ],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "COLUMNS": "120"},
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")
    rng = np.random.default_rng(0)
    ill = np.arange(200) < 40
    table = pd.DataFrame(rng.normal(size=(200, 3)) + ill[:, None], columns=list("abc")).round(3)
    table.assign(name=[f"p{i}@example.org" for i in range(200)], state=np.where(ill, "ill", "well")).to_csv(
        folder / "t.csv", index=False
    )
    return folder


def test_page_figures_and_resume(folder):
    options = [
        "t.csv",
        "-l",
        "state",
        "--drop",
        "name",
        "--methods",
        "smote,histograms",
        "-e",
        1,
        "--jobs",
        1,
    ]
    done = oversafe(*options, "--no-membership", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Recommendation" in done.stdout and "comparison.html" in done.stdout
    stored = json.loads((folder / "comparison.json").read_text())
    assert [s["name"] for s in stored["settings"]] == ["smote", "histograms, epsilon 1"]
    assert stored["recommendation"]["setting"] != "smote"
    assert "<svg" in (folder / "comparison.html").read_text()
    cells = {path.name: path.stat().st_mtime_ns for path in (folder / "comparison-cells").iterdir()}
    again = oversafe(*options, "--no-membership", "--json", cwd=folder)
    assert json.loads(again.stdout)["settings"] == stored["settings"]
    assert {path.name: path.stat().st_mtime_ns for path in (folder / "comparison-cells").iterdir()} == cells


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["t.csv", "-l", "state"], "must not carry"),
        (["t.csv", "-l", "state", "--drop", "name", "-m", "smoke"], "is not known"),
        (["t.csv", "-l", "state", "--drop", "state"], "cannot be left out"),
        (["t.csv", "-l", "state", "--drop", "nobody"], "no column 'nobody'"),
        (["t.csv", "-l", "state", "--report", "page.pdf"], "ends with .html"),
        (
            ["t.csv", "-l", "state", "--drop", "name", "--epsilons", "one"],
            "write numbers above 0 with commas",
        ),
        (["t.csv", "-l", "state", "--drop", "name", "--score", "gini"], "use 'auc'"),
    ],
)
def test_mistakes_are_told_in_one_sentence(folder, arguments, message):
    done = oversafe(*arguments, cwd=folder)
    assert done.returncode == 2 and message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_comparison_is_about_records(folder):
    table = pd.read_csv(folder / "t.csv").assign(name=[f"P{i // 4}" for i in range(200)])
    table.to_csv(folder / "visits.csv", index=False)
    Schema.infer(table, label="state", person="name").to_toml(folder / "visits.toml")
    options = ["visits.csv", "-l", "state", "--schema", "visits.toml", "--no-membership", "--jobs", 1]
    done = oversafe(*options, "--report", "v.html", cwd=folder)
    assert done.returncode == 2 and "the promise of 'histograms' would be for every record" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1 and not (folder / "v.html").exists()
    # Without a promise the column is left out.
    done = oversafe(*options, "--report", "v.html", "--methods", "random-over", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads((folder / "v.json").read_text())["table"]["columns"] == 3
