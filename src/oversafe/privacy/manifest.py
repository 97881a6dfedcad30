"""What is written beside a released file: its checksum, its guarantee and how it was made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from oversafe.data.files import write_table, write_text
from oversafe.errors import InputError
from oversafe.privacy.guarantee import Guarantee

_VERSION = 1


@dataclass(frozen=True)
class Manifest:
    """A release's own papers.

    Parameters
    ----------
    file : str
        The released file's name, without its folder.
    sha256 : str
        Of the file's bytes.
    guarantee : Guarantee
        What the release promises.
    settings : mapping
        How it was made: method and parameters.
    ledger_entry : str, optional
        The budget entry that paid for it.
    created : str
        When, in UTC.
    oversafe : str
        The version that made it.
    """

    file: str
    sha256: str
    guarantee: Guarantee
    settings: Mapping[str, Any] = field(default_factory=dict)
    ledger_entry: str | None = None
    created: str = ""
    oversafe: str = ""

    @classmethod
    def of(
        cls,
        path: str | Path,
        guarantee: Guarantee,
        settings: Mapping[str, Any],
        ledger_entry: str | None = None,
    ) -> Manifest:
        """Return the manifest of a file that exists."""
        from oversafe import __version__

        path = Path(path)
        return cls(
            path.name,
            _checksum(path),
            guarantee,
            dict(settings),
            ledger_entry,
            datetime.now(UTC).isoformat(timespec="seconds"),
            __version__,
        )

    def to_json(self) -> str:
        """Return the manifest as JSON."""
        plain = {"version": _VERSION, **self.__dict__, "guarantee": self.guarantee.to_dict()}
        return json.dumps(plain, indent=2, default=str)

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Return the manifest that :meth:`to_json` wrote down."""
        try:
            plain = json.loads(text)
            if plain.pop("version") != _VERSION:
                raise InputError("the manifest is of a version that this oversafe does not read")
            return cls(**{**plain, "guarantee": Guarantee.from_dict(plain["guarantee"])})
        except (json.JSONDecodeError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise InputError(f"this is not a manifest as oversafe writes it ({error})") from error


def manifest_path(release: str | Path) -> Path:
    """Return where a release's manifest stands: beside it."""
    release = Path(release)
    return release.with_name(release.name + ".manifest.json")


def write_release(
    table: pd.DataFrame,
    path: str | Path,
    guarantee: Guarantee,
    settings: Mapping[str, Any],
    ledger_entry: str | None = None,
    *,
    separator: str | None = None,
    decimal: str | None = None,
) -> Manifest:
    """Write a table and its manifest beside it; the keywords are those of :func:`~oversafe.data.write_table`."""
    path = Path(path)
    # An old manifest must never vouch for a new table, not even for the moment between the two files.
    manifest_path(path).unlink(missing_ok=True)
    write_table(table, path, separator=separator, decimal=decimal)
    manifest = Manifest.of(path, guarantee, settings, ledger_entry)
    write_text(manifest.to_json() + "\n", manifest_path(path))
    return manifest


def read_manifest(release: str | Path) -> Manifest | None:
    """Return the manifest beside a release, or None; one that belongs to other bytes is refused."""
    if not Path(release).is_file() or not (path := manifest_path(release)).is_file():
        return None
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"the manifest {str(path)!r} cannot be read; remove it, or release the table again"
        ) from error
    manifest = Manifest.from_json(text)
    if manifest.sha256 != _checksum(Path(release)):
        raise InputError(
            f"the manifest {str(path)!r} belongs to other contents than {str(release)!r} has now; "
            "remove it, or release the table again"
        )
    return manifest


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
