"""Real and held-out rows in one pool, in which nobody knows who is who."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.errors import InputError
from oversafe.data.rows.values import value_keys

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Pool:
    """Real and held-out rows, shuffled.

    Parameters
    ----------
    rows : DataFrame
        The features.
    member : array of bool
        Which rows are of the real table.
    classes, released_classes : array of int
        The class of each row of the pool and of the release.
    labels : tuple of str
        The classes' names.
    units : array of int
        Whose row each is.
    place : array of int
        Which row of the real table, or of the holdout, each is.
    """

    rows: pd.DataFrame
    member: BoolArray
    classes: IntArray
    released_classes: IntArray
    labels: tuple[str, ...]
    units: IntArray
    place: IntArray


def pool_of(
    release: pd.DataFrame,
    real: pd.DataFrame,
    holdout: pd.DataFrame,
    *,
    label: str | None = None,
    unit: str | None = None,
    most: int = 6_000,
    random_state: int = 0,
) -> Pool:
    """Return the pool of two tables, at most so many rows of both, drawn by unit and evenly from both.

    Parameters
    ----------
    release, real, holdout : DataFrame
        The tables.
    label : str, optional
        The column of the class.
    unit : str, optional
        The column that says whose row each is; each row is somebody else's by default.
    most : int
        How many rows are drawn at most.
    random_state : int
        For the draw and the order.
    """
    for what, table in (("release", release), ("real table", real), ("holdout", holdout)):
        if not len(table):
            raise InputError(f"the {what} has no rows; give one with rows")
    tables = (real, holdout)
    if unit is not None:
        names = [value_keys(table[unit]) for table in tables]
        if both := set(names[0].dropna()) & set(names[1].dropna()):
            raise InputError(
                f"{len(both)} of the {unit!r} of the holdout are in the real table too; "
                "split by person, so that nobody is in both"
            )
        units = pd.factorize(pd.concat(names, ignore_index=True))[0]
        # Nobody's rows are each their own.
        alone = units < 0
        units[alone] = units.max() + 1 + np.arange(int(alone.sum()))
    else:
        units = np.arange(len(real) + len(holdout))
    keys = [
        value_keys(table[label]) if label is not None else pd.Series(["all"] * len(table))
        for table in (*tables, release)
    ]
    codes, kinds = pd.factorize(pd.concat(keys, ignore_index=True), sort=False, use_na_sentinel=False)
    n = len(real) + len(holdout)
    member = np.arange(n) < len(real)
    place = np.concatenate([np.arange(len(real)), np.arange(len(holdout))])
    rng = np.random.default_rng(random_state)
    kept = _drawn(member, units, most, rng)
    features = [
        c for c in real.columns if c not in (label, unit) and c in holdout.columns and c in release.columns
    ]
    if not features:
        raise InputError("release, real table and holdout share no column; give tables with the same columns")
    rows = pd.concat(
        [_some(table, features, kept, member, which) for table, which in ((real, True), (holdout, False))],
        ignore_index=True,
    )
    order = rng.permutation(len(kept))
    kept = np.concatenate([kept[member[kept]], kept[~member[kept]]])[order]
    return Pool(
        rows.iloc[order].reset_index(drop=True),
        member[kept],
        codes[:n][kept].astype(np.int64),
        codes[n:].astype(np.int64),
        tuple(str(kind) for kind in kinds),
        units[kept].astype(np.int64),
        place[kept],
    )


def _drawn(member: BoolArray, units: IntArray, most: int, rng: np.random.Generator) -> IntArray:
    """Return the rows that are in the pool: all, or those of units drawn from both sides alike."""
    if len(member) <= most:
        return np.arange(len(member))
    kept = []
    smaller = min(int(member.sum()), int((~member).sum()))
    for side in (member, ~member):
        rows = np.flatnonzero(side)
        share = max(most // 2, most - smaller)
        if len(rows) > share:
            own, sizes = np.unique(units[rows], return_counts=True)
            order = rng.permutation(len(own))
            fits = np.cumsum(sizes[order]) <= share
            rows = rows[np.isin(units[rows], own[order][fits])]
        kept.append(rows)
    return np.concatenate(kept)


def _some(
    table: pd.DataFrame, features: list[Any], kept: IntArray, member: BoolArray, which: bool
) -> pd.DataFrame:
    rows = kept[member[kept] == which]
    return table[features].iloc[rows if which else rows - int(member.sum())]
