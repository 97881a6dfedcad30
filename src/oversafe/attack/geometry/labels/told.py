"""How likely each row of a table is real, by the grids of its columns and by the rows on either side of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oversafe.attack.geometry.labels.between import places_among
from oversafe.attack.geometry.labels.off_grid import OffGrid, off_grid
from oversafe.attack.geometry.labels.single_rows import are_decoded
from oversafe.attack.geometry.lattice import Precision

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Settings:
    """What decides; the shares were measured on the development sets of benchmarks/distin_cases.

    Parameters
    ----------
    explained : float
        The share of the rows off the grid that interpolation explains, beyond chance, from which on they count as
        interpolated. Where half of the parents are of other classes it is a tenth, in tables of measurements 0.
    significant : float
        By how many standard deviations that share must differ from chance.
    enough : float
        The share of them from which on no column is doubted.
    bad_rows : float
        The share of the rows which are off the grid in one column alone, and unexplained, that shows it to be none.
    fine : float
        The share of a file's numbers on a grid up to which round values are no grid by being frequent.
    few : int
        In how many columns real rows may be off a grid that holds for others.
    odd : float
        The share of the real rows that may be so.
    decodable : int
        In how many columns a row must be off the grid to be decoded by itself.
    shift : int
        By how many steps of the file rows are moved to see what chance explains.
    least_wrong : float
        What no count shows: no label is surer.
    unexplained : float
        How many of the rows off the grid that nothing explains are real.
    found, missed : float
        How many interpolated rows are seen to lie between two others, and how many are not.
    between_least, beside_most : float
        Without grids, how many of the rows between two others are real at least, and of those that are not at most: a
        sampler may extrapolate, or interpolate between classes.
    """

    explained: float = 0.05
    significant: float = 4.0
    enough: float = 0.9
    bad_rows: float = 0.01
    fine: float = 0.01
    few: int = 1
    odd: float = 0.05
    decodable: int = 3
    shift: int = 3
    least_wrong: float = 1e-3
    unexplained: float = 0.02
    found: float = 0.99
    missed: float = 0.005
    between_least: float = 0.02
    beside_most: float = 0.9


SETTINGS = Settings()


@dataclass(frozen=True)
class Told:
    """What rows show by themselves and beside one another.

    Parameters
    ----------
    p_real : array (n,)
        The probability that each row is real.
    columns : array of bool (m,)
        The columns whose grids tell; none where only the rows beside do.
    """

    p_real: FloatArray
    columns: BoolArray
    _grid: OffGrid | None = None
    _on: float = 0.5

    def with_gaps(self, values: FloatArray, error: FloatArray, settings: Settings = SETTINGS) -> FloatArray:
        """Return the probability that rows with missing values are real, by the grids of the others; NaN if open."""
        result = np.full(len(values), np.nan)
        if self._grid is None:
            return result
        off = self._grid.beside(values, error)
        there = ~np.isnan(values) & self.columns
        result[there.any(axis=1)] = self._on
        result[off.any(axis=1)] = settings.unexplained
        return result


def told_by_grids(values: FloatArray, n_jobs: int | None, settings: Settings = SETTINGS) -> Told | None:
    """Return what the grids of the columns tell, or None where they tell nothing.

    Real rows are on the grids in all columns, and interpolated ones off them where their parents differ. That they are
    interpolated is shown by those on the grid between which they lie, or by the lattice attack.

    Parameters
    ----------
    values : array (n, m)
        The distinct rows of a table.
    n_jobs : int, optional
        Number of threads, as in joblib.
    """
    written = Precision.of(values)
    error = written.errors(values)
    grid = off_grid(values, written)
    while True:
        if not grid.columns.any():
            return None
        many = grid.cells.sum(axis=1)
        off, on = np.flatnonzero(many > 0), np.flatnonzero(many == 0)
        explained = places_among(values[off], error[off], values[on], error[on], n_jobs).explained
        # Of fewer columns no row can be decoded.
        wide = np.flatnonzero(~explained & (many[off] >= settings.decodable))
        if len(wide) and explained.mean() < settings.enough and are_decoded(values[off[wide]], values[on]):
            explained[wide] = True
        bad = _worst_column(values, grid, off, explained, settings)
        if bad is None:
            break
        grid = grid.without(bad)
    if not _is_interpolated(values, error, grid, off, on, explained, n_jobs, settings):
        return None
    p_real = np.empty(len(values))
    p_real[off] = np.where(
        explained, settings.least_wrong, _exceptions(many[off], explained, len(on), settings)
    )
    if len(on):
        p_real[on] = 1.0 - min(0.5, _on_by_chance(grid, off) / len(on) + settings.least_wrong)
        p_real[on[_twins(values[on], error[on], grid, n_jobs)]] = settings.unexplained
    on_share = float(np.median(p_real[on])) if len(on) else 0.5
    return Told(p_real, grid.columns, grid, on_share)


def _worst_column(
    values: FloatArray, grid: OffGrid, off: NDArray[np.int64], explained: BoolArray, settings: Settings
) -> BoolArray | None:
    """Return the column that has no grid, as many rows show that are off it alone and that nothing explains.

    Round values are frequent where a file has few decimals, so that they seem to be a grid. Where it has many, those
    outside the range of the values on the grid show that these are special ones, such as 0 for "none".
    """
    if explained.mean() >= settings.enough:
        return None
    cells = grid.cells[off]
    alone = cells.sum(axis=1) == 1
    odd = cells & (alone & ~explained)[:, None]
    counts = odd.sum(axis=0)
    bad = (counts > max(1.0, settings.bad_rows * len(cells))) & (2 * counts > cells[alone].sum(axis=0))
    for j in np.flatnonzero(bad):
        if grid.by_chance[:, j].mean() < settings.fine:
            inner, outer = values[off[odd[:, j]], j], values[~grid.cells[:, j], j]
            bad[j] = ((inner < outer.min()) | (inner > outer.max())).mean() > 0.5
    return np.arange(len(bad)) == np.where(bad, counts, -1).argmax() if bad.any() else None


def _exceptions(many: NDArray[np.int64], explained: BoolArray, n_on: int, settings: Settings) -> FloatArray:
    """Return how likely the unexplained rows are real: some real rows are off one grid, where no others are."""
    p_real = np.full(len(many), settings.unexplained)
    rest = np.bincount(many[~explained], minlength=int(many.max()) + 1)
    usual = np.bincount(many[explained], minlength=len(rest)) + 0.5
    expected = rest.sum() * usual / usual.sum()
    few = (rest > 0) & (np.arange(len(rest)) <= settings.few) & (rest <= max(2.0, settings.odd * n_on))
    p_of = np.where(
        few, np.maximum(settings.unexplained, 1.0 - expected / np.maximum(rest, 1)), settings.unexplained
    )
    p_real[~explained] = p_of[many[~explained]]
    return p_real


def _is_interpolated(
    values: FloatArray, error: FloatArray, grid: OffGrid, off: NDArray[np.int64], on: NDArray[np.int64],
    explained: BoolArray, n_jobs: int | None, settings: Settings,
) -> bool:  # fmt: skip
    """Return whether more of the rows off the grid are explained than if their cells were off it by chance."""
    moved = _shifted(values[off], error, grid.cells[off], settings)
    by_chance = places_among(moved, error[off], values[on], error[on], n_jobs).explained
    more = int((explained & ~by_chance).sum()) - int((by_chance & ~explained).sum())
    either = int((explained != by_chance).sum())
    return more >= settings.explained * len(off) and more >= min(
        settings.significant * np.sqrt(either), max(1, either)
    )


def _shifted(values: FloatArray, error: FloatArray, cells: BoolArray, settings: Settings) -> FloatArray:
    """Return rows with some cells moved by a few steps of the file, up or down."""
    way = np.random.default_rng(0).choice([-1.0, 1.0], values.shape)
    return values + np.where(cells, 2 * settings.shift * way * error.max(axis=0), 0.0)


def _on_by_chance(grid: OffGrid, off: NDArray[np.int64]) -> float:
    """Return how many interpolated rows are on the grids in all columns, by those that are off them in some.

    Of the rows that move in certain columns this share is on the grid in all of these: the product of the columns'
    chances. So each row that is off it in all of them stands for the product of the odds.
    """
    chance = np.clip(grid.by_chance[off], 0.0, 0.9)
    return float(np.where(grid.cells[off], chance / (1 - chance), 1.0).prod(axis=1).sum())


def _twins(values: FloatArray, error: FloatArray, grid: OffGrid, n_jobs: int | None) -> BoolArray:
    """Return the rows on the grids that lie between two others which are the same in all columns with one."""
    others = ~grid.columns & (np.ptp(values, axis=0) > 0)
    result = np.zeros(len(values), dtype=bool)
    if not others.any():
        return result
    _, name, count = np.unique(values[:, grid.columns], axis=0, return_inverse=True, return_counts=True)
    several = np.flatnonzero(count[name.ravel()] >= 3)
    for same in np.unique(name.ravel()[several]):
        rows = np.flatnonzero(name.ravel() == same)
        result[rows] = places_among(values[rows], error[rows], values[rows], error[rows], n_jobs).between
    return result


def told_by_neighbors(
    values: FloatArray, error: FloatArray, n_jobs: int | None, settings: Settings = SETTINGS
) -> Told | None:
    """Return what the rows on either side of each one tell, or None where chance explains them as well.

    Parameters
    ----------
    values, error : array (n, m)
        The distinct rows of a table, and how much each value may be off.
    n_jobs : int, optional
        Number of threads, as in joblib.
    """
    between = places_among(values, error, values, error, n_jobs).between
    # Nearer ones may have hidden the two that it lies between.
    for _ in range(2):
        left = np.flatnonzero(~between)
        more = places_among(values[left], error[left], values[left], error[left], n_jobs).between
        if not more.any():
            break
        between[left[more]] = True
    # Real rows on the grids of several columns may be on one line.
    grid = off_grid(values, Precision.of(values))
    if grid.columns.sum() > 1:
        between &= grid.cells.any(axis=1)
    rng = np.random.default_rng(0)
    varies = np.flatnonzero(np.ptp(values, axis=0) > 0)
    cells = np.zeros(values.shape, dtype=bool)
    cells[np.arange(len(values)), rng.choice(varies, len(values))] = True
    moved = _shifted(values, error, cells, settings)
    chance = float(places_among(moved, error, values, error, n_jobs, same=True).between.mean())
    share = float(between.mean())
    if share <= chance or share - chance < settings.significant * np.sqrt((share + chance) / len(values)):
        return None
    added = min(1.0, (share - chance) / (settings.found - min(chance, 0.9)))
    p_between = (1 - added) * chance / share
    p_other = (1 - added) * (1 - chance)
    p_other /= p_other + added * settings.missed + 1e-12
    p_real = np.where(between, max(p_between, settings.between_least), min(p_other, settings.beside_most))
    return Told(p_real, np.zeros(values.shape[1], dtype=bool))
