"""What a person reads: audits and comparisons, as pages, as JSON and in the terminal; and plots."""

from oversafe.report.audit import Audit, audit
from oversafe.report.comparison import Comparison, Recommendation, Setting, compare
from oversafe.report.displays import (
    FrontierDisplay,
    MarginalsDisplay,
    MembershipDisplay,
    PrivateBoundaryDisplay,
    RecallDisplay,
    ReconstructionDisplay,
)
from oversafe.report.verdict import Finding, Verdict

__all__ = [
    "Audit",
    "Comparison",
    "Finding",
    "FrontierDisplay",
    "MarginalsDisplay",
    "MembershipDisplay",
    "PrivateBoundaryDisplay",
    "RecallDisplay",
    "Recommendation",
    "ReconstructionDisplay",
    "Setting",
    "Verdict",
    "audit",
    "compare",
]
