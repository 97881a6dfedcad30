"""The greedy network finds who depends on whom, counts it, and draws it."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from oversafe._core.errors import InputError
from oversafe.protect import BayesianNetwork
from oversafe.protect.marginals import network
from oversafe.protect.marginals.network import Node
from oversafe.protect.margins import NumberMargin


def test_mutual_information_by_hand():
    assert network.mutual_information(np.array([[5, 0], [0, 5]])) == pytest.approx(np.log(2))
    assert network.mutual_information(np.array([[2, 2], [4, 4]])) == pytest.approx(0.0, abs=1e-12)
    assert network.mutual_information(np.zeros((2, 2))) == 0.0
    # Independent columns of 3 and 4 cells show (3 - 1)(4 - 1) / 2n too much on average.
    rng = np.random.default_rng(0)
    scores = [
        network.excess_information(rng.multinomial(500, np.full(12, 1 / 12)).reshape(3, 4))
        for _ in range(500)
    ]
    # A chi-square variable with 6 degrees of freedom over 2n; the mean of 500 within 6 standard errors.
    assert abs(np.mean(scores)) < 6 * np.sqrt(12) / 1000 / np.sqrt(500)


def chain(n=5000, seed=0):
    """Return cells of root -> 2 -> 1 -> 3, each the one before with a tenth redrawn."""
    rng = np.random.default_rng(seed)
    cells = [rng.integers(0, 4, n)]
    for _ in range(3):
        cells.append(np.where(rng.random(n) < 0.1, rng.integers(0, 4, n), cells[-1]))
    return [cells[0], cells[2], cells[1], cells[3]]


def test_a_chain_is_found():
    cells = chain()
    nodes = network.greedy_network(cells, [4] * 4, root=0, degree=1)
    assert nodes == [Node(0, ()), Node(2, (0,)), Node(1, (2,)), Node(3, (1,))]


def test_two_parents_are_found_only_where_there_are_two():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 4000))
    nodes = network.greedy_network([a, b, a ^ b, a], [2] * 4, root=0, degree=2)
    parents = {node.column: node.parents for node in nodes}
    # The copy needs one. By itself b tells nothing of a ^ b, but with a it does: whichever comes last has both.
    assert parents[3] == (0,)
    last = nodes[-1]
    assert last.column in (1, 2) and len(last.parents) == 2
    assert set(last.parents) & {0, 3} and set(last.parents) & {1, 2}


def test_the_limit_on_cells_leaves_one_parent():
    cells = chain()
    nodes = network.greedy_network(cells, [4] * 4, root=0, degree=3, max_cells=16)
    assert [len(n.parents) for n in nodes] == [0, 1, 1, 1]


def test_another_choice_can_be_passed():
    seen = []

    def worst(scores):
        seen.append(len(scores))
        return int(np.argmin(scores))

    nodes = network.greedy_network(chain(), [4] * 4, root=0, degree=1, choose=worst)
    # At first each column with the root alone; the worst of them is the far end of the chain.
    assert seen[0] == 3 and nodes[1] == Node(3, (0,))


def test_drawing_follows_the_tables():
    nodes = [Node(0, ()), Node(1, (0,)), Node(2, (0, 1))]
    tables = [
        np.array([[1, 1]]),
        np.array([[3, 1], [0, 5]]),
        # The third combination (1, 0) was never seen and never comes.
        np.array([[1, 0], [0, 1], [0, 0], [2, 2]]),
    ]
    rng = np.random.default_rng(0)
    given = np.repeat([0, 1], 20_000)
    cells = network.draw_cells(nodes, tables, [2, 2, 2], given, rng)
    np.testing.assert_array_equal(cells[0], given)
    zero, one = given == 0, given == 1
    # Within 6 standard deviations: fails with probability below 1e-8.
    assert abs(cells[1][zero].mean() - 0.25) < 6 * 0.5 / np.sqrt(20_000)
    assert (cells[1][one] == 1).all()
    np.testing.assert_array_equal(cells[2][zero], cells[1][zero])
    assert abs(cells[2][one].mean() - 0.5) < 6 * 0.5 / np.sqrt(20_000)


def test_a_combination_that_was_never_counted_draws_from_all():
    tables = [np.array([[1]]), np.array([[0, 0, 0]]), np.array([[0, 0], [0, 0], [3, 1]])]
    nodes = [Node(0, ()), Node(1, (0,)), Node(2, (1,))]
    cells = network.draw_cells(nodes, tables, [1, 3, 2], np.zeros(20_000, int), np.random.default_rng(0))
    np.testing.assert_allclose(np.bincount(cells[1]) / 20_000, 1 / 3, atol=6 * 0.5 / np.sqrt(20_000))
    assert abs(cells[2].mean() - 0.25) < 6 * 0.5 / np.sqrt(20_000)


def test_margins_keep_repeated_values_and_draw_inside_their_cell():
    rng = np.random.default_rng(0)
    values = np.concatenate([np.zeros(600), rng.gamma(2.0, size=400)])
    margin = NumberMargin.of(values)
    edges = margin.edges(10)
    assert edges[0] == 0.0 and edges[-1] == values.max() and len(edges) <= 11
    low, high = np.full(1000, edges[2]), np.full(1000, edges[3])
    drawn = margin.draw_between(low, high, rng)
    assert (drawn >= edges[2]).all() and (drawn <= edges[3]).all() and len(np.unique(drawn)) > 100
    zeros = margin.draw_between(np.full(50, -np.inf), np.zeros(50), rng)
    assert (zeros == 0).all()


def test_relations_among_columns_are_kept():
    rng = np.random.default_rng(0)
    n = 4000
    y = rng.choice(["a", "b"], n, p=[0.8, 0.2])
    x = rng.normal(size=n)
    # Not monotone: no copula of this kind could draw it.
    X = pd.DataFrame({"x": x, "square": np.round(x**2, 3), "c": np.where(np.abs(x) > 1, "far", "near")})
    synthesizer = BayesianNetwork(random_state=0).fit(X, y)
    X_new, y_new = synthesizer.sample()
    assert np.corrcoef(X_new["x"] ** 2, X_new["square"])[0, 1] > 0.8
    assert ((X_new["x"].abs() > 1) == (X_new["c"] == "far")).mean() > 0.9
    assert (y_new == "b").sum() == (y == "b").sum()
    assert synthesizer.guarantee_.status == "none"
    assert {name for name, _ in synthesizer.network_} == set(X)


def test_bad_settings():
    X = pd.DataFrame({"x": np.arange(10) / 3})
    for settings in ({"degree": 0}, {"n_bins": 0}):
        with pytest.raises(InputError, match="at least 1"):
            BayesianNetwork(**settings).fit(X, [0, 1] * 5)


def test_counts_without_noise_are_not_published_by_the_draw():
    """Rows are drawn by themselves: their counts lie around the real ones as draws do, not nearer and not farther."""
    rng = np.random.default_rng(0)
    n, runs = 2000, 80
    X = pd.DataFrame({"c": rng.choice(list("abcd"), n, p=[0.4, 0.3, 0.2, 0.1])})
    y = np.where(rng.random(n) < 0.5, "ill", "well")
    real = pd.crosstab(y, X["c"]).to_numpy()
    totals = real.sum(axis=1, keepdims=True)
    model = BayesianNetwork().fit(X, y)
    made = []
    for seed in range(runs):
        S, t = model.set_params(random_state=seed).sample()
        made.append(pd.crosstab(np.asarray(t), S["c"]).to_numpy())
        # The class counts are the contract; the cells within them are drawn.
        np.testing.assert_array_equal(made[-1].sum(axis=1, keepdims=True), totals)
    # A cell's count is binomial, so how many runs are near and how many equal are binomial too, with chances that are
    # known exactly: three ends for each of eight cells, each passed with a probability of at most 1e-6 / 24.
    law = stats.binom(totals, real / totals)
    reach = law.std()
    chance = law.cdf(real + reach) - law.cdf(np.ceil(real - reach) - 1)
    near = (np.abs(np.array(made) - real) <= reach).sum(axis=0)
    equal = (np.array(made) == real).sum(axis=0)
    limit = 1e-6 / 24
    assert (near <= stats.binom.isf(limit, runs, chance)).all()
    assert (near >= stats.binom.ppf(limit, runs, chance)).all()
    assert (equal <= stats.binom.isf(limit, runs, law.pmf(real))).all()
