"""A spreadsheet's export on the command line: totals lines, misspelt names, schemas edited by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from oversafe.data import Schema, read_table
from oversafe.releasing.tables import unlabelled


@pytest.fixture
def folder(tmp_path):
    """A German export with an ID column and a totals line, as Windows writes it."""
    rng = np.random.default_rng(0)
    lines = ["Kennung;Größe;Kosten;Diagnose"]
    for i in range(90):
        size = f"{rng.normal(170, 8):.1f}".replace(".", ",")
        lines.append(f"P{100 + i};{size};{rng.integers(100, 999)},50;{'krank' if i % 3 else 'gesund'}")
    text = "\r\n".join(lines) + "\r\n"
    (tmp_path / "clean.csv").write_bytes(text.encode("cp1252"))
    (tmp_path / "export.csv").write_bytes((text + "Summe;;45.678,90;\r\n").encode("cp1252"))
    return tmp_path


def refused(done, *parts):
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done
    for part in parts:
        assert part in done.stderr, (part, done.stderr)


@pytest.mark.parametrize(
    "command",
    [
        ("protect", "export.csv", "-l", "Diagnose", "--drop", "Kennung", "--out", "r.csv"),
        ("audit", "export.csv", "-l", "Diagnose"),
        ("compare", "export.csv", "-l", "Diagnose", "--drop", "Kennung"),
    ],
)
def test_a_totals_line_is_named_with_its_line(run, folder, command):
    refused(
        run(*command),
        "1 row has no label in 'Diagnose' (line 92 of the file); it looks like a totals line",
        "--drop-unlabelled",
    )


def test_a_totals_line_is_left_out_if_that_is_said(run, folder):
    done = run(
        *("protect", "export.csv", "-l", "Diagnose", "--drop", "Kennung", "--drop-unlabelled"),
        *("--method", "random-over", "--out", "r.csv"),
    )
    assert done.returncode == 0, done.stderr
    release = read_table(folder / "r.csv")
    assert len(release) == 120 and release["Kosten"].max() < 1000 and release["Diagnose"].notna().all()


def test_a_schema_is_made_without_the_totals_line(run, folder):
    done = run("schema", "init", "export.csv", "-l", "Diagnose", "--out", "s.toml")
    assert done.returncode == 0 and "looks like a totals line" in done.stderr
    assert 'domain = "public"' in done.stdout
    schema = Schema.from_toml(folder / "s.toml")
    assert schema["Kosten"].bounds[1] < 1000 and not schema["Diagnose"].missing
    checked = run("schema", "check", "export.csv", "--schema", "s.toml")
    assert (
        checked.returncode == 0 and "1 row has no label in 'Diagnose' (line 92 of the file)" in checked.stdout
    )
    assert "; it counts as 'gesund' unless --drop-unlabelled is given" in checked.stdout
    checked = run(
        "schema", "check", "export.csv", "--schema", "s.toml", "--drop-unlabelled", "--drop", "Kennung"
    )
    assert checked.returncode == 0 and "(3 columns)" in checked.stdout and "--drop" not in checked.stdout


def test_what_looks_like_a_totals_line():
    def said(row):
        frame = pd.DataFrame([["P1", 1.0, 2.0, 3.0, 4.0, "a"], row], columns=list("ijklmy"))
        return unlabelled(frame, "y", "t.csv")

    assert "totals line" in said(["Gesamtsumme:", None, None, None, 9.0, None])
    assert "totals line" in said([None, None, None, None, 9.0, None])
    # A row of measurements whose label nobody filled in is none, whatever its name is.
    assert "totals line" not in said(["Total", 1.0, 2.0, 3.0, 4.0, None])
    assert "totals line" not in said(["P2", 1.0, 2.0, None, None, None])
    assert unlabelled(pd.DataFrame({"y": ["a"]}), "y", "t.csv") is None
    assert unlabelled(pd.DataFrame({"x": [1, 2, 3], "y": ["a", None, None]}), "y", "t.parquet").startswith(
        "2 rows have no label in 'y' (the first is row 2)"
    )


def test_a_misspelt_name_is_set_right(run, folder):
    out = ("--out", "r.csv")
    for command in ("protect", "audit", "compare"):
        more = out if command == "protect" else ()
        refused(run(command, "clean.csv", "-l", "diagnose", *more), "did you mean 'Diagnose'?")
    for command in ("protect", "compare"):
        more = out if command == "protect" else ()
        refused(
            run(command, "clean.csv", "-l", "Diagnose", "--drop", "Kenung", *more), "did you mean 'Kennung'?"
        )
    run("schema", "init", "clean.csv", "-l", "Diagnose", "--out", "s.toml")
    text = (folder / "s.toml").read_text(encoding="utf-8")
    (folder / "typo.toml").write_text(text.replace('"Größe"', '"Grösse"'), encoding="utf-8")
    refused(run("schema", "check", "clean.csv", "--schema", "typo.toml"), "'Grösse'", "did you mean 'Größe'?")


def test_a_missing_label_is_told_alike(run, folder):
    for command in (
        ("audit", "clean.csv"),
        ("compare", "clean.csv"),
        ("protect", "clean.csv", "--out", "r.csv"),
    ):
        refused(run(*command), "--label is missing; name the column that holds the class")


def test_a_schema_from_notepad(run, folder):
    run("schema", "init", "clean.csv", "-l", "Diagnose", "--out", "s.toml")
    text = (folder / "s.toml").read_text(encoding="utf-8")
    (folder / "bom.toml").write_text(text, encoding="utf-8-sig")
    assert run("schema", "check", "clean.csv", "--schema", "bom.toml").returncode == 0
    (folder / "old.toml").write_text(text, encoding="cp1252")
    done = run("schema", "check", "clean.csv", "--schema", "old.toml")
    refused(done, "not UTF-8", "save it with the encoding UTF-8")
    assert "schema init" not in done.stderr

    start = text.index("minimum = ")
    end = text.index("\n", start)
    (folder / "comma.toml").write_text(text[:start] + "minimum = 12,5" + text[end:], encoding="utf-8")
    refused(
        run("schema", "check", "clean.csv", "--schema", "comma.toml"), "write minimum = 12.5, with a point"
    )
    (folder / "quoted.toml").write_text(text[:start] + 'minimum = "12,5"' + text[end:], encoding="utf-8")
    refused(
        run("schema", "check", "clean.csv", "--schema", "quoted.toml"),
        "a decimal point in place of the comma",
    )


def test_a_column_that_was_taken_out_of_the_schema(run, folder):
    run("schema", "init", "clean.csv", "-l", "Diagnose", "--out", "s.toml")
    Schema.from_toml(folder / "s.toml").drop(["Kennung"]).to_toml(folder / "s.toml")
    refused(run("schema", "check", "clean.csv", "--schema", "s.toml"), "'Kennung'", "--drop")
    assert run("schema", "check", "clean.csv", "--schema", "s.toml", "--drop", "Kennung").returncode == 0
    protect = ("protect", "clean.csv", "-l", "Diagnose", "--schema", "s.toml", "--out", "r.csv")
    refused(run(*protect), "'Kennung'", "--drop")


@pytest.mark.parametrize(
    "command",
    [
        ("account", "smote", "--dimensions", "25", "--added", "1000", "--minority", "100", "--epsilon"),
        ("budget", "create", "budget.db", "patients", "--epsilon"),
        ("budget", "create", "budget.db", "patients", "--epsilon", "1", "--delta"),
    ],
)
def test_a_number_with_a_comma_is_set_right_by_every_command(run, command):
    done = run(*command, "1,5")
    assert done.returncode == 2 and "1,5 was given; write 1.5, with a point" in done.stderr
    done = run(*command, "one")
    assert done.returncode == 2 and "one was given; write a number, such as 1.0" in done.stderr


def test_epsilon_with_a_comma_and_one_that_promises_nothing(run, folder):
    protect = ("protect", "clean.csv", "-l", "Diagnose", "--drop", "Kennung", "--method", "histograms")
    refused(run(*protect, "--out", "r.csv", "--epsilon", "1,0"), "--epsilon 1,0 was given; write 1.0")
    refused(run(*protect, "--out", "r.csv", "--epsilon", "one"), "write a number")
    refused(run("compare", "clean.csv", "-l", "Diagnose", "--epsilons", "1,0"), "numbers above 0")
    done = run(*protect, "--out", "r.csv", "--epsilon", "50")
    assert done.returncode == 0 and "epsilon = 50 is a weak promise" in done.stderr
    done = run(*protect, "--out", "r2.csv", "--epsilon", "3")
    assert done.returncode == 0 and done.stderr == ""
    # A record that is replaced is one removed and one added.
    done = run(*protect, "--out", "r3.csv", "--epsilon", "1.6", "--set", "relation=add-remove")
    assert "up to 83 % of the time" in done.stderr
    assert "when not given 1.0" in " ".join(run("protect", "--help").stdout.split())


def test_values_beyond_the_declared_range_are_named(run, folder):
    said = run("schema", "init", "clean.csv", "--label", "Diagnose", "--out", "schema.toml")
    assert said.returncode == 0
    schema = Schema.from_toml(folder / "schema.toml")
    schema.declare("Größe", bounds=(0.0, 10.0), domain="public", source="a slip").to_toml(
        folder / "wrong.toml"
    )
    wanted = "column 'Größe' has 100% of its values outside of the declared range 0.0 to 10.0"
    checked = run("schema", "check", "clean.csv", "--schema", "wrong.toml")
    assert wanted in checked.stdout and "fits the schema" not in checked.stdout
    told = run(
        "protect",
        "clean.csv",
        "-l",
        "Diagnose",
        "--drop",
        "Kennung",
        "--schema",
        "wrong.toml",
        "--out",
        "r.csv",
    )
    assert told.returncode == 0 and told.stderr.count("outside of") == 1 and wanted in told.stderr


@pytest.fixture
def visits(tmp_path):
    """Several visits of a patient, with the same few sentences, and a column that nobody filled in."""
    sentences = ["The patient was sent home in good health", "Seen by Dr Weber, who asked for another test"]
    table = pd.DataFrame(
        {
            "patient_id": np.arange(120) // 2 + 1000,
            "note": [sentences[i % 2] for i in range(120)],
            "spare": [np.nan] * 120,
            "ward": [("north wing", "intensive care unit")[i % 2] for i in range(120)],
            "zip_code": [10115 + i % 5 for i in range(120)],
            "state": [("well", "ill")[i % 4 == 0] for i in range(120)],
        }
    )
    table.loc[119, "state"] = None
    table.to_csv(tmp_path / "visits.csv", index=False)
    return tmp_path


def test_columns_that_a_person_must_judge_are_named(run, visits):
    wanted = {
        "'spare' is empty; leave it out with --drop spare",
        "'note' holds texts of several words; if they are free text",
        "'patient_id' seems to say whose row it is, and some have several rows",
    }
    init = run("schema", "init", "visits.csv", "-l", "state", "--drop-unlabelled", "--out", "s.toml")
    assert (
        init.returncode == 0 and init.stderr.count("\n") == 3 and all(part in init.stderr for part in wanted)
    )
    made = run("protect", "visits.csv", "-l", "state", "--drop-unlabelled", "--out", "r.csv")
    assert made.returncode == 0 and all(part in made.stderr for part in wanted)
    # What is left out, or named, is not spoken of; nor are rows without a label that were to be dropped.
    quiet = run(
        *("schema", "init", "visits.csv", "-l", "state", "--drop", "note", "--drop", "spare"),
        *("--drop-unlabelled", "--person", "patient_id"),
    )
    assert quiet.returncode == 0 and not quiet.stderr and "note" not in quiet.stdout
