"""The benchmark runner takes turns, does its sums, and keeps quick figures apart from the cited ones."""

from __future__ import annotations

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from benchmarks.__main__ import BENCHMARKS, default_file, main, run_each
from benchmarks.anonymeter_peer import check_agreement as check_risks
from benchmarks.page import RESULTS, page
from benchmarks.peers import folder_of, python_of
from benchmarks.read_csv import check_agreement, mixed_table
from benchmarks.runner import Cost, Side, in_a_fresh_process, in_this_process, measure, show, summarize
from rich.console import Console

CHECKOUT = Path(__file__).parents[1]
# One of each kind: sides that take turns, cases in tables, figures beside them.
_QUICK = {
    "counts",
    "import",
    "imbalance-baselines",
    "mechanisms",
    "read-csv",
    "privbayes",
    "recon",
    "groundhog",
}


def test_the_sides_take_turns_after_one_warm_up_each() -> None:
    turns: list[str] = []

    def side(label: str) -> Side:
        def run() -> Cost:
            turns.append(label)
            return Cost(float(len(turns)))

        return Side(label, run)

    costs = measure([side("ours"), side("peer")], rounds=3)
    assert turns == ["ours", "peer"] * 4
    assert costs == [[Cost(3.0), Cost(5.0), Cost(7.0)], [Cost(4.0), Cost(6.0), Cost(8.0)]]


def test_the_summary_has_the_median_the_spread_and_the_ratio() -> None:
    sides = [
        Side("ours", lambda: Cost(0.0), ["oversafe"], measure_memory=lambda: 3 * 2**20),
        Side("peer", lambda: Cost(0.0), ["pandas"]),
    ]
    costs = [
        [Cost(2.0), Cost(1.0), Cost(9.0)],
        [Cost(8.0, 2**20), Cost(6.0, 2**21), Cost(5.0, 2**20)],
    ]
    summary = summarize("example", sides, costs, quick=True)
    ours, peer = summary["sides"]
    assert (ours["median_seconds"], ours["fastest_seconds"], ours["slowest_seconds"]) == (2.0, 1.0, 9.0)
    assert (ours["peak_memory_mib"], peer["peak_memory_mib"]) == (3.0, 2.0)
    assert (ours["times_ours"], peer["times_ours"]) == (1.0, 3.0)
    assert set(summary["versions"]) == {"oversafe", "pandas"}
    assert summary["machine"]["cores"] >= 1
    console = Console(record=True, width=100, file=StringIO())
    show(summary, console)
    assert "3.00" in console.export_text()


def test_figures_are_shown_beside_the_times() -> None:
    side = Side("ours", lambda: Cost(1.0))
    summary = summarize("example", [side], [[Cost(1.0)]], quick=True)
    summary["figures"] = [{"name": "ecoli", "auc": 0.93712, "interval": [0.92841, 0.9441]}]
    console = Console(record=True, width=100, file=StringIO())
    show(summary, console)
    text = console.export_text()
    assert "0.937" in text
    assert "0.928 - 0.944" in text


def test_work_is_timed_in_this_process() -> None:
    calls: list[int] = []
    cost = in_this_process(lambda: calls.append(1))()
    assert calls == [1]
    assert 0 <= cost.seconds < 1


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells a process's peak memory")
def test_a_fresh_process_tells_its_own_seconds_and_memory() -> None:
    cost = in_a_fresh_process("block = bytearray(50_000_000); block[::4096] = block[::4096]", "import json")()
    assert 0 < cost.seconds < 30
    assert cost.peak_memory is not None
    assert 50_000_000 < cost.peak_memory < 150_000_000


def test_the_seconds_of_a_fresh_process_leave_out_its_setup() -> None:
    assert in_a_fresh_process("pass", "import time; time.sleep(0.5)")().seconds < 0.5


def test_an_error_in_a_fresh_process_is_shown() -> None:
    with pytest.raises(RuntimeError, match="no_such_name"):
        in_a_fresh_process("no_such_name")()


def test_quick_figures_go_where_git_does_not_look() -> None:
    assert default_file("import", quick=True).name == "import.local.json"
    assert default_file("import", quick=False).name == "import.json"


