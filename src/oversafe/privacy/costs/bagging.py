"""What bagging costs: learners that see overlapping samples of a table, or parts of it."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Literal, get_args

import numpy as np

from oversafe._core.checks import check_choice, check_count
from oversafe._core.errors import InputError
from oversafe.privacy.costs.group_privacy import (
    MOST_ROWS,
    SMALLEST_EPSILON,
    GroupSize,
    Mechanism,
    group_delta,
    whole_delta,
    whole_epsilon,
)
from oversafe.privacy.guarantee import (
    Guarantee,
    Relation,
    approximate_event,
    check_delta,
    check_epsilon,
    composed_epsilon,
)

Split = Literal["bootstrap", "subsample", "disjoint", "stratified"]

_PUBLIC_SIZES = "the sizes of the samples are public, and the table has at least the stated number of records"
_BLIND_PARTS = (
    "each record's part is drawn, or taken from its position, without a look at the data, and does not depend on "
    "the other records"
)
PUBLIC_LABELS = (
    "the parts are stratified by class, so the labels count as public: all but the label is protected"
)


def bagging_cost(
    epsilon: float | None = None,
    *,
    n_estimators: int,
    n_records: int,
    n_samples: int | None = None,
    delta: float = 0.0,
    target_delta: float = 0.0,
    split: Split = "bootstrap",
    relation: Relation = "replace-one",
) -> Guarantee:
    """Return the guarantee of a bagging ensemble.

    Parameters
    ----------
    epsilon : float, optional
        Each learner's, on the sample that it is given, under ``relation``. None for learners that are not private:
        what is left is that a record may be in no sample at all.
    n_estimators : int
        The number of learners.
    n_records : int
        How many records the table has at least.
    n_samples : int, optional
        The size of each learner's sample; ``n_records`` when not given.
    delta : float, default=0.0
        Each learner's.
    target_delta : float, default=0.0
        The delta at which epsilon is stated, for "bootstrap" and "subsample".
    split : {"bootstrap", "subsample", "disjoint", "stratified"}
        "bootstrap" draws with replacement, so a record may be in a sample more than once and its learner's epsilon
        counts as often. "subsample" draws without. "disjoint" gives each record to one learner. "stratified" does so
        class by class, which takes the labels as public, so the guarantee is nominal.
    relation : {"replace-one", "add-remove"}
        Which tables are neighbours.

    See Also
    --------
    bagging_budget : The other way round.

    References
    ----------
    .. [1] L. Rosenblatt et al., "Differential Privacy Under Class Imbalance: Methods and Empirical Insights", 2025,
       Section 4.1 and Appendix C.1.
    .. [2] B. Balle, G. Barthe, M. Gaboardi, "Privacy Amplification by Subsampling: Tight Analyses via Couplings and
       Divergences", 2018, Theorem 9.

    Examples
    --------
    >>> from oversafe.privacy import bagging_cost
    >>> together = bagging_cost(0.1, n_estimators=10, n_records=1000, n_samples=200, split="subsample")
    >>> print(f"{together.epsilon:.3f}")
    0.208
    >>> bagging_cost(0.1, n_estimators=10, n_records=1000, split="disjoint").epsilon
    0.1
    """
    check_choice("split", split, get_args(Split))
    check_choice("relation", relation, get_args(Relation))
    learners = check_count("n_estimators", n_estimators, 1, MOST_ROWS)
    records = check_count("n_records", n_records, 1, MOST_ROWS)
    samples = records if n_samples is None else check_count("n_samples", n_samples, 1, MOST_ROWS)
    if split == "subsample" and samples > records:
        raise InputError(
            f"n_samples = {samples} was given for {records} records; without replacement it is at most that"
        )
    check_delta(delta)
    check_delta(target_delta)
    if epsilon is None:
        return _not_private(learners, records, samples, split, relation)
    check_epsilon(epsilon)
    if split in ("disjoint", "stratified"):
        guarantee = Guarantee(
            "proven",
            epsilon,
            delta,
            relation=relation,
            basis=f"parallel composition over {learners} learners with a part of the records each",
            event=approximate_event(epsilon, delta),
            caveats=(_BLIND_PARTS,) if split == "disjoint" else (),
        )
        return guarantee if split == "disjoint" else guarantee.weaken(PUBLIC_LABELS)
    # A drawn record that is not the same on both sides is replaced: two steps under add-remove.
    steps = 1 if relation == "replace-one" else 2
    if split == "subsample":
        whole = _subsampled(epsilon, delta, learners, samples / records, steps, target_delta)
        how = "without replacement, amplified by sampling"
    else:
        whole = _bootstrapped(epsilon, delta, learners, records, samples, steps, target_delta)
        how = "with replacement, each learner's epsilon counted as often as the record is in its sample"
    if not math.isfinite(whole):
        raise InputError(
            f"target_delta = {target_delta:g} cannot be met by {learners} learners of delta = {delta:g}; "
            "allow a larger one"
        )
    return Guarantee(
        "proven",
        whole,
        target_delta,
        relation=relation,
        basis=f"composition of {learners} learners on samples of {samples} of {records} records drawn {how}",
        event=approximate_event(whole, target_delta),
        caveats=(_PUBLIC_SIZES,),
    )


def bagging_budget(
    epsilon: float,
    *,
    n_estimators: int,
    n_records: int,
    n_samples: int | None = None,
    delta: float = 0.0,
    target_delta: float = 0.0,
    split: Split = "bootstrap",
    relation: Relation = "replace-one",
) -> float:
    """Return the epsilon that each learner must have so that the ensemble is epsilon-DP.

    Parameters
    ----------
    epsilon, target_delta : float
        Of the whole.
    n_estimators, n_records, n_samples, delta, split, relation
        As in :func:`bagging_cost`.

    Examples
    --------
    >>> from oversafe.privacy import bagging_budget
    >>> print(f"{bagging_budget(1.0, n_estimators=10, n_records=1000, split='disjoint'):.2f}")
    1.00
    """
    check_epsilon(epsilon)

    def whole(inside: float) -> float:
        return (
            bagging_cost(
                inside,
                n_estimators=n_estimators,
                n_records=n_records,
                n_samples=n_samples,
                delta=delta,
                target_delta=target_delta,
                split=split,
                relation=relation,
            ).epsilon
            or math.inf
        )

    if split in ("disjoint", "stratified"):
        whole(epsilon)
        return float(epsilon)
    low, high = 0.0, float(epsilon)
    while whole(high) <= epsilon:
        low, high = high, 2 * high
        if high > 1e6:
            return low
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        if middle < epsilon * 1e-12:
            raise InputError(
                f"no epsilon of the learners brings the ensemble to {epsilon:g}; allow a larger delta"
            )
        if whole(middle) <= epsilon:
            low = middle
        else:
            high = middle
    return low


def _not_private(learners: int, records: int, samples: int, split: Split, relation: Relation) -> Guarantee:
    """Return what the chance to be in no sample gives: (0, delta)-DP (the statement behind Proposition 4)."""
    if split in ("disjoint", "stratified"):
        return Guarantee.none("each record is seen by a learner that is not private")
    if split == "bootstrap":
        draws, chance = learners * samples, 1 / records
    else:
        draws, chance = learners, samples / records
    delta = 1.0
    if chance < 1:
        delta = -math.expm1(draws * math.log1p(-chance)) * (1 + 1e-12)
    if delta >= 1:
        return Guarantee.none(
            f"each record is seen by at least one of {learners} learners that are not private, but for a chance "
            "that is too small to count"
        )
    return Guarantee(
        "proven",
        SMALLEST_EPSILON,
        delta,
        relation=relation,
        basis=(
            f"a record is in none of {learners} samples of {samples} of {records} records with probability "
            f"{1 - delta:.3g}; delta is the probability that it is"
        ),
        event=approximate_event(SMALLEST_EPSILON, delta),
        caveats=(_PUBLIC_SIZES,),
    )


def _subsampled(
    epsilon: float, delta: float, learners: int, share: float, steps: int, target_delta: float
) -> float:
    inside = float(group_delta(epsilon, delta, np.array([steps]))[0])
    # log(1 + share (e^E - 1)) without an overflow.
    loss = steps * epsilon
    amplified = float(np.logaddexp(math.log1p(-share) if share < 1 else -math.inf, math.log(share) + loss))
    amplified = min(loss, amplified * (1 + 1e-12))
    return _composed(max(amplified, SMALLEST_EPSILON), share * inside, learners, target_delta)


def _bootstrapped(
    epsilon: float,
    delta: float,
    learners: int,
    records: int,
    samples: int,
    steps: int,
    target_delta: float,
) -> float:
    mechanism = Mechanism(epsilon, delta)
    chance = math.nextafter(1 / records, 2.0)
    together = GroupSize.binomial(learners * samples, chance).times(steps)
    best = math.inf
    # All draws of a record in all samples together, by basic composition; refused where delta does not suffice.
    with suppress(InputError):
        best, _ = whole_epsilon(target_delta, [together], mechanism)
    if target_delta == 0:
        return best
    # Or learner by learner: (e, f)-DP for some e, and the composition of these.
    one = GroupSize.binomial(samples, chance).times(steps)
    for size in range(steps, one.quantile(target_delta / learners / 1e3) + 1, steps):
        loss = size * epsilon
        if learners * loss * math.tanh(loss / 2) > best:
            # Already the expected loss is more.
            break
        each = whole_delta(loss, [one], mechanism)
        if learners * each <= target_delta:
            best = min(best, _composed(loss, each, learners, target_delta))
    return best


def _composed(epsilon: float, delta: float, count: int, target_delta: float) -> float:
    from dp_accounting import SelfComposedDpEvent

    if count == 1 and delta == target_delta:
        return epsilon
    return composed_epsilon(SelfComposedDpEvent(approximate_event(epsilon, delta), count), target_delta)
