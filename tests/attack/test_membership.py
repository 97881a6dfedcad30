"""GroundHog tells releases with a record from those without, and its compiled path draws what SMOTE draws."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from imblearn.over_sampling import SMOTE as ImbalancedSMOTE
from scipy.sparse import csr_array
from scipy.stats import chisquare, ks_2samp
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

from oversafe._core.errors import InputError
from oversafe.attack import GroundHog
from oversafe.attack.membership._kernels import draw_steps, select_in_window, select_pair
from oversafe.attack.membership.game import Scores, choose_targets, made_rows, without
from oversafe.attack.membership.smote_releases import Neighbors, SmoteReleases, n_added, smote_neighbors
from oversafe.attack.membership.statistics import Encoder, Statistics, Surroundings
from oversafe.protect import SMOTE, HistogramSynthesizer, RandomOverSampler, RandomUnderSampler


def imbalanced(n: int = 220, minority: int = 20, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X, np.repeat([0, 1], [n - minority, minority])


def quick(**changes: object) -> GroundHog:
    return GroundHog(**{"n_targets": 4, "n_train": 60, "n_test": 100, "random_state": 0, **changes})


# ------------------------------------------------------------------------------------------ the kernels


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=60), st.data())
@settings(deadline=None)
def test_two_consecutive_ranks(numbers: list[int], data: st.DataObject) -> None:
    values = np.array(numbers, dtype=float)
    rank = data.draw(st.integers(0, len(values) - 1))
    expected = np.sort(values)
    lower, upper = select_pair(values.copy(), len(values), rank)
    assert lower == expected[rank]
    assert upper == expected[min(rank + 1, len(values) - 1)]
    if expected[0] < expected[-1]:
        tally, room = np.empty(8, dtype=np.int64), np.empty(len(values) + 1)
        lower, upper = select_in_window(
            values.copy(), len(values), rank, expected[0], expected[-1], tally, room
        )
        assert lower == expected[rank]
        if rank + 1 < len(values):
            assert upper == expected[rank + 1]


def test_limits_next_to_each_other() -> None:
    low, high = 0.0, 5e-324
    values = np.array([high, low, high, low])
    tally, room = np.empty(64, dtype=np.int64), np.empty(5)
    assert select_in_window(values, 4, 1, low, high, tally, room) == (low, high)


def test_rows_fall_evenly_on_the_segments_and_along_them() -> None:
    state = np.random.SeedSequence(0).generate_state(4, np.uint64)
    counts, steps = np.empty(13, dtype=np.int64), np.empty(200_001)
    draw_steps(state, counts, steps)
    assert counts.sum() == len(steps)
    # Each fails with probability 1e-6.
    assert chisquare(counts).pvalue > 1e-6
    assert chisquare(np.histogram(steps, bins=50, range=(0, 1))[0]).pvalue > 1e-6
    assert abs(np.corrcoef(steps[:-1], steps[1:])[0, 1]) < 4.9 / np.sqrt(len(steps))


def tables() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=(30, 4))
    return {
        "numbers": numbers,
        "far from zero": numbers + 1e6,
        "whole numbers with ties": rng.integers(0, 3, size=(30, 4)).astype(float),
        "zeros and ones": np.eye(5)[rng.integers(0, 5, size=30)],
        "a constant column and copies": np.column_stack(
            [np.full(30, 7.0), np.repeat(numbers[:10, :2], 3, axis=0)]
        ),
    }


def drawn_rows(state, n_rows: int, releases: SmoteReleases) -> np.ndarray:
    """Return one release of SMOTE as a table."""
    counts, steps = np.empty(releases.starts.shape[1], dtype=np.int64), np.empty(n_rows)
    draw_steps(state, counts, steps)
    starts, spans = (np.repeat(part.T, counts, axis=0) for part in (releases.starts, releases.spans))
    return starts + steps[:, None] * spans


@pytest.mark.parametrize("name", list(tables()))
@pytest.mark.parametrize("n_rows", [2, 7, 60, 3000])
@pytest.mark.parametrize("features", ["paper", "naive", "histogram", "correlation"])
def test_summaries_are_those_of_the_rows(name: str, n_rows: int, features: str) -> None:
    points = tables()[name]
    statistics = Statistics(features, points)
    releases = SmoteReleases(*Neighbors(points, 5).segments(), n_rows, statistics)
    seed = np.random.SeedSequence(3)
    found = releases.draw(5, seed)[0]
    # The same random numbers, with the tables built.
    state = np.random.SeedSequence(3).generate_state(4, np.uint64)
    for release_features in found:
        expected = statistics.of(drawn_rows(state, n_rows, releases))
        scale = np.maximum(np.abs(expected), (points.std() + 1) * (10 if features == "paper" else 1))
        # A value on the border of two bins may fall to either side, by rounding.
        near = 1e-8 * scale if features != "histogram" else 2.5 / n_rows
        assert (np.abs(release_features - expected) <= near).all()
        if features == "paper":
            d = points.shape[1]
            extremes = [*range(d), *range(5 * d, 6 * d)]
            np.testing.assert_array_equal(release_features[extremes], expected[extremes])


def test_a_quantile_outside_its_window_is_found_all_the_same() -> None:
    points = tables()["numbers"]
    statistics = Statistics("paper", points)
    releases = SmoteReleases(*Neighbors(points, 5).segments(), 500, statistics)
    seed = 5
    expected = releases.draw(20, np.random.SeedSequence(seed))[0]
    layout = releases._layout
    # Windows that hold nothing: every segment is above them.
    layout.windows[:] = -1e9
    layout.near_ends[:] = 0
    layout.below_ends[:] = 0
    np.testing.assert_array_equal(releases.draw(20, np.random.SeedSequence(seed))[0], expected)


def test_surroundings_are_those_of_the_rows() -> None:
    points = tables()["numbers"]
    around = Surroundings(points, points[:3])
    releases = SmoteReleases(*Neighbors(points, 5).segments(), 200, Statistics("paper", points))
    chosen = np.array([0, 2])
    _, local = releases.draw(4, np.random.SeedSequence(9), around, chosen)
    state = np.random.SeedSequence(9).generate_state(4, np.uint64)
    for found in local:
        rows = drawn_rows(state, 200, releases)
        np.testing.assert_allclose(found, around.of(rows, chosen), atol=1e-9)


def test_the_rounding_of_a_mean_is_no_unit_of_distance() -> None:
    points = np.column_stack([np.full(30, 0.1), np.arange(30.0)])
    assert points[:, 0].std() > 0
    around = Surroundings(points, points[:1])
    assert around.scale[0] == 1
    assert around.of(np.array([[0.2, 0.0]]))[0, 0] == pytest.approx(0.1)


# ------------------------------------------------------------------------------- the same as imbalanced-learn


@given(st.integers(0, 10_000), st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_leaving_a_record_out_gives_the_lists_of_the_others(seed: int, k: int) -> None:
    points = np.random.default_rng(seed).normal(size=(12, 3))
    neighbors = Neighbors(points, k)
    assert not neighbors.has_ties
    for left_out in (0, 5, 11):
        starts, spans = neighbors.segments(without=left_out)
        expected = Neighbors(np.delete(points, left_out, axis=0), k).segments()
        np.testing.assert_array_equal(starts, expected[0])
        np.testing.assert_allclose(spans, expected[1])


def test_with_equal_distances_the_search_is_repeated() -> None:
    lattice = np.array([[i, j] for i in range(4) for j in range(4)], dtype=float)
    neighbors = Neighbors(lattice, 3)
    assert neighbors.has_ties
    kept = np.delete(lattice, 6, axis=0)
    np.testing.assert_array_equal(neighbors.segments(without=6)[1], Neighbors(kept, 3).segments()[1])


def assert_same_distribution(X: np.ndarray, y: np.ndarray, without_row: int | None, n: int) -> None:
    """Compare the compiled path with imbalanced-learn's tables; fails by chance with probability 1e-6."""
    label = 1
    members = np.flatnonzero(y == label)
    place = None if without_row is None else int(np.searchsorted(members, without_row))
    kept_X, kept_y = without(X, without_row), without(y, without_row)
    statistics = Statistics("paper", X[members])
    size = n_added(ImbalancedSMOTE(), kept_y, label)
    ours = SmoteReleases(*Neighbors(X[members], 5).segments(place), size, statistics).draw(
        n, np.random.SeedSequence(0)
    )[0]
    theirs = np.array(
        [
            statistics.of(ImbalancedSMOTE(random_state=seed).fit_resample(kept_X, kept_y)[0][len(kept_y) :])
            for seed in range(n)
        ]
    )
    for feature in range(ours.shape[1]):
        scale = 1e-9 * (1 + np.abs(theirs[:, feature]).max())
        # Figures that differ by their rounding alone are equal.
        pair = (np.round(side[:, feature] / scale) for side in (ours, theirs))
        assert ks_2samp(*pair).pvalue > 1e-6 / ours.shape[1], f"feature {feature}"


