"""People with columns of every kind, for the tests of the attacks that compare tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from oversafe.attack import AttackResult


def people(n: int, seed: int, gaps: float = 0.1) -> pd.DataFrame:
    """Return n people whose columns hang together; two columns have missing values."""
    rng = np.random.default_rng(seed)
    health = rng.normal(size=n)
    age = np.clip(np.rint(50 + 15 * rng.normal(size=n)), 18, 99).astype(int)
    ward = rng.choice(["north", "south", "east", "west"], n)
    return pd.DataFrame(
        {
            "age": age,
            "weight": np.where(rng.random(n) < gaps, np.nan, 75 + 12 * rng.normal(size=n) + 5 * health),
            "income": np.exp(10 + 0.5 * rng.normal(size=n) + 0.3 * health).round(2),
            "ward": pd.Series(ward).mask(rng.random(n) < gaps),
            "smokes": rng.random(n) < 0.3 - 0.1 * (health > 0),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 366, n), unit="D"),
        }
    )


def assert_nothing_found(run: Callable[[int], AttackResult], risky: float = 0.2) -> None:
    """Assert that the intervals of 20 attacks on fresh data reach 0, but for what a 95 % interval allows.

    If each misses 0 with probability 5 % (a one-sided 95 % interval does so with 2.5 %), nine or more do with
    probability 2e-7. And none may call the data risky.
    """
    results = [run(seed) for seed in range(20)]
    assert sum(result.interval[0] > 0 for result in results) <= 8
    assert all(result.interval[0] < risky for result in results)
