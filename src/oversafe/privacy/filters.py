"""Composition of charges that are chosen after seeing earlier answers: privacy filters.

The composition theorems of the accountants are for settings that were fixed beforehand. A filter is given a budget
instead, and says of each further mechanism whether everything together still keeps to it, whatever the earlier
answers made the analyst ask. The rule, its proof and its sources are on the docs page "Guarantees, proofs and
errata", section "A budget that is spent adaptively".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from typing import TYPE_CHECKING, Any, Literal

from oversafe.privacy.guarantee import (
    Guarantee,
    Relation,
    check_delta,
    check_epsilon,
    leaf_events,
)

if TYPE_CHECKING:
    from dp_accounting import DpEvent

Rule = Literal["renyi", "sums"]

# Sums are of the figures as they are written (three times 0.1 is 0.3), and are rounded upwards.
_SUMS = Context(prec=50, rounding=ROUND_CEILING)
# Orders on both sides of the best one for the budget, by powers of the square root of 2.
_STEPS = range(-6, 7)
_WEIGHT_FALL = 3.0
# Of delta, for mechanisms whose divergences are known but whose figures are added up.
_SUM_SHARE = 1 / 50
# Of the logarithm that decides: far above the rounding of its floats, far below what anyone would notice.
_GUARD = 1e-9


@dataclass(frozen=True)
class Cost:
    """What one mechanism takes from a budget.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee's own figures.
    renyi : tuple of float
        Its Renyi divergence at the filter's orders.
    own_delta : float
        The probability with which that divergence does not hold: 0, or delta where only (epsilon, delta) is known.
    """

    epsilon: float
    delta: float
    renyi: tuple[float, ...]
    own_delta: float


@dataclass(frozen=True)
class Spent:
    """The running sums of a budget.

    Parameters
    ----------
    rule : {"renyi", "sums"}, optional
        How charges compose; fixed by the first one.
    epsilon, delta, own_delta : Decimal
        Sums over the charges.
    renyi : tuple of float
        Sums at each order, rounded upwards.
    charges : int
        How many there were.
    """

    rule: Rule | None
    epsilon: Decimal
    delta: Decimal
    own_delta: Decimal
    renyi: tuple[float, ...]
    charges: int = 0

    def plus(self, cost: Cost, rule: Rule | None) -> Spent:
        """Return the sums with one more charge."""
        renyi = (math.nextafter(s + c, math.inf) for s, c in zip(self.renyi, cost.renyi, strict=True))
        return Spent(
            rule,
            _SUMS.add(self.epsilon, _decimal(cost.epsilon)),
            _SUMS.add(self.delta, _decimal(cost.delta)),
            _SUMS.add(self.own_delta, _decimal(cost.own_delta)),
            # A finite cap, for JSON; at it an order allows nothing any more.
            tuple(min(total, 1e300) for total in renyi),
            self.charges + 1,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the sums as plain values for JSON, without loss."""
        sums = {name: str(getattr(self, name)) for name in ("epsilon", "delta", "own_delta")}
        return {"rule": self.rule, **sums, "renyi": list(self.renyi), "charges": self.charges}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Spent:
        """Return the sums that :meth:`to_dict` wrote down."""
        sums = {name: Decimal(plain[name]) for name in ("epsilon", "delta", "own_delta")}
        return cls(plain["rule"], **sums, renyi=tuple(plain["renyi"]), charges=plain["charges"])


