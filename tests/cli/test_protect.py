"""What ``oversafe protect`` says and writes: how a guarantee is proven, and files for spreadsheets."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from oversafe.data import Column, FileFormat, Schema, read_table

COLUMNS = [f"column {i}" for i in range(11)]


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 11)).round(3), columns=COLUMNS)
    frame.insert(0, "ID no", [f"P{i:05d}" for i in range(80)])
    frame["state"] = np.where(np.arange(80) % 4, "well", "ill")
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "german.csv", index=False, sep=";", decimal=",")
    return tmp_path


PROTECT = ("-l", "state", "--drop", "ID no", "--method", "histograms", "--out")


def test_a_nominal_release_says_how_to_prove_it_and_that_works(run, folder):
    done = run("protect", "t.csv", *PROTECT, "r.csv")
    assert done.returncode == 0 and "Nominal, not proven" in done.stdout
    init, protect = (part.split(", then")[0] for part in done.stdout.split("oversafe ")[1:3])
    assert (
        'domain = "public"' in done.stdout
        and "--drop 'ID no'" in protect
        and "--schema schema.toml" in protect
    )
    # All columns are named, also in the manifest.
    caveats = " ".join(json.loads((folder / "r.csv.manifest.json").read_text())["guarantee"]["caveats"])
    for text in (caveats, done.stdout):
        assert all(repr(name) in text for name in COLUMNS) and " more" not in text

    assert run(*shlex.split(init)).returncode == 0
    again = run(*shlex.split(protect))
    assert again.returncode == 0 and "Nominal" in again.stdout
    # The file was not edited: the advice names the file, and does not lead back to schema init.
    assert "in 'schema.toml' for each of these columns" in again.stdout and "schema init" not in again.stdout
    schema = Schema.from_toml(folder / "schema.toml").drop(["ID no"])
    for name in schema.names:
        schema = schema.declare(name, domain="public", source="a test")
    schema.to_toml(folder / "schema.toml")
    told = run(*shlex.split(protect), "--overwrite")
    assert "Nominal" in told.stdout and "section [file] of the schema" in told.stdout
    replace(schema, file=replace(schema.file, domain="public")).to_toml(folder / "schema.toml")
    proven = run(*shlex.split(protect), "--overwrite")
    assert proven.returncode == 0 and "Proven: " in proven.stdout and "To prove it" not in proven.stdout
    manifest = json.loads((folder / "RELEASE.csv.manifest.json").read_text())
    assert manifest["settings"]["domains"] == "public"


def test_private_smote_does_not_speak_of_differential_privacy(run, folder):
    done = run(
        "protect", "t.csv", "-l", "state", "--drop", "ID no", "--method", "private-smote", "--out", "r.csv"
    )
    assert done.returncode == 0, done.stderr
    assert "epsilon = 1 is a setting of the method here, not differential privacy" in done.stdout
    assert "differential privacy for every record" not in done.stdout and "To prove it" not in done.stdout


def test_a_release_for_a_german_spreadsheet(run, folder):
    done = run("protect", "german.csv", *PROTECT, "r.csv")
    assert done.returncode == 0
    assert "--out-separator ';' --out-decimal ','" in done.stdout
    done = run("protect", "german.csv", *PROTECT, "r2.csv", "--out-separator", ";", "--out-decimal", ",")
    assert done.returncode == 0 and "--out-separator" not in done.stdout
    lines = (folder / "r2.csv").read_bytes().decode("utf-8").splitlines()
    assert lines[0].startswith('\ufeff"column 0";"column 1"') and "," in lines[1] and "." not in lines[1]
    release = read_table(folder / "r2.csv")
    assert release[COLUMNS].dtypes.eq("float64").all() and len(release) == 80
    # With the real table, because the noise may leave one class only.
    assert run("audit", "r2.csv", "-l", "state", "--real", "german.csv", "--json").returncode == 0
    assert "--out-separator" not in run("protect", "t.csv", *PROTECT, "r3.csv").stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("r.parquet", "--out-separator", ";"), "are for CSV"),
        (("r.csv", "--out-separator", ",", "--out-decimal", ","), "are both ','"),
        (("r.csv", "--out-separator", "::"), "one character"),
        (("r.csv", "--out-decimal", "comma"), "give '.' or ','"),
    ],
)
def test_a_way_of_writing_that_makes_no_sense(run, folder, options, message):
    done = run("protect", "absent.csv", *PROTECT, *options)
    assert done.returncode == 2 and message in done.stderr


def _declared(folder, decimal="."):
    public = {"domain": "public", "source": "a test"}
    columns = (
        Column("a", "continuous", "float64", bounds=(0.0, 10_000.0), **public),
        Column("b", "continuous", "float64", bounds=(0.0, 10.0), **public),
        Column("y", "categorical", "int64", categories=(0, 1), **public),
    )
    Schema(columns, label="y", file=FileFormat(separator=";", decimal=decimal)).to_toml(folder / "s.toml")


@pytest.mark.parametrize(("decimal", "mean"), [(".", 250.0), (",", 5500.0)])
def test_no_row_decides_how_another_is_read(run, tmp_path, decimal, mean):
    # 1.234 is a thousand and more where a comma stands before the decimals; another column used to say so.
    _declared(tmp_path, decimal)
    for odd in ("5", "5,5", "5.5"):
        lines = [f"{i % 9 + 1}.{i % 900 + 100};{i % 10};{i % 2}" for i in range(1000)]
        lines[7] = f"1.500;{odd};1"
        (tmp_path / "t.csv").write_text("\n".join(["a;b;y", *lines]) + "\n")
        known = ("--schema", "s.toml", "--method", "histograms", "--epsilon", "1e4", "--out", "r.csv")
        done = run("protect", "t.csv", "-l", "y", *known, "--overwrite")
        # 5,5 is no number where the decimal sign is a point: its holder hears of it, and nobody else.
        assert ("1 cell does not fit" in done.stderr) == (odd == ("5,5" if decimal == "." else "5.5"))
        assert done.stdout.startswith("Proven"), done.stderr
        # Drawn anew within intervals of 500: the mean of 1,000 has a deviation of 5.
        assert abs(read_table(tmp_path / "r.csv")["a"].mean() - mean) < 300


def test_one_cell_of_a_number_column_does_not_decide_how_its_others_are_read(run, tmp_path):
    # 1.5 is no number of a German file, and makes text of the column; the thousands beside it stay thousands.
    _declared(tmp_path, ",")
    lines = [f"{i % 9 + 1}.{i % 900 + 100};{i % 10};{i % 2}" for i in range(1000)]
    lines[7] = "1.5;5;1"
    (tmp_path / "t.csv").write_text("\n".join(["a;b;y", *lines]) + "\n")
    known = ("--schema", "s.toml", "--method", "histograms", "--epsilon", "1e4", "--out", "r.csv")
    assert run("protect", "t.csv", "-l", "y", *known).stdout.startswith("Proven")
    assert abs(read_table(tmp_path / "r.csv")["a"].mean() - 5500) < 300


def test_the_schema_of_a_german_file_says_so(run, folder):
    assert run("schema", "init", "german.csv", "-l", "state", "--out", "s.toml").returncode == 0
    schema = Schema.from_toml(folder / "s.toml")
    assert schema.file == schema.drop(["ID no"]).file == FileFormat(separator=";", decimal=",", domain="data")
    for command in (("protect", "german.csv", *PROTECT, "r.csv"), ("schema", "check", "german.csv")):
        assert run(*command, "--schema", "s.toml").returncode == 0
    # A Parquet file has no decimal sign, and one with a point is not what the schema says.
    read_table(folder / "german.csv").to_parquet(folder / "t.parquet")
    assert run("protect", "t.parquet", *PROTECT, "r2.csv", "--schema", "s.toml").returncode == 0


@pytest.mark.parametrize(("column", "odd"), [("when", "unknown"), ("dose", "n.b."), ("share", "none")])
def test_one_odd_cell_is_one_vote_on_what_a_column_is(run, tmp_path, column, odd):
    rng, n = np.random.default_rng(0), 3000
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, n), unit="D")
    table = pd.DataFrame(
        {
            "when": day.strftime("%d.%m.%Y"),
            "dose": [f"{value:.1f}".replace(".", ",") for value in rng.normal(50, 10, n)],
            "share": [f"{value:.1f} %".replace(".", ",") for value in rng.uniform(1, 99, n)],
            "y": rng.integers(0, 2, n),
        }
    )
    table.loc[7, column] = odd
    table.to_csv(tmp_path / "t.csv", index=False, sep=";")
    private = ("--method", "histograms", "--epsilon", "20", "--set", "delta=1e-9", "--set", "domains=private")
    refused = run("protect", "t.csv", "-l", "y", *private, "--out", "r.csv")
    assert refused.returncode == 2 and "--decimal" in refused.stderr and not (tmp_path / "r.csv").exists()
    done = run("protect", "t.csv", "-l", "y", *private, "--decimal", ",", "--out", "r.csv")
    assert done.stdout.startswith("Proven: epsilon = 20"), done.stderr
    made = read_table(tmp_path / "r.csv")
    assert made["when"].dtype.kind == "M" and made["when"].dt.year.between(2019, 2023).mean() > 0.9
    assert made["dose"].dtype.kind == made["share"].dtype.kind == "f"


@pytest.fixture
def visits(tmp_path):
    """A folder with a table of several rows per patient and its public schema, which says whose row each is."""
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(60), rng.integers(1, 10, 60))
    frame = pd.DataFrame(
        {
            "pid": [f"P{i}" for i in person],
            "age": rng.integers(20, 90, len(person)),
            "state": np.where(person % 5, "well", "ill"),
            "ward": np.where(rng.random(len(person)) < 0.5, "north", "south"),
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    schema = Schema.infer(frame, label="state", person="pid").declare("age", bounds=(18, 110))
    for name in ("age", "state", "ward"):
        schema = schema.declare(name, domain="public", source="a test")
    schema.to_toml(tmp_path / "s.toml")
    return tmp_path


VISITS = ("protect", "t.csv", "-l", "state", "--schema", "s.toml", "--out", "r.csv")


@pytest.mark.parametrize("bound", [("--rows-per-person", 3), ("--set", "rows_per_person=3"), None])
@pytest.mark.parametrize("source", ["t.csv", "tables"])
def test_a_schema_with_a_person_gives_a_promise_for_every_person(run, visits, bound, source):
    run("budget", "create", "b.db", "visits", "--epsilon", 2, "--unit", "person", "--rows-per-unit", 3)
    charged = ("--ledger", "b.db", "--dataset", "visits")
    if source == "tables":
        (visits / "tables").mkdir()
        read_table(visits / "t.csv").to_parquet(visits / "tables" / "part.parquet")
    command = [*VISITS, "--method", "histograms", "--set", "delta=0", *charged]
    command[1] = source
    done = run(*command, *(bound or ()))
    if bound is None:
        assert done.returncode == 2 and "('pid'), and no bound on the rows" in done.stderr
        assert "give --rows-per-person N" in done.stderr and not (visits / "r.csv").exists()
        assert "2" in run("budget", "show", "b.db", "visits").stdout
        assert not json.loads(run("budget", "history", "b.db", "--json").stdout)[1:]
        return
    assert done.returncode == 0, done.stderr
    assert "Proven: epsilon = 1 differential privacy for every person (at most 3 rows each)" in done.stdout
    manifest = json.loads((visits / "r.csv.manifest.json").read_text())
    assert manifest["guarantee"]["unit"] == "person" and manifest["guarantee"]["rows_per_unit"] == 3
    assert manifest["settings"]["rows_per_person"] == "3"
    assert list(read_table(visits / "r.csv").columns) == ["age", "state", "ward"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rows-per-person", 0), "whole number of at least 1"),
        (("--rows-per-person", 2, "--set", "rows_per_person=3"), "give one of them"),
        (("--drop", "pid"), "no bound on the rows of a person"),
        (("--method", "dpgan"), "the method 'dpgan' promises for every record only"),
        (("--method", "smote-dp", "--rows-per-person", 2), "does not limit the rows of a person"),
        (("--method", "smote", "--rows-per-person", 2), "does not limit the rows of a person"),
        (("--set", "rows_per_person=1.5"), "whole number of at least 1"),
    ],
)
def test_a_bound_that_makes_no_sense_is_one_sentence(run, visits, options, message):
    done = run(*VISITS, *options)
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1
    assert not (visits / "r.csv").exists()


def test_a_bound_without_a_person(run, folder):
    done = run("protect", "t.csv", *PROTECT, "r.csv", "--rows-per-person", 2)
    assert done.returncode == 2 and "no column says whose row each is" in done.stderr


def test_a_method_without_a_promise_leaves_the_person_out(run, visits):
    done = run(*VISITS, "--method", "random-over")
    assert done.returncode == 0 and "No privacy guarantee" in done.stdout
    assert list(read_table(visits / "r.csv").columns) == ["age", "state", "ward"]


def test_ids_are_whole_numbers_or_missing_whatever_range_is_declared(run, visits):
    # A person may be declared as a number with a range; ids beyond it are no less people of their own.
    frame = read_table(visits / "t.csv")
    frame["pid"] = frame["pid"].str[1:]
    frame.loc[0, "pid"] = None
    frame.to_csv(visits / "t.csv", index=False)
    schema = Schema.from_toml(visits / "s.toml")
    schema = schema.declare("pid", kind="integer", dtype="int64", bounds=(0, 3))
    schema.to_toml(visits / "s.toml")
    # With epsilon = 1000 the noise of a class count is other than 0 with a probability below 1e-6.
    strong = ("--epsilon", 1000, "--set", "relation=add-remove", "--method", "histograms")
    done = run(*VISITS, "--rows-per-person", 1, *strong)
    assert done.returncode == 0 and "1 row without a person's id" in done.stderr
    left = frame["pid"].nunique()
    assert len(read_table(visits / "r.csv")) == left


def test_a_plugin_that_promises_for_records_refuses_a_person(run, visits, monkeypatch):
    from sklearn.base import BaseEstimator

    from oversafe.privacy import Guarantee
    from oversafe.protect import registry

    class Theirs(BaseEstimator):
        guarantee_ = Guarantee.pure(1.0, "their theorem")

        def fit_resample(self, X, y):
            assert "pid" not in X.columns
            return X, y

    monkeypatch.setitem(registry.METHODS, "theirs", Theirs)
    done = run(*VISITS, "--method", "theirs")
    assert done.returncode == 2 and "the method 'theirs' promises for every record only" in done.stderr
    assert not (visits / "r.csv").exists()


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ((), "nominal"),
        (("--set", "relation=add-remove"), "proven"),
        (("--rows-per-person", 2), "proven"),
    ],
)
@pytest.mark.parametrize("unlabelled", [0, 3])
def test_rows_without_a_label_that_are_left_out_are_told_by_the_number_of_rows(
    run, visits, options, status, unlabelled
):
    # By the option alone: whether there are such rows is a fact of the data.
    frame = read_table(visits / "t.csv")
    frame.loc[: unlabelled - 1, "state"] = None
    frame.to_csv(visits / "t.csv", index=False)
    if "--rows-per-person" not in options:
        Schema.from_toml(visits / "s.toml").drop(["pid"]).to_toml(visits / "s.toml")
        options = (*options, "--drop", "pid")
    person = ("--unit", "person", "--rows-per-unit", 2) if "--rows-per-person" in options else ()
    relation = ("--relation", "add-remove") if "relation=add-remove" in options else ()
    made = run("budget", "create", "b.db", "visits", "--epsilon", 2, *person, *relation)
    assert made.returncode == 0, made.stderr
    command = [*VISITS, *options, "--method", "histograms", "--set", "delta=0", "--drop-unlabelled"]
    charged = ("--ledger", "b.db", "--dataset", "visits")
    done = run(*command, *charged)
    if status == "nominal":
        # The ledger sees the caveat before anything is charged.
        assert done.returncode == 2 and "rows without a label were left out" in done.stderr
        assert not (visits / "r.csv").exists()
        done = run(*command, *charged, "--record-unproven")
    assert done.returncode == 0, done.stderr
    manifest = json.loads((visits / "r.csv.manifest.json").read_text())
    assert manifest["guarantee"]["status"] == status and manifest["settings"]["drop_unlabelled"] == "True"
    assert ("rows without a label were left out" in done.stdout) == (status == "nominal")
    history = json.loads(run("budget", "history", "b.db", "--json").stdout)
    assert history[-1]["plain_guarantee"]["status"] == status


def test_more_rows_than_memory_holds_are_refused_before_anything_is_charged(run, folder):
    run("budget", "create", "b.db", "d", "--epsilon", "3", "--ledger-key", "k")
    budget = ("--ledger", "b.db", "--dataset", "d", "--ledger-key", "k", "--record-unproven")
    done = run("protect", "t.csv", *PROTECT, "r.csv", "--rows", "100000000000", *budget)
    assert done.returncode == 2 and "ask for fewer rows" in done.stderr
    assert not (folder / "r.csv").exists()
    shown = run("budget", "show", "b.db", "d", "--ledger-key", "k", "--json").stdout
    assert [left["charges"] for left in json.loads(shown)] == [0]
