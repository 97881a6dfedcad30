"""Releases made by SMOTE, whose real records are known, and what an attack on them got right."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from imblearn.over_sampling import SMOTE
from numpy.typing import NDArray
from scipy.spatial import KDTree
from sklearn.preprocessing import MinMaxScaler

from oversafe.data import load_dataset

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Quick runs need no data folder.
QUICK = ("breast_cancer",)
K_NEIGHBORS = 5
GAUSSIAN_COLUMNS, GAUSSIAN_RATIO = 28, 26
MATCH = 1e-6


def scaled(name: str) -> tuple[Floats, Bools]:
    """Return a data set with its features scaled to [-1, 1], and which rows are of the minority."""
    X, y = load_dataset(name)
    minority = (y == y.value_counts().idxmin()).to_numpy()
    return MinMaxScaler((-1, 1)).fit_transform(X.to_numpy(dtype=float)), minority


def new_rows(sampler: Any, X: Any, y: Any) -> Any:
    """Return the rows that an imbalanced-learn sampler adds to a table."""
    with warnings.catch_warnings():
        # A minority larger than the majority, which `gaussian` wants.
        warnings.simplefilter("ignore", UserWarning)
        augmented, _ = sampler.fit_resample(X, y)
    return augmented[len(y) :]


def smote_release(
    X: Floats, minority: Bools, seed: int, k_neighbors: int = K_NEIGHBORS
) -> tuple[Floats, Floats]:
    """Return the real minority records and the synthetic rows that balance the classes, in random order."""
    rows = new_rows(SMOTE(k_neighbors=k_neighbors, random_state=seed), X, minority)
    return X[minority], np.random.default_rng(seed).permutation(rows)


def gaussian_release(n_synthetic: int, seed: int) -> tuple[Floats, Floats]:
    """Return normal records in 28 columns, scaled to [-1, 1], and 26 synthetic rows for each, in random order."""
    rng = np.random.default_rng(seed)
    n = n_synthetic // GAUSSIAN_RATIO
    # imbalanced-learn wants a second class; it has no part in the rows.
    X = MinMaxScaler((-1, 1)).fit_transform(rng.normal(size=(n + 10, GAUSSIAN_COLUMNS)))
    y = np.arange(n + 10) < n
    sampler = SMOTE(
        k_neighbors=K_NEIGHBORS, random_state=seed, sampling_strategy={True: n + n_synthetic, False: 10}
    )
    return X[y], rng.permutation(new_rows(sampler, X, y))


def augmented(real: Floats, synthetic: Floats, seed: int) -> Floats:
    """Return real and synthetic rows in random order: imbalanced-learn's own tells one from the other."""
    return np.random.default_rng(seed).permutation(np.vstack([real, synthetic]))


def score_records(found: Floats, real: Floats, tolerance: float = MATCH) -> tuple[float, float]:
    """Return the share of the found records that are real and the share of the distinct real ones found.

    Parameters
    ----------
    found, real : array
        The records, in the same columns. A found record with missing values is not right.
    tolerance : float
        How much each value may be off.

    Returns
    -------
    precision, recall : float
        The precision is nan if nothing was found.
    """
    real = np.unique(real, axis=0)
    complete = found[np.isfinite(found).all(axis=1)]
    if not len(complete):
        return (0.0 if len(found) else np.nan), 0.0
    hit = KDTree(real).query(complete, p=np.inf)[0] <= tolerance
    recovered = KDTree(complete).query(real, p=np.inf)[0] <= tolerance
    return float(hit.sum() / len(found)), float(recovered.mean())


def score_labels(X: Floats, is_real: Bools, real: Floats) -> tuple[float, float]:
    """Return the precision and the recall of the label "real", where equal rows count once.

    Parameters
    ----------
    X : array
        The attacked rows, the real ones among them.
    is_real : array of bool
        Their labels.
    real : array
        The real records. A synthetic row that equals one of them counts as real.
    """
    rows, number = np.unique(X, axis=0, return_inverse=True)
    labelled = np.zeros(len(rows), dtype=bool)
    labelled[number.reshape(-1)[is_real]] = True
    truth = KDTree(np.unique(real, axis=0)).query(rows, p=np.inf)[0] == 0
    hits = int((labelled & truth).sum())
    return (hits / int(labelled.sum()) if labelled.any() else np.nan), hits / int(truth.sum())