@dataclass(frozen=True)
class Filter:
    """A budget (epsilon, delta) that a sequence of adaptively chosen mechanisms keeps to.

    Parameters
    ----------
    epsilon, delta : float
        What everything that is accepted has together.
    orders, weights : tuple of float
        The Renyi orders that are watched, and what share of delta / 2 - ``sum_delta`` each of them may use; fixed
        before the first charge.
    sum_delta : float
        How much of delta is for the deltas of mechanisms with known divergences, while epsilons add up to the budget;
        fixed likewise.

    See Also
    --------
    oversafe.privacy.Ledger : Keeps a filter per data set.

    References
    ----------
    .. [1] R. Rogers, A. Roth, J. Ullman, S. Vadhan, "Privacy odometers and filters: pay-as-you-go composition",
           NeurIPS 2016.
    .. [2] V. Feldman, T. Zrnic, "Individual privacy accounting via a Renyi filter", NeurIPS 2021.
    .. [3] J. Whitehouse, A. Ramdas, R. Rogers, Z. S. Wu, "Fully adaptive composition in differential privacy",
           ICML 2023.
    """

    epsilon: float
    delta: float
    orders: tuple[float, ...]
    weights: tuple[float, ...]
    sum_delta: float = 0.0

    @classmethod
    def of(cls, epsilon: float, delta: float) -> Filter:
        """Return the filter of a budget, with orders that suit it."""
        check_epsilon(epsilon)
        check_delta(delta)
        if delta == 0:
            return cls(float(epsilon), 0.0, (), ())
        best = _best_order(epsilon, delta / 2)
        weights: dict[float, float] = {}
        for step in _STEPS:
            # Whole orders where that changes little: accountants are much faster at them.
            order = 1 + (best - 1) * 2 ** (step / 2)
            order = float(round(order)) if order >= 4 else max(1.01, round(order, 2))
            weights[order] = weights.get(order, 0.0) + _WEIGHT_FALL ** -abs(step)
        total = math.fsum(weights.values())
        shares = tuple(share / total for share in weights.values())
        return cls(float(epsilon), float(delta), tuple(weights), shares, float(delta) * _SUM_SHARE)

    @property
    def empty(self) -> Spent:
        """The sums before the first charge."""
        zero = Decimal(0)
        return Spent(None, zero, zero, zero, (0.0,) * len(self.orders))

    def cost(self, guarantee: Guarantee, relation: Relation) -> Cost:
        """Return what a guarantee with figures takes from a budget that is stated for a relation."""
        if guarantee.epsilon is None or guarantee.delta is None:
            raise ValueError("a guarantee without figures has no cost")
        epsilon, delta = float(guarantee.epsilon), float(guarantee.delta)
        event = guarantee.event
        if guarantee.relation != relation:
            # A replaced record is one that is removed and one that is added: group privacy for two.
            epsilon, delta, event = 2 * epsilon, min(1.0, delta * (1 + math.exp(min(epsilon, 700.0)))), None
        curve = None
        if event is not None and self.orders:
            curve = _event_curve(event, self.orders, relation)
        if delta > 0 and curve is not None:
            return Cost(epsilon, delta, curve, 0.0)
        pure = tuple(_pure_divergence(epsilon, order) for order in self.orders)
        if curve is not None:
            pure = tuple(map(min, pure, curve))
        return Cost(epsilon, delta, pure, delta)

    def spend(self, spent: Spent, cost: Cost) -> Spent | None:
        """Return the sums with one more charge, or None if they would exceed the budget."""
        rules: tuple[Rule, ...] = ("renyi", "sums") if spent.rule is None else (spent.rule,)
        for rule in rules:
            # The first charge alone may decide the rule, since no answer has been seen before it.
            after = spent.plus(cost, rule)
            if self.allows(after):
                return after
        return None

    def allows(self, spent: Spent, slack: float = 0.0) -> bool:
        """Whether the sums keep to the budget; ``slack`` is an allowance for another machine's rounding."""
        sum_fits = spent.epsilon <= _decimal(self.epsilon)
        if spent.rule == "sums":
            return sum_fits and spent.delta <= _decimal(self.delta)
        if spent.own_delta > _decimal(self.delta) / 2:
            return False
        if sum_fits and self._adds_up(spent):
            return True
        return self._excess(spent.renyi, self.epsilon) <= slack - _GUARD

    def left_epsilon(self, spent: Spent) -> float:
        """Return the largest pure epsilon that could still be charged."""
        most = float(max(Decimal(0), _decimal(self.epsilon) - spent.epsilon))
        if spent.rule == "sums" or not self.orders:
            return most

        def fits(epsilon: float) -> bool:
            curve = tuple(_pure_divergence(epsilon, order) for order in self.orders)
            return self.spend(spent, Cost(epsilon, 0.0, curve, 0.0)) is not None

        low = most if most > 0 and fits(most) else 0.0
        return _bisect(fits, low, max(low, self.epsilon))

    def left_delta(self, spent: Spent) -> float:
        """Return how much delta is left for mechanisms of which only (epsilon, delta) is known."""
        if spent.rule != "renyi":
            # The first charge may take all of it, by the rule of sums.
            return float(max(Decimal(0), _decimal(self.delta) - spent.delta))
        return float(max(Decimal(0), _decimal(self.delta) / 2 - spent.own_delta))

    def used_epsilon(self, spent: Spent) -> float:
        """Return the smallest epsilon of a budget, all else alike, that would have allowed the charges so far."""
        total = float(spent.epsilon)
        if spent.rule != "renyi" or not self.orders:
            return total
        most = min(total, self.epsilon) if self._adds_up(spent) else self.epsilon
        return most - _bisect(lambda less: self._excess(spent.renyi, most - less) <= 0, 0.0, most)

    def _adds_up(self, spent: Spent) -> bool:
        """Whether the sum of the epsilons bounds the loss, but for ``own_delta`` and ``sum_delta``."""
        return spent.delta - spent.own_delta <= _decimal(self.sum_delta)

    def _excess(self, renyi: Sequence[float], epsilon: float) -> float:
        # Positive when too much was spent: log(1 / delta_renyi) - log(sum of w / c * exp((order - 1) (epsilon - S))).
        if not self.orders:
            return math.inf
        exponents = [
            math.log(weight) - _log_conversion(order) + (order - 1) * (epsilon - divergence)
            for order, weight, divergence in zip(self.orders, self.weights, renyi, strict=True)
        ]
        largest = max(exponents)
        if largest == -math.inf:
            return math.inf
        return (
            -math.log(self.delta / 2 - self.sum_delta)
            - largest
            - math.log(math.fsum(math.exp(e - largest) for e in exponents))
        )


