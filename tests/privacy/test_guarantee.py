"""A guarantee says what it is, keeps its rules, composes, and survives being written down."""

import json
import math

import pytest
from dp_accounting import (
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
    UnsupportedDpEvent,
    ZCDpEvent,
)

from oversafe._core.errors import InputError
from oversafe.privacy import Guarantee, Ledger, Manifest
from oversafe.privacy.accountant import as_replace_one
from oversafe.privacy.guarantee import (
    OVER_THE_REALS,
    _event_to_dict,
    approximate_event,
    composed_epsilon,
    pure_event,
)
from oversafe.privacy.signing.manifest import checksum


def test_sentences():
    assert str(Guarantee.pure(1.0, "Laplace")) == (
        "Proven: epsilon = 1 differential privacy for every record, replace-one neighbours."
    )
    assert str(Guarantee.pure(0.5, "Laplace").weaken("bounds came from the data")) == (
        "Nominal, not proven: epsilon = 0.5 differential privacy for every record, replace-one neighbours; "
        "bounds came from the data."
    )
    assert str(Guarantee.none("rows are real")) == "No privacy guarantee: rows are real."
    event = approximate_event(1.0, 1e-9)
    person = Guarantee("proven", 1.0, 1e-9, unit="person", rows_per_unit=3, basis="b", event=event)
    assert "epsilon = 1, delta = 1e-09" in str(person) and "person (at most 3 rows each)" in str(person)


@pytest.mark.parametrize(
    "event",
    [
        pure_event(1.0),
        ZCDpEvent(0.5),
        SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(1.1)), 100),
    ],
)
def test_json_round_trip(event):
    epsilon = composed_epsilon(event, 1e-9)
    guarantee = Guarantee(
        "proven", epsilon, 1e-9, "add-remove", basis="a theorem", event=event, caveats=("here",)
    )
    assert Guarantee.from_json(guarantee.to_json()) == guarantee
    assert Guarantee.from_json(Guarantee.none("x").to_json()) == Guarantee.none("x")


@pytest.mark.parametrize(
    "event",
    [
        {"type": "NoOpDpEvent"},
        {"type": "GaussianDpEvent", "noise_multiplier": -1},
        {"type": "ComposedDpEvent", "events": 5},
        {"type": "DiscreteLaplaceDpEvent", "noise_parameter": 0.1, "sensitivity": 1},
    ],
)
def test_an_event_that_costs_something_else_is_refused(event):
    plain = {**Guarantee.pure(1.0, "Laplace").to_dict(), "event": event}
    with pytest.raises(InputError):
        Guarantee.from_dict(plain)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    ("epsilon", "delta", "event"),
    [
        (50.0, 0.0, pure_event(0.01)),
        (1.575, 0.0, pure_event(1.5)),
        (1.0, 0.0, pure_event(1.01)),
        (1.0, 0.0, approximate_event(1.0, 1e-9)),
        (1.0, 1e-9, approximate_event(1.0, 1e-8)),
        (1.0, 1e-6, GaussianDpEvent(40.0)),
        (1.0, 1e-6, UnsupportedDpEvent()),
    ],
)
def test_figures_and_event_say_the_same_wherever_a_guarantee_is_made(relation, epsilon, delta, event):
    with pytest.raises(InputError, match=r"its event gives .*; state both alike"):
        Guarantee("proven", epsilon, delta, relation, basis="b", event=event)
    with pytest.raises(InputError, match="its event gives"):
        Guarantee("nominal", epsilon, delta, relation, event=event, caveats=("seeded",))


def test_an_event_may_cost_less_where_delta_alone_covers_it():
    for epsilon, delta in ((1e-10, 1e-6), (0.01, 1e-5)):
        for event in (pure_event(epsilon), approximate_event(epsilon, delta)):
            stated = Guarantee("proven", epsilon, delta, "add-remove", basis="b", event=event)
            assert 2 * epsilon * 0.999 <= as_replace_one(stated).epsilon <= 2 * epsilon + 4 * delta


