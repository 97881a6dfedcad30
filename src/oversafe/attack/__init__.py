"""Attacks: what an outsider gets out of a release."""

from oversafe.attack.base import About, Attack, AttackResult
from oversafe.attack.copies import ExactCopies
from oversafe.attack.geometry.bounds import (
    identifiable_share,
    neighbour_mutuality,
    reconstruction_recall_bound,
)
from oversafe.attack.geometry.distinguishing import DistinSMOTE
from oversafe.attack.geometry.reconstruction import ReconSMOTE
from oversafe.attack.linkage.inference import AttributeInference
from oversafe.attack.linkage.linkability import Linkability
from oversafe.attack.linkage.rare_values import RareValues
from oversafe.attack.linkage.singling_out import SinglingOut
from oversafe.attack.membership.game import MembershipResult
from oversafe.attack.membership.ground_hog import GroundHog
from oversafe.attack.membership.naive_distinguisher import NaiveDistinguisher
from oversafe.attack.membership.shadow import ShadowClassifier
from oversafe.attack.membership.similarity import ClosestRecord
from oversafe.attack.seed.recover_seed import RecoverSeed

__all__ = [
    "About",
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
    "RareValues",
    "ReconSMOTE",
    "RecoverSeed",
    "ShadowClassifier",
    "SinglingOut",
    "identifiable_share",
    "neighbour_mutuality",
    "reconstruction_recall_bound",
]

# In the order in which an audit runs them: first those that read real records out of a release.
ATTACKS: tuple[type[Attack], ...] = (
    ReconSMOTE,
    RecoverSeed,
    DistinSMOTE,
    ExactCopies,
    SinglingOut,
    Linkability,
    AttributeInference,
    RareValues,
    ClosestRecord,
    NaiveDistinguisher,
    GroundHog,
    ShadowClassifier,
)
