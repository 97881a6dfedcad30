"""Every protector keeps its contract."""

import pickle

import numpy as np
import pandas as pd
import pytest
from imblearn.pipeline import make_pipeline
from imblearn.utils.estimator_checks import parametrize_with_checks
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import (
    check_no_attributes_set_in_init,
    check_parameters_default_constructible,
)

from oversafe._core.errors import InputError
from oversafe.data import Schema
from oversafe.data.infer import count_decimals
from oversafe.privacy import Guarantee
from oversafe.protect import Sampler, Synthesizer

from .conformance import CASES, mixed_table, public_schema


def _parameters(cases):
    return [
        pytest.param(
            case,
            id=name,
            marks=[
                pytest.mark.skipif(bool(case.skipped), reason=case.skipped or ""),
                *([pytest.mark.extras] if case.extra else []),
                # Its networks are those of PATEGAN, and take as long to train.
                *([pytest.mark.slow] if name == "DPGAN" else []),
            ],
        )
        for name, case in cases.items()
    ]


every_protector = pytest.mark.parametrize("case", _parameters(CASES))
every_proven = pytest.mark.parametrize(
    "case", _parameters({name: case for name, case in CASES.items() if case.proven})
)


def _checked(*, extra):
    return parametrize_with_checks(
        [case.make(random_state=0) for case in CASES.values() if not case.skipped and case.extra == extra],
        expected_failed_checks=lambda protector: CASES[type(protector).__name__].expected_failed_checks,
    )


@_checked(extra=False)
def test_imbalanced_learn_checks(estimator, check):
    check(estimator)


# Networks that are trained for each of some twenty checks.
@pytest.mark.slow
@pytest.mark.extras
@_checked(extra=True)
def test_imbalanced_learn_checks_with_extras(estimator, check):
    check(estimator)


@every_protector
def test_scikit_learn_checks(case):
    name = type(case.make()).__name__
    check_parameters_default_constructible(name, case.make())
    check_no_attributes_set_in_init(name, case.make())


@every_protector
@pytest.mark.parametrize("classes", [2, 3])
def test_mixed_table_keeps_columns_and_dtypes(case, classes):
    X, y = mixed_table(classes=classes)
    protector = case.make(random_state=0)
    X_new, y_new = protector.fit_resample(X, y)
    assert list(X_new.columns) == list(X.columns)
    assert X_new.dtypes.to_dict() == X.dtypes.to_dict()
    assert list(X_new["ward"].cat.categories) == ["south", "north", "east"]
    assert X_new["grade"].cat.ordered
    assert set(y_new) <= set(y) and y_new.dtype == y.dtype and y_new.name == y.name
    assert len(X_new) == len(y_new)
    assert X_new.index.equals(pd.RangeIndex(len(X_new))) and y_new.index.equals(X_new.index)
    assert X_new["constant"].eq(7.5).all()
    for column in ("smoker", "town", "ward", "grade"):
        assert set(X_new[column].dropna()) <= set(X[column].dropna())
    for column in ("age", "visits", "admitted"):
        assert X[column].min() <= X_new[column].min() and X_new[column].max() <= X[column].max()
    assert X_new["dose"].isna().any() or not case.keeps_missing
    assert not X_new["age"].isna().any()


@every_protector
def test_decimals(case):
    X, y = mixed_table(missing=False)
    X_new, _ = case.make(random_state=0).fit_resample(X, y)
    assert count_decimals(X_new["dose"].to_numpy()) == 2


@every_protector
def test_guarantee_and_schema_after_fit(case):
    X, y = mixed_table()
    protector = case.make(random_state=0)
    protector.fit(X, y)
    assert isinstance(protector.guarantee_, Guarantee)
    assert protector.guarantee_.status != "proven"
    assert protector.guarantee_.caveats
    assert protector.schema_.names == tuple(X.columns)


@every_protector
def test_same_random_state_same_table(case):
    X, y = mixed_table()
    first = case.make(random_state=3).fit_resample(X, y)
    second = case.make(random_state=3).fit_resample(X, y)
    pd.testing.assert_frame_equal(first[0], second[0])
    pd.testing.assert_series_equal(first[1], second[1])


@every_protector
def test_input_is_not_modified(case):
    X, y = mixed_table()
    X_before, y_before = X.copy(deep=True), y.copy(deep=True)
    case.make(random_state=0).fit_resample(X, y)
    pd.testing.assert_frame_equal(X, X_before)
    pd.testing.assert_series_equal(y, y_before)


@every_protector
def test_clone_and_pickle(case):
    X, y = mixed_table()
    protector = case.make(random_state=1)
    assert clone(protector).get_params() == protector.get_params()
    protector.fit(X, y)
    again = pickle.loads(pickle.dumps(protector))
    assert again.guarantee_ == protector.guarantee_
    if isinstance(protector, Synthesizer):
        pd.testing.assert_frame_equal(again.sample(50)[0], protector.sample(50)[0])
    else:
        pd.testing.assert_frame_equal(again.fit_resample(X, y)[0], protector.fit_resample(X, y)[0])


