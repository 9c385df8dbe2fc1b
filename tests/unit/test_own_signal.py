"""A process that stops itself does nothing more, whatever its other threads are at."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.support.repository import ROOT

# The first thread takes the signals of the process. It comes late: each reversal takes many milliseconds.
STOPS_ITSELF = """
import os, signal, threading
from tests.support.own_signal import send_to_self

def stop():
    send_to_self(signal.SIGSTOP)
    os.write(1, b"went on")

stopping = threading.Thread(target=stop)
stopping.start()
block = bytearray(100_000_000)
while stopping.is_alive():
    block[:] = block[::-1]
"""


def test_nothing_comes_after_the_signal() -> None:
    with subprocess.Popen([sys.executable, "-c", STOPS_ITSELF], cwd=ROOT, stdout=subprocess.PIPE) as child:
        _, status = os.waitpid(child.pid, os.WUNTRACED)
        child.kill()
        assert child.stdout is not None
        assert os.WIFSTOPPED(status)
        assert child.stdout.read() == b""
