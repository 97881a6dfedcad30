"""What a ledger's entries say: to the user as values, to the ledger as the next line."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import asdict, dataclass
from decimal import ROUND_FLOOR, Context
from typing import Any, Literal

from oversafe._core.errors import InputError
from oversafe._core.text import shorten, showable
from oversafe.privacy.filters import Cost, Filter, Spent
from oversafe.privacy.guarantee import Guarantee, Relation, Unit
from oversafe.privacy.ledger.chain import Row
from oversafe.privacy.ledger.check import filter_of, spent_of

FORMAT = 1
_LONGEST_NAME = 200
_LONGEST_NOTE = 2000


class OverdraftError(InputError):
    """A charge would exceed the budget; nothing was spent."""


class LedgerWarning(UserWarning):
    """Something about a charge that the steward should look at; the charge stands."""


@dataclass(frozen=True)
class Entry:
    """One line of a ledger's history.

    Parameters
    ----------
    id : str
        The ledger and the entry's number, as a release's manifest names it.
    number : int
        Its place in the ledger.
    dataset : str
        Which budget it belongs to.
    kind : {"create", "charge", "unaccounted"}
        "unaccounted" entries are releases without a proven guarantee, which no budget covers.
    when : str
        By the clock of the machine that wrote it, in UTC. The order of the entries does not depend on it.
    what : str
        What it was for.
    epsilon, delta : float, optional
        What was charged, or for "create" the budget; for "unaccounted" what the release claims, if anything.
    plain_guarantee : dict, optional
        The release's guarantee as JSON has it.
    warnings : tuple of str
        What was noticed when it was charged; not stored.
    """

    id: str
    number: int
    dataset: str
    kind: Literal["create", "charge", "unaccounted"]
    when: str
    what: str = ""
    epsilon: float | None = None
    delta: float | None = None
    plain_guarantee: dict[str, Any] | None = None
    warnings: tuple[str, ...] = ()

    @property
    def guarantee(self) -> Guarantee | None:
        """The release's guarantee."""
        return None if self.plain_guarantee is None else Guarantee.from_dict(self.plain_guarantee)


@dataclass(frozen=True)
class Balance:
    """What is left of a data set's budget.

    Parameters
    ----------
    dataset : str
        Its name.
    epsilon : float
        The largest pure epsilon that can still be charged.
    delta : float
        What is left for charges of which only (epsilon, delta) is known.
    budget_epsilon, budget_delta : float
        What all charges together keep to. This, and not what is spent so far, is the promise.
    spent_epsilon : float
        The smallest budget, at the same delta, by whose rule the charges so far would have been allowed.
    added_epsilon, added_delta : float
        What adding up the charges' own figures gives.
    relation, unit, rows_per_unit
        What the budget promises it for; see :class:`~oversafe.privacy.Guarantee`.
    rule : {"renyi", "sums"} or None
        How the charges compose; None before the first one.
    charges : int
        How many there are.
    unaccounted : int
        How many releases without a proven guarantee were recorded. The budget does not cover them.
    """

    dataset: str
    epsilon: float
    delta: float
    budget_epsilon: float
    budget_delta: float
    spent_epsilon: float
    added_epsilon: float
    added_delta: float
    relation: Relation
    unit: Unit
    rows_per_unit: int
    rule: Literal["renyi", "sums"] | None
    charges: int
    unaccounted: int

    def __str__(self) -> str:
        delta = f", delta = {self.budget_delta:g}" if self.budget_delta else ""
        who = "record" if self.unit == "record" else f"person (at most {self.rows_per_unit} rows each)"
        text = (
            f"{self.dataset}: epsilon = {left(self.epsilon)} left of {self.budget_epsilon:g}{delta} for every {who}, "
            f"{self.relation} neighbours, after {self.charges} charge{'s' * (self.charges != 1)}."
        )
        if self.unaccounted:
            text += f" Not covered: {self.unaccounted} recorded without a proven guarantee."
        return showable(text)


def left(figure: float) -> str:
    """Return what is left, rounded downwards, so that it can be asked for."""
    return f"{float(Context(prec=4, rounding=ROUND_FLOOR).create_decimal(repr(figure))):g}"


def entry_of(ledger_id: str, row: Row, noticed: tuple[str, ...] = ()) -> Entry:
    """Return an entry as users see it."""
    body = json.loads(row.body)
    plain = body.get("guarantee")
    figures = body if row.kind == "create" else body.get("cost", plain)
    return Entry(
        f"{ledger_id}:{row.number}",
        row.number,
        row.dataset,
        row.kind,  # type: ignore[arg-type]
        body["when"],
        body.get("what", body.get("note", "")),
        figures["epsilon"],
        figures["delta"],
        plain,
        noticed,
    )


