"""Linear classifiers by private empirical risk minimisation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from oversafe._core.checks import check_choice, check_count, check_share
from oversafe._core.errors import InputError
from oversafe.data.schema import Schema
from oversafe.learn.base import (
    CLASS_COUNTS,
    SCALE,
    PrivateLearner,
    plan_features,
    private_counts,
    split_epsilon,
)
from oversafe.learn.features import encoded_width, learn_features
from oversafe.learn.objective import (
    TOLERANCE_SHARE,
    Calibration,
    LossName,
    Method,
    Risk,
    calibrate,
    paper_calibration,
)
from oversafe.learn.solver import Perturbed, Problem, Spherical
from oversafe.privacy.answers import about, answered
from oversafe.privacy.call_context import CallContext
from oversafe.privacy.guarantee import OVER_THE_REALS, Guarantee
from oversafe.privacy.noise import gaussian, random_source, spherical_laplace

FloatArray = NDArray[np.float64]
ClassWeight = Literal["balanced", "threshold"] | Mapping[Any, float] | None

_PAPER = (
    "the published calibration was asked for; by its own accounting its fallback spends more than epsilon, and its "
    "sensitivity is proven for two classes only"
)
_BASES = {
    "objective": "objective perturbation (Chaudhuri, Monteleoni and Sarwate 2011), with the determinant bounded by the "
    "trace and the solver's tolerance hidden by noise",
    "output": "output perturbation of a strongly convex minimiser (Chaudhuri, Monteleoni and Sarwate 2011)",
    "gaussian": "objective perturbation with normal noise, by its hockey-stick divergence",
}
# The constant that stands for the intercept, relative to data_norm. Where the class prior is paid for there is less
# for the intercept to learn.
_INTERCEPT_WITH_PRIOR, _INTERCEPT_ALONE = 0.3, 0.5


class _PrivateLinear(PrivateLearner):
    """What the logistic regression and the support vector machine share."""

    class_weight: ClassWeight
    data_norm: float | None
    C: float
    method: str
    calibration: str
    scaling: str
    fit_intercept: bool
    intercept_scaling: float | None
    coef_: FloatArray
    intercept_: FloatArray
    _assumed = (OVER_THE_REALS,)

    def _fit(
        self, table: Any, codes: NDArray[np.int64], schema: Schema | None, caveats: list[str]
    ) -> Guarantee:
        self._check_settings()
        n, n_classes = len(codes), len(self.classes_)
        rng = random_source(self.random_state)
        scaling, costs, found = plan_features(self, table, schema)
        caveats += found
        spent, fit_epsilon = split_epsilon(
            float(self.epsilon), scale=costs, counts=self._pays_for_counts(n_classes)
        )

        # Everything up to the guarantee depends on public facts alone, so that a ledger can refuse before any noise.
        if self.calibration == "paper":
            caveats.append(_PAPER)
        plan = self._plan(1.0, self._width(table, schema), fit_epsilon, n, self.method)
        delta = float(self.delta) if plan.method == "gaussian" else 0.0
        looks = [*spent.items(), ("the fit", fit_epsilon)]
        promised = self._promise(looks, delta, _BASES[plan.method], caveats)
        self.method_ = plan.method

        self.features_ = learn_features(
            table,
            schema=schema,
            scaling=scaling,
            data_norm=self.data_norm,
            epsilon=spent.get(SCALE, 0.0),
            rng=rng,
        )
        self._prepare(_columns(table, schema), rng)
        counts = None
        if CLASS_COUNTS in spent:
            counts = private_counts(codes, n_classes, spent[CLASS_COUNTS], rng)
        self._minimise(self._vectors(table), codes, counts, fit_epsilon, rng)
        return promised

    def _unpaid(self, schema: Schema | None) -> list[str]:
        return super()._unpaid(schema) + ([_PAPER] if self.calibration == "paper" else [])

    # --------------------------------------------------------------------------------------- the settings

    def _check_settings(self) -> None:
        check_share("C", self.C, 1e-20, 1e20)
        check_choice("method", self.method, ("auto", *get_args(Method)))
        if self.method == "gaussian" and not self.delta:
            raise InputError("method = 'gaussian' needs a delta above 0, such as 1e-9")
        check_choice("calibration", self.calibration, ("corrected", "paper"))
        if self.calibration == "paper" and (
            len(self.classes_) > 2 or self.method not in ("auto", "objective")
        ):
            raise InputError(
                "calibration = 'paper' is for objective perturbation with two classes; use 'corrected'"
            )
        self._check_class_weight(self.class_weight)
        if self.intercept_scaling is not None:
            check_share("intercept_scaling", self.intercept_scaling, 1e-20, 1e20)

    def _moving_weights(self, n_classes: int) -> bool:
        """Whether the weights are the data's own class frequencies, which objective perturbation covers itself."""
        return self.class_weight == "balanced" and self._loss(n_classes) != "softmax" and not self.delta

    def _pays_for_counts(self, n_classes: int) -> bool:
        if self.class_weight == "threshold":
            return True
        if self.calibration == "paper":
            return False
        return self.class_weight == "balanced" and not self._moving_weights(n_classes)

    def _loss(self, n_classes: int) -> LossName:
        raise NotImplementedError

    def _curvature(self) -> float:
        raise NotImplementedError

    def _width(self, table: Any, schema: Schema | None) -> int:
        """Return how many columns are fitted, without the intercept."""
        return _columns(table, schema)

    def _plan(self, radius: float, width: int, epsilon: float, n: int, method: str) -> Calibration:
        """Return the method and its noise; of several methods the one that moves the coefficients least."""
        n_classes = len(self.classes_)
        loss = self._loss(n_classes)
        joint = n_classes if loss == "softmax" else 2
        risk = Risk(
            loss,
            radius,
            dimension=(width + bool(self.fit_intercept)) * (joint - 1),
            n_classes=joint,
            curvature=self._curvature(),
            weights_move=self._moving_weights(n_classes),
            weight=self._largest_weight(),
        )
        problems = n_classes if n_classes > joint else 1
        epsilon, delta, ridge = epsilon / problems, float(self.delta) / problems, 1 / float(self.C)
        if self.calibration == "paper":
            return paper_calibration(risk, epsilon, n=n, ridge=ridge, columns=risk.dimension)
        methods: Sequence[Any] = [method]
        if method == "auto":
            # At the same ridge the objective's noise is never more than the output's, so that is not tried.
            methods = ["objective", *(["gaussian"] if self.delta else [])]
        plans = [calibrate(risk, epsilon, method=m, n=n, ridge=ridge, delta=delta) for m in methods]
        return min(plans, key=lambda plan: plan.expected_error(risk, n))

    def _largest_weight(self) -> float:
        if isinstance(self.class_weight, Mapping):
            weights = [float(self.class_weight.get(label, 1.0)) for label in self.classes_.tolist()]
            return max(weights)
        return 1.0

    # ------------------------------------------------------------------------------------------- the fit

    def _prepare(self, columns: int, rng: np.random.Generator | None) -> None:
        """Draw what the vectors need beside the features."""

    def _vectors(self, table: Any) -> FloatArray:
        return self.features_.apply(table)

    def _norm(self) -> float:
        return self.features_.norm

    def _weights(
        self,
        codes: NDArray[np.int64],
        members: NDArray[np.int64],
        counts: FloatArray | None,
        n_classes: int,
    ) -> FloatArray | None:
        """Return the weight of each record: a public one of its own class, or that of its side of the problem."""
        if isinstance(self.class_weight, Mapping):
            public = [float(self.class_weight.get(label, 1.0)) for label in self.classes_.tolist()]
            return np.array(public)[codes]
        if self.class_weight != "balanced":
            return None
        if counts is None:
            counts = np.bincount(members, minlength=n_classes).astype(np.float64)
            if n_classes == 2:
                # n_other / n, of which the proof speaks.
                return (counts[::-1] / counts.sum())[members]
        return (counts.min() / counts)[members]

    def _minimise(
        self,
        vectors: FloatArray,
        codes: NDArray[np.int64],
        counts: FloatArray | None,
        epsilon: float,
        rng: np.random.Generator | None,
    ) -> None:
        n_classes, (n, d) = len(self.classes_), vectors.shape
        with_prior = self.class_weight in ("threshold", "balanced")
        constant = 0.0
        if self.fit_intercept:
            share = _INTERCEPT_WITH_PRIOR if with_prior else _INTERCEPT_ALONE
            constant = (
                share * self._norm() if self.intercept_scaling is None else float(self.intercept_scaling)
            )
        radius = math.hypot(self._norm(), constant) * (1 + 1e-9)
        plan = self._plan(radius, d, epsilon, n, self.method_)
        columns = []
        for positive, members, k in self._problems(codes, n_classes):
            gathered = _gathered(counts, positive)
            weights = self._weights(codes, members, gathered, k)
            offset = self._offset(gathered) if self.class_weight == "threshold" else None
            problem = Problem(
                vectors,
                members,
                k,
                plan.ridge,
                np.zeros((d + 1, 1 if k == 2 else k)),
                constant,
                weights,
                offset,
                **self._problem_settings(),
            )
            columns.append(_perturbed_minimum(problem, plan, bool(self.fit_intercept), rng))
        B = np.hstack(columns)
        self.coef_ = np.ascontiguousarray(B[:-1].T)
        self.intercept_ = constant * B[-1]
        self.ridge_, self.noise_scale_ = plan.ridge, plan.scale
        if counts is not None:
            self.class_counts_ = counts

    def _problems(
        self, codes: NDArray[np.int64], n_classes: int
    ) -> list[tuple[int | None, NDArray[np.int64], int]]:
        """Return the problems to solve: the class that is told from the others, the codes, how many classes."""
        if n_classes == 2 or self._loss(n_classes) == "softmax":
            return [(None, codes, n_classes)]
        return [(c, (codes == c).astype(np.int64), 2) for c in range(n_classes)]

    def _problem_settings(self) -> dict[str, Any]:
        return {}

    def _offset(self, counts: FloatArray | None) -> FloatArray:
        """Return what the class shares alone say of the margins."""
        assert counts is not None
        logs = np.log(counts)
        return np.array([logs[1] - logs[0]]) if len(counts) == 2 else logs - logs.mean()

    def _scores(self, table: Any) -> FloatArray:
        # With "threshold" the shares of the classes were an offset of the fit; left out here, every class counts as
        # equally frequent.
        return self._vectors(table) @ self.coef_.T + self.intercept_


