"""A release that holds test rows is refused; rows that agree by chance are not leakage."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from oversafe.data import fold_one_hot, load_dataset
from oversafe.errors import InputError
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


def test_a_record_that_stands_in_the_table_twice_is_no_chance():
    table = people(110, 0)
    twice = pd.concat([table, table.head(1), table.head(3)])
    release = pd.concat([table, people(330, 1)])
    once, again = (release_overlap(release, real) for real in (table, twice))
    assert again.shared == 110 and again.expected == pytest.approx(once.expected)
    # The one who is there three times is no chance either.
    assert release_overlap(pd.concat([table.head(1), people(300, 1)]), twice).is_leakage


def test_people_who_are_alike_still_count_as_chance():
    rng = np.random.default_rng(0)
    release, real = (pd.DataFrame(rng.integers(0, 3, (200, 4))) for _ in range(2))
    overlap = release_overlap(release, real)
    assert overlap.expected / overlap.possible > 0.5 and not overlap.is_leakage
