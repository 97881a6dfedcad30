"""A threshold between noisy class means: the Bayes-optimal classifier of two Gaussians, and what its noise costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oversafe._core.errors import InputError
from oversafe.data.schema import Schema
from oversafe.learn.base import SCALE, PrivateLearner, plan_features, split_epsilon
from oversafe.learn.features import FeatureMap, learn_features
from oversafe.privacy.accountant import Accountant
from oversafe.privacy.call_context import CallContext
from oversafe.privacy.guarantee import Guarantee, check_delta, check_epsilon
from oversafe.privacy.noise import random_source

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_BASES = {
    False: "class sums and sizes in whole steps of a public grid, with discrete Laplace noise",
    True: "class sums and sizes in whole steps of a public grid, with discrete Gaussian noise",
}
# The norm of the records, in steps of the grid.
_STEPS = 2**20
# Records are taken a little shorter, which leaves room for the rounding of their floating-point norms.
_SLACK = 2.0**-30


@dataclass(eq=False, repr=False)
class PrivateThresholdClassifier(PrivateLearner):
    """Assign rows to the nearer of the noisy class means.

    With one column and two classes this is the mechanism M_BOC of the paper: a threshold between the class means, of
    which ``gamma`` says where. The class sizes are private here: a constant is counted beside the records. With delta
    above 0 they cost nothing, as a constant that is as long as the longest record leaves the sensitivity as it is.

    Parameters
    ----------
    epsilon, delta : float
        The budget; with delta above 0 the noise is discrete Gaussian, else discrete Laplace.
    gamma : float, default=0.5
        The threshold is at ``gamma * mean_1 + (1 - gamma) * mean_0``; below one half it favours the second class. With
        more than two classes it must be one half.
    data_norm, scaling, schema, classes, ledger, call_context, random_state
        As in :class:`PrivateLogisticRegression`.

    Attributes
    ----------
    guarantee_ : Guarantee
        What the model promises.
    means_ : array of shape (n_classes, n_columns)
        The noisy class means of the scaled columns.
    class_counts_ : array of shape (n_classes,)
        The noisy class sizes.
    threshold_ : float
        With one column and two classes, the threshold on the column as it was given.
    classes_ : array
        The labels.

    See Also
    --------
    threshold_bounds : How far the threshold is off.
    threshold_scores : What a threshold at ``gamma`` scores.

    References
    ----------
    .. [1] L. Rosenblatt et al., "Differential Privacy Under Class Imbalance: Methods and Empirical Insights", 2025,
       Appendix C.2.

    Examples
    --------
    >>> import numpy as np
    >>> from oversafe.learn import PrivateThresholdClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = (rng.random(20_000) < 0.05).astype(int)
    >>> x = rng.normal(size=20_000) + 2 * y
    >>> model = PrivateThresholdClassifier(data_norm=5.0, classes=[0, 1]).fit(x[:, None], y)
    >>> bool(0.8 < model.threshold_ < 1.2)
    True
    """

    epsilon: float = 1.0
    delta: float = 0.0
    gamma: float = 0.5
    data_norm: float | None = None
    random_state: int | None = None
    _: KW_ONLY
    scaling: str = "auto"
    schema: Schema | None = None
    classes: Sequence[Any] | None = None
    ledger: Any = None
    call_context: CallContext = "checked"

    def _fit(
        self, table: Any, codes: NDArray[np.int64], schema: Schema | None, caveats: list[str]
    ) -> Guarantee:
        gamma = self.gamma
        if isinstance(gamma, bool) or not isinstance(gamma, int | float) or not 0 < gamma < 1:
            raise InputError(f"gamma = {gamma!r} was given; it lies between 0 and 1, such as 0.5")
        n_classes = len(self.classes_)
        if n_classes > 2 and gamma != 0.5:
            raise InputError(f"gamma = {gamma} was given for {n_classes} classes; with more than two use 0.5")
        rng = random_source(self.random_state)
        scaling, costs, found = plan_features(self, table, schema)
        spent, epsilon = split_epsilon(float(self.epsilon), scale=costs)
        accountant = Accountant(epsilon, float(self.delta), random_state=rng)
        looks = [*spent.items(), ("the class sums and sizes", epsilon)]
        basis = _BASES[bool(self.delta)]
        alone = None if spent else accountant.promise(basis, counts_only=True).event
        promised = self._promise(looks, float(self.delta), basis, [*caveats, *found], alone)

        self.features_ = learn_features(
            table,
            schema=schema,
            scaling=scaling,
            data_norm=self.data_norm,
            epsilon=spent.get(SCALE, 0.0),
            rng=rng,
        )
        sums, sizes = noisy_totals(table, codes, n_classes, self.features_, accountant)
        # Nothing below looks at the records again.
        norm, d = self.features_.norm, sums.shape[1]
        self.class_counts_ = np.clip(sizes, 1.0, max(len(codes) - 1, 1))
        means = sums / self.class_counts_[:, None]
        lengths = np.linalg.norm(means, axis=1, keepdims=True)
        self.means_ = means * np.minimum(1.0, norm / np.maximum(lengths, np.finfo(float).tiny))
        if n_classes == 2 and d == 1 and schema is None:
            threshold = gamma * self.means_[1, 0] + (1 - gamma) * self.means_[0, 0]
            if self.features_.centre is not None and self.features_.spread is not None:
                threshold = self.features_.centre[0] + self.features_.spread[0] * threshold
            self.threshold_ = float(threshold)
        return promised

    def _scores(self, table: Any) -> FloatArray:
        vectors, means = self.features_.apply(table), self.means_
        if len(means) == 2:
            between = self.gamma * means[1] + (1 - self.gamma) * means[0]
            return ((vectors - between) @ (means[1] - means[0]))[:, None]
        return vectors @ means.T - (means**2).sum(axis=1) / 2


def noisy_totals(
    table: Any, codes: IntArray, n_classes: int, features: FeatureMap, accountant: Accountant
) -> tuple[FloatArray, FloatArray]:
    """Return the noisy sum of each class's records and the noisy class sizes, for all of an accountant's budget.

    The sums are whole multiples of a grid, of which the norm of the records has 2^20 steps.
    """
    steps = grid_steps(features.apply(table), features.norm)
    longest = longest_l1(features, steps.shape[1])
    weight = size_weight(longest, steps.shape[1]) if accountant.pure else _STEPS
    # Replaced within a class, a record moves one sum; in another class, two sums and two sizes.
    noisy = accountant.counts(
        class_totals(steps, codes, n_classes, weight),
        1.0,
        what="class sums and sizes",
        l1=2 * (longest + weight),
        l2=2 * _STEPS,
    )
    return np.multiply(noisy[:, :-1], features.norm / _STEPS), noisy[:, -1] / weight


def grid_steps(vectors: FloatArray, norm: float) -> IntArray:
    """Return vectors of at most a norm in whole steps of the grid, cut off towards zero: no norm grows."""
    return np.trunc(vectors * ((1 - _SLACK) * _STEPS / norm)).astype(np.int64)


def longest_l1(features: FeatureMap, width: int) -> int:
    """Return the largest sum of a record's absolute numbers, in steps of the grid."""
    # By Cauchy and Schwarz. And before records are shortened, a column of a schema adds at most 1: a number in [-1, 1],
    # or one mark of a category or a gap.
    columns = width * features.limit if features.schema is None else len(features.schema)
    return math.ceil(_STEPS * min(math.sqrt(width), columns / features.norm))


