"""What a table is: its columns, its label, its people; written down as TOML."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import tomli_w

from oversafe._core.checks import check_pandas
from oversafe._core.errors import InputError
from oversafe._core.text import MOST_NAMES, counted, did_you_mean, listed, shorten
from oversafe.data.cells import FileFormat, check_spellings, read_texts
from oversafe.data.column import Column

if TYPE_CHECKING:
    from numpy.typing import NDArray

_VERSION = 1
# Under this name a table that was read from a CSV file keeps how it was found to be written.
DETECTED = "oversafe:file"
_QUOTES = "„“”‟\u201a\u2018\u2019«»"
# Where a value begins, in a list too, or where one ends that began with a straight one.
_CURLY = re.compile(
    rf"""\s*(?:[\w-]+\s*=)?\s*\[?\s*(?:[{_QUOTES}]|(?:"[^"]*",\s*)+[{_QUOTES}]|"[^"]*[{_QUOTES}],?\s*$)"""
)
# Columns in the one line that a schema is shown in.
_SHOWN = 8
_HEADER = """\
# What the columns of a table are. Edit it, then pass it with --schema.
#   kind:    continuous, integer, categorical, ordinal, boolean, datetime, identifier or text
#   domain:  where a column's entry comes from: "public" (say where in `source`), "private estimate", or
#            "data" (read from the table, so a guarantee that rests on it is nominal). Whoever writes "public"
#            vouches for the whole entry: range or categories, dtype, decimals, whether values may be missing.
#   missing: whether a value may be missing. A cell that cannot be read counts as missing, or as the column's
#            `fallback` (when not given, its first category or its minimum) where none may be.
# Columns of kind identifier or text name people: drop them from the table, or declare another kind.
# [file] says how a CSV file is written: encoding, separator, decimal ("." or ","), dates ("day first" or "month
# first") and missing (a list of texts that stand for a missing value). Correct it, and write domain = "public" there
# too.

"""


@dataclass(frozen=True)
class Schema:
    """The columns of a table, its label and the column that names the person.

    Parameters
    ----------
    columns : sequence of Column
        In the table's order.
    label : str, optional
        The column that holds the class.
    person : str, optional
        The column that says which rows belong to one person.
    file : FileFormat, optional
        How the table is written in a CSV file: encoding, separator, decimal sign, order of dates, marks of missing
        values. It is part of what is said beforehand, so that no row decides how the others are read.

    Examples
    --------
    >>> import pandas as pd
    >>> from oversafe.data import Schema
    >>> table = pd.DataFrame({"age": [34, 58, 41], "smoker": [True, False, True]})
    >>> schema = Schema.infer(table)
    >>> [(column.name, column.kind) for column in schema]
    [('age', 'integer'), ('smoker', 'boolean')]
    >>> schema.decode(schema.encode(table)).equals(table)
    True
    """

    columns: tuple[Column, ...]
    label: str | None = None
    person: str | None = None
    file: FileFormat = field(default_factory=FileFormat)
    _index: dict[str, int] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        index = {column.name: i for i, column in enumerate(self.columns)}
        if len(index) != len(self.columns):
            repeated = next(n for i, n in enumerate(self.names) if n in self.names[:i])
            raise InputError(f"two columns are called {repeated!r}; give each column a name of its own")
        object.__setattr__(self, "_index", index)
        for role in ("label", "person"):
            name = getattr(self, role)
            if name is not None and (not isinstance(name, str) or name not in index):
                raise InputError(
                    f"the {role} column {name!r} is not among the columns{did_you_mean(str(name), self.names)}; "
                    f"name one of {listed(self.names)}"
                )

        if self.label is not None and self.label == self.person:
            raise InputError(
                f"column {self.label!r} is declared both label and person; it can be one of them"
            )

    def __repr__(self) -> str:
        # Not to be read back: for that there is the file.
        shown = [f"{shorten(c.name, 40)!r} {c.kind}" for c in self.columns[:_SHOWN]]
        if len(self.columns) > _SHOWN:
            shown.append(f"{len(self.columns) - _SHOWN} more")
        roles = [
            f"; {r} {shorten(n, 40)!r}" for r in ("label", "person") if (n := getattr(self, r)) is not None
        ]
        public = sum(column.domain == "public" for column in self.columns)
        size = counted(len(self.columns), "column")
        return f"<Schema of {size}, {public} public: {', '.join(shown)}{''.join(roles)}>"

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def __getitem__(self, name: str) -> Column:
        try:
            return self.columns[self._index[name]]
        except KeyError:
            raise InputError(
                f"the schema has no column {name!r}{did_you_mean(str(name), self.names)}; it has {listed(self.names)}"
            ) from None

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column.name for column in self.columns)

    @property
    def features(self) -> Schema:
        """The schema without the label and the person column."""
        return self.drop(name for name in (self.label, self.person) if name is not None)

    @property
    def naming_columns(self) -> tuple[str, ...]:
        """Identifiers and free text, without the declared person column."""
        return tuple(c.name for c in self.columns if c.names_people and c.name != self.person)

    @classmethod
    def infer(cls, table: pd.DataFrame, *, label: str | None = None, person: str | None = None) -> Schema:
        """Read a schema off a table; every domain in it is marked as coming from the data."""
        from oversafe.data.infer import infer_column

        check_table(table)
        for role, name in (("label", label), ("person", person)):
            if name is not None and name not in set(map(str, table.columns)):
                columns = [str(c) for c in table.columns]
                raise InputError(
                    f"the table has no column {name!r} to be its {role}{did_you_mean(name, columns)}; "
                    f"its columns are {listed(columns)}"
                )
        found = [
            infer_column(
                str(name), table.iloc[:, i], is_label=str(name) == label, is_person=str(name) == person
            )
            for i, name in enumerate(table.columns)
        ]
        return cls(tuple(found), label=label, person=person, file=FileFormat(**table.attrs.get(DETECTED, {})))

    def check_releasable(self) -> None:
        """Refuse identifiers and free text, which a release must not carry."""
        if naming := self.naming_columns:
            quoted = shlex.quote(" ".join(naming[0].split()))
            raise InputError(
                f"column {naming[0]!r} seems to hold {self[naming[0]].naming}, which a release must not carry; leave "
                f"it out (on the command line with --drop {quoted}), or declare another kind for it in a schema"
            )

    def declare(self, name: str, **changes: Any) -> Schema:
        """Return the schema with some facts of one column replaced, for example its public bounds."""
        known = {f.name for f in fields(Column)} - {"name"}
        if unknown := sorted(set(changes) - known):
            meant = did_you_mean(unknown[0], known)
            raise InputError(
                f"{unknown[0]!r} is not a fact of a column{meant}; use {listed(sorted(known), most=len(known))}"
            )
        column = replace(self[name], **changes)
        return replace(self, columns=tuple(column if c.name == name else c for c in self.columns))

    def drop(self, names: Iterable[str]) -> Schema:
        """Return the schema without the named columns."""
        gone = set(names)
        for name in gone:
            self[name]
        return replace(
            self,
            columns=tuple(c for c in self.columns if c.name not in gone),
            label=None if self.label in gone else self.label,
            person=None if self.person in gone else self.person,
        )

    def conform(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the table with the schema's columns, order and dtypes, or say where it does not fit."""
        from oversafe.data.encode import conform

        return conform(self, table)

    def encode(self, table: pd.DataFrame, *, one_hot: bool = False) -> NDArray[np.float64]:
        """Return the table as a numeric matrix.

        Numbers stay as they are, dates count units of their resolution, categories become their
        position; missing values become NaN. With ``one_hot`` each category has a column of its own and
        each number that may be missing is filled and followed by an indicator, so that no NaN is left.
        """
        from oversafe.data.encode import encode

        return encode(self, table, one_hot=one_hot)

    def decode(self, matrix: Any, *, one_hot: bool = False) -> pd.DataFrame:
        """Return the table of a numeric matrix; integers, decimals, categories and dtypes are restored."""
        from oversafe.data.encode import decode

        return decode(self, np.asarray(matrix, dtype=np.float64), one_hot=one_hot)

    def to_toml(self, path: str | Path | None = None) -> str:
        """Return the schema as TOML, and write it when a path is given."""
        document: dict[str, Any] = {"version": _VERSION}
        for role in ("label", "person"):
            if (name := getattr(self, role)) is not None:
                document[role] = name
        if self.file != FileFormat():
            document["file"] = {
                fact: value for fact, value in asdict(self.file).items() if value not in (None, "")
            }
            if self.file.missing == FileFormat().missing:
                del document["file"]["missing"]
        document["column"] = [_to_plain(column) for column in self.columns]
        text = _HEADER + tomli_w.dumps(document, multiline_strings=False)
        if path is not None:
            from oversafe.data.io.files import write_text

            write_text(text, path)
        return text

    @classmethod
    def from_toml(cls, source: str | Path) -> Schema:
        """Read a schema from a TOML file, or from its text."""
        if isinstance(source, Path) or "\n" not in source:
            path = Path(source)
            try:
                # Notepad and others put a mark in front of UTF-8.
                text = path.read_text(encoding="utf-8-sig")
            except UnicodeDecodeError as error:
                raise InputError(
                    f"the schema file {str(path)!r} is not UTF-8 text; open it in the editor that wrote it, and save "
                    "it with the encoding UTF-8"
                ) from error
            except OSError as error:
                remedy = (
                    "make one with: oversafe schema init TABLE --out FILE"
                    if isinstance(error, FileNotFoundError)
                    else "check the path and its rights"
                )
                raise InputError(
                    f"the schema file {str(path)!r} cannot be read ({_reason(error)}); {remedy}"
                ) from error
            where = f"the schema file {str(path)!r}"
        else:
            text, where = source, "the schema"
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(
                f"{where} is not valid TOML: {error}{_decimal_comma(text) or _curly_quotes(text)}"
            ) from error
        if document.get("version") != _VERSION:
            raise InputError(
                f"{where} has version {document.get('version')!r}; this oversafe reads {_VERSION}"
            )
        if "decimal" in document:
            raise InputError(
                f"{where} has decimal = {document['decimal']!r} before the columns; move it into a section [file]"
            )
        _refuse_unknown(document, {"version", "label", "person", "file", "column"}, f"{where} has")
        file = document.get("file", {})
        if not isinstance(file, dict):
            raise InputError(
                f'{where} has file = {file!r}; write a section: [file], then separator = ";" and so on'
            )
        _refuse_unknown(file, {f.name for f in fields(FileFormat)}, f"{where} has under [file]")
        entries = document.get("column")
        if not isinstance(entries, list) or not entries:
            raise InputError(f"{where} has no [[column]] entries; it needs one per column")
        return cls(
            tuple(_from_plain(entry, where) for entry in entries),
            label=document.get("label"),
            person=document.get("person"),
            file=FileFormat(**file),
        )


def check_given_schema(schema: Any) -> None:
    """Refuse what is neither a schema nor None."""
    if schema is not None and not isinstance(schema, Schema):
        raise InputError(
            f"schema = a {type(schema).__name__} was given; give a Schema, such as Schema.from_toml('schema.toml')"
        )


def check_table(table: pd.DataFrame, least: int = 1) -> None:
    """Refuse what is no table: nothing in it, fewer rows than there must be, or two columns of one name."""
    check_pandas(table)
    if not isinstance(table, pd.DataFrame):
        raise InputError(f"a {type(table).__name__} was given as a table; give a pandas DataFrame")
    if table.shape[1] == 0:
        raise InputError("the table has no columns; give one with at least one column")
    if len(table) < least:
        raise InputError("the table has no rows; give one with at least one row")
    names = [str(name) for name in table.columns]
    if len(set(names)) < len(names):
        repeated = next(n for i, n in enumerate(names) if n in names[:i])
        raise InputError(f"two columns are called {repeated!r}; give each column a name of its own")


def check_columns(schema: Schema, names: Iterable[str]) -> None:
    """Refuse a table that lacks a declared column, or has one that is not declared."""
    names = list(names)
    known = set(names)
    if absent := [name for name in schema.names if name not in known]:
        them = "it" if len(absent) == 1 else "them"
        raise InputError(
            f"the table has no {_columns(absent, names)}, which the schema declares; add {them}, or remove {them} from "
            "the schema"
        )
    if unknown := [name for name in names if name not in schema]:
        a, them = ("a ", "it") if len(unknown) == 1 else ("", "them")
        raise InputError(
            f"the table has {a}{_columns(unknown, schema.names)} that the schema does not declare; drop {them} (--drop "
            f"on the command line), or add {them} to the schema"
        )


def texts_read(table: pd.DataFrame, labels: Any, schema: Schema | None) -> tuple[pd.DataFrame, Any]:
    """Return a table and its labels with their texts read as in a file of the schema's format, each by itself."""
    if schema is None:
        return table, labels
    changed = {}
    for column in schema:
        if column.name in table.columns:
            own = table[column.name]
            if (read := read_texts(own, column, schema.file)) is not own:
                changed[column.name] = read
    if isinstance(labels, pd.Series) and schema.label is not None:
        labels = read_texts(labels, schema[schema.label], schema.file)
    return (table.assign(**changed) if changed else table), labels


def features_of(table: pd.DataFrame, schema: Schema | None) -> Schema:
    """Return the feature columns' schema, inferred unless it is given; naming columns are refused."""
    if schema is not None and schema.person in table.columns:
        raise InputError(
            f"column {schema.person!r} says whose row it is, and a release must not carry it; drop it first"
        )
    schema = Schema.infer(table) if schema is None else schema.features
    schema.check_releasable()
    for column in schema:
        low, high = column.bounds if column.kind == "continuous" and column.bounds is not None else (0.0, 0.0)
        if high / 2 - low / 2 > sys.float_info.max / 2:
            raise InputError(
                f"column {column.name!r} ranges from {low:g} to {high:g}, which is more than a float can hold; "
                "rescale it"
            )
    check_columns(schema, table.columns)
    for column in schema:
        check_spellings(column, table[column.name])
    return schema


def _columns(names: Sequence[str], others: Iterable[str]) -> str:
    """Return all the names, one of them with a name that was perhaps meant."""
    if len(names) == 1:
        return f"column {names[0]!r}{did_you_mean(names[0], others)}"
    return f"columns {listed(names, most=MOST_NAMES)}"


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error)


def _decimal_comma(text: str) -> str:
    """Return what to do about the first number with a decimal comma, nothing where there is none."""
    for number, line in enumerate(text.splitlines(), 1):
        if match := re.match(r"\s*(\w+)\s*=\s*([+-]?\d+),(\d+)\s*(?:#.*)?$", line):
            return (
                f"; line {number} has a decimal comma: write {match[1]} = {match[2]}.{match[3]}, with a point"
            )
    return ""


def _curly_quotes(text: str) -> str:
    """Return what to do about the first value in quotes as a word processor sets them, nothing where there is none."""
    for number, line in enumerate(text.splitlines(), 1):
        if match := _CURLY.match(line):
            quote = next(mark for mark in match[0][::-1] if mark in _QUOTES)
            return f'; line {number} has the quotation mark {quote}: write straight ones, as in source = "a textbook"'
    return ""


def _to_plain(column: Column) -> dict[str, Any]:
    plain: dict[str, Any] = {"name": column.name, "kind": column.kind, "dtype": column.dtype}
    if column.missing:
        plain["missing"] = True
    for fact in ("decimals", "resolution"):
        if (value := getattr(column, fact)) is not None:
            plain[fact] = value
    if column.bounds is not None:
        low, high = column.bounds
        if column.kind == "datetime":
            low, high = low.isoformat(), high.isoformat()
        plain["minimum"], plain["maximum"] = low, high
    if column.categories is not None:
        plain["categories"] = [v.isoformat() if isinstance(v, date) else v for v in column.categories]
    if column.fallback is not None:
        plain["fallback"] = (
            column.fallback.isoformat() if isinstance(column.fallback, date) else column.fallback
        )
    plain["domain"] = column.domain
    if column.source:
        plain["source"] = column.source
    return plain


def _refuse_unknown(facts: dict[str, Any], known: set[str], who: str) -> None:
    """Refuse a fact that would be passed over: a person column of which nobody takes notice, say."""
    if unknown := sorted(set(facts) - known):
        meant = did_you_mean(unknown[0], known)
        raise InputError(
            f"{who} an unknown fact {unknown[0]!r}{meant}; {'correct it, or remove it' if meant else 'remove it'}"
        )


def _from_plain(entry: Any, where: str) -> Column:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise InputError(f"{where} has a [[column]] without a name; give each one")
    facts = dict(entry)
    name = facts["name"]
    # Before what is missing: it may be there, misspelt.
    known = {f.name for f in fields(Column)} - {"bounds"} | {"minimum", "maximum"}
    if "bounds" in facts:
        raise InputError(f"{where} gives column {name!r} bounds; write minimum and maximum")
    _refuse_unknown(facts, known, f"{where} gives column {name!r}")
    bounds = facts.pop("minimum", None), facts.pop("maximum", None)
    if (bounds[0] is None) != (bounds[1] is None):
        raise InputError(f"{where} gives column {name!r} only one of minimum and maximum; give both or none")
    if bounds[0] is not None:
        facts["bounds"] = bounds
    if "categories" in facts:
        if not isinstance(facts["categories"], list):
            raise InputError(
                f'{where} gives column {name!r} categories that are not a list; write ["a", "b"]'
            )
        facts["categories"] = tuple(facts["categories"])
    for required in ("kind", "dtype"):
        if required not in facts:
            raise InputError(f"{where} gives column {name!r} no {required}; add it")
    return Column(**facts)
