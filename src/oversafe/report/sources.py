"""The files and databases that an audit was made from: what they are called, and what it takes to repeat it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oversafe.attack.release_attacks import AUDIT_SEED
from oversafe.errors import InputError
from oversafe.privacy import read_manifest
from oversafe.text import without_password


def file_name(source: str | Path) -> str:
    """Return what a report calls a file, or a table in a database, whose address may hold a password."""
    return str(source).rpartition("#")[2] if "://" in str(source) else Path(source).name


def repeat_settings(sources: Mapping[str, Any], label: str, time_limit: float | None) -> dict[str, Any]:
    """Return what it takes to repeat an audit; of a database's address, without its password."""
    import platform
    from importlib.metadata import version

    named = {what: source for what, source in sources.items() if isinstance(source, str | Path)}
    return {
        "oversafe": version("oversafe"),
        "python": platform.python_version(),
        **{package: version(package) for package in ("numpy", "pandas", "scikit-learn")},
        "label": label,
        "time_limit": time_limit,
        "seed": AUDIT_SEED,
        **_method_of(named.get("release")),
        **{what: without_password(source) for what, source in named.items()},
        "sha256": {what: digest for what, source in named.items() if (digest := _sha256(source)) is not None},
    }


def _method_of(release: str | Path | None) -> dict[str, str]:
    """Return how a release was made, if its manifest says so."""
    if release is None or "://" in str(release):
        return {}
    try:
        manifest = read_manifest(release)
    except InputError:
        # Told when the guarantee is read from it.
        return {}
    method = None if manifest is None else manifest.settings.get("method")
    return {} if method is None else {"method": str(method)}


def _sha256(source: str | Path) -> str | None:
    """Return the fingerprint of a file; a folder or a database has none."""
    if "://" in str(source) or not Path(source).is_file():
        return None
    with Path(source).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
