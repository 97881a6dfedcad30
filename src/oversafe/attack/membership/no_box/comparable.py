"""Pool and release made comparable, column by column: ranges, other units, other codes, and what cannot be compared.

All of it is decided from the pool, in which nobody knows who is a member, and the release.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types
from scipy.optimize import linear_sum_assignment
from scipy.stats import rankdata

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Distributions that are farther apart, in Kolmogorov's and Smirnov's distance, are not those of the same unit.
_APART = 0.25
# What chance adds to that distance in few rows: its quantile at 1e-4 is 2.2 over the root of their number.
_CHANCE = 2.2
# A column is recoded if so many of the released values are none of the pool's.
_UNKNOWN = 0.5
# More values than this are names or texts: they match or do not.
_MOST_CODES = 200
_QUANTILES = np.linspace(0.02, 0.98, 49)

AS_IS, RESCALED, RECODED, RANKS, RANGES, UNCHECKED = (
    "as it is",
    "rescaled",
    "recoded (guessed)",
    "by rank only",
    "ranges",
    "unchecked",
)


@dataclass(frozen=True)
class Comparable:
    """A pool and a release in numbers.

    Parameters
    ----------
    numbers : array (n, p)
        The pool's numbers, in units in which two rows are 1 apart on average; NaN is missing.
    low, high : array (r, p)
        The release's, or the ends of its ranges.
    codes : array (n, q)
        The pool's categories.
    released_codes : array (r, q)
        The release's, which may be sets of the pool's.
    matched_codes : array (r, q)
        The pool's category that each is, -1 where it is none or several.
    costs, starts, widths : array
        What a category differs from another by; see ``_kernels.nearest``.
    own_costs : tuple of array
        The same within the pool.
    classes, released_classes : array
        The class of each row.
    units : array (n,)
        Whose row each is.
    report : dict of str to str
        How each column was compared.
    """

    numbers: FloatArray
    low: FloatArray
    high: FloatArray
    codes: IntArray
    released_codes: IntArray
    matched_codes: IntArray
    costs: FloatArray
    starts: IntArray
    widths: IntArray
    own_costs: tuple[FloatArray, IntArray, IntArray]
    classes: IntArray
    released_classes: IntArray
    units: IntArray
    report: dict[str, str]

    def in_ranks(self) -> Comparable:
        """Return the same with numbers by their rank among both tables."""
        numbers, low, high = np.empty_like(self.numbers), np.empty_like(self.low), np.empty_like(self.high)
        for j in range(self.numbers.shape[1]):
            ends = [self.low[:, j]] if self.high is self.low else [self.low[:, j], self.high[:, j]]
            both = np.concatenate([self.numbers[:, j], *ends])
            places = _places(both)
            numbers[:, j] = places[: len(numbers)]
            low[:, j] = places[len(numbers) : len(numbers) + len(low)]
            high[:, j] = places[-len(high) :]
        return replace(self, numbers=numbers, low=low, high=low if self.high is self.low else high)


def comparable(
    pool: pd.DataFrame, release: pd.DataFrame, classes: IntArray, released_classes: IntArray, units: IntArray
) -> Comparable:
    """Return a pool and a release in numbers that can be compared.

    Parameters
    ----------
    pool, release : DataFrame
        The features, of which those that both have are compared.
    classes, released_classes : array of int
        The class of each row.
    units : array of int
        Whose row each row of the pool is.
    """
    numbers: dict[str, FloatArray] = {}
    ends: dict[str, tuple[FloatArray, FloatArray]] = {}
    texts: list[str] = []
    report: dict[str, str] = {}
    for name in pool.columns:
        if name not in release.columns:
            continue
        own = _as_numbers(pool[name])
        if own is None or not np.isfinite(own).any():
            texts.append(name)
            continue
        other = _as_numbers(release[name])
        if other is not None:
            other, report[name] = _aligned(own, other, classes, released_classes)
            numbers[name], ends[name] = own, (other, other)
        elif (found := _ranges(release[name])) is not None:
            numbers[name], ends[name], report[name] = own, found, RANGES
        else:
            texts.append(name)
    coded = [_coded(pool[name], release[name], name) for name in texts]
    lone = [i for i, each in enumerate(coded) if each.unknown > _UNKNOWN]
    profiles = _Profiles(numbers, {name: end[0] for name, end in ends.items()}, classes, released_classes)
    for i in lone:
        coded[i] = coded[i].recoded(profiles)
    for each in coded:
        report[each.name] = each.how
    coded = [each for each in coded if each.how != UNCHECKED]
    used = [name for name in numbers if report[name] != UNCHECKED]
    scaled = [_scaled(numbers[name], *ends[name]) for name in used]
    n, r = len(pool), len(release)
    low = _stacked([each[1] for each in scaled], r)
    plain = all(report[name] != RANGES for name in used)
    costs = [each.costs() for each in coded]
    within = [1.0 - np.eye(each.n_codes) for each in coded]
    return Comparable(
        _stacked([each[0] for each in scaled], n),
        low,
        low if plain else _stacked([each[2] for each in scaled], r),
        _stacked([each.codes for each in coded], n).astype(np.int64),
        _stacked([each.released for each in coded], r).astype(np.int64),
        _stacked([each.matched() for each in coded], r).astype(np.int64),
        *_flat(costs),
        _flat(within),
        classes,
        released_classes,
        units,
        report,
    )


def _stacked(columns: list[NDArray], n: int) -> FloatArray:
    return np.ascontiguousarray(np.column_stack([np.zeros((n, 0)), *columns]), dtype=float)


def _flat(tables: list[FloatArray]) -> tuple[FloatArray, IntArray, IntArray]:
    widths = np.array([table.shape[1] for table in tables], dtype=np.int64)
    starts = np.cumsum([0, *(table.size for table in tables)])[:-1].astype(np.int64)
    return np.concatenate([np.zeros(0), *(table.ravel() for table in tables)]), starts, widths


def _places(values: FloatArray) -> FloatArray:
    """Return the ranks of values, from 0 to 3: any two are 1 apart on average."""
    result = np.full(len(values), np.nan)
    present = ~np.isnan(values)
    if present.any():
        result[present] = 3 * rankdata(values[present]) / present.sum()
    return result


def _as_numbers(values: pd.Series) -> FloatArray | None:
    """Return numbers or dates as floats, None if they are neither."""
    if types.is_bool_dtype(values.dtype):
        return None
    if types.is_datetime64_any_dtype(values.dtype):
        stamps = values.dt.tz_convert("UTC").dt.tz_localize(None) if values.dt.tz is not None else values
        days = stamps.to_numpy("datetime64[us]")
        return np.where(np.isnat(days), np.nan, days.astype(np.int64) / 86_400e6)
    if types.is_any_real_numeric_dtype(values.dtype):
        found = values.to_numpy(dtype=float, na_value=np.nan)
        return np.where(np.isfinite(found), found, np.nan)
    return None


def _scaled(own: FloatArray, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return numbers in units of the mean difference between two rows of the pool."""
    present = np.sort(own[~np.isnan(own)])
    n = len(present)
    mean = 2 * float((present * (2 * np.arange(n) - n + 1)).sum()) / max(n * (n - 1), 1)
    unit = mean if mean > 0 else 1.0
    return own / unit, low / unit, high / unit


