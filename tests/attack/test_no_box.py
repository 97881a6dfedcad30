"""The exact test of membership: its error rate, what it finds, and what it says of columns and people."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from oversafe._core.errors import InputError
from oversafe.attack.membership.no_box.comparable import AS_IS, RANGES, RANKS, RECODED, RESCALED, comparable
from oversafe.attack.membership.no_box.exact import exact_test, strata_of
from oversafe.attack.membership.no_box.membership_test import MembershipTest
from oversafe.attack.membership.no_box.naming import named
from oversafe.attack.membership.no_box.pool import pool_of
from oversafe.attack.membership.no_box.random_part import random_part
from oversafe.attack.membership.no_box.ratio_rule import ratio_rule

N = 150


def people(n: int, seed: int, *, persons: int = 0) -> pd.DataFrame:
    """Return a table of mixed columns in two classes; with persons, several alike rows for each."""
    rng = np.random.default_rng(seed)
    owner = rng.integers(0, persons, n) if persons else np.arange(n)
    draw = np.random.default_rng([seed, 1])
    base = draw.normal(size=(max(n, persons), 4))[owner] + (0.05 if persons else 0.0) * rng.normal(
        size=(n, 4)
    )
    # A person has one class.
    label = np.where(draw.random(max(n, persons))[owner] < 0.3, "ill", "well")
    table = pd.DataFrame(
        {
            "age": np.rint(50 + 15 * base[:, 0]),
            "weight": np.round(70 + 12 * base[:, 1], 1),
            "pressure": np.round(120 + 9 * base[:, 2] + 3 * base[:, 0], 2),
            "ward": np.array(["north", "east", "south", "west"])[
                np.clip(np.floor(2 + 1.2 * base[:, 3]), 0, 3).astype(int)
            ],
            "y": label,
        }
    )
    return table.assign(pid=owner.astype(str)) if persons else table


def tables(seed: int, n: int = N) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return real rows, held-out rows and other people's."""
    table = people(3 * n, seed)
    parts = [table.iloc[i * n : (i + 1) * n].reset_index(drop=True) for i in range(3)]
    return parts[0], parts[1], parts[2]


def details(release: pd.DataFrame, real: pd.DataFrame, holdout: pd.DataFrame, **how: object) -> dict:
    return MembershipTest(n_choices=499).run(release, real, holdout, label="y", **how).details


def test_the_p_value_is_one_of_a_test() -> None:
    p = np.array([details(other, real, hold)["p_value"] for real, hold, other in map(tables, range(60))])
    for level in (0.05, 0.2, 0.5):
        # Above this with a probability below 1e-6 if the test is exact.
        assert (p <= level).sum() <= binom.isf(1e-6, len(p), level)


def test_scores_that_know_nothing_find_nothing() -> None:
    rng = np.random.default_rng(0)
    p = []
    for _ in range(200):
        member = rng.permutation(np.arange(60) < 30)
        scores = rng.integers(0, 4, (60, 5)).astype(float)
        done = exact_test(
            scores,
            "abcde",
            [False] * 4 + [True],
            member,
            np.arange(60) % 2,
            np.arange(60),
            alpha=0.05,
            n_choices=99,
        )
        p.append(done.p_value)
    assert (np.array(p) <= 0.1).sum() <= binom.isf(1e-6, 200, 0.1)
    assert (np.array(p) <= 0.1).sum() >= binom.ppf(1e-6, 200, 0.03)


def test_people_are_exchanged_and_not_their_rows() -> None:
    # Four visits of each person, alike: by rows, nearly all of these would be called members.
    low = 0
    for seed in range(20):
        table = people(4 * N, seed, persons=N)
        own = table["pid"].astype(int)
        real, hold, other = (table[own % 3 == i].reset_index(drop=True) for i in range(3))
        low += details(other, real, hold, unit="pid")["p_value"] <= 0.05
    # 9 or more of 20 have a probability below 1e-6 at 0.05.
    assert low <= binom.isf(1e-6, 20, 0.05)


LEAKS = {
    "copies": lambda t, rng: t,
    "noise": lambda t, rng: t.assign(
        weight=t["weight"] + rng.normal(size=len(t)), age=t["age"] + rng.normal(size=len(t))
    ),
    "other units": lambda t, rng: t.assign(weight=t["weight"] * 2.2046, pressure=(t["pressure"] - 100) / 7.5),
    "logarithms": lambda t, rng: t.assign(pressure=np.log(t["pressure"])),
    "codes": lambda t, rng: t.assign(
        ward=t["ward"].map({"north": "K3", "east": "K1", "south": "K2", "west": "K0"})
    ),
    "ranges": lambda t, rng: t.assign(age=[f"{int(a) // 5 * 5} to {int(a) // 5 * 5 + 4}" for a in t["age"]]),
    "sets": lambda t, rng: t.assign(
        ward=t["ward"].replace({"north": "north or east", "east": "north or east"})
    ),
    "one column shuffled": lambda t, rng: t.assign(weight=rng.permutation(t["weight"])),
}


