"""A thread pool for the requests that triggers make to stores.

The event loop of a triggerer must not block on a store. The loop's default executor has few threads (six on
two cores). A thousand sensors on a slow store would starve each other and all other users of that executor.
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
    """The pool of all triggers of the process. It starts a thread when no thread is idle."""
    value = os.environ.get(THREADS_VARIABLE, "").strip()
    threads = int(value) if value.isdecimal() and int(value) > 0 else DEFAULT_THREADS
    return ThreadPoolExecutor(max_workers=threads, thread_name_prefix="deltaward-trigger")


async def in_thread(function: Callable[[], R]) -> R:
    """Call a blocking function without blocking the event loop."""
    call = partial(contextvars.copy_context().run, function)
    return await asyncio.get_running_loop().run_in_executor(_pool(), call)
