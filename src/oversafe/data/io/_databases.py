"""Tables in databases, through Ibis."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pandas as pd
import pyarrow as pa

from oversafe._core.errors import InputError, MissingExtraError, import_extra
from oversafe._core.text import without_password
from oversafe.data.io._arrow import plain_columns, reason_of, to_arrow

URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")

# The module that Ibis needs for each kind of database, beyond what oversafe itself installs.
_DRIVERS = {
    "duckdb": None,
    "postgres": "psycopg",
    "postgresql": "psycopg",
    "sqlite": "regex",
    "pyspark": "pyspark",
}


class _Place(NamedTuple):
    scheme: str
    address: str
    schema: str | None
    table: str
    shown: str


def read_database(url: str, *, as_text: bool = False) -> tuple[pa.Table, str]:
    """Return the table behind an address, and the address without its secrets.

    With ``as_text`` the cells of SQLite, each of which has a type of its own, are texts.
    """
    place = _place(url)
    with _connection(place, read_only=True) as connection:
        try:
            expression = connection.table(place.table, database=place.schema)
        except Exception:
            _refuse_unknown_table(connection, place)
            raise
        if as_text and place.scheme == "sqlite":
            return _sqlite_texts(connection.con, place.table, list(expression.columns)), place.shown
        return expression.to_pyarrow(), place.shown


def _sqlite_texts(connection: Any, table: str, names: list[str]) -> pa.Table:
    quoted = ['"' + name.replace('"', '""') + '"' for name in (table, *names)]
    cells = ", ".join(
        f"CASE typeof({name}) WHEN 'blob' THEN NULL WHEN 'real' THEN printf('%!.17g', {name}) "
        f"ELSE CAST({name} AS TEXT) END"
        for name in quoted[1:]
    )
    connection.text_factory = lambda raw: raw.decode(errors="replace")
    rows = connection.execute(f"SELECT {cells} FROM {quoted[0]}").fetchall()
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return pa.table([pa.array(own, pa.string()) for own in columns], names=names)


def open_database(url: str) -> Any:
    """Return the Ibis table behind an address; its connection stays open as long as the table is used."""
    place = _place(url)
    with _connection(place, read_only=True, keep=True) as connection:
        try:
            return connection.table(place.table, database=place.schema)
        except Exception:
            _refuse_unknown_table(connection, place)
            raise


def write_database(table: pd.DataFrame, url: str, overwrite: bool) -> None:
    """Write a table to an address, all of it or nothing."""
    place = _place(url)
    data = to_arrow(plain_columns(table)).replace_schema_metadata()
    with _connection(place, read_only=False) as connection:
        if not overwrite and place.table in _table_names(connection, place):
            raise InputError(f"{place.shown} exists already; give another name or allow it to be overwritten")
        with _transaction(connection, place):
            connection.create_table(place.table, data, database=place.schema, overwrite=overwrite)


def _place(url: str) -> _Place:
    address, _, fragment = url.rpartition("#")
    shown = repr(without_password(url))
    if not address or not fragment:
        raise InputError(f"{shown} does not name a table; add it behind #, as in duckdb://file.ddb#table")
    scheme = address.partition("://")[0].lower()
    if scheme not in _DRIVERS:
        raise InputError(f"{shown} is not a database that can be used; expected one of {', '.join(_DRIVERS)}")
    schema, _, table = unquote(fragment).rpartition(".")
    return _Place(scheme, address, schema or None, table, shown)


@contextmanager
def _connection(place: _Place, *, read_only: bool, keep: bool = False) -> Iterator[Any]:
    """Connect through Ibis, and turn whatever a driver raises into one sentence without the password."""
    if driver := _DRIVERS[place.scheme]:
        import_extra(driver, "engines", f"{'reading from' if read_only else 'writing to'} {place.scheme}://")
    new_file = connection = None
    failed = True
    try:
        import ibis

        if place.scheme in ("duckdb", "sqlite"):
            new_file = _check_database_file(place, read_only)
        options = {"read_only": True} if read_only and place.scheme == "duckdb" else {}
        try:
            connection = ibis.connect(place.address, **options)
        except Exception as error:
            # DuckDB wants one mode per process, and this process may have the file open for writing.
            if not options or "different configuration" not in str(error):
                raise
            connection = ibis.connect(place.address)
        yield connection
        new_file = None
        failed = False
    except (InputError, MissingExtraError):
        raise
    except Exception as error:
        # Without the original, whose text may have the password.
        raise InputError(
            f"{place.shown} cannot be {'read' if read_only else 'written'} "
            f"({_without_secrets(reason_of(error), place.address)}); check the address, rights and server"
        ) from None
    finally:
        # A Spark session is shared by the whole process and may be the caller's.
        if connection is not None and place.scheme != "pyspark" and (failed or not keep):
            with suppress(Exception):
                connection.disconnect()
        if new_file is not None:
            new_file.unlink(missing_ok=True)


def _check_database_file(place: _Place, read_only: bool) -> Path | None:
    """Refuse a file that is not there, since connecting would create it; return the one to be created."""
    parts = urlsplit(place.address)
    file = Path(parts.netloc, parts.path[1:]) if parts.netloc else Path(parts.path)
    if str(file) in (".", ":memory:"):
        raise InputError(f"{place.shown} names no file; expected {place.scheme}://path/to/file#table")
    if file.exists():
        return None
    if read_only:
        raise InputError(f"the database file of {place.shown} does not exist; check the path")
    if not file.absolute().parent.is_dir():
        raise InputError(f"the folder of {place.shown} does not exist; create it first")
    return file


def _refuse_unknown_table(connection: Any, place: _Place) -> None:
    names = _table_names(connection, place)
    if place.table not in names:
        near = difflib.get_close_matches(place.table, names, n=3) or sorted(names)[:10]
        found = "it has " + ", ".join(repr(name) for name in near) if near else "it has no tables"
        raise InputError(f"{place.shown} has no table {place.table!r}; {found}")


def _table_names(connection: Any, place: _Place) -> list[str]:
    if place.scheme != "duckdb":
        return connection.list_tables(database=place.schema)
    # Ibis asks for it in a way that DuckDB 2 no longer answers.
    schema = (place.schema or "main").rpartition(".")[2]
    query = "SELECT table_name FROM information_schema.tables WHERE table_schema = ?"
    return [name for (name,) in connection.con.execute(query, [schema]).fetchall()]


@contextmanager
def _transaction(connection: Any, place: _Place) -> Iterator[None]:
    # For the other databases Ibis does so itself, where they have transactions.
    if place.scheme != "duckdb":
        yield
        return
    connection.raw_sql("BEGIN TRANSACTION")
    try:
        yield
    except BaseException:
        connection.raw_sql("ROLLBACK")
        raise
    connection.raw_sql("COMMIT")


def _without_secrets(text: str, address: str) -> str:
    if found := re.search(r"://[^:/?@]*:(.*)@", address):
        for secret in (found[1], unquote(found[1])):
            text = text.replace(secret, "***") if secret else text
    return without_password(text)
