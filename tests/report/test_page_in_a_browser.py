"""The pages in a real browser, from disk, with the network off."""

import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import SMOTE

from oversafe import audit
from oversafe.report.demo import run_demo

pytestmark = pytest.mark.browser


def only_asks_for(page_log, path):
    return set(page_log.requests) == {path.as_uri()}


def test_demo_page(page, page_log, tmp_path):
    report = run_demo(tmp_path).report
    page.goto(report.as_uri())
    assert "read out of a table" in page.inner_text("h1")
    assert page.locator(".verdict.exposed").is_visible()
    assert page.locator(".verdict.protected").is_visible()
    assert page.locator("table.pairs tbody tr").count() >= 26
    charts = page.locator("figure svg")
    assert charts.count() >= 3
    assert all(charts.nth(i).bounding_box()["width"] > 200 for i in range(charts.count()))
    assert page_log.errors == [] and only_asks_for(page_log, report)
    # A phone: nothing but the tables scrolls sideways.
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_hostile_names_and_values_are_shown_as_text(page, page_log, tmp_path):
    hostile = [
        "<script>document.title='owned'</script>",
        "<img src=x onerror=\"document.title='owned'\">",
        "=HYPERLINK('http://127.0.0.1')",
        "x" * 10_000,
        "\u202eevil\u202c 😀",
    ]
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(320, 5)), columns=hostile)
    y = pd.Series(np.where(np.arange(320) < 20, "<iframe src='http://127.0.0.1'></iframe>", "common"))
    X_new, y_new = SMOTE(random_state=0).fit_resample(X, y)
    report = tmp_path / "report.html"
    audit(X_new.assign(label=y_new), "label", real=X.assign(label=y)).to_html(report)
    page.goto(report.as_uri())
    assert page.title() != "owned" and page.locator(".verdict.exposed").is_visible()
    assert hostile[0] in page.inner_text("body")
    assert page.locator("script, img, iframe").count() == 0
    assert page_log.errors == [] and only_asks_for(page_log, report)
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
