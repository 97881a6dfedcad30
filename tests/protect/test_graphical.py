"""MST and AIM pay for what they choose and count, and draw what the tables say."""

import itertools

import numpy as np
import pandas as pd
import pytest

from oversafe._core.errors import InputError, MissingExtraError
from oversafe.privacy import Ledger
from oversafe.protect import AIM, MST
from oversafe.protect.marginals import graphical
from oversafe.protect.marginals.graphical import Elimination, GraphicalModel, _connected
from tests.protect.sensitivity import CountsSeen
from tests.protect.test_mixture import SCHEMA, correlated


def make(kind, **parameters):
    return kind(**{"schema": SCHEMA, "classes": ["ill", "well"], "random_state": 0, **parameters})


# ------------------------------------------------------------------------------------------- without the extra


def test_columns_are_drawn_from_what_they_were_joined_with():
    # A chain 0 - 1 - 2 and a column by itself.
    order = Elimination.of([2, 3, 4, 5], [(0, 1), (1, 2)])
    assert sorted(order.order) == [0, 1, 2, 3]
    for place, column in enumerate(order.order):
        assert set(order.parents[column]) <= set(order.order[:place])
    assert order.parents[3] == ()
    assert order.largest([2, 3, 4, 5]) == 12
    # A square needs a chord: some column has two parents.
    square = Elimination.of([2, 2, 2, 2], [(0, 1), (1, 2), (2, 3), (0, 3)])
    assert square.largest([2, 2, 2, 2]) == 8


def test_a_path_is_found():
    assert _connected([(0, 1), (1, 2)], 0, 2)
    assert not _connected([(0, 1), (2, 3)], 0, 3)
    assert not _connected([], 0, 1)


def test_a_model_draws_each_column_given_its_parents():
    order = Elimination([0, 1], {0: (), 1: (0,)})
    tables = {0: np.array([[1.0, 3.0], [4.0, 0.0]]), 1: np.array([[[1.0, 0.0], [0.0, 1.0]]] * 2)}
    model = GraphicalModel((2, 2), order, tables)
    drawn = model.draw(np.repeat([0, 1], 4000), np.random.default_rng(0))
    assert np.array_equal(drawn[0], drawn[1])
    assert drawn[0][:4000].mean() == pytest.approx(0.75, abs=1e-3)
    assert not drawn[0][4000:].any()


def test_a_missing_package_is_told_before_the_ledger_pays(monkeypatch, tmp_path):
    def missing(*_):
        raise MissingExtraError("MST needs the optional package 'mbi'")

    monkeypatch.setattr(graphical, "import_extra", missing)
    ledger = Ledger(tmp_path / "budget.db", key_file=tmp_path / "key")
    ledger.create("patients", 1.0, 1e-6)
    with pytest.raises(MissingExtraError):
        make(MST, random_state=None, ledger=ledger.for_dataset("patients")).fit(*correlated(50))
    assert len(ledger.history("patients")) == 1


@pytest.mark.parametrize(
    ("parameters", "words"),
    [({"n_rounds": -1}, "n_rounds = -1"), ({"max_cells": 0}, "max_cells = 0"), ({"n_bins": 0}, "n_bins = 0")],
)
def test_bad_parameters_are_refused(parameters, words):
    with pytest.raises(InputError, match=words):
        make(AIM, **parameters).fit(*correlated(50))


# ---------------------------------------------------------------------------------------------- with the extra


@pytest.fixture
def mbi():
    return pytest.importorskip("mbi", reason="needs: pip install 'oversafe[marginals]'")


@pytest.mark.extras
@pytest.mark.parametrize("kind", [MST, AIM])
def test_counts_without_noise_are_learned(mbi, kind):
    X, y = correlated(20_000)
    model = make(kind, epsilon=1e5, n_bins=8).fit(X, y)
    pairs = 2 if kind is MST else 3
    assert len(model.tables_) == pairs
    S, t = model.sample(class_counts={"ill": 20_000, "well": 20_000})
    for label in ("ill", "well"):
        real, made = X[y == label], S[t == label]
        assert abs(real["x"].mean() - made["x"].mean()) < 0.05
        assert abs((real["c"] == "a").mean() - (made["c"] == "a").mean()) < 0.03
        assert abs(real["x"].corr(real["n"]) - made["x"].corr(made["n"])) < 0.1


@pytest.mark.extras
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_no_neighbour_moves_the_counts_by_more_than_is_paid_for(mbi, monkeypatch, relation):
    from oversafe.privacy import accountant

    X, y = correlated(60)
    X = X.astype({"c": "object"})
    records = [(0.0, 0, "a", "ill"), (99.0, 3, None, "well"), (2.0, 1, "unknown", "nobody")]
    watched = CountsSeen(monkeypatch)
    scores: list[np.ndarray] = []

    def choice(values, *, sensitivity, **_):
        scores.append(np.array(values) / sensitivity)
        return 0

    monkeypatch.setattr(accountant, "choose", choice)
    # The fit of the model sees only what was answered, and takes seconds.
    monkeypatch.setattr(graphical._Learner, "estimate", lambda self: None)

    def with_record(record):
        row = pd.DataFrame([record[:3]], columns=["x", "n", "c"]).astype({"c": "object"})
        return pd.concat([X, row], ignore_index=True), pd.concat(
            [y, pd.Series([record[3]])], ignore_index=True
        )

    def fit(table):
        make(AIM, relation=relation, delta=1e-6).fit(*table)

    pairs = (
        [(with_record(a), with_record(b)) for a, b in itertools.combinations(records, 2)]
        if relation == "replace-one"
        else [((X, y), with_record(a)) for a in records]
    )
    for a, b in pairs:
        scores.clear()
        moves = watched.moved(fit, a, b)
        assert max(moves) <= 1 + 1e-9
        first, second = scores[: len(scores) // 2], scores[len(scores) // 2 :]
        assert len(first) == len(second) > 0
        for one, other in zip(first, second, strict=True):
            assert np.abs(one - other).max() <= 1 + 1e-9


@pytest.mark.extras
def test_the_guarantee_is_proven_and_few_rows_need_no_pairs(mbi):
    X, y = correlated(300)
    model = make(AIM, random_state=None).fit(X, y)
    assert model.guarantee_.status == "proven"
    # The whole budget, whatever the noisy answers left over: what one run spent is no guarantee.
    assert model.guarantee_.epsilon == 1.0
    S, t = model.sample(50)
    assert list(S.columns) == ["x", "n", "c"] and len(t) == 50
