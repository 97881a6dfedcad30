"""Starting the local web page: on this machine alone, without telemetry."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from oversafe._core.errors import InputError, import_extra

ADDRESS = "127.0.0.1"
FIRST_PORT, LAST_PORT = 8501, 8599
DEFAULT_LIMIT = 200
_LONGEST_START = 30.0
_LONGEST_END = 10.0


def arguments(port: int, max_size: int) -> list[str]:
    """Return the command that serves the page; flags go before any setting of the user's own."""
    settings = {
        "server.address": ADDRESS,
        "server.port": str(port),
        "server.headless": "true",
        "server.maxUploadSize": str(max_size),
        "server.maxMessageSize": str(max(200, 2 * max_size)),
        "server.enableXsrfProtection": "true",
        "server.enableCORS": "true",
        "server.enableStaticServing": "false",
        "server.fileWatcherType": "none",
        "browser.serverAddress": ADDRESS,
        "browser.gatherUsageStats": "false",
        "client.toolbarMode": "minimal",
        "client.showErrorDetails": "none",
        "client.showSidebarNavigation": "false",
        "logger.level": "error",
        "theme.primaryColor": "#1d5fc4",
    }
    flags = [f"--{name}={value}" for name, value in settings.items()]
    page = str(Path(__file__).with_name("page.py"))
    return [sys.executable, "-m", "streamlit", "run", page, *flags, "--", str(max_size)]


def serve(
    port: int | None = None,
    max_size: int = DEFAULT_LIMIT,
    *,
    on_start: Callable[[str], None] = lambda address: None,
) -> int:
    """Serve the page until it is stopped, and return the server's exit code.

    Parameters
    ----------
    port : int, optional
        Of the loopback address; a free one when not given.
    max_size : int
        Megabytes that a file may have.
    on_start : callable
        Called with the page's address as soon as it answers.
    """
    if find_spec("streamlit") is None:
        # Not imported here: that takes seconds, and the server's process does it again.
        import_extra("streamlit", "app", "the local web page")
    if max_size < 1:
        raise InputError(f"--max-size {max_size} was given; give at least 1 (megabyte)")
    port = free_port(port)
    # Uploads and results are private: whatever the server writes is for its owner alone.
    environment = {**os.environ, "STREAMLIT_BROWSER_GATHER_USAGE_STATS": "false"}
    with _ended_by_signals():
        process = subprocess.Popen(
            arguments(port, max_size), env=environment, stdout=subprocess.DEVNULL, umask=0o077
        )
        try:
            _wait_for(port, process)
            on_start(f"http://{ADDRESS}:{port}")
            return process.wait()
        except KeyboardInterrupt:
            return 0
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(_LONGEST_END)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let a request to end, or a closed terminal, end the server's process too, as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        # Only there can a signal be received.
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    signals = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, stop) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def free_port(wanted: int | None = None) -> int:
    """Return a port of the loopback address that nobody listens on."""
    for port in [wanted] if wanted is not None else range(FIRST_PORT, LAST_PORT + 1):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((ADDRESS, port))
            except (OSError, OverflowError):
                continue
            return port
    if wanted is not None:
        raise InputError(f"--port {wanted} cannot be used; leave it out, and a free one is taken")
    raise InputError(f"no port from {FIRST_PORT} to {LAST_PORT} is free; name one with --port")


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    started = time.monotonic()
    while process.poll() is None and time.monotonic() - started < _LONGEST_START:
        with socket.socket() as probe:
            if probe.connect_ex((ADDRESS, port)) == 0:
                return
        time.sleep(0.05)
    raise InputError(
        "the local web page did not start; run it again, or use the command line: oversafe audit --help"
    )
