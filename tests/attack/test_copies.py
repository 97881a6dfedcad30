"""ExactCopies counts the real rows that a release holds verbatim."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from oversafe._core.errors import InputError
from oversafe.attack import ExactCopies
from oversafe.attack.base import wilson_interval
from oversafe.attack.copies import difference_interval
from oversafe.data.rows import is_copy, keys
from oversafe.measure import release_overlap


def people(*rows: tuple[object, ...]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=["age", "town", "smokes"])


REAL = people((31, "A", True), (47, "B", False), (47, "B", False), (58, None, True), (64, "C", False))


def test_share_of_distinct_real_rows() -> None:
    release = people((31, "A", True), (31, "A", True), (47, "B", True), (58, None, True), (50, "C", False))
    result = ExactCopies().run(release, REAL)
    # Of the four distinct people, the first and the third stand in the release. Drawn column by column from
    # the rows that are not their copies, only the second could be there: age, town and smoking agree.
    chances = np.array([0, 1 / 5 * 1 / 5 * 1 / 5, 0, 0])
    by_chance = (1 - (1 - chances) ** 5).mean()
    low, high = wilson_interval(2, 4)
    assert result.threat == "reconstruction"
    assert result.risk == pytest.approx(0.5 - by_chance)
    assert result.interval == pytest.approx((max(0, low - by_chance), high - by_chance))
    assert result.details.pop("expected_by_chance") == pytest.approx(by_chance)
    assert result.details == {"copied": 2, "distinct_real": 4, "released_copies": 3, "released_rows": 5}
    assert result.evidence["age"].tolist() == [31, 58]
    assert result.evidence["copies"].tolist() == [2, 1]


def test_holdout_share_is_subtracted() -> None:
    release = people((31, "A", True), (47, "B", False), (64, "C", False), (20, "D", True))
    holdout = people((20, "D", True), (21, "D", True), (31, "A", True))
    result = ExactCopies().run(release, REAL, holdout)
    # Three of four real people, and one of the two in the holdout who are not real as well.
    assert result.risk == pytest.approx(3 / 4 - 1 / 2)
    low, high = difference_interval(3, 4, 1, 2)
    assert result.interval == (max(0.0, low), high)
    assert result.details["copied_holdout"] == 1
    assert result.details["distinct_holdout"] == 2


def test_risk_is_never_negative() -> None:
    result = ExactCopies().run(people((20, "D", True)), REAL, people((20, "D", True)))
    assert result.risk == 0.0
    assert result.interval[0] == 0.0
    assert 0.0 <= result.interval[1] <= 1.0


def kinds(rng: np.random.Generator, n: int, values: int = 8) -> pd.DataFrame:
    """Rows of three columns, of which few are possible."""
    return pd.DataFrame(rng.integers(0, values, (n, 3)), columns=list("abc"))


@pytest.mark.parametrize("seed", range(5))
def test_rows_that_are_avoided_tell_who_took_part(seed: int) -> None:
    """Of 4096 possible rows 3000 were drawn for each table.

    Of the 2,100 or so different real rows and the 1,000 or so of the holdout alone about half are in the release. The
    deviation of the difference of their shares is below 0.02, so that each of these ends lies at least seven deviations
    away: all together fail with a probability below 1e-10.
    """
    rng = np.random.default_rng(seed)
    real, holdout, fresh = (kinds(rng, 3000, 16) for _ in range(3))
    avoiding = fresh[~is_copy(fresh, real)]
    result = ExactCopies().run(avoiding, real, holdout)
    assert result.threat == "membership" and result.details["avoided"]
    others = result.details["copied_holdout"] / result.details["distinct_holdout"]
    assert result.details["copied"] == 0 and result.risk == others
    low, high = difference_interval(
        0,
        result.details["distinct_real"],
        result.details["copied_holdout"],
        result.details["distinct_holdout"],
    )
    assert result.interval == (-high, -low) and result.interval[0] > 0.3
    # Those who draw from all alike tell nobody, and who keeps half of the real rows out is found too.
    assert ExactCopies().run(fresh, real, holdout).interval[0] < 0.1
    half = fresh[~is_copy(fresh, real.head(1500))]
    assert ExactCopies().run(half, real, holdout).details["avoided"]


def test_looking_both_ways_changes_nothing_for_copies() -> None:
    """Chance calls an honest release avoiding in at most 5 % of runs; the limit is passed with a chance below 1e-6."""
    called = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        real, holdout, release = (kinds(rng, 200) for _ in range(3))
        found, one_way = (ExactCopies(way).run(release, real, holdout) for way in (True, False))
        called += "avoided" in found.details
        if "avoided" in found.details:
            assert one_way.risk == 0 and one_way.interval == (0, 0) and one_way.threat == "reconstruction"
        else:
            assert (found.risk, found.interval, found.details) == (
                one_way.risk,
                one_way.interval,
                one_way.details,
            )
    assert called <= stats.binom.isf(1e-6, 200, 0.05)


def test_without_a_holdout_nothing_is_called_avoided() -> None:
    rng = np.random.default_rng(0)
    real, fresh = kinds(rng, 500), kinds(rng, 500)
    result = ExactCopies().run(fresh[~is_copy(fresh, real)], real)
    assert result.risk == 0 and "avoided" not in result.details


def test_holdout_within_the_real_rows_changes_nothing() -> None:
    release = people((31, "A", True))
    result = ExactCopies().run(release, REAL, REAL.head(2))
    assert result.risk == 0.25
    assert result.details["distinct_holdout"] == 0


def test_missing_values_are_equal_to_each_other_only() -> None:
    real = pd.DataFrame({"x": [1.0, np.nan, np.nan], "y": ["a", "b", None]})
    release = pd.DataFrame({"x": [1.0, None, 0.0], "y": [None, "b", "b"]})
    result = ExactCopies().run(release, real)
    assert result.details["copied"] == 1
    assert result.evidence["y"].tolist() == ["b"]


def test_equal_values_of_different_types() -> None:
    real = pd.DataFrame(
        {"n": np.array([1, 2], dtype="int8"), "c": pd.Categorical(["a", "b"]), "b": [True, False]}
    )
    release = pd.DataFrame(
        {
            "n": pd.array([1, 3], dtype="Int64"),
            "c": pd.array(["a", "b"], dtype="string"),
            "b": np.array([1.0, 0.0]),
        }
    )
    assert ExactCopies().run(release, real).details["copied"] == 1


def test_large_integers_are_compared_exactly() -> None:
    real = pd.DataFrame({"id": [2**53, 7]})
    release = pd.DataFrame({"id": [2**53 + 1]})
    assert ExactCopies().run(release, real).details["copied"] == 0


def test_a_number_that_is_stored_as_text_is_the_number() -> None:
    real = pd.DataFrame({"x": [1, 2]})
    for same in (["1", "2"], ["1.0", "+2"], pd.Categorical(["1", "2"])):
        assert ExactCopies().run(pd.DataFrame({"x": same}), real).details["copied"] == 2
    for other in (["01", "02"], ["1a", "2a"], ["a", "b"]):
        assert ExactCopies().run(pd.DataFrame({"x": other}), real).risk == 0.0


def test_only_shared_columns_count_and_their_order_does_not() -> None:
    release = REAL[["smokes", "town", "age"]].assign(score=0.5)
    result = ExactCopies().run(release, REAL.assign(name="x"))
    assert result.details["copied"] == result.details["distinct_real"] == 4
    assert result.risk == ExactCopies().run(REAL, REAL).risk > 0


def test_rows_that_many_share_are_expected() -> None:
    rng = np.random.default_rng(0)
    release, real = (pd.DataFrame(rng.integers(0, 2, (300, 4))) for _ in range(2))
    result = ExactCopies().run(release, real)
    assert result.details["copied"] == result.details["distinct_real"] == 16
    assert result.risk < 0.01


def test_arrays_are_compared_by_position() -> None:
    real = np.array([[1.0, 2.0], [3.0, 4.0]])
    release = pd.DataFrame({"a": [3.0], "b": [4.0]})
    result = ExactCopies().run(release, real)
    assert result.details["copied"] == 1
    assert result.details["expected_by_chance"] == 0


def test_evidence_shows_the_first_hundred() -> None:
    real = pd.DataFrame({"x": np.arange(250), "y": np.arange(250) ** 2, "z": 0})
    result = ExactCopies().run(real, real)
    assert result.risk == 1
    assert result.evidence["x"].tolist() == list(range(100))


@pytest.mark.parametrize(
    ("release", "real", "message"),
    [
        (REAL.head(0), REAL, "the release table has no rows"),
        (REAL, np.empty((0, 3)), "the real table has no rows"),
        (REAL, np.zeros(3), "the real table has 1 dimension"),
        (REAL, np.zeros((2, 2)), "differ in their numbers of columns"),
        (REAL, REAL.add_prefix("p_"), "no column in common"),
        (REAL, pd.DataFrame([[1, 2]], columns=["age", "age"]), "two columns named 'age'"),
    ],
)
def test_unusable_tables_are_named(release: object, real: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ExactCopies().run(release, real)


def test_newcombes_worked_example() -> None:
    # 56/70 against 48/80, method 10 of the paper: 0.0524 to 0.3339.
    low, high = difference_interval(56, 70, 48, 80)
    assert (round(low, 4), round(high, 4)) == (0.0524, 0.3339)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", None])), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", None])), min_size=1, max_size=12),
)
@settings(max_examples=50, deadline=None)
def test_agrees_with_sets_of_tuples(release: list[tuple[int, str]], real: list[tuple[int, str]]) -> None:
    frames = [pd.DataFrame(rows, columns=["n", "c"]) for rows in (release, real)]
    result = ExactCopies().run(*frames)
    assert result.details["copied"] == len(set(release) & set(real))
    assert result.details["distinct_real"] == len(set(real))
    assert result.details["released_copies"] == sum(row in set(real) for row in release)


def test_a_holdout_without_rows_of_its_own_is_no_proof():
    """In four yes-or-no columns everybody's row stands everywhere, the holdout's among the real ones."""
    rng = np.random.default_rng(1)
    every = pd.DataFrame(list(np.ndindex(2, 2, 2, 2)), columns=list("abcd"))
    release, holdout = (every.iloc[rng.integers(0, 16, n)] for n in (60, 30))
    result = ExactCopies().run(release, every, holdout)
    assert result.details["distinct_holdout"] == 0 and result.details["copied"] > 10
    assert result.interval[0] < 0.1


def test_rounded_rows_are_copies_and_coarser_records_are_not():
    rng = np.random.default_rng(0)
    real = pd.DataFrame(rng.normal(50, 10, size=(40, 3)), columns=list("abc")).assign(town="A")
    assert ExactCopies().run(real.round(1), real).risk == 1
    assert ExactCopies().run(real.round({"a": 0, "b": 2}).astype({"a": int}), real).risk == 1
    # Other people's rounded values, and a release that is finer than the table.
    fresh = pd.DataFrame(rng.normal(50, 10, size=(40, 3)), columns=list("abc")).assign(town="A")
    assert ExactCopies().run(fresh.round(1), real).details["copied"] == 0
    assert ExactCopies().run(real, real.round(1)).details["copied"] == 0


@pytest.mark.parametrize("names", [[0, None, "a"], [None, 1.5, 2], [True, False, None], [("a", 1), None, 3]])
def test_columns_of_any_names_are_found(names: list[object]) -> None:
    rng = np.random.default_rng(0)
    real = pd.DataFrame(rng.normal(size=(20, 3))).set_axis(
        pd.Index(names, dtype=object, tupleize_cols=False), axis=1
    )
    release = pd.concat([real.iloc[:5, :2], real.iloc[:5, :2] + 1], ignore_index=True)
    assert is_copy(release, real).tolist() == [True] * 5 + [False] * 5
    assert release_overlap(release, real).shared == 5


CELLS = {
    "float": st.sampled_from([0.0, -0.0, 1.5, np.nan, 2.0**60, 1e-300, np.inf]),
    "single": st.sampled_from([0.0, 1.5, np.nan]).map(np.float32),
    "whole": st.sampled_from([0, 1, -3]),
    "long": st.sampled_from([2**53, 2**53 + 1, 0]),
    "yes": st.booleans(),
    "text": st.sampled_from(["0", "a", None]),
    "maybe": st.sampled_from([0, 1, None]),
}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(*CELLS.values()), min_size=1, max_size=12), st.integers(1, 3), st.booleans())
def test_columns_are_compared_alike_one_by_one_and_together(
    rows: list[tuple[object, ...]], at_once: int, twice: bool
) -> None:
    table = pd.DataFrame(rows, columns=list(CELLS)).astype({"maybe": "Int64", "long": "int64"})
    if twice:
        table = pd.concat([table, table.add_suffix(" again")], axis=1)
    other = table.sample(frac=0.5, random_state=0).reset_index(drop=True)
    other = other if len(other) else table
    together = keys.row_numbers({"release": other, "real": table})
    one_by_one = keys.combined(
        codes for _, codes in keys._other_codes({"release": other, "real": table}, np.arange(table.shape[1]))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keys, "_VALUES_AT_ONCE", at_once * (len(table) + len(other)))
        in_blocks = keys.row_numbers({"release": other, "real": table})
    for numbers in (together, in_blocks):
        found, expected = (np.concatenate([own["release"], own["real"]]) for own in (numbers, one_by_one))
        assert (pd.factorize(found)[0] == pd.factorize(expected)[0]).all()