@pytest.mark.parametrize("without_row", [None, 207])
def test_the_statistics_have_the_distribution_of_imbalanced_learns(without_row: int | None) -> None:
    assert_same_distribution(*imbalanced(), without_row, 300)


@pytest.mark.data
@pytest.mark.parametrize("name", ["mammography", "solar_flare_m0", "abalone_19", "ecoli"])
def test_the_distribution_on_real_tables(name: str, data_folder) -> None:
    table = pd.read_parquet(data_folder / f"{name}.parquet")
    X, y = table.drop(columns="target").to_numpy(), table["target"].to_numpy()
    assert_same_distribution(X, y, None, 200)
    assert_same_distribution(X, y, int(np.flatnonzero(y == 1)[3]), 200)


def test_only_plain_smote_on_floats_takes_the_compiled_path() -> None:
    X, _ = imbalanced()
    assert smote_neighbors(ImbalancedSMOTE(k_neighbors=4), X) == 4
    assert smote_neighbors(SMOTE(), pd.DataFrame(X)) == 5

    class Own(ImbalancedSMOTE):
        pass

    for protector, table in [
        (Own(), X),
        (RandomOverSampler(), X),
        (SMOTE(), X.astype(np.float32)),
        (SMOTE(), pd.DataFrame(X).assign(whole=1)),
        (SMOTE(), np.where(X > 2, np.nan, X)),
        (SMOTE(), X * 1e200),
    ]:
        assert smote_neighbors(protector, table) is None


