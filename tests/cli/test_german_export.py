"""A steward's German export with the slips that such tables have: one wrong cell, percent signs, sentences."""

from __future__ import annotations

import json

import numpy as np
import pytest

from oversafe.data import Schema, read_table, write_table


@pytest.fixture
def folder(tmp_path):
    """Twelve hundred patients; the twelfth was admitted on the 31st of February."""
    rng = np.random.default_rng(1)
    lines = ["Aufnahme;Geburt;CRP;Labor;Auslastung;PLZ;Tod"]
    for i in range(1200):
        day = "31.02.2025" if i == 11 else f"{rng.integers(1, 29):02d}.{rng.integers(1, 13):02d}.2025"
        born = "12.13.1950" if i == 4 else f"{i % 28 + 1:02d}.{i % 12 + 1:02d}.{1930 + i // 20}"
        crp = "n.b." if i == 7 else f"{rng.gamma(2, 10):.1f}".replace(".", ",")
        lab = f"{value:.1f}".replace(".", ",") if (value := rng.gamma(2, 1)) > 0.6 else "<0,6"
        use = f"{rng.uniform(0, 100):.1f} %".replace(".", ",")
        label = "" if i == 2 else "ja" if i % 10 == 0 else "nein"
        lines.append(f"{day};{born};{crp};{lab};{use};{rng.integers(1000, 99999):05d};{label}")
    (tmp_path / "export.csv").write_bytes(("\r\n".join(lines) + "\r\n").encode("cp1252"))
    return tmp_path


def test_the_cells_that_make_text_of_a_column_are_named_with_their_lines(run, folder):
    wanted = (
        "'Aufnahme' seems to hold dates, but was read as text: 1 of 1199 values is no date: '31.02.2025' (line 13)",
        "'Geburt' seems to hold dates, but was read as text: 1 of 1199 values is no date: '12.13.1950' (line 6)",
        "'CRP' seems to hold numbers, but was read as text: 1 of 1199 values is no number: 'n.b.' (line 9)",
        "'Labor' seems to hold numbers, but was read as text: 1",
    )
    init = run("schema", "init", "export.csv", "-l", "Tod", "--out", "s.toml")
    assert init.returncode == 0 and all(part in init.stderr for part in wanted)
    assert (
        "'Geburt' seems to hold identifiers" not in init.stderr
        and "'PLZ' seems to hold num" not in init.stderr
    )
    check = run("schema", "check", "export.csv", "--schema", "s.toml", "--drop-unlabelled")
    assert check.returncode == 0 and all(part in check.stdout for part in wanted)
    facts = run("schema", "check", "export.csv", "--schema", "s.toml", "--drop-unlabelled", "--json")
    assert len(json.loads(facts.stdout)["doubts"]) >= 4
    made = run("protect", "export.csv", "-l", "Tod", "--drop-unlabelled", "--out", "r.csv")
    assert made.returncode == 2 and all(part in made.stderr for part in wanted)


@pytest.mark.parametrize(
    ("name", "facts", "told"),
    [
        ("Aufnahme", {"kind": "datetime", "dtype": "datetime64[us]"}, "'31.02.2025' in line 13"),
        ("CRP", {"kind": "continuous", "dtype": "float64"}, "'n.b.' in line 9"),
    ],
)
def test_a_bad_cell_of_a_declared_column_is_named(run, folder, name, facts, told):
    assert run("schema", "init", "export.csv", "-l", "Tod", "--out", "s.toml").returncode == 0
    schema = Schema.from_toml(folder / "s.toml").declare(name, categories=None, **facts)
    schema.to_toml(folder / "declared.toml")
    check = run("schema", "check", "export.csv", "--schema", "declared.toml", "--drop-unlabelled")
    assert check.returncode == 0, check.stderr
    assert f"Column {name!r}: 1 cell does not fit what is declared ({told})".lower() in check.stdout.lower()


def test_no_line_is_named_where_rows_and_lines_differ(run, folder):
    text = (folder / "export.csv").read_bytes()
    (folder / "export.csv").write_bytes(b"sep=;\r\n" + text)
    init = run("schema", "init", "export.csv", "-l", "Tod", "--out", "s.toml")
    assert "'31.02.2025' (row 12)" in init.stderr and "line" not in init.stderr


@pytest.fixture
def findings(tmp_path):
    """Reports about patients, most of which occur more than once, and a number of each patient."""
    parts = [f"Die Patientin Weber wurde am {day}. Tag nach Hause entlassen" for day in range(40)]
    lines = ["Befund;Kennung;Tod"]
    lines += [f"{parts[i % 40]};P{i:04d};{'ja' if i % 5 == 0 else 'nein'}" for i in range(200)]
    (tmp_path / "export.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def all_public(folder):
    """Declare every column public, as somebody in a hurry does it."""
    text = (folder / "s.toml").read_text(encoding="utf-8")
    text = text.replace('domain = "data"', 'domain = "public"\nsource = "the ward"')
    (folder / "s.toml").write_text(text, encoding="utf-8")


def test_sentences_are_doubted_also_as_public_categories(run, findings):
    wanted = "'Befund' lists texts of several words as its public categories, and a release holds them word for word"
    assert run("schema", "init", "export.csv", "-l", "Tod", "--out", "s.toml").returncode == 0
    all_public(findings)
    check = run("schema", "check", "export.csv", "--schema", "s.toml", "--drop", "Kennung")
    assert wanted in check.stdout and "--drop Befund" in check.stdout
    facts = run("schema", "check", "export.csv", "--schema", "s.toml", "--drop", "Kennung", "--json")
    assert wanted in json.loads(facts.stdout)["doubts"][0]
    arguments = ("-l", "Tod", "--schema", "s.toml", "--drop", "Kennung", "--out", "r.csv", "--overwrite")
    made = run("protect", "export.csv", *arguments)
    assert made.returncode == 0 and "Proven" in made.stdout
    assert wanted in made.stderr and "--drop Befund" in made.stderr
    # Where the rows stay in their database, the schema alone tells.
    write_table(read_table(findings / "export.csv"), f"duckdb://{findings / 'd.ddb'}#t")
    made = run("protect", "duckdb://d.ddb#t", "--method", "privbayes", *arguments)
    assert made.returncode == 0 and wanted in made.stderr


def test_names_are_doubted_also_as_public_categories(run, findings):
    assert run("schema", "init", "export.csv", "-l", "Tod", "--out", "s.toml").returncode == 0
    names = tuple(f"P{i:04d}" for i in range(200))
    schema = Schema.from_toml(findings / "s.toml").declare("Kennung", kind="categorical", categories=names)
    schema.to_toml(findings / "s.toml")
    all_public(findings)
    check = run("schema", "check", "export.csv", "--schema", "s.toml")
    assert "'Kennung' is declared categorical, and nearly every row has a value of its own" in check.stdout
    assert "--drop Kennung" in check.stdout
