"""Peers that cannot share our environment, because they pin older packages: each has one of its own.

The environments are made on first use in ``OVERSAFE_PEERS``, or in the user's cache folder, and used again.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path


def folder_of(requirement: str) -> Path:
    """Return where the environment of a peer is, or will be."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    peers = Path(os.environ.get("OVERSAFE_PEERS") or cache / "oversafe" / "peers")
    return peers / f"{requirement}-py{sys.version_info.major}.{sys.version_info.minor}"


def python_of(requirement: str, *others: str) -> str:
    """Return the interpreter of an environment that has the peer, and make the environment if need be.

    ``others`` are what the peer needs beside it, where its own metadata do not say so.
    """
    folder = folder_of(requirement)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    installed = folder / "installed"
    if not installed.exists():
        venv.create(folder, with_pip=True, clear=True)
        done = subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", requirement, *others],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"{requirement} cannot be installed into {folder}:\n{done.stderr}")
        # Written last: an environment that was interrupted is made again.
        installed.touch()
    return str(python)
