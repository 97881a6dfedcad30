"""What each row of a table was made with, once the seed is known: which draw, from which record, with which number.

imbalanced-learn's samplers read their stream so: SMOTE, BorderlineSMOTE, KMeansSMOTE (each cluster anew) and SMOTENC
draw for n rows n whole numbers below records times neighbors, which name record and neighbor, and then n doubles.
ADASYN draws whole numbers below the neighbors and then doubles; its records come in order. SVMSMOTE does what SMOTE
does twice, with the same seed, and the second time goes half a double beyond the record.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oversafe.attack.seed.search import (
    FloatArray,
    IntArray,
    Layout,
    SeedMatch,
    candidates_of,
    doubles_of,
    log_bound,
    words_of,
)
from oversafe.attack.seed.shares import Shares

BoolArray = NDArray[np.bool_]

# Shares that match more doubles than this by chance do not say which draw they are.
_CLEAR = 1e-3
# Neighbors that are tried.
NEIGHBORS = (5, 3, 1, 2, 4, 6, 7, 8, 9, 10, 15, 20)
# What is wrong costs as much as so many that are right.
_WRONG = 2.0
# Rows in order have so many of their draws in order.
_IN_ORDER = 0.99
# If so many numbers of records are likely, the rows do not tell which it is.
_MOST_SIZES = 3_000
# The doubles of so many rows are found where all ends are of the class: .93 to 1 by SMOTE, .10 to .30 by
# BorderlineSMOTE-2, which shortens the way to records of other classes (measured on the development sets).
_MOST = 0.6
# Draws that two rows have in common, as a share: chance gives none.
_TWICE = 0.05


@dataclass(frozen=True)
class Draws:
    """The draws of rows whose shares are known.

    Parameters
    ----------
    of : array (n,)
        Which of the shares.
    word : array (n,)
        The word at which the double of each begins.
    base, other : array (n,)
        The record that the row was made from, and the neighbor (numbers of the shares' records).
    beyond : array of bool (n,)
        Whether the row lies beyond its record, as SVMSMOTE's do.
    chance : array (n,)
        The probability that the match is chance.
    """

    of: IntArray
    word: IntArray
    base: IntArray
    other: IntArray
    beyond: BoolArray
    chance: FloatArray


@dataclass(frozen=True)
class Origin:
    """How a table was made, as far as its seed shows.

    Parameters
    ----------
    sampler : str
        Which sampler draws so.
    layout : Layout or None
        Records, neighbors and real rows in front, where they are known.
    n_made : int
        How many rows were made, 0 where it is not known.
    in_order : bool or None
        Whether the rows stand in the order in which they were made.
    """

    sampler: str
    layout: Layout | None = None
    n_made: int = 0
    in_order: bool | None = None


def draws_of(match: SeedMatch, shares: Shares, n_rows: int) -> Draws:
    """Return which double of the seed's stream each share is, for those that are one.

    Parameters
    ----------
    match : SeedMatch
        The seed.
    shares : Shares
        The shares.
    n_rows : int
        How many rows the table has.
    """
    begin = max(0, match.part - 3 * n_rows)
    doubles = doubles_of(words_of(match.seed, match.part + 4 * n_rows + 2_000))[begin:]
    order = np.argsort(doubles, kind="stable")
    ranked = doubles[order]
    low, high = candidates_of(shares.low, shares.high)
    first, last = np.searchsorted(ranked, low, "left"), np.searchsorted(ranked, high, "right")
    chance = ((high - low).sum(axis=0) + 4 * 2.0**-53) * len(doubles)
    clear = np.flatnonzero((chance <= _CLEAR) & ((last - first).sum(axis=0) == 1))
    kind = (last - first)[:, clear].argmax(axis=0)
    word = begin + order[first[kind, clear]]
    # All doubles of a table begin at even words, or all at odd ones.
    odd = word % 2
    keep = odd == (odd.mean() > 0.5) if len(odd) else np.zeros(0, dtype=bool)
    clear, kind, word = clear[keep], kind[keep], word[keep]
    ends, side = shares.ends[clear], kind % 2
    rows = np.arange(len(clear))
    return Draws(clear, word, ends[rows, side], ends[rows, 1 - side], kind >= 2, chance[clear])


def origin_of(match: SeedMatch, shares: Shares, draws: Draws, n_rows: int, level: float) -> Origin:
    """Return which sampler draws so, from how many records with how many neighbors, and in which order the rows are.

    Parameters
    ----------
    match, shares, draws
        The seed, the shares, and what they are of its stream.
    n_rows : int
        How many rows the table has.
    level : float
        How improbable the agreement of the records must be under a layout that is wrong.
    """
    if len(draws.of) < 2:
        return Origin("SMOTE or a variant")
    if draws.beyond.sum() > max(2, _CLEAR * len(draws.of)):
        return Origin("SVMSMOTE")
    if len(np.unique(draws.word)) < (1 - _TWICE) * len(draws.word):
        return Origin("KMeansSMOTE")
    words = words_of(match.seed, int(draws.word.max(initial=0)) + 2)
    sampler, best, n_tried = "SMOTE", None, 0
    for k, sizes in _sizes(draws, n_rows):
        for n_base in sizes.tolist():
            for n_made, drawn, begin in _made(words, n_base * k, draws, n_rows):
                n_tried += 1
                score, log_p = _agreement(drawn[(draws.word - begin) // 2] // k, draws, n_base)
                if best is None or score > best[0]:
                    best = score, log_p, n_base, k, n_made, begin
    if best is None or best[1] + np.log(n_tried) > np.log(level):
        if (adasyn := _adasyn(words, draws, n_rows, level)) is not None:
            return adasyn
        return Origin("SMOTE or a variant", in_order=_order(draws, shares)[0])
    _, _, n_base, k, n_made, begin = best
    if len(draws.of) < _MOST * len(shares):
        sampler = "BorderlineSMOTE-2"
    elif len(np.unique(np.concatenate([draws.base, draws.other]))) > n_base:
        sampler = "BorderlineSMOTE"
    in_order, first = _order(draws, shares, begin)
    layout = Layout(n_base, k, first if in_order else n_rows - n_made)
    return Origin(sampler, layout, n_made, in_order)


def _sizes(draws: Draws, n_rows: int) -> list[tuple[int, IntArray]]:
    """Return how many records there may be for each number of neighbors, by how many were seen."""
    seen, m = len(np.unique(draws.base)), len(draws.of)
    # Of n records m draws show n (1 - exp(-m / n)).
    grid = np.arange(max(1, int(0.9 * seen)), max(4 * n_rows, 4 * seen, 20))
    shown = grid * -np.expm1(-m / grid)
    spread = 4 * np.sqrt(np.maximum(seen, 1)) + 0.05 * seen
    likely = grid[np.abs(shown - seen) <= spread]
    likely = likely if len(likely) <= _MOST_SIZES else likely[:0]
    return [(k, likely[likely > k]) for k in NEIGHBORS]


def _made(
    words: NDArray[np.uint32], bound: int, draws: Draws, n_rows: int
) -> list[tuple[int, IntArray, int]]:
    """Return how many rows may have been made with whole numbers below a bound, these, and where the doubles begin."""
    largest = bound - 1
    masked = words & np.uint32((1 << largest.bit_length()) - 1)
    taken = np.flatnonzero(masked <= largest)
    n = np.arange(1, min(len(taken), n_rows) + 1)
    begin = taken[: len(n)] + 1
    first, last = int(draws.word.min()), int(draws.word.max())
    fits = (begin <= first) & (begin % 2 == first % 2) & (begin + 2 * n > last)
    return [(int(n[i]), masked[taken[: n[i]]].astype(np.int64), int(begin[i])) for i in np.flatnonzero(fits)]


def _agreement(base: IntArray, draws: Draws, n_base: int) -> tuple[float, float]:
    """Return how well rows that should be from one record are, and the log of a bound on the chance of that."""
    order = np.argsort(base, kind="stable")
    same = base[order[1:]] == base[order[:-1]]
    agree = draws.base[order[1:]] == draws.base[order[:-1]]
    hits, wrong = int((same & agree).sum()), int((same & ~agree).sum())
    others = np.bincount(draws.base)[draws.base] - 1
    return hits - _WRONG * wrong, log_bound(hits, float(others.sum()) / n_base)


def _adasyn(words: NDArray[np.uint32], draws: Draws, n_rows: int, level: float) -> Origin | None:
    """Return that the records come one after the other, if they do."""
    order = np.argsort(draws.word)
    base = draws.base[order]
    hits = int((base[1:] == base[:-1]).sum())
    often = np.bincount(base)[base] / max(1, len(base))
    if log_bound(hits, float(often.sum())) > np.log(level):
        return None
    fits = [made for k in NEIGHBORS if k > 1 for made in _made(words, k, draws, n_rows)[-1:]]
    return Origin("ADASYN", None, fits[0][0] if fits else 0)


def _order(draws: Draws, shares: Shares, begin: int = 0) -> tuple[bool | None, int]:
    """Return whether rows stand in the order of their draws, and how many rows come before the first draw."""
    if len(draws.of) < 3:
        return None, 0
    before = shares.row[draws.of] - (draws.word - begin) // 2
    values, counts = np.unique(before, return_counts=True)
    return bool(counts.max() >= _IN_ORDER * len(before)), int(values[counts.argmax()])
