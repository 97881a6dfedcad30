"""Guarantees, the mechanisms behind them, and the manifest that carries them."""

from oversafe.privacy.accountant import Accountant, Charge, limit_rows
from oversafe.privacy.guarantee import Guarantee
from oversafe.privacy.manifest import Manifest, read_manifest, write_release

__all__ = ["Accountant", "Charge", "Guarantee", "Manifest", "limit_rows", "read_manifest", "write_release"]
