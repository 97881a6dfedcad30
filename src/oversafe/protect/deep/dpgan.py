"""DPGAN: a generator against a discriminator that is trained with noisy gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from oversafe._core.checks import check_count, check_positive
from oversafe.data.schema import Schema
from oversafe.privacy.accountant import Accountant
from oversafe.privacy.call_context import CallContext
from oversafe.privacy.domains import Binning, Estimate
from oversafe.privacy.gradients import NoisyGradient, noise_for_steps
from oversafe.privacy.guarantee import OVER_THE_REALS, Guarantee, Relation
from oversafe.privacy.ledger.ledger import DatasetLedger
from oversafe.protect.deep.adversarial import AdversarialSynthesizer, Cells, Strategy, drawn_classes, one_hot
from oversafe.protect.descriptions import PRIVATE, described
from oversafe.protect.explanations import COUNTED, Explanation

_BASIS = (
    "noisy sums of clipped gradients over Poisson samples for the discriminator, discrete Gaussian noise on all counts "
    "(the docs page 'Guarantees, proofs and errata', section 'Noisy gradients')"
)
_HIDDEN = 64


@described(PRIVATE)
@dataclass(eq=False, repr=False)
class DPGAN(AdversarialSynthesizer):
    """Train a generator against a discriminator that sees the data through noisy gradients (Xie et al. 2018).

    The generator returns a distribution over the cells of every column for a class, so that any class shares can be
    drawn. It starts from noisy margins of the columns within the classes, which part of the budget pays for, and learns
    from the discriminator what columns have to do with each other. The gradients of real rows are shortened and get
    noise; those of generated rows cost nothing. Needs the extra ``deep``.

    Networks need more rows, or a larger epsilon, than counts do: on tables of some ten thousand rows
    :class:`PrivateMixture` and :class:`PrivBayes` are much better. It is here to compare with.

    Parameters
    ----------
    {epsilon}
    delta : float, optional
        1e-9 when not given; above 0.
    {schema, domains, classes, n_bins, binning}
    margins : float, default=0.5
        The share of epsilon and delta that pays for class counts, margins and domains. With 0 the generator starts from
        nothing, as published, and a twentieth pays for the class counts.
    epochs : int, default=5
        How often the discriminator sees each row on average.
    batch_size : int, default=500
        How many rows a step of it sees on average.
    learning_rate : float, default=0.001
        Of both networks, by Adam.
    max_grad_norm : float, default=1.0
        The norm to which the gradient of each real row is shortened.
    {sampling_strategy, relation, random_state, ledger, call_context}

    Attributes
    ----------
    {guarantee_, schema_, classes_, class_counts_}
    noise_multiplier_ : float
        The deviation of the gradients' noise, relative to ``max_grad_norm``.
    sample_rate_, n_steps_ : float, int
        The chance of a row to be in a step of the discriminator, and the number of steps.
    """

    method_name = "dpgan"
    extra = "deep"
    explanation = Explanation(
        "A fully synthetic table from a neural network that starts from noisy margins of the columns within the "
        "classes and learns from a second one, which sees the rows through noisy gradients.",
        COUNTED,
        "At a small epsilon it learns little beyond the margins; the methods that count are better on most tables.",
    )

    epsilon: float = 1.0
    delta: float | None = None
    _: KW_ONLY
    schema: Schema | None = None
    domains: Estimate = "data"
    classes: Sequence[Any] | None = None
    n_bins: int = 20
    binning: Binning = "uniform"
    margins: float = 0.5
    epochs: int = 5
    batch_size: int = 500
    learning_rate: float = 0.001
    max_grad_norm: float = 1.0
    sampling_strategy: Strategy = None
    relation: Relation = "replace-one"
    random_state: int | None = None
    ledger: DatasetLedger | None = None
    call_context: CallContext = "checked"

    def _check_settings(self) -> None:
        check_count("epochs", self.epochs, 1)
        check_count("batch_size", self.batch_size, 1)
        for name in ("learning_rate", "max_grad_norm"):
            check_positive(name, getattr(self, name))

    def _basis(self) -> str:
        return _BASIS

    def _budget(self, rng: np.random.Generator | None) -> tuple[Accountant, float]:
        share = self._margins_share()
        return (
            Accountant(share * self.epsilon, share * self._delta, relation=self.relation, random_state=rng),
            1.0,
        )

    def _train(
        self, generator: Any, cells: Cells, accountant: Accountant, rng: np.random.Generator | None
    ) -> None:
        import torch
        from torch import nn
        from torch.nn import functional

        # The noisy number of rows: the same as the true one under replace-one, where that is public.
        n_rows = int(self.class_counts_.sum())
        self.sample_rate_ = min(1.0, self.batch_size / n_rows)
        self.n_steps_ = math.ceil(self.epochs / self.sample_rate_)
        rest = 1 - self._margins_share()
        self.noise_multiplier_ = noise_for_steps(
            rest * self.epsilon,
            rest * self._delta,
            rate=self.sample_rate_,
            steps=self.n_steps_,
            relation=self.relation,
        )
        real = one_hot(cells)
        width = int(cells.starts[-1]) + cells.n_classes
        critic = nn.Sequential(nn.Linear(width, _HIDDEN), nn.LeakyReLU(0.2), nn.Linear(_HIDDEN, 1))
        gradient = NoisyGradient(
            critic,
            clip=float(self.max_grad_norm),
            noise=self.noise_multiplier_,
            n_rows=n_rows,
            rate=self.sample_rate_,
            rng=rng,
        )
        parameters: list[Any] = list(critic.parameters())
        of_critic = torch.optim.Adam(parameters, lr=self.learning_rate, betas=(0.5, 0.99))
        of_generator = torch.optim.Adam(generator.parameters(), lr=self.learning_rate, betas=(0.5, 0.99))
        size = min(self.batch_size, n_rows)
        for step in range(self.n_steps_):
            if step % 20 == 0:
                self._report("Training against the discriminator", step / self.n_steps_)
            gradient.step(
                lambda net, rows: functional.softplus(-net(real(rows))[:, 0]),
                gradient.sample(len(cells.classes)),
            )
            noisy = [p.grad for p in parameters]
            with torch.no_grad():
                fake = generator(drawn_classes(self.class_counts_, size))
            with gradient.without_rows():
                of_critic.zero_grad()
                functional.softplus(critic(fake)[:, 0]).mean().backward()
                # Generated rows are no records, so their gradient needs neither clipping nor noise.
                for p, own in zip(parameters, noisy, strict=True):
                    p.grad += own
                of_critic.step()
                of_generator.zero_grad()
                # As many of each class, so that a rare one is held to its margins and learned as the others are.
                made, gap = generator.rows_and_gap(drawn_classes(np.ones(cells.n_classes), size))
                (functional.softplus(-critic(made)[:, 0]).mean() + self._hold * gap).backward()
                of_generator.step()
                of_critic.zero_grad()

    def _whole(self, whole: Accountant, accountant: Accountant) -> Guarantee:
        return whole.promise(self._basis())

    def _assumed(self) -> tuple[str, ...]:
        # A record more moves the places of others in a step, and with them the last digits of their gradients.
        return (OVER_THE_REALS,) if self.relation == "add-remove" else ()
