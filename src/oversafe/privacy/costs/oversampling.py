"""What oversampling costs: how many rows one record changes, and what that leaves of a mechanism's guarantee."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Literal, get_args

from oversafe._core.checks import check_choice, check_count
from oversafe._core.errors import InputError
from oversafe.privacy.costs.group_privacy import (
    MOST_ROWS,
    GroupSize,
    Mechanism,
    group_delta,
    mechanism_epsilon,
    mechanism_noise,
    whole_epsilon,
)
from oversafe.privacy.costs.kissing import kissing_number_bound
from oversafe.privacy.guarantee import Guarantee, Relation, approximate_event, check_delta

Bases = Literal["random", "cyclic"]
PerClass = int | Mapping[Any, int]

_PUBLIC = "the number of added rows and the lower bound on the class's records are public and the same for every table"
_STABLE = (
    "neighbours are found exactly and ties broken by an order of the other records, as oversafe's own SMOTE step "
    "does; for a release by imbalanced-learn on data with ties give stable_ties=False"
)
_UNORDERED = "the mechanism ignores the order of its rows, or they are shuffled"


def oversampling_cost(
    epsilon: float | None = None,
    *,
    n_minority: PerClass,
    n_added: PerClass,
    delta: float = 0.0,
    target_delta: float | None = None,
    relation: Relation = "replace-one",
    mechanism_relation: Relation | None = None,
    bases: Bases = "cyclic",
    keep_originals: bool = True,
    noise_multiplier: float | None = None,
) -> Guarantee:
    """Return the guarantee of a private mechanism that is run on a table with repeated minority records.

    Parameters
    ----------
    epsilon : float, optional
        The mechanism's own epsilon; leave it out when ``noise_multiplier`` is given.
    n_minority : int or mapping of class to int
        How many records the oversampled class has at least, for every table that could be the input. With more than
        one oversampled class, one number for each.
    n_added : int or mapping of class to int
        How many rows are added, a public number; one for each class.
    delta : float, default=0.0
        The mechanism's own delta.
    target_delta : float, optional
        The delta at which epsilon is stated. By default the one that goes with the largest number of changed rows:
        0 for a mechanism of delta 0.
    relation : {"replace-one", "add-remove"}
        Which tables are neighbours.
    mechanism_relation : {"replace-one", "add-remove"}, optional
        The relation under which the mechanism has its epsilon; ``relation`` when not given.
    bases : {"cyclic", "random"}
        "cyclic" repeats the records in turn, "random" draws each row, as imbalanced-learn's ``RandomOverSampler``.
    keep_originals : bool, default=True
        Whether the mechanism sees the original records too.
    noise_multiplier : float, optional
        Instead of epsilon: the mechanism is Gaussian noise of this standard deviation over its sensitivity.

    See Also
    --------
    oversampling_budget : The other way round.

    References
    ----------
    .. [1] L. Rosenblatt et al., "Differential Privacy Under Class Imbalance: Methods and Empirical Insights", 2025,
       Proposition 2, whose delta does not hold: a group of g multiplies it by (e^(g epsilon) - 1)/(e^epsilon - 1).

    Examples
    --------
    >>> from oversafe.privacy import oversampling_cost
    >>> print(oversampling_cost(0.5, n_minority=100, n_added=900).epsilon)
    5.0
    """
    mechanism = Mechanism(epsilon, delta, noise_multiplier)
    cases = oversampling_group_sizes(
        n_minority=n_minority,
        n_added=n_added,
        relation=relation,
        mechanism_relation=mechanism_relation,
        bases=bases,
        keep_originals=keep_originals,
    )
    return _guarantee(
        mechanism, cases, target_delta, relation, "repeated minority records", _assumptions(bases)
    )


def smote_cost(
    epsilon: float | None = None,
    *,
    n_minority: PerClass,
    n_added: PerClass,
    dimensions: int,
    k_neighbors: int = 5,
    delta: float = 0.0,
    target_delta: float = 0.0,
    relation: Relation = "replace-one",
    mechanism_relation: Relation | None = None,
    bases: Bases = "random",
    stable_ties: bool = True,
    keep_originals: bool = True,
    noise_multiplier: float | None = None,
) -> Guarantee:
    """Return the guarantee of a private mechanism that is run on a table with rows that SMOTE added.

    One record changes every row that starts from it, and those that end in it: it can be a neighbour of at most
    ``k_neighbors * (kissing_number_bound(dimensions) + 1)`` others. How many rows that is depends on SMOTE's draws,
    and delta is the exact expectation over them.

    Parameters
    ----------
    epsilon : float, optional
        The mechanism's own epsilon; leave it out when ``noise_multiplier`` is given.
    n_minority : int or mapping of class to int
        How many records the oversampled class has at least, for every table that could be the input, more than
        ``k_neighbors``. With more than one oversampled class, one number for each.
    n_added : int or mapping of class to int
        How many rows SMOTE adds, a public number; one for each class.
    dimensions : int
        The number of columns in which distances are measured, after encoding.
    k_neighbors : int, default=5
        As in SMOTE.
    delta : float, default=0.0
        The mechanism's own delta.
    target_delta : float, default=0.0
        The delta at which epsilon is stated. At 0 every added row counts as changed.
    relation : {"replace-one", "add-remove"}
        Which tables are neighbours. A replaced record may also change its class.
    mechanism_relation : {"replace-one", "add-remove"}, optional
        The relation under which the mechanism has its epsilon; ``relation`` when not given.
    bases : {"random", "cyclic"}
        "random" draws the record that a row starts from, as imbalanced-learn does; "cyclic" takes them in turn.
    stable_ties : bool, default=True
        Whether the neighbour search is exact and breaks ties by an order of the other records. When not, any row
        may change.
    keep_originals : bool, default=True
        Whether the mechanism sees the original records too.
    noise_multiplier : float, optional
        Instead of epsilon: the mechanism is Gaussian noise of this standard deviation over its sensitivity.

    See Also
    --------
    smote_budget : The other way round.

    References
    ----------
    .. [1] L. Rosenblatt et al., "Differential Privacy Under Class Imbalance: Methods and Empirical Insights", 2025,
       Theorem 3, whose figures do not hold; what does is proven in the documentation.

    Examples
    --------
    >>> from oversafe.privacy import smote_cost
    >>> worst = smote_cost(0.1, n_minority=100, n_added=1000, dimensions=2)
    >>> print(f"{worst.epsilon:.1f}")
    100.1
    >>> likely = smote_cost(0.1, n_minority=100, n_added=1000, dimensions=2, target_delta=1e-6)
    >>> print(f"{likely.epsilon:.1f}")
    20.3
    """
    mechanism = Mechanism(epsilon, delta, noise_multiplier)
    cases = smote_group_sizes(
        n_minority=n_minority,
        n_added=n_added,
        dimensions=dimensions,
        k_neighbors=k_neighbors,
        relation=relation,
        mechanism_relation=mechanism_relation,
        bases=bases,
        stable_ties=stable_ties,
        keep_originals=keep_originals,
    )
    assumptions = _assumptions(bases) + ((_STABLE,) if stable_ties else ())
    return _guarantee(mechanism, cases, target_delta, relation, "rows added by SMOTE", assumptions)


def oversampling_budget(
    epsilon: float,
    *,
    target_delta: float = 0.0,
    delta: float = 0.0,
    mechanism: Literal["any", "gaussian"] = "any",
    **settings: Any,
) -> float:
    """Return what a mechanism must run at so that it and the oversampling before it are epsilon-DP together.

    Parameters
    ----------
    epsilon, target_delta : float
        Of the whole.
    delta : float, default=0.0
        The mechanism's own.
    mechanism : {"any", "gaussian"}
        Whether to return an epsilon for any mechanism, or the noise multiplier of a Gaussian one.
    **settings
        As in :func:`oversampling_cost`.

    Examples
    --------
    >>> from oversafe.privacy import oversampling_budget
    >>> print(f"{oversampling_budget(1.0, n_minority=100, n_added=900):.3f}")
    0.100
    """
    return _budget(epsilon, target_delta, delta, mechanism, oversampling_group_sizes(**settings))


def smote_budget(
    epsilon: float,
    *,
    target_delta: float = 0.0,
    delta: float = 0.0,
    mechanism: Literal["any", "gaussian"] = "any",
    **settings: Any,
) -> float:
    """Return what a mechanism must run at so that it and the SMOTE before it are epsilon-DP together.

    Parameters
    ----------
    epsilon, target_delta : float
        Of the whole.
    delta : float, default=0.0
        The mechanism's own.
    mechanism : {"any", "gaussian"}
        Whether to return an epsilon for any mechanism, or the noise multiplier of a Gaussian one.
    **settings
        As in :func:`smote_cost`.

    Examples
    --------
    >>> from oversafe.privacy import smote_budget
    >>> settings = dict(n_minority=100, n_added=1000, dimensions=2, target_delta=1e-6)
    >>> print(f"{smote_budget(1.0, **settings):.4f}")
    0.0051
    """
    return _budget(epsilon, target_delta, delta, mechanism, smote_group_sizes(**settings))


def oversampling_group_sizes(
    *,
    n_minority: PerClass,
    n_added: PerClass,
    relation: Relation = "replace-one",
    mechanism_relation: Relation | None = None,
    bases: Bases = "cyclic",
    keep_originals: bool = True,
) -> list[GroupSize]:
    """Return how many rows of the mechanism's input one record changes, for each way in which it can."""
    classes = _classes(n_minority, n_added)
    _check_choices(relation, mechanism_relation, bases, keep_originals)

    def rows(n: int, added: int) -> GroupSize:
        if bases == "cyclic":
            return GroupSize.fixed(_repeats(added, n))
        return GroupSize.binomial(added, math.nextafter(1 / n, 2.0))

    changed = [(rows(n, added), rows(n, added)) for n, added in classes]
    return _groups(changed, relation, mechanism_relation, keep_originals)


