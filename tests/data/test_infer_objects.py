"""Columns of objects are numbers or times where all of their values are."""

from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from oversafe import audit
from oversafe._core.errors import InputError
from oversafe.attack import ReconSMOTE
from oversafe.data import Schema
from oversafe.data.infer_objects import settle_column, settle_table
from oversafe.learn import PrivateLogisticRegression
from oversafe.protect import SMOTE, GaussianCopula, PrivateMixture, PrivateSMOTE, RandomOverSampler

y = (np.arange(80) % 4 == 0).astype(int)


def table():
    rng = np.random.default_rng(0)
    whole = pd.array(rng.integers(0, 30, 80), dtype="Int64")
    parts = pd.array(rng.normal(size=80).round(2), dtype="Float64")
    whole[3] = parts[5] = pd.NA
    return pd.DataFrame({"whole": whole, "parts": parts})


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 2], "int64"),
        ([1, 2, None], "Int64"),
        ([1, pd.NA], "Int64"),
        ([1, 2.5, pd.NA], "float64"),
        ([np.float32(0.5), np.nan], "float64"),
        ([Decimal("1.5"), None], "float64"),
        ([2**70, 1], "float64"),
        ([True, 1], "object"),
        ([True, None], "object"),
        (["a", 1], "object"),
        ([None, None], "object"),
        ([datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=None), "x"], "object"),
    ],
)
def test_kinds(values, dtype):
    assert str(settle_column(pd.Series(values, dtype=object)).dtype) == dtype


def test_days_and_times_are_times():
    for values in ([date(2020, 1, 31), None], [datetime(2020, 1, 31), pd.NaT]):
        settled = settle_column(pd.Series(values, dtype=object))
        assert settled.dtype.kind == "M" and settled[0] == pd.Timestamp("2020-01-31") and settled.isna()[1]
    # An index, and names that occur twice, stay as they are.
    twice = pd.DataFrame([[1, "a"], [2, "b"]], dtype=object, columns=["x", "x"], index=[5, 5])
    assert settle_table(twice).dtypes.astype(str).tolist() == ["int64", "object"]
    assert list(settle_table(twice).index) == [5, 5]


def test_a_schema_is_read_off_objects():
    kinds = [(c.kind, c.dtype, c.missing) for c in Schema.infer(table().astype(object))]
    assert kinds == [("integer", "Int64", True), ("continuous", "float64", True)]
    with pytest.raises(InputError, match="mixes int and str values"):
        Schema.infer(pd.DataFrame({"a": pd.Series([1, "x"], dtype=object)}))


@pytest.mark.parametrize("method", [SMOTE, RandomOverSampler, PrivateSMOTE, PrivateMixture, GaussianCopula])
def test_protectors_give_objects_back(method):
    frame = table().astype(object)
    frame["mixed"] = pd.Series([1, 2.5, pd.NA, 4] * 20, dtype=object)
    frame["day"] = [date(2020, 1, 1 + i % 28) for i in range(80)]
    made, _ = method(random_state=0).fit_resample(frame, y)
    assert (made.dtypes == "object").all()
    assert {type(v) for v in made["day"]} == {date}
    assert {type(v) for v in made["whole"].dropna()} == {int}
    array, _ = method(random_state=0).fit_resample(frame.to_numpy(), y)
    assert array.dtype == object and {type(v) for v in array[:, 3]} == {date}


def test_learners_take_arrays_of_objects_with_gaps():
    model = PrivateLogisticRegression(data_norm=4.0, classes=[0, 1], random_state=0)
    plain = table().to_numpy(dtype=float, na_value=np.nan)
    expected = model.fit(plain, y).predict_proba(plain)
    assert np.array_equal(model.fit(table().to_numpy(), y).predict_proba(table().to_numpy()), expected)
    assert PrivateLogisticRegression(classes=[0, 1]).fit(table().astype(object), y).predict(
        table().astype(object)
    ).shape == (80,)


def test_attacks_see_numbers_in_objects():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(320, 3)), columns=list("abc"))
    label = np.repeat([0, 1], [300, 20])
    made, classes = SMOTE(random_state=0).fit_resample(X, label)
    rows = made[classes == 1].iloc[20:]
    plain, objects = (ReconSMOTE().run(rows.astype(dtype)) for dtype in (float, object))
    assert len(plain.records) and len(objects.records) == len(plain.records)
    release = made.astype(object).assign(y=classes)
    assert audit(release, "y").verdict.level == "exposed"
