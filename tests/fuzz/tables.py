"""Tables that no careful person would make."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from tests.fuzz.source import Source

SIZES = (40, 12, 200, 5, 3, 2, 1, 0)
STRANGE = (0.0, -0.0, 1e300, -1e300, 1e-300, 5e-324, np.inf, -np.inf, np.nan, 2.0**53, 0.1)
WORDS = (
    "",
    " ",
    "yes",
    "Ulm",
    "Köln",
    "=1+1",
    "-2",
    "\x00",
    "a\nb",
    '"',
    "é" * 300,
    "🙂",
    "שלום",
    "nan",
    "None",
    "1,5",
)
NAMES = ("a", "b", "c", "d", "", " ", "label", "y", "0", "=x", "a\nb", "🙂", "n" * 10_000, "<b>")


def _missing(values: Any, rng: np.random.Generator, share: float) -> pd.Series:
    return pd.Series(values).mask(rng.random(len(values)) < share)


COLUMNS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "numbers": lambda rng, n: rng.normal(size=n),
    "rounded": lambda rng, n: np.round(rng.normal(size=n), 1),
    "whole": lambda rng, n: rng.integers(-3, 50, n),
    "words": lambda rng, n: rng.choice(["x", "y", "z"], n),
    "categories": lambda rng, n: pd.Categorical(rng.choice(["x", "y"], n), categories=["y", "x", "never"]),
    "booleans": lambda rng, n: rng.random(n) < 0.3,
    "dates": lambda rng, n: pd.Timestamp("2024-02-29") + pd.to_timedelta(rng.integers(0, 999, n), unit="D"),
    "some missing": lambda rng, n: _missing(rng.normal(size=n), rng, 0.3),
    "whole, some missing": lambda rng, n: pd.array(rng.integers(0, 9, n), dtype="Int64"),
    "words, some missing": lambda rng, n: _missing(rng.choice(["x", "y"], n), rng, 0.3),
    "dates, some missing": lambda rng, n: _missing(pd.date_range("1700-01-01", periods=n), rng, 0.3),
    "constant": lambda rng, n: np.full(n, 7.5),
    "all missing": lambda rng, n: np.full(n, np.nan),
    "nothing": lambda rng, n: [None] * n,
    "strange numbers": lambda rng, n: rng.choice(STRANGE, n),
    "huge": lambda rng, n: rng.choice([1e308, -1e308, 1.0], n),
    "tiny": lambda rng, n: rng.choice([1e-308, 3e-308, 5e-324], n),
    "very whole": lambda rng, n: rng.choice(np.array([2**62, -(2**62), 2**53 + 1, 0]), n),
    "unsigned": lambda rng, n: rng.choice(np.array([2**64 - 1, 0], dtype=np.uint64), n),
    "beyond 64 bits": lambda rng, n: [[2**70, 1][i] for i in rng.integers(0, 2, n)],
    "single precision": lambda rng, n: rng.normal(size=n).astype(np.float32),
    "complex": lambda rng, n: rng.normal(size=n) + 1j,
    "strange words": lambda rng, n: rng.choice(np.array(WORDS, dtype=object), n),
    "all different": lambda rng, n: [f"person {i}" for i in range(n)],
    "with a zone": lambda rng, n: pd.date_range("2024-03-30", periods=n, freq="h", tz="Europe/Berlin"),
    "durations": lambda rng, n: pd.to_timedelta(rng.integers(0, 99, n), unit="h"),
    "periods": lambda rng, n: pd.period_range("2024-01", periods=n, freq="M"),
    "mixed": lambda rng, n: [[1, "x", None, 2.5, True, b"b"][i] for i in rng.integers(0, 6, n)],
    "lists": lambda rng, n: [[1, 2]] * n,
    "decimals": lambda rng, n: [Decimal("1.10")] * n,
    "numbers as words": lambda rng, n: [str(v) for v in rng.integers(0, 9, n)],
    "sparse": lambda rng, n: pd.arrays.SparseArray(rng.integers(0, 2, n)),
    "ordered": lambda rng, n: pd.Categorical(rng.choice([1, 2, 3], n), ordered=True),
    "intervals": lambda rng, n: pd.cut(rng.random(n), [0, 0.5, 1]),
}  # fmt: skip
# Half of the columns are of the kinds that are met every day, or hardly a table would be accepted.
_EVERYDAY = tuple(COLUMNS)[:8]

LABELS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "words": lambda rng, n: rng.choice(["ill", "well"], n, p=[0.2, 0.8]),
    "codes": lambda rng, n: (rng.random(n) < 0.15).astype(int),
    "three": lambda rng, n: rng.choice(["a", "b", "c"], n, p=[0.1, 0.3, 0.6]),
    "truth": lambda rng, n: rng.random(n) < 0.3,
    "one class": lambda rng, n: np.zeros(n, dtype=int),
    "a single row": lambda rng, n: np.arange(n) == 0,
    "all different": lambda rng, n: np.arange(n),
    "numbers": lambda rng, n: rng.normal(size=n),
    "some missing": lambda rng, n: _missing(rng.choice(["x", "y"], n), rng, 0.2),
    "categories": lambda rng, n: pd.Categorical(rng.choice(["x", "y"], n), categories=["x", "y", "never"]),
    "mixed": lambda rng, n: [[1, "x", True][i] for i in rng.integers(0, 3, n)],
    "dates": lambda rng, n: pd.to_datetime(rng.choice(["2024-01-01", "2024-01-02"], n)),
    "strange words": lambda rng, n: rng.choice(np.array(WORDS[:6], dtype=object), n),
}  # fmt: skip


def column(source: Source, rng: np.random.Generator, n: int) -> Any:
    kind = source.choose(_EVERYDAY if source.whole(1) == 0 else tuple(COLUMNS))
    return COLUMNS[kind](rng, n)


def table(source: Source) -> pd.DataFrame:
    """Return a table; its columns may share a name, and its rows may be repeated."""
    n, rng = source.choose(SIZES), source.rng()
    columns = [pd.Series(column(source, rng, n)) for _ in range(1 + source.whole(4) if source.often() else 0)]
    made = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=range(n))
    ordinary = source.often()
    made.columns = [
        NAMES[i] if ordinary else source.choose((*NAMES, 0, 1.5, None, ("a", 1), True)) for i in range(len(columns))
    ]  # fmt: skip
    if not source.often():
        made = made.iloc[rng.integers(0, n, n)] if n else made
    if not source.often():
        made = made.iloc[np.zeros(n, dtype=int)] if n else made
    return made


def labels(source: Source, n: int) -> pd.Series:
    """Return labels of as many rows."""
    kind = source.choose(tuple(LABELS)[:4] if source.whole(1) == 0 else tuple(LABELS))
    return pd.Series(LABELS[kind](source.rng(), n), name="label")


def variant(source: Source, of: pd.DataFrame) -> pd.DataFrame:
    """Return a table that may be a release of another: its rows changed, or some other table."""
    how, rng = source.whole(5), source.rng()
    if how == 5:
        return table(source)
    rows = rng.integers(0, len(of), source.choose((len(of), 1, 0, 3 * len(of)))) if len(of) else []
    made = of.iloc[rows].reset_index(drop=True)
    if how == 1 and made.columns.is_unique and len(made) and made.shape[1]:
        made = made.apply(lambda own: own.sample(frac=1.0, random_state=0).to_numpy())
    elif how == 2:
        made = made.iloc[:, ::-1]
    elif how == 3 and made.shape[1]:
        made = made.iloc[:, :-1]
    elif how == 4:
        numbers = made.select_dtypes("float")
        made = made.assign(**{str(k): v + 0.5 for k, v in numbers.items() if made.columns.is_unique})
    return made