def test_what_is_composed_costs_what_its_event_gives():
    """Where the accountants' grid rounds the cost up to more than the sum of the figures, the sum is the event."""
    event = GaussianDpEvent(5000.0)
    one = Guarantee("proven", composed_epsilon(event, 1e-6), 1e-6, basis="b", event=event)
    for parts in ([one] * 3, [one, Guarantee.pure(1e-4, "b")], [Guarantee.pure(1e-4, "b")] * 9):
        for delta in (None, 1e-5):
            total = Guarantee.compose(*parts, delta=delta)
            assert total.epsilon <= sum(part.epsilon for part in parts)
            assert composed_epsilon(total.event, total.delta) == pytest.approx(total.epsilon, rel=1e-3)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_larger_of_the_stated_figure_and_the_events_is_converted(delta):
    stated = Guarantee("proven", 1.5, delta, relation="add-remove", basis="b", event=pure_event(1.4995))
    assert as_replace_one(stated).epsilon == pytest.approx(3.0, abs=1e-5)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"status": "safe"}, "status"),
        ({"status": "proven", "epsilon": 1.0, "delta": 0.0}, "basis and its event"),
        ({"status": "nominal", "epsilon": 1.0, "delta": 0.0}, "caveats"),
        ({"status": "nominal", "epsilon": 0.0, "delta": 0.0, "caveats": ("x",)}, "epsilon = 0.0"),
        ({"status": "nominal", "epsilon": math.nan, "delta": 0.0, "caveats": ("x",)}, "epsilon = nan"),
        ({"status": "nominal", "epsilon": math.inf, "delta": 0.0, "caveats": ("x",)}, "epsilon = inf"),
        ({"status": "nominal", "epsilon": 1.0, "delta": 1.0, "caveats": ("x",)}, "delta = 1.0"),
        ({"status": "none", "epsilon": 1.0}, "no epsilon"),
        (
            {"status": "nominal", "epsilon": 1.0, "delta": 0, "caveats": ("x",), "relation": "swap"},
            "relation",
        ),
    ],
)
def test_rules(facts, message):
    with pytest.raises(InputError, match=message):
        Guarantee(**facts)


def test_a_file_cannot_name_foreign_classes():
    plain = Guarantee.pure(1.0, "Laplace").to_dict()
    plain["event"] = {"type": "attr"}
    with pytest.raises(InputError, match="no event of dp-accounting"):
        Guarantee.from_dict(plain)
    with pytest.raises(InputError):
        Guarantee.from_json("[1]")
    with pytest.raises(InputError):
        Guarantee.from_json("{")


def test_pure_guarantees_add_up_at_delta_zero():
    total = Guarantee.compose(Guarantee.pure(0.5, "a"), Guarantee.pure(0.25, "b"))
    assert total.status == "proven"
    assert total.epsilon == pytest.approx(0.75) and total.delta == 0.0
    assert total.epsilon <= 0.75


def test_composition_is_tighter_than_the_sum_when_delta_is_allowed():
    parts = [Guarantee.pure(0.1, "a")] * 100
    total = Guarantee.compose(*parts, delta=1e-6)
    assert total.epsilon < 6 < 10


def test_repeated_events_are_all_counted():
    # Ten mechanisms of epsilon 1 can reach a loss of 10 with probability 0.73^10 = 0.04.
    assert composed_epsilon(SelfComposedDpEvent(pure_event(1.0), 10), 1e-6) > 9.5


def test_composed_gaussians_match_the_known_figure():
    # Two Gaussian mechanisms of multiplier sqrt(2) are one of multiplier 1: delta(1) = 0.1269 (Balle and Wang).
    event = SelfComposedDpEvent(GaussianDpEvent(math.sqrt(2)), 2)
    assert composed_epsilon(event, 0.126936737507) == pytest.approx(1.0, abs=2e-3)


def test_composition_keeps_the_weakest_status_and_all_caveats():
    proven = Guarantee.pure(1.0, "a")
    assert Guarantee.compose(proven, proven.weaken("seeded")).status == "nominal"
    assert Guarantee.compose(proven, Guarantee.none("rows are real")) == Guarantee.none("rows are real")