@every_protector
def test_a_declared_schema_is_used(case):
    X, y = mixed_table(missing=False)
    X = X.assign(number=[str(1000 + i) for i in range(len(X))])
    with pytest.raises(InputError, match="'number' seems to hold identifiers"):
        case.make(random_state=0).fit_resample(X, y)
    schema = Schema.infer(X).declare("number", kind="integer", bounds=(0, 9999))
    X_new, _ = case.make(random_state=0, schema=schema).fit_resample(X, y)
    assert pd.to_numeric(X_new["number"]).between(0, 9999).all()


@every_protector
def test_in_a_pipeline_under_cross_validation(case):
    X, y = mixed_table(missing=False)
    columns = make_column_transformer(
        (
            OneHotEncoder(handle_unknown="ignore"),
            make_column_selector(dtype_include=["category", "bool", "str"]),
        ),
        ("passthrough", make_column_selector(dtype_include="number")),
    )
    pipeline = make_pipeline(case.make(random_state=0), columns, LogisticRegression(max_iter=2000))
    scores = cross_val_score(pipeline, X, y, cv=3, scoring="roc_auc", error_score="raise")
    assert np.isfinite(scores).all()


@every_protector
def test_single_minority_row(case):
    X, y = mixed_table(missing=False)
    y = pd.Series(np.where(np.arange(len(y)) == 5, "ill", "healthy"))
    if case.single_minority_row:
        X_new, y_new = case.make(random_state=0).fit_resample(X, y)
        assert len(X_new) == len(y_new) > 0
    else:
        with pytest.raises(InputError) as error:
            case.make(random_state=0).fit_resample(X, y)
        assert "\n" not in str(error.value)


@every_protector
def test_arrays_and_lists(case):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)).astype(np.float32)
    y = np.array(["a"] * 90 + ["b"] * 30)
    X[y == "b"] += 3.0
    X_new, y_new = case.make(random_state=0).fit_resample(X, y)
    assert isinstance(X_new, np.ndarray) and X_new.dtype == np.float32
    assert isinstance(y_new, np.ndarray) and set(y_new) == {"a", "b"}
    # Encoders return sparse matrices by default.
    sparse, _ = case.make(random_state=0).fit_resample(csr_matrix(X), y)
    np.testing.assert_array_equal(sparse.toarray(), X_new)


@every_protector
def test_numbers_as_column_names(case):
    X, y = mixed_table(missing=False)
    X = X[["dose", "age"]].set_axis([2020, 2021], axis=1)
    X_new, _ = case.make(random_state=0).fit_resample(X, y)
    assert list(X_new.columns) == [2020, 2021]


@every_protector
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda X, y: (X.assign(mrn=[f"P{i:05d}" for i in range(len(X))]), y),
            "'mrn' seems to hold identifiers",
        ),
        (lambda X, y: (X.head(0), y.head(0)), "no rows"),
        (lambda X, y: (X, y.head(10)), "as many labels as rows"),
        (lambda X, y: (X, y.where(y.index != 4)), "no label"),
        (lambda X, y: (X, pd.Series(["one"] * len(y))), "1 class"),
        (lambda X, y: (pd.concat([X, X[["age"]]], axis=1), y), "two columns are called 'age'"),
    ],
)
def test_bad_input_is_one_sentence(case, change, message):
    X, y = change(*mixed_table())
    with pytest.raises(InputError, match=message) as error:
        case.make(random_state=0).fit_resample(X, y)
    assert "\n" not in str(error.value)


@every_protector
def test_original_rows(case):
    X, y = mixed_table(missing=False)
    protector = case.make(random_state=0)
    X_new, _ = protector.fit_resample(X, y)
    real = set(X.itertuples(index=False, name=None))
    kept = [row in real for row in X_new.itertuples(index=False, name=None)]
    if isinstance(protector, Sampler):
        assert any(kept)
    else:
        assert not any(kept)


@every_proven
def test_proven_object_has_no_raw_data(case):
    X, y = mixed_table()
    # A value that occurs in one cell only and nowhere in the public schema.
    X.loc[7, "exact"] = 0.1234567891234
    protector = case.proven(public_schema(X.drop(7)).declare("exact", bounds=(-5.0, 5.0)))
    protector.set_params(classes=["healthy", "ill"]).fit(X, y)
    assert protector.guarantee_.status == "proven"
    stored = pickle.dumps(protector)
    assert np.float64(0.1234567891234).tobytes() not in stored
    for value in (X["exact"], X["dose"].dropna()):
        for number in value:
            assert np.float64(number).tobytes() not in stored
            assert np.float64(number).tobytes()[::-1] not in stored  # pickle writes floats big-endian


@every_proven
def test_proven_object_raises_nothing_about_values(case):
    X, y = mixed_table()
    schema = public_schema(X)
    strange = X.astype(object)
    strange.loc[0, "age"] = "unknown"
    strange.loc[1, "dose"] = np.inf
    strange.loc[2, "ward"] = "west"
    strange.loc[3, "admitted"] = "not a date"
    strange.loc[4, "grade"] = None
    strange.loc[5, "smoker"] = "maybe"
    labels = y.where(y.index != 6)
    protector = case.proven(schema).set_params(classes=["healthy", "ill"])
    X_new, y_new = protector.fit_resample(strange, labels)
    assert protector.guarantee_.status == "proven"
    assert set(y_new) <= {"healthy", "ill"}
    assert X_new["age"].dropna().between(0, 110).all()
