"""How much privacy a mechanism really gives: an empirical lower bound on epsilon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from oversafe._core.checks import check_choice, check_count
from oversafe._core.errors import InputError
from oversafe.privacy.guarantee import check_delta


@dataclass(frozen=True)
class EpsilonAudit:
    """An empirical lower bound on epsilon.

    Parameters
    ----------
    lower_bound : float
        With the stated confidence the mechanism is not (epsilon, delta)-DP for any smaller epsilon.
    confidence, delta : float
        What the bound holds at.
    counts : tuple of int
        How often the event happened on the table where it is likelier, and on the other.
    trials : int
        How often each was run to measure it.
    mu : float, optional
        Of an audit from inside, a lower bound on mu: normal noise on a value that moves by less than so many
        deviations hides more. It holds at the same confidence.
    ideal, ideal_mu : float, optional
        What ``lower_bound`` and ``mu`` come to, at the same number of trials, for noise that is exactly as claimed and
        neighbours that move every answer as far as was paid for.
    """

    lower_bound: float
    confidence: float
    delta: float
    counts: tuple[int, int]
    trials: int
    mu: float | None = None
    ideal: float | None = None
    ideal_mu: float | None = None


Distinguisher = Literal["linear", "forest"]
View = Literal["release", "answers"]
Bound = Callable[..., NDArray[np.float64]]


def audit_epsilon(
    run: Any,
    table: Any,
    neighbour: Any,
    *,
    trials: int = 10_000,
    delta: float = 0.0,
    confidence: float = 0.95,
    view: View = "release",
    transcripts: int = 4,
    times: int = 1,
    distinguisher: Distinguisher = "linear",
    vectorized: bool = False,
    n_jobs: int | None = None,
    random_state: int | None = None,
) -> EpsilonAudit:
    """Return a lower bound on the epsilon of a mechanism from its runs on two neighbouring tables.

    The runs are split: on the first part an event is chosen, on the second it is measured with Clopper-Pearson
    ends, so the bound holds at the stated confidence however the event was chosen. A bound above the claimed
    epsilon refutes the claim; one below proves nothing.

    Parameters
    ----------
    run : callable (table, rng) -> float or array of float, or a protector, or a classifier
        The mechanism. Of a protector (``fit_resample``, or ``fit`` and ``sample``) the released table is looked
        at: its class counts, the statistics of its columns, and the surroundings of the record in which the
        tables differ. Of a classifier (``fit`` and ``predict``), its coefficients and its confidence in that
        record. Both are copied for every run, with another ``random_state`` where they take one.
    table, neighbour
        Two neighbouring tables, the worse the better; see :func:`worst_case_neighbours`. For a protector or a
        classifier each is a pair (X, y).
    trials : int, default=10_000
        How often the mechanism is run on each of them.
    delta : float, default=0.0
        The claimed delta.
    confidence : float, default=0.95
        Of the bound.
    view : {"release", "answers"}, default="release"
        What the auditor sees: what is released, or all noisy answers that the mechanism makes it from. The second
        knows what noise was claimed and compares the likelihoods of the answers under the two tables, so that it comes
        near what the noise really gives, and half of the noise shows. It needs a mechanism of this package, or a
        function that uses :mod:`oversafe.privacy`; fit with ``n_jobs=None``.
    transcripts : int, default=4
        With ``view="answers"``, from how many runs the questions are taken; their answers are drawn afresh in each
        trial, by the mechanism's own noise. The samples, initial weights and other draws of a run are the same for both
        tables, but for whether the differing record is in a Poisson sample.
    times : int, default=1
        How many times as many rows as it learned a synthesizer releases, which anybody may ask it for. Above 1 the
        classes are counted, and in each class the rows that share a value, or two neighbouring ones, with the record in
        which the tables differ: for columns of categories.
    distinguisher : {"linear", "forest"}, default="linear"
        What reduces an array to one number: a linear discriminant, or a random forest, which needs more trials
        and sees more.
    vectorized : bool, default=False
        Whether ``run`` takes (table, rng, size) and returns ``size`` results at once, one per row.
    n_jobs : int, optional
        As in joblib.
    random_state : int, optional
        Makes the audit repeatable, but for the noise that ``view="answers"`` looks at, which is the real one.

    See Also
    --------
    audit_epsilon_one_run : For models that are too costly to train thousands of times.

    Examples
    --------
    >>> from oversafe.measure import audit_epsilon
    >>> def noisy_count(table, rng):
    ...     return len(table) + rng.laplace(scale=1.0)
    >>> audit = audit_epsilon(noisy_count, [1, 2, 3], [1, 2], trials=20_000, random_state=0)
    >>> 0.5 < audit.lower_bound <= 1.0
    True
    """
    if trials < 20:
        raise InputError(
            f"trials = {trials} was given; at least 20 are needed to choose and measure an event"
        )
    check_confidence(confidence)
    check_delta(delta)
    check_choice("distinguisher", distinguisher, get_args(Distinguisher))
    check_choice("view", view, get_args(View))
    if view == "answers":
        check_count("transcripts", transcripts, 1)
        rng = np.random.default_rng(random_state)
        return _audit_answers(run, table, neighbour, trials, transcripts, delta, confidence, rng)
    if not callable(run):
        from oversafe.measure.outputs import as_mechanism

        check_count("times", times, 1)
        run = as_mechanism(run, table, neighbour, times)
    rng = np.random.default_rng(random_state)
    first = _results(run, table, trials, vectorized, n_jobs, rng)
    second = _results(run, neighbour, trials, vectorized, n_jobs, rng)
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise InputError("the mechanism returned values that are not finite; return finite numbers")
    half = trials // 2
    if distinguisher == "linear" or first.shape[1] == 1:
        weights = _discriminant(first[:half], second[:half])
        a, b = first @ weights, second @ weights
    else:
        # What a forest says of the rows that it learned from is no guide to a threshold: it gets a part of
        # its own.
        learned = trials // 3
        judge = _forest(first[:learned], second[:learned], rng)
        a, b = judge(first[learned:]), judge(second[learned:])
        trials -= learned
        half = trials // 2
    lower, hits, measured = _measured(a, b, half, _bound, delta, confidence)
    return EpsilonAudit(max(0.0, lower), confidence, delta, hits, measured)


def _audit_answers(
    run: Any,
    table: Any,
    neighbour: Any,
    trials: int,
    transcripts: int,
    delta: float,
    confidence: float,
    rng: Any,
) -> EpsilonAudit:
    from oversafe.measure.answers import answer_losses

    real, ideal = answer_losses(run, table, neighbour, trials=trials, transcripts=transcripts, rng=rng)

    def bounds(losses: Any) -> tuple[float, float]:
        both = (
            _measured(losses[0], losses[1], trials // 2, own, delta, confidence)[0]
            for own in (_bound, _mu_bound)
        )
        lower, mu = (max(0.0, own) for own in both)
        return lower, mu

    _, hits, measured = _measured(real[0], real[1], trials // 2, _bound, delta, confidence)
    lower, mu = bounds(real)
    of_ideal, ideal_mu = np.mean([bounds(each) for each in ideal], axis=0).tolist()
    return EpsilonAudit(lower, confidence, delta, hits, measured, mu, of_ideal, ideal_mu)


def _measured(
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    half: int,
    bound: Bound,
    delta: float,
    confidence: float,
) -> tuple[float, tuple[int, int], int]:
    """Return a bound from an event that is chosen on the first part of the results and measured on the others."""
    # The claim is symmetric, so the event may be the likelier one under either table, at either end.
    best: tuple[float, int, float, float] | None = None
    for sign in (1.0, -1.0):
        for order, (p, q) in enumerate(((a, b), (b, a))):
            threshold, found = _best_threshold(sign * p[:half], sign * q[:half], bound, delta, confidence)
            if best is None or found > best[0]:
                best = found, order, sign, threshold
    assert best is not None
    _, order, sign, threshold = best
    p, q = ((a, b), (b, a))[order]
    hits = int(np.sum(sign * p[half:] >= threshold)), int(np.sum(sign * q[half:] >= threshold))
    measured = len(p) - half
    return float(bound(np.array(hits[0]), np.array(hits[1]), measured, delta, confidence)), hits, measured


def check_confidence(confidence: float) -> None:
    """Raise unless a confidence lies between 0 and 1."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence = {confidence} was given; it lies between 0 and 1, such as 0.95")