def _columns(table: Any, schema: Schema | None) -> int:
    return table.shape[1] if schema is None else sum(encoded_width(column) for column in schema)


def _gathered(counts: FloatArray | None, positive: int | None) -> FloatArray | None:
    if counts is None or positive is None:
        return counts
    return np.array([max(counts.sum() - counts[positive], 1.0), counts[positive]])


def _perturbed_minimum(
    problem: Problem, plan: Calibration, fit_intercept: bool, rng: np.random.Generator | None
) -> FloatArray:
    """Return the minimiser of a problem with the noise of a plan."""
    rows, k = problem.noise.shape
    rows -= not fit_intercept
    # The softmax does not change when all classes' coefficients move alike, so neither does its noise.
    basis = _sum_zero_basis(k) if k > 1 else np.ones((1, 1))

    def noise(kind: str, scale: float, rng: np.random.Generator | None) -> FloatArray:
        draw = gaussian if kind == "gaussian" else spherical_laplace
        flat = draw(rows * basis.shape[1], scale, rng)
        drawn = np.zeros_like(problem.noise)
        drawn[:rows] = flat.reshape(rows, -1) @ basis.T
        return drawn

    def perturbed(own: Problem, rng: np.random.Generator | None) -> FloatArray:
        return replace(own, noise=noise(plan.method, plan.scale, rng)).solve(plan.tolerance)

    def shifted(B: FloatArray, rng: np.random.Generator | None) -> FloatArray:
        return B + noise("output", after, rng)

    after = plan.scale if plan.method == "output" else plan.tolerance_scale
    about("the coefficients", plan.epsilon)
    if plan.method == "output":
        B = problem.solve(plan.tolerance)
    else:
        B = answered(Perturbed(plan, rows, basis), problem, perturbed, rng)
    if after > 0:
        epsilon = plan.epsilon * (1.0 if plan.method == "output" else TOLERANCE_SHARE)
        about("the coefficients, moved", epsilon)
        B = answered(Spherical(after, epsilon), B, shifted, rng)
    return _rounded(B, plan.scale / (1.0 if plan.method == "output" else plan.ridge))


