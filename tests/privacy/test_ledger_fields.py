"""Every field of every kind of entry, tampered with one at a time: each is found, and nothing is charged to it."""

from __future__ import annotations

import json
import shutil
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from oversafe._core.errors import InputError
from oversafe.privacy import Guarantee, Ledger
from oversafe.privacy.ledger.chain import Key, KeyPlace, Row, read_head, write_head

SMALL = Guarantee.pure(0.125, "Laplace noise")
SECRET = bytes(range(32))
COLUMNS = ("number", "dataset", "kind", "fingerprint", "body", "previous", "mac")
# Of a ledger that is written once; entries 0 to 6, of every kind, the last two of them the ends of their data sets.
KINDS = ("ledger", "create", "create", "charge", "unaccounted", "charge", "unaccounted")


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("ledger")
    (folder / "key").write_text(SECRET.hex())
    ledger = Ledger(folder / "budget.db", key_file=folder / "key")
    ledger.create("patients", 1.0, note="from 2026")
    ledger.create("visits", 1.0, 1e-6, relation="add-remove", unit="person", rows_per_unit=4)
    data = [[1.0, 2.0], [3.0, 4.0]]
    ledger.charge("patients", SMALL, what="ages", data=data)
    ledger.charge(
        "visits", Guarantee.none("SMOTE keeps rows"), what="visits", unproven="record", data=data[:1]
    )
    ledger.charge("patients", SMALL.assuming("numbers are real"), what="more ages", data=data)
    ledger.charge("visits", Guarantee.pure(1.0, "x").weaken("seeded"), what="again", unproven="record")
    assert tuple(row.kind for row in stored(folder)) == KINDS
    return folder


@pytest.fixture
def copy(written, tmp_path) -> Path:
    shutil.copytree(written, tmp_path / "copy")
    return tmp_path / "copy"


def opened(folder: Path) -> Ledger:
    return Ledger(folder / "budget.db", key_file=folder / "key")


def stored(folder: Path) -> list[Row]:
    connection = sqlite3.connect(folder / "budget.db")
    rows = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM entries ORDER BY number").fetchall()
    connection.close()
    return [Row(*row) for row in rows]


def store(folder: Path, rows: list[Row]) -> None:
    """Put other rows in the file, as whoever can write it can."""
    connection = sqlite3.connect(folder / "budget.db")
    with connection:
        for action in ("update", "delete"):
            connection.execute(f"DROP TRIGGER IF EXISTS no_{action}")
        connection.execute("DELETE FROM entries")
        marks = ", ".join("?" * len(COLUMNS))
        for row in rows:
            connection.execute(
                f"INSERT INTO entries ({', '.join(COLUMNS)}) VALUES ({marks})",
                [getattr(row, c) for c in COLUMNS],
            )
    connection.close()


def chained(rows: list[Row]) -> list[Row]:
    """Return rows with the macs that whoever has the key would give them."""
    key = Key(SECRET, json.loads(rows[0].body)["id"])
    done: list[Row] = []
    for row in rows:
        row = replace(row, previous=done[-1].mac if done else "")
        done.append(replace(row, mac=key.mac(row)))
    return done


def places(plain: Any, path: tuple = ()) -> Iterator[tuple]:
    """Yield the way to every value in a JSON body, those that hold others too; of lists to the first and last."""
    ends = (
        [(at, plain[at]) for at in sorted({0, len(plain) - 1})] if isinstance(plain, list) and plain else ()
    )
    inner = plain.items() if isinstance(plain, dict) else ends
    for name, value in inner:
        yield (*path, name)
        yield from places(value, (*path, name))


def edited(plain: Any, path: tuple, how: str) -> Any:
    """Return a copy of a JSON body with one value changed or left out."""
    plain = json.loads(json.dumps(plain))
    holder = plain
    for name in path[:-1]:
        holder = holder[name]
    value = holder[path[-1]]
    if how == "gone":
        del holder[path[-1]]
    elif isinstance(value, bool) or value is None:
        holder[path[-1]] = 1
    elif isinstance(value, int | float):
        holder[path[-1]] = value + 1
    elif isinstance(value, str):
        holder[path[-1]] = f"{value}0"
    elif isinstance(value, list):
        holder[path[-1]] = [*value, 0]
    else:
        holder[path[-1]] = {**value, "more": 0}
    return plain


