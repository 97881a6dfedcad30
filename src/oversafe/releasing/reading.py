"""The table that a release is made of: read into memory, or left where it lies."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from oversafe._core.errors import InputError
from oversafe._core.text import shorten
from oversafe.data import Schema, read_table
from oversafe.data.domain_warnings import column_misfits
from oversafe.data.encode import conform
from oversafe.data.infer import doubts
from oversafe.data.io.files import check_dropped, is_text_file, read_as_text, separator_of
from oversafe.data.io.parse_warnings import misread
from oversafe.data.labels import check_labels
from oversafe.data.schema import check_columns, check_table, texts_read
from oversafe.releasing.notes import Notes
from oversafe.releasing.tables import labelled, places, read_by_schema


@dataclass(frozen=True)
class Material:
    """A table to be released, and how it is read.

    Parameters
    ----------
    source : str or DataFrame
        A file, a folder or a database address; or the table itself.
    label : str
        The column that holds the class.
    schema : Schema, optional
        What its columns are, without those to leave out.
    drop : collection of str
        Columns to leave out.
    drop_unlabelled : bool
        Whether rows without a label are left out.
    strict : bool
        Whether cells that do not fit the schema are refused.
    estimated : bool
        Whether the method estimates domains privately, and pays for it.
    written : mapping
        How a CSV file is written: "separator", "decimal" and "encoding".
    """

    source: str | pd.DataFrame
    label: str
    schema: Schema | None = None
    drop: Collection[str] = ()
    drop_unlabelled: bool = False
    strict: bool = False
    estimated: bool = False
    written: Mapping[str, Any] = field(default_factory=dict)

    @property
    def path(self) -> str:
        """The source as a text, empty of a DataFrame."""
        return self.source if isinstance(self.source, str) else ""

    def in_place(self, protector: Any) -> Any | None:
        """Return the Ibis table of a folder or a database that a method can learn without loading it, or None."""
        # In SQLite each cell has a type of its own, and is read by itself.
        in_place = ("://" in self.path and not self.path.startswith("sqlite:")) or (
            self.path != "" and Path(self.path).is_dir()
        )
        if not in_place or not hasattr(protector, "fit_source") or protector.schema is None:
            return None
        if (protector.domains, protector.binning, protector.rows_per_person) != ("data", "uniform", None):
            # Estimated, and limited by person, in a table in memory.
            return None
        from oversafe.data.io._sources import open_table

        return open_table(self.path)

    def opened(self, large: Any, notes: Notes) -> Any:
        """Return an Ibis table without the columns to leave out."""
        if self.drop_unlabelled or self.strict:
            raise InputError(
                f"--{'strict' if self.strict else 'drop-unlabelled'} is for tables that fit into memory; leave the "
                "rows out beforehand"
            )
        check_dropped(self.drop, large.columns)
        assert self.schema is not None
        notes.say(*doubts(self.schema))
        return large.drop(*self.drop)

    def read(self, notes: Notes) -> pd.DataFrame:
        """Return the table as a method gets it, and tell its holder what is odd about it.

        What is told here is told to the holder: with a public schema nothing that a row holds ends the call.
        """
        if self.schema is not None:
            described, frame = self.schema, self._by_schema(notes)
        elif self.estimated:
            described, frame = self._undescribed(notes)
        else:
            described, frame = self._inferred(notes)
        if not self.estimated and described[self.label].domain != "public":
            check_labels(frame[self.label])
        if isinstance(self.source, str) or (self.schema is None and not self.estimated):
            notes.say(*column_misfits(described, frame), *doubts(described, frame))
        else:
            notes.say(*_of_objects(described, frame))
        return frame

    def _by_schema(self, notes: Notes) -> pd.DataFrame:
        """Return the table as it is declared."""
        assert self.schema is not None
        if isinstance(self.source, str):
            frame, said, place = read_by_schema(
                self.source,
                self.schema,
                drop=self.drop,
                drop_unlabelled=self.drop_unlabelled,
                strict=self.strict,
                **self.written,
            )
            notes.say(*said, *misread(self.schema, frame, place).values())
            return frame
        frame = self._given(self.source, least=0)
        check_dropped(self.drop, frame.columns)
        frame = frame.drop(columns=list(self.drop))
        check_columns(self.schema, frame.columns)
        frame, _ = texts_read(frame, None, self.schema)
        if self.drop_unlabelled:
            frame = labelled(frame, self.label, "", drop=True, all_may_go=True)
        return conform(self.schema, frame) if self.strict else frame

    def _undescribed(self, notes: Notes) -> tuple[Schema, pd.DataFrame]:
        """Return the table for a method that estimates what its columns are: no row decides how another is read."""
        if isinstance(self.source, str):
            _check_decimal(self.source, self.written.get("separator"), self.written.get("decimal"))
            frame = read_as_text(self.source, **self.written)
        else:
            frame = self._given(self.source)
        check_dropped(self.drop, frame.columns)
        if self.drop_unlabelled:
            frame = labelled(frame, self.label, self.path, drop=True, all_may_go=True)
        frame = frame.drop(columns=list(self.drop))
        return _seeming(frame, self.label, notes), frame

    def _inferred(self, notes: Notes) -> tuple[Schema, pd.DataFrame]:
        """Return the table, and what its columns are by their values."""
        if isinstance(self.source, str):
            frame = read_table(self.source, **self.written)
        else:
            frame = self._given(self.source)
        check_dropped(self.drop, frame.columns)
        place = places(frame, self.path, self.label)
        frame = labelled(frame, self.label, self.path, drop=self.drop_unlabelled)
        frame = frame.drop(columns=list(self.drop))
        described = Schema.infer(frame, label=self.label)
        notes.say(*misread(described, frame, place).values())
        described.check_releasable()
        return described, conform(described, frame, place)

    def _given(self, table: pd.DataFrame, least: int = 1) -> pd.DataFrame:
        """Return a DataFrame with columns named by text."""
        check_table(table, least)
        return table.set_axis([str(name) for name in table.columns], axis=1).reset_index(drop=True)


def _check_decimal(table: str, separator: str | None, decimal: str | None) -> None:
    """Refuse a CSV file whose rows would decide on its decimal sign."""
    if decimal or not is_text_file(table) or (separator or separator_of(table)) == ",":
        return
    raise InputError(
        f"{shorten(str(table), 60)!r} does not have commas between its fields, so that its numbers may have a decimal "
        "comma; say so with --decimal , (or --decimal . if they have a point), so that no row decides on it"
    )


def _seeming(frame: pd.DataFrame, label: str, notes: Notes) -> Schema:
    """Return what columns seem to be that are estimated privately, and tell the holder of those that name people."""
    try:
        found = Schema.infer(frame, label=label)
    except Exception:
        if label not in frame.columns:
            raise
        # Whatever the rows hold: an error would tell of it, and the fit does without this.
        return Schema(())
    for name in found.naming_columns:
        notes.say(
            f"column {name!r} seems to hold {found[name].naming}: leave it out with --drop {shlex.quote(name)} if it "
            "names people"
        )
    return found


def _of_objects(schema: Schema, frame: pd.DataFrame) -> list[str]:
    """Return what is said of a DataFrame's columns, whose cells may be anything."""
    found: list[str] = []
    for column in schema:
        alone = Schema((column,))
        try:
            found += [*misread(alone, frame).values(), *column_misfits(alone, frame), *doubts(alone, frame)]
        except Exception:
            # Whatever a record holds: an error would tell of it, and the fit does without this.
            continue
    return found
