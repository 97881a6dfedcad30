"""The places of declared categories."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from oversafe.data.cells.formats import DateOrder
from oversafe.data.cells.grammar import cell_key


class Categories:
    """The places of declared categories: a cell is one of them by its exact text, else by what it is.

    Parameters
    ----------
    categories : sequence
        As declared.

    Attributes
    ----------
    ambiguous : tuple
        Two of the categories that are the same but for their spelling, if there are any.
    """

    def __init__(self, categories: Sequence[Any]):
        self.exact = {str(category): place for place, category in enumerate(categories)}
        # Told apart as whole numbers; as floats, which one missing value makes of them, they may be one.
        self.long = {
            int(category): place
            for place, category in enumerate(categories)
            if isinstance(category, int | np.integer) and abs(int(category)) >= 2**53
        }
        self.alike: dict[str | None, int] = {}
        self.ambiguous: tuple[Any, ...] = ()
        for place, category in enumerate(categories):
            key = cell_key(category)
            if (first := self.alike.setdefault(key, place)) != place:
                self.ambiguous = self.ambiguous or (categories[max(first, 0)], category)
                self.alike[key] = -1
        self.alike[None] = -1

    def place(self, value: Any, decimal: str = ".", dates: DateOrder | None = None) -> int:
        """Return a value's place, or -1."""
        if isinstance(value, str) and value in self.exact:
            return self.exact[value]
        if self.long and _is_whole(value) and int(value) in self.long:
            return self.long[int(value)]
        return self.alike.get(cell_key(value, decimal, dates), -1)


def _is_whole(value: Any) -> bool:
    # To numpy a span of time is a whole number.
    return isinstance(value, int | np.integer) and not isinstance(value, np.timedelta64)


def places_of(categories: tuple[Any, ...]) -> Categories:
    """Return the places of declared categories, kept for the next one who asks."""
    return _places_of(categories, tuple(map(type, categories)))


@lru_cache(maxsize=512)
def _places_of(categories: tuple[Any, ...], kinds: tuple[type, ...]) -> Categories:
    # In Python 1 equals True, so the types are part of the question.
    return Categories(categories)
