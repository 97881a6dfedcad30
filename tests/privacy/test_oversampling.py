"""What oversampling costs: by hand, against brute force, and against an attack."""

import json
import math
from itertools import combinations

import mpmath
import numpy as np
import pytest
from scipy.stats import binom

from oversafe._core.errors import InputError
from oversafe.measure import audit_epsilon
from oversafe.privacy import (
    Guarantee,
    kissing_number_bound,
    oversampling_budget,
    oversampling_cost,
    smote_budget,
    smote_cost,
)
from oversafe.privacy.costs.group_privacy import GroupSize, Mechanism, whole_delta
from oversafe.privacy.costs.oversampling import oversampling_group_sizes, smote_group_sizes
from oversafe.privacy.costs.published import paper_smote_delta, paper_smote_epsilon, smote_table
from oversafe.protect.samplers.stable_smote import stable_neighbours
from tests.privacy.coupled_smote import (
    aligned_lists,
    changed_lists,
    cyclic_bases,
    neighbours,
    random_bases,
)

RELATIONS = ["replace-one", "add-remove"]
SMALL = {"n_minority": 30, "n_added": 60, "dimensions": 1, "k_neighbors": 2}


# ------------------------------------------------------------------------------------------------ by hand


def exceeding(size, at):
    """Return the probability that a bound states for a size above another."""
    return min(1.0, float(size.masses[size.values > at].sum()))


def test_repeating_records():
    # 900 rows on 100 records: 9 copies and the record itself.
    cost = oversampling_cost(0.5, n_minority=100, n_added=900)
    assert (cost.status, cost.epsilon, cost.delta) == ("proven", 5.0, 0.0)
    assert oversampling_cost(0.5, n_minority=100, n_added=901).epsilon == 5.5
    # Under add-remove 9 copies of others make way: 1 + 2 * 9.
    assert oversampling_cost(0.5, n_minority=100, n_added=900, relation="add-remove").epsilon == 9.5
    # A replaced record, for a mechanism under add-remove: 2 (1 + 9).
    cost = oversampling_cost(0.5, n_minority=100, n_added=900, mechanism_relation="add-remove")
    assert cost.epsilon == 10.0
    assert oversampling_cost(0.5, n_minority=100, n_added=0).epsilon == 0.5


def test_the_delta_of_a_group():
    # delta (1 + e + e^2) for three rows; Proposition 2 has 3 delta.
    cost = oversampling_cost(1.0, n_minority=10, n_added=20, delta=1e-6)
    assert cost.epsilon == pytest.approx(3.0)
    assert cost.delta == pytest.approx(1e-6 * (1 + math.e + math.e**2), rel=1e-6)
    assert cost.delta >= 1e-6 * (1 + math.e + math.e**2)
    # It is reached: three steps of e^1 and a jump of delta each, along a path of four tables.
    chances = [1e-3]
    for _ in range(3):
        chances.append(math.e * chances[-1] + 1e-6)
    assert chances[3] - math.e**3 * chances[0] == pytest.approx(1e-6 * (1 + math.e + math.e**2))


@pytest.mark.parametrize(
    ("settings", "trials", "chance", "factor", "plus"),
    [
        # k = 2 in one dimension: l = 2 (2 + 1) = 6 lists, 12 for a replaced record.
        ({}, 60, (2 + 12) / (2 * 30), 1, 1),
        ({"relation": "add-remove"}, 60, (2 + 6) / (2 * 30), 2, 1),
        ({"mechanism_relation": "add-remove"}, 60, (2 + 12) / (2 * 30), 2, 2),
        ({"keep_originals": False}, 60, (2 + 12) / (2 * 30), 1, 0),
        ({"bases": "cyclic"}, 24, 1 / 2, 1, 1 + 2),
        ({"bases": "cyclic", "relation": "add-remove"}, 12, 1 / 2, 2, 1 + 2 * 2),
        # Few records: all 9 others.
        ({"n_minority": 10}, 60, (2 + 9) / (2 * 10), 1, 1),
        ({"n_minority": 10, "bases": "cyclic"}, 54, 1 / 2, 1, 1 + 6),
    ],
)
def test_the_rows_that_smote_changes(settings, trials, chance, factor, plus):
    (size,) = smote_group_sizes(**(SMALL | settings))
    assert size.largest == factor * trials + plus
    for rows in range(trials):
        assert exceeding(size, factor * rows + plus) == pytest.approx(
            binom.sf(rows, trials, chance), rel=1e-6
        )
    assert size.mean == pytest.approx(factor * trials * chance + plus)


