"""What the private adversarial synthesizers share: a generator of cells that starts from noisy margins of each class.

A generator turns random numbers and a class into a distribution over the cells of every column. Something else, which
looks at the data and pays for it, tells how real its rows are. What the generator learns from that is post-processing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.checks import check_count, check_share
from oversafe._core.errors import InputError, import_extra
from oversafe.data.bins import Bins
from oversafe.data.schema import Schema, features_of
from oversafe.privacy.accountant import Accountant
from oversafe.privacy.domains import (
    Binning,
    Domains,
    Estimate,
    check_classes,
    check_rows,
    drawn_values,
    resolve_domains,
    unpaid_domains,
)
from oversafe.privacy.estimates import positive_counts, project
from oversafe.privacy.gradients import seeded_torch
from oversafe.privacy.guarantee import Guarantee, Relation, check_delta, check_epsilon
from oversafe.privacy.ledger.ledger import DatasetLedger
from oversafe.privacy.noise import random_source
from oversafe.protect.base import Synthesizer
from oversafe.protect.counting import DEFAULT_DELTA

if TYPE_CHECKING:
    import torch

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Strategy = str | float | Mapping[Any, int] | None

# Of the budget for the class counts, where no margins are counted.
_COUNTS_ALONE = 0.05
_NOISE_WIDTH, _HIDDEN = 32, 128
# How far the generator's rows differ from the margins before it has learned anything.
_START = 0.1
_HOLD = 10.0
_DRAWN_AT_ONCE = 65_536


@dataclass(frozen=True)
class Cells:
    """A table as cells, for the networks.

    Parameters
    ----------
    sizes : tuple of int
        How many cells each column has.
    codes : array of int of shape (n_rows, n_columns)
        The cells of each row.
    classes : array of int of shape (n_rows,)
        Its class.
    n_classes : int
        How many classes there are.
    """

    sizes: tuple[int, ...]
    codes: IntArray
    classes: IntArray
    n_classes: int

    @property
    def starts(self) -> IntArray:
        """Where each column's cells begin when they lie side by side, and the end."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def places(self) -> IntArray:
        """Return where the ones of each row lie, the class last."""
        starts = self.starts
        return np.column_stack([self.codes + starts[:-1], starts[-1] + self.classes])


