"""A release that holds test rows is refused; rows that agree by chance are not leakage."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from oversafe._core.errors import InputError
from oversafe.data import fold_one_hot, load_dataset
from oversafe.measure import release_overlap, train_on_release, train_on_synthetic
from oversafe.measure.utility import folds
from oversafe.protect import SMOTE, GaussianCopula, HistogramSynthesizer


def people(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, n),
            "weight": rng.normal(70, 9, n),
            "height": rng.normal(170, 9, n),
            "town": pd.Categorical(rng.choice(["A", "B", "C"], n)),
            "visit": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D"),
            "dose": np.where(rng.random(n) < 0.2, np.nan, rng.integers(1, 5, n)),
        }
    )


def test_by_hand():
    train = pd.DataFrame({"a": [0.11, 0.22], "b": ["x", "y"]})
    test = pd.DataFrame({"a": [0.33, 0.22], "b": ["x", "y"]})
    # The second test row is a training row too, so that one can be shared.
    overlap = release_overlap(pd.DataFrame({"a": [0.33, 0.22], "b": ["x", "y"]}), test, train)
    assert (overlap.shared, overlap.possible) == (1, 1)
    # Columns on their own: both values of "a" occur once, so that another is to be expected (share 1), and half
    # of "b" is "x": two rows, 2 * 1 * 1/2. One training row differs in "a" alone: 1 * 2/2. Both are 1.
    assert overlap.expected == pytest.approx(-np.expm1(-1))


@pytest.mark.parametrize("n_leaked", [1, 5, 60])
def test_leaked_rows_among_made_ones(n_leaked):
    train, test = people(300, 0), people(150, 1)
    made = people(300, 2)
    assert release_overlap(made, test, train).shared == 0
    overlap = release_overlap(pd.concat([made, test.iloc[:n_leaked]]), test, train)
    assert overlap.shared == n_leaked and overlap.is_leakage
    # As files have it: other dtypes, another order of the columns.
    other = test.iloc[:n_leaked][::-1].astype({"age": float, "town": object})[list(test.columns)[::-1]]
    assert release_overlap(other, test, train).is_leakage
    assert release_overlap(pd.concat([made, test.iloc[:n_leaked]]), test).is_leakage


def test_a_table_of_few_categories_overlaps_by_chance():
    rng = np.random.default_rng(0)
    tables = [pd.DataFrame(rng.integers(0, 3, size=(200, 4))).astype("category") for _ in range(3)]
    overlap = release_overlap(*tables)
    assert not overlap.is_leakage
    everything = pd.DataFrame(np.indices((3, 3, 3, 3)).reshape(4, -1).T).astype("category")
    assert release_overlap(everything, tables[1], tables[2]).shared == overlap.possible > 0
    assert not release_overlap(everything, tables[1], tables[2]).is_leakage


@pytest.mark.data
@pytest.mark.parametrize(
    "name", ["car_eval_4", "solar_flare_m0", "employee", "german_credit_9", "yeast_me2", "mammography"]
)
def test_honest_releases_pass_and_the_whole_table_does_not(data_folder, name):
    X, y = load_dataset(name)
    X = fold_one_hot(X)
    train, test = next(folds(y, 3, 1, 0))
    rows, labels = X.iloc[train].reset_index(drop=True), y.iloc[train].reset_index(drop=True)
    for protector in (
        SMOTE(random_state=0),
        GaussianCopula(random_state=0),
        HistogramSynthesizer(random_state=0),
    ):
        release = protector.fit_resample(rows, labels)[0]
        assert not release_overlap(release, X.iloc[test], rows).is_leakage
        assert not release_overlap(release, X.iloc[test]).is_leakage
    # All combinations of car_eval occur once, and chance alone finds most of them: there, it cannot be told.
    assert release_overlap(X, X.iloc[test], rows).is_leakage == (name != "car_eval_4")


def test_scores_of_a_leaking_release_are_refused():
    X, y = people(300, 3), pd.Series(np.repeat(["no", "yes"], [240, 60]))

    class Leaking:
        """Ignores the training rows and hands out the whole table."""

        def fit_resample(self, rows, labels):
            return X, y

    with pytest.raises(InputError, match="made from rows that it is tested on"):
        train_on_synthetic(Leaking(), X, y, n_folds=3)
    with pytest.raises(InputError, match="from the training rows alone"):
        train_on_release((X, y), (X.iloc[200:], y.iloc[200:]))
    train_on_release(
        (X.iloc[:250], y.iloc[:250]), (X.iloc[250:], y.iloc[250:]), train=X.iloc[:250], positive="yes"
    )


def test_a_record_that_stands_in_the_table_twice_makes_no_chance_of_the_others():
    table = people(110, 0)
    twice = pd.concat([table, table.head(1), table.head(3)])
    release = pd.concat([table, people(330, 1)])
    once, again = (release_overlap(release, real) for real in (table, twice))
    # Whether the three are the same records again or what several people have cannot be told.
    assert again.shared == 110 and again.expected == pytest.approx(once.expected + 3)
    assert again.is_leakage
    assert release_overlap(pd.concat([table.tail(1), people(300, 1)]), twice).is_leakage


@pytest.mark.parametrize("share", [0.15, 0.3, 1.0])
def test_copies_are_found_in_a_table_with_many_duplicates(share):
    table = people(80, 0)
    real = pd.concat([table, table.sample(frac=share, random_state=0)])
    overlap = release_overlap(real.sample(300, replace=True, random_state=1), real)
    assert overlap.is_leakage and overlap.shared > 70


def test_what_several_people_have_who_were_not_measured_is_no_copy():
    def unmeasured(n, seed):
        values = np.random.default_rng(seed).lognormal(1, 1, (n, 5)).round(3)
        values[: n // 20] = 0.0
        return pd.DataFrame(values)

    overlap = release_overlap(unmeasured(600, 1), unmeasured(200, 2))
    assert overlap.shared == 1 and overlap.probability > 0.1


def test_people_who_are_alike_still_count_as_chance():
    rng = np.random.default_rng(0)
    release, real = (pd.DataFrame(rng.integers(0, 3, (200, 4))) for _ in range(2))
    overlap = release_overlap(release, real)
    assert overlap.expected / overlap.possible > 0.5 and not overlap.is_leakage


def test_people_of_kinds_that_recur_still_count_as_chance():
    # A hundred and fifty kinds of people in columns that go together; half of the people differ from their kind.
    kinds = np.random.default_rng(0).integers(0, 1000, (150, 6))

    def of_kinds(n, seed):
        rng = np.random.default_rng(seed)
        rows = kinds[rng.integers(0, 150, n)]
        for row in np.flatnonzero(rng.random(n) < 0.5):
            rows[row, rng.choice(6, 2, replace=False)] = rng.integers(0, 1000, 2)
        return pd.DataFrame(rows)

    for seed in range(5):
        overlap = release_overlap(of_kinds(600, seed), of_kinds(200, 50 + seed))
        assert overlap.shared > 20 and overlap.probability > 0.01


def _one_hot(seed: int, n: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    drawn = pd.DataFrame({name: rng.choice(list("abcd"), n, p=[0.4, 0.3, 0.2, 0.1]) for name in "uvwxyz"})
    return pd.get_dummies(drawn, dtype=int)


def test_one_hot_columns_are_one_column():
    # Column by column the four of an attribute agree with a probability of 0.2, as one attribute with 0.3: in six of
    # them that is ten times as often.
    release, test = _one_hot(0), _one_hot(1)
    overlap = release_overlap(release, test)
    assert overlap.shared > 100 and overlap.probability > 0.01
    # Rows that belong to two categories, or to none, are nobody's.
    unlike = release.assign(u_a=1, u_b=1)
    assert release_overlap(unlike, test) == release_overlap(release.assign(u_a=2), test)
    assert release_overlap(unlike, test).shared == 0
    assert release_overlap(unlike, unlike).shared > 100
    # Half of the rows as they are, beside a number, is no chance.
    rich = test.assign(weight=np.random.default_rng(2).normal(size=600))
    assert release_overlap(rich.head(300), rich).is_leakage


def test_records_that_are_written_down_again_with_another_category_make_no_chance_of_the_others():
    rng = np.random.default_rng(0)
    numbers = pd.DataFrame(rng.normal(size=(400, 5)), columns=list("abcde"))
    test = pd.concat([numbers, numbers.head(20)], ignore_index=True)
    test["channel"] = rng.choice(["web", "app"], len(test))
    fresh = pd.DataFrame(rng.normal(size=(400, 5)), columns=list("abcde"))
    release = pd.concat([fresh.assign(channel="web"), test.iloc[100:103]])
    overlap = release_overlap(release, test)
    # Those that stand there twice are expected once more; the others are not.
    assert overlap.shared == 3 and overlap.is_leakage and overlap.expected < 20
