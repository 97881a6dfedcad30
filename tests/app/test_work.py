"""What the local page does with tables, without the page."""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from pathlib import Path

import pytest

from oversafe._core.errors import InputError, MissingExtraError
from oversafe.app import server, work
from oversafe.app.server import ADDRESS, arguments, free_port, serve
from oversafe.cli.story import demo_schema
from oversafe.data import Column, Schema, load_dataset


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A temporary folder in which nothing may be left."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def table():
    X, y = load_dataset("breast_cancer")
    return X.assign(diagnosis=y)


def test_an_uploaded_table_is_read_and_not_kept(folder):
    frame = work.read_upload("t.csv", b"a;b\n1,5;x\n2,5;y\n", 1)
    assert frame["a"].tolist() == [1.5, 2.5] and frame["b"].tolist() == ["x", "y"]


def test_parquet_too(folder, table):
    assert work.read_upload("t.parquet", table.to_parquet(index=False), 1).shape == table.shape


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "'t.csv'"),
        ("t.parquet", b"not parquet", "'t.parquet'"),
        ("t.exe", b"a,b\n1,2\n", "no table"),
        ("t.csv", b"a,b\n" + b"1,2\n" * 300_000, "up to 1 MB"),
    ],
)
def test_a_bad_upload_is_one_sentence_that_names_the_file(folder, name, content, message):
    with pytest.raises(InputError, match=message) as error:
        work.read_upload(name, content, 1)
    assert str(folder) not in str(error.value) and "\n" not in str(error.value)


def protected(table, **options):
    content = table.to_csv(index=False).encode()
    return work.protect_upload(
        "people.csv", content, 5, "diagnosis", method="histograms", epsilon=1.0, **options
    )


def test_a_release_with_its_manifest(folder, table):
    steps = []
    made = protected(table, schema=demo_schema(), on_progress=lambda step, share: steps.append(share))
    assert made.release.guarantee.status == "proven" and made.release.guarantee.epsilon == 1.0
    assert made.vouched.voucher.by == "you" and made.vouched.guarantee == made.release.guarantee
    manifest = json.loads(made.manifest)
    assert manifest["sha256"] == hashlib.sha256(made.file).hexdigest()
    assert manifest["guarantee"]["status"] == "proven" and manifest["settings"]["method"] == "histograms"
    assert list(made.release.table.columns) == list(table.columns) and steps


def test_a_person_column_is_used_with_a_bound_and_never_released(folder, table):
    visits = table.copy()
    visits.insert(0, "pid", [f"P{i // 4}" for i in range(len(table))])
    schema = demo_schema()
    schema = Schema((*schema.columns, Column("pid", "identifier", "str")), schema.label, "pid")
    with pytest.raises(InputError, match=r"\('pid'\), and no bound .* Rows per person on the page"):
        protected(visits, schema=schema)
    # The page proposes to leave it out, which it is in any case.
    for drop in ([], ["pid"]):
        made = protected(visits, schema=schema, rows_per_person=2, drop=drop)
        assert list(made.release.table.columns) == list(table.columns)
        assert "for every person (at most 2 rows each)" in str(made.release.guarantee)
        guarantee = json.loads(made.manifest)["guarantee"]
        assert (guarantee["status"], guarantee["unit"], guarantee["rows_per_unit"]) == ("proven", "person", 2)


def test_columns_that_name_people_are_refused_or_left_out(folder, table):
    people = table.assign(name=[f"Person {i} of {i * 7919 % 1000}" for i in range(len(table))])
    with pytest.raises(InputError, match="'name'"):
        protected(people)
    made = protected(people, drop=["name"])
    assert "name" not in made.release.table.columns and made.release.guarantee.status == "nominal"
    with pytest.raises(InputError, match="cannot be left out"):
        protected(table, drop=["diagnosis"])


def test_what_is_odd_about_a_table_is_told_without_its_place_on_the_disk(folder, table):
    table = table.astype({"mean_radius": object})
    table.loc[3, "mean_radius"] = "unknown"
    notes = []
    protected(table, schema=demo_schema(), on_note=notes.append)
    assert any("'unknown' in line 5" in sentence for sentence in notes), notes
    assert not any(str(folder) in sentence for sentence in notes)


def test_a_broken_schema_is_one_sentence(folder):
    with pytest.raises(InputError) as error:
        work.read_schema(b"[[[")
    assert str(folder) not in str(error.value)


def test_words_of_a_table_are_no_markup():
    text = work.as_markdown("![x](http://evil) <b> $a$ :red[b] `c` *d*\nnext")
    assert text == (r"\!\[x\]\(http\://evil\) \<b\> \$a\$ \:red\[b\] \`c\` \*d\* next")


def test_the_server_listens_here_alone_and_tells_nobody():
    command = arguments(9000, 5)
    assert f"--server.address={ADDRESS}" in command and ADDRESS == "127.0.0.1"
    assert "--browser.gatherUsageStats=false" in command and "--server.maxUploadSize=5" in command
    page = Path(command[command.index("run") + 1])
    assert page.exists() and command[-1] == "5"


def test_ports():
    import socket

    with socket.socket() as taken:
        taken.bind((ADDRESS, 0))
        taken.listen()
        with pytest.raises(InputError, match="cannot be used"):
            free_port(taken.getsockname()[1])
    assert free_port() >= server.FIRST_PORT
    with pytest.raises(InputError, match="cannot be used"):
        free_port(99_999)


def test_without_streamlit_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "streamlit", None)
    with pytest.raises(MissingExtraError, match=r"oversafe\[app\]"):
        serve()


def test_a_size_that_makes_no_sense(monkeypatch):
    monkeypatch.setattr(server, "find_spec", lambda name: object())
    with pytest.raises(InputError, match="--max-size 0"):
        serve(max_size=0)
