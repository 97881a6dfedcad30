"""The files and databases that an audit was made from: what they are called, and what it takes to repeat it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oversafe import __version__
from oversafe._core.text import without_password
from oversafe.attack.registry import AUDIT_SEED
from oversafe.data.io.files import FileTable


def file_name(source: str | Path) -> str:
    """Return what a report calls a file, or a table in a database, whose address may hold a password."""
    return str(source).rpartition("#")[2] if "://" in str(source) else Path(source).name


def repeat_settings(
    sources: Mapping[str, Any], label: str, time_limit: float | None, max_epsilon: float
) -> dict[str, Any]:
    """Return what it takes to repeat an audit; of a database's address, without its password."""
    import platform
    from importlib.metadata import version

    files = {what: source for what, source in sources.items() if isinstance(source, FileTable)}
    return {
        "oversafe": __version__,
        "python": platform.python_version(),
        **{package: version(package) for package in ("numpy", "pandas", "scikit-learn")},
        "label": label,
        "time_limit": time_limit,
        "max_epsilon": max_epsilon,
        "seed": AUDIT_SEED,
        **{what: without_password(file.source) for what, file in files.items()},
        "sha256": {what: file.sha256 for what, file in files.items() if file.sha256 is not None},
    }
