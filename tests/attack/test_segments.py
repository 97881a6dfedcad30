"""Rows lie between two records, beyond one, or on no segment; all together they say where the records are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares

from oversafe.attack.geometry.shapes.segments import refine, segments_of, shares_of, with_new_records

from .releases import interpolated

NOISE = 1e-15
TRIANGLE = np.array([[0.0, 0.0, 0.0], [1.0, 0.2, 0.3], [0.1, 0.9, 0.6]])
ERRORS = np.full(3, NOISE)


def at(start: int, end: int, share: float) -> np.ndarray:
    """Return a place on the line from one corner of the triangle to another."""
    return TRIANGLE[start] + share * (TRIANGLE[end] - TRIANGLE[start])


# ----------------------------------------------------------------------------------------------- by hand


def test_rows_between_two_records() -> None:
    rows = np.array([at(0, 1, 0.3), at(1, 0, 0.3), at(2, 1, 0.999), at(0, 2, 1e-6)])
    assert segments_of(rows, TRIANGLE, ERRORS, NOISE).tolist() == [[0, 1], [0, 1], [1, 2], [0, 2]]


@pytest.mark.parametrize("share", [-0.3, 1.3, 1.499, -0.499])
def test_rows_beyond_a_record_count_where_samplers_extrapolate(share: float) -> None:
    rows = at(0, 1, share)[None]
    assert segments_of(rows, TRIANGLE, ERRORS, NOISE).tolist() == [[-1, -1]]
    assert segments_of(rows, TRIANGLE, ERRORS, NOISE, beyond=0.5).tolist() == [[0, 1]]
    assert segments_of(rows, TRIANGLE, ERRORS, NOISE, beyond=0.2).tolist() == [[-1, -1]]


def test_a_row_between_records_is_not_beyond_others() -> None:
    # On the line of four records the row is between the first two, and beyond the others, which are closer.
    places = np.array([[0.0, 0.0], [1.0, 0.5], [0.4, 0.2], [0.5, 0.25]])
    row = np.array([[0.35, 0.175]])
    found = segments_of(row, places, np.full(4, NOISE), NOISE, beyond=0.5)
    assert found[0, 0] == 0


@pytest.mark.parametrize(
    "row",
    [
        at(0, 1, 0.5) + np.array([0, 1e-9, 0]),
        TRIANGLE.mean(axis=0),
        at(0, 1, 1.6),
        TRIANGLE[1],
        TRIANGLE[1] + 1e-15,
    ],
    ids=["beside", "inside the triangle", "too far beyond", "a record", "hardly beside a record"],
)
def test_rows_on_no_segment(row: np.ndarray) -> None:
    assert segments_of(row[None], TRIANGLE, ERRORS, NOISE, beyond=0.5).tolist() == [[-1, -1]]


def test_rows_are_as_far_from_their_segment_as_their_error_allows() -> None:
    across = np.cross(TRIANGLE[1], TRIANGLE[2])
    across /= np.linalg.norm(across)
    rows = at(0, 1, 0.4) + across * np.array([[1e-3], [2e-3], [5e-3]])
    for width, expected in ((1.5, [True, False, False]), (3, [True, True, False]), (8, [True, True, True])):
        found = segments_of(rows, TRIANGLE, np.zeros(3), 1e-3, width=width)
        assert (found[:, 0] >= 0).tolist() == expected


def test_of_several_segments_the_one_that_fits_best() -> None:
    places = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.004], [1.0, 0.004]])
    rows = np.array([[0.37, 0.0007], [0.71, 0.0035]])
    found = segments_of(rows, places, np.zeros(4), 1e-3, width=2.5)
    assert found.tolist() == [[0, 1], [2, 3]]


def test_no_records_and_no_rows() -> None:
    assert segments_of(TRIANGLE, TRIANGLE[:1], ERRORS[:1], NOISE).tolist() == [[-1, -1]] * 3
    assert segments_of(TRIANGLE, TRIANGLE[:0], ERRORS[:0], NOISE).tolist() == [[-1, -1]] * 3
    assert segments_of(TRIANGLE[:0], TRIANGLE, ERRORS, NOISE).shape == (0, 2)


def test_shares() -> None:
    rows = np.array([at(0, 1, 0.3), at(1, 2, -0.25), at(0, 2, 0.5)])
    shares = shares_of(rows, np.array([[0, 1], [1, 2], [-1, -1]]), TRIANGLE)
    assert shares[:2] == pytest.approx([0.3, -0.25])
    assert np.isnan(shares[2])


# -------------------------------------------------------------------------------------------- whole releases


@pytest.mark.parametrize("d", [2, 3, 10])
def test_every_row_of_a_release_is_given_its_records(d: int) -> None:
    rng = np.random.default_rng(d)
    real = rng.random((300, d))
    rows, pair = interpolated(real, 2000, rng)
    found = segments_of(rows, real, np.full(300, NOISE), NOISE, n_jobs=2)
    assert np.array_equal(found, pair)


def test_segments_between_records_far_from_one_another() -> None:
    rng = np.random.default_rng(0)
    real = rng.random((200, 4))
    pair = np.sort(np.array([rng.choice(200, 2, replace=False) for _ in range(100)]), axis=1)
    rows = real[pair[:, 0]] + rng.random((100, 1)) * (real[pair[:, 1]] - real[pair[:, 0]])
    assert np.array_equal(segments_of(rows, real, np.full(200, NOISE), NOISE), pair)


def test_other_rows_are_on_no_segment() -> None:
    rng = np.random.default_rng(0)
    found = segments_of(rng.random((2000, 3)), rng.random((200, 3)), np.full(200, NOISE), NOISE, beyond=0.5)
    assert (found == -1).all()


def test_new_records_give_segments_to_the_rows_without() -> None:
    rng = np.random.default_rng(0)
    real = rng.random((100, 4))
    rows, pair = interpolated(real, 1000, rng)
    radius = np.full(100, NOISE)
    before = segments_of(rows, real[:90], radius[:90], NOISE)
    assert np.array_equal(before[:, 0] >= 0, (pair < 90).all(axis=1))
    after = with_new_records(rows, before, real, radius, NOISE, n_new=10)
    assert np.array_equal(after, pair)
    assert with_new_records(rows, before, real, radius, NOISE, n_new=0) is before


# ---------------------------------------------------------------------------------------------- least squares


def distances(rows: np.ndarray, pair: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the ways of the rows from their segments' lines."""
    start, way = places[pair[:, 0]], places[pair[:, 1]] - places[pair[:, 0]]
    share = np.einsum("ij,ij->i", rows - start, way) / np.einsum("ij,ij->i", way, way)
    return rows - start - share[:, None] * way


