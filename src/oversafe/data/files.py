"""Tables from and to CSV, Parquet and databases."""

import difflib
import gzip
import os
import re
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import unquote, urlsplit

import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

from oversafe.data import _csv
from oversafe.errors import InputError, MissingExtraError, import_extra

_TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
_ENDINGS = "a .csv, .tsv, .txt (also .gz) or .parquet file"
# The module that Ibis needs for each kind of database, beyond what oversafe itself installs.
_DRIVERS = {
    "duckdb": None,
    "postgres": "psycopg",
    "postgresql": "psycopg",
    "sqlite": "regex",
    "pyspark": "pyspark",
}
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")

# What Parquet itself keeps of a category column depends on its type and size, so the levels are stored too.
_LEVELS = b"oversafe:categories"
_ORDERED = b"oversafe:ordered"

_NULLABLE = {
    pa.bool_(): pd.BooleanDtype(),
    pa.int8(): pd.Int8Dtype(),
    pa.int16(): pd.Int16Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.uint8(): pd.UInt8Dtype(),
    pa.uint16(): pd.UInt16Dtype(),
    pa.uint32(): pd.UInt32Dtype(),
    pa.uint64(): pd.UInt64Dtype(),
}
# What damaged files make Arrow and pandas raise.
_UNREADABLE = (
    pa.ArrowException,
    OSError,
    ValueError,
    TypeError,
    LookupError,
    OverflowError,
    NotImplementedError,
)


def read_table(
    source: str | os.PathLike[str],
    *,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> pd.DataFrame:
    """Return the table in a file, a folder of Parquet files or a database.

    Parameters
    ----------
    source : str or path
        A ``.csv``, ``.tsv`` or ``.txt`` file (also with ``.gz``), a ``.parquet`` file, a folder of Parquet
        files with the same columns, or a database URL with the table behind ``#``:
        ``duckdb://path/to/file.ddb#table``, ``postgres://user@host/database#schema.table``,
        ``sqlite://path#table``, ``pyspark://#table``.
    separator : str, optional
        The character between the fields of a CSV file; detected if left out.
    decimal : {".", ","}, optional
        The decimal sign of a CSV file. If left out, it is found for each column; a comma is considered only
        where it does not separate the fields.
    encoding : str, optional
        The encoding of a CSV file. If left out: UTF-8 or UTF-16 by its mark, else UTF-8, else Windows-1252.

    Returns
    -------
    pandas.DataFrame
        Integers, floats, booleans, dates or text. Integers and booleans with missing values have the
        nullable dtypes ``Int64`` and ``boolean``.

    Raises
    ------
    InputError
        If the source cannot be read as a table with named columns and at least one row.
    MissingExtraError
        If the driver for the database is not installed.

    See Also
    --------
    write_table : The way back.

    Notes
    -----
    In a CSV file, nothing, ``NA``, ``N/A``, ``#N/A``, ``NaN``, ``nan``, ``NULL`` and ``null`` are missing
    values in columns of numbers, booleans and dates. In text only an empty field without quotes is missing,
    so that the country code NA survives. A column with leading zeros, or with integers beyond 64 bits, stays
    text. In a file with a single column an empty line is a missing value.

    A CSV file does not say what is text: text that looks like numbers throughout is read as numbers. Declare
    such columns in the schema, or use Parquet.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> file = Path(mkdtemp()) / "patients.csv"
    >>> _ = file.write_bytes("Größe;Gewicht\\n1,80;75\\n1,65;\\n".encode("cp1252"))
    >>> read_table(file)
       Größe  Gewicht
    0   1.80       75
    1   1.65     <NA>
    """
    if isinstance(source, str) and _URL.match(source):
        table, shown = _read_database(source)
    elif isinstance(source, str | os.PathLike):
        path, shown = Path(source), repr(os.fspath(source))
        try:
            table = _read_path(path, shown, separator=separator, decimal=decimal, encoding=encoding)
        except OSError as error:
            raise InputError(
                f"{shown} cannot be read ({error.strerror or error}); check the path and its rights"
            ) from None
    else:
        raise InputError(
            f"the source is a {type(source).__name__}; give a path or a database URL with #table"
        )
    _check_names(table.column_names, shown)
    if table.num_rows == 0:
        raise InputError(f"the table has no rows: {shown} has column names only; expected at least one row")
    try:
        return _to_frame(table)
    except _UNREADABLE as error:
        raise InputError(
            f"{shown} has values that cannot be used ({_reason(error)}); export it again"
        ) from None


def write_table(table: pd.DataFrame, target: str | os.PathLike[str], *, overwrite: bool = True) -> None:
    """Write a table to a file or a database, all of it or nothing.

    Parameters
    ----------
    table : pandas.DataFrame
        The table; its index is not written.
    target : str or path
        A ``.csv``, ``.tsv``, ``.txt`` (also with ``.gz``) or ``.parquet`` file in a folder that exists, or a
        database URL with the table behind ``#``, as in `read_table`.
    overwrite : bool, default=True
        Whether to replace what is there; if not, an existing target is an error.

    Raises
    ------
    InputError
        If the table or the target cannot be written.
    MissingExtraError
        If the driver for the database is not installed.

    See Also
    --------
    read_table : The way back.

    Notes
    -----
    A file is written under another name that only its owner can read, then put in place. CSV is UTF-8 with
    commas (tabs for ``.tsv``); text is quoted, which tells empty text from a missing value, and text that a
    spreadsheet would run as a formula gets an apostrophe in front, which `read_table` takes away. Floats are
    written with all their digits and times with a zone in UTC. Parquet keeps the dtypes, with the order of
    categories.
    """
    if not isinstance(table, pd.DataFrame):
        raise InputError(f"the table is a {type(table).__name__}; give a pandas DataFrame")
    if table.shape[1] == 0:
        raise InputError("the table has no columns; give at least one")
    _check_names(table.columns, "the table")
    if isinstance(target, str) and _URL.match(target):
        _write_database(table, target, overwrite)
        return
    path, shown = Path(target), repr(os.fspath(target))
    ending = _ending(path)
    if ending not in (*_TEXT_ENDINGS, ".parquet"):
        raise InputError(
            f"{shown} does not say the kind of file; expected {_ENDINGS}, or a database URL with #table"
        )
    arrow = _to_arrow(table) if ending == ".parquet" else None
    try:
        with _replacing(path, shown, overwrite) as file:
            if arrow is not None:
                pa.parquet.write_table(arrow, file, compression="zstd")
            elif ending.endswith(".gz"):
                with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6) as packed:
                    _csv.render(table, packed, separator=_separator(ending))
            else:
                _csv.render(table, file, separator=_separator(ending))
    except OSError as error:
        raise InputError(
            f"{shown} cannot be written ({error.strerror or error}); check the folder, its rights and space"
        ) from None
    except pa.ArrowException as error:
        raise InputError(
            f"the table cannot be written to {shown} ({_reason(error)}); convert its columns"
        ) from None