def balance_of(name: str, budget: dict[str, Any], last: dict[str, Any]) -> Balance:
    """Return what is left after a data set's last entry."""
    keeper, spent = filter_of(budget), spent_of(last)
    return Balance(
        name,
        keeper.left_epsilon(spent),
        keeper.left_delta(spent),
        keeper.epsilon,
        keeper.delta,
        keeper.used_epsilon(spent),
        float(spent.epsilon),
        float(spent.delta),
        budget["relation"],
        budget["unit"],
        budget["rows_per_unit"],
        spent.rule,
        spent.charges,
        last["unaccounted"],
    )


def ledger_id_of(first: Row) -> str:
    """Return the ledger's name for itself, from its first entry."""
    try:
        facts = json.loads(first.body)
        # It names files, so it must be nothing but digits.
        known = (
            first.kind == "ledger"
            and facts["format"] == FORMAT
            and re.fullmatch("[0-9a-f]{16}", facts["id"]) is not None
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        known = False
    if not known:
        raise InputError("the first entry is not that of a ledger which this oversafe reads")
    return facts["id"]


def cost_of(name: str, created: Row, guarantee: Guarantee) -> Cost:
    """Return what a guarantee takes from a budget; refuses one that says nothing about what the budget is for."""
    budget = json.loads(created.body)
    _check_comparable(name, budget, guarantee)
    return filter_of(budget).cost(guarantee, budget["relation"])


def next_body(
    name: str, budget: dict[str, Any], before: dict[str, Any], cost: Cost | None
) -> tuple[str, dict[str, Any]]:
    """Return the kind and the facts of the next entry; refuses an overdraft."""
    spent = spent_of(before)
    if cost is None:
        return "unaccounted", {"spent": before["spent"], "unaccounted": before["unaccounted"] + 1}
    keeper = filter_of(budget)
    after = keeper.spend(spent, cost)
    if after is None:
        raise OverdraftError(_overdraft(name, keeper, spent, cost))
    return "charge", {"cost": asdict(cost), "spent": after.to_dict(), "unaccounted": before["unaccounted"]}


def _overdraft(name: str, keeper: Filter, spent: Spent, cost: Cost) -> str:
    asked = f"epsilon = {cost.epsilon:g}" + (f", delta = {cost.delta:g}" if cost.delta else "")
    rest = f"epsilon = {left(keeper.left_epsilon(spent))}"
    if cost.own_delta or (cost.delta and spent.rule == "sums"):
        rest += f" and delta = {left(keeper.left_delta(spent))}"
    elif cost.delta:
        rest += " for a release without a delta"
    budget = f"{keeper.epsilon:g}" + (f", delta = {keeper.delta:g}" if keeper.delta else "")
    return f"the budget of {name!r} (epsilon = {budget}) has {rest} left, and {asked} was asked for; nothing was spent"


def _check_comparable(name: str, budget: dict[str, Any], guarantee: Guarantee) -> None:
    if guarantee.unit != budget["unit"]:
        raise InputError(
            f"the budget of {name!r} is for every {budget['unit']}, and the guarantee for every {guarantee.unit}; "
            "state them alike, nothing was spent"
        )
    if guarantee.rows_per_unit < budget["rows_per_unit"]:
        raise InputError(
            f"the budget of {name!r} is for persons of up to {budget['rows_per_unit']} rows, and the guarantee for up "
            f"to {guarantee.rows_per_unit}; nothing was spent"
        )
    if guarantee.relation != budget["relation"] and guarantee.relation != "add-remove":
        raise InputError(
            f"the budget of {name!r} is for {budget['relation']} neighbours, which a guarantee for "
            f"{guarantee.relation} neighbours says nothing about; nothing was spent"
        )


def unproven_reason(guarantee: Guarantee) -> str:
    """Return the sentence that refuses a guarantee which is not proven."""
    why = f" ({guarantee.caveats[0].rstrip('.')})" if guarantee.caveats else ""
    what = "there is no guarantee" if guarantee.status == "none" else "the guarantee is nominal, not proven"
    return (
        f"{what}{why}, so no budget can answer for it and nothing was spent; mend the reason, or have it recorded as "
        "unaccounted (unproven='record', on the command line --record-unproven)"
    )


def checked_name(name: Any) -> str:
    """Return a data set's name, or say what is wrong with it."""
    if not isinstance(name, str):
        raise InputError(f"a data set is called by a text, and {type(name).__name__} was given")
    name = unicodedata.normalize("NFC", name).strip()
    if not name or len(name) > _LONGEST_NAME or showable(name) != name or "\n" in name:
        raise InputError(
            f"{shorten(name, 60)!r} cannot be a data set's name; use 1 to {_LONGEST_NAME} characters on one line"
        )
    return name


def checked_text(text: Any, name: str) -> str:
    """Return a text to be stored, or say what is wrong with it."""
    if not isinstance(text, str) or len(text) > _LONGEST_NOTE:
        raise InputError(f"{name} is a text of up to {_LONGEST_NOTE} characters")
    return showable(text)
