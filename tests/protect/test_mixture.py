"""PrivateMixture pays for what it counts, decides by public facts, and draws what it has learned."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import check_grad
from scipy.stats import chi2

from oversafe._core.errors import InputError
from oversafe.data import Column, Schema
from oversafe.data.rows.values import value_keys
from oversafe.privacy import Ledger
from oversafe.protect import PrivateMixture
from oversafe.protect.marginals.product_mixture import Cells, Measured, ProductMixture
from tests.protect.sensitivity import CountsSeen

PUBLIC = {"domain": "public", "source": "code book"}
SCHEMA = Schema(
    (
        Column("x", "continuous", "float64", bounds=(0.0, 4.0), **PUBLIC),
        Column("n", "integer", "int64", bounds=(0, 3), **PUBLIC),
        Column("c", "categorical", "str", True, categories=("a", "b"), **PUBLIC),
    )
)


def correlated(n: int, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Return a table whose columns go together and whose rare class is shifted."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.1
    z = rng.normal(size=n) + y
    x = np.clip(2 + 0.8 * z + 0.3 * rng.normal(size=n), 0, 4)
    whole = np.clip(np.rint(1.5 + 0.8 * z + 0.4 * rng.normal(size=n)), 0, 3).astype(int)
    c = np.where(z + 0.5 * rng.normal(size=n) > 0, "a", "b")
    return pd.DataFrame({"x": x, "n": whole, "c": c}), pd.Series(np.where(y, "ill", "well"))


def synthesizer(**parameters) -> PrivateMixture:
    return PrivateMixture(**{"schema": SCHEMA, "classes": ["ill", "well"], "random_state": 0, **parameters})


# --------------------------------------------------------------------------------------------- the model


def small_model(rng: np.random.Generator, n_components: int = 3) -> ProductMixture:
    cells = Cells(np.array([4, 3]), np.array([3, 0]))
    base = np.array([0.4, 0.3, 0.2, 0.1, 0.5, 0.3, 0.2])
    model = ProductMixture(cells, np.array([0.3, 0.7]), base, n_components, rng)
    for part in (model._classes, model._weights, model._columns):
        part += 0.3 * rng.normal(size=part.shape)
    return model


def objective(model: ProductMixture, columns: Measured, within: Measured, pairs: Measured) -> float:
    """Return half the weighted squared errors and the penalties, cell by cell."""
    shares, weights = model.shares, model.weights
    loss = 0.0
    joint = {
        (k, c): model.class_shares[c] * weights[c, k]
        for k, c in itertools.product(range(len(shares)), range(2))
    }
    one = {c: sum(joint[k, c] * shares[k, c] for k in range(len(shares))) for c in range(2)}
    loss += 0.5 * (columns.precision * ((one[0] + one[1]) @ columns.join - columns.shares) ** 2).sum()
    for c in range(2):
        loss += 0.5 * (within.precision * (one[c] @ within.join - within.shares[c]) ** 2).sum()
    both = sum(
        w * np.outer(shares[k, c] @ pairs.join, shares[k, c] @ pairs.join) for (k, c), w in joint.items()
    )
    loss += 0.25 * (pairs.precision * (both - pairs.shares) ** 2).sum()
    for strength, values in ((1.0, model._components), (3.0, model._classes), (0.1, model._columns[None])):
        loss += 0.5 * strength * sum(row @ model.roughness() @ row for row in values)
    return float(loss)


def test_the_gradient_is_that_of_the_objective():
    rng = np.random.default_rng(0)
    model = small_model(rng)
    join, starts = model.cells.join([np.array([0, 0, 1, 2]), np.array([0, 1, 1])])
    assert starts.tolist() == [0, 3, 5]
    columns = Measured(np.eye(7), rng.random(7), 2.0)
    within = Measured(join, rng.random((2, 5)), 3.0)
    precision = np.zeros((5, 5))
    precision[:3, 3:], precision[3:, :3] = 5.0, 5.0
    target = rng.random((5, 5))
    pairs = Measured(join, target + target.T, precision)
    parts = [model._components, model._classes, model._weights, model._columns]
    begin = np.concatenate([part.ravel() for part in parts])

    def put(flat):
        for part, values in zip(parts, np.split(flat, np.cumsum([p.size for p in parts])[:-1]), strict=True):
            part[:] = values.reshape(part.shape)

    def value(flat):
        put(flat)
        return objective(model, columns, within, pairs)

    def gradient(flat):
        put(flat)
        return np.concatenate(
            [g.ravel() for g in model._gradients(columns, within, pairs, model.roughness())]
        )

    assert check_grad(value, gradient, begin) < 1e-5 * np.abs(gradient(begin)).max()


def test_rows_are_drawn_with_the_models_probabilities():
    model = small_model(np.random.default_rng(1))
    n = 200_000
    for c in range(2):
        drawn = model.draw(np.full(n, c), np.random.default_rng(2))
        joint = np.einsum("k,ki,kj->ij", model.weights[c], model.shares[:, c, :4], model.shares[:, c, 4:])
        expected = n * joint
        seen = np.zeros_like(expected)
        np.add.at(seen, (drawn[:, 0], drawn[:, 1]), 1)
        # Fails with probability at most 1e-7 for each class: rows that share out cells evenly vary less.
        assert ((seen - expected) ** 2 / expected).sum() < chi2.isf(1e-7, df=11)


def test_counts_without_noise_are_learned():
    X, y = correlated(20_000)
    model = synthesizer(epsilon=1e6, n_bins=8, n_steps=800).fit(X, y)
    assert model.pairs_
    S, t = model.sample(class_counts={"ill": 20_000, "well": 20_000})
    for label in ("ill", "well"):
        real, made = X[y == label], S[t == label]
        assert abs(real["x"].mean() - made["x"].mean()) < 0.05
        assert abs((real["c"] == "a").mean() - (made["c"] == "a").mean()) < 0.03
        assert abs(real["x"].corr(real["n"]) - made["x"].corr(made["n"])) < 0.1


# ---------------------------------------------------------------------------------------------- the price


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_no_neighbour_moves_the_counts_by_more_than_is_paid_for(monkeypatch, relation, delta):
    X, y = correlated(60)
    records = [(0.0, 0, "a", "ill"), (99.0, 3, None, "well"), (2.0, 1, "unknown", "nobody")]
    watched = CountsSeen(monkeypatch)

    def with_record(record):
        row = pd.DataFrame([record[:3]], columns=["x", "n", "c"]).astype({"c": "object"})
        return pd.concat([X.astype({"c": "object"}), row], ignore_index=True), pd.concat(
            [y, pd.Series([record[3]])], ignore_index=True
        )

    def fit(table):
        synthesizer(relation=relation, delta=delta, pairs=True, n_steps=1, n_components=2).fit(*table)

    pairs = (
        [(with_record(a), with_record(b)) for a, b in itertools.combinations(records, 2)]
        if relation == "replace-one"
        else [((X.astype({"c": "object"}), y), with_record(a)) for a in records]
    )
    moves = np.array([watched.moved(fit, a, b) for a, b in pairs])
    assert moves.max() <= 1 + 1e-9
    # Every set of counts is moved as far as it can be by some pair: nothing is paid for that cannot happen.
    assert (moves.max(axis=0) > 0.99).all()


def test_the_guarantee_is_proven_with_public_domains_and_real_noise():
    X, y = correlated(500)
    model = synthesizer(random_state=None).fit(X, y)
    assert model.guarantee_.status == "proven"
    assert model.guarantee_.epsilon == pytest.approx(1.0)
    assert PrivateMixture(classes=["ill", "well"]).fit(X, y).guarantee_.status == "nominal"


# ------------------------------------------------------------------------------------------- the decisions


def test_few_rows_are_counted_with_laplace_noise_and_without_pairs():
    X, y = correlated(400)
    model = synthesizer().fit(X, y)
    assert model.guarantee_.delta == 0.0
    assert not model.pairs_
    assert synthesizer(pairs=True).fit(X, y).pairs_


def test_many_rows_are_counted_in_pairs():
    X, y = correlated(50_000)
    model = synthesizer(n_steps=1).fit(X, y)
    assert model.pairs_
    assert model.guarantee_.delta == 1e-9
    assert not synthesizer(pairs=False).fit(X, y).pairs_
    assert synthesizer(delta=0.0, n_steps=1).fit(X, y).guarantee_.delta == 0.0


def test_a_declared_class_never_vanishes():
    X, y = correlated(300)
    for seed in range(20):
        model = synthesizer(classes=["ill", "well", "never seen"], random_state=seed).fit(X, y)
        assert model.class_counts_.min() >= 1
        S, _ = model.sample(class_counts={"never seen": 5})
        assert len(S) == 5


@pytest.mark.parametrize("classes", [[0, 1], ["0", "1"], [False, True]])
@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "float64", "boolean", "category", pd.CategoricalDtype(["0", "1"])], ids=str
)
def test_labels_come_back_whatever_dtype_they_had(classes, seed, dtype):
    X, y = correlated(400)
    ones = y == y.value_counts().idxmin()
    given = ones.astype(int).astype(str if isinstance(dtype, pd.CategoricalDtype) else int).astype(dtype)
    X = X[["x"]]
    model = PrivateMixture(
        epsilon=50.0, schema=Schema(SCHEMA.columns[:1]), classes=classes, random_state=seed
    )
    for labels in (given, given.to_frame(), given.tolist()):
        _, made = model.fit_resample(X, labels)
        keys = value_keys(pd.DataFrame(made).iloc[:, 0])
        assert set(keys) == {"0", "1"} and abs((keys == "1").sum() - ones.sum()) < 20


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n_components": 0}, "n_components = 0 was given"),
        ({"n_steps": 1.5}, "n_steps = 1.5 was given"),
        ({"pairs": "some"}, "pairs = 'some' was given"),
        ({"epsilon": 0}, "epsilon = 0 was given"),
        ({"delta": 1.0}, "delta = 1.0 was given"),
    ],
)
def test_bad_parameters_are_refused(parameters, words):
    X, y = correlated(50)
    with pytest.raises(InputError, match=words.replace(".", r"\.")):
        synthesizer(**parameters).fit(X, y)


def test_many_values_are_refused_before_they_are_paid_for(tmp_path):
    n = 4000
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"x{i}": rng.random(n) for i in range(10)})
    table["code"] = [f"c{i % 9_900}" for i in range(n)]
    schema = Schema.infer(table)
    for name in table.columns:
        known = {"bounds": (0.0, 1.0)}
        if name == "code":
            known = {"kind": "categorical", "categories": [f"c{i}" for i in range(9_900)]}
        schema = schema.declare(name, domain="public", source="the code book", **known)
    y = pd.Series(rng.integers(0, 2, n), name="y")
    ledger = Ledger(tmp_path / "budget.db", key_file=tmp_path / "key")
    ledger.create("patients", epsilon=10.0, delta=1e-6)
    patients = ledger.for_dataset("patients")
    # Each number would have 20 intervals; they are made wider, and what was paid for is released.
    model = PrivateMixture(schema=schema, classes=[0, 1], n_components=2, n_steps=2, ledger=patients)
    assert len(model.fit(table, y).sample(100)[0]) == 100
    wider = schema.declare("code", categories=[f"c{i}" for i in range(9_999)])
    before = ledger.remaining("patients")
    with pytest.raises(InputError, match="at most 10000"):
        PrivateMixture(schema=wider, classes=[0, 1], ledger=patients).fit(table, y)
    assert ledger.remaining("patients") == before