def test_any_row_may_change_when_ties_are_not_stable():
    (size,) = smote_group_sizes(**SMALL, stable_ties=False)
    assert size.values.tolist() == [61]
    # An e^61-fold chance can be had with all but a thousandth of it.
    cost = smote_cost(1.0, **SMALL, stable_ties=False, target_delta=1e-3)
    assert cost.epsilon == pytest.approx(61 + math.log1p(-1e-3), abs=1e-6)


def test_at_delta_zero_every_row_counts():
    assert smote_cost(0.5, **SMALL).epsilon == 0.5 * 61
    assert smote_cost(0.5, **SMALL, bases="cyclic").epsilon == 0.5 * (1 + 2 + 24)


def test_more_classes():
    both = {"n_minority": {"a": 30, "b": 40}, "n_added": {"a": 60, "b": 50}}
    settings = {"dimensions": 1, "k_neighbors": 2}
    sizes = smote_group_sizes(**both, **settings)
    # Within a, within b, and from one to the other: the rows of both.
    assert sorted(s.largest for s in sizes) == [51, 61, 111]
    a, b = 60 * 8 / 60, 50 * 8 / 80
    assert max(s.mean for s in sizes if s.largest == 111) == pytest.approx(1 + a + b)
    # One class alone is never worse than the two.
    together = smote_cost(0.1, **both, **settings, target_delta=1e-6).epsilon
    for name in "ab":
        alone = smote_cost(
            0.1,
            n_minority=both["n_minority"][name],
            n_added=both["n_added"][name],
            **settings,
            target_delta=1e-6,
        )
        assert alone.epsilon <= together * (1 + 1e-9)
    sizes = oversampling_group_sizes(n_minority={0: 10, 1: 10}, n_added={0: 20, 1: 30})
    assert sorted(s.largest for s in sizes) == [3, 4, 6]


def test_the_worst_pair_of_many_classes_is_among_those_that_are_added_up():
    records, added = [30, 33, 60, 200, 40, 30, 500], [60, 10, 90, 150, 3, 60, 900]
    many = smote_group_sizes(
        n_minority=dict(enumerate(records)),
        n_added=dict(enumerate(added)),
        dimensions=1,
        k_neighbors=2,
        keep_originals=False,
    )
    assert len(many) < 7 + 21
    epsilons = np.linspace(0, 12, 30)
    worst = [whole_delta(at, many, Mechanism(0.2)) for at in epsilons]
    flips = [GroupSize.binomial(a, (2 + 6) / (2 * n)) for n, a in zip(records, added, strict=True)]
    for a, b in combinations(flips, 2):
        assert all(
            whole_delta(at, [a + b], Mechanism(0.2)) <= limit * (1 + 1e-9)
            for at, limit in zip(epsilons, worst, strict=True)
        )


# --------------------------------------------------------------------------------------- sound arithmetic


@pytest.mark.parametrize(
    ("trials", "chance"), [(5, 0.3), (1000, 0.2), (10**7, 0.1), (10**7, 1e-6), (10**9, 0.3), (300, 0.999)]
)
def test_probabilities_are_rounded_outwards(trials, chance):
    size = GroupSize.binomial(trials, chance)
    mpmath.mp.dps = 40
    deviation = math.sqrt(trials * chance * (1 - chance))
    for far in (-3, 0, 1, 4, 10, 25):
        at = min(max(int(trials * chance + far * deviation), 0), trials - 1)
        # Term by term; of a long tail the first terms, which is a little less than the truth.
        term, truth = _term(trials, chance, at + 1), mpmath.mpf(0)
        for rows in range(at + 1, min(at + 15_000, trials) + 1):
            truth += term
            term *= mpmath.mpf(trials - rows) / (rows + 1) * mpmath.mpf(chance) / (1 - mpmath.mpf(chance))
        assert exceeding(size, at) >= truth
        if trials <= 10**7 and 0 <= far < 20:
            assert exceeding(size, at) <= truth * (1 + (1e-6 if trials < 10**5 else 0.1))
    assert size.largest == trials


