"""GEM pays for what it chooses and counts, decides by public facts, and draws what it has learned."""

import itertools
import pickle
import sys

import numpy as np
import pandas as pd
import pytest

from oversafe._core.errors import InputError, MissingExtraError
from oversafe.privacy import Accountant, Ledger
from oversafe.protect import GEM
from oversafe.protect.marginals import gem
from oversafe.protect.marginals.gem import _candidates, _Plan
from tests.protect.sensitivity import CountsSeen
from tests.protect.test_mixture import SCHEMA, correlated


def make(**parameters):
    return GEM(**{"schema": SCHEMA, "classes": ["ill", "well"], "random_state": 0, **parameters})


# ------------------------------------------------------------------------------------------- without the extra


def test_the_candidates_are_tables_with_the_label_and_without():
    rng = np.random.default_rng(0)
    assert _candidates(3, "label", rng) == [(0, 1), (0, 2), (1, 2)]
    assert _candidates(3, "features", rng) == [(0, 1, 2)]
    assert _candidates(4, "all", rng) == [
        *itertools.combinations(range(4), 2),
        *itertools.combinations(range(4), 3),
    ]
    assert _candidates(1, "all", rng) == []
    # Of very many some are drawn.
    drawn = _candidates(100, "all", rng)
    assert len(set(drawn)) == len(drawn) == 2000
    assert all(list(own) == sorted(set(own)) for own in drawn)


def plan(n_rows, **parameters):
    settings = {"n_tables": 100, "alpha": 0.33, "n_columns": 10, "marginals": "all", **parameters}
    n_columns = settings.pop("n_columns")
    candidates = _candidates(n_columns, settings.pop("marginals"), np.random.default_rng(0))
    return _Plan.of(Accountant(1.0, 1e-9), n_rows, n_columns, 2, candidates, **settings)


def test_more_rows_have_more_tables_in_more_groups():
    plans = [plan(n) for n in (100, 5_000, 50_000, 5_000_000)]
    assert plans[0].n_tables == 0 and plans[0].candidates == []
    tables = [own.n_tables for own in plans]
    assert tables == sorted(tables) and tables[-1] == 100
    assert plans[3].n_groups[2] > plans[2].n_groups[2] >= 3
    assert plan(50_000, n_tables=0).n_tables == 0


def test_what_is_measured_anyway_is_not_chosen():
    # 45 tables with the label; all of them are measured.
    assert plan(5_000_000, marginals="label").choice == 0.0
    assert plan(5_000_000, marginals="label", n_tables=44).choice == pytest.approx(
        0.33**2 / (0.33**2 + 0.67**2)
    )


def test_a_missing_package_is_told_before_the_ledger_pays(monkeypatch, tmp_path):
    def missing(*_):
        raise MissingExtraError("GEM needs the optional package 'torch'")

    monkeypatch.setattr(gem, "import_extra", missing)
    ledger = Ledger(tmp_path / "budget.db", key_file=tmp_path / "key")
    ledger.create("patients", 1.0, 1e-6)
    with pytest.raises(MissingExtraError):
        make(random_state=None, ledger=ledger.for_dataset("patients")).fit(*correlated(50))
    assert len(ledger.history("patients")) == 1


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n_rounds": 0}, "n_rounds = 0"),
        ({"n_tables": -1}, "n_tables = -1"),
        ({"n_products": 0}, "n_products = 0"),
        ({"embedding": 1.5}, "embedding = 1.5"),
        ({"n_steps": 0}, "n_steps = 0"),
        ({"n_bins": 0}, "n_bins = 0"),
        ({"alpha": 1.0}, "alpha = 1.0"),
        ({"learning_rate": 0.0}, "learning_rate = 0.0"),
        ({"marginals": "some"}, "marginals = 'some'"),
    ],
)
def test_bad_parameters_are_refused(parameters, words):
    with pytest.raises(InputError, match=words):
        make(**parameters).fit(*correlated(50))


# ---------------------------------------------------------------------------------------------- with the extra


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="needs: pip install 'oversafe[deep]'")


def small_generator(rng):
    from oversafe.protect.marginals.product_generator import ProductGenerator
    from oversafe.protect.marginals.product_mixture import Cells

    # An ordered column with a cell for missing values, and two of categories, of different sizes.
    cells = Cells(np.array([4, 3, 2]), np.array([3, 0, 0]))
    base = np.array([0.4, 0.3, 0.2, 0.1, 0.5, 0.3, 0.2, 0.6, 0.4])
    return ProductGenerator(cells, np.array([0.3, 0.7]), base, 5, 8, rng)


GROUPS = [np.array([0, 0, 1, 2]), np.array([0, 1, 1]), np.array([0, 1])]


