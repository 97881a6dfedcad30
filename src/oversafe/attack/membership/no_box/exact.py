"""An exact test: would these scores tell members from others as well if somebody else had been chosen?

If a release does not depend on who was chosen among the people of a class, every choice of as many was as likely, and
the statistics of the true one are a draw like those of any other. Their rank among random choices is an exact p-value,
whatever the scores and however they depend on each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy
from scipy.stats import beta, rankdata

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# The shares of a class that are looked at from above, and all rows that share the highest value.
TIES = -1.0
TAILS = (TIES, 0.01, 0.02, 0.035, 0.06, 0.1)
# Choices that are drawn at once.
_CHUNK = 500
# Sums of the same numbers in another order differ by less.
_ROUNDED = 10
_TINY = 1e-12


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
        Which share of the highest, 0 for the order of all; -1 for all rows that share the highest value.
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
    surprise : array
        How surprising each is, in deviations.
    affected : array
        The share of the members that stand out, by each: lower ends that hold together.
    """

    p_value: float
    statistics: tuple[Statistic, ...]
    surprise: FloatArray
    affected: FloatArray

    @property
    def surest(self) -> int:
        """The place of the statistic with the highest lower end."""
        return int(np.argmax(self.affected))

    def most(self, label: int = -1) -> float:
        """Return the highest lower end of the statistics of a class, or of all classes together."""
        own = [
            bound for what, bound in zip(self.statistics, self.affected, strict=True) if what.label == label
        ]
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
    chosen = np.zeros(int(unit_of.max()) + 1, dtype=bool)
    chosen[unit_of[member]] = True
    places = percentiles(scores, classes)
    shapes = [(name, "meta" if own else "single", 0.0) for name, own in zip(names, meta, strict=True)]
    shapes += [(name, "tails", tail) for tail in tails for name in names]
    groups = [_Group(np.ones(len(member), dtype=bool), member, -1)]
    groups += [_Group(classes == label, member, int(label)) for label in np.unique(classes)]
    # Each row's part in the order of all, and in the tails; all statistics are sums over the rows of a choice.
    parts = np.empty((len(groups) - 1, len(chosen), len(shapes)))
    tops: list[FloatArray] = []
    for number, group in enumerate(groups[1:]):
        own = group.rows
        inside = [_in_tail(places[own], tail * group.n) for tail in tails]
        columns = [places[own] - 0.5, *inside]
        tops.append(np.hstack([np.zeros(len(names)), *(those.sum(axis=0) for those in inside)]))
        parts[number] = 0.0
        np.add.at(parts[number], unit_of[own], np.hstack(columns))
    apart = (
        [i for i, own in enumerate(groups[1:]) if least <= own.m <= own.n - least] if len(groups) > 2 else []
    )
    sums = np.round(
        _drawn(chosen, strata_of(unit_of, classes), parts, apart, n_choices, random_state), _ROUNDED
    )
    used = [groups[0], *(groups[1 + i] for i in apart)]
    top = np.concatenate([np.sum(tops, axis=0), *(tops[i] for i in apart)])
    statistics = tuple(Statistic(*shape, own.label) for own in used for shape in shapes)
    surprise = np.empty_like(sums)
    for number, what in enumerate(statistics):
        group = used[number // len(shapes)]
        surprise[:, number] = (
            _deviance(sums[:, number], top[number], group.m, group.n)
            if what.tail
            else sums[:, number] / max(sums[1:, number].std(), _TINY)
        )
    # Rows of one unit go together, which makes surprises more frequent.
    surprise = np.round(surprise / np.maximum(surprise[1:].std(axis=0), 1.0), _ROUNDED)
    p_value = _of_families(surprise, [s.family for s in statistics])
    limit = float(np.quantile(surprise[1:].max(axis=1), 1 - alpha))
    affected = np.zeros(len(statistics))
    for number in np.flatnonzero(surprise[0] > limit).tolist():
        what, group = statistics[number], used[number // len(shapes)]
        if what.tail:
            scale = surprise[0, number] / _deviance(sums[:1, number], top[number], group.m, group.n)[0]
            left = scale * _without_hits(sums[0, number], top[number], group.m, group.n)
        else:
            own = places[group.rows, names.index(what.score)]
            left = surprise[0, number] * _without_highest(own, member[group.rows])
        affected[number] = int((np.minimum.accumulate(left) > limit).sum()) / group.m
    return ExactTest(p_value, statistics, surprise[0], affected)


class _Group:
    """The rows of a class, or all."""

    def __init__(self, rows: BoolArray, member: BoolArray, label: int) -> None:
        self.rows, self.label = rows, label
        self.n, self.m = int(rows.sum()), int((rows & member).sum())


def _deviance(hits: FloatArray, top: float, m: int, n: int) -> FloatArray:
    """Return the signed root of the deviance of the number of members among the highest: how surprising it is."""
    share = m / n
    hits = np.clip(hits, 0.0, top)
    with np.errstate(divide="ignore", invalid="ignore"):
        deviance = xlogy(hits, hits / (top * share)) + xlogy(top - hits, (top - hits) / (top * (1 - share)))
    return np.asarray(np.sign(hits - top * share) * np.sqrt(2 * np.maximum(np.nan_to_num(deviance), 0.0)))


def _without_hits(hits: float, top: float, m: int, n: int) -> FloatArray:
    """Return the same without one, two, ... of the members among the highest."""
    fewer = range(1, int(hits) + 1)
    return np.array([float(_deviance(np.array([hits - r]), top - r, m - r, n - r)[0]) for r in fewer])


def _without_highest(places: FloatArray, member: BoolArray) -> FloatArray:
    """Return which part of the surprise is left without the one, two, ... highest members."""
    n, m = len(places), int(member.sum())
    own = np.sort(places[member] - 0.5)[::-1]
    fewer = np.arange(1, m)
    removed = np.cumsum(own)[: m - 1]
    # What is left, less what as many random ones of those that are left would have.
    excess = own.sum() - removed + (m - fewer) / (n - fewer) * removed
    spread = np.sqrt((m - fewer) * n / ((n - fewer) * m))
    return np.asarray(excess / (own.sum() * spread))


def _in_tail(places: FloatArray, count: float) -> FloatArray:
    """Return which rows are among the highest so many; those that share the last places share them evenly."""
    if count < 0:
        return np.asarray(places == places.max(axis=0), dtype=float)
    result = np.zeros_like(places)
    for column in range(places.shape[1]):
        _, which, counts = np.unique(-places[:, column], return_inverse=True, return_counts=True)
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
    parts: FloatArray,
    apart: Sequence[int],
    n_choices: int,
    random_state: int,
) -> FloatArray:
    """Return the sums of each choice: all classes together, then each apart."""
    width = parts.shape[2]
    used = [(label, np.flatnonzero(part.any(axis=1))) for label, part in enumerate(parts)]
    total = np.zeros((n_choices + 1, width * (1 + len(apart))))
    for rows, picks in choices(chosen, strata, n_choices, random_state):
        for label, own in used:
            sums = picks[:, own] @ parts[label][own]
            total[rows, :width] += sums
            if label in apart:
                begin = width * (1 + apart.index(label))
                total[rows, begin : begin + width] = sums
    return total


def _of_families(surprise: FloatArray, families: Sequence[str]) -> float:
    """Return the p-value of the smallest p-value of three families, each that of its most surprising statistic."""
    names = np.array(families)
    highest = np.column_stack([surprise[:, names == name].max(axis=1) for name in dict.fromkeys(families)])
    least = p_values(highest).min(axis=1)
    return float((least <= least[0]).mean())


def p_values(values: FloatArray) -> FloatArray:
    """Return for each choice and statistic the share of the choices where it is as high."""
    result = np.empty_like(values)
    for column in range(values.shape[1]):
        ordered = np.sort(values[:, column])
        result[:, column] = 1 - np.searchsorted(ordered, values[:, column], "left") / len(values)
    return result


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
        inside = places > 1 - tail if tail > 0 else places == places.max(axis=0)
        hits, misses = inside[member].sum(axis=0), inside[~member].sum(axis=0)
        low = np.where(hits > 0, beta.ppf(level, hits, m - hits + 1), 0.0)
        high = np.where(misses < k, beta.ppf(1 - level, misses + 1, k - misses), 1.0)
        with np.errstate(divide="ignore"):
            found = max(found, float(np.log(low / high).max()))
    return found
