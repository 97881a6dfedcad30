"""CTGAN, TVAE and CopulaGAN: what the adapters add, with stand-ins for the networks; the rest is in conformance."""

import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from oversafe._core.errors import InputError, MissingExtraError
from oversafe.protect import CTGAN, TVAE, CopulaGAN

from .conformance import mixed_table


class Bootstrap:
    """Draws rows of its training table with every tenth number out of range, as a network may."""

    trained: pd.DataFrame

    def __init__(self, epochs, batch_size):
        self.epochs, self.batch_size = epochs, batch_size

    def set_random_state(self, seed):
        self.rng = np.random.default_rng(seed)

    def fit(self, table, discrete):
        assert not table.isna().any(axis=None)
        assert all(table[name].dtype == np.int64 for name in discrete)
        self.trained, self.discrete = table, discrete

    def sample(self, n, condition_column=None, condition_value=None):
        table = self.trained
        if condition_column is not None:
            table = table[table[condition_column] == condition_value]
        drawn = table.iloc[self.rng.integers(len(table), size=n)].reset_index(drop=True)
        numbers = [name for name in drawn if name not in self.discrete]
        drawn.loc[::10, numbers] = 1e12
        return drawn


@pytest.fixture
def ctgan(monkeypatch):
    module = ModuleType("ctgan")
    module.CTGAN, module.TVAE = Bootstrap, Bootstrap
    monkeypatch.setitem(sys.modules, "ctgan", module)
    return module


@pytest.mark.filterwarnings("ignore:.*Business Source License")
@pytest.mark.parametrize("kind", [CTGAN, TVAE])
def test_classes_columns_gaps_and_ranges_come_back(ctgan, kind):
    X, y = mixed_table(classes=3)
    synthesizer = kind(random_state=0).fit(X, y)
    X_new, y_new = synthesizer.sample()
    assert y_new.value_counts().to_dict() == y.value_counts().to_dict()
    assert X_new.dtypes.to_dict() == X.dtypes.to_dict()
    assert X_new["dose"].isna().any() and X_new["ward"].isna().any()
    assert X_new["age"].max() <= X["age"].max() and X_new["exact"].max() <= X["exact"].max()
    assert (X_new["constant"] == 7.5).all()
    _, y_new = synthesizer.sample(class_counts={"ill": 1000})
    assert y_new.tolist() == ["ill"] * 1000


@pytest.mark.filterwarnings("ignore:.*Business Source License")
def test_each_row_has_the_class_it_was_drawn_with(ctgan):
    X = pd.DataFrame(
        {"number": np.repeat([0.25, 10.5, 20.75], [50, 30, 20]), "other": np.linspace(0.0, 0.99, 100)}
    )
    y = pd.Series(np.repeat(["a", "b", "c"], [50, 30, 20]))
    X_new, y_new = CTGAN(random_state=0).fit_resample(X, y)
    untouched = X_new["other"] < 0.99
    expected = y_new.map({"a": 0.25, "b": 10.5, "c": 20.75})
    assert untouched.sum() > 50
    assert (X_new["number"] == expected)[untouched].all()


@pytest.mark.parametrize("kind", [CTGAN, TVAE])
def test_the_licence_is_said_when_it_is_chosen(ctgan, kind):
    synthesizer = kind(random_state=0)
    with pytest.warns(UserWarning, match="Business Source License 1.1"):
        synthesizer.fit(*mixed_table())
    assert synthesizer.guarantee_.status == "none"
    assert "Business Source License" in str(synthesizer.guarantee_)


@pytest.mark.filterwarnings("ignore:.*Business Source License")
def test_a_class_that_the_network_never_draws_is_told(ctgan, monkeypatch):
    X, y = mixed_table()

    def only_first(self, n, *condition):
        return self.trained[self.trained["label"] == 0].sample(n, replace=True, random_state=0)

    monkeypatch.setattr(Bootstrap, "sample", only_first)
    synthesizer = TVAE(random_state=0).fit(X, y)
    with pytest.raises(InputError, match="TVAE drew 0 of the 48 rows wanted of class 'ill'"):
        synthesizer.sample()


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        (CTGAN, {"epochs": 0}, "epochs = 0 was given"),
        (TVAE, {"batch_size": 25}, "multiple of 10"),
        (CopulaGAN, {"batch_size": True}, "batch_size = True was given"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(kind, parameters, message):
    with pytest.raises(InputError, match=message):
        kind(**parameters).fit(*mixed_table())


def test_without_the_packages_the_commands_that_bring_them_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ctgan", None)
    monkeypatch.setitem(sys.modules, "sdv.metadata", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'oversafe\[baselines\]'"):
        TVAE().fit(*mixed_table())
    with pytest.raises(MissingExtraError, match="pip install sdv"):
        CopulaGAN().fit(*mixed_table())
