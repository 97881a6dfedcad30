"""The pages in a real browser, from disk, with the network off."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import SMOTE

from oversafe import audit
from oversafe.cli.story import demo_schema, run_demo
from oversafe.data import load_dataset
from oversafe.protect import HistogramSynthesizer

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}


def only_asks_for(page_log, path):
    return set(page_log.requests) == {path.as_uri()}


@pytest.fixture(scope="module")
def real():
    X, y = load_dataset("breast_cancer")
    return X.assign(diagnosis=y)


@pytest.fixture(scope="module")
def exposed(real, tmp_path_factory):
    """The report of SMOTE's release, with every attack."""
    X, y = load_dataset("breast_cancer_holdout")
    X_new, y_new = SMOTE(random_state=0).fit_resample(real.drop(columns="diagnosis"), real["diagnosis"])
    path = tmp_path_factory.mktemp("report") / "report.html"
    found = audit(X_new.assign(diagnosis=y_new), "diagnosis", real=real, holdout=X.assign(diagnosis=y))
    found.to_html(path)
    return path


@pytest.fixture(scope="module")
def protected(real, tmp_path_factory):
    """The report of a release with a proven guarantee, attacked without any other table."""
    X, y = real.drop(columns="diagnosis"), real["diagnosis"]
    synthesizer = HistogramSynthesizer(1.0, schema=demo_schema(), n_bins=4).fit(X, y)
    # Seeded rows of both classes: the noise of a draw may leave the rare one without any.
    seeded = HistogramSynthesizer(1.0, schema=demo_schema(), n_bins=4, random_state=0).fit(X, y)
    X_new, y_new = seeded.sample(class_counts={"benign": 300, "malignant": 60})
    path = tmp_path_factory.mktemp("report") / "report.html"
    audit(X_new.assign(diagnosis=y_new), "diagnosis", guarantee=synthesizer.guarantee_).to_html(path)
    return path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    names = [
        "<script>document.title='owned'</script>",
        "<img src=x onerror=\"document.title='owned'\">",
        "=HYPERLINK('http://127.0.0.1')",
        "x" * 10_000,
        "\u202eevil\u202c 😀",
        "عمر المريض",
    ]
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(320, 6)), columns=names)
    ward = "=cmd|'/c calc'!A1"
    y = pd.Series(np.where(np.arange(320) < 20, "<iframe src='http://127.0.0.1'></iframe>", "common"))
    X_new, y_new = SMOTE(random_state=0).fit_resample(X, y)
    release = X_new.assign(ward=ward, label=y_new)
    path = tmp_path_factory.mktemp("report") / "report.html"
    audit(release, "label", real=X.assign(ward=ward, label=y), name="</title><b>x").to_html(path)
    return path, names


def test_the_verdict_is_shown_first(page, page_log, exposed):
    page.goto(exposed.as_uri())
    verdict = page.locator(".verdict.exposed")
    assert verdict.is_visible() and "15 real records were read out" in verdict.inner_text()
    assert page.get_by_role("img", name="Traffic light: red").is_visible()
    assert page_log.errors == [] and only_asks_for(page_log, exposed)


def test_charts_render(page, exposed):
    page.goto(exposed.as_uri())
    lines = page.locator("#content .columns svg.records").first
    box = lines.bounding_box()
    assert box["width"] > 300 and box["height"] > 200
    assert lines.locator(".way line").count() >= 3 and lines.locator("circle.shown").count() == 1
    # What the style sheet does not reach would be black.
    colours = page.evaluate(
        "[...document.querySelectorAll('.columns svg.records circle.read')].map(c => getComputedStyle(c).fill)"
    )
    assert colours and set(colours) == {"rgb(200, 55, 45)"}
    strips = page.locator("table.glance svg.strip")
    # One for each attack, and the copies of the largest class.
    assert strips.count() == 12 and all(box["width"] > 60 for box in (s.bounding_box() for s in strips.all()))


def test_tables_sort_by_mouse_and_by_keyboard(page, page_log, exposed):
    page.goto(exposed.as_uri())
    table = page.locator("table.glance")
    risks = "[...document.querySelectorAll('table.glance tbody td:nth-child(4)')].map(c => Number(c.dataset.value))"
    heading = table.get_by_role("button", name="Risk")
    heading.click()
    assert table.locator("th[aria-sort=descending]").inner_text().startswith("Risk")
    found = page.evaluate(risks)
    assert found == sorted(found, reverse=True) and len(set(found)) > 2
    heading.focus()
    page.keyboard.press("Enter")
    assert table.locator("th[aria-sort=ascending]").count() == 1
    assert page.evaluate(risks) == sorted(found)
    table.get_by_role("button", name="Attack").click()
    names = table.locator("tbody td:nth-child(2)").all_inner_texts()
    assert names == sorted(names, key=str.lower, reverse=True)
    assert page_log.errors == []


