"""The local page from end to end: upload, audit, protect, download, and files that cannot be used."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import SMOTE

from oversafe.data import load_dataset

pytestmark = pytest.mark.browser
pytest.importorskip("streamlit", reason="install the extra 'app'")

# Generous: it bounds a test that hangs, and measures nothing.
PATIENCE = 120_000
LIMIT = 2


@pytest.fixture(scope="module")
def temporary(tmp_path_factory) -> Path:
    """The temporary folder of the server."""
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture(scope="module")
def address(temporary):
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "from oversafe.cli.program import main; main()",
            "app",
            "--no-browser",
            "--max-size",
            str(LIMIT),
        ],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONUNBUFFERED": "1"},
        # A shell that runs in the background has its children ignore the signal that ends the server below.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    told = process.stdout.readline()
    yield re.search(r"http://127\.0\.0\.1:\d+", told)[0]
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 0


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    X, y = load_dataset("breast_cancer")
    X.assign(diagnosis=y).to_csv(folder / "real.csv", index=False)
    X_new, y_new = SMOTE(random_state=0).fit_resample(X, y)
    X_new.assign(diagnosis=y_new).to_csv(folder / "release.csv", index=False)
    (folder / "broken.parquet").write_bytes(b"this is no table")
    (folder / "large.csv").write_bytes(b"a,b\n" + b"1,2\n" * 800_000)
    hostile = ["![x](http://127.0.0.1:9/x.png)", "<script>document.title='owned'</script>", ":red[c]", "اسم"]
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 4)), columns=hostile).assign(label="one class only")
    table.to_csv(folder / "hostile.csv", index=False)
    return folder


@pytest.fixture
def app(page, page_log, address):
    page.context.set_offline(False)
    page.set_default_timeout(PATIENCE)
    page.goto(address)
    page.get_by_role("heading", name="oversafe").wait_for()
    page.locator("input[type=file]").first.wait_for(state="attached")
    yield page
    hosts = {re.match(r"\w+:(//[^/]*)?", url)[0] for url in page_log.requests}
    assert hosts <= {address, "data:", "blob:", "about:"}


def upload(app, path):
    app.locator("input[type=file]").first.set_input_files(path)


def downloaded(app, name) -> bytes:
    with app.expect_download() as download:
        app.get_by_role("button", name=name).click()
    return Path(download.value.path()).read_bytes()


def test_upload_audit_and_download(app, axe, files, temporary):
    upload(app, files / "release.csv")
    app.get_by_role("button", name="Audit", exact=True).click()
    app.get_by_text("Exposed: 15 real records were read out of this table").wait_for()
    page = downloaded(app, "Download the report").decode()
    assert "Privacy audit of release.csv" in page
    assert json.loads(downloaded(app, "Download all figures"))["verdict"]["level"] == "exposed"
    report = app.frame_locator("iframe").first
    report.locator(".verdict.exposed").wait_for()
    report.locator("table.glance").get_by_role("button", name="Risk").click()
    assert report.locator("table.glance th[aria-sort=descending]").count() == 1
    assert axe(app) == []
    assert not [path for path in temporary.rglob("*") if path.is_file()]


def test_protect_and_download(app, axe, files):
    app.get_by_text("Protect a table").click()
    app.get_by_text("The real table (CSV or Parquet").wait_for()
    upload(app, files / "real.csv")
    app.get_by_role("button", name="Protect", exact=True).wait_for()
    assert axe(app) == []
    assert b"mean_radius" in downloaded(app, "Download a schema to correct")
    app.get_by_role("button", name="Protect", exact=True).click()
    app.get_by_role("button", name="Download the release").wait_for()
    release = downloaded(app, "Download the release")
    manifest = json.loads(downloaded(app, "Download its guarantee"))
    assert manifest["sha256"] == hashlib.sha256(release).hexdigest()
    assert manifest["guarantee"]["status"] == "nominal" and manifest["guarantee"]["epsilon"] == 1
    assert app.get_by_text("Nominal, not proven").first.is_visible()


def test_a_broken_file_is_one_sentence(app, files):
    upload(app, files / "broken.parquet")
    message = app.get_by_role("alert").filter(has_text="broken.parquet")
    message.wait_for()
    assert "Traceback" not in app.inner_text("body")
    assert app.get_by_role("button", name="Audit", exact=True).count() == 0


def test_a_file_that_is_too_large_is_refused(app, files):
    upload(app, files / "large.csv")
    app.get_by_text(re.compile(r"must be 2(\.0)? ?MB or smaller")).wait_for()
    assert app.get_by_role("button", name="Audit", exact=True).count() == 0


def test_hostile_names_are_shown_as_text(app, files):
    upload(app, files / "hostile.csv")
    app.get_by_role("button", name="Audit", exact=True).click()
    app.get_by_text("No attack that was run reads people out of this table").wait_for()
    assert app.title() == "oversafe" and app.locator("img[src*='127.0.0.1:9']").count() == 0


def test_it_listens_on_the_loopback_address_alone(address):
    if not Path("/proc/net/tcp").exists():
        pytest.skip("only Linux lists its sockets there")
    port = f"{int(address.rpartition(':')[2]):04X}"
    listening = []
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            if local.endswith(f":{port}") and state == "0A":
                listening.append(local.partition(":")[0])
    assert listening == ["0100007F"]
