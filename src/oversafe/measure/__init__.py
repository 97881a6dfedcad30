"""What a protector costs and what it keeps, measured."""

from oversafe.measure.epsilon import EpsilonAudit, audit_epsilon

__all__ = ["EpsilonAudit", "audit_epsilon"]
