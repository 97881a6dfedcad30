"""The records behind a table: where lines meet, then from what is known to what is not."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from oversafe.attack.geometry.noise import lines_at_their_error
from oversafe.attack.geometry.recovery import Recovered, _settle, find_records
from oversafe.attack.geometry.shapes.lines import find_lines
from oversafe.attack.geometry.shapes.points import Points, read_points
from oversafe.attack.geometry.shapes.segments import refine, shares_of

from .releases import interpolated, synthetic

# Places on a segment that no grid has.
SHARES = np.sort(np.sqrt([2, 3, 5, 7]) % 1)


def recovered(
    X: np.ndarray, *, min_lines: int | None = None, go_on: bool = True
) -> tuple[Points, Recovered, np.ndarray]:
    """Return a table's points, its records, and these in the table's units."""
    points = read_points(X)
    points, lines = lines_at_their_error(points, len(points.values) - 1, None, None)
    records = find_records(points, lines, min_lines=min_lines, go_on=go_on, n_jobs=None)
    return points, records, points.low + records.places * points.span


def precision_and_recall(
    places: np.ndarray, real: np.ndarray, tolerance: float = 1e-9
) -> tuple[float, float]:
    apart = np.abs(places[:, None] - real).max(axis=2)
    return float((apart.min(axis=1) <= tolerance).mean()), float((apart.min(axis=0) <= tolerance).mean())


@pytest.mark.parametrize("d", [3, 5, 10])
def test_records_lead_to_records(d: int) -> None:
    rng = np.random.default_rng(d)
    real = rng.normal(size=(100, d))
    X, _ = interpolated(real, 600, rng)
    recall = []
    for min_lines, go_on in ((3, False), (None, False), (None, True)):
        _, records, places = recovered(X, min_lines=min_lines, go_on=go_on)
        precision, share = precision_and_recall(places, real)
        assert precision == 1.0
        assert len(places) == len(records.found_by) == len(records.rows) == len(records.support)
        recall.append(share)
    # Both steps gain about a quarter of the records.
    assert recall[1] >= recall[0] + 0.1
    assert recall[2] >= recall[1] + 0.1
    assert recall[2] >= 0.6
    assert {"lines", "rays"} == set(records.found_by)


def test_rows_lie_between_the_records_they_were_made_from() -> None:
    rng = np.random.default_rng(0)
    real = rng.normal(size=(60, 4))
    X, pair = interpolated(real, 1200, rng)
    points, records, places = recovered(X)
    assert precision_and_recall(places, real) == (1.0, 1.0)
    number = np.abs(places[:, None] - real).max(axis=2).argmin(axis=1)
    used = records.segments[:, 0] >= 0
    assert used.mean() > 0.99
    found = np.sort(number[records.segments], axis=1)[points.row]
    assert np.array_equal(found[used[points.row]], pair[used[points.row]])


def test_rows_that_gave_a_record_away_lie_on_its_segments() -> None:
    rng = np.random.default_rng(1)
    real = rng.normal(size=(80, 4))
    X, pair = interpolated(real, 600, rng)
    points, records, places = recovered(X)
    for place, rows, by in zip(places, records.rows, records.found_by, strict=True):
        number = np.abs(real - place).max(axis=1).argmin()
        of_table = np.flatnonzero(np.isin(points.row, rows))
        assert len(of_table) >= 2
        assert (pair[of_table] == number).any(axis=1).all(), by


def test_support_is_the_number_of_lines_or_rays() -> None:
    centre = np.array([1.0, 2.0, 3.0])
    ends = np.array([[5.0, 3.0, 4.0], [0.0, 7.0, 2.0], [2.0, 1.0, 9.0], [6.0, 6.0, 8.0]])
    X = np.vstack([centre + SHARES[:, None] * (end - centre) for end in ends])
    _, records, places = recovered(X)
    assert places == pytest.approx(centre[None])
    assert records.support.tolist() == [4]
    assert sorted(records.rows[0].tolist()) == list(range(16))
    # One end of each line is unknown, so that no row is between two records.
    assert (records.segments == -1).all()


@pytest.mark.parametrize("noise", [1e-6, 1e-4, 1e-3])
def test_records_of_a_perturbed_release_agree_with_its_rows(noise: float) -> None:
    rng = np.random.default_rng(0)
    real = rng.normal(size=(40, 5))
    X, pair = interpolated(real, 1200, rng)
    points, records, places = recovered(X + rng.uniform(-noise, noise, X.shape))
    assert not points.exact
    assert precision_and_recall(places, real, 5 * noise) == (1.0, 1.0)
    # Each is there once, and within its error: the distance in the unit cube.
    assert len(places) == 40
    off = np.linalg.norm((places[:, None] - real) / points.span, axis=2).min(axis=1)
    assert (off <= records.radius).mean() > 0.95
    assert np.median(records.radius) < 20 * points.noise
    number = np.abs(places[:, None] - real).max(axis=2).argmin(axis=1)
    found = np.where(records.segments >= 0, np.sort(number[records.segments], axis=1), -1)[points.row]
    assert (found == pair).all(axis=1).mean() > 0.9


def test_a_place_that_loses_its_neighbours_goes_with_them() -> None:
    # Three places with rows between each two, and a tail of others: its end has rows on the way to one place only.
    rng = np.random.default_rng(0)
    ends = rng.normal(size=(12, 5))
    pairs = [(0, 1), (0, 2), (1, 2), *((i, i + 1) for i in range(2, 11))]
    rows = [ends[a] + rng.random((20, 1)) * (ends[b] - ends[a]) for a, b in pairs]
    points = read_points(np.vstack(rows).round(5))
    places = (ends - points.low) / points.span
    found = Recovered(
        places,
        np.full(12, points.noise),
        np.full(12, 2),
        [np.empty(0, dtype=np.int64)] * 12,
        ["lines"] * 12,
        np.full((len(points.values), 2), -1),
        refine(points.values, np.full((len(points.values), 2), -1), places, np.zeros(12), exact=False),
    )
    settled = _settle(points, found, None)
    np.testing.assert_allclose(settled.places, places[:3], atol=1e-4)
    assert settled.support.tolist() == [2, 2, 2]


def test_extrapolated_rows_have_records_too() -> None:
    # A third of the records has its rows on the side away from its neighbours, as SVMSMOTE places some.
    rng = np.random.default_rng(0)
    real = rng.normal(size=(60, 4))
    neighbours = NearestNeighbors(n_neighbors=5).fit(real).kneighbors(return_distance=False)
    start = rng.integers(0, 60, 1500)
    end = neighbours[start, rng.integers(0, 5, 1500)]
    share = np.where(start % 3 == 0, -0.5, 1) * rng.random(1500)
    X = real[start] + share[:, None] * (real[end] - real[start])
    points, records, places = recovered(X)
    apart = np.abs(places[:, None] - real).max(axis=2)
    assert (apart.min(axis=1) < 1e-9).all()
    known = apart.min(axis=0) < 1e-9
    # Also the records through which lines go on in both directions.
    assert known[::3].mean() > 0.8
    assert known[np.arange(60) % 3 > 0].mean() > 0.9
    outside = (share < 0) & known[start] & known[end]
    assert outside.sum() > 200
    found = shares_of(points.values, records.segments, records.places)[points.row]
    assert ((found[outside] < 0) | (found[outside] > 1)).all()


def test_records_on_grids_are_reached_one_by_one() -> None:
    rng = np.random.default_rng(0)
    real = rng.normal(size=(60, 6)).round(2)
    X, _ = interpolated(real, 300, rng)
    _, records, places = recovered(X)
    precision, recall = precision_and_recall(places, real)
    assert precision >= 0.98
    assert recall >= 0.8
    assert "grid" in records.found_by


def test_tables_without_lines_have_no_records() -> None:
    X = np.random.default_rng(0).normal(size=(300, 4))
    _, records, places = recovered(X)
    assert places.shape == (0, 4)
    assert records.support.shape == records.radius.shape == (0,)
    assert records.rows == records.found_by == []
    assert (records.segments == -1).all()


def test_released_records_are_on_no_segment() -> None:
    real = np.random.default_rng(0).normal(size=(30, 4))
    X = np.vstack([real, synthetic(real, 600)])
    points, records, places = recovered(X)
    assert precision_and_recall(places, real) == (1.0, 1.0)
    assert (records.segments[points.row[:30]] == -1).all()


def test_threads_find_the_same() -> None:
    rng = np.random.default_rng(0)
    X, _ = interpolated(rng.normal(size=(60, 4)), 700, rng)
    points = read_points(X)
    lines = find_lines(points)
    one, two = (find_records(points, lines, min_lines=None, go_on=True, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert np.array_equal(one.places, two.places)
    assert np.array_equal(one.segments, two.segments)
