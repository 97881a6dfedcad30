"""The protectors that the shared tests are run on; a new one is added here and nowhere else."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec

import numpy as np
import pandas as pd

from oversafe.data import Schema
from oversafe.protect import (
    ADASYN,
    CTGAN,
    DPGAN,
    GEM,
    PATEGAN,
    SMOTE,
    SMOTEDP,
    SMOTENC,
    SVMSMOTE,
    TVAE,
    UMAPSMOTENC,
    BayesianNetwork,
    BorderlineSMOTE,
    CopulaGAN,
    GaussianCopula,
    HistogramSynthesizer,
    KAnonymizer,
    KMeansSMOTE,
    NHSSanitizer,
    PrivateMixture,
    PrivateSMOTE,
    PrivBayes,
    Protector,
    RandomOverSampler,
    RandomUnderSampler,
)


@dataclass(frozen=True)
class Case:
    """A protector under test.

    Parameters
    ----------
    make : callable
        Returns a new one; takes its parameters.
    single_minority_row : bool
        Whether it gives a result when a class has a single row, instead of a clear error.
    keeps_missing : bool
        Whether missing values come back in its result.
    proven : callable, optional
        Returns one whose guarantee is proven on the table with the given schema.
    expected_failed_checks : dict of str to str
        imbalanced-learn's own checks that it cannot pass, and why.
    package : str, optional
        The optional package that does the work; the tests are skipped where it is not installed.
    extra : bool
        Whether the tests belong to the tier ``extras``.
    """

    make: Callable[..., Protector]
    single_minority_row: bool = False
    keeps_missing: bool = True
    proven: Callable[[Schema], Protector] | None = None
    expected_failed_checks: dict[str, str] = field(default_factory=dict)
    package: str | None = None
    extra: bool = False

    @property
    def skipped(self) -> str | None:
        """Why the tests cannot run here, if they cannot."""
        if self.package is None or find_spec(self.package) is not None:
            return None
        return f"needs the optional package {self.package}"


CASES: dict[str, Case] = {
    "RandomOverSampler": Case(RandomOverSampler, single_minority_row=True),
    "RandomUnderSampler": Case(RandomUnderSampler, single_minority_row=True),
    "SMOTE": Case(SMOTE),
    "SMOTENC": Case(SMOTENC),
    "BorderlineSMOTE": Case(BorderlineSMOTE, single_minority_row=True),
    "ADASYN": Case(ADASYN),
    "SVMSMOTE": Case(SVMSMOTE),
    "KMeansSMOTE": Case(
        lambda **p: KMeansSMOTE(**{"kmeans_estimator": 4, "cluster_balance_threshold": 0.01, **p}),
        expected_failed_checks={
            "check_samplers_string": "clusters of identical rows have no sparsity to weigh them by",
            "check_samplers_nan": "clusters of identical rows have no sparsity to weigh them by",
        },
    ),
    "PrivateSMOTE": Case(
        # One column, so that both kinds of row are there: some share their value with others.
        lambda **p: PrivateSMOTE(**{"quasi_identifiers": [0], **p}),
        single_minority_row=True,
    ),
    "KAnonymizer": Case(
        lambda **p: KAnonymizer(**{"quasi_identifiers": [0], **p}),
        single_minority_row=True,
    ),
    "NHSSanitizer": Case(
        lambda **p: NHSSanitizer(**{"quasi_identifiers": [0], **p}),
        single_minority_row=True,
        expected_failed_checks={
            "check_samplers_string": "a category that fewer than ten rows have is meant to vanish"
        },
    ),
    "GaussianCopula": Case(GaussianCopula, single_minority_row=True),
    "BayesianNetwork": Case(BayesianNetwork, single_minority_row=True),
    "HistogramSynthesizer": Case(
        # A large budget, so that rare values outlive the noise and the tests can look for them.
        lambda **p: HistogramSynthesizer(**{"epsilon": 1000.0, **p}),
        single_minority_row=True,
        proven=lambda schema: HistogramSynthesizer(epsilon=1.0, schema=schema),
    ),
    "PrivateMixture": Case(
        lambda **p: PrivateMixture(**{"epsilon": 1000.0, "n_steps": 200, "n_components": 50, **p}),
        single_minority_row=True,
        proven=lambda schema: PrivateMixture(epsilon=1.0, n_steps=50, schema=schema),
    ),
    "PrivBayes": Case(
        lambda **p: PrivBayes(**{"epsilon": 1000.0, **p}),
        single_minority_row=True,
        proven=lambda schema: PrivBayes(epsilon=1.0, schema=schema),
    ),
    "GEM": Case(
        # Little training: the tests look at the form of the result, and at columns, which are learned first.
        lambda **p: GEM(**{"epsilon": 1000.0, "n_rounds": 1, "n_products": 40, "embedding": 16, **p}),
        single_minority_row=True,
        proven=lambda schema: GEM(epsilon=1.0, n_steps=20, schema=schema),
        package="torch",
        extra=True,
    ),
    "SMOTEDP": Case(lambda **p: SMOTEDP(**{"epsilon": 1000.0, **p})),
    "UMAPSMOTENC": Case(UMAPSMOTENC, package="umap"),
    # Few epochs: the tests look at the form of the result, not at how well it was learned.
    "CTGAN": Case(lambda **p: CTGAN(**{"epochs": 2, **p}), package="ctgan"),
    "TVAE": Case(
        # Larger batches lose the rare class; and the autoencoder takes the likelier value, which is never "missing".
        lambda **p: TVAE(**{"epochs": 60, "batch_size": 20, **p}),
        keeps_missing=False,
        package="ctgan",
    ),
    "DPGAN": Case(
        lambda **p: DPGAN(**{"epsilon": 1000.0, "epochs": 1, **p}),
        single_minority_row=True,
        proven=lambda schema: DPGAN(epsilon=1.0, epochs=1, schema=schema),
        package="opacus",
        extra=True,
    ),
    "PATEGAN": Case(
        lambda **p: PATEGAN(**{"epsilon": 1000.0, "n_rounds": 2, "n_votes": 20, **p}),
        single_minority_row=True,
        proven=lambda schema: PATEGAN(epsilon=1.0, n_rounds=2, n_votes=20, schema=schema),
        package="opacus",
        extra=True,
    ),
    "CopulaGAN": Case(lambda **p: CopulaGAN(**{"epochs": 2, **p}), package="sdv"),
}


def mixed_table(n: int = 240, *, seed: int = 0, classes: int = 2, missing: bool = True):
    """Return a table with a column of every kind, and text labels with a rare class."""
    rng = np.random.default_rng(seed)
    shares = [0.8, 0.2] if classes == 2 else [0.6, 0.25, 0.15]
    names = np.array(["healthy", "ill", "gravely ill"][:classes])
    code = rng.permutation(np.repeat(np.arange(classes), [round(n * s) for s in shares]))
    n = len(code)
    X = pd.DataFrame(
        {
            "dose": np.round(rng.normal(5 + 2 * code, 1.0), 2),
            "exact": rng.normal(code, 1.0),
            "age": rng.integers(18, 90, n),
            "visits": pd.array(rng.integers(0, 12, n), dtype="Int64"),
            "ward": pd.Categorical(
                rng.choice(["north", "south", "east"], n), categories=["south", "north", "east"]
            ),
            "grade": pd.Categorical(
                rng.choice(["low", "mid", "high"], n), categories=["low", "mid", "high"], ordered=True
            ),
            "smoker": rng.random(n) < 0.3,
            "town": rng.choice(["Ulm", "Köln"], n),
            "admitted": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 365, n), unit="D"),
            "constant": 7.5,
        }
    )
    if missing:
        for column in ("dose", "visits", "ward", "town", "admitted"):
            X.loc[rng.random(n) < 0.1, column] = None
    return X, pd.Series(names[code], name="state")


def public_schema(X: pd.DataFrame) -> Schema:
    """Return a schema of the mixed table whose domains were published, not read from it."""
    schema = Schema.infer(X)
    for column in schema:
        schema = schema.declare(column.name, domain="public", source="hospital code book", missing=True)
    return schema.declare("dose", bounds=(0.0, 12.0)).declare("age", bounds=(0, 110))
