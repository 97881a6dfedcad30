"""Finished cells of a grid as private files: JSON, with tables in Parquet, written whole or not at all."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from oversafe._core.errors import InputError
from oversafe.data.io.files import replacing
from oversafe.experiment.source import is_settled, source_digest

_FORMAT = 1
_KEY_LENGTH = 32


@dataclass(frozen=True)
class Cell:
    """One cell of a grid.

    Parameters
    ----------
    key : str
        Of its settings.
    settings : dict
        What the function is called with.
    status : {"pending", "done", "failed"}
        How far it is.
    seconds : float, optional
        What it took.
    result : dict
        What the function returned.
    error : str, optional
        Why it failed.
    """

    key: str
    settings: dict[str, Any]
    status: Literal["pending", "done", "failed"] = "pending"
    seconds: float | None = None
    result: dict[str, Any] = field(default_factory=dict)
    error: str | None = None


def cell_key(function: str, version: str, settings: Mapping[str, Any]) -> str:
    """Return the key of a cell: equal for equal settings, in whatever order they are named."""
    described = {"function": function, "version": version, "settings": plain(dict(settings))}
    text = json.dumps(described, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_LENGTH]


def plain(value: Any) -> Any:
    """Return a setting as JSON can hold it; the text must depend on the value alone, not on the process."""
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        # JSON has no name for these, and 1.0 is not the text "1.0".
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, np.ndarray):
        return {"array": plain(value.tolist()), "dtype": str(value.dtype)}
    if isinstance(value, os.PathLike):
        return {"path": os.fspath(value)}
    if isinstance(value, Mapping):
        return {"mapping": sorted([str(plain(k)), plain(k), plain(v)] for k, v in value.items())}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, set | frozenset):
        return {"set": sorted((plain(entry) for entry in value), key=str)}
    if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        if "<lambda>" in value.__qualname__ or "<locals>" in value.__qualname__:
            raise InputError(
                f"a setting is {value.__qualname__}, which has no lasting name; define it in a module instead"
            )
        return {"name": f"{value.__module__}.{value.__qualname__}", **_code_of(value)}
    if hasattr(value, "get_params"):
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        parameters = plain(value.get_params(deep=False))
        return {"estimator": kind, "parameters": parameters, **_code_of(type(value))}
    raise InputError(
        f"a setting is of type {type(value).__name__}, which a cell cannot be known by; use numbers, text, lists, "
        "mappings or estimators"
    )


def _code_of(thing: Any) -> dict[str, str]:
    """Return the digest of someone's own class or function: once it is edited, it is another one."""
    return {} if is_settled(thing) else {"code": source_digest(thing)}


class Store:
    """A folder of finished cells.

    Results are tables and figures of private data, so the folder and its files are readable by their owner
    alone. Nothing is unpickled: a store from elsewhere cannot run code.
    """

    def __init__(self, folder: Path) -> None:
        # Worker processes outlive a change of folder and would look for a relative one elsewhere.
        self.folder = folder.absolute()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"the store {folder} cannot be created ({error.strerror}); name a folder"
            ) from None

    def write(self, cell: Cell) -> None:
        """Store a cell, tables first, so that what is named is there."""
        tables: list[str] = []
        document = {
            "format": _FORMAT,
            "key": cell.key,
            "settings": plain(cell.settings),
            "status": cell.status,
            "seconds": cell.seconds,
            "error": cell.error,
            "result": {name: self._packed(cell.key, value, tables) for name, value in cell.result.items()},
        }
        text = json.dumps(document, ensure_ascii=True, allow_nan=False)
        with replacing(self.folder / f"{cell.key}.json", private=True) as file:
            file.write(text.encode())

    def read(self, key: str) -> Cell | None:
        """Return a stored cell, or None if there is none that can be read."""
        path = self.folder / f"{key}.json"
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            if document["format"] != _FORMAT or document["key"] != key:
                return None
            result = {name: self._unpacked(value) for name, value in document["result"].items()}
            cell = Cell(key, {}, document["status"], document["seconds"], result, document["error"])
            return cell if cell.status in ("done", "failed") else None
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            # A file that something else damaged is a cell that has to be run again.
            return None

    def _packed(self, key: str, value: Any, tables: list[str]) -> Any:
        if isinstance(value, pd.DataFrame | pd.Series):
            name = f"{key}-{len(tables)}.parquet"
            tables.append(name)
            frame = value if isinstance(value, pd.DataFrame) else value.to_frame(value.name or "value")
            with replacing(self.folder / name, private=True) as file:
                frame.to_parquet(file)
            return {"table": name, "series": isinstance(value, pd.Series)}
        if isinstance(value, np.ndarray):
            return {
                "array": [self._packed(key, entry, tables) for entry in value.tolist()],
                "dtype": str(value.dtype),
            }
        if isinstance(value, np.generic):
            return self._packed(key, value.item(), tables)
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": repr(value)}
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, list | tuple):
            return [self._packed(key, entry, tables) for entry in value]
        if isinstance(value, Mapping):
            return {"mapping": [[str(k), self._packed(key, v, tables)] for k, v in value.items()]}
        raise InputError(
            f"a result is of type {type(value).__name__}, which the store cannot hold; return numbers, text, lists, "
            "arrays or DataFrames"
        )

    def _unpacked(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._unpacked(entry) for entry in value]
        if not isinstance(value, dict):
            return value
        if "table" in value:
            name = value["table"]
            if Path(name).name != name:
                raise ValueError("a table outside the store")
            frame = pd.read_parquet(self.folder / name)
            return frame.iloc[:, 0] if value["series"] else frame
        if "array" in value:
            return np.array(self._unpacked(value["array"]), dtype=value["dtype"])
        if "float" in value:
            return float(value["float"])
        return {name: self._unpacked(entry) for name, entry in value["mapping"]}
