"""A budget per data set that outlives the process, that nobody can overspend, and whose history shows tampering."""

from __future__ import annotations

import difflib
import hmac
import json
import os
import secrets
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal

from oversafe._core.checks import check_choice
from oversafe._core.errors import InputError
from oversafe._core.text import listed, shorten
from oversafe.privacy.filters import Filter
from oversafe.privacy.guarantee import Guarantee, Relation, Unit, check_delta, check_epsilon
from oversafe.privacy.ledger.chain import Key, KeyPlace, Row, checked, read_head, write_head
from oversafe.privacy.ledger.check import Verification, check_entries
from oversafe.privacy.ledger.entries import (
    FORMAT,
    Balance,
    Entry,
    LedgerWarning,
    balance_of,
    checked_name,
    checked_text,
    cost_of,
    entry_of,
    ledger_id_of,
    next_body,
    unproven_reason,
)
from oversafe.privacy.ledger.store import PostgresStore, Rows, SQLiteStore, last_of, open_store

Unproven = Literal["refuse", "record"]


class Ledger:
    """Privacy budgets of data sets, in a SQLite file or a PostgreSQL database.

    A release is charged before its noise is drawn, in one transaction that is on the disk when the call returns.
    A charge is never given back: what happens afterwards, a crash too, leaves it standing. Charges may be chosen
    after seeing earlier answers; they are composed by a privacy filter. The history only grows, and each entry is
    authenticated together with the one before it under a key that is kept elsewhere.

    Parameters
    ----------
    location : path or str
        A file, or ``postgresql://user@host/database`` (``#schema`` may follow). It is made by :meth:`create`.
    key_file : path, optional
        Where the key is kept. Without it the key is in the variable ``OVERSAFE_LEDGER_KEY``, as 64 hexadecimal
        digits, or else in the user's configuration folder (``~/.config/oversafe/ledgers``), where it is made
        together with the ledger. The record of the history's end is beside it.

    See Also
    --------
    oversafe.privacy.Guarantee : What is charged.

    Notes
    -----
    A data set is what the steward names it: a table that has changed is still charged to its name. With ``data``
    a charge leaves a keyed fingerprint, which is compared with the last ones and only warns.

    Pickled, a ledger is its location, without a password, and the name of its key file.

    Examples
    --------
    >>> from oversafe.privacy import Guarantee, Ledger
    >>> ledger = Ledger("budget.db", key_file="ledger.key")
    >>> print(ledger.create("patients", epsilon=2.0))
    patients: epsilon = 2 left of 2 for every record, replace-one neighbours, after 0 charges.
    >>> with ledger.spending("patients", Guarantee.pure(0.5, "Laplace noise"), what="age histogram") as entry:
    ...     pass  # draw the noise here
    >>> ledger.remaining("patients").epsilon
    1.5
    >>> ledger.verify().ok
    True
    """

    def __init__(self, location: str | os.PathLike[str], *, key_file: str | os.PathLike[str] | None = None):
        self._store = open_store(location)
        self._keys = KeyPlace(None if key_file is None else Path(key_file))
        self._known: dict[str, Row] = {}

    def create(
        self,
        name: str,
        epsilon: float,
        delta: float = 0.0,
        *,
        relation: Relation = "replace-one",
        unit: Unit = "record",
        rows_per_unit: int = 1,
        note: str = "",
    ) -> Balance:
        """Give a data set a budget; the ledger itself and its key are made if they are not there.

        Parameters
        ----------
        name : str
            What the data set is called from now on.
        epsilon, delta : float
            What all its releases together may have.
        relation : {"replace-one", "add-remove"}
            Which tables count as neighbours.
        unit : {"record", "person"}
            Who is protected.
        rows_per_unit : int
            How many rows one unit has at most.
        note : str
            Anything to be remembered with it.
        """
        name = checked_name(name)
        check_epsilon(epsilon)
        check_delta(delta)
        note = checked_text(note, "note")
        # Checks relation, unit and rows_per_unit.
        Guarantee("nominal", epsilon, delta, relation, unit, rows_per_unit, caveats=("a budget",))
        budget = Filter.of(float(epsilon), float(delta))
        body = {
            "when": _now(),
            "note": note,
            "epsilon": budget.epsilon,
            "delta": budget.delta,
            "relation": relation,
            "unit": unit,
            "rows_per_unit": rows_per_unit,
            "orders": list(budget.orders),
            "weights": list(budget.weights),
            "sum_delta": budget.sum_delta,
            "spent": budget.empty.to_dict(),
            "unaccounted": 0,
            "oversafe": _version(),
        }
        with self._store.writing(create=True) as rows:
            if (first := rows.first()) is None:
                ledger_id = secrets.token_hex(8)
                key = self._keys.make(ledger_id)
                last = _appended(
                    rows, key, None, "", "ledger", {"id": ledger_id, "format": FORMAT, "when": _now()}
                )
            else:
                ledger_id, key = self._identify(first)
                last = self._end(rows, key, ledger_id)
            for known in _names(rows, key):
                if known.casefold() == name.casefold():
                    raise InputError(
                        f"the data set {known!r} has a budget already; charge it, or choose another name"
                    )
            row = _appended(rows, key, last, name, "create", body)
        self._record_end(ledger_id, row)
        return balance_of(name, body, body)

    def charge(
        self,
        name: str,
        guarantee: Guarantee,
        *,
        what: str = "",
        data: Any = None,
        unproven: Unproven = "refuse",
    ) -> Entry:
        """Charge a release to a data set's budget, or refuse it and spend nothing.

        Call it before the noise is drawn. When it returns, the charge is on the disk.

        Parameters
        ----------
        name : str
            The data set.
        guarantee : Guarantee
            What the release will promise.
        what : str
            What it is for, for the history. It is stored as it is, so nothing private belongs into it.
        data : DataFrame, array, or tuple of (X, y), optional
            The table, to warn when a name is used for different tables or a table has two names.
        unproven : {"refuse", "record"}
            What to do with a guarantee that is not proven: refuse it, or write it into the history as
            unaccounted, which spends nothing and is told with the balance from then on.

        Returns
        -------
        Entry
            The line of the history.

        Raises
        ------
        OverdraftError
            The budget does not suffice.
        """
        if not isinstance(guarantee, Guarantee):
            raise InputError(f"a charge is a Guarantee, and {type(guarantee).__name__} was given")
        check_choice("unproven", unproven, ("refuse", "record"))
        name = checked_name(name)
        what = checked_text(what, "what")
        if guarantee.status != "proven" and unproven == "refuse":
            raise InputError(unproven_reason(guarantee))
        digest = None
        if data is not None:
            from oversafe.data.rows.fingerprint import table_digest

            digest = table_digest(data)
        facts = {"what": what, "guarantee": guarantee.to_dict(), "oversafe": _version()}
        # The cost is computed before the others are made to wait: a budget never changes once it is there.
        cost = None
        if guarantee.status == "proven":
            created = self._known_budget(name)
            cost = cost_of(name, created, guarantee)
        with self._store.writing() as rows:
            ledger_id, key = self._identify(self._first(rows))
            found = self._budget(rows, key, name)
            if cost is not None and found != created:
                self._known[name] = found
                cost = cost_of(name, found, guarantee)
            created = found
            end = self._end(rows, key, ledger_id)
            before = last_of(rows, key, created, end)
            kind, body = next_body(name, json.loads(created.body), json.loads(before.body), cost)
            number = end.number + 1
            fingerprint = ""
            noticed: tuple[str, ...] = ()
            if digest is not None:
                fingerprint = key.fingerprint(number, digest)
                noticed = _compared(rows, key, name, digest)
            row = _appended(rows, key, end, name, kind, {"when": _now(), **facts, **body}, fingerprint)
        if not self._record_end(ledger_id, row):
            noticed += ("the end of the history could not be recorded beside the ledger's key",)
        for sentence in noticed:
            warnings.warn(sentence, LedgerWarning, stacklevel=2)
        return entry_of(ledger_id, row, noticed)

    @contextmanager
    def spending(
        self,
        name: str,
        guarantee: Guarantee,
        *,
        what: str = "",
        data: Any = None,
        unproven: Unproven = "refuse",
    ) -> Iterator[Entry]:
        """Charge a release on entering; the charge stands however the block ends. See :meth:`charge`."""
        yield self.charge(name, guarantee, what=what, data=data, unproven=unproven)

    def for_dataset(self, name: str, *, unproven: Unproven = "refuse") -> DatasetLedger:
        """Return the budget of one data set, as protectors and learners take it (``ledger=``)."""
        return DatasetLedger(self, name, unproven)

    def datasets(self) -> list[str]:
        """Return the names that have a budget, in the order in which they were made."""
        with self._store.reading() as rows:
            return _names(rows, self._identify(self._first(rows))[1])

    def remaining(self, name: str) -> Balance:
        """Return what is left of a data set's budget."""
        name = checked_name(name)
        with self._store.reading() as rows:
            ledger_id, key = self._identify(self._first(rows))
            created = self._budget(rows, key, name)
            last = last_of(rows, key, created, self._end(rows, key, ledger_id))
        return balance_of(name, json.loads(created.body), json.loads(last.body))

    def history(self, name: str | None = None) -> list[Entry]:
        """Return the entries of a data set, or of all, in the order in which they were made."""
        with self._store.reading() as rows:
            ledger_id, key = self._identify(self._first(rows))
            if name is not None:
                name = checked_name(name)
                self._budget(rows, key, name)
            found = [checked(key, row) for row in rows.of(name)]
        return [entry_of(ledger_id, row) for row in found if row.kind != "ledger"]

    def seal(self, message: bytes) -> str:
        """Return a mark on a message that only whoever holds the ledger's key can make."""
        with self._store.reading() as rows:
            return self._identify(self._first(rows))[1].seal(message)

    def has_sealed(self, message: bytes, seal: str) -> bool:
        """Whether a mark is this ledger's on this message."""
        return hmac.compare_digest(self.seal(message).encode(), seal.encode("utf-8", "replace"))

    def verify(self) -> Verification:
        """Check every entry, the chain, the sums and the end of the history.

        Returns
        -------
        Verification
            ``ok``, and what is wrong in sentences. It does not raise where entries were tampered with.
        """
        with self._store.reading() as rows:
            entries = rows.of()
        if not entries:
            return Verification(0, (f"the ledger {self._store.shown} has no entries at all",))
        try:
            ledger_id = ledger_id_of(entries[0])
        except InputError as error:
            return Verification(len(entries), (str(error),))
        key = self._keys.read(ledger_id, self._store.shown)
        return check_entries(entries, key, read_head(self._keys.head_file(ledger_id)))

    def __repr__(self) -> str:
        return f"Ledger({self._store.shown})"

    def __reduce__(self) -> Any:
        # Without a password: a fitted protector has its ledger among its parameters, and may be handed on.
        place = self._store.url if isinstance(self._store, PostgresStore) else str(_path(self._store))
        return _restored, (place, None if self._keys.file is None else str(self._keys.file))

    def __deepcopy__(self, memo: Any) -> Ledger:
        # It never changes, and scikit-learn copies the parameters of what it clones.
        return self

    def _first(self, rows: Rows) -> Row:
        first = rows.first()
        if first is None:
            raise InputError(
                f"the ledger {self._store.shown} has lost its first entry; see: oversafe budget verify"
            )
        return first

    def _identify(self, first: Row) -> tuple[str, Key]:
        ledger_id = ledger_id_of(first)
        key = self._keys.read(ledger_id, self._store.shown)
        if not key.fits(first):
            raise InputError(
                f"the key does not fit the ledger {self._store.shown}; it belongs to another one, or the ledger's "
                "first entry was changed"
            )
        return ledger_id, key

    def _known_budget(self, name: str) -> Row:
        if name not in self._known:
            with self._store.reading() as rows:
                self._known[name] = self._budget(rows, self._identify(self._first(rows))[1], name)
        return self._known[name]

    def _budget(self, rows: Rows, key: Key, name: str) -> Row:
        created = rows.created(name)
        if created is None:
            names = _names(rows, key)
            near = difflib.get_close_matches(name, names, n=3) or names
            known = f"it has {listed(near)}" if near else "it has none"
            raise InputError(
                f"the ledger {self._store.shown} has no data set {shorten(name, 60)!r}; {known}, and nothing was spent"
            )
        return checked(key, created)

    def _end(self, rows: Rows, key: Key, ledger_id: str) -> Row:
        """Return the end of the chain, unless it was cut off or an older copy was put in its place."""
        last = rows.last()
        assert last is not None
        last = checked(key, last)
        path = self._keys.head_file(ledger_id)
        head = read_head(path)
        if head is not None and head[0] <= last.number:
            seen = last if head[0] == last.number else rows.get(head[0])
            cut = seen is None or seen.mac != head[1]
        else:
            cut = head is not None
        if cut:
            assert head is not None
            raise InputError(
                f"the ledger {self._store.shown} lacks entry {head[0]}, which this machine has seen: its end was cut "
                f"off, or an older copy was restored; nothing was spent. Remove {str(path)!r} only if those charges "
                "are to be forgotten"
            )
        return last

    def _record_end(self, ledger_id: str, row: Row) -> bool:
        return write_head(self._keys.head_file(ledger_id), row)


