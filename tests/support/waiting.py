"""Waiting for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE_SECONDS = 300.0
"""How long a test waits: so much longer than what it waits for takes that no slow minute fails it."""


def comes_true(condition: Callable[[], object], *, seconds: float = PATIENCE_SECONDS) -> bool:
    """Ask until the answer is true; returns whether it ever was."""
    give_up = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > give_up:
            return False
        time.sleep(0.01)
    return True
