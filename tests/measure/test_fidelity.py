"""Fidelity by hand, of equal tables, and of tables that lost what the figure measures."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from oversafe._core.errors import InputError
from oversafe.measure import fidelity
from oversafe.measure.fidelity import FIGURES


def mixed(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    town = rng.choice(["A", "B", "C"], n, p=[0.6, 0.3, 0.1])
    age = rng.normal(40, 10, n) + 10 * (town == "C")
    return pd.DataFrame(
        {
            "age": age,
            "income": 100 * age + rng.normal(0, 300, n),
            "town": pd.Categorical(town),
            "region": np.where(town == "A", "north", "south"),
            "member": rng.random(n) < 0.4,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "score": np.where(rng.random(n) < 0.3, np.nan, rng.integers(0, 5, n)),
        }
    )


def test_a_table_is_like_itself():
    table = mixed(500, 0)
    result = fidelity(table, table)
    assert result.overall.to_dict() == pytest.approx(
        {**dict.fromkeys(FIGURES[:4], 1.0), "marginal_distance": 0.0}
    )
    assert len(result.by_column) == 7 and len(result.by_pair) == 21


def test_numbers_and_categories_by_hand():
    real = pd.DataFrame({"x": [0.0, 2.0, 4.0, 10.0], "c": ["a", "a", "b", "c"]})
    made = pd.DataFrame({"x": [1.0, 4.0, 6.0, 12.0], "c": ["a", "d", "b", "b"]})
    columns = fidelity(made, real, n_bins=2).by_column.set_index("column")
    # From 1 on: a tenth of the range is lost; 12 is beyond it.
    assert columns.loc["x", list(FIGURES[:3])].tolist() == pytest.approx([0.9, 0.75, 1 - 1.75 / 10])
    # a, b of three; one of four is unknown; |2-1| + |1-2| + |1-0| + |0-1| over 8.
    assert columns.loc["c", list(FIGURES[:3])].tolist() == pytest.approx([2 / 3, 0.75, 0.5])
    # At the median, 3: real low-a low-a high-b high-c; made low-a high-d high-b high-b.
    pair = fidelity(made, real, n_bins=2).by_pair
    assert pair["marginal_distance"].tolist() == pytest.approx([0.5])


def test_lost_associations_and_ranges_show():
    real = mixed(2000, 1)
    fresh, rng = fidelity(mixed(2000, 2), real).overall, np.random.default_rng(3)
    shuffled = pd.DataFrame({name: rng.permutation(real[name]) for name in real}).astype(real.dtypes)
    alone = fidelity(shuffled, real).overall
    assert alone["statistic_similarity"] == pytest.approx(1.0)
    assert alone["correlation_similarity"] < fresh["correlation_similarity"] - 0.05
    assert alone["marginal_distance"] > 1.5 * fresh["marginal_distance"]
    narrow = real.assign(age=real["age"].mean(), town="A")
    by_column = fidelity(narrow, real).by_column.set_index("column")
    assert by_column.loc["age", "range_coverage"] == pytest.approx(0.0)
    assert by_column.loc["town", "range_coverage"] == pytest.approx(1 / 3)
    wide = fidelity(real.assign(age=real["age"] * 5 - 160), real).by_column.set_index("column")
    assert wide.loc["age", "boundary_adherence"] < 0.7


def test_association_of_each_pair_of_kinds():
    real = mixed(3000, 4)
    broken = real.assign(region=np.random.default_rng(5).permutation(real["region"]))
    pairs = fidelity(broken, real).by_pair
    of_region = pairs[(pairs[["column_a", "column_b"]] == "region").any(axis=1)].set_index("column_a")
    # town decides the region: Cramer's V falls from 1 to nearly 0 (failure probability < 1e-6: V's spread is 0.02).
    town = pairs[pairs[["column_a", "column_b"]].isin(["town", "region"]).all(axis=1)]
    assert town["correlation_similarity"].iloc[0] < 0.2
    assert of_region.loc["since", "correlation_similarity"] > 0.85


@pytest.mark.parametrize("statistic", ["mean", "median", "std"])
def test_statistics(statistic):
    rng = np.random.default_rng(6)
    real, made = rng.normal(size=(200, 2)), rng.normal(size=(300, 2)) + 0.3
    found = fidelity(made, real, statistic=statistic).by_column["statistic_similarity"]
    compute = getattr(np, statistic)
    expected = 1 - np.abs(compute(real, axis=0) - compute(made, axis=0)) / np.ptp(real, axis=0)
    np.testing.assert_allclose(found, expected)


def test_empty_constant_and_many_categories():
    real = pd.DataFrame({"one": [1, 1, 1], "gone": [np.nan] * 3, "name": ["a", "b", "c"]})
    overall = fidelity(real, real).overall
    assert overall["range_coverage"] == 1.0 and overall["marginal_distance"] == 0.0
    rng = np.random.default_rng(7)
    large = pd.DataFrame(
        {"a": rng.integers(0, 3000, 5000).astype(str), "b": rng.integers(0, 3000, 5000).astype(str)}
    )
    result = fidelity(large.iloc[::-1].reset_index(drop=True), large)
    assert result.overall["marginal_distance"] == pytest.approx(0.0)


def test_bad_use():
    table = mixed(20, 8)
    with pytest.raises(InputError, match="n_bins"):
        fidelity(table, table, n_bins=1)
    with pytest.raises(InputError, match="statistic"):
        fidelity(table, table, statistic="mode")
    with pytest.raises(InputError, match="no rows"):
        fidelity(table.iloc[:0], table)
