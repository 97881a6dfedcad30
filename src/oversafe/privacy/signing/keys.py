"""One's own key for signing manifests, and the public keys of others that one trusts or distrusts."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from oversafe._core.errors import InputError
from oversafe._core.folders import OTHERS_WRITE, ROOT, check_private, make_private
from oversafe._core.text import listed, shorten

FOLDER_VARIABLE = "OVERSAFE_KEYS"
UNNAMED = "unnamed"
PUBLIC_KEY = re.compile("[0-9a-f]{64}")
_LONGEST_NAME = 60
# What names of people and places are made of; nothing that markup, a shell or a terminal takes for its own.
_NAME_CATEGORIES, _NAME_MARKS = "LMN", " .,-_@'()&/+"
_LARGEST_FILE = 100_000
# 128 bits, read out in eight groups: a second key with the same ones is not found.
_FINGERPRINT_DIGITS = 32
_OTHERS_READ = 0o077

Status = Literal["own", "trusted", "distrusted"]


def fingerprint(public_key: str) -> str:
    """Return what two people compare by telephone: 32 hexadecimal digits in groups of four."""
    digest = hashlib.sha256(b"oversafe public key " + bytes.fromhex(public_key)).hexdigest()
    digits = digest[:_FINGERPRINT_DIGITS]
    return " ".join(digits[i : i + 4] for i in range(0, _FINGERPRINT_DIGITS, 4))


def checked_holder(name: Any) -> str:
    """Return the name of a key's holder, or say what is wrong with it."""
    text = unicodedata.normalize("NFC", name).strip() if isinstance(name, str) else ""
    if not 1 <= len(text) <= _LONGEST_NAME or not all(map(_is_of_names, text)):
        raise InputError(
            f"{shorten(str(name), 40)!r} cannot be the name of a key's holder; use 1 to {_LONGEST_NAME} letters, "
            f"digits, spaces and {_NAME_MARKS.strip()}"
        )
    return text


def _is_of_names(character: str) -> bool:
    return character in _NAME_MARKS or unicodedata.category(character)[0] in _NAME_CATEGORIES


@dataclass(frozen=True)
class KnownKey:
    """A public key, whose it is, and what its signature counts for.

    Parameters
    ----------
    name : str
        The holder, as the user of this machine calls them.
    public_key : str
        64 hexadecimal digits.
    status : {"own", "trusted", "distrusted"}
        Whether its signature counts.
    """

    name: str
    public_key: str
    status: Status

    @property
    def fingerprint(self) -> str:
        """What is compared by another channel."""
        return fingerprint(self.public_key)


class SigningKey:
    """One's own key.

    Parameters
    ----------
    name : str
        The holder.
    secret : bytes
        The 32 bytes of an Ed25519 key.
    """

    def __init__(self, name: str, secret: bytes):
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self.name = name
        self._key = Ed25519PrivateKey.from_private_bytes(secret)
        self.public_key = self._key.public_key().public_bytes_raw().hex()

    def sign(self, message: bytes) -> str:
        """Return the signature of a message as 128 hexadecimal digits."""
        return self._key.sign(message).hex()


