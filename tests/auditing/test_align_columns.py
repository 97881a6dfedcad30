"""A column that is numbers in one table and text in the other hides no copy."""

import warnings

import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import SMOTE

from oversafe import audit
from oversafe._core.errors import InputError
from oversafe.attack import ReconSMOTE


@pytest.fixture(scope="module")
def patients():
    rng = np.random.default_rng(0)
    n = 300
    return pd.DataFrame(
        {
            "load": np.round(rng.uniform(40, 99, n), 1),
            "hb": np.round(rng.normal(13, 2, n), 1),
            "weight": np.round(rng.normal(80, 12, n), 1),
            "admitted": pd.Timestamp("2025-01-01") + pd.to_timedelta(rng.integers(0, 330, n), "D"),
            "ward": rng.choice(["north", "south"], n),
            "y": np.repeat(["ill", "well"], [30, 270]),
        }
    )


def as_text(numbers):
    return numbers.map("{:.1f}".format).str.replace(".", ",")


def but_one(text, other):
    return text.where(text.index != text.index[-1], other)


CHANGES = {
    "per cent": lambda t: t.assign(load=as_text(t["load"]) + " %"),
    "one remark": lambda t: t.assign(hb=but_one(as_text(t["hb"]), "n.b.")),
    "one impossible date": lambda t: t.assign(
        admitted=but_one(t["admitted"].dt.strftime("%d.%m.%Y"), "31.02.2025")
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("changed", ["release", "real", "holdout"])
def test_a_copy_is_found_though_one_column_was_read_as_text(patients, change, changed):
    tables = {"release": patients, "real": patients, "holdout": patients.sample(frac=1, random_state=0)}
    report = audit(**{**tables, changed: change(tables[changed])}, label="y")
    assert report.verdict.level == "exposed"
    (note,) = (w for w in report.warnings if "read as" in w)
    assert ("1 value of the" in note) == (change is not CHANGES["per cent"])


def test_text_that_is_no_number_is_left_out_and_told(patients):
    real = patients.assign(hb=as_text(patients["hb"]).where(patients.index % 5 > 0, "<9"))
    report = audit(patients, "y", real=real)
    assert report.verdict.level == "exposed" and report.facts["columns"] == 4
    told = "column 'hb' is numbers in the release and text in the real table, so this was not compared"
    assert told in report.warnings and told in report.to_dict()["warnings"]
    assert told in " ".join(str(report).split()) and told[1:] in report.to_html().replace("&#39;", "'")


def test_numbers_are_not_compared_with_dates(patients):
    real = patients.assign(admitted=patients["admitted"].dt.year, load=patients["admitted"])
    report = audit(patients, "y", real=real)
    assert report.verdict.level == "exposed"
    assert {w.partition(" is ")[0] for w in report.warnings} >= {"column 'load'", "column 'admitted'"}


def test_columns_of_one_reason_are_told_together(patients):
    wards = patients[["ward"]].to_numpy()
    real = patients.assign(**dict.fromkeys(("load", "hb"), wards[:, 0]))
    assert any(
        w.startswith("columns 'load', 'hb' are numbers") for w in audit(patients, "y", real=real).warnings
    )


def test_without_a_column_of_one_kind_the_audit_is_refused(patients):
    with pytest.raises(
        InputError, match=r"no column is left to be compared: column 'load' is numbers in the release"
    ):
        audit(patients[["load", "y"]], "y", real=patients[["ward", "y"]].rename(columns={"ward": "load"}))


def test_dates_with_and_without_a_time_zone(patients):
    real = patients.assign(admitted=patients["admitted"].dt.tz_localize("UTC"))
    assert audit(patients, "y", real=real).verdict.level == "exposed"


def test_a_column_that_is_empty_in_one_table(patients):
    for empty in ("ward", "hb", "admitted"):
        release = patients.assign(**{empty: np.nan})
        assert audit(release, "y", real=patients, holdout=patients).verdict.level != "protected"


def test_the_tables_given_are_left_as_they_are(patients):
    real = CHANGES["per cent"](patients)
    before = real.copy(deep=True)
    audit(patients, "y", real=real)
    pd.testing.assert_frame_equal(real, before)


def test_smote_of_a_table_with_text_for_numbers(patients):
    numbers = ["load", "hb", "weight"]
    X, y = SMOTE(random_state=0).fit_resample(patients[numbers], patients["y"])
    for real in (CHANGES["per cent"](patients), patients.assign(load=patients["ward"])):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            report = audit(X.assign(y=y), "y", real=real)
        assert report.verdict.level == "exposed" and report.to_html()


def test_records_are_held_against_text_without_a_warning(patients):
    numbers = ["load", "hb", "weight"]
    X, y = SMOTE(random_state=0).fit_resample(patients[numbers], patients["y"])
    ill = patients[patients["y"] == "ill"].assign(load="high")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ReconSMOTE().run(X[y == "ill"], real=ill[numbers])
