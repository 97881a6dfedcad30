"""Settings that nobody can use are refused in one sentence, whatever carries them."""

import numpy as np
import pandas as pd
import pytest

from oversafe.data import Column, Schema
from oversafe.errors import InputError
from oversafe.learn import BalancedSynthesisClassifier, PrivateClassifier, PrivateLogisticRegression
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


def test_settings_of_protectors():
    with pytest.raises(InputError, match="domains = 'public' was given; use 'data' or 'private'"):
        PrivateMixture(domains="public").fit(X, y)
    with pytest.raises(InputError, match="random_state = 'a' was given"):
        SMOTE(random_state="a").fit_resample(X, y)


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
