"""Attacks: what an outsider gets out of a release."""

from oversafe.attack.base import AttackResult
from oversafe.attack.copies import ExactCopies
from oversafe.attack.distinguishing import DistinSMOTE
from oversafe.attack.game import MembershipResult
from oversafe.attack.membership import GroundHog
from oversafe.attack.reconstruction import ReconSMOTE
from oversafe.attack.shadow import ShadowClassifier

__all__ = [
    "AttackResult",
    "DistinSMOTE",
    "ExactCopies",
    "GroundHog",
    "MembershipResult",
    "ReconSMOTE",
    "ShadowClassifier",
]