def _term(trials, chance, at):
    p = mpmath.mpf(chance)
    ways = mpmath.loggamma(trials + 1) - mpmath.loggamma(at + 1) - mpmath.loggamma(trials - at + 1)
    return mpmath.exp(ways + at * mpmath.log(p) + (trials - at) * mpmath.log1p(-p))


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 1.0, 50.0])
def test_delta_is_the_exact_mixture_from_above(epsilon):
    (size,) = smote_group_sizes(**SMALL)
    mpmath.mp.dps = 60
    chance = mpmath.mpf(14) / 60
    for at in (0.0, 1.5 * epsilon, 7 * epsilon, 22 * epsilon, 40 * epsilon, 60 * epsilon):
        e, limit = mpmath.mpf(epsilon), mpmath.exp(mpmath.mpf(at))
        truth = mpmath.fsum(
            mpmath.binomial(60, r)
            * chance**r
            * (1 - chance) ** (60 - r)
            * max(0, (mpmath.exp((r + 1) * e) - limit) / (1 + mpmath.exp((r + 1) * e)))
            for r in range(61)
        )
        ours = whole_delta(at, [size], Mechanism(epsilon))
        assert truth <= ours <= truth * (1 + mpmath.mpf("1e-6")) + mpmath.mpf("1e-290")


@pytest.mark.parametrize("sigma", [0.5, 10.0, 1000.0])
def test_gaussian_delta_is_the_exact_mixture_from_above(sigma):
    (size,) = smote_group_sizes(**SMALL)
    mpmath.mp.dps = 60
    chance = mpmath.mpf(14) / 60
    for at in (0.01, 1.0, 5.0, 50.0):
        truth = mpmath.mpf(0)
        for r in range(61):
            mu = mpmath.mpf(r + 1) / mpmath.mpf(sigma)
            gap = mpmath.ncdf(mu / 2 - at / mu) - mpmath.exp(at) * mpmath.ncdf(-mu / 2 - at / mu)
            truth += mpmath.binomial(60, r) * chance**r * (1 - chance) ** (60 - r) * gap
        ours = whole_delta(at, [size], Mechanism(noise_multiplier=sigma))
        assert truth <= ours <= truth * (1 + mpmath.mpf("1e-4")) + mpmath.mpf("1e-290")


def test_large_tables_large_epsilons_small_deltas():
    cost = smote_cost(50.0, n_minority=10**6, n_added=10**7, dimensions=25, target_delta=1e-12)
    # Two million rows on average, and 7 deviations of 1265.
    assert 50 * 2.0e6 < cost.epsilon < 50 * 2.02e6 and cost.delta == 1e-12
    assert smote_cost(1e300, **SMALL).epsilon == pytest.approx(6.1e301)
    with pytest.raises(InputError, match="beyond any number"):
        smote_cost(1e308, **SMALL)
    tiny = smote_cost(1e-9, n_minority=10**6, n_added=10**7, dimensions=3, target_delta=1e-12)
    assert 0 < tiny.epsilon < 1e-6


def test_more_of_anything_costs_more():
    base = {"n_minority": 50, "n_added": 200, "dimensions": 1, "k_neighbors": 2, "target_delta": 1e-6}
    here = smote_cost(0.5, **base).epsilon
    for change in ({"n_added": 300}, {"n_minority": 40}, {"dimensions": 2}, {"target_delta": 1e-9}):
        assert smote_cost(0.5, **(base | change)).epsilon > here
    assert smote_cost(0.6, **base).epsilon > here
    # The mixture is never worse than (g epsilon, P[G > g]).
    (size,) = smote_group_sizes(**{k: v for k, v in base.items() if k != "target_delta"})
    assert here <= 0.5 * size.quantile(1e-6)


# ----------------------------------------------------------------------------------------------- the inverse


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("bases", ["random", "cyclic"])
@pytest.mark.parametrize("target_delta", [0.0, 1e-9, 1e-2])
def test_the_budget_is_the_inverse(relation, bases, target_delta):
    settings = {**SMALL, "relation": relation, "bases": bases, "target_delta": target_delta}
    inside = smote_budget(2.0, **settings)
    assert 1.999 < smote_cost(inside, **settings).epsilon <= 2.0 * (1 + 1e-9)
    assert smote_cost(inside * 1.001, **settings).epsilon > 2.0
    del settings["dimensions"], settings["k_neighbors"]
    inside = oversampling_budget(2.0, **settings)
    assert 1.999 < oversampling_cost(inside, **settings).epsilon <= 2.0 * (1 + 1e-9)


