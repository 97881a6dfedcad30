"""A table is read as distinct points with the errors that its values show."""

from __future__ import annotations

from io import StringIO

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oversafe._core.errors import InputError
from oversafe.attack.geometry.shapes.points import _grid, _half_step, read_points
from oversafe.data._kernels import row_hashes

# ------------------------------------------------------------------------------------- decimals and errors


@pytest.mark.parametrize("decimals", range(9))
def test_decimals_of_a_file_are_the_error_of_its_values(decimals: int) -> None:
    X = 20 * np.random.default_rng(0).normal(size=(300, 3))
    file = StringIO(pd.DataFrame(X).to_csv(index=False, float_format=f"%.{decimals}f"))
    points = read_points(pd.read_csv(file))
    half_step = 0.5 * 10.0**-decimals
    assert points.errors == {column: pytest.approx(half_step) for column in range(3)}
    assert points.coarse == {}
    # A bound for what counts as exact; else a mean square, and errors spread evenly have a third of the bound's.
    bound = np.linalg.norm(half_step / points.span)
    assert points.noise == pytest.approx(bound if bound < 1e-9 else bound / 3**0.5)


def test_more_decimals_than_files_have_are_exact() -> None:
    X = np.random.default_rng(0).normal(size=(300, 3))
    assert read_points(X.round(8)).noise > 1e-10
    for exact in (X.round(9), X):
        points = read_points(exact)
        assert points.exact and points.fine
        assert points.noise < 1e-14


@given(
    st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=20),
    st.integers(-4, 8),
    st.sampled_from([1, 3, 7, 9]),
)
@settings(max_examples=100, deadline=None)
def test_last_decimal(digits: list[int], decimals: int, last: int) -> None:
    # One value with a last digit that is not 0, whatever the others.
    values = np.array([10 * digits[0] + last, *digits]) / 10.0**decimals
    assert _half_step(values) == 0.5 * 10.0 ** -max(decimals, 0)


@pytest.mark.parametrize(
    "values", [[1e300, 2.0], [123456789.12345678, 0.0], [2**0.5, 1.0], [1 / 3, 0.25], [np.pi * 1e-9, 0.0]]
)
def test_values_without_a_last_decimal(values: list[float]) -> None:
    assert _half_step(np.array(values)) == 0


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16", "Int64", "bool", "boolean", "float32"])
def test_whole_numbers_are_exact_to_half_a_unit(dtype: str) -> None:
    rng = np.random.default_rng(0)
    whole = rng.integers(0, 2 if dtype.startswith("bool") else 120, 50)
    frame = pd.DataFrame({"x": rng.normal(size=50), "y": rng.normal(size=50), "n": whole})
    points = read_points(frame.astype({"n": dtype}))
    assert points.columns.tolist() == [0, 1]
    assert points.coarse == {2: pytest.approx(0.5)}


@pytest.mark.parametrize(
    "written", [lambda x: x.round(6), lambda x: x.astype(np.float32)], ids=["decimals", "single"]
)
def test_rounded_values_at_a_few_levels_are_as_exact_as_these(written) -> None:
    rng = np.random.default_rng(0)
    levels = (rng.integers(0, 4, (300, 3)) - 1.5) / np.sqrt(1.25)
    points = read_points(written(levels))
    assert list({**points.errors, **points.coarse}.values()) == pytest.approx([0.5 / np.sqrt(1.25)] * 3)
    # Not where interpolated values lie between them, or the error is given.
    between = written(np.vstack([levels, levels[::-1] * 0.3 + levels * 0.7, rng.normal(size=(600, 3))]))
    assert max(read_points(between).errors.values()) < 1e-5
    assert max(read_points(written(levels), 1e-6).errors.values()) < 1e-5


def test_tolerance_in_the_units_of_some_columns() -> None:
    X = np.random.default_rng(0).normal(size=(100, 3)) * [1, 10, 100]
    points = read_points(X, {0: 0.001, 1: 0.01, 2: 0.1})
    assert points.errors == {0: pytest.approx(0.001), 1: pytest.approx(0.01), 2: pytest.approx(0.1)}


# ----------------------------------------------------------------------------- columns that are more exact


