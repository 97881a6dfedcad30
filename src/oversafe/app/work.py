"""What the page does with tables, apart from showing it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from oversafe._core.errors import InputError
from oversafe._core.text import shorten, showable
from oversafe.data import Schema
from oversafe.data.io.files import column_names, read_declared, read_table
from oversafe.privacy import Vouched, vouched
from oversafe.privacy.signing.manifest import manifest_path
from oversafe.protect.registry import promises
from oversafe.releasing import Release, release
from oversafe.releasing.tables import left_out

ENDINGS = ("csv", "tsv", "gz", "parquet")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~:$&^=\"'@])")
_MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class Protected:
    """A release as files to hand out.

    Parameters
    ----------
    release : Release
        The table that was protected.
    file : bytes
        The table as CSV.
    manifest : bytes
        Its manifest: the file's SHA-256, the guarantee and the settings, signed with this machine's key.
    vouched : Vouched
        What counts of the manifest.
    """

    release: Release
    file: bytes
    manifest: bytes
    vouched: Vouched


def as_markdown(text: str) -> str:
    """Return a text that a Markdown renderer shows as it is: a column may be named like a link to a picture."""
    return _MARKDOWN.sub(r"\\\1", " ".join(showable(text).split()))


def read_upload(name: str, content: bytes, max_size: int) -> pd.DataFrame:
    """Return an uploaded table.

    Parameters
    ----------
    name : str
        What the file is called; its ending says what it is.
    content : bytes
        What it holds.
    max_size : int
        Megabytes that it may have.
    """
    with _as_file(name, content, max_size) as path:
        return read_table(path)


def columns_of_upload(name: str, content: bytes, max_size: int, schema: Schema) -> list[str]:
    """Return the names of the columns of an uploaded table that is written as its schema says."""
    with _as_file(name, content, max_size) as path:
        return column_names(path, schema)


def read_declared_upload(
    name: str, content: bytes, max_size: int, schema: Schema, drop: Sequence[str], label: str, method: str
) -> pd.DataFrame:
    """Return an uploaded table as its schema says, so that no row decides how another is read.

    The columns to leave out are left out, but for the one that says whose row it is where the method needs it.
    """
    gone, declared = left_out(drop, label, schema, persons=promises(method))
    assert declared is not None
    with _as_file(name, content, max_size) as path:
        return read_declared(path, declared, drop=gone)[0]


@contextmanager
def _as_file(name: str, content: bytes, max_size: int) -> Iterator[Path]:
    """Give the path of an uploaded file, which lives for as long as it takes to read it."""
    if len(content) > max_size * _MEGABYTE:
        raise InputError(
            f"{shorten(name, 60)!r} has {len(content) / _MEGABYTE:.0f} MB, and this page takes files of up to "
            f"{max_size} MB; use the command line for larger ones: oversafe audit"
        )
    ending = "".join(
        Path(name).suffixes[-2:] if name.lower().endswith(".gz") else Path(name).suffixes[-1:]
    ).lower()
    if ending not in (".csv", ".tsv", ".parquet", ".csv.gz", ".tsv.gz"):
        raise InputError(f"{shorten(name, 60)!r} is no table; give a CSV or a Parquet file")
    with tempfile.TemporaryDirectory(prefix="oversafe-") as folder:
        path = Path(folder) / f"upload{ending}"
        path.write_bytes(content)
        try:
            yield path
        except InputError as error:
            raise InputError(str(error).replace(repr(str(path)), repr(shorten(name, 60)))) from None


def read_schema(content: bytes) -> Schema:
    """Return an uploaded schema."""
    with tempfile.TemporaryDirectory(prefix="oversafe-") as folder:
        path = Path(folder) / "schema.toml"
        path.write_bytes(content)
        try:
            return Schema.from_toml(path)
        except InputError as error:
            raise InputError(str(error).replace(str(path), "schema.toml")) from None


def protect_upload(name: str, content: bytes, max_size: int, label: str, **options: Any) -> Protected:
    """Return a protected release of an uploaded table.

    Parameters
    ----------
    name, content, max_size
        As for :func:`read_upload`.
    label : str
        The column that holds the class.
    **options
        As for :func:`oversafe.release`.
    """
    with _as_file(name, content, max_size) as path:
        out = path.with_name("release.csv")
        made = release(path, label, out=out, **options)
        said = vouched(out)
        assert said is not None
        return Protected(made, out.read_bytes(), manifest_path(out).read_bytes(), said)
