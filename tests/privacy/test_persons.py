"""Rows are told to be one person's whatever the column's storage, and each keeps at most as many as allowed."""

import math
import uuid

import numpy as np
import pandas as pd
import pytest

from oversafe.data import MisfitWarning
from oversafe.errors import InputError
from oversafe.privacy import limit_rows


def test_rows_are_limited_per_person():
    persons = pd.Series(["a"] * 5 + ["b"] * 2 + [None] * 4 + ["c"])
    for random_state in (None, 1):
        with pytest.warns(MisfitWarning, match="4 rows without a person's id"):
            kept = limit_rows(persons, 2, random_state=random_state)
        assert (np.diff(kept) > 0).all()
        assert persons.iloc[kept].fillna("?").value_counts().to_dict() == {"a": 2, "b": 2, "c": 1}
    assert limit_rows(persons.dropna(), 10).tolist() == list(range(8))
    assert limit_rows(np.array([]), 1).tolist() == []
    with pytest.raises(InputError, match="rows_per_unit"):
        limit_rows(persons, 0)


@pytest.mark.filterwarnings("ignore::oversafe.data.MisfitWarning")
@pytest.mark.parametrize(
    "odd", [None, np.nan, pd.NA, "x", [3], 2.5, 2**70, float("inf"), 1j, "\ud800", object()]
)
@pytest.mark.parametrize("start", [0, 10, 2**53 - 150, 2**60])
def test_one_id_does_not_change_who_the_others_are(start, odd):
    # Each person twice, in two forms of storage: whole numbers, and whatever one odd id makes of them.
    ids = [start + i // 2 for i in range(200)]
    plain, other = pd.Series([*ids, 0]), pd.Series([*ids, odd])
    kept = [[k for k in limit_rows(part, 1, random_state=0) if k < 200] for part in (plain, other)]
    assert kept[0] == kept[1]
    assert len(kept[0]) == sum(start + i < 2**53 for i in range(100))


def test_ids_that_are_no_numbers_tell_people_apart():
    people = [
        "9007199254740992",
        "9007199254740993",
        "1.10",
        "1.1",
        "007",
        "7",
        b"7",
        (1, 2),
        uuid.UUID(int=1),
    ]
    people += [uuid.UUID(int=2), [3], pd.Timestamp("2024-01-01"), pd.Timedelta("1D"), 8, 9.0]
    assert len(limit_rows(pd.Series([*people, *people], dtype=object), 1)) == len(people)
    # 7 is the same person however it is stored.
    assert len(limit_rows(pd.Series([7, 7.0, "7", "7.0", np.int8(7)], dtype=object), 1)) == 1
    assert len(limit_rows(pd.Series([7, 8, 7, None], dtype="Int64").dropna(), 1)) == 2


def test_each_of_a_persons_rows_is_kept_as_often_whatever_the_others_are():
    # 4,000 draws of 2 of 5 rows: each count lies within 6 standard deviations of its mean but with probability 1e-8.
    rng = np.random.default_rng(0)
    for others in ([], ["b"] * 7 + ["c"]):
        persons = np.array(["a"] * 5 + others)
        pairs = [tuple(k for k in limit_rows(persons, 2, random_state=rng) if k < 5) for _ in range(4_000)]
        counts = pd.Series(pairs).value_counts()
        assert len(counts) == 10 and (abs(counts - 400) < 6 * math.sqrt(4_000 * 0.1 * 0.9)).all()