class Keys:
    """The signing key of this user, and the keys that they know.

    Parameters
    ----------
    folder : path, optional
        Where they are kept. Without it the variable ``OVERSAFE_KEYS`` names the folder, or else it is
        ``~/.config/oversafe/keys``, beside the ledgers' keys.

    Examples
    --------
    >>> from oversafe.privacy import Keys
    >>> keys = Keys("keys")
    >>> keys.own_or_new("Ward 7").name
    'Ward 7'
    >>> len(keys.own().public_key)
    64
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None):
        self._given = None if folder is None else Path(folder)

    @property
    def folder(self) -> Path:
        """Where the keys are kept."""
        if self._given is not None:
            return self._given
        if named := os.environ.get(FOLDER_VARIABLE):
            return Path(named)
        try:
            base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
        except RuntimeError:
            raise InputError(
                f"there is no home folder to keep a signing key in; name a folder with {FOLDER_VARIABLE}"
            ) from None
        return Path(base) / "oversafe" / "keys"

    @property
    def own_file(self) -> Path:
        """The file with one's own key."""
        return self.folder / "signing.key"

    def own(self) -> SigningKey | None:
        """Return one's own key, or None where none was made yet."""
        plain = _read(self.own_file, _OTHERS_READ, "could sign in your name")
        if plain is None:
            return None
        check_private(self.folder)
        try:
            return SigningKey(checked_holder(plain["name"]), bytes.fromhex(plain["private_key"]))
        except (KeyError, TypeError, ValueError):
            raise InputError(
                f"{str(self.own_file)!r} holds no signing key; restore it, or move it away and a new key is made"
            ) from None

    def own_or_new(self, name: str | None = None) -> SigningKey:
        """Return one's own key, which is made on first use; of several processes all get the same one.

        Parameters
        ----------
        name : str, optional
            Who holds it; a key without a name can be given one later.
        """
        name = None if name is None else checked_holder(name)
        own = self.own()
        if name is not None and (own is None or own.name != name):
            self._check_free(name, None if own is None else own.public_key)
        if own is None:
            from secrets import token_bytes

            # A link is made or refused as a whole, so that no other process reads half a key or makes a second one.
            _write(self.own_file, _own_content(name or UNNAMED, token_bytes(32)), replace=False)
            own = self.own()
            assert own is not None
        if name in (None, own.name):
            return own
        if own.name != UNNAMED:
            raise InputError(
                f"there is a signing key of {own.name!r} already, in {str(self.own_file)!r}; to have another, move "
                "that file away"
            )
        secret = own._key.private_bytes_raw()
        _write(self.own_file, _own_content(name, secret), replace=True)
        return SigningKey(name, secret)

    def known(self) -> list[KnownKey]:
        """Return one's own key and those of others; one's own may be among the distrusted ones."""
        found = {}
        if (own := self.own()) is not None:
            found[own.public_key] = KnownKey(own.name, own.public_key, "own")
        folder = self.folder / "known"
        if folder.is_dir():
            check_private(folder)
        for path in sorted(folder.glob("*.json")):
            plain = _read(path, OTHERS_WRITE, "could have you trust their keys")
            try:
                status = plain["status"]  # type: ignore[index]
                name = checked_holder(plain["name"])  # type: ignore[index]
                fits = status in ("trusted", "distrusted") and PUBLIC_KEY.fullmatch(path.stem)
            except (KeyError, TypeError, InputError):
                fits = None
            if not fits:
                raise InputError(
                    f"{str(path)!r} is no key as oversafe writes it; remove it, and trust the key anew"
                )
            if status == "distrusted" or path.stem not in found:
                found[path.stem] = KnownKey(name, path.stem, status)
        return sorted(found.values(), key=lambda key: (key.status, key.name))

    def find(self, public_key: str) -> KnownKey | None:
        """Return what is known of a public key, None of a stranger's."""
        return next((key for key in self.known() if key.public_key == public_key), None)

    def trust(self, name: str, public_key: str, given: str) -> KnownKey:
        """Let a key's signatures count, if the fingerprint that its holder told by another channel is its own.

        Parameters
        ----------
        name : str
            What the holder is called here.
        public_key : str
            The key itself, or a file that holds it: what ``oversafe keys show`` printed, or a manifest.
        given : str
            The fingerprint as the holder told it; spaces and capitals do not matter.
        """
        name = checked_holder(name)
        public_key = public_key_of(public_key)
        if re.sub(r"[\s:-]", "", given).lower() != fingerprint(public_key).replace(" ", ""):
            raise InputError(
                f"the fingerprint {shorten(given, 60)!r} is not that of this key, so that it may not be {name}'s; "
                "nothing is trusted, ask for both again"
            )
        self._check_free(name, public_key)
        return self._note(KnownKey(name, public_key, "trusted"))

    def distrust(self, who: str) -> KnownKey:
        """Let a key's signatures count no more.

        Parameters
        ----------
        who : str
            The holder's name here, the fingerprint, or the key. A name that several keys have is refused.
        """
        digits = re.sub(r"[\s:-]", "", who).lower()
        known = self.known()
        found = [key for key in known if digits in (key.public_key, key.fingerprint.replace(" ", ""))]
        if not found:
            found = [key for key in known if _folded(key.name) == _folded(who)]
            found = [key for key in found if key.status != "distrusted"] or found
        if not found:
            raise InputError(f"no key of {shorten(who, 60)!r} is known here; see: oversafe keys show")
        if len(found) > 1:
            raise InputError(
                f"{shorten(who, 60)!r} is the name of {len(found)} keys, and nothing was changed; give the fingerprint "
                f"of the one that is meant: {listed([key.fingerprint for key in found])}"
            )
        return self._note(KnownKey(found[0].name, found[0].public_key, "distrusted"))

    def _check_free(self, name: str, public_key: str | None) -> None:
        """Refuse a name that another key has whose signature counts."""
        for key in self.known():
            alike = _folded(key.name) == _folded(name) and key.public_key != public_key
            if alike and key.status != "distrusted":
                raise InputError(
                    f"{key.name!r} is the name of another key (fingerprint {key.fingerprint}); choose another name, or "
                    "distrust that key first"
                )

    def _note(self, key: KnownKey) -> KnownKey:
        path = self.folder / "known" / f"{key.public_key}.json"
        _write(path, json.dumps({"name": key.name, "status": key.status}), replace=True)
        return key


