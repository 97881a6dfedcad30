"""Bayesian networks over columns of cells: greedy structure, conditional tables, ancestral drawing.

Nothing here adds noise. A private network passes a ``choose`` that pays for its choice, and tables that were
counted with noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from oversafe.data.counts import Counts

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Node:
    """A column and the columns that it is drawn from, by their positions."""

    column: int
    parents: tuple[int, ...]


# Columns and their parents that are scored: some minutes of work.
_MOST_CANDIDATES = 500_000

# Given the scores of all candidates, returns the position of the chosen one.
Choose = Callable[[FloatArray], int]


def joint_codes(cells: Sequence[IntArray], sizes: Sequence[int], columns: Sequence[int]) -> IntArray:
    """Return one code for each row's combination of cells; the last column counts fastest."""
    codes = np.zeros(len(cells[0]), dtype=np.int64)
    for column in columns:
        codes = codes * sizes[column] + cells[column]
    return codes


def table_size(sizes: Sequence[int], columns: Sequence[int]) -> int:
    """Return how many combinations of cells the columns have."""
    size = 1
    for column in columns:
        size *= sizes[column]
    return size


def mutual_information(joint: NDArray[np.int64] | FloatArray) -> float:
    """Return the mutual information (in nats) of the rows and columns of a table of counts."""
    counts = np.asarray(joint, dtype=np.float64)
    total = counts.sum()
    if total <= 0:
        return 0.0
    shares = counts / total
    expected = shares.sum(axis=1, keepdims=True) * shares.sum(axis=0, keepdims=True)
    filled = shares > 0
    return float((shares[filled] * np.log(shares[filled] / expected[filled])).sum())


def excess_information(joint: NDArray[np.int64]) -> float:
    """Return the mutual information without what chance alone gives a table of so many cells.

    To first order independent columns show (rows - 1)(columns - 1) / 2n (Miller 1955), counting the rows and
    columns that occur; without that a parent of many cells always looks informative.
    """
    rows, columns = int((joint.sum(axis=1) > 0).sum()), int((joint.sum(axis=0) > 0).sum())
    return mutual_information(joint) - (rows - 1) * (columns - 1) / (2.0 * max(int(joint.sum()), 1))


def affordable_degree(n_columns: int, degree: int) -> int:
    """Return how many parents a column may have at most, so that the candidates can all be scored in time."""
    while degree > 0 and sum(comb(n_columns, k + 1) for k in range(1, degree + 1)) > _MOST_CANDIDATES:
        degree -= 1
    return degree


def grow_network(
    n_columns: int,
    scores_of: Callable[[Sequence[Node]], Sequence[float | None]],
    *,
    root: int,
    degree: int,
    choose: Choose = np.argmax,
    progress: Callable[[float], None] = lambda share: None,
) -> list[Node]:
    """Return a network that starts at a root and adds, one by one, the column that the chosen ones tell most of.

    Parameters
    ----------
    n_columns : int
        How many columns there are.
    scores_of : callable
        Given new candidates, returns how much the parents tell of the column, or None for one that is ruled out.
    root : int
        The first column, which has no parents.
    degree : int
        How many parents a column has at most.
    choose : callable
        Picks one of the candidates by their scores; the best, and the first of equals, when not given.
    progress : callable
        Told the share of the columns that are placed.
    """
    placed = [root]
    nodes = [Node(root, ())]
    left = [column for column in range(n_columns) if column != root]
    known: dict[Node, float] = {}
    while left:
        # Every earlier set was scored when its last member was placed; only sets with the newest are new.
        new = [
            Node(column, (*others, placed[-1]))
            for count in range(1, degree + 1)
            for others in combinations(placed[:-1], count - 1)
            for column in left
        ]
        if len(placed) == 1:
            new = [*(Node(column, ()) for column in left), *new]
        known |= {node: s for node, s in zip(new, scores_of(new), strict=True) if s is not None}
        candidates = list(known)
        chosen = candidates[int(choose(np.array([known[node] for node in candidates])))]
        nodes.append(chosen)
        placed.append(chosen.column)
        left.remove(chosen.column)
        known = {node: value for node, value in known.items() if node.column != chosen.column}
        progress(len(placed) / n_columns)
    return nodes


