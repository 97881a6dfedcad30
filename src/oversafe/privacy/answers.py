"""Noisy answers and their laws: what an audit from inside sees, and how it asks the same again.

Every mechanism draws its noise through :func:`answered`. Within :func:`recorded`, and only there, what was asked and
answered is written down, or the answers come from an earlier run, so that both of two neighbours' true answers are
known for the same noisy ones. Noise is then always drawn without a seed; a seed makes everything else repeatable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from oversafe._core.errors import InputError
from oversafe.privacy.noise import poisson_sample

FloatArray = NDArray[np.float64]
# Of a truth and a source of noise (None for the operating system's): the answer.
Draw = Callable[[Any, Any], Any]

RECORDED = (
    "its noisy answers were recorded or given, for an audit; such a release must not leave the building"
)


TOLD_APART = (
    "after the same answers the mechanism asks its two tables different questions, which tells them apart; make what "
    "it asks depend on noisy answers and public facts alone"
)


class Law(Protocol):
    """How a noisy answer is distributed around its truth.

    ``epsilon`` or ``mu`` is what is claimed of it: pure differential privacy, or that it hides as much as normal noise
    on a value that moves by ``mu`` deviations.
    """

    @property
    def epsilon(self) -> float | None:
        """What is claimed to be spent, if the law is purely private."""

    @property
    def mu(self) -> float:
        """What is claimed, in deviations of normal noise."""
        ...

    def log_ratio(self, answers: Any, first: Any, second: Any) -> FloatArray:
        """Return for each answer how much likelier one truth makes it than another, as a logarithm."""
        ...


@dataclass(frozen=True)
class Laplace:
    """Discrete Laplace noise on each number: P(x) ~ exp(-|x| / scale); ``sensitivity`` in L1."""

    scale: float
    sensitivity: float

    @property
    def epsilon(self) -> float:
        """What is claimed to be spent, if the law is purely private."""
        return self.sensitivity / self.scale

    @property
    def mu(self) -> float:
        """What is claimed, in deviations of normal noise."""
        return self.epsilon

    def log_ratio(self, answers: Any, first: Any, second: Any) -> FloatArray:
        """Return how much likelier one truth makes each answer than another."""
        # Differences first: whole numbers may be large.
        return np.asarray((abs(answers - second) - abs(answers - first)).sum(axis=1) / self.scale)


@dataclass(frozen=True)
class Gaussian:
    """Discrete Gaussian noise on each number: P(x) ~ exp(-x^2 / 2 deviation^2); ``sensitivity`` in L2."""

    deviation: float
    sensitivity: float
    epsilon = None

    @property
    def mu(self) -> float:
        """What is claimed, in deviations of normal noise."""
        return self.sensitivity / self.deviation

    def log_ratio(self, answers: Any, first: Any, second: Any) -> FloatArray:
        """Return how much likelier one truth makes each answer than another."""
        # ((a - second)^2 - (a - first)^2) / 2 with the squares taken out.
        return (
            np.asarray(((answers - (first + second) / 2) * (first - second)).sum(axis=1)) / self.deviation**2
        )


@dataclass(frozen=True)
class Thresholded(Gaussian):
    """The same on counts of values that were found; what stays below ``threshold``, or was not found, is 0."""

    threshold: int = 0

    def log_ratio(self, answers: Any, first: Any, second: Any) -> FloatArray:
        """Return how much likelier one truth makes each answer than another."""
        return (self._log_chance(answers, first) - self._log_chance(answers, second)).sum(axis=1)

    def _log_chance(self, answers: Any, truth: Any) -> FloatArray:
        from scipy.special import log_ndtr

        # The share below the threshold by the continuous law: the discrete one's is the same to 1e-9 from deviation 1.
        below = log_ndtr((self.threshold - 0.5 - truth) / self.deviation)
        above = -(((answers - truth) / self.deviation) ** 2) / 2 - np.log(self.deviation * np.sqrt(2 * np.pi))
        known = np.where(answers == 0, below, above)
        return np.where(truth == 0, np.where(answers == 0, 0.0, -np.inf), known)


@dataclass(frozen=True)
class Sampled(Gaussian):
    """The same on a sum over a Poisson sample of the rows; ``sensitivity`` is the longest vector of one row."""

    rate: float = 1.0


@dataclass(frozen=True)
class Choice:
    """The position of the largest of some scores with noise: exponential, or Gumbel's where ``rho`` pays.

    One unit moves a score by at most ``sensitivity``, and all of them one way if ``monotonic``. Scores are whole steps
    here; in those that were given the most was said to be ``declared``.
    """

    scale: float
    sensitivity: float
    declared: float
    pure: bool
    monotonic: bool = False

    @property
    def epsilon(self) -> float | None:
        """What is claimed to be spent, if the law is purely private."""
        return self.mu * 2 if self.pure else None

    @property
    def mu(self) -> float:
        """What is claimed, in deviations of normal noise."""
        # Of the exponential mechanism rho is epsilon^2 / 8, that is (epsilon / 2)^2 / 2.
        return self.sensitivity / self.scale / (2 if self.monotonic else 1)

    def log_ratio(self, answers: Any, first: Any, second: Any) -> FloatArray:
        """Return how much likelier one truth makes each answer than another."""
        return (self.log_chances(first) - self.log_chances(second))[answers]

    def log_chances(self, scores: Any) -> FloatArray:
        """Return the logarithm of each position's chance."""
        behind = np.asarray(scores - scores.max(), dtype=np.float64) / self.scale
        if not self.pure:
            return behind - np.log(np.exp(behind).sum())
        # Permute and flip (McKenna and Sheldon 2020): the chance of i is w_i times the integral over u from 0 to 1 of
        # prod (1 - u w_j) over the others, a polynomial, which so many nodes integrate exactly.
        nodes, weights = np.polynomial.legendre.leggauss(len(behind) // 2 + 1)
        factors = 1 - (nodes[:, None] + 1) / 2 * np.exp(behind)
        others = np.exp(np.log(factors).sum(axis=1)[:, None] - np.log(factors))
        return behind + np.log(weights / 2 @ others)


@dataclass
class Question:
    """What was asked: of what, paid how, by which law, with the truth and the answer; ``draw`` answers afresh.

    What was paid is an epsilon, or a rho where the law has no epsilon, and None where only the whole has a price.
    """

    what: str
    paid: float | None
    law: Any
    truth: Any
    answer: Any
    draw: Draw


@dataclass
class Tape:
    """The questions of one run.

    Parameters
    ----------
    seed : int
        Of the samples of rows that are drawn meanwhile.
    script : sequence, optional
        Answers to give in place of noisy ones.
    row, included : int and bool, optional
        A row that is in every Poisson sample, or in none.
    """

    seed: int = 0
    script: Sequence[Any] | None = None
    row: int | None = None
    included: bool = True
    next_question: tuple[str, float | None] = ("", None)
    questions: list[Question] = field(default_factory=list)
    _samples: int = 0

    @property
    def answers(self) -> list[Any]:
        """What was answered, as a script for another run."""
        return [question.answer for question in self.questions]

    def answer(self, law: Law, truth: Any, draw: Draw) -> Any:
        """Write a question down and return its answer."""
        number = len(self.questions)
        if self.script is None:
            answer = draw(truth, None)
        elif number < len(self.script):
            answer = self.script[number]
            if isinstance(law, Thresholded):
                # The differing record's value may be one that the other table has not, which comes last.
                answer = (
                    np.resize(np.append(answer, 0), len(truth))
                    if len(answer) < len(truth)
                    else answer[: len(truth)]
                )
            elif not _fits(answer, truth):
                raise InputError(TOLD_APART)
        else:
            raise AssertionError(f"{number} answers are known, and more was asked")
        self.questions.append(Question(*self.next_question, law, _own(truth), answer, draw))
        return _own(answer)

    def sample(self, n: int, rate: float) -> NDArray[np.int64]:
        """Return a Poisson sample of rows that is the same for a table with one row more at its end."""
        self._samples += 1
        rows = poisson_sample(n, rate, np.random.default_rng([self.seed, self._samples]))
        if self.row is None:
            return rows
        rows = rows[rows != self.row]
        return np.sort(np.append(rows, self.row)) if self.included and self.row < n else rows


def _fits(answer: Any, truth: Any) -> bool:
    """Return whether an answer may be one to this truth: as many numbers, or a place among the scores."""
    if not isinstance(truth, np.ndarray):
        return True
    if np.shape(answer) == truth.shape:
        return True
    return np.ndim(answer) == 0 and truth.ndim == 1 and 0 <= answer < len(truth)


def _own(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


_TAPE: ContextVar[Tape | None] = ContextVar("_TAPE", default=None)


@contextmanager
def recorded(tape: Tape | None = None) -> Iterator[Tape]:
    """Record what mechanisms are asked and answer in this thread; what is fitted meanwhile promises nothing."""
    tape = Tape() if tape is None else tape
    token = _TAPE.set(tape)
    try:
        yield tape
    finally:
        _TAPE.reset(token)


def recording() -> bool:
    """Whether answers are being recorded."""
    return _TAPE.get() is not None


def about(what: str, paid: float | None = None) -> None:
    """Say what the next question is about, and what was paid for it."""
    if (tape := _TAPE.get()) is not None:
        tape.next_question = what, paid


def answered(law: Law, truth: Any, draw: Draw, random_state: Any) -> Any:
    """Return a truth with noise: what ``draw`` makes of it."""
    if (tape := _TAPE.get()) is not None:
        return tape.answer(law, truth, draw)
    return draw(truth, None if random_state is None else np.random.default_rng(random_state))


def sampled(n: int, rate: float, rng: np.random.Generator | None) -> NDArray[np.int64]:
    """Return a Poisson sample of n rows."""
    return poisson_sample(n, rate, rng) if (tape := _TAPE.get()) is None else tape.sample(n, rate)