# Files


def write_text(text: str, path: str | os.PathLike[str]) -> None:
    """Write a text file as UTF-8 in one step: it is complete, or it is not there."""
    target = Path(path)
    try:
        with _replacing(target, repr(str(target)), True) as file:
            file.write(text.encode())
    except OSError as error:
        raise InputError(
            f"{str(target)!r} cannot be written ({_reason(error)}); name another place"
        ) from None


def _ending(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])


def _separator(ending: str) -> str:
    return "\t" if ending.startswith(".tsv") else ","


def _read_path(path: Path, shown: str, **csv_options: str | None) -> pa.Table:
    if path.is_dir():
        return _read_folder(path, shown)
    if not path.exists():
        raise InputError(f"{shown} does not exist; give {_ENDINGS}, or a database URL with #table")
    ending = _ending(path)
    if ending == ".parquet":
        return _read_parquet(path, shown)
    if ending in _TEXT_ENDINGS:
        data = path.read_bytes()
        return _csv.parse(_unpack(data, shown) if ending.endswith(".gz") else data, shown, **csv_options)
    remedy = "export it as CSV" if ending.startswith((".xls", ".ods")) else f"give {_ENDINGS}"
    raise InputError(f"{shown} is not a kind of file that can be read; {remedy}")


def _unpack(data: bytes, shown: str) -> bytes:
    if not data:
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{shown} is not a complete gzip file ({_reason(error)}); pack it again") from None


def _read_parquet(path: Path, shown: str) -> pa.Table:
    if path.stat().st_size == 0:
        raise InputError(f"{shown} is empty; expected a Parquet file")
    with path.open("rb"):  # a missing right is told apart from a damaged file
        pass
    try:
        # Not through a data set: the names of the folders above the file are no columns.
        return pa.parquet.ParquetFile(path).read()
    except _UNREADABLE as error:
        raise InputError(
            f"{shown} is not a complete Parquet file ({_reason(error)}); write it again or give another"
        ) from None


