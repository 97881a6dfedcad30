"""Settings that nobody can use are refused in one sentence, whatever carries them."""

import numpy as np
import pandas as pd
import pytest

from oversafe import audit, compare
from oversafe._core.errors import InputError
from oversafe.attack import ClosestRecord, DistinSMOTE, GroundHog, ReconSMOTE
from oversafe.data import Column, Schema, write_table
from oversafe.learn import BalancedSynthesisClassifier, PrivateClassifier, PrivateLogisticRegression
from oversafe.measure import fidelity, train_on_synthetic
from oversafe.protect import SMOTE, PrivateMixture

X = np.random.default_rng(0).random((60, 2))
y = np.arange(60) % 2


@pytest.mark.parametrize(
    "method", [PrivateMixture, PrivateLogisticRegression, BalancedSynthesisClassifier, PrivateClassifier]
)
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"schema": {}}, "schema = a dict was given; give a Schema"),
        ({"classes": 0}, "classes = 0 was given; give the labels that exist in a list"),
        ({"classes": "01"}, "classes = '01' was given; give the labels that exist in a list"),
        ({"random_state": "a"}, "random_state = 'a' was given; use None or a whole number"),
        ({"random_state": -1}, "random_state = -1 was given; use None or a whole number"),
    ],
)
def test_settings_that_nobody_can_use(method, given, said):
    with pytest.raises(InputError, match=said):
        method(**given).fit(X, y)


@pytest.mark.parametrize("rows", [60, 3000])
@pytest.mark.parametrize(
    "method", [PrivateLogisticRegression, BalancedSynthesisClassifier, PrivateClassifier, PrivateMixture]
)
def test_a_class_alone_or_twice_is_no_choice(method, rows):
    table, labels = np.resize(X, (rows, 2)), np.resize(y, rows)
    with pytest.raises(InputError, match=r"classes = \[0, 0, 1\] was given; give .* once$"):
        method(classes=[0, 0, 1]).fit(table, labels)
    if method is not PrivateMixture:
        with pytest.raises(
            InputError, match=r"classes = \[0\] was given; give at least two labels, each once$"
        ):
            method(classes=[0]).fit(table, labels)


def test_settings_of_protectors():
    with pytest.raises(InputError, match="domains = 'public' was given; use 'data' or 'private'"):
        PrivateMixture(domains="public").fit(X, y)
    with pytest.raises(InputError, match="random_state = 'a' was given"):
        SMOTE(random_state="a").fit_resample(X, y)
    for method in (SMOTE, PrivateMixture):
        with pytest.raises(InputError, match="y = None was given; give the class of each row"):
            method().fit_resample(X, None)


@pytest.mark.parametrize("method", [PrivateMixture, PrivateLogisticRegression])
def test_columns_that_are_not_declared_are_all_named(method):
    column = Column("a", "continuous", "float64", bounds=(0.0, 1.0))
    table = pd.DataFrame(np.c_[X, X], columns=list("abcd"))
    with pytest.raises(
        InputError, match="has columns 'b', 'c', 'd' that the schema does not declare; drop them"
    ):
        method(schema=Schema((column,))).fit(table, y)
    with pytest.raises(InputError, match="no column 'a', which the schema declares; add it"):
        method(schema=Schema((column,))).fit(table[["b", "c"]], y)


class Frame:
    """A table of another library, of which numpy makes an array without names."""

    __module__ = "polars.dataframe.frame"

    def __init__(self, table):
        self.table, self.shape, self.columns = table, table.shape, list(table.columns)

    def __len__(self):
        return len(self.table)

    def __array__(self, dtype=None, copy=None):
        return self.table.to_numpy(dtype)

    def to_pandas(self):
        return self.table


Frame.__qualname__ = Frame.__name__ = "DataFrame"


def test_tables_of_other_libraries_are_not_taken_without_their_names():
    table = pd.DataFrame(X, columns=["a", "b"])
    schema = Schema([Column(name, "continuous", "float64", bounds=(0.0, 1.0)) for name in "ab"])
    foreign, labelled = Frame(table[["b", "a"]]), Frame(table.assign(y=y))
    learner = PrivateLogisticRegression(epsilon=50.0, schema=schema, classes=[0, 1])
    fitted = learner.fit(table, y)
    for use in (
        lambda: fitted.predict(foreign),
        lambda: learner.fit(foreign, y),
        lambda: PrivateClassifier(schema=schema, classes=[0, 1]).fit(foreign, y),
        lambda: BalancedSynthesisClassifier(schema=schema, classes=[0, 1]).fit(foreign, y),
        lambda: PrivateMixture(schema=schema).fit(foreign, y),
        lambda: SMOTE().fit_resample(foreign, y),
        lambda: Schema.infer(foreign),
        lambda: schema.encode(foreign),
        lambda: audit(labelled, "y"),
        lambda: audit(table.assign(y=y), "y", real=labelled),
        lambda: ReconSMOTE().run(foreign),
        lambda: DistinSMOTE().run(foreign),
        lambda: GroundHog().run(SMOTE(), foreign, y),
        lambda: ClosestRecord().run(foreign, table),
        lambda: fidelity(foreign, table),
        lambda: train_on_synthetic(SMOTE(), foreign, y),
        lambda: compare(labelled, "y"),
        lambda: write_table(foreign, "a.csv"),
    ):
        with pytest.raises(InputError, match=r"^a polars DataFrame was given; use its to_pandas\(\)$"):
            use()