@pytest.mark.extras
def test_answers_are_those_of_the_products(torch):
    model = small_generator(np.random.default_rng(0))
    products = model.products()
    assert [own.shape for own in products] == [(10, 4), (10, 3), (10, 2)]
    for own in products:
        assert np.allclose(own.sum(axis=1), 1.0, atol=1e-6)
    weight = np.repeat([0.3, 0.7], 5) / 5
    joined = [own @ np.eye(groups.max() + 1)[groups] for own, groups in zip(products, GROUPS, strict=True)]
    sets = [(0, 1), (0, 2), (1, 2)]
    for by_class in (False, True):
        answers = model.answers(np.array(sets), GROUPS, by_class=by_class)
        for (i, j), answer in zip(sets, answers, strict=True):
            terms = weight[:, None, None] * joined[i][:, :, None] * joined[j][:, None, :]
            expected = terms.reshape(2, 5, *terms.shape[1:]).sum(axis=1) if by_class else terms.sum(axis=0)
            assert answer.shape == expected.shape
            assert np.allclose(answer, expected, atol=1e-6)
    (three,) = model.answers(np.array([(0, 1, 2)]), GROUPS, by_class=False)
    assert np.allclose(three, np.einsum("k,ka,kb,kc->abc", weight, *joined), atol=1e-6)
    one = model.answers(np.arange(3)[:, None], GROUPS, by_class=True)
    assert [own.shape for own in one] == [(2, 3), (2, 2), (2, 2)]
    assert np.allclose([own.sum(axis=1) for own in one], [[0.3, 0.7]] * 3, atol=1e-6)


@pytest.mark.extras
def test_training_goes_on_from_where_it_was_and_leaves_torch_as_it_was(torch):
    from oversafe.protect.marginals.product_generator import Tables

    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    model = small_generator(np.random.default_rng(0))
    # The rare class has the first cell where the other has the second.
    target = np.array([[[0.3, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.7]]])
    tables = [Tables(np.array([(1, 2)]), GROUPS, [target], 1e6, True)]

    def distance():
        (answer,) = model.answers(np.array([(1, 2)]), GROUPS, by_class=True)
        return np.abs(answer - target).sum()

    distances = [distance()]
    for _ in range(2):
        model.fit(tables, n_steps=100, learning_rate=0.01)
        distances.append(distance())
    assert distances[0] > 0.5 > 0.05 > distances[1] > distances[2]
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_num_threads() == threads


@pytest.mark.extras
@pytest.mark.parametrize("marginals", ["all", "label", "features"])
def test_counts_without_noise_are_learned(torch, marginals):
    X, y = correlated(20_000)
    both = {"ill": 20_000, "well": 20_000}
    model = make(epsilon=1e5, n_bins=8, marginals=marginals).fit(X, y)
    assert len(model.tables_) == {"all": 4, "label": 3, "features": 1}[marginals]
    S, t = model.sample(class_counts=both)
    # One start may end a little off, by the arithmetic of the machine; the mean of three does not.
    seeds = (1, 2) if marginals == "features" else ()
    others = [make(epsilon=1e5, n_bins=8, marginals=marginals, random_state=seed).fit(X, y) for seed in seeds]
    drawn = [(S, t), *(other.sample(class_counts=both) for other in others)]
    for label in ("ill", "well"):
        real, made = X[y == label], S[t == label]
        off = [abs(real["x"].mean() - own[of == label]["x"].mean()) for own, of in drawn]
        assert np.mean(off) < 0.05
        assert abs((real["c"] == "a").mean() - (made["c"] == "a").mean()) < 0.03
        # Without the label in a table nothing says how columns go together in a rare class.
        if marginals != "features" or label == "well":
            assert abs(real["x"].corr(real["n"]) - made["x"].corr(made["n"])) < 0.1
    natural = model.sample(20_000)[1]
    assert abs((natural == "ill").mean() - (y == "ill").mean()) < 0.01


