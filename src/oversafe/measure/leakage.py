"""Whether a release holds rows of the test set, which would make every score on it worthless."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import poisson

from oversafe._core.errors import InputError
from oversafe.attack.records import read_records
from oversafe.data.column import select_columns
from oversafe.data.one_hot import one_hot_groups
from oversafe.data.rows.sketches import row_sketches, table_hashes

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# Below this probability of as many matches by chance the release is refused.
_IMPLAUSIBLE = 1e-6
# Matches are counted among all rows, and among those that chance hardly puts into a release.
_RARE = (1.0, 1e-1, 1e-2, 1e-3, 1e-5)
# Rows of at most this chance are rare.
_HARDLY = 0.1
# Repeated rows are the same records if at least this share of them has nobody like them; so many are looked at.
_SAME_RECORDS, _MOST_REPEATED = 0.9, 300


@dataclass(frozen=True)
class Overlap:
    """Test rows that stand in a release, beside what chance explains.

    Parameters
    ----------
    shared : int
        Distinct test rows, other than those that are training rows too, that the release holds.
    possible : int
        How many such test rows there are.
    expected : float
        How many of them chance would put into the release.
    probability : float
        Of at least ``shared`` of them by chance.
    """

    shared: int
    possible: int
    expected: float
    probability: float

    @property
    def is_leakage(self) -> bool:
        """Whether chance does not explain it."""
        return self.probability < _IMPLAUSIBLE


def release_overlap(release: Any, test: Any, train: Any = None) -> Overlap:
    """Return how many test rows a release holds, and how many chance would put there.

    Parameters
    ----------
    release : DataFrame or array
        The features of the released rows.
    test : DataFrame or array
        Those of the test rows.
    train : DataFrame or array, optional
        Those of the rows that the release was made from. Test rows that equal one of them are left out:
        people who share all values are no leakage.

    Notes
    -----
    Equal rows alone prove nothing: in a table of a few categories every release holds test rows. What
    chance puts there is counted in two ways, and the larger one counts for each test row: the release
    draws each column by itself; or it takes training rows and draws one of their columns anew, so that
    each training row that differs from the test row in one column counts with the share of the test
    row's value there. Shares are those among the training rows; a value that they do not have gets what
    Good's and Chao's estimators leave for one such value, which is next to nothing where most values occur once.
    In a table with a column of many digits a single test row therefore gives the leakage away, while in a small
    table of categories, where a leak cannot be told from chance, nothing is refused. When the
    training rows are not given the other test rows stand in for them, and the share of test rows that
    repeat one another is added, since as many may repeat a training row. Rows that repeat another in numbers that
    nobody else has are the same record again, which says nothing about the other rows, or what several people have who
    were not measured (zeros throughout): they do not count there, and are themselves expected as often again.

    Matches are counted among all test rows, and among those of small chance alone, with a correction for looking
    several times.
    """
    codes, n_numbers = _codes(_folded({"real": test, "release": release, "train": train}))
    repeats = np.zeros(0)
    if train is None:
        codes["real"], repeats = _each_once(codes["real"], n_numbers)
    sums = {name: row_sketches(code) for name, code in codes.items()}
    distinct = np.unique(sums["real"], return_index=True)[1]
    if train is not None:
        distinct = distinct[~np.isin(sums["real"][distinct], sums["train"])]
    found = np.isin(sums["real"][distinct], sums["release"])
    if not found.any():
        return Overlap(0, len(distinct), 0.0, 1.0)
    base, n_released = ("real" if train is None else "train"), len(sums["release"])
    chance = _chance(codes["real"][:, distinct], codes[base], n_released, own=train is None)
    if train is None:
        n = len(sums["real"])
        # What stands there several times may be what several people have.
        again = np.maximum((n - len(distinct)) / n, repeats[distinct])
        chance = np.minimum(1.0, chance + again * n_released / n)
    looks = [
        poisson.sf(int(found[rare].sum()) - 1, float(chance[rare].sum()))
        for rare in (chance <= limit for limit in _RARE)
        if found[rare].any()
    ]
    probability = min(1.0, len(_RARE) * min(looks))
    return Overlap(int(found.sum()), len(distinct), float(chance.sum()), float(probability))


def rare_matches(release: Any, test: Any, train: Any) -> tuple[int, int]:
    """Return how many test rows that chance hardly puts into a release it holds, and how many such rows there are.

    Without those that are training rows too; see :func:`release_overlap`.
    """
    codes, _ = _codes(_folded({"real": test, "release": release, "train": train}))
    sums = {name: row_sketches(code) for name, code in codes.items()}
    distinct = np.unique(sums["real"], return_index=True)[1]
    distinct = distinct[~np.isin(sums["real"][distinct], sums["train"])]
    if not len(distinct):
        return 0, 0
    chance = _chance(codes["real"][:, distinct], codes["train"], len(sums["release"]), own=False)
    rare = distinct[chance <= _HARDLY]
    return int(np.isin(sums["real"][rare], sums["release"]).sum()), len(rare)


def refuse_overlap(release: Any, test: Any, train: Any = None) -> None:
    """Raise an error if a release holds more test rows than chance explains; see :func:`release_overlap`."""
    overlap = release_overlap(release, test, train)
    if overlap.is_leakage:
        rows = "1 test row" if overlap.shared == 1 else f"{overlap.shared} test rows"
        raise InputError(
            f"the release holds {rows} of {overlap.possible} and chance explains {overlap.expected:.2g}; it was made "
            "from rows that it is tested on: make it from the training rows alone"
        )


def _folded(tables: dict[str, Any]) -> dict[str, Any]:
    """Return the tables with one-hot columns as the category that they are, which is much more common than all of them.

    A released row may have several ones there, or none: it is like no test row.
    """
    given = [table for table in tables.values() if table is not None]
    if not all(isinstance(table, pd.DataFrame) and table.columns.is_unique for table in given):
        return tables
    shared = [name for name in given[0].columns if all(name in table.columns for table in given)]
    frames = {key: None if table is None else select_columns(table, shared) for key, table in tables.items()}
    groups = [one_hot_groups(frames[key]) for key in ("real", "train") if frames[key] is not None]
    for attribute, names in groups[0].items():
        if not all(group.get(attribute) == names for group in groups):
            continue
        for key, frame in frames.items():
            if frame is not None:
                hot = np.stack([frame[name].isin([1]) for name in names])
                cold = np.stack([frame[name].isin([0]) for name in names])
                valid = (hot | cold).all(axis=0) & (hot.sum(axis=0) == 1)
                values = np.where(valid, hot.argmax(axis=0), len(names)).astype(str)
                frames[key] = frame.drop(columns=names).assign(**{attribute: values})
    return frames


def _codes(tables: dict[str, Any]) -> tuple[dict[str, IntArray], int]:
    """Return the tables as whole numbers, a row per column, equal where the values are, and how many are of numbers."""
    records = read_records(tables)
    lengths = [codes.shape[1] for codes in records.codes.values()]
    joined = np.concatenate(list(records.codes.values()), axis=1)
    numbered = np.stack([pd.factorize(column, use_na_sentinel=False)[0] for column in joined])
    parts = np.split(numbered.astype(np.int64), np.cumsum(lengths)[:-1], axis=1)
    return dict(zip(records.codes, parts, strict=True)), records.n_numbers


def _each_once(rows: IntArray, n_numbers: int) -> tuple[IntArray, FloatArray]:
    """Return the rows without those that repeat another although nobody is like it, and how often each is repeated.

    Where people agree in everything by chance, more of them agree in most things. A row that is repeated although
    nobody else has half of its numbers is the same record again, unless other repeated ones show what people are like.
    """
    _, which, counts = np.unique(row_sketches(rows), return_inverse=True, return_counts=True)
    # Beyond what is usual: a table may hold everybody twice.
    repeats = np.maximum(counts - np.median(counts), 0)[which]
    # In their numbers: the same record may be written down again with another category.
    _, first, which, counts = np.unique(
        row_sketches(rows[:n_numbers]), return_index=True, return_inverse=True, return_counts=True
    )
    repeated = np.flatnonzero(counts > 1)
    if not len(repeated) or n_numbers < 2 or len(repeated) > _MOST_REPEATED:
        return rows, repeats
    others = rows[:n_numbers, first]
    same = []
    for row in repeated:
        alike = (others == others[:, [row]]).sum(axis=0)
        alike[row] = 0
        same.append(2 * int(alike.max()) < n_numbers)
    if np.mean(same) < _SAME_RECORDS:
        return rows, repeats
    once = np.isin(which, repeated[same], invert=True)
    once[first] = True
    return rows[:, once], repeats[once]


def _unseen_share(counts: IntArray, n: int) -> float:
    """Return the share of one value that does not occur: that of all of them by their number (Good, Chao)."""
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    others = max(1.0, once * (once - 1) / (2 * (twice + 1)))
    return max(1, once) / n / others


def _chance(rows: IntArray, base: IntArray, n_released: int, *, own: bool) -> NDArray[np.float64]:
    """Return for each row the probability that a release of some size holds it by chance."""
    n = base.shape[1]
    shares = np.empty(rows.shape)
    for column, (values, among) in enumerate(zip(rows, base, strict=True)):
        counts = np.bincount(among, minlength=int(values.max()) + 1)
        seen = counts[values] - own
        shares[column] = np.where(seen > 0, seen / n, _unseen_share(counts, n))
    independent = n_released * np.exp(np.log(shares).sum(axis=0))
    hashes, base_hashes = table_hashes(rows), table_hashes(base)
    sums, base_sums = hashes.sum(axis=0, dtype=np.uint64), base_hashes.sum(axis=0, dtype=np.uint64)
    near = np.zeros(rows.shape[1])
    for column in range(len(rows)):
        rest = np.sort(base_sums - base_hashes[column])
        wanted = sums - hashes[column]
        similar = np.searchsorted(rest, wanted, "right") - np.searchsorted(rest, wanted, "left") - own
        near += np.maximum(similar, 0) * shares[column]
    return -np.expm1(-np.maximum(independent, near * n_released / n))
