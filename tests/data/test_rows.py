"""Keys of rows, sketches of rows that differ in a column, and fingerprints of tables."""

import numpy as np
import pandas as pd
import pytest

from oversafe.data.rows import is_copied, is_copy, row_keys, table_digest
from oversafe.data.rows.sketches import row_sketches, table_hashes
from oversafe.data.rows.values import keys_of, value_key

TABLE = pd.DataFrame(
    {"age": [31, 47, 31, 58], "dose": [1.25, 2.5, 1.25, np.nan], "ward": ["A", "B", "A", None]}
)


def test_equal_rows_have_equal_keys():
    keys = row_keys(TABLE)
    assert keys[0] == keys[2] and len(set(keys)) == 3
    assert is_copy(TABLE.round(1), TABLE).all() and is_copied(TABLE, TABLE.round(1)).all()


def test_a_value_is_the_same_however_it_is_stored():
    real = pd.DataFrame(
        {"x": [1.5, 1000.0, 7.0], "d": pd.to_datetime(["2024-02-01"] * 3), "w": ["5", "a", "07"]}
    )
    texts = pd.DataFrame(
        {"x": ["1.50", "1e3", "7"], "d": ["1.2.2024", "2024-02-01", "01.02.2024"], "w": [5, "a", 7]}
    )
    # A code with a leading zero is no number.
    assert is_copy(texts, real).tolist() == [True, True, False]
    assert value_key("07") == "07" and value_key("1'000") == value_key(1000) == value_key("1e3") == "1000"


def test_a_column_can_be_taken_out_of_a_sketch():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (5, 200))
    sketches, hashes = row_sketches(codes), table_hashes(codes)
    for column in range(5):
        rest = sketches - hashes[column]
        rows = pd.DataFrame(np.delete(codes, column, axis=0).T)
        assert (pd.factorize(rest)[0] == pd.factorize(rows.apply(tuple, axis=1))[0]).all()
    # Values that trade places between columns make another row.
    assert row_sketches(np.array([[0], [1]])) != row_sketches(np.array([[1], [0]]))


@pytest.mark.parametrize("ordered", [False, True])
def test_a_digest_knows_the_values_and_if_asked_how_they_are_stored(ordered):
    digest = table_digest(TABLE, ordered=ordered)
    assert table_digest(TABLE.copy(), ordered=ordered) == digest
    assert table_digest(TABLE.assign(age=[31, 47, 31, 59]), ordered=ordered) != digest
    for other in (TABLE[::-1], TABLE[["dose", "age", "ward"]], TABLE.astype({"age": float})):
        assert (table_digest(other, ordered=ordered) == digest) is not ordered


def test_values_of_no_known_kind_in_a_categorical_column_have_keys():
    values = pd.cut(pd.Series([0.2, 0.7, 0.2]), [0, 0.5, 1]).rename("label")
    keys = keys_of(values)
    assert keys[0] == keys[2] != keys[1]