@pytest.mark.extras
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_no_neighbour_moves_counts_and_choices_by_more_than_is_paid_for(torch, monkeypatch, relation, delta):
    from oversafe.privacy import accountant

    # Legible or not: what counts here is what is asked.
    monkeypatch.setattr(gem, "_TABLE_NOISE", 1000.0)
    X, y = correlated(60)
    X = X.astype({"c": "object"})
    records = [(0.0, 0, "a", "ill"), (99.0, 3, None, "well"), (2.0, 1, "unknown", "nobody")]
    watched = CountsSeen(monkeypatch)
    scores: list[np.ndarray] = []

    def choice(values, *, sensitivity, **_):
        scores.append(np.array(values) / sensitivity)
        return 0

    monkeypatch.setattr(accountant, "choose", choice)

    def with_record(record):
        row = pd.DataFrame([record[:3]], columns=["x", "n", "c"]).astype({"c": "object"})
        return pd.concat([X, row], ignore_index=True), pd.concat(
            [y, pd.Series([record[3]])], ignore_index=True
        )

    def fit(table):
        make(relation=relation, delta=delta, n_tables=3, n_rounds=2, n_steps=2, embedding=8).fit(*table)

    pairs = (
        [(with_record(a), with_record(b)) for a, b in itertools.combinations(records, 2)]
        if relation == "replace-one"
        else [((X, y), with_record(a)) for a in records]
    )
    moves = []
    for a, b in pairs:
        scores.clear()
        moves.append(watched.moved(fit, a, b))
        first, second = scores[: len(scores) // 2], scores[len(scores) // 2 :]
        assert len(first) == len(second) == 3
        for one, other in zip(first, second, strict=True):
            assert np.abs(one - other).max() <= 1 + 1e-9
    assert np.max(moves) <= 1 + 1e-9
    # Columns, columns within classes and the classes are moved as far as they can be by some pair.
    n_first = 3 if relation == "replace-one" else 4
    assert (np.max(moves, axis=0)[:n_first] > 0.99).all()


@pytest.mark.extras
def test_the_whole_budget_is_spent_and_no_more(torch, monkeypatch):
    seen = []
    learn = GEM._learn

    def watch(self, counts, label, accountant):
        learn(self, counts, label, accountant)
        seen.append(accountant)

    monkeypatch.setattr(GEM, "_learn", watch)
    for n_rows, parameters in ((300, {}), (20_000, {"n_tables": 3}), (20_000, {"marginals": "label"})):
        make(n_steps=1, **parameters).fit(*correlated(n_rows))
        assert seen[-1].left == pytest.approx(0.0, abs=1e-6)


@pytest.mark.extras
def test_the_guarantee_is_proven_and_few_rows_need_no_tables(torch):
    X, y = correlated(300)
    model = make(random_state=None).fit(X, y)
    assert model.guarantee_.status == "proven"
    assert model.guarantee_.epsilon <= 1.0 + 1e-9
    assert model.tables_ == []
    S, t = model.sample(50)
    assert list(S.columns) == ["x", "n", "c"] and len(t) == 50
    assert make(n_steps=1).fit(X, y).guarantee_.status == "nominal"
    assert GEM(classes=["ill", "well"], n_steps=1).fit(X, y).guarantee_.status == "nominal"


@pytest.mark.extras
def test_a_declared_class_never_vanishes(torch):
    X, y = correlated(300)
    for seed in range(5):
        model = make(classes=["ill", "well", "never seen"], random_state=seed, n_steps=2).fit(X, y)
        assert model.class_counts_.min() >= 1
        assert len(model.sample(class_counts={"never seen": 5})[0]) == 5


@pytest.mark.extras
def test_a_fitted_model_needs_no_torch_and_repeats_itself(torch, monkeypatch):
    X, y = correlated(5_000)
    stored = pickle.dumps(make(n_steps=20).fit(X, y))
    again = make(n_steps=20).fit(X, y).sample(100)[0]
    monkeypatch.setitem(sys.modules, "torch", None)
    model = pickle.loads(stored)
    pd.testing.assert_frame_equal(model.sample(100)[0], again)


@pytest.mark.extras
def test_people_with_several_rows_and_columns_alone_are_learned(torch):
    X, y = correlated(400)
    one = make(schema=None, n_steps=5).fit(X[["x"]], y)
    assert list(one.sample(5)[0].columns) == ["x"]
    for parameters in (
        {"relation": "add-remove"},
        {"delta": 0.0},
        # So few rows say what columns hold only with a large budget.
        {"domains": "private", "schema": None, "epsilon": 20.0},
    ):
        model = make(n_steps=5, **parameters).fit(X, y)
        assert len(model.sample(10)[0]) == 10


@pytest.mark.parametrize("rows", [1, 3])
def test_the_choice_of_a_table_is_paid_at_least_what_a_unit_moves_it(rows):
    seen = []

    class Payer:
        rows_per_unit = rows

        def choose(self, scores, share, *, what, sensitivity):
            seen.append((scores, sensitivity))
            return 0

    class Model:
        def answers(self, columns, groups, by_class):
            return [np.zeros((2, 2, 2))]

    def asked(counts):
        learner = object.__new__(gem._Learner)
        learner.plan = gem._Plan([(0, 1)], 1, 0.5, {2: 2, 3: 2})
        learner.accountant, learner.total, learner.shares = Payer(), 100, {"tables": 1.0}
        learner.measured, learner._exact = {}, {(0, 1): counts}
        learner._table_groups = lambda width: None
        learner.choose(Model(), 1)
        return seen[-1]

    counts = np.zeros((2, 2, 2), dtype=np.int64)
    counts[0, 0, 0] = 90
    more = counts.copy()
    # All rows of the unit in the cell that is farthest off.
    more[0, 0, 0] += rows
    (first, paid), (second, _) = asked(counts), asked(more)
    assert np.abs(first - second).max() == rows <= paid
