"""What a guarantee allows in plain figures, and from where on it is too weak to rest on.

The derivation is in the documentation, "What a guarantee allows" on the page of guarantees.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oversafe._core.checks import check_positive
from oversafe.privacy.accountant import as_replace_one
from oversafe.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from oversafe.privacy.ledger.entries import Balance


@dataclass(frozen=True)
class Limits:
    """What a guarantee must keep to for a verdict of "protected"; figures are those under replace-one.

    Parameters
    ----------
    max_epsilon : float
        At 3 whoever would guess right half of the time guesses right at most 95 % of the time. No source below names
        a figure; all of them ask for a small one.
    max_delta : float
        Far below one over the number of people, in tables of up to tens of thousands.
    sources : tuple of str
        What the choice of epsilon rests on.
    """

    max_epsilon: float = 3.0
    max_delta: float = 1e-5
    sources: tuple[str, ...] = (
        "NIST SP 800-226, Guidelines for Evaluating Differential Privacy Guarantees (2025): what an epsilon means "
        "depends on unit, relation and use, and weakens quickly as it grows",
        "A Consensus Privacy Metrics Framework for Synthetic Data, Patterns (2025), doi:10.1016/j.patter.2025.101320: "
        "only a budget close to zero speaks for itself, so attacks are measured too",
        "EDPB Opinion 28/2024: data are anonymous only where the likelihood of identifying people is insignificant",
    )

    def __post_init__(self) -> None:
        check_positive("max_epsilon", self.max_epsilon)

    def __str__(self) -> str:
        return f"epsilon of {self.max_epsilon:g} and delta of {self.max_delta:g} or less under replace-one"


LIMITS = Limits()


def weakness(guarantee: Guarantee, limits: Limits = LIMITS) -> str | None:
    """Return in words what makes a guarantee too weak to rest on, if anything does."""
    if guarantee.epsilon is None or guarantee.delta is None:
        return None
    alike = as_replace_one(guarantee)
    stated = (
        "" if guarantee.relation == "replace-one" else f" under replace-one ({_figures(guarantee)} as stated)"
    )
    if alike.epsilon is None or alike.delta is None:
        return f"nothing follows{stated or ' from it'}"
    if alike.epsilon > limits.max_epsilon:
        return f"epsilon = {alike.epsilon:.4g}{stated}, and {limits.max_epsilon:g} or less is asked"
    if alike.delta > limits.max_delta:
        return f"delta = {alike.delta:.4g}{stated}, and {limits.max_delta:g} or less is asked"
    return None


def right_at_most(epsilon: float, delta: float = 0.0) -> float:
    """Return how often a guess between two neighbouring tables is right at most, if each is as likely beforehand.

    (e^epsilon + delta) / (e^epsilon + 1), written so that no large epsilon overflows.
    """
    shrunk = math.exp(-epsilon)
    return (1 + delta * shrunk) / (1 + shrunk)


def allows(guarantee: Guarantee) -> str:
    """Return what a guarantee allows, for its own relation and unit; empty where it has no figures."""
    if guarantee.epsilon is None or guarantee.delta is None:
        return ""
    share = share_in_words(right_at_most(guarantee.epsilon, guarantee.delta))
    return (
        f"Whoever would guess right half of the time {_guess(guarantee)} guesses right at most {share} of the time "
        "with the release at hand."
    )


def allows_in_all(balance: Balance) -> str:
    """Return what all releases together allow that a data set's budget covers."""
    share = share_in_words(right_at_most(balance.budget_epsilon, balance.budget_delta))
    delta = f", delta = {balance.budget_delta:g}" if balance.budget_delta else ""
    text = (
        f"With all releases that the budget of {balance.dataset!r} covers (epsilon = {balance.budget_epsilon:g}{delta} "
        f"in all, {balance.relation} neighbours, for every {balance.unit}) it is at most {share}."
    )
    if balance.unaccounted:
        text += f" Not covered: {balance.unaccounted} recorded without a proven guarantee."
    return text


def share_in_words(share: float) -> str:
    """Return a share in whole per cent; beyond 99 with as many digits as the rest to 100 needs."""
    rest = 100 * (1 - share)
    digits = 0 if rest > 1 or rest <= 0 else math.ceil(-math.log10(rest))
    return f"{100 * share:.{digits}f} %"


def _guess(guarantee: Guarantee) -> str:
    """Return between what is guessed: the two neighbouring tables that the relation speaks of."""
    rows = "record" if guarantee.unit == "record" else f"rows (at most {guarantee.rows_per_unit})"
    if guarantee.relation == "add-remove":
        return f"whether a person's {rows} {'is' if guarantee.unit == 'record' else 'are'} in the table"
    of_two = "records is a person's" if guarantee.unit == "record" else f"sets of {rows} is a person's"
    return f"which of two {of_two}"


def _figures(guarantee: Guarantee) -> str:
    delta = f", delta = {guarantee.delta:g}" if guarantee.delta else ""
    return f"epsilon = {guarantee.epsilon:g}{delta} under {guarantee.relation}"
