"""What fails outside the tool: disk, home folder, locale, a second command, a kill; nothing is half-written."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from oversafe._core.errors import InputError
from oversafe.data import load_dataset, read_table, write_table
from oversafe.privacy.signing.manifest import read_manifest

resource = pytest.importorskip("resource", reason="limits are those of Unix")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    X, y = load_dataset("breast_cancer")
    write_table(X.assign(diagnosis=y), tmp_path / "real.csv")
    return tmp_path


def start(
    folder: Path, *arguments: str, limit: int | None = None, **environment: str | None
) -> subprocess.Popen:
    own = {**os.environ, **{k: v for k, v in environment.items() if v is not None}}
    for name in [k for k, v in environment.items() if v is None]:
        own.pop(name, None)

    def prepare() -> None:
        # A child of a background shell would ignore Ctrl-C.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.Popen(
        [sys.executable, "-m", "oversafe", *arguments],
        cwd=folder,
        env=own,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=prepare,
    )


def ended(process: subprocess.Popen) -> tuple[int, str]:
    said = process.communicate(timeout=300)[0].decode("utf-8", "replace")
    return process.returncode, said


PROTECT = ("protect", "real.csv", "--label", "diagnosis", "--method", "histograms", "--out", "release.csv")


def test_a_full_disk_leaves_nothing_behind(folder):
    code, said = ended(start(folder, *PROTECT, limit=8_192))
    assert code == 2 and "'release.csv' cannot be written" in said and "Traceback" not in said
    assert sorted(path.name for path in folder.iterdir()) == ["real.csv"]


def test_a_full_disk_keeps_the_report_that_was_there(folder):
    yesterday = '<meta name="generator" content="oversafe 0.1.0">the one from yesterday'
    (folder / "report.html").write_text(yesterday)
    audit = ("audit", "real.csv", "--label", "diagnosis", "--report", "report.html", "--time-limit", "1s")
    code, said = ended(start(folder, *audit, limit=8_192))
    assert code == 2 and "'report.html' cannot be written" in said
    assert (folder / "report.html").read_text() == yesterday


@pytest.mark.parametrize(
    "environment",
    [
        {"HOME": None, "XDG_CACHE_HOME": None},
        {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": None},
    ],
    ids=["no home", "no UTF-8"],
)
def test_poor_surroundings_are_enough(folder, environment):
    table = read_table(folder / "real.csv").rename(columns={"mean_radius": "Größe 🙂"})
    write_table(table, folder / "real.csv")
    code, said = ended(start(folder, *PROTECT, **environment))
    assert code == 0, said
    assert list(read_table(folder / "release.csv").columns) == list(table.columns)


def test_two_commands_on_one_output_leave_one_whole_release(folder):
    both = [start(folder, *PROTECT) for _ in range(2)]
    ends = [ended(process) for process in both]
    # Whoever comes second may be refused; a release that is there is whole, and its guarantee is its own or refused.
    assert {code for code, _ in ends} <= {0, 2} and 0 in {code for code, _ in ends}
    assert len(read_table(folder / "release.csv")) > 0
    left = {path.name for path in folder.iterdir()}
    assert left == {"real.csv", "release.csv", "release.csv.manifest.json"}
    with contextlib.suppress(InputError):
        assert read_manifest(folder / "release.csv") is not None


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("command", ["protect", "audit", "compare"])
def test_a_command_that_is_killed_at_any_moment_leaves_nothing_half_written(folder, command, how):
    arguments = {
        "protect": PROTECT,
        "audit": ("audit", "real.csv", "--label", "diagnosis", "--report", "report.html"),
        "compare": ("compare", "real.csv", "--label", "diagnosis", "--methods", "smote,histograms",
                    "--no-membership", "--jobs", "1", "--report", "compare.html"),
    }[command]  # fmt: skip
    for wait in (0.5, 2.0, 4.0, 8.0):
        process = start(folder, *arguments)
        time.sleep(wait)
        process.send_signal(how)
        process.communicate(timeout=120)
        for path in folder.glob("*.csv"):
            read_table(path)
        for path in folder.glob("*.html"):
            assert path.read_text().rstrip().endswith("</html>")
        if (folder / "release.csv.manifest.json").exists() and (folder / "release.csv").exists():
            assert read_manifest(folder / "release.csv") is not None
        (folder / "release.csv").unlink(missing_ok=True)
        (folder / "release.csv.manifest.json").unlink(missing_ok=True)
