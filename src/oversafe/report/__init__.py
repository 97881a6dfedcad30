"""What a person reads: audits and comparisons, as pages, as JSON and in the terminal."""

from oversafe.report.audit import Audit, audit
from oversafe.report.comparison import Comparison, Recommendation, Setting, compare
from oversafe.report.verdict import Finding, Verdict

__all__ = ["Audit", "Comparison", "Finding", "Recommendation", "Setting", "Verdict", "audit", "compare"]
