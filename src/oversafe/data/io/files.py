"""Tables from and to CSV, Parquet and databases."""

from __future__ import annotations

import gzip
import hashlib
import os
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BufferedRandom
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

from oversafe._core.checks import check_pandas
from oversafe._core.errors import InputError
from oversafe._core.text import did_you_mean, listed
from oversafe.data.cells import mark_by_rows
from oversafe.data.domain_warnings import warn_of_cells
from oversafe.data.io import _csv
from oversafe.data.io._arrow import check_names, reason_of, to_arrow, to_frame
from oversafe.data.io._databases import URL, read_database, write_database
from oversafe.data.schema import DETECTED

if TYPE_CHECKING:
    from oversafe.data.io.declared import OddCells
    from oversafe.data.schema import Schema

_TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
TABLE_ENDINGS = (*_TEXT_ENDINGS, ".parquet")
_ENDINGS = "a .csv, .tsv, .txt (also .gz) or .parquet file"
# Of a file, for its separator.
_LONGEST_LOOK = 1 << 20
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
    source: str | os.PathLike[str] | pa.Table,
    *,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    schema: Schema | None = None,
) -> pd.DataFrame:
    """Return the table in a file, a folder of Parquet files or a database.

    Without a schema what the columns are is found from all of their values, and a guarantee for the table is nominal
    where the source has no types of its own. With one every cell is read by itself, by its declaration alone, so that
    no row decides how another is read.

    Parameters
    ----------
    source : str, path or pyarrow.Table
        A ``.csv``, ``.tsv`` or ``.txt`` file (also with ``.gz``), a ``.parquet`` file, a folder of Parquet
        files with the same columns, or a database URL with the table behind ``#``:
        ``duckdb://path/to/file.ddb#table``, ``postgres://user@host/database#schema.table``,
        ``sqlite://path#table``, ``pyspark://#table``. A table of Arrow is for those who have one and a schema.
    separator : str, optional
        The character between the fields of a CSV file. If left out, the schema's; without a schema it is detected.
    decimal : {".", ","}, optional
        The decimal sign of a CSV file. If left out, the schema's; without a schema a point where commas separate the
        fields, else the one with which more columns are numbers.
    encoding : str, optional
        The encoding of a CSV file. If left out, the schema's; without a schema UTF-8 or UTF-16 by its mark, else UTF-8,
        else Windows-1252.
    schema : Schema, optional
        What its columns are. A cell that cannot be read becomes missing where values may be missing, else the
        column's fallback, and a :class:`MisfitWarning` says how many there are.

    Returns
    -------
    pandas.DataFrame
        Integers, floats, booleans, dates or text. Integers and booleans with missing values have the
        nullable dtypes ``Int64`` and ``boolean``. With a schema, its dtypes. ``attrs`` says how a CSV file was found to
        be written; :meth:`Schema.infer` takes it from there.

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

    A column in which every value is a number with a % sign behind it is read as the numbers without it: ``63,4 %``
    is 63.4. One value without the sign, or with a word behind it, and the column stays text.

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
    options: Any = {"separator": separator, "decimal": decimal, "encoding": encoding}
    if schema is None:
        return _read_untold(source, **options)
    frame, odd = read_declared(source, schema, **options)
    for cells in odd:
        warn_of_cells(cells)
    return frame


@dataclass(frozen=True)
class FileTable:
    """A table and where it was read from.

    Parameters
    ----------
    table : DataFrame
        The table.
    source : str
        Its file, folder or database.
    sha256 : str, optional
        Of the very bytes that the table was read from; a folder or a database has none.
    """

    table: pd.DataFrame
    source: str
    sha256: str | None = None


def read_file(
    source: str | os.PathLike[str],
    *,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> FileTable:
    """Return the table in a source as :func:`read_table` does, and the SHA-256 of the bytes that were read for it."""
    path, content = Path(source), None
    if not (isinstance(source, str) and URL.match(source)) and path.is_file():
        try:
            content = path.read_bytes()
        except OSError as error:
            raise _unreadable(repr(os.fspath(source)), error) from None
    table = _read_untold(source, content=content, separator=separator, decimal=decimal, encoding=encoding)
    digest = None if content is None else hashlib.sha256(content).hexdigest()
    return FileTable(table, os.fspath(source), digest)


def read_declared(
    source: str | os.PathLike[str] | pa.Table,
    schema: Schema,
    *,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    drop: Collection[str] = (),
    gaps: Collection[str] = (),
) -> tuple[pd.DataFrame, list[OddCells]]:
    """Return the table in a source as its schema declares it, and the cells that do not fit, for its holder alone.

    Parameters
    ----------
    source : str or path
        As in :func:`read_table`.
    schema : Schema
        What its columns are, without those to leave out.
    separator, decimal, encoding : str, optional
        In place of the schema's.
    drop : collection of str
        Columns to leave out; those that the table has not are refused.
    gaps : collection of str
        Columns in which what is missing stays missing, whatever is declared.
    """
    from oversafe.data.io.declared import declared_table

    given: dict[str, Any] = {"separator": separator, "decimal": decimal, "encoding": encoding}
    file = replace(schema.file, **{fact: value for fact, value in given.items() if value is not None})
    table, shown = _read(source, file=file)
    check_names(table.column_names, shown)
    check_dropped(drop, table.column_names)
    try:
        return declared_table(table.drop_columns([*set(drop)]), replace(schema, file=file), gaps=gaps)
    except (pa.ArrowException, NotImplementedError) as error:
        raise InputError(
            f"{shown} has columns of types that cannot be used ({reason_of(error)}); export it again"
        ) from None


def read_as_text(
    source: str | os.PathLike[str] | pa.Table,
    *,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> pd.DataFrame:
    """Return the table in a source, of a CSV file or SQLite every cell as text: no row decides how another is read."""
    return _read_untold(source, separator=separator, decimal=decimal, encoding=encoding, as_text=True)


def column_names(source: str | os.PathLike[str], schema: Schema) -> list[str]:
    """Return the names of the columns in a source that is written as a schema says; no row has a part in it."""
    table, shown = _read(source, file=schema.file)
    check_names(table.column_names, shown)
    return list(table.column_names)


def check_dropped(names: Iterable[str], columns: Iterable[str]) -> None:
    """Refuse columns to be left out that the table does not have."""
    known = list(columns)
    if unknown := sorted(set(names).difference(known)):
        raise InputError(
            f"the table has no column {unknown[0]!r} to leave out{did_you_mean(unknown[0], known)}; "
            f"its columns are {listed(known)}"
        )


def _read_untold(source: str | os.PathLike[str] | pa.Table, **options: Any) -> pd.DataFrame:
    table, shown = _read(source, **options)
    check_names(table.column_names, shown)
    if table.num_rows == 0:
        raise InputError(f"the table has no rows: {shown} has column names only; expected at least one row")
    try:
        frame = to_frame(table)
    except _UNREADABLE as error:
        raise InputError(
            f"{shown} has values that cannot be used ({reason_of(error)}); export it again"
        ) from None
    found = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    if "separator" in found:
        facts = {fact: found[fact] for fact in ("encoding", "separator", "decimal")}
        frame.attrs[DETECTED] = {**facts, "domain": "data"}
    if not options.get("as_text") and not _has_types(source):
        mark_by_rows(frame)
    return frame


def _read(
    source: str | os.PathLike[str] | pa.Table, *, content: bytes | None = None, **csv_options: Any
) -> tuple[pa.Table, str]:
    """Return the table in a source, of a file whose content was read already from that, and what messages call it."""
    if isinstance(source, pa.Table):
        return source, "the table"
    if isinstance(source, str) and URL.match(source):
        return read_database(source, as_text="file" in csv_options or csv_options.get("as_text", False))
    if not isinstance(source, str | os.PathLike):
        raise InputError(
            f"the source is a {type(source).__name__}; give a path or a database URL with #table"
        )
    path, shown = Path(source), repr(os.fspath(source))
    try:
        return _read_path(path, shown, content, **csv_options), shown
    except OSError as error:
        raise _unreadable(shown, error) from None


def _unreadable(shown: str, error: OSError) -> InputError:
    return InputError(f"{shown} cannot be read ({error.strerror or error}); check the path and its rights")


def _has_types(source: Any) -> bool:
    """Return whether a source says of each column what its cells are, whatever its rows hold.

    A text file and SQLite do not, nor do the names of a folder's partitions.
    """
    if isinstance(source, pa.Table):
        return True
    if isinstance(source, str) and URL.match(source):
        return not source.lower().startswith("sqlite:")
    return Path(source).is_file() and not is_text_file(source)


def is_text_file(source: str | os.PathLike[str]) -> bool:
    """Return whether a source is a CSV file, by its name."""
    return not (isinstance(source, str) and URL.match(source)) and _ending(Path(source)) in _TEXT_ENDINGS


def write_table(
    table: pd.DataFrame,
    target: str | os.PathLike[str],
    *,
    overwrite: bool = True,
    separator: str | None = None,
    decimal: str | None = None,
) -> None:
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
    separator : str, optional
        The character between the fields of a CSV file; a comma when left out (a tab for ``.tsv``).
    decimal : {".", ","}, optional
        The decimal sign of a CSV file; a point when left out.

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
    spreadsheet would run as a formula (it begins with ``=``, ``+``, ``-`` or ``@``) gets an apostrophe in front,
    which `read_table` takes away. Floats are written with all their digits and times with a zone in UTC. With
    ``separator`` or ``decimal`` a CSV file is meant for a spreadsheet and begins with the mark of UTF-8, without which
    Excel takes it for Windows-1252; a German Excel opens ``separator=";", decimal=","``. Parquet keeps the dtypes, with
    the order of categories.
    """
    if isinstance(target, str) and URL.match(target):
        _check_table(table)
        write_database(table, target, overwrite)
    else:
        write_file(table, target, overwrite=overwrite, separator=separator, decimal=decimal)