def sum_of_squares(rows: np.ndarray, pair: np.ndarray, places: np.ndarray) -> float:
    return float((distances(rows, pair, places) ** 2).sum())


def test_refined_records_are_where_the_rows_fit_best() -> None:
    noise = 1e-4
    rng = np.random.default_rng(0)
    real = rng.random((30, 4))
    rows, pair = interpolated(real, 900, rng)
    rows += rng.uniform(-noise, noise, rows.shape)
    guess = real + rng.uniform(-20 * noise, 20 * noise, real.shape)
    refined = refine(rows, pair, guess, np.full(30, 40 * noise), exact=False)
    assert refined.rows.tolist() == list(range(900))
    # Closer to the rows than the truth itself, and many times closer to the truth than the guess.
    least = sum_of_squares(rows, pair, refined.places)
    assert least < sum_of_squares(rows, pair, real) < sum_of_squares(rows, pair, guess)
    off = np.linalg.norm(refined.places - real, axis=1)
    assert off.max() < np.linalg.norm(guess - real, axis=1).mean() / 5
    # As a general solver finds it, but for what the last turns would bring.
    best = least_squares(
        lambda flat: distances(rows, pair, flat.reshape(-1, 4)).ravel(),
        real.ravel(),
        x_scale=noise,
        ftol=1e-12,
    )
    assert least == pytest.approx(2 * best.cost, rel=0.05)
    apart = np.linalg.norm(refined.places - best.x.reshape(-1, 4), axis=1)
    assert apart.mean() < off.mean() / 2
    # The errors are stated, and not ten times too large.
    assert (off <= refined.radius).mean() > 0.95
    assert np.median(refined.radius) < 10 * np.median(off)


