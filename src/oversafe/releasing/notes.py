"""What the holder of a table hears while a release is made, and nobody else."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from oversafe.data import MisfitWarning
from oversafe.privacy import LedgerWarning, UnsignedWarning
from oversafe.privacy.meaning import LIMITS, right_at_most, share_in_words

_TOLD = (LedgerWarning, MisfitWarning, UnsignedWarning)


class Notes:
    """The sentences in the order in which they are told.

    Parameters
    ----------
    tell : callable, optional
        Told each sentence at once, before anything is charged or refused for another reason. Without it each is a
        warning.
    """

    def __init__(self, tell: Callable[[str], Any] | None = None) -> None:
        self.said: list[str] = []
        self._tell = tell

    def say(self, *sentences: str) -> None:
        """Tell sentences."""
        for sentence in sentences:
            self.said.append(sentence)
            if self._tell is None:
                # The caller of release().
                warnings.warn(sentence, stacklevel=4)
            else:
                self._tell(sentence)

    @contextmanager
    def of_warnings(self) -> Iterator[None]:
        """Tell what a ledger warns of, rows that do not fit what was declared, and that nothing is signed."""
        if self._tell is None:
            with warnings.catch_warnings():
                yield
        else:
            with warnings_told(self.say):
                yield


@contextmanager
def warnings_told(tell: Callable[[str], Any]) -> Iterator[None]:
    """Tell, as sentences, the warnings that are for the holder of a table."""
    shown = warnings.showwarning

    def show_note(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, _TOLD):
            tell(str(message))
        else:
            shown(message, category, *rest, **more)

    with warnings.catch_warnings():
        warnings.simplefilter("always", LedgerWarning)
        warnings.showwarning = show_note
        yield


def weak_promise(epsilon: float | None, delta: float | None, relation: str | None) -> list[str]:
    """Return what is said of a delta or an epsilon that promises little."""
    said = []
    if delta is not None and delta > LIMITS.max_delta:
        said.append(
            f"delta = {delta:g} is a large one: with this probability anything may be told of a person; use far less "
            f"than 1 over the number of rows, and at most {LIMITS.max_delta:g}"
        )
    # A record that is replaced is one removed and one added.
    doubled = 2 if relation == "add-remove" else 1
    if epsilon is not None and doubled * epsilon > LIMITS.max_epsilon:
        said.append(
            f"epsilon = {epsilon:g} is a weak promise: whoever would guess right half of the time about a person "
            f"guesses right up to {share_in_words(right_at_most(epsilon))} of the time; 1 is usual, and above "
            f"{LIMITS.max_epsilon:g}, where a record is replaced, no audit calls a release protected"
        )
    return said
