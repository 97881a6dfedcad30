"""Guarantees, the mechanisms behind them, and the manifest that carries them."""

from oversafe.privacy.guarantee import Guarantee
from oversafe.privacy.ledger import (
    Balance,
    DatasetLedger,
    Entry,
    Ledger,
    LedgerWarning,
    OverdraftError,
    Verification,
)
from oversafe.privacy.manifest import Manifest, read_manifest, write_release

__all__ = [
    "Balance",
    "DatasetLedger",
    "Entry",
    "Guarantee",
    "Ledger",
    "LedgerWarning",
    "Manifest",
    "OverdraftError",
    "Verification",
    "read_manifest",
    "write_release",
]
