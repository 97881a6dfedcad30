"""PrivateSMOTE replaces what singles people out, and keeps what its columns are."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from oversafe._core.errors import InputError
from oversafe.data import Column, Schema, load_dataset
from oversafe.protect import PrivateSMOTE, suggest_quasi_identifiers
from oversafe.protect.samplers import private_smote

from .conformance import mixed_table


def numbers(n=400, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, d)), columns=[f"c{i}" for i in range(d)])
    return X, pd.Series(np.where(rng.random(n) < 0.2, "ill", "well"))


def test_only_rows_with_rare_combinations_are_replaced_and_by_as_many_copies():
    X = pd.DataFrame(
        {"sex": list("mmmmfffm"), "age": [30, 30, 30, 30, 40, 40, 51, 62], "dose": np.arange(8) / 8}
    )
    y = ["a", "b"] * 4
    sampler = PrivateSMOTE(quasi_identifiers=["sex", "age"], k_neighbors=2, n_copies=3, random_state=0)
    X_new, y_new = sampler.fit_resample(X, y)
    # Four men of 30 share their combination; the two women of 40 and the other two rows do not with enough.
    assert sampler.high_risk_.tolist() == [False] * 4 + [True] * 4
    assert np.bincount(sampler.source_).tolist() == [1] * 4 + [3] * 4
    kept = X_new[~sampler.synthetic_]
    pd.testing.assert_frame_equal(
        kept.reset_index(drop=True), X.iloc[sampler.source_[~sampler.synthetic_]].reset_index(drop=True)
    )
    assert y_new == [y[i] for i in sampler.source_]
    assert sampler.sampling_strategy_ == {"a": 8, "b": 8}


def test_all_rows_can_be_replaced():
    X, y = mixed_table()
    sampler = PrivateSMOTE(quasi_identifiers=["smoker"], synthesize="all", random_state=0)
    X_new, _ = sampler.fit_resample(X, y)
    assert sampler.synthetic_.all() and len(X_new) == len(X) and not sampler.high_risk_.any()
    assert not any("unchanged" in c and "rows" in c for c in sampler.guarantee_.caveats)


@pytest.mark.parametrize("epsilon", [1e-300, 0.01, 0.1, 0.5, 1.0, 10.0, 1e3, 1e6, None])
def test_no_continuous_cell_equals_its_source(epsilon):
    rng = np.random.default_rng(1)
    n = 500
    X = pd.DataFrame(
        {
            "full": rng.normal(size=n),
            "coarse": np.round(rng.normal(size=n), 1),
            "skewed": np.round(rng.pareto(2, n), 3),
            "single": rng.normal(size=n).astype(np.float32),
            "half": rng.choice([0.0, 0.5], n),
            "mostly": np.where(rng.random(n) < 0.95, 0.25, rng.random(n)),
            "gaps": np.where(rng.random(n) < 0.3, np.nan, np.round(rng.random(n), 2)),
            "huge": rng.normal(size=n) * 1e300,
        }
    )
    y = rng.choice(["a", "b"], n)
    sampler = PrivateSMOTE(epsilon, ["full"], n_copies=3, random_state=2)
    X_new, _ = sampler.fit_resample(X, y)
    assert sampler.synthetic_.all()
    for name in X:
        assert X_new[name].dtype == X[name].dtype
        assert (X_new[name].to_numpy() == X[name].to_numpy()[sampler.source_]).sum() == 0, name
        assert X[name].min() <= X_new[name].min() and X_new[name].max() <= X[name].max()
    assert X_new["gaps"].isna().any()


def test_whole_numbers_and_dates_with_many_values_never_equal_their_source_either():
    X, y = mixed_table(missing=False)
    sampler = PrivateSMOTE(10.0, ["exact"], n_copies=3, random_state=0)
    X_new, _ = sampler.fit_resample(X, y)
    for name in ("age", "visits", "admitted"):
        assert not (X_new[name].array == X[name].iloc[sampler.source_].array).any()
        assert X_new[name].dtype == X[name].dtype
    # Of five values, never the own one would be telling: it is sometimes.
    few = pd.DataFrame({"x": X["exact"], "n": np.arange(len(X)) % 5})
    sampler = PrivateSMOTE(10.0, ["x"], n_copies=3, random_state=0)
    few_new, _ = sampler.fit_resample(few, y)
    assert set(few_new["n"]) <= set(range(5))
    assert (few_new["n"].to_numpy() == few["n"].to_numpy()[sampler.source_]).any()


def test_numbers_move_by_laplace_noise_times_the_difference():
    # Two clusters of two points: the only neighbour of each is the other, at a distance of 1.
    X = pd.DataFrame({"x": [10.0, 11.0, 90.0, 91.0]})
    schema = Schema((Column("x", "continuous", "float64", bounds=(-1e6, 1e6)),))
    epsilon = 2.0
    sampler = PrivateSMOTE(epsilon, ["x"], k_neighbors=1, n_copies=20_000, schema=schema, random_state=0)
    X_new, _ = sampler.fit_resample(X, [0, 1, 0, 1])
    moved = (X_new["x"].to_numpy() - X["x"].to_numpy()[sampler.source_]) * np.array([1, -1, 1, -1])[
        sampler.source_
    ]
    # Kolmogorov-Smirnov over 80,000 draws: fails by chance with probability 1e-7.
    assert stats.kstest(moved, stats.laplace(scale=1 / epsilon).cdf).pvalue > 1e-7
    uniform = PrivateSMOTE(None, ["x"], k_neighbors=1, n_copies=20_000, schema=schema, random_state=0)
    X_new, _ = uniform.fit_resample(X, [0, 1, 0, 1])
    moved = (X_new["x"].to_numpy() - X["x"].to_numpy()[uniform.source_]) * np.array([1, -1, 1, -1])[
        uniform.source_
    ]
    assert stats.kstest(moved, stats.uniform.cdf).pvalue > 1e-7


def test_equal_values_move_by_the_standard_deviation():
    # The rows come in twins, so that every neighbour agrees.
    X = pd.DataFrame({"x": [0.0, 0.0, 10.0, 10.0], "id": [1.0, 1.0, 2.0, 2.0]})
    schema = Schema(
        (
            Column("x", "continuous", "float64", bounds=(-1e6, 1e6)),
            Column("id", "continuous", "float64", bounds=(-1e6, 1e6)),
        )
    )
    sampler = PrivateSMOTE(1.0, ["x"], k_neighbors=1, n_copies=20_000, schema=schema, random_state=0)
    X_new, _ = sampler.fit_resample(X, [0, 1, 0, 1])
    moved = X_new["x"].to_numpy() - X["x"].to_numpy()[sampler.source_]
    assert stats.kstest(moved, stats.laplace(scale=X["x"].std(ddof=0)).cdf).pvalue > 1e-7


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 5.0])
def test_noise_is_drawn_again_until_the_result_lies_in_the_range(epsilon):
    grid = private_smote._Grid(0.0, 10.0, None, "float64", True)
    rng = np.random.default_rng(0)
    n = 20_000
    moved = private_smote._moved(np.full(n, 9.0), np.full(n, -3.0), grid, epsilon, rng)
    assert moved.min() >= 0 and moved.max() <= 10
    # What rejection gives, from 9 with a step of -3: two samples of one distribution, fails with 1e-7.
    plain = 9.0 - 3.0 * rng.laplace(0.0, 1 / epsilon, 100 * n)
    plain = plain[(plain >= 0) & (plain <= 10)][: 2 * n]
    assert stats.ks_2samp(moved, plain).pvalue > 1e-7


def test_endless_noise_is_even_over_the_range():
    grid = private_smote._Grid(-5.0, 10.0, None, "float64", True)
    rng = np.random.default_rng(0)
    for epsilon, step in ((1e-300, 1.0), (1e-20, 1e-9), (1e-8, 1e300)):
        moved = private_smote._moved(np.full(20_000, 9.0), np.full(20_000, step), grid, epsilon, rng)
        assert stats.kstest(moved, stats.uniform(-5, 15).cdf).pvalue > 1e-7


def test_categories_come_from_the_neighbours_or_from_all_when_they_agree():
    rng = np.random.default_rng(0)
    codes = np.array([0.0, 1.0, 2.0, np.nan])
    column = Column("c", "categorical", "object", True, categories=("a", "b", "c"))
    near = np.tile([[0, 0, 1], [3, 2, 2], [1, 1, 1]], (20_000, 1))
    drawn = private_smote._new_categories(column, codes, near, rng)
    rows = [np.where(np.isnan(d), 3, d).astype(int) for d in drawn.reshape(-1, 3).T]
    # Each of the different categories alike: 0.5 or 0.25, within 6 standard deviations (failure < 1e-8).
    for row, shares in zip(rows, [[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], [0.25, 0.25, 0.25, 0.25]], strict=True):
        found = np.bincount(row, minlength=4) / len(row)
        np.testing.assert_allclose(found, shares, atol=6 * 0.5 / np.sqrt(len(row)))
        assert (found[np.array(shares) == 0] == 0).all()


def test_categories_can_be_those_of_the_neighbours_as_they_occur():
    X = pd.DataFrame({"x": np.arange(40) + 0.5, "c": ["rare"] * 2 + ["common"] * 38})
    y = [0, 1] * 20
    plain = PrivateSMOTE(1.0, ["x"], k_neighbors=3, n_copies=50, random_state=0)
    X_new, _ = plain.fit_resample(X, y)
    # Most neighbours agree, and either category is as likely.
    assert (X_new["c"] == "rare").mean() > 0.3
    X_new, _ = plain.set_params(categories="neighbors").fit_resample(X, y)
    # At most what a neighbour list can hold of the two.
    assert 0 < (X_new["c"] == "rare").mean() < 0.15


def test_missing_numbers_follow_the_neighbour():
    rng = np.random.default_rng(0)
    column = Column("x", "continuous", "float64", True, bounds=(0.0, 10.0))
    codes = np.array([np.nan, 4.0, np.nan, 6.0])
    sources, near = np.array([0, 1, 2, 3]), np.array([[1], [2], [0], [1]])
    drawn = private_smote._new_numbers(column, codes, sources, near, 1.0, rng)
    assert np.isnan(drawn).tolist() == [False, True, True, False]


def test_one_search_serves_all_variants(monkeypatch):
    X, y = numbers()
    calls = []
    search = private_smote.nearest_rows

    def counted(*args, **kwargs):
        calls.append(args[1])
        return search(*args, **kwargs)

    monkeypatch.setattr(private_smote, "nearest_rows", counted)
    sampler = PrivateSMOTE(random_state=4)
    variants = list(
        sampler.variants(
            X,
            y,
            epsilon=[0.5, 5.0, None],
            quasi_identifiers=[["c0"], ["c1", "c2"]],
            k_neighbors=[1, 3],
            n_copies=[1, 2],
        )
    )
    assert len(calls) == 1 and len(variants) == 24
    for variant in variants[::5]:
        alone = PrivateSMOTE(**variant.settings, random_state=4)
        pd.testing.assert_frame_equal(alone.fit_resample(X, y)[0], variant.X)
        assert alone.guarantee_ == variant.guarantee
    with pytest.raises(InputError, match="empty list"):
        next(sampler.variants(X, y, epsilon=[]))


def test_the_guarantee_says_that_epsilon_is_a_noise_level():
    X, y = mixed_table()
    sampler = PrivateSMOTE(0.5, ["age"])
    sampler.fit_resample(X, y)
    assert sampler.guarantee_.status == "nominal" and sampler.guarantee_.epsilon == 0.5
    text = str(sampler.guarantee_)
    for words in ("noise level", "depends on all the other records", "published unchanged"):
        assert words in text
    assert sampler.fit(X, y) is sampler
    assert PrivateSMOTE(None, ["age"]).fit(X, y).guarantee_.status == "none"


def test_without_quasi_identifiers_the_most_telling_ones_are_taken():
    X, y = load_dataset("breast_cancer")
    sampler = PrivateSMOTE(random_state=0)
    sampler.fit_resample(X, y)
    assert sampler.high_risk_.all() and sampler.quasi_identifiers_
    assert any("suggested" in caveat for caveat in sampler.guarantee_.caveats)


def test_suggestions_rank_sets_by_the_rows_that_they_single_out():
    X = pd.DataFrame(
        {
            "sex": list("mmmmffff"),
            "age": [30, 30, 40, 40, 30, 30, 40, 50],
            "constant": ["x"] * 8,
            "name": [f"Person Number {i}" for i in range(8)],
        }
    )
    found = suggest_quasi_identifiers(X.drop(columns="name"), k_anonymity=2)
    assert found.iloc[0].to_dict() == {"columns": ("sex", "age"), "rows": 2, "share": 0.25, "unique": 2}
    alone = found.set_index("columns")["rows"]
    assert alone[("age",)] == 1 and alone[("sex",)] == 0
    with pytest.raises(InputError, match="max_columns"):
        suggest_quasi_identifiers(X, max_columns=0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 0}, "epsilon = 0"),
        ({"epsilon": "much"}, "epsilon"),
        ({"k_anonymity": 1}, "at least 2"),
        ({"k_neighbors": 0}, "at least 1"),
        ({"k_neighbors": 240}, "ask for fewer neighbours"),
        ({"n_copies": 1.5}, "n_copies"),
        ({"synthesize": "some"}, "'high-risk' or 'all'"),
        ({"categories": "any"}, "'published' or 'neighbors'"),
        ({"quasi_identifiers": ["nobody"]}, "'nobody' is not a column"),
        ({"quasi_identifiers": "age"}, "a list of columns"),
        ({"quasi_identifiers": []}, "is empty"),
    ],
)
def test_bad_settings_are_one_sentence(settings, message):
    X, y = mixed_table()
    with pytest.raises(InputError, match=message) as error:
        PrivateSMOTE(**settings).fit_resample(X, y)
    assert "\n" not in str(error.value)


def test_infinite_values_are_refused():
    X, y = numbers(50)
    X.iloc[3, 1] = np.inf
    with pytest.raises(InputError, match="infinite"):
        PrivateSMOTE(quasi_identifiers=["c0"]).fit_resample(X, y)


def test_constant_and_empty_columns_and_twins():
    X = pd.DataFrame({"c": 1.5, "empty": np.nan, "x": np.repeat(np.arange(10.0), 2) + 0.5})
    X_new, _ = PrivateSMOTE(quasi_identifiers=["x"], random_state=0).fit_resample(X, [0, 1] * 10)
    assert (X_new["c"] == 1.5).all() and X_new["empty"].isna().all()


def mean_risks(name, epsilons):
    """Return the mean linkability at each epsilon, as the paper attacks: five sets of 40 % of the columns."""
    from sklearn.model_selection import train_test_split

    from oversafe.attack import Linkability

    X, y = load_dataset(name)
    train, holdout, y_train, _ = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)
    rng = np.random.default_rng(1)
    sets = [sorted(rng.choice(X.columns, round(0.4 * X.shape[1]), replace=False)) for _ in range(5)]
    risks = {epsilon: [] for epsilon in epsilons}
    for variant in PrivateSMOTE(k_neighbors=3, random_state=0).variants(
        train, y_train, epsilon=epsilons, quasi_identifiers=sets
    ):
        known = variant.settings["quasi_identifiers"]
        half = len(known) // 2
        attack = Linkability(known[:half], known[half:], n_neighbors=10, n_attacks=2000, random_state=0)
        risks[variant.settings["epsilon"]].append(attack.run(variant.X, train, holdout).risk)
    return {epsilon: float(np.mean(found)) for epsilon, found in risks.items()}


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["personal_loan", "employee", "german_credit_20"])
def test_people_are_hardly_linked_through_the_release(data_folder, name):
    assert np.mean(list(mean_risks(name, [0.5, 1.0, 5.0, 10.0]).values())) <= 0.05


@pytest.mark.data
@pytest.mark.slow
def test_precise_numbers_need_a_small_epsilon(data_folder):
    risks = mean_risks("magic_gamma", [0.5, 1.0, 10.0])
    assert risks[0.5] <= 0.05 and risks[1.0] <= 0.05
    # The documented limit of the method: little noise hides nobody.
    assert risks[10.0] > 0.1


def test_tables_of_arrow_come_back_as_they_were():
    X, y = mixed_table()
    X = X.convert_dtypes(dtype_backend="pyarrow")
    made, _ = PrivateSMOTE(random_state=0).fit_resample(X, y)
    assert made.dtypes.equals(X.dtypes)