def test_the_compiled_and_the_general_path_agree() -> None:
    X, y = imbalanced()

    class Own(ImbalancedSMOTE):
        """Has the same distribution, and no compiled path."""

    compiled = quick(targets=[200, 205, 210]).run(ImbalancedSMOTE(), X, y)
    general = quick(targets=[200, 205, 210]).run(Own(), X, y)
    assert compiled.details["compiled"]
    assert not general.details["compiled"]
    # Each AUC of 50 against 50 releases has a standard error of at most 0.06; 0.45 is more than 5 of the difference.
    assert np.abs(compiled.auc - general.auc).max() < 0.45
    assert compiled.details["n_releases"] == general.details["n_releases"] == 80 * 4


# ------------------------------------------------------------------------------------------ the attack


def test_a_record_far_from_the_others_is_found() -> None:
    X, y = imbalanced()
    X[-1] = 8.0
    result = quick(targets=[219], n_train=100).run(SMOTE(), X, y)
    assert result.threat == "membership"
    assert result.auc[0] > 0.99
    assert result.interval[0] > 0.9
    assert result.privacy_gain[0] < 0.1
    assert result.evidence["row"].tolist() == [219]
    assert result.evidence[0].tolist() == [8.0]


class Unmoved:
    """A synthesizer of the user's own that ignores the data."""

    def __init__(self) -> None:
        self.random_state: int | None = None

    def fit(self, X: object, y: object) -> None:
        return None

    def sample(self) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(self.random_state)
        return rng.normal(size=(100, 3)), np.repeat([0, 1], 50)