def test_the_budget_of_a_gaussian_mechanism():
    settings = {**SMALL, "target_delta": 1e-6}
    sigma = smote_budget(1.0, **settings, mechanism="gaussian")
    assert smote_cost(noise_multiplier=sigma, **settings).epsilon == pytest.approx(1.0, rel=1e-6)
    assert smote_cost(noise_multiplier=sigma * 0.99, **settings).epsilon > 1.0


def test_the_budget_of_a_mechanism_with_delta():
    settings = {"n_minority": 10, "n_added": 20}
    inside = oversampling_budget(3.0, delta=1e-9, target_delta=1e-6, **settings)
    assert 1.0 <= inside < 1.01
    assert oversampling_cost(inside, delta=1e-9, target_delta=1e-6, **settings).epsilon <= 3.0 * (1 + 1e-9)
    with pytest.raises(InputError, match="cannot be met"):
        oversampling_budget(3.0, delta=1e-6, target_delta=1e-6, **settings)


def test_guarantees_compose_and_survive_being_written_down():
    cost = smote_cost(0.01, **SMALL, target_delta=1e-6)
    assert Guarantee.from_json(cost.to_json()) == cost
    twice = Guarantee.compose(cost, cost)
    assert twice.epsilon == pytest.approx(2 * cost.epsilon, rel=1e-6) and twice.delta == pytest.approx(2e-6)
    assert json.loads(cost.to_json())["status"] == "proven"
    with pytest.raises(InputError, match="cannot be stated"):
        Guarantee.compose(cost, cost, delta=1.5e-6)
    # Together with releases of no delta, at a delta that leaves room for advanced composition.
    many = Guarantee.compose(*[Guarantee.pure(0.1, "Laplace")] * 60, cost, delta=1e-5)
    assert cost.epsilon < many.epsilon < cost.epsilon + 5


# ------------------------------------------------------------------------------------------------- bad use


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.0}, "epsilon = 0.0"),
        ({"epsilon": -1.0}, "epsilon = -1.0"),
        ({"epsilon": math.nan}, "epsilon = nan"),
        ({"epsilon": math.inf}, "epsilon = inf"),
        ({"epsilon": None}, "either epsilon"),
        ({"noise_multiplier": 1.0}, "either epsilon"),
        ({"epsilon": None, "noise_multiplier": 0.0, "target_delta": 1e-6}, "noise_multiplier = 0.0"),
        ({"epsilon": None, "noise_multiplier": 1.0}, "no epsilon at delta 0"),
        ({"target_delta": 1.0}, "delta = 1.0"),
        ({"target_delta": math.nan}, "delta = nan"),
        ({"delta": 1.0}, "delta = 1.0"),
        ({"delta": 1e-9}, "cannot be met"),
        ({"n_minority": 0}, "n_minority = 0"),
        ({"n_minority": 2.5}, "n_minority = 2.5"),
        ({"n_added": -1}, "n_added = -1"),
        ({"n_minority": 5, "k_neighbors": 5}, "more records than neighbours"),
        ({"k_neighbors": 0}, "k_neighbors = 0"),
        ({"dimensions": 0}, "d = 0"),
        ({"relation": "swap"}, "relation = 'swap'"),
        ({"bases": "odd"}, "bases = 'odd'"),
        ({"relation": "add-remove", "mechanism_relation": "replace-one"}, "promises nothing"),
        ({"n_minority": {"a": 30}}, "give them alike"),
        ({"n_minority": {"a": 30}, "n_added": {"b": 3}}, "same classes"),
    ],
)
def test_bad_use_is_one_sentence(change, message):
    settings = {"epsilon": 1.0, **SMALL} | change
    with pytest.raises(InputError, match=message) as refused:
        smote_cost(settings.pop("epsilon"), **settings)
    assert "\n" not in str(refused.value)


def test_a_delta_that_leaves_nothing_is_refused():
    with pytest.raises(InputError, match="no guarantee is left"):
        oversampling_cost(1.0, n_minority=1, n_added=100, delta=1e-6)


# -------------------------------------------------------------------------------------------- brute force


