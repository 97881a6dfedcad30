"""AttributeInference guesses what it should, and holds it against what can be guessed about anybody."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from oversafe._core.errors import InputError
from oversafe.attack import AttributeInference
from oversafe.attack.linkage.inference import _most_frequent
from tests.attack.people import assert_nothing_found, people


def test_four_people_by_hand() -> None:
    release = pd.DataFrame(
        {"age": [20, 40, 60, 80], "income": [10.0, 20.0, 30.0, np.nan], "ward": list("nnss")}
    )
    real = pd.DataFrame({"age": [21, 41, 61, 79], "income": [10.5, 29.0, np.nan, 30.0], "ward": list("nsss")})
    result = AttributeInference("income", ["age"], random_state=0).run(release, real)
    # The range is 20, so 1 off is right and 9 off is not; the third has no income, the last's neighbour none.
    assert result.details["attacks"] == 3 and result.details["main_rate"] == pytest.approx(1 / 3)
    # Of three released incomes one is within 1 of each of 10.5, 29 and 30.
    assert result.details["naive_rate"] == pytest.approx((1 / 3 + 1 / 3 + 1 / 3) / 3)
    categories = AttributeInference("ward", ["age"], random_state=0).run(release, real)
    assert categories.details["main_rate"] == 3 / 4 and categories.details["naive_rate"] == 1 / 2


def test_neighbours_vote() -> None:
    votes = np.array([[1.0, 2.0, 2.0], [1.0, 2.0, 3.0], [np.nan, np.nan, 3.0]])
    assert _most_frequent(votes).tolist() == [2.0, 1.0, 3.0]
    release = pd.DataFrame({"age": [20, 21, 22], "income": [1.0, 5.0, 9.0]})
    real = pd.DataFrame({"age": [20], "income": [5.0]})
    assert AttributeInference("income", n_neighbors=3).run(release, real).details["main_rate"] == 1
    assert AttributeInference("income", n_neighbors=1).run(release, real).details["main_rate"] == 0


def test_released_people_are_known_and_others_are_not() -> None:
    real, holdout = people(400, 0), people(400, 1)
    result = AttributeInference(random_state=0).run(real, real, holdout)
    assert result.threat == "attribute" and result.risk > 0.9 and result.interval[0] > 0.8
    assert set(result.evidence["secret"]) == set(real.columns)
    assert (result.evidence["main_rate"] > result.evidence["control_rate"]).all()
    assert (
        result.evidence["low"].is_monotonic_decreasing
        and result.details["riskiest"] == result.evidence["secret"][0]
    )


def test_what_holds_for_everybody_is_no_risk() -> None:
    def weighed(seed: int) -> list[pd.DataFrame]:
        rng = np.random.default_rng(seed)
        height = rng.normal(size=900)
        table = pd.DataFrame({"height": height, "weight": 2 * height + 0.01 * rng.normal(size=900)})
        return [table[:300], table[300:600], table[600:]]

    attack = AttributeInference("weight", random_state=0)
    # Weight follows from height, for everybody, and against blind guessing that looks like a leak.
    assert attack.run(*weighed(0)).details["main_rate"] > 0.9
    assert attack.run(*weighed(0)[:2]).risk > 0.5
    # Where nearly every guess is right, little is left open and the risk is a share of that.
    assert_nothing_found(lambda seed: attack.run(*weighed(seed)), risky=0.5)
    assert_nothing_found(
        lambda seed: AttributeInference(random_state=seed).run(
            *(people(200, 10 * seed + i) for i in range(3))
        )
    )


def test_columns_to_know_and_to_guess() -> None:
    tables = people(60, 0), people(60, 1), people(60, 2)
    assert AttributeInference(known=["age", "ward"]).run(*tables).details["secrets"] == 4
    assert AttributeInference(["age", "ward"]).run(*tables).details["secrets"] == 2
    for settings, message in (
        ({"secret": "nope"}, "names 'nope'"),
        ({"secret": "age", "known": ["age"]}, "nothing is known besides the secret 'age'"),
        ({"known": list(tables[0].columns)}, "no column is left"),
        ({"tolerance": 1.5}, "tolerance is 1.5"),
        ({"n_attacks": -1}, "n_attacks = -1"),
    ):
        with pytest.raises(InputError, match=message):
            AttributeInference(**settings).run(*tables)
    with pytest.raises(InputError, match="one column only"):
        AttributeInference().run(*(table[["age"]] for table in tables))


def test_secrets_that_nobody_has() -> None:
    known = pd.DataFrame({"a": [1.0, 2.0], "b": [np.nan, np.nan]})
    result = AttributeInference("b").run(known, known, known)
    assert result.risk == 0 and result.interval == (0.0, 1.0)
    one = pd.DataFrame({"a": [1.0], "b": ["x"]})
    assert AttributeInference().run(one, one, one).interval[0] == 0
