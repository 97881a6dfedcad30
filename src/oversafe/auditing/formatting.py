"""Values of a table as a reader expects them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from oversafe._core.text import percent, shorten
from oversafe.attack.base import AttackResult

_MOST_CHARACTERS = 120


def cell(value: Any) -> str:
    """Return a value as a reader expects it."""
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and np.isnan(value)):
        return "-"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    return shorten(str(value), _MOST_CHARACTERS)


def estimated_cell(value: Any) -> str:
    """Return a value that is not certain, and that it is not."""
    return (
        f"about {value:.3g} (estimated)" if isinstance(value, float) else f"about {cell(value)} (estimated)"
    )


def told_risk(result: AttackResult) -> str:
    """Return a risk in percent, and whether chance alone may give as much."""
    above = result.risk <= 0 or result.interval[0] > 0
    return percent(result.risk) if above else f"{percent(result.risk)} (not surely above chance)"