def tampered(row: Row, column: str) -> list[Row]:
    """Return a row with other contents of a column: other ones, and for the body every single value of it."""
    value = getattr(row, column)
    if column == "number":
        return [replace(row, number=value + 100), replace(row, number=-1)]
    if column == "kind":
        return [replace(row, kind=kind) for kind in {*KINDS, "other"} - {value}]
    if column == "body":
        body = json.loads(value)
        texts = [json.dumps(edited(body, path, how)) for path in places(body) for how in ("other", "gone")]
        # Also what means the same and is written otherwise.
        return [replace(row, body=text) for text in [*texts, f"{value} ", "{}", "", "no JSON"]]
    end = {"0": "1"}.get(value[-1:], "0")
    changed = {f"{value}0", value[:-1] + end, "" if value else "x"}
    if column == "dataset":
        changed |= {"patients", "visits"} - {value}
    return [replace(row, **{column: text}) for text in changed]


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("at", range(len(KINDS)))
def test_every_field_of_every_kind_of_entry(copy, at, column):
    ledger, rows = opened(copy), stored(copy)
    assert ledger.verify().ok
    for row in tampered(rows[at], column):
        store(copy, [*rows[:at], row, *rows[at + 1 :]])
        found = ledger.verify()
        assert not found.ok and found.problems, row
        # A charge reads its data set's last entry and those behind it: 3 and 4 are before the last ones of both.
        if at in (3, 4):
            continue
        name = "patients" if at in (1, 5) else "visits"
        before = stored(copy)
        # An end that was renumbered upwards or lost stops everybody; the others at least those whose entry it was.
        for look in (
            lambda name=name: opened(copy).charge(name, SMALL, unproven="record"),
            lambda name=name: opened(copy).charge(name, Guarantee.none("x"), unproven="record"),
            lambda name=name: opened(copy).remaining(name),
            # A new budget reads the end alone.
            *([lambda: opened(copy).create("new", epsilon=1.0)] if at == len(KINDS) - 1 else ()),
        ):
            with pytest.raises(InputError):
                look()
        assert stored(copy) == before


def store_anything(folder: Path, rows: list[Row]) -> None:
    """Put rows into a table that takes values of every type in every column, as whoever can write the file can."""
    connection = sqlite3.connect(folder / "budget.db")
    with connection:
        connection.execute("DROP TABLE entries")
        connection.execute(f"CREATE TABLE entries ({', '.join(COLUMNS)})")
        for row in rows:
            values = [getattr(row, c) for c in COLUMNS]
            marks = ", ".join("CAST(? AS TEXT)" if isinstance(v, Raw) else "?" for v in values)
            connection.execute(f"INSERT INTO entries ({', '.join(COLUMNS)}) VALUES ({marks})", values)
    connection.close()


class Raw(bytes):
    """What is stored as a text, whatever its bytes are."""


OTHER_TYPES: dict[str, Any] = {
    "blob of it": lambda value: str(value).encode(),
    "empty blob": lambda value: b"",
    "null": lambda value: None,
    "int": lambda value: 7 if value != 7 else 8,
    "largest int": lambda value: 2**63 - 1,
    "least int": lambda value: -(2**63),
    "float": lambda value: float(value) if isinstance(value, int) else 0.5,
    "infinity": lambda value: float("inf"),
    "empty": lambda value: "" if value != "" else " ",
    "text of it": lambda value: f"{value} ",
    "no ASCII": lambda value: f"{value}é",
    "no UTF-8": lambda value: Raw(b"\xff" + str(value).encode()),
    "half of a pair": lambda value: Raw("\ud800".encode("utf-8", "surrogatepass")),
    "zero byte": lambda value: f"{value}\0",
    "huge": lambda value: "x" * 1_000_000,
    "deep": lambda value: "[" * 100_000,
}


@pytest.mark.parametrize("how", OTHER_TYPES)
@pytest.mark.parametrize("column", COLUMNS)
def test_a_field_of_any_other_type_is_found(copy, column, how):
    ledger, rows = opened(copy), stored(copy)
    for at, row in enumerate(rows):
        changed = replace(row, **{column: OTHER_TYPES[how](getattr(row, column))})
        store_anything(copy, [*rows[:at], changed, *rows[at + 1 :]])
        found = ledger.verify()
        assert not found.ok and all(len(problem) < 300 for problem in found.problems), at
        with pytest.raises(InputError) as refused:
            ledger.history()
        assert len(str(refused.value)) < 500
        # Whatever a charge reads is refused in a sentence, or was not what was changed.
        for look in (
            lambda: opened(copy).charge("patients", SMALL, unproven="record"),
            lambda at=at: opened(copy).create(f"new {at} {how}", 1.0),
            lambda: opened(copy).remaining("visits"),
            lambda: opened(copy).datasets(),
        ):
            with suppress(InputError):
                look()