def count_changes(tables, trials, seed, bases):
    """Coupled runs on random neighbours. A right bound fails here with a probability below 1e-6."""
    rng = np.random.default_rng(seed)
    checks = tables * 40
    for number in range(tables):
        relation = RELATIONS[number % 2]
        d = int(rng.integers(1, 4))
        k = int(rng.integers(1, 4))
        n = int(rng.integers(k + 2, 30))
        n_added = int(rng.integers(1, 2 * n))
        X, other, at = neighbours(rng, n, d, relation)
        ends, other_ends = aligned_lists(X, other, at, k, relation)
        changed = changed_lists(X, ends, other_ends, at, relation)
        lists = k * (kissing_number_bound(d) + 1) * (2 if relation == "replace-one" else 1)
        assert changed.max() <= 1
        assert changed.sum() <= min(lists, n - 1)
        if bases == "random":
            rows = random_bases(rng, X, other, at, ends, other_ends, n_added, trials, relation)
        else:
            rows = np.array(
                [cyclic_bases(rng, X, other, at, ends, other_ends, n_added, relation) for _ in range(trials)]
            )
        (size,) = smote_group_sizes(
            n_minority=n,
            n_added=n_added,
            dimensions=d,
            k_neighbors=k,
            relation=relation,
            mechanism_relation="replace-one",
            keep_originals=False,
            bases=bases,
        )
        assert rows.max() <= size.largest
        for more in np.unique(np.linspace(0, n_added - 1, 40).astype(int)):
            above = int((rows > more).sum())
            assert binom.sf(above - 1, trials, exceeding(size, int(more))) > 1e-6 / checks


def test_coupled_runs_with_random_bases_change_no_more_rows():
    count_changes(tables=300, trials=500, seed=1, bases="random")


def test_coupled_runs_with_cyclic_bases_change_no_more_rows():
    count_changes(tables=150, trials=40, seed=2, bases="cyclic")


@pytest.mark.slow
def test_millions_of_coupled_runs_with_random_bases():
    count_changes(tables=1500, trials=4000, seed=3, bases="random")


@pytest.mark.slow
def test_many_coupled_runs_with_cyclic_bases():
    count_changes(tables=3000, trials=300, seed=4, bases="cyclic")


# ------------------------------------------------------------------------------------------- from end to end


def star(groups=5, copies=5):
    """A record in the centre that is a neighbour of all others, and the table with it moved far away.

    Five points on a circle, each five times: a point's own copies are four of its five neighbours, and the centre is
    nearer than the next point. The rows within a radius of 0.8 all come from the centre.
    """
    angles = 2 * np.pi * np.arange(groups) / groups
    circle = np.repeat(np.column_stack([np.cos(angles), np.sin(angles)]), copies, axis=0)
    table = np.vstack([[0.0, 0.0], circle])
    other = table.copy()
    other[0] = (100.0, 0.0)
    return table, other


def inner_rows(table, rng, size, n_added, bases, k=5):
    """How many rows lie in the inside after SMOTE, in each of many runs."""
    lists = stable_neighbours(table, k)
    shape = (size, n_added)
    base = rng.integers(len(table), size=shape) if bases == "random" else np.arange(n_added) % len(table)
    base = np.broadcast_to(base, shape)
    end = lists[base, rng.integers(k, size=shape)]
    rows = table[base] + rng.random((*shape, 1)) * (table[end] - table[base])
    inside = (np.linalg.norm(rows, axis=2) < 0.8).sum(axis=1)
    return inside + (np.linalg.norm(table, axis=1) < 0.8).sum()


