"""One-hot columns become categories where they say one thing, and nothing else is touched."""

import pandas as pd
import pytest

from oversafe._core.errors import InputError
from oversafe.data import fold_one_hot, load_dataset


def test_groups_become_categories_in_their_place():
    table = pd.DataFrame(
        {"age": [1, 2], "lug_boot_small": [1.0, 0.0], "lug_boot_big": [0.0, 1.0], "ok_yes": [True, False]}
    )
    folded = fold_one_hot(table)
    assert list(folded) == ["age", "lug_boot", "ok_yes"]
    assert folded["lug_boot"].tolist() == ["small", "big"]
    assert folded["ok_yes"].equals(table["ok_yes"])


@pytest.mark.parametrize(
    "columns",
    [
        {"a_x": [1, 1], "a_y": [0, 1]},
        {"a_x": [1, 0], "a_y": [0, 0]},
        {"a_x": [1, 2], "a_y": [0, 1]},
        {"a_x": [1, None], "a_y": [0, 1]},
        {"a": [5, 6], "a_x": [1, 0], "a_y": [0, 1]},
        {"_x": [1, 0], "_y": [0, 1]},
    ],
)
def test_what_is_not_one_hot_stays(columns):
    table = pd.DataFrame(columns)
    assert fold_one_hot(table).equals(table)


def test_odd_tables():
    assert fold_one_hot(pd.DataFrame()).empty
    assert fold_one_hot(pd.DataFrame({3: [1, 0], "a_b": [0, 1]})).columns.tolist() == [3, "a_b"]
    with pytest.raises(InputError, match="separator"):
        fold_one_hot(pd.DataFrame(), separator="")


@pytest.mark.data
def test_car_evaluation_has_its_six_attributes_again(data_folder):
    X, _ = load_dataset("car_eval_34")
    folded = fold_one_hot(X)
    assert folded.shape == (1728, 6)
    assert set(folded["lug_boot"].cat.categories) == {"small", "med", "big"}
