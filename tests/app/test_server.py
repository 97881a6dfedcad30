"""The local page's server ends with the command that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

# The page's own process is stood in for: what is tested is who ends it.
SERVE = """
import sys
from oversafe.app import server

server.arguments = lambda port, max_size: [
    sys.executable, "-c",
    "import os, socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1])));"
    "open(sys.argv[2], 'w').write(str(os.getpid())); time.sleep(600)",
    str(port), sys.argv[1] + ".part",
]
server.find_spec = lambda name: True

def tell(address):
    import os, time
    while not os.path.exists(sys.argv[1] + ".part") or not open(sys.argv[1] + ".part").read():
        time.sleep(0.05)
    os.rename(sys.argv[1] + ".part", sys.argv[1])

sys.exit(server.serve(on_start=tell))
"""


@pytest.mark.skipif(os.name != "posix", reason="other systems have no such signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_ending_the_command_ends_the_page(tmp_path, number):
    told = tmp_path / "pid"
    # A child of a background shell would ignore Ctrl-C.
    command = subprocess.Popen(
        [sys.executable, "-c", SERVE, told], preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
    )
    child = None
    try:
        started = time.monotonic()
        while not told.exists() and command.poll() is None and time.monotonic() - started < 120:
            time.sleep(0.05)
        child = int(told.read_text())
        command.send_signal(number)
        assert command.wait(60) == 0
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)
        child = None
    finally:
        command.kill()
        command.wait()
        if child is not None:
            os.kill(child, signal.SIGKILL)