def _read_folder(folder: Path, shown: str) -> pa.Table:
    files = sorted(
        file
        for file in folder.rglob("*.parquet")
        if file.is_file() and not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    )
    if not files:
        raise InputError(f"the folder {shown} has no .parquet files; give a folder of them or a single file")
    schemas = []
    for file in files:
        name = f"{str(file.relative_to(folder))!r} in {shown}"
        if file.stat().st_size == 0:
            raise InputError(f"{name} is empty; expected a Parquet file")
        try:
            schemas.append(pa.parquet.read_schema(file))
        except _UNREADABLE as error:
            raise InputError(
                f"{name} is not a complete Parquet file ({_reason(error)}); write it again"
            ) from None
        if schemas[-1].names != schemas[0].names:
            raise InputError(
                f"{name} has other columns than {str(files[0].relative_to(folder))!r}; "
                "keep only files of one table in the folder"
            )
    _check_names(schemas[0].names, shown)
    try:
        data = pa.dataset.dataset(
            [str(file) for file in files],
            format="parquet",
            # Spark and Hive keep columns in the names of folders, as in year=2024/part-0.parquet.
            partitioning="hive",
            partition_base_dir=str(folder),
        )
        schema = pa.unify_schemas([data.schema, *schemas], promote_options="permissive")
        return data.replace_schema(schema).to_table()
    except _UNREADABLE as error:
        raise InputError(
            f"the files in {shown} do not form one table ({_reason(error)}); write them again"
        ) from None


@contextmanager
def _replacing(target: Path, shown: str, overwrite: bool) -> Iterator[BinaryIO]:
    """Give a private file to write to, which takes the target's place once it is complete."""
    if not target.parent.is_dir():
        raise InputError(f"the folder of {shown} does not exist; create it first")
    if target.is_dir():
        raise InputError(f"{shown} is a folder; give the name of a file")
    exists = InputError(f"{shown} exists already; give another name or allow it to be overwritten")
    if not overwrite and target.exists():
        raise exists
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".oversafe-", suffix=".part")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        if overwrite:
            temporary.replace(target)
        else:
            # A link fails if another process has created the target meanwhile; a rename would destroy it.
            try:
                target.hardlink_to(temporary)
            except FileExistsError:
                raise exists from None
            except OSError:  # some file systems have no links
                temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    # It can only be read by setting it; the strict value harms no file that another thread creates meanwhile.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


# Databases


class _Place(NamedTuple):
    scheme: str
    address: str
    schema: str | None
    table: str
    shown: str


def _read_database(url: str) -> tuple[pa.Table, str]:
    place = _place(url)
    with _connection(place, read_only=True) as connection:
        try:
            expression = connection.table(place.table, database=place.schema)
        except Exception:
            _refuse_unknown_table(connection, place)
            raise
        return expression.to_pyarrow(), place.shown


def _write_database(table: pd.DataFrame, url: str, overwrite: bool) -> None:
    place = _place(url)
    data = _to_arrow(_plain(table)).replace_schema_metadata()
    with _connection(place, read_only=False) as connection:
        if not overwrite and place.table in _table_names(connection, place):
            raise InputError(f"{place.shown} exists already; give another name or allow it to be overwritten")
        with _transaction(connection, place):
            connection.create_table(place.table, data, database=place.schema, overwrite=overwrite)


def _place(url: str) -> _Place:
    address, _, fragment = url.rpartition("#")
    shown = repr(_without_secrets(url))
    if not address or not fragment:
        raise InputError(f"{shown} does not name a table; add it behind #, as in duckdb://file.ddb#table")
    scheme = address.partition("://")[0].lower()
    if scheme not in _DRIVERS:
        raise InputError(f"{shown} is not a database that can be used; expected one of {', '.join(_DRIVERS)}")
    schema, _, table = unquote(fragment).rpartition(".")
    return _Place(scheme, address, schema or None, table, shown)


@contextmanager
def _connection(place: _Place, *, read_only: bool) -> Iterator[Any]:
    """Connect through Ibis, and turn whatever a driver raises into one sentence without the password."""
    if driver := _DRIVERS[place.scheme]:
        import_extra(driver, "engines", f"{'reading from' if read_only else 'writing to'} {place.scheme}://")
    new_file = connection = None
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
    except (InputError, MissingExtraError):
        raise
    except Exception as error:
        # Without the original, whose text may have the password.
        raise InputError(
            f"{place.shown} cannot be {'read' if read_only else 'written'} "
            f"({_without_secrets(_reason(error), place.address)}); check the address, rights and server"
        ) from None
    finally:
        # A Spark session is shared by the whole process and may be the caller's.
        if connection is not None and place.scheme != "pyspark":
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


