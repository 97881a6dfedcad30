"""Tables of mixed kinds as numbers that mean the same in each, and their nearest rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oversafe._core.errors import InputError
from oversafe.attack.records import nearest, read_records


def both(release: dict[str, object], real: dict[str, object]):
    return read_records({"release": pd.DataFrame(release), "real": pd.DataFrame(real)})


def test_kinds() -> None:
    sizes = pd.CategoricalDtype(["small", "middle", "large"], ordered=True)
    columns = {
        "ward": ["n", "s", None],
        "age": [31, 47, 58],
        "smokes": [True, False, True],
        "day": pd.to_datetime(["2024-01-01", None, "2024-01-03"]),
        "size": pd.Series(["large", "small", None], dtype=sizes),
        "weight": [70.5, np.nan, 81.0],
    }
    records = both(columns, columns)
    assert records.names == ("age", "smokes", "day", "size", "weight", "ward")
    assert records.n_numbers == 5
    codes = dict(zip(records.names, records.codes["real"], strict=True))
    assert codes["age"].tolist() == [31, 47, 58]
    assert codes["day"][2] - codes["day"][0] == 2 * 24 * 3600 * 1e6 and np.isnan(codes["day"][1])
    np.testing.assert_array_equal(codes["size"], [2, 0, np.nan])
    np.testing.assert_array_equal(codes["ward"], [0, 1, np.nan])
    assert records.text(3, 2.0) == "'large'" and records.text(5, 1.0) == "'s'"
    assert records.text(2, codes["day"][0]).startswith("2024-01-01") and records.text(0, 31.0) == "31"


def test_a_value_is_the_same_however_it_is_stored() -> None:
    records = both(
        {"a": [1.0, 2.0], "b": ["1", "2"], "c": ["x", "7"]}, {"a": ["1", "2"], "b": [2, 1], "c": ["7", 7]}
    )
    codes = {
        name: (records.codes["release"][i], records.codes["real"][i]) for i, name in enumerate(records.names)
    }
    assert codes["a"][0].tolist() == codes["a"][1].tolist()
    assert codes["b"][0].tolist() == codes["b"][1][::-1].tolist()
    assert codes["c"][1].tolist() == [codes["c"][0][1]] * 2


def test_scaling_takes_the_range_of_all_tables() -> None:
    records = both({"a": [0.0, 5.0]}, {"a": [10.0, np.nan]})
    scaled = records.scaled()
    assert scaled["release"][0].tolist() == [0.0, 0.5] and scaled["real"][0, 0] == 1.0
    # A missing value is farther than a distance counts, and at 0 from another missing one.
    assert scaled["real"][0, 1] - 1.0 >= 1.0


def test_nearest_rows_by_hand() -> None:
    release = {"a": [0.0, 0.4, 1.0, np.nan], "w": ["n", "s", "n", None]}
    records = both(release, {"a": [0.1, np.nan, 1.0], "w": ["s", None, "n"]})
    scaled = records.scaled()
    uses = np.ones((3, 2), dtype=bool)
    rows, distances = nearest(scaled["release"], 1, scaled["real"].T.copy(), uses, 4)
    assert rows[0].tolist()[0] == 1 and distances[0, 0] == pytest.approx(0.3)
    assert rows[0].tolist()[1] == 0 and distances[0, 1] == pytest.approx(1.1)
    assert distances[0, 2:] == pytest.approx([1.9, 2.0])
    assert rows[1, 0] == 3 and distances[1].tolist() == [0, 2, 2, 2]
    assert rows[2, 0] == 2 and distances[2, 0] == 0


def test_only_the_columns_in_use_count_and_a_row_can_be_skipped() -> None:
    table = np.array([[0.0, 0.5, 1.0], [1.0, 0.0, 1.0]])
    targets = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    uses = np.array([[True, False], [False, True], [True, False]])
    skip = np.array([-1, 0, 0])
    rows, distances = nearest(table, 1, targets, uses, skip=skip)
    assert rows[:, 0].tolist() == [0, 2, 1]
    assert distances[:, 0].tolist() == [0.0, 0.0, 0.5]


def test_fewer_rows_than_neighbours() -> None:
    rows, distances = nearest(np.zeros((1, 2)), 1, np.zeros((1, 1)), np.ones((1, 1), dtype=bool), 3)
    assert sorted(rows[0].tolist()) == [-1, 0, 1] and np.isinf(distances[0, 2])


def test_rows_at_the_same_distance_are_taken_at_random() -> None:
    """Each of 50 equal rows is found by some of 5000 targets.

    One is left out with probability 50 (1 - 1/50)^5000 < 1e-40.
    """
    rows, _ = nearest(np.zeros((1, 50)), 1, np.zeros((5000, 1)), np.ones((5000, 1), dtype=bool))
    counts = np.bincount(rows[:, 0], minlength=50)
    assert counts.min() > 0
    again, _ = nearest(np.zeros((1, 50)), 1, np.zeros((5000, 1)), np.ones((5000, 1), dtype=bool), n_jobs=1)
    assert (rows == again).all()
    other, _ = nearest(np.zeros((1, 50)), 1, np.zeros((5000, 1)), np.ones((5000, 1), dtype=bool), seed=1)
    assert (rows != other).any()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.booleans())
def test_nearest_agrees_with_all_distances(seed: int, k: int, squared: bool) -> None:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 2500)), int(rng.integers(1, 6))
    n_numbers = int(rng.integers(0, d + 1))
    table = np.where(np.arange(d)[:, None] < n_numbers, rng.random((d, n)), rng.integers(0, 3, (d, n)))
    targets = np.where(np.arange(d) < n_numbers, rng.random((7, d)), rng.integers(0, 3, (7, d)))
    uses = rng.random((7, d)) < 0.7
    rows, distances = nearest(table, n_numbers, targets, uses, k, squared=squared)
    apart = np.abs(table.T[None] - targets[:, None])
    apart = np.where(np.arange(d) < n_numbers, np.minimum(apart, 1), apart != 0)
    every = np.where(uses[:, None], apart**2 if squared else apart, 0).sum(axis=2)
    np.testing.assert_allclose(distances, np.sort(every, axis=1)[:, :k], atol=1e-12)
    np.testing.assert_allclose(np.take_along_axis(every, rows, axis=1), distances, atol=1e-12)
    assert all(len(set(found)) == k for found in rows.tolist())


def test_bad_input() -> None:
    with pytest.raises(InputError, match="column 'a' of the real table has infinite values"):
        both({"a": [1.0]}, {"a": [np.inf]})
    with pytest.raises(InputError, match="no rows"):
        both({"a": []}, {"a": [1.0]})
    with pytest.raises(InputError, match="names 'z'"):
        both({"a": [1.0]}, {"a": [1.0]}).positions(["z"], "columns_a")
