"""Values of a table as a reader expects them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from oversafe._core.text import shorten
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


def percent(share: float) -> str:
    """Return a share in percent; what is not nothing is not shown as nothing, nor what is not all as all."""
    if 0 < share < 0.005:
        return "below 1 %"
    if 0.995 <= share < 1:
        return "above 99 %"
    return f"{round(100 * share)} %"


def told_risk(result: AttackResult) -> str:
    """Return a risk in percent, and whether chance alone may give as much."""
    above = result.risk <= 0 or result.interval[0] > 0
    return percent(result.risk) if above else f"{percent(result.risk)} (not surely above chance)"


def percent_range(low: float, high: float) -> str:
    """Return an interval in percent, rounded outwards so that it holds what it held."""
    # But for the rounding of floats: 7 % must not become 8.
    return f"{math.floor(round(100 * low, 6))} to {math.ceil(round(100 * high, 6))} %"


def percent_at_least(low: float) -> str:
    """Return the lower end of an interval in percent, as something that was reached."""
    return "100 %" if low >= 1 else f"at least {math.floor(round(100 * low, 6))} %"