def public_key_of(text: str) -> str:
    """Return a public key that is given as itself, or in a file: the key alone, or a manifest that it signed."""
    if PUBLIC_KEY.fullmatch(text.strip().lower()):
        return text.strip().lower()
    path, content = Path(text), ""
    try:
        if path.is_file() and path.stat().st_size <= 100 * _LARGEST_FILE:
            content = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        content = ""
    if not PUBLIC_KEY.fullmatch(content.lower()):
        try:
            content = json.loads(content)["signature"]["public_key"]
        except (ValueError, KeyError, TypeError, RecursionError):
            content = ""
        if not isinstance(content, str) or not PUBLIC_KEY.fullmatch(content):
            raise InputError(
                f"{shorten(text, 80)!r} is no public key and no file with one; give the 64 hexadecimal digits that "
                "oversafe keys show prints, a file that holds them, or a signed manifest"
            ) from None
    return content.lower()


def _folded(name: str) -> str:
    """Return what names have in common that look alike but for capitals, spaces and forms of letters."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def _own_content(name: str, secret: bytes) -> str:
    return json.dumps({"name": name, "private_key": secret.hex()})


def _read(path: Path, forbidden: int, danger: str) -> dict[str, Any] | None:
    """Return what a file of keys holds, None where it is not there; refused where others may do too much with it."""
    try:
        with path.open(encoding="utf-8") as file:
            status = os.fstat(file.fileno())
            mode = status.st_mode & 0o777
            if os.name == "posix" and status.st_uid not in (os.geteuid(), ROOT):
                raise InputError(
                    f"{str(path)!r} belongs to another user (number {status.st_uid}), who {danger}; if it is yours, "
                    f"run: chown $USER {str(path)!r}"
                )
            if os.name == "posix" and mode & forbidden:
                raise InputError(
                    f"{str(path)!r} is open to others (mode {mode:o}), who {danger}; if nobody did, run: chmod 600 "
                    f"{str(path)!r}"
                )
            return dict(json.loads(file.read(_LARGEST_FILE)))
    except FileNotFoundError:
        return None
    except InputError:
        raise
    except (OSError, ValueError, TypeError, RecursionError):
        raise InputError(
            f"the key file {str(path)!r} cannot be read; check the file and its rights"
        ) from None


def _write(path: Path, content: str, *, replace: bool) -> None:
    """Write a file for its owner alone, whole or not at all; one that is there stays, unless it is to be replaced."""
    try:
        make_private(path.parent)
        check_private(path.parent)
        handle, written = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(content + "\n")
                file.flush()
                os.fsync(file.fileno())
            if replace:
                Path(written).replace(path)
            else:
                path.hardlink_to(written)
        except FileExistsError:
            pass
        finally:
            Path(written).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(
            f"the key file {str(path)!r} cannot be written ({error.strerror}); name another folder with "
            f"{FOLDER_VARIABLE}"
        ) from None
