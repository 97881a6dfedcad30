"""People set aside before anything is made."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from oversafe._core.errors import InputError
from oversafe.releasing.splitting import split_rows


def table(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    person = rng.integers(0, n // 4, n)
    return pd.DataFrame(
        {"person": person, "age": rng.integers(20, 80, n), "y": np.where(person % 10 == 0, "rare", "usual")}
    )


def test_every_row_is_in_one_part():
    part, held = split_rows(table().assign(row=range(400)), 0.3, random_state=1)
    assert sorted([*part["row"], *held["row"]]) == list(range(400))
    assert len(held) == 120


def test_nobody_is_in_both_parts():
    part, held = split_rows(table(), unit="person", label="y", random_state=1)
    assert not set(part["person"]) & set(held["person"])
    assert held["person"].nunique() / table()["person"].nunique() == pytest.approx(0.5, abs=0.02)


def test_the_rare_class_is_in_both_parts():
    for seed in range(20):
        part, held = split_rows(table(60), label="y", random_state=seed)
        assert abs((part["y"] == "rare").sum() - (held["y"] == "rare").sum()) <= 1


def test_rows_without_a_person_are_nobody_elses():
    rows = table().assign(person=np.nan)
    part, held = split_rows(rows, unit="person", random_state=0)
    assert (len(part), len(held)) == (200, 200)


def test_who_is_held_out_is_random():
    kept = {tuple(split_rows(table(12), random_state=seed)[1].index) for seed in range(3)}
    chosen = [
        tuple(split_rows(table(40).assign(row=range(40)), random_state=seed)[1]["row"]) for seed in (0, 1)
    ]
    assert kept and chosen[0] != chosen[1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"holdout": 1.0}, "give a share between 0 and 1"),
        ({"unit": "persons"}, "did you mean 'person'"),
        ({"holdout": 1e-9}, "leaves one part empty"),
    ],
)
def test_what_cannot_be_split_is_refused(settings, message):
    with pytest.raises(InputError, match=message):
        split_rows(table(), **{"random_state": 0, **settings})
