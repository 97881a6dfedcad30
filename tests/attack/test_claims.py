"""Every claim of ReconSMOTE has a probability of being wrong, and those are not far below the truth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import ADASYN, SMOTE, SMOTENC, SVMSMOTE, BorderlineSMOTE

from oversafe import audit
from oversafe.attack import ReconSMOTE
from oversafe.attack.class_tables import ClassTables
from oversafe.attack.geometry.claims import CLAIMED
from oversafe.attack.geometry.reconstruction import ReconstructionResult
from oversafe.auditing.certainty import with_certain_records
from oversafe.data import load_dataset

STEPS = np.array([1.0, 0.01, 0.5, 1.0, 0.1])


def people(seed: int, n: int = 60, others: int = 240) -> tuple[np.ndarray, np.ndarray]:
    """Return real rows of two classes on grids, some of each among the others."""
    rng = np.random.default_rng(seed)
    near = rng.integers(0, 80, (n, 5))
    far = rng.integers(20, 120, (others, 5))
    return np.vstack([near, far]) * STEPS, np.repeat([1, 0], [n, others])


def attacked(sampler: Any, X: np.ndarray, y: np.ndarray) -> tuple[ReconstructionResult, np.ndarray]:
    """Attack what a sampler adds, and return which claims are real."""
    made, labels = sampler.fit_resample(X, y)
    rows = made[len(X) :][labels[len(X) :] == 1]
    result = ReconSMOTE().run(rows, X[y == 1], known=X[y == 0], other_classes={"0": X[y == 0]})
    evidence = result.evidence
    return result, ((evidence["real_row"] >= 0) | evidence["real_class"].notna()).to_numpy(dtype=bool)


@pytest.mark.parametrize(
    "sampler",
    [
        SMOTE(random_state=0),
        ADASYN(random_state=0),
        BorderlineSMOTE(random_state=0),
        BorderlineSMOTE(random_state=0, kind="borderline-2"),
        SVMSMOTE(random_state=0),
    ],
    ids=["SMOTE", "ADASYN", "borderline-1", "borderline-2", "SVMSMOTE"],
)
def test_no_certain_claim_is_wrong_whatever_tool_interpolated(sampler: Any) -> None:
    certain = wrong = 0
    for seed in range(4):
        result, right = attacked(sampler, *people(seed))
        assert (result.p_wrong <= CLAIMED).all()
        certain += int((result.p_wrong < 1e-6).sum())
        assert right[result.p_wrong < 1e-6].all()
        assert len(result.certain) == (result.p_wrong < 1e-6).sum()
        wrong += int((~right).sum())
    assert certain >= 40
    assert wrong <= 2


def test_single_rows_give_away_records_where_no_lines_are() -> None:
    X, y = people(5)
    sampler = SMOTE(random_state=0, sampling_strategy={0: 240, 1: 120})
    result, right = attacked(sampler, X, y)
    assert result.details["found_by_single_rows"] > 30 and right.mean() > 0.95
    assert result.details["rows_decoded"] == 60
    # Lines alone find next to nothing.
    rows = sampler.fit_resample(X, y)[0][300:]
    assert len(ReconSMOTE(expand=False).run(rows).records) < 10


def test_each_value_has_a_probability_at_least_that_of_its_record() -> None:
    result, _ = attacked(SMOTE(random_state=0), *people(1))
    told = result.p_values.to_numpy()[~np.isnan(np.asarray(result.records, dtype=float))]
    assert result.p_values.shape == result.records.shape
    assert (told >= 1e-9).all() and (told <= 1).all()
    assert result.evidence["p_wrong"].tolist() == result.p_wrong.tolist()
    assert result.details["wrong_expected"] == pytest.approx(result.p_wrong.sum())


def test_rows_beyond_records_do_not_make_their_mirror_images_records() -> None:
    """A row past a record lies between it and its mirror image on the grid, where nobody is."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 200, (40, 5)) * STEPS
    start, end = rng.integers(0, 40, 400), rng.integers(0, 40, 400)
    keep = start != end
    start, end = start[keep], end[keep]
    share = np.where(rng.random(len(start)) < 0.5, -0.5, 1.0) * rng.random(len(start))
    rows = X[start] + share[:, None] * (X[end] - X[start])
    result = ReconSMOTE().run(rows, X, known=rng.integers(0, 200, (100, 5)) * STEPS)
    assert result.details["recall"] > 0.9
    assert result.details["precision"] == 1.0


