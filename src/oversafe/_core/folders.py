"""Folders that are their owner's alone, for keys."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from oversafe._core.errors import InputError

ROOT = 0
OTHERS_WRITE = 0o022


def make_private(folder: Path) -> None:
    """Make a folder and those above it for their owner alone, however open new ones usually are."""
    for each in reversed((folder, *folder.parents)):
        if not each.is_dir():
            try:
                each.mkdir(mode=0o700, exist_ok=True)
            except FileExistsError:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(each)) from None


def check_private(folder: Path) -> None:
    """Refuse a folder if others could write to it, or to one above it up to the user's home; as ssh does."""
    if os.name != "posix":
        return
    folder, home = folder.resolve(), None
    with suppress(RuntimeError):
        home = Path.home().resolve()
    for each in (folder, *folder.parents):
        status = each.stat()
        # In a sticky folder, such as /tmp, each may replace what is theirs alone.
        open_to_others = status.st_mode & OTHERS_WRITE and not status.st_mode & stat.S_ISVTX
        if open_to_others or status.st_uid not in (os.geteuid(), ROOT):
            raise InputError(
                f"others can write to the folder {str(each)!r} (mode {status.st_mode & 0o7777:o}, of user number "
                f"{status.st_uid}), and so change the keys in {str(folder)!r}; keep them in a folder of your own, or "
                f"run: chmod go-w {str(each)!r}"
            )
        if each == home:
            return
