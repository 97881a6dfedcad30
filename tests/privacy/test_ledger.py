"""The ledger: what it charges, what it refuses, and what tampering it finds."""

import math
import os
import pickle
import re
import shutil
import sqlite3
import stat
import sys
import threading
import uuid
import warnings
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from dp_accounting import dp_event

from oversafe._core.errors import InputError, MissingExtraError
from oversafe.data.rows.fingerprint import table_digest
from oversafe.privacy import Guarantee, Ledger, LedgerWarning, OverdraftError
from oversafe.privacy.guarantee import SEEDED, approximate_event, composed_epsilon

LAPLACE = Guarantee.pure(0.25, "Laplace noise")


def gaussian(multiplier=10.0, delta=1e-8, **others):
    event = dp_event.GaussianDpEvent(multiplier)
    return Guarantee("proven", composed_epsilon(event, delta), delta, basis="Gauss", event=event, **others)


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "budget.db", key_file=tmp_path / "keys" / "key")
    (tmp_path / "keys").mkdir()
    ledger.create("patients", 1.0)
    return ledger


@pytest.fixture
def files(tmp_path):
    return sorted(tmp_path.rglob("*"))


def refused(call, match):
    with pytest.raises(InputError, match=match) as caught:
        call()
    # One sentence, as the command line prints it.
    assert "\n" not in str(caught.value)
    return caught.value


# ------------------------------------------------------------------------------------------------- charging


def test_a_charge_is_written_down_and_reduces_what_is_left(ledger):
    entry = ledger.charge("patients", LAPLACE, what="age histogram")
    assert (entry.kind, entry.dataset, entry.epsilon, entry.delta) == ("charge", "patients", 0.25, 0.0)
    balance = ledger.remaining("patients")
    assert (balance.epsilon, balance.charges, balance.spent_epsilon) == (0.75, 1, 0.25)
    created, charged = ledger.history("patients")
    assert created.kind == "create" and created.epsilon == 1.0
    assert charged == entry and charged.guarantee == LAPLACE and charged.what == "age histogram"
    assert entry.id == f"{created.id.partition(':')[0]}:2"
    assert ledger.verify().ok


def test_an_overdraft_of_a_fresh_budget_names_all_of_it(ledger):
    ledger.create("others", 1.0, 1e-6)

    def known(epsilon, delta):
        return Guarantee("proven", epsilon, delta, basis="x", event=approximate_event(epsilon, delta))

    refused(
        lambda: ledger.charge("others", known(1.5, 8e-7)),
        "has epsilon = 1 and delta = 1e-06 left",
    )
    assert ledger.charge("others", known(1.0, 1e-6)).delta == 1e-6


def test_a_budget_is_read_back_with_its_share_for_sums(ledger):
    ledger.create("others", 1.0, 1e-6)
    ledger.charge("others", Guarantee.pure(0.9, "x"))
    # Too much for its divergences, beside what was spent; its figures add up to less than the budget.
    assert ledger.charge("others", gaussian(50.0, 2e-8)).kind == "charge"
    assert ledger.verify().ok


def test_an_overdraft_is_refused_and_spends_nothing(ledger):
    for _ in range(4):
        ledger.charge("patients", LAPLACE)
    before = ledger.history()
    error = refused(lambda: ledger.charge("patients", Guarantee.pure(0.01, "x")), "nothing was spent")
    assert isinstance(error, OverdraftError) and "0 left" in str(error)
    assert ledger.history() == before


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, "1", True])
def test_a_bad_epsilon_is_refused_and_makes_nothing(tmp_path, files, bad):
    ledger = Ledger(tmp_path / "new.db", key_file=tmp_path / "key")
    refused(lambda: ledger.create("patients", bad), "epsilon")
    assert sorted(tmp_path.rglob("*")) == files


