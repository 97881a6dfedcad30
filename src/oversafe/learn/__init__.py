"""Classifiers that learn under differential privacy and class imbalance."""

from oversafe.learn.base import PrivateLearner, TuningWarning
from oversafe.learn.linear import PrivateLinearSVC, PrivateLogisticRegression

__all__ = ["PrivateLearner", "PrivateLinearSVC", "PrivateLogisticRegression", "TuningWarning"]
