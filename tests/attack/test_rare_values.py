"""Values that one person alone has are found in a release, and none where chance puts them there."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from oversafe import audit
from oversafe._core.errors import InputError
from oversafe.attack import RareValues
from tests.attack.people import assert_nothing_found, people


def coarse(n: int, seed: int) -> pd.DataFrame:
    """Whole numbers of which a large release has nearly all, and villages of which most are known to few."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "income": rng.lognormal(8, 0.5, n).astype(int),
            "birth": rng.integers(0, 2000, n),
            "village": rng.geometric(0.02, n).astype(str),
        }
    )


def shuffled(table: pd.DataFrame) -> pd.DataFrame:
    return table.apply(lambda column: column.sample(frac=1, random_state=len(str(column.name))).to_numpy())


def test_columns_that_are_handed_out_one_by_one_are_found():
    real, holdout = people(200, 1), people(200, 2)
    result = RareValues().run(shuffled(real), real, holdout)
    assert result.threat == "singling-out" and result.interval[0] > 0.8
    assert result.details["main_rate"] == 1.0 and result.details["control_rate"] < 0.1
    weight = result.evidence.set_index("column").loc["weight"]
    rare = real["weight"].dropna()
    assert weight["values"] == weight["released"] == len(rare) and weight["holdout_released"] == 0
    assert str(rare.iloc[0]) in weight["examples"]


def test_one_column_is_enough():
    real, holdout, release = people(200, 1), people(200, 2), people(400, 3)
    release["income"] = np.resize(real["income"].to_numpy(), 400)
    result = RareValues().run(release, real, holdout)
    assert result.details["column"] == "income" and result.interval[0] > 0.8
    assert result.evidence["column"].iloc[0] == "income"
    assert result.evidence.loc[result.evidence["column"] != "income", "low"].eq(0).all()
    assert "100% of the values in 'income' that only one person of class 'a' has" in RareValues().headline(
        result, "a"
    )


@pytest.mark.parametrize("sizes", [(200, 200), (300, 60), (40, 300)])
@pytest.mark.parametrize("make", [people, coarse])
def test_values_that_appear_by_chance_are_no_risk(make, sizes):
    def run(seed: int):
        tables = (make(n, 10 * seed + i) for i, n in enumerate((3000, *sizes)))
        return RareValues().run(*tables)

    assert_nothing_found(run)
    found = run(1)
    assert "no more often than those of people who had no part" in RareValues().headline(found, "a")
    if make is coarse:
        # Most of the birthdays are in a release of 3,000 rows.
        birth = found.evidence.set_index("column").loc["birth"]
        assert birth["released"] / birth["values"] > 0.5


def test_it_errs_no_more_often_than_it_says():
    # Of 200 results 2.5 % at most reach above 0; that 15 do has a probability below 1e-3.
    results = [RareValues().run(*(coarse(100, 7 * seed + i) for i in range(3))) for seed in range(200)]
    assert sum(result.interval[0] > 0 for result in results) < 15


def test_without_a_holdout_nobody_is_accused():
    real = people(200, 1)
    result = RareValues().run(shuffled(real), real)
    assert (result.risk, *result.interval) == (0.0, 0.0, 1.0) and result.details["main_rate"] == 1.0
    assert "a holdout would show how many are by chance" in RareValues().headline(result, "a")
    assert [rate.label for rate in RareValues().rates(result)] == ["this attack"]


def test_values_are_compared_as_the_release_writes_them():
    real, holdout = people(200, 1), people(200, 2)
    release = shuffled(real).round({"income": 0, "weight": 1})
    result = RareValues().run(release, real, holdout)
    assert result.evidence.set_index("column").loc["income", "risk"] > 0.5


def test_edges():
    real, holdout = people(30, 1), people(30, 2)
    one = RareValues().run(real.head(1), real.head(1), holdout.head(1))
    assert one.interval[0] == 0
    same = pd.DataFrame({"a": [1] * 5, "b": [None] * 5})
    nothing = RareValues().run(same, same, same)
    assert (nothing.risk, nothing.details["values"], nothing.evidence.empty) == (0.0, 0, True)
    assert RareValues().headline(nothing, "a") == "No value of class 'a' occurs only once."
    # A gap is no value, even if one person alone has it.
    gap = real.assign(income=[None, *real["income"][1:]])
    found = RareValues().run(gap, gap, holdout).evidence.set_index("column")
    assert found.loc["income", "values"] == 29
    arrays = RareValues().run(*(table[["age", "income"]].to_numpy() for table in (real, real, holdout)))
    assert set(arrays.evidence["column"]) == {"0", "1"}
    with pytest.raises(InputError, match="the real table has no rows"):
        RareValues().run(real, real.head(0), holdout)


def test_in_an_audit():
    tables = [people(200, seed).assign(ill=["no"] * 120 + ["yes"] * 80) for seed in (1, 2)]
    real, holdout = tables
    parts = [
        shuffled(rows).assign(ill=label) for label, rows in real.drop(columns="ill").groupby(real["ill"])
    ]
    found = audit(pd.concat(parts), "ill", real=real, holdout=holdout)
    (own,) = [f for f in found.findings if isinstance(f.attack, RareValues)]
    assert own.result.interval[0] > 0.5 and found.verdict.level == "exposed"
    page, text, told = found.to_html(), str(found), found.to_json()
    assert RareValues.about.question in page and RareValues.about.method in page
    assert own.headline[:40] in text and '"attack": "RareValues"' in told
    alone = audit(pd.concat(parts), "ill", real=real)
    assert "RareValues" in next(names for names in alone.not_run if "SinglingOut" in names)