class AdversarialSynthesizer(Synthesizer):
    """A synthesizer whose generator is told how real its rows are by something that pays for what it sees.

    A subclass writes ``_budget`` (who pays for domains and margins, and the share of it that they may take), ``_train``
    and ``_whole``. Its constructor has the parameters below.
    """

    epsilon: float
    delta: float | None
    schema: Schema | None
    domains: Estimate
    classes: Sequence[Any] | None
    n_bins: int
    binning: Binning
    margins: float
    relation: Relation
    ledger: DatasetLedger | None
    _promises_records = True
    # Whether noisy counts are all that it sees.
    _only_counts: ClassVar[bool] = False
    _bins: dict[str, Bins]

    def _fit(self, table: pd.DataFrame, labels: pd.Series) -> None:
        check_epsilon(self.epsilon)
        check_delta(self._delta)
        check_count("n_bins", self.n_bins, 1)
        check_share("margins", self.margins, 0, 0.95)
        self._check_settings()
        if not self._delta:
            raise InputError(f"delta = 0 was given; {type(self).__name__} needs one above 0, such as 1e-9")
        if table.shape[1] == 0:
            raise InputError("the table has no column besides the label; give at least one")
        # Before anything is paid for.
        for package in ("torch", "opacus"):
            import_extra(package, "deep", type(self).__name__)
        rng = random_source(self.random_state)
        accountant, share = self._budget(rng)
        check_classes(labels, self.schema, self.classes)
        if self.schema is not None:
            features_of(table, self.schema)
        check_rows(table, self.schema, accountant, self.classes, self.domains, self.binning, 0.2 * share)
        caveats = unpaid_domains(self.schema, self.classes, self.domains, accountant.pure)
        whole = Accountant(
            self.epsilon, self._delta, relation=self.relation, random_state=0 if rng is not None else None
        )
        counts_only = self._only_counts and self.domains == "data"
        promised = whole.promise(self._basis(), caveats, counts_only=counts_only)
        self._pay(promised.assuming(*self._assumed()), (table, labels))
        # Nothing is learned yet; the fit states its own guarantee in the end.
        del self.guarantee_
        domains = resolve_domains(
            table,
            labels,
            self.schema,
            accountant,
            classes=self.classes,
            estimate=self.domains,
            n_bins=self.n_bins,
            binning=self.binning,
            share=0.2 * share,
        )
        self.schema_, self.classes_, self._bins = domains.schema, domains.classes, dict(domains.bins)
        cells = _cells(table, labels, domains)
        left = min(accountant.left, share - (1 - accountant.left))
        start = self._count_margins(cells, accountant, left)
        with seeded_torch(rng), _one_thread_for_small_tensors():
            generator = build_generator(cells, start)
            self._train(generator, cells, accountant, rng)
            self._generator = Generator.of(generator, cells.sizes, start)
        self.guarantee_ = self._whole(whole, accountant).weaken(*domains.caveats).assuming(*self._assumed())

    @property
    def _delta(self) -> float:
        return DEFAULT_DELTA if self.delta is None else self.delta

    def _count_margins(self, cells: Cells, accountant: Accountant, share: float) -> FloatArray:
        """Return the logarithms of each class's margins, side by side, with noise; sets ``class_counts_``."""
        tables = [np.bincount(cells.classes, minlength=cells.n_classes)]
        if self.margins:
            for i, size in enumerate(cells.sizes):
                places = cells.classes * size + cells.codes[:, i]
                tables.append(np.bincount(places, minlength=size * cells.n_classes))
        noisy = accountant.counts(
            np.concatenate(tables), share, what="class margins", tables=len(tables)
        ).astype(np.float64)
        parts = np.split(noisy, np.cumsum([len(own) for own in tables])[:-1])
        n_rows = len(cells.classes) if accountant.n_rows_public else None
        self.class_counts_ = positive_counts(np.rint(parts[0]).astype(np.int64), n_rows)
        if not self.margins:
            return np.zeros((cells.n_classes, int(cells.starts[-1])))
        noise = accountant.deviation(share, len(tables))
        logs = [
            _log_shares(part.reshape(cells.n_classes, -1), self.class_counts_.astype(np.float64), noise)
            for part in parts[1:]
        ]
        return np.hstack(logs)

    def _draw(self, classes: IntArray, rng: np.random.Generator) -> pd.DataFrame:
        codes = np.empty((len(classes), len(self._bins)), dtype=np.int64)
        for first in range(0, len(classes), _DRAWN_AT_ONCE):
            part = slice(first, first + _DRAWN_AT_ONCE)
            codes[part] = self._generator.draw(classes[part], rng)
        return drawn_values(self._bins, codes.T, rng)

    @property
    def _hold(self) -> float:
        """How much the generator is held to the margins that were counted; without them, not at all."""
        return _HOLD if self.margins else 0.0

    def _margins_share(self) -> float:
        return float(self.margins) or _COUNTS_ALONE

    @abstractmethod
    def _check_settings(self) -> None:
        """Refuse settings that mean nothing."""

    @abstractmethod
    def _basis(self) -> str:
        """Return what the guarantee rests on."""

    @abstractmethod
    def _budget(self, rng: np.random.Generator | None) -> tuple[Accountant, float]:
        """Return who pays for domains and margins, and the share of it that they may take."""

    @abstractmethod
    def _train(
        self, generator: Any, cells: Cells, accountant: Accountant, rng: np.random.Generator | None
    ) -> None:
        """Train the generator."""

    @abstractmethod
    def _whole(self, whole: Accountant, accountant: Accountant) -> Guarantee:
        """Return the guarantee of the whole fit: of the whole budget, or of what its accountant was charged."""

    def _assumed(self) -> tuple[str, ...]:
        """Return what the proof takes for granted."""
        return ()


@dataclass(frozen=True)
class Generator:
    """A trained generator as plain arrays.

    Parameters
    ----------
    sizes : tuple of int
        How many cells each column has.
    start : array of shape (n_classes, n_cells)
        What is added to its last layer for each class.
    layers : list of (weights, biases)
        Of its layers.
    """

    sizes: tuple[int, ...]
    start: FloatArray
    layers: list[tuple[FloatArray, FloatArray]]

    @classmethod
    def of(cls, network: Any, sizes: tuple[int, ...], start: FloatArray) -> Generator:
        """Return the arrays of a network."""
        linear = [layer for layer in network.layers if hasattr(layer, "weight")]
        layers = [
            (own.weight.detach().double().numpy().T.copy(), own.bias.detach().double().numpy().copy())
            for own in linear
        ]
        return cls(sizes, start, layers)

    def draw(self, classes: IntArray, rng: np.random.Generator) -> IntArray:
        """Return the cells of a row for each given class."""
        hidden = np.hstack([rng.normal(size=(len(classes), _NOISE_WIDTH)), np.eye(len(self.start))[classes]])
        for weights, biases in self.layers[:-1]:
            hidden = np.maximum(hidden @ weights + biases, 0.0)
        weights, biases = self.layers[-1]
        logits = hidden @ weights + biases + self.start[classes]
        # The largest of logits with Gumbel noise is a draw from their softmax.
        logits += rng.gumbel(size=logits.shape)
        ends = np.cumsum(self.sizes)
        return np.column_stack(
            [logits[:, end - size : end].argmax(axis=1) for end, size in zip(ends, self.sizes, strict=True)]
        )