def write_file(
    table: pd.DataFrame,
    target: str | os.PathLike[str],
    *,
    overwrite: bool = True,
    separator: str | None = None,
    decimal: str | None = None,
    when_complete: Callable[[], None] = lambda: None,
) -> str:
    """Write a table to a file as :func:`write_table` does, and return the SHA-256 of what was written.

    ``when_complete`` is called just before the file takes its place; what it raises keeps the old one there.
    """
    _check_table(table)
    path, shown = Path(target), repr(os.fspath(target))
    ending = _ending(path)
    if ending not in TABLE_ENDINGS:
        raise InputError(
            f"{shown} does not say the kind of file; expected {_ENDINGS}, or a database URL with #table"
        )
    style = _style(ending, separator, decimal)
    arrow = to_arrow(table) if ending == ".parquet" else None
    try:
        with replacing(path, overwrite=overwrite) as file:
            if arrow is not None:
                pa.parquet.write_table(arrow, file, compression="zstd")
            elif ending.endswith(".gz"):
                with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6) as packed:
                    _csv.render(table, packed, **style)
            else:
                _csv.render(table, file, **style)
            # Through the handle: another file may stand at the path as soon as this one does.
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            when_complete()
        return digest
    except OSError as error:
        raise InputError(
            f"{shown} cannot be written ({error.strerror or error}); check the folder, its rights and space"
        ) from None
    except pa.ArrowException as error:
        raise InputError(
            f"the table cannot be written to {shown} ({reason_of(error)}); convert its columns"
        ) from None


