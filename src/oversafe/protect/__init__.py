"""Protectors: samplers that keep real rows, and synthesizers that never do."""

from oversafe.protect.anonymizer import KAnonymizer
from oversafe.protect.base import Protector, Sampler, Synthesizer
from oversafe.protect.bayesian_network import BayesianNetwork
from oversafe.protect.copula import GaussianCopula
from oversafe.protect.dpgan import DPGAN
from oversafe.protect.gem import GEM
from oversafe.protect.generators import CTGAN, TVAE, CopulaGAN
from oversafe.protect.graphical import AIM, MST
from oversafe.protect.histograms import HistogramSynthesizer
from oversafe.protect.mixture import PrivateMixture
from oversafe.protect.oversamplers import (
    ADASYN,
    SMOTE,
    SMOTENC,
    SVMSMOTE,
    BorderlineSMOTE,
    KMeansSMOTE,
    RandomOverSampler,
    RandomUnderSampler,
)
from oversafe.protect.pategan import PATEGAN
from oversafe.protect.private_smote import PrivateSMOTE
from oversafe.protect.privbayes import PrivBayes
from oversafe.protect.quasi_identifiers import suggest_quasi_identifiers
from oversafe.protect.sanitizer import NHSSanitizer
from oversafe.protect.smote_dp import SMOTEDP
from oversafe.protect.umap_smotenc import UMAPSMOTENC

__all__ = [
    "ADASYN",
    "AIM",
    "CTGAN",
    "DPGAN",
    "GEM",
    "MST",
    "PATEGAN",
    "SMOTE",
    "SMOTEDP",
    "SMOTENC",
    "SVMSMOTE",
    "TVAE",
    "UMAPSMOTENC",
    "BayesianNetwork",
    "BorderlineSMOTE",
    "CopulaGAN",
    "GaussianCopula",
    "HistogramSynthesizer",
    "KAnonymizer",
    "KMeansSMOTE",
    "NHSSanitizer",
    "PrivBayes",
    "PrivateMixture",
    "PrivateSMOTE",
    "Protector",
    "RandomOverSampler",
    "RandomUnderSampler",
    "Sampler",
    "Synthesizer",
    "suggest_quasi_identifiers",
]