def smote_group_sizes(
    *,
    n_minority: PerClass,
    n_added: PerClass,
    dimensions: int,
    k_neighbors: int = 5,
    relation: Relation = "replace-one",
    mechanism_relation: Relation | None = None,
    bases: Bases = "random",
    stable_ties: bool = True,
    keep_originals: bool = True,
) -> list[GroupSize]:
    """Return how many rows of the mechanism's input one record changes, for each way in which it can."""
    classes = _classes(n_minority, n_added)
    _check_choices(relation, mechanism_relation, bases, keep_originals)
    k = check_count("k_neighbors", k_neighbors, 1, MOST_ROWS)
    smallest = min(n for n, _ in classes)
    if k >= smallest:
        raise InputError(
            f"k_neighbors = {k} was given for a class of {smallest} records; SMOTE needs more records than neighbours"
        )
    lists = k * (kissing_number_bound(dimensions) + 1)

    def rows(n: int, added: int, lists: int) -> GroupSize:
        if not stable_ties:
            return GroupSize.fixed(added)
        if bases == "random":
            chance = (k + min(lists, n - 1)) / (k * n)
            return GroupSize.binomial(added, math.nextafter(chance, 2.0))
        own = _repeats(added, n)
        return GroupSize.binomial(min(lists * own, added - own), math.nextafter(1 / k, 2.0)).times(1, own)

    changed = [(rows(n, added, 2 * lists), rows(n, added, lists)) for n, added in classes]
    return _groups(changed, relation, mechanism_relation, keep_originals)


