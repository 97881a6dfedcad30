"""SinglingOut isolates people by what is rare in a release, and counts what isolates anybody."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from oversafe._core.errors import InputError
from oversafe.attack import SinglingOut
from oversafe.attack.linkage.singling_out import _guesses, _isolated_in_control, _rare_values
from tests.attack.people import assert_nothing_found, people


def test_single_values_by_hand() -> None:
    release = pd.DataFrame({"age": [20, 30, 30, 90], "ward": ["n", "n", "s", None]})
    real = pd.DataFrame({"age": [20, 25, 90, 95], "ward": ["n", "n", "n", None]})
    result = SinglingOut("univariate", random_state=0).run(release, real)
    # age == 20, age == 90, age <= 20, age >= 90, ward == 's', ward is missing; of the real people
    # age >= 90 matches two and ward == 's' none.
    assert result.details["attacks"] == 6 and result.details["main_rate"] == pytest.approx(4 / 6)
    assert dict(zip(result.evidence["predicate"], result.evidence["real_row"], strict=True)) == {
        "age == 20": 0,
        "age == 90": 2,
        "age <= 20": 0,
        "ward is missing": 3,
    }


def test_combinations_match_one_released_row_and_the_person_they_name() -> None:
    real = people(300, 0)
    result = SinglingOut(random_state=0, n_columns=2).run(real, real)
    assert result.details["main_rate"] == 1.0
    for _, row in result.evidence.head(30).iterrows():
        assert row["predicate"].count(" and ") == 1
        conditions = [c.replace("is missing", "!= @missing") for c in row["predicate"].split(" and ")]
        matches = np.ones(len(real), dtype=bool)
        for condition in conditions:
            name, operator, value = condition.split(" ", 2)
            column = real[name]
            if value == "@missing":
                matches &= column.isna().to_numpy()
                continue
            if name == "ward":
                target: object = value.strip("'")
            elif name == "day":
                target = pd.Timestamp(value)
            else:
                target = float(value)
            if operator == "==":
                compared = column == target
            else:
                compared = column <= target if operator == "<=" else column >= target
            matches &= compared.to_numpy()
        assert np.flatnonzero(matches).tolist() == [row["real_row"]]


@pytest.mark.parametrize("mode", ["univariate", "multivariate"])
def test_released_people_are_singled_out(mode: str) -> None:
    real, holdout = people(500, 0), people(500, 1)
    result = SinglingOut(mode, random_state=0).run(real, real, holdout)
    assert result.threat == "singling-out" and result.details["main_rate"] == 1.0
    assert result.details["control_rate"] < 0.6 and result.risk == 1.0 and result.interval[0] > 0.8


@pytest.mark.parametrize("mode", ["univariate", "multivariate"])
@pytest.mark.parametrize("held", [50, 200, 800])
def test_fresh_people_are_not(mode: str, held: int) -> None:
    def run(seed: int):
        tables = people(200, 10 * seed), people(200, 10 * seed + 1), people(held, 10 * seed + 2)
        return SinglingOut(mode, random_state=seed).run(*tables)

    assert_nothing_found(run)


def test_a_holdout_of_another_size_gives_the_same_risk() -> None:
    """A third of the release is real people; whatever the holdout's size, about a third is found.

    The standard error of the risk is at most 0.05 (n = 500, pairs), so a deviation of 0.25 is five of them.
    """
    real = people(600, 0, gaps=0)
    release = pd.concat([real.head(200), people(400, 1, gaps=0)], ignore_index=True)
    risks = [
        SinglingOut(random_state=0).run(release, real, people(held, 2, gaps=0)).risk
        for held in (300, 600, 2000)
    ]
    assert max(risks) - min(risks) < 0.25
    assert min(risks) > 0.05


def test_the_control_is_unbiased() -> None:
    """By enumeration: over all holdouts, the estimate is the chance to isolate a row of a fresh table."""
    everybody = np.array([1, 1, 0, 0, 0, 0, 0])  # whom of seven people a predicate matches
    n_real, n_held = 3, 2
    estimates, truth = [], []
    for real in combinations(range(7), n_real):
        rest = [i for i in range(7) if i not in real]
        for held in combinations(rest, n_held):
            counts, matched = everybody[list(real)].sum(), everybody[list(held)].sum()
            estimates.append(_isolated_in_control(np.array([matched]), n_held, np.array([counts]), n_real)[0])
        # Another table of three people: of those who are not in the real one.
        truth += [everybody[list(fresh)].sum() == 1 for fresh in combinations(rest, n_real)]
    # For independent tables of equal size both have the same mean, so the diluted one agrees with it.
    assert np.mean(estimates) == pytest.approx(np.mean(truth), abs=1e-12)


def test_rare_values_are_those_that_match_one_row() -> None:
    table = np.array([[1.0, 2.0, 2.0, 9.0, np.nan], [0.0, 0.0, 1.0, np.nan, np.nan]])
    predicates = _rare_values(table, 1)
    counts, _ = predicates.count(table, 10, None)
    assert len(predicates) == 6 and (counts == 1).all()


def test_guesses_are_right_about_what_they_match() -> None:
    rng = np.random.default_rng(0)
    table = np.vstack([rng.integers(0, 9, 3000), rng.integers(0, 3, 3000)]).astype(float)
    table[0, :100] = np.nan
    guesses = _guesses(table, 1, 1, 400, rng)
    counts, last = guesses.count(table, 10_000, None)
    for i in range(400):
        column = table[guesses.columns[i, 0]]
        low, high = guesses.lows[i, 0], guesses.highs[i, 0]
        if guesses.kinds[i, 0] == 2:
            expected = np.isnan(column)
        elif guesses.kinds[i, 0] == 1:
            expected = (column < low) | (column > high)
        else:
            expected = (column >= low) & (column <= high)
        assert counts[i] == expected.sum()
        assert last[i] == (np.flatnonzero(expected)[-1] if expected.any() else -1)


def test_nothing_rare() -> None:
    constant = pd.DataFrame({"a": [1.0] * 9, "b": ["x"] * 9})
    result = SinglingOut(random_state=0).run(constant, constant, constant)
    assert result.risk == 0 and result.interval == (0.0, 1.0) and "no predicate" in result.details["reason"]
    one = pd.DataFrame({"a": [1.0], "b": ["x"]})
    assert SinglingOut("univariate").run(one, one, one).interval[0] == 0


def test_bad_settings() -> None:
    table = people(20, 0)
    with pytest.raises(InputError, match="mode is 'both'"):
        SinglingOut("both").run(table, table)
    with pytest.raises(InputError, match="n_columns = 0"):
        SinglingOut(n_columns=0).run(table, table)
    # More columns than there are: all of them.
    assert SinglingOut(n_columns=99, random_state=0).run(table, table).details["n_columns"] == 6