# ------------------------------------------------------------------------------------------- numbers in other units


def _aligned(
    own: FloatArray, other: FloatArray, classes: IntArray, released: IntArray
) -> tuple[FloatArray, str]:
    """Return released numbers in the unit of the pool, and how they were brought into it."""
    if not np.isfinite(other).any():
        return other, UNCHECKED
    if _distance(own, other, classes, released) <= 0:
        return other, AS_IS
    best, least = other, np.inf
    for sign in (1, -1):
        moved = _refined(own, *_moved(own, sign * other, classes, released))
        apart = _distance(own, moved, classes, released)
        if apart < least:
            best, least = moved, apart
    if least <= 0:
        return best, RESCALED
    # Any increasing function keeps the order.
    present = np.isfinite(other)
    share = (rankdata(other[present]) - 0.5) / present.sum()
    by_rank = np.full(len(other), np.nan)
    by_rank[present] = np.quantile(own[np.isfinite(own)], share)
    return by_rank, RANKS


def _distance(own: FloatArray, other: FloatArray, classes: IntArray, released: IntArray) -> float:
    """Return by how much the distributions are farther apart, on average over the classes, than those of one unit."""
    total, rows = 0.0, 0
    for label in np.unique(classes):
        a = np.sort(own[(classes == label) & np.isfinite(own)])
        b = np.sort(other[(released == label) & np.isfinite(other)])
        if not len(a) or not len(b):
            continue
        at = np.concatenate([a, b])
        apart = np.abs(
            np.searchsorted(a, at, "right") / len(a) - np.searchsorted(b, at, "right") / len(b)
        ).max()
        chance = _CHANCE * np.sqrt(1 / len(a) + 1 / len(b))
        total += len(a) * (float(apart) - max(_APART, chance))
        rows += len(a)
    return total / rows if rows else 0.0


