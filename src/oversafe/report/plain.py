"""Results as JSON holds them, and as files."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oversafe.data.files import write_text


def plain(value: Any) -> Any:
    """Return a value as JSON holds it; what is not a finite number becomes null."""
    if isinstance(value, pd.DataFrame):
        return [
            dict(zip(map(str, value.columns), map(plain, row), strict=True))
            for row in value.itertuples(index=False, name=None)
        ]
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | np.ndarray):
        return [plain(v) for v in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    if value is None or value is pd.NaT or value is pd.NA:
        return None
    return str(value)


def as_json(document: Mapping[str, Any]) -> str:
    """Return a document of plain values as JSON, for people too."""
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)


def written(text: str, path: str | Path | None, end: str = "", *, private: bool = False) -> str:
    """Return a text, and write it when a path is given, for its owner alone if it may hold real records."""
    if path is not None:
        write_text(text + end, path, private=private)
    return text
