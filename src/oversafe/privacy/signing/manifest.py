"""What is written beside a released file: its checksum, its guarantee, how it was made, and who says so."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from oversafe._core.errors import InputError
from oversafe.data.io.files import write_file, write_text
from oversafe.privacy.guarantee import Guarantee
from oversafe.privacy.signing.keys import Keys
from oversafe.privacy.signing.signature import Signature, signed_bytes

if TYPE_CHECKING:
    from oversafe.privacy.ledger.ledger import Ledger

VERSION = 2
# Of version 1, which had no signature.
_UNSIGNED_VERSION = 1
# A manifest that names a thousand columns has a tenth of it.
_LARGEST_FILE = 4_000_000
_SIGNATURE_ROOM = 10_000


class UnsignedWarning(UserWarning):
    """A release was written without a signature, so that no audit will count its guarantee."""


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
    seal : str, optional
        The ledger's own mark that its entry paid for this very file.
    signature : Signature, optional
        Who states all of the above.
    """

    file: str
    sha256: str
    guarantee: Guarantee
    settings: Mapping[str, Any] = field(default_factory=dict)
    ledger_entry: str | None = None
    created: str = ""
    oversafe: str = ""
    seal: str | None = None
    signature: Signature | None = None

    @classmethod
    def of(
        cls,
        path: str | Path,
        sha256: str,
        guarantee: Guarantee,
        settings: Mapping[str, Any],
        ledger_entry: str | None = None,
    ) -> Manifest:
        """Return the manifest of a file with these bytes, without a signature."""
        from oversafe import __version__

        return cls(
            Path(path).name,
            sha256,
            guarantee,
            json.loads(json.dumps(dict(settings), default=str)),
            ledger_entry,
            datetime.now(UTC).isoformat(timespec="seconds"),
            __version__,
        )

    def fields(self) -> dict[str, Any]:
        """Return all that is signed, as plain values: everything but the signature."""
        plain = {"version": VERSION, **self.__dict__, "guarantee": self.guarantee.to_dict()}
        del plain["signature"]
        return plain

    def sealed_bytes(self) -> bytes:
        """Return what a ledger's seal is made of: everything but the seal and the signature."""
        return signed_bytes(replace(self, seal=None).fields())

    def sealed(self, ledger: Ledger) -> Manifest:
        """Return the manifest with the seal of the ledger that its entry is in."""
        return replace(self, seal=ledger.seal(self.sealed_bytes()))

    def signed(self, keys: Keys | None = None) -> Manifest:
        """Return the manifest signed with one's own key, which is made on first use."""
        key = (Keys() if keys is None else keys).own_or_new()
        return replace(self, signature=Signature.of(key, self.fields()))

    def to_json(self) -> str:
        """Return the manifest as JSON."""
        signature = None if self.signature is None else self.signature.__dict__
        return json.dumps({**self.fields(), "signature": signature}, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """Return the manifest that :meth:`to_json` wrote down; one of version 1 is read, and has no signature."""
        try:
            stated = json.loads(text, object_pairs_hook=_once_each)
            plain = dict(stated)
            version = plain.pop("version")
            if type(version) is not int or version not in (_UNSIGNED_VERSION, VERSION):
                raise InputError("the manifest is of a version that this oversafe does not read")
            signature = plain.pop("signature", None) if version == VERSION else None
            found = cls(
                **{
                    **plain,
                    "guarantee": Guarantee.from_dict(plain["guarantee"]),
                    "signature": None if signature is None else Signature.from_dict(signature),
                }
            )
            found._check_kinds()
            # What cannot be written again, such as an infinity, or reads otherwise then, was not written by oversafe.
            if version == VERSION and json.loads(found.to_json()) != stated:
                raise InputError(
                    "this is not a manifest as oversafe writes it (a field is missing or changed)"
                )
            signed_bytes(found.fields())
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"this is not a manifest as oversafe writes it ({error})") from error
        return found

    def _check_kinds(self) -> None:
        texts = (self.file, self.sha256, self.created, self.oversafe)
        if not all(isinstance(value, str) for value in texts) or not isinstance(self.settings, dict):
            raise InputError("this is not a manifest as oversafe writes it (a field is of another kind)")
        if not re.fullmatch("[0-9a-f]{64}", self.sha256):
            raise InputError("this is not a manifest as oversafe writes it (it has no SHA-256)")
        if not all(value is None or isinstance(value, str) for value in (self.ledger_entry, self.seal)):
            raise InputError("this is not a manifest as oversafe writes it (a field is of another kind)")


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
    ledger: Ledger | None = None,
    keys: Keys | None = None,
) -> Manifest:
    """Write a table and its signed manifest beside it.

    Where the key cannot be read or made, or the ledger's is gone, the manifest is written unsigned, and an
    :class:`UnsignedWarning` says so.

    Parameters
    ----------
    table : DataFrame
        What is released.
    path : path
        A CSV or Parquet file.
    guarantee : Guarantee
        What it promises.
    settings : mapping
        How it was made: method and parameters.
    ledger_entry : str, optional
        The budget entry that paid for it.
    separator, decimal : str, optional
        As for :func:`~oversafe.data.write_table`.
    ledger : Ledger, optional
        The ledger of that entry; its seal lets audits that are given the ledger count the guarantee.
    keys : Keys, optional
        Where one's own key is kept; see :class:`Keys`.
    """
    path = Path(path)
    _check_readable(path, guarantee, settings, ledger_entry)
    # An old manifest goes before a new table comes, and stays with the old table where none comes. The hash is of what
    # was written here, whatever another process puts at the path meanwhile.
    sha256 = write_file(
        table,
        path,
        separator=separator,
        decimal=decimal,
        when_complete=lambda: _remove(manifest_path(path)),
    )
    manifest = Manifest.of(path, sha256, guarantee, settings, ledger_entry)
    try:
        if ledger is not None and ledger_entry is not None:
            manifest = manifest.sealed(ledger)
        manifest = manifest.signed(keys)
    except InputError as error:
        warnings.warn(
            f"the release is not signed, so that no audit will count its guarantee: {error}",
            UnsignedWarning,
            stacklevel=2,
        )
    write_text(manifest.to_json() + "\n", manifest_path(path))
    return manifest