def build_generator(cells: Cells, start: FloatArray) -> Any:
    """Return a generator network: called with classes it returns rows of cells, one-hot, with gradients."""
    import torch
    from torch import nn
    from torch.nn import functional

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            width = _NOISE_WIDTH + cells.n_classes
            self.layers = nn.Sequential(
                nn.Linear(width, _HIDDEN),
                nn.ReLU(),
                nn.Linear(_HIDDEN, _HIDDEN),
                nn.ReLU(),
                nn.Linear(_HIDDEN, int(cells.starts[-1])),
            )
            last: Any = self.layers[-1]
            with torch.no_grad():
                last.weight.mul_(_START)
                last.bias.zero_()
            self.start = torch.as_tensor(start, dtype=torch.float32)

        def forward(self, classes: torch.Tensor) -> torch.Tensor:
            """Return drawn cells and the class, one-hot and side by side."""
            return self.rows_and_gap(classes)[0]

        def rows_and_gap(self, classes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            """Return drawn rows, and how far the margins of their classes lie from those at the start."""
            hot = functional.one_hot(classes, cells.n_classes).float()
            logits = self.layers(torch.cat([torch.randn(len(classes), _NOISE_WIDTH), hot], dim=1))
            logits = logits + self.start[classes]
            own_share = hot / hot.sum(dim=0).clamp_min(1.0)
            present = (hot.sum(dim=0) > 0).float()
            columns, gap = [], torch.zeros(())
            for own, start in zip(
                torch.split(logits, list(cells.sizes), dim=1),
                torch.split(self.start, list(cells.sizes), dim=1),
                strict=True,
            ):
                # Whole cells forwards, as real rows have them; the softmax's gradient backwards.
                columns.append(functional.gumbel_softmax(own, tau=1.0, hard=True))
                means = own_share.T @ functional.softmax(own, dim=1)
                wanted = functional.softmax(start, dim=1)
                lost = (wanted * (wanted.log() - means.clamp_min(1e-9).log())).sum(dim=1)
                gap = gap + (present * lost).sum()
            return torch.cat([*columns, hot], dim=1), gap

    return Network()


def one_hot(cells: Cells) -> Callable[[IntArray], torch.Tensor]:
    """Return what makes one-hot rows of some of a table's rows, the class last."""
    import torch

    places = torch.as_tensor(cells.places())
    width = int(cells.starts[-1]) + cells.n_classes

    def rows(wanted: IntArray) -> torch.Tensor:
        own = places[torch.as_tensor(wanted)]
        return torch.zeros(len(own), width).scatter_(1, own, 1.0)

    return rows


def drawn_classes(counts: IntArray | FloatArray, n: int) -> torch.Tensor:
    """Return classes of n rows in the shares of noisy counts, from torch's random state."""
    import torch

    return torch.multinomial(torch.as_tensor(counts, dtype=torch.float64), n, replacement=True)


def _cells(table: pd.DataFrame, labels: pd.Series, domains: Domains) -> Cells:
    sizes = tuple(own.n_cells for own in domains.bins.values())
    return Cells(sizes, domains.cells(table), domains.label_codes(labels), len(domains.classes))


def _log_shares(noisy: FloatArray, class_counts: FloatArray, noise: float) -> FloatArray:
    """Return the logarithms of a column's shares within each class; the fewer its rows, the more like all rows."""
    overall = project(noisy.sum(axis=0), float(class_counts.sum()))
    overall = overall / max(overall.sum(), 1.0)
    own = np.array([project(row, count) / count for row, count in zip(noisy, class_counts, strict=True)])
    spread = noise * np.sqrt(noisy.shape[1])
    weight = (class_counts / (class_counts + spread))[:, None]
    # A cell that nobody seems to have keeps a little, so that its logarithm is a number.
    return np.log(weight * own + (1 - weight) * overall + 1e-4 / noisy.shape[1])


@contextmanager
def _one_thread_for_small_tensors() -> Iterator[None]:
    """More threads than one only wait for each other on tensors of a few thousand numbers."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