def _groups(
    changed: Sequence[tuple[GroupSize, GroupSize]],
    relation: Relation,
    mechanism_relation: Relation | None,
    keep_originals: bool,
) -> list[GroupSize]:
    """Return the group sizes, from the rows that change when a record of a class is replaced, and when one comes."""
    # A changed row is one that is replaced: two steps for a mechanism that is private under add-remove.
    factor = 2 if (mechanism_relation or relation) == "add-remove" else 1
    if relation == "add-remove":
        return [entered.times(factor, int(keep_originals)) for _, entered in changed]
    # A record may be replaced within its class, come from or go to a class that is not oversampled, or go from one
    # oversampled class to another. The second is never worse than the first.
    rows = [replaced for replaced, _ in changed]
    rows += [left + entered for left, entered in combinations(_worst([c for _, c in changed]), 2)]
    return [r.times(factor, factor * int(keep_originals)) for r in rows]


def _worst(sizes: Sequence[GroupSize]) -> list[GroupSize]:
    """Return the sizes among which the largest sum of two is: those that are not below two others."""
    kept: list[GroupSize] = []
    for size in sorted(sizes, key=lambda s: s.mean, reverse=True):
        if sum(size.below(larger) for larger in kept) < 2:
            kept.append(size)
    return kept


def _guarantee(
    mechanism: Mechanism,
    cases: Sequence[GroupSize],
    target_delta: float | None,
    relation: Relation,
    what: str,
    assumptions: tuple[str, ...],
) -> Guarantee:
    import numpy as np

    largest = max(case.largest for case in cases)
    if target_delta is None:
        target_delta = 0.0
        if mechanism.epsilon is not None and mechanism.delta > 0:
            target_delta = float(group_delta(mechanism.epsilon, mechanism.delta, np.array([largest]))[0])
            target_delta *= 1 + 1e-9
            if target_delta >= 1:
                raise InputError(
                    f"one record changes up to {largest} rows, which brings delta = {mechanism.delta:g} to 1, and no "
                    "guarantee is left; start from a smaller delta or epsilon, or add fewer rows"
                )
    check_delta(target_delta)
    epsilon, delta = whole_epsilon(target_delta, cases, mechanism)
    if mechanism.epsilon is None:
        inside = f"Gaussian noise of multiplier {mechanism.noise_multiplier:g}"
    else:
        inside = f"an epsilon = {mechanism.epsilon:g} mechanism" + (
            f" (delta = {mechanism.delta:g})" if mechanism.delta else ""
        )
    expected = max(case.mean for case in cases)
    return Guarantee(
        "proven",
        epsilon,
        delta,
        relation=relation,
        basis=(
            f"group privacy of {inside} after {what}: one record changes up to {largest} rows, "
            f"{expected:.4g} on average"
        ),
        event=approximate_event(epsilon, delta),
        caveats=assumptions,
    )


