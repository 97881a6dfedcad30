"""Whether a ledger's entries are as they were written, all there, and within their budgets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oversafe._core.text import shorten
from oversafe.privacy.filters import Cost, Filter, Spent
from oversafe.privacy.ledger.chain import Key, Row

# An exponential may end in another digit on another machine; the sums themselves are exact.
_ROUNDING = 1e-9
_MOST_PROBLEMS = 20


@dataclass(frozen=True)
class Verification:
    """What a check of a ledger found.

    Parameters
    ----------
    entries : int
        How many there are.
    problems : tuple of str
        What is wrong, in sentences; empty if nothing is.
    end_seen : bool
        Whether this machine has a record of the history's end. Without it entries that were cut off from the
        end do not show.
    """

    entries: int
    problems: tuple[str, ...] = ()
    end_seen: bool = False

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def filter_of(budget: Mapping[str, Any]) -> Filter:
    """Return the filter that a data set's first entry describes."""
    return Filter(
        budget["epsilon"],
        budget["delta"],
        tuple(budget["orders"]),
        tuple(budget["weights"]),
        budget.get("sum_delta", 0.0),
    )


def spent_of(body: Mapping[str, Any]) -> Spent:
    """Return the sums that an entry ends with."""
    return Spent.from_dict(body["spent"])


def check_entries(entries: Sequence[Row], key: Key, head: tuple[int, str] | None) -> Verification:
    """Check all entries of a ledger, in their order."""
    if not key.fits(entries[0]):
        problem = "the key does not fit the ledger; it belongs to another one, or the first entry was changed"
        return Verification(len(entries), (problem,), head is not None)
    problems: list[str] = []
    budgets: dict[str, Filter] = {}
    sums: dict[str, tuple[Spent, int]] = {}
    previous, expected = "", 0
    for row in entries:
        if type(row.number) is not int:
            problems.append(f"there is an entry whose number is {shorten(repr(row.number), 40)}")
            continue
        if row.number != expected:
            gap = f"{expected}" if row.number == expected + 1 else f"{expected} to {row.number - 1}"
            problems.append(f"before entry {row.number}: {gap} is missing")
        elif row.previous != previous:
            problems.append(f"entry {row.number} does not follow the entry before it")
        if key.fits(row):
            # What is authentic can be trusted to be well formed; everything else is not looked into.
            if wrong := _check_sums(row, budgets, sums):
                problems.append(f"entry {row.number}: {wrong}")
        else:
            problems.append(f"entry {row.number} was changed after it was written")
        previous, expected = row.mac, row.number + 1
    if head is not None:
        found = next((row for row in entries if row.number == head[0]), None)
        if found is None or found.mac != head[1]:
            problems.append(
                f"entry {head[0]}, which this machine has seen, is not there: the end was cut off or replaced"
            )
    if len(problems) > _MOST_PROBLEMS:
        problems = [*problems[:_MOST_PROBLEMS], f"and {len(problems) - _MOST_PROBLEMS} more"]
    return Verification(len(entries), tuple(problems), head is not None)


def _check_sums(row: Row, budgets: dict[str, Filter], sums: dict[str, tuple[Spent, int]]) -> str | None:
    """Return what is wrong with the running sums of an entry, and go on from what it says."""
    if row.kind == "ledger":
        return None
    body = json.loads(row.body)
    claimed = (spent_of(body), body["unaccounted"])
    known = sums.get(row.dataset)
    sums[row.dataset] = claimed
    if row.kind == "create":
        budgets[row.dataset] = filter_of(body)
        return None if known is None else f"{row.dataset!r} was made a second time"
    if known is None or row.dataset not in budgets:
        return f"{row.dataset!r} has no budget before it that can be trusted"
    spent, unaccounted = known
    if row.kind == "unaccounted":
        right = claimed == (spent, unaccounted + 1)
        return None if right else "its sums do not follow from the entries before it"
    cost = body["cost"]
    cost = Cost(cost["epsilon"], cost["delta"], tuple(cost["renyi"]), cost["own_delta"])
    if claimed != (spent.plus(cost, claimed[0].rule), unaccounted) or spent.rule not in (
        None,
        claimed[0].rule,
    ):
        return "its sums do not follow from the entries before it"
    if not budgets[row.dataset].allows(claimed[0], _ROUNDING):
        return f"the budget of {row.dataset!r} is overspent"
    return None
