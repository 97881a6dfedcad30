"""The parts of the lattice attack: grids, precision, lines of single rows, completion."""

from __future__ import annotations

import numpy as np
import pytest

from oversafe.attack.geometry.lattice import _kernels
from oversafe.attack.geometry.lattice.completion import complete
from oversafe.attack.geometry.lattice.grids import grid_of
from oversafe.attack.geometry.lattice.precision import Precision
from oversafe.attack.geometry.lattice.probability import agreement, spare_bits

RNG = np.random.default_rng(0)


def grid(values: np.ndarray, error: float = 1e-14) -> tuple[float, float]:
    origin, step, _ = grid_of(values, np.full(len(values), error))
    return origin, step


@pytest.mark.parametrize("step", [1.0, 0.5, 0.01, 1e-4, 250.0])
def test_a_grid_of_plain_decimals_is_found_exactly(step: float) -> None:
    assert grid(RNG.integers(0, 5_000, 300) * step, 1e-12) == (0.0, step)


def test_a_scaled_grid_is_found() -> None:
    whole = RNG.integers(0, 900, 200)
    values = (whole - 133.7) / 211.3
    origin, step = grid(values)
    assert step == pytest.approx(1 / 211.3, rel=1e-10)
    units = (values - origin) / step
    np.testing.assert_allclose(units, np.rint(units), atol=1e-9)


def test_values_without_a_grid_have_none() -> None:
    assert np.isnan(grid(RNG.normal(size=500))[1])
    assert np.isnan(grid(np.ones(10))[1])


def test_a_few_finer_values_leave_the_grid() -> None:
    values = RNG.integers(0, 500, 2_000) * 0.1
    values[:5] += 0.013
    assert grid(values)[1] == pytest.approx(0.1)


def test_a_grid_is_as_coarse_as_nearly_all_values() -> None:
    values = RNG.integers(0, 200, 3_000) * 5.0
    values[:3] += 1
    assert grid(values) == (0.0, 5.0)


def test_precision_is_read_from_the_numbers() -> None:
    X = RNG.normal(size=(200, 3)) * 50
    assert Precision.of(X).digits >= 16
    assert Precision.of(X.astype(np.float32).astype(float)).digits == "float32"
    seven = np.vectorize(lambda value: float(f"{value:.7g}"))(X)
    assert Precision.of(seven).digits == 7


@pytest.mark.parametrize("decimals", [2, 5, 9])
def test_errors_of_decimals_cover_rounding_and_little_more(decimals: int) -> None:
    X = RNG.uniform(-300, 300, size=(2_000, 2))
    rounded = X.round(decimals)
    error = Precision.of(rounded).errors(rounded)
    assert (np.abs(rounded - X) <= error * (1 + 1e-9)).all()
    assert np.median(error) < 0.51 * 10.0**-decimals


def test_errors_of_float32_cover_its_rounding() -> None:
    X = RNG.normal(size=(500, 2)) * 1000
    single = X.astype(np.float32).astype(float)
    assert (np.abs(single - X) <= Precision.of(single).errors(single)).all()


@pytest.mark.parametrize("reach", [3, 300, 100_000])
def test_integer_relations_give_the_line(reach: int) -> None:
    for _ in range(20):
        a, d = RNG.integers(-reach, reach, 5), RNG.integers(1, reach, 5)
        d[0] = 7  # and 1 below: no common divisor
        d[1] = 1
        row = a + RNG.random() * d
        error = np.full(5, 2.0**-50 * reach)
        start, way = np.empty(5), np.empty(5)
        assert _kernels.line_of_row(row - np.rint(row), error, np.full(5, float(reach)), start, way)
        np.testing.assert_array_equal(way * np.sign(way[1]), d)


def test_the_bound_on_accidental_lines_is_the_formula() -> None:
    reach, error = np.array([10.0, 40.0, 5.0]), np.array([1e-4, 1e-3, 1e-5])
    by_hand = 0.5 * np.prod(2 * reach) * np.prod(2 * error) * ((reach + 1) / (4 * error)).sum()
    assert 2 ** _kernels.log2_lines(reach, error, np.ones(3, dtype=bool)) == pytest.approx(by_hand)


def test_accidental_lines_are_at_most_as_many_as_stated() -> None:
    # Uniform rows: the lines with short steps that fit, counted by hand in two columns.
    reach, error = 12, 2e-3
    steps = [(p, q) for p in range(-reach, reach + 1) for q in range(1, reach + 1) if p and np.gcd(p, q) == 1]
    p, q = np.array(steps).T
    rows = RNG.random((400, 2))
    cross = rows[:, [0]] * q - rows[:, [1]] * p
    hits = np.abs(cross - np.rint(cross)) < error * (np.abs(p) + q)
    stated = 2 ** _kernels.log2_lines(np.full(2, float(reach)), np.full(2, error), np.ones(2, dtype=bool))
    assert 0.4 < hits.sum(axis=1).mean() / stated < 1.1


def test_bits_to_spare_need_two_columns() -> None:
    bits = spare_bits(
        np.array([[3.0, 5.0, 2.0], [3.0, 0.0, 0.0]]),
        np.full((2, 3), 1e-9),
        np.array([[True, True, True], [True, False, False]]),
        np.full(3, 10.0),
    )
    assert bits[0] > 20
    assert bits[1] == 0


def test_lines_that_agree_make_a_point_surer() -> None:
    odds = np.array([0.01, 0.01, 0.01])
    alone, shared = agreement(odds, np.array([0, 1, 1]), 2, 1e-3, 0.5)
    # Half of the records have a second line, so that to have none is twice as usual where there is no record.
    assert alone == pytest.approx(0.02 / 1.02)
    assert shared == pytest.approx(0.01 * 0.01 * 1e-3 / 0.5, rel=1e-3)


def test_completion_needs_two_rows_between_two_points_or_a_known_value() -> None:
    values = np.array([2.0, -7.0, 4.0])
    ends = np.array([[0, 1], [1, 0], [1, 2]])
    share = np.array([0.25, 0.1, 0.5])
    rows = (1 - share) * values[ends[:, 0]] + share * values[ends[:, 1]]
    nothing = np.full(3, np.nan), np.full(3, np.inf)
    found, confirm, contradict = complete(
        rows, np.full(3, 1e-12), share, np.full(3, 1e-14), ends, nothing, np.nan, 0.0
    )
    np.testing.assert_allclose(found, values, atol=1e-8)
    assert confirm.min() == 1
    assert contradict.max() == 0
    alone, _, _ = complete(
        rows[2:], np.full(1, 1e-12), share[2:], np.full(1, 1e-14), ends[2:], nothing, np.nan, 0.0
    )
    assert np.isnan(alone).all()
