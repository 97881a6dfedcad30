"""PrivateSMOTE on numbers, against its published algorithm written down row by row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.runner import Side, in_a_fresh_process, in_this_process
from oversafe.protect import PrivateSMOTE

SUMMARY = (
    "`PrivateSMOTE`, 5,000 x 10, 4 quasi-identifiers, 3 neighbours, 2 copies, against the algorithm row by row; "
    "and 1,000,000 x 10"
)
KNOWN = ["c0", "c1", "c2", "c3"]


def table(rows: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return ten columns of numbers and a rare class."""
    rng = np.random.default_rng(0)
    columns = [f"c{i}" for i in range(10)]
    return pd.DataFrame(rng.normal(size=(rows, 10)), columns=columns), (rng.random(rows) < 0.1).astype(int)


def row_by_row(
    X: pd.DataFrame, y: np.ndarray, epsilon: float, k_neighbors: int, n_copies: int
) -> pd.DataFrame:
    """Return the release as Algorithm 1 of the paper makes it, for numbers: a loop over rows, copies, columns."""
    from sklearn.neighbors import NearestNeighbors
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    counts = X.groupby(KNOWN)[KNOWN[0]].transform("size").to_numpy()
    scaled = StandardScaler().fit_transform(X)
    search = NearestNeighbors(n_neighbors=k_neighbors + 1).fit(scaled)
    deviation = X.std().to_numpy()
    values = X.to_numpy()
    low, high = values.min(axis=0), values.max(axis=0)
    rows, labels = [], []
    for i in range(len(values)):
        if counts[i] >= 3:
            rows.append(values[i])
            labels.append(y[i])
            continue
        near = search.kneighbors(scaled[i : i + 1], return_distance=False)[0][1:]
        for _ in range(n_copies):
            new = np.empty(values.shape[1])
            for j in range(values.shape[1]):
                a, b = values[i, j], values[rng.choice(near), j]
                difference = b - a if a != b else rng.choice([deviation[j], -deviation[j]])
                new[j] = a + rng.laplace(0.0, 1.0 / epsilon) * difference
                while not low[j] <= new[j] <= high[j]:
                    new[j] = a + rng.laplace(0.0, 1.0 / epsilon) * difference
            rows.append(new)
            labels.append(y[i])
    return pd.DataFrame(rows, columns=X.columns).assign(label=labels)


def check_agreement(ours: pd.DataFrame, theirs: pd.DataFrame) -> None:
    """Raise unless both releases have as many rows and, column by column, nearly the same spread."""
    if len(ours) != len(theirs):
        raise AssertionError(f"{len(ours)} rows and {len(theirs)} rows were released")
    # Both draw their own noise; the spread of ten thousand values differs by a few percent.
    for name in ours:
        ratio = ours[name].std() / theirs[name].std()
        if not 0.9 < ratio < 1.1:
            raise AssertionError(f"the values of column {name!r} spread {ratio:.2f} times as wide")


def sides(quick: bool, folder: Path) -> list[Side]:
    """Check that both make the same kind of release, and return them."""
    X, y = table(500 if quick else 5_000)
    sampler = PrivateSMOTE(1.0, KNOWN, k_neighbors=3, n_copies=2)
    check_agreement(sampler.fit_resample(X, y)[0], row_by_row(X, y, 1.0, 3, 2).drop(columns="label"))
    setup = """
        from benchmarks.private_smote import KNOWN, table
        from oversafe.protect import PrivateSMOTE
        X, y = table({})
        sampler = PrivateSMOTE(1.0, KNOWN, k_neighbors=3, n_copies=2)
        """
    large = setup.format(20_000 if quick else 1_000_000)
    return [
        Side(
            "PrivateSMOTE",
            in_this_process(lambda: sampler.fit_resample(X, y)),
            ["oversafe", "numba", "scikit-learn"],
            lambda: in_a_fresh_process("sampler.fit_resample(X, y)", setup.format(len(X)))().peak_memory,
        ),
        Side("row by row", in_this_process(lambda: row_by_row(X, y, 1.0, 3, 2)), ["pandas", "scikit-learn"]),
        Side(
            "PrivateSMOTE, 1,000,000 rows" if not quick else "PrivateSMOTE, 20,000 rows",
            in_a_fresh_process("sampler.fit_resample(X, y)", large),
            ["oversafe", "scipy"],
        ),
    ]