def _sum_zero_basis(k: int) -> FloatArray:
    """Return orthonormal columns whose entries add up to zero."""
    return np.linalg.qr(np.eye(k) - 1 / k)[0][:, : k - 1]


def _rounded(B: FloatArray, noise: float) -> FloatArray:
    """Return numbers without the last digits, which tell of the arithmetic and nothing else."""
    step = 2.0 ** (math.floor(math.log2(noise)) - 24)
    return np.round(B / step) * step


@dataclass(eq=False, repr=False)
class PrivateLogisticRegression(_PrivateLinear):
    """Logistic regression under differential privacy, for classes of unequal size.

    The objective is perturbed by a random linear term and solved to machine precision. For rare classes the fit is
    unweighted and takes the class shares, paid with a twentieth of epsilon, as an offset that is left out of the
    scores: every class then counts as equally frequent, and no signal is lost to weights.

    Parameters
    ----------
    epsilon : float, default=1.0
        The budget of the whole fit, under replace-one neighbours.
    delta : float, default=0.0
        Above 0 normal noise may be used, which is less where there are more than some 40 coefficients.
    class_weight : {"threshold", "balanced"}, dict or None, default="threshold"
        "threshold" as above. "balanced" weighs records by the inverse of their class's share, which keeps the noise
        and loses signal. A dict has public weights. None takes the classes as they are.
    data_norm : float, optional
        Records, once scaled, are shortened to this norm; any number is valid, and a good one fits most of them.
    C : float, default=1.0
        Inverse of the ridge. Privacy needs a ridge too: it is never below 4 R^2 / epsilon for records of norm R, or
        twice that with more than two classes.
    method : {"auto", "objective", "output", "gaussian"}, default="auto"
        Where the noise goes; "auto" takes "objective" or "gaussian", whichever is less noise by public facts.
    calibration : {"corrected", "paper"}, default="corrected"
        "paper" is the published calibration, for comparison; its guarantee is nominal.
    random_state : int, optional
        Makes the fit repeatable, for experiments; the guarantee is then nominal.
    scaling : {"auto", "private", "none", "standard"}, default="auto"
        How columns of numbers are scaled when there is no schema. "private" pays a fifth of epsilon for their ranges,
        "none" takes them as they are, "standard" standardises by the data, which makes the guarantee nominal. "auto" is
        "none" if ``data_norm`` is given, else "private". With a schema, numbers are scaled from their bounds to
        [-1, 1] and categories become one column each.
    schema : Schema, optional
        What the columns are, with public bounds and categories.
    classes : sequence, optional
        The labels that exist, when they are public; also taken from the schema's label.
    fit_intercept : bool, default=True
        Whether there is an intercept. It is penalised and perturbed like the other coefficients.
    intercept_scaling : float, optional
        The constant that stands for the intercept in each record; a share of ``data_norm`` when not given.
    ledger : optional
        A budget that is charged before any noise is drawn.
    call_context : {"checked", "vouched"}, default="checked"
        What is done to the data around a fit: "checked" makes the guarantee nominal inside of anything that is not
        known; with "vouched" you state that nothing of that kind looks at them, and the guarantee says so.

    Attributes
    ----------
    guarantee_ : Guarantee
        What the model promises.
    coef_ : array of shape (1 or n_classes, n_columns)
        Of the scaled columns.
    intercept_ : array of shape (1 or n_classes,)
        Its intercepts, without the offset of the class shares.
    classes_ : array
        The labels.
    class_counts_ : array
        Their noisy counts, where they were paid for.
    method_ : str
        Where the noise went.
    ridge_, noise_scale_ : float
        The ridge of the summed loss, and the scale of the noise.
    features_ : FeatureMap
        How records become vectors.

    See Also
    --------
    PrivateLinearSVC : The same with the Huber loss, and with a kernel.

    References
    ----------
    .. [1] K. Chaudhuri, C. Monteleoni, A. D. Sarwate, "Differentially Private Empirical Risk Minimization", JMLR 12,
       2011.
    .. [2] L. Rosenblatt et al., "Differential Privacy Under Class Imbalance: Methods and Empirical Insights", 2025.
    .. [3] R. Redberg, A. Koskela, Y.-X. Wang, "Improving the Privacy and Practicality of Objective Perturbation for
       Differentially Private Linear Learners", 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from oversafe.learn import PrivateLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> y = (rng.random(5000) < 0.05).astype(int)
    >>> X = rng.normal(size=(5000, 3)) + 2 * y[:, None]
    >>> model = PrivateLogisticRegression(epsilon=1.0, data_norm=3.0, classes=[0, 1]).fit(X, y)
    >>> print(model.guarantee_)  # doctest: +ELLIPSIS
    Proven: epsilon = 1 differential privacy for every record, ... It holds if floating-point numbers count as real ...
    >>> bool(model.predict(X)[y == 1].mean() > 0.8)
    True
    """

    epsilon: float = 1.0
    delta: float = 0.0
    class_weight: ClassWeight = "threshold"
    data_norm: float | None = None
    C: float = 1.0
    method: str = "auto"
    calibration: str = "corrected"
    random_state: int | None = None
    _: KW_ONLY
    scaling: str = "auto"
    schema: Schema | None = None
    classes: Sequence[Any] | None = None
    fit_intercept: bool = True
    intercept_scaling: float | None = None
    ledger: Any = None
    call_context: CallContext = "checked"

    def _loss(self, n_classes: int) -> LossName:
        return "logistic" if n_classes == 2 else "softmax"

    def _curvature(self) -> float:
        return 0.25


