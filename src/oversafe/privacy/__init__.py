"""Guarantees, the mechanisms behind them, and the manifest that carries them."""

from oversafe.privacy.guarantee import Guarantee
from oversafe.privacy.manifest import Manifest, read_manifest, write_release

__all__ = ["Guarantee", "Manifest", "read_manifest", "write_release"]
