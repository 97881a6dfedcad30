"""How much each released number may be off: the arithmetic that made it, and the digits that were written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# A row is a + u (b - a): three roundings of doubles (float32: of the parents and of the row), each at most half a unit.
_DOUBLE = 2.0**-51
_SINGLE = 2.0**-25
# Beyond so many digits a double is written in full.
FULL = 16
# So many digits survive float32, so they say nothing about it.
_SURVIVE = 7
# Cells of a column that are read, and cells of one size that show how many decimals such cells have.
_CELLS, _SHOW = 2_000, 10


@dataclass(frozen=True)
class Precision:
    """How precisely the numbers of a file are written.

    Parameters
    ----------
    digits : int or "float32"
        Significant digits of the file, or the type that its numbers went through.
    decimals : tuple of dict
        For each column the decimals of numbers from 10^k on, by k, where enough of them show it.
    span : array (m,)
        The range of each column.
    early : bool
        Whether the parents were float32 already, not only the rows.
    """

    digits: int | Literal["float32"]
    decimals: tuple[dict[int, int], ...]
    span: FloatArray
    early: bool = False

    @classmethod
    def of(cls, released: FloatArray, digits: int | Literal["float32"] | None = None) -> Precision:
        """Return the precision of interpolated rows, whose numbers have no decimals of their own."""
        span = np.ptp(released, axis=0) if len(released) else np.zeros(released.shape[1])
        if digits is not None:
            return cls(digits, ({},) * released.shape[1], span)
        read = [_digits_of(released[:, j]) for j in range(released.shape[1])]
        most = max((int(significant.max(initial=1)) for _, significant, _ in read), default=1)
        if most > _SURVIVE and _is_single(released):
            return cls("float32", ({},) * released.shape[1], span)
        shown: list[dict[int, int]] = []
        for cells, _, decimals in read:
            decade = _decade(np.abs(cells))
            shown.append(
                {
                    int(one): int(decimals[decade == one].max())
                    for one in np.unique(decade)
                    # Cells that do not move have the decimals of the data.
                    if (decimals[decade == one] >= decimals[decade == one].max() - 1).sum() >= _SHOW
                }
            )
        return cls(most, tuple(shown), span)

    def of_columns(self, columns: NDArray[np.bool_]) -> Precision:
        """Return the precision of some of the columns."""
        shown = tuple(one for one, used in zip(self.decimals, columns, strict=True) if used)
        return Precision(self.digits, shown, self.span[columns], self.early)

    def errors(self, values: FloatArray) -> FloatArray:
        """Return by how much each number may differ from a + u (b - a)."""
        size = np.abs(values)
        error: FloatArray = _DOUBLE * (size + self.span)
        if self.digits == "float32":
            if self.early:
                return error + _SINGLE * (2.0 * size + self.span)
            return error + 0.5 * np.spacing(size.astype(np.float32)).astype(float)
        if self.digits >= FULL:
            return error
        decade = _decade(size)
        half = 0.5 * 10.0 ** (decade + 1 - self.digits)
        for j, shown in enumerate(self.decimals):
            larger: int | None = None
            for one in range(int(decade[:, j].max(initial=0)), int(decade[:, j].min(initial=0)) - 1, -1):
                here = decade[:, j] == one
                larger = shown.get(one, larger)
                if one in shown:
                    half[here, j] = 0.5 * 10.0 ** -shown[one]
                elif larger is not None:
                    # Too few to tell: they have at least the decimals of larger ones.
                    half[here, j] = np.maximum(half[here, j], 0.5 * 10.0**-larger)
        return error + half


def decimals_of(values: FloatArray) -> int:
    """Return how many decimals the numbers of a column have at most."""
    return int(_digits_of(values)[2].max(initial=0))


def errors_of_constants(values: FloatArray) -> FloatArray:
    """Return by how much the first number of each column may have been off before the file was written."""
    written = Precision.of(values[:_CELLS])
    error = written.errors(values[:1])[0]
    if written.digits == "float32" or written.digits >= FULL:
        return error
    each = np.array([decimals_of(values[:_CELLS, j]) for j in range(values.shape[1])])
    own = np.array([decimals_of(values[:1, j]) for j in range(values.shape[1])])
    # A whole number has lost its decimals, of which it could have as many as the others.
    return np.maximum(error, 0.5 * 10.0 ** -np.where(own > 0, own, each.max(initial=0)))


def _decade(size: FloatArray) -> FloatArray:
    return np.floor(np.log10(np.where(size > 0, size, 1.0)))


def _digits_of(column: FloatArray) -> tuple[FloatArray, IntArray, IntArray]:
    """Return distinct numbers of a column, their significant digits and their decimals."""
    cells = np.unique(column)
    if len(cells) > _CELLS:
        cells = cells[np.linspace(0, len(cells) - 1, _CELLS).astype(int)]
    significant = np.zeros(len(cells), dtype=np.int64)
    decimals = np.zeros(len(cells), dtype=np.int64)
    for i, cell in enumerate(cells.tolist()):
        mantissa, _, exponent = repr(cell).lstrip("-").partition("e")
        whole, _, part = mantissa.partition(".")
        part = part.rstrip("0")
        significant[i] = len((whole + part).lstrip("0")) if part else len(whole.strip("0"))
        decimals[i] = max(0, len(part) - int(exponent or 0))
    return cells, significant, decimals


def _is_single(values: FloatArray) -> bool:
    """Whether every number is one of float32, or how Python writes one."""
    sample: Any = values[:_CELLS].ravel()
    with np.errstate(over="ignore"):
        single = sample.astype(np.float32)
    odd = single.astype(float) != sample
    return all(float(str(one)) == exact for one, exact in zip(single[odd], sample[odd], strict=True))
