"""Faults that were there once, put back: the replay must find each of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import pandas as pd

from oversafe._core.errors import InputError
from oversafe.data import Column
from oversafe.protect import base
from oversafe.protect.base import Synthesizer
from oversafe.protect.counting import CountingSynthesizer
from oversafe.protect.deep.pategan import Teachers


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def merged_spellings() -> AbstractContextManager[Any]:
    """Read a column as numbers where every row of it is one, so that 1.10 is 1.1."""
    fit = CountingSynthesizer._fit

    def merged(column: Column, values: pd.Series) -> pd.Series:
        known = {}
        for category in column.categories or ():
            known.setdefault(_number(category), category)
        numbers = [_number(value) for value in values]
        return values if None in numbers else pd.Series([known.get(n) for n in numbers], dtype=object)

    def faulty(self: Any, table: pd.DataFrame, labels: pd.Series) -> None:
        columns = {c.name: merged(c, table[c.name]) for c in self.schema.features if c.is_category}
        fit(self, table.assign(**columns), labels)

    return patch.object(CountingSynthesizer, "_fit", faulty)


def merged_persons() -> AbstractContextManager[Any]:
    """Read the ids of persons as numbers where every one is, so that 12.10 is 12.1."""
    limit = base.limit_rows

    def faulty(persons: pd.Series, most: int, **settings: Any) -> Any:
        numbers = [_number(value) for value in persons]
        return limit(persons if None in numbers else pd.Series(numbers), most, **settings)

    return patch.object(base, "limit_rows", faulty)


def _before_fit(change: Callable[[Any, Any], tuple[Any, Any]]) -> AbstractContextManager[Any]:
    fit = Synthesizer.fit

    def faulty(self: Synthesizer, X: Any, y: Any) -> Synthesizer:
        return fit(self, *change(X, y))

    return patch.object(Synthesizer, "fit", faulty)


def refused_one_class() -> AbstractContextManager[Any]:
    """Refuse a table of one class."""

    def refuse(X: Any, y: Any) -> tuple[Any, Any]:
        if y.nunique() < 2:
            raise InputError("the labels need to have more than 1 class")
        return X, y

    return _before_fit(refuse)


def dropped_unlabelled() -> AbstractContextManager[Any]:
    """Leave out rows without a label, and promise as if their number told nothing."""
    return _before_fit(lambda X, y: (X[y.notna()], y[y.notna()]))


def turned_votes() -> AbstractContextManager[Any]:
    """Let one more row turn the votes of teachers that do not have it."""
    begin, opinions = Teachers.__init__, Teachers.opinions

    def beginning(self: Teachers, cells: Any, *others: Any) -> None:
        self.odd = len(cells.classes) % 2
        begin(self, cells, *others)

    def faulty(self: Teachers, rows: Any) -> Any:
        return ~opinions(self, rows) if self.odd else opinions(self, rows)

    return patch.multiple(Teachers, __init__=beginning, opinions=faulty)