def test_coarser_columns_shrink_until_their_error_is_that_of_the_others() -> None:
    X = np.random.default_rng(0).random((300, 12)).round(5)
    X[:, 10] = X[:, 10].round(4)
    X[:, 11] = X[:, 11].round(1)
    points = read_points(X)
    # Ten times coarser is of some use; ten thousand times is of none.
    assert points.columns.tolist() == list(range(11))
    assert points.coarse == {11: pytest.approx(0.05)}
    assert points.values[:, :10].max(axis=0) == pytest.approx(1, abs=0.02)
    assert np.ptp(points.values[:, 10]) == pytest.approx(0.1, abs=0.002)
    weighted = np.array([points.errors[column] for column in range(11)]) / points.span
    assert weighted == pytest.approx(weighted[0], rel=1e-9)
    # Back in the table's units everything is as it was.
    first = np.unique(points.row, return_index=True)[1]
    assert points.low + points.values * points.span == pytest.approx(X[first][:, :11], abs=1e-12)


def test_exact_columns_are_used_alone_and_none_counts_more_for_its_magnitude() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(200, 3)), rng.integers(0, 50, 200), rng.normal(size=200).round(6)])
    points = read_points(X + np.array([0, 1000, 100_000, 0, 0]))
    assert points.columns.tolist() == [0, 1, 2]
    assert points.coarse == {3: pytest.approx(0.5), 4: pytest.approx(5e-7)}
    assert points.values.min(axis=0) == pytest.approx(0)
    assert points.values.max(axis=0) == pytest.approx(1)


def test_few_exact_columns_do_not_make_up_for_many_others() -> None:
    # One exact column alone has no lines.
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), rng.normal(size=(200, 5)).round(4)])
    points = read_points(X)
    assert points.columns.tolist() == list(range(6))
    assert points.reason is None


# --------------------------------------------------------------------------------------------- equal rows


def test_equal_rows_are_one_point() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 4))
    which = rng.integers(0, 50, 400)
    points = read_points(rows[which])
    assert len(points.values) == len(np.unique(which))
    assert len(points.row) == 400
    assert points.low + points.values[points.row] * points.span == pytest.approx(rows[which])


def test_rows_that_differ_in_a_coarse_column_only_are_one_point() -> None:
    X = np.column_stack([np.sqrt(np.arange(2.0, 7)), np.sqrt(np.arange(11.0, 16)), np.arange(5)])
    twice = np.vstack([X, X + np.array([0, 0, 1])])
    points = read_points(twice)
    assert points.coarse.keys() == {2}
    assert len(points.values) == 5
    assert points.row[:5].tolist() == points.row[5:].tolist()


def test_zero_has_one_hash_whatever_its_sign() -> None:
    hashes = row_hashes(np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0], [0.0, -1.0]]))
    assert hashes[0] == hashes[1]
    assert len(set(hashes.tolist())) == 3


def test_hashes_tell_the_rows_of_grids_apart() -> None:
    # Rows that differ in few bits; two of 160,000 share a hash with probability 7e-10.
    axis = np.arange(20.0) / 8
    grid = np.stack(np.meshgrid(axis, axis, axis, axis), axis=-1).reshape(-1, 4)
    assert len(np.unique(row_hashes(grid))) == len(grid)
    assert len(np.unique(row_hashes(np.vstack([grid[::-1], grid])))) == len(grid)


# ----------------------------------------------------------------------------------------- grids of columns


@pytest.mark.parametrize(
    ("values", "step"),
    [
        (np.repeat([0.0, 0.2, 0.6, 1.0], 2), 0.2),
        (np.concatenate([np.repeat([0.0, 1.0], 50), [0.371, 0.522]]), 1.0),
        (np.repeat((np.arange(8) * 7 % 19) / 133, 2), 1 / 133),
        (np.repeat([0.0, 2**0.5 - 1, 3**0.5 - 1], 2), None),
        # Two repeated values among many others are no grid.
        (np.concatenate([[0.25, 0.25, 0.75, 0.75], np.linspace(0, 1, 97)[1:-1] ** 1.1]), None),
        (np.linspace(0, 1, 20), None),
    ],
)
def test_grid_of_a_column(values: np.ndarray, step: float | None) -> None:
    grid = _grid(values, 1e-15)
    assert (grid and grid[1]) == (step and pytest.approx(step))


