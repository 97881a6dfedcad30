"""A privacy claim as an object that travels with the release."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, get_args

from oversafe._core.checks import check_count
from oversafe._core.errors import InputError

if TYPE_CHECKING:
    from dp_accounting import DpEvent

Status = Literal["proven", "nominal", "none"]
Relation = Literal["replace-one", "add-remove"]
Unit = Literal["record", "person"]

SEEDED = (
    "a fixed random_state was used, so the noise can be repeated by anyone who knows it; "
    "such a release is for experiments and must not leave the building"
)
# Where all neighbours have the same number of rows; elsewhere a filter of single rows changes nothing.
UNLABELLED = (
    "rows without a label were left out, so that the number of rows tells how many there are (not so with "
    "relation = 'add-remove')"
)
STRICT = "cells that do not fit the schema were refused, so that a release tells that all of them fit"
# What a proof leaves out where noise is added to numbers that are computed and published in floating point.
OVER_THE_REALS = (
    "floating-point numbers count as real numbers: the proof does not cover how the computer rounds them"
)
# Of epsilon: how far an event's cost may be from it, as accountants of two versions are. Those of oversafe's own
# methods are within 3e-7 (golden outputs, 113 guarantees).
_EVENT_ROUNDING = 1e-3
_WEAKEST: tuple[Status, ...] = ("none", "nominal", "proven")


@dataclass(frozen=True)
class Guarantee:
    """What a release or a model promises about the people in its data.

    Parameters
    ----------
    status : {"proven", "nominal", "none"}
        "proven" when every look at the data is accounted for; "nominal" when figures exist that do not
        bound the whole, with the reason in ``caveats``; "none" when nothing is promised.
    epsilon, delta : float, optional
        The differential-privacy parameters.
    relation : {"replace-one", "add-remove"}
        Which tables count as neighbours; under "replace-one" the number of rows is public.
    unit : {"record", "person"}
        Who is protected.
    rows_per_unit : int
        How many rows one unit has at most.
    basis : str
        Which theorem the figures rest on.
    event : dp_accounting.DpEvent, optional
        The mechanism for the accountant, so that several releases compose tightly. Its noise is stated
        relative to the sensitivity under ``relation``. It has to give ``epsilon`` at ``delta``.
    caveats : tuple of str
        What limits the claim, in sentences. Those of a proven guarantee are what its proof takes for granted.

    Examples
    --------
    >>> from oversafe.privacy import Guarantee
    >>> print(Guarantee.none("SMOTE publishes points on lines between real records."))
    No privacy guarantee: SMOTE publishes points on lines between real records.
    """

    status: Status
    epsilon: float | None = None
    delta: float | None = None
    relation: Relation = "replace-one"
    unit: Unit = "record"
    rows_per_unit: int = 1
    basis: str = ""
    event: DpEvent | None = None
    caveats: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, "caveats", tuple(self.caveats))
        for name, allowed in (("status", Status), ("relation", Relation), ("unit", Unit)):
            if getattr(self, name) not in get_args(allowed):
                raise InputError(
                    f"a guarantee's {name} is one of {', '.join(get_args(allowed))}, "
                    f"and {getattr(self, name)!r} was given"
                )
        if self.status == "none":
            if self.epsilon is not None or self.delta is not None or self.event is not None:
                raise InputError(
                    "a guarantee of status 'none' has no epsilon, delta or event; leave them out"
                )
            return
        if self.epsilon is None or self.delta is None:
            raise InputError(f"a guarantee of status {self.status!r} needs epsilon and delta; give both")
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        check_count("rows_per_unit", self.rows_per_unit)
        if self.status == "proven" and (not self.basis or self.event is None):
            raise InputError("a proven guarantee names its basis and its event; give both")
        if self.status == "nominal" and not self.caveats:
            raise InputError("a nominal guarantee says in `caveats` why it is not proven; add a sentence")
        if self.event is not None:
            self._check_event(self.event, self.epsilon, self.delta)

    @classmethod
    def none(cls, *reasons: str) -> Guarantee:
        """Return the absence of a guarantee, with the reason."""
        return cls("none", caveats=reasons)

    @classmethod
    def pure(cls, epsilon: float, basis: str, *, relation: Relation = "replace-one") -> Guarantee:
        """Return a proven guarantee of pure epsilon-differential privacy."""
        return cls("proven", epsilon, 0.0, relation=relation, basis=basis, event=pure_event(epsilon))

    @property
    def n_rows_public(self) -> bool:
        """Whether all neighbours have the same number of rows."""
        return self.relation == "replace-one" and self.unit == "record"

    def weaken(self, *caveats: str) -> Guarantee:
        """Return the guarantee as nominal, with the reasons; without reasons it stays as it is."""
        if not caveats or self.status == "none":
            return replace(self, caveats=self.caveats + caveats)
        return replace(self, status="nominal", caveats=self.caveats + caveats)

    def assuming(self, *assumptions: str) -> Guarantee:
        """Return the guarantee, of the same status, with what its proof takes for granted among the caveats."""
        return replace(self, caveats=tuple(dict.fromkeys(self.caveats + assumptions)))

    @staticmethod
    def compose(*guarantees: Guarantee, delta: float | None = None) -> Guarantee:
        """Return the guarantee of several releases of the same data together.

        Parameters
        ----------
        *guarantees : Guarantee
            Of one relation and one unit.
        delta : float, optional
            The delta at which epsilon is stated; the sum of the deltas when not given. A larger one
            lets the accountant find a smaller epsilon.
        """
        if not guarantees:
            raise InputError("no guarantee was given to compose; give at least one")
        status = min((g.status for g in guarantees), key=_WEAKEST.index)
        caveats = tuple(dict.fromkeys(c for g in guarantees for c in g.caveats))
        if status == "none":
            return Guarantee("none", caveats=caveats)
        for name in ("relation", "unit", "rows_per_unit"):
            values = {getattr(g, name) for g in guarantees}
            if len(values) > 1:
                raise InputError(
                    f"guarantees of different {name.replace('_', ' ')} ({', '.join(map(str, sorted(values)))}) "
                    "do not compose; state them alike first"
                )
        if len(guarantees) == 1 and delta is None:
            return guarantees[0]
        total_epsilon = math.fsum(g.epsilon or 0.0 for g in guarantees)
        total_delta = math.fsum(g.delta or 0.0 for g in guarantees)
        if delta is None:
            delta = total_delta
        check_delta(delta)
        events = [g.event for g in guarantees]
        epsilon = total_epsilon if delta >= total_delta else math.inf
        event = None
        if all(e is not None for e in events):
            from dp_accounting import ComposedDpEvent

            event = ComposedDpEvent(events)
            cost = composed_epsilon(event, delta)
            if cost > epsilon * (1 + _EVENT_ROUNDING):
                # The accountants round upwards; the sum of the figures holds as well.
                event = approximate_event(epsilon, delta)
            epsilon = min(epsilon, cost)
        if not math.isfinite(epsilon):
            raise InputError(
                f"these guarantees cannot be stated at delta = {delta:g}; give delta of at least {total_delta:g}"
            )
        return Guarantee(
            status,
            epsilon,
            delta,
            relation=guarantees[0].relation,
            unit=guarantees[0].unit,
            rows_per_unit=guarantees[0].rows_per_unit,
            basis="composition of: " + "; ".join(dict.fromkeys(g.basis for g in guarantees if g.basis)),
            event=event,
            caveats=caveats,
        )

    def __str__(self) -> str:
        because = "; ".join(c.rstrip(".") for c in self.caveats) + "." if self.caveats else ""
        if self.status == "none":
            return f"No privacy guarantee: {because}" if because else "No privacy guarantee."
        who = "record" if self.unit == "record" else f"person (at most {self.rows_per_unit} rows each)"
        figures = f"epsilon = {self.epsilon:g}" + (f", delta = {self.delta:g}" if self.delta else "")
        text = f"{figures} differential privacy for every {who}, {self.relation} neighbours"
        if self.status == "proven":
            return f"Proven: {text}." + (f" It holds if {because}" if because else "")
        if self.basis.startswith("none"):
            text = f"{figures} is a setting of the method here, not differential privacy"
        return f"Nominal, not proven: {text}; {because}"

    def to_dict(self) -> dict[str, Any]:
        """Return the guarantee as plain values for JSON."""
        return {
            "status": self.status,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "relation": self.relation,
            "unit": self.unit,
            "rows_per_unit": self.rows_per_unit,
            "basis": self.basis,
            "event": None if self.event is None else _event_to_dict(self.event),
            "caveats": list(self.caveats),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Guarantee:
        """Return the guarantee that :meth:`to_dict` wrote down."""
        if not isinstance(plain, Mapping):
            raise InputError(f"a guarantee is read from a JSON object, and {type(plain).__name__} was given")
        try:
            facts = dict(plain)
            event = facts.pop("event", None)
            caveats = facts.pop("caveats", [])
            if not isinstance(caveats, list) or not all(isinstance(c, str) for c in caveats):
                raise InputError("a guarantee's caveats are a list of sentences")
            return cls(
                **facts, caveats=tuple(caveats), event=None if event is None else _event_from_dict(event)
            )
        except (TypeError, KeyError, AttributeError, ValueError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"this is not a guarantee as oversafe writes it ({error})") from error

    @staticmethod
    def _check_event(event: DpEvent, epsilon: float, delta: float) -> None:
        """Refuse an event that does not cost what is stated: composition believes the event, a verdict the figures."""
        try:
            cost = _cost(_AtDelta(repr(event), delta, event))
        except Exception as error:
            # Whatever the accountants raise: the figures may come from a file.
            raise InputError(f"the guarantee's event cannot be accounted for ({error})") from error
        # At a delta d randomized response of epsilon costs less than epsilon, by some 2 d.
        if not abs(cost - epsilon) <= _EVENT_ROUNDING * epsilon + 4 * delta:
            raise InputError(
                f"the guarantee states epsilon = {epsilon:g} at delta = {delta:g}, and its event gives {cost:g}; state "
                "both alike"
            )

    def to_json(self) -> str:
        """Return the guarantee as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    @classmethod
    def from_json(cls, text: str) -> Guarantee:
        """Return the guarantee that :meth:`to_json` wrote down."""
        try:
            return cls.from_dict(json.loads(text))
        except json.JSONDecodeError as error:
            raise InputError(f"the guarantee is not valid JSON: {error}") from error