def test_a_release_that_ignores_the_data_gives_nothing_away() -> None:
    X, y = imbalanced()
    result = quick(n_targets=10).run(Unmoved(), X, y)
    # The mean of ten AUCs of 50 against 50 has a standard error of at most 0.058 (the releases with the record are
    # shared), so 0.3 beyond 1/2 has a probability below 1e-6.
    assert abs(result.details["auc"] - 0.5) < 0.3
    low, high = result.details["auc_interval"]
    assert low < result.details["auc"] < high
    assert result.interval[0] < 0.3
    assert result.details["auc_ten_most_exposed"] == pytest.approx(result.details["auc"])


class NoiseAndAMean(BaseEstimator):
    """Releases noise, and the mean of a column that is the same for everybody, up to the rounding of its sum."""

    def __init__(self, random_state: int | None = None) -> None:
        self.random_state = random_state

    def fit_resample(self, X: pd.DataFrame, y: np.ndarray) -> tuple[pd.DataFrame, np.ndarray]:
        own = X.loc[np.asarray(y) == 1, "constant"].to_numpy()
        noise = np.random.default_rng(self.random_state).normal(size=80)
        mean = np.cumsum(own)[-1] / len(own)
        return pd.DataFrame({"noise": noise, "constant": mean}), np.repeat([0, 1], 40)


@pytest.mark.parametrize("features", ["paper", "ensemble"])
def test_rounding_errors_are_no_sign_of_a_record(features: str) -> None:
    y = np.repeat([0, 1], [100, 40])
    X = pd.DataFrame({"noise": np.random.default_rng(0).normal(size=140), "constant": 0.1})
    with_all, with_one_less = (
        NoiseAndAMean(0).fit_resample(X[:n], y[:n])[0]["constant"][0] for n in (140, 139)
    )
    assert with_all != with_one_less
    result = quick(features=features, per_record=True).run(NoiseAndAMean(), X, y)
    # Each AUC of 100 releases has a standard error of 0.058; all four fail with a probability below 1e-6.
    assert (result.auc < 0.5 + 5.2 * 0.058).all()


def test_copies_and_mixed_columns() -> None:
    rng = np.random.default_rng(0)
    n = 120
    X = pd.DataFrame(
        {
            "age": rng.integers(20, 90, n),
            "ward": rng.choice(["a", "b", "c"], n),
            "weight": np.where(rng.random(n) < 0.2, np.nan, rng.normal(70, 9, n)),
            "admitted": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
            "smokes": rng.random(n) < 0.4,
        }
    )
    y = pd.Series(np.where(np.arange(n) < 12, "ill", "well"), name="state")
    X.loc[3, ["age", "weight"]] = [102, 160.0]
    result = quick(targets=[3], n_train=40, n_test=40, per_record=True).run(RandomOverSampler(), X, y)
    assert result.auc[0] > 0.9
    assert result.evidence["ward"].iloc[0] == X["ward"].iloc[3]
    private = quick(targets=[3], n_train=8, n_test=8).run(HistogramSynthesizer(epsilon=1.0), X, y)
    assert 0 <= private.risk <= 1


def test_surroundings_help_where_a_record_stands_apart() -> None:
    # Off the lines of the others but inside their range, so that means and extremes hardly tell.
    X, y = imbalanced(n=1060, minority=60, d=2, seed=4)
    angle = np.linspace(0, 2 * np.pi, 59, endpoint=False)
    X[-60:-1] = np.column_stack([np.cos(angle), np.sin(angle)]) * 3
    X[-1] = 0.0
    plain = quick(targets=[1059], features="naive", n_train=100).run(SMOTE(), X, y)
    local = quick(targets=[1059], features="naive", n_train=100, per_record=True).run(SMOTE(), X, y)
    assert local.auc[0] > 0.99
    assert local.auc[0] >= plain.auc[0]