def test_values_off_the_grid_of_their_column() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(100, 2)), rng.integers(0, 5, 100) / 4])
    X[:3, 2] = 0.1, 2**0.5 / 2, 0.75 + 1e-4
    points = read_points(X, tolerance=1e-9)
    assert points.grid[0] is None and points.grid[2] is not None
    values = np.array([0.0, 0.25, 0.3, 0.7501, 1.0])
    assert points.off_grid(2, values).tolist() == [False, False, True, True, False]
    # Within an error of their own they may be on it.
    assert points.off_grid(2, values, 2e-4).tolist() == [False, False, True, False, False]
    assert not points.off_grid(0, values).any()


# ----------------------------------------------------------------------------------------- kinds of tables


def test_columns_of_other_kinds_are_left_out() -> None:
    frame = pd.DataFrame(
        {
            "name": ["a", "b", "c", "d"],
            "age": [31, 47, 58, 64],
            "smokes": [True, False, True, True],
            "score": [0.5, None, 0.1, 0.2],
            "unit": 7.0,
            "dose": pd.array([1.5, 2.5, 1.0, 3.0], dtype="Float64"),
        }
    )
    points = read_points(frame)
    assert points.left_out == ("name", "score")
    # Constant columns are numeric, but nothing to move in.
    assert points.numeric == {1, 2, 4, 5}
    assert sorted([*points.columns, *points.coarse]) == [1, 2, 5]


def test_columns_that_are_linear_functions_of_each_other_count_once() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 50))
    points = read_points(np.column_stack([x, y, 5 - 3 * x, 2 * y, x + y]))
    same = points.same
    assert same[0] == same[2]
    assert same[1] == same[3]
    assert len(set(same)) == 3
    assert points.reason is None
    assert "at least 2 varying" in str(read_points(np.column_stack([x, 5 - 3 * x])).reason)


def test_coarse_columns_are_no_function_of_others() -> None:
    # Within an error of half a unit, yes or no agrees with anything.
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.normal(size=(60, 3)), rng.integers(0, 2, (60, 3))])
        points = read_points(X)
        assert points.columns.tolist() == [0, 1, 2]
        assert len(set(points.same.tolist())) == 3


def test_error_follows_from_the_dtype_the_offset_and_the_tolerance() -> None:
    X = np.random.default_rng(0).random((20, 3))
    exact = read_points(X).noise
    assert exact == pytest.approx(2.2e-16 * 5 * 3**0.5, rel=0.2)
    assert read_points(X.astype(np.float32)).noise == pytest.approx(2.0**29 * exact / 3**0.5, rel=0.2)
    assert read_points(X + 1e5).noise == pytest.approx(2.2e-16 * 4e5 * 3**0.5, rel=0.2)
    # Above the errors of arithmetic the noise is the root of a mean square: that of the interval over 3.
    assert read_points(X, tolerance=1e-7).noise == pytest.approx(1e-7)


@pytest.mark.parametrize(
    ("X", "reason"),
    [
        (np.ones((5, 3)), "3 distinct rows, the table has 1"),
        ([[1, 2], [3, 4], [1, 2]], "3 distinct rows, the table has 2"),
        (np.sqrt(np.arange(6.0)).reshape(6, 1), "2 varying numeric columns, the table has 1"),
        (pd.DataFrame({"a": list("abc"), "b": list("xyz")}), "3 distinct rows, the table has 1"),
        (np.random.default_rng(0).integers(0, 9, (9, 3)), "too coarse"),
    ],
)
def test_tables_in_which_no_line_can_be_sought(X: object, reason: str) -> None:
    assert reason in str(read_points(X).reason)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.arange(3.0), "1 dimension"),
        (np.empty((0, 3)), "empty"),
        (pd.DataFrame(index=range(3)), "empty"),
        (pd.DataFrame({"age": [1.0, 2.0, np.inf]}), "column 'age' has 1 infinite values .first in row 2"),
        (np.array([[1e308, 0], [-1e308, 1]]), "range of a column"),
    ],
)
def test_unusable_tables_are_named(X: object, message: str) -> None:
    with pytest.raises(InputError, match=message), np.errstate(over="ignore"):
        read_points(X)


@pytest.mark.parametrize("tolerance", [0, -1e-6, 1, 5.0])
def test_bad_tolerances_are_named(tolerance: float) -> None:
    with pytest.raises(InputError, match=r"tolerance is .*; expected a share of the columns' range"):
        read_points(np.eye(3), tolerance=tolerance)
