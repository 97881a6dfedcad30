"""What the page does with a table, apart from showing it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from oversafe._core.errors import InputError
from oversafe._core.text import shorten, showable
from oversafe.data import Schema
from oversafe.data.io.files import read_declared, read_table
from oversafe.privacy import Guarantee, Vouched, vouched, write_release
from oversafe.protect.base import check_labels
from oversafe.protect.registry import make_protector, promises
from oversafe.releasing.tables import left_out, released_columns

ENDINGS = ("csv", "tsv", "gz", "parquet")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~:$&^=\"'@])")
_MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class Release:
    """A table that was protected, as files to hand out.

    Parameters
    ----------
    table : DataFrame
        The release.
    guarantee : Guarantee
        What it promises.
    file : bytes
        The table as CSV.
    manifest : bytes
        Its manifest: the file's SHA-256, the guarantee and the settings, signed with this machine's key.
    vouched : Vouched
        What counts of the manifest.
    """

    table: pd.DataFrame
    guarantee: Guarantee
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


def read_declared_upload(
    name: str, content: bytes, max_size: int, schema: Schema, drop: Sequence[str], label: str, method: str
) -> tuple[pd.DataFrame, list[str]]:
    """Return an uploaded table as its schema says, so that no row decides how another is read; and the odd cells.

    The columns to leave out are left out, but for the one that says whose row it is where the method needs it.
    """
    gone, declared = left_out(drop, label, schema, persons=promises(method))
    assert declared is not None
    with _as_file(name, content, max_size) as path:
        frame, odd = read_declared(path, declared, drop=gone)
    return frame, [cells.sentence() for cells in odd]


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


def protect_table(
    table: pd.DataFrame,
    label: str,
    *,
    method: str,
    epsilon: float | None,
    balance: bool = False,
    schema: Schema | None = None,
    rows_per_person: int | None = None,
    drop: Sequence[str] = (),
    on_progress: Callable[[str, float], None] | None = None,
) -> Release:
    """Return a protected release of a table, with its manifest.

    With a schema, the table is as :func:`read_declared_upload` reads it.
    """
    gone, schema = left_out(drop, label, schema, persons=promises(method))
    protector = make_protector(
        method, epsilon=epsilon, schema=schema, rows_per_person=rows_per_person, balance=balance
    )
    frame = table.drop(columns=[name for name in gone if name in table.columns])
    described = schema if schema is not None else Schema.infer(frame, label=label)
    described.check_releasable()
    frame = described.conform(frame) if schema is None else frame
    if described[label].domain != "public":
        check_labels(frame[label])
    protector.on_progress = on_progress
    X, y = protector.fit_resample(frame.drop(columns=label), frame[label])
    release = X.copy(deep=False)
    release.insert(released_columns(frame, schema).index(label), label, y)
    settings: dict[str, Any] = {
        "method": method,
        **{k: str(v) for k, v in protector.get_params().items() if k not in ("schema", "ledger")},
    }
    with tempfile.TemporaryDirectory(prefix="oversafe-") as folder:
        path = Path(folder) / "release.csv"
        write_release(release, path, protector.guarantee_, settings)
        manifest = path.with_name("release.csv.manifest.json").read_bytes()
        said = vouched(path)
        assert said is not None
        return Release(release, protector.guarantee_, path.read_bytes(), manifest, said)
