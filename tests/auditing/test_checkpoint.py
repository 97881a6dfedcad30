"""An audit that was stopped goes on where it ended."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from oversafe.attack import DistinSMOTE, ReconSMOTE
from oversafe.auditing import audit
from oversafe.data import load_dataset
from oversafe.protect import SMOTE


@pytest.fixture(scope="module")
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    X, y = load_dataset("breast_cancer")
    X_new, y_new = SMOTE(random_state=0).fit_resample(X, y)
    return X_new.assign(diagnosis=y_new), X.assign(diagnosis=y)


def without_time(report) -> dict:
    document = report.to_dict()
    document.pop("seconds")
    return document


def test_the_second_audit_repeats_nothing_and_says_the_same(tables, tmp_path: Path, monkeypatch) -> None:
    release, real = tables
    folder = tmp_path / "kept"
    first = audit(release, "diagnosis", real=real, resume=folder)

    def no_more(*_, **__):
        raise AssertionError("an attack was run again")

    monkeypatch.setattr(ReconSMOTE, "run", no_more)
    monkeypatch.setattr(DistinSMOTE, "run", no_more)
    second = audit(release, "diagnosis", real=real, resume=folder)
    assert without_time(second) == without_time(first)
    assert second.to_html().count("<svg") == first.to_html().count("<svg")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in folder.iterdir())


def test_a_stopped_audit_goes_on(tables, tmp_path: Path, monkeypatch) -> None:
    release, real = tables

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(DistinSMOTE, "run", stop)
        stopped = audit(release, "diagnosis", real=real, resume=tmp_path)
    assert stopped.stopped
    monkeypatch.setattr(ReconSMOTE, "run", stop)
    again = audit(release, "diagnosis", real=real, resume=tmp_path)
    assert not again.stopped
    assert {f.result.name for f in again.findings} >= {"ReconSMOTE", "DistinSMOTE"}


def test_another_table_is_another_audit(tables, tmp_path: Path) -> None:
    release, real = tables
    audit(release, "diagnosis", real=real, resume=tmp_path)
    before = len(list(tmp_path.iterdir()))
    changed = release.copy()
    changed.iloc[0, 0] = np.nextafter(changed.iloc[0, 0], np.inf)
    audit(changed, "diagnosis", real=real, resume=tmp_path)
    assert len(list(tmp_path.iterdir())) > before


def test_a_damaged_file_is_run_again(tables, tmp_path: Path) -> None:
    release, real = tables
    first = audit(release, "diagnosis", real=real, resume=tmp_path)
    for file in tmp_path.glob("*.json"):
        file.write_text("{")
    again = audit(release, "diagnosis", real=real, resume=tmp_path)
    assert [f.headline for f in again.findings] == [f.headline for f in first.findings]
