"""Where files may be written: refused before anything is read, charged or waited for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from oversafe._core.errors import InputError


def check_file(option: str, path: Path, endings: Sequence[str] = (), remedy: str = "") -> None:
    """Refuse a file that cannot be written, or whose name has none of the endings."""
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


def check_folder(folder: Path, *, make: bool = False) -> None:
    """Refuse a folder that does not exist, unless it is to be made, or cannot be written to."""
    nearest = folder
    while make and not exists(nearest) and nearest != nearest.parent:
        nearest = nearest.parent
    if not _is_dir(nearest):
        raise InputError(f"{str(nearest)!r} is not a folder; make it, or name another place to write to")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise InputError(f"the folder {str(nearest)!r} cannot be written to; name another place")


def check_kept(
    out: Path,
    *,
    overwrite: bool,
    table: str | Path | None,
    schema: str | Path | None = None,
    beside: Sequence[Path] = (),
) -> None:
    """Refuse a file in place of what was given, and one that exists unless it is to be replaced."""
    for what, given in {"the table itself": table, "the schema that was given": schema}.items():
        if given is None or "://" in str(given) or not exists(Path(given)):
            continue
        if exists(out) and out.samefile(given):
            raise InputError(f"--out {str(out)!r} is {what}; name another file, the original is needed")
    if overwrite:
        return
    for path in (out, *beside):
        if exists(path):
            raise InputError(
                f"{str(path)!r} exists already; name another file with --out, or add --overwrite to replace it"
            )


def exists(path: Path) -> bool:
    """Whether there is a file; none has a name that is too long."""
    try:
        return path.exists()
    except OSError:
        return False


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False
