"""How far two neighbours' noisy answers are apart, by the laws that mechanisms say their noise has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversafe._core.errors import InputError
from oversafe.attack.membership.game import seeded_copy
from oversafe.attack.membership.statistics import as_frame
from oversafe.privacy.answers import (
    TOLD_APART,
    Choice,
    Gaussian,
    Laplace,
    Question,
    Sampled,
    Tape,
    Thresholded,
    recorded,
)

FloatArray = NDArray[np.float64]
Losses = tuple[FloatArray, FloatArray]
_DIGITS = 6
# OpenDP makes some 2,000 choices in a second, one by one. In the trials beyond so many of a transcript an auditor does
# not look at them, which makes a bound lower by a little.
_LOOKS = 4000
# The mean of so many ideal audits is what a real one is held against.
_IDEALS = 5


def answer_losses(
    model: Any, table: Any, neighbour: Any, *, trials: int, transcripts: int, rng: np.random.Generator
) -> tuple[Losses, list[Losses]]:
    """Return the log-likelihood ratios of a mechanism's answers under each of two neighbours, and ideal ones.

    Of each transcript, a run with real noise, both neighbours' true answers are found, and fresh answers to the same
    questions are drawn from the mechanism's own noise.

    Parameters
    ----------
    model : object or callable
        As in :func:`oversafe.measure.audit_epsilon`.
    table, neighbour
        The two tables.
    trials : int
        How many ratios there are under each table.
    transcripts : int
        How many runs the questions come from.
    rng : Generator
        Of everything but the noise.

    Returns
    -------
    real : tuple of two arrays
        The ratios under either table.
    ideal : list of the same
        What noise that is exactly as claimed would give, several times, between neighbours that move every answer as
        far as was paid for.
    """
    real: list[Losses] = []
    ideal: list[list[Losses]] = [[] for _ in range(_IDEALS)]
    for number in range(min(transcripts, trials)):
        n = trials // transcripts + (number < trials % transcripts)
        first, second, outside, most = _asked(model, table, neighbour, int(rng.integers(2**31)), number % 2)
        parts = [_losses(*asked, n, rng) for asked in zip(first, second, outside, strict=True)]
        real.append((sum((p for p, _ in parts), np.zeros(n)), sum((q for _, q in parts), np.zeros(n))))
        replaced = _size(table) == _size(neighbour)
        for each in ideal:
            each.append(_ideal(first, second, most, replaced, n, rng))
    return _mixed(real, rng), [_mixed(each, rng) for each in ideal]


def _mixed(parts: Sequence[Losses], rng: np.random.Generator) -> Losses:
    """Return all parts' ratios in random order, so that each half has some of all."""
    first, second = (rng.permutation(np.concatenate([part[side] for part in parts])) for side in (0, 1))
    return first, second


# --------------------------------------------------------------------------------------------- the questions


def _asked(
    model: Any, table: Any, neighbour: Any, seed: int, start: int
) -> tuple[list[Question], list[Question], list[Question], float]:
    """Return the same questions asked of both tables, and of the rows that they share; and the epsilon of all."""
    tables = (table, neighbour)

    def run(which: int, tape: Tape) -> Any:
        with recorded(tape):
            if callable(model):
                return model(tables[which], np.random.default_rng(seed))
            return seeded_copy(model, seed).fit(*tables[which])

    tape = Tape(seed)
    fitted = run(start, tape)
    samples = any(isinstance(question.law, Sampled) for question in tape.questions)
    row = _differing_row(table, neighbour) if samples else None
    sides = [Tape(seed, tape.answers, row) for _ in tables]
    for which, own in enumerate(sides):
        run(which, own)
    outside = sides[0]
    if samples:
        outside = Tape(seed, tape.answers, row, included=False)
        run(int(_size(table) < _size(neighbour)), outside)
    asked = [own.questions for own in (*sides, outside)]
    kinds = [[(type(q.law), q.what) for q in own] for own in asked]
    if not kinds[0] == kinds[1] == kinds[2]:
        raise InputError(TOLD_APART)
    guarantee = getattr(fitted, "guarantee_", None)
    return asked[0], asked[1], asked[2], np.inf if guarantee is None else guarantee.epsilon


def _size(table: Any) -> int:
    return len(table[1] if isinstance(table, tuple) else table)


def _differing_row(table: Any, neighbour: Any) -> int:
    """Return the place of the first row in which two tables differ; in one with a row more at the end, that one."""
    rows = [
        np.column_stack([as_frame(X).astype(object).to_numpy(), np.asarray(y, dtype=object)])
        for X, y in (table, neighbour)
    ]
    shared = min(map(len, rows))
    places = np.flatnonzero((rows[0][:shared] != rows[1][:shared]).any(axis=1))
    return int(places[0]) if len(places) else shared


# ------------------------------------------------------------------------------------------------ the ratios


