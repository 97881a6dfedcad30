"""Who stands behind a guarantee, and what of it counts.

A file beside a release proves nothing: anybody can write one. A guarantee counts as it is stated only where the user's
own key or a trusted one signed it, or a ledger of theirs sealed it, and the version that made it has no known fault.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from oversafe._core.text import shorten
from oversafe.privacy.guarantee import Guarantee
from oversafe.privacy.signing.keys import Keys
from oversafe.privacy.signing.manifest import Manifest, read_manifest

if TYPE_CHECKING:
    from oversafe.privacy.ledger.entries import Balance, Entry
    from oversafe.privacy.ledger.ledger import Ledger

By = Literal[
    "nobody", "caller", "you", "trusted", "ledger", "distrusted", "unknown", "changed", "unsigned", "faulty"
]

# The beginning of a version's number, and why guarantees that it stated do not count.
FAULTY_VERSIONS: Mapping[str, str] = {
    "0.1": "its guarantees have faults that 0.2 mended: single cells decided how others were read, and some noise was "
    "added in plain floating point",
}


@dataclass(frozen=True)
class Voucher:
    """Who vouches for a guarantee.

    Parameters
    ----------
    by : str
        "you", "trusted", "ledger" and "caller" count; "nobody", "unsigned", "changed", "unknown", "distrusted" and
        "faulty" do not.
    words : str
        A sentence where it counts ("Ward 7, whom you trust, states this."), else the reason why not, as part of one.
    """

    by: By = "nobody"
    words: str = ""

    @property
    def counts(self) -> bool:
        """Whether a guarantee may count as proven."""
        return self.by in ("you", "trusted", "ledger", "caller")

    @property
    def sentence(self) -> str:
        """Who vouches, as a sentence; empty where there was nothing to vouch for."""
        return self.words if self.counts or not self.words else f"{self.words[:1].upper()}{self.words[1:]}."


NOBODY = Voucher()
CALLER = Voucher("caller", "You state this.")


@dataclass(frozen=True)
class Vouched:
    """What counts of a manifest.

    Parameters
    ----------
    guarantee : Guarantee
        As it is stated where somebody trusted vouches for it; else not proven, with the reason.
    voucher : Voucher
        Who vouches.
    method : str, optional
        How the release was made, where somebody trusted says so.
    balance : Balance, optional
        The budget that paid for it, where a ledger was given that sealed it.
    sha256 : str, optional
        Of the bytes that are vouched for.
    """

    guarantee: Guarantee
    voucher: Voucher
    method: str | None = None
    balance: Balance | None = None
    sha256: str | None = None


def vouched(
    release: str | Path,
    *,
    ledger: Ledger | None = None,
    keys: Keys | None = None,
    sha256: str | None = None,
) -> Vouched | None:
    """Return what counts of the manifest beside a release, None where there is none.

    Parameters
    ----------
    release : path
        The released file.
    ledger : Ledger, optional
        Counts what it has paid for and sealed, whoever signed.
    keys : Keys, optional
        Which keys are trusted; see :class:`Keys`.
    sha256 : str, optional
        Of the bytes that the manifest has to be for, where they were read already; else of those of the file.
    """
    manifest = read_manifest(release, sha256=sha256)
    return None if manifest is None else vouch(manifest, ledger=ledger, keys=keys)


def vouch(manifest: Manifest, *, ledger: Ledger | None = None, keys: Keys | None = None) -> Vouched:
    """Return what counts of a manifest whose file is the one that it belongs to."""
    voucher = _signer(manifest, Keys() if keys is None else keys)
    balance = None
    if ledger is not None:
        entry, doubt = _entry(manifest, ledger)
        if entry is not None and not doubt:
            # Whoever wrote a manifest may name any entry; the seal says that it paid for this file.
            balance = ledger.remaining(entry.dataset)
        if voucher.by in ("unsigned", "unknown"):
            voucher = (
                Voucher("ledger", f"The ledger states this, in its entry {manifest.ledger_entry}.")
                if not doubt
                else Voucher(voucher.by, f"{voucher.words}, and {doubt}")
            )
    if voucher.counts and (fault := known_fault(manifest.oversafe)):
        voucher = Voucher("faulty", fault)
    if not voucher.counts:
        return Vouched(manifest.guarantee.weaken(voucher.words), voucher, sha256=manifest.sha256)
    method = manifest.settings.get("method")
    return Vouched(
        manifest.guarantee, voucher, None if method is None else str(method), balance, manifest.sha256
    )


def known_fault(version: str) -> str:
    """Return why guarantees of a version of oversafe do not count; empty where they do."""
    numbers = re.match(r"(\d+\.\d+)(?=\.|$)", version)
    if numbers is None:
        return (
            f"the manifest does not say which version of oversafe made the release ({shorten(version, 20)!r})"
        )
    reason = FAULTY_VERSIONS.get(numbers[1])
    return "" if reason is None else f"the release was made by oversafe {shorten(version, 20)}, and {reason}"


def _signer(manifest: Manifest, keys: Keys) -> Voucher:
    """Return who signed a manifest."""
    signature = manifest.signature
    if signature is None:
        return Voucher("unsigned", "the manifest is unsigned, so that anybody may have written it")
    if not signature.fits(manifest.fields()):
        return Voucher(
            "changed", "the signature does not fit the manifest, which was changed after it was signed"
        )
    known = keys.find(signature.public_key)
    if known is None:
        return Voucher(
            "unknown",
            f"the manifest is signed by an unknown key (fingerprint {signature.fingerprint}) that calls itself "
            f"{signature.name!r}",
        )
    if known.status == "distrusted":
        return Voucher(
            "distrusted",
            f"the manifest is signed by a key that you distrust, that of {known.name!r} (fingerprint "
            f"{known.fingerprint})",
        )
    if known.status == "own":
        return Voucher("you", "This is signed by you.")
    return Voucher("trusted", f"{known.name}, whom you trust, states this.")


def _entry(manifest: Manifest, ledger: Ledger) -> tuple[Entry | None, str]:
    """Return the ledger's entry that a manifest names, and why it does not vouch for it; empty where it does."""
    if not ledger.verify().ok:
        return None, "the ledger was tampered with (see: oversafe budget verify)"
    entry = next((each for each in ledger.history() if each.id == manifest.ledger_entry), None)
    if entry is None:
        return None, "the ledger has no entry for it"
    if entry.kind != "charge":
        return entry, "the ledger's entry has no proven guarantee"
    if entry.guarantee != manifest.guarantee:
        return entry, "the ledger's entry states another guarantee"
    if manifest.seal is None or not ledger.has_sealed(manifest.sealed_bytes(), manifest.seal):
        return entry, "the ledger's seal is not that of this file"
    return entry, ""
