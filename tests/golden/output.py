"""What a case hands over, as plain values in parts."""

from __future__ import annotations

import dataclasses
import datetime
import fnmatch
import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePath
from typing import Any

import numpy as np
import pandas as pd

PARTS = ("tables", "guarantee", "manifest", "findings", "numbers", "sentences")
SENTENCE = "<sentence>"
# Of a longer column the first values are kept, and figures of all.
SHOWN_ROWS = 24
# Names of columns, methods and places have fewer words.
_WORDS = 4

# In all cases.
_UNSTABLE = {"*/details/seconds": "how long the attack took"}

Parts = dict[str, dict[str, Any]]


def is_value_object(kind: type) -> bool:
    """Return whether a class is a dataclass that compares by its fields; estimators and displays do not."""
    return dataclasses.is_dataclass(kind) and kind.__dataclass_params__.eq  # type: ignore[attr-defined]


class Output:
    """Collects the results of a case under names of its own.

    Parameters
    ----------
    unstable : mapping of str to str
        Places (``part/name/...``, with ``*``) that are not compared, and why.
    """

    def __init__(self, unstable: Mapping[str, str] | None = None) -> None:
        self.parts: Parts = {part: {} for part in PARTS}
        self._unstable = {**_UNSTABLE, **(unstable or {})}

    def table(self, name: str, table: Any, labels: Any = None) -> None:
        """Keep a table as it is, with its labels if they stand apart."""
        self._keep("tables", name, table)
        if labels is not None:
            self._keep("tables", f"{name}, labels", labels)

    def guarantee(self, guarantee: Any, name: str = "guarantee") -> None:
        """Keep a guarantee; its words are sentences, however short."""
        self._keep("guarantee", name, guarantee)

    def manifest(self, name: str, manifest: Mapping[str, Any]) -> None:
        """Keep a manifest, but for what differs from run to run."""
        differing = ("created", "oversafe", "sha256", "ledger_entry", "seal")
        left = {k: v for k, v in manifest.items() if k not in differing}
        if left.get("signature"):
            # By a key that each case makes anew.
            left["signature"] = {"name": left["signature"]["name"]}
        self._keep("manifest", name, left)

    def attack(self, result: Any, name: str = "result") -> None:
        """Keep what an attack found, with all that its result has."""
        self._keep("findings", name, result)

    def audit(self, found: Any, name: str = "audit") -> None:
        """Keep an audit: verdict, findings in their order, guarantee, facts and texts."""
        self._keep("findings", f"{name}, verdict", found.verdict.level)
        for number, finding in enumerate(found.findings):
            self._keep("findings", f"{name}, {number}", finding)
        self.guarantee(found.guarantee, f"{name}, guarantee")
        plain = found.to_dict()
        self._keep("numbers", f"{name}, criteria", plain["criteria"])
        self._keep("numbers", f"{name}, facts", plain["release"])
        self._keep("numbers", f"{name}, not run", list(found.not_run))
        self.text(f"{name}, not run", list(found.not_run.values()))
        self.text(f"{name}, warnings", found.warnings)
        self._keep("numbers", f"{name}, number of warnings", len(found.warnings))
        self.text(f"{name}, verdict", found.verdict.sentence)
        self.text(f"{name}, terminal", str(found))

    def number(self, name: str, value: Any) -> None:
        """Keep any other figure, or an object of plain parts."""
        self._keep("numbers", name, value)

    def text(self, name: str, value: Any) -> None:
        """Keep a text or several, whatever their length, as sentences."""
        values = [value] if isinstance(value, str) else list(value)
        for number, each in enumerate(values):
            place = name if len(values) == 1 else f"{name}, {number}"
            self._say(f"sentences/{place}", str(each))

    def fitted(self, model: Any, name: str = "fitted") -> None:
        """Keep what a fitted object shows: guarantee, schema, and the names of its public attributes."""
        public = sorted(n for n in vars(model) if n.endswith("_") and not n.startswith("_"))
        self._keep("numbers", f"{name}, attributes", public)
        if hasattr(model, "guarantee_"):
            self.guarantee(model.guarantee_, f"{name}, guarantee")
        for attribute in ("schema_", "classes_", "class_counts_", "sampling_strategy_", "features_", "norm_"):
            if hasattr(model, attribute):
                self._keep("numbers", f"{name}, {attribute}", getattr(model, attribute))

    def error(self, name: str, call: Callable[[], Any], *hidden: Any) -> None:
        """Keep what is refused: the kind of the error, and its sentence without some paths."""
        try:
            call()
        except Exception as error:
            kind, said = type(error).__name__, str(error)
        else:
            kind, said = "nothing was refused", ""
        self._keep("numbers", f"{name}, error", kind)
        self._say(f"sentences/{name}, error", without_stamps(said, *hidden))

    def _keep(self, part: str, name: str, value: Any) -> None:
        if name in self.parts[part]:
            raise ValueError(f"{part} has {name!r} already")
        self.parts[part][name] = self._plain(value, f"{part}/{name}")

    def _reason(self, place: str) -> str | None:
        return next((why for own, why in self._unstable.items() if fnmatch.fnmatchcase(place, own)), None)

    def _say(self, place: str, text: str) -> None:
        own = place.removeprefix("sentences/")
        if own in self.parts["sentences"]:
            raise ValueError(f"there is a sentence {own!r} already")
        reason = self._reason(f"sentences/{own}")
        self.parts["sentences"][own] = text if reason is None else f"<not compared: {reason}>"

    # --------------------------------------------------------------------------------------- plain values

    def _plain(self, value: Any, place: str) -> Any:
        if (reason := self._reason(place)) is not None:
            return f"<not compared: {reason}>"
        if isinstance(value, str):
            return self._text(value, place)
        if value is None or isinstance(value, bool | int | float):
            return _scalar(value)
        if isinstance(value, np.generic) or value is pd.NaT or value is pd.NA:
            return _scalar(value)
        if isinstance(value, datetime.date | datetime.timedelta | np.datetime64):
            return _scalar(value)
        if isinstance(value, pd.DataFrame):
            return self._frame(value, place)
        if isinstance(value, pd.Series):
            return {
                "name": self._plain(value.name, f"{place}/name"),
                "dtype": _dtype(value.dtype),
                "index": self._index(value.index, place),
                "values": self._column(value.tolist(), f"{place}/values"),
            }
        if isinstance(value, pd.Index | pd.api.extensions.ExtensionArray):
            return {"dtype": _dtype(value.dtype), "values": self._column(value.tolist(), place)}
        if isinstance(value, np.ndarray):
            cells = self._column(value.ravel().tolist(), place)
            return {"dtype": str(value.dtype), "shape": list(value.shape), "values": cells}
        if isinstance(value, Mapping):
            return {str(_named(k)): self._plain(v, f"{place}/{_named(k)}") for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [self._plain(each, f"{place}/{number}") for number, each in enumerate(value)]
        if isinstance(value, set | frozenset):
            return [self._plain(each, f"{place}/{n}") for n, each in enumerate(sorted(value, key=repr))]
        return self._object(value, place)

    def _text(self, text: str, place: str) -> str:
        # A table's texts are data, however long.
        if len(text.split()) < _WORDS or place.startswith("tables/"):
            return f"<text {text}" if text.startswith("<") else text
        self._say(place, text)
        return SENTENCE

    def _object(self, value: Any, place: str) -> Any:
        from oversafe.data import Schema
        from oversafe.privacy import Guarantee

        kind = type(value).__name__
        if isinstance(value, Guarantee):
            plain = value.to_dict()
            if plain["basis"]:
                self._say(f"{place}/basis", plain.pop("basis"))
            for number, caveat in enumerate(caveats := plain.pop("caveats")):
                self._say(f"{place}/caveats/{number}", caveat)
            self._say(f"{place}/str", str(value))
            return self._plain({**plain, "caveats": len(caveats)}, place)
        if isinstance(value, Schema):
            return self._plain(tomllib.loads(value.to_toml()), place)
        if is_value_object(type(value)):
            names = [own.name for own in dataclasses.fields(value) if not own.name.startswith("_")]
            return {"": kind, **{n: self._plain(getattr(value, n), f"{place}/{n}") for n in names}}
        if hasattr(value, "get_params") and not isinstance(value, type):
            return {"": kind, **self._plain(value.get_params(deep=False), place)}
        if isinstance(value, PurePath):
            return self._plain(str(value), place)
        if isinstance(value, bytes):
            return f"<bytes {hashlib.sha256(value).hexdigest()}>"
        if isinstance(value, Iterable) and hasattr(value, "_asdict"):
            return self._plain(value._asdict(), place)
        return f"<{getattr(value, '__name__', kind)}>"

    def _frame(self, frame: pd.DataFrame, place: str) -> dict[str, Any]:
        return {
            "columns": [self._plain(name, f"{place}/columns/{n}") for n, name in enumerate(frame.columns)],
            "dtypes": [_dtype(dtype) for dtype in frame.dtypes],
            "rows": len(frame),
            "index": self._index(frame.index, place),
            "values": [
                self._column(frame.iloc[:, number].tolist(), f"{place}/values/{number}")
                for number in range(frame.shape[1])
            ],
        }

    def _index(self, index: pd.Index, place: str) -> Any:
        if isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1 and index.name is None:
            return f"<range of {len(index)}>"
        return {
            "type": type(index).__name__,
            "names": [self._plain(name, f"{place}/index") for name in index.names],
            "values": self._column(index.tolist(), f"{place}/index"),
        }

    def _column(self, cells: list[Any], place: str) -> Any:
        """Return a column's values; of a long one the first, and figures that see every value and its place."""
        if len(cells) <= SHOWN_ROWS:
            return [self._plain(each, f"{place}/{number}") for number, each in enumerate(cells)]
        plain = [_scalar(each) if pd.api.types.is_scalar(each) else repr(each) for each in cells]
        first = [self._plain(each, f"{place}/{number}") for number, each in enumerate(cells[:SHOWN_ROWS])]
        floats = [isinstance(each, float) for each in plain]
        numbers = np.array([v if f and np.isfinite(v) else 0.0 for v, f in zip(plain, floats, strict=True)])
        # Of a fraction nothing but sums is the same on all processors; whatever is no fraction is taken as it is.
        others = ["number" if f and np.isfinite(v) else v for v, f in zip(plain, floats, strict=True)]
        weights = 1 + np.arange(len(cells)) / len(cells)
        return {
            "first": first,
            "cells": len(cells),
            "sum": float(np.abs(numbers).sum()),
            # Of sizes, so that it does not vanish, and with a sign that the cells' places give.
            "weighted": float((np.abs(numbers) * weights * np.where(numbers < 0, 1.25, 1.0)).sum()),
            "others": hashlib.sha256(json.dumps(others).encode()).hexdigest()[:16],
        }


def _scalar(value: Any) -> Any:
    if value is pd.NaT:
        return "<NaT>"
    if value is pd.NA:
        return "<NA>"
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    if isinstance(value, np.datetime64):
        value = pd.Timestamp(value)
    if isinstance(value, datetime.date | datetime.timedelta):
        text = value.isoformat() if hasattr(value, "isoformat") else str(value)
        return f"<{text}>"
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value)
    return str(value)


def _named(key: Any) -> Any:
    return key.item() if isinstance(key, np.generic) else key


def _dtype(dtype: Any) -> str:
    if isinstance(dtype, pd.CategoricalDtype):
        own = hashlib.sha256(repr(list(dtype.categories)).encode()).hexdigest()[:8]
        order = "ordered" if dtype.ordered else "unordered"
        return f"category of {len(dtype.categories)} {dtype.categories.dtype}, {order}, {own}"
    return str(dtype)


_STAMPS = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)?"), "<time>"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<sha256>"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "<id>"),
    (re.compile(r"\b[0-9a-f]{4}( [0-9a-f]{4}){7}\b"), "<fingerprint>"),
    # A ledger's own number.
    (re.compile(r"(?<=entry )[0-9a-f]{16}\b"), "<id>"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<id>"),
    (re.compile(r"oversafe \d+\.\d+[\w.]*"), "oversafe <version>"),
)


def without_stamps(text: str, *paths: Any) -> str:
    """Return a text without what differs from run to run: paths, times, checksums, identifiers and versions."""
    for path in paths:
        text = text.replace(str(path), "<folder>")
    for pattern, word in _STAMPS:
        text = pattern.sub(word, text)
    return text
