"""Rounded and perturbed tables: how large the errors are, and the lines within them."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from oversafe.attack.geometry import _noise_kernels
from oversafe.attack.geometry.shapes.line_intersections import find_meetings
from oversafe.attack.geometry.shapes.lines import Lines, find_lines, from_members, no_lines, together
from oversafe.attack.geometry.shapes.neighbors import Cells
from oversafe.attack.geometry.shapes.points import BoolArray, FloatArray, IntArray, Points, read_points

# Below this share of rows on lines the table is taken for a perturbed one, or for none of SMOTE's.
_FEW = 0.05
# How often the error is estimated again from the lines found with it, and when it is no longer larger.
_TURNS = 4
_SETTLED = 1.15
# Columns with larger errors than this share of their range stay as they are when errors are estimated.
_COARSE = 0.001
# The share of lines along which a column may jump and still count as exact.
_UNEVEN = 0.01
# Up to this noise lines of three rows are tried beside longer ones.
MIDDLING = 3e-4
# How many accidental lines are expected in a table.
ACCIDENTS = 0.1
# How many rows are looked at to find the error, and how many neighbours of each.
_SAMPLE = 600
_NEIGHBOURS = 64
# How many more rows must be in the middle of a straight triple than places beside rows are, and how straight
# it must be.
_EXCESS = 0.3
_STRAIGHT = 0.2
# The share of the excess that the errors are read from.
_STRAIGHTER = 0.7
# The straightest of several triples is straighter than the error alone makes it.
_SELECTION = 1.25
# A row is on a line if it is within this many times its expected distance.
_WIDTH = 2.5
# The ends of a tube are at least this many errors apart.
_SHORTEST = 16.0
_FEWEST = 4
# Tubes between all pairs of neighbours are compared, so that more neighbours cost their square.
_MOST_NEIGHBOURS = 100


def lines_at_their_error(
    points: Points, n_neighbors: int, tolerance: float | None, n_jobs: int | None
) -> tuple[Points, Lines]:
    """Return the table's lines; if there are none, those within an error that the rows themselves show.

    Parameters
    ----------
    points : Points
        The table as its decimals show it.
    n_neighbors : int
        How many nearest neighbours of each point to search.
    tolerance : float, optional
        The error, if the user gave it.
    n_jobs : int, optional
        Number of threads, as in joblib.

    Returns
    -------
    points : Points
        The table, read again if its errors turned out to be other ones.
    lines : Lines
        Its lines.
    """
    if points.noise > MIDDLING:
        return points, find_noisy_lines(points, n_neighbors)
    lines = find_lines(points, n_neighbors, n_jobs=n_jobs)
    if not points.fine:
        # Short lines show where rows are few, long ones where they are many.
        others = find_noisy_lines(points, n_neighbors)
        lines = max(lines, others, key=lambda found: len(find_meetings(found, points).places))
    if points.reason is not None or tolerance is not None:
        return points, lines
    if len(np.unique(lines.indices)) >= _FEW * len(points.values):
        exact = _exact_along(lines, points) if points.exact else set()
        if exact:
            coarse = {position: error for position, error in points.coarse.items() if position not in exact}
            points = read_points(points.frame, points.errors | coarse)
            lines = find_lines(points, n_neighbors, n_jobs=n_jobs)
        return points, lines
    # A perturbed table may be rounded when it is written: its error is then the larger of the two.
    errors = estimate_error(points)
    if errors is None:
        return points, lines
    for position, error in points.coarse.items():
        # What was left out for its decimals may be nothing but noise; its error is not known.
        column = points.frame.iloc[:, position].to_numpy(dtype=float)
        errors[position] = error if error > _COARSE * np.ptp(column) else float(np.ptp(column))
    for _ in range(_TURNS):
        noisy = read_points(points.frame, errors)
        lines = find_noisy_lines(noisy, n_neighbors)
        if noisy.reason is not None or not len(lines):
            break
        # What was estimated from the straightest rows is too small where rows are many.
        wider = error_of_lines(noisy, lines) | noisy.coarse
        if all(wider[position] <= _SETTLED * errors[position] for position in noisy.columns.tolist()):
            break
        errors = {position: max(error, wider.get(position, 0.0)) for position, error in errors.items()}
    return noisy, lines


def _exact_along(lines: Lines, points: Points) -> set[int]:
    """Return the coarse columns that change evenly along the lines, as exact ones do."""
    first_row = np.unique(points.row, return_index=True)[1]
    line = lines.line_of_member
    start, end = lines.indptr[:-1], lines.indptr[1:] - 1
    share = (lines.position - lines.t_min[line]) / lines.length[line]
    result = set()
    for position in points.coarse:
        given = points.frame.iloc[:, position].to_numpy(dtype=float)[first_row][lines.indices]
        expected = given[start][line] + share * (given[end] - given[start])[line]
        off = np.abs(given - expected) > 1e-9 * max(1.0, np.abs(given).max())
        if np.logical_or.reduceat(off, start).mean() <= _UNEVEN:
            result.add(position)
    return _agreed_at_ends(lines, points, result) if result else result


def _agreed_at_ends(lines: Lines, points: Points, columns: set[int]) -> set[int]:
    """Return the columns in which lines that end in one record agree about its value.

    Yes and no that were cut off are constant along every line too, but not the same on all lines of a record.
    """
    found = find_meetings(lines, points)
    first_row = np.unique(points.row, return_index=True)[1]
    result = set()
    for position in columns:
        given = points.frame.iloc[:, position].to_numpy(dtype=float)[first_row][lines.indices]
        start, end = given[lines.indptr[:-1]], given[lines.indptr[1:] - 1]
        differ = 0
        for place, those in zip(found.places, found.lines, strict=True):
            along = np.einsum("ij,ij->i", place - lines.centre[those], lines.direction[those])
            share = (along - lines.t_min[those]) / lines.length[those]
            value = start[those] + share * (end - start)[those]
            differ += bool(np.ptp(value) > 1e-6 * max(1.0, np.abs(given).max()))
        if differ <= _UNEVEN * len(found.places):
            result.add(position)
    return result


def estimate_error(points: Points) -> dict[int, float] | None:
    """Return the error of each column's values in the table's units, or None where no lines show.

    If rows were interpolated and then perturbed, many are in the middle of a nearly straight triple, and
    their distances from its chord are the error. Places a little beside the rows are not; how straight
    triples are around those is what chance makes.

    Parameters
    ----------
    points : Points
        The table.
    """
    found: tuple[float, FloatArray] | None = None
    spans = [points.span, np.full(len(points.span), points.span.max())]
    for span in spans:
        straight, residual = _straightness(points.values * (points.span / span))
        if straight <= _STRAIGHT and (found is None or straight < found[0]):
            found = straight, residual * span
    if found is None:
        return None
    return dict(zip(points.columns.tolist(), (_SELECTION * found[1]).tolist(), strict=True))


def _straightness(values: FloatArray) -> tuple[float, FloatArray]:
    """Return how straight triples are that chance does not make, and their errors; inf if there are none."""
    n, d = values.shape
    rng = np.random.default_rng(0)
    queries = np.sort(rng.choice(n, min(n, _SAMPLE), replace=False))
    neighbours = _neighbours(values, values[queries], _NEIGHBOURS)
    q, m = neighbours.shape
    distance = np.sort(np.linalg.norm(values[neighbours] - values[queries][:, None], axis=2), axis=1)
    shortest = distance[:, min(4, m - 1)] / 2
    straight, pair = _noise_kernels.straightest_triples(
        values, queries, np.zeros((q, d)), neighbours, shortest
    )
    some = neighbours[np.arange(q)[:, None], rng.integers(0, m, (q, 2))]
    beside = 0.3 * (values[some[:, 0]] - values[some[:, 1]])
    accident = _noise_kernels.straightest_triples(values, queries, beside, neighbours, shortest)[0]
    levels = np.sort(straight)
    excess = np.arange(1, q + 1) / q - np.searchsorted(np.sort(accident), levels, side="right") / q
    best = int(np.argmax(excess))
    if excess[best] < _EXCESS:
        return np.inf, np.zeros(d)
    # The straighter part: at the level where accidents begin many of the triples are.
    lined = straight <= levels[int(np.argmax(excess >= _STRAIGHTER * excess[best]))]
    left, right = (values[pair[lined, side]] - values[queries[lined]] for side in (0, 1))
    a, b = (np.linalg.norm(way, axis=1, keepdims=True) for way in (left, right))
    residual = np.abs((b * left + a * right) / (a + b))
    # For errors spread evenly over an interval, half of the residuals are below half of its half width.
    return float(levels[best]), 2 * np.median(residual, axis=0)


def error_of_lines(points: Points, lines: Lines) -> dict[int, float]:
    """Return the error of each column's values in the table's units, from their distances to their lines."""
    line = lines.line_of_member
    left = points.values[lines.indices] - lines.centre[line] - lines.position[:, None] * lines.direction[line]
    # A line through s rows has fitted two of them away.
    freedom = max(1, int((lines.sizes - 2).sum()))
    spread = np.sqrt((left**2).sum(axis=0) / freedom * 3)
    return dict(zip(points.columns.tolist(), (spread * points.span).tolist(), strict=True))


def find_noisy_lines(points: Points, n_neighbors: int) -> Lines:
    """Find the lines of a table whose values have errors, each row on one line at most.

    Parameters
    ----------
    points : Points
        The table.
    n_neighbors : int
        How many nearest neighbours of each point to search.
    """
    values = points.values
    n, d = values.shape
    if points.reason is not None:
        return no_lines(d, points.noise)
    neighbours = _neighbours(values, values, min(n_neighbors, _MOST_NEIGHBOURS))
    limits, members = _noise_kernels.longest_tubes(
        values, np.arange(n), neighbours, points.noise, _WIDTH, _SHORTEST * points.noise
    )
    sizes = np.diff(limits)
    order = np.argsort(-sizes, kind="stable")
    order = order[sizes[order] + 1 >= _FEWEST]
    indptr, indices = _noise_kernels.disjoint_lines(
        values, order, np.arange(n), limits, members, neighbours, points.noise, _WIDTH, _FEWEST
    )
    lines = from_members(values, indptr, indices, points.noise)
    lines = lines.select(_is_no_accident(lines, points, neighbours.shape[1]))
    # The model of accidents knows nothing of clusters; a sampler leaves most of its rows on lines.
    return lines if len(lines.indices) >= _FEW * n else no_lines(d, points.noise)


def _is_no_accident(lines: Lines, points: Points, m: int) -> BoolArray:
    """Return which lines chance does not produce among so many rows.

    Of the m neighbours around a line that runs through f columns about m (w / L) ** (f - 1) lie in a tube
    of width w and length L by accident. Any row may be the first of a line and any of its neighbours the
    last; far fewer than one such line is to be expected in the table.
    """
    freedom = np.minimum(together(lines.moves, points.same).sum(axis=1), points.dimensions)
    width = 2**0.5 * _WIDTH * lines.noise
    expected = m * (width / np.maximum(lines.length, width)) ** np.maximum(freedom - 1, 0)
    inner = lines.sizes - 2
    surprise = -inner * np.log(np.maximum(expected, 1e-300)) + gammaln(inner + 1)
    return surprise >= np.log(len(points.values) * m / ACCIDENTS)


def _neighbours(values: FloatArray, queries: FloatArray, m: int) -> IntArray:
    """Return about the m nearest points of each query."""
    result = np.empty((len(queries), min(m, len(values))), dtype=np.int64)

    def store(rows: IntArray, found: IntArray) -> None:
        result[rows] = found

    Cells(values).search(queries, result.shape[1], store)
    return result
