"""How much noise private empirical risk minimisation needs.

The minimiser of ``sum_i w_i loss(y_i, x_i' beta) + ridge / 2 |beta|^2 + b' beta`` is private when ``b`` is drawn
right (objective perturbation, Chaudhuri, Monteleoni and Sarwate 2011). What "right" is depends on two things that one
record can move: the gradient (the sensitivity) and the volume element (the determinant of the Hessian). The proofs
are on the page "Guarantees, proofs and errata"; the names here are theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from oversafe._core.errors import InputError

LossName = Literal["logistic", "huber", "softmax"]
Method = Literal["objective", "output", "gaussian"]

# The share of the fit's epsilon that pays for stopping a little before the minimum.
TOLERANCE_SHARE = 1e-3
# The ridge is at least this times R^2 / epsilon. From 2 on the determinant of the logistic loss costs nothing, from 8
# on that of the softmax; that of the Huber loss always costs something. On the eight data sets of the paper these did
# best: a larger ridge helps the ranking, a smaller one the threshold.
RIDGE_FACTOR: dict[str, float] = {"logistic": 4.0, "huber": 16.0, "softmax": 8.0}


@dataclass(frozen=True)
class Risk:
    """What the noise depends on; all of it public.

    Parameters
    ----------
    loss : {"logistic", "huber", "softmax"}
        The softmax has more than two classes; the others are fitted for two.
    radius : float
        The largest norm of a record, the constant for the intercept included.
    dimension : int
        How many numbers are fitted: columns, with the intercept, times (classes - 1).
    n_classes : int
        The number of classes.
    curvature : float
        The largest second derivative of the loss in the margin.
    weight : float
        The largest weight of a record.
    weights_move : bool
        Whether the weights are the class frequencies of the data themselves (two classes, weights n_other / n).
    """

    loss: LossName
    radius: float
    dimension: int
    n_classes: int = 2
    curvature: float = 0.25
    weight: float = 1.0
    weights_move: bool = False

    @property
    def sensitivity(self) -> float:
        """The most that replacing one record moves the gradient."""
        return self.weight * 2 * self.radius * (math.sqrt(2) if self.loss == "softmax" else 1.0)


@dataclass(frozen=True)
class Calibration:
    """The noise of one private fit.

    Parameters
    ----------
    method : {"objective", "output", "gaussian"}
        Noise in the objective, on its minimiser, or normal noise in the objective.
    ridge : float
        Of the whole sum, 1 / C and what privacy adds to it.
    noise_epsilon : float
        What the noise vector pays for; the rest is the determinant's and the tolerance's.
    scale : float
        Of the noise: the scale of the length's Gamma distribution, or the standard deviation of normal noise.
    tolerance : float
        The norm of the gradient at which the solver may stop.
    tolerance_scale : float
        The scale of the noise that hides the rest.
    epsilon, sensitivity : float
        What all of it pays for, and how far one record moves the gradient: for the record.
    """

    method: Method
    ridge: float
    noise_epsilon: float
    scale: float
    tolerance: float
    tolerance_scale: float
    epsilon: float = 0.0
    sensitivity: float = 0.0

    def expected_error(self, risk: Risk, n: int) -> float:
        """Return about how far noise and ridge move the coefficients, from public facts alone.

        The curvature of the data is taken as a quarter of what it can be, spread evenly over the dimensions, and the
        coefficients as 2 / R long.
        """
        bent = data_curvature(risk, n)
        shrunk = self.ridge / (self.ridge + bent) * 2 / risk.radius
        if self.method == "output":
            return risk.dimension * self.scale + shrunk
        length = math.sqrt(risk.dimension) if self.method == "gaussian" else risk.dimension
        return length * self.scale / (self.ridge + bent) + shrunk


def data_curvature(risk: Risk, n: int) -> float:
    """Return about how much the records bend the objective in each direction, from public facts alone."""
    return risk.curvature * n * risk.weight * risk.radius**2 / (4 * risk.dimension)


def calibrate(
    risk: Risk, epsilon: float, *, method: Method, n: int, ridge: float, delta: float = 0.0
) -> Calibration:
    """Return the least noise that is proven for a fit.

    Parameters
    ----------
    risk : Risk
        What is minimised.
    epsilon, delta : float
        The budget; delta is used by "gaussian" only.
    method : {"objective", "output", "gaussian"}
        Where the noise goes.
    n : int
        The number of records.
    ridge : float
        What the user asked for, 1 / C; more is added where privacy needs it.
    """
    exact = epsilon * (1 - TOLERANCE_SHARE)
    ridge = max(ridge, RIDGE_FACTOR[risk.loss] * risk.weight * risk.radius**2 / exact)
    if method == "output":
        tolerance = solver_tolerance(risk, n)
        # Its noise falls with the ridge alone: the ridge at which noise and shrinkage are about the same.
        even = risk.dimension * risk.sensitivity * data_curvature(risk, n) * risk.radius / (2 * epsilon)
        ridge = max(ridge, math.sqrt(even))
        # The solver's error adds to the sensitivity; no further noise is needed.
        scale = (risk.sensitivity + 2 * tolerance) / (ridge * epsilon)
        return Calibration(method, ridge, epsilon, scale, tolerance, 0.0, epsilon, risk.sensitivity)
    if risk.loss == "huber":
        # However narrow its bend, the determinant takes at most half of epsilon.
        steep = 4 / exact if risk.weights_move else 1 / math.expm1(min(exact / 2, 700.0))
        ridge = max(ridge, steep * risk.curvature * risk.weight * risk.radius**2)
    if method == "gaussian":
        noise_epsilon, scale = exact, gaussian_sigma(risk, exact, delta, ridge)
    else:
        noise_epsilon = split(risk, exact, ridge)
        scale = risk.sensitivity / noise_epsilon
    tolerance = solver_tolerance(risk, n, risk.dimension * scale)
    after = 2 * tolerance / (ridge * epsilon * TOLERANCE_SHARE)
    return Calibration(method, ridge, noise_epsilon, scale, tolerance, after, epsilon, risk.sensitivity)


def solver_tolerance(risk: Risk, n: int, noise: float = 0.0) -> float:
    """Return the norm of the gradient that every solver run must reach; rounding takes less than half of it.

    The gradient's rounding grows with the number of records, and with the length of the noise in the objective.
    """
    return max(1e-7 * risk.weight * risk.radius * max(1.0, n / 1e5), 1e-14 * noise)


def split(risk: Risk, epsilon: float, ridge: float) -> float:
    """Return what is left for the noise vector once the determinant is paid; 0 or less if nothing is."""
    k = risk.weight * risk.radius**2 / ridge
    if risk.loss == "softmax":
        if 8 * k <= epsilon * (1 + 1e-12):
            return epsilon
        return epsilon - (risk.n_classes - 1) * math.log1p(k / risk.n_classes)
    if risk.weights_move:
        trace = 2 * risk.curvature * k
        apart = epsilon - min(trace, risk.dimension * math.log1p(trace / risk.dimension))
        if risk.loss != "logistic":
            return apart
        # Together: 2 max_p (e p / 2 + k p (1 - p)) = epsilon, where p = 1 is best up to k = e / 2.
        together = epsilon if 2 * k <= epsilon else 2 * (math.sqrt(2 * k * epsilon) - k)
        return max(apart, together)
    if risk.loss != "logistic":
        return epsilon - math.log1p(risk.curvature * k)
    return _largest(lambda e: _logistic_loss(e, k) <= epsilon, epsilon)


def _logistic_loss(noise_epsilon: float, k: float) -> float:
    """Return max over p of e (1 + p) / 2 + log(1 + k p (1 - p)), the worst privacy loss with fixed weights."""
    a = noise_epsilon / 2
    # Concave in p; where its slope is zero: a k p^2 - (a - 2) k p - (a + k) = 0.
    root = math.sqrt(((a - 2) * k) ** 2 + 4 * a * k * (a + k))
    p = min(1.0, max(0.0, ((a - 2) * k + root) / (2 * a * k)))
    return a * (1 + p) + math.log1p(k * p * (1 - p))


def _largest(fits: Callable[[float], bool], most: float) -> float:
    if fits(most):
        return most
    low, high = 0.0, most
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if middle > 0 and fits(middle) else (low, middle)
    return low


# ------------------------------------------------------------------------------------------- normal noise


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Return the delta of normal noise on a value that moves by mu standard deviations (Balle and Wang 2018)."""
    from scipy.special import log_ndtr

    if mu <= 0:
        return 0.0
    first = float(log_ndtr(mu / 2 - epsilon / mu))
    second = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return math.exp(first) * -math.expm1(min(0.0, second - first))


