"""A neural network that makes products of columns, fitted to noisy counts (extra ``deep``).

Nothing here sees data: what comes in was counted with noise, so all of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversafe.protect.marginals.product_mixture import Cells

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# How strongly neighbouring cells of an ordered column are held together, and the cells of others at their margin: for
# what all products have in common, for a class, for a product in all classes, and for a product in one class. In units
# of the likelihood.
_COLUMNS, _CLASSES, _PRODUCTS, _OWN = 0.1, 3.0, 1.0, 1.0
_LEVEL, _UNORDERED = 0.02, 0.3
# Before it is fitted the network moves the logarithms of the margins by about so much.
_SPREAD = 0.3
_NO_CELL = -1e9
# The steps of the classes' margins are so many times those of the network.
_MARGIN_RATE = 15.0


@dataclass(frozen=True)
class Tables:
    """Noisy shares of combinations of columns, all counted in the same groups of cells.

    Parameters
    ----------
    columns : array of shape (n_tables, width)
        One, two or three columns each.
    groups : list of arrays
        The group of each cell, for every column.
    shares : list of arrays
        Noisy, of all rows; the first axis is the class if ``by_class``.
    precision : float
        One over the noise's variance.
    by_class : bool
        Whether the tables are within the classes.
    """

    columns: IntArray
    groups: list[IntArray]
    shares: list[FloatArray]
    precision: float
    by_class: bool


class ProductGenerator:
    """Fixed vectors of noise, and a network that makes a product of columns of each of them, in every class.

    The class is an input of the network beside the noise, and a class has as many products as any other, weighted by
    its share. So the share of a class is what it was measured to be, a rare class has as much of the network as a
    frequent one, and rows of a class are drawn exactly.

    Parameters
    ----------
    cells : Cells
        The columns.
    class_shares : array of shape (n_classes,)
        The share of each class.
    base : array of shape (n_cells,)
        A first guess of the columns' shares, above 0, at which the network begins.
    n_products : int
        How many products each class has.
    embedding : int
        The length of the noise and the width of the network.
    rng : numpy.random.Generator
        Draws the noise and where the network begins.
    """

    def __init__(
        self,
        cells: Cells,
        class_shares: FloatArray,
        base: FloatArray,
        n_products: int,
        embedding: int,
        rng: np.random.Generator,
    ):
        import torch

        self.cells = cells
        self.n_products, self.n_classes = n_products, len(class_shares)
        # Columns are padded to the widest, so that all of them are one tensor.
        self._n_columns, self._widest = len(cells.sizes), int(cells.sizes.max())
        places = np.arange(self._widest)
        self._exists = places < cells.sizes[:, None]
        start = np.full((self._n_columns, self._widest), _NO_CELL)
        start[self._exists] = np.log(base)
        self._base = _tensor(start)
        self._class_shares = _tensor(class_shares)
        ordered = cells.n_ordered[:, None]
        level = np.where(places < ordered, _LEVEL, _UNORDERED) * self._exists
        self._level = _tensor(level)
        self._bends = _tensor(places[: max(self._widest - 2, 0)] + 2 < ordered)
        noise = rng.normal(size=(n_products, embedding))
        of_class = np.eye(self.n_classes)
        self._inputs = _tensor(
            np.concatenate(
                [np.tile(noise, (self.n_classes, 1)), np.repeat(of_class, n_products, axis=0)], axis=1
            )
        )
        n_inputs = embedding + self.n_classes
        self._parameters: list[Any] = []
        for _ in range(2):
            self._parameters += [
                _linear(n_inputs, embedding, rng),
                torch.ones(embedding),
                torch.zeros(embedding),
            ]
            n_inputs += embedding
        self._parameters += [
            _linear(n_inputs, self._n_columns * self._widest, rng) * _SPREAD,
            torch.zeros(self._n_columns * self._widest),
        ]
        # A class's own margins by a straight way, which takes larger steps: a rare class weighs little in the loss, and
        # would be the last thing that the network learns.
        self._margins = torch.zeros(self.n_classes, 1, self._n_columns, self._widest)
        for own in (*self._parameters, self._margins):
            own.requires_grad_()

    def fit(
        self,
        tables: Sequence[Tables],
        *,
        n_steps: int,
        learning_rate: float,
        progress: Callable[[float], None] = lambda share: None,
    ) -> ProductGenerator:
        """Take steps towards the tables, each as far as its noise lets one believe it, from where the network is."""
        import torch

        asked = [_Asked.of(own, self.cells, self.n_classes, self._widest) for own in tables]
        groups: list[dict[str, Any]] = [
            {"params": self._parameters},
            {"params": [self._margins], "lr": _MARGIN_RATE * learning_rate},
        ]
        optimizer = torch.optim.Adam(groups, lr=learning_rate)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, n_steps)
        # In units in which noise alone is about one, whatever was counted.
        scale = 1.0 / max(sum(own.n_cells for own in asked), 1)
        for step in range(n_steps):
            optimizer.zero_grad()
            moved = self._moved()
            products = self._products(moved)
            loss = self._roughness(moved)
            for own in asked:
                loss = loss + 0.5 * own.precision * ((own.answers(products, self) - own.shares) ** 2).sum()
            (loss * scale).backward()
            optimizer.step()
            schedule.step()
            progress((step + 1) / n_steps)
        return self

    def answers(self, columns: IntArray, groups: list[IntArray], *, by_class: bool) -> list[FloatArray]:
        """Return the model's shares of combinations of columns, as in :class:`Tables`."""
        import torch

        found: list[FloatArray] = []
        with torch.no_grad():
            products = self._products(self._moved())
            width = max(int(own.max(initial=0)) + 1 for own in groups)
            # Some hundred megabytes at a time.
            most = max(1, 25_000_000 // (len(self._inputs) * width ** (columns.shape[1] - 1)))
            for begin in range(0, len(columns), most):
                part = columns[begin : begin + most]
                asked = _Asked(part, groups, self.cells, by_class, self.n_classes, self._widest)
                found += asked.unpadded(asked.answers(products, self).numpy().astype(np.float64))
        return found

    def products(self) -> list[FloatArray]:
        """Return for each column an array of (classes * products) by cells, class after class."""
        import torch

        with torch.no_grad():
            made = self._products(self._moved()).numpy().astype(np.float64)
        return [made[i, :, :size] for i, size in enumerate(self.cells.sizes)]

    def _moved(self) -> Any:
        """Return how far each product's logits lie from the base, of shape (rows, columns, cells)."""
        import torch

        features = self._inputs
        *blocks, weights, bias = self._parameters
        for linear, scale, shift in zip(blocks[::3], blocks[1::3], blocks[2::3], strict=True):
            hidden = features @ linear
            # Normalised over all products: they are always made together.
            variance, mean = torch.var_mean(hidden, dim=0, correction=0)
            hidden = (hidden - mean) * (scale / torch.sqrt(variance + 1e-5)) + shift
            features = torch.cat([torch.relu(hidden), features], dim=1)
        by_class = (features @ weights + bias).reshape(
            self.n_classes, -1, self._n_columns, self._widest
        ) + self._margins
        return by_class.flatten(0, 1)

    def _products(self, moved: Any) -> Any:
        """Return the probability of each cell, of shape (columns, rows, cells)."""
        import torch

        return torch.softmax(moved + self._base, dim=2).transpose(0, 1)

    def _roughness(self, moved: Any) -> Any:
        by_class = moved.reshape(self.n_classes, self.n_products, self._n_columns, self._widest)
        classes, products = by_class.mean(dim=1), by_class.mean(dim=0)
        overall = classes.mean(dim=0)
        own = by_class - classes[:, None] - products[None] + overall
        return (
            _COLUMNS * self._rough(overall)
            + _CLASSES * self._rough(classes - overall)
            + _PRODUCTS * self._rough(products - overall)
            + _OWN * self._rough(own)
        )

    def _rough(self, moved: Any) -> Any:
        rough = (self._level * moved**2).sum()
        if self._widest > 2:
            bends = moved[..., 2:] - 2 * moved[..., 1:-1] + moved[..., :-2]
            rough = rough + (self._bends * bends**2).sum()
        return 0.5 * rough


class _Asked:
    """Tables of one kind as a few large tensor operations; columns and groups are padded with what is always 0."""

    def __init__(
        self,
        columns: IntArray,
        groups: list[IntArray],
        cells: Cells,
        by_class: bool,
        n_classes: int,
        widest: int,
    ):
        import torch

        self.columns = columns
        self.by_class, self.n_classes = by_class, n_classes
        self.sizes = np.array([int(own.max(initial=-1)) + 1 for own in groups])
        self.n_groups = int(self.sizes.max())
        joins = np.zeros((len(groups), widest, self.n_groups))
        for column, own in enumerate(groups):
            joins[column, np.arange(len(own)), own] = 1.0
        # Columns that are counted cell by cell need no joining.
        plain = all(
            np.array_equal(own, np.arange(size)) for own, size in zip(groups, cells.sizes, strict=True)
        )
        self.joins = None if plain and self.n_groups == widest else _tensor(joins)
        self.places = [torch.as_tensor(own) for own in columns.T]
        self.shares: Any = None
        self.precision = 0.0

    @classmethod
    def of(cls, tables: Tables, cells: Cells, n_classes: int, widest: int) -> _Asked:
        asked = cls(tables.columns, tables.groups, cells, tables.by_class, n_classes, widest)
        width = tables.columns.shape[1]
        padded = np.zeros((len(tables.columns), *[n_classes] * tables.by_class, *[asked.n_groups] * width))
        for own, shares in zip(padded, tables.shares, strict=True):
            own[tuple(slice(size) for size in shares.shape)] = shares
        asked.shares = _tensor(padded)
        asked.precision = float(tables.precision)
        return asked

    @property
    def n_cells(self) -> int:
        sizes = self.sizes[self.columns].prod(axis=1).sum()
        return int(sizes) * (self.n_classes if self.by_class else 1)

    def answers(self, products: Any, model: ProductGenerator) -> Any:
        """Return the model's shares, of shape (tables[, classes], groups, ...)."""
        joined = products if self.joins is None else products @ self.joins
        weights = (model._class_shares / model.n_products).repeat_interleave(model.n_products)[:, None]
        first = (joined * weights)[self.places[0]]
        for place in self.places[1:-1]:
            first = (first[:, :, :, None] * joined[place][:, :, None, :]).flatten(2)
        n_tables = len(self.columns)
        if self.by_class:
            first = first.reshape(n_tables * model.n_classes, model.n_products, -1)
        shape = (n_tables, *[model.n_classes] * self.by_class, *[self.n_groups] * len(self.places))
        if len(self.places) == 1:
            return first.sum(dim=1).reshape(shape)
        last = joined[self.places[-1]].reshape(*first.shape[:2], -1)
        return (first.transpose(1, 2) @ last).reshape(shape)

    def unpadded(self, answers: FloatArray) -> list[FloatArray]:
        lead = (slice(None),) * self.by_class
        return [
            own[(*lead, *(slice(self.sizes[i]) for i in columns))]
            for own, columns in zip(answers, self.columns, strict=True)
        ]


def _tensor(values: Any) -> Any:
    import torch

    return torch.as_tensor(np.asarray(values, dtype=np.float32))


def _linear(n_inputs: int, n_outputs: int, rng: np.random.Generator) -> Any:
    """Return weights whose outputs are about as large as their inputs."""
    return _tensor(rng.normal(size=(n_inputs, n_outputs)) / np.sqrt(n_inputs))
