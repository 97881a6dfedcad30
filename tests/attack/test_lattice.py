"""Single interpolated rows give away both parents where real values lie on grids."""

from __future__ import annotations

import math

import numpy as np
import pytest

from oversafe.attack.geometry.lattice import DecodedRows, decode_rows

STEPS = np.array([1.0, 0.01, 0.5, 1.0, 0.1])


def records(n: int, seed: int = 0) -> np.ndarray:
    """Return real records on grids of five columns, in small groups of neighbours."""
    rng = np.random.default_rng(seed)
    centers = rng.integers(0, 400, (n // 4 + 1, 5))
    return (np.repeat(centers, 4, axis=0)[:n] + rng.integers(-60, 60, (n, 5))) * STEPS


def interpolated(X: np.ndarray, n: int, seed: int = 1, neighbors: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Return rows between records and the places of their parents."""
    rng = np.random.default_rng(seed)
    distance = np.abs(X[:, None] - X[None]).sum(axis=2)
    order = distance.argsort(axis=1)[:, 1 : neighbors + 1]
    a = rng.integers(0, len(X), n)
    b = order[a, rng.integers(0, neighbors, n)]
    return X[a] + rng.random(n)[:, None] * (X[b] - X[a]), np.column_stack([a, b])


def right(found: DecodedRows, X: np.ndarray, near: float = 1e-9) -> np.ndarray:
    """Return which recovered records equal a real one in all columns that they state."""
    off = np.abs(found.records[:, None] - X[None]) / STEPS
    return (np.nan_to_num(off) < near).all(axis=2).any(axis=1)


def share_recovered(found: DecodedRows, X: np.ndarray, parents: np.ndarray) -> float:
    """Return the share of the parents among the claims, complete records only."""
    claims = found.records[(found.p_wrong <= 0.05) & ~np.isnan(found.records).any(axis=1)]
    wanted = X[np.unique(parents)]
    off = np.abs(wanted[:, None] - claims[None]) / STEPS
    return float((off < 1e-6).all(axis=2).any(axis=1).mean())


def test_rows_at_full_precision_give_away_nearly_all_their_parents() -> None:
    X = records(200)
    rows, parents = interpolated(X, 150)
    found = decode_rows(rows, records(300, seed=5))
    assert share_recovered(found, X, parents) > 0.9
    certain = found.p_wrong < 1e-6
    assert certain.sum() > 20
    assert right(found, X)[certain].all()


def test_a_single_row_gives_away_both_ends_and_where_it_lies() -> None:
    a, b = np.array([3, 1.25, 7.5, 40, 2.1]), np.array([10, 1.02, 9.0, 21, 0.4])
    found = decode_rows((a + 0.3141592653589793 * (b - a))[None], records(300))
    ends = found.records[found.ends[0]]
    order = [0, 1] if np.allclose(ends[0], a) else [1, 0]
    np.testing.assert_allclose(ends[order], [a, b], rtol=1e-12)
    share = found.share[0] if order == [0, 1] else 1 - found.share[0]
    assert share == pytest.approx(0.3141592653589793, abs=1e-12)


def test_values_are_those_that_a_parser_reads() -> None:
    X = np.round(records(60), 2)
    rows, _ = interpolated(X, 400)
    found = decode_rows(rows, np.round(records(300, seed=5), 2))
    known = {row.tobytes() for row in X + 0.0}
    sure = found.records[found.p_wrong < 1e-6]
    assert len(sure) and all(row.tobytes() in known for row in sure + 0.0)


@pytest.mark.parametrize(
    ("write", "least"),
    [
        (lambda X: np.vectorize(lambda v: float(f"{v:.12g}"))(X), 0.9),
        (lambda X: np.vectorize(lambda v: float(f"{v:.9g}"))(X), 0.9),
        (lambda X: X.astype(np.float32).astype(float), 0.8),
        (lambda X: np.vectorize(lambda v: float(f"{v:.7g}"))(X), 0.3),
        (lambda X: X.round(5), 0.4),
    ],
    ids=["12 digits", "9 digits", "float32", "7 digits", "5 decimals"],
)
def test_coarser_files_give_away_less_but_nothing_wrong_is_certain(write, least: float) -> None:
    X = records(100)
    rows, parents = interpolated(X, 600)
    found = decode_rows(write(rows), write(records(300, seed=5)))
    assert share_recovered(found, X, parents) >= least
    assert right(found, X, 1e-6)[found.p_wrong < 1e-6].all()


def test_the_grids_show_in_repeated_cells_of_scaled_rows() -> None:
    X = records(200)
    X[:, 0] = X[:, 0] // 40 * 40
    rows, parents = interpolated(X, 2_000)
    low, span = X.min(axis=0), np.ptp(X, axis=0)
    found = decode_rows((rows - low) / span)
    claims = found.records[(found.p_wrong <= 0.05) & ~np.isnan(found.records).any(axis=1)] * span + low
    off = np.abs(X[np.unique(parents)][:, None] - claims[None]) / STEPS
    assert (off < 1e-6).all(axis=2).any(axis=1).mean() > 0.8


def test_a_column_without_a_grid_is_completed_from_rows_that_share_ends() -> None:
    X = np.column_stack([records(60), np.random.default_rng(3).normal(size=60)])
    rows, _ = interpolated(X, 900)
    known = np.column_stack([records(300, seed=5), np.random.default_rng(4).normal(size=300)])
    found = decode_rows(rows, known)
    whole = ~np.isnan(found.records).any(axis=1)
    assert whole.sum() > 45
    nearest = np.abs(found.records[whole][:, None] - X[None]).max(axis=2).min(axis=1)
    assert nearest.max() < 1e-6


def test_ghosts_have_their_probability() -> None:
    # Differences that are all even: the point in the middle of such a segment is a grid point and no record.
    X = records(400) * 2
    rows, _ = interpolated(X, 80)
    found = decode_rows(rows, records(300, seed=5))
    wrong = ~right(found, X)
    assert wrong.any()
    assert found.p_wrong[wrong].min() > 1e-6


@pytest.mark.parametrize("kind", ["noise", "own u", "real", "random"])
def test_nothing_is_claimed_of_rows_that_lie_on_no_line(kind: str) -> None:
    X = records(100)
    rows, parents = interpolated(X, 300)
    rng = np.random.default_rng(2)
    if kind == "noise":
        rows = rows + rng.normal(size=rows.shape) * 1e-3 * X.std(axis=0)
    elif kind == "own u":
        rows = X[parents[:, 0]] + rng.random(rows.shape) * (X[parents[:, 1]] - X[parents[:, 0]])
    elif kind == "real":
        rows = X
    else:
        rows = rng.uniform(X.min(axis=0), X.max(axis=0), rows.shape)
    found = decode_rows(rows, records(300, seed=5))
    assert not (found.p_wrong <= 0.05).any()


def test_stated_probabilities_are_not_far_below_the_true_ones() -> None:
    wrong, stated = 0, 0.0
    for seed in range(6):
        X = records(120, seed)
        X[:, 3:] = 7.0
        rows, _ = interpolated(X, 60, seed)
        found = decode_rows(rows, np.vstack([records(300, seed + 50)]))
        claims = found.p_wrong <= 0.05
        wrong += int((claims & ~right(found, X)).sum())
        stated += float(found.p_wrong[claims].sum())
    # A Poisson number of wrong claims exceeds this with a probability below 1e-4.
    assert wrong <= 2 * stated + 4 * math.sqrt(stated) + 4


@pytest.mark.parametrize(
    "rows",
    [np.zeros((0, 3)), np.ones((1, 3)), np.ones((5, 3)), np.random.default_rng(0).random((4, 1))],
    ids=["none", "one", "equal", "one column"],
)
def test_edges_give_no_records(rows: np.ndarray) -> None:
    found = decode_rows(rows)
    assert found.records.shape == (0, rows.shape[1])
    assert len(found.p_wrong) == len(found.row) == 0