def test_what_a_proof_takes_for_granted_leaves_it_proven_and_is_carried_on(tmp_path):
    assumed = Guarantee.pure(1.0, "a").assuming(OVER_THE_REALS)
    assert assumed.status == "proven" and assumed.assuming(OVER_THE_REALS) == assumed
    assert str(assumed) == (
        "Proven: epsilon = 1 differential privacy for every record, replace-one neighbours. It holds if floating-point "
        "numbers count as real numbers: the proof does not cover how the computer rounds them."
    )
    assert Guarantee.from_dict(json.loads(json.dumps(assumed.to_dict()))) == assumed
    whole = Guarantee.compose(Guarantee.pure(1.0, "b"), assumed, assumed)
    assert whole.status == "proven" and whole.caveats == (OVER_THE_REALS,)
    added = Guarantee.pure(1.0, "a", relation="add-remove").assuming(OVER_THE_REALS)
    assert as_replace_one(added).caveats == (OVER_THE_REALS,)
    assert assumed.weaken("seeded").caveats == (OVER_THE_REALS, "seeded")
    ledger = Ledger(tmp_path / "budget.db", key_file=tmp_path / "key")
    ledger.create("patients", 2.0)
    assert ledger.charge("patients", assumed).guarantee == assumed
    assert ledger.history("patients")[-1].guarantee == assumed and ledger.verify().ok
    release = tmp_path / "release.csv"
    release.write_text("a\n1\n")
    manifest = Manifest.of(release, checksum(release), assumed, {})
    assert (
        OVER_THE_REALS in manifest.to_json() and Manifest.from_json(manifest.to_json()).guarantee == assumed
    )


def test_what_does_not_compose_is_refused():
    with pytest.raises(InputError, match="different relation"):
        Guarantee.compose(Guarantee.pure(1, "a"), Guarantee.pure(1, "a", relation="add-remove"))
    with pytest.raises(InputError, match="at least one"):
        Guarantee.compose()


def test_the_event_of_any_approximate_mechanism_composes_exactly():
    # Kairouz, Oh and Viswanath 2015, Theorem 3.3: k mechanisms of (e, f) are ((k - 2 i) e, 1 - (1 - f)^k (1 - d_i)) DP
    # with d_i = sum_(j < i) C(k, j) (e^((k - j) e) - e^((k - 2 i + j) e)) / (1 + e^e)^k. Here k = 2, i = 1.
    epsilon, delta = 0.7, 1e-3
    rest = (math.exp(2 * epsilon) - 1) / (1 + math.exp(epsilon)) ** 2
    total = 1 - (1 - delta) ** 2 * (1 - rest)
    event = SelfComposedDpEvent(approximate_event(epsilon, delta), 2)
    assert composed_epsilon(event, total * 1.001) == pytest.approx(0.0, abs=1e-3)
    assert composed_epsilon(event, total * 0.98) > 1e-3
    # At the sum of the deltas the epsilons add up; below what must be shown nothing can be stated.
    assert composed_epsilon(event, 1 - (1 - delta) ** 2) == pytest.approx(2 * epsilon, abs=2e-3)
    assert composed_epsilon(event, 1.9e-3) == math.inf


def test_large_and_small_epsilons_compose():
    for epsilon in (1e-7, 3.0, 5000.0, 1e9):
        one = Guarantee("proven", epsilon, 1e-9, basis="b", event=approximate_event(epsilon, 1e-9))
        assert Guarantee.from_json(one.to_json()) == one
        assert Guarantee.compose(one, one, one).epsilon == pytest.approx(3 * epsilon, rel=1e-3)


def test_a_hidden_failure_is_refused():
    plain = Guarantee.pure(1.0, "Laplace").to_dict()
    plain["event"] = _event_to_dict(approximate_event(1.0, 0.5))
    with pytest.raises(InputError, match="gives inf"):
        Guarantee.from_dict(plain)