def _losses(first: Question, second: Question, outside: Question, n: int, rng: np.random.Generator) -> Losses:
    """Return the ratios of n answers to a question under either table."""
    law, sides = first.law, (first, second)
    if isinstance(law, Sampled):
        return _of_samples(first, second, outside, n, rng)
    if isinstance(law, Laplace | Gaussian):
        # Each number has noise of its own, so only those that differ tell anything.
        mine, theirs = (own.truth.ravel() for own in sides)
        if isinstance(law, Thresholded):
            longest = max(len(mine), len(theirs))
            mine, theirs = (np.pad(own, (0, longest - len(own))) for own in (mine, theirs))
        moved = np.flatnonzero(mine != theirs)
        truths = mine[moved], theirs[moved]
        drawn = [
            own.draw(np.tile(truth, n), None).reshape(n, -1) for own, truth in zip(sides, truths, strict=True)
        ]
    elif _same(first.truth, second.truth):
        return np.zeros(n), np.zeros(n)
    elif isinstance(law, Choice):
        truths = first.truth, second.truth
        drawn = [np.array([own.draw(own.truth, None) for _ in range(min(n, _LOOKS))]) for own in sides]
        rest = np.zeros(n - len(drawn[0]))
        found = [np.append(np.round(law.log_ratio(answers, *truths), _DIGITS), rest) for answers in drawn]
        return rng.permutation(found[0]), rng.permutation(found[1])
    else:
        truths = tuple(q.truth.merged() if hasattr(q.truth, "merged") else q.truth for q in sides)
        drawn = [
            np.array([own.draw(truth, None) for _ in range(n)])
            for own, truth in zip(sides, truths, strict=True)
        ]
    # Without the last digits, which tell of the arithmetic alone.
    under_first, under_second = (np.round(law.log_ratio(answers, *truths), _DIGITS) for answers in drawn)
    return under_first, under_second


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, np.ndarray):
        return np.array_equal(first, second)
    return bool(
        first.X.shape == second.X.shape
        and (first.X == second.X).all()
        and (first.codes == second.codes).all()
    )


def _of_samples(
    first: Question, second: Question, outside: Question, n: int, rng: np.random.Generator
) -> Losses:
    """Return the ratios of noisy sums over samples that the differing row is in with some chance.

    The noise is the same in all directions, so all that matters lies in the plane of the two rows' vectors.
    """
    law = first.law
    mine, theirs = (np.asarray(own.truth - outside.truth, dtype=np.float64) for own in (first, second))
    length = float(np.linalg.norm(mine))
    along = float(mine @ theirs) / length if length else float(np.linalg.norm(theirs))
    aside = np.sqrt(max(float(theirs @ theirs) - along**2, 0.0))
    places = np.rint([[length, 0.0], [along, aside]]).astype(np.int64)

    def log_density(answers: Any, place: Any) -> FloatArray:
        def near(truth: Any) -> FloatArray:
            return -(((answers - truth) / law.deviation) ** 2).sum(axis=1) / 2

        with np.errstate(divide="ignore"):
            return np.logaddexp(np.log1p(-law.rate) + near(0 * place), np.log(law.rate) + near(place))

    found = []
    for own, place in zip((first, second), places, strict=True):
        truth = (rng.random(n) < law.rate)[:, None] * place
        answers = own.draw(truth.ravel(), None).reshape(n, 2)
        found.append(log_density(answers, places[0]) - log_density(answers, places[1]))
    return found[0], found[1]


# ------------------------------------------------------------------------------------------- what was claimed


def _ideal(
    first: Sequence[Question],
    second: Sequence[Question],
    most: float,
    replaced: bool,
    n: int,
    rng: np.random.Generator,
) -> Losses:
    """Return the ratios of noise that is as claimed, between truths as far apart as was paid for."""
    claimed = [question.law.epsilon for question in first]
    # Learners on rows of their own each spend the whole epsilon, and one record is one learner's.
    parallel = None not in claimed and sum(claimed) > most * (1 + 1e-6)
    total = np.zeros(n), np.zeros(n)
    for mine, theirs in zip(first, second, strict=True):
        law = mine.law
        if parallel and _same(mine.truth, theirs.truth):
            continue
        if isinstance(law, Sampled):
            other = -law.mu if replaced else 0.0
            at = [place * (rng.random(n) < law.rate) + rng.normal(size=n) for place in (law.mu, other)]
            one, two = (_log_mixture(x, law.mu, law.rate) - _log_mixture(x, other, law.rate) for x in at)
        elif isinstance(law, Laplace) and not _same(mine.truth, theirs.truth):
            moved = np.abs(mine.truth - theirs.truth).ravel()
            moved = np.rint(moved[moved > 0] * (law.sensitivity / moved.sum()))
            stop = -np.expm1(-1 / law.scale)
            noise = rng.geometric(stop, (2, n, len(moved))) - rng.geometric(stop, (2, n, len(moved)))
            one, two = (np.abs(noise + moved) - np.abs(noise)).sum(axis=2) / law.scale * [[1], [-1]]
        elif law.epsilon is not None:
            # The ratios of randomised response, of which any purely private mechanism can be made.
            side = 1 / (1 + np.exp(-law.epsilon))
            one, two = (sign * np.where(rng.random(n) < side, law.epsilon, -law.epsilon) for sign in (1, -1))
        else:
            one, two = (sign * law.mu**2 / 2 + law.mu * rng.normal(size=n) for sign in (1, -1))
        total = total[0] + one, total[1] + two
    return total


def _log_mixture(x: FloatArray, place: float, rate: float) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.logaddexp(np.log1p(-rate), np.log(rate) + place * x - place**2 / 2)
