"""What a table's domain is, read from the data and paid for: bounds, quantiles, categories, class counts.

Everything here looks at the data through counts of fixed cells and through :class:`Accountant`, and does nothing
afterwards but compute with the noisy result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.errors import InputError
from oversafe.data.cells import cell_keys, is_marker
from oversafe.privacy.accountant import Accountant

# How many steps the range is cut into when its ends are sought.
_STEPS = 1024
# An empty cell is taken for one with rows with this probability at most, over all cells of a column.
_FALSE_CELL = 1e-4
# Powers of two that bounds are first sought among.
_EXPONENTS = 64
_BRANCHES = 16


def private_class_counts(
    codes: NDArray[np.int64], n_classes: int, *, accountant: Accountant, share: float = 1.0
) -> NDArray[np.int64]:
    """Return how many rows each class has, with noise.

    Under replace-one the result adds up to the number of rows, which is public. No class is below 1, so that it
    can be divided by.

    Parameters
    ----------
    codes : array of int of shape (n_rows,)
        Each row's class, a position below ``n_classes``.
    n_classes : int
        How many classes were declared.
    accountant : Accountant
        Who pays.
    share : float, default=1.0
        Of the whole budget.
    """
    counts = np.bincount(codes, minlength=n_classes)
    noisy = accountant.counts(counts, share, what="class counts")
    return positive_counts(noisy, len(codes) if accountant.n_rows_public else None)


def positive_counts(noisy: NDArray[np.int64], total: int | None = None) -> NDArray[np.int64]:
    """Return noisy counts as whole numbers of at least 1 that add up to a total, if one is given."""
    if total is None or total <= len(noisy):
        # Fewer rows than classes: every class keeps its one.
        return np.maximum(noisy, 1)
    spare = project(noisy.astype(np.float64) - 1, total - len(noisy))
    return whole_shares(spare, total - len(noisy)) + 1


def project(noisy: NDArray[np.float64], total: float) -> NDArray[np.float64]:
    """Return the nearest counts (in the Euclidean sense), of any shape, that are not negative and add up to a total."""
    if total <= 0:
        return np.zeros_like(noisy)
    # From the largest down, so that very large noise leaves digits for the total.
    below = (noisy - noisy.max()).ravel()
    falling = np.sort(below)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(below) + 1)
    last = np.flatnonzero(falling > excess)[-1]
    return np.maximum(below - excess[last], 0.0).reshape(noisy.shape)


def whole_shares(counts: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Return whole numbers that add up to a total, nearest to the given counts."""
    whole = np.floor(counts).astype(np.int64)
    short = total - int(whole.sum())
    whole[np.argsort(whole - counts)[:short]] += 1
    return whole


def private_categories(
    values: Any,
    *,
    accountant: Accountant,
    share: float = 1.0,
    delta: float | None = None,
    delta_paid: bool = False,
    what: str = "",
) -> list[str]:
    """Return the values that are frequent enough to be named, as text, in order.

    What fewer than some tens or hundreds of rows have stays unnamed: how many depends on the budget.

    Parameters
    ----------
    values : Series or array of shape (n_rows,)
        Of any kind; 1, 1.0, True, "1" and "01" are the same value, and "NA" or "" is none: other rows decide whether a
        reader keeps them as texts.
    accountant : Accountant
        Who pays; it needs a delta above 0.
    share : float, default=1.0
        Of the whole budget.
    delta : float, optional
        The part of the budget's delta that is spent; a tenth of it when not given.
    delta_paid : bool, default=False
        Whether that part was charged before.
    what : str
        For the record.
    """
    codes, distinct = pd.factorize(category_keys(values))
    counts = np.bincount(codes[codes >= 0], minlength=len(distinct))
    noisy = accountant.frequent(
        counts,
        share,
        what=what or "categories",
        delta=accountant.delta / 10 if delta is None else delta,
        delta_paid=delta_paid,
    )
    return sorted(str(key) for key in np.asarray(distinct, dtype=object)[noisy > 0])


