"""Attacks: what an outsider gets out of a release."""

from oversafe.attack.base import AttackResult
from oversafe.attack.bounds import identifiable_share, neighbour_mutuality, reconstruction_recall_bound
from oversafe.attack.copies import ExactCopies
from oversafe.attack.distinguishing import DistinSMOTE
from oversafe.attack.reconstruction import ReconSMOTE

__all__ = [
    "AttackResult",
    "DistinSMOTE",
    "ExactCopies",
    "ReconSMOTE",
    "identifiable_share",
    "neighbour_mutuality",
    "reconstruction_recall_bound",
]
