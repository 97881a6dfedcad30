"""Golden outputs as files: the same outputs give the same bytes."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.golden.output import Parts

FOLDER = Path(__file__).resolve().parent / "outputs"
_INDEX = "index.tsv"


def load(folder: Path = FOLDER) -> dict[str, Parts]:
    """Return the golden outputs by the cases' names."""
    golden: dict[str, Parts] = {}
    for path in sorted(folder.glob("*.json.gz")):
        golden |= json.loads(gzip.decompress(path.read_bytes()))
    for path in sorted(folder.glob("*.sentences.json")):
        for name, sentences in json.loads(path.read_text(encoding="utf-8")).items():
            golden.setdefault(name, {})["sentences"] = {
                place: text if isinstance(text, str) else "\n".join(text) for place, text in sentences.items()
            }
    return golden


def save(golden: Mapping[str, Parts], folder: Path = FOLDER) -> list[Path]:
    """Write golden outputs; return the files whose contents changed."""
    folder.mkdir(exist_ok=True)
    rooms: dict[str, dict[str, Parts]] = {}
    for name in sorted(golden):
        rooms.setdefault(name.partition("/")[0], {})[name] = golden[name]
    written = [_write(folder / _INDEX, _index(golden).encode())]
    for room, cases in rooms.items():
        rest = {
            name: {part: v for part, v in parts.items() if part != "sentences"}
            for name, parts in cases.items()
        }
        content = json.dumps(rest, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
        written.append(_write(folder / f"{room}.json.gz", content, packed=True))
        sentences = {
            # Line by line, so that a difference shows the line.
            name: {place: _lines(text) for place, text in sorted(parts.get("sentences", {}).items())}
            for name, parts in cases.items()
        }
        content = json.dumps(sentences, ensure_ascii=False, indent=1).encode() + b"\n"
        written.append(_write(folder / f"{room}.sentences.json", content))
    for path in folder.iterdir():
        if path.name != _INDEX and path.name.partition(".")[0] not in rooms:
            path.unlink()
            written.append(path)
    return [path for path in written if path is not None]


def _lines(text: str) -> str | list[str]:
    return text.split("\n") if "\n" in text else text


def _index(golden: Mapping[str, Parts]) -> str:
    return "".join(
        f"{name}\t{part}\t{_digest(values)}\n"
        for name in sorted(golden)
        for part, values in sorted(golden[name].items())
    )


def _digest(values: Any) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:12]


def _write(path: Path, content: bytes, *, packed: bool = False) -> Path | None:
    before = path.read_bytes() if path.exists() else None
    # Packers differ in the bytes they make of the same content.
    if before is not None and (gzip.decompress(before) if packed else before) == content:
        return None
    path.write_bytes(gzip.compress(content, 9, mtime=0) if packed else content)
    return path