def test_readers_that_disagree_are_not_timed() -> None:
    table = mixed_table(50)
    check_agreement(table, table.copy())
    wrong = table.copy()
    wrong.loc[7, "number_3"] += 1e-9
    with pytest.raises(AssertionError, match="number_3"):
        check_agreement(wrong, table)
    gap = table.copy()
    gap.loc[7, "category_0"] = None
    with pytest.raises(AssertionError, match="category_0"):
        check_agreement(gap, table)
    with pytest.raises(AssertionError, match="columns"):
        check_agreement(pd.DataFrame({"other": [1]}), table)


def test_without_a_name_the_benchmarks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in BENCHMARKS)


def test_an_unknown_name_or_number_of_rounds_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["nothing"], ["import", "--rounds", "0"]):
        with pytest.raises(SystemExit) as error:
            main(arguments)
        assert error.value.code == 2
    assert "at least 1" in capsys.readouterr().err


def test_all_of_them_go_on_after_one_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command[2:])
        return subprocess.CompletedProcess(command, int(command[3] == "counts"))

    monkeypatch.setattr(subprocess, "run", run)
    console = Console(record=True, width=200, file=StringIO())
    assert run_each(sorted(BENCHMARKS), True, 1, console) == 1
    assert [command[1] for command in commands] == sorted(BENCHMARKS)
    assert commands[0] == ["benchmarks", sorted(BENCHMARKS)[0], "--quick", "--rounds", "1"]
    assert "ended with an error: counts\n" in console.export_text()
    assert run_each(["import"], False, None, console) == 0
    with pytest.raises(SystemExit):
        main(["all", "--json", "figures.json"])


def test_peers_have_an_environment_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OVERSAFE_PEERS", str(tmp_path))
    folder = folder_of("peer==1.0")
    assert folder.parent == tmp_path and folder.name.startswith("peer==1.0-py3")
    folder.mkdir()
    (folder / "installed").touch()
    # It is there already, so nothing is made or downloaded.
    assert Path(python_of("peer==1.0")).is_relative_to(folder)
    monkeypatch.delenv("OVERSAFE_PEERS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert folder_of("peer==1.0").is_relative_to(tmp_path / "cache" / "oversafe")


def test_risks_that_disagree_are_not_timed() -> None:
    check_risks([(0.3, 0.2, 0.4)], [(0.45, 0.35, 0.5)], ["risk"])
    with pytest.raises(AssertionError, match="risk: the risks differ"):
        check_risks([(0.3, 0.2, 0.4)], [(0.5, 0.45, 0.55)], ["risk"])


def test_versions_of_a_peer_are_kept() -> None:
    side = Side("peer", lambda: Cost(1.0), versions={"no-such-package": "1.2"})
    assert summarize("example", [side], [[Cost(1.0)]], quick=True)["versions"] == {"no-such-package": "1.2"}


def test_the_page_of_stored_figures_is_that_of_the_files() -> None:
    assert (RESULTS / "README.md").read_text(encoding="utf-8") == page()


def test_the_page_has_the_command_the_sides_and_short_tables(tmp_path: Path) -> None:
    summary = summarize("mine", [Side("a|b", lambda: Cost(1.0))], [[Cost(2.0)]], quick=False)
    summary["tables"] = {"short": [{"x": 1, "y": None}], "long": [{"x": i} for i in range(100)]}
    (tmp_path / "mine.json").write_text(json.dumps(summary), encoding="utf-8")
    (tmp_path / "quick.json").write_text(json.dumps(summary | {"quick": True}), encoding="utf-8")
    text = page(tmp_path)
    assert text.count("`python -m benchmarks mine`") == 1
    assert "| a\\|b | 2.000 |" in text and "| 1 | - |" in text
    assert "100 rows, in `mine.json`" in text and "| 99 |" not in text


@pytest.mark.parametrize(
    "name",
    [
        # Making a peer's environment, or compiling UMAP anew, takes a minute, and many that fit models a quarter of it.
        pytest.param(name, marks=[] if name in _QUICK else [pytest.mark.slow])
        for name in sorted(BENCHMARKS)
    ],
)
def test_every_benchmark_runs_from_the_command_line(name: str, tmp_path: Path) -> None:
    if name == "umap-smotenc":
        pytest.importorskip("umap", reason="needs the extra umap")
    if name == "app":
        pytest.importorskip("streamlit", reason="needs the extra app")
    file = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks", name, "--quick", "--rounds", "1", "--json", str(file)]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    summary = json.loads(file.read_text(encoding="utf-8"))
    assert summary["name"] == name
    assert summary["quick"] is True
    assert all(row["median_seconds"] > 0 for row in summary["sides"])
