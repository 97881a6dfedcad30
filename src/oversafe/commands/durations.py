"""How long a command may take, as a person writes it."""

from __future__ import annotations

import re

from oversafe.errors import InputError

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def seconds_of(text: str | None) -> float | None:
    """Return the seconds of a time limit such as 30s, 5m or 1h; None where none is given."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|min|m|h)?", text.strip())
    if match is None:
        raise InputError(f"--time-limit {text!r} was given; write it as 30s, 5m or 1h")
    return float(match[1]) * _SECONDS[match[2] or ""]
