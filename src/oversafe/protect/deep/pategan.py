"""PATE-GAN: a generator against a student that learns the noisy votes of teachers on disjoint rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from oversafe._core.checks import check_count, check_positive
from oversafe.data.schema import Schema
from oversafe.privacy.accountant import Accountant
from oversafe.privacy.call_context import CallContext
from oversafe.privacy.domains import Binning, Estimate
from oversafe.privacy.guarantee import Guarantee, Relation
from oversafe.privacy.ledger.ledger import DatasetLedger
from oversafe.privacy.noise import uniform
from oversafe.protect.deep.adversarial import AdversarialSynthesizer, Cells, Strategy, drawn_classes
from oversafe.protect.descriptions import PRIVATE, described
from oversafe.protect.explanations import COUNTED, Explanation

if TYPE_CHECKING:
    import torch

IntArray = NDArray[np.int64]

_BASIS = (
    "discrete Gaussian noise on the votes of teachers that see disjoint rows, and on all counts (the docs page "
    "'Guarantees, proofs and errata', section 'Noisy votes')"
)
# Rows of a teacher when their number is not given, and how many teachers there are at least and at most then.
_ROWS_PER_TEACHER, _FEWEST, _MOST = 50, 5, 500
_TEACHER_HIDDEN, _STUDENT_HIDDEN = 16, 64
_TEACHER_STEPS, _STUDENT_STEPS, _GENERATOR_STEPS = 5, 20, 10
_TEACHER_RATE, _TEACHER_DECAY = 0.01, 0.1
_BATCH = 500
# Votes on rows of a generator that has long moved on mislead; the student learns from the last rounds.
_REMEMBERED = 10


@described(PRIVATE)
@dataclass(eq=False, repr=False)
class PATEGAN(AdversarialSynthesizer):
    """Train a generator against a student that learns from noisy votes of teachers (Jordon, Yoon, van der Schaar 2019).

    Every teacher sees a part of the rows of its own and learns to tell them from generated ones. The votes of all
    teachers on generated rows are counted with noise, and that is all that leaves them: the student learns the noisy
    votes, the generator learns to please the student. As in :class:`DPGAN`, the generator starts from noisy margins of
    the columns within the classes. Needs the extra ``deep``.

    Votes say little at a small epsilon: on tables of some ten thousand rows :class:`PrivateMixture` and
    :class:`PrivBayes` are much better. It is here to compare with, and for :class:`SMOTEDP`.

    Parameters
    ----------
    {epsilon}
    delta : float, optional
        1e-9 when not given; above 0.
    {schema, domains, classes, n_bins, binning}
    margins : float, default=0.5
        The share of the budget that pays for class counts, margins and domains. With 0 the generator starts from
        nothing, as published, and a twentieth pays for the class counts.
    n_teachers : int, optional
        One for every fifty rows when not given, from 5 to 500.
    n_rounds : int, default=50
        How often the teachers vote.
    n_votes : int, default=100
        On how many generated rows they vote in each round.
    learning_rate : float, default=0.001
        Of generator and student, by Adam.
    {sampling_strategy, relation, random_state, ledger, call_context}

    Attributes
    ----------
    {guarantee_, schema_, classes_, class_counts_}
    n_teachers_ : int
        How many teachers there were.
    vote_noise_ : float
        The deviation of the noise on a count of votes.
    """

    method_name = "pategan"
    extra = "deep"
    explanation = Explanation(
        "A fully synthetic table from a neural network that starts from noisy margins of the columns within the "
        "classes and learns from noisy votes of teachers, each of which sees rows of its own.",
        COUNTED,
        "At a small epsilon it learns little beyond the margins; the methods that count are better on most tables.",
    )

    _only_counts: ClassVar = True

    epsilon: float = 1.0
    delta: float | None = None
    _: KW_ONLY
    schema: Schema | None = None
    domains: Estimate = "data"
    classes: Sequence[Any] | None = None
    n_bins: int = 20
    binning: Binning = "uniform"
    margins: float = 0.5
    n_teachers: int | None = None
    n_rounds: int = 50
    n_votes: int = 100
    learning_rate: float = 0.001
    sampling_strategy: Strategy = None
    relation: Relation = "replace-one"
    random_state: int | None = None
    ledger: DatasetLedger | None = None
    call_context: CallContext = "checked"

    def _check_settings(self) -> None:
        for name in ("n_rounds", "n_votes"):
            check_count(name, getattr(self, name), 1)
        if self.n_teachers is not None:
            check_count("n_teachers", self.n_teachers, 2)
        check_positive("learning_rate", self.learning_rate)

    def _basis(self) -> str:
        return _BASIS

    def _budget(self, rng: np.random.Generator | None) -> tuple[Accountant, float]:
        accountant = Accountant(self.epsilon, self._delta, relation=self.relation, random_state=rng)
        return accountant, self._margins_share()

    def _train(
        self, generator: Any, cells: Cells, accountant: Accountant, rng: np.random.Generator | None
    ) -> None:
        import torch
        from torch import nn

        n_rows = int(self.class_counts_.sum())
        self.n_teachers_ = self.n_teachers or int(np.clip(n_rows // _ROWS_PER_TEACHER, _FEWEST, _MOST))
        teachers = Teachers(cells, self.n_teachers_, rng)
        share = accountant.left / self.n_rounds
        width = int(cells.starts[-1]) + cells.n_classes
        student = nn.Sequential(
            nn.Linear(width, _STUDENT_HIDDEN), nn.LeakyReLU(0.2), nn.Linear(_STUDENT_HIDDEN, 1)
        )
        of_student = torch.optim.AdamW(student.parameters(), lr=self.learning_rate, weight_decay=0.1)
        of_generator = torch.optim.Adam(generator.parameters(), lr=self.learning_rate, betas=(0.5, 0.99))
        rows: list[torch.Tensor] = []
        shares: list[torch.Tensor] = []
        for number in range(self.n_rounds):
            self._report("Asking the teachers", number / self.n_rounds)
            with torch.no_grad():
                fake = generator(drawn_classes(self.class_counts_, max(self.n_votes, _ROWS_PER_TEACHER)))
            teachers.learn(fake)
            asked = fake[: self.n_votes]
            # Nothing else of the teachers is used: neither their weights nor their votes without noise.
            votes = noisy_votes(teachers.votes(asked), accountant, share)
            rows.append(asked)
            shares.append(torch.as_tensor(votes / self.n_teachers_ - 0.5, dtype=torch.float32))
            del rows[:-_REMEMBERED], shares[:-_REMEMBERED]
            known, target = torch.cat(rows), torch.cat(shares)
            # In units of their own spread, most of which may be noise.
            target = target / target.std().clamp_min(0.05)
            for _ in range(_STUDENT_STEPS):
                of_student.zero_grad()
                (student(known)[:, 0] - target).square().mean().backward()
                of_student.step()
            for _ in range(_GENERATOR_STEPS):
                of_generator.zero_grad()
                # As many of each class, so that a rare one is held to its margins and learned as the others are.
                made, gap = generator.rows_and_gap(drawn_classes(np.ones(cells.n_classes), _BATCH))
                (self._hold * gap - student(made)[:, 0].mean()).backward()
                of_generator.step()
        self.vote_noise_ = math.sqrt(self.n_votes / (2 * accountant.amount(share)))

    def _whole(self, whole: Accountant, accountant: Accountant) -> Guarantee:
        return accountant.guarantee(self._basis())


def noisy_votes(votes: IntArray, accountant: Accountant, share: float) -> IntArray:
    """Return how many teachers hold each of some rows for real, with noise.

    One record is one teacher's, and a teacher has one vote on each row: all counts together move by as many votes as
    there are rows, each by one.
    """
    return accountant.counts(votes, share, what="votes", l1=len(votes), l2=math.sqrt(len(votes)))


class Teachers:
    """Small networks that each learn to tell their own rows from generated ones.

    Which teacher a row belongs to is drawn for each row by itself, whatever it holds; so one record, replaced or added,
    is one teacher's. A teacher is trained alone, row by row: the others are the same to the last bit, with and without
    that record.

    Parameters
    ----------
    cells : Cells
        The table.
    n_teachers : int
        How many.
    rng : Generator, optional
        For repeatable runs.
    """

    def __init__(self, cells: Cells, n_teachers: int, rng: np.random.Generator | None):
        import torch

        n = len(cells.classes)
        lots = uniform(n) if rng is None else rng.random(n)
        own = np.floor(lots * n_teachers).astype(np.int64)
        self.parts = [*cells.sizes, cells.n_classes]
        # Each teacher's rows one after the other, in the order of the table.
        self.rows = self._with_bias(cells.places()[np.argsort(own, kind="stable")])
        self.starts = np.searchsorted(np.sort(own), np.arange(n_teachers + 1))
        first = torch.randn(n_teachers, sum(self.parts), _TEACHER_HIDDEN) / math.sqrt(len(self.parts))
        second = torch.randn(n_teachers, _TEACHER_HIDDEN) / math.sqrt(_TEACHER_HIDDEN)
        self.weights = np.zeros((n_teachers, (sum(self.parts) + 2) * _TEACHER_HIDDEN + 1), dtype=np.float32)
        self.weights[:, : first[0].numel()] = first.flatten(1).numpy()
        self.weights[:, -1 - _TEACHER_HIDDEN : -1] = second.numpy()
        # What AdamW remembers of the gradients and of their squares, and its steps so far.
        self.mean, self.square = np.zeros_like(self.weights), np.zeros_like(self.weights)
        self.steps = 0

    def learn(self, fake: torch.Tensor) -> None:
        """Train every teacher on its rows and on generated ones."""
        from oversafe.protect.deep._pategan_kernels import train

        train(
            self.rows,
            self.starts,
            self._places(fake),
            self.weights,
            self.mean,
            self.square,
            self.steps,
            _TEACHER_STEPS,
            _TEACHER_HIDDEN,
            _TEACHER_RATE,
            _TEACHER_DECAY,
        )
        self.steps += _TEACHER_STEPS

    def opinions(self, rows: torch.Tensor) -> NDArray[np.bool_]:
        """Return which rows each teacher holds for real."""
        from oversafe.protect.deep._pategan_kernels import holds_for_real

        return holds_for_real(self._places(rows), self.weights, _TEACHER_HIDDEN)

    def votes(self, rows: torch.Tensor) -> IntArray:
        """Return how many teachers hold each row for real."""
        return self.opinions(rows).sum(axis=0, dtype=np.int64)

    def _places(self, rows: torch.Tensor) -> IntArray:
        """Return where the ones of generated rows lie."""
        ends = np.cumsum(self.parts)
        found = [own.argmax(dim=1).numpy() for own in rows.split(self.parts, dim=1)]
        return self._with_bias(np.column_stack(found) + ends - self.parts)

    def _with_bias(self, places: IntArray) -> IntArray:
        """Return rows with one place more, which all rows have."""
        return np.ascontiguousarray(np.column_stack([places, np.full(len(places), sum(self.parts))]))
