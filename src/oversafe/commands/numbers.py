"""Numbers as a person writes them."""

from __future__ import annotations

import re

from oversafe.errors import InputError

# Above this, the odds of a guess about a person may grow by more than 20,000 times.
_HARDLY_A_PROMISE = 10.0


def number_of(option: str, text: str | None) -> float | None:
    """Return the number that an option gives, None where it is not given."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        if re.fullmatch(r"\s*[+-]?\d*,\d+\s*", text):
            remedy = f"write {text.strip().replace(',', '.')}, with a point"
        else:
            remedy = "write a number, such as 1.0"
        raise InputError(f"{option} {text} was given; {remedy}") from None


def weak_epsilon(epsilon: float | None) -> str | None:
    """Return a sentence about an epsilon that promises next to nothing, None for another."""
    if epsilon is None or not epsilon > _HARDLY_A_PROMISE:
        return None
    return (
        f"epsilon = {epsilon:g} promises next to nothing: what is guessed about a person may become up to "
        f"e^{epsilon:g} times likelier; 1 is usual, and up to 10 is defended by some"
    )