@dataclass(frozen=True)
class _AtDelta:
    """An event, which cannot be hashed itself, and the delta that it is looked at."""

    text: str
    delta: float
    event: DpEvent = field(compare=False)


@lru_cache(maxsize=256)
def _cost(at: _AtDelta) -> float:
    """Return what an event costs; a guarantee is copied with every caveat, and accountants take their time."""
    return composed_epsilon(at.event, at.delta)


def check_epsilon(epsilon: float) -> None:
    """Refuse an epsilon that means nothing."""
    if (
        isinstance(epsilon, bool)
        or not isinstance(epsilon, int | float)
        or not 0 < epsilon <= sys.float_info.max
    ):
        raise InputError(f"epsilon = {epsilon!r} was given; it is a finite number above 0, such as 1.0")


def check_delta(delta: float) -> None:
    """Refuse a delta that means nothing."""
    if isinstance(delta, bool) or not isinstance(delta, int | float) or not 0 <= delta < 1:
        raise InputError(f"delta = {delta!r} was given; it is a number from 0 to below 1, such as 1e-9")


def pure_event(epsilon: float) -> DpEvent:
    """Return the event of any epsilon-DP mechanism.

    Discrete Laplace noise of sensitivity 1 has a privacy loss of exactly plus or minus epsilon, as binary
    randomized response has, which dominates every epsilon-DP mechanism (Kairouz, Oh and Viswanath 2015,
    Theorem 3.1). So composing it is tight and never too hopeful.
    """
    from dp_accounting import dp_event

    return dp_event.DiscreteLaplaceDpEvent(noise_parameter=float(epsilon), sensitivity=1)


