"""Settings that are refused alike everywhere: what was given, and what to use instead."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

from oversafe._core.errors import InputError


def check_count(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    """Return a whole number, or refuse what is none or beyond these ends."""
    if not _is(Integral, value) or value < least or (most is not None and value > most):
        ends = f"of at least {least}" if most is None else f"from {least} to {most:,}"
        raise InputError(f"{name} = {value!r} was given; use a whole number {ends}")
    return int(value)


def check_share(name: str, value: Any, low: float, high: float) -> None:
    """Refuse a setting that is no number between two ends, which are allowed."""
    if not _is(Real, value) or not low <= value <= high:
        raise InputError(f"{name} = {value!r} was given; use a number from {low:g} to {high:g}")


def check_positive(name: str, value: Any) -> None:
    """Refuse a setting that is no finite number above 0."""
    if not _is(Real, value) or not 0 < value < math.inf:
        raise InputError(f"{name} = {value!r} was given; use a finite number above 0")


def check_choice(name: str, value: Any, allowed: Iterable[Any]) -> None:
    """Refuse a setting that is none of those allowed."""
    *others, last = allowed
    if value in (*others, last):
        return
    raise InputError(f"{name} = {value!r} was given; use {', '.join(map(repr, others))} or {last!r}")


def check_random_state(value: Any) -> None:
    """Refuse what numpy cannot start a stream of random numbers from."""
    import numpy as np

    try:
        np.random.default_rng(value)
    except (TypeError, ValueError):
        raise InputError(
            f"random_state = {value!r} was given; use None or a whole number of at least 0"
        ) from None


def check_pandas(table: Any) -> None:
    """Refuse a table of another library that pandas can take over; as an array it would lose its columns' names."""
    library = type(table).__module__.partition(".")[0]
    if library != "pandas" and hasattr(table, "to_pandas"):
        raise InputError(f"a {library} {type(table).__name__} was given; use its to_pandas()")


def _is(kind: type, value: Any) -> bool:
    # In Python True is a number; as a setting it is a slip.
    return isinstance(value, kind) and not isinstance(value, bool)
