"""imbalanced-learn's samplers give what imbalanced-learn gives."""

import numpy as np
import pandas as pd
import pytest
from imblearn import over_sampling, under_sampling
from sklearn.datasets import make_classification

from oversafe import protect
from oversafe._core.errors import InputError
from oversafe.data.infer import count_decimals

NAMES = ["RandomOverSampler", "SMOTE", "BorderlineSMOTE", "ADASYN", "SVMSMOTE", "RandomUnderSampler"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("strategy", ["auto", "not majority", "all", "dict"])
def test_float_tables_are_resampled_to_the_same_values(name, dtype, strategy):
    X, y = make_classification(
        300,
        n_features=5,
        n_informative=4,
        n_redundant=0,
        n_classes=3,
        weights=[0.6, 0.3, 0.1],
        random_state=0,
    )
    X = pd.DataFrame(X.astype(dtype), columns=list("abcde"))
    if strategy == "dict":
        strategy = {0: 50, 1: 40, 2: 20} if name == "RandomUnderSampler" else {2: 150, 1: 160}
    theirs = getattr(under_sampling if name == "RandomUnderSampler" else over_sampling, name)
    X_theirs, y_theirs = theirs(random_state=1, sampling_strategy=strategy).fit_resample(X, y)
    X_ours, y_ours = getattr(protect, name)(random_state=1, sampling_strategy=strategy).fit_resample(X, y)
    np.testing.assert_array_equal(y_ours, y_theirs)
    pd.testing.assert_frame_equal(X_ours, X_theirs.reset_index(drop=True), check_exact=True)


@pytest.mark.parametrize("name", ["SMOTE", "SMOTENC", "BorderlineSMOTE", "ADASYN", "SVMSMOTE", "KMeansSMOTE"])
def test_added_rows_have_the_decimals_of_their_columns(name):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "dose": rng.normal(5, 2, 200).round(2),
            "count": rng.integers(0, 90, 200).astype(float),
            "yes": rng.integers(0, 2, 200).astype(float),
            "level": rng.normal(0, 1, 200),
            "same": 1.25,
            "single": rng.normal(5, 2, 200).round(1).astype(np.float32),
        }
    )
    y = np.repeat(["no", "yes"], [150, 50])
    settings = {"kmeans_estimator": 2, "cluster_balance_threshold": 0.01} if name == "KMeansSMOTE" else {}
    X_new, _ = getattr(protect, name)(random_state=0, **settings).fit_resample(X, y)
    pd.testing.assert_frame_equal(X_new.iloc[:200], X, check_exact=True)
    added = X_new.iloc[200:]
    assert len(added) > 50 and list(added.dtypes) == list(X.dtypes)
    assert count_decimals(added["dose"].to_numpy()) == 2
    assert count_decimals(added["count"].to_numpy()) == 0
    assert set(added["yes"]) <= {0.0, 1.0}
    assert count_decimals(added["level"].to_numpy()) is None
    assert set(added["same"]) == {1.25}
    assert count_decimals(added["single"].astype(str).astype(float).to_numpy()) == 1
    array, _ = getattr(protect, name)(random_state=0, **settings).fit_resample(
        X[["dose", "count"]].to_numpy(), y
    )
    np.testing.assert_array_equal(array[:200], X[["dose", "count"]].to_numpy())
    assert count_decimals(array[:, 0]) == 2 and count_decimals(array[:, 1]) == 0


def test_integers_are_rounded_and_missing_values_come_back():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"n": pd.array(rng.integers(0, 9, 60), dtype="Int64"), "f": rng.normal(size=60)})
    X.loc[:20, "n"] = pd.NA
    X_new, _ = protect.SMOTE(random_state=0).fit_resample(X, np.repeat([0, 1], [45, 15]))
    added = X_new.iloc[60:]
    assert str(added["n"].dtype) == "Int64" and added["n"].dropna().between(0, 8).all()


def test_a_class_that_does_not_exist():
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = np.repeat(["a", "b"], [30, 10])
    for strategy in ({"c": 50}, lambda labels: {"c": 50}):
        with pytest.raises(InputError, match="names the class 'c'"):
            protect.SMOTE(sampling_strategy=strategy).fit_resample(X, y)


def test_the_person_column_must_be_dropped():
    from oversafe.data import Schema

    X = pd.DataFrame({"who": range(30), "x": np.linspace(0, 1, 30)})
    schema = Schema.infer(X, person="who")
    with pytest.raises(InputError, match="whose row"):
        protect.SMOTE(schema=schema).fit_resample(X, np.repeat([0, 1], [20, 10]))


