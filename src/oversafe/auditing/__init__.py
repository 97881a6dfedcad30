"""Audits of a release and comparisons of protections: which attack on what, and the verdict."""

from oversafe.auditing.comparing.comparison import Comparison, Recommendation, Setting, compare
from oversafe.auditing.run import Audit, audit
from oversafe.auditing.verdict import Finding, Verdict

__all__ = ["Audit", "Comparison", "Finding", "Recommendation", "Setting", "Verdict", "audit", "compare"]
