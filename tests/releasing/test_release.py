"""One way to a release: the same from Python, the command line and the page; nothing is written or charged early."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import pytest

import oversafe
from oversafe._core.errors import InputError
from oversafe.app import work
from oversafe.data import Column, Schema, read_table
from oversafe.data.infer import count_decimals
from oversafe.privacy import Ledger, read_manifest
from oversafe.releasing import release
from tests.cli.conftest import run

__all__ = ["run"]


@pytest.fixture
def people(tmp_path, monkeypatch):
    """A table with columns of several kinds, as a file with its public schema; the keys are kept here too."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 90, 200),
            "dose": rng.normal(50, 10, 200).round(1),
            "ward": np.where(rng.random(200) < 0.3, "north", "south"),
            "state": np.where(np.arange(200) % 4, "well", "ill"),
        }
    )
    schema = Schema.infer(frame, label="state")
    for name in frame.columns:
        schema = schema.declare(name, domain="public", source="a test")
    frame.to_csv(tmp_path / "t.csv", index=False)
    schema.to_toml(tmp_path / "s.toml")
    return frame, Schema.from_toml(tmp_path / "s.toml")


def papers(manifest):
    """What a manifest says, but for the time and what is made of it."""
    return {name: said for name, said in json.loads(manifest).items() if name not in ("created", "signature")}


# Synthesizers with and without a promise, with settings; samplers, whose rows are in the table's order.
WAYS = [
    ("histograms", {"epsilon": 1.0}),
    ("mixture", {"epsilon": 1.0, "balance": True}),
    ("privbayes", {"epsilon": 1.0, "drop": ["dose"]}),
    ("bayesian-network", {}),
    ("private-smote", {"epsilon": 2.0, "quasi_identifiers": ["age", "ward"]}),
    ("random-over", {}),
]


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize(("method", "options"), WAYS, ids=[name for name, _ in WAYS])
def test_command_line_page_and_python_release_the_same_bytes(
    run, people, tmp_path, method, options, declared
):
    frame, schema = people
    words = [f"--epsilon={options['epsilon']}"] if "epsilon" in options else []
    words += ["--balance"] * options.get("balance", False)
    words += [f"--drop={name}" for name in options.get("drop", ())]
    words += [f"--quasi-identifier={name}" for name in options.get("quasi_identifiers", ())]
    words += ["--schema=s.toml"] * declared
    done = run(
        "protect", "t.csv", "-l", "state", "--method", method, *words, "--seed", 7, "--out", "release.csv"
    )
    assert done.returncode == 0, done.stderr
    by_command = (tmp_path / "release.csv").read_bytes()
    manifest = (tmp_path / "release.csv.manifest.json").read_text()
    told = [line.removeprefix("oversafe: ") for line in done.stderr.splitlines()]

    options = {**options, "schema": schema if declared else None, "random_state": 7, "method": method}
    notes = []
    on_page = work.protect_upload(
        "t.csv", (tmp_path / "t.csv").read_bytes(), 1, "state", **options, on_note=notes.append
    )
    assert on_page.file == by_command
    assert papers(on_page.manifest) == papers(manifest)
    assert notes == told == list(on_page.release.notes)

    (tmp_path / "python").mkdir()
    own = tmp_path / "python" / "release.csv"
    release(tmp_path / "t.csv", "state", **options, out=own, on_note=notes.append)
    assert own.read_bytes() == by_command
    of_frame = release(frame, "state", **options, on_note=notes.append)
    assert of_frame.path is None and of_frame.manifest is None
    pd.testing.assert_frame_equal(of_frame.table, read_table(own), check_dtype=False)
    assert dict(of_frame.settings) == papers(manifest)["settings"]


