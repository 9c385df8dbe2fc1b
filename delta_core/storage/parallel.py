"""Requests sent side by side, where each one costs a round trip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from delta_core.storage.log_store import LogStore

MAX_REQUESTS = 32
"""So many at a time; stores throttle whoever sends hundreds."""

T = TypeVar("T")


def parallel(store: LogStore, calls: Sequence[Callable[[], T]]) -> list[T]:
    """The results of some calls that read from a store, in order; at once if the store is remote.

    Raises what the first of the failed calls raised, after all have ended.
    """
    if len(calls) < 2 or not store.remote:
        return [call() for call in calls]
    with ThreadPoolExecutor(min(MAX_REQUESTS, len(calls)), thread_name_prefix="deltaward-read") as pool:
        futures = [pool.submit(call) for call in calls]
    return [future.result() for future in futures]
