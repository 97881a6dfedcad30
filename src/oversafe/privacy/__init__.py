"""Guarantees, the mechanisms behind them, and the manifest that carries them."""

from oversafe.privacy._ledger_check import Verification
from oversafe.privacy._ledger_entries import Balance, Entry, LedgerWarning, OverdraftError
from oversafe.privacy.guarantee import Guarantee
from oversafe.privacy.ledger import DatasetLedger, Ledger
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