def test_the_page_itself_releases_those_bytes(run, people, tmp_path, monkeypatch):
    testing = pytest.importorskip("streamlit.testing.v1", reason="install the extra 'app'")
    if not hasattr(testing.AppTest, "file_uploader"):
        pytest.skip("this streamlit uploads no files in tests")
    done = run("protect", "t.csv", "-l", "state", "--epsilon", 1, "--seed", 7, "--out", "release.csv")
    assert done.returncode == 0, done.stderr

    def page():
        from oversafe.app import page

        page.main()

    monkeypatch.setattr("sys.argv", ["page"])
    monkeypatch.setattr(work, "release", partial(release, random_state=7))
    app = testing.AppTest.from_function(page, default_timeout=300).run()
    app.radio[0].set_value("Protect a table").run()
    app.file_uploader[0].upload("t.csv", (tmp_path / "t.csv").read_bytes(), "text/csv").run()
    next(button for button in app.button if button.label == "Protect").click().run()
    assert not app.exception and not app.error
    protected, _ = app.session_state["protected"]
    assert protected.file == (tmp_path / "release.csv").read_bytes()
    assert papers(protected.manifest) == papers((tmp_path / "release.csv.manifest.json").read_text())


def test_a_release_of_a_dataframe_is_written_signed_and_paid_for(people, tmp_path):
    frame, schema = people
    before = frame.copy()
    books = Ledger(tmp_path / "b.db", key_file=tmp_path / "k")
    books.create("people", 3.0)
    out = tmp_path / "r.parquet"
    made = oversafe.release(
        frame,
        "state",
        method="histograms",
        epsilon=1.0,
        schema=schema,
        rows=50,
        out=out,
        ledger=books.for_dataset("people"),
    )
    assert made.guarantee.status == "proven" and len(made.table) == 50 and not made.shuffled
    assert read_manifest(out) == made.manifest and made.manifest.signature is not None
    assert made.manifest.ledger_entry == made.ledger_entry and made.manifest.seal is not None
    assert made.budget.epsilon == 2.0 and made.settings["domains"] == "public"
    pd.testing.assert_frame_equal(frame, before)
    with pytest.raises(InputError, match="exists already"):
        oversafe.release(frame, "state", out=out)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label": None}, "name the column that holds the class"),
        ({"method": "magic"}, "'magic' is not known"),
        ({"method": "smote", "rows": 9}, "for synthetic tables only"),
        ({"rows": 0}, "at least 1"),
        ({"rows": 10**11}, "ask for fewer rows"),
        ({"out": "r.xlsx"}, "name a .csv file"),
        ({"drop": ["nothing"]}, "no column 'nothing' to leave out"),
        ({"label": "nothing"}, "'nothing'"),
        ({"schema": None, "label": "nothing", "settings": {"domains": "private"}}, "'nothing'"),
        ({"table": [[1, 2]]}, "give a pandas DataFrame"),
        ({"schema": "nowhere.toml"}, "nowhere.toml"),
        ({"schema": {"age": 1}}, "give a Schema"),
        ({"schema": None, "strict": True}, "without --schema"),
    ],
)
def test_what_is_refused_costs_nothing_and_leaves_nothing(people, tmp_path, options, message):
    frame, schema = people
    books = Ledger(tmp_path / "b.db", key_file=tmp_path / "k")
    books.create("people", 3.0)
    given = {"table": frame, "label": "state", "schema": schema, "method": "histograms", **options}
    given["out"] = tmp_path / options.get("out", "r.csv")
    with pytest.raises(InputError, match=message):
        release(given.pop("table"), **given, ledger=books.for_dataset("people"))
    assert books.remaining("people").charges == 0
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("r.")]


@pytest.mark.parametrize("cell", ["a word", None, [1], 10**30, b"\xff", float("inf")])
@pytest.mark.parametrize("column", ["age", "dose", "ward", "state"])
def test_no_cell_of_a_dataframe_ends_the_call_under_a_public_schema(people, cell, column):
    frame, schema = people
    odd = frame.astype(object)
    odd[column] = [cell, *odd[column].tolist()[1:]]
    made = release(
        odd, "state", method="histograms", epsilon=1.0, schema=schema, on_note=lambda sentence: None
    )
    assert made.guarantee.status == "proven"
    if cell in ("a word", None):
        with pytest.raises(InputError):
            release(
                odd, "state", method="histograms", schema=schema, strict=True, on_note=lambda sentence: None
            )