def _results(
    run: Callable[..., Any],
    table: Any,
    trials: int,
    vectorized: bool,
    n_jobs: int | None,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return the mechanism's results on a table, one per row."""
    if vectorized:
        results = _numbers(run(table, rng, trials))
        if results.ndim == 0 or len(results) != trials:
            raise InputError(
                f"the mechanism returned results of shape {results.shape}; {trials} rows were asked for"
            )
        return results.reshape(trials, -1)
    if n_jobs in (None, 1):
        return _numbers([np.ravel(run(table, rng)) for _ in range(trials)])
    from joblib import Parallel, delayed

    return _numbers(Parallel(n_jobs=n_jobs)(delayed(_one)(run, table, child) for child in rng.spawn(trials)))


def _numbers(results: Any) -> NDArray[np.float64]:
    try:
        return np.asarray(results, dtype=float)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"the mechanism's results are no numbers ({error}); return numbers, as many each time, such as 0 and 1 for "
            "two words"
        ) from error


def _one(run: Callable[..., Any], table: Any, rng: np.random.Generator) -> NDArray[np.float64]:
    return np.ravel(run(table, rng))


def _forest(
    first: NDArray[np.float64], second: NDArray[np.float64], rng: np.random.Generator
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(200, min_samples_leaf=5, random_state=int(rng.integers(2**31)))
    forest.fit(np.vstack([first, second]), np.repeat([1, 0], [len(first), len(second)]))

    def judge(rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return forest.predict_proba(rows)[:, 1]

    return judge


def _discriminant(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    if first.shape[1] == 1:
        return np.ones(1)
    apart = first.mean(axis=0) - second.mean(axis=0)
    covariance = np.cov(np.vstack([first - first.mean(axis=0), second - second.mean(axis=0)]).T)
    # A small ridge, so that a coordinate without any noise, which gives everything away, weighs most.
    ridge = 1e-9 * (np.trace(covariance) + float(apart @ apart)) + np.finfo(float).tiny
    return np.linalg.solve(covariance + ridge * np.eye(len(apart)), apart)


def _best_threshold(
    p: NDArray[np.float64], q: NDArray[np.float64], bound: Bound, delta: float, confidence: float
) -> tuple[float, float]:
    values = np.unique(np.concatenate([p, q]))
    if len(values) > 2000:
        values = np.quantile(values, np.linspace(0, 1, 2000))
    hits_p = len(p) - np.searchsorted(np.sort(p), values, side="left")
    hits_q = len(q) - np.searchsorted(np.sort(q), values, side="left")
    # Of so many events one looks good by chance; at this confidence none does.
    strict = 1 - (1 - confidence) / len(values)
    bounds = bound(hits_p, hits_q, len(p), delta, strict)
    at = int(np.argmax(bounds))
    return float(values[at]), float(bounds[at])


def _bound(
    hits_p: NDArray[np.int64], hits_q: NDArray[np.int64], trials: int, delta: float, confidence: float
) -> NDArray[np.float64]:
    low, high = _ends(hits_p, hits_q, trials, confidence)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(low > delta, np.log(np.maximum(low - delta, 1e-300) / high), -np.inf)


def _mu_bound(
    hits_p: NDArray[np.int64], hits_q: NDArray[np.int64], trials: int, delta: float, confidence: float
) -> NDArray[np.float64]:
    from scipy.special import ndtri

    low, high = _ends(hits_p, hits_q, trials, confidence)
    return np.where((low > 0) & (high < 1), ndtri(low) - ndtri(high), -np.inf)


def _ends(
    hits_p: NDArray[np.int64], hits_q: NDArray[np.int64], trials: int, confidence: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lower end of the likelier event's chance and the upper end of the other's."""
    # Half of the error probability for each end.
    tail = (1 - confidence) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(hits_p > 0, beta.ppf(tail, hits_p, trials - hits_p + 1), 0.0)
        high = np.where(hits_q < trials, beta.ppf(1 - tail, hits_q + 1, trials - hits_q), 1.0)
    return low, high
