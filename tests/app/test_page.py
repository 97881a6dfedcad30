"""The local page's fields, without a browser."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from oversafe.data import Column, Schema
from oversafe.protect.registry import method_names

testing = pytest.importorskip("streamlit.testing.v1", reason="install the extra 'app'")
pytestmark = pytest.mark.skipif(
    not hasattr(testing.AppTest, "file_uploader"), reason="this streamlit uploads no files in tests"
)


@pytest.fixture(scope="module")
def visits():
    """A table with several rows per person, and its public schema with and without the person."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "pid": [f"P{i // 4}" for i in range(400)],
            "age": rng.integers(20, 90, 400),
            "state": np.where(np.arange(400) % 8 < 6, "well", "ill"),
        }
    )
    schema = Schema.infer(table, label="state", person="pid")
    for name in ("age", "state"):
        schema = schema.declare(name, domain="public", source="a test")
    return table.to_csv(index=False).encode(), schema


def page():
    from oversafe.app import page

    page.main()


@pytest.fixture
def protect(visits, monkeypatch):
    """Return the page with the table and a schema uploaded."""
    monkeypatch.setattr("sys.argv", ["page"])

    def opened(schema, content=visits[0]):
        app = testing.AppTest.from_function(page, default_timeout=120).run()
        app.radio[0].set_value("Protect a table").run()
        app.file_uploader[0].upload("t.csv", content, "text/csv").run()
        app.file_uploader[1].upload("s.toml", schema.to_toml().encode(), "text/plain").run()
        return app

    return opened


def test_a_person_needs_the_rows_per_person(protect, visits):
    app = protect(visits[1])
    labels = [field.label for field in app.number_input]
    assert labels == ["Privacy budget (epsilon)", "Rows per person"]
    next(button for button in app.button if button.label == "Protect").click().run()
    assert "no bound on the rows of a person" in app.error[0].value and not app.info
    app.number_input[1].set_value(2).run()
    next(button for button in app.button if button.label == "Protect").click().run()
    assert not app.exception and not app.error
    assert "for every person" in app.info[0].value


def test_without_a_person_nothing_is_asked(protect, visits):
    app = protect(visits[1].drop(["pid"]))
    assert [field.label for field in app.number_input] == ["Privacy budget (epsilon)"]


@pytest.mark.parametrize(
    ("method", "numbers", "columns"),
    [("smote", [], 1), ("k-anonymizer", [], 2), ("private-smote", ["Privacy budget (epsilon)"], 2)],
)
def test_a_method_is_explained_and_asked_for_what_it_takes(protect, visits, method, numbers, columns):
    app = protect(visits[1].drop(["pid"]))
    app.selectbox[1].set_value(method).run()
    assert [field.label for field in app.number_input] == numbers and len(app.multiselect) == columns
    assert any("What it does not promise" in text.value for text in app.markdown)
    assert app.selectbox[1].options == method_names()


def test_what_is_odd_about_a_table_is_told_with_its_release(protect, visits):
    app = protect(visits[1].drop(["pid"]))
    app.multiselect[0].set_value(["pid"])
    app.number_input[0].set_value(9.0).run()
    next(button for button in app.button if button.label == "Protect").click().run()
    assert not app.exception and not app.error and "protected" in app.session_state
    assert any("weak promise" in text.value for text in app.warning)


def _released(app):
    """Return what a table is proposed to lose, and the columns of its release."""
    proposed = list(app.multiselect[0].value)
    next(button for button in app.button if button.label == "Protect").click().run()
    # An audit that finds a row of chance says so as an error too.
    assert not app.exception and "protected" in app.session_state, [error.value for error in app.error]
    release = app.session_state["protected"][0].release
    assert release.guarantee.status == "proven"
    return proposed, list(release.table.columns)


@pytest.fixture(scope="module")
def codes():
    """Rows whose code is unique, as if it named people, and a public schema that says that it does not."""
    rows = [f"{i * 37 % 400 + 1000},{20 + i % 60},{'well' if i % 4 else 'ill'}" for i in range(200)]
    public = {"domain": "public", "source": "a test"}
    return rows, Schema(
        (
            Column("code", "integer", "int64", bounds=(1000, 1400), **public),
            Column("age", "integer", "int64", bounds=(0, 120), **public),
            Column("state", "categorical", "str", categories=("ill", "well"), **public),
        ),
        label="state",
    )


@pytest.mark.parametrize(
    "instead",
    [b"1037,20,well", b"1000,3\x81,well", b"1000,3\x00,well"],
    ids=["a code twice", "a byte of no encoding", "a zero byte"],
)
def test_with_a_public_schema_no_row_decides_what_the_page_proposes_or_refuses(protect, codes, instead):
    rows, schema = codes
    tables = [
        b"\n".join([b"code,age,state", first, *(row.encode() for row in rows[1:])])
        for first in (rows[0].encode(), instead)
    ]
    ours, theirs = (_released(protect(schema, table)) for table in tables)
    assert ours == theirs == ([], ["code", "age", "state"])