@pytest.mark.parametrize(
    ("column", "cell"),
    [("age", 10**400), ("ward", "\ud800"), ("ward", b"\xff"), ("state", Decimal("sNaN"))],
    ids=["a long number", "half a character", "bytes", "a signalling NaN"],
)
def test_no_cell_of_a_dataframe_ends_a_call_that_pays_for_all_it_sees(people, cell, column, tmp_path):
    frame, schema = people
    odd = pd.concat([frame] * 20, ignore_index=True).astype(object)
    odd[column] = pd.Series([cell, *odd[column].tolist()[1:]], dtype=object)
    settings = {"method": "histograms", "epsilon": 8.0, "on_note": lambda sentence: None}
    books = Ledger(tmp_path / "l.db", key_file=tmp_path / "l.key")
    books.create("people", 20.0, 1e-5)
    account = books.for_dataset("people")
    paid = release(odd, "state", schema=schema, ledger=account, **settings)
    found = release(odd, "state", settings={"domains": "private", "delta": 1e-6}, ledger=account, **settings)
    assert paid.guarantee.status == found.guarantee.status == "proven"
    assert books.remaining("people").charges == 2


def test_without_on_note_each_sentence_is_a_warning(people):
    frame, _ = people
    frame = frame.assign(remark="")
    with pytest.warns(UserWarning, match="epsilon = 9 is a weak promise"):
        made = release(frame, "state", method="histograms", epsilon=9.0)
    assert any("weak promise" in sentence for sentence in made.notes)


def test_rows_without_a_label_are_left_out_of_a_dataframe(people):
    frame, schema = people
    frame.loc[:1, "state"] = None
    with pytest.raises(InputError, match="--drop-unlabelled"):
        release(frame, "state", method="random-over")
    made = release(frame, "state", method="random-over", drop_unlabelled=True)
    assert made.table["state"].notna().all() and made.settings["drop_unlabelled"] == "True"
    made = release(
        frame,
        "state",
        method="histograms",
        schema=schema,
        drop_unlabelled=True,
        on_note=lambda sentence: None,
    )
    assert made.guarantee.status == "nominal"


@pytest.mark.filterwarnings("ignore::oversafe.data.MisfitWarning")
@pytest.mark.parametrize("form", ["frame", "file"])
@pytest.mark.parametrize("state", ["well", None])
def test_of_persons_without_a_labelled_row_there_may_be_no_others(people, form, state, tmp_path):
    frame, schema = people
    schema = replace(schema, columns=(*schema.columns, Column("pid", "identifier", "str")), person="pid")
    table = frame.iloc[:3].assign(pid="P1", state=state)
    if form == "file":
        table.to_csv(tmp_path / "persons.csv", index=False)
        table = tmp_path / "persons.csv"
    made = release(
        table,
        "state",
        method="histograms",
        epsilon=1.0,
        schema=schema,
        rows_per_person=2,
        drop_unlabelled=True,
        on_note=lambda sentence: None,
    )
    assert made.guarantee.status == "proven" and made.guarantee.unit == "person"


def test_a_ctrl_c_says_what_stands(people, tmp_path):
    frame, schema = people
    books = Ledger(tmp_path / "b.db", key_file=tmp_path / "k")
    books.create("people", 3.0)

    def stop(step, share):
        raise KeyboardInterrupt

    for ledger, said in (
        (None, "nothing was written"),
        (books.for_dataset("people"), "nothing was written; "),
    ):
        with pytest.raises(KeyboardInterrupt, match=said):
            release(frame, "state", schema=schema, out=tmp_path / "r.csv", ledger=ledger, on_progress=stop)
    assert not (tmp_path / "r.csv").exists()


def test_rows_of_a_sampler_are_rounded_shuffled_and_unseeded() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"dose": rng.normal(5, 2, 120).round(2), "visits": rng.integers(0, 9, 120).astype(float)}
    )
    frame["state"] = np.repeat(["well", "ill"], [90, 30])
    first, second = (oversafe.release(frame, "state", method="smote").table for _ in range(2))
    for made in (first, second):
        assert len(made) == 180
        assert count_decimals(made["dose"].to_numpy()) == 2 and count_decimals(made["visits"].to_numpy()) == 0
        # That the given rows stand first, in their order, has a probability below 1e-100.
        assert not made["dose"].head(120).equals(frame["dose"])
        assert frame["dose"].isin(made["dose"]).all()
    # Two releases without a seed agree in all 60 added rows with a probability far below 1e-6.
    assert sorted(first["dose"]) != sorted(second["dose"])
