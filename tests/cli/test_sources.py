"""No record decides how another is read, wherever the table lies."""

import json
import sqlite3

import pandas as pd
import pytest

from oversafe._core.errors import InputError
from oversafe.data import Column, FileFormat, Schema, read_table
from oversafe.data.io._sources import open_table
from oversafe.privacy import Ledger
from oversafe.protect import HistogramSynthesizer

PUBLIC = {"domain": "public", "source": "a test"}
Y = Column("y", "categorical", "str", categories=("a", "b"), **PUBLIC)
QUICK = ("-l", "y", "--method", "histograms", "--schema", "s.toml", "--out", "r.csv", "--overwrite")


def status(run, folder, *arguments):
    done = run("protect", *arguments)
    if done.returncode:
        return done.returncode, done.stderr
    return 0, json.loads((folder / "r.csv.manifest.json").read_text())["guarantee"]["status"]


@pytest.mark.parametrize("in_memory", [False, True])
def test_names_of_folders_are_texts(run, tmp_path, in_memory):
    code = Column("code", "categorical", "str", categories=("01", "1", "other"), **PUBLIC)
    x = Column("x", "integer", "int64", bounds=(0, 9), **PUBLIC)
    Schema((x, Y, code), label="y").to_toml(tmp_path / "s.toml")
    for last in ("01", "other"):
        for i, name in enumerate(["01"] * 5 + ["1"] * 5 + [last]):
            part = tmp_path / last / f"code={name}"
            part.mkdir(parents=True, exist_ok=True)
            pd.DataFrame({"x": [i % 10], "y": ["ab"[i % 2]]}).to_parquet(part / f"{i}.parquet")
        more = ("--set", "binning=quantile") if in_memory else ()
        assert status(run, tmp_path, tmp_path / last, *QUICK, *more) == (0, "proven")


def test_ids_in_the_names_of_folders_are_texts(run, tmp_path):
    x = Column("x", "integer", "int64", bounds=(0, 9), **PUBLIC)
    Schema((x, Y, Column("pid", "identifier", "str")), label="y", person="pid").to_toml(tmp_path / "s.toml")
    rows = []
    for last in ("40", "P7"):
        for name in [*map(str, range(10, 40)), last]:
            part = tmp_path / last / f"pid={name}"
            part.mkdir(parents=True)
            pd.DataFrame({"x": [1, 2], "y": ["a", "b"]}).to_parquet(part / "0.parquet")
        more = ("--rows-per-person", "2", "--epsilon", "1e4")
        assert status(run, tmp_path, tmp_path / last, *QUICK, *more) == (0, "proven")
        rows.append(len(read_table(tmp_path / "r.csv")))
    # All 31 persons count, whatever one of them is called.
    assert rows == [62, 62]


