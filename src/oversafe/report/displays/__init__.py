"""Plots as scikit-learn has them: made from results, drawn by ``plot`` on given or new axes (extra ``plot``)."""

from oversafe.report.displays.boundary import PrivateBoundaryDisplay
from oversafe.report.displays.frontier import FrontierDisplay
from oversafe.report.displays.marginals import MarginalsDisplay
from oversafe.report.displays.membership import MembershipDisplay
from oversafe.report.displays.recall import RecallDisplay
from oversafe.report.displays.reconstruction import ReconstructionDisplay

__all__ = [
    "FrontierDisplay",
    "MarginalsDisplay",
    "MembershipDisplay",
    "PrivateBoundaryDisplay",
    "RecallDisplay",
    "ReconstructionDisplay",
]