@dataclass(eq=False, repr=False)
class PrivateLinearSVC(_PrivateLinear):
    """A support vector machine with the Huber loss under differential privacy, linear or with a Gaussian kernel.

    More than two classes are told apart one against the others, each with its part of epsilon.

    Parameters
    ----------
    epsilon, delta, class_weight, data_norm, C, method, calibration, random_state
        As in :class:`PrivateLogisticRegression`.
    kernel : {"linear", "rbf"}, default="linear"
        With "rbf" the records are mapped to random Fourier features, all of norm 1.
    gamma : float, optional
        The kernel of two scaled records is exp(-gamma times their squared distance); 1 / data_norm^2 when not given.
    n_components : int, default=50
        How many random frequencies; each gives two columns, a cosine and a sine.
    width : float, default=0.5
        Half the width of the part of the loss that is bent, around the margin 1.
    scaling, schema, classes, fit_intercept, intercept_scaling, ledger, call_context
        As in :class:`PrivateLogisticRegression`.

    Attributes
    ----------
    guarantee_ : Guarantee
        What the model promises.
    coef_, intercept_ : array
        Of the scaled columns, or of the random features.
    classes_ : array
        The labels.

    Notes
    -----
    ``predict_proba`` is the logistic function of twice the margin: in order, but not calibrated.

    References
    ----------
    .. [1] K. Chaudhuri, C. Monteleoni, A. D. Sarwate, "Differentially Private Empirical Risk Minimization", JMLR 12,
       2011, sections 3.4 and 4.

    Examples
    --------
    >>> import numpy as np
    >>> from oversafe.learn import PrivateLinearSVC
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 2))
    >>> y = np.where((X**2).sum(axis=1) > 2, "outside", "inside")
    >>> model = PrivateLinearSVC(kernel="rbf", data_norm=3.0, classes=["inside", "outside"]).fit(X, y)
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    epsilon: float = 1.0
    delta: float = 0.0
    class_weight: ClassWeight = "threshold"
    data_norm: float | None = None
    C: float = 1.0
    method: str = "auto"
    calibration: str = "corrected"
    random_state: int | None = None
    _: KW_ONLY
    kernel: str = "linear"
    gamma: float | None = None
    n_components: int = 50
    width: float = 0.5
    scaling: str = "auto"
    schema: Schema | None = None
    classes: Sequence[Any] | None = None
    fit_intercept: bool = True
    intercept_scaling: float | None = None
    ledger: Any = None
    call_context: CallContext = "checked"

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the logistic function of twice the margin, in the order of ``classes_``; it is not calibrated."""
        from scipy.special import expit

        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-2 * scores), expit(2 * scores)])
        shares = expit(2 * scores)
        return shares / shares.sum(axis=1, keepdims=True)

    def _check_settings(self) -> None:
        super()._check_settings()
        check_choice("kernel", self.kernel, ("linear", "rbf"))
        check_share("width", self.width, 1e-6, 1e6)
        if self.gamma is not None:
            check_share("gamma", self.gamma, 1e-20, 1e20)
        check_count("n_components", self.n_components)

    def _loss(self, n_classes: int) -> LossName:
        return "huber"

    def _curvature(self) -> float:
        return 1 / (2 * float(self.width))

    def _problem_settings(self) -> dict[str, Any]:
        return {"loss": "huber", "width": float(self.width)}

    def _offset(self, counts: FloatArray | None) -> FloatArray:
        # Where a fit without columns would end: the frequent class stands so far on its side that the slopes of the
        # two classes cancel. Less as the classes become equally frequent, where there is nothing to move.
        assert counts is not None
        share = float(counts.min() / counts.max())
        margin = 1 + float(self.width) * (1 - 2 * share)
        return np.array([(1 - share) * margin * (1.0 if counts[1] > counts[0] else -1.0)])

    def _width(self, table: Any, schema: Schema | None) -> int:
        return 2 * int(self.n_components) if self.kernel == "rbf" else super()._width(table, schema)

    def _norm(self) -> float:
        return 1.0 if self.kernel == "rbf" else self.features_.norm

    def _prepare(self, columns: int, rng: np.random.Generator | None) -> None:
        if self.kernel == "linear":
            return
        gamma = 1 / self.features_.norm**2 if self.gamma is None else float(self.gamma)
        half = int(self.n_components)
        # The kernel's spectrum (Rahimi and Recht 2007); drawn without a look at the data.
        self.frequencies_ = gaussian(columns * half, math.sqrt(2 * gamma), rng).reshape(columns, half)

    def _vectors(self, table: Any) -> FloatArray:
        vectors = self.features_.apply(table)
        if self.kernel == "linear":
            return vectors
        waves = vectors @ self.frequencies_
        # The cosine and the sine of the same wave: every record has norm 1, whatever the frequencies.
        return np.hstack([np.cos(waves), np.sin(waves)]) / math.sqrt(waves.shape[1])
