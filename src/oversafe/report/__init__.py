"""What a person reads: pages and terminal text of audits and comparisons; and plots."""

from oversafe.report.displays import (
    FrontierDisplay,
    MarginalsDisplay,
    MembershipDisplay,
    PrivateBoundaryDisplay,
    RecallDisplay,
    ReconstructionDisplay,
)

__all__ = [
    "FrontierDisplay",
    "MarginalsDisplay",
    "MembershipDisplay",
    "PrivateBoundaryDisplay",
    "RecallDisplay",
    "ReconstructionDisplay",
]