def test_a_point_tells_what_it_is(page, exposed):
    page.goto(exposed.as_uri())
    title = page.locator(".columns circle.shown title").first.text_content()
    assert title.startswith("the record shown: ")


def test_the_page_fits_a_phone_and_paper(page, exposed, tmp_path):
    page.goto(exposed.as_uri())
    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    page.emulate_media(media="print")
    # What is only for the screen is gone, and the width of a page holds all that is left.
    assert not page.locator("nav").is_visible() and not page.locator("details").first.is_visible()
    page.set_viewport_size({"width": 680, "height": 960})
    assert page.evaluate("document.documentElement.scrollWidth") <= 680


def test_it_is_dark_where_the_reader_wants_it_dark(page, exposed):
    page.emulate_media(color_scheme="dark")
    page.goto(exposed.as_uri())
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(16, 19, 23)"


def test_a_protected_release_alone(page, page_log, protected):
    page.goto(protected.as_uri())
    assert page.locator(".verdict.protected").is_visible()
    assert page.get_by_role("img", name="Traffic light: green").is_visible()
    assert page.get_by_role("heading", name="What to do", exact=True).is_visible()
    assert page.locator("table.glance tbody tr").count() >= 2
    assert page_log.errors == [] and only_asks_for(page_log, protected)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    return run_demo(tmp_path_factory.mktemp("demo")).report


def test_demo_page(page, page_log, demo):
    page.goto(demo.as_uri())
    assert "read out of a table" in page.inner_text("h1")
    assert page.locator(".verdict.exposed").is_visible()
    assert page.locator(".verdict.protected").is_visible()
    assert page.locator("table.pairs tbody tr").count() >= 26
    charts = page.locator("figure > svg")
    assert charts.count() >= 1
    assert all(charts.nth(i).bounding_box()["width"] > 200 for i in range(charts.count()))
    assert page_log.errors == [] and only_asks_for(page_log, demo)
    # A phone: nothing but the tables scrolls sideways.
    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_hostile_names_and_values_are_shown_as_text(page, page_log, hostile):
    path, names = hostile
    page.goto(path.as_uri())
    assert (
        page.title().startswith("Privacy audit of </title><b>x")
        and page.locator(".verdict.exposed").is_visible()
    )
    for summary in page.locator("summary").all():
        summary.click()
    text = page.inner_text("body")
    assert names[0] in text and names[2] in text and names[5] in text
    assert "<iframe src='http://127.0.0.1'></iframe>" in text and "=cmd|'/c calc'!A1" in text
    assert "x" * 200 not in text and "\u202e" not in text and "evil" in text and "😀" in text
    assert page.locator("img, iframe, b").count() == 0 and page.locator("script").count() == 1
    assert page_log.errors == [] and only_asks_for(page_log, path)
    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("which", ["exposed", "protected", "hostile"])
def test_no_serious_barrier(page, axe, request, which, scheme):
    found = request.getfixturevalue(which)
    page.emulate_media(color_scheme=scheme)
    page.goto((found[0] if which == "hostile" else found).as_uri())
    if scheme == "light":
        # The tables of evidence hold thousands of cells in the same few colours: once is enough.
        for summary in page.locator("summary").all():
            summary.click()
    assert axe(page) == []


def test_no_serious_barrier_in_the_demo(page, axe, demo):
    page.goto(demo.as_uri())
    assert axe(page) == []


def test_a_barrier_would_be_found(page, axe):
    page.set_content("<html lang='en'><title>t</title><main><h1>x</h1><img src='data:,'></main></html>")
    assert any("image-alt" in finding for finding in axe(page))


def test_in_a_notebook_the_frame_sorts_and_reaches_nothing(page, page_log, exposed, tmp_path, real):
    X_new, y_new = SMOTE(random_state=0).fit_resample(real.drop(columns="diagnosis"), real["diagnosis"])
    found = audit(X_new.assign(diagnosis=y_new), "diagnosis")
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><title>notebook</title>{found._repr_html_()}", encoding="utf-8")
    page.goto(path.as_uri())
    frame = page.frame_locator("iframe")
    assert frame.locator(".verdict.exposed").is_visible()
    frame.locator("table.glance").get_by_role("button", name="Risk").click()
    assert frame.locator("table.glance th[aria-sort=descending]").count() == 1
    assert page_log.errors == [] and set(page_log.requests) <= {path.as_uri(), "about:srcdoc"}