@pytest.mark.engines
@pytest.mark.parametrize("column", COLUMNS)
def test_a_field_of_another_type_is_found_in_postgresql(postgres_url, tmp_path, column):
    import psycopg

    schema = f"fields_{uuid.uuid4().hex}"
    ledger = Ledger(f"{postgres_url}#{schema}", key_file=tmp_path / "key")
    ledger.create("patients", 1.0)
    ledger.charge("patients", SMALL, data=[[1.0, 2.0]])
    others = (
        ["NULL", "bytea", "text"]
        if column == "number"
        else ["NULL", "bytea", "''", "'é'", "repeat('x', 1000000)"]
    )
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        table, kept = f'"{schema}".entries', f'"{schema}".kept'
        connection.execute(f"DROP TRIGGER only_grows ON {table}")
        connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT entries_pkey")
        connection.execute(f"CREATE TABLE {kept} AS TABLE {table}")
        for other in others:
            connection.execute(f"ALTER TABLE {table} ALTER COLUMN {column} DROP NOT NULL")
            if other in ("bytea", "text"):
                cast = f"convert_to({column}::text, 'UTF8')" if other == "bytea" else f"{column}::text"
                connection.execute(f"ALTER TABLE {table} ALTER COLUMN {column} TYPE {other} USING {cast}")
            else:
                connection.execute(f"UPDATE {table} SET {column} = {other} WHERE kind = 'charge'")
            assert not ledger.verify().ok
            with pytest.raises(InputError):
                ledger.charge("patients", SMALL)
            connection.execute(f"DROP TABLE {table}")
            connection.execute(f"CREATE TABLE {table} AS TABLE {kept}")
        connection.execute(f'DROP SCHEMA "{schema}" CASCADE')


@pytest.mark.parametrize("at", range(1, len(KINDS)))
def test_a_history_is_not_told_from_entries_that_were_changed(copy, at):
    rows = stored(copy)
    name = rows[at].dataset
    store(copy, [*rows[:at], replace(rows[at], body=rows[at].body.replace("0.", "9.")), *rows[at + 1 :]])
    with pytest.raises(InputError, match=f"entry {at} of the ledger was changed"):
        opened(copy).history(name)
    with pytest.raises(InputError, match=f"entry {at} of the ledger was changed"):
        opened(copy).history()


def test_a_code_is_of_all_fields_of_the_ledger_and_of_its_key():
    row = Row(3, "patients", "charge", "ab", '{"a":1}', "cd")
    key = Key(SECRET, "0" * 16)
    others = [
        replace(row, number=4),
        replace(row, dataset="visits"),
        replace(row, kind="unaccounted"),
        replace(row, fingerprint="aB"),
        replace(row, body='{"a":2}'),
        replace(row, previous="ce"),
        # The border between two fields, moved.
        replace(row, dataset="patientsc", kind="harge"),
        replace(row, fingerprint='ab{"a":', body="1}"),
    ]
    codes = {key.mac(each) for each in [row, *others]}
    codes |= {Key(SECRET, "1" * 16).mac(row), Key(SECRET[::-1], "0" * 16).mac(row)}
    assert len(codes) == len(others) + 3
    code = key.mac(row)
    assert key.fits(replace(row, mac=code)) and not key.fits(replace(row, mac=""))
    for at in range(len(code)):
        assert not key.fits(replace(row, mac=f"{code[:at]}{'0' if code[at] != '0' else '1'}{code[at + 1 :]}"))
    tables = {Key(s, i).fingerprint(n, "d") for s in (SECRET, SECRET[::-1]) for i in "01" for n in (1, 2)}
    assert len(tables) == 8 and not codes & tables


