"""Bagging of private learners."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from oversafe._core.checks import check_choice, check_count
from oversafe._core.errors import InputError
from oversafe.data.domain_warnings import MisfitWarning
from oversafe.data.schema import Schema
from oversafe.learn.base import PrivateLearner
from oversafe.learn.linear import PrivateLogisticRegression
from oversafe.privacy.call_context import CallContext
from oversafe.privacy.costs.bagging import PUBLIC_LABELS
from oversafe.privacy.guarantee import Guarantee, approximate_event, composed_epsilon, pure_event
from oversafe.privacy.ledger.ledger import pay

FloatArray = NDArray[np.float64]
Sampling = Literal["subsample", "disjoint", "stratified"]

_BASES = {
    "subsample": "composition of {count} learners, each on a random {share:.3g} of the records (Balle, Barthe and "
    "Gaboardi 2018, Theorem 9, for the sampling)",
    "disjoint": "parallel composition over {count} learners, each with records of its own",
    "stratified": "parallel composition over {count} learners, each with records of its own",
}


@dataclass(eq=False, repr=False)
class PrivateBaggingClassifier(PrivateLearner):
    """Many private classifiers, each on some of the records, that vote.

    Under privacy bagging seldom helps: learners on overlapping samples share one budget, and learners on parts of
    their own have few records of the rare class. It is here to be compared with.

    Parameters
    ----------
    estimator : private classifier, optional
        With ``epsilon`` and ``guarantee_``; :class:`PrivateLogisticRegression` when not given.
    n_estimators : int, default=10
        How many learners.
    epsilon, delta : float
        The budget of all of them together.
    sampling : {"subsample", "disjoint", "stratified"}, default="disjoint"
        "subsample" gives each learner a random ``max_samples`` of the records; what the learners cost adds up, less
        with a delta above 0. "disjoint" deals the records out, so that each learner may spend the whole epsilon.
        "stratified" deals them out class by class, which takes the labels as public: the guarantee is nominal.
    max_samples : float, default=0.632
        The share of the records that each learner sees with "subsample": as many as a bootstrap sample has distinct
        ones. No record is drawn twice, as it would count twice.
    voting : {"soft", "hard"}, default="soft"
        Whether probabilities are averaged or classes counted.
    schema, classes, ledger, call_context, random_state
        As in :class:`PrivateLogisticRegression`; the schema is the learner's when not given.
    n_jobs : int, optional
        As in joblib.

    Attributes
    ----------
    estimators_ : list
        The fitted learners.
    learner_epsilon_ : float
        What each of them may spend.
    guarantee_ : Guarantee
        Of all of them together.
    classes_ : array
        The labels.

    Examples
    --------
    >>> import numpy as np
    >>> from oversafe.learn import PrivateBaggingClassifier, PrivateLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> y = (rng.random(10_000) < 0.1).astype(int)
    >>> X = rng.normal(size=(10_000, 2)) + 2 * y[:, None]
    >>> base = PrivateLogisticRegression(data_norm=3.0)
    >>> model = PrivateBaggingClassifier(base, 5, epsilon=1.0, classes=[0, 1]).fit(X, y)
    >>> print(model.guarantee_)  # doctest: +ELLIPSIS
    Proven: epsilon = 1 differential privacy for every record, ... It holds if floating-point numbers count as real ...
    """

    estimator: Any = None
    n_estimators: int = 10
    epsilon: float = 1.0
    delta: float = 0.0
    sampling: str = "disjoint"
    max_samples: float = 0.632
    voting: str = "soft"
    random_state: int | None = None
    _: KW_ONLY
    schema: Schema | None = None
    classes: Sequence[Any] | None = None
    n_jobs: int | None = None
    ledger: Any = None
    call_context: CallContext = "checked"

    def _fit(
        self, table: Any, codes: NDArray[np.int64], schema: Schema | None, caveats: list[str]
    ) -> Guarantee:
        self._check_settings(len(codes))
        count = int(self.n_estimators)
        self._schema = schema
        epsilon, delta, total, event = self._budget(count, len(codes))
        self.learner_epsilon_ = epsilon
        base = self._base(epsilon, delta)
        if not (hasattr(base, "epsilon") and "epsilon" in base.get_params()):
            raise InputError(
                f"{type(base).__name__} has no epsilon; bagging needs a private classifier, such as "
                "PrivateLogisticRegression"
            )
        caveats += self._unpaid(schema)
        learner = self._learner()
        if self.ledger is not None and not isinstance(learner, PrivateLearner):
            raise InputError(
                f"what {type(learner).__name__} reads without paying is known only after its fit, and a ledger is "
                "charged before; bag a classifier such as PrivateLogisticRegression, or leave the ledger out"
            )
        guarantee = Guarantee(
            "proven",
            total,
            float(self.delta),
            basis=_BASES[self.sampling].format(count=count, share=float(self.max_samples)),
            event=event,
        ).weaken(*dict.fromkeys(caveats))
        guarantee = guarantee.assuming(*self._assumed, *self._word)
        self.ledger_entry_ = pay(self.ledger, guarantee, what=type(self).__name__)
        # Without a seed numpy takes its entropy from the operating system.
        rng = np.random.default_rng(self.random_state)
        samples = self._samples(codes, count, rng)
        seeds = [None if self.random_state is None else int(s) for s in rng.integers(2**31, size=count)]
        from joblib import Parallel, delayed

        labels = self.classes_[codes]
        self.estimators_ = Parallel(n_jobs=self.n_jobs)(
            delayed(_fitted)(base, _rows(table, rows), labels[rows], seed, schema is not None)
            for rows, seed in zip(samples, seeds, strict=True)
        )
        return self._checked(guarantee, epsilon, delta)

    def _given_schema(self) -> Schema | None:
        """Return the learner's schema where there is no other: what it reads unpaid is charged before its fit."""
        if self.schema is None and isinstance(self.estimator, PrivateLearner):
            return self.estimator.schema
        return self.schema

    def _check_settings(self, n: int) -> None:
        check_count("n_estimators", self.n_estimators)
        check_choice("sampling", self.sampling, get_args(Sampling))
        check_choice("voting", self.voting, ("soft", "hard"))
        if not (isinstance(self.max_samples, int | float) and 0 < self.max_samples <= 1):
            raise InputError(f"max_samples = {self.max_samples!r} was given; it is above 0 and at most 1")
        if n < self.n_estimators:
            raise InputError(f"{self.n_estimators} learners were asked for and there are {n} rows; use fewer")

    def _budget(self, count: int, n: int) -> tuple[float, float, float, Any]:
        """Return each learner's epsilon and delta, the epsilon of all and their event."""
        from dp_accounting import SelfComposedDpEvent

        epsilon, delta = float(self.epsilon), float(self.delta)
        if self.sampling != "subsample":
            return epsilon, delta, epsilon, approximate_event(epsilon, delta)

        # The share that a sample really has: at least one row is drawn.
        share = self._sample_size(n) / n

        def cost(each: float) -> float:
            # A learner whose sample leaves the record out tells nothing of it.
            if delta == 0:
                return count * _amplified(each, share)
            return composed_epsilon(SelfComposedDpEvent(pure_event(_amplified(each, share)), count), delta)

        # What each may spend if the costs just add up.
        low = _spendable(epsilon / count, share)
        if delta:
            high = 2 * low
            while cost(high) <= epsilon and high < epsilon:
                low, high = high, 2 * high
            while high - low > 1e-3 * high:
                middle = (low + high) / 2
                low, high = (middle, high) if cost(middle) <= epsilon else (low, middle)
        event = SelfComposedDpEvent(pure_event(_amplified(low, share)), count)
        # A cost that rounding has brought to 0 is still one.
        return low, 0.0, min(epsilon, cost(low)) or epsilon, event

    def _unpaid(self, schema: Schema | None) -> list[str]:
        caveats = super()._unpaid(schema)
        if self.sampling == "stratified":
            caveats.append(PUBLIC_LABELS)
        inner = self._inner()
        return caveats + (inner._unpaid(schema) if isinstance(inner, PrivateLearner) else [])

    @property
    def _assumed(self) -> tuple[str, ...]:  # type: ignore[override]
        return getattr(self._inner(), "_assumed", ())

    def _inner(self) -> Any:
        return PrivateLogisticRegression() if self.estimator is None else self.estimator

    def _learner(self) -> Any:
        """Return what is fitted in the end: there may be bags in a bag."""
        inner = self._inner()
        return inner._learner() if isinstance(inner, PrivateBaggingClassifier) else inner

    def _base(self, epsilon: float, delta: float) -> Any:
        base = clone(self._inner())
        settings = {"epsilon": epsilon, "delta": delta, "classes": self.classes_.tolist()}
        # The bag speaks for what is around its parts.
        settings["call_context"] = self.call_context
        if self._schema is not None:
            settings["schema"] = self._schema
        known = base.get_params()
        return base.set_params(**{name: value for name, value in settings.items() if name in known})

    def _sample_size(self, n: int) -> int:
        return min(n, max(1, math.floor(float(self.max_samples) * n)))

    def _samples(
        self, codes: NDArray[np.int64], count: int, rng: np.random.Generator
    ) -> list[NDArray[np.int64]]:
        n = len(codes)
        if self.sampling == "subsample":
            return [np.sort(rng.permutation(n)[: self._sample_size(n)]) for _ in range(count)]
        order = rng.permutation(n)
        if self.sampling == "stratified":
            order = order[np.argsort(codes[order], kind="stable")]
        return [np.sort(order[start::count]) for start in range(count)]

    def _checked(self, guarantee: Guarantee, epsilon: float, delta: float) -> Guarantee:
        """Return the guarantee, weakened by what the learners say of themselves."""
        weaker: list[str] = []
        for fitted in self.estimators_:
            own = getattr(fitted, "guarantee_", None)
            if own is None or own.status == "none":
                return Guarantee.none(f"{type(fitted).__name__} promises nothing")
            if own.relation != "replace-one" or own.epsilon > epsilon * (1 + 1e-9) or own.delta > delta:
                raise InputError(
                    f"{type(fitted).__name__} spent {own.epsilon:g} ({own.relation}), and {epsilon:g} (replace-one) "
                    "was set; bagging cannot state a guarantee for it"
                )
            if own.status == "proven":
                guarantee = guarantee.assuming(*own.caveats)
            else:
                weaker += own.caveats
        return guarantee.weaken(*(c for c in dict.fromkeys(weaker) if c not in guarantee.caveats))

    def _feature_schema(self) -> Any:
        return getattr(self, "_schema", None)

    def _scores(self, table: Any) -> FloatArray:
        shares = self._shares(table)
        return shares[:, 1:] - 0.5 if shares.shape[1] == 2 else shares

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the mean of the learners' probabilities, or the shares of their votes."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([0.5 - scores, 0.5 + scores])
        return scores

    def _shares(self, table: Any) -> FloatArray:
        total = np.zeros((len(table), len(self.classes_)))
        for fitted in self.estimators_:
            probabilities = fitted.predict_proba(table)
            if self.voting == "hard":
                probabilities = np.eye(len(self.classes_))[np.argmax(probabilities, axis=1)]
            total += probabilities
        return total / len(self.estimators_)


def _rows(table: Any, rows: NDArray[np.int64]) -> Any:
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def _amplified(epsilon: float, share: float) -> float:
    """Return what a learner on a random share of the records costs a record: log(1 + share (e^epsilon - 1))."""
    if epsilon < 1:
        return math.log1p(share * math.expm1(epsilon))
    return epsilon + math.log(share + (1 - share) * math.exp(-epsilon))


def _spendable(cost: float, share: float) -> float:
    """Return what a learner may spend that costs a record so much: the inverse of the above."""
    if cost < 1:
        return math.log1p(math.expm1(cost) / share)
    return cost - math.log(share) + math.log1p(-(1 - share) * math.exp(-cost))


def _fitted(base: Any, X: Any, y: Any, seed: int | None, columns_told: bool) -> Any:
    learner = clone(base)
    if seed is not None and "random_state" in learner.get_params():
        learner.set_params(random_state=seed)
    with warnings.catch_warnings():
        # That a sample lacks a rare class is no mistake in what was declared.
        warnings.filterwarnings("ignore", message="no row is itself labelled", category=MisfitWarning)
        if columns_told:
            # Of all rows already.
            warnings.simplefilter("ignore", MisfitWarning)
        return learner.fit(X, y)
