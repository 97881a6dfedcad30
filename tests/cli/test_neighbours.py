"""What others see of a command does not depend on a single row: exit code, kind of answer, guarantee."""

import json

import pandas as pd
import pytest

from oversafe.data import Column, Schema

PUBLIC = {"domain": "public", "source": "a test"}
ROWS = [f"{i % 7},{'Müller' if i % 3 else 'Meier'},{'yes' if i % 4 else 'no'}" for i in range(60)]


@pytest.fixture
def folder(tmp_path):
    columns = (
        Column("n", "integer", "int64", bounds=(0, 9), **PUBLIC),
        Column("name", "categorical", "str", categories=("Meier", "Müller"), **PUBLIC),
        Column("y", "categorical", "str", categories=("no", "yes"), **PUBLIC),
    )
    Schema(columns, label="y").to_toml(tmp_path / "s.toml")
    return tmp_path


def answer(run, folder, rows, *options, schema=True):
    """Return what others see: the exit code, and of a release its guarantee, settings, rows and dtypes."""
    lines = [row if isinstance(row, bytes) else row.encode() for row in ("n,name,y", *rows)]
    (folder / "t.csv").write_bytes(b"\n".join(lines) + b"\n")
    known = ("--schema", "s.toml") if schema else ()
    done = run("protect", "t.csv", "-l", "y", *known, *options, "--out", "r.csv", "--overwrite")
    if done.returncode:
        return done.returncode, "", done.stderr
    manifest = json.loads((folder / "r.csv.manifest.json").read_text())
    release = pd.read_csv(folder / "r.csv")
    kind = manifest["guarantee"], manifest["settings"], len(release), release.dtypes.to_dict()
    return 0, kind, done.stdout


ODD = {
    "one class": ["1,Meier,no"] * 60,
    "no label": [*ROWS[:-1], "1,Meier,"],
    "an undeclared label": [*ROWS[:-1], "1,Meier,maybe"],
    "a byte that is no UTF-8": [*ROWS[:-1], b"1,M\xfcller,no"],
    "an empty cell": [*ROWS[:-1], ",Meier,no"],
    "a word among numbers": [*ROWS[:-1], "many,Meier,no"],
    "a number beyond the range": [*ROWS[:-1], "1e400,Meier,no"],
    "a NUL": [*ROWS[:-1], b"1,Me\0ier,no"],
    "a formula": [*ROWS[:-1], '"=1+1","\'=Meier",no'],
    "all cells odd": ["?,?,?"] * 60,
}


@pytest.mark.parametrize("rows", ODD.values(), ids=ODD)
def test_no_row_ends_the_command_or_changes_the_kind_of_answer(run, folder, rows):
    quick = ("--method", "histograms")
    plain = answer(run, folder, ROWS, *quick)
    odd = answer(run, folder, rows, *quick)
    assert plain[0] == odd[0] == 0 and plain[1] == odd[1] and odd[2].startswith("Proven: epsilon = 1 ")
    assert plain[1][0]["status"] == "proven" and plain[1][2] == 60


@pytest.mark.parametrize("odd", ["all different", "one repeated"])
def test_a_column_of_values_that_differ_is_no_refusal_where_it_is_estimated(run, folder, odd):
    names = [f"person {i}" for i in range(400)]
    if odd == "one repeated":
        names[-1] = names[0]
    rows = [f"{i % 7},{name},{'yes' if i % 4 else 'no'}" for i, name in enumerate(names)]
    private = ("--method", "histograms", "--epsilon", "20", "--set", "domains=private", "--set", "delta=1e-6")
    code, kind, said = answer(run, folder, rows, *private, schema=False)
    assert code == 0, said
    assert kind[0]["status"] == "proven" and kind[2] == 400


def test_strict_refuses_and_says_so_in_the_guarantee(run, folder):
    code, _, said = answer(run, folder, ODD["a word among numbers"], "--method", "histograms", "--strict")
    assert (
        code == 2 and said.count("\n") == 1 and "'many' in line 61" in said and "leave out --strict" in said
    )
    assert not (folder / "r.csv").exists()
    code, kind, said = answer(run, folder, ROWS, "--method", "histograms", "--strict")
    assert code == 0 and kind[0]["status"] == "nominal" and kind[1]["strict"] == "True"
    assert "a release tells that all of them fit" in said
    done = run("protect", "t.csv", "-l", "y", "--strict", "--out", "r2.csv")
    assert done.returncode == 2 and "--strict was given without --schema" in done.stderr


def test_the_holder_hears_of_odd_cells_and_no_file_does(run, folder):
    lines = ["n,name,y", *ODD["a word among numbers"]]
    (folder / "t.csv").write_text("\n".join(lines) + "\n")
    done = run(
        "protect", "t.csv", "-l", "y", "--schema", "s.toml", "--method", "histograms", "--out", "r.csv"
    )
    assert (
        "column 'n': 1 cell does not fit what is declared ('many' in line 61), and counts as '0'"
        in done.stderr
    )
    written = [file.read_text() for file in folder.iterdir() if file.name.startswith("r.csv")]
    assert len(written) == 2 and not any("fit" in text or "many" in text for text in written)


def test_a_table_that_does_not_parse_is_no_table(run, folder):
    for rows, told in (([*ROWS, "1,Meier"], "has 2 fields"), ([*ROWS, '1,Meier,"no'], "never closed")):
        code, _, said = answer(run, folder, rows)
        assert code == 2 and told in said and said.count("\n") == 1
