"""Protectors: samplers that keep real rows, and synthesizers that never do."""

from oversafe.protect.base import Protector, Sampler, Synthesizer
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

__all__ = [
    "ADASYN",
    "SMOTE",
    "SMOTENC",
    "SVMSMOTE",
    "BorderlineSMOTE",
    "HistogramSynthesizer",
    "KMeansSMOTE",
    "Protector",
    "RandomOverSampler",
    "RandomUnderSampler",
    "Sampler",
    "Synthesizer",
]