def test_records_of_other_classes_are_real_and_named() -> None:
    X, y = people(2)
    sampler = BorderlineSMOTE(random_state=0, kind="borderline-2")
    result, _ = attacked(sampler, X, y)
    others = result.evidence["real_class"] == "0"
    assert others.sum() == result.details["other_classes"]["0"] > 0
    assert "of class '0'" in ReconSMOTE().headline(result, "1", result.details["recovered"])
    assert result.details["precision"] > 0.95


def test_whole_numbers_that_were_cut_off_are_not_read_as_grid_points() -> None:
    """The sampler cuts integer columns off: what stands in a row is no record's value."""
    X, y = people(3)
    frame = pd.DataFrame(X, columns=list("abcde")).astype({"a": int, "d": int})
    made, labels = SMOTE(random_state=0).fit_resample(frame, y)
    result = ReconSMOTE().run(made[300:], frame[y == 1], known=frame[y == 0])
    assert labels[300:].all()
    assert not len(result.records) or result.details["precision"] > 0.95


def test_numbers_beside_categories_are_read() -> None:
    X, y = people(4)
    kinds = np.random.default_rng(0).choice(["x", "y", "z"], len(X))
    frame = pd.DataFrame(X, columns=list("abcde")).assign(kind=kinds)
    made, _ = SMOTENC(categorical_features=["kind"], random_state=0).fit_resample(frame, y)
    result = ReconSMOTE().run(made[300:], frame[y == 1], known=frame[y == 0])
    assert result.details["recall"] > 0.9 and result.details["precision"] == 1.0
    assert result.records["kind"].isna().all()


@pytest.mark.parametrize("write", [lambda x: x.round(3), lambda x: x.astype(np.float32)], ids=["3", "single"])
def test_a_constant_column_is_equal_as_far_as_the_file_says(write: Any) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(340, 5)), np.full(340, 1 / 7)])
    rows = SMOTE(random_state=0).fit_resample(X, np.repeat([0, 1], [300, 40]))[0][340:]
    scores = ReconSMOTE().run(write(rows)).score(X[300:])
    assert scores == ReconSMOTE().run(write(rows[:, :5])).score(X[300:, :5])
    assert scores[0] > 0.9 and scores[1] > 0.2


def test_what_was_tried_is_told_where_nothing_is_found() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 4))
    result = ReconSMOTE().run(rows)
    told = ReconSMOTE().headline(result, "ill")
    assert told.startswith("No real record of class 'ill' was found. Tried: ")
    assert "full precision" in told and "can be computed" not in told


def test_one_sure_claim_exposes_a_release_alone_and_doubtful_ones_do_not() -> None:
    X, y = people(6)
    made, labels = SMOTE(random_state=0, sampling_strategy={0: 240, 1: 90}).fit_resample(X, y)
    frame = pd.DataFrame(made).add_prefix("c").assign(y=labels)
    release = pd.concat([frame[frame["y"] == 0], frame.iloc[300:]])
    found = next(
        f
        for f in audit(release, "y").findings
        if f.result.details.get("class") == "1" and f.result.name == "ReconSMOTE"
    )
    assert found.result.details["p_none_real"] <= 1e-3
    assert found.certain_records == len(found.result.evidence)
    # The same claims expose nothing if chance may explain all of them.
    tables = ClassTables("1", release[release["y"] == 1].drop(columns="y"))
    for chance, count in ((1e-3, found.certain_records), (2e-3, 0)):
        doubtful = replace(found.result, details={**found.result.details, "p_none_real": chance})
        assert with_certain_records(doubtful, tables)[1] == count


@pytest.mark.data
@pytest.mark.parametrize("name", ["ecoli", "abalone_19", "car_eval_34", "personal_loan"])
def test_stated_and_true_errors_on_real_tables(name: str, data_folder: Path) -> None:
    X, y = load_dataset(name)
    minority = (y == y.value_counts().idxmin()).to_numpy()
    values = X.select_dtypes("number").to_numpy(dtype=float)
    stated = wrong = 0.0
    for sampler in (
        SMOTE(random_state=0),
        ADASYN(random_state=0),
        SVMSMOTE(random_state=0),
        BorderlineSMOTE(random_state=0),
        BorderlineSMOTE(random_state=0, kind="borderline-2"),
    ):
        result, right = attacked(sampler, values, minority.astype(int))
        assert right[result.p_wrong < 1e-6].all()
        stated += float(result.p_wrong.sum())
        wrong += float((~right).sum())
    assert wrong <= 2 * stated + 2