def _budget(
    epsilon: float, target_delta: float, delta: float, mechanism: str, cases: Sequence[GroupSize]
) -> float:
    if mechanism == "any":
        return mechanism_epsilon(epsilon, target_delta, cases, delta)
    if mechanism == "gaussian":
        return mechanism_noise(epsilon, target_delta, cases)
    raise InputError(f"mechanism = {mechanism!r} was given; use 'any' or 'gaussian'")


def _assumptions(bases: Bases) -> tuple[str, ...]:
    return (_PUBLIC, _UNORDERED) if bases == "cyclic" else (_PUBLIC,)


def _repeats(added: int, n: int) -> int:
    return -(-added // n)


def _check_choices(relation: str, mechanism_relation: str | None, bases: str, keep_originals: bool) -> None:
    for name, value in (("relation", relation), ("mechanism_relation", mechanism_relation or relation)):
        check_choice(name, value, get_args(Relation))
    check_choice("bases", bases, get_args(Bases))
    if relation == "add-remove" and mechanism_relation == "replace-one" and keep_originals:
        raise InputError(
            "a mechanism that is private under replace-one promises nothing when a record is added; "
            "give relation='replace-one', or a mechanism that is private under add-remove"
        )


def _classes(n_minority: PerClass, n_added: PerClass) -> list[tuple[int, int]]:
    """Return (records, added rows) of each oversampled class."""
    if not isinstance(n_minority, Mapping) and not isinstance(n_added, Mapping):
        n_minority, n_added = {None: n_minority}, {None: n_added}
    if not isinstance(n_minority, Mapping) or not isinstance(n_added, Mapping):
        raise InputError(
            "n_minority and n_added are either both numbers or both mappings of class to number; give them alike"
        )
    if set(n_minority) != set(n_added) or not n_minority:
        raise InputError(
            f"n_minority is given for the classes {list(n_minority)}, and n_added for {list(n_added)}; "
            "name the same classes in both"
        )
    return [
        (
            check_count("n_minority", n_minority[c], 1, MOST_ROWS),
            check_count("n_added", n_added[c], 0, MOST_ROWS),
        )
        for c in n_minority
    ]