def test_exact_records_stay() -> None:
    rng = np.random.default_rng(0)
    real = rng.random((20, 3))
    rows, pair = interpolated(real, 200, rng)
    pair[:50] = -1
    radius = np.full(20, NOISE)
    refined = refine(rows, pair, real, radius, exact=True)
    assert refined.places is real and refined.radius is radius
    assert refined.rows.tolist() == list(range(50, 200))
    assert refined.weights @ real == pytest.approx(rows[50:])


def test_other_columns_follow_from_the_rows() -> None:
    rng = np.random.default_rng(0)
    real = np.column_stack([rng.random((40, 3)), rng.integers(0, 80, 40)])
    rows, pair = interpolated(real, 1000, rng)
    refined = refine(rows[:, :3], pair, real[:, :3], np.full(40, NOISE), exact=True)
    value, error = refined.values(rows[:, 3], 1e-12)
    assert value == pytest.approx(real[:, 3], abs=1e-3)
    value, error = refined.values(np.round(rows[:, 3]), 0.5)
    assert (np.abs(value - real[:, 3]) <= error).mean() > 0.95
    assert np.median(error) < 0.5
    # Cut off, they are half a unit too small, and more between records that differ by a unit or two.
    value, error = refined.values(np.floor(rows[:, 3]), 0.5)
    assert (np.round(value + 0.5) == real[:, 3]).mean() > 0.95


def test_nothing_is_claimed_of_records_without_rows() -> None:
    # The third record has no rows; 70 to 90 are the values of the others.
    rows = np.array([at(0, 1, share) for share in np.sqrt([2, 3, 5, 7, 11, 13]) % 1])
    column = 70 + 20 * rows[:, 0]
    for pair in (np.tile([0, 1], (6, 1)), np.full((6, 2), -1)):
        refined = refine(rows, pair, TRIANGLE, ERRORS, exact=True)
        value, error = refined.values(column, 0.5)
        assert value[2] - error[2] <= column.min() and column.max() <= value[2] + error[2]


def test_no_rows_at_all() -> None:
    refined = refine(TRIANGLE[:0], np.empty((0, 2), dtype=np.int64), TRIANGLE, ERRORS, exact=False)
    assert refined.places is TRIANGLE
    assert len(refined.rows) == 0


def test_places_of_rows_are_weights_of_their_records() -> None:
    rng = np.random.default_rng(0)
    real = rng.random((15, 3))
    rows, pair = interpolated(real, 100, rng)
    weights = refine(rows, pair, real, np.full(15, NOISE), exact=True).weights.toarray()
    assert weights.sum(axis=1) == pytest.approx(1)
    assert ((weights != 0).sum(axis=1) == 2).all()
    assert np.array_equal(np.sort(np.argsort(weights != 0, axis=1)[:, -2:], axis=1), pair)


def test_rows_bound_the_records_between_which_they_lie() -> None:
    """The middle of 10 and an unknown record lies in [12, 13], so the unknown one in [14, 16]."""
    rows = np.array([at(0, 1, 0.5), at(0, 1, 0.5)])
    refined = refine(rows, np.array([[0, 1], [0, 1]]), TRIANGLE, ERRORS, exact=True)
    known = np.array([10.0, -100.0, -100.0]), np.array([10.0, 100.0, 100.0])
    found = refined.intervals(np.array([12.0, 11.6]), np.array([13.0, 13.1]), known, whole=False)
    assert found is not None
    assert np.allclose(found, [[10, 14, -100], [10, 16, 100]])
    whole = refined.intervals(np.array([12.1, 11.6]), np.array([12.9, 13.1]), known, whole=True)
    assert whole is not None
    assert np.array_equal(whole, [[10, 15, -100], [10, 15, 100]])
    assert refined.intervals(np.array([12.1, 13.0]), np.array([12.9, 14.0]), known, whole=False) is None