def category_keys(values: Any) -> pd.Series:
    """Return what each value is, as text; None for what is missing, also where a reader left its mark as text."""
    keys = cell_keys(pd.Series(values))
    return keys.where(~keys.isin([key for key in keys.unique() if is_marker(key)]), None)


def private_bounds(
    values: Any,
    *,
    accountant: Accountant,
    share: float = 1.0,
    whole: bool = False,
    within: tuple[float, float] | None = None,
    what: str = "",
) -> tuple[float, float]:
    """Return a smallest and a largest value between which all but a few of the numbers lie.

    First the powers of two are found that the numbers lie between (or, with ``within``, the cells of a fixed
    range); then each end is moved inwards until about as many rows lie beyond it as the noise makes
    indistinguishable from none.

    Parameters
    ----------
    values : array of float of shape (n_rows,)
        NaN is left out.
    accountant : Accountant
        Who pays.
    share : float, default=1.0
        Of the whole budget.
    whole : bool, default=False
        Whether the numbers are whole; so are the bounds then.
    within : tuple of float, optional
        A public range that is sure to be wide enough, in place of the powers of two.
    what : str
        For the record.
    """
    what = what or "bounds"
    accountant.afford(share, what)
    numbers = np.asarray(values, dtype=np.float64)
    numbers = numbers[~np.isnan(numbers)]
    edges = _coarse_edges(whole, within)
    counts = np.bincount(_cells(numbers, edges), minlength=len(edges) - 1)
    noisy = accountant.counts(counts, share / 2, what=what)
    full = np.flatnonzero(noisy >= accountant.doubt(share / 2, _FALSE_CELL / len(counts)))
    if len(full) == 0:
        full = np.array([int(np.argmax(noisy))])
    low, high = edges[full[0]], edges[full[-1] + 1]
    if within is None:
        # Between the smallest power of two that shows and zero there may be more; the second step finds out.
        nought = -0.5 if whole else 0.0
        low, high = min(low, nought), max(high, -nought)
    # A whole number lies in the middle of its unit step.
    if whole:
        steps = int(min(high - low, _STEPS))
        fine = low + np.round(np.linspace(0, high - low, steps + 1))
    else:
        fine = np.linspace(low, high, _STEPS + 1)
    total = max(int(noisy[full].sum()), 1)
    inside = np.bincount(_cells(numbers, fine), minlength=len(fine) - 1)
    low, high = _ends(inside, fine, total, accountant, share / 4, what)
    if whole:
        low, high = math.ceil(low), math.floor(high)
    return float(low), float(high)


def _coarse_edges(whole: bool, within: tuple[float, float] | None) -> NDArray[np.float64]:
    if within is not None:
        low, high = within
        return np.linspace(low - 0.5, high + 0.5, 257) if whole else np.linspace(low, high, 257)
    powers = 2.0 ** np.arange(0 if whole else -_EXPONENTS, 54 if whole else _EXPONENTS)
    if whole:
        powers = powers - 0.5
        return np.concatenate([-powers[::-1], powers])
    return np.concatenate([-powers[::-1], [0.0], powers])


def _cells(numbers: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return each number's cell; what lies outside belongs to the nearest."""
    return np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(edges) - 2)


def _ends(
    counts: NDArray[np.int64],
    edges: NDArray[np.float64],
    total: int,
    accountant: Accountant,
    share: float,
    what: str,
) -> tuple[float, float]:
    """Return edges beyond which there are about as few rows as a private choice can tell from none."""
    below = np.concatenate([[0], np.cumsum(counts)])
    above = below[-1] - below
    # A choice among k candidates errs by more than scale * (log k + t) rows with probability e^-t; asked for a
    # rank of that size it seldom returns a cell far outside the data.
    rank = accountant.choice_scale(share, accountant.rows_per_unit) * (math.log(len(counts)) + 4)
    rank = round(min(rank, 0.02 * total))
    m = accountant.rows_per_unit
    # How many rows would have to move for the row of this rank, from either end, to lie in the cell. The rank is fixed,
    # so a unit moves each score by at most m, whichever the relation.
    lower = -np.maximum(np.maximum(below[:-1] - rank, rank - below[1:]), 0)
    upper = -np.maximum(np.maximum(above[1:] - rank, rank - above[:-1]), 0)
    low = accountant.choose(lower, share, what=what, sensitivity=m)
    high = accountant.choose(upper, share, what=what, sensitivity=m) + 1
    if low < high:
        return float(edges[low]), float(edges[high])
    return float(edges[0]), float(edges[-1])