@pytest.mark.parametrize("odd", [5, "abc", b"\xff", 1e400, None])
def test_cells_of_sqlite_are_read_one_by_one(run, tmp_path, odd):
    pytest.importorskip("regex")
    x = Column("x", "integer", "int64", bounds=(0, 9), **PUBLIC)
    Schema((x, Y), label="y").to_toml(tmp_path / "s.toml")
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute("CREATE TABLE t (x INTEGER, y TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(i % 10, "ab"[i % 2]) for i in range(20)])
        connection.execute("INSERT INTO t VALUES (?, ?)", (odd, b"\xfe" if odd is None else "a"))
    assert status(run, tmp_path, f"sqlite://{tmp_path}/t.db#t", *QUICK) == (0, "proven")
    with pytest.raises(InputError, match="each cell has a type of its own"):
        HistogramSynthesizer(schema=Schema((x, Y), label="y")).fit_source(f"sqlite://{tmp_path}/t.db#t")
    # Without a schema too, where ranges and categories are paid for.
    paid = ("--set", "domains=private", "--set", "delta=1e-6", "--epsilon", "1000", "--overwrite")
    command = ("-l", "y", "--method", "histograms", "--out", "r.csv", *paid)
    assert status(run, tmp_path, f"sqlite://{tmp_path}/t.db#t", *command) == (0, "proven")


def test_a_label_that_is_paid_for_is_not_looked_at_before(run, tmp_path):
    x = Column("x", "integer", "int64", bounds=(0, 9), **PUBLIC)
    y = Column("y", "categorical", "str", True, categories=("a", "b"), domain="private estimate")
    Schema((x, y), label="y").to_toml(tmp_path / "s.toml")
    private = ("--set", "domains=private", "--set", "delta=1e-6", "--epsilon", "5")
    for last in ("a", ""):
        rows = [f"{i % 10},{'ab'[i % 2]}" for i in range(3000)]
        (tmp_path / "t.csv").write_text("\n".join(["x,y", *rows, f"3,{last}"]) + "\n")
        assert status(run, tmp_path, "t.csv", *QUICK, *private) == (0, "proven")


def test_a_format_that_was_found_in_the_rows_is_not_public(run, tmp_path):
    table = "x;z;y\n" + "".join(f"1.234;0;{'ab'[i % 2]}\n" for i in range(60))
    (tmp_path / "t.csv").write_text(table)
    found = Schema.infer(read_table(tmp_path / "t.csv"), label="y")
    for column in found:
        domain = {"bounds": (0.0, 2000.0)} if column.kind == "continuous" else {}
        found = found.declare(column.name, **PUBLIC, **domain)
    found.to_toml(tmp_path / "s.toml")
    assert status(run, tmp_path, "t.csv", *QUICK) == (0, "nominal")
    Schema(found.columns, "y", file=FileFormat(separator=";")).to_toml(tmp_path / "s.toml")
    assert status(run, tmp_path, "t.csv", *QUICK) == (0, "proven")


def test_a_column_that_was_put_in_the_place_of_another_was_not_read_by_the_schema(tmp_path):
    code = Column("code", "categorical", "str", categories=("1.1", "1.10", "other"), **PUBLIC)
    schema = Schema((code, Y), label="y")
    for last in ("1.1", "other"):
        lines = [f"{'1.1' if i % 2 else '1.10'},{'ab'[i % 2]}" for i in range(40)]
        (tmp_path / "t.csv").write_text("\n".join(["code,y", *lines, f"{last},a"]) + "\n")
        read, raw = read_table(tmp_path / "t.csv", schema=schema), pd.read_csv(tmp_path / "t.csv")
        assert (
            HistogramSynthesizer(schema=schema).fit(read[["code"]], read["y"]).guarantee_.status == "proven"
        )
        for other in (raw["code"], raw["code"].astype(str)):
            put = read.drop(columns="code").assign(code=other)
            with pytest.raises(InputError, match="read the file with read_table"):
                HistogramSynthesizer(schema=schema).fit(put[["code"]], put["y"])


@pytest.mark.parametrize(
    "settings", [{"binning": "foo"}, {"n_jobs": "foo"}, {"n_jobs": 0}, {"sampling_strategy": {"c": 10}}]
)
def test_settings_that_nobody_can_use_are_not_charged(tmp_path, monkeypatch, settings):
    monkeypatch.setenv("OVERSAFE_LEDGER_KEY", "ab" * 32)
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("patients", epsilon=1.0)
    schema = Schema((Column("x", "integer", "int64", bounds=(0, 9), **PUBLIC), Y), label="y")
    made = HistogramSynthesizer(0.5, schema=schema, ledger=ledger.for_dataset("patients"), **settings)
    with pytest.raises(InputError):
        made.fit(pd.DataFrame({"x": [1, 2]}), pd.Series(["a", "b"]))
    assert ledger.remaining("patients").epsilon == 1.0


def test_classes_are_asked_for_by_what_they_are():
    y = Column("y", "categorical", "int64", categories=(0, 1), **PUBLIC)
    schema = Schema((Column("x", "integer", "int64", bounds=(0, 9), **PUBLIC), y), label="y")
    made = HistogramSynthesizer(schema=schema, sampling_strategy={"0": 10, "1": 3})
    _, drawn = made.fit(pd.DataFrame({"x": [1, 2]}), pd.Series([0, 1])).sample()
    assert drawn.value_counts().to_dict() == {0: 10, 1: 3}


def test_names_of_folders_that_are_all_numbers_are_texts_in_place_too(tmp_path):
    for name in ("1", "2"):
        (tmp_path / f"code={name}").mkdir()
        pd.DataFrame({"x": [1]}).to_parquet(tmp_path / f"code={name}" / "0.parquet")
    assert open_table(tmp_path)["code"].type().is_string()
