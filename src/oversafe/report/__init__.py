"""What a person reads: the audit and its verdict, as a page, as JSON and in the terminal; and plots."""

from oversafe.report.audit import Audit, audit
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
    "Finding",
    "FrontierDisplay",
    "MarginalsDisplay",
    "MembershipDisplay",
    "PrivateBoundaryDisplay",
    "RecallDisplay",
    "ReconstructionDisplay",
    "Verdict",
    "audit",
]