def objective_delta(risk: Risk, epsilon: float, sigma: float, ridge: float) -> float:
    """Return the delta of objective perturbation with normal noise.

    The privacy loss is convex in the two records' residuals but for the determinant's part, so it is largest at their
    extremes; each of these is the loss of plain normal noise.
    """
    k = risk.weight * risk.radius**2 / ridge
    both = risk.sensitivity / sigma
    if risk.loss == "logistic":
        if k > epsilon:
            return 1.0
        return (
            gaussian_delta(epsilon, both)
            + gaussian_delta(epsilon, both / 2)
            + gaussian_delta(epsilon - k, both / 2)
        )
    others = risk.n_classes - 1
    if risk.loss == "softmax":
        left = epsilon - others * math.log1p(k / risk.n_classes)
    else:
        left = epsilon - math.log1p(risk.curvature * k)
    if left <= 0:
        return 1.0
    return others**2 * gaussian_delta(left, both) + 2 * others * gaussian_delta(left, both / 2)


def gaussian_sigma(risk: Risk, epsilon: float, delta: float, ridge: float) -> float:
    """Return the least standard deviation at which objective perturbation is (epsilon, delta)-DP."""
    if risk.weights_move:
        raise InputError("normal noise is not proven for weights that move with the data; pay for the counts")
    low, high = 0.0, risk.sensitivity / epsilon
    while objective_delta(risk, epsilon, high, ridge) > delta:
        low, high = high, 2 * high
        if high > 1e12 * risk.sensitivity / epsilon:
            raise InputError(f"no noise meets delta = {delta:g} at epsilon = {epsilon:g}; raise one of them")
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (
            (low, middle) if objective_delta(risk, epsilon, middle, ridge) <= delta else (middle, high)
        )
    return high


# ------------------------------------------------------------------------------------- the published calibration


def paper_calibration(risk: Risk, epsilon: float, *, n: int, ridge: float, columns: int) -> Calibration:
    """Return the noise of Algorithm 1 of Rosenblatt et al. 2025, for comparison.

    Its sensitivity of 3 and its factor d are not needed, and by its own accounting its fallback does not hold; see
    the errata. Records are scaled to norm 1 there, so its figures are taken times the radius.
    """
    ridge /= risk.radius**2
    determinant = 4 * risk.curvature * columns / ridge
    if epsilon > determinant:
        noise_epsilon = epsilon - determinant
    else:
        ridge = max(ridge, risk.curvature / math.expm1(epsilon / 4))
        noise_epsilon = epsilon / 3
    scale = 3 * risk.radius / noise_epsilon
    tolerance = solver_tolerance(risk, n, risk.dimension * scale)
    return Calibration("objective", ridge * risk.radius**2, noise_epsilon, scale, tolerance, 0.0)
