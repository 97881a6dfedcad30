"""The grid of each column: where real values can lie."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from oversafe.attack.geometry.lattice.precision import Precision, decimals_of

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
_EVEN = np.ones(1)
# Origin, step, how popular each rest is, noise.
_Column = tuple[float, float, FloatArray, float]

# A grid must be so much wider than the error of its values: with less, every number is near one of its points.
_CLEAR = 16.0
# Values off the grid that a column may have (typing errors, other units); rows with one are not decoded.
_OFF = 0.02
# A column of fewer values has each counted; of a wider one the last decimal digit is: some are rounder than others.
_NARROW, _LAST_DIGIT = 20, 10
# Rows not seen may lie farther off a grid than those that were.
_BEYOND = 1.5
# How far real values may lie outside the released ones, as a share of their range.
_MARGIN = 0.25
# Repeated values that show a grid, or the share of the cells that repeat.
_REPEATED, _STATIC = 5, 0.3
# More steps than this say nothing about an interpolated double.
_FINEST = 2.0**28
# Distinct values that fit a grid; so many are enough.
_MOST_VALUES = 20_000
# Values of a small sample, and how many samples are tried.
_FEW, _TRIES = 30, 5


@dataclass(frozen=True)
class Grids:
    """Where the real values of each column lie.

    Parameters
    ----------
    origin, step : array (m,)
        A value is origin + k step with a whole k; the step is NaN where there is no grid.
    popular : array (m, 20)
        How often the whole k of real values leave each rest, against all rests being equally frequent.
    modulus : array (m,)
        Divided by what.
    noise : array (m,)
        How far a real value may be off its grid: values that were scaled and then rounded lie near one.
    usual : array (m,)
        The range of most values.
    lowest, highest : array (m,)
        The smallest and largest plausible real value.
    """

    origin: FloatArray
    step: FloatArray
    popular: FloatArray
    modulus: FloatArray
    noise: FloatArray
    usual: FloatArray
    lowest: FloatArray
    highest: FloatArray

    def units(self, values: FloatArray) -> FloatArray:
        """Return values in steps from the origin."""
        return (values - self.origin) / self.step

    def values(self, units: FloatArray) -> FloatArray:
        """Return the values of grid points, as a parser reads their decimals."""
        inverse = np.rint(1.0 / self.step)
        with np.errstate(divide="ignore", invalid="ignore"):
            decimal = (inverse * self.step == 1.0) & (self.origin == 0)
            return np.where(decimal, units / inverse, self.origin + units * self.step)

    def only(self, columns: NDArray[np.int64] | list[int]) -> Grids:
        """Return the grids of some columns alone."""
        step = np.full_like(self.step, np.nan)
        step[columns] = self.step[columns]
        return replace(self, step=step)

    def filled(self, other: Grids) -> Grids:
        """Return the grids with those of another where there are none."""
        better = np.isnan(self.step) & np.isfinite(other.step)
        mine = {
            name: np.where(better if value.ndim == 1 else better[:, None], getattr(other, name), value)
            for name, value in vars(self).items()
        }
        lowest, highest = np.minimum(self.lowest, other.lowest), np.maximum(self.highest, other.highest)
        return replace(Grids(**mine), usual=self.usual, lowest=lowest, highest=highest)

    def of(self, columns: BoolArray) -> Grids:
        """Return the grids of a table of some of the columns."""
        return Grids(**{name: value[columns] for name, value in vars(self).items()})

    def among(self, columns: NDArray[np.int64], m: int) -> Grids:
        """Return the grids of a table of m columns that has these among others."""
        wider = no_grids(m)
        for name, value in vars(self).items():
            getattr(wider, name)[columns] = value
        return wider

    def changed(self, column: int, origin: float, step: float) -> Grids:
        """Return the grids with another one in one column."""
        if step < 1 and abs(step * np.rint(1 / step) - 1) < 1e-13:
            step = 1 / np.rint(1 / step)
        origins, steps = self.origin.copy(), self.step.copy()
        origins[column], steps[column] = origin, step
        popular, modulus = self.popular.copy(), self.modulus.copy()
        popular[column], modulus[column] = 1.0, 1.0
        return replace(self, origin=origins, step=steps, popular=popular, modulus=modulus)


def grids_of_known(known: FloatArray, released: FloatArray, precision: Precision) -> Grids:
    """Return the grids on which known real rows lie, such as those of the other classes.

    Parameters
    ----------
    known : array (n, m)
        Real rows, from the same file.
    released : array (k, m)
        Interpolated rows, which widen the box of the plausible values.
    precision : Precision
        How precisely the file is written.
    """
    error = precision.errors(known)
    columns = [_known_grid(known[:, j], error[:, j]) for j in range(known.shape[1])]
    return _grids(columns, np.vstack([known, released]))


def no_grids(m: int) -> Grids:
    """Return what is known of columns without any row."""
    return Grids(
        np.zeros(m), np.full(m, np.nan), np.ones((m, _NARROW)), np.ones(m), *(np.zeros(m) for _ in range(4))
    )


def _known_grid(values: FloatArray, error: FloatArray) -> _Column:
    """Return the grid of one column; if it has none, one of values that were rounded after they were scaled."""
    for noise in (0.0, 0.5 * 10.0 ** -decimals_of(values), 2.0**-24 * float(np.abs(values).max(initial=0.0))):
        origin, step, popular = grid_of(values, error + noise)
        noise = max(noise, _off_grid(values, error, origin, step))
        if (np.ptp(values) if len(values) else 0.0) < _FINEST * step:
            return origin, step, popular, noise
    return 0.0, np.nan, _EVEN, 0.0


def _off_grid(values: FloatArray, error: FloatArray, origin: float, step: float) -> float:
    """Return how far values lie off their grid beyond their error: scaling adds to it."""
    if not np.isfinite(step):
        return 0.0
    off = np.abs(values - origin - step * np.rint((values - origin) / step))
    near = off < step / _CLEAR
    return _BEYOND * float(np.max(off[near] - error[near], initial=0.0))


def grids_of_repeats(released: FloatArray, precision: Precision) -> Grids:
    """Return the grids of the cells that repeat: both parents have that value, so it is a real one.

    Parameters
    ----------
    released : array (n, m)
        Interpolated rows.
    precision : Precision
        How precisely the file is written.
    """
    error = precision.errors(released)
    columns: list[_Column] = []
    for j in range(released.shape[1]):
        kinds, first, counts = np.unique(released[:, j], return_index=True, return_counts=True)
        often = counts >= _repeats(len(released), float(np.ptp(kinds)), float(np.median(error[:, j])))
        static = counts[often].sum() / max(len(released), 1)
        if often.sum() >= _REPEATED or static >= _STATIC:
            shown, doubt = np.repeat(kinds[often], 2), np.repeat(error[first[often], j], 2)
            origin, step, popular = grid_of(shown, doubt)
            columns.append((origin, step, popular, _off_grid(shown, doubt, origin, step)))
        else:
            columns.append((0.0, np.nan, _EVEN, 0.0))
    return _grids(columns, released)


def _repeats(n: int, span: float, error: float) -> int:
    """Return how often a value must occur so that chance explains less than one such value."""
    cells = max(span / (2 * error), 1.0) if error > 0 else np.inf
    least, expected = 2, n * n / (2 * cells)
    while expected > 0.05 and least < 10:
        least += 1
        expected *= n / (least * cells)
    return least


def _grids(columns: list[_Column], rows: FloatArray) -> Grids:
    lowest, highest = rows.min(axis=0), rows.max(axis=0)
    wider = _MARGIN * (highest - lowest)
    # A column of two values has no more than those.
    wider[
        [not step < 0.9 * span for (_, step, _, _), span in zip(columns, np.ptp(rows, axis=0), strict=True)]
    ] = 0.0
    return Grids(
        np.array([origin for origin, _, _, _ in columns]),
        np.array([step for _, step, _, _ in columns]),
        np.array([np.resize(popular, _NARROW) for _, _, popular, _ in columns]),
        np.array([float(len(popular)) for _, _, popular, _ in columns]),
        np.array([noise for _, _, _, noise in columns]),
        np.subtract(*np.percentile(rows, [95, 5], axis=0)),
        lowest - wider,
        highest + wider,
    )


def grid_of(values: FloatArray, error: FloatArray) -> tuple[float, float, FloatArray]:
    """Return origin and step of one column, the step NaN if it has no grid, and how popular each rest is.

    Parameters
    ----------
    values, error : array (n,)
        Real values, and how much each may be off.
    """
    none = (0.0, np.nan, _EVEN)
    finite = np.isfinite(values)
    values, error = values[finite], error[finite]
    kinds, first, counts = np.unique(values, return_index=True, return_counts=True)
    error = error[first]
    if len(kinds) < 2:
        return none
    if len(kinds) > _MOST_VALUES:
        some = np.linspace(0, len(kinds) - 1, _MOST_VALUES).astype(int)
        kinds, error, counts = kinds[some], error[some], counts[some]
    fit = _fit(kinds, error)
    # A few values off the grid would leave none: those that repeat, or most small samples, are free of them.
    rng = np.random.default_rng(0)
    tries = [counts > 1] + [rng.random(len(kinds)) < _FEW / len(kinds) for _ in range(_TRIES)]
    while fit is None and tries:
        some = tries.pop(0)
        if some.sum() >= 2:
            fit = _fit(kinds[some], error[some])
    if fit is None:
        return none
    origin, step = fit
    units = (kinds - origin) / step
    on = np.abs(units - np.rint(units)) * step <= 4 * error + 1e-9 * step
    if counts[~on].sum() > _OFF * counts.sum():
        return none
    whole, weight = np.rint(units[on]).astype(np.int64), counts[on]
    # Coarser where nearly all values are: a few exceptions would make every line seem divisible.
    for prime in (2, 3, 5, 7):
        while len(whole) > 2:
            share = np.bincount(whole % prime, weights=weight, minlength=prime) / weight.sum()
            rest = int(share.argmax())
            keep = whole % prime == rest
            if min(share[rest], keep.mean()) < 1 - _OFF or keep.sum() < 2:
                break
            origin, step = origin + rest * step, step * prime
            whole, weight = (whole[keep] - rest) // prime, weight[keep]
    if abs(origin / step - np.rint(origin / step)) < 1e-6:
        origin = 0.0
    return origin, step, _popular(whole, weight)


def _popular(whole: NDArray[np.int64], weight: NDArray[np.int64]) -> FloatArray:
    """Return how much more frequent each rest is than if all were equally so."""
    modulus = int(np.ptp(whole)) + 1
    modulus = modulus if modulus <= _NARROW else _LAST_DIGIT
    counts = np.bincount(whole % modulus, weights=weight, minlength=modulus) + 1.0
    return np.asarray(counts / counts.mean())


def _fit(kinds: FloatArray, error: FloatArray) -> tuple[float, float] | None:
    """Return origin and step of sorted distinct values: Euclid's algorithm on their differences, or None."""
    way, slack = kinds[1:] - kinds[0], error[1:] + error[0]
    step, doubt = float(way[0]), float(slack[0])
    for _ in range(10_000):
        if not step > _CLEAR * doubt:
            return None
        whole = np.rint(way / step)
        off = np.abs(way - whole * step)
        # The step is known only so well: a far value tells nothing yet about whether it fits.
        clear = whole * doubt < step / 8
        wrong = np.flatnonzero(clear & (off > 2 * (slack + whole * doubt) + 1e-9 * step))
        if len(wrong):
            i = wrong[0]
            step, doubt = _divisor(step, doubt, float(way[i]), float(slack[i]))
            continue
        sharper = np.where(clear & (whole > 0), slack / np.maximum(whole, 1), np.inf)
        best = int(sharper.argmin())
        if not sharper[best] < doubt * (1 - 1e-9):
            break
        step, doubt = float(way[best] / whole[best]), float(sharper[best])
    if not clear.all() or not step > _CLEAR * slack.max():
        return None
    return _snapped(kinds, error, step)


