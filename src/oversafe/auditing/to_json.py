"""Results as JSON holds them, and as files."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from oversafe.data.io.files import write_text

# What is shorter stands in one line.
_LONGEST_LINE = 100


def plain(value: Any) -> Any:
    """Return a value as JSON holds it; what is not a finite number becomes null."""
    if isinstance(value, pd.DataFrame):
        names = list(map(str, value.columns))
        columns = [_plain_column(column) for _, column in value.items()]
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
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


def _plain_column(column: pd.Series) -> list[Any]:
    if not isinstance(column.dtype, np.dtype) or column.dtype.kind not in "fiub":
        return [plain(value) for value in column]
    # Of floats there are longer ones than JSON knows.
    values: list[Any] = (column.astype(float) if column.dtype.kind == "f" else column).tolist()
    for place in np.flatnonzero(~np.isfinite(column.to_numpy())):
        values[place] = None
    return values


def as_json(document: Mapping[str, Any]) -> str:
    """Return a document of plain values as JSON, for people too: each row of a table is a line."""
    return _laid_out(document, "", in_list=False)


def _laid_out(value: Any, indent: str, *, in_list: bool) -> str:
    is_list = isinstance(value, list)
    parts = value if is_list else list(value.values()) if isinstance(value, Mapping) else []
    if not any(isinstance(part, list | dict) and part for part in parts):
        line = json.dumps(value, ensure_ascii=False, allow_nan=False)
        if in_list or not parts or len(line) <= _LONGEST_LINE:
            return line
    inner = indent + "  "
    lines = [_laid_out(part, inner, in_list=is_list) for part in parts]
    if not is_list:
        names = (json.dumps(name, ensure_ascii=False) for name in value)
        lines = [f"{name}: {line}" for name, line in zip(names, lines, strict=True)]
    start, end = "[]" if is_list else "{}"
    return f"{start}\n{inner}" + f",\n{inner}".join(lines) + f"\n{indent}{end}"


def written(text: str, path: str | Path | None, end: str = "", *, private: bool = False) -> str:
    """Return a text, and write it when a path is given, for its owner alone if it may hold real records."""
    if path is not None:
        write_text(text + end, path, private=private)
    return text
