"""Newton's method to machine precision: the guarantee is one of the exact minimiser."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from oversafe.learn.objective import TOLERANCE_SHARE, Calibration

FloatArray = NDArray[np.float64]

# Rows that are weighted at a time, so that the Hessian needs no second copy of the table.
_BLOCK = 1 << 20
# Up to this many unknowns the Hessian is made and factored.
_DIRECT = 1500
_MOST_STEPS = 200
# Beyond this many rows a part of them is solved first.
_PART = 50_000
# Below this width of the Huber loss a wider one is solved first.
_NARROW = 0.1


@dataclass
class Problem:
    """Minimise ``sum_i w_i loss(y_i, x_i' B + offset) + ridge / 2 |B|^2 + <noise, B>`` over B.

    Parameters
    ----------
    X : array of shape (n, d)
        Records; the constant for the intercept is not among the columns.
    codes : array of int of shape (n,)
        Classes from 0 on.
    n_classes : int
        Two classes have one column of coefficients, more have one each.
    ridge : float
        Above 0.
    noise : array of shape (d + 1, n_columns)
        The linear term; the last row is the intercept's.
    constant : float
        What stands for the intercept in every record; 0 for none.
    weights : array of shape (n,), optional
        Of each record.
    offset : array of shape (n_columns,)
        Added to every margin.
    loss : {"logistic", "huber"}
        For two classes; more have the softmax.
    width : float
        Half the width of the part of the Huber loss that is bent.
    """

    X: FloatArray
    codes: NDArray[np.int64]
    n_classes: int
    ridge: float
    noise: FloatArray
    constant: float = 1.0
    weights: FloatArray | None = None
    offset: FloatArray | None = None
    loss: Literal["logistic", "huber"] = "logistic"
    width: float = 0.5
    _row_weights: Any = field(init=False, repr=False, default=1.0)
    _signs: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.weights is not None:
            self._row_weights = np.asarray(self.weights, dtype=np.float64)
        if self.n_classes == 2:
            self._signs = 2.0 * self.codes - 1.0

    def solve(self, tolerance: float) -> FloatArray:
        """Return the minimiser, of shape (d + 1, n_columns); the gradient's norm there is below half the tolerance.

        The other half is for the rounding of the gradient. Newton's method gets there in a few steps. Should it not,
        steps against the gradient do, whatever the records are: each takes at least ridge / L off the gradient, where L
        is the most that the objective bends. So no error tells of the records after they were paid for; where rounding
        lets no step shorten the gradient, the point is as near as numbers can be.
        """
        B = self._start(tolerance)
        first = 0.0
        for _ in range(_MOST_STEPS):
            margins = self._margins(B)
            slopes, bends = self._derivatives(margins)
            gradient = self._back(slopes) + self.ridge * B + self.noise
            norm = float(np.linalg.norm(gradient))
            if norm <= tolerance / 2:
                return B
            first = first or norm
            # Steps need not be more accurate than the model that they come from.
            accuracy = max(min(0.1, (norm / first) ** 0.5), 0.2 * tolerance / norm)
            step = self._step(gradient, bends, accuracy)
            B = B - self._part(step, margins, slopes, float(np.sum(gradient * step))) * step
        most_bent = self._most_bent()
        while norm > tolerance / 2:
            trial = B - gradient / most_bent
            gradient = (
                self._back(self._derivatives(self._margins(trial))[0]) + self.ridge * trial + self.noise
            )
            before, norm = norm, float(np.linalg.norm(gradient))
            if not norm < before:
                break
            B = trial
        return B

    def _part(self, step: FloatArray, margins: FloatArray, slopes: FloatArray, fall: float) -> float:
        """Return how much of a step to take: all of it, or up to where the objective no longer falls along it.

        The slope along a line only rises. The objective itself is not compared: near the minimum its fall is less
        than its rounding.
        """
        along, square = self._margins(step, offset=False), float(np.sum(step * step))
        low, high, part = 0.0, 1.0, 1.0
        while high - low > 1e-10:
            there, _ = self._derivatives(margins - part * along)
            left = fall + float(np.sum((there - slopes) * along)) - part * self.ridge * square
            if abs(left) <= 0.1 * fall or (left > 0 and part == 1):
                break
            low, high = (part, high) if left > 0 else (low, part)
            part = (low + high) / 2
        return part

    def _start(self, tolerance: float) -> FloatArray:
        """Return where to begin: the minimum of a part of many rows or of a loss less bent; the end is the same."""
        if self.loss == "huber" and self.width < _NARROW:
            return replace(self, width=4 * self.width).solve(max(tolerance, 1e-3 * self.ridge))
        if len(self.X) <= _PART:
            return np.zeros_like(self.noise)
        step = -(-len(self.X) // _PART)
        part = replace(
            self,
            X=np.ascontiguousarray(self.X[::step]),
            codes=self.codes[::step],
            weights=None if self.weights is None else self.weights[::step],
            ridge=self.ridge / step,
            noise=self.noise / step,
        )
        return part.solve(max(tolerance, 1e-3 * self.ridge / step))

    def _margins(self, B: FloatArray, offset: bool = True) -> FloatArray:
        margins = self.X @ B[:-1] + self.constant * B[-1]
        if offset and self.offset is not None:
            margins += self.offset
        return margins

    def _most_bent(self) -> float:
        """Return a bound of the Hessian: its trace, with each record's loss as bent as it gets."""
        bent = (1 / (2 * self.width) if self.loss == "huber" else 0.25) if self.n_classes == 2 else 0.5
        squares = np.einsum("ij,ij->i", self.X, self.X) + self.constant**2
        return self.ridge + bent * float(np.sum(self._row_weights * squares))

    def _derivatives(self, margins: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the slopes in the margins, and what the Hessian is made of."""
        if self.n_classes == 2:
            m = self._signs * margins[:, 0]
            if self.loss == "logistic":
                p = expit(-m)
                bends = self._row_weights * p * (1 - p)
            else:
                p = np.clip((1 + self.width - m) / (2 * self.width), 0.0, 1.0)
                bends = self._row_weights * ((p > 0) & (p < 1)) / (2 * self.width)
            return (-self._row_weights * self._signs * p)[:, None], bends
        shares = np.exp(margins - margins.max(axis=1)[:, None])
        shares /= shares.sum(axis=1)[:, None]
        slopes = shares.copy()
        slopes[np.arange(len(slopes)), self.codes] -= 1.0
        if self.weights is not None:
            slopes *= self._row_weights[:, None]
        return slopes, shares

    def _back(self, rows: FloatArray) -> FloatArray:
        return np.vstack([self.X.T @ rows, self.constant * rows.sum(axis=0)])

    def _step(self, gradient: FloatArray, bends: FloatArray, accuracy: float) -> FloatArray:
        if self.n_classes == 2 and len(gradient) <= _DIRECT:
            return np.asarray(np.linalg.solve(self._hessian(bends), gradient), dtype=np.float64)
        from scipy.sparse.linalg import LinearOperator, cg

        shape = gradient.shape

        def times(flat: FloatArray) -> FloatArray:
            B = flat.reshape(shape)
            along = self._margins(B, offset=False)
            if self.n_classes == 2:
                rows = bends[:, None] * along
            else:
                rows = bends * (along - np.sum(bends * along, axis=1, keepdims=True))
                if self.weights is not None:
                    rows *= self._row_weights[:, None]
            return (self._back(rows) + self.ridge * B).ravel()

        operator = LinearOperator((gradient.size, gradient.size), matvec=times, dtype=np.float64)
        step, _ = cg(operator, gradient.ravel(), rtol=max(accuracy, 1e-12), maxiter=10 * gradient.size)
        return step.reshape(shape)

    def _hessian(self, bends: FloatArray) -> FloatArray:
        d = self.X.shape[1]
        hessian = np.zeros((d + 1, d + 1))
        rows = max(1, _BLOCK // max(d, 1))
        for start in range(0, len(self.X), rows):
            block, bent = self.X[start : start + rows], bends[start : start + rows]
            weighted = block * bent[:, None]
            hessian[:d, :d] += block.T @ weighted
            hessian[:d, d] += self.constant * weighted.sum(axis=0)
        hessian[d, :d] = hessian[:d, d]
        hessian[d, d] = self.constant**2 * float(np.sum(bends))
        # Where rounding would swallow the ridge, the step is a little shorter.
        hessian[np.diag_indices(d + 1)] += max(self.ridge, 1e-14 * float(np.trace(hessian)))
        return hessian

    def implied_noise(self, B: FloatArray) -> FloatArray:
        """Return the linear term for which B is the minimiser."""
        return -(self._back(self._derivatives(self._margins(B))[0]) + self.ridge * B)

    def merged(self) -> Problem:
        """Return the same problem with equal records as one of more weight."""
        rows, places = np.unique(np.column_stack([self.X, self.codes]), axis=0, return_inverse=True)
        each = np.broadcast_to(self._row_weights, len(self.codes))
        weights = np.bincount(places.ravel(), each).astype(np.float64)
        return replace(self, X=rows[:, :-1], codes=rows[:, -1].astype(np.int64), weights=weights)

    def curvature(self, B: FloatArray) -> FloatArray:
        """Return the Hessian at B, its unknowns in the order of ``B.ravel()``; for few unknowns."""
        rows = np.hstack([self.X, np.full((len(self.X), 1), self.constant)])
        bends = self._derivatives(self._margins(B))[1]
        if self.n_classes == 2:
            bends = bends[:, None, None]
        else:
            bends = bends[:, :, None] * (np.eye(bends.shape[1]) - bends[:, None, :])
            bends *= np.reshape(self._row_weights, (-1, 1, 1))
        bent = np.einsum("ni,nkl,nj->ikjl", rows, bends, rows).reshape(B.size, B.size)
        return np.asarray(bent + self.ridge * np.eye(B.size))


@dataclass(frozen=True)
class Spherical:
    """Noise on a vector whose density falls as exp(-norm / scale)."""

    scale: float
    epsilon: float

    @property
    def mu(self) -> float:
        """What is claimed, in deviations of normal noise."""
        return self.epsilon

    def log_ratio(self, answers: Any, first: Any, second: Any) -> FloatArray:
        """Return how much likelier one minimiser makes each answer than another, as a logarithm."""
        return _lengths(answers - second) / self.scale - _lengths(answers - first) / self.scale


@dataclass(frozen=True)
class Perturbed:
    """The minimiser of a problem with a random linear term; the answer tells the term, and how volumes change."""

    plan: Calibration
    rows: int
    basis: FloatArray

    @property
    def epsilon(self) -> float | None:
        """What is claimed to be spent, if the law is purely private."""
        return None if self.plan.method == "gaussian" else self.plan.epsilon * (1 - TOLERANCE_SHARE)

    @property
    def mu(self) -> float:
        """What is claimed, in deviations of normal noise."""
        return self.plan.sensitivity / self.plan.scale

    def log_ratio(self, answers: Any, first: Problem, second: Problem) -> FloatArray:
        """Return how much likelier one problem makes each answer than another, as a logarithm."""
        return self.log_density(answers, first) - self.log_density(answers, second)

    def log_density(self, answers: Any, problem: Problem) -> FloatArray:
        """Return the logarithm of the density of answers, but for a constant."""
        return np.array([self._of_noise(b) + v for b, v in map(partial(self.implied, problem), answers)])

    def implied(self, problem: Problem, B: FloatArray) -> tuple[FloatArray, float]:
        """Return the noise that makes B the minimiser, in the unknowns that are free, and the log of the volume."""
        free = np.kron(np.eye(len(B))[:, : self.rows], self.basis)
        _, volume = np.linalg.slogdet(free.T @ problem.curvature(B) @ free)
        return free.T @ problem.implied_noise(B).ravel(), float(volume)

    def _of_noise(self, b: FloatArray) -> float:
        length = float(np.linalg.norm(b)) / self.plan.scale
        return -(length**2) / 2 if self.plan.method == "gaussian" else -length


def _lengths(matrices: FloatArray) -> FloatArray:
    return np.linalg.norm(matrices.reshape(len(matrices), -1), axis=1)