def _check_readable(
    path: Path, guarantee: Guarantee, settings: Mapping[str, Any], ledger_entry: str | None
) -> None:
    """Refuse what a manifest could not be read back from, before anything is written."""
    try:
        text = Manifest.of(path, "0" * 64, guarantee, settings, ledger_entry).to_json()
        Manifest.from_json(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(
            f"the guarantee or the settings cannot stand in a manifest ({error.__cause__ or error}); give texts and "
            "finite numbers, nothing was written"
        ) from None
    if len(text) > _LARGEST_FILE - _SIGNATURE_ROOM:
        raise InputError(
            f"the settings take {len(text) / 1e6:.1f} MB, and a manifest has {_LARGEST_FILE // 1_000_000} MB at most; "
            "leave out what is large, nothing was written"
        )


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"the manifest {str(path)!r} cannot be replaced ({error.strerror}); name another place, nothing was written"
        ) from None


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a dict; with a name that stands in it twice, readers would differ on what it says."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InputError("this is not a manifest as oversafe writes it (a field stands in it twice)")
    return found


def read_manifest(release: str | Path, *, sha256: str | None = None) -> Manifest | None:
    """Return the manifest beside a release, or None; one that belongs to other bytes is refused.

    Whether anybody stands behind it is told by :func:`vouched`.

    Parameters
    ----------
    release : path
        The released file.
    sha256 : str, optional
        Of the bytes that it has to belong to, where they were read already; else of those of the file.
    """
    if not Path(release).is_file() or not (path := manifest_path(release)).is_file():
        return None
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise InputError(
                f"the manifest {str(path)!r} has more than {_LARGEST_FILE // 1_000_000} MB, which none of oversafe's "
                "has; remove it, or release the table again"
            )
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"the manifest {str(path)!r} cannot be read; remove it, or release the table again"
        ) from error
    manifest = Manifest.from_json(text)
    if manifest.sha256 != (checksum(Path(release)) if sha256 is None else sha256):
        raise InputError(
            f"the manifest {str(path)!r} belongs to other contents than {str(release)!r} has now; "
            "remove it, or release the table again"
        )
    return manifest


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
