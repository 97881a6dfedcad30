"""What installed packages bring under names of their own, by entry points."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

from oversafe._core.errors import InputError


def load(name: str, point: EntryPoint) -> Any:
    """Return what a plugin names, or say that it has to be mended."""
    try:
        return point.load()
    except Exception as error:
        # Whatever somebody else's code raises: it is theirs to mend, and no defect of ours.
        raise InputError(
            f"the plugin {name!r} ({point.value}) cannot be loaded ({type(error).__name__}: {error}); mend or "
            "uninstall it"
        ) from error
