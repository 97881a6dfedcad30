"""Where a command may write: refused before anything is read, charged or waited for."""

from __future__ import annotations

from pathlib import Path

from oversafe._core.errors import InputError
from oversafe._core.outputs import check_file, check_folder, check_kept, exists

PAGE_ENDINGS = (".html", ".htm")
# What the pages and figures begin with, and within how many bytes.
_OWN_MARKS = (b'<meta name="generator" content="oversafe ', b'"format": "oversafe-')
_LONGEST_MARK = 4096


def check_page(option: str, page: Path) -> None:
    """Refuse a page, with its figures beside it, that cannot be written; an older one of oversafe's is replaced."""
    check_file(option, page, PAGE_ENDINGS, "name a file that ends with .html")
    figures = page.with_suffix(".json")
    check_file(option, figures)
    for path in (page, figures):
        _check_own(path, f"name another page with {option}")


def check_demo(folder: Path) -> None:
    """Refuse a folder for the demonstration in which files stand that would be replaced and are not oversafe's."""
    check_folder(folder, make=True)
    for name in ("report.html", "smote_audit.json", "private_audit.json"):
        _check_own(folder / name, "name another folder with --out")
    for name in ("smote_release.csv", "private_release.csv"):
        release = folder / name
        if exists(release) and not exists(release.with_name(f"{name}.manifest.json")):
            raise InputError(
                f"{str(release)!r} exists already, and oversafe did not write it; name another folder with --out"
            )


def check_schema_file(out: Path, *, table: str, overwrite: bool) -> None:
    """Refuse a schema that cannot be written, or that would replace a file somebody may have edited."""
    check_file("--out", out)
    check_kept(out, table=table, overwrite=overwrite)


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
