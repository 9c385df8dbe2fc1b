"""Threads for what triggers ask of stores.

A triggerer's event loop must not wait for a store. The loop's own threads are few, six on two cores, so a
thousand sensors on a slow store would starve each other and whatever else uses them.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Final, TypeVar

THREADS_VARIABLE: Final = "DELTAWARD_TRIGGER_THREADS"
DEFAULT_THREADS: Final = 64

R = TypeVar("R")


@cache
def _pool() -> ThreadPoolExecutor:
    """One pool for all triggers of the process; a thread is started when none is idle."""
    text = os.environ.get(THREADS_VARIABLE, "").strip()
    threads = int(text) if text.isdecimal() and int(text) > 0 else DEFAULT_THREADS
    return ThreadPoolExecutor(max_workers=threads, thread_name_prefix="deltaward-trigger")


async def in_thread(function: Callable[[], R]) -> R:
    """Call a function that blocks, without blocking the event loop."""
    call = partial(contextvars.copy_context().run, function)
    return await asyncio.get_running_loop().run_in_executor(_pool(), call)
