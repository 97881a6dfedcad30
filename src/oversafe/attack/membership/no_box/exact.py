"""An exact test: would these scores tell members from others as well if somebody else had been chosen?

If a release does not depend on who was chosen among the people of a class, every choice of as many was as likely, and the
statistics of the true one are a draw like those of any other. Their rank among random choices is an exact p-value,
whatever the scores and however they depend on each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, rankdata

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# The shares of a class that are looked at from above.
TAILS = (0.01, 0.02, 0.035, 0.06, 0.1)
# Choices that are drawn at once.
_CHUNK = 500
# Sums of the same numbers in another order differ by less.
_ROUNDED = 10


@dataclass(frozen=True)
class Statistic:
    """One way to tell members from others.

    Parameters
    ----------
    score : str
        By which score.
    family : {"meta", "single", "tails"}
        Its family: the order of all by a score made of the others or by one of them, or the highest few.
    tail : float
        Which share of the highest, 0 for the order of all.
    label : int
        In which class; -1 for all classes together.
    """

    score: str
    family: str
    tail: float
    label: int


@dataclass(frozen=True)
class ExactTest:
    """What came out.

    Parameters
    ----------
    p_value : float
        The share of the choices whose statistics are as extreme as the true one's, itself among them.
    statistics : tuple of Statistic
        What was looked at.
    advantage : array
        How much likelier, by each, a member is picked than somebody else: true positive less false positive rate, or
        twice the area under the curve less 1.
    lower : array
        Lower ends of these that hold together.
    """

    p_value: float
    statistics: tuple[Statistic, ...]
    advantage: FloatArray
    lower: FloatArray

    @property
    def surest(self) -> int:
        """The place of the statistic with the highest lower end."""
        return int(np.argmax(self.lower))

    def most(self, label: int = -1) -> float:
        """Return the highest lower end of the statistics of a class, or of all classes together."""
        own = [bound for what, bound in zip(self.statistics, self.lower, strict=True) if what.label == label]
        return max(own, default=0.0)


def percentiles(scores: FloatArray, classes: IntArray) -> FloatArray:
    """Return each score's place among those of its class, from 0 to 1; equal scores share theirs."""
    result = np.empty_like(scores)
    for label in np.unique(classes):
        own = classes == label
        result[own] = (rankdata(scores[own], axis=0) - 0.5) / own.sum()
    return result


def exact_test(
    scores: FloatArray,
    names: Sequence[str],
    meta: Sequence[bool],
    member: BoolArray,
    classes: IntArray,
    units: IntArray,
    *,
    alpha: float,
    n_choices: int = 9_999,
    tails: Sequence[float] = TAILS,
    least: int = 10,
    random_state: int = 0,
) -> ExactTest:
    """Return whether scores tell members from others of the same class.

    Parameters
    ----------
    scores : array (n, s)
        Of each row, made without a look at who is a member; higher is likelier one.
    names : sequence of str
        Of the scores.
    meta : sequence of bool
        Which of them are made of the others.
    member : array of bool (n,)
        Who is a member; the same for all rows of a unit.
    classes : array of int (n,)
        The class of each row.
    units : array of int (n,)
        Whose row each is: units are exchanged as a whole.
    alpha : float
        The error rate of the lower ends together.
    n_choices : int
        How many choices are drawn.
    tails : sequence of float
        Which shares of the highest are looked at.
    least : int
        A class with fewer members or fewer others than this is looked at with the others alone.
    random_state : int
        For the choices.
    """
    _, unit_of = np.unique(units, return_inverse=True)
    n_units = int(unit_of.max()) + 1
    chosen = np.zeros(n_units, dtype=bool)
    chosen[unit_of[member]] = True
    places = percentiles(scores, classes)
    # Sums over a unit's rows; all statistics are sums over the chosen units of these.
    parts: list[FloatArray] = []
    offsets: list[FloatArray] = []
    labels = np.unique(classes)
    shapes = [
        (name, "meta" if is_meta else "single", 0.0) for name, is_meta in zip(names, meta, strict=True)
    ]
    shapes += [(name, "tails", tail) for tail in tails for name in names]
    sizes = []
    for label in labels:
        own = classes == label
        n, m = int(own.sum()), int((own & member).sum())
        sizes.append((n, m))
        k = n - m
        if not m or not k:
            parts.append(np.zeros((n_units, len(shapes))))
            offsets.append(np.zeros(len(shapes)))
            continue
        columns = [2 * n / (m * k) * (places[own] - 0.5)]
        constant = [np.zeros(len(names))]
        for tail in tails:
            columns.append(n / (m * k) * _in_tail(places[own], tail * n))
            constant.append(np.full(len(names), tail * n / k))
        each = np.zeros((n_units, len(shapes)))
        np.add.at(each, unit_of[own], np.hstack(columns))
        parts.append(each)
        offsets.append(np.concatenate(constant))
    members = sum(m for (n, m) in sizes if 0 < m < n)
    apart = [i for i, (n, m) in enumerate(sizes) if least <= m <= n - least]
    if len(apart) == 1 and len(labels) == 1:
        apart = []
    weights = np.array([m / max(members, 1) if 0 < m < n else 0.0 for n, m in sizes])
    drawn = _drawn(chosen, strata_of(unit_of, classes), parts, weights, apart, n_choices, random_state)
    shift = np.concatenate(
        [sum((w * o for w, o in zip(weights, offsets, strict=True)), np.zeros(len(shapes))), *(offsets[i] for i in apart)]
    )
    values = np.round(drawn - shift, _ROUNDED)
    statistics = tuple(
        Statistic(name, family, tail, int(label))
        for label in (-1, *(labels[i] for i in apart))
        for name, family, tail in shapes
    )
    p_value = _min_p(values, [s.family for s in statistics])
    return ExactTest(p_value, statistics, values[0], _lower(values, statistics, alpha))


