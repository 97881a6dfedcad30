"""The demonstration reads every patient back, and nobody out of the private release."""

import json
import re

import pytest

from oversafe.cli.story import run_demo
from oversafe.data import load_dataset, read_table


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    return run_demo(tmp_path_factory.mktemp("demo"))


def test_smote_is_exposed_and_the_private_release_is_not(demo):
    assert demo.smote.verdict.level == "exposed"
    recon = next(f for f in demo.smote.findings if f.result.name == "ReconSMOTE")
    assert recon.result.details["precision"] == 1.0 and recon.certain_records >= 13
    assert demo.private.guarantee.status == "proven" and demo.private.guarantee.epsilon == 1.0
    assert demo.private.verdict.level == "protected"


def test_no_patient_stands_in_the_release(demo):
    X, y = load_dataset("breast_cancer")
    patients = set(X[y == "malignant"].itertuples(index=False, name=None))
    for name in ("smote_release.csv", "private_release.csv"):
        release = read_table(demo.report.parent / name)
        rows = release.loc[release["diagnosis"] == "malignant", list(X.columns)]
        assert len(rows) >= 285 and not patients & set(rows.itertuples(index=False, name=None))


def test_the_page_shows_records_beside_patients(demo):
    page = demo.report.read_text()
    text = re.sub(r"<[^>]+>", " ", page)
    assert page.count(">read back<") == page.count(">patient<") >= 13
    assert "Exposed" in text and "Protected" in text
    assert page.count("<script") == 1 and "http" not in page.replace("http-equiv", "")


def test_the_page_shows_how_far_private_releases_differ(demo):
    text = " ".join(re.sub(r"<[^>]+>", " ", demo.report.read_text()).split())
    figures = re.search(
        r"10 more releases made like it, with other noise ([\d.]+) \(([\d.]+) to ([\d.]+)\)", text
    )
    middle, worst, best = map(float, figures.groups())
    assert 0 <= worst <= middle <= best <= 1 and worst < best
    # Of 40 releases none was below 0.85. If one in fifty were no better than a coin, five of ten would be with a
    # probability of 8e-7, and only then is their middle.
    assert middle > 0.5


def test_everything_is_written(demo):
    names = {file.name for file in demo.report.parent.iterdir()}
    assert names == {
        "report.html",
        "smote_audit.json",
        "private_audit.json",
        "smote_release.csv",
        "smote_release.csv.manifest.json",
        "private_release.csv",
        "private_release.csv.manifest.json",
    }
    for name in ("smote_audit.json", "private_audit.json"):
        figures = json.loads((demo.report.parent / name).read_text())
        assert figures["format"] == "oversafe-audit" and figures["version"] == 1