@pytest.mark.parametrize("features", ["paper", "naive", "histogram", "correlation", "ensemble"])
def test_every_set_of_features_works_on_both_paths(features: str) -> None:
    X, y = imbalanced()
    X[-1] = 8.0
    for protector in (SMOTE(), RandomOverSampler()):
        result = quick(targets=[219], n_train=40, n_test=40, features=features).run(protector, X, y)
        assert result.auc[0] > 0.9 or features == "correlation"


def test_the_result_is_repeatable_whatever_the_number_of_jobs() -> None:
    X, y = imbalanced()
    results = [quick(n_train=20, n_test=20, n_jobs=jobs).run(SMOTE(), X, y) for jobs in (1, 2)]
    np.testing.assert_array_equal(results[0].auc, results[1].auc)
    assert results[0].interval == results[1].interval


def test_another_judge() -> None:
    X, y = imbalanced()
    X[-1] = 8.0
    result = quick(targets=[219], classifier=LogisticRegression(max_iter=1000)).run(SMOTE(), X, y)
    assert result.auc[0] > 0.9


def test_text_labels_and_a_class_of_choice() -> None:
    X = np.random.default_rng(0).normal(size=(90, 2))
    y = np.repeat(["a", "b", "c"], [50, 25, 15])
    assert quick(n_train=8, n_test=8).run(SMOTE(), X, y).details["label"] == "c"
    result = quick(n_train=8, n_test=8).run(SMOTE(), X, y, label="b")
    assert set(result.targets) <= set(range(50, 75))