def _without_secrets(text: str, address: str = "") -> str:
    if found := re.search(r"://[^:/?@]*:(.*)@", address):
        for secret in (found[1], unquote(found[1])):
            text = text.replace(secret, "***") if secret else text
    text = re.sub(r"(://[^:/?@]*):.*@", r"\1:***@", text)
    return re.sub(r"(?i)([?&][^=&]*(?:pass|secret|token|key)[^=&]*=)[^&#]*", r"\1***", text)


# Between Arrow and pandas


def _check_names(names: Iterable[Any], shown: str) -> None:
    counts = Counter(str(name) for name in names)
    for position, name in enumerate(names, start=1):
        if not str(name).strip():
            raise InputError(
                f"column {position} of {shown} has no name; name it, or remove it if it only counts the rows"
            )
    if repeated := [repr(name) for name, count in counts.items() if count > 1]:
        raise InputError(
            f"{shown} has more than one column named {', '.join(repeated[:5])}; rename all but one"
        )


def _to_frame(table: pa.Table) -> pd.DataFrame:
    levels = {}
    for i, field in enumerate(table.schema):
        if field.metadata and _LEVELS in field.metadata:
            levels[field.name] = field.metadata
        if pa.types.is_decimal(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(pa.float64()))
    frame = table.unify_dictionaries().to_pandas(date_as_object=False)
    if not isinstance(frame.index, pd.RangeIndex):
        named = all(name is not None for name in frame.index.names)
        frame = frame.reset_index(drop=not named)
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name not in frame:
            continue
        if column.null_count and column.type in _NULLABLE and frame[name].dtype != _NULLABLE[column.type]:
            frame[name] = column.to_pandas(types_mapper=_NULLABLE.get)
        if name in levels:
            frame[name] = _categorical(frame[name], levels[name])
    return frame


def _categorical(values: pd.Series, metadata: dict[bytes, bytes]) -> pd.Series:
    with pa.ipc.open_stream(metadata[_LEVELS]) as stream:
        levels = stream.read_all().column(0).to_pandas()
    # Another file of the same folder may have more.
    more = pd.Series(values.dropna().unique()).astype(levels.dtype)
    levels = pd.concat([levels, more[~more.isin(levels)]])
    return values.astype(pd.CategoricalDtype(levels, ordered=metadata[_ORDERED] == b"1"))


def _to_arrow(frame: pd.DataFrame) -> pa.Table:
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        for name in frame.columns:
            try:
                pa.array(frame[name], from_pandas=True)
            except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
                raise InputError(
                    f"column {str(name)!r} cannot be stored ({_reason(error)}); make it all text"
                ) from None
        raise
    schema = table.schema
    for i, name in enumerate(frame.columns):
        dtype = frame[name].dtype
        if isinstance(dtype, pd.CategoricalDtype):
            levels = table.field(i).type.value_type
            stored = pa.table({"": pa.array(dtype.categories, levels)})
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, stored.schema) as stream:
                stream.write_table(stored)
            metadata = {_LEVELS: sink.getvalue().to_pybytes(), _ORDERED: b"1" if dtype.ordered else b"0"}
            schema = schema.set(i, schema.field(i).with_metadata(metadata))
    return pa.Table.from_arrays(table.columns, schema=schema)


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with categories as the values they stand for, which every database can store."""
    plain = frame.copy(deep=False)
    plain.columns = [str(name) for name in frame.columns]
    for name in plain.columns:
        if isinstance(plain[name].dtype, pd.CategoricalDtype):
            dtype = plain[name].cat.categories.dtype
            dtype = _NULLABLE.get(_arrow_type(dtype), dtype) if plain[name].isna().any() else dtype
            plain[name] = plain[name].astype(dtype)
        elif plain[name].isna().all():
            plain[name] = plain[name].astype(float)
    return plain


def _arrow_type(dtype: Any) -> pa.DataType | None:
    with suppress(pa.ArrowException, NotImplementedError, TypeError):
        return pa.from_numpy_dtype(dtype)
    return None


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split("\n")[0].split())
    return text.rstrip(".;:") or type(error).__name__
