"""Where a command may write: refused before anything is read, charged or waited for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from oversafe._core.errors import InputError

# As in oversafe.data.io.files, whose import would take longer than the check.
TABLE_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz", ".parquet")
PAGE_ENDINGS = (".html", ".htm")
# What the pages and figures begin with, and within how many bytes.
_OWN_MARKS = (b'<meta name="generator" content="oversafe ', b'"format": "oversafe-')
_LONGEST_MARK = 4096


def check_page(option: str, page: Path) -> None:
    """Refuse a page, with its figures beside it, that cannot be written; an older one of oversafe's is replaced."""
    _check_file(option, page, PAGE_ENDINGS, "name a file that ends with .html")
    figures = page.with_suffix(".json")
    _check_file(option, figures)
    for path in (page, figures):
        _check_own(path, f"name another page with {option}")


def check_demo(folder: Path) -> None:
    """Refuse a folder for the demonstration in which files stand that would be replaced and are not oversafe's."""
    check_folder(folder, make=True)
    for name in ("report.html", "smote_audit.json", "private_audit.json"):
        _check_own(folder / name, "name another folder with --out")
    for name in ("smote_release.csv", "private_release.csv"):
        release = folder / name
        if _exists(release) and not _exists(release.with_name(f"{name}.manifest.json")):
            raise InputError(
                f"{str(release)!r} exists already, and oversafe did not write it; name another folder with --out"
            )


def check_release(out: Path, *, inputs: Iterable[str | Path | None], overwrite: bool) -> None:
    """Refuse a release, with its manifest beside it, that cannot be written or would destroy something."""
    remedy = "name a .csv, .tsv, .txt (also .gz) or .parquet file"
    if out.suffix.lower().startswith((".xls", ".ods")):
        remedy = "name a .csv file, which Excel opens (see --out-separator), or a .parquet file"
    _check_file("--out", out, TABLE_ENDINGS, remedy)
    manifest = out.with_name(out.name + ".manifest.json")
    _check_file("--out", manifest)
    _check_kept(out, inputs=inputs, overwrite=overwrite, beside=(manifest,))


def check_style(out: Path, separator: str | None, decimal: str | None) -> None:
    """Refuse a way of writing a release that its file cannot have, or that could not be read again."""
    if separator is None and decimal is None:
        return
    if out.suffix.lower() == ".parquet":
        raise InputError("--out-separator and --out-decimal are for CSV; leave them out, or name a .csv file")
    if separator is not None and (len(separator) != 1 or not separator.isascii() or separator in '"\r\n\0'):
        raise InputError(f"--out-separator {separator!r} was given; give one character, such as ';'")
    if decimal not in (None, ".", ","):
        raise InputError(f"--out-decimal {decimal!r} was given; give '.' or ','")
    if separator is not None and separator == (decimal or "."):
        raise InputError(
            f"--out-separator and --out-decimal are both {separator!r}; give --out-separator ';' with --out-decimal ','"
        )


def check_schema_file(out: Path, *, inputs: Iterable[str | Path | None], overwrite: bool) -> None:
    """Refuse a schema that cannot be written, or that would replace a file somebody may have edited."""
    _check_file("--out", out)
    _check_kept(out, inputs=inputs, overwrite=overwrite)


def check_folder(folder: Path, *, make: bool = False) -> None:
    """Refuse a folder that does not exist, unless it is to be made, or cannot be written to."""
    nearest = folder
    while make and not _exists(nearest) and nearest != nearest.parent:
        nearest = nearest.parent
    if not _is_dir(nearest):
        raise InputError(f"{str(nearest)!r} is not a folder; make it, or name another place to write to")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise InputError(f"the folder {str(nearest)!r} cannot be written to; name another place")


def _check_file(option: str, path: Path, endings: Sequence[str] = (), remedy: str = "") -> None:
    # A folder first: its name has no ending either, and that is not what is wrong with it.
    if _is_dir(path):
        raise InputError(f"{option} {str(path)!r} is a folder; give the name of a file in it")
    if endings and not path.name.lower().endswith(tuple(endings)):
        raise InputError(f"{option} {str(path)!r} was given; {remedy}")
    check_folder(path.parent)
    try:
        path.exists()
    except OSError as error:
        raise InputError(
            f"{option} {str(path)!r} cannot be written ({error.strerror or error}); name another file"
        ) from None


def _check_kept(
    out: Path, *, inputs: Iterable[str | Path | None], overwrite: bool, beside: Sequence[Path] = ()
) -> None:
    for given in inputs:
        if given is None or "://" in str(given) or not _exists(Path(given)):
            continue
        if _exists(out) and out.samefile(given):
            what = "the table itself" if isinstance(given, str) else "the schema that was given"
            raise InputError(f"--out {str(out)!r} is {what}; name another file, the original is needed")
    if overwrite:
        return
    for path in (out, *beside):
        if _exists(path):
            raise InputError(
                f"{str(path)!r} exists already; name another file with --out, or add --overwrite to replace it"
            )


def _check_own(path: Path, remedy: str) -> None:
    """Refuse to replace a file that oversafe did not write."""
    try:
        with path.open("rb") as file:
            start = file.read(_LONGEST_MARK)
        own = not start or any(mark in start for mark in _OWN_MARKS)
    except FileNotFoundError:
        return
    except OSError:
        # In a shared folder a file can be replaced that cannot be read.
        own = False
    if not own:
        raise InputError(f"{str(path)!r} exists already, and oversafe did not write it; {remedy}")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False