@pytest.mark.parametrize("bad", [1, 1.5, -1e-9, math.nan, None])
def test_a_bad_delta_is_refused_and_makes_nothing(tmp_path, files, bad):
    ledger = Ledger(tmp_path / "new.db", key_file=tmp_path / "key")
    refused(lambda: ledger.create("patients", 1.0, bad), "delta")
    assert sorted(tmp_path.rglob("*")) == files


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "\x1b[31m", "x" * 300, 7, None])
def test_bad_names_are_refused(ledger, name):
    refused(lambda: ledger.create(name, 1.0), "name|called")


def test_a_name_has_one_budget_whatever_its_case(ledger):
    refused(lambda: ledger.create("Patients ", 5.0), "has a budget already")
    assert ledger.datasets() == ["patients"]


def test_an_unknown_data_set_is_named_with_those_that_are_near(ledger):
    for call in (
        lambda: ledger.charge("patient", LAPLACE),
        lambda: ledger.remaining("patient"),
        lambda: ledger.history("patient"),
    ):
        refused(call, "no data set 'patient'; it has 'patients', and nothing was spent")


def test_a_place_without_a_ledger_is_not_made_by_looking(tmp_path):
    absent = Ledger(tmp_path / "absent.db")
    for call in (
        lambda: absent.charge("patients", LAPLACE),
        absent.datasets,
        absent.verify,
        lambda: absent.remaining("patients"),
    ):
        refused(call, "there is no ledger at")
    assert not list(tmp_path.iterdir())
    refused(lambda: Ledger(""), "empty path")
    refused(lambda: Ledger("mysql://u:secret@host/db"), "^'mysql://u@host/db' is no place")


def test_other_files_are_left_alone(tmp_path):
    (tmp_path / "notes.db").write_text(
        "not a database, but long enough to look like one at the first glance" * 20
    )
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE people (name TEXT)")
    other.close()
    key = tmp_path / "key"
    refused(lambda: Ledger(tmp_path / "notes.db", key_file=key).create("patients", 1.0), "not a database")
    refused(lambda: Ledger(tmp_path / "other.db", key_file=key).create("patients", 1.0), "something else")
    refused(lambda: Ledger(tmp_path / "other.db", key_file=key).datasets(), "there is no ledger at")


def test_the_charge_stands_when_the_block_fails(ledger):
    with pytest.raises(RuntimeError), ledger.spending("patients", LAPLACE, what="a crash") as entry:
        assert ledger.remaining("patients").epsilon == 0.75
        raise RuntimeError
    assert ledger.history("patients")[-1] == entry


def test_a_clock_that_is_set_back_changes_nothing(ledger, monkeypatch):
    ledger.charge("patients", LAPLACE, what="first")
    monkeypatch.setattr("oversafe.privacy.ledger.ledger._now", lambda: "1970-01-01T00:00:00+00:00")
    ledger.charge("patients", LAPLACE, what="second")
    monkeypatch.undo()
    ledger.charge("patients", LAPLACE, what="third")
    assert [entry.what for entry in ledger.history("patients")] == ["", "first", "second", "third"]
    assert ledger.verify().ok and ledger.remaining("patients").charges == 3


