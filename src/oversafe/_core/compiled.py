"""Compilation of the hot loops."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a function on its first call, keep the machine code on disk, and release the GIL.

    The code is kept where numba keeps it: in ``NUMBA_CACHE_DIR``, beside the source, or in the
    user's cache folder. Where none of them can be written (a read-only container without a home),
    it goes to a temporary folder of this process, which is removed at exit.

    Parameters
    ----------
    function : callable
        A pure function on arrays and numbers.

    Returns
    -------
    callable
        The compiled function.
    """
    compiler = numba.njit(cache=True, nogil=True)
    try:
        return cast(Function, compiler(function))
    except RuntimeError as error:
        # numba has no class for "nowhere to write"; other failures must not be hidden.
        if "no locator available" not in str(error):
            raise
    config: Any = numba.config
    previous = config.CACHE_DIR
    config.CACHE_DIR = _private_folder()
    try:
        return cast(Function, compiler(function))
    finally:
        config.CACHE_DIR = previous


@cache
def _private_folder() -> str:
    """Return this process's temporary cache folder."""
    folder = tempfile.mkdtemp(prefix="oversafe-compiled-")
    atexit.register(_remove, folder, os.getpid())
    return folder


def _remove(folder: str, owner: int) -> None:
    """Remove the folder, unless a forked child that inherited the exit handler asks."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
