"""Protectors: samplers that keep real rows, and synthesizers that never do."""

from oversafe.protect.anonymize.k_anonymizer import KAnonymizer
from oversafe.protect.anonymize.nhs_sanitizer import NHSSanitizer
from oversafe.protect.anonymize.quasi_identifiers import suggest_quasi_identifiers
from oversafe.protect.base import Protector, Sampler, Synthesizer
from oversafe.protect.deep.dpgan import DPGAN
from oversafe.protect.deep.generators import CTGAN, TVAE, CopulaGAN
from oversafe.protect.deep.pategan import PATEGAN
from oversafe.protect.marginals.bayesian_network import BayesianNetwork
from oversafe.protect.marginals.copula import GaussianCopula
from oversafe.protect.marginals.gem import GEM
from oversafe.protect.marginals.graphical import AIM, MST
from oversafe.protect.marginals.histograms import HistogramSynthesizer
from oversafe.protect.marginals.mixture import PrivateMixture
from oversafe.protect.marginals.privbayes import PrivBayes
from oversafe.protect.samplers.oversamplers import (
    ADASYN,
    SMOTE,
    SMOTENC,
    SVMSMOTE,
    BorderlineSMOTE,
    KMeansSMOTE,
    RandomOverSampler,
    RandomUnderSampler,
)
from oversafe.protect.samplers.private_smote import PrivateSMOTE
from oversafe.protect.samplers.smote_dp import SMOTEDP
from oversafe.protect.samplers.umap_smotenc import UMAPSMOTENC

# Methods in the order in which they are listed everywhere, the recommended one first.
__all__ = [  # noqa: RUF022
    "PrivateMixture",
    "AIM",
    "MST",
    "GEM",
    "HistogramSynthesizer",
    "PrivBayes",
    "DPGAN",
    "PATEGAN",
    "PrivateSMOTE",
    "GaussianCopula",
    "BayesianNetwork",
    "NHSSanitizer",
    "KAnonymizer",
    "SMOTEDP",
    "UMAPSMOTENC",
    "CTGAN",
    "TVAE",
    "CopulaGAN",
    "SMOTE",
    "SMOTENC",
    "BorderlineSMOTE",
    "ADASYN",
    "SVMSMOTE",
    "KMeansSMOTE",
    "RandomOverSampler",
    "RandomUnderSampler",
    "Protector",
    "Sampler",
    "Synthesizer",
    "suggest_quasi_identifiers",
]
