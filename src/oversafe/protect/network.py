"""Bayesian networks over columns of cells: greedy structure, conditional tables, ancestral drawing.

Nothing here adds noise. A private network passes a ``choose`` that pays for its choice, and tables that were
counted with noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Node:
    """A column and the columns that it is drawn from, by their positions."""

    column: int
    parents: tuple[int, ...]


# Given all candidates and their scores, returns the position of the chosen one.
Choose = Callable[[Sequence[Node], FloatArray], int]


def best_candidate(candidates: Sequence[Node], scores: FloatArray) -> int:
    """Return the position of the candidate with the highest score, the first of equals."""
    return int(np.argmax(scores))


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


def greedy_network(
    cells: Sequence[IntArray],
    sizes: Sequence[int],
    *,
    root: int,
    degree: int,
    max_cells: float = np.inf,
    score: Callable[[NDArray[np.int64]], float] = excess_information,
    choose: Choose = best_candidate,
    progress: Callable[[float], None] = lambda share: None,
) -> list[Node]:
    """Return a network that starts at a root and adds, one by one, the column that the chosen ones tell most of.

    Parameters
    ----------
    cells : sequence of int arrays
        The cell of each row, column by column.
    sizes : sequence of int
        How many cells each column has.
    root : int
        The first column, which has no parents.
    degree : int
        How many parents a column has at most.
    max_cells : float
        How many cells a column and its parents may have together; a column without room has one parent.
    score : callable
        Of a table of counts, parents' combinations by cells.
    choose : callable
        Picks one of the candidates by their scores.
    progress : callable
        Told the share of the columns that are placed.
    """
    placed = [root]
    nodes = [Node(root, ())]
    known: dict[Node, float] = {}
    while len(placed) < len(cells):
        left = [column for column in range(len(cells)) if column not in placed]
        # Every earlier set was scored when its last member was placed; only sets with the newest are new.
        newest = placed[-1]
        for count in range(1, degree + 1):
            for others in combinations(placed[:-1], count - 1):
                parents = (*others, newest)
                size = table_size(sizes, parents)
                roomy = [c for c in left if count == 1 or size * sizes[c] <= max_cells]
                if not roomy:
                    continue
                codes = joint_codes(cells, sizes, parents)
                for column in roomy:
                    counts = np.bincount(
                        codes * sizes[column] + cells[column], minlength=size * sizes[column]
                    )
                    known[Node(column, parents)] = score(counts.reshape(size, sizes[column]))
        candidates = [node for node in known if node.column in left]
        chosen = candidates[choose(candidates, np.array([known[node] for node in candidates]))]
        nodes.append(chosen)
        placed.append(chosen.column)
        known = {node: value for node, value in known.items() if node.column != chosen.column}
        progress(len(placed) / len(cells))
    return nodes


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
    """Return cells for rows whose root cells are given, column by column.

    A combination of parents that was never counted draws from the column's own counts.
    """
    n = len(given)
    cells: list[IntArray] = [np.zeros(n, dtype=np.int64) for _ in sizes]
    cells[nodes[0].column] = given
    for node, counts in zip(nodes[1:], tables[1:], strict=True):
        weights = np.asarray(counts, dtype=np.float64)
        totals = weights.sum(axis=1)
        weights = np.where(totals[:, None] > 0, weights, weights.sum(axis=0))
        if not weights.any():
            weights = np.ones_like(weights)
        ends = np.cumsum(weights, axis=1)
        parents = joint_codes(cells, sizes, node.parents)
        # Rows of one combination together: one search in the combination's own ends.
        level = ends[parents, -1] * rng.random(n)
        cells[node.column] = _first_above(ends, parents, level)
    return cells


def _first_above(ends: FloatArray, rows: IntArray, level: FloatArray) -> IntArray:
    """Return for each level the first cell of its row whose end lies above it."""
    width = ends.shape[1]
    tops = ends[:, -1]
    # The rows one after the other make one rising sequence, in which all levels are found at once.
    flat = (np.arange(len(ends))[:, None] + ends / tops[:, None]).ravel()
    found = np.searchsorted(flat, rows + level / tops[rows], side="right") - rows * width
    return np.clip(found, 0, width - 1)