@pytest.mark.parametrize("kind", LEAKS)
def test_leaks_are_found_whatever_was_done_to_the_columns(kind: str) -> None:
    real, hold, _ = tables(5)
    found = details(LEAKS[kind](real, np.random.default_rng(0)), real, hold)
    assert found["p_value"] <= 0.006
    assert found["lower"] >= 0.1


@pytest.mark.parametrize("label", ["ill", "well"])
def test_the_class_that_leaks_is_named(label: str) -> None:
    real, hold, other = tables(7)
    release = pd.concat([real[real["y"] == label], other[other["y"] != label]], ignore_index=True)
    found = details(release, real, hold)
    rest = "well" if label == "ill" else "ill"
    assert found["lower_by_class"][label] >= 0.2
    assert found["lower_by_class"][rest] <= 0.02


def test_a_few_copied_rows_are_found() -> None:
    real, hold, other = tables(3, n=500)
    found = MembershipTest(n_choices=2_999).run(
        pd.concat([other, real.iloc[:30]], ignore_index=True), real, hold, label="y"
    )
    assert found.details["p_value"] <= 0.006
    # At least 2 % and never more than the 6 % that are there.
    assert 0.02 <= found.details["lower"] <= 0.06


def test_how_each_column_was_compared_is_told() -> None:
    real, hold, _ = tables(5)
    release = LEAKS["codes"](LEAKS["other units"](real, None), None)
    report = details(release, real, hold)["columns"]
    assert report == {"age": AS_IS, "weight": RESCALED, "pressure": RESCALED, "ward": RECODED}
    assert details(LEAKS["ranges"](real, None), real, hold)["columns"]["age"] == RANGES
    squared = real.assign(pressure=np.exp((real["pressure"] - 120) / 5))
    assert details(squared, real, hold)["columns"]["pressure"] == RANKS


def test_a_holdout_of_other_people_is_told() -> None:
    real, hold, other = tables(5)

    def p_value(holdout: pd.DataFrame) -> float:
        pool = pool_of(other, real, holdout, label="y")
        aligned = comparable(pool.rows, other, pool.classes, pool.released_classes, pool.units)
        return random_part(aligned, pool.member, n_choices=1_999)

    assert p_value(hold) > 0.001
    assert p_value(hold.assign(age=hold["age"] + 12)) <= 0.001
    # No single column differs, but how they go together.
    tied = hold.assign(pressure=np.round(120 + 0.8 * (hold["weight"] - 70), 2))
    assert p_value(tied) <= 0.001


def test_people_on_both_sides_are_refused() -> None:
    table = people(4 * N, 0, persons=N)
    with pytest.raises(InputError, match="split by person"):
        MembershipTest().run(table, table.iloc[:300], table.iloc[300:], label="y", unit="pid")


def test_few_are_named_in_error() -> None:
    rng = np.random.default_rng(0)
    wrong = []
    for _ in range(200):
        member = np.arange(200) < 100
        leaked = member & (rng.random(200) < 0.4)
        scores = rng.normal(size=(200, 3)) + 4 * leaked[:, None]
        who = named(scores, member, np.arange(200))
        assert not (who & ~member).any()
        wrong.append((who & ~leaked).sum() / max(who.sum(), 1))
    # A mean of 200 shares between 0 and 1 is above 0.1 by 0.19 with a probability below 1e-6 (Hoeffding).
    assert np.mean(wrong) <= 0.1 + 0.19
    none = named(rng.normal(size=(200, 3)), np.arange(200) < 100, np.arange(200))
    assert none.sum() <= 40


@pytest.mark.parametrize("seed", range(3))
def test_the_rule_without_a_holdout(seed: int) -> None:
    real, _, other = tables(seed, n=300)

    def alarm(release: pd.DataFrame) -> bool:
        pool = pool_of(release, real.iloc[:-1], real.iloc[-1:], label="y")
        found = ratio_rule(comparable(pool.rows, release, pool.classes, pool.released_classes, pool.units))
        assert found.checked
        return found.alarm

    assert alarm(real.assign(weight=real["weight"] + 0.1))
    assert not alarm(other)


def test_people_of_the_same_classes_are_exchanged() -> None:
    strata = strata_of(np.array([0, 0, 1, 2, 3]), np.array([0, 1, 0, 0, 1]))
    assert sorted(map(tuple, strata)) == [(0,), (1, 2), (3,)]
