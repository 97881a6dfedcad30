"""Decisions made by bytes, so that whoever makes the bytes decides what is tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


class Source:
    """Decisions by bytes; when they are used up, the first choice is taken.

    Parameters
    ----------
    data : bytes
        What decides.
    """

    def __init__(self, data: bytes):
        self.data, self.place = data, 0

    def whole(self, most: int) -> int:
        """Return a number from 0 to ``most``, at most 65,535."""
        part = self.data[self.place : self.place + (1 if most < 256 else 2)]
        self.place += len(part)
        return int.from_bytes(part, "big") % (most + 1)

    def choose(self, options: Sequence[T]) -> T:
        """Return one of the options."""
        return options[self.whole(len(options) - 1)]

    def often(self) -> bool:
        """Return True seven times out of eight."""
        return self.whole(7) != 7

    def rest(self) -> bytes:
        """Return the bytes that have not decided anything yet."""
        return self.data[self.place :]

    def rng(self) -> np.random.Generator:
        """Return a generator for values that need no decision each."""
        return np.random.default_rng(self.whole(65_535))
