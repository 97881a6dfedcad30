"""One budget, handed out in shares, that nobody can overdraw."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from oversafe._core.checks import check_choice, check_count
from oversafe._core.errors import InputError
from oversafe.privacy.answers import about
from oversafe.privacy.guarantee import (
    SEEDED,
    Guarantee,
    Relation,
    Unit,
    approximate_event,
    check_delta,
    check_epsilon,
    composed_epsilon,
    failure_event,
    leaf_events,
    pure_event,
)
from oversafe.privacy.mechanisms import choose, frequent_counts, gaussian_counts, noisy_counts
from oversafe.privacy.zcdp import check_rho, zcdp_epsilon, zcdp_rho

if TYPE_CHECKING:
    from dp_accounting import DpEvent

# Shares that add up to one in the mind may add up to a little more in floats.
_ROUNDING = 1e-9
# More purely private events than this are added up, so that composing them stays quick.
_MOST_EVENTS = 16


@dataclass(frozen=True)
class Charge:
    """What one look at the data cost.

    Parameters
    ----------
    what : str
        What was looked at.
    event : dp_accounting.DpEvent, optional
        The mechanism, for tight composition.
    epsilon : float, optional
        Its pure epsilon, if it has one.
    rho : float, optional
        Its zCDP parameter, if it has one.
    delta : float
        The probability with which it fails altogether.
    """

    what: str
    event: DpEvent | None = None
    epsilon: float | None = None
    rho: float | None = None
    delta: float = 0.0


class Accountant:
    """A privacy budget for one data set: looks at the data are charged to it before they are made.

    With ``delta = 0`` the budget is pure: epsilons add up, and counts get discrete Laplace noise. With
    ``delta > 0`` it is kept in zero-concentrated differential privacy: rhos add up to the largest rho that implies
    (epsilon, delta), and counts get discrete Gaussian noise. A share is a fraction of the whole budget, so a method
    that asks for shares works in both.

    Parameters
    ----------
    epsilon : float
        The budget.
    delta : float, default=0.0
        The budget's delta; 0 means pure differential privacy.
    relation : {"replace-one", "add-remove"}, default="replace-one"
        Which tables count as neighbours.
    unit : {"record", "person"}, default="record"
        Who is protected.
    rows_per_unit : int, default=1
        How many rows a person has at most; see :func:`oversafe.privacy.limit_rows`.
    random_state : int or Generator, optional
        Makes all noise repeatable, for experiments; the guarantee is then nominal.

    Attributes
    ----------
    charges : list of Charge
        What was paid, in order.

    Examples
    --------
    >>> import numpy as np
    >>> from oversafe.privacy import Accountant
    >>> accountant = Accountant(1.0, 1e-9, random_state=0)
    >>> shares = accountant.split({"classes": 1, "columns": 4})
    >>> classes = accountant.counts(np.array([900, 100]), shares["classes"], what="class counts")
    >>> columns = accountant.counts(np.array([500, 500]), shares["columns"], what="column x")
    >>> round(accountant.left, 6)
    0.0
    >>> print(accountant.guarantee("discrete Gaussian noise"))  # doctest: +ELLIPSIS
    Nominal, not proven: epsilon = 1, delta = 1e-09 differential privacy for every record, ...
    """

    def __init__(
        self,
        epsilon: float,
        delta: float = 0.0,
        *,
        relation: Relation = "replace-one",
        unit: Unit = "record",
        rows_per_unit: int = 1,
        random_state: int | np.random.Generator | None = None,
    ):
        check_epsilon(epsilon)
        check_delta(delta)
        check_neighbours(relation, unit, rows_per_unit)
        self.epsilon = float(epsilon)
        self.delta = float(delta)
        self.relation: Relation = relation
        self.unit: Unit = unit
        self.rows_per_unit = rows_per_unit
        self.random_state = None if random_state is None else np.random.default_rng(random_state)
        self.charges: list[Charge] = []

    @property
    def pure(self) -> bool:
        """Whether the budget is pure differential privacy."""
        return self.delta == 0

    @property
    def total(self) -> float:
        """The whole budget: epsilon if it is pure, else rho after what was set aside of delta."""
        return self.epsilon if self.pure else zcdp_rho(self.epsilon, self.delta - self.failure)

    @property
    def failure(self) -> float:
        """The delta that was spent on mechanisms that fail altogether with that probability."""
        return math.fsum(charge.delta for charge in self.charges)

    @property
    def left(self) -> float:
        """The share of the budget that is left, from 0 to 1."""
        costs = [charge.epsilon if self.pure else charge.rho for charge in self.charges]
        if any(cost is None for cost in costs):
            # Events without a rho are held against the budget as a whole.
            left = self._room() / self.total
        else:
            left = 1 - math.fsum(cost or 0.0 for cost in costs) / self.total
        return left if left > _ROUNDING else 0.0

    @property
    def n_rows_public(self) -> bool:
        """Whether all neighbours have the same number of rows."""
        return self.relation == "replace-one" and self.unit == "record"

    @property
    def rows_changed(self) -> int:
        """How many rows leave and enter between neighbours, at most."""
        return self.rows_per_unit * (2 if self.relation == "replace-one" else 1)

    def sensitivity(self, tables: int = 1) -> tuple[int, float]:
        """Return the L1 and L2 sensitivity of counts in which every row counts once in each of some tables.

        With at most m rows per unit the counts of one table change by a vector a - b, where a and b are counts of
        at most m rows (b is 0 under "add-remove"): by at most 2 m in L1 and sqrt(2) m in L2, or m in both.
        """
        m = self.rows_per_unit
        if self.relation == "add-remove":
            return tables * m, math.sqrt(tables) * m
        return 2 * tables * m, math.sqrt(2 * tables) * m

    def split(self, weights: Mapping[str, float]) -> dict[str, float]:
        """Return shares that use up what is left, in the given proportions."""
        if not weights or not all(0 < weight < math.inf for weight in weights.values()):
            raise InputError(f"the budget was to be split by {dict(weights)!r}; give numbers above 0")
        whole = math.fsum(weights.values())
        left = self.left
        if not left:
            raise self._overdrawn(", ".join(weights))
        return {name: left * weight / whole for name, weight in weights.items()}

    def counts(
        self,
        counts: Any,
        share: float,
        *,
        what: str,
        tables: int = 1,
        l1: int | None = None,
        l2: float | None = None,
    ) -> NDArray[np.int64]:
        """Return counts with noise that is paid with a share of the budget.

        Parameters
        ----------
        counts : array of int
            Of any shape.
        share : float
            Of the whole budget, above 0 and at most 1.
        what : str
            What is counted, for the record.
        tables : int, default=1
            In how many of the tables that ``counts`` holds each row is counted once.
        l1, l2 : optional
            The sensitivities instead, if the counts are something else: give both.
        """
        if (l1 is None) != (l2 is None):
            raise InputError("one of l1 and l2 was given; counts need both, or the number of tables")
        if l1 is None or l2 is None:
            l1, l2 = self.sensitivity(tables)
        with self._paid(share, what) as amount:
            if self.pure:
                return noisy_counts(counts, sensitivity=l1, epsilon=amount, random_state=self.random_state)
            return gaussian_counts(counts, sensitivity=l2, rho=amount, random_state=self.random_state)

    def choose(
        self, scores: Any, share: float, *, what: str, sensitivity: float, monotonic: bool = False
    ) -> int:
        """Return the position of a score near the largest, paid with a share of the budget.

        Parameters
        ----------
        scores : array of shape (n_candidates,)
            The larger the better.
        share : float
            Of the whole budget.
        what : str
            What is chosen, for the record.
        sensitivity : float
            The most that one unit moves any score, under this accountant's relation and rows per unit.
        monotonic : bool, default=False
            Whether a unit moves all scores in the same direction.
        """
        with self._paid(share, what) as amount:
            return choose(
                scores,
                sensitivity=sensitivity,
                monotonic=monotonic,
                random_state=self.random_state,
                **{"epsilon" if self.pure else "rho": amount},
            )

    def frequent(
        self, counts: Any, share: float, *, what: str, delta: float, delta_paid: bool = False
    ) -> NDArray[np.int64]:
        """Return noisy counts of values that were found in the data, 0 for all that are too rare to be named.

        Parameters
        ----------
        counts : array of int of shape (n_values,)
            How many rows have each of the values that occur.
        share : float
            Of the whole budget.
        what : str
            What is counted, for the record.
        delta : float
            The part of the budget's delta that is spent on it: the probability that a value is named which only
            one unit has. A pure budget has none, so there a set of values must be declared.
        delta_paid : bool, default=False
            Whether that part was charged before, by :meth:`spend`. Whoever learns from earlier answers whether a set
            is needed charges for it beforehand.
        """
        if self.pure:
            raise InputError(
                f"{what} cannot be found in the data under pure differential privacy; declare it, or give a delta "
                "such as 1e-9"
            )
        with self._paid(share, what, 0.0 if delta_paid else delta) as rho:
            return frequent_counts(
                counts,
                changed=self.rows_changed,
                sensitivity=self.sensitivity()[1],
                largest=self.rows_per_unit,
                rho=rho,
                delta=delta,
                random_state=self.random_state,
            )

    def afford(self, share: float, what: str) -> None:
        """Raise if a share is not left; for what is paid in several parts, of which none is to be paid in vain."""
        if self.amount(share) > self._room() + _ROUNDING * self.total:
            raise self._overdrawn(what)

    def amount(self, share: float) -> float:
        """Return what a share of the budget is, in epsilon if it is pure, else in rho."""
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1 + _ROUNDING:
            raise InputError(
                f"a share of {share!r} of the budget was asked for; it lies above 0 and is at most 1"
            )
        return self.total * min(share, 1.0)

    def deviation(self, share: float, tables: int = 1) -> float:
        """Return the standard deviation of the noise that :meth:`counts` would add for a share."""
        l1, l2 = self.sensitivity(tables)
        budget = self.amount(share)
        return math.sqrt(2) * l1 / budget if self.pure else l2 / math.sqrt(2 * budget)

    def doubt(self, share: float, probability: float, tables: int = 1) -> float:
        """Return what the noise of a single count exceeds with at most some probability."""
        if self.pure:
            # The tail of discrete Laplace noise is below that of the continuous one, shifted by one.
            scale = self.sensitivity(tables)[0] / self.amount(share)
            return 1 + scale * max(0.0, -math.log(2 * probability))
        return 1 + self.deviation(share, tables) * math.sqrt(-2 * math.log(probability))

    def choice_scale(self, share: float, sensitivity: float) -> float:
        """Return the scale of the noise with which :meth:`choose` would compare scores for a share."""
        budget = self.amount(share)
        return 2 * sensitivity / (budget if self.pure else math.sqrt(8 * budget))

    def spend(
        self,
        what: str,
        *,
        share: float | None = None,
        epsilon: float | None = None,
        rho: float | None = None,
        event: DpEvent | None = None,
        delta: float = 0.0,
    ) -> None:
        """Charge the budget for a mechanism that is run elsewhere; raises, and charges nothing, if it is overdrawn.

        Parameters
        ----------
        what : str
            For the record.
        share, epsilon, rho, event : optional
            Give one: a share of the budget; the epsilon of a purely private mechanism; the rho of a zCDP
            mechanism; or an event of dp-accounting whose noise is relative to the sensitivity under this
            accountant's relation, such as the steps of DP-SGD.
        delta : float, default=0.0
            The probability with which the mechanism fails altogether.
        """
        given = [value for value in (share, epsilon, rho, event) if value is not None]
        if len(given) > 1 or (not given and delta == 0):
            raise InputError(
                f"{what}: {len(given)} prices were given; give one of share, epsilon, rho, event"
            )
        check_delta(delta)
        if share is not None:
            amount = self.amount(share)
            epsilon, rho = (amount, None) if self.pure else (None, amount)
        if epsilon is not None:
            check_epsilon(epsilon)
            charge = Charge(what, pure_event(epsilon), float(epsilon), float(epsilon) ** 2 / 2, delta)
        elif rho is not None:
            check_rho(rho)
            charge = Charge(what, _zcdp_event(rho), None, float(rho), delta)
        elif event is not None:
            charge = self._charge_of(what, event, delta)
        else:
            charge = Charge(what, None, 0.0, 0.0, delta)
        self._add(charge)

    def calibrate(
        self, make_event: Callable[[float], DpEvent], *, what: str, share: float = 1.0, most: float = 1e6
    ) -> float:
        """Return the least noise at which an event fits into a share of the budget; charge it with :meth:`spend`.

        Parameters
        ----------
        make_event : callable (float) -> DpEvent
            The event of a noise level; more noise must cost less.
        what : str
            For the error message.
        share : float, default=1.0
            Of the whole budget; with the default, all that is left.
        most : float
            The largest noise level to try.
        """

        cap = self._cap(share)
        interval = min(1e-3, max(1e-4, 1e-3 * cap))

        def fits(noise: float) -> bool:
            charge = self._charge_of(what, make_event(noise), 0.0)
            return self._fits([*self.charges, charge], cap, interval)

        # From moderate noise upwards: the privacy loss of hardly any noise takes long to compute.
        low, high = 0.0, 0.5
        while not fits(high):
            low, high = high, 2 * high
            if high > most:
                raise InputError(
                    f"{what} does not fit into what is left of the budget, even at noise {most:g}"
                )
        while high - low > 1e-3 * high and high > 1e-3:
            middle = (low + high) / 2
            low, high = (low, middle) if fits(middle) else (middle, high)
        return high

    def promise(self, basis: str, caveats: Sequence[str] = (), *, counts_only: bool = False) -> Guarantee:
        """Return the guarantee of the whole budget, before anything is looked at.

        Parameters
        ----------
        basis : str
            Which theorems it will rest on.
        caveats : sequence of str
            What is read from the data and not paid for; with any the guarantee is nominal.
        counts_only : bool, default=False
            Whether all that will be charged has a rho and no probability of failure, as counts and choices have;
            the promise then composes better.
        """
        event = approximate_event(self.epsilon, self.delta)
        if counts_only and not self.pure:
            event = _zcdp_event(zcdp_rho(self.epsilon, self.delta))
        return self._stated(self.epsilon, event, basis, caveats)

    def guarantee(self, basis: str, caveats: Sequence[str] = ()) -> Guarantee:
        """Return the guarantee of everything that was charged.

        Only for charges that were fixed beforehand: where noisy answers decide what is charged, what one run spent is
        no guarantee, and :meth:`promise` states the whole budget.

        Parameters
        ----------
        basis : str
            Which theorems it rests on.
        caveats : sequence of str
            What was read from the data and not paid for; with any the guarantee is nominal.
        """
        if not self.charges:
            raise InputError("nothing was charged to the budget, so there is no guarantee to state")
        return self._stated(self._epsilon_spent(), _joined(self.charges, self.pure), basis, caveats)

    def _stated(self, epsilon: float, event: DpEvent | None, basis: str, caveats: Sequence[str]) -> Guarantee:
        return Guarantee(
            "proven",
            epsilon,
            self.delta,
            relation=self.relation,
            unit=self.unit,
            rows_per_unit=self.rows_per_unit,
            basis=basis,
            event=event,
        ).weaken(*caveats, *([SEEDED] if self.random_state is not None else []))

    @contextmanager
    def _paid(self, share: float, what: str, delta: float = 0.0) -> Iterator[float]:
        """Charge a share, and give what the mechanism may spend, in epsilon or rho, before it draws any noise.

        What a mechanism refuses to do for its arguments is not charged.
        """
        before = list(self.charges)
        try:
            if delta:
                self.spend(what, delta=delta)
            amount = self.amount(share)
            room = self._room()
            if room < amount <= room + _ROUNDING * self.total:
                amount = room
            if not 0 < amount <= room:
                raise self._overdrawn(what)
            epsilon, rho = (amount, amount**2 / 2) if self.pure else (None, amount)
            self._add(Charge(what, pure_event(amount) if self.pure else _zcdp_event(amount), epsilon, rho))
            about(what, amount)
            yield amount
        except InputError:
            self.charges = before
            raise

    def _room(self) -> float:
        """Return what is left, in epsilon or rho, so that it can be spent without an overdraft."""
        costs = [charge.epsilon if self.pure else charge.rho for charge in self.charges]
        if all(cost is not None for cost in costs):
            left = self.total - math.fsum(cost or 0.0 for cost in costs)
            return max(0.0, math.nextafter(left, -math.inf)) if costs else left
        low, high = 0.0, self.total
        while high - low > 1e-6 * self.total:
            middle = (low + high) / 2
            charge = Charge("", _zcdp_event(middle), None, middle)
            low, high = (middle, high) if self._fits([*self.charges, charge]) else (low, middle)
        return low

    def _charge_of(self, what: str, event: DpEvent, delta: float) -> Charge:
        if self.relation == "replace-one" and _is_sampled(event):
            raise InputError(
                f"{what}: amplification by sampling is accounted for under 'add-remove' neighbours; "
                "use that relation"
            )
        if self.pure:
            epsilon = composed_epsilon(event, 0.0)
            if not math.isfinite(epsilon):
                raise InputError(
                    f"{what} is not purely private, and the budget's delta is 0; give it a delta such as 1e-9"
                )
            return Charge(what, event, epsilon, epsilon**2 / 2, delta)
        return Charge(what, event, None, None, delta)

    def _add(self, charge: Charge) -> None:
        if not self._fits([*self.charges, charge]):
            raise self._overdrawn(charge.what)
        self.charges.append(charge)

    def _cap(self, share: float) -> float:
        if share >= 1:
            return self.epsilon
        self.amount(share)
        used = self._epsilon_spent() if self.charges else 0.0
        if self.pure:
            return min(self.epsilon, used + share * self.epsilon)
        used_rho = self.total * (1 - self.left)
        return min(self.epsilon, zcdp_epsilon(used_rho + share * self.total, self.delta - self.failure))

    def _fits(self, charges: Sequence[Charge], epsilon: float | None = None, interval: float = 1e-4) -> bool:
        epsilon = self.epsilon if epsilon is None else epsilon
        delta = self.delta - math.fsum(charge.delta for charge in charges)
        if delta < 0:
            return False
        pure = [charge.epsilon for charge in charges]
        if all(cost is not None for cost in pure) and math.fsum(cost or 0 for cost in pure) <= epsilon:
            return True
        if delta == 0:
            return False
        rhos = [charge.rho for charge in charges]
        if all(rho is not None for rho in rhos):
            return math.fsum(rho or 0 for rho in rhos) <= zcdp_rho(epsilon, delta)
        event = _joined(charges, self.pure, failures=False)
        return event is not None and composed_epsilon(event, delta, interval=interval) <= epsilon

    def _epsilon_spent(self) -> float:
        costs = [charge.epsilon if self.pure else charge.rho for charge in self.charges]
        # Of pure mechanisms in a budget of rho the events say less than their rhos do.
        mixed = not self.pure and any(charge.epsilon for charge in self.charges)
        if not mixed and all(cost is not None for cost in costs):
            spent = math.fsum(cost or 0.0 for cost in costs)
            if spent >= self.total * (1 - _ROUNDING):
                return self.epsilon
            if self.pure:
                return spent
            return min(self.epsilon, zcdp_epsilon(spent, self.delta - self.failure))
        event = _joined(self.charges, self.pure)
        assert event is not None
        return min(self.epsilon, composed_epsilon(event, self.delta))

    def _overdrawn(self, what: str) -> InputError:
        return InputError(
            f"{what} costs more than the {100 * self.left:.3g} % that are left of the budget "
            f"(epsilon = {self.epsilon:g}, delta = {self.delta:g}); nothing was spent on it"
        )

    def __repr__(self) -> str:
        return f"Accountant(epsilon={self.epsilon:g}, delta={self.delta:g}, left={self.left:.3g})"


def check_neighbours(relation: str, unit: str, rows_per_unit: int) -> None:
    """Refuse a relation, a unit or a number of rows that mean nothing."""
    for name, value, allowed in (("relation", relation, Relation), ("unit", unit, Unit)):
        check_choice(name, value, get_args(allowed))
    check_count("rows_per_unit", rows_per_unit)
    if unit == "record" and rows_per_unit != 1:
        raise InputError(
            f"rows_per_unit = {rows_per_unit} was given for the unit 'record'; use unit='person' with it"
        )


def _zcdp_event(rho: float) -> DpEvent:
    from dp_accounting import dp_event

    return dp_event.ZCDpEvent(float(rho))


def _joined(charges: Sequence[Charge], pure: bool, *, failures: bool = True) -> DpEvent | None:
    """Return one event for all charges: those that only add up are added up."""
    from dp_accounting import ComposedDpEvent, dp_event

    parts: list[DpEvent] = []
    if pure and len(charges) > _MOST_EVENTS:
        parts.append(pure_event(math.fsum(charge.epsilon or 0.0 for charge in charges)))
    elif pure:
        parts += [pure_event(charge.epsilon) for charge in charges if charge.epsilon]
    else:
        zcdp = [charge for charge in charges if isinstance(charge.event, dp_event.ZCDpEvent)]
        if rho := math.fsum(charge.rho or 0.0 for charge in zcdp):
            parts.append(_zcdp_event(rho))
        parts += [c.event for c in charges if c.event is not None and c not in zcdp]
    if failures and (delta := math.fsum(charge.delta for charge in charges)):
        parts.append(failure_event(delta))
    return parts[0] if len(parts) == 1 else ComposedDpEvent(parts) if parts else None


def _is_sampled(event: DpEvent) -> bool:
    from dp_accounting import dp_event

    inner = getattr(event, "events", None) or [getattr(event, "event", None)]
    sampled = (
        dp_event.PoissonSampledDpEvent,
        dp_event.SampledWithReplacementDpEvent,
        dp_event.SampledWithoutReplacementDpEvent,
        dp_event.TruncatedSubsampledGaussianDpEvent,
    )
    return isinstance(event, sampled) or any(_is_sampled(part) for part in inner if part is not None)


def as_replace_one(guarantee: Guarantee) -> Guarantee:
    """Return what an add-remove guarantee means for replaced records: a removal and an addition.

    Pure epsilon doubles, rho of zCDP quadruples (Bun and Steinke 2016, Proposition 1.9), Gaussian noise is relative to
    twice the sensitivity, and (epsilon, delta) becomes (2 epsilon, (1 + e^epsilon) delta). The other direction does not
    hold: under replace-one the number of rows is public.
    """
    from dp_accounting import ComposedDpEvent

    if guarantee.status == "none" or guarantee.relation == "replace-one":
        return guarantee
    assert guarantee.epsilon is not None and guarantee.delta is not None
    epsilon, delta = 2 * guarantee.epsilon, guarantee.delta * (1 + math.exp(min(guarantee.epsilon, 700.0)))
    event: DpEvent | None = None
    leaves = (
        []
        if guarantee.event is None
        else [leaf for leaf, n in leaf_events(guarantee.event) for _ in range(n)]
    )
    doubled = [_doubled(leaf) for leaf in leaves]
    if leaves and all(part is not None for part in doubled):
        event = doubled[0] if len(doubled) == 1 else ComposedDpEvent(doubled)
        # The mechanisms' own noise may say more at the old delta than the two figures do at a larger one.
        at = max(guarantee.delta, 0.0)
        if math.isfinite(found := composed_epsilon(event, at)):
            # The larger of what is stated and what the event gives, which may differ by the accountants' rounding.
            less = guarantee.epsilon - composed_epsilon(guarantee.event, at)
            epsilon, delta = found + 2 * max(0.0, less), at
    if delta >= 1:
        return Guarantee.none(
            f"with {guarantee} for an added or removed record, nothing follows for a replaced one"
        )
    event = approximate_event(epsilon, delta) if event is None else event
    return replace(guarantee, epsilon=epsilon, delta=delta, relation="replace-one", event=event)


def _doubled(event: DpEvent) -> DpEvent | None:
    """Return a mechanism's event for twice the change, if it is known."""
    from dp_accounting import dp_event

    if isinstance(event, dp_event.DiscreteLaplaceDpEvent):
        return pure_event(2 * event.noise_parameter * event.sensitivity)
    if isinstance(event, dp_event.ZCDpEvent) and not event.xi:
        return dp_event.ZCDpEvent(4 * event.rho)
    if isinstance(event, dp_event.GaussianDpEvent):
        return dp_event.GaussianDpEvent(event.noise_multiplier / 2)
    return None