def test_threads_share_a_ledger(ledger):
    small = Guarantee.pure(0.05, "x")
    outcomes = []

    def charge():
        for _ in range(5):
            try:
                outcomes.append(ledger.charge("patients", small).number)
            except OverdraftError:
                outcomes.append(None)

    threads = [threading.Thread(target=charge) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = [n for n in outcomes if n is not None]
    assert len(outcomes) == 25 and len(numbers) == len(set(numbers)) == 20


def test_a_new_ledger_is_made_once_when_many_want_it(tmp_path):
    names = [f"study {i}" for i in range(8)]
    ledger = Ledger(tmp_path / "new.db", key_file=tmp_path / "key")
    threads = [threading.Thread(target=ledger.create, args=(name, 1.0)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ledger.datasets()) == names
    assert ledger.verify().ok and ledger.verify().entries == 9


def test_a_file_that_a_crash_left_empty_becomes_a_ledger(tmp_path):
    (tmp_path / "new.db").touch()
    ledger = Ledger(tmp_path / "new.db", key_file=tmp_path / "key")
    refused(ledger.datasets, "there is no ledger at")
    ledger.create("patients", 1.0)
    assert ledger.verify().ok


def test_data_sets_have_budgets_of_their_own(ledger):
    ledger.create(
        "visits", 0.25, 1e-6, relation="add-remove", unit="person", rows_per_unit=4, note="from 2026"
    )
    ledger.charge("patients", LAPLACE)
    balance = ledger.remaining("visits")
    assert (balance.epsilon, balance.unit, balance.rows_per_unit) == (0.25, "person", 4)
    assert [entry.what for entry in ledger.history("visits")] == ["from 2026"]
    assert len(ledger.history()) == 3
    assert "person (at most 4 rows each), add-remove neighbours" in str(balance)


def test_composition_is_tighter_than_the_sum(ledger):
    ledger.create("studies", 1.0, 1e-6)
    with pytest.raises(OverdraftError):
        while True:
            ledger.charge("studies", Guarantee.pure(0.02, "x"))
    balance = ledger.remaining("studies")
    assert balance.rule == "renyi" and balance.charges > 50
    assert balance.spent_epsilon <= 1.0 < balance.added_epsilon
    # What is printed as left can be charged.
    printed = float(re.search(r"epsilon = (\S+) left", str(balance))[1])
    ledger.charge("studies", Guarantee.pure(printed, "x"))
    assert ledger.verify().ok


def test_a_release_may_take_the_whole_budget_with_delta(ledger):
    guarantee = gaussian(delta=1e-6)
    ledger.create("studies", guarantee.epsilon, guarantee.delta)
    ledger.charge("studies", guarantee)
    assert ledger.remaining("studies").rule == "sums"
    refused(lambda: ledger.charge("studies", Guarantee.pure(0.001, "x")), "nothing was spent")
    assert ledger.verify().ok


# --------------------------------------------------------------------------------- guarantees that do not fit


def test_relations_and_units_must_be_comparable(ledger):
    ledger.create("added", 1.0, relation="add-remove")
    ledger.create("persons", 1.0, unit="person", rows_per_unit=3)
    refused(lambda: ledger.charge("added", LAPLACE), "says nothing about")
    refused(lambda: ledger.charge("persons", LAPLACE), "for every person, and the guarantee for every record")
    few = Guarantee("proven", 0.25, 0.0, unit="person", rows_per_unit=2, basis="x", event=LAPLACE.event)
    refused(lambda: ledger.charge("persons", few), "up to 3 rows")
    # A record that is replaced is one removed and one added.
    ledger.charge("patients", Guarantee.pure(0.25, "x", relation="add-remove"))
    assert ledger.remaining("patients").epsilon == 0.5


@pytest.mark.parametrize("guarantee", [LAPLACE.weaken(SEEDED), Guarantee.none("SMOTE keeps the rows")])
def test_what_is_not_proven_is_refused_or_recorded_as_unaccounted(ledger, guarantee):
    refused(lambda: ledger.charge("patients", guarantee), "nothing was spent; .*--record-unproven")
    refused(lambda: ledger.charge("patients", guarantee, unproven="yes"), "'refuse' or 'record'")
    assert len(ledger.history()) == 1
    entry = ledger.charge("patients", guarantee, unproven="record")
    assert entry.kind == "unaccounted" and entry.epsilon == guarantee.epsilon
    balance = ledger.remaining("patients")
    assert (balance.epsilon, balance.charges, balance.unaccounted) == (1.0, 0, 1)
    assert "Not covered: 1" in str(balance)
    ledger.charge("patients", LAPLACE)
    assert ledger.remaining("patients").unaccounted == 1 and ledger.verify().ok


def test_only_guarantees_are_charged(ledger):
    refused(lambda: ledger.charge("patients", 0.5), "a Guarantee, and float was given")
    refused(lambda: ledger.charge("patients", LAPLACE, what="x" * 5000), "what is a text")


# ------------------------------------------------------------------------------------------------- tampering


def changed(path, *statements):
    """Do to the file what someone without the key can do."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DROP TRIGGER no_update")
        connection.execute("DROP TRIGGER no_delete")
        for statement in statements:
            assert connection.execute(statement).rowcount > 0
    connection.close()


@pytest.fixture
def spent(ledger, tmp_path):
    """A ledger with entries 0 to 6, and its file."""
    ledger.create("visits", 1.0)
    for name in ("patients", "visits", "patients", "patients"):
        ledger.charge(name, LAPLACE)
    assert ledger.verify().ok and ledger.verify().entries == 7
    return ledger, tmp_path / "budget.db"


def test_the_file_only_grows(spent):
    connection = sqlite3.connect(spent[1])
    for statement in ("DELETE FROM entries WHERE number = 6", "UPDATE entries SET body = '{}'"):
        with pytest.raises(sqlite3.IntegrityError, match="only grows"):
            connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("UPDATE entries SET body = replace(body, '0.25', '0.05') WHERE number = 4", "entry 4 was changed"),
        ("UPDATE entries SET body = replace(body, '\"0.75\"', '\"0.0\"') WHERE number = 6", "entry 6 was changed"),
        ("UPDATE entries SET dataset = 'visits' WHERE number = 5", "entry 5 was changed"),
        ("UPDATE entries SET kind = 'unaccounted' WHERE number = 5", "entry 5 was changed"),
        ("UPDATE entries SET fingerprint = 'x' WHERE number = 5", "entry 5 was changed"),
        ("UPDATE entries SET mac = previous WHERE number = 5", "entry 5 was changed"),
        ("UPDATE entries SET body = replace(body, '1.0', '9.0') WHERE number = 1", "entry 1 was changed"),
        ("UPDATE entries SET body = replace(body, 'when', 'wann') WHERE number = 0", "key does not fit"),
        ("DELETE FROM entries WHERE number = 4", "before entry 5: 4 is missing"),
        ("DELETE FROM entries WHERE number IN (3, 4)", "before entry 5: 3 to 4 is missing"),
        ("DELETE FROM entries WHERE number = 0", "not that of a ledger"),
        ("DELETE FROM entries WHERE number = 6", "entry 6, which this machine has seen, is not there"),
        ("DELETE FROM entries WHERE number >= 3", "entry 6, which this machine has seen, is not there"),
        ("DELETE FROM entries", "no entries at all"),
    ],
)  # fmt: skip
def test_changed_and_removed_entries_are_found(spent, statement, problem):
    ledger, path = spent
    changed(path, statement)
    found = ledger.verify()
    assert not found.ok and any(problem in sentence for sentence in found.problems), found.problems


def test_reordered_entries_are_found(spent):
    ledger, path = spent
    changed(
        path,
        "UPDATE entries SET number = -1 WHERE number = 4",
        "UPDATE entries SET number = 4 WHERE number = 5",
        "UPDATE entries SET number = 5 WHERE number = -1",
    )
    assert not ledger.verify().ok


def test_a_removed_entry_cannot_be_hidden_by_renumbering(spent):
    ledger, path = spent
    changed(
        path,
        "DELETE FROM entries WHERE number = 4",
        "UPDATE entries SET number = 4 WHERE number = 5",
        "UPDATE entries SET number = 5 WHERE number = 6",
    )
    found = ledger.verify()
    assert any("entry 4 was changed" in sentence for sentence in found.problems)
    assert any("entry 6" in sentence for sentence in found.problems)


def test_tampering_with_what_is_left_is_found_by_the_next_charge(spent):
    ledger, path = spent
    changed(path, "UPDATE entries SET body = replace(body, '\"0.75\"', '\"0.0\"') WHERE number = 6")
    refused(lambda: ledger.charge("patients", LAPLACE), "entry 6 of the ledger was changed")
    refused(lambda: ledger.remaining("patients"), "entry 6 of the ledger was changed")


def test_an_older_copy_is_not_charged(ledger, tmp_path):
    ledger.charge("patients", LAPLACE)
    shutil.copy(tmp_path / "budget.db", tmp_path / "old.db")
    ledger.charge("patients", LAPLACE)
    shutil.copy(tmp_path / "old.db", tmp_path / "budget.db")
    assert "entry 3, which this machine has seen" in ledger.verify().problems[0]
    error = refused(lambda: ledger.charge("patients", LAPLACE), "lacks entry 3")
    # The record of the end is what the steward removes who wants it so.
    (head,) = (tmp_path / "keys").glob("*.head")
    assert str(head) in str(error)
    head.unlink()
    found = ledger.verify()
    assert found.ok and not found.end_seen
    ledger.charge("patients", LAPLACE)
    assert ledger.verify().end_seen


def test_a_fork_of_the_history_is_found(ledger, tmp_path):
    """Two copies that are both charged: the numbers agree, the entries do not."""
    shutil.copy(tmp_path / "budget.db", tmp_path / "copy.db")
    ledger.charge("patients", LAPLACE)
    (head,) = (tmp_path / "keys").glob("*.head")
    kept = head.read_bytes()
    head.unlink()
    Ledger(tmp_path / "copy.db", key_file=tmp_path / "keys" / "key").charge("patients", LAPLACE, what="other")
    head.write_bytes(kept)
    shutil.copy(tmp_path / "copy.db", tmp_path / "budget.db")
    assert not ledger.verify().ok
    refused(lambda: ledger.charge("patients", LAPLACE), "lacks entry 2")


def test_the_record_of_the_end_keeps_up_with_a_long_history(ledger):
    tiny = Guarantee.pure(1e-3, "x")
    for _ in range(80):
        entry = ledger.charge("patients", tiny)
    (head,) = (ledger._keys.file.parent).glob("*.head")
    assert head.stat().st_size < 10_000 and entry.number == 81 and ledger.verify().ok
    head.write_bytes(b"rubbish" + head.read_bytes()[7:])
    assert ledger.verify().ok


# ------------------------------------------------------------------------------------------------- the key


def test_another_key_is_found(ledger, tmp_path):
    Ledger(tmp_path / "other.db", key_file=tmp_path / "other key").create("patients", 1.0)
    wrong = Ledger(tmp_path / "budget.db", key_file=tmp_path / "other key")
    assert "key does not fit" in wrong.verify().problems[0]
    refused(lambda: wrong.charge("patients", LAPLACE), "key does not fit")
    refused(lambda: wrong.create("visits", 1.0), "key does not fit")
    assert ledger.verify().entries == 2


def test_a_missing_or_damaged_key_is_named(ledger, tmp_path):
    key = tmp_path / "keys" / "key"
    text = key.read_text()
    key.write_text(text[:10])
    refused(lambda: ledger.charge("patients", LAPLACE), "64 hexadecimal digits")
    key.unlink()
    for call in (ledger.verify, ledger.datasets, lambda: ledger.charge("patients", LAPLACE)):
        refused(
            call,
            "keys/key' does not exist; copy it from where the ledger was made, or set OVERSAFE_LEDGER_KEY",
        )
    # A second budget must not make a second key.
    refused(lambda: ledger.create("visits", 1.0), "does not exist")
    key.write_text(text)
    assert ledger.verify().ok


def test_the_key_is_private_and_outside_the_file(ledger, tmp_path):
    key = tmp_path / "keys" / "key"
    assert key.read_text().strip().encode() not in (tmp_path / "budget.db").read_bytes()
    for path in (key, tmp_path / "budget.db", *(tmp_path / "keys").glob("*.head")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_the_key_is_found_in_the_configuration_folder_or_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("patients", 1.0)
    (key,) = (tmp_path / "config" / "oversafe" / "ledgers").glob("*.key")
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    assert ledger.verify().end_seen

    monkeypatch.setenv("OVERSAFE_LEDGER_KEY", key.read_text())
    key.unlink()
    ledger.charge("patients", LAPLACE)
    monkeypatch.setenv("OVERSAFE_LEDGER_KEY", "5" * 64)
    refused(lambda: ledger.charge("patients", LAPLACE), "key does not fit")
    monkeypatch.setenv("OVERSAFE_LEDGER_KEY", "secret")
    refused(ledger.datasets, "OVERSAFE_LEDGER_KEY holds no ledger key")


def test_without_a_place_for_the_end_a_charge_stands_and_says_so(tmp_path, monkeypatch):
    (tmp_path / "config").write_text("a file where a folder should be")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    refused(lambda: Ledger(tmp_path / "budget.db").create("patients", 1.0), "key cannot be written")
    monkeypatch.setenv("OVERSAFE_LEDGER_KEY", "5" * 64)
    ledger = Ledger(tmp_path / "budget.db")
    ledger.create("patients", 1.0)
    with pytest.warns(LedgerWarning, match="end of the history could not be recorded"):
        ledger.charge("patients", LAPLACE)
    found = ledger.verify()
    assert found.ok and not found.end_seen and ledger.remaining("patients").epsilon == 0.75


# ------------------------------------------------------------------------------------------------- fingerprints


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, 50),
            "dose": rng.normal(size=50),
            "ward": pd.Categorical(rng.choice(["north", "south"], 50)),
            "seen": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 9, 50), unit="D"),
            "note": [None, *["fine"] * 49],
        }
    )


def test_a_table_is_the_same_in_any_order_and_not_with_one_other_cell(table):
    digest = table_digest(table)
    assert (
        table_digest(table.sample(frac=1, random_state=1)[["seen", "note", "age", "ward", "dose"]]) == digest
    )
    assert table_digest(table.astype({"age": float, "ward": object})) == digest
    edited = table.copy()
    edited.loc[3, "age"] += 1
    swapped = table.rename(columns={"age": "dose", "dose": "age"})
    for other in (
        edited,
        swapped,
        table.iloc[1:],
        pd.concat([table, table.iloc[:1]]),
        table.drop(columns="note"),
    ):
        assert table_digest(other) != digest
    mixed = table.copy()
    mixed["age"] = mixed["age"].sample(frac=1, random_state=2).to_numpy()
    assert table_digest(mixed) != digest
    labels = pd.Series(["ill"] * 50, name="state")
    assert table_digest((table, labels)) == table_digest(table.assign(state=labels))
    array = table[["age", "dose"]].to_numpy()
    assert table_digest((array, np.arange(50))) != table_digest((array, np.arange(50)[::-1]))


def test_fingerprints_warn_and_only_warn(ledger, table):
    ledger.create("visits", 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ledger.charge("patients", LAPLACE, data=table)
        ledger.charge("patients", LAPLACE, data=table)
        ledger.charge("patients", LAPLACE)
    edited = table.copy()
    edited.loc[3, "age"] += 1
    with pytest.warns(LedgerWarning, match="data differ from those of entry 4 of 'patients'"):
        entry = ledger.charge("patients", LAPLACE, data=edited)
    # One edited cell has not reset the budget.
    assert len(entry.warnings) == 1 and ledger.remaining("patients").epsilon == 0
    with pytest.warns(
        LedgerWarning, match="same table was charged to 'patients' .entry 6. and now to 'visits'"
    ):
        ledger.charge("visits", LAPLACE, data=edited)


def test_the_file_says_nothing_about_the_data(ledger, table, tmp_path):
    for _ in range(2):
        ledger.charge("patients", LAPLACE, data=table)
    connection = sqlite3.connect(tmp_path / "budget.db")
    stored = [row[0] for row in connection.execute("SELECT fingerprint FROM entries WHERE fingerprint <> ''")]
    connection.close()
    # Not even that two tables were equal.
    assert len(stored) == len(set(stored)) == 2
    content = (tmp_path / "budget.db").read_bytes()
    assert table_digest(table).encode() not in content
    for value in ("north", "dose", "fine", str(table["dose"].iloc[0])):
        assert value.encode() not in content


# ------------------------------------------------------------------------------------------------- copies


def test_a_ledger_travels_without_its_key_and_password(ledger, tmp_path):
    account = ledger.for_dataset("patients")
    text = pickle.dumps(account)
    assert (tmp_path / "keys" / "key").read_text().strip().encode() not in text
    pickle.loads(text).charge(LAPLACE)
    assert deepcopy(account).remaining().epsilon == 0.75
    remote = Ledger("postgresql://steward:pass%21word@host/db?sslpassword=hidden#budget")
    for shown in (repr(remote), repr(remote.for_dataset("x")), pickle.dumps(remote).decode("latin1")):
        assert "word" not in shown and "hidden" not in shown and "steward@host/db" in shown
    assert repr(deepcopy(remote)) == repr(remote)


def test_a_forked_process_can_charge(ledger):
    ledger.charge("patients", LAPLACE)
    child = os.fork()
    if child == 0:
        try:
            ledger.charge("patients", LAPLACE)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    ledger.charge("patients", LAPLACE)
    assert ledger.remaining("patients").charges == 3 and ledger.verify().ok


# ------------------------------------------------------------------------------------------------- PostgreSQL


def test_postgresql_without_its_driver_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'oversafe\[engines\]'"):
        Ledger("postgresql://host/db").datasets()


@pytest.fixture
def remote(postgres_url, tmp_path):
    pytest.importorskip("psycopg", reason="install the extra 'engines'")
    schema = f"ledger_{uuid.uuid4().hex[:12]}"
    ledger = Ledger(f"{postgres_url}#{schema}", key_file=tmp_path / "key")
    refused(ledger.datasets, "there is no ledger at")
    ledger.create("patients", 1.0)
    for _ in range(3):
        ledger.charge("patients", LAPLACE)
    return ledger, postgres_url, schema


@pytest.mark.engines
def test_postgresql_keeps_the_same_books(remote, table):
    ledger, _, _ = remote
    ledger.create("visits", 1.0, 1e-6)
    ledger.charge("visits", gaussian(), data=table, what="100 % of them?")
    refused(lambda: ledger.charge("patients", Guarantee.pure(0.5, "x")), "nothing was spent")
    refused(lambda: ledger.charge("patient", LAPLACE), "it has 'patients'")
    ledger.charge("patients", LAPLACE)
    with pytest.warns(LedgerWarning, match="same table"):
        ledger.charge("patients", Guarantee.none("SMOTE"), unproven="record", data=table)
    assert ledger.remaining("patients").epsilon == 0
    assert ledger.history("visits")[-1].what == "100 % of them?"
    assert ledger.datasets() == ["patients", "visits"] and ledger.verify().ok


@pytest.mark.engines
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE {t} SET body = replace(body, '0.25', '0.05') WHERE number = 2",
        "DELETE FROM {t} WHERE number = 2",
        "DELETE FROM {t} WHERE number = 4",
    ],
)
def test_postgresql_tampering_is_found(remote, statement):
    import psycopg

    ledger, url, schema = remote
    statement = statement.format(t=f"{schema}.entries")
    with psycopg.connect(url) as connection, pytest.raises(psycopg.Error, match="only grows"):
        connection.execute(statement)
    with psycopg.connect(url) as connection:
        connection.execute(f"DROP TRIGGER only_grows ON {schema}.entries")
        connection.execute(statement)
    assert not ledger.verify().ok


@pytest.mark.engines
def test_postgresql_needs_only_the_right_to_read_and_to_add(remote):
    """An analyst's role that can neither change nor delete can charge."""
    import psycopg

    ledger, url, schema = remote
    with psycopg.connect(url) as connection:
        connection.execute(f"REVOKE UPDATE, DELETE, TRUNCATE ON {schema}.entries FROM CURRENT_USER")
    ledger.charge("patients", LAPLACE)
    assert ledger.remaining("patients").charges == 4


@pytest.mark.engines
def test_postgresql_errors_are_one_sentence_without_the_password(remote):
    refused(
        Ledger("postgresql://nobody:pass%21word@127.0.0.1:1/db").datasets,
        r"^(?!.*word).*cannot be used .*look at the history",
    )
    refused(lambda: Ledger("postgresql://host/db#a-b"), "names a schema 'a-b'")
