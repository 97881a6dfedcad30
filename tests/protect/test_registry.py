"""Methods of other packages, found by their entry points and loaded when they are asked for."""

from __future__ import annotations

import warnings
from importlib.metadata import EntryPoint

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from oversafe._core.errors import InputError
from oversafe.privacy import Guarantee
from oversafe.protect import SMOTE
from oversafe.protect import registry as module
from oversafe.protect.external import own_method
from oversafe.protect.registry import (
    check_method,
    explain,
    make_protector,
    method_class,
    method_names,
    plugins,
)


class Noise(BaseEstimator):
    """Rows with noise."""

    def __init__(self, epsilon=1.0, random_state=None):
        self.epsilon = epsilon
        self.random_state = random_state

    def fit_resample(self, X, y):
        self.guarantee_ = Guarantee.pure(self.epsilon, "a theorem").weaken("an example")
        rng = np.random.default_rng(self.random_state)
        return X.to_numpy() + rng.laplace(size=X.shape) / self.epsilon, y.to_numpy()


class Bare:
    def fit_resample(self, X, y):
        return X, y


@pytest.fixture
def installed(monkeypatch):
    """Make entry points known as installed packages do."""

    def install(**values):
        points = [EntryPoint(name, f"{value}", module.PLUGINS) for name, value in values.items()]
        monkeypatch.setattr(module, "entry_points", lambda group: points if group == module.PLUGINS else [])
        monkeypatch.setattr(module, "_warned", set())

    return install


def test_a_plugin_is_a_method_like_the_others(installed):
    installed(noise=f"{__name__}:Noise")
    assert list(plugins()) == ["noise"] and method_names()[-1] == "noise" and "smote" in method_names()
    check_method("noise")
    assert method_class("noise") is Noise
    protector = make_protector("noise", epsilon=2.0, random_state=0)
    X, y = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}), pd.Series(["p", "q"], name="y")
    released, labels = protector.fit_resample(X, y)
    assert list(released.columns) == ["a", "b"] and labels.tolist() == ["p", "q"]
    assert protector.guarantee_.epsilon == 2.0 and protector.guarantee_.status == "nominal"
    assert "Rows with noise." in explain("noise") and "epsilon=1.0" in explain("noise")


def test_nothing_takes_the_place_of_ours(installed):
    installed(smote=f"{__name__}:Noise")
    with pytest.warns(UserWarning, match="the plugin 'smote' .* is not used"):
        assert not plugins()
    assert method_class("smote") is SMOTE


def test_a_plugin_that_is_not_used_is_told_once(installed):
    installed(smote=f"{__name__}:Noise", adasyn=f"{__name__}:Noise", noise=f"{__name__}:Noise")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        make_protector("noise")
        explain("noise")
        assert method_names()[-1] == "noise"
    assert [str(each.message).split("'")[1] for each in told] == ["adasyn", "smote"]


def test_a_broken_plugin_is_one_sentence(installed):
    installed(
        gone="no_such_package_anywhere:Thing", bare=f"{__name__}:Bare", function=f"{__name__}:installed"
    )
    # It disturbs nobody who does not ask for it.
    assert isinstance(make_protector("smote"), SMOTE)
    with pytest.raises(
        InputError, match=r"the plugin 'gone' .* cannot be loaded .ModuleNotFoundError.*; mend or"
    ):
        make_protector("gone")
    with pytest.raises(InputError, match=r"let it inherit from sklearn.base.BaseEstimator"):
        method_class("bare")
    with pytest.raises(InputError, match="name a class with fit_resample"):
        method_class("function")
    with pytest.raises(InputError, match=r"'other' is not known; use one of .*gone, bare, function"):
        check_method("other")


@pytest.mark.parametrize("asked", ["n", "n=None", "*, n=3"])
def test_a_sample_is_asked_for_as_the_method_has_it(asked):
    from oversafe.protect.external import drawn

    space = {}
    exec(f"class Model:\n    def sample(self, {asked}):\n        return n", space)
    assert drawn(space["Model"](), 7) == {"n": 7, "n=None": None, "*, n=3": 3}[asked]


@pytest.mark.parametrize(("relation", "status"), [("replace-one", "nominal"), ("add-remove", "proven")])
def test_unlabelled_rows_that_were_left_out_weaken_the_guarantee_of_others_methods_too(relation, status):
    class Theirs(BaseEstimator):
        guarantee_ = Guarantee.pure(1.0, "their theorem", relation=relation)

        def fit_resample(self, X, y):
            return X, y

    X, y = pd.DataFrame({"x": range(8)}), pd.Series([0, 1] * 4)
    method = own_method("theirs", Theirs())
    method.unlabelled_left_out = True
    method.fit_resample(X, y)
    assert method.guarantee_.status == status
