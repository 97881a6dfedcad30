"""Guarantees, the mechanisms behind them, and the manifest that carries them."""

from oversafe.privacy.accountant import Accountant, Charge, as_replace_one, limit_rows
from oversafe.privacy.domains import Domains, resolve_domains
from oversafe.privacy.estimates import (
    private_bounds,
    private_categories,
    private_class_counts,
    private_quantiles,
)
from oversafe.privacy.guarantee import Guarantee
from oversafe.privacy.manifest import Manifest, read_manifest, write_release
from oversafe.privacy.mechanisms import choose, frequent_counts, gaussian_counts, noisy_counts

__all__ = [
    "Accountant",
    "Charge",
    "Domains",
    "Guarantee",
    "Manifest",
    "as_replace_one",
    "choose",
    "frequent_counts",
    "gaussian_counts",
    "limit_rows",
    "noisy_counts",
    "private_bounds",
    "private_categories",
    "private_class_counts",
    "private_quantiles",
    "read_manifest",
    "resolve_domains",
    "write_release",
]
