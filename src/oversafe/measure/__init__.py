"""What a protector costs and what it keeps, measured."""

from oversafe.measure.epsilon import EpsilonAudit, audit_epsilon
from oversafe.measure.gain import privacy_gain
from oversafe.measure.one_run import audit_epsilon_one_run
from oversafe.measure.outputs import worst_case_neighbours
from oversafe.measure.scores import imbalance_scores

__all__ = [
    "EpsilonAudit",
    "audit_epsilon",
    "audit_epsilon_one_run",
    "imbalance_scores",
    "privacy_gain",
    "worst_case_neighbours",
]
