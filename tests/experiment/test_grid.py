"""Grids keep what is finished, resume, and do not lose cells to the failure of others."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from oversafe._core.errors import InputError
from oversafe.experiment import run_grid
from oversafe.experiment.store import cell_key, plain


def touch(folder: str, a: int, b: int = 0) -> dict[str, object]:
    """Leave a trace of every call."""
    with (Path(folder) / "calls").open("a") as file:
        file.write(f"{a},{b}\n")
    if a == 13:
        raise ValueError("an unlucky number")
    return {"sum": a + b, "values": np.arange(a), "share": float("nan"), "frame": pd.DataFrame({"x": [a, b]})}


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().split()


def test_every_combination_once_in_order(tmp_path: Path) -> None:
    table = run_grid(touch, {"folder": [str(tmp_path)], "a": [1, 2], "b": [10, 20]})
    assert table[["a", "b", "sum"]].to_numpy().tolist() == [
        [1, 10, 11],
        [1, 20, 21],
        [2, 10, 12],
        [2, 20, 22],
    ]
    assert (table["status"] == "done").all()
    assert (table["seconds"] >= 0).all()
    assert sorted(calls(tmp_path)) == ["1,10", "1,20", "2,10", "2,20"]


def test_finished_cells_are_never_run_again(tmp_path: Path) -> None:
    store = tmp_path / "store"
    grid = {"folder": [str(tmp_path)], "a": [1, 2]}
    first = run_grid(touch, grid, store=store)
    again = run_grid(touch, {"a": [2, 3, 1], "folder": [str(tmp_path)]}, store=store)
    assert calls(tmp_path) == ["1,0", "2,0", "3,0"]
    assert again["sum"].tolist() == [2, 3, 1]
    # What is read back is what was computed.
    np.testing.assert_array_equal(again["values"][2], first["values"][0])
    pd.testing.assert_frame_equal(again["frame"][0], first["frame"][1])
    assert np.isnan(again["share"]).all()


def test_a_failure_is_told_and_tried_again(tmp_path: Path) -> None:
    store = tmp_path / "store"
    grid = {"folder": [str(tmp_path)], "a": [1, 13, 2]}
    table = run_grid(touch, grid, store=store)
    assert table["status"].tolist() == ["done", "failed", "done"]
    assert table["error"][1] == "ValueError: an unlucky number"
    kept = run_grid(touch, grid, store=store, retry_failed=False)
    assert kept["status"].tolist() == ["done", "failed", "done"]
    assert len(calls(tmp_path)) == 3
    run_grid(touch, grid, store=store)
    assert calls(tmp_path)[3:] == ["13,0"]


def test_a_new_version_starts_over(tmp_path: Path) -> None:
    for version in ("1", "2", "2"):
        run_grid(touch, {"folder": [str(tmp_path)], "a": [1]}, store=tmp_path / "store", version=version)
    assert len(calls(tmp_path)) == 2


def test_cells_in_parallel(tmp_path: Path) -> None:
    grid = {"folder": [str(tmp_path)], "a": list(range(6))}
    table = run_grid(touch, grid, store=tmp_path / "store", n_jobs=2)
    assert table["sum"].tolist() == list(range(6))
    assert run_grid(touch, grid, store=tmp_path / "store", n_jobs=2)["sum"].tolist() == list(range(6))
    assert len(calls(tmp_path)) == 6


def test_workers_that_began_elsewhere_find_a_relative_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # joblib keeps its workers, in the folder that they were started in, for the next run.
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        grid = {"folder": [str(tmp_path)], "a": [1, 2]}
        table = run_grid(touch, grid, store="cells", n_jobs=2)
        assert set(table["status"]) == {"done"}
        assert len(list((tmp_path / name / "cells").glob("*.json"))) == 2


def test_a_given_list_of_cells_and_a_plain_number(tmp_path: Path) -> None:
    table = run_grid(max_of, [{"values": [1, 2]}, {"values": [5]}, {"values": [1, 2]}])
    assert table["value"].tolist() == [2, 5]


def max_of(values: list[int]) -> float:
    return max(values)


def test_the_store_is_private_and_damaged_cells_are_run_again(tmp_path: Path) -> None:
    store = tmp_path / "store"
    grid = {"folder": [str(tmp_path)], "a": [1]}
    run_grid(touch, grid, store=store)
    assert stat.S_IMODE(store.stat().st_mode) == 0o700
    files = sorted(store.iterdir())
    assert {path.suffix for path in files} == {".json", ".parquet"}
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files)
    document = next(path for path in files if path.suffix == ".json")
    for damage in ("", "{", json.dumps({"format": 1})):
        document.write_text(damage)
        assert run_grid(touch, grid, store=store)["sum"].tolist() == [1]
    text = json.loads(document.read_text())
    text["result"]["frame"]["table"] = "../elsewhere.parquet"
    document.write_text(json.dumps(text))
    run_grid(touch, grid, store=store)
    assert len(calls(tmp_path)) == 5


def nap(length: float, number: int) -> float:
    time.sleep(length)
    return number


def test_after_the_time_limit_nothing_is_started(tmp_path: Path) -> None:
    grid = {"length": [0.2], "number": list(range(50))}
    table = run_grid(nap, grid, store=tmp_path, time_limit=0.5)
    done = (table["status"] == "done").sum()
    assert 1 <= done < 50
    assert set(table["status"]) == {"done", "pending"}
    more = run_grid(nap, grid, store=tmp_path, time_limit=0.5)
    assert (more["status"] == "done").sum() > done


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_stop_keeps_what_is_done(tmp_path: Path, how: signal.Signals) -> None:
    code = f"""
    import time
    from pathlib import Path
    from oversafe.experiment import run_grid
    def work(number):
        if number >= 3:
            time.sleep(600)
        return number
    run_grid(work, {{"number": list(range(8))}}, store={str(tmp_path / "store")!r})
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stderr=subprocess.DEVNULL,
        env=os.environ,
        # What runs in the background ignores Ctrl-C, and its children would inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 120
    while len(list((tmp_path / "store").glob("*.json"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(how)
    assert process.wait(60) != 0
    stored = [json.loads(path.read_text()) for path in (tmp_path / "store").glob("*.json")]
    assert sorted(entry["result"]["value"] for entry in stored) == [0, 1, 2]


def interrupted(number: int) -> int:
    if number < 2:
        return number
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt as error:
        # As compiled code does.
        raise SystemError("returned a result with an exception set") from error


def test_a_stop_within_compiled_code_is_no_failed_cell(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt, match="2 of 4 cells are kept"):
        run_grid(interrupted, {"number": list(range(4))}, store=tmp_path)
    assert len(list(tmp_path.glob("*.json"))) == 2


def test_progress_is_shown_on_the_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_grid(touch, {"folder": [str(tmp_path)], "a": [1, 13]}, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "2 of 2" in shown.err
    assert "1 failed" in shown.err
    run_grid(touch, {"folder": [str(tmp_path)], "a": [1]})
    assert capsys.readouterr().err == ""


def test_equal_settings_have_equal_keys() -> None:
    def key(**settings: object) -> str:
        return cell_key("f", "", settings)

    assert key(a=1, b=2) == key(b=2, a=1)
    assert key(a=np.int64(1)) == key(a=1)
    assert key(m=LogisticRegression(C=2)) == key(m=LogisticRegression(C=2))
    different = [
        key(a=1), key(a="1"), key(a=None), key(a=True), key(a=[1]), key(a={"x": 1}), key(a={1: 1}), key(a={"1": 1}),
        key(a=float("inf")), key(m=LogisticRegression(C=3)), key(a=max), key(a=np.array([1])),
    ]  # fmt: skip
    assert len(set(different)) == len(different)


@pytest.mark.parametrize("value", [object(), lambda: 0])
def test_settings_without_a_lasting_name_are_refused(value: object) -> None:
    with pytest.raises(InputError):
        plain(value)


def odd(number: int) -> object:
    return {"made": object()}


def clash(number: int) -> object:
    return {"number": 1}


def test_bad_use(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="list of values"):
        run_grid(nap, {"number": 3})
    with pytest.raises(InputError, match="mapping"):
        run_grid(nap, [3])
    with pytest.raises(InputError, match="rename"):
        run_grid(nap, {"status": [3]})
    with pytest.raises(InputError, match="cannot be created"):
        (tmp_path / "file").write_text("")
        run_grid(nap, {"number": [1]}, store=tmp_path / "file")
    assert "cannot hold" in run_grid(odd, {"number": [1]}, store=tmp_path / "s")["error"][0]
    assert "another name" in run_grid(clash, {"number": [1]})["error"][0]


def test_a_line_for_each_tenth_where_no_bar_can_be(capsys):
    def odd(number):
        if number == 3:
            raise ValueError("three")
        return number

    run_grid(odd, {"number": range(40)}, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert (
        len(lines) == 10
        and lines[0].startswith("4 of 40 cells, 1 failed")
        and lines[-1].startswith("40 of 40")
    )
    run_grid(odd, {"number": range(40)})
    assert capsys.readouterr().err == ""


def test_an_error_is_text_or_none(tmp_path):
    def half(x):
        if x:
            raise ValueError("broken")
        return 1.0

    table = run_grid(half, {"x": [0, 1]})
    assert table["error"].tolist() == [None, "ValueError: broken"]
