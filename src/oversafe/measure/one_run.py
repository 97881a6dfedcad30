"""A lower bound on epsilon from a single run, for models that are too costly to train thousands of times."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binom

from oversafe._core.errors import InputError
from oversafe.attack.membership.game import is_protector, released, seeded_copy
from oversafe.attack.membership.statistics import Encoder, as_frame
from oversafe.measure.epsilon import EpsilonAudit, check_confidence
from oversafe.measure.outputs import Matrix, Pair, confidences
from oversafe.privacy.guarantee import check_delta

# Shares of the canaries to guess on; the bound pays for trying all of them.
_SHARES = (1.0, 0.5, 0.2, 0.1, 0.05)


def audit_epsilon_one_run(
    run: Any,
    canaries: int | Pair,
    table: Pair | None = None,
    *,
    n_guesses: int | Sequence[int] | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    random_state: int | None = None,
) -> EpsilonAudit:
    """Return a lower bound on epsilon from one run on a table into which many canaries were put at random.

    Each canary is put in with probability 1/2, the mechanism is run once, and for the canaries with the
    highest and the lowest scores it is guessed whether they were in. The number of right guesses bounds epsilon
    by Theorem 5.2 of [1]_. The bound is looser than that of :func:`audit_epsilon`, but needs one run.

    Parameters
    ----------
    run : callable (included, rng) -> array of float, or a protector, or a classifier
        Runs the mechanism on a table with the canaries for which ``included`` is true, and returns a score per
        canary, higher where it seems to be in. Of a protector the score is the nearness of its released rows of
        the canary's class, of a classifier its confidence in the canary's class.
    canaries : int or tuple (X, y)
        How many there are; for a protector or a classifier, the records themselves, as unusual as the domain
        allows and unlike each other.
    table : tuple (X, y), optional
        For a protector or a classifier, the records that are always in.
    n_guesses : int or sequence of int, optional
        How many canaries to guess on, half of them the highest and half the lowest. With several, or by default
        (all, 50, 20, 10 and 5 % of them), the best bound is returned, at a confidence that pays for the choice.
    delta : float, default=0.0
        The claimed delta.
    confidence : float, default=0.95
        Of the bound.
    random_state : int, optional
        Makes the audit repeatable.

    Returns
    -------
    EpsilonAudit
        ``counts`` holds the right guesses and all guesses, ``trials`` the number of canaries. The bound is for
        "add-remove" neighbours; for a mechanism that replaces the canaries left out by others, for "replace-one".

    References
    ----------
    .. [1] Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training Run", NeurIPS 2023.

    Examples
    --------
    >>> from oversafe.measure import audit_epsilon_one_run
    >>> def noisy_bits(included, rng):
    ...     return included + rng.laplace(scale=1 / 2.0, size=len(included))
    >>> audit = audit_epsilon_one_run(noisy_bits, 10_000, random_state=0)
    >>> 1.0 < audit.lower_bound <= 2.0
    True
    """
    check_confidence(confidence)
    check_delta(delta)
    if not callable(run):
        if table is None or not isinstance(canaries, tuple):
            raise InputError(
                "for a protector or a classifier give the canaries and the table as pairs (X, y)"
            )
        run, n_canaries = _as_game(run, canaries, table), len(canaries[1])
    else:
        if isinstance(canaries, tuple):
            raise InputError("a function was given with records as canaries; give their number instead")
        n_canaries = canaries
    if n_canaries < 2:
        raise InputError(f"{n_canaries} canaries were given; give at least 2, better hundreds")
    if n_guesses is None:
        wanted = sorted({max(2, int(share * n_canaries)) for share in _SHARES})
    else:
        wanted = [n_guesses] if isinstance(n_guesses, int) else list(n_guesses)
    for guesses in wanted:
        if not 2 <= guesses <= n_canaries:
            raise InputError(
                f"n_guesses = {guesses} was given; it lies between 2 and {n_canaries}, the canaries"
            )
    rng = np.random.default_rng(random_state)
    included = rng.random(n_canaries) < 0.5
    scores = np.asarray(run(included, rng), dtype=float)
    if scores.shape != (n_canaries,) or np.isnan(scores).any():
        raise InputError(f"scores of shape {scores.shape} were returned; give one number per canary")
    # Ties are broken at random, so that the order of the canaries says nothing.
    order = np.lexsort([rng.random(n_canaries), scores])
    error = (1 - confidence) / len(wanted)
    best: EpsilonAudit | None = None
    for guesses in wanted:
        lowest, highest = guesses // 2, guesses - guesses // 2
        correct = int((~included[order[:lowest]]).sum() + included[order[n_canaries - highest :]].sum())
        bound = _largest_refuted(n_canaries, guesses, correct, delta, error)
        if best is None or bound > best.lower_bound:
            best = EpsilonAudit(bound, confidence, delta, (correct, guesses), n_canaries)
    assert best is not None
    return best


def chance_of_guesses(n_canaries: int, n_guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """Return the largest chance of so many right guesses against an (epsilon, delta)-DP mechanism."""
    share = 1 / (1 + math.exp(-epsilon))
    chance = float(binom.sf(correct - 1, n_guesses, share))
    if delta > 0 and correct > 0:
        fewer = np.arange(1, correct + 1)
        within = np.cumsum(binom.pmf(correct - fewer, n_guesses, share))
        chance += 2 * n_canaries * delta * float((within / fewer).max())
    return min(chance, 1.0)


def _largest_refuted(n_canaries: int, n_guesses: int, correct: int, delta: float, error: float) -> float:
    """Return the largest epsilon under which so many right guesses have at most the given chance."""
    low, high = 0.0, 1.0
    if chance_of_guesses(n_canaries, n_guesses, correct, low, delta) > error:
        return 0.0
    while chance_of_guesses(n_canaries, n_guesses, correct, high, delta) <= error:
        low, high = high, 2 * high
        if high > 64:
            break
    for _ in range(50):
        middle = (low + high) / 2
        if chance_of_guesses(n_canaries, n_guesses, correct, middle, delta) <= error:
            low = middle
        else:
            high = middle
    return low


def _as_game(
    model: Any, canaries: Pair, table: Pair
) -> Callable[[NDArray[np.bool_], np.random.Generator], Matrix]:
    extra, base = as_frame(canaries[0]), as_frame(table[0])
    if list(extra.columns) != list(base.columns):
        raise InputError("the canaries and the table have different columns; give both the same")
    extra_labels, base_labels = (np.asarray(pair[1]).ravel() for pair in (canaries, table))
    keeps_frame = isinstance(table[0], pd.DataFrame)
    encoder = Encoder(pd.concat([base, extra], ignore_index=True)) if is_protector(model) else None

    def shaped(frame: pd.DataFrame) -> Any:
        return frame if keeps_frame else frame.to_numpy()

    def run(included: NDArray[np.bool_], rng: np.random.Generator) -> Matrix:
        # At random places, so that the order of the rows says nothing either.
        order = rng.permutation(len(base) + int(included.sum()))
        X = pd.concat([base, extra[included]], ignore_index=True).iloc[order].reset_index(drop=True)
        y = np.concatenate([base_labels, extra_labels[included]])[order]
        fresh = seeded_copy(model, int(rng.integers(2**31)))
        if encoder is None:
            fitted = fresh.fit(shaped(X), y)
            given = confidences(fitted, shaped(extra))
            if given.shape[1] == 1:
                given = np.column_stack([-given, given])
            places = {label: at for at, label in enumerate(fitted.classes_)}
            return np.array(
                [
                    given[i, places[label]] if label in places else -np.inf
                    for i, label in enumerate(extra_labels)
                ]
            )
        made, labels = released(fresh, shaped(X), y)
        return _nearness(encoder, as_frame(made), np.asarray(labels).ravel(), extra, extra_labels)

    return run


def _nearness(
    encoder: Encoder, made: pd.DataFrame, labels: NDArray[Any], records: pd.DataFrame, classes: NDArray[Any]
) -> Matrix:
    """Return minus the distance from each record to the nearest made row of its class."""
    from sklearn.neighbors import NearestNeighbors

    rows, asked = encoder.matrix(made), encoder.matrix(records)
    deviation = asked.std(axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    nearness = np.full(len(asked), -np.inf)
    for label in pd.unique(classes):
        chosen = labels == label
        if chosen.any():
            index = NearestNeighbors(n_neighbors=1).fit(rows[chosen] / scale)
            nearness[classes == label] = -index.kneighbors(asked[classes == label] / scale)[0][:, 0]
    return nearness
