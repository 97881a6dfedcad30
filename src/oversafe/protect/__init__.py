"""Protectors: samplers that keep real rows, and synthesizers that never do."""

from oversafe.protect.base import Protector, Sampler, Synthesizer
from oversafe.protect.generators import CTGAN, TVAE, CopulaGAN
from oversafe.protect.histograms import HistogramSynthesizer
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
from oversafe.protect.umap_smotenc import UMAPSMOTENC

__all__ = [
    "ADASYN",
    "CTGAN",
    "SMOTE",
    "SMOTENC",
    "SVMSMOTE",
    "TVAE",
    "UMAPSMOTENC",
    "BorderlineSMOTE",
    "CopulaGAN",
    "HistogramSynthesizer",
    "KMeansSMOTE",
    "Protector",
    "RandomOverSampler",
    "RandomUnderSampler",
    "Sampler",
    "Synthesizer",
]
