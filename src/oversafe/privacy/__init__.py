"""Guarantees, the mechanisms behind them, what oversampling costs, and the manifest that carries them."""

from oversafe.privacy._ledger_check import Verification
from oversafe.privacy._ledger_entries import Balance, Entry, LedgerWarning, OverdraftError
from oversafe.privacy.bagging import bagging_budget, bagging_cost
from oversafe.privacy.accountant import Accountant, Charge, as_replace_one, limit_rows
from oversafe.privacy.domains import Domains, resolve_domains
from oversafe.privacy.estimates import (
    private_bounds,
    private_categories,
    private_class_counts,
    private_quantiles,
)
from oversafe.privacy.guarantee import Guarantee
from oversafe.privacy.kissing import kissing_number_bound
from oversafe.privacy.ledger import DatasetLedger, Ledger
from oversafe.privacy.manifest import Manifest, read_manifest, write_release
from oversafe.privacy.oversampling import oversampling_budget, oversampling_cost, smote_budget, smote_cost

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
    "bagging_budget",
    "bagging_cost",
    "kissing_number_bound",
    "oversampling_budget",
    "oversampling_cost",
    "read_manifest",
    "smote_budget",
    "smote_cost",
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