def failure_event(delta: float) -> DpEvent:
    """Return the event of a mechanism that gives everything away with probability delta and else nothing.

    dp-accounting has none of its own, and its accountants refuse this one; :func:`composed_epsilon` composes it
    exactly.
    """
    from dp_accounting import dp_event

    check_delta(delta)
    return dp_event.PoissonSampledDpEvent(float(delta), dp_event.NonPrivateDpEvent())


def approximate_event(epsilon: float, delta: float) -> DpEvent:
    """Return the event of any (epsilon, delta)-DP mechanism.

    With probability delta everything is shown, otherwise it is :func:`pure_event`: this pair dominates every
    (epsilon, delta)-DP mechanism (Kairouz, Oh and Viswanath 2015, Theorem 3.3).
    """
    from dp_accounting import dp_event

    if delta == 0:
        return pure_event(epsilon)
    return dp_event.ComposedDpEvent([pure_event(epsilon), failure_event(delta)])


def _failure(event: DpEvent) -> float | None:
    """Return the delta of a :func:`failure_event`, None of any other."""
    from dp_accounting import dp_event

    if isinstance(event, dp_event.PoissonSampledDpEvent) and isinstance(
        event.event, dp_event.NonPrivateDpEvent
    ):
        return float(event.sampling_probability)
    return None