def private_quantiles(
    values: Any,
    probabilities: Sequence[float],
    *,
    bounds: tuple[float, float],
    accountant: Accountant,
    share: float = 1.0,
    n_cells: int = 256,
    what: str = "",
) -> NDArray[np.float64]:
    """Return quantiles of numbers between public, or paid, bounds.

    The numbers are counted in a tree of cells, all levels get noise at once, and the quantiles are read from the
    leaves that fit all levels best (Hay et al. 2010); so many quantiles cost as much as one.

    Parameters
    ----------
    values : array of float of shape (n_rows,)
        NaN is left out; what lies beyond the bounds is moved to them.
    probabilities : sequence of float
        Between 0 and 1.
    bounds : tuple of float
        A smallest and a largest value.
    accountant : Accountant
        Who pays.
    share : float, default=1.0
        Of the whole budget.
    n_cells : int, default=256
        How finely the range is cut.
    what : str
        For the record.
    """
    wanted = np.asarray(probabilities, dtype=np.float64)
    if wanted.ndim != 1 or not ((wanted >= 0) & (wanted <= 1)).all():
        raise InputError(
            f"quantiles at {list(probabilities)!r} were asked for; give probabilities from 0 to 1"
        )
    low, high = bounds
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise InputError(f"the bounds {bounds!r} were given; give a smallest and a largest value")
    edges = np.linspace(low, high, n_cells + 1)
    numbers = np.asarray(values, dtype=np.float64)
    counts = np.bincount(_cells(numbers[~np.isnan(numbers)], edges), minlength=n_cells)
    leaves = noisy_leaves(counts, accountant=accountant, share=share, what=what or "quantiles")
    mass = np.concatenate([[0.0], np.cumsum(leaves)])
    return np.interp(wanted * mass[-1], mass, edges) if mass[-1] > 0 else low + (high - low) * wanted


def noisy_leaves(
    counts: NDArray[np.int64], *, accountant: Accountant, share: float, what: str
) -> NDArray[np.float64]:
    """Return noisy counts, none of them negative, whose sums over runs of cells are better than of noisy cells."""
    n_leaves = len(counts)
    depth = max(1, math.ceil(math.log(max(n_leaves, 2), _BRANCHES) - 1e-9))
    levels = [np.pad(np.asarray(counts, dtype=np.int64), (0, _BRANCHES**depth - n_leaves))]
    while len(levels[0]) > _BRANCHES:
        levels.insert(0, levels[0].reshape(-1, _BRANCHES).sum(axis=1))
    noisy = accountant.counts(np.concatenate(levels), share, what=what, tables=len(levels))
    parts = np.split(noisy.astype(np.float64), np.cumsum([len(level) for level in levels])[:-1])
    # Hay et al. 2010, section 4: upwards each node becomes the best mean of itself and its children's sum, downwards
    # the children share what is missing. Their own noise has variance 1 here.
    variance = 1.0
    for level in range(len(parts) - 2, -1, -1):
        of_sum = _BRANCHES * variance
        sums = parts[level + 1].reshape(-1, _BRANCHES).sum(axis=1)
        parts[level] = (parts[level] * of_sum + sums) / (1 + of_sum)
        variance = of_sum / (1 + of_sum)
    for level in range(1, len(parts)):
        children = parts[level].reshape(-1, _BRANCHES)
        missing = parts[level - 1] - children.sum(axis=1)
        parts[level] = (children + missing[:, None] / _BRANCHES).ravel()
    # Cutting off what is negative would add rows wherever there are none; the total is kept instead.
    return project(parts[-1][:n_leaves], max(float(parts[0].sum()), 1.0))