def branches(written: Path, tmp_path: Path) -> tuple[list[Row], list[Row], Path, Path]:
    """Return two histories that went on from one copy, on two machines that have the key, and their folders."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder in (ours, theirs):
        shutil.copytree(written, folder)
    opened(ours).charge("patients", Guarantee.pure(0.5, "x"), what="dear")
    opened(theirs).charge("patients", Guarantee.pure(0.001, "x"), what="cheap")
    for folder in (ours, theirs):
        opened(folder).create("others", 1.0)
        opened(folder).charge("others", SMALL)
    return stored(ours), stored(theirs), ours, theirs


def test_an_entry_of_another_branch_does_not_fit_in(written, tmp_path):
    mine, other, ours, _ = branches(written, tmp_path)
    at = len(KINDS)
    assert mine[at].number == other[at].number == at
    # The dear charge is replaced by the cheap one, authentic and at the same place, and the entry after it is told to
    # follow that. Sums, numbers and the recorded end all fit.
    spliced = [*mine[:at], other[at], replace(mine[at + 1], previous=other[at].mac), *mine[at + 2 :]]
    for rows in (spliced, [*mine[:at], other[at], *mine[at + 1 :]]):
        store(ours, rows)
        assert not opened(ours).verify().ok


def test_another_branch_is_not_the_one_that_this_machine_has_seen(written, tmp_path):
    _, _, ours, theirs = branches(written, tmp_path)
    longer = opened(theirs).charge("others", SMALL).number
    other = stored(theirs)
    assert longer == len(other) - 1
    # With the end at the number that was recorded here, and beyond it.
    for rows in (other[:-1], other):
        store(ours, rows)
        assert any("has seen, is not there" in problem for problem in opened(ours).verify().problems)
        for look in (
            lambda: opened(ours).charge("others", SMALL),
            lambda: opened(ours).remaining("patients"),
        ):
            with pytest.raises(InputError, match="which this machine has seen"):
                look()
    store(ours, rows[: len(KINDS)])
    with pytest.raises(InputError, match="which this machine has seen"):
        opened(ours).remaining("patients")


def test_the_highest_of_the_recorded_ends_counts(tmp_path):
    rows = [Row(number, "", "charge", "", "", "", f"{number:064x}") for number in (1, 2, 64, 65, 70)]
    for row in [rows[4], *rows[:4]]:
        assert write_head(tmp_path / "head", row)
        assert read_head(tmp_path / "head") == (70, rows[4].mac)


@pytest.mark.parametrize(
    ("at", "change", "problem"),
    [
        (5, lambda body: body["spent"].update(epsilon="0.125"), "entry 5: its sums do not follow"),
        (5, lambda body: body["spent"].update(charges=1), "entry 5: its sums do not follow"),
        (5, lambda body: body["cost"].update(epsilon=0.0625), "entry 5: its sums do not follow"),
        (5, lambda body: body.update(unaccounted=1), "entry 5: its sums do not follow"),
        (6, lambda body: body.update(unaccounted=1), "entry 6: its sums do not follow"),
        (6, lambda body: body["spent"].update(charges=1), "entry 6: its sums do not follow"),
        (1, lambda body: body.update(epsilon=0.2), "entry 5: the budget of 'patients' is overspent"),
    ],
)
def test_sums_that_do_not_follow_are_found_even_if_they_are_authentic(copy, at, change, problem):
    rows = stored(copy)
    body = json.loads(rows[at].body)
    change(body)
    store(copy, chained([*rows[:at], replace(rows[at], body=json.dumps(body)), *rows[at + 1 :]]))
    write_head(KeyPlace(copy / "key").head_file(json.loads(rows[0].body)["id"]), stored(copy)[-1])
    assert any(found.startswith(problem) for found in opened(copy).verify().problems)


def test_a_rule_that_changes_between_charges_is_found_even_if_it_is_authentic(copy):
    rows = stored(copy)
    (first, second) = (json.loads(rows[at].body) for at in (3, 5))
    assert first["spent"]["rule"] == second["spent"]["rule"] == "renyi"
    second["spent"]["rule"] = "sums"
    store(copy, chained([*rows[:5], replace(rows[5], body=json.dumps(second)), rows[6]]))
    write_head(KeyPlace(copy / "key").head_file(json.loads(rows[0].body)["id"]), stored(copy)[-1])
    assert opened(copy).verify().problems == ("entry 5: its sums do not follow from the entries before it",)


def test_a_second_budget_of_one_name_is_found_even_if_it_is_authentic(copy):
    rows = stored(copy)
    again = replace(rows[1], number=7)
    store(copy, chained([*rows, again]))
    write_head(KeyPlace(copy / "key").head_file(json.loads(rows[0].body)["id"]), stored(copy)[-1])
    assert opened(copy).verify().problems == ("entry 7: 'patients' was made a second time",)


@pytest.mark.parametrize("name", ["../../evil", "0" * 15, "0" * 17, "O" * 16, ""])
def test_a_ledgers_own_name_names_no_other_files(copy, name):
    rows = stored(copy)
    body = json.dumps({**json.loads(rows[0].body), "id": name})
    store(copy, [replace(rows[0], body=body), *rows[1:]])
    with pytest.raises(InputError, match="not that of a ledger"):
        opened(copy).datasets()
    assert not opened(copy).verify().ok