def composed_epsilon(event: DpEvent, delta: float, *, interval: float | None = None) -> float:
    """Return the smallest epsilon that the accountants can show for an event at a delta.

    ``interval`` is the step of the privacy loss distribution, which rounds upwards: a larger one is quicker and
    never too hopeful.
    """
    import numpy as np
    from dp_accounting import rdp
    from dp_accounting.pld import PLDAccountant

    leaves, hidden = [], 0.0
    for leaf, count in leaf_events(event):
        if (chance := _failure(leaf)) is None:
            leaves.append((leaf, count))
        else:
            hidden += count * math.log1p(-chance) if chance < 1 else -math.inf
    if hidden < 0:
        # Shown with probability f, else composed of the rest: delta(epsilon) = f + (1 - f) delta_rest(epsilon).
        shown = -math.expm1(hidden)
        if shown > delta * (1 + 1e-12):
            return math.inf
        delta = max(0.0, (delta - shown) / (1 - shown))
    if not leaves:
        return 0.0
    best = _simple_epsilon(leaves, delta)
    if delta == 0 and math.isfinite(best):
        # Of purely private mechanisms nothing less than the sum holds without a delta.
        return best
    if interval is None:
        # A grid of 1e-4 is too fine to compose epsilons of thousands.
        interval = max(1e-4, sum(_pure_epsilon(leaf) or 0.0 for leaf, _ in leaves) * 1e-6)
    # Both accountants take a noise multiplier as relative to sensitivity 1, which is how a guarantee states its
    # event under its own relation, whichever that is.
    for accountant, parts in (
        (PLDAccountant(value_discretization_interval=interval), leaves),
        (rdp.RdpAccountant(), [_as_zcdp(leaf, count) for leaf, count in leaves]),
    ):
        if not all(accountant.supports(leaf) for leaf, _ in parts):
            continue
        # SciPy warns of an exponential of a large epsilon, whose reciprocal is what it needs.
        with np.errstate(over="ignore"):
            for leaf, count in parts:
                accountant.compose(leaf, count)
            best = min(best, float(accountant.get_epsilon(delta)))
    return best


def _simple_epsilon(leaves: Sequence[tuple[DpEvent, int]], delta: float) -> float:
    """Return what follows from adding up epsilons, or rhos: exact where the accountants' grids are too coarse."""
    from dp_accounting import dp_event

    from oversafe.privacy.zcdp import zcdp_epsilon

    best = math.inf
    pure = [_pure_epsilon(leaf) for leaf, _ in leaves]
    if all(epsilon is not None for epsilon in pure):
        best = math.fsum(count * (epsilon or 0.0) for epsilon, (_, count) in zip(pure, leaves, strict=True))
    zcdp = [_as_zcdp(leaf, count) for leaf, count in leaves]
    if delta > 0 and all(isinstance(leaf, dp_event.ZCDpEvent) and leaf.xi == 0 for leaf, _ in zcdp):
        best = min(best, zcdp_epsilon(math.fsum(count * leaf.rho for leaf, count in zcdp), delta))
    return best


def leaf_events(event: DpEvent, count: int = 1) -> Iterator[tuple[DpEvent, int]]:
    """Yield the mechanisms that an event is composed of, each with how often it is run."""
    from dp_accounting import dp_event

    if isinstance(event, dp_event.ComposedDpEvent):
        for part in event.events:
            yield from leaf_events(part, count)
    elif isinstance(event, dp_event.SelfComposedDpEvent):
        yield from leaf_events(event.event, count * event.count)
    else:
        yield event, count


def _as_zcdp(event: DpEvent, count: int) -> tuple[DpEvent, int]:
    from dp_accounting import dp_event

    # The Renyi accountant does not know discrete Laplace; epsilon-DP implies epsilon^2/2-zCDP
    # (Bun and Steinke 2016, Proposition 3.3).
    if isinstance(event, dp_event.DiscreteLaplaceDpEvent):
        epsilon = event.noise_parameter * event.sensitivity
        # A power of floats overflows with an error, a product to infinity.
        return dp_event.ZCDpEvent(epsilon * epsilon / 2), count
    return event, count


def _pure_epsilon(event: DpEvent) -> float | None:
    """Return the epsilon of a purely private event, None of any other."""
    from dp_accounting import dp_event

    if isinstance(event, dp_event.DiscreteLaplaceDpEvent):
        return event.noise_parameter * event.sensitivity
    if isinstance(event, dp_event.LaplaceDpEvent) and event.noise_multiplier > 0:
        return 1 / event.noise_multiplier
    return None


def _event_to_dict(event: DpEvent) -> dict[str, Any]:
    import attrs

    plain: dict[str, Any] = {"type": type(event).__name__}
    for attribute in attrs.fields(type(event)):
        plain[attribute.name] = _event_value(getattr(event, attribute.name))
    return plain


def _event_value(value: Any) -> Any:
    from dp_accounting import DpEvent

    if isinstance(value, DpEvent):
        return _event_to_dict(value)
    if isinstance(value, list | tuple):
        return [_event_value(v) for v in value]
    return value


def _event_from_dict(plain: Any) -> DpEvent:
    from dp_accounting import DpEvent, dp_event

    kind = getattr(dp_event, str(plain["type"]), None)
    # Only the accounting library's own events: the file may come from anywhere.
    if not (isinstance(kind, type) and issubclass(kind, DpEvent)):
        raise InputError(f"{plain['type']!r} is no event of dp-accounting")
    return kind(**{k: _plain_event_value(v) for k, v in plain.items() if k != "type"})


def _plain_event_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _event_from_dict(value)
    if isinstance(value, list):
        return [_plain_event_value(v) for v in value]
    return value
