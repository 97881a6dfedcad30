"""How much memory a piece of work takes, where the system tells."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

_STATUS = Path("/proc/self/statm")
_INTERVAL = 0.01


class PeakMemory:
    """Watch the process while a block runs; ``bytes`` is then its largest growth, or None if it cannot be told.

    The size is looked at a hundred times a second, so that shorter peaks are missed.
    """

    bytes: int | None = None

    def __enter__(self) -> PeakMemory:
        self._start = _resident()
        self._peak = self._start
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        if self._start is not None:
            self._watcher.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._ended.set()
        if self._start is not None and self._peak is not None:
            self._watcher.join()
            self.bytes = max(self._peak, _resident() or 0) - self._start

    def _watch(self) -> None:
        while not self._ended.wait(_INTERVAL):
            now = _resident()
            if now is not None and (self._peak is None or now > self._peak):
                self._peak = now


def _resident() -> int | None:
    import resource

    try:
        return int(_STATUS.read_text().split()[1]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return None