@pytest.mark.parametrize("bases", ["random", "cyclic"])
def test_an_attack_exceeds_the_papers_epsilon_and_not_ours(bases):
    """A noisy count after SMOTE. Our claim is exceeded with a probability below 1e-6."""
    table, other = star()
    epsilon, settings = 0.5, {"n_minority": 26, "n_added": 26, "dimensions": 2, "k_neighbors": 5}

    def run(rows, rng, size):
        return inner_rows(rows, rng, size, 26, bases) + rng.laplace(scale=1 / epsilon, size=size)

    audit = audit_epsilon(
        run, table, other, trials=40_000, confidence=1 - 1e-6, vectorized=True, random_state=0
    )
    published = paper_smote_epsilon(epsilon, **settings)
    assert published == pytest.approx(0.5 * (2**0.8084 + 1))
    assert audit.lower_bound > 1.5 * published
    assert audit.lower_bound <= smote_cost(epsilon, **settings, bases=bases).epsilon
    for delta in (1e-3, 0.05):
        audit = audit_epsilon(
            run,
            table,
            other,
            trials=40_000,
            delta=delta,
            confidence=1 - 1e-6,
            vectorized=True,
            random_state=1,
        )
        assert audit.lower_bound <= smote_cost(epsilon, **settings, bases=bases, target_delta=delta).epsilon


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("n_added", [26, 260])
@pytest.mark.parametrize("bases", ["random", "cyclic"])
def test_the_exact_divergence_is_below_ours_and_above_the_papers(epsilon, n_added, bases):
    """The same count under discrete Laplace noise, without luck: both distributions are known."""
    settings = {"n_minority": 26, "n_added": n_added, "dimensions": 2, "k_neighbors": 5}
    if bases == "random":
        counts = binom.pmf(np.arange(n_added + 1), n_added, (1 / 26 + 25 / 26 / 5) * 0.8)
    else:
        turns = n_added // 26
        counts = np.convolve(
            binom.pmf(np.arange(turns + 1), turns, 0.8),
            binom.pmf(np.arange(25 * turns + 1), 25 * turns, 0.16),
        )
    table, other = star()
    rng = np.random.default_rng(0)
    seen = inner_rows(table, rng, 2000, n_added, bases) - 1
    spread = math.sqrt(n_added * 0.25 / 2000)
    # A mean of 2000 runs, six deviations.
    assert abs(seen.mean() - counts @ np.arange(len(counts))) < 6 * spread
    assert inner_rows(other, rng, 100, n_added, bases).max() == 0
    results = np.arange(-int(40 / epsilon), n_added + 2 + int(40 / epsilon))

    def noise(at):
        return np.tanh(epsilon / 2) * np.exp(-epsilon * np.abs(results - at))

    here = sum(chance * noise(1 + rows) for rows, chance in enumerate(counts))
    there = noise(0)
    sizes = smote_group_sizes(**settings, bases=bases)
    for at in np.linspace(0, epsilon * 80, 60):
        stated = whole_delta(at, sizes, Mechanism(epsilon))
        for a, b in ((here, there), (there, here)):
            assert np.maximum(a - np.exp(at) * b, 0).sum() <= stated + 1e-12
    published = paper_smote_epsilon(epsilon, **settings)
    # Theorem 3 promises 0 here.
    assert np.maximum(here - np.exp(published) * there, 0).sum() > 0.01


# ---------------------------------------------------------------------------------------------- the paper's


def test_the_papers_table():
    table = smote_table()
    assert len(table) == 6
    # Its printed formula gives 220.26 where the table has 213.21, with a delta above 1 throughout.
    resulting = table[table.what == "resulting"]
    assert resulting.formula.to_numpy() == pytest.approx(np.array([1, 5, 10]) * 2 ** (0.4042 * 25) / 5)
    assert (abs(table.formula / table.published - 1) < 0.04).all()
    assert (table.formula_delta > 1).all()
    assert (resulting["n_minority = 3333"] > 3 * resulting.published).all()
    assert paper_smote_delta(1e-4, gamma=0.0, **SMALL) > 1
    assert paper_smote_delta(1e-4, gamma=5.0, **SMALL) < 1


def test_random_bases_of_plain_copies():
    (size,) = oversampling_group_sizes(n_minority=50, n_added=200, bases="random")
    for rows in range(30):
        assert exceeding(size, rows + 1) == pytest.approx(binom.sf(rows, 200, 1 / 50), rel=1e-6)


def test_what_the_proofs_take_for_granted_is_said():
    settings = {"n_minority": 100, "n_added": 10}
    plain, cyclic = (
        oversampling_cost(0.1, bases=bases, **settings).caveats for bases in ("random", "cyclic")
    )
    stable, unstable = (
        smote_cost(0.1, dimensions=2, stable_ties=ties, **settings).caveats for ties in (True, False)
    )
    assert len(plain) == len(unstable) == 1 and "public" in plain[0] and plain == unstable
    assert len(cyclic) == len(stable) == 2 and cyclic[0] == stable[0] == plain[0]
    assert "order" in cyclic[1] and "ties" in stable[1]
