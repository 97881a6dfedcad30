"""The seed that made a release: found where it was a usual one, never where it was not, and what follows from it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from imblearn.over_sampling import ADASYN, SMOTE, SMOTENC, SVMSMOTE, BorderlineSMOTE

from oversafe import audit
from oversafe._core.errors import InputError
from oversafe.attack import ReconSMOTE, RecoverSeed
from oversafe.attack.seed import _kernels
from oversafe.attack.seed.candidates import usual_seeds
from oversafe.attack.seed.search import (
    Layout,
    Plan,
    SeedMatch,
    by_order,
    by_shares,
    doubles_of,
    intervals_of,
    log_bound,
    nearest_before,
    parts_of,
    words_of,
)
from oversafe.attack.seed.shares import Shares

UNUSUAL = 3_141_592_653


def people(n=60, others=360, m=6, seed=0):
    """Return whole numbers in clusters, and which rows are of the rare class."""
    rng = np.random.default_rng(seed)
    centres = rng.integers(0, 1000, size=(8, m))
    X = centres[rng.integers(8, size=n + others)] + rng.integers(-150, 150, size=(n + others, m))
    return X.astype(float), np.arange(n + others) < n


def released(sampler, X, y, shuffled=True):
    """Return the rows that a sampler made."""
    rows = sampler.fit_resample(X, y.astype(int))[0][len(X) :]
    return rows[np.random.default_rng(1).permutation(len(rows))] if shuffled else rows


def is_real(records, X):
    """Return which records equal a real row in all values that they have."""
    records = np.asarray(records, dtype=float)
    return np.array([(~(np.abs(X - record) > 1e-6)).all(axis=1).any() for record in records], dtype=bool)


@pytest.mark.parametrize("seed", [0, 42, 20_240_131, 2**32 - 1])
def test_words_and_draws_are_those_of_numpy(seed):
    numpy = np.random.RandomState(seed)
    words = words_of(seed, 3_000)
    assert (words[:3_000] == numpy.randint(0, 2**32, 3_000, dtype=np.uint32)).all()
    for bound in (1, 2, 5, 300, 1_024, 70_000):
        numpy = np.random.RandomState(seed)
        whole, doubles = numpy.randint(0, bound, 400), numpy.uniform(size=400)
        drawn = np.empty(400, dtype=np.int64)
        begin = _kernels.whole_numbers(words, 0, bound, drawn)
        assert (drawn == whole).all()
        assert (doubles_of(words)[begin : begin + 800 : 2] == doubles).all()


def test_usual_seeds_are_those_that_people_use():
    seeds = usual_seeds()
    assert {42, 0, 100_000, 20_240_131, 19_900_101, 31_012_024, 2_023, 12_345}.issubset(seeds.tolist())
    assert len(np.unique(seeds)) == len(seeds) and seeds.max() < 2**32 and UNUSUAL not in seeds
    assert seeds[0] == 42


@pytest.mark.parametrize(
    ("sampler", "named"),
    [
        (SMOTE(random_state=42), "SMOTE"),
        (SMOTE(random_state=77_777, k_neighbors=3), "SMOTE"),
        (BorderlineSMOTE(random_state=20_230_405), "BorderlineSMOTE"),
        (ADASYN(random_state=7), "ADASYN"),
        (SVMSMOTE(random_state=2024), "SVMSMOTE"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_seed_of_shuffled_rows_is_found_by_their_shares(sampler, named):
    X, y = people(n=90)
    result = RecoverSeed().run(released(sampler, X, y), X[y], known=X[~y])
    assert result.details["seed"] == sampler.random_state and result.details["p"] <= 1e-6
    assert result.details["sampler"] == named
    assert len(result.records) >= 20 and is_real(result.records, X).all()
    assert result.p_wrong.max() < 1e-3 and result.details["precision"] == 1.0


def test_sampler_records_neighbors_and_order_are_read_off():
    X, y = people()
    for k in (3, 5):
        for shuffled in (True, False):
            rows = released(SMOTE(random_state=123, k_neighbors=k), X, y, shuffled)
            found = RecoverSeed().run(rows, known=X[~y]).details
            assert (found["sampler"], found["n_records"], found["k_neighbors"]) == ("SMOTE", y.sum(), k)
            assert found["order"] == ("shuffled" if shuffled else "in the order in which they were made")


def test_real_rows_among_the_released_ones_do_no_harm():
    X, y = people()
    made = SMOTE(random_state=11).fit_resample(X, y.astype(int))
    rows = made[0][made[1] == 1]
    found = RecoverSeed().run(rows, known=X[~y]).details
    assert found["seed"] == 11 and found["n_records"] == y.sum()
    found = RecoverSeed(int(y.sum())).run(rows.round(), X[y], known=X[~y]).details
    assert found["seed"] == 11 and found["order"] == "in the order in which they were made"


@pytest.mark.parametrize("known", [True, False])
def test_rounded_rows_in_order_give_away_the_seed_and_records(known):
    X, y = people()
    rows = released(SMOTE(random_state=42), X, y, shuffled=False)
    # Measured .40 and .75; without other real rows nothing shows that whole numbers are all that real values are.
    for decimals, least in ((0, 0.3 if known else 0.0), (1, 0.6)):
        result = RecoverSeed(int(y.sum()) if known else None).run(
            rows.round(decimals), X[y], known=X[~y] if known else None
        )
        assert result.details["seed"] == 42 and result.details["p"] <= 1e-6
        assert result.details["recall"] >= least and is_real(result.records, X).all()
        assert (result.p_wrong <= 0.05).all()


def test_whole_numbers_that_were_cut_off_give_records():
    X, y = people()
    frame = pd.DataFrame(X.astype(int), columns=list("abcdef"))
    rows = SMOTE(random_state=5).fit_resample(frame, y.astype(int))[0].iloc[len(X) :].reset_index(drop=True)
    assert all(pd.api.types.is_integer_dtype(dtype) for dtype in rows.dtypes)
    result = RecoverSeed(int(y.sum())).run(rows, frame[y], known=frame[~y])
    assert result.details["seed"] == 5 and result.details["recovered"] >= 5
    assert result.details["precision"] == 1.0


def test_smotenc_draws_as_smote_does():
    X, y = people()
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(town=np.where(X[:, 0] > 500, "north", "south"))
    made = SMOTENC(["town"], random_state=99).fit_resample(frame, y.astype(int))[0]
    rows = made.iloc[len(X) :].sample(frac=1, random_state=0).reset_index(drop=True)
    result = RecoverSeed().run(rows, frame[y], known=frame[~y])
    assert result.details["seed"] == 99 and result.details["columns_left_out"] == ("town",)
    assert result.details["precision"] == 1.0 and len(result.records) > 20
    assert result.records["town"].isna().all()


def test_each_class_shows_the_seed():
    X, y = people(n=120)
    classes = np.where(y, np.arange(len(y)) % 3 > 0, 2).astype(int)
    for state in (42, np.random.RandomState(42)):
        made, labels = SMOTE(random_state=state).fit_resample(X, classes)
        for label in (0, 1):
            rows = made[len(X) :][labels[len(X) :] == label]
            found = RecoverSeed().run(rows[::-1], known=X).details
            assert found["seed"] == 42, (state, label)


@pytest.mark.parametrize("seed", range(4))
def test_no_seed_is_named_where_none_was_used(seed):
    # p <= 1e-6 each by the bound, so that four releases and four searches fail with less than 2e-5 in all, and these
    # seeds are fixed.
    X, y = people(seed=seed)
    sampler = SMOTE(random_state=np.random.RandomState(UNUSUAL + seed))
    rows = released(sampler, X, y, shuffled=False)
    for some in (rows, rows.round()):
        result = RecoverSeed(int(y.sum()), max_work=2e8).run(some, X[y], known=X[~y])
        assert result.details["seeds_tried"] > 30_000
        assert result.details["seed"] is None and result.risk == 0 and not len(result.records)
        assert result.interval[0] == 0


def test_no_seed_is_named_for_rows_that_nobody_interpolated():
    rng = np.random.default_rng(0)
    for rows in (rng.normal(size=(300, 5)), rng.integers(0, 50, size=(300, 5)).astype(float)):
        result = RecoverSeed(60, max_work=2e8).run(rows, rows)
        assert result.details["seed"] is None and not len(result.records)


def test_more_seeds_are_tried_for_those_who_have_the_time():
    X, y = people()
    rows = released(SMOTE(random_state=100_050), X, y)
    assert RecoverSeed().run(rows, known=X[~y]).details["seed"] is None
    assert RecoverSeed(time_limit=60).run(rows, known=X[~y]).details["seed"] == 100_050


def test_lines_give_shares_where_there_is_no_grid():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(1_020, 4)), np.arange(1_020) >= 1_000
    rows = released(SMOTE(random_state=42), X, y)
    lines = ReconSMOTE().run(rows)
    result = RecoverSeed().run(rows, X[y], reconstruction=lines)
    assert result.details["seed"] == 42 and result.details["precision"] == 1.0


def test_p_of_the_shares_is_the_binomial_tail():
    # 40 random shares and 4,000 seeds: by chance each part of a stream has as many matches as the binomial says.
    rng = np.random.default_rng(0)
    u = rng.random(40)
    shares = Shares(
        np.arange(40), np.zeros((40, 2), int), u - 1e-5, u + 1e-5, np.zeros((1, 2)), np.zeros((1, 2))
    )
    low, high = intervals_of(shares)
    chance = (high - low).sum()
    begins, length = parts_of(40, 40, 0)
    table = np.zeros(2**18, dtype=bool)
    for a, b in (np.stack([low, high], axis=1) * 2**18).astype(int).tolist():
        table[a : b + 1] = True
    counts = np.zeros((4_000, len(begins), 2), dtype=np.int64)
    _kernels.scan(
        np.arange(4_000), begins, np.empty(length, np.uint32), low, high, table, np.uint32(14), counts
    )
    expected = counts.size * (length / 2) * chance
    # Six standard deviations of a Poisson number: 2e-9.
    assert abs(counts.sum() - expected) < 6 * np.sqrt(expected) + 1
    plan = Plan([np.arange(4_000)], np.arange(0), 0, 4_000)
    assert by_shares(shares, 40, plan, 1e9, 1e-6)[0] is None


def test_p_of_the_order_is_a_bound():
    # Rows in order, and streams that have nothing to do with them.
    rng = np.random.default_rng(0)
    values = rng.normal(size=(300, 3)).cumsum(axis=0)
    near = nearest_before(values)
    found = np.zeros((100_000, 3), dtype=np.int64)
    ways = (np.array([60 * 5]), np.array([5]), np.array([0]))
    nothing = np.array([0])
    count = _kernels.kin_in_order(
        np.arange(20_000), *ways, near, nothing, 300, nothing, np.empty(1_248, np.uint32), found
    )
    expected = (near >= 0).sum() / 60
    hits = found[:count, 2]
    assert count == 20_000 and hits.mean() <= expected
    for most in (25, 30, 35):
        bound = np.exp(log_bound(most, expected))
        # Six standard deviations of a binomial number: 1e-9.
        assert (hits >= most).mean() <= bound + 6 * np.sqrt(bound / count)
    plan = Plan([np.arange(20_000)], np.arange(0), 0, 20_000)
    assert by_order(values, plan, [Layout(60, 5, 0)], 1e9, 1e-6)[0] is None


@pytest.mark.parametrize("unit", [1e-300, 1e-9, 1e12, 1e300])
def test_the_unit_of_the_columns_makes_no_difference(unit):
    X, y = people()
    rows = released(SMOTE(random_state=42), X, y, shuffled=False) * unit
    result = RecoverSeed().run(rows, X[y] * unit, known=X[~y] * unit)
    assert result.details["seed"] == 42 and result.details["precision"] == 1.0
    assert result.details["recall"] > 0.9 and len(result.records) <= y.sum()


# Measured 1, 1 and .77.
@pytest.mark.parametrize(("digits", "least"), [(12, 0.9), (9, 0.9), (6, 0.6)])
def test_files_of_fewer_digits_give_records(digits, least):
    X, y = people()
    rows = released(SMOTE(random_state=42), X, y, shuffled=False)
    rows = np.array([float(f"{value:.{digits}g}") for value in rows.ravel()]).reshape(rows.shape)
    result = RecoverSeed().run(rows, X[y], known=X[~y])
    assert result.details["seed"] == 42 and result.details["precision"] == 1.0
    assert result.details["recall"] > least


def test_edges():
    X, y = people()
    rows = released(SMOTE(random_state=42), X, y)
    with pytest.raises(InputError):
        RecoverSeed().run(rows[:0])
    for some in (rows[:1], rows[:2], np.ones((50, 3)), np.full((20, 2), np.nan)):
        result = RecoverSeed().run(some)
        assert result.details["seed"] is None and not len(result.records) and result.risk == 0
    with pytest.raises(InputError):
        RecoverSeed().run(np.where(rows > rows.max() - 1, np.inf, rows))
    with pytest.raises(InputError):
        RecoverSeed(k_neighbors=0).run(rows)
    constant = np.column_stack([rows, np.ones(len(rows))])
    result = RecoverSeed().run(constant, known=np.column_stack([X[~y], np.ones((~y).sum())]))
    assert result.details["seed"] == 42 and (np.asarray(result.records)[:, -1] == 1).all()
    gaps = pd.DataFrame(rows)
    gaps.iloc[::9, 2] = np.nan
    found = RecoverSeed().run(gaps, pd.DataFrame(X[y]), known=pd.DataFrame(X[~y]))
    assert found.details["seed"] == 42 and found.details["precision"] == 1.0
    assert RecoverSeed().run(pd.DataFrame({"town": ["A", "B"] * 20})).details["seed"] is None


def test_audits_tell_the_seed_and_what_follows():
    X, y = people()
    made, labels = SMOTE(random_state=42).fit_resample(pd.DataFrame(X, columns=list("abcdef")), y.astype(int))
    release = made.assign(y=labels).iloc[len(X) :].round(1).reset_index(drop=True)
    others = pd.DataFrame(X[~y], columns=list("abcdef")).assign(y=0)
    found = [
        f
        for f in audit(pd.concat([release, others]), "y").findings
        if f.attack.title() == RecoverSeed().title() and f.result.details["class"] == "1"
    ]
    assert found and found[0].result.details["seed"] == 42 and found[0].certain_records > 0
    assert "were made with SMOTE and the seed 42" in found[0].headline


def test_a_seed_without_records_is_told_and_exposes_nothing():
    X, y = people()
    attack = RecoverSeed()
    result = attack.run(released(SMOTE(random_state=42), X, y), known=X[~y])
    empty = type(result)(
        "RecoverSeed", "reconstruction", 0.0, (0.0, 0.1), pd.DataFrame(), result.details | {"records": 0}
    )
    assert attack.headline(empty, "ill").endswith("No real record follows from that.")
    match = SeedMatch(42, 3, 0.0, 1e-9)
    assert match.way == -1