@dataclass(frozen=True)
class DatasetLedger:
    """The budget of one data set, for protectors and learners; made by :meth:`Ledger.for_dataset`.

    Parameters
    ----------
    ledger : Ledger
        Where the budget is kept.
    name : str
        The data set.
    unproven : {"refuse", "record"}
        What to do with a guarantee that is not proven.
    """

    ledger: Ledger
    name: str
    unproven: Unproven = "refuse"

    def charge(self, guarantee: Guarantee, *, what: str = "", data: Any = None) -> Entry:
        """Charge a release; see :meth:`Ledger.charge`."""
        return self.ledger.charge(self.name, guarantee, what=what, data=data, unproven=self.unproven)

    def remaining(self) -> Balance:
        """Return what is left."""
        return self.ledger.remaining(self.name)


def pay(ledger: Any, guarantee: Guarantee, *, what: str, data: Any = None) -> str | None:
    """Charge what a method is about to do to the ``ledger`` among its parameters, and return the entry's id.

    The one thing that protectors and learners call, with the guarantee of the whole fit and before any noise is
    drawn; without a ledger it does nothing.

    Parameters
    ----------
    ledger : DatasetLedger or None
        As the user gave it.
    guarantee : Guarantee
        What the whole fit will promise.
    what : str
        The method.
    data : DataFrame, array, or tuple of (X, y), optional
        The table, which is only compared with earlier ones.
    """
    if ledger is None:
        return None
    if not isinstance(ledger, DatasetLedger):
        raise InputError(
            f"ledger = {type(ledger).__name__} was given; name the data set: Ledger(file).for_dataset('patients')"
        )
    return ledger.charge(guarantee, what=what, data=data).id


