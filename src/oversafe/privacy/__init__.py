"""Guarantees, the mechanisms behind them, what oversampling costs, and the manifest that carries them."""

from oversafe.privacy.accountant import Accountant, Charge, as_replace_one
from oversafe.privacy.costs.bagging import bagging_budget, bagging_cost
from oversafe.privacy.costs.kissing import kissing_number_bound
from oversafe.privacy.costs.oversampling import (
    oversampling_budget,
    oversampling_cost,
    smote_budget,
    smote_cost,
)
from oversafe.privacy.domains import Domains, resolve_domains
from oversafe.privacy.estimates import (
    private_bounds,
    private_categories,
    private_class_counts,
    private_quantiles,
)
from oversafe.privacy.guarantee import Guarantee
from oversafe.privacy.ledger.check import Verification
from oversafe.privacy.ledger.entries import Balance, Entry, LedgerWarning, OverdraftError
from oversafe.privacy.ledger.ledger import DatasetLedger, Ledger
from oversafe.privacy.mechanisms import choose, frequent_counts, gaussian_counts, noisy_counts
from oversafe.privacy.persons import limit_rows
from oversafe.privacy.signing.keys import Keys
from oversafe.privacy.signing.manifest import Manifest, UnsignedWarning, read_manifest, write_release
from oversafe.privacy.signing.vouching import Vouched, Voucher, vouched

__all__ = [
    "Accountant",
    "Balance",
    "Charge",
    "DatasetLedger",
    "Domains",
    "Entry",
    "Guarantee",
    "Keys",
    "Ledger",
    "LedgerWarning",
    "Manifest",
    "OverdraftError",
    "UnsignedWarning",
    "Verification",
    "Vouched",
    "Voucher",
    "as_replace_one",
    "bagging_budget",
    "bagging_cost",
    "choose",
    "frequent_counts",
    "gaussian_counts",
    "kissing_number_bound",
    "limit_rows",
    "noisy_counts",
    "oversampling_budget",
    "oversampling_cost",
    "private_bounds",
    "private_categories",
    "private_class_counts",
    "private_quantiles",
    "read_manifest",
    "resolve_domains",
    "smote_budget",
    "smote_cost",
    "vouched",
    "write_release",
]
