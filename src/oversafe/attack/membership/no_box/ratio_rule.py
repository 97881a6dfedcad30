"""Without held-out people: are released rows next to one real row more often than real rows are to each other?

This is a rule with a measured error rate, not a test: two real rows may be alike because they are of one family or one
visit, and a fair sample of other people is compared with people of the same table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oversafe.attack.membership.no_box import _kernels
from oversafe.attack.membership.no_box.comparable import Comparable

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class RatioRule:
    """What the rule says.

    Parameters
    ----------
    checked : bool
        Whether it can tell: too many real rows with two equal neighbors make it blind.
    alarm : bool
        Whether the lower end of the difference is above the limit.
    lower : float
        The lower end of the difference of the shares, the highest of all ways to measure.
    """

    checked: bool
    alarm: bool
    lower: float


@dataclass(frozen=True)
class Settings:
    """What decides; measured by ``python -m benchmarks verdict``.

    Parameters
    ----------
    deviations : float
        Of the lower end of the difference.
    limit : float
        From which lower end on there is an alarm.
    tied : float
        The share of real rows with two equal nearest rows from which on nothing is said.
    ratios : tuple of float
        Below which the best is next to one row alone.
    """

    deviations: float = 4.0
    limit: float = 0.03
    tied: float = 0.1
    ratios: tuple[float, ...] = (0.1, 0.3, 0.5)


def ratio_rule(tables: Comparable, settings: Settings | None = None) -> RatioRule:
    """Return whether released rows are next to one real row too often.

    Parameters
    ----------
    tables : Comparable
        The real table as the pool, and the release.
    settings : Settings, optional
        What decides.
    """
    decided = settings or Settings()
    released, left_out = [], []
    for space in (tables, tables.in_ranks()):
        ours, theirs = _ratios(space)
        released.append(ours)
        left_out.append(theirs)
    ours, theirs = np.hstack(released), np.hstack(left_out)
    if not len(ours) or not len(theirs) or (theirs[:, 0] >= 1).mean() > decided.tied:
        return RatioRule(False, False, 0.0)
    lower = -1.0
    for ratio in decided.ratios:
        a, b = (ours < ratio).mean(axis=0), (theirs < ratio).mean(axis=0)
        # At least one of each is taken to be there, so that no variance is 0.
        spread = np.sqrt(
            sum((p + 1 / len(t)) * (1 - p + 1 / len(t)) / len(t) for p, t in ((a, ours), (b, theirs)))
        )
        lower = max(lower, float((a - b - decided.deviations * spread).max()))
    return RatioRule(True, lower >= decided.limit, lower)


def _ratios(tables: Comparable) -> tuple[FloatArray, FloatArray]:
    """Return best to second best distance of released and of left-out rows: in all columns, and without the worst."""
    ours: list[FloatArray] = []
    theirs: list[FloatArray] = []
    for label in np.unique(tables.classes):
        rows = np.flatnonzero(tables.classes == label)
        released = np.flatnonzero(tables.released_classes == label)
        if len(rows) < 3 or not len(released):
            continue
        numbers, codes, unit = tables.numbers[rows], tables.codes[rows], tables.units[rows]
        middle = np.where(np.isfinite(tables.low[released]), tables.low[released], tables.high[released])
        _, first = np.unique(
            np.column_stack([middle, tables.matched_codes[released]]), axis=0, return_index=True
        )
        kept = released[first]
        near = _kernels.nearest(
            tables.low[kept],
            np.maximum(tables.matched_codes[kept], 0),
            np.full(len(kept), -1),
            numbers,
            numbers,
            codes,
            unit,
            *tables.own_costs,
        )
        own = _kernels.nearest(numbers, codes, unit, numbers, numbers, codes, unit, *tables.own_costs)
        for found, into in ((near, ours), (own, theirs)):
            with np.errstate(invalid="ignore", divide="ignore"):
                pairs = np.column_stack([found[:, 0] / found[:, 1], found[:, 5] / found[:, 6]])
            into.append(np.where(np.isfinite(pairs), pairs, 1.0))
    empty = np.zeros((0, 2))
    return np.vstack([empty, *ours]), np.vstack([empty, *theirs])
