"""Identifiers of real people that stand in a release: account numbers, say, whatever stands beside them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from oversafe.text import shorten

# More than chance explains, as for copies.
_BY_CHANCE = 1e-4


def real_identifiers(release: pd.DataFrame, real: pd.DataFrame | None, names: list[str]) -> tuple[str, ...]:
    """Return in words how many identifiers of each column are those of real people, where chance does not explain it.

    Parameters
    ----------
    release, real : DataFrame
        The tables.
    names : list of str
        The columns of the release that hold identifiers.

    Notes
    -----
    Numbers that run from 1 are in every table. So the digits of an identifier count as a number, drawn at random from
    the range of the real ones, and what chance gives is the number of released ones times the share of this range
    that real ones take. Names, which have no digits, count if most of the released ones are real.
    """
    told = []
    for name in names:
        if real is None or name not in real.columns:
            continue
        known, released = (_as_text(table[name]) for table in (real, release))
        shared = int(np.isin(released, known).sum())
        if shared and _is_no_chance(shared, len(released), known):
            told.append(f"{shared} identifiers of real people in {shorten(name, 60)!r}")
    return tuple(told)


def _as_text(values: pd.Series) -> np.ndarray:
    """Return the different identifiers; whole numbers to the last digit, and alike where a gap made floats of them."""
    return pd.unique(values.dropna().map(str).str.removesuffix(".0"))


def _is_no_chance(shared: int, n_released: int, known: np.ndarray) -> bool:
    from scipy.stats import poisson

    digits = pd.Series(known, dtype=object).str.replace(r"\D", "", regex=True)
    numbers = [int(text) for text in digits[digits != ""]]
    if 2 * len(numbers) < len(known):
        return 2 * shared > n_released
    possible = max(numbers) - min(numbers) + 1
    return bool(poisson.sf(shared - 1, n_released * min(1.0, len(known) / possible)) < _BY_CHANCE)
