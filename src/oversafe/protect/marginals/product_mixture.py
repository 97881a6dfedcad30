"""A mixture of products fitted to noisy counts: every pair of columns at once, each class with its own margins.

Nothing here sees data: what comes in was counted with noise, so all of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.special import ndtri

from oversafe.protect.marginals.network import draw_column

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# How far the components lie apart before they are fitted, in units of a column's normal scores.
_SPREAD = 0.3
# How strongly neighbouring cells of an ordered column are held together, and the cells of others at their mean, for
# components, for classes and for the columns themselves. In units of the likelihood: 1 / variance of a curvature.
_COMPONENTS, _CLASSES, _COLUMNS = 1.0, 3.0, 0.1
_LEVEL, _UNORDERED = 0.02, 0.3
_RATE, _MOMENTUM, _SCALE_MEMORY = 0.05, 0.9, 0.99


class Cells(NamedTuple):
    """The cells of all columns side by side.

    Parameters
    ----------
    sizes : array of int
        How many cells each column has.
    n_ordered : array of int
        How many of them, from the first on, have an order; 0 for categories.
    """

    sizes: IntArray
    n_ordered: IntArray

    @property
    def starts(self) -> IntArray:
        """Where each column begins, and the end."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def join(self, groups: list[IntArray]) -> tuple[FloatArray, IntArray]:
        """Return the matrix that adds cells up to groups, column by column, and where the groups begin."""
        starts = np.concatenate([[0], np.cumsum([own.max(initial=-1) + 1 for own in groups])])
        matrix = np.zeros((int(self.sizes.sum()), int(starts[-1])))
        places = np.concatenate([own + start for own, start in zip(groups, starts[:-1], strict=True)])
        matrix[np.arange(len(places)), places] = 1.0
        return matrix, starts


@dataclass(frozen=True)
class Measured:
    """Noisy shares of some sums of cells.

    Parameters
    ----------
    join : array of shape (n_cells, n_groups)
        Which cells each group adds up.
    shares : array
        Noisy, of all rows: (n_groups,) for columns, (n_classes, n_groups) for columns within classes, and
        (n_groups, n_groups) for pairs of columns, where a column with itself has ``precision`` 0.
    precision : float or array like ``shares``
        One over the noise's variance.
    """

    join: FloatArray
    shares: FloatArray
    precision: float | FloatArray


