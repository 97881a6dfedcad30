"""PrivBayes pays for everything it reads, and keeps what the noise leaves."""

import pickle
from itertools import product

import numpy as np
import pandas as pd
import pytest

from oversafe._core.errors import InputError
from oversafe.data import Column, Counts, Schema, write_table
from oversafe.data.bins import Bins
from oversafe.measure import audit_epsilon
from oversafe.privacy import Accountant
from oversafe.privacy.mechanisms import noisy_counts
from oversafe.protect import PrivBayes
from oversafe.protect.marginals import private_network
from oversafe.protect.marginals.private_network import PrivateNetwork, dependence

PUBLIC = {"domain": "public", "source": "code book"}


def hidden_table(n=20_000, seed=0, rare=0.05):
    """Return columns that share a hidden cause, and a rare class in which it lies elsewhere."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < rare
    z = rng.normal(size=n) + 1.5 * y
    X = pd.DataFrame(
        {
            "a": np.round(z + 0.4 * rng.normal(size=n), 2),
            "b": np.clip(np.rint(5 + 2 * z + rng.normal(size=n)), 0, 12).astype(int),
            "c": np.where(z > 0.5, "high", np.where(z > -0.5, "mid", "low")),
            "noise": rng.integers(0, 4, n),
        }
    )
    return X, pd.Series(np.where(y, "ill", "healthy"), name="state")


def hidden_schema():
    return Schema(
        (
            Column("a", "continuous", "float64", bounds=(-5.0, 6.0), decimals=2, **PUBLIC),
            Column("b", "integer", "int64", bounds=(0, 12), **PUBLIC),
            Column("c", "categorical", "str", categories=("low", "mid", "high"), **PUBLIC),
            Column("noise", "integer", "int64", bounds=(0, 3), **PUBLIC),
            Column("state", "categorical", "str", categories=("healthy", "ill"), **PUBLIC),
        ),
        label="state",
    )


# The score


def test_dependence_by_hand():
    assert dependence(np.array([[5, 0], [0, 5]])) == 5.0
    assert dependence(np.array([[2, 2], [4, 4]])) == 0.0
    assert dependence(np.zeros((2, 2), dtype=int)) == 0.0


def test_no_neighbour_moves_the_dependence_by_more_than_its_sensitivity():
    rng = np.random.default_rng(0)
    replaced = removed = 0.0
    for _ in range(300):
        shape = rng.integers(2, 5, 2)
        table = rng.multinomial(rng.integers(2, 60), rng.dirichlet(np.full(shape.prod(), 0.3))).reshape(shape)
        score = dependence(table)
        for old in product(*map(range, shape)):
            if table[old] == 0:
                continue
            less = table.copy()
            less[old] -= 1
            removed = max(removed, abs(dependence(less) - score))
            for new in product(*map(range, shape)):
                other = less.copy()
                other[new] += 1
                replaced = max(replaced, abs(dependence(other) - score))
    assert 1.0 < removed <= 2.0 and 1.5 < replaced <= 3.0


# What is paid


class Watched(Accountant):
    """An accountant that notes what is asked of it and what it answers."""

    def __init__(self, *given, **settings):
        super().__init__(*given, **settings)
        self.asked, self.answered = [], []

    def counts(self, counts, share, **settings):
        self.asked.append((np.array(counts), settings.get("tables", 1), share))
        self.answered.append(super().counts(counts, share, **settings))
        return self.answered[-1]


def tiny(rows, epsilon=1.0, seed=0, **settings):
    """Return what a fit on cells of two columns and a label asks and is answered."""
    cells = np.array(rows)
    bins = {name: Bins(Column(name, "integer", "int64", bounds=(0, 2))) for name in "ab"}
    counts = Counts.of_cells({"y": cells[:, 0], "a": cells[:, 1], "b": cells[:, 2]}, {"y": 2, "a": 3, "b": 3})
    watched = Watched(epsilon, random_state=seed, **settings)
    learner = PrivateNetwork(counts, "y", bins, watched, 1, 0.5)
    learner.learn()
    return watched, learner


ROWS = [(0, 0, 0)] * 300 + [(0, 1, 1)] * 300 + [(1, 2, 2)] * 20


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_the_whole_budget_is_spent_and_no_more(relation):
    for delta in (0.0, 1e-9):
        watched, learner = tiny(ROWS, relation=relation, delta=delta)
        # Where the number of rows is private, or there are few, the class counts come first.
        tables = [tables for _, tables, _ in watched.asked]
        assert tables == ([2, 1] if relation == "replace-one" and not delta else [1, 2, 1])
        assert learner.nodes[1].parents == (0,)
        assert watched.left == 0.0
        guarantee = watched.guarantee("noise")
        assert (guarantee.epsilon, guarantee.delta) == (1.0, delta)


def test_every_record_is_in_one_cell_of_each_table():
    watched, _ = tiny(ROWS)
    for counts, tables, _ in watched.asked:
        assert counts.sum() == tables * len(ROWS)


# The record that is replaced leaves and enters a cell of every table.
TABLE, NEIGHBOUR = [*ROWS, (0, 0, 0)], [*ROWS, (1, 1, 2)]


def likelihood_ratio(mechanism):
    """Return a mechanism for the audit: how much likelier the noisy counts of a fit are under the one table.

    It is the best statistic there is. The counts and shares are those that the fits ask for; the choice of the
    network, a tenth of the budget, is left out.
    """
    sides = {id(rows): tiny(rows)[0].asked for rows in (TABLE, NEIGHBOUR)}

    def run(rows, rng, size):
        total = np.zeros(size)
        for own, (one, tables, share), (other, _, _) in zip(sides[id(rows)], *sides.values(), strict=True):
            many = np.tile(own[0], (size, 1))
            noisy = mechanism(many, sensitivity=2 * tables, epsilon=share, random_state=rng)
            total += (np.abs(noisy - other) - np.abs(noisy - one)).sum(axis=1) * share / (2 * tables)
        return total

    return run


def with_half_the_noise(counts, *, sensitivity, epsilon, random_state):
    return noisy_counts(counts, sensitivity=sensitivity, epsilon=2 * epsilon, random_state=random_state)


def on_seen_cells(counts, *, sensitivity, epsilon, random_state):
    noisy = noisy_counts(counts, sensitivity=sensitivity, epsilon=epsilon, random_state=random_state)
    return np.where(counts > 0, noisy, 0)


def on_one_table(counts, *, sensitivity, epsilon, random_state):
    return noisy_counts(counts, sensitivity=2, epsilon=2 * epsilon, random_state=random_state)


@pytest.mark.parametrize(
    ("mechanism", "breaks"),
    [(noisy_counts, False), (with_half_the_noise, True), (on_seen_cells, True), (on_one_table, True)],
)
def test_an_audit_of_the_worst_neighbours(mechanism, breaks):
    audit = audit_epsilon(
        likelihood_ratio(mechanism),
        TABLE,
        NEIGHBOUR,
        trials=20_000,
        confidence=1 - 1e-6,
        vectorized=True,
        random_state=0,
    )
    # The right mechanism is accused with probability at most 1e-6; the broken ones were caught with this seed.
    assert (audit.lower_bound > 1.0) == breaks
    assert audit.lower_bound > 0.3


@pytest.mark.slow
def test_an_audit_of_whole_fits():
    def run(rows, rng):
        watched, learner = tiny(rows, seed=int(rng.integers(2**32)))
        # The cells that the record leaves and enters, and whether the network has an edge.
        columns, chosen = watched.answered[0], float(bool(learner.nodes[1].parents))
        return [columns[0], columns[4], columns[6], columns[11], chosen]

    audit = audit_epsilon(run, TABLE, NEIGHBOUR, trials=4000, confidence=1 - 1e-6, random_state=0)
    assert audit.lower_bound <= 1.0


# What comes out


def test_proven_and_nothing_of_the_data_is_kept():
    X, y = hidden_table(5000)
    synthesizer = PrivBayes(1.0, schema=hidden_schema()).fit(X, y)
    assert synthesizer.guarantee_.status == "proven"
    assert (synthesizer.guarantee_.epsilon, synthesizer.guarantee_.delta) == (1.0, 0.0)
    assert len(pickle.dumps(synthesizer)) < 200_000
    assert not any(isinstance(value, Counts | pd.DataFrame) for value in vars(synthesizer).values())
    private = PrivBayes(1.0, delta=1e-6, schema=hidden_schema()).fit(X, y).guarantee_
    assert private.status == "proven" and private.epsilon == 1.0 and private.delta == 1e-6
    assert PrivBayes(1.0, schema=hidden_schema(), random_state=0).fit(X, y).guarantee_.status == "nominal"


@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_relations_and_the_rare_class_are_kept(delta):
    X, y = hidden_table()
    synthesizer = PrivBayes(1.0, delta=delta, schema=hidden_schema(), random_state=0).fit(X, y)
    X_new, y_new = synthesizer.sample()
    assert len(X_new) == len(X)
    # The class counts have a deviation of some tens of rows of the thousand.
    assert abs((y_new == "ill").sum() - (y == "ill").sum()) < 300
    assert np.corrcoef(X_new["a"], X_new["b"])[0, 1] > 0.7 * np.corrcoef(X["a"], X["b"])[0, 1]
    means = X_new["a"].groupby(y_new.to_numpy()).mean()
    assert means["ill"] - means["healthy"] > 1.0
    assert (X_new.groupby("c")["a"].mean().loc[["low", "mid", "high"]].diff().dropna() > 0.3).all()


def test_more_budget_comes_nearer():
    X, y = hidden_table(10_000)
    errors = []
    for epsilon in (0.1, 1.0, 10.0):
        fits = [
            PrivBayes(epsilon, schema=hidden_schema(), random_state=seed).fit_resample(X, y)[0]
            for seed in range(3)
        ]
        errors.append(np.mean([distance(X, own) for own in fits]))
    assert errors[0] > errors[1] > errors[2]


def distance(X, other):
    shares = [
        pd.crosstab(frame["b"], frame["c"], normalize=True).reindex(
            index=range(13), columns=["low", "mid", "high"]
        )
        for frame in (X, other)
    ]
    return float((shares[0].fillna(0) - shares[1].fillna(0)).abs().sum().sum())


def test_classes_are_drawn_as_asked():
    X, y = hidden_table(3000)
    synthesizer = PrivBayes(1.0, schema=hidden_schema(), random_state=0).fit(X, y)
    _, drawn = synthesizer.sample(class_counts={"ill": 70, "healthy": 5})
    assert drawn.value_counts().to_dict() == {"ill": 70, "healthy": 5}
    balanced = PrivBayes(1.0, schema=hidden_schema(), sampling_strategy="auto", random_state=0)
    counts = balanced.fit_resample(X, y)[1].value_counts()
    assert counts["ill"] == counts["healthy"]


def test_a_declared_class_without_rows_keeps_one_and_can_be_drawn():
    X, y = hidden_table(500, rare=0.0)
    synthesizer = PrivBayes(0.1, schema=hidden_schema(), random_state=0).fit(X, y)
    assert (synthesizer.class_counts_ >= 1).all() and synthesizer.class_counts_.sum() == 500
    drawn, _ = synthesizer.sample(class_counts={"ill": 1000})
    # Towards all rows, not one cell of noise.
    assert drawn["b"].nunique() > 3


def test_three_classes_one_column_and_constant_columns():
    rng = np.random.default_rng(0)
    y = rng.choice([10, 20, 30], 3000, p=[0.7, 0.2, 0.1])
    X = pd.DataFrame({"x": y + rng.integers(0, 3, 3000)})
    X_new, y_new = PrivBayes(5.0, random_state=0).fit_resample(X, y)
    assert set(y_new) == {10, 20, 30}
    assert abs(X_new["x"][y_new == 30].mean() - 31) < 2
    X = X.assign(same=1.5, also="one", empty=np.nan)
    X_new, _ = PrivBayes(5.0, random_state=0).fit_resample(X, y)
    assert (X_new["same"] == 1.5).all() and (X_new["also"] == "one").all() and X_new["empty"].isna().all()


def test_a_column_of_many_categories_is_joined_in_tables():
    rng = np.random.default_rng(0)
    n = 30_000
    street = rng.zipf(1.3, n) % 800
    X = pd.DataFrame({"street": [f"s{i}" for i in street], "near": street % 2, "x": rng.normal(size=n)})
    synthesizer = PrivBayes(1.0, random_state=0).fit(X, rng.choice(["a", "b"], n))
    assert max(table.size for table in synthesizer._tables) < 100_000
    X_new, _ = synthesizer.sample()
    assert X_new["street"].nunique() > 50


def test_few_rows_spend_everything_on_the_columns():
    X, y = hidden_table(200)
    synthesizer = PrivBayes(1.0, schema=hidden_schema(), random_state=0).fit(X, y)
    assert all(not parents for _, parents in synthesizer.network_)
    assert PrivBayes(1.0, degree=0, random_state=0).fit(*hidden_table(5000)).network_[0][1] == ()


def test_add_remove_takes_the_number_of_rows_from_the_noise():
    X, y = hidden_table(5000)
    synthesizer = PrivBayes(1.0, schema=hidden_schema(), relation="add-remove").fit(X, y)
    guarantee = synthesizer.guarantee_
    assert guarantee.status == "proven" and guarantee.relation == "add-remove"
    # The sum of some tens of noisy counts; it would be exact with a probability of about one in a hundred.
    totals = {
        int(
            PrivBayes(1.0, schema=hidden_schema(), relation="add-remove", random_state=s)
            .fit(X, y)
            .class_counts_.sum()
        )
        for s in range(6)
    }
    assert len(totals) > 1


# Tables that are not in memory


def test_a_folder_gives_the_same_model_as_memory(tmp_path):
    X, y = hidden_table(4000)
    table = X.assign(state=y)
    write_table(table[:1000], tmp_path / "a.parquet")
    write_table(table[1000:], tmp_path / "b.parquet")
    here = PrivBayes(1.0, schema=hidden_schema(), random_state=0).fit(X, y)
    there = PrivBayes(1.0, schema=hidden_schema(), random_state=0).fit_source(tmp_path)
    assert here.network_ == there.network_ and here.guarantee_ == there.guarantee_
    for a, b in zip(here._tables, there._tables, strict=True):
        np.testing.assert_array_equal(a, b)
    X_new, y_new = there.sample(100)
    pd.testing.assert_frame_equal(X_new, here.sample(100)[0])
    assert y_new.name == "state" and set(y_new) <= {"healthy", "ill"}


def test_the_network_of_a_large_table_is_chosen_on_a_sample(tmp_path, monkeypatch):
    X, y = hidden_table(20_000)
    write_table(X.assign(state=y), tmp_path / "t.parquet")
    monkeypatch.setattr(private_network, "_SAMPLE", 5000)
    synthesizer = PrivBayes(5.0, schema=hidden_schema(), random_state=0).fit_source(tmp_path / "t.parquet")
    assert synthesizer.guarantee_.epsilon == 5.0
    assert sum(bool(parents) for _, parents in synthesizer.network_) >= 2
    X_new, _ = synthesizer.sample()
    assert np.corrcoef(X_new["a"], X_new["b"])[0, 1] > 0.5


def test_a_source_needs_a_schema(tmp_path):
    X, y = hidden_table(100)
    write_table(X.assign(state=y), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="oversafe schema init"):
        PrivBayes().fit_source(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="in memory only"):
        PrivBayes(schema=hidden_schema(), domains="private").fit_source(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="no column 'state'"):
        write_table(X, tmp_path / "u.parquet")
        PrivBayes(schema=hidden_schema()).fit_source(tmp_path / "u.parquet")
    read = hidden_schema().declare("a", domain="data")
    guarantee = PrivBayes(schema=read).fit_source(tmp_path / "t.parquet").guarantee_
    assert guarantee.status == "nominal" and "'a'" in " ".join(guarantee.caveats)


def test_private_domains_are_paid_from_the_same_budget():
    X, y = hidden_table(8000)
    synthesizer = PrivBayes(2.0, delta=1e-6, domains="private").fit(X, y)
    assert synthesizer.guarantee_.status == "proven" and synthesizer.guarantee_.epsilon <= 2.0


def test_bad_settings():
    X, y = hidden_table(50)
    for settings, message in (
        ({"degree": -1}, "at least 0"),
        ({"n_bins": 0}, "at least 1"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"relation": "other"}, "relation"),
        ({"usefulness": 0}, "usefulness"),
    ):
        with pytest.raises(InputError, match=message):
            PrivBayes(**settings).fit(X, y)
