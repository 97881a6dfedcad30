"""The eight data sets of "Differential Privacy Under Class Imbalance" in stratified splits, for several benchmarks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from oversafe.data import load_dataset

QUICK = ("breast_cancer",)


class Split(NamedTuple):
    """One split of a data set, standardised by its training part; the same for every side of a comparison.

    The standardisation is not paid for, so that what is compared is the noise of the fit alone.
    """

    name: str
    seed: int
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    @property
    def norm(self) -> float:
        """The norm that records are shortened to: that of a record with one standard deviation in each column."""
        return math.sqrt(self.X.shape[1])


def splits(names: tuple[str, ...], n_splits: int) -> Iterator[Split]:
    """Yield stratified splits, three quarters of the rows for training; label 1 is the rare class."""
    for name in names:
        X, y = load_dataset(name)
        values = X.to_numpy(dtype=float)
        codes = (y == y.value_counts().idxmin()).to_numpy().astype(int)
        cut = StratifiedShuffleSplit(n_splits, test_size=0.25, random_state=0)
        for seed, (train, test) in enumerate(cut.split(values, codes)):
            centre, spread = values[train].mean(axis=0), values[train].std(axis=0)
            scaled = (values - centre) / np.where(spread > 0, spread, 1.0)
            yield Split(name, seed, scaled[train], codes[train], scaled[test], codes[test])