def test_parameters_of_imbalanced_learn_are_known():
    from sklearn.svm import SVC

    X = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 2)), columns=["a", "b"])
    y = np.repeat(["no", "yes"], [60, 20])
    X_mixed = X.assign(ward=np.tile(["u", "v"], 40))
    plain, _ = protect.SMOTENC(random_state=0).fit_resample(X_mixed, y)
    auto, _ = protect.SMOTENC(random_state=0, categorical_features="auto").fit_resample(X_mixed, y)
    pd.testing.assert_frame_equal(auto, plain)
    for given, said in ((["town"], "not (a column|columns)"), ([3], "must be in"), (2.5, "No valid")):
        with pytest.raises(
            InputError, match=rf"categorical_features = .* was given; use 'auto', positions.*{said}"
        ):
            protect.SMOTENC(categorical_features=given).fit_resample(X_mixed, y)
    for name, settings in (
        ("SVMSMOTE", {"svm_estimator": SVC(C=2.0)}),
        ("KMeansSMOTE", {"density_exponent": 2.0, "n_jobs": 1, "cluster_balance_threshold": 0.1}),
    ):
        theirs = getattr(over_sampling, name)(random_state=0, **settings).fit_resample(X, y)
        ours = getattr(protect, name)(random_state=0, **settings).fit_resample(X, y)
        pd.testing.assert_frame_equal(ours[0], theirs[0])


def test_errors_name_the_labels_as_they_were_given():
    X = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(InputError, match="class 'yes'") as refused:
        protect.KMeansSMOTE(cluster_balance_threshold=0.99).fit_resample(
            X, np.repeat(["no", "yes"], [50, 10])
        )
    assert "class 1" not in str(refused.value)
    with pytest.raises(InputError, match=r"got 1 class \(0\) instead"):
        protect.SMOTE().fit_resample(X, np.zeros(60, dtype=np.int8))


@pytest.mark.parametrize("name", ["RandomOverSampler", "RandomUnderSampler"])
def test_picked_rows_are_told(name):
    X = pd.DataFrame({"a": np.linspace(0, 1, 40)}, index=np.arange(100, 140))
    sampler = getattr(protect, name)(random_state=0)
    made, _ = sampler.fit_resample(X, np.repeat(["no", "yes"], [30, 10]))
    assert made["a"].tolist() == X["a"].iloc[sampler.sample_indices_].tolist()


@pytest.mark.parametrize("kind", ["csr_array", "csr_matrix", "csc_array", "csc_matrix", "coo_array"])
def test_sparse_tables_come_back_as_they_came(kind):
    import scipy.sparse

    X = getattr(scipy.sparse, kind)(np.random.default_rng(0).normal(size=(60, 2)))
    made, _ = protect.SMOTE(random_state=0).fit_resample(X, np.repeat([0, 1], [45, 15]))
    assert type(made) is type(X)


def test_columns_are_categories_where_imbalanced_learn_is_told_so():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(300, 2)), rng.integers(0, 4, 300), rng.integers(0, 3, 300)])
    y = np.repeat(["no", "yes"], [240, 60])
    frame = pd.DataFrame(X, columns=list("abcd")).astype({"c": int})
    for table, given in (
        (X, [2, 3]),
        (X, [False, False, True, True]),
        (frame, ["c", "d"]),
        (frame, [2, 3]),
        (frame.astype({"c": "category", "d": "category"}), "auto"),
    ):
        theirs, _ = over_sampling.SMOTENC(given, random_state=0).fit_resample(table, y)
        ours, labels = protect.SMOTENC(random_state=0, categorical_features=given).fit_resample(table, y)
        pd.testing.assert_frame_equal(pd.DataFrame(ours), pd.DataFrame(theirs), check_exact=True)
        assert (labels == "yes").sum() == 240
    # Otherwise they are numbers, with the decimals of the table; a schema tells as well.
    plain, _ = protect.SMOTENC(random_state=0).fit_resample(X, y)
    coded, _ = protect.SMOTENC(random_state=0, categorical_features=[2, 3]).fit_resample(X, y)
    assert not (plain[:, 2:] % 1).any() and (plain[:, 2:] != coded[:, 2:]).any()
    schema = protect.SMOTENC(random_state=0, categorical_features=["c", "d"]).fit(frame, y).schema_
    told, _ = protect.SMOTENC(random_state=0, schema=schema).fit_resample(frame, y)
    assert not (told[["c", "d"]] % 1).to_numpy().any()
    # Codes that look like the numbers of persons, and text beside them.
    many = frame.assign(c=rng.permutation(300), town=np.tile(["u", "v"], 150))
    rows, _ = protect.SMOTENC(random_state=0, categorical_features=["c"]).fit_resample(many, y)
    assert set(rows["c"]) <= set(range(300)) and set(rows["town"]) == {"u", "v"}
