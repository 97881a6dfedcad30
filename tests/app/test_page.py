"""The local page's fields, without a browser."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from oversafe.data import Schema

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

    def opened(schema):
        app = testing.AppTest.from_function(page, default_timeout=120).run()
        app.radio[0].set_value("Protect a table").run()
        app.file_uploader[0].upload("t.csv", visits[0], "text/csv").run()
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
