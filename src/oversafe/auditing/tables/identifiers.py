"""Identifiers of real people that stand in a release: account numbers, say, whatever stands beside them."""

from __future__ import annotations

import re

import pandas as pd

from oversafe._core.text import shorten

# More than chance explains, as for copies.
_BY_CHANCE = 1e-4
# What fewer different values than this share of the rows has says something else than whose row it is, such as a post
# code, unless it is as long as numbers of accounts are.
_FEWEST_OF_OWN, _DIGITS_OF_CODES = 0.5, 8
# Of an event that was not seen in some trials, so many are to be reckoned with.
_NOT_SEEN = 3.0
_FEWEST_OF_A_RANGE = 5


def real_identifiers(release: pd.DataFrame, real: pd.DataFrame | None, names: list[str]) -> tuple[str, ...]:
    """Return in words how many identifiers of each column are those of real people, where chance does not explain it.

    Parameters
    ----------
    release, real : DataFrame
        The tables.
    names : list of str
        The columns of the release that hold identifiers or free text.

    Notes
    -----
    Numbers that run from 1 are in every table. So where identifiers are alike but for their digits, these count as a
    number, drawn at random from the range of the real or of the released ones, and what chance gives is the number of
    released ones times the share of this range that real ones take. Names and addresses are found by chance as often
    as two real people share one.
    """
    told = []
    for name in names:
        if real is None or name not in real.columns:
            continue
        everybody, released = (_as_text(table[name]) for table in (real, release))
        known, released = everybody.drop_duplicates(), released.drop_duplicates()
        if len(known) < _FEWEST_OF_OWN * len(everybody) and not _are_long(known):
            continue
        shared = int(released.isin(known).sum())
        if shared and _is_no_chance(shared, released, everybody):
            told.append(f"{shared} identifiers of real people in {shorten(name, 60)!r}")
    return tuple(told)


def _as_text(values: pd.Series) -> pd.Series:
    """Return identifiers as text; whole numbers to the last digit, and alike where a gap made floats of them."""
    text = pd.Series([str(value) for value in values.dropna()], dtype=object)
    # Capitals, spaces around them and zeros before them are how they are written.
    return text.str.removesuffix(".0").str.strip().str.lower().str.replace(r"^0+(?=\d+$)", "", regex=True)


def _are_long(known: pd.Series) -> bool:
    return bool(known.str.count(r"\d").median() > _DIGITS_OF_CODES)


def _is_no_chance(shared: int, released: pd.Series, everybody: pd.Series) -> bool:
    from scipy.stats import poisson

    known = everybody.drop_duplicates()
    if known.map(_pattern).nunique() < len(known) / 2:
        numbers, theirs = _numbers(known), _numbers(released)
        if all(min(own) in (0, 1) and max(own) - min(own) == len(own) - 1 for own in theirs.values()):
            # They count the rows.
            return False
        expected = len(released) * min(1.0, max(_taken(numbers, own) for own in (numbers, theirs)))
    else:
        counts, n = everybody.value_counts().to_numpy(), len(everybody)
        alike = max(_NOT_SEEN, float((counts * (counts - 1) / 2).sum()))
        expected = len(released) * len(known) * min(1.0, alike / max(1.0, n * (n - 1) / 2))
    return bool(poisson.sf(shared - 1, min(expected, len(released))) < _BY_CHANCE)


def _pattern(text: str) -> str:
    return re.sub(r"\d", "", text)


def _numbers(texts: pd.Series) -> dict[str, set[int]]:
    """Return the digits of identifiers as numbers, by what stands around them."""
    found: dict[str, set[int]] = {}
    for text in texts:
        found.setdefault(_pattern(text), set()).add(int(re.sub(r"\D", "", text) or 0))
    return found


def _taken(numbers: dict[str, set[int]], among: dict[str, set[int]]) -> float:
    """Return which share of the ranges of some identifiers the real ones take."""
    everywhere = set().union(*among.values())
    taken = possible = 0
    for pattern, own in among.items():
        # A few do not show a range.
        own = own if len(own) >= _FEWEST_OF_A_RANGE else everywhere
        low, high = min(own), max(own)
        possible += high - low + 1
        taken += sum(low <= number <= high for number in numbers.get(pattern, ()))
    return taken / possible