def greedy_network(
    cells: Sequence[IntArray],
    sizes: Sequence[int],
    *,
    root: int,
    degree: int,
    max_cells: float = np.inf,
    score: Callable[[NDArray[np.int64]], float] = excess_information,
    choose: Choose = np.argmax,
    progress: Callable[[float], None] = lambda share: None,
) -> list[Node]:
    """Return the network that is grown on exact counts.

    Parameters
    ----------
    cells : sequence of int arrays
        The cell of each row, column by column.
    sizes : sequence of int
        How many cells each column has.
    root, degree, choose, progress
        As in :func:`grow_network`.
    max_cells : float
        How many cells a column and its parents may have together; a column without room has one parent.
    score : callable
        Of a table of counts, parents' combinations by cells.
    """
    names = [str(column) for column in range(len(cells))]
    counts = Counts.of_cells(dict(zip(names, cells, strict=True)), dict(zip(names, sizes, strict=True)))

    def scores_of(candidates: Sequence[Node]) -> list[float | None]:
        roomy = [
            bool(node.parents)
            and (len(node.parents) == 1 or table_size(sizes, (*node.parents, node.column)) <= max_cells)
            for node in candidates
        ]
        asked = [node for node, fits in zip(candidates, roomy, strict=True) if fits]
        tables = iter(counts.of([[*(names[p] for p in node.parents), names[node.column]] for node in asked]))
        return [
            score(next(tables).reshape(-1, sizes[node.column])) if fits else None
            for node, fits in zip(candidates, roomy, strict=True)
        ]

    return grow_network(len(cells), scores_of, root=root, degree=degree, choose=choose, progress=progress)


def conditional_tables(
    cells: Sequence[IntArray], sizes: Sequence[int], nodes: Sequence[Node]
) -> list[NDArray[np.int64]]:
    """Return the counts of each node's cells for every combination of its parents' cells."""
    tables = []
    for node in nodes:
        size = table_size(sizes, node.parents)
        codes = joint_codes(cells, sizes, (*node.parents, node.column))
        counts = np.bincount(codes, minlength=size * sizes[node.column])
        tables.append(counts.reshape(size, sizes[node.column]))
    return tables


def draw_cells(
    nodes: Sequence[Node],
    tables: Sequence[NDArray[np.int64] | FloatArray],
    sizes: Sequence[int],
    given: IntArray,
    rng: np.random.Generator,
) -> list[IntArray]:
    """Return cells for rows whose root cells are given, column by column, each row by itself.

    A combination of parents that was never counted draws from the column's own counts.
    """
    cells: list[IntArray] = [np.zeros(len(given), dtype=np.int64) for _ in sizes]
    cells[nodes[0].column] = given
    for node, counts in zip(nodes[1:], tables[1:], strict=True):
        # Not shared out as in draw_column: that would publish counts that have no noise.
        parents = joint_codes(cells, sizes, node.parents)
        cells[node.column] = _first_above(_ends(counts), parents, rng.random(len(given)))
    return cells


def draw_column(
    counts: NDArray[np.int64] | FloatArray, parents: IntArray, rng: np.random.Generator
) -> IntArray:
    """Return a cell for each row, drawn from the row of ``counts`` that its parents' combination names.

    The rows of one combination share out its cells evenly, in random order (systematic sampling): each row by
    itself is drawn from the counts, and the rows together come as close to them as whole numbers can. So this is for
    counts that were paid for.
    """
    ends = _ends(counts)
    n = len(parents)
    shuffled = rng.permutation(n)
    # numpy sorts 16 bits by counting, which is many times faster.
    keys = parents[shuffled].astype(np.uint16 if len(ends) <= 2**16 else np.int64)
    order = shuffled[np.argsort(keys, kind="stable")]
    members = np.bincount(parents, minlength=len(ends))
    first = np.cumsum(members) - members
    of = parents[order]
    level = (np.arange(n) - first[of] + rng.random(len(ends))[of]) / members[of]
    cells = np.empty(n, dtype=np.int64)
    cells[order] = _first_above(ends, of, level)
    return cells


def _ends(counts: NDArray[np.int64] | FloatArray) -> FloatArray:
    """Return where each cell ends when those of a combination lie side by side; one without counts has all counts."""
    weights = np.asarray(counts, dtype=np.float64)
    weights = np.where(weights.sum(axis=1, keepdims=True) > 0, weights, weights.sum(axis=0))
    return np.cumsum(weights if weights.any() else np.ones_like(weights), axis=1)


def _first_above(ends: FloatArray, rows: IntArray, level: FloatArray) -> IntArray:
    """Return for each level, a share of its row's last end, the first cell of the row whose end lies above it."""
    width = ends.shape[1]
    # The rows one after the other make one rising sequence, in which all levels are found at once.
    flat = (np.arange(len(ends))[:, None] + ends / ends[:, -1:]).ravel()
    found = np.searchsorted(flat, rows + level, side="right") - rows * width
    return np.clip(found, 0, width - 1)
