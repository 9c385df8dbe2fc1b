"""Parallel requests to stores where each request costs a round trip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from delta_core.storage.log_store import LogStore

MAX_REQUESTS = 32
"""The maximum of concurrent requests. Stores throttle clients that send hundreds."""

T = TypeVar("T")


def parallel(store: LogStore, calls: Sequence[Callable[[], T]]) -> list[T]:
    """The results of calls that read from a store, in order. Runs in parallel when the store is remote.

    Raises the exception of the first call that failed, after all calls have ended.
    """
    if len(calls) < 2 or not store.remote:
        return [call() for call in calls]
    with ThreadPoolExecutor(min(MAX_REQUESTS, len(calls)), thread_name_prefix="deltaward-read") as pool:
        futures = [pool.submit(call) for call in calls]
    return [future.result() for future in futures]