def _divisor(a: float, a_doubt: float, b: float, b_doubt: float) -> tuple[float, float]:
    """Return the common divisor of two numbers that are known up to a doubt, and its own doubt."""
    while b > 2 * b_doubt:
        quotient = np.rint(a / b)
        rest, rest_doubt = abs(a - quotient * b), a_doubt + quotient * b_doubt
        if rest <= 2 * rest_doubt and quotient > 0:
            return (a / quotient, a_doubt / quotient) if a_doubt < quotient * b_doubt else (b, b_doubt)
        a, a_doubt, b, b_doubt = b, b_doubt, rest, rest_doubt
    return 0.0, np.inf


def _snapped(kinds: FloatArray, error: FloatArray, step: float) -> tuple[float, float]:
    """Return origin and step by least squares, or round numbers where they fit as well."""
    whole = np.rint((kinds - kinds[0]) / step)
    whole_from, kinds_from = whole - whole.mean(), kinds - kinds.mean()
    step = float((whole_from * kinds_from).sum() / (whole_from**2).sum())
    origin = float(kinds.mean() - step * whole.mean())
    plain = float(np.rint(step) if step > 0.75 else 1 / np.rint(1 / step))
    start = plain * np.rint(kinds[0] / plain)
    for begin in (start, origin):
        if (np.abs(kinds - begin - whole * plain) <= 4 * error).all():
            return float(begin), plain
    return origin, step
