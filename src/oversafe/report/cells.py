"""Values of a table as a reader expects them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from oversafe.text import shorten

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


def percent(share: float) -> str:
    """Return a share in percent; what is not nothing is not shown as nothing, nor what is not all as all."""
    if 0 < share < 0.005:
        return "below 1 %"
    if 0.995 <= share < 1:
        return "above 99 %"
    return f"{share:.0%}".replace("%", " %")


def percent_range(low: float, high: float) -> str:
    """Return an interval in percent."""
    return f"{100 * low:.0f} to {100 * high:.0f} %"