def _in_tail(places: FloatArray, count: float) -> FloatArray:
    """Return which rows are among the highest so many; those that share the last places share them evenly."""
    result = np.zeros_like(places)
    for column in range(places.shape[1]):
        kinds, which, counts = np.unique(-places[:, column], return_inverse=True, return_counts=True)
        above = np.cumsum(counts) - counts
        result[:, column] = np.clip((count - above) / counts, 0.0, 1.0)[which]
    return result


def strata_of(unit_of: IntArray, classes: IntArray) -> list[IntArray]:
    """Return the units of each set of classes: only people of the same classes are exchanged."""
    of_class = np.unique(np.column_stack([unit_of, classes]), axis=0)
    names: dict[int, tuple[int, ...]] = {}
    for unit, label in of_class.tolist():
        names[unit] = (*names.get(unit, ()), label)
    groups: dict[tuple[int, ...], list[int]] = {}
    for unit, name in names.items():
        groups.setdefault(name, []).append(unit)
    return [np.array(own) for own in groups.values()]


def choices(
    chosen: BoolArray, strata: Sequence[IntArray], n_choices: int, random_state: int
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield the true choice of units, first, and random ones: as many of each stratum, some rows at once."""
    rng = np.random.default_rng(random_state)
    for begin in range(0, n_choices + 1, _CHUNK):
        end = min(begin + _CHUNK, n_choices + 1)
        picks = np.empty((end - begin, len(chosen)))
        for own in strata:
            picks[:, own] = rng.permuted(np.tile(chosen[own], (end - begin, 1)), axis=1)
        if begin == 0:
            picks[0] = chosen
        yield slice(begin, end), picks


def _drawn(
    chosen: BoolArray,
    strata: Sequence[IntArray],
    parts: Sequence[FloatArray],
    weights: FloatArray,
    apart: Sequence[int],
    n_choices: int,
    random_state: int,
) -> FloatArray:
    """Return the sums of each choice: all classes together, then each apart."""
    width = parts[0].shape[1]
    used = [(label, np.flatnonzero(part.any(axis=1))) for label, part in enumerate(parts) if part.any()]
    total = np.zeros((n_choices + 1, width * (1 + len(apart))))
    for rows, picks in choices(chosen, strata, n_choices, random_state):
        for label, own in used:
            sums = picks[:, own] @ parts[label][own]
            total[rows, :width] += weights[label] * sums
            if label in apart:
                begin = width * (1 + apart.index(label))
                total[rows, begin : begin + width] = sums
    return total


def _min_p(values: FloatArray, families: Sequence[str]) -> float:
    """Return the p-value of the smallest p-value of three families, each that of its smallest."""
    p_values = p_values(values)
    names = np.array(families)
    smallest = np.column_stack([p_values[:, names == name].min(axis=1) for name in dict.fromkeys(families)])
    of_families = p_values(-smallest).min(axis=1)
    return float((of_families <= of_families[0]).mean())


def p_values(values: FloatArray) -> FloatArray:
    """Return for each choice and statistic the share of the choices where it is as high."""
    result = np.empty_like(values)
    for column in range(values.shape[1]):
        ordered = np.sort(values[:, column])
        result[:, column] = 1 - np.searchsorted(ordered, values[:, column], "left") / len(values)
    return result


def _lower(values: FloatArray, statistics: Sequence[Statistic], alpha: float) -> FloatArray:
    """Return lower ends that hold together: as far below the true values as the highest of a random choice lies above 0."""
    spread = np.maximum(values[1:].std(axis=0), 1e-12)
    highest = np.quantile((values[1:] / spread).max(axis=1), 1 - alpha)
    return np.asarray(values[0] - highest * spread)


def rate_at(score: FloatArray, member: BoolArray, false_positives: float) -> float:
    """Return the share of the members above the score that so many of the others exceed."""
    others = np.sort(score[~member])
    above = int(np.floor(false_positives * len(others)))
    limit = others[len(others) - 1 - above]
    return float((score[member] > limit).mean())


def epsilon_at_least(
    scores: FloatArray, member: BoolArray, classes: IntArray, *, alpha: float, tails: Sequence[float] = TAILS
) -> float:
    """Return a lower end of epsilon: the log of the ratio of both rates, for the surest of all tails."""
    places = percentiles(scores, classes)
    m, k = int(member.sum()), int((~member).sum())
    level = alpha / (2 * scores.shape[1] * len(tails))
    found = 0.0
    for tail in tails:
        inside = places > 1 - tail
        hits, misses = inside[member].sum(axis=0), inside[~member].sum(axis=0)
        low = np.where(hits > 0, beta.ppf(level, hits, m - hits + 1), 0.0)
        high = np.where(misses < k, beta.ppf(1 - level, misses + 1, k - misses), 1.0)
        with np.errstate(divide="ignore"):
            found = max(found, float(np.log(low / high).max()))
    return found