def _check_table(table: Any) -> None:
    check_pandas(table)
    if not isinstance(table, pd.DataFrame):
        raise InputError(f"the table is a {type(table).__name__}; give a pandas DataFrame")
    if table.shape[1] == 0:
        raise InputError("the table has no columns; give at least one")
    check_names(table.columns, "the table")


# Files


def write_text(text: str, path: str | os.PathLike[str], *, private: bool = False) -> None:
    """Write a text file as UTF-8 in one step, for its owner alone or not: it is complete, or it is not there."""
    target = Path(path)
    try:
        with replacing(target, private=private) as file:
            file.write(text.encode())
    except OSError as error:
        raise InputError(
            f"{str(target)!r} cannot be written ({reason_of(error)}); name another place"
        ) from None


def _ending(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return "".join(suffixes[-2:]) if suffixes[-1:] == [".gz"] else "".join(suffixes[-1:])


def _style(ending: str, separator: str | None, decimal: str | None) -> dict[str, Any]:
    """Return how a CSV file is written; what is given for another kind of file is refused."""
    given = separator is not None or decimal is not None
    if given and ending == ".parquet":
        raise InputError(
            "a separator or decimal sign was given for a Parquet file, which has none; name a .csv file"
        )
    _csv.check_options(separator, decimal)
    separator = separator or ("\t" if ending.startswith(".tsv") else ";" if decimal == "," else ",")
    if separator == decimal:
        raise InputError(
            f"separator and decimal sign are both {separator!r}; give separator ';' with decimal ','"
        )
    return {"separator": separator, "decimal": decimal or ".", "mark": given}


def separator_of(source: str | os.PathLike[str]) -> str | None:
    """Return the character between the fields of a CSV file as it is detected, None for other sources."""
    if (isinstance(source, str) and URL.match(source)) or _ending(Path(source)) not in (".csv", ".txt"):
        return None
    with Path(source).open("rb") as file:
        return _csv.separator_of(file.read(_LONGEST_LOOK))


def _read_path(path: Path, shown: str, content: bytes | None, **csv_options: Any) -> pa.Table:
    if content is None and path.is_dir():
        # Without a schema the names of folders may be numbers.
        return _read_folder(path, shown, as_text="file" in csv_options or bool(csv_options.get("as_text")))
    if content is None and not path.exists():
        raise InputError(f"{shown} does not exist; give {_ENDINGS}, or a database URL with #table")
    ending = _ending(path)
    if ending == ".parquet":
        return _read_parquet(path, shown, content)
    if ending in _TEXT_ENDINGS:
        data = path.read_bytes() if content is None else content
        data = _unpack(data, shown) if ending.endswith(".gz") else data
        file = csv_options.pop("file", None)
        return _csv.split(data, shown, file) if file is not None else _csv.parse(data, shown, **csv_options)
    if ending.startswith((".xls", ".ods")):
        raise InputError(
            f"{shown} is {'an Excel' if ending.startswith('.xls') else 'a spreadsheet'} workbook, which is not read; "
            "save its sheet as CSV (in Excel: Save as, CSV UTF-8)"
        )
    remedy = f"give {_ENDINGS}"
    raise InputError(f"{shown} is not a kind of file that can be read; {remedy}")


def _unpack(data: bytes, shown: str) -> bytes:
    if not data:
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{shown} is not a complete gzip file ({reason_of(error)}); pack it again") from None


def _read_parquet(path: Path, shown: str, content: bytes | None) -> pa.Table:
    if (path.stat().st_size if content is None else len(content)) == 0:
        raise InputError(f"{shown} is empty; expected a Parquet file")
    if content is None:
        with path.open("rb"):  # a missing right is told apart from a damaged file
            pass
    try:
        # Not through a data set: the names of the folders above the file are no columns.
        return pa.parquet.ParquetFile(path if content is None else pa.BufferReader(content)).read()
    except _UNREADABLE as error:
        raise InputError(
            f"{shown} is not a complete Parquet file ({reason_of(error)}); write it again or give another"
        ) from None


def parquet_files(folder: Path, shown: str) -> list[Path]:
    """Return the Parquet files in a folder, without what Spark and others keep beside them.

    Of its folders only those that are parts of the table, as in year=2024: others may hold anything.
    """
    files, waiting = [], [folder]
    while waiting:
        for entry in waiting.pop().iterdir():
            if entry.name.startswith((".", "_")):
                continue
            if entry.suffix == ".parquet" and entry.is_file():
                files.append(entry)
            elif "=" in entry.name and entry.is_dir():
                waiting.append(entry)
    if not files:
        other = next(
            (entry.name for entry in sorted(folder.iterdir()) if entry.suffix.lower() == ".csv"), "TABLE.csv"
        )
        raise InputError(
            f"{shown} is a folder without .parquet files; name a file in it, such as {str(folder / other)!r}"
        )
    return sorted(files)


def _partitions(folder: Path, files: Iterable[Path]) -> pa.dataset.Partitioning:
    parts = [part for file in files for part in file.relative_to(folder).parts[:-1] if "=" in part]
    names = dict.fromkeys(part.partition("=")[0] for part in parts)
    return pa.dataset.partitioning(pa.schema([(name, pa.string()) for name in names]), flavor="hive")


def _read_folder(folder: Path, shown: str, *, as_text: bool) -> pa.Table:
    files = parquet_files(folder, shown)
    schemas = []
    for file in files:
        name = f"{str(file.relative_to(folder))!r} in {shown}"
        if file.stat().st_size == 0:
            raise InputError(f"{name} is empty; expected a Parquet file")
        try:
            schemas.append(pa.parquet.read_schema(file))
        except _UNREADABLE as error:
            raise InputError(
                f"{name} is not a complete Parquet file ({reason_of(error)}); write it again"
            ) from None
        if schemas[-1].names != schemas[0].names:
            raise InputError(
                f"{name} has other columns than {str(files[0].relative_to(folder))!r}; "
                "keep only files of one table in the folder"
            )
    check_names(schemas[0].names, shown)
    try:
        data = pa.dataset.dataset(
            [str(file) for file in files],
            format="parquet",
            # Spark and Hive keep columns in the names of folders, as in year=2024/part-0.parquet. What they might be
            # other than text depends on all the names.
            partitioning=_partitions(folder, files) if as_text else "hive",
            partition_base_dir=str(folder),
        )
        schema = pa.unify_schemas([data.schema, *schemas], promote_options="permissive")
        return data.replace_schema(schema).to_table()
    except _UNREADABLE as error:
        raise InputError(
            f"the files in {shown} do not form one table ({reason_of(error)}); write them again"
        ) from None


@contextmanager
def replacing(target: Path, *, overwrite: bool = True, private: bool = False) -> Iterator[BufferedRandom]:
    """Give a private file to write to, which takes the target's place once it is complete, and may stay private."""
    shown = repr(str(target))
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
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if not private:
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
