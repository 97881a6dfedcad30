"""Small tables with columns of every kind, from fixed seeds."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from oversafe.data import Column, Schema, load_dataset

PUBLIC = {"domain": "public", "source": "a code book"}


def mixed(n: int = 120, classes: int = 2, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Return numbers, integers, categories, ordinals, booleans, dates and gaps; labels are words."""
    rng = np.random.default_rng(seed)
    shares = [1 - 0.2 * (classes - 1), *[0.2] * (classes - 1)]
    code = rng.permutation(np.repeat(np.arange(classes), [round(n * share) for share in shares]))
    n = len(code)
    X = pd.DataFrame(
        {
            "dose": np.round(rng.normal(5 + 2 * code, 1.0), 2),
            "exact": rng.normal(code, 1.0),
            "age": rng.integers(18, 90, n),
            "visits": pd.array(rng.integers(0, 12, n), dtype="Int64"),
            "ward": pd.Categorical(rng.choice(["north", "south", "east"], n), ["south", "north", "east"]),
            "grade": pd.Categorical(
                rng.choice(["low", "mid", "high"], n), ["low", "mid", "high"], ordered=True
            ),
            "smoker": rng.random(n) < 0.3,
            "town": rng.choice(["Ulm", "Köln"], n),
            "admitted": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 365, n), unit="D"),
        }
    )
    for column in ("dose", "visits", "ward", "town", "admitted"):
        X.loc[rng.random(n) < 0.08, column] = None
    names = np.array(["healthy", "ill", "gravely ill", "dying", "cured"])
    return X, pd.Series(names[code], name="state")


def declared(X: pd.DataFrame, y: pd.Series | None = None) -> Schema:
    """Return a schema whose domains were published, not read from the table."""
    schema = Schema.infer(X) if y is None else Schema.infer(X.assign(**{str(y.name): y}), label=str(y.name))
    for column in schema:
        # A column of one's own says itself whether it may be missing; a label may not.
        missing = column.name != schema.label
        schema = schema.declare(column.name, missing=missing, **PUBLIC)
    bounds: dict[str, tuple[Any, Any]] = {
        "dose": (0.0, 12.0),
        "exact": (-4.0, 5.0),
        "age": (0, 110),
        "visits": (0, 20),
    }
    for name in bounds.keys() & set(schema.names):
        schema = schema.declare(name, bounds=bounds[name])
    return schema


def with_persons(n: int = 120, seed: int = 1) -> tuple[pd.DataFrame, pd.Series, Schema]:
    """Return the mixed table in which a person has some rows, and its public schema."""
    X, y = mixed(n, seed=seed)
    schema = declared(X, y)
    schema = Schema((*schema.columns, Column("pid", "identifier", "int64")), str(y.name), "pid")
    return X.assign(pid=np.random.default_rng(seed).integers(0, n // 3, n)), y, schema


def numeric(n: int = 160, minority: int = 24, d: int = 4, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Return numbers of two decimals with a rare class."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], [n - minority, minority])
    values = (rng.normal(size=(n, d)) * [1, 3, 10, 0.5][:d] + y[:, None] * [2.0, 1.0, 5.0, 0.3][:d]).round(2)
    return pd.DataFrame(values, columns=[f"x{i}" for i in range(d)]), pd.Series(y, name="y")


@cache
def _cancer() -> tuple[pd.DataFrame, pd.DataFrame]:
    return load_dataset("breast_cancer").frame, load_dataset("breast_cancer_holdout").frame


def cancer() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the embedded table of patients and other patients, with the label ``diagnosis``."""
    real, holdout = _cancer()
    return real.copy(), holdout.copy()


def sampled(name: str, n: int = 200, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Return some rows of a data set, with those of the rare class that there are up to a fifth."""
    X, y = load_dataset(name)
    rng = np.random.default_rng(seed)
    rare = np.flatnonzero((y == y.value_counts().index[-1]).to_numpy())
    own = rng.choice(rare, min(len(rare), n // 5), replace=False)
    others = rng.choice(np.setdiff1d(np.arange(len(y)), rare), n - len(own), replace=False)
    rows = np.sort(np.concatenate([own, others]))
    return X.iloc[rows].reset_index(drop=True), y.iloc[rows].reset_index(drop=True)
