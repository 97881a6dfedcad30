"""The protectors by the names that the command line knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oversafe import protect
from oversafe.data.schema import Schema
from oversafe.errors import InputError
from oversafe.privacy.ledger import DatasetLedger
from oversafe.protect.base import Protector

METHODS: Mapping[str, type[Protector]] = {
    "mixture": protect.PrivateMixture,
    "aim": protect.AIM,
    "mst": protect.MST,
    "gem": protect.GEM,
    "histograms": protect.HistogramSynthesizer,
    "privbayes": protect.PrivBayes,
    "dpgan": protect.DPGAN,
    "pategan": protect.PATEGAN,
    "private-smote": protect.PrivateSMOTE,
    "gaussian-copula": protect.GaussianCopula,
    "bayesian-network": protect.BayesianNetwork,
    "nhs-sanitizer": protect.NHSSanitizer,
    "k-anonymizer": protect.KAnonymizer,
    "smote-dp": protect.SMOTEDP,
    "umap-smotenc": protect.UMAPSMOTENC,
    "ctgan": protect.CTGAN,
    "tvae": protect.TVAE,
    "copulagan": protect.CopulaGAN,
    "smote": protect.SMOTE,
    "smotenc": protect.SMOTENC,
    "borderline-smote": protect.BorderlineSMOTE,
    "adasyn": protect.ADASYN,
    "svm-smote": protect.SVMSMOTE,
    "kmeans-smote": protect.KMeansSMOTE,
    "random-over": protect.RandomOverSampler,
    "random-under": protect.RandomUnderSampler,
}


def check_method(method: str) -> None:
    """Refuse a method that does not exist."""
    if method not in METHODS:
        raise InputError(f"the method {method!r} is not known; use one of {', '.join(METHODS)}")


def make_protector(
    method: str,
    *,
    epsilon: float | None = None,
    schema: Schema | None = None,
    balance: bool = False,
    random_state: int | None = None,
    quasi_identifiers: list[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    ledger: DatasetLedger | None = None,
) -> Protector:
    """Return a protector by name, given what it has a use for; ``settings`` are parameters by their names."""
    check_method(method)
    kind = METHODS[method]
    accepted = kind._get_param_names()
    if epsilon is not None and "epsilon" not in accepted:
        raise InputError(f"the method {method!r} takes no epsilon; leave it out, or use 'mixture'")
    if quasi_identifiers and "quasi_identifiers" not in accepted:
        raise InputError(f"the method {method!r} takes no quasi-identifiers; leave them out")
    if balance and "sampling_strategy" not in accepted:
        raise InputError(f"the method {method!r} cannot balance the classes; leave --balance out")
    wanted: dict[str, Any] = {
        "epsilon": epsilon,
        "schema": schema,
        "random_state": random_state,
        "quasi_identifiers": quasi_identifiers or None,
        "sampling_strategy": "auto" if balance else None,
        "ledger": ledger,
    }
    parameters = {k: v for k, v in wanted.items() if k in accepted and v is not None}
    for name, value in (settings or {}).items():
        if name not in accepted or name in ("schema", "random_state"):
            known = [n for n in accepted if n not in ("schema", "random_state")]
            raise InputError(f"the method {method!r} has no setting {name!r}; it has {', '.join(known)}")
        parameters[name] = value
    return kind(**parameters)
