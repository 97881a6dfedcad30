"""Guarantees, the mechanisms behind them, what oversampling costs, and the manifest that carries them."""

from oversafe.privacy.bagging import bagging_budget, bagging_cost
from oversafe.privacy.guarantee import Guarantee
from oversafe.privacy.kissing import kissing_number_bound
from oversafe.privacy.manifest import Manifest, read_manifest, write_release
from oversafe.privacy.oversampling import oversampling_budget, oversampling_cost, smote_budget, smote_cost

__all__ = [
    "Guarantee",
    "Manifest",
    "bagging_budget",
    "bagging_cost",
    "kissing_number_bound",
    "oversampling_budget",
    "oversampling_cost",
    "read_manifest",
    "smote_budget",
    "smote_cost",
    "write_release",
]