def test_sizes_give_nothing_away() -> None:
    X, y = imbalanced()

    class Copier:
        """Releases as many rows as it was given, all alike: only the number of rows could tell."""

        def fit_resample(self, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return np.zeros_like(X), y

    result = quick(features="histogram", n_train=20, n_test=20).run(Copier(), X, y)
    assert (result.auc == 0.5).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_train": 3}, "n_train = 3"),
        ({"n_test": 7}, "n_test = 7"),
        ({"features": "all"}, "features = 'all'"),
        ({"targets": "some"}, "targets = 'some'"),
        ({"targets": [0]}, "row 0 is no row"),
        ({"targets": [1.5]}, "whole numbers"),
        ({"n_targets": 0}, "n_targets = 0"),
    ],
)
def test_bad_settings(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        quick(**changes).run(SMOTE(), *imbalanced())


def test_bad_tables() -> None:
    X, y = imbalanced()
    with pytest.raises(InputError, match="single class"):
        quick().run(SMOTE(), X, np.zeros(len(X)))
    with pytest.raises(InputError, match="toarray"):
        quick().run(SMOTE(), csr_array(X), y)
    with pytest.raises(InputError, match="as many labels"):
        quick().run(SMOTE(), X, y[:-1])
    with pytest.raises(InputError, match="at least 7"):
        quick().run(SMOTE(), X, np.repeat([0, 1], [214, 6]))
    with pytest.raises(InputError, match="adds 0 rows"):
        quick().run(SMOTE(), X, y, label=0)
    with pytest.raises(InputError, match="neither fit_resample"):
        quick().run(object(), X, y)


# ------------------------------------------------------------------------------------------ its parts


def test_outliers_are_outside_the_middle_of_a_column() -> None:
    matrix = np.column_stack([np.arange(100.0), np.zeros(100)])
    members = np.arange(100) + 1000
    chosen = choose_targets("outliers", None, matrix, members, np.random.default_rng(0))
    assert chosen.tolist() == [1000, 1001, 1002, 1097, 1098, 1099]
    some = choose_targets("outliers", 2, matrix, members, np.random.default_rng(0))
    assert len(some) == 2
    assert set(some) < set(chosen)


def test_the_rows_that_are_passed_through_are_left_out() -> None:
    X, y = imbalanced(60, 10)
    made, labels = made_rows(RandomOverSampler(random_state=0), X, y)
    assert len(made) == len(labels) == 40
    assert (labels == 1).all()
    kept, _ = made_rows(RandomUnderSampler(random_state=0), X, y)
    assert len(kept) == 20


class Shuffled(BaseEstimator):
    """An oversampler whose real rows stand among its own, as an array."""

    def fit_resample(self, X, y):
        made, labels = ImbalancedSMOTE(k_neighbors=3, random_state=0).fit_resample(np.asarray(X), y)
        order = np.random.default_rng(0).permutation(len(made))
        return made[order], np.asarray(labels)[order]


def test_real_rows_are_left_out_wherever_they_stand() -> None:
    X, y = imbalanced(60, 10)
    # One that stands in the table twice is taken off twice.
    X[1] = X[0]
    for table in (X, pd.DataFrame(X)):
        made, labels = made_rows(Shuffled(), table, y)
        assert len(made) == len(labels) == 40 and (labels == 1).all()
        assert not {tuple(row) for row in X} & {tuple(row) for row in made}


def test_a_sampler_that_returns_arrays_is_judged_by_the_names_of_the_table() -> None:
    X, y = imbalanced(60, 10)
    table = pd.DataFrame(X).add_prefix("column ")
    attack = GroundHog(2, 8, 8, random_state=0)
    assert attack.run(Shuffled(), table, y).details["auc"] == attack.run(Shuffled(), X, y).details["auc"]


def test_auc_counts_ties_as_half() -> None:
    scores = Scores(np.array([[0.9, 0.5]]), np.array([[0.5, 0.1, 0.1]]))
    assert scores.auc[0] == pytest.approx((3 + 0.5 + 2) / 6)
    right, wrong = scores.claims
    assert (right[0], wrong[0]) == (0.5, 0.0)


def test_what_the_real_table_does_not_have_is_encoded_as_missing() -> None:
    real = pd.DataFrame({"x": [1.0, 2.0, 4.0], "c": ["a", "b", "a"]})
    encoder = Encoder(real)
    assert encoder.names == ["x", "c = a", "c = b"]
    matrix = encoder.matrix(pd.DataFrame({"x": [9.0, np.nan], "c": ["z", "b"]}))
    assert matrix.tolist() == [[9.0, 0.0, 0.0], [2.0, 0.0, 1.0]]


@pytest.mark.data
@pytest.mark.slow
def test_the_published_figures(data_folder) -> None:
    """The authors' figures are means over the fifty most exposed targets of 100; two of the eight sets."""
    for name, published in (("ecoli", 0.93), ("abalone_19", 1.0)):
        table = pd.read_parquet(data_folder / f"{name}.parquet")
        result = GroundHog(random_state=0).run(
            ImbalancedSMOTE(), table.drop(columns="target"), table["target"]
        )
        assert result.details["auc_fifty_most_exposed"] == pytest.approx(published, abs=0.05)


def test_without_time_one_target_is_attacked() -> None:
    for protector in (SMOTE(), RandomOverSampler()):
        result = quick(n_targets=6, n_train=8, n_test=8, time_limit=0.0).run(protector, *imbalanced())
        assert len(result.auc) == len(result.targets) == len(result.evidence) == 1
        assert result.details["n_targets_without_time"] == 5


def test_figures_far_from_zero_are_told_apart() -> None:
    # In single precision all of these means would be equal.
    X, y = imbalanced()
    X = X + 1e9
    X[-1] += 8.0
    result = quick(targets=[219], features="naive", n_train=100).run(SMOTE(), X, y)
    assert result.auc[0] > 0.9