class ProductMixture:
    """Components that are products of columns; a class has its own weights and bends all components alike.

    Cell v of column i in component k and class c has a probability proportional to
    exp(base_iv + component_kiv + class_civ). So what the columns have to do with each other is learned from all
    rows, and a rare class needs no more than its own margins.

    Parameters
    ----------
    cells : Cells
        The columns.
    class_shares : array of shape (n_classes,)
        The share of each class.
    base : array of shape (n_cells,)
        A first guess of the columns' shares, above 0.
    n_components : int
        How many components there are.
    rng : numpy.random.Generator
        Draws where the components begin.
    """

    def __init__(
        self,
        cells: Cells,
        class_shares: FloatArray,
        base: FloatArray,
        n_components: int,
        rng: np.random.Generator,
    ):
        self.cells = cells
        self.class_shares = class_shares
        n_cells, n_classes = int(cells.sizes.sum()), len(class_shares)
        self._base = np.log(base)
        components = np.zeros((n_components, n_cells))
        for start, size, ordered in zip(cells.starts, cells.sizes, cells.n_ordered, strict=False):
            own = base[start : start + size] / base[start : start + size].sum()
            scores = ndtri(np.clip(np.cumsum(own[:ordered]) - own[:ordered] / 2, 1e-3, 1 - 1e-3))
            components[:, start : start + ordered] = rng.normal(size=(n_components, 1)) * scores
            components[:, start + ordered : start + size] = rng.normal(size=(n_components, size - ordered))
        self._components = components * _SPREAD if n_components > 1 else components * 0.0
        self._classes = np.zeros((n_classes, n_cells))
        self._columns = np.zeros(n_cells)
        self._weights = np.zeros((n_classes, n_components))

    def fit(
        self,
        columns: Measured,
        within: Measured,
        pairs: Measured | None,
        *,
        n_steps: int,
        progress: Callable[[float], None] = lambda share: None,
    ) -> ProductMixture:
        """Bring the model close to the measurements, each as far as its noise lets one believe it."""
        penalty = self.roughness()
        parameters = [self._components, self._classes, self._weights, self._columns]
        first = [np.zeros_like(p) for p in parameters]
        second = [np.zeros_like(p) for p in parameters]
        for step in range(1, n_steps + 1):
            rate = _RATE * 0.5 * (1 + np.cos(np.pi * (step - 1) / n_steps))
            gradients = self._gradients(columns, within, pairs, penalty)
            for parameter, gradient, m, v in zip(parameters, gradients, first, second, strict=True):
                m += (1 - _MOMENTUM) * (gradient - m)
                v += (1 - _SCALE_MEMORY) * (gradient * gradient - v)
                mean, scale = m / (1 - _MOMENTUM**step), np.sqrt(v / (1 - _SCALE_MEMORY**step))
                parameter -= rate * mean / (scale + 1e-9)
            progress(step / n_steps)
        return self

    @property
    def shares(self) -> FloatArray:
        """The probability of each cell, of shape (n_components, n_classes, n_cells)."""
        logits = self._components[:, None, :] + self._classes[None] + (self._base + self._columns)
        starts = self.cells.starts[:-1]
        logits -= np.repeat(np.maximum.reduceat(logits, starts, axis=2), self.cells.sizes, axis=2)
        np.exp(logits, out=logits)
        return logits / np.repeat(np.add.reduceat(logits, starts, axis=2), self.cells.sizes, axis=2)

    @property
    def weights(self) -> FloatArray:
        """The weight of each component within each class, of shape (n_classes, n_components)."""
        weights = np.exp(self._weights - self._weights.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)

    def draw(self, classes: IntArray, rng: np.random.Generator) -> IntArray:
        """Return a row of cells, one per column, for each given class."""
        shares, weights = self.shares, self.weights
        place = draw_column(weights, classes, rng) * len(weights) + classes
        drawn = np.empty((len(classes), len(self.cells.sizes)), dtype=np.int64)
        for i, (start, end) in enumerate(pairwise(self.cells.starts)):
            drawn[:, i] = draw_column(shares[:, :, start:end].reshape(-1, end - start), place, rng)
        return drawn

    def roughness(self) -> FloatArray:
        """Return the matrix of the penalty on logits, over the cells of all columns."""
        return block_diag(*(_roughness(int(n), int(m)) for n, m in zip(*self.cells, strict=True)))

    def _gradients(
        self, columns: Measured, within: Measured, pairs: Measured | None, penalty: FloatArray
    ) -> list[FloatArray]:
        shares, weights = self.shares, self.weights
        n_components, n_classes, n_cells = shares.shape
        joint = (weights * self.class_shares[:, None]).T
        ones = np.einsum("kc,kcd->cd", joint, shares)
        error = ones @ within.join - within.shares
        by_cell = (within.precision * error) @ within.join.T
        by_cell = by_cell + (columns.precision * (ones.sum(axis=0) @ columns.join - columns.shares)) @ (
            columns.join.T
        )
        by_share = joint[:, :, None] * by_cell
        by_weight = np.einsum("kcd,cd->kc", shares, by_cell)
        if pairs is not None:
            flat, mass = shares.reshape(-1, n_cells), joint.reshape(-1, 1)
            grouped = flat @ pairs.join
            error = pairs.precision * ((grouped * mass).T @ grouped - pairs.shares)
            pull = grouped @ error
            by_share += (mass * (pull @ pairs.join.T)).reshape(shares.shape)
            by_weight += 0.5 * (pull * grouped).sum(axis=1).reshape(n_components, n_classes)
        by_share *= shares
        totals = np.add.reduceat(by_share, self.cells.starts[:-1], axis=2)
        by_logit = by_share - shares * np.repeat(totals, self.cells.sizes, axis=2)
        slope = (by_weight * self.class_shares).T
        return [
            by_logit.sum(axis=1) + _COMPONENTS * self._components @ penalty,
            by_logit.sum(axis=0) + _CLASSES * self._classes @ penalty,
            weights * (slope - (weights * slope).sum(axis=1, keepdims=True)),
            by_logit.sum(axis=(0, 1)) + _COLUMNS * self._columns @ penalty,
        ]


def _roughness(size: int, ordered: int) -> FloatArray:
    """Return the matrix of the penalty: squared second differences where there is an order, else squares."""
    penalty = np.eye(size) * _UNORDERED
    if ordered:
        penalty[:ordered, :ordered] = np.eye(ordered) * _LEVEL
    if ordered > 2:
        bends = np.diff(np.eye(ordered), 2, axis=0)
        penalty[:ordered, :ordered] += bends.T @ bends
    return penalty
