"""Where a ledger's entries lie: a SQLite file, or a schema of a PostgreSQL database."""

from __future__ import annotations

import os
import re
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from oversafe._core.errors import InputError, MissingExtraError, import_extra
from oversafe.privacy.ledger.chain import Key, Row, checked

_COLUMNS = "number, dataset, kind, fingerprint, body, previous, mac"
_APPLICATION = 0x4F564C47
# How long a charge waits for the others' charges, in seconds.
_PATIENCE = 60


class Rows:
    """The entries within one transaction.

    Parameters
    ----------
    run : callable
        Takes a query with ``{t}`` for the table and ``?`` for values, and the values; returns the rows.
    """

    def __init__(self, run: Any):
        self._run = run

    def first(self) -> Row | None:
        """Return the entry of the ledger itself."""
        return self.get(0)

    def last(self) -> Row | None:
        """Return the end of the chain."""
        return self._one("ORDER BY number DESC LIMIT 1")

    def get(self, number: int) -> Row | None:
        """Return an entry by its number."""
        return self._one("WHERE number = ?", number)

    def created(self, dataset: str) -> Row | None:
        """Return the entry that made a data set's budget."""
        return self._one("WHERE dataset = ? AND kind = 'create' ORDER BY number LIMIT 1", dataset)

    def last_of(self, dataset: str) -> Row | None:
        """Return a data set's last entry."""
        return self._one("WHERE dataset = ? ORDER BY number DESC LIMIT 1", dataset)

    def after(self, number: int) -> list[Row]:
        """Return the entries behind one, in order."""
        return self._all("WHERE number > ? ORDER BY number", number)

    def budgets(self) -> list[Row]:
        """Return the entries that made budgets, in order."""
        return self._all("WHERE kind = 'create' ORDER BY number")

    def of(self, dataset: str | None = None) -> list[Row]:
        """Return all entries, or those of a data set, in order."""
        if dataset is None:
            return self._all("ORDER BY number")
        return self._all("WHERE dataset = ? ORDER BY number", dataset)

    def last_fingerprints(self) -> list[Row]:
        """Return for each data set the last entry that has a fingerprint."""
        return self._all(
            "WHERE number IN (SELECT MAX(number) FROM {t} WHERE fingerprint <> '' GROUP BY dataset) ORDER BY number"
        )

    def append(self, row: Row) -> None:
        """Add an entry."""
        values = (row.number, row.dataset, row.kind, row.fingerprint, row.body, row.previous, row.mac)
        self._run(f"INSERT INTO {{t}} ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", values)

    def _one(self, which: str, *values: Any) -> Row | None:
        found = self._all(which, *values)
        return found[0] if found else None

    def _all(self, which: str, *values: Any) -> list[Row]:
        return [Row(*row) for row in self._run(f"SELECT {_COLUMNS} FROM {{t}} {which}", values)]


def last_of(rows: Rows, key: Key, created: Row, end: Row) -> Row:
    """Return the last entry of the data set that an entry made, if none that came later was changed or taken away."""
    last = row = checked(key, rows.last_of(created.dataset) or created)
    for later in rows.after(last.number):
        if later.number != row.number + 1 or checked(key, later).previous != row.mac:
            break
        row = later
    if row.number != end.number:
        raise InputError(
            f"the ledger lacks entry {row.number + 1} as it was written; nothing was spent, see: oversafe budget verify"
        )
    return last


class Store(ABC):
    """Where the entries lie. Nothing is kept open between two transactions, so that processes can fork."""

    shown: str

    @abstractmethod
    def reading(self) -> Any:
        """Return a context of one consistent view of the entries."""

    @abstractmethod
    def writing(self, *, create: bool = False) -> Any:
        """Return a context in which nobody else writes; it is committed at its end, to the disk."""

    def _absent(self) -> InputError:
        return InputError(
            f"there is no ledger at {self.shown}; check the place, or make one with: oversafe budget create"
        )


