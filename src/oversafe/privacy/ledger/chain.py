"""The keyed chain of a ledger's entries: what its key is, where it is kept, and the record of the chain's end."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from oversafe._core.errors import InputError
from oversafe._core.folders import make_private

KEY_VARIABLE = "OVERSAFE_LEDGER_KEY"
_KEY_BYTES = 32
# Each process that has just charged writes its own slot, so that none needs a lock; the highest entry counts.
_HEAD_SLOTS = 64
_HEAD_WIDTH = 96
_HEAD = re.compile(rb"(\d{1,20}) ([0-9a-f]{64}) *\n")


@dataclass(frozen=True)
class Row:
    """One entry as it is stored.

    Parameters
    ----------
    number : int
        From 0 without gaps; 0 is the ledger itself.
    dataset : str
        The name, empty for the ledger itself.
    kind : {"ledger", "create", "charge", "unaccounted"}
        What happened.
    fingerprint : str
        Of the data, keyed and different for each entry; empty if none was given.
    body : str
        Everything else, as JSON.
    previous : str
        The mac of the entry before.
    mac : str
        Of all of the above.
    """

    number: int
    dataset: str
    kind: str
    fingerprint: str
    body: str
    previous: str
    mac: str = ""


class Key:
    """A ledger's secret, from which the keys for its chain, its fingerprints and its seals are derived.

    Parameters
    ----------
    secret : bytes
        The key as it is kept.
    ledger_id : str
        Which ledger it is used for.
    """

    def __init__(self, secret: bytes, ledger_id: str):
        self._chain = hmac.digest(secret, f"oversafe ledger chain {ledger_id}".encode(), "sha256")
        self._seal = hmac.digest(secret, f"oversafe ledger seal {ledger_id}".encode(), "sha256")
        self._fingerprint = hmac.digest(secret, f"oversafe ledger fingerprint {ledger_id}".encode(), "sha256")

    def mac(self, row: Row) -> str:
        """Return the authentication code of an entry."""
        # As a JSON list, so that no two different entries are the same text.
        text = json.dumps([row.number, row.dataset, row.kind, row.fingerprint, row.body, row.previous])
        return hmac.new(self._chain, text.encode(), hashlib.sha256).hexdigest()

    def fits(self, row: Row) -> bool:
        """Whether an entry is as it was written; one with something else than text in a field is not."""
        texts = (row.dataset, row.kind, row.fingerprint, row.body, row.previous, row.mac)
        if type(row.number) is not int or not all(isinstance(text, str) for text in texts):
            return False
        return hmac.compare_digest(self.mac(row).encode(), row.mac.encode("utf-8", "surrogatepass"))

    def seal(self, message: bytes) -> str:
        """Return the ledger's mark on a manifest."""
        return hmac.new(self._seal, message, hashlib.sha256).hexdigest()

    def fingerprint(self, number: int, digest: str) -> str:
        """Return the fingerprint of a table for one entry; equal tables look different in other entries."""
        return hmac.new(self._fingerprint, f"{number} {digest}".encode(), hashlib.sha256).hexdigest()


def checked(key: Key, row: Row) -> Row:
    """Return an entry, or refuse one that was changed."""
    if not key.fits(row):
        raise InputError(
            f"entry {row.number!r} of the ledger was changed after it was written; nothing was spent, see: oversafe "
            "budget verify"
        )
    return row


@dataclass(frozen=True)
class KeyPlace:
    """Where a ledger's key is kept: a named file, the environment, or a file in the user's configuration folder.

    Parameters
    ----------
    file : Path, optional
        The named file.
    """

    file: Path | None = None

    def read(self, ledger_id: str, shown: str) -> Key:
        """Return a ledger's key, or say where it was looked for."""
        if self._from_environment:
            return Key(_secret(os.environ[KEY_VARIABLE], f"the variable {KEY_VARIABLE}"), ledger_id)
        path = self._path(ledger_id)
        try:
            text = path.read_text(encoding="ascii")
        except FileNotFoundError:
            raise InputError(
                f"the key of the ledger {shown} is not here: {str(path)!r} does not exist; copy it from where the "
                f"ledger was made, or set {KEY_VARIABLE}"
            ) from None
        except (OSError, UnicodeDecodeError):
            raise InputError(
                f"the ledger's key {str(path)!r} cannot be read; check the file and its rights"
            ) from None
        return Key(_secret(text, repr(str(path))), ledger_id)

    def make(self, ledger_id: str) -> Key:
        """Return the key of a new ledger: the one that is there, or a new one, in a file for its owner alone."""
        path = self._path(ledger_id)
        if not self._from_environment:
            try:
                if self.file is None:
                    make_private(path.parent)
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                pass
            except OSError as error:
                raise InputError(
                    f"the ledger's key cannot be written to {str(path)!r} ({error.strerror}); name another file for "
                    f"it, or set {KEY_VARIABLE} to {2 * _KEY_BYTES} hexadecimal digits"
                ) from None
            else:
                with os.fdopen(handle, "w") as file:
                    file.write(secrets.token_hex(_KEY_BYTES) + "\n")
                    file.flush()
                    os.fsync(file.fileno())
        return self.read(ledger_id, "that is to be made")

    def head_file(self, ledger_id: str) -> Path:
        """Return the file beside the key that records how far the chain went."""
        folder = self._folder if self.file is None else self.file.parent
        return folder / f"{ledger_id}.head"

    @property
    def _from_environment(self) -> bool:
        return self.file is None and bool(os.environ.get(KEY_VARIABLE))

    @property
    def _folder(self) -> Path:
        try:
            base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
        except RuntimeError:
            raise InputError(
                f"there is no home folder to look for a ledger's key in; name its file, or set {KEY_VARIABLE}"
            ) from None
        return Path(base) / "oversafe" / "ledgers"

    def _path(self, ledger_id: str) -> Path:
        if self.file is not None:
            return self.file
        return Path() if self._from_environment else self._folder / f"{ledger_id}.key"


def _secret(text: str, shown: str) -> bytes:
    text = text.strip()
    if not re.fullmatch(rf"[0-9a-fA-F]{{{2 * _KEY_BYTES}}}", text):
        raise InputError(
            f"{shown} holds no ledger key; it is {2 * _KEY_BYTES} hexadecimal digits, such as "
            f"python -c 'import secrets; print(secrets.token_hex({_KEY_BYTES}))' makes"
        )
    return bytes.fromhex(text)


def read_head(path: Path) -> tuple[int, str] | None:
    """Return the last entry that this machine has recorded, as its number and mac, or None."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    slots = (content[i : i + _HEAD_WIDTH] for i in range(0, len(content), _HEAD_WIDTH))
    found = [(int(m[1]), m[2].decode()) for m in map(_HEAD.fullmatch, slots) if m]
    return max(found, default=None)


def write_head(path: Path, row: Row) -> bool:
    """Record an entry that is committed; False if it cannot be written down here."""
    text = f"{row.number} {row.mac}".encode().ljust(_HEAD_WIDTH - 1) + b"\n"
    try:
        make_private(path.parent)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.lseek(handle, row.number % _HEAD_SLOTS * _HEAD_WIDTH, os.SEEK_SET)
            os.write(handle, text)
        finally:
            os.close(handle)
    except OSError:
        return False
    return True