def _decimal(value: float) -> Decimal:
    return Decimal(repr(float(value)))


def _log_conversion(order: float) -> float:
    """Return log c, where 1 - exp(-x) <= c exp((order - 1) x) for all x >= 0 and no smaller c will do."""
    return (order - 1) * math.log1p(-1 / order) - math.log(order)


def _best_order(epsilon: float, delta: float) -> float:
    """Return the order at which (epsilon, delta) allows the most zero-concentrated DP."""

    def allowed(order: float) -> float:
        return (epsilon + (math.log(delta) - _log_conversion(order)) / (order - 1)) / order

    return max((1 + 10 ** (k / 50) for k in range(-100, 350)), key=allowed)


def _pure_divergence(epsilon: float, order: float) -> float:
    """Return the Renyi divergence of randomized response, the most that an epsilon-DP mechanism can have."""
    # log(p^a q^(1-a) + q^a p^(1-a)) with p = 1 / (1 + exp(-epsilon)), without overflow.
    high = -math.log1p(math.exp(-epsilon)) + (order - 1) * epsilon
    low = -epsilon - math.log1p(math.exp(-epsilon)) - (order - 1) * epsilon
    return (high + math.log1p(math.exp(low - high))) / (order - 1)


def _event_curve(event: DpEvent, orders: Sequence[float], relation: Relation) -> tuple[float, ...] | None:
    """Return the Renyi divergence of an event, or None if only its (epsilon, delta) can be used."""
    from dp_accounting import UnsupportedEventError, dp_event, rdp

    exact: tuple[type, ...] = (dp_event.GaussianDpEvent, dp_event.LaplaceDpEvent, dp_event.ZCDpEvent)
    if relation == "add-remove":
        # What the accountant knows of sampling is for this relation alone.
        exact += (dp_event.PoissonSampledDpEvent,)
    total = [0.0] * len(orders)
    try:
        for leaf, count in leaf_events(event):
            if isinstance(leaf, dp_event.DiscreteLaplaceDpEvent):
                curve = [_pure_divergence(leaf.noise_parameter * leaf.sensitivity, a) for a in orders]
            elif isinstance(leaf, exact):
                curve = list(map(float, rdp.RdpAccountant(list(orders)).compose(leaf).rdp))
            elif isinstance(leaf, dp_event.NoOpDpEvent):
                continue
            else:
                return None
            total = [t + count * c for t, c in zip(total, curve, strict=True)]
    except UnsupportedEventError:
        return None
    return tuple(total) if all(math.isfinite(t) and t >= 0 for t in total) else None


def _bisect(fits: Any, low: float, high: float) -> float:
    """Return nearly the largest value that fits; ``low`` does."""
    for _ in range(60):
        middle = (low + high) / 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low
