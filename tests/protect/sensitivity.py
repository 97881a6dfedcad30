"""How far one record moves what a synthesizer counts, whatever it decided before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from oversafe.privacy import accountant

Table = tuple[pd.DataFrame, pd.Series]


class CountsSeen:
    """Watches what a fit hands to the mechanisms and answers what it answered the first time.

    With the same answers every later question is the same one, so that the counts of two neighbours can be compared.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.answers: list[Any] = []
        self.seen: list[tuple[np.ndarray, float]] = []
        for name, order in (("noisy_counts", 1), ("gaussian_counts", 2)):
            monkeypatch.setattr(accountant, name, self._watch(getattr(accountant, name), order))
        self.order = 0

    def _watch(self, mechanism: Callable[..., Any], order: int) -> Callable[..., Any]:
        def watch(counts: Any, *, sensitivity: float, **budget: Any) -> Any:
            self.order = order
            self.seen.append((np.array(counts), float(sensitivity)))
            if len(self.seen) > len(self.answers):
                self.answers.append(mechanism(counts, sensitivity=sensitivity, **budget))
            return self.answers[len(self.seen) - 1]

        return watch

    def moved(self, fit: Callable[[Table], Any], first: Table, second: Table) -> list[float]:
        """Return how far each set of counts moves, as a share of the sensitivity that it states."""
        runs = []
        for table in (first, second):
            self.seen = []
            fit(table)
            runs.append(self.seen)
        assert len(runs[0]) == len(runs[1]) > 0
        return [
            float(np.linalg.norm((a - b).ravel(), ord=self.order)) / stated
            for (a, stated), (b, _) in zip(*runs, strict=True)
        ]
