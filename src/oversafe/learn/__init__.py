"""Classifiers that learn under differential privacy and class imbalance."""

from oversafe.learn.bagging import PrivateBaggingClassifier
from oversafe.learn.balanced_synthesis import BalancedSynthesisClassifier
from oversafe.learn.base import PrivateLearner
from oversafe.learn.chooser import Choice, PrivateClassifier, choose_classifier
from oversafe.learn.ft_transformer import PrivateFTTransformer
from oversafe.learn.linear import PrivateLinearSVC, PrivateLogisticRegression
from oversafe.learn.threshold import (
    PrivateThresholdClassifier,
    ThresholdBounds,
    threshold_bounds,
    threshold_scores,
)
from oversafe.privacy.call_context import TuningWarning

__all__ = [
    "BalancedSynthesisClassifier",
    "Choice",
    "PrivateBaggingClassifier",
    "PrivateClassifier",
    "PrivateFTTransformer",
    "PrivateLearner",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "PrivateThresholdClassifier",
    "ThresholdBounds",
    "TuningWarning",
    "choose_classifier",
    "threshold_bounds",
    "threshold_scores",
]
