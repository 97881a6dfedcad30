"""What a protector costs and what it keeps, measured."""

from oversafe.measure.epsilon import EpsilonAudit, audit_epsilon
from oversafe.measure.fidelity import Fidelity, fidelity
from oversafe.measure.gain import privacy_gain
from oversafe.measure.leakage import Overlap, release_overlap
from oversafe.measure.one_run import audit_epsilon_one_run
from oversafe.measure.outputs import worst_case_neighbours
from oversafe.measure.scores import imbalance_scores
from oversafe.measure.statistics import BayesSignTest, FriedmanHolm, bayes_sign_test, friedman_holm
from oversafe.measure.tradeoff import frontier, tradeoff
from oversafe.measure.utility import Utility, train_on_release, train_on_synthetic

__all__ = [
    "BayesSignTest",
    "EpsilonAudit",
    "Fidelity",
    "FriedmanHolm",
    "Overlap",
    "Utility",
    "audit_epsilon",
    "audit_epsilon_one_run",
    "bayes_sign_test",
    "fidelity",
    "friedman_holm",
    "frontier",
    "imbalance_scores",
    "privacy_gain",
    "release_overlap",
    "tradeoff",
    "train_on_release",
    "train_on_synthetic",
    "worst_case_neighbours",
]
