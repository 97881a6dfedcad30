"""Attacks: what an outsider gets out of a release."""

from oversafe.attack.base import Attack, AttackResult
from oversafe.attack.bounds import identifiable_share, neighbour_mutuality, reconstruction_recall_bound
from oversafe.attack.copies import ExactCopies
from oversafe.attack.distinguishing import DistinSMOTE
from oversafe.attack.game import MembershipResult
from oversafe.attack.inference import AttributeInference
from oversafe.attack.linkability import Linkability
from oversafe.attack.membership import GroundHog
from oversafe.attack.reconstruction import ReconSMOTE
from oversafe.attack.shadow import ShadowClassifier
from oversafe.attack.similarity import ClosestRecord, NaiveDistinguisher
from oversafe.attack.singling_out import SinglingOut

__all__ = [
    "Attack",
    "AttackResult",
    "AttributeInference",
    "ClosestRecord",
    "DistinSMOTE",
    "ExactCopies",
    "GroundHog",
    "Linkability",
    "MembershipResult",
    "NaiveDistinguisher",
    "ReconSMOTE",
    "ShadowClassifier",
    "SinglingOut",
    "identifiable_share",
    "neighbour_mutuality",
    "reconstruction_recall_bound",
]
