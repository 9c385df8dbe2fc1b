"""Use of the caller's own store by tasks that run in the caller's process.

A task is JSON and contains the table's URI, but never credentials. In another process, such as a Spark
executor, it opens the table with the credentials of that process, and with the options that the process has
for its tasks. In the caller's process it uses the store that the caller has open, with its options and its
cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from delta_core.forks import ForkSafeLock
from delta_core.storage.log_store import LogStore
from delta_core.storage.open import open_store, options_for

_lock = ForkSafeLock()
_shared_stores: dict[str, list[LogStore]] = {}
_task_options: Mapping[str, str] = {}


@contextmanager
def share_with_tasks(*stores: LogStore) -> Iterator[None]:
    """A context in which `task_store` returns these stores for their URIs, in any thread.

    When several stores have the same URI, it returns the last.
    """
    with _lock.held():
        for store in stores:
            _shared_stores.setdefault(store.uri, []).append(store)
    try:
        yield
    finally:
        with _lock.held():
            for store in stores:
                task_stores = _shared_stores[store.uri]
                task_stores.remove(store)
                if not task_stores:
                    del _shared_stores[store.uri]


@contextmanager
def options_of_tasks(options: Mapping[str, str]) -> Iterator[None]:
    """A context in which `task_store` opens stores with these options. For a process that runs only tasks."""
    global _task_options
    before, _task_options = _task_options, options
    try:
        yield
    finally:
        _task_options = before


def task_store(uri: str) -> LogStore:
    """The store of a task's table: the caller's store in the caller's process, else one opened by the URI.

    Raises:
        InvalidUriError: the URI's scheme has no store.
    """
    with _lock.held():
        stores = _shared_stores.get(uri)
        if stores:
            return stores[-1]
    return open_store(uri, storage_options=options_for(uri, _task_options))
