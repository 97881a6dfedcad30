"""The protectors by the names that the command line knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oversafe import protect
from oversafe.data.schema import Schema
from oversafe.errors import InputError
from oversafe.protect.base import Protector

METHODS: Mapping[str, type[Protector]] = {
    "histograms": protect.HistogramSynthesizer,
    "smote": protect.SMOTE,
    "smotenc": protect.SMOTENC,
    "borderline-smote": protect.BorderlineSMOTE,
    "adasyn": protect.ADASYN,
    "svm-smote": protect.SVMSMOTE,
    "kmeans-smote": protect.KMeansSMOTE,
    "random-over": protect.RandomOverSampler,
    "random-under": protect.RandomUnderSampler,
}


def make_protector(
    method: str,
    *,
    epsilon: float | None = None,
    schema: Schema | None = None,
    balance: bool = False,
    random_state: int | None = None,
) -> Protector:
    """Return a protector by name, given what it has a use for."""
    if method not in METHODS:
        raise InputError(f"the method {method!r} is not known; use one of {', '.join(METHODS)}")
    kind = METHODS[method]
    accepted = kind._get_param_names()
    if epsilon is not None and "epsilon" not in accepted:
        raise InputError(f"the method {method!r} takes no epsilon; leave it out, or use 'histograms'")
    wanted: dict[str, Any] = {"epsilon": epsilon, "schema": schema, "random_state": random_state}
    parameters = {k: v for k, v in wanted.items() if k in accepted and v is not None}
    if balance:
        parameters["sampling_strategy"] = "auto"
    return kind(**parameters)
