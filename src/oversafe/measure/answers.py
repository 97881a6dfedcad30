"""How far two neighbours' noisy answers are apart, by the laws that mechanisms say their noise has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversafe.attack.game import seeded_copy
from oversafe.attack.statistics import as_frame
from oversafe.errors import InputError
from oversafe.privacy.answers import Choice, Gaussian, Laplace, Question, Sampled, Tape, Thresholded, recorded

FloatArray = NDArray[np.float64]
Losses = tuple[FloatArray, FloatArray]


def answer_losses(
    model: Any, table: Any, neighbour: Any, *, trials: int, transcripts: int, rng: np.random.Generator
) -> tuple[Losses, Losses]:
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
    real, ideal : tuple of two arrays
        The ratios under either table, and what noise that is exactly as claimed would give between neighbours that
        move every answer as far as was paid for.
    """
    real: list[Losses] = []
    ideal: list[Losses] = []
    for number in range(min(transcripts, trials)):
        n = trials // transcripts + (number < trials % transcripts)
        first, second, outside, most = _asked(model, table, neighbour, int(rng.integers(2**31)), number % 2)
        parts = [_losses(*asked, n, rng) for asked in zip(first, second, outside, strict=True)]
        real.append((sum((p for p, _ in parts), np.zeros(n)), sum((q for _, q in parts), np.zeros(n))))
        ideal.append(_ideal([q.law for q in first], most, _size(table) == _size(neighbour), n, rng))
    return _mixed(real, rng), _mixed(ideal, rng)


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
        raise InputError(
            "after the same answers the mechanism asks its two tables different questions, which tells them apart; "
            "make what it asks depend on noisy answers alone"
        )
    guarantee = getattr(fitted, "guarantee_", None)
    return (*asked, np.inf if guarantee is None else guarantee.epsilon)


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
    elif isinstance(law, Choice) and np.allclose(law.log_chances(first.truth), law.log_chances(second.truth)):
        return np.zeros(n), np.zeros(n)
    else:
        truths = first.truth, second.truth
        if _same(*truths):
            return np.zeros(n), np.zeros(n)
        drawn = [np.array([own.draw(own.truth, None) for _ in range(n)]) for own in sides]
    under_first, under_second = (law.log_ratio(answers, *truths) for answers in drawn)
    return under_first, under_second


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, np.ndarray):
        return np.array_equal(first, second)
    return bool(first.X.shape == second.X.shape and (first.X == second.X).all() and (first.codes == second.codes).all())


def _of_samples(first: Question, second: Question, outside: Question, n: int, rng: np.random.Generator) -> Losses:
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


def _ideal(laws: Sequence[Any], most: float, replaced: bool, n: int, rng: np.random.Generator) -> Losses:
    """Return the ratios that the claims allow at most: of a coin for a pure epsilon, of normal noise otherwise."""
    first, second = np.zeros(n), np.zeros(n)
    pure = [law.epsilon for law in laws]
    if all(epsilon is not None for epsilon in pure):
        # Together, as a mechanism may spend it on one unit; learners on rows of their own spend the same more than once.
        return tuple(sign * _coin(min(sum(pure), most), n, rng) for sign in (1, -1))  # type: ignore[return-value]
    for law in laws:
        if isinstance(law, Sampled):
            own = law.mu
            sides = [rng.normal(size=n) + at * (rng.random(n) < law.rate) for at in (own, -own if replaced else 0.0)]
            one, other = (
                _log_mixture(side, own, law.rate) - _log_mixture(side, -own if replaced else 0.0, law.rate)
                for side in sides
            )
        elif law.epsilon is not None:
            one, other = _coin(law.epsilon, n, rng), -_coin(law.epsilon, n, rng)
        else:
            one, other = (sign * law.mu**2 / 2 + law.mu * rng.normal(size=n) for sign in (1, -1))
        first, second = first + one, second + other
    return first, second


def _coin(epsilon: float, n: int, rng: np.random.Generator) -> FloatArray:
    """Return the ratios of randomised response, which any purely private mechanism is made from."""
    return np.where(rng.random(n) < 1 / (1 + np.exp(-epsilon)), epsilon, -epsilon)


def _log_mixture(x: FloatArray, place: float, rate: float) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.logaddexp(np.log1p(-rate), np.log(rate) + place * x - place**2 / 2)