def size_weight(longest: int, width: int) -> int:
    """Return what a record counts for in the size of its class, in steps of the grid."""
    # Noise of scale l + w on d sums and on w times the size moves a mean of norm R by about (l + w)^2 (d + (R / w)^2),
    # which is least where d w^3 = l R^2.
    return max(1, round((longest * _STEPS**2 / width) ** (1 / 3)))


def class_totals(steps: IntArray, codes: IntArray, n_classes: int, weight: int) -> IntArray:
    """Return for each class the sum of its records and, last, its size times a weight."""
    totals = np.zeros((n_classes, steps.shape[1] + 1), dtype=np.int64)
    for c in range(n_classes):
        members = steps[codes == c]
        totals[c, :-1], totals[c, -1] = members.sum(axis=0), weight * len(members)
    return totals


@dataclass(frozen=True)
class ThresholdBounds:
    """How far the threshold of M_BOC is from the best one.

    Parameters
    ----------
    upper : float
        With probability 1 - beta the threshold is no further off.
    published_upper : float
        Proposition 12's bound, which holds and is wider.
    without_privacy : float
        Half the width of the 1 - beta interval of the best threshold that all records without noise would give.
    published_lower : float
        What Proposition 12 states as a lower bound for every estimator. It is twice ``without_privacy``, and no
        lower bound: the mean of the class means is nearer than this with probability above 1 - beta.
    """

    upper: float
    published_upper: float
    without_privacy: float
    published_lower: float