class SQLiteStore(Store):
    """A SQLite file that its owner alone can read.

    With a rollback journal and not a write-ahead log: what is committed is in the one file that people copy, no
    memory is shared between processes, and the versions of SQLite before 3.51.3 can damage a file when two
    processes write their logs back at once.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path):
        self.path = path
        self.shown = repr(str(path))

    @contextmanager
    def reading(self) -> Iterator[Rows]:
        """Return a context of one consistent view of the entries."""
        with self._connection(create=False) as connection:
            connection.execute("BEGIN")
            yield self._rows(connection)

    @contextmanager
    def writing(self, *, create: bool = False) -> Iterator[Rows]:
        """Return a context in which nobody else writes; it is committed at its end, to the disk."""
        with self._connection(create=create) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                if create:
                    self._make_table(connection)
                yield self._rows(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    with suppress(sqlite3.Error):
                        connection.execute("ROLLBACK")
                raise

    def _rows(self, connection: sqlite3.Connection) -> Rows:
        if not connection.execute(
            "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'entries'"
        ).fetchone():
            raise self._absent()
        return Rows(lambda query, values: connection.execute(query.format(t="entries"), values).fetchall())

    def _make_table(self, connection: sqlite3.Connection) -> None:
        tables = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
        if "entries" in tables and self._application(connection) == _APPLICATION:
            return
        if tables:
            raise InputError(
                f"{self.shown} is a database of something else; name another file for the ledger"
            )
        connection.execute(
            "CREATE TABLE entries (number INTEGER PRIMARY KEY, dataset TEXT NOT NULL, kind TEXT NOT NULL, "
            "fingerprint TEXT NOT NULL, body TEXT NOT NULL, previous TEXT NOT NULL, mac TEXT NOT NULL)"
        )
        connection.execute("CREATE INDEX entries_of_dataset ON entries (dataset, number)")
        for action in ("UPDATE", "DELETE"):
            connection.execute(
                f"CREATE TRIGGER no_{action.lower()} BEFORE {action} ON entries "
                "BEGIN SELECT RAISE(ABORT, 'a ledger only grows'); END"
            )
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")

    @staticmethod
    def _application(connection: sqlite3.Connection) -> int:
        return connection.execute("PRAGMA application_id").fetchone()[0]

    @contextmanager
    def _connection(self, *, create: bool) -> Iterator[sqlite3.Connection]:
        if create and not self.path.exists():
            self._make_file()
        if not self.path.is_file():
            raise self._absent()
        connection = None
        try:
            connection = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode=rw", uri=True, timeout=_PATIENCE, isolation_level=None
            )
            connection.text_factory = _text
            connection.execute("PRAGMA journal_mode = PERSIST")
            connection.execute("PRAGMA synchronous = FULL")
            yield connection
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise InputError(
                    f"the ledger {self.shown} was in use for {_PATIENCE} seconds; nothing was spent, try again"
                ) from None
            raise InputError(
                f"the ledger {self.shown} cannot be used ({error}); check the file, its rights and the disk, and "
                "look at the history before you charge again"
            ) from None
        finally:
            if connection is not None:
                connection.close()

    def _make_file(self) -> None:
        try:
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            pass
        except OSError as error:
            raise InputError(
                f"the ledger {self.shown} cannot be made ({error.strerror}); name another place"
            ) from None


class PostgresStore(Store):
    """A schema of a PostgreSQL database.

    Parameters
    ----------
    url : str
        The address; what follows ``#`` names the schema, ``oversafe_ledger`` if it is not there.
    """

    def __init__(self, url: str):
        parts = urlsplit(url)
        schema = unquote(parts.fragment) or "oversafe_ledger"
        self._address = urlunsplit(parts._replace(fragment=""))
        self._secret = parts.password
        self.url = without_password(url)
        self.shown = repr(self.url)
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,62}", schema):
            raise InputError(
                f"{self.shown} names a schema {schema!r}; use letters, digits and _, as in postgresql://host/db#budget"
            )
        self._schema = schema

    @contextmanager
    def reading(self) -> Iterator[Rows]:
        """Return a context of one consistent view of the entries."""
        with self._connection() as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield self._rows(connection)

    @contextmanager
    def writing(self, *, create: bool = False) -> Iterator[Rows]:
        """Return a context in which nobody else writes; it is committed at its end, to the disk."""
        with self._connection() as connection:
            # Each query sees what was committed before it, so those after the lock see everything. The lock is an
            # advisory one, for which a role needs no right beyond SELECT and INSERT.
            connection.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            connection.execute("SET LOCAL synchronous_commit = on")
            connection.execute(f"SET LOCAL lock_timeout = '{_PATIENCE}s'")
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [self._table])
            if create:
                self._make_table(connection)
            yield self._rows(connection)
            connection.commit()

    @property
    def _table(self) -> str:
        return f'"{self._schema}".entries'

    def _rows(self, connection: Any) -> Rows:
        if connection.execute("SELECT to_regclass(%s)", [self._table]).fetchone()[0] is None:
            raise self._absent()

        def run(query: str, values: tuple[Any, ...]) -> list[Any]:
            done = connection.execute(query.format(t=self._table).replace("?", "%s"), values)
            return done.fetchall() if done.description else []

        return Rows(run)

    def _make_table(self, connection: Any) -> None:
        if connection.execute("SELECT to_regclass(%s)", [self._table]).fetchone()[0] is not None:
            return
        connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{self._schema}"')
        connection.execute(
            f"CREATE TABLE {self._table} (number BIGINT PRIMARY KEY, dataset TEXT NOT NULL, kind TEXT NOT NULL, "
            "fingerprint TEXT NOT NULL, body TEXT NOT NULL, previous TEXT NOT NULL, mac TEXT NOT NULL)"
        )
        connection.execute(f"CREATE INDEX ON {self._table} (dataset, number)")
        connection.execute(
            f'CREATE FUNCTION "{self._schema}".only_grows() RETURNS trigger LANGUAGE plpgsql AS '
            "$$ BEGIN RAISE EXCEPTION 'a ledger only grows'; END $$"
        )
        connection.execute(
            f"CREATE TRIGGER only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON {self._table} "
            f'FOR EACH STATEMENT EXECUTE FUNCTION "{self._schema}".only_grows()'
        )

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        psycopg = import_extra("psycopg", "engines", "a ledger in PostgreSQL")
        connection = None
        try:
            connection = psycopg.connect(self._address, connect_timeout=_PATIENCE)
            yield connection
        except (InputError, MissingExtraError):
            raise
        except psycopg.Error as error:
            reason = " ".join(str(error).split())
            if self._secret:
                for secret in (self._secret, unquote(self._secret)):
                    reason = reason.replace(secret, "***")
            raise InputError(
                f"the ledger {self.shown} cannot be used ({reason}); check the address, the rights and the server, "
                "and look at the history before you charge again"
            ) from None
        finally:
            # Without a commit this rolls back.
            if connection is not None:
                with suppress(Exception):
                    connection.close()


def _text(content: bytes) -> str | bytes:
    """Return a field as text, and as bytes what is none: it was not written by a ledger, and fits no code."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def without_password(url: str) -> str:
    """Return an address without its password."""
    parts = urlsplit(url)
    if parts.password is not None:
        place = parts.netloc.rpartition("@")[2]
        parts = parts._replace(netloc=f"{parts.username}@{place}" if parts.username else place)
    query = "&".join(
        p for p in parts.query.split("&") if not p.lower().startswith(("password", "sslpassword"))
    )
    return urlunsplit(parts._replace(query=query))


def open_store(location: str | os.PathLike[str]) -> Store:
    """Return the store at a path or an address."""
    text = os.fspath(location)
    if re.match(r"postgres(ql)?://", text):
        return PostgresStore(text)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text):
        raise InputError(
            f"{without_password(text)!r} is no place for a ledger; give a file, or postgresql://host/database"
        )
    if not text:
        raise InputError("an empty path was given; name the ledger's file, such as budget.db")
    return SQLiteStore(Path(text))