def _restored(place: str, key_file: str | None) -> Ledger:
    return Ledger(place, key_file=key_file)


def _path(store: Any) -> Path:
    assert isinstance(store, SQLiteStore)
    return store.path


def _names(rows: Rows, key: Key) -> list[str]:
    return [checked(key, row).dataset for row in rows.budgets()]


def _appended(
    rows: Rows,
    key: Key,
    last: Row | None,
    dataset: str,
    kind: str,
    body: dict[str, Any],
    fingerprint: str = "",
) -> Row:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    facts = (dataset, kind, fingerprint, text)
    row = Row(0, *facts, "") if last is None else Row(last.number + 1, *facts, last.mac)
    row = Row(row.number, *facts, row.previous, key.mac(row))
    rows.append(row)
    return row


def _compared(rows: Rows, key: Key, name: str, digest: str) -> tuple[str, ...]:
    """Return what the last fingerprints say about a table."""
    sentences = []
    for row in rows.last_fingerprints():
        same = row.fingerprint == key.fingerprint(row.number, digest)
        if row.dataset == name and not same:
            sentences.append(
                f"the data differ from those of entry {row.number} of {name!r}; that is right if the table was "
                "updated, and another table needs a name of its own"
            )
        elif row.dataset != name and same:
            sentences.append(
                f"the same table was charged to {row.dataset!r} (entry {row.number}) and now to {name!r}; the people "
                "in it bear both budgets"
            )
    return tuple(sentences)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@cache
def _version() -> str:
    from oversafe import __version__

    return __version__