def _moved(
    own: FloatArray, other: FloatArray, classes: IntArray, released: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return numbers moved and stretched so that their quantiles within the classes are those of the pool."""
    x, y = [], []
    for label in np.unique(classes):
        a = own[(classes == label) & np.isfinite(own)]
        b = other[(released == label) & np.isfinite(other)]
        if len(a) and len(b):
            y.append(np.quantile(a, _QUANTILES))
            x.append(np.quantile(b, _QUANTILES))
    return other, _line(np.concatenate(x), np.concatenate(y)) if x else np.array([1.0, 0.0])


def _line(x: FloatArray, y: FloatArray) -> FloatArray:
    spread = np.ptp(x)
    if spread == 0:
        return np.array([1.0, float(np.mean(y) - np.mean(x))])
    return np.polyfit(x, y, 1)


def _refined(own: FloatArray, other: FloatArray, line: FloatArray) -> FloatArray:
    """Return numbers moved so that they fall on the values that the pool has."""
    levels = np.unique(own[np.isfinite(own)])
    kinds = np.unique(other[np.isfinite(other)])
    for _ in range(10):
        at = np.polyval(line, kinds)
        right = np.clip(np.searchsorted(levels, at), 1, max(len(levels) - 1, 1))
        if len(levels) < 2:
            break
        nearest = np.where(at - levels[right - 1] < levels[right] - at, levels[right - 1], levels[right])
        off = np.abs(nearest - at)
        close = off <= np.median(off)
        if close.sum() < 2 or np.ptp(kinds[close]) == 0:
            break
        better = np.polyfit(kinds[close], nearest[close], 1)
        if np.allclose(better, line, rtol=1e-12, atol=1e-12):
            break
        line = better
    return np.asarray(np.polyval(line, other))


# ------------------------------------------------------------------------------------------------------- ranges

_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_BETWEEN = re.compile(rf"^[\[\(]?\s*({_NUMBER})\s*(?:to|or|,|;|-|\u2013|\.\.)\s*({_NUMBER})\s*[\]\)]?$")
_BELOW = re.compile(rf"^(?:<|<=|\u2264|under|below|up to)\s*({_NUMBER})$")
_ABOVE = re.compile(rf"^(?:(?:>|>=|\u2265|over|above|from)\s*({_NUMBER})|({_NUMBER})\s*\+)$")
_ONE = re.compile(rf"^({_NUMBER})$")
_ANY = frozenset({"any", "*", "all", "[*]"})


def _ranges(values: pd.Series) -> tuple[FloatArray, FloatArray] | None:
    """Return texts as the ends of ranges of numbers; None if some are none."""
    ends = {text: _range(text) for text in pd.unique(values.dropna().astype(str))}
    if not ends or any(own is None for own in ends.values()):
        return None
    pairs = np.array(
        [
            ends[text] if known else (np.nan, np.nan)
            for text, known in zip(values.astype(str), values.notna(), strict=True)
        ],
        dtype=float,
    )
    return pairs[:, 0].copy(), pairs[:, 1].copy()


def _range(text: str) -> tuple[float, float] | None:
    text = text.strip().lower()
    if text in _ANY:
        return -np.inf, np.inf
    if found := _BETWEEN.match(text):
        low, high = float(found[1]), float(found[2])
        return (low, high) if low <= high else None
    if found := _BELOW.match(text):
        return -np.inf, float(found[1])
    if found := _ABOVE.match(text):
        return float(found[1] or found[2]), np.inf
    if found := _ONE.match(text):
        return float(found[1]), float(found[1])
    return None


# --------------------------------------------------------------------------------------------------- categories


@dataclass(frozen=True)
class _Coded:
    """A column of categories: what each released one may be in the pool."""

    name: str
    codes: IntArray
    n_codes: int
    released: IntArray
    sets: tuple[frozenset[int], ...]
    how: str = AS_IS

    @property
    def unknown(self) -> float:
        """The share of the released rows whose category the pool does not have."""
        empty = np.array([not own for own in self.sets])
        return float(empty[self.released].mean()) if len(self.released) else 0.0

    def costs(self) -> FloatArray:
        """Return what each released category differs from each of the pool by."""
        table = np.ones((len(self.sets), self.n_codes))
        for number, own in enumerate(self.sets):
            table[number, list(own)] = 0.0
        return table

    def matched(self) -> IntArray:
        """Return the pool's category that each released one is, -1 where it is none or several."""
        one = np.array([next(iter(own)) if len(own) == 1 else -1 for own in self.sets])
        return one[self.released]

    def recoded(self, profiles: _Profiles) -> _Coded:
        """Return the same with a guess which category is which, by who has it."""
        if max(self.n_codes, len(self.sets)) > _MOST_CODES:
            return replace(self, how=UNCHECKED)
        own = profiles.of(self.codes, self.n_codes, released=False)
        other = profiles.of(self.released, len(self.sets), released=True)
        apart = np.abs(own[None] - other[:, None]).sum(axis=2)
        rows, columns = linear_sum_assignment(apart)
        sets = [frozenset[int]()] * len(self.sets)
        for row, column in zip(rows, columns, strict=True):
            sets[row] = frozenset({int(column)})
        return replace(self, sets=tuple(sets), how=RECODED)


def _coded(pool: pd.Series, release: pd.Series, name: str) -> _Coded:
    own, other = _texts(pool), _texts(release)
    kinds = {text: number for number, text in enumerate(dict.fromkeys(own))}
    codes = np.array([kinds[text] for text in own], dtype=np.int64)
    released, texts = pd.factorize(np.array(other, dtype=object))
    sets = tuple(_members(text, kinds) for text in texts)
    return _Coded(name, codes, len(kinds), released.astype(np.int64), sets)


def _texts(values: pd.Series) -> list[str]:
    from oversafe.data.rows.values import value_keys

    keys = value_keys(values)
    return ["" if missing else str(key) for key, missing in zip(keys, keys.isna(), strict=True)]


def _members(text: str, kinds: dict[str, int]) -> frozenset[int]:
    """Return the pool's categories that a released one stands for."""
    if text in kinds:
        return frozenset({kinds[text]})
    if text.strip().lower() in _ANY:
        return frozenset(kinds.values())
    for between in (" or ", ", ", ",", "|", ";", "/"):
        parts = [part.strip() for part in text.split(between)]
        if len(parts) > 1 and all(part in kinds for part in parts):
            return frozenset(kinds[part] for part in parts)
    if text.endswith("*") and (stem := text.rstrip("*")):
        return frozenset(number for kind, number in kinds.items() if kind.startswith(stem))
    return frozenset()


class _Profiles:
    """Who has a category: their classes, and where they stand in the columns of numbers."""

    def __init__(
        self,
        numbers: dict[str, FloatArray],
        other: dict[str, FloatArray],
        classes: IntArray,
        released: IntArray,
    ) -> None:
        labels = np.unique(np.concatenate([classes, released]))
        self._rows = [
            np.column_stack(
                [*(rows == label for label in labels), *self._places(columns.values(), len(rows))]
            )
            for rows, columns in ((classes, numbers), (released, other))
        ]

    @staticmethod
    def _places(columns: Iterable[FloatArray], n: int) -> list[FloatArray]:
        return [
            np.nan_to_num(_places(np.where(np.isfinite(own), own, np.nan)), nan=1.5) / 3 for own in columns
        ] or [np.zeros(n)]

    def of(self, codes: IntArray, n_codes: int, *, released: bool) -> FloatArray:
        """Return for each category how frequent it is and the means of its rows."""
        rows = self._rows[int(released)]
        counts = np.bincount(codes, minlength=n_codes)
        sums = np.zeros((n_codes, rows.shape[1]))
        np.add.at(sums, codes, rows)
        return np.column_stack([counts / max(len(codes), 1), sums / np.maximum(counts, 1)[:, None]])
