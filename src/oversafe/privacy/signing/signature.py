"""What a manifest's signature covers, how it is made, and whether it fits.

Signed is ``oversafe manifest, version 2``, a line feed, and the manifest as canonical JSON: all of its fields but the
signature's value, the signer's name and public key included; keys sorted, no spaces, ASCII only, numbers as Python
writes them, no infinities. The first line keeps a signature from being taken for one of anything else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from oversafe._core.errors import InputError
from oversafe.privacy.signing.keys import PUBLIC_KEY, SigningKey, checked_holder, fingerprint

_DOMAIN = "oversafe manifest, version {version}\n"
_VALUE = re.compile("[0-9a-f]{128}")


@dataclass(frozen=True)
class Signature:
    """Who signed, and the signature itself (Ed25519).

    Parameters
    ----------
    name : str
        What the signer calls themselves; a stranger may take any name.
    public_key : str
        64 hexadecimal digits.
    value : str
        128 hexadecimal digits; empty while it is being made.
    """

    name: str
    public_key: str
    value: str = ""

    @property
    def fingerprint(self) -> str:
        """What is compared by another channel."""
        return fingerprint(self.public_key)

    @classmethod
    def of(cls, key: SigningKey, fields: Mapping[str, Any]) -> Signature:
        """Return a key's signature of a manifest's fields."""
        unsigned = cls(key.name, key.public_key)
        return replace(unsigned, value=key.sign(signed_bytes(fields, unsigned)))

    @classmethod
    def from_dict(cls, plain: Any) -> Signature:
        """Return the signature that a manifest holds, or refuse what is none."""
        found = cls(**plain)
        if not (PUBLIC_KEY.fullmatch(found.public_key) and _VALUE.fullmatch(found.value)):
            raise InputError("the manifest's signature is not one as oversafe writes it")
        checked_holder(found.name)
        return found

    def fits(self, fields: Mapping[str, Any]) -> bool:
        """Whether these fields are what was signed, with this key and under this name."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.public_key))
            key.verify(bytes.fromhex(self.value), signed_bytes(fields, self))
        except InvalidSignature:
            return False
        return True


def signed_bytes(fields: Mapping[str, Any], signer: Signature | None = None) -> bytes:
    """Return what a signature or a ledger's seal is made of: every field, and who signs."""
    who = {} if signer is None else {"signature": {"name": signer.name, "public_key": signer.public_key}}
    text = json.dumps({**fields, **who}, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return (_DOMAIN.format(version=fields["version"]) + text).encode("ascii")