def threshold_bounds(
    n_majority: int,
    ratio: float,
    *,
    sigma: float,
    radius: float,
    epsilon: float,
    delta: float,
    beta: float = 0.05,
) -> ThresholdBounds:
    """Return the bounds of Proposition 12: what imbalance costs a private threshold.

    Parameters
    ----------
    n_majority : int
        Records of the larger class.
    ratio : float
        How many times as many these are as those of the other class.
    sigma : float
        The standard deviation within a class.
    radius : float
        Values are clipped to [-radius, radius]; at least the larger mean plus sigma sqrt(2 log(4 n / beta)).
    epsilon, delta : float
        Of each of the two class means, as the paper has it: classes sizes public, normal noise with
        sqrt(2 log(1.25 / delta)) / epsilon standard deviations per unit, epsilon below 1.
    beta : float, default=0.05
        The probability of being wrong.

    Examples
    --------
    >>> from oversafe.learn import threshold_bounds
    >>> even = threshold_bounds(1000, 1, sigma=1, radius=6, epsilon=0.5, delta=1e-6)
    >>> rare = threshold_bounds(1000, 32, sigma=1, radius=6, epsilon=0.5, delta=1e-6)
    >>> round(rare.upper / even.upper)
    22
    """
    from scipy.special import ndtri

    check_epsilon(epsilon)
    check_delta(delta)
    if n_majority < 1 or ratio < 1 or sigma <= 0 or radius <= 0:
        raise InputError(
            f"n_majority = {n_majority}, ratio = {ratio}, sigma = {sigma}, radius = {radius} were given; "
            "give at least 1, at least 1, and two numbers above 0"
        )
    if not (0 < beta < 1 and delta > 0):
        raise InputError(f"beta = {beta} and delta = {delta} were given; both lie between 0 and 1")
    sampling = sigma**2 * (1 + ratio) / n_majority
    # The noise of each mean has variance 8 R^2 log(1.25 / delta) / (n_b epsilon)^2; the threshold is half their sum.
    noise = 2 * radius**2 * math.log(1.25 / delta) * (1 + ratio**2) / (n_majority * epsilon) ** 2
    tail = math.log(4 / beta)
    quantile = float(ndtri(1 - beta / 2))
    return ThresholdBounds(
        upper=math.sqrt(2 * tail * (sampling / 4 + noise)),
        published_upper=2 * math.sqrt(tail * (sampling + noise)),
        without_privacy=math.sqrt(sampling) / 2 * quantile,
        published_lower=math.sqrt(sampling) * quantile,
    )


def threshold_scores(gamma: float, distance: float, ratio: float) -> dict[str, float]:
    """Return what a threshold at gamma between two Gaussian classes scores: Table 10 of the paper, corrected.

    Parameters
    ----------
    gamma : float
        The threshold is at gamma times the rare class's mean and 1 - gamma times the other's.
    distance : float
        Between the means, in standard deviations.
    ratio : float
        How many times as many the other class's records are.

    Notes
    -----
    The paper divides recall by the share of positives (it then exceeds 1), has 1 + ratio in place of ratio in the
    precision, and leaves a term out of F1.

    Examples
    --------
    >>> from oversafe.learn import threshold_scores
    >>> {name: round(value, 3) for name, value in threshold_scores(0.5, 2.0, 9.0).items()}
    {'recall': 0.841, 'precision': 0.371, 'balanced_accuracy': 0.841, 'f1': 0.515}
    """
    from scipy.special import ndtr

    hits, false = float(ndtr((1 - gamma) * distance)), float(ndtr(-gamma * distance))
    return {
        "recall": hits,
        "precision": hits / (hits + ratio * false),
        "balanced_accuracy": (hits + 1 - false) / 2,
        "f1": 2 * hits / (1 + hits + ratio * false),
    }
