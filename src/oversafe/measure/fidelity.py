"""How much a release looks like the real table: ranges, shares, associations, pairs of columns."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from oversafe._core.checks import check_choice, check_count
from oversafe.attack.records import Records, read_records

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FIGURES = (
    "range_coverage",
    "boundary_adherence",
    "statistic_similarity",
    "correlation_similarity",
    "marginal_distance",
)
# A table of two columns with more cells than this is counted by sorting.
_MOST_CELLS = 4_000_000


@dataclass(frozen=True)
class Fidelity:
    """How much a release looks like the real table.

    Parameters
    ----------
    overall : Series
        The five figures, each a mean over columns or pairs of columns.
    by_column : DataFrame
        One row per column: its kind and the first three figures.
    by_pair : DataFrame
        One row per pair of columns: the last two.
    """

    overall: pd.Series
    by_column: pd.DataFrame
    by_pair: pd.DataFrame


def fidelity(
    release: Any,
    real: Any,
    *,
    statistic: Literal["mean", "median", "std"] = "mean",
    n_bins: int = 10,
) -> Fidelity:
    """Return how much a release looks like the real table, for columns of any kind.

    Parameters
    ----------
    release : DataFrame or array
        The released rows.
    real : DataFrame or array
        The rows to hold them against: those that the release was made from, or others of their kind.
    statistic : {"mean", "median", "std"}, default="mean"
        What is compared of numbers.
    n_bins : int, default=10
        Into how many bins numbers fall for the tables of two columns, at quantiles of the real ones.

    Returns
    -------
    Fidelity
        ``overall``, ``by_column`` and ``by_pair``.

    Notes
    -----
    All but the last are 1 for equal tables:

    - "range_coverage": how much of the real range the released numbers reach; the share of the real
      categories that occur.
    - "boundary_adherence": the share of the released values within the real range, or among the real categories.
    - "statistic_similarity": 1 - the difference of the statistic as a share of the real range, at least 0; for
      categories 1 - the total variation between their shares.
    - "correlation_similarity": 1 - half the difference of Pearson's correlation of two numbers; 1 - the difference
      of the correlation ratio of a number and a category, or of Cramer's V (Bergsma's correction) of
      two categories.
    - "marginal_distance": the total variation between the tables of two columns, 0 for equal ones. Two samples of one
      population are not at 0: compare it with a holdout's.

    Dates and ordered categories count as numbers. Missing values are a category of their own where columns are
    counted, and left out elsewhere. What a column cannot have, as a constant one a correlation, is left out of the
    means.

    Examples
    --------
    >>> import pandas as pd
    >>> from oversafe.measure import fidelity
    >>> real = pd.DataFrame({"age": [20, 30, 40, 60], "town": ["A", "A", "B", "C"]})
    >>> release = pd.DataFrame({"age": [20, 30, 40, 40], "town": ["A", "A", "B", "B"]})
    >>> fidelity(release, real).overall[["range_coverage", "boundary_adherence"]].round(3).to_dict()
    {'range_coverage': 0.583, 'boundary_adherence': 1.0}
    """
    check_count("n_bins", n_bins, 2)
    check_choice("statistic", statistic, ("mean", "median", "std"))
    records = read_records({"real": real, "release": release})
    columns = [_column(records, place, statistic) for place in range(len(records.names))]
    by_column = pd.DataFrame(
        columns, columns=["column", "kind", "range_coverage", "boundary_adherence", "statistic_similarity"]
    )
    by_pair = _pairs(records, n_bins)
    means = {
        **by_column[list(FIGURES[:3])].mean().to_dict(),
        **by_pair[list(FIGURES[3:])].mean().to_dict(),
    }
    return Fidelity(pd.Series(means).loc[list(FIGURES)], by_column, by_pair)


def _column(records: Records, place: int, statistic: str) -> tuple[Any, ...]:
    real, made = (records.codes[name][place] for name in ("real", "release"))
    kind = records.columns[place].kind
    real, made = real[~np.isnan(real)], made[~np.isnan(made)]
    if not len(real) or not len(made):
        return records.names[place], kind, np.nan, np.nan, np.nan
    if kind == "category":
        known = np.unique(real)
        coverage = float(np.isin(known, made).mean())
        adherence = float(np.isin(made, known).mean())
        size = int(max(real.max(), made.max())) + 1
        shares = [np.bincount(v.astype(np.int64), minlength=size) / len(v) for v in (real, made)]
        return (
            records.names[place],
            kind,
            coverage,
            adherence,
            1 - float(np.abs(shares[0] - shares[1]).sum()) / 2,
        )
    low, high = real.min(), real.max()
    adherence = float(((made >= low) & (made <= high)).mean())
    if high == low:
        same = float((made == low).any())
        return records.names[place], kind, same, adherence, float((made == low).all())
    width = high - low
    lost = max(0.0, (made.min() - low) / width) + max(0.0, (high - made.max()) / width)
    compute = getattr(np, statistic)
    difference = abs(float(compute(real)) - float(compute(made))) / width
    return records.names[place], kind, max(0.0, 1 - lost), adherence, max(0.0, 1 - difference)


def _pairs(records: Records, n_bins: int) -> pd.DataFrame:
    real, made = records.codes["real"], records.codes["release"]
    cells = [
        _cells(real[place], made[place], place < records.n_numbers, n_bins) for place in range(len(real))
    ]
    sizes = [int(max(a.max(), b.max())) + 1 for a, b in cells]
    pearson = [_correlations(codes[: records.n_numbers]) for codes in (real, made)]
    rows = []
    for a, b in combinations(range(len(real)), 2):
        tables = _counts(cells[a], cells[b], sizes[b], sizes[a] * sizes[b])
        distance = float(np.abs(tables[0] / tables[0].sum() - tables[1] / tables[1].sum()).sum() / 2)
        if b < records.n_numbers:
            similarity = 1 - abs(pearson[0][a, b] - pearson[1][a, b]) / 2
        elif a < records.n_numbers:
            similarity = 1 - abs(_ratio(real[a], real[b]) - _ratio(made[a], made[b]))
        else:
            similarity = 1 - abs(_cramer(real[a], real[b]) - _cramer(made[a], made[b]))
        rows.append((records.names[a], records.names[b], similarity, distance))
    return pd.DataFrame(rows, columns=["column_a", "column_b", "correlation_similarity", "marginal_distance"])


def _cells(real: FloatArray, made: FloatArray, number: bool, n_bins: int) -> tuple[IntArray, IntArray]:
    """Return the cell of every value: its bin or category, one more for what is missing."""
    gaps = [np.isnan(values) for values in (real, made)]
    if number:
        known = real[~gaps[0]]
        cuts = (
            np.unique(np.quantile(known, np.linspace(0, 1, n_bins + 1)[1:-1])) if len(known) else np.empty(0)
        )
        parts = [np.searchsorted(cuts, values, side="left") + 1 for values in (real, made)]
    else:
        parts = [np.nan_to_num(values, nan=-1.0).astype(np.int64) + 1 for values in (real, made)]
    first, second = (np.where(gap, 0, part) for gap, part in zip(gaps, parts, strict=True))
    return first.astype(np.int64), second.astype(np.int64)


def _counts(
    a: tuple[IntArray, IntArray], b: tuple[IntArray, IntArray], width: int, n_cells: int
) -> list[IntArray]:
    joined = [first * width + second for first, second in zip(a, b, strict=True)]
    if n_cells > _MOST_CELLS:
        numbered = np.unique(np.concatenate(joined), return_inverse=True)[1]
        joined = [numbered[: len(joined[0])], numbered[len(joined[0]) :]]
        n_cells = int(numbered.max()) + 1
    return [np.bincount(values, minlength=n_cells) for values in joined]


def _correlations(codes: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return pd.DataFrame(codes.T).corr().to_numpy() if len(codes) else np.empty((0, 0))


def _ratio(numbers: FloatArray, categories: FloatArray) -> float:
    """Return the correlation ratio: the spread between the categories' means against the whole spread."""
    known = ~(np.isnan(numbers) | np.isnan(categories))
    numbers, codes = numbers[known], categories[known].astype(np.int64)
    if len(numbers) < 2 or (spread := float(((numbers - numbers.mean()) ** 2).sum())) == 0:
        return np.nan
    counts = np.bincount(codes)
    used = counts > 0
    means = np.bincount(codes, weights=numbers)[used] / counts[used]
    return float(np.sqrt(max(0.0, (counts[used] * (means - numbers.mean()) ** 2).sum() / spread)))


def _cramer(first: FloatArray, second: FloatArray) -> float:
    """Return Cramer's V with Bergsma's correction for the number of rows."""
    known = ~(np.isnan(first) | np.isnan(second))
    a, b = (pd.factorize(values[known])[0] for values in (first, second))
    n = len(a)
    if n < 2 or a.max() == 0 or b.max() == 0:
        return np.nan
    rows, columns = int(a.max()) + 1, int(b.max()) + 1
    row_counts, column_counts = np.bincount(a), np.bincount(b)
    # The sum over cells of n_ij^2 / (n_i n_j) - 1, over the cells that hold rows.
    cells, counts = np.unique(a * columns + b, return_counts=True)
    phi = float((counts**2 / (row_counts[cells // columns] * column_counts[cells % columns])).sum()) - 1
    phi = max(0.0, phi - (rows - 1) * (columns - 1) / (n - 1))
    smaller = min(rows - (rows - 1) ** 2 / (n - 1), columns - (columns - 1) ** 2 / (n - 1)) - 1
    return float(np.sqrt(phi / smaller)) if smaller > 0 else np.nan
